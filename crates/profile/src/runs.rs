//! How long threads run without waiting.
//!
//! A thread that serves many clients one after the other lets all of them wait while it is busy with one. Its share of a CPU does not show
//! that: ten requests of 10 ms use as much as a thousand of 0.1 ms. The kernel records each switch of each CPU
//! (`PERF_RECORD_SWITCH_CPU_WIDE`), and whether the thread that leaves would rather go on. A run begins when a thread comes to a CPU and
//! ends when it waits; being preempted does not end it, for its clients wait on.
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

    /// Long runs by process and thread: how many, and how long in all, ns.
    pub(crate) fn into_long(self) -> BTreeMap<(u32, u32), (u64, u64)> {
        self.runs.long
    }
}

/// The runs under way, and the long ones that have ended.
#[derive(Debug, Default)]
struct Runs {
    /// By thread: when it came to a CPU, and whether it was preempted since.
    running: HashMap<u32, (u64, bool)>,
    long: BTreeMap<(u32, u32), (u64, u64)>,
}

impl Runs {
    fn take(&mut self, switch: &Switch) {
        if switch.thread == 0 {
            return;
        }
        if !switch.leaves {
            let run = self.running.entry(switch.thread);
            let (began, preempted) = run.or_insert((switch.time, false));
            // One that did not leave has left unseen.
            if !std::mem::take(preempted) {
                *began = switch.time;
            }
        } else if switch.preempted {
            if let Some((_, preempted)) = self.running.get_mut(&switch.thread) {
                *preempted = true;
            }
        } else if let Some((began, _)) = self.running.remove(&switch.thread) {
            let length = switch.time.saturating_sub(began);
            if length >= LONG_NS {
                let long = self.long.entry((switch.process, switch.thread));
                let (number, sum) = long.or_default();
                (*number, *sum) = (*number + 1, *sum + length);
            }
        }
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

    fn runs(switches: &[(u64, u32, Option<bool>)]) -> Vec<((u32, u32), (u64, u64))> {
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
        runs.long.into_iter().collect()
    }

    #[test]
    fn a_run_ends_when_its_thread_waits_and_only_long_ones_count() {
        let (comes, waits) = (None, Some(false));
        let short = [(0, 8, comes), (4, 8, waits), (9, 8, comes), (10, 8, waits)];
        assert!(runs(&short).is_empty());
        let long = [(0, 8, comes), (6, 8, waits), (20, 8, comes), (31, 8, waits)];
        assert_eq!(runs(&long), [((7, 8), (2, 17 * MS))]);
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
        assert_eq!(runs(&switches), [((7, 8), (1, 7 * MS))]);
    }

    #[test]
    fn what_was_not_seen_makes_no_long_run() {
        let (comes, waits) = (None, Some(false));
        // It left unseen, and came again; it was there from before; the idle task never waits.
        assert!(runs(&[(0, 8, comes), (50, 8, comes), (51, 8, waits)]).is_empty());
        assert!(runs(&[(50, 8, waits)]).is_empty());
        assert!(runs(&[(0, 0, comes), (50, 0, waits)]).is_empty());
        let mut lossy = Runs::default();
        lossy.running.insert(8, (0, false));
        lossy.forget();
        assert!(lossy.running.is_empty());
    }
}
