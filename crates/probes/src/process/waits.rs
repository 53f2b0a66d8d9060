//! What threads sleep in: held userspace locks (futex), database locks, kernel functions.
//!
//! Read in every sample for the judged process and its children, and at the end of the window for processes that others
//! wait for. The system call that a thread sleeps in names the futex by its address, so threads that wait for the same
//! lock can be identified. Sources: `proc_pid_syscall` and `proc_pid_wchan` of fs/proc/base.c, Linux 6.18; futex(2).

use std::collections::{BTreeMap, BTreeSet};

use rungwise_formats::{syscall, task};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::{chosen, of_threads, unnamed, waiters};
use crate::capture::{Moment, Raw};
use crate::gather::FULL_SAMPLES;
use crate::{Cost, Need, Probe, Source, Window, enter};

const SYSCALLS: &str = "/proc/{family}/task/*/syscall";
const TITLES: &str = "/proc/{postgres}/cmdline";

/// A thread that does not sleep.
const RUNNING: &str = "running";

/// Functions named; the rest is summed.
const NAMED: usize = 4;

/// Fewest samples that give a share.
const FEWEST: usize = 12;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-wait",
    summary: "what threads sleep in: userspace locks, database locks, kernel functions",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::each(SYSCALLS),
        Source::each("/proc/{seldom}/task/*/syscall"),
        Source::each("/proc/{seldom}/task/*/schedstat"),
        Source::often("/proc/{service}/task/*/syscall"),
        Source::often("/proc/{service}/task/*/schedstat"),
        Source::once("/proc/{family}/task/*/wchan"),
        Source::once("/proc/{waiting}/task/*/syscall"),
        Source::once("/proc/{waiting}/task/*/wchan"),
        Source::each("/proc/{postgres}/cmdline#activity"),
        Source::often("/proc/{backend}/cmdline#activity"),
    ],
    yields: &[
        &keys::LOCK_DATABASE_BACKENDS,
        &keys::LOCK_DATABASE_WAITERS,
        &keys::LOCK_DATABASE_WAITING,
        &keys::LOCK_TURN_WAITERS,
        &keys::LOCK_USER_FUNCTION,
        &keys::LOCK_USER_FUNCTIONS,
        &keys::LOCK_USER_MOVING,
        &keys::LOCK_USER_WAITERS,
        &keys::PROCESS_FREEZES,
        &keys::PROCESS_SLEEPS,
        &keys::PROCESS_SYNCING,
        &keys::PROCESS_WRITE_BEHIND,
        &keys::PROCESS_WRITE_BLOCKED,
    ],
    derive,
    doc: "\
A thread waits for a held lock if it sleeps in futex(2) on a word whose value means contention: 2 or 3 (mutexes and \
rwlocks of glibc, mutexes of Rust), bit 30 (readers of an RwLock of Rust), the sign bit (musl), or a priority-inheriting lock. Waits for a condition, a \
semaphore or work are not counted; nor are locks whose waiters each sleep on their own word (Java, parking_lot). Threads that \
wait at one word, which is no held lock, with a time limit and are woken 20 times a second or more are counted separately: \
so threads of Python wait for the global lock. Of up to 16 threads that wait for a contended lock, in up to eight processes, the user stacks are copied from the memory of the process \
at the end of the window, without stopping it; the names of their functions are kept, and nothing else. Of \
command lines, only the activity of PostgreSQL client backends is kept: waiting, idle or busy. Processes other than \
the judged one and its children are read once, at the end of the window, if one of their sockets waits for them or \
they are blocked; processes that serve clients over TCP or use 1 % of a CPU are read 21 times in the window (at most \
16, with 100 threads in total), and up to 210 times if they have few threads; those with more threads in the full samples (at \
most 16, with 1000 threads in total). Sources: fs/proc/base.c of Linux 6.18; \
sysdeps/nptl/lowlevellock.h and nptl/pthread_rwlock_common.c of glibc 2.36; src/backend/utils/misc/ps_status.c of \
PostgreSQL 15.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let (read, turns) = samples(window);
    for (pid, samples) in &read {
        locks(window, evidence, *pid, samples);
    }
    waiters::functions(window, evidence, &read);
    for (pid, samples) in &turns {
        take_turns(window, evidence, *pid, samples);
    }
    // Of a judged process all threads are read, and its verdict does not depend on the locks of others.
    if window.capture().process.is_none() {
        not_read(window, evidence, &read);
    }
    files(window, evidence);
    sleeps(window, evidence);
    databases(window, evidence);
    let database = [&keys::LOCK_DATABASE_WAITERS, &keys::LOCK_DATABASE_WAITING];
    let none = Absence::because("no PostgreSQL client backend was found");
    enter::absent_if_unset(evidence, &database, &none, TITLES);
    let why = match &window.capture().process {
        None => unnamed(),
        Some(process) => Absence::because(format!(
            "the system calls of process {} cannot be read",
            process.pid
        ))
        .remedy("run as root"),
    };
    enter::absent_if_unset(evidence, PROBE.yields, &why, SYSCALLS);
}

/// Processes that work, and whose threads were not read: there were too many, they began too late, or the kernel refused it.
fn not_read(window: &Window<'_>, evidence: &mut Evidence, read: &Samples<'_>) {
    let key = &keys::LOCK_USER_WAITERS;
    let [first_third, whole] = chosen::working(window);
    let refused = refused(window);
    // One that has ended had no time to wait for long.
    let lives = |pid| window.text(&format!("/proc/{pid}/stat")).is_ok();
    let works = first_third.iter().filter(|(pid, _)| !refused.contains(pid));
    let works: BTreeMap<u32, u64> = works
        .chain(&whole)
        .map(|(pid, count)| (*pid, *count))
        .collect();
    for (pid, threads) in &works {
        // Where nothing at all is read, it is for another reason.
        let is_other_reason = read.is_empty() && *threads <= chosen::MOST_THREADS;
        if read.contains_key(pid) || !lives(*pid) || is_other_reason {
            continue;
        }
        let why = if refused.contains(pid) {
            let why = format!(
                "the kernel does not let this user read the system calls of its {threads} threads"
            );
            Absence::because(why).remedy("run as root with all capabilities")
        } else {
            let why = if first_third.contains_key(pid) {
                format!(
                    "its {threads} threads are not read: without --pid, at most 32 processes with 1100 threads are read, the busiest first"
                )
            } else {
                format!(
                    "its {threads} threads are not read, because it began to work after the first third of the window"
                )
            };
            Absence::because(why).remedy(format!("run `rungwise check --pid {pid}`"))
        };
        let origin = Origin::new(format!("/proc/{pid}/task/*/syscall"), String::new());
        enter::absent(evidence, key, Subject::new(Kind::Process, pid), why, origin);
    }
    if works.is_empty() && window.moments().len() > 1 {
        let why = "no process of several threads serves clients over TCP or uses 1 % of a CPU";
        enter::absent_if_unset(evidence, &[key], &Absence::none(why), SYSCALLS);
    }
}

/// Processes of which the kernel refuses the system calls.
fn refused(window: &Window<'_>) -> BTreeSet<u32> {
    let is_refusal = |raw: &Raw| match raw {
        Raw::Text(_) => false,
        Raw::Failed { failed } => ["EPERM", "EACCES"].contains(&failed.as_str()),
    };
    let of = |(path, raw): (&String, &Raw)| {
        let (pid, rest) = path.strip_prefix("/proc/")?.split_once("/task/")?;
        let is_refused = rest.ends_with("/syscall") && is_refusal(raw);
        is_refused.then(|| pid.parse().ok())?
    };
    let moments = window.often().into_iter();
    moments
        .flat_map(|moment| moment.files.iter().filter_map(of))
        .collect()
}

/// Threads by the lock that they wait for.
pub(super) type Locks<'a> = BTreeMap<u64, Vec<&'a str>>;

/// By process, the locks that its threads waited for in each sample in which its threads were read.
pub(super) type Samples<'a> = BTreeMap<u32, Vec<(usize, Locks<'a>)>>;

/// Waits for held locks, and waits with a time limit at words that are no locks.
pub(super) fn samples<'a>(window: &Window<'a>) -> (Samples<'a>, Samples<'a>) {
    let (mut processes, mut turns) = (Samples::new(), Samples::new());
    for (number, moment) in window.often().into_iter().enumerate() {
        for (pid, tid, text) in of_threads(moment, "syscall") {
            let samples = processes.entry(pid).or_default();
            if samples.last().is_none_or(|(at, _)| *at != number) {
                samples.push((number, Locks::new()));
            }
            let turns = turns.entry(pid).or_default();
            if turns.last().is_none_or(|(at, _)| *at != number) {
                turns.push((number, Locks::new()));
            }
            let Some(wait) = syscall::futex_wait(text) else {
                continue;
            };
            // The waiters of one condition of glibc are at two words in turns, which lie side by side.
            let (list, address) = match (wait.is_lock, wait.is_timed) {
                (true, _) => (samples, wait.address),
                (false, true) => (turns, wait.address & !7),
                (false, false) => continue,
            };
            if let Some((_, words)) = list.last_mut() {
                words.entry(address).or_default().push(tid);
            }
        }
    }
    (processes, turns)
}

fn locks(window: &Window<'_>, evidence: &mut Evidence, pid: u32, samples: &[(usize, Locks<'_>)]) {
    let subject = || Subject::new(Kind::Process, pid);
    let most = |locks: &Locks<'_>| locks.values().map(Vec::len).max().unwrap_or(0);
    let course: Vec<f64> = samples
        .iter()
        .map(|(_, locks)| most(locks) as f64)
        .collect();
    let address = samples.iter().flat_map(|(_, locks)| locks);
    let address = address.max_by_key(|(_, threads)| threads.len());
    let line = address.map_or(
        "no thread waits for a held lock".to_owned(),
        |(address, threads)| format!("{} threads in futex({address:#x}) at most", threads.len()),
    );
    let origin = Origin::new(format!("/proc/{pid}/task/*/syscall"), line);
    let value = median(&course);
    let key = &keys::LOCK_USER_WAITERS;
    evidence.series(key, subject(), value, course, origin.clone());
    let key = &keys::LOCK_USER_MOVING;
    if let Some(share) = moving(window, pid, samples) {
        evidence.number(key, subject(), share, origin);
    } else {
        let why = Absence::because("fewer than two samples of the threads at the lock");
        enter::absent(evidence, key, subject(), why, origin);
    }
}

/// How often a second a thread is woken at least that waits for its turn. A thread of Python asks every 5 ms for the global lock (`take_gil` of
/// `Python/ceval_gil.c`); those of an idle pool wait for a tenth of a second or longer.
const WAKES_PER_S: f64 = 20.0;

/// Threads that wait with a time limit at one word that is no held lock, and are woken often.
fn take_turns(
    window: &Window<'_>,
    evidence: &mut Evidence,
    pid: u32,
    samples: &[(usize, Locks<'_>)],
) {
    let moments = window.often();
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    let wakes = |tid: &str| {
        let path = format!("/proc/{pid}/task/{tid}/schedstat");
        let slices = |moment: &&Moment| match moment.files.get(&path)? {
            Raw::Text(text) => Some((moment.at_s, task::schedstat(text)?.slices)),
            Raw::Failed { .. } => None,
        };
        let first = moments.iter().find_map(slices);
        let last = moments.iter().rev().find_map(slices);
        first
            .zip(last)
            .is_some_and(|((from, before), (to, after))| {
                after.saturating_sub(before) as f64 >= WAKES_PER_S * (to - from) && to > from
            })
    };
    let mut course = Vec::new();
    for (_, words) in samples {
        let mut most = 0_u32;
        for threads in words.values().filter(|threads| threads.len() > 1) {
            let mut count = 0;
            for tid in threads {
                count += u32::from(*known.entry(tid).or_insert_with(|| wakes(tid)));
            }
            most = most.max(count);
        }
        course.push(f64::from(most));
    }
    let most = course.iter().copied().fold(0.0, f64::max);
    let line = format!("{most} threads in futex with a timeout at one address at most");
    let origin = Origin::new(format!("/proc/{pid}/task/*/syscall"), line);
    let subject = Subject::new(Kind::Process, pid);
    let key = &keys::LOCK_TURN_WAITERS;
    evidence.series(key, subject, median(&course), course, origin);
}

/// The share of the threads at the most contended lock of each sample that ran within the third of the window before it.
fn moving(window: &Window<'_>, pid: u32, samples: &[(usize, Locks<'_>)]) -> Option<f64> {
    let (mut moved, mut all) = (0_u32, 0_u32);
    let moments = window.often();
    // As far apart as full samples: some clocks are coarse.
    let apart = 0.9 * window.seconds() / f64::from(FULL_SAMPLES - 1);
    let time = |moment: &&Moment, path: &str| match moment.files.get(path) {
        Some(Raw::Text(time)) => Some(time.clone()),
        _ => None,
    };
    for (at, locks) in samples {
        let Some(waiters) = locks.values().max_by_key(|threads| threads.len()) else {
            continue;
        };
        let earlier = moments[..*at].iter().rev();
        let earlier: Vec<_> = earlier
            .filter(|moment| moment.at_s <= moments[*at].at_s - apart)
            .collect();
        for tid in waiters {
            let path = format!("/proc/{pid}/task/{tid}/schedstat");
            let before = earlier.iter().find_map(|moment| time(moment, &path));
            if let (Some(before), Some(now)) = (before, time(&moments[*at], &path)) {
                all += 1;
                moved += u32::from(before != now);
            }
        }
    }
    (all > 0).then(|| f64::from(moved) / f64::from(all))
}

/// How often a thread of a process is found in a flush of a file, and in a blocked write, for the processes that are read often.
fn files(window: &Window<'_>, evidence: &mut Evidence) {
    #[derive(Default)]
    struct Met {
        samples: usize,
        syncing: usize,
        blocked: usize,
        behind: usize,
        frozen: usize,
        was_frozen: bool,
    }
    let mut processes: BTreeMap<u32, Met> = BTreeMap::new();
    for moment in &window.capture().samples {
        let mut now: BTreeMap<u32, (bool, bool, bool)> = BTreeMap::new();
        for (pid, tid, text) in of_threads(moment, "syscall") {
            let stat = moment.files.get(&format!("/proc/{pid}/task/{tid}/stat"));
            let sleeps = |raw: &Raw| match raw {
                Raw::Text(text) => task::stat(text).is_some_and(|stat| stat.state == 'D'),
                Raw::Failed { .. } => false,
            };
            let wchan = moment.files.get(&format!("/proc/{pid}/task/{tid}/wchan"));
            let thaws = |raw: &Raw| match raw {
                Raw::Text(text) => syscall::waits_for_thaw(text),
                Raw::Failed { .. } => false,
            };
            let (syncs, is_blocked, is_frozen) = now.entry(pid).or_default();
            *syncs |= syscall::syncs(text);
            let writes = syscall::writes(text) && stat.is_some_and(sleeps);
            *is_blocked |= writes;
            *is_frozen |= writes && wchan.is_some_and(thaws);
        }
        for (pid, (syncs, is_blocked, is_frozen)) in now {
            let met = processes.entry(pid).or_default();
            met.samples += 1;
            met.syncing += usize::from(syncs);
            met.blocked += usize::from(is_blocked);
            // One thread is in one call: another one flushes.
            met.behind += usize::from(is_blocked && syncs);
            met.frozen += usize::from(is_frozen && !met.was_frozen);
            met.was_frozen = is_frozen;
        }
    }
    for (pid, met) in processes {
        let source = format!("/proc/{pid}/task/*/{{stat,syscall}}");
        let numbers = [
            // One sample may meet any flush.
            (
                &keys::PROCESS_SYNCING,
                "in fsync or similar",
                if met.syncing > 1 { met.syncing } else { 0 },
            ),
            (
                &keys::PROCESS_WRITE_BLOCKED,
                "in state D in a write",
                met.blocked,
            ),
            (
                &keys::PROCESS_WRITE_BEHIND,
                "in state D in a write while another thread is in fsync or similar",
                met.behind,
            ),
        ];
        for (key, what, count) in numbers {
            let line = format!("{what} in {count} of {} samples", met.samples);
            let subject = Subject::new(Kind::Process, pid);
            let origin = Origin::new(&source, line);
            if met.samples < FEWEST {
                let why = Absence::because("it did not exist long enough");
                enter::absent(evidence, key, subject, why, origin);
            } else {
                evidence.number(key, subject, count as f64 / met.samples as f64, origin);
            }
        }
        let line = format!(
            "in a wait for a frozen file system {} times in {} samples",
            met.frozen, met.samples
        );
        let subject = Subject::new(Kind::Process, pid);
        let origin = Origin::new(&source, line);
        evidence.number(&keys::PROCESS_FREEZES, subject, met.frozen as f64, origin);
    }
}

/// Where the threads sleep, by kernel function, most first.
fn sleeps(window: &Window<'_>, evidence: &mut Evidence) {
    let Some(last) = window.moments().last() else {
        return;
    };
    let mut processes: BTreeMap<u32, BTreeMap<&str, usize>> = BTreeMap::new();
    for (pid, _, text) in of_threads(last, "wchan") {
        // A thread that does not sleep has none.
        let function = if text == "0" || text.is_empty() {
            RUNNING
        } else {
            text
        };
        *processes
            .entry(pid)
            .or_default()
            .entry(function)
            .or_default() += 1;
    }
    for (pid, functions) in processes {
        let mut functions: Vec<(&str, usize)> = functions.into_iter().collect();
        functions.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let rest: usize = functions.iter().skip(NAMED).map(|(_, count)| count).sum();
        let mut named: Vec<String> = functions
            .iter()
            .take(NAMED)
            .map(|(function, count)| match *function {
                RUNNING => format!("{count} {RUNNING}"),
                _ => format!("{count} in {function}"),
            })
            .collect();
        if rest > 0 {
            named.push(format!("{rest} elsewhere"));
        }
        let origin = Origin::new(format!("/proc/{pid}/task/*/wchan"), named.join(", "));
        let subject = Subject::new(Kind::Process, pid);
        evidence.text(&keys::PROCESS_SLEEPS, subject, named.join(", "), origin);
    }
}

/// Client backends by their postmaster, which is their parent.
fn databases(window: &Window<'_>, evidence: &mut Evidence) {
    let mut servers: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    // Samples hold the titles alone.
    let stats = window.moments().iter().flat_map(chosen::stats);
    let parents: BTreeMap<u32, u32> = stats
        .filter(|(_, stat)| stat.name == "postgres")
        .map(|(pid, stat)| (pid, stat.parent))
        .collect();
    for moment in window.often() {
        let mut now: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for (pid, parent) in &parents {
            let title = moment.files.get(&format!("/proc/{pid}/cmdline"));
            let Some(Raw::Text(activity)) = title else {
                continue;
            };
            let counts = now.entry(*parent).or_default();
            match activity.as_str() {
                "waiting" => *counts = (counts.0 + 1, counts.1 + 1),
                "busy" => counts.1 += 1,
                _ => {}
            }
        }
        for (server, counts) in now {
            servers.entry(server).or_default().push(counts);
        }
    }
    let known: BTreeSet<u32> = window.moments().last().map_or_else(BTreeSet::new, |last| {
        chosen::stats(last).map(|(pid, _)| pid).collect()
    });
    servers.retain(|server, _| known.contains(server) && *server > 1);
    let backends: usize = window.moments().last().map_or(0, |last| {
        let titles = chosen::stats(last).filter_map(|(pid, _)| {
            match last.files.get(&format!("/proc/{pid}/cmdline")) {
                Some(Raw::Text(activity)) if !activity.is_empty() => Some(()),
                _ => None,
            }
        });
        titles.count()
    });
    if known.is_empty() {
        let why = Absence::because("no process can be seen");
        evidence.absent(&[&keys::LOCK_DATABASE_BACKENDS], &why, TITLES);
    } else {
        let origin = Origin::new(
            "/proc/PID/cmdline of postgres",
            format!("{backends} backends"),
        );
        let key = &keys::LOCK_DATABASE_BACKENDS;
        evidence.number(key, Subject::host(), backends as f64, origin);
    }
    for (server, counts) in servers {
        let subject = || Subject::new(Kind::Process, server);
        let waiters: Vec<f64> = counts.iter().map(|(waiting, _)| *waiting as f64).collect();
        let share = |(waiting, busy): &(usize, usize)| *waiting as f64 / (*busy).max(1) as f64;
        let shares: Vec<f64> = counts.iter().map(share).collect();
        let line: Vec<String> = counts
            .iter()
            .map(|(waiting, busy)| format!("{waiting} of {busy}"))
            .collect();
        let line = format!(
            "backends that wait, of those busy, by sample: {}",
            line.join("; ")
        );
        let origin = Origin::new("/proc/PID/cmdline of postgres", line);
        let key = &keys::LOCK_DATABASE_WAITERS;
        let value = median(&waiters);
        evidence.series(key, subject(), value, waiters, origin.clone());
        let value = median(&shares);
        evidence.series(
            &keys::LOCK_DATABASE_WAITING,
            subject(),
            value,
            shares,
            origin,
        );
    }
}

/// The lower median; of nothing, zero.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(sorted.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Process};

    /// Ticks that a process used until then, and what reading the system call of its thread gave.
    type Seen = (u32, u64, Option<Raw>);

    fn moment(at_s: f64, processes: &[Seen]) -> Moment {
        let mut moment = Moment {
            at_s,
            ..Moment::default()
        };
        for (pid, ticks, call) in processes {
            let stat = format!(
                "{pid} (a) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 9 0 9 {}0 17 1 0 0",
                "0 ".repeat(15)
            );
            let files = &mut moment.files;
            files.insert(format!("/proc/{pid}/stat"), Raw::Text(stat));
            if let Some(call) = call {
                files.insert(format!("/proc/{pid}/task/{pid}/syscall"), call.clone());
            }
        }
        moment
    }

    fn failed(why: &str) -> Raw {
        let failed = why.to_owned();
        Raw::Failed { failed }
    }

    /// The process that takes the samples.
    const SAMPLER: u32 = 12;

    /// Number of a process, the ticks that it used in the first third and in all, and what reading its thread gave.
    type Used = (u32, u64, u64, Option<Raw>);

    /// Evidence of a window of 9 s.
    fn evidence(processes: &[Used], judged: Option<u32>) -> Evidence {
        let at = |at_s, ticks: fn(&Used) -> u64| {
            let seen: Vec<Seen> = processes
                .iter()
                .map(|process| (process.0, ticks(process), process.3.clone()))
                .collect();
            moment(at_s, &seen)
        };
        let capture = Capture {
            sampler: Some(SAMPLER),
            process: judged.map(|pid| Process {
                pid,
                name: "a".to_owned(),
            }),
            moments: vec![
                at(0.0, |_| 0),
                at(3.0, |process| process.1),
                at(9.0, |process| process.2),
            ],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(9.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    /// Why the locks of a process, or of any, are not known.
    fn why(evidence: &Evidence) -> Option<String> {
        let missing = evidence.unread(&keys::LOCK_USER_WAITERS)?;
        Some(missing.why.reason)
    }

    #[test]
    fn threads_that_wait_for_their_turn_are_counted_by_condition() {
        let at = |at_s: f64| {
            let mut moment = moment(at_s, &[(4, 0, None)]);
            let often = (at_s * 150.0) as u64;
            let seldom = (at_s * 10.0) as u64;
            // Thread, its word, its timeout, and how often it was woken: 6 is at another word, 7 waits for work, 8 is one of an idle pool.
            for (tid, word, timeout, woken) in [
                (4, "0x10", "0x7f", often),
                (5, "0x14", "0x7f", often),
                (6, "0x20", "0x7f", often),
                (7, "0x10", "0x0", often),
                (8, "0x10", "0x7f", seldom),
            ] {
                let folder = format!("/proc/4/task/{tid}");
                let call = format!("202 {word} 0x89 0x0 {timeout} 0x0 0xff 0x7 0x7");
                let files = &mut moment.files;
                files.insert(format!("{folder}/syscall"), Raw::Text(call));
                let woken = Raw::Text(format!("9 9 {woken}"));
                files.insert(format!("{folder}/schedstat"), woken);
            }
            moment
        };
        let capture = Capture {
            moments: vec![at(0.0), at(9.0)],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(9.0);
        derive(&Window::of(&capture), &mut evidence);
        let process = Subject::new(Kind::Process, 4);
        let turns = evidence.quantity(&keys::LOCK_TURN_WAITERS, &process);
        assert_eq!(turns.map(|turns| turns.value.round() as u32), Ok(2));
    }

    #[test]
    fn an_idle_host_has_no_locks_to_wait_for_whatever_refuses_to_be_read() {
        // Process 1 uses a hundredth of a CPU for a moment, and not even root may read it.
        let evidence = evidence(&[(1, 9, 9, Some(failed("EPERM"))), (7, 0, 0, None)], None);
        let missing = evidence.each(&keys::LOCK_USER_WAITERS).unwrap_err();
        assert!(missing.why.is_none, "{missing:?}");
    }

    #[test]
    fn a_working_process_whose_threads_are_not_read_is_named_with_the_reason() {
        let idles = || Some(Raw::Text("232 0x4 0x0\n".to_owned()));
        for (process, expected) in [
            ((4, 300, 900, idles()), None),
            ((SAMPLER, 300, 900, None), None),
            // It used a tenth of a CPU in all.
            (
                (4, 30, 90, Some(failed("EPERM"))),
                Some("the kernel does not let this user"),
            ),
            ((4, 30, 89, Some(failed("EPERM"))), None),
            ((4, 3, 3, None), Some("at most 32 processes")),
            ((4, 0, 90, None), Some("it began to work after")),
            ((4, 0, 89, None), None),
            // Its thread ended before it was read.
            (
                (4, 3, 3, Some(failed("ESRCH"))),
                Some("at most 32 processes"),
            ),
        ] {
            let other = (5, 300, 900, idles());
            let evidence = evidence(&[process.clone(), other], None);
            let why = why(&evidence);
            match expected {
                None => assert_eq!(why, None, "{process:?}"),
                Some(begin) => assert!(
                    why.as_ref().is_some_and(|why| why.contains(begin)),
                    "{process:?}: {why:?}"
                ),
            }
        }
    }

    #[test]
    fn the_verdict_on_one_process_does_not_depend_on_the_locks_of_others() {
        let idles = Some(Raw::Text("232 0x4 0x0\n".to_owned()));
        let processes = [(4, 300, 900, idles), (1, 90, 900, Some(failed("EPERM")))];
        assert_eq!(why(&evidence(&processes, Some(4))), None);
        assert!(why(&evidence(&processes, None)).is_some());
    }
}
