//! What threads sleep in: held userspace locks (futex), database locks, kernel functions.
//!
//! Read in every sample for the judged process and its children, and at the end of the window for processes that others
//! wait for. The system call that a thread sleeps in names the futex by its address, so threads that wait for the same
//! lock can be identified. Sources: `proc_pid_syscall` and `proc_pid_wchan` of fs/proc/base.c, Linux 6.18; futex(2).

use std::collections::{BTreeMap, BTreeSet};

use rungwise_formats::{syscall, task};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::{chosen, of_threads, unnamed};
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
        &keys::LOCK_USER_MOVING,
        &keys::LOCK_USER_WAITERS,
        &keys::PROCESS_FREEZES,
        &keys::PROCESS_SLEEPS,
        &keys::PROCESS_SYNCING,
        &keys::PROCESS_WRITE_BLOCKED,
    ],
    derive,
    doc: "\
A thread waits for a held lock if it sleeps in futex(2) on a word whose value means contention: 2 or 3 (mutexes and \
rwlocks of glibc, mutexes of Rust), bit 30 (readers of an RwLock of Rust), the sign bit (musl), or a priority-inheriting lock. Waits for a condition, a \
semaphore or work are not counted; nor are locks whose waiters each sleep on their own word (Java, parking_lot). Of \
command lines, only the activity of PostgreSQL client backends is kept: waiting, idle or busy. Processes other than \
the judged one and its children are read once, at the end of the window, if one of their sockets waits for them or \
they are blocked; processes that serve clients over TCP or use 1 % of a CPU are read 21 times in the window (at most \
16, with 100 threads in total), and up to 210 times if they have few threads. Sources: fs/proc/base.c of Linux 6.18; \
sysdeps/nptl/lowlevellock.h and nptl/pthread_rwlock_common.c of glibc 2.36; src/backend/utils/misc/ps_status.c of \
PostgreSQL 15.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for (pid, samples) in samples(window) {
        locks(window, evidence, pid, &samples);
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

/// Threads by the lock that they wait for.
type Locks<'a> = BTreeMap<u64, Vec<&'a str>>;

/// By process, the locks that its threads waited for in each sample in which its threads were read.
fn samples<'a>(window: &Window<'a>) -> BTreeMap<u32, Vec<(usize, Locks<'a>)>> {
    let mut processes: BTreeMap<u32, Vec<(usize, Locks<'a>)>> = BTreeMap::new();
    for (number, moment) in window.often().into_iter().enumerate() {
        for (pid, tid, text) in of_threads(moment, "syscall") {
            let samples = processes.entry(pid).or_default();
            if samples.last().is_none_or(|(at, _)| *at != number) {
                samples.push((number, Locks::new()));
            }
            if let (Some((_, locks)), Some(wait)) = (samples.last_mut(), syscall::futex_wait(text))
                && wait.is_lock
            {
                locks.entry(wait.address).or_default().push(tid);
            }
        }
    }
    processes
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
