//! How long threads run without waiting.
//!
//! A thread that serves many clients one after the other lets all of them wait while it is busy with one. Its share of a CPU does not show
//! that: ten requests of 10 ms use as much as a thousand of 0.1 ms. The kernel records each switch of each CPU
//! (`PERF_RECORD_SWITCH_CPU_WIDE`), and whether the thread that leaves would rather go on. A run begins when a thread comes to a CPU and
//! ends when it waits; being preempted does not end it, and the time without a CPU does not count: other rules know of that.
//! Sources: `perf_event_open(2)`; `perf_event_switch` in kernel/events/core.c of Linux 6.18.

use std::collections::{BTreeMap, HashMap};

use perf_event::SampleFlag;
use perf_event::events::Software;

use crate::error::Result;
use crate::perf::{self, Ring, Seen, Switch};

/// Runs at least this long are long: fifty times a request to a local service, ns.
pub(crate) const LONG_NS: u64 = 5_000_000;
/// Switches after which watching ends early, because reading each takes a quarter of a microsecond: half a second of a busy machine.
const ENOUGH: u64 = 50_000;

/// Watches the switches of all CPUs.
pub(crate) struct Watch {
    rings: Vec<Ring>,
    runs: Runs,
    /// Of the last draining, to be put into their order.
    switches: Vec<Switch>,
    seen: u64,
}

impl Watch {
    pub(crate) fn open(cpus: &[usize]) -> Result<Self> {
        let rings = perf::on_each(cpus, "watch the switches of threads", |cpu| {
            let mut builder = perf::on_cpu(Software::DUMMY, cpu);
            builder.context_switch(true).sample_id_all(true);
            Ring::open(&mut builder, SampleFlag::TID | SampleFlag::TIME)
        })?;
        Ok(Self {
            rings,
            runs: Runs::default(),
            switches: Vec::new(),
            seen: 0,
        })
    }

    pub(crate) fn enable(&mut self) {
        for ring in &mut self.rings {
            let _ = ring.enable();
        }
    }

    pub(crate) fn disable(&mut self) {
        for ring in &mut self.rings {
            let _ = ring.disable();
        }
    }

    /// Takes what has come. True if that is enough.
    pub(crate) fn drain(&mut self) -> bool {
        let Self {
            rings,
            runs,
            switches,
            seen,
        } = self;
        let mut lost = 0;
        for ring in rings {
            lost += ring.drain(|seen| {
                if let Seen::Switched(switch) = seen {
                    switches.push(switch);
                }
            });
        }
        *seen += switches.len() as u64;
        // Each CPU has a ring of its own, and threads move.
        switches.sort_by_key(|switch| switch.time);
        for switch in switches.drain(..) {
            runs.take(&switch);
        }
        if lost > 0 {
            runs.forget();
        }
        *seen >= ENOUGH
    }

    /// Runs of the threads that had long ones, by process and thread.
    pub(crate) fn into_long(self) -> BTreeMap<(u32, u32), RunCounts> {
        self.runs.into_long()
    }
}

/// The runs of one thread, and how long they took in all, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCounts {
    pub(crate) long: u64,
    pub(crate) long_ns: u64,
    pub(crate) short: u64,
    pub(crate) short_ns: u64,
}

/// A run under way: since when it is on a CPU, and how long it was on one before.
#[derive(Clone, Copy, Debug)]
struct Running {
    since: Option<u64>,
    before: u64,
}

/// The runs under way, by thread, and those that have ended, by process and thread.
#[derive(Debug, Default)]
struct Runs {
    running: HashMap<u32, Running>,
    ended: HashMap<(u32, u32), RunCounts>,
}

impl Runs {
    fn take(&mut self, switch: &Switch) {
        if switch.thread == 0 {
            return;
        }
        if !switch.leaves {
            let begun = self.running.get(&switch.thread);
            // One that did not leave has left unseen.
            let preempted = begun.filter(|run| run.since.is_none());
            let run = Running {
                since: Some(switch.time),
                before: preempted.map_or(0, |run| run.before),
            };
            self.running.insert(switch.thread, run);
            return;
        }
        let Some(run) = self.running.get_mut(&switch.thread) else {
            return;
        };
        if let Some(since) = run.since.take() {
            run.before += switch.time.saturating_sub(since);
        }
        if switch.preempted {
            return;
        }
        let length = run.before;
        self.running.remove(&switch.thread);
        let counts = self.ended.entry((switch.process, switch.thread));
        let counts = counts.or_default();
        if length >= LONG_NS {
            (counts.long, counts.long_ns) = (counts.long + 1, counts.long_ns + length);
        } else {
            (counts.short, counts.short_ns) = (counts.short + 1, counts.short_ns + length);
        }
    }

    fn into_long(self) -> BTreeMap<(u32, u32), RunCounts> {
        self.ended
            .into_iter()
            .filter(|(_, counts)| counts.long > 0)
            .collect()
    }

    /// Switches were lost: what is under way may have begun anew.
    fn forget(&mut self) {
        self.running.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn runs(switches: &[(u64, u32, Option<bool>)]) -> Vec<((u32, u32), RunCounts)> {
        let mut runs = Runs::default();
        for (ms, thread, leaves) in switches {
            runs.take(&Switch {
                process: 7,
                thread: *thread,
                time: ms * MS,
                leaves: leaves.is_some(),
                preempted: *leaves == Some(true),
            });
        }
        runs.into_long().into_iter().collect()
    }

    fn counts(long: u64, long_ms: u64, short: u64, short_ms: u64) -> RunCounts {
        RunCounts {
            long,
            long_ns: long_ms * MS,
            short,
            short_ns: short_ms * MS,
        }
    }

    #[test]
    fn a_run_ends_when_its_thread_waits_and_only_long_ones_count() {
        let (comes, waits) = (None, Some(false));
        let short = [(0, 8, comes), (4, 8, waits), (9, 8, comes), (10, 8, waits)];
        assert!(runs(&short).is_empty());
        let long = [(0, 8, comes), (6, 8, waits), (20, 8, comes), (31, 8, waits)];
        assert_eq!(runs(&long), [((7, 8), counts(2, 17, 0, 0))]);
        let both = [&long[..], &[(40, 8, comes), (41, 8, waits)]].concat();
        assert_eq!(runs(&both), [((7, 8), counts(2, 17, 1, 1))]);
    }

    #[test]
    fn being_preempted_does_not_end_a_run() {
        let (comes, preempted, waits) = (None, Some(true), Some(false));
        let switches = [
            (0, 8, comes),
            (3, 8, preempted),
            (3, 9, comes),
            (4, 9, waits),
            (4, 8, comes),
            (7, 8, waits),
        ];
        assert_eq!(runs(&switches), [((7, 8), counts(1, 6, 0, 0))]);
        let mut shorter = switches;
        shorter[5].0 = 5;
        assert!(runs(&shorter).is_empty(), "4 ms on a CPU");
    }

    #[test]
    fn what_was_not_seen_makes_no_long_run() {
        let (comes, waits) = (None, Some(false));
        // It left unseen, and came again; it was there from before; the idle task never waits.
        assert!(runs(&[(0, 8, comes), (50, 8, comes), (51, 8, waits)]).is_empty());
        assert!(runs(&[(50, 8, waits)]).is_empty());
        assert!(runs(&[(0, 0, comes), (50, 0, waits)]).is_empty());
        let mut lossy = Runs::default();
        let since = Some(0);
        lossy.running.insert(8, Running { since, before: 0 });
        lossy.forget();
        assert!(lossy.running.is_empty());
    }
}
