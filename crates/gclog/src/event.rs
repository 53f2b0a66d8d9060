//! The events of a GC log, one model for all collectors and all versions.
//!
//! Sizes are bytes, durations nanoseconds, both exactly as printed: `0.1193963 secs` is 119 396 300 ns. A value
//! that a line did not print is `None`, never zero.

use memchr::memmem;

use crate::names::Name;
use crate::number::whole;

/// When something happened, by the clocks that the log prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds since the JVM started.
    pub uptime_ns: Option<u64>,
    /// Nanoseconds since 1970, UTC.
    pub wall_ns: Option<i64>,
}

/// The collector that a line, a set of lines or a flag names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collector {
    /// One thread, young and old.
    Serial,
    /// `PSYoungGen`, `ParOldGen`: throughput first.
    Parallel,
    /// Concurrent mark-sweep with ParNew or DefNew; removed in JDK 14.
    Cms,
    /// Garbage first.
    G1,
    /// Single-generation ZGC, JDK 11 to 23.
    Z,
    /// Generational ZGC, from JDK 21.
    GenerationalZ,
    /// Shenandoah.
    Shenandoah,
    /// Generational Shenandoah, from JDK 24.
    GenerationalShenandoah,
    /// No collection at all.
    Epsilon,
}

/// What a pause was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The young generation only, also when it starts a concurrent cycle or prepares mixed collections.
    Young,
    /// G1: young and some old regions.
    Mixed,
    /// The whole heap, threads stopped: `Full GC`, CMS's foreground collection, Shenandoah's degenerated
    /// collection is not one of them.
    Full,
    /// Shenandoah: a concurrent cycle that ends with threads stopped.
    Degenerated,
    /// The first pause of a concurrent cycle: initial mark, mark start, init mark.
    Start,
    /// Marking ends: remark, mark end, final mark.
    Remark,
    /// G1's cleanup.
    Cleanup,
    /// Any other pause of a concurrent collector, such as relocate start, init and final evacuation.
    Other,
}

/// Something that changed size in a collection. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Used before; CMS's initial mark and remark print only one figure, which is here and in `after`.
    pub before: Option<u64>,
    /// Used after.
    pub after: Option<u64>,
    /// Capacity afterwards, or committed for metaspace.
    pub capacity: Option<u64>,
}

/// A part of the heap, or memory beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// All of the Java heap.
    Heap,
    /// Young generation: Eden and survivors.
    Young,
    /// Where objects are born.
    Eden,
    /// Where young survivors are kept.
    Survivor,
    /// Old or tenured generation.
    Old,
    /// G1: objects of half a region and more.
    Humongous,
    /// Permanent generation (to JDK 7) or metaspace.
    Metaspace,
}

/// All areas, in the order of [`Areas`].
pub const AREAS: [Area; 7] = [
    Area::Heap,
    Area::Young,
    Area::Eden,
    Area::Survivor,
    Area::Old,
    Area::Humongous,
    Area::Metaspace,
];

/// What each area held before and after. An area that was not printed has nothing in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Areas([Change; AREAS.len()]);

impl Areas {
    /// What this area held.
    pub fn get(&self, area: Area) -> Change {
        self.0[area as usize]
    }

    /// For the parser: the same, to be filled.
    pub fn at(&mut self, area: Area) -> &mut Change {
        &mut self.0[area as usize]
    }
}

/// CPU time of a collection, from `[Times: user=0.02 sys=0.02, real=0.12 secs]` or `User=0.01s Sys=0.17s Real=3.75s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In the JVM, all threads of the collector.
    pub user_ns: u64,
    /// In the kernel for it.
    pub sys_ns: u64,
    /// Wall-clock time, in steps of 10 ms.
    pub real_ns: u64,
}

/// A phase inside a pause or a concurrent cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// As printed, without indentation, colon and time: `Evacuate Collection Set`, `Rescan (parallel)`.
    pub name: Name,
    /// How deep it is printed inside others, 0 for the outermost.
    pub depth: u8,
    /// How long, or the mean of the workers where it prints them.
    pub duration_ns: u64,
}

/// Objects by the collections they have survived, from `- age 1: 3269544 bytes, 3269544 total`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ages {
    /// `Desired survivor size`.
    pub desired: Option<u64>,
    /// `new threshold`: objects of that age are promoted next time.
    pub threshold: Option<u32>,
    /// `(max 15)`: the roof of the threshold; old JVMs print 2^31-1 or more.
    pub max: Option<u64>,
    /// Bytes of age 1, 2, ...
    pub bytes: Vec<u64>,
}

/// References that a collection found, by kind: count and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct References {
    /// `SoftReference`, `WeakReference`, `FinalReference`, `PhantomReference`, `JNI Weak Reference`.
    pub kind: Name,
    /// How many were found whose object was not reachable otherwise; `None` if only the time is printed. ZGC and
    /// Shenandoah call them discovered, and also print those that they merely encountered.
    pub count: Option<u64>,
    /// How long it took.
    pub duration_ns: Option<u64>,
}

/// What went wrong in a pause.
#[expect(
    clippy::struct_excessive_bools,
    reason = "troubles that come in any combination"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// `to-space exhausted`, `to-space overflow`, `Evacuation Failure`; not `Evacuation Failure: Pinned`, which says that
    /// regions stayed where they were because native code held objects in them.
    pub evacuation_failed: bool,
    /// `promotion failed`.
    pub promotion_failed: bool,
    /// `concurrent mode failure`: CMS did not finish in time.
    pub concurrent_mode_failure: bool,
    /// `concurrent mode interrupted`: a full collection was requested meanwhile.
    pub concurrent_mode_interrupted: bool,
    /// The cause is `GCLocker Initiated GC`.
    pub gc_locker: bool,
}

/// Threads stopped, for a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// Line of the log that contains its duration, from 1.
    pub line: u64,
    /// When it began. Unified logs stamp the end: the duration is subtracted.
    pub began: Stamp,
    /// `GC(12)`, or `#12:` of `PrintGCID`.
    pub id: Option<u64>,
    /// As printed, with what is in brackets: `Pause Young (Normal) (G1 Evacuation Pause)`, `Y: Pause Mark Start (Major)`;
    /// of JDK 5 to 8 a name in the same manner: `ParNew`, `GC remark`, `Full GC`, `PSYoungGen`, `GC pause (young)`.
    pub name: Name,
    /// What it was for.
    pub kind: Kind,
    /// Its cause, without brackets: `G1 Evacuation Pause`, `Allocation Failure`, `System.gc()`.
    pub cause: Option<Name>,
    /// It starts a concurrent cycle: `Concurrent Start`, `initial-mark`.
    pub starts_cycle: bool,
    /// How long threads were stopped. `None` if the log is cut before the figure.
    pub duration_ns: Option<u64>,
    /// It lies within another pause whose duration includes this one's, such as the young collection before CMS's
    /// remark: not to be added to a total.
    pub nested: bool,
    /// What the areas held.
    pub areas: Areas,
    /// Bytes that moved from young to old, where they follow exactly from the log.
    pub promoted: Option<u64>,
    /// Of the young generation at that moment: used and capacity, as CMS's remark and initial mark print it
    /// (`YG occupancy: 5803756 K (5872064 K)`).
    pub young_occupancy: Option<(u64, u64)>,
    /// CPU time.
    pub cpu: Option<Cpu>,
    /// Parts of it.
    pub phases: Vec<Phase>,
    /// Age table after it.
    pub ages: Option<Ages>,
    /// References processed.
    pub references: Vec<References>,
    /// Troubles.
    pub troubles: Troubles,
}

/// Concurrent work of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrent {
    /// Line of the log.
    pub line: u64,
    /// When it began; empty if the log contains neither that nor the duration.
    pub began: Stamp,
    /// When it ended, if nothing else is known: ZGC up to JDK 20 under `-Xlog:gc` prints one line per cycle, at its end
    /// and without its length. Otherwise empty.
    pub ended: Stamp,
    /// `GC(12)`.
    pub id: Option<u64>,
    /// As printed: `CMS-concurrent-abortable-preclean`, `Concurrent Mark`, `Y: Concurrent Relocate`.
    pub name: Name,
    /// It is a whole cycle, not a part: `Concurrent Mark Cycle`, `Major Collection`, `Garbage Collection (Warmup)`.
    pub cycle: bool,
    /// Why, of a whole cycle.
    pub cause: Option<Name>,
    /// Wall-clock duration.
    pub duration_ns: Option<u64>,
    /// CPU time, of CMS's `0.019/0.019 secs` the first figure.
    pub cpu_ns: Option<u64>,
    /// It was aborted: `concurrent mark abort`, `abort preclean due to time`.
    pub aborted: bool,
    /// What areas held, of a whole cycle that prints it.
    pub areas: Areas,
    /// Bytes that moved from young to old, where the log prints them: a young collection of generational ZGC.
    pub promoted: Option<u64>,
    /// Bytes that the application allocated meanwhile, where the log prints them: a cycle of ZGC, a young collection of
    /// generational ZGC.
    pub allocated: Option<u64>,
    /// Bytes that a mark of ZGC or Shenandoah found alive, where the log prints them.
    pub live: Option<u64>,
}

impl Concurrent {
    /// When it began, or ended where that alone is known.
    pub fn at(&self) -> Stamp {
        if self.began == Stamp::default() {
            self.ended
        } else {
            self.began
        }
    }
}

/// Threads stopped, for any reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safepoint {
    /// Line of the log.
    pub line: u64,
    /// When it began, as closely as the log shows.
    pub began: Stamp,
    /// The operation, where printed: `G1CollectForAllocation`, `RevokeBias`, `Cleanup`.
    pub operation: Option<Name>,
    /// Time until all threads had stopped.
    pub reaching_ns: Option<u64>,
    /// From the call to stop until all ran again.
    pub total_ns: u64,
}

/// A row of a collector's summary table: ZGC prints one every ten seconds, Shenandoah when its JVM ends. The values
/// are the last columns of the ZGC table, which cover all the time since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// Line of the log.
    pub line: u64,
    /// When it was printed.
    pub at: Stamp,
    /// As printed: `Old Pause: Pause Mark End`, `Pause Init Mark (G)`.
    pub name: Name,
    /// How often; ZGC does not say.
    pub count: Option<u64>,
    /// Mean. ZGC's is a mean of means: of each second, then of all seconds in which it happened.
    pub mean_ns: u64,
    /// Longest.
    pub longest_ns: u64,
}

/// What the log contains about the JVM that wrote it, one fact at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// `17.0.15+6-Debian-1deb12u1`, `1.8.0_504-8u504-ga-1-b01`.
    Version(&'a str),
    /// The command line, or the flags, as printed.
    Flags(&'a str),
    /// Which collector: from `Using G1`, or the first line that only one of them prints.
    Collector(Collector),
    /// CPUs that the JVM sees.
    Cpus(u64),
    /// Memory of the machine or container, bytes.
    Memory(u64),
    /// Swap of the machine, bytes.
    Swap(u64),
    /// Size of a G1 or Shenandoah region, bytes.
    RegionSize(u64),
    /// Largest heap, bytes.
    MaxHeap(u64),
    /// Threads for pauses.
    ParallelWorkers(u64),
    /// Concurrent threads.
    ConcurrentWorkers(u64),
    /// Parallel for the young generation alone: `PSOldGen`, which one thread collects (`UseParallelOldGC` off, as it was up to
    /// JDK 7u4 unless switched on).
    SerialOld,
}

/// The size of a humongous allocation request, as G1 logs its decisions: unified logs print `allocation request:
/// 3145744B threshold: ... source: concurrent humongous allocation`, JDK 8 with `PrintAdaptiveSizePolicy` the same with
/// `3145744 bytes`.
pub(crate) fn humongous_request(text: &[u8]) -> Option<u64> {
    const REQUEST: &[u8] = b"llocation request: ";
    let at = memmem::find(text, REQUEST)?;
    memmem::find(text, b"humongous allocation")?;
    let (bytes, _) = whole(&text[at + REQUEST.len()..])?;
    (bytes > 0).then_some(bytes)
}

/// One event of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// Another JVM writes from here on: uptime and GC numbers restart. Not emitted for the first one.
    Restart,
    /// Several JVMs interleave in the log, and the events from here to the next `Turn` are of this one. Not emitted if the log
    /// has a single writer; otherwise every writer gets at least one.
    Turn {
        /// Its number, small; a new writer may reuse the number of one that has ended.
        jvm: usize,
        /// Its name, from its lines: `web-0/app`, `pid 4711`.
        from: &'a str,
    },
    /// Of the JVM.
    Fact(Fact<'a>),
    /// A pause.
    Pause(&'a Pause),
    /// A concurrent phase or cycle.
    Concurrent(&'a Concurrent),
    /// A safepoint.
    Safepoint(&'a Safepoint),
    /// References that a concurrent collector found in a cycle; those of a pause are in the pause.
    References(References),
    /// A row of a collector's own summary.
    Statistic(&'a Statistic),
    /// An application thread waited for memory: ZGC's `Allocation Stall (thread) 12.3ms`, Shenandoah's pacing.
    Stall {
        /// Line of the log.
        line: u64,
        /// When.
        at: Stamp,
        /// The thread, where printed.
        thread: Option<Name>,
        /// How long.
        duration_ns: u64,
    },
    /// The age table of a concurrent young collection, as generational ZGC prints it; that of a pause is in the pause.
    Ages {
        /// Line of the log, the one that ends the collection.
        line: u64,
        /// When it ended.
        at: Stamp,
        /// Objects that live on.
        ages: &'a Ages,
    },
    /// How long the application ran since the last safepoint: `Application time: 0.9123603 seconds`.
    Ran {
        /// When it ended.
        at: Stamp,
        /// How long.
        duration_ns: u64,
    },
    /// The size of an object that G1 calls humongous, half a region and more.
    Humongous {
        /// Line of the log.
        line: u64,
        /// When.
        at: Stamp,
        /// Its bytes.
        bytes: u64,
        /// It was to be allocated, and a cycle or more heap was requested; otherwise it was in the heap at a
        /// collection.
        asked: bool,
    },
    /// `java.lang.OutOfMemoryError` and its like.
    OutOfMemory {
        /// Line of the log.
        line: u64,
        /// When.
        at: Stamp,
    },
    /// Fragmentation of CMS's old generation, from `PrintFLSStatistics`.
    FreeLists {
        /// Line of the log, the last of them.
        line: u64,
        /// When.
        at: Stamp,
        /// Bytes.
        free: u64,
        /// Largest block in bytes.
        largest: u64,
    },
}
