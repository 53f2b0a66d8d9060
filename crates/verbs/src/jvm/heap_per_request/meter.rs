//! Reads how much a JVM has allocated, in two ways that have nothing in common; a third is in [`super::log`].
//!
//! The *thread counters* are each thread's own count of what it has allocated ([`ThreadCounters`]).
//!
//! *Heap used* is where the allocation pointer stands: after a forced collection the heap holds what lives, and what it holds more at
//! the end of a window was allocated in it, if no collection came between. Threads get their share of Eden in buffers (TLABs), so
//! what they hold and have not used must be subtracted: the collection that ends the window adds it up (`sun.gc.tlab.gcWaste` and
//! `refillWaste` in the performance data). Three collectors are less exact: G1 leaves out the region it serves from and counts the ends of
//! others, ZGC hands out pages, Shenandoah does not add up its buffers.
//!
//! Source: JDK 17, `share/gc/shared/threadLocalAllocBuffer.cpp` (`retire`, `ThreadLocalAllocStats::publish`).

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use rungwise_formats::heap_info::{self, Used};
use rungwise_host::hotspot::{Error, Jvm};
use rungwise_host::live::Live;
use rungwise_host::machine;
use rungwise_host::signals::Interrupt;
use rungwise_model::capacity::Estimate;
use rungwise_probes::jvm::{Counters, READS_WITHIN, ThreadCounters, performance_numbers};

use super::log::{self, After, Collection, GcLog};

/// A full collection of a heap of hundreds of GB.
const COLLECTS_WITHIN: Duration = Duration::from_mins(10);
/// Attempts to read the heap between two collections. A guess: reading takes a millisecond.
const TRIES: u32 = 5;
/// Words in the performance data have the size of an address.
const WORD: f64 = 8.0;
/// A buffer of ZGC, and an object beside it, is at most this share of its page; one that does not fit into the rest of a page leaves it unused
/// (`ZObjectSizeLimitSmall`).
const PAGE_WASTE: f64 = 1.0 / 8.0;
/// Pages of ZGC: each CPU has a small one, and all share one of medium size for larger objects (`ZPageSizeSmall`, `ZPageSizeMediumMax`).
const PAGES: (f64, f64) = ((2 << 20) as f64, (32 << 20) as f64);
/// A buffer of Shenandoah is retired with at most this share of it unused (`TLABRefillWasteFraction`).
const REFILL_WASTE: f64 = 1.0 / 64.0;

/// The collector of a JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collector {
    Serial,
    Parallel,
    Cms,
    G1,
    Z,
    Shenandoah,
    Epsilon,
}

impl Collector {
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Shenandoah, "-XX:+UseShenandoahGC", "shenandoah"),
        (Self::Z, "-XX:+UseZGC", "zgc"),
        (Self::Epsilon, "-XX:+UseEpsilonGC", "epsilon"),
        (Self::G1, "-XX:+UseG1GC", "g1"),
        (Self::Cms, "-XX:+UseConcMarkSweepGC", "cms"),
        (Self::Parallel, "-XX:+UseParallelGC", "parallel"),
        (Self::Serial, "-XX:+UseSerialGC", "serial"),
    ];

    fn of(flags: &str) -> Option<Self> {
        let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
        let mut all = Self::ALL.iter();
        all.find(|(_, flag, _)| has(flag)).map(|found| found.0)
    }

    pub(super) fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(one, ..)| *one == self)
            .map_or("", |found| found.2)
    }

    /// Whether what it collects first has an Eden of its own size.
    pub(super) fn has_eden(self) -> bool {
        matches!(self, Self::Serial | Self::Parallel | Self::Cms | Self::G1)
    }
}

/// What heap used says of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filled {
    /// Bytes allocated.
    pub(super) bytes: Estimate,
    /// Growth of the heap in use, unused buffers included.
    pub(super) occupied: f64,
    /// Unused buffers at the end, where they are known.
    pub(super) unused: Option<f64>,
    /// Bytes allocated by the GC log, where there is one.
    pub(super) logged: Option<Estimate>,
}

/// Why heap used says nothing of a window.
#[derive(Debug)]
pub(super) enum NotFilled {
    /// A collection came between; a smaller window may do.
    Collected,
    /// It never will; the reason.
    Never(String),
    Attach(Error),
}

impl From<Error> for NotFilled {
    fn from(error: Error) -> Self {
        Self::Attach(error)
    }
}

/// The heap after a forced collection.
#[derive(Clone, Debug)]
pub(super) struct Emptied {
    used: Used,
    numbers: Numbers,
    /// What the GC log says of it, and of the collections before it.
    collections: Vec<Collection>,
}

/// The numbers of the performance data; empty without them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Numbers(BTreeMap<String, i64>);

impl Numbers {
    fn bytes(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|number| *number as f64)
    }

    /// Collections of any kind so far.
    fn collections(&self) -> i64 {
        let all = self.0.iter();
        all.filter(|(name, _)| {
            name.starts_with("sun.gc.collector.") && name.ends_with(".invocations")
        })
        .map(|(_, count)| count)
        .sum()
    }

    /// All that the last collection has written of buffers.
    fn account(&self) -> Vec<(&String, &i64)> {
        let all = self.0.iter();
        all.filter(|(name, _)| name.starts_with("sun.gc.tlab."))
            .collect()
    }

    /// The account of buffers of the last collection.
    fn buffers(&self) -> Buffers {
        let of = |name: &str| self.bytes(&format!("sun.gc.tlab.{name}"));
        let unused = ["gcWaste", "refillWaste", "slowWaste", "fastWaste"];
        Buffers {
            // Up to JDK 13, where what compiled code left is apart from what the JVM left, it is a guess: the number of buffers times the
            // size that was wanted.
            handed: of("alloc")
                .filter(|_| of("refillWaste").is_some())
                .map(|words| words * WORD),
            unused: unused.iter().filter_map(|name| of(name)).sum::<f64>() * WORD,
            beside: of("slowAlloc").unwrap_or(0.0),
        }
    }
}

/// What was handed out in buffers from one collection to the next.
#[derive(Clone, Copy, Debug)]
struct Buffers {
    /// Bytes handed out; where they are counted.
    handed: Option<f64>,
    /// Bytes of it that were not used.
    unused: f64,
    /// Objects allocated beside the buffers, because they did not fit.
    beside: f64,
}

fn not_negative(bytes: Estimate) -> Estimate {
    Estimate {
        point: bytes.point.max(0.0),
        low: bytes.low.max(0.0),
        high: bytes.high.max(0.0),
    }
}

/// The heap in use and the numbers of one moment. A collection between the two readings would go unnoticed: the numbers would count it as
/// one of before, and the heap would not.
fn at_one_moment(
    numbers: impl Fn() -> Numbers,
    used: impl FnOnce() -> Result<Used, NotFilled>,
) -> Result<(Used, Numbers), NotFilled> {
    let before = numbers();
    let used = used()?;
    let after = numbers();
    if before.collections() == after.collections() {
        Ok((used, after))
    } else {
        Err(NotFilled::Collected)
    }
}

/// A JVM that is read.
#[derive(Debug)]
pub(super) struct Meter {
    counters: ThreadCounters,
    pub(super) version: Option<String>,
    pub(super) collector: Option<Collector>,
    /// `-XX:-UseTLAB`: nothing is handed out in buffers.
    no_buffers: bool,
    /// Of this machine; the JVM may be confined to fewer.
    cpus: u32,
    pub(super) max_heap: Option<f64>,
    pub(super) max_young: Option<f64>,
    /// Its GC log, or why that is of no use; nothing where it writes none.
    log: Option<Result<GcLog, String>>,
    /// Why the log could not be read later.
    unread: OnceLock<String>,
}

impl Meter {
    pub(super) fn open(pid: u32, interrupt: &Interrupt) -> Result<Self, Error> {
        let jvm = Jvm::open(pid)?.with_interrupt(interrupt.clone());
        let version = jvm.command("VM.version", READS_WITHIN)?;
        let mut lines = version.lines().map(str::trim);
        let version = lines.find(|line| line.contains(" VM version ") || line.contains(" VM "));
        let flags = jvm.command("VM.flags", READS_WITHIN)?;
        let value = |name: &str| {
            let mut words = flags.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok())
        };
        let collector = Collector::of(&flags);
        Ok(Self {
            log: GcLog::find(&jvm, collector)?,
            unread: OnceLock::new(),
            version: version.map(str::to_owned),
            collector,
            cpus: machine::fingerprint(&Live).cpus,
            no_buffers: flags.split_whitespace().any(|word| word == "-XX:-UseTLAB"),
            max_heap: value("-XX:MaxHeapSize="),
            max_young: value("-XX:MaxNewSize="),
            counters: ThreadCounters::new(jvm),
        })
    }

    /// Whether the JVM runs and is not stopped.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.jvm().check()
    }

    /// The thread counters now; `None` for a JVM that does not print them (JDK 8 to 10).
    pub(super) fn counters(&self) -> Result<Option<Counters>, Error> {
        self.counters.read()
    }

    /// The same once the threads of the last connections have ended.
    pub(super) fn at_rest(&self) -> Result<Option<Counters>, Error> {
        self.counters.at_rest()
    }

    /// Forces a collection, from which on the growth of the heap is what is allocated.
    pub(super) fn empty(&self) -> Result<Emptied, NotFilled> {
        let said = self.jvm().command("GC.run", COLLECTS_WITHIN)?;
        if said.contains("disabled") {
            let why = "the JVM refuses to collect on demand (-XX:+DisableExplicitGC of JDK 8); start it without that option";
            return Err(NotFilled::Never(why.to_owned()));
        }
        if self.collector == Some(Collector::Epsilon) {
            let why = "Epsilon never collects, so unused buffers are unknown";
            return Err(NotFilled::Never(why.to_owned()));
        }
        // Any moment after the collection will do as the beginning.
        for _ in 0..TRIES {
            match at_one_moment(|| self.numbers(), || self.used()) {
                Err(NotFilled::Collected) => {}
                read => {
                    let (used, numbers) = read?;
                    let collections = self.logged();
                    return Ok(Emptied {
                        used,
                        numbers,
                        collections,
                    });
                }
            }
        }
        Err(NotFilled::Collected)
    }

    /// What was allocated since `since`; ends the window with another forced collection, from which the next one begins.
    pub(super) fn filled(&self, since: &Emptied) -> Result<(Filled, Emptied), NotFilled> {
        let (used, before) = at_one_moment(|| self.numbers(), || self.used())?;
        if before.0.is_empty() {
            let why =
                "the JVM has no performance data (-XX:-UsePerfData), so unused buffers are unknown";
            return Err(NotFilled::Never(why.to_owned()));
        }
        if before.collections() != since.numbers.collections() {
            return Err(NotFilled::Collected);
        }
        let next = self.empty()?;
        let growth = Estimate {
            point: used.bytes as f64 - since.used.bytes as f64,
            low: used.bytes as f64 - (since.used.bytes + since.used.unit - 1) as f64,
            high: (used.bytes + used.unit - 1) as f64 - since.used.bytes as f64,
        };
        let account = (next.numbers.account() != before.account()).then(|| next.numbers.buffers());
        let occupied = growth.point.max(0.0);
        let (bytes, unused) = if self.no_buffers {
            (growth, Some(0.0))
        } else {
            self.less_unused(growth, account, used.region, &before)
        };
        let logged = log::after(&since.collections)
            .filter(|_| !next.collections.is_empty())
            .map(|after| self.by_log(after, &next.collections, used.region, &before));
        let filled = Filled {
            bytes: not_negative(bytes),
            occupied,
            unused,
            logged,
        };
        Ok((filled, next))
    }

    /// What the GC log says of the collections since the last forced one, and of that which was forced just now; nothing without a log.
    fn logged(&self) -> Vec<Collection> {
        let Some(Ok(log)) = &self.log else {
            return Vec::new();
        };
        log.since().unwrap_or_else(|why| {
            let _ = self.unread.set(why);
            Vec::new()
        })
    }

    /// Whether the JVM writes a GC log, and if so, why it is of no use.
    pub(super) fn log(&self) -> Option<Result<(), &str>> {
        let why = match self.log.as_ref()? {
            Err(why) => Some(why),
            Ok(_) => self.unread.get(),
        };
        Some(why.map_or(Ok(()), |why| Err(why)))
    }

    /// What was allocated by the GC log.
    fn by_log(
        &self,
        after: After,
        collections: &[Collection],
        region: Option<u64>,
        before: &Numbers,
    ) -> Estimate {
        let growth = log::growth(after, collections);
        let (unused, beside) = (growth.totals.unused as f64, growth.totals.beside as f64);
        let bytes = if self.no_buffers {
            growth.bytes
        } else if self.collector == Some(Collector::Z) {
            let (small, medium) = PAGES;
            let begun = small * f64::from(self.cpus) + if beside > 0.0 { medium } else { 0.0 };
            let (low, high) = (
                (1.0 - PAGE_WASTE) * growth.bytes.low - begun - unused,
                growth.bytes.high - unused,
            );
            Estimate {
                point: f64::midpoint(low.max(0.0), high.max(0.0)),
                low,
                high,
            }
        } else {
            let buffers = Buffers {
                handed: None,
                unused,
                beside,
            };
            self.less_unused(growth.bytes, Some(buffers), region, before)
                .0
        };
        not_negative(bytes)
    }

    /// The growth without what threads hold and have not used, and that.
    fn less_unused(
        &self,
        growth: Estimate,
        account: Option<Buffers>,
        region: Option<u64>,
        before: &Numbers,
    ) -> (Estimate, Option<f64>) {
        let bounds = |low: f64, high: f64| Estimate {
            point: f64::midpoint(low, high.max(low)),
            low,
            high: high.max(low),
        };
        let region = region.unwrap_or(0) as f64;
        match (self.collector, account) {
            (Some(Collector::Shenandoah), _) => {
                // A buffer is at most a region.
                let threads = before.bytes("java.threads.live").unwrap_or(0.0);
                let held = (threads * region + growth.high * REFILL_WASTE).min(growth.high);
                (bounds(growth.low - held, growth.high), None)
            }
            // The account is that of an earlier collection, because nothing was handed out since, or it happens to be the same.
            (collector, None) => {
                let exact = collector != Some(Collector::Z);
                let unused = before.buffers().unused;
                let least = if exact { growth.low - unused } else { 0.0 };
                (bounds(least.max(0.0), growth.high.max(0.0)), None)
            }
            // A page is in use from its first byte on: what threads have used is the least, what the pages hold the most.
            (Some(Collector::Z), Some(buffers)) => {
                let unused = buffers.unused;
                let least = buffers.handed.unwrap_or(unused) - unused;
                (bounds(least, growth.high - unused), Some(unused))
            }
            // The region from which threads are served last does not count yet. An object beside the buffers that does not fit into the rest
            // of a region leaves it unused, and it is at most half as large.
            (Some(Collector::G1), Some(buffers)) => {
                let unused = buffers.unused;
                let half = match buffers.handed {
                    Some(handed) => (growth.low - handed).max(0.0) / 2.0,
                    None => (buffers.beside * region).min(growth.low) / 2.0,
                };
                let least = growth.low - half - unused;
                (bounds(least, growth.high + region - unused), Some(unused))
            }
            (_, Some(Buffers { unused, .. })) => {
                let bytes = bounds(growth.low - unused, growth.high - unused);
                (bytes, Some(unused))
            }
        }
    }

    fn used(&self) -> Result<Used, NotFilled> {
        let text = self.jvm().command("GC.heap_info", READS_WITHIN);
        let text = match text {
            Err(Error::Refused { .. }) => {
                let why = "this JDK has no GC.heap_info; use JDK 8u282 or later".to_owned();
                return Err(NotFilled::Never(why));
            }
            text => text?,
        };
        heap_info::parse(&text).ok_or_else(|| {
            NotFilled::Never("the answer to GC.heap_info contains no heap in use".to_owned())
        })
    }

    /// Nothing is handed out in buffers, so heap used is what is allocated.
    pub(super) fn has_no_buffers(&self) -> bool {
        self.no_buffers
    }

    /// Young collections so far.
    pub(super) fn young_collections(&self) -> Option<u64> {
        let count = *self.numbers().0.get("sun.gc.collector.0.invocations")?;
        u64::try_from(count).ok()
    }

    /// The size of Eden now; of the whole heap where the collector has no Eden.
    pub(super) fn room(&self) -> Option<f64> {
        let numbers = self.numbers();
        let generation = u8::from(!self.collector?.has_eden());
        let name = |of: &str| format!("sun.gc.generation.{generation}.space.0.{of}");
        let now = numbers.bytes(&name("capacity")).filter(|size| *size > 0.0);
        now.or(self.max_heap.filter(|_| generation == 1))
    }

    fn jvm(&self) -> &Jvm {
        self.counters.jvm()
    }

    fn numbers(&self) -> Numbers {
        Numbers(performance_numbers(self.jvm().pid()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_collection_between_two_readings_is_noticed() {
        let collections = Cell::new(1);
        let numbers = || {
            let name = "sun.gc.collector.0.invocations".to_owned();
            Numbers(BTreeMap::from([(name, collections.get())]))
        };
        let used = |of: &str| heap_info::parse(of).unwrap();
        let text = "def new generation   total 9216K, used 100K [0x1, 0x2, 0x3)";
        let read = at_one_moment(numbers, || Ok(used(text)));
        let (_, read) = read.unwrap();
        assert_eq!(read.collections(), 1);
        let read = at_one_moment(numbers, || {
            collections.set(2);
            Ok(used(text))
        });
        assert!(matches!(read, Err(NotFilled::Collected)), "{read:?}");
    }
}
