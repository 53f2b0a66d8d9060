//! Reads how much a JVM has allocated, in two ways that have nothing in common.
//!
//! The *thread counters* are each thread's own count of what it has allocated (`Thread.print -e`, JDK 11 and later), printed with a unit
//! that grows with the number. They cost a safepoint and disturb nothing; what a thread has allocated is gone with the thread.
//!
//! *Heap used* is where the allocation pointer stands: after a forced collection the heap holds what lives, and what it holds more at
//! the end of a window was allocated in it, if no collection came between. Threads get their share of Eden in buffers (TLABs), so
//! what they hold and have not used must be subtracted: the collection that ends the window adds it up (`sun.gc.tlab.gcWaste` and
//! `refillWaste` in the performance data). Three collectors are less exact: G1 leaves out the region it serves from and counts the ends of
//! others, ZGC hands out pages, Shenandoah does not add up its buffers.
//!
//! Source: JDK 17, `share/gc/shared/threadLocalAllocBuffer.cpp` (`retire`, `ThreadLocalAllocStats::publish`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rungwise_formats::heap_info::{self, Used};
use rungwise_formats::hsperfdata;
use rungwise_formats::thread_allocation::{self, Thread};
use rungwise_host::hotspot::{Error, Jvm};
use rungwise_model::capacity::Estimate;

use crate::jvm::target;

/// A command that only reads may take this long; a safepoint comes within milliseconds where the machine is not overloaded.
const READS_WITHIN: Duration = Duration::from_secs(30);
/// A full collection of a heap of hundreds of GB.
const COLLECTS_WITHIN: Duration = Duration::from_mins(10);
/// Half a width of the interval of many rounded numbers, in standard deviations: 99.7 % of a normal distribution.
const DEVIATIONS: f64 = 3.0;
/// Words in the performance data have the size of an address.
const WORD: f64 = 8.0;
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

/// What the thread counters say of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counted {
    /// Bytes allocated by the threads that could be seen at its end.
    pub(super) bytes: Estimate,
    /// Threads that ended in it, whose count is lost with them.
    pub(super) lost_threads: u64,
}

/// The thread counters at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    threads: BTreeMap<u64, Thread>,
    /// Platform threads that were ever started; absent without performance data.
    started: Option<i64>,
    /// The highest number of a thread that was ever seen.
    highest: u64,
}

impl Counters {
    /// Whether all its threads still run.
    pub(super) fn has_threads_of(&self, later: &Self) -> bool {
        let mut threads = self.threads.keys();
        threads.all(|number| later.threads.contains_key(number))
    }

    /// From this moment to a later one.
    pub(super) fn until(&self, later: &Self) -> Counted {
        let (mut bytes, mut variance, mut most) = (0.0, 0.0, 0.0);
        let mut began = 0;
        let visible = |threads: &BTreeMap<u64, Thread>| {
            let threads = threads.iter().filter(|(_, thread)| !thread.compiles);
            threads.map(|(number, _)| *number).collect::<Vec<_>>()
        };
        for (number, thread) in &later.threads {
            let old = self.threads.get(number);
            if old.is_none() && !thread.compiles {
                began += 1;
            }
            // One that has not run has allocated nothing, however coarse its number.
            if old == Some(thread) {
                continue;
            }
            for (sign, one) in [(1.0, Some(thread)), (-1.0, old)] {
                let Some(one) = one else { continue };
                let room = (one.unit - 1) as f64;
                bytes += sign * (one.allocated as f64 + room / 2.0);
                variance += room * room / 12.0;
                most += room / 2.0;
            }
        }
        let (was, is) = (visible(&self.threads), &later.threads);
        let ended = was.iter().filter(|number| !is.contains_key(number)).count() as u64;
        // Threads that began and ended between the two: counted by the JVM, or by the numbers that it has given.
        let all = match (self.started, later.started) {
            (Some(before), Some(after)) => u64::try_from(after - before).unwrap_or(0),
            _ => later.highest.saturating_sub(self.highest),
        };
        let half = f64::min(most, DEVIATIONS * f64::sqrt(variance));
        Counted {
            bytes: Estimate {
                point: bytes.max(0.0),
                low: (bytes - half).max(0.0),
                high: (bytes + half).max(0.0),
            },
            lost_threads: ended + all.saturating_sub(began),
        }
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

/// A JVM that is read.
#[derive(Debug)]
pub(super) struct Meter {
    jvm: Jvm,
    /// The highest number of a thread so far.
    highest: AtomicU64,
    pub(super) version: Option<String>,
    pub(super) collector: Option<Collector>,
    /// `-XX:-UseTLAB`: nothing is handed out in buffers.
    no_buffers: bool,
    pub(super) max_heap: Option<f64>,
    pub(super) max_young: Option<f64>,
}

impl Meter {
    pub(super) fn open(pid: u32) -> Result<Self, Error> {
        let jvm = Jvm::open(pid)?;
        let version = jvm.command("VM.version", READS_WITHIN)?;
        let mut lines = version.lines().map(str::trim);
        let version = lines.find(|line| line.contains(" VM version ") || line.contains(" VM "));
        let flags = jvm.command("VM.flags", READS_WITHIN)?;
        let value = |name: &str| {
            let mut words = flags.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok())
        };
        Ok(Self {
            version: version.map(str::to_owned),
            collector: Collector::of(&flags),
            no_buffers: flags.split_whitespace().any(|word| word == "-XX:-UseTLAB"),
            max_heap: value("-XX:MaxHeapSize="),
            max_young: value("-XX:MaxNewSize="),
            highest: AtomicU64::new(0),
            jvm,
        })
    }

    /// Whether the JVM runs and is not stopped.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.jvm.check()
    }

    /// The thread counters now; `None` for a JVM that does not print them (JDK 8 to 10).
    pub(super) fn counters(&self) -> Result<Option<Counters>, Error> {
        let text = match self.jvm.command("Thread.print -e", READS_WITHIN) {
            Ok(text) => text,
            // JDK 8: "Unknown argument '-e' in diagnostic command."
            Err(Error::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let threads = thread_allocation::parse(&text);
        let started = self.numbers().0.get("java.threads.started").copied();
        let last = threads.last_key_value().map_or(0, |(number, _)| *number);
        let highest = self.highest.fetch_max(last, Ordering::Relaxed).max(last);
        Ok((!threads.is_empty()).then_some(Counters {
            threads,
            started,
            highest,
        }))
    }

    /// Forces a collection, from which on the growth of the heap is what is allocated.
    pub(super) fn empty(&self) -> Result<Emptied, NotFilled> {
        let said = self.jvm.command("GC.run", COLLECTS_WITHIN)?;
        if said.contains("disabled") {
            let why = "the JVM refuses to collect on demand (-XX:+DisableExplicitGC of JDK 8); start it without that option";
            return Err(NotFilled::Never(why.to_owned()));
        }
        if self.collector == Some(Collector::Epsilon) {
            let why = "Epsilon never collects, so unused buffers are unknown";
            return Err(NotFilled::Never(why.to_owned()));
        }
        Ok(Emptied {
            used: self.used()?,
            numbers: self.numbers(),
        })
    }

    /// What was allocated since `since`; ends the window with another forced collection, from which the next one begins.
    pub(super) fn filled(&self, since: &Emptied) -> Result<(Filled, Emptied), NotFilled> {
        let used = self.used()?;
        let before = self.numbers();
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
        let filled = Filled {
            bytes: Estimate {
                point: bytes.point.max(0.0),
                low: bytes.low.max(0.0),
                high: bytes.high.max(0.0),
            },
            occupied,
            unused,
        };
        Ok((filled, next))
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
        let text = self.jvm.command("GC.heap_info", READS_WITHIN);
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

    fn numbers(&self) -> Numbers {
        let proc = format!("/proc/{}", self.jvm.pid());
        let bytes = target::performance_bytes(Path::new(&proc));
        Numbers(
            bytes
                .and_then(|bytes| hsperfdata::numbers(&bytes))
                .unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(started: Option<i64>, threads: &[(u64, u64, u64, &str)]) -> Counters {
        let thread = |(number, allocated, unit, cpu): &(u64, u64, u64, &str)| {
            let thread = Thread {
                allocated: *allocated,
                unit: *unit,
                compiles: false,
                cpu: (*cpu).to_owned(),
            };
            (*number, thread)
        };
        Counters {
            threads: threads.iter().map(thread).collect(),
            started,
            highest: threads.iter().map(|thread| thread.0).max().unwrap_or(0),
        }
    }

    #[test]
    fn rounded_numbers_give_an_interval_and_threads_that_did_not_run_give_none() {
        const M: u64 = 1 << 20;
        let before = counters(Some(2), &[(1, 100, 1, "1ms"), (2, 200 * M, M, "9ms")]);
        let after = counters(
            Some(3),
            &[
                (1, 300, 1, "2ms"),
                (2, 200 * M, M, "9ms"),
                (3, 50, 1, "1ms"),
            ],
        );
        let counted = before.until(&after);
        assert_eq!(counted.bytes, Estimate::exact(250.0));
        assert_eq!(counted.lost_threads, 0);
        let after = counters(Some(2), &[(1, 100, 1, "1ms"), (2, 203 * M, M, "10ms")]);
        let bytes = before.until(&after).bytes;
        assert!((bytes.point - 3.0 * M as f64).abs() < 1.0, "{bytes:?}");
        // The truth may be anywhere between 2 and 4 MiB.
        assert!(
            bytes.low <= 2.01 * M as f64 && bytes.high >= 3.99 * M as f64,
            "{bytes:?}"
        );
        // Among many threads most errors cancel.
        let many = |of: u64| -> Counters {
            let threads: Vec<_> = (0..400)
                .map(|n| (n, of * M, M, if of > 1 { "2" } else { "1" }))
                .collect();
            counters(Some(400), &threads)
        };
        let bytes = many(1).until(&many(11)).bytes;
        let width = (bytes.high - bytes.low) / bytes.point;
        assert!(width < 0.02, "{width}");
    }

    #[test]
    fn threads_that_ended_are_counted_also_those_that_were_never_seen() {
        let before = counters(Some(10), &[(1, 0, 1, ""), (9, 0, 1, "")]);
        let after = counters(Some(17), &[(1, 0, 1, ""), (20, 5, 1, "")]);
        // Thread 9, and six of the seven that were started.
        assert_eq!(before.until(&after).lost_threads, 7);
        // Without performance data by their numbers: 10 to 19.
        let (before, after) = (
            Counters {
                started: None,
                ..before
            },
            Counters {
                started: None,
                ..after
            },
        );
        assert_eq!(before.until(&after).lost_threads, 11);
    }
}
