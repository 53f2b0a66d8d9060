//! How long calls of fsync take.
//!
//! One call in a hundred that takes thirty times as long as the others is the slowest reply of a service that syncs, and no mean shows it: the
//! disk is idle, and samples of the thread hardly find it there. ext4 and f2fs record when a sync begins and ends, whichever call asked for it;
//! that costs nothing to others and goes on for the whole window. For other file systems the system calls are watched, for as long as they may
//! be: it makes every system call of the machine a little slower.
//! Sources: include/trace/events/{ext4,f2fs}.h, `kernel/trace/trace_syscalls.c` of Linux 6.18.

use std::collections::{BTreeMap, HashMap};

use perf_event::SampleFlag;
use perf_event::events::Tracepoint;
use rungwise_model::kernel::SyncTimes;

use crate::error::Result;
use crate::perf::{self, Ring, Seen};
use crate::tracefs::FormatOrReason;

/// The kernel's names of the begin and the end of a sync.
type Pair = (&'static str, &'static str);

/// Of file systems.
pub(crate) const FILE_SYSTEMS: [Pair; 2] = [
    ("ext4:ext4_sync_file_enter", "ext4:ext4_sync_file_exit"),
    ("f2fs:f2fs_sync_file_enter", "f2fs:f2fs_sync_file_exit"),
];

/// Of system calls.
pub(crate) const CALLS: [Pair; 2] = [
    ("syscalls:sys_enter_fsync", "syscalls:sys_exit_fsync"),
    (
        "syscalls:sys_enter_fdatasync",
        "syscalls:sys_exit_fdatasync",
    ),
];

/// Calls at least this long are slow: a disk in order takes a few milliseconds.
const SLOW_NS: u64 = 10_000_000;
/// Calls after which watching ends early, because reading each costs a microsecond.
const ENOUGH: usize = 100_000;
/// Bytes of each ring: a tenth of a second at 5,000 calls per second and CPU.
const RING: usize = 32 << 10;

/// Watches some pairs of events on all CPUs.
pub(crate) struct Watch {
    /// Whether a record is of an end.
    rings: Vec<(bool, Ring)>,
    calls: Calls,
    /// Of the last draining, to be put into their order.
    seen: Vec<Record>,
}

/// A sync begins or ends.
#[derive(Clone, Copy, Debug)]
struct Record {
    time: u64,
    process: u32,
    thread: u32,
    ends: bool,
}

impl Watch {
    /// Opens the pairs that this kernel has; `None` if it has none of them.
    pub(crate) fn open(
        pairs: &[Pair],
        formats: &BTreeMap<&'static str, FormatOrReason>,
        cpus: &[usize],
    ) -> Result<Option<Self>> {
        let mut rings = Vec::new();
        for (begin, end) in pairs {
            let (Some(Ok(begin)), Some(Ok(end))) = (formats.get(begin), formats.get(end)) else {
                continue;
            };
            for (id, ends) in [(begin.id, false), (end.id, true)] {
                let opened = perf::on_each(cpus, "watch calls of fsync", |cpu| {
                    let mut builder = perf::on_cpu(Tracepoint::with_id(id), cpu);
                    builder.sample_period(1);
                    let fields = SampleFlag::TID | SampleFlag::TIME;
                    Ring::with_room(&mut builder, fields, RING)
                })?;
                rings.extend(opened.into_iter().map(|ring| (ends, ring)));
            }
        }
        // Ends are read first: a call that ends between the reading of both must not lose its end, or the next one would begin where it did.
        rings.sort_by_key(|(ends, _)| !*ends);
        Ok((!rings.is_empty()).then(|| Self {
            rings,
            calls: Calls::default(),
            seen: Vec::new(),
        }))
    }

    pub(crate) fn enable(&mut self) {
        for (_, ring) in &mut self.rings {
            let _ = ring.enable();
        }
    }

    pub(crate) fn disable(&mut self) {
        for (_, ring) in &mut self.rings {
            let _ = ring.disable();
        }
    }

    /// Takes what has come. True if that is enough.
    pub(crate) fn drain(&mut self) -> bool {
        let Self { rings, calls, seen } = self;
        let mut lost = 0;
        for (ends, ring) in rings {
            lost += ring.drain(|record| {
                if let Seen::Sample(sample) = record {
                    seen.push(Record {
                        time: sample.time,
                        process: sample.process,
                        thread: sample.thread,
                        ends: *ends,
                    });
                }
            });
        }
        if lost > 0 {
            // What is left has gaps, and halves of two calls would make one.
            calls.under_way.clear();
            seen.clear();
        }
        // Each event and CPU has a ring of its own, and threads move.
        seen.sort_by_key(|record| record.time);
        for record in seen.drain(..) {
            calls.take(record);
        }
        calls.number >= ENOUGH
    }

    /// The calls of each process, watched for so many seconds.
    pub(crate) fn into_times(self, seconds: f64) -> Vec<SyncTimes> {
        self.calls.times(seconds)
    }
}

/// The calls under way by thread, and how long those took that have ended, by process, ns.
#[derive(Debug, Default)]
struct Calls {
    under_way: HashMap<u32, u64>,
    ended: BTreeMap<u32, Vec<u64>>,
    number: usize,
}

impl Calls {
    fn take(&mut self, record: Record) {
        if !record.ends {
            // A begin without an end was lost, or its thread was killed.
            self.under_way.insert(record.thread, record.time);
        } else if let Some(began) = self.under_way.remove(&record.thread) {
            let times = self.ended.entry(record.process).or_default();
            times.push(record.time.saturating_sub(began));
            self.number += 1;
        }
    }

    fn times(self, seconds: f64) -> Vec<SyncTimes> {
        let in_seconds = |ns: u64| ns as f64 / 1e9;
        let of_process = |(process, mut times): (u32, Vec<u64>)| {
            times.sort_unstable();
            Some(SyncTimes {
                process,
                watched: seconds,
                number: times.len() as u64,
                slow: times.iter().filter(|time| **time >= SLOW_NS).count() as u64,
                median: in_seconds(*times.get(times.len() / 2)?),
                longest: in_seconds(*times.last()?),
            })
        };
        self.ended.into_iter().filter_map(of_process).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn of(records: &[(u64, u32, bool)]) -> Vec<SyncTimes> {
        let mut calls = Calls::default();
        for (ms, thread, ends) in records {
            calls.take(Record {
                time: ms * MS,
                process: 7,
                thread: *thread,
                ends: *ends,
            });
        }
        calls.times(2.0)
    }

    #[test]
    fn a_call_lasts_from_its_begin_to_its_end_in_the_same_thread() {
        let times = of(&[
            (0, 8, false),
            (1, 9, false),
            (2, 8, true),
            (31, 9, true),
            (40, 8, false),
            (41, 8, true),
        ]);
        let expected = SyncTimes {
            process: 7,
            watched: 2.0,
            number: 3,
            slow: 1,
            median: 0.002,
            longest: 0.03,
        };
        assert_eq!(times, [expected]);
    }

    #[test]
    fn halves_of_calls_do_not_count() {
        assert!(of(&[(5, 8, true), (9, 8, false)]).is_empty());
        // A begin that was lost, then a whole call.
        let times = of(&[(5, 8, true), (9, 8, false), (10, 8, true)]);
        assert_eq!((times[0].number, times[0].slow), (1, 0));
        // An end that was lost, then a whole call.
        let times = of(&[(9, 8, false), (50, 8, false), (51, 8, true)]);
        assert_eq!((times[0].number, times[0].slow), (1, 0));
    }
}
