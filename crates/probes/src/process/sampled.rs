//! Per thread, from the samples between the full ones: time runnable without a CPU, and CPU time of threads that did not end.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rungwise_formats::task;

use super::{Ran, of_threads};
use crate::Window;
use crate::capture::Raw;
use crate::gather::FULL_SAMPLES;
use crate::net::rates;

/// Fewest samples of a thread for its CPU wait.
const FEWEST: usize = 20;

/// The same for the CPU time of a process: with very many threads they are not read.
const FEW: usize = 4;

/// Maximum of threads per process: reading one line of `stat` costs a microsecond.
const MOST: usize = 128;

/// Share of the samples that a thread must be in for its rates: those of one that lived briefly are not of the window.
const MOST_SAMPLES: f64 = 0.9;

/// Seconds per nanosecond.
const NANO: f64 = 1e-9;

/// Parts of the window, each with a rate of its own, as between full samples.
const PARTS: usize = FULL_SAMPLES as usize - 1;

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
    /// The time of each sample that has them, and the nanoseconds that it had run and had waited for a CPU.
    course: Vec<(f64, task::RunTime)>,
}

impl Thread {
    /// Time and nanoseconds it ran, as of the first and the last sample.
    fn ends(&self) -> Option<[(f64, u64); 2]> {
        let of = |(at, time): &(f64, task::RunTime)| (*at, time.ran_ns);
        Some([of(self.course.first()?), of(self.course.last()?)])
    }

    /// A counter of it over the parts of the window.
    fn rate(&self, counter: fn(&task::RunTime) -> u64) -> Option<crate::Rate> {
        let last = self.course.len().checked_sub(1)?;
        let places = (0..=PARTS).map(|part| last * part / PARTS);
        let course: Vec<(f64, u64)> = places
            .map(|place| (self.course[place].0, counter(&self.course[place].1)))
            .collect();
        rates::of_course(&course)
    }
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
            let ready = stat.state == 'R';
            // A CPU without ticks (nohz_full) updates the time that a thread ran seldom; its ticks are charged with it.
            let ticks = stat.user_ticks + stat.system_ticks;
            if let Some((before, last)) = thread.course.last() {
                let stood = last.ran_ns == time.ran_ns && ticks == thread.ticks;
                if follows && ready && thread.ready && stood {
                    thread.starved_s += moment.at_s - before;
                }
            }
            thread.course.push((moment.at_s, time));
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

impl<'a> Threads<'a> {
    /// How long the worst-affected thread is runnable without running, as a share of the time; a wait shorter than the
    /// time between two samples is missed. The kernel counts a CPU wait once it is over, so a wait of seconds appears
    /// only here.
    pub(super) fn starved(&self) -> Option<Share> {
        let share = |((tid, _), thread): (&Name<'_>, &Thread)| {
            let [(begin, _), (end, _)] = thread.ends()?;
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

    /// Threads that lived through the window, with how long each ran and waited for a CPU.
    fn rates(&self) -> impl Iterator<Item = (&'a str, Ran)> {
        let fewest = (MOST_SAMPLES * self.samples as f64).max(FEW as f64);
        self.by_id.iter().filter_map(move |((tid, _), thread)| {
            let ran = thread.rate(|time| time.ran_ns)?;
            let waited = thread.rate(|time| time.waited_ns)?;
            (thread.course.len() as f64 >= fewest).then_some((*tid, Ran { ran, waited }))
        })
    }

    /// The longest wait of a thread for a CPU as a share of the window, by the kernel's count or by the samples.
    pub(super) fn longest_wait(&self) -> f64 {
        let counted = self.rates().map(|(_, ran)| ran.waited.per_s * NANO);
        let starved = self.starved().map_or(0.0, |(share, _)| share);
        counted.fold(starved, f64::max)
    }

    /// The number of the thread that ran most, and how long it ran and waited for a CPU.
    pub(super) fn busiest(&self) -> Option<(&'a str, Ran)> {
        let order = |ran: &Ran| (ran.ran.per_s, ran.waited.per_s);
        self.rates()
            .max_by(|(_, a), (_, b)| order(a).partial_cmp(&order(b)).unwrap_or(Ordering::Equal))
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
        let ends = || alive().filter_map(Thread::ends);
        let began = ends().map(|[(at, _), _]| at).reduce(f64::min)?;
        let ended = ends().map(|[_, (at, _)]| at).reduce(f64::max)?;
        let seconds = ended - began;
        let ran =
            ends().map(|[(_, before), (_, after)]| after.saturating_sub(before) as f64 * NANO);
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
    fn a_thread_that_lived_briefly_is_not_the_busiest() {
        let lives_at = |number| (40..60).contains(&number);
        let mut capture = capture('S', 1_000_000, |number| {
            if (40..60).contains(&number) {
                vec![8]
            } else {
                Vec::new()
            }
        });
        for (number, moment) in capture.samples.iter_mut().enumerate() {
            if lives_at(number) {
                let path = "/proc/7/task/8/schedstat".to_owned();
                let schedstat = format!("{} 0 1", 100_000_000 * number);
                moment.files.insert(path, Raw::Text(schedstat));
            }
        }
        let threads = threads(&Window::of(&capture));
        assert_eq!(threads[&7].busiest().map(|(tid, _)| tid), Some("7"));
    }

    #[test]
    fn the_busiest_thread_of_a_process_that_uses_little_is_known_with_its_wait() {
        let mut capture = capture('S', 40_000_000, |_| vec![8]);
        for (number, moment) in capture.samples.iter_mut().enumerate() {
            let waited = 80_000_000 * number;
            let schedstat = format!("{} {waited} 1", 60_000_000 + number);
            let path = "/proc/7/task/7/schedstat".to_owned();
            moment.files.insert(path, Raw::Text("60000000 0 1".into()));
            let path = "/proc/7/task/8/schedstat".to_owned();
            moment.files.insert(path, Raw::Text(schedstat));
        }
        let threads = threads(&Window::of(&capture));
        let (tid, Ran { ran, waited }) = threads[&7].busiest().unwrap();
        assert_eq!((tid, ran.delta), ("8", 99.0));
        assert!((waited.per_s * NANO - 0.8).abs() < 0.01, "{waited:?}");
        assert_eq!(waited.series.len(), PARTS);
    }

    #[test]
    fn threads_that_live_on_are_distinguished_from_those_that_ended() {
        let capture = capture('R', 5_000_000_000, |number| vec![1000 + number as u32]);
        let half = threads(&Window::of(&capture))[&7].alive().unwrap();
        assert!((half - 0.5).abs() < 0.01, "{half}");
    }
}
