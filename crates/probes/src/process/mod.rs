//! Processes, their threads, their memory by node, and the control groups that limit them.

pub(crate) mod cgroup;
mod chosen;
pub(crate) mod cpusets;
pub(crate) mod dependencies;
pub(crate) mod descriptors;
pub(crate) mod dns;
mod exchange;
mod hung;
pub(crate) mod limits;
pub(crate) mod numa_maps;
pub(crate) mod pools;
pub(crate) mod processes;
pub(crate) mod restarts;
mod sampled;
pub(crate) mod states;
pub(crate) mod threads;
pub(crate) mod user_tasks;
pub(crate) mod waiters;
pub(crate) mod waits;

pub(crate) use chosen::{
    Services, blocked, busy_between, family_at, near_their_limit, of_services, postgres_at,
    services_at, services_between, threads_of,
};
pub(crate) use processes::STATS;

use std::collections::BTreeSet;

use rungwise_formats::task;
use rungwise_model::evidence::Absence;

use crate::capture::{Moment, Raw};
use crate::window::text_of;
use crate::{Rate, Window};

/// Inodes of the sockets whose processes are looked up.
pub(crate) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let mut sought = dependencies::sought(window);
    sought.extend(pools::sought(window));
    sought.extend(restarts::sought(window));
    sought
}

/// Seconds per tick of `stat`: `USER_HZ` is 100 on every Linux that runs rungwise.
const TICK: f64 = 0.01;

/// No process was given.
fn unnamed() -> Absence {
    Absence::because("needs a process")
        .remedy("run `rungwise check --pid PID`, or capture with --pid")
}

/// Why the counters of a task have no rate: it is not the same task at both ends, or there is one sample only.
fn no_counters(window: &Window<'_>) -> Absence {
    if window.moments().len() < 2 {
        Absence::because("the window has only one sample, and a rate needs two")
            .remedy("observe for some seconds: --for 10s")
    } else {
        Absence::because("it started or ended within the window")
    }
}

/// Files of this name of threads: process, thread and text.
fn of_threads<'a>(
    moment: &'a Moment,
    file: &'static str,
) -> impl Iterator<Item = (u32, &'a str, &'a str)> {
    let files = moment.files.range("/proc/".to_owned()..);
    files
        .take_while(|(path, _)| path.starts_with("/proc/"))
        .filter_map(move |(path, raw)| {
            let rest = path.strip_prefix("/proc/")?.strip_suffix(file)?;
            let (pid, tid) = rest.strip_suffix('/')?.split_once("/task/")?;
            match raw {
                Raw::Text(text) => Some((pid.parse().ok()?, tid, text.trim())),
                Raw::Failed { .. } => None,
            }
        })
}

/// CPU time in ticks and major faults of the task with this `stat` file. The start is part of the keys: a later task
/// with the same id is another one.
fn stat_rates(window: &Window<'_>, path: &str) -> Option<Used> {
    let rates = window
        .rates(path, |text| {
            let Some(stat) = task::stat(text) else {
                return [].into();
            };
            let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
            [
                ((Counter::Ticks, stat.started), ticks as f64),
                ((Counter::Faults, stat.started), stat.major_faults as f64),
            ]
            .into()
        })
        .ok()?;
    let mut used = (None, None);
    for ((counter, _), rate) in rates {
        match counter {
            Counter::Ticks => used.0 = Some(rate),
            Counter::Faults => used.1 = Some(rate),
        }
    }
    Some(Used {
        ticks: used.0?,
        faults: used.1?,
    })
}

/// Time on CPUs and time runnable without one, in nanoseconds, of the thread with this `schedstat` file.
fn run_rates(window: &Window<'_>, path: &str) -> Result<Ran, Absence> {
    if task::schedstat(window.text(path)?).is_none() {
        return Err(Absence::because(
            "this kernel does not count run delay (its schedstat files contain zeros)",
        ));
    }
    let mut rates = window.rates(path, |text| match task::schedstat(text) {
        Some(time) => [(false, time.ran_ns as f64), (true, time.waited_ns as f64)].into(),
        None => [].into(),
    })?;
    match (rates.remove(&false), rates.remove(&true)) {
        (Some(ran), Some(mut waited)) => {
            add_unfinished(window, path, &mut waited);
            Ok(Ran { ran, waited })
        }
        _ => Err(no_counters(window)),
    }
}

/// A CPU without ticks (`nohz_full`) brings the time of the thread that it runs up to date once a second: within less, a thread that runs
/// may look as if it did not.
const UPDATED_S: f64 = 1.1;

/// Adds the wait that goes on at the end of the window: the kernel counts a wait once it is over. A thread that was runnable in
/// two samples and did not run between them waited for all of that time.
fn add_unfinished(window: &Window<'_>, path: &str, waited: &mut Rate) {
    let stat = path.replace("/schedstat", "/stat");
    let samples: Vec<(f64, &str, Option<task::Stat<'_>>)> = window
        .moments()
        .iter()
        .filter_map(|moment| {
            let time = text_of(moment, path).ok()?;
            let stat = text_of(moment, &stat).ok().and_then(task::stat);
            Some((moment.at_s, time, stat))
        })
        .collect();
    let (Some((first, ..)), Some((last, ..))) = (samples.first(), samples.last()) else {
        return;
    };
    let mut unfinished = 0.0;
    for (interval, two) in samples.windows(2).enumerate().rev() {
        let [(began, before, Some(earlier)), (ended, after, Some(later))] = two else {
            break;
        };
        let ticks = |stat: &task::Stat<'_>| stat.user_ticks + stat.system_ticks;
        let is_ready = earlier.state == 'R' && later.state == 'R';
        let stood = before == after && ticks(earlier) == ticks(later);
        if !is_ready || !stood || ended - began < UPDATED_S {
            break;
        }
        unfinished += ended - began;
        if let Some(share) = waited.series.get_mut(interval) {
            *share = 1e9;
        }
    }
    if unfinished > 0.0 {
        waited.unfinished = unfinished * 1e9;
        waited.delta += waited.unfinished;
        waited.per_s = waited.delta / (last - first);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    Ticks,
    Faults,
}

struct Used {
    ticks: Rate,
    faults: Rate,
}

struct Ran {
    ran: Rate,
    waited: Rate,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    #[test]
    fn a_wait_that_is_not_over_counts_up_to_the_end() {
        let window = |samples: &[(u64, u64, char)]| {
            let moments = samples
                .iter()
                .enumerate()
                .map(|(at, (ran, waited, state))| {
                    let text = |text: String| Raw::Text(text);
                    let zeros = " 0".repeat(48);
                    Moment {
                        at_s: 2.0 * at as f64,
                        files: [
                            (
                                "/proc/7/schedstat".to_owned(),
                                text(format!("{ran} {waited} 9\n")),
                            ),
                            (
                                "/proc/7/stat".to_owned(),
                                text(format!("7 (redis) {state}{zeros}\n")),
                            ),
                        ]
                        .into(),
                        ..Moment::default()
                    }
                });
            Capture {
                moments: moments.collect(),
                ..Capture::default()
            }
        };
        let waited = |samples: &[(u64, u64, char)]| {
            let capture = window(samples);
            let ran = run_rates(&Window::of(&capture), "/proc/7/schedstat").unwrap();
            (ran.waited.per_s * 1e-9, ran.waited.series)
        };
        let two_s = 2_000_000_000;
        let (share, series) = waited(&[(5, 0, 'R'), (5, 0, 'R'), (5, 0, 'R')]);
        assert!((share - 1.0).abs() < 1e-9, "{share}");
        assert_eq!(series, [1e9, 1e9]);
        // Once it has run, the kernel has counted what went before.
        let ran = [(5, 0, 'R'), (6, two_s, 'R'), (6, two_s, 'R')];
        let (share, series) = waited(&ran);
        assert!((share - 1.0).abs() < 1e-9, "{share}");
        assert_eq!(series, [1e9, 1e9]);
        // One that sleeps waits for nothing.
        let (_, series) = waited(&[(5, 0, 'R'), (5, 0, 'S'), (5, 0, 'S')]);
        assert_eq!(series, [0.0, 0.0]);
    }
}
