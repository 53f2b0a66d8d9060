//! Per thread, from the samples between the full ones: time runnable without a CPU, and CPU time of threads that did not end.

use std::collections::BTreeMap;

use rungwise_formats::task;

use super::of_threads;
use crate::Window;
use crate::capture::Raw;

/// Fewest samples of a thread for its CPU wait.
const FEWEST: usize = 20;

/// The same for the CPU time of a process: with very many threads they are not read.
const FEW: usize = 4;

/// Maximum of threads per process: reading one line of `stat` costs a microsecond.
const MOST: usize = 128;

/// Seconds per nanosecond.
const NANO: f64 = 1e-9;

/// A thread and its start: a later thread may have the same number.
type Name<'a> = (&'a str, u64);

/// The threads of one process.
#[derive(Debug, Default)]
pub(super) struct Threads<'a> {
    by_id: BTreeMap<Name<'a>, Thread>,
    samples: usize,
}

/// One thread.
#[derive(Debug, Default)]
struct Thread {
    met: usize,
    last_sample: usize,
    /// It ran or was runnable in the last sample.
    ready: bool,
    ticks: u64,
    /// Seconds between two samples that both found it runnable, and between which it did not run.
    starved_s: f64,
    /// Time and nanoseconds it ran, as of the first and the last sample that has both.
    first: Option<(f64, u64)>,
    last: Option<(f64, u64)>,
}

/// A share and how it was counted.
pub(super) type Share = (f64, String);

/// The threads of each process whose threads were sampled.
pub(super) fn threads<'a>(window: &Window<'a>) -> BTreeMap<u32, Threads<'a>> {
    let mut processes: BTreeMap<u32, Threads<'a>> = BTreeMap::new();
    for moment in window.often() {
        let mut count: BTreeMap<u32, usize> = BTreeMap::new();
        for (pid, ..) in of_threads(moment, "stat") {
            *count.entry(pid).or_default() += 1;
        }
        for (pid, tid, text) in of_threads(moment, "stat") {
            if count.get(&pid).is_some_and(|count| *count > MOST) {
                continue;
            }
            let Some(stat) = task::stat(text) else {
                continue;
            };
            let threads = processes.entry(pid).or_default();
            let samples = threads.samples;
            let thread = threads.by_id.entry((tid, stat.started)).or_default();
            let follows = thread.met > 0 && thread.last_sample + 1 == samples;
            thread.met += 1;
            thread.last_sample = samples;
            let path = format!("/proc/{pid}/task/{tid}/schedstat");
            let Some(Raw::Text(time)) = moment.files.get(&path) else {
                continue;
            };
            let Some(time) = task::schedstat(time) else {
                continue;
            };
            let (now, ready) = ((moment.at_s, time.ran_ns), stat.state == 'R');
            // A CPU without ticks (nohz_full) updates the time that a thread ran seldom; its ticks are charged with it.
            let ticks = stat.user_ticks + stat.system_ticks;
            thread.first.get_or_insert(now);
            let (before, ran) = thread.last.replace(now).unwrap_or(now);
            let stood = ran == time.ran_ns && ticks == thread.ticks;
            if follows && ready && thread.ready && stood {
                thread.starved_s += moment.at_s - before;
            }
            (thread.ready, thread.ticks) = (ready, ticks);
        }
        let sampled = count.iter().filter(|(_, count)| **count <= MOST);
        for (pid, _) in sampled {
            if let Some(threads) = processes.get_mut(pid) {
                threads.samples += 1;
            }
        }
    }
    processes
}

impl Threads<'_> {
    /// How long the worst-affected thread is runnable without running, as a share of the time; a wait shorter than the
    /// time between two samples is missed. The kernel counts a CPU wait once it is over, so a wait of seconds appears
    /// only here.
    pub(super) fn starved(&self) -> Option<Share> {
        let share = |((tid, _), thread): (&Name<'_>, &Thread)| {
            let ((begin, _), (end, _)) = (thread.first?, thread.last?);
            let share = thread.starved_s / (end - begin);
            let line = format!(
                "thread {tid} in state R from sample to sample, and without a CPU between, for {:.2} of {:.2} s",
                thread.starved_s,
                end - begin
            );
            (thread.met >= FEWEST && end > begin).then_some((share, line))
        };
        let shares = self.by_id.iter().filter_map(share);
        shares.max_by(|(a, _), (b, _)| a.total_cmp(b))
    }

    /// CPUs used by the threads of the last sample: of a process either all threads are sampled or none. Subtracted
    /// from the CPU time of the whole process, this gives that of ended threads.
    pub(super) fn alive(&self) -> Option<f64> {
        let last = self.samples.checked_sub(1)?;
        let alive = || {
            let all = self.by_id.values();
            all.filter(|thread| thread.last_sample == last)
        };
        if self.samples < FEW {
            return None;
        }
        let began = alive().filter_map(|thread| thread.first).map(|(at, _)| at);
        let ended = alive().filter_map(|thread| thread.last).map(|(at, _)| at);
        let seconds = ended.reduce(f64::max)? - began.reduce(f64::min)?;
        let ran = alive().filter_map(|thread| {
            let ((_, before), (_, after)) = (thread.first?, thread.last?);
            Some(after.saturating_sub(before) as f64 * NANO)
        });
        (seconds > 0.0).then(|| ran.sum::<f64>() / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    /// A process 7 with the threads 7 and those of `more`, in 100 samples of a window of 10 s.
    fn capture(state: char, ran_ns: u64, more: fn(usize) -> Vec<u32>) -> Capture {
        let moment = |number: usize| {
            let mut moment = Moment {
                at_s: number as f64 / 10.0,
                ..Moment::default()
            };
            let mut put = |tid: u32, state: char, ran_ns: u64| {
                let columns = "0 ".repeat(49);
                let stat = format!("{tid} (a) {state} {columns}");
                let folder = format!("/proc/7/task/{tid}");
                moment
                    .files
                    .insert(format!("{folder}/stat"), Raw::Text(stat));
                let schedstat = format!("{ran_ns} 0 1");
                moment
                    .files
                    .insert(format!("{folder}/schedstat"), Raw::Text(schedstat));
            };
            put(7, state, ran_ns * number as u64 / 100);
            for tid in more(number) {
                put(tid, 'S', 0);
            }
            moment
        };
        Capture {
            samples: (0..100).map(moment).collect(),
            ..Capture::default()
        }
    }

    #[test]
    fn a_thread_that_is_ready_and_does_not_run_is_starved() {
        let starved = |state, ran_ns| {
            let capture = capture(state, ran_ns, |_| Vec::new());
            threads(&Window::of(&capture))[&7].starved().unwrap().0
        };
        assert!(starved('R', 0) > 0.99);
        assert!(starved('R', 100_000) < 0.01);
        assert!(starved('S', 0) < 0.01);
    }

    #[test]
    fn threads_that_live_on_are_distinguished_from_those_that_ended() {
        let capture = capture('R', 5_000_000_000, |number| vec![1000 + number as u32]);
        let half = threads(&Window::of(&capture))[&7].alive().unwrap();
        assert!((half - 0.5).abs() < 0.01, "{half}");
    }
}
