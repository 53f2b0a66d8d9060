//! `thread-saturated`: one thread of a service uses a whole CPU, or its threads share one.
//!
//! Redis, haproxy with one thread, nginx with one worker: the limit of such a service is one core, however many the machine
//! has, and the mean over all CPUs hides it. The thread is known for processes of one thread, for processes that use most of a
//! CPU, and for the judged process with its children.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "CPU time of the thread as a share of every part of the window",
    value: 0.90,
    origin: "measured: redis 7.0 with one client thread answers at most 3 % more from there on; queueing doubles the wait between 0.8 and 0.9",
};

const WAITS: Threshold = Threshold {
    name: "share of the window in which the thread waits for a CPU, above which it is short of CPUs instead",
    value: 0.10,
    origin: "rule runq-delay",
};

const ALL: Threshold = Threshold {
    name: "share of all CPUs that the service uses, above which one thread is not its limit; where threads take turns, also all programs",
    value: 0.85,
    origin: "rule runq-delay: the CPUs are full",
};

const TURNS: Threshold = Threshold {
    name: "threads that wait at one address for their turn, and are woken often, in most samples",
    value: 2.0,
    origin: "measured with a server of Python 3.11 at its limit, by captures of 10 s: 2 of 5 threads with 4 connections, 23 of 33 with 32; Go at as \
        much CPU time: none, or one",
};

const ONE: Threshold = Threshold {
    name: "CPUs that such a process uses in most parts of the window, at least",
    value: 0.80,
    origin: "measured with the same server at its limit: 1.01 and 1.05; queueing doubles the wait between 0.8 and 0.9",
};

const MORE: Threshold = Threshold {
    name: "the same, at most: with more, its threads do run at the same time",
    value: 1.40,
    origin: "measured with the same server: 1.32 where each request syncs a file, for which Python lets the next thread run",
};

const BLOCKED: Threshold = Threshold {
    name: "share of the time in which the only busy thread of a service runs for 5 ms and more without a wait",
    value: 0.05,
    origin: "measured by `cargo xtask faults --random 40 --seed 20002 --layer host`: a redis in which a script took 10 ms 13 times a second had a p99 of \
        9.8 ms instead of 0.2; one request in twenty meets it",
};

const ALONE: Threshold = Threshold {
    name: "CPU time of the process as a multiple of that of its busiest thread, up to which that thread does the work alone",
    value: 1.3,
    origin: "own guess: background threads of redis and node use less",
};

const QUICK: Threshold = Threshold {
    name: "shorter runs of that thread for each long one, from which on most of its requests are quick and wait for a few slow ones",
    value: 20.0,
    origin: "own guess; measured by `cargo xtask faults --random 40 --seed 31012 --layer host`: a redis in which a script took 10 ms 9 times a \
        second, among 1,900 quick requests, had a p99 of 9.6 ms instead of 0.3",
};

const GAP: Threshold = Threshold {
    name: "mean long run as a multiple of the mean shorter run, from which on they are not the long end of one kind of request",
    value: 20.0,
    origin: "own guess: where the times of requests are distributed exponentially and one in 2,000 takes more than 5 ms, these take nine times as long as the others on average",
};

pub(crate) static RULE: Rule = Rule {
    id: "thread-saturated",
    topic: "process",
    summary: "one thread of a service uses a whole CPU, or its threads share one",
    needs: needs!(
        [
            &keys::CPU_BUSY_MEAN,
            &keys::CPU_ONLINE,
            &keys::LOCK_TURN_WAITERS,
            &keys::PROCESS_ALLOWED,
            &keys::PROCESS_BUSIEST_DELAY,
            &keys::PROCESS_BUSIEST_NAME,
            &keys::PROCESS_BUSIEST_THREAD,
            &keys::PROCESS_LONG_RUNS,
            &keys::PROCESS_LONG_RUN_SHARE,
            &keys::PROCESS_SHORT_RUNS,
            &keys::PROCESS_SHORT_RUN_MEAN,
            &keys::PROCESS_SIBLINGS,
            &keys::SCHED_PROCESS_CPU
        ],
        SERVICE
    ),
    thresholds: &[
        FULL, WAITS, ALL, TURNS, ONE, MORE, BLOCKED, ALONE, QUICK, GAP,
    ],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_BUSIEST_THREAD)),
    doc: Doc {
        looks_for: "A thread that ran for more than 90 % of every part of the window, of the judged process, of its children, or of a process that answers on a port, while the service as a whole leaves CPUs unused. Or a service that uses 0.8 to 1.4 CPUs, while two or more of its threads wait at one address with a time limit and are woken 20 times a second or more, as at the global lock of Python (GIL); watched, if its name is not one of Python. Or a service whose only busy thread is for 5 % of the time in runs of 5 ms and more on a CPU, with at least twenty shorter runs for each of them, which take a twentieth of the time on average, and no sibling of the same name; otherwise that is watched.",
        hurts: "The thread is the service's limit: throughput stops growing there, and requests queue in front of it. More CPUs do not help. While it runs for milliseconds on one request, as with a slow command of redis or a long callback of node, all other clients wait.",
        todo: "Give the service more threads or processes: nginx worker_processes auto, haproxy nbthread, several redis instances or a cluster, io-threads for redis with large replies, more worker processes for Python (gunicorn --workers, uwsgi --processes). If it cannot use more, make each request cheaper: pipelining, connection reuse, no expensive commands (KEYS, SORT, long scripts).",
        wrong: "A busy-polling thread (DPDK, redis modules, spinning event loops) uses a whole CPU without work. Many short requests that came at once make a long run as well: their clients wait no less. A batch job that is not a service is only watched. The global lock of Ruby is not seen: each thread waits at an address of its own. A service whose threads fill all CPUs is not limited by one of them.",
        sources: "Brendan Gregg, Systems Performance, USE method, per-thread utilisation; take_gil of Python/ceval_gil.c, Python 3.11; redis.io, Diagnosing latency issues; nginx.org, worker_processes.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let threads = evidence.each(&keys::PROCESS_BUSIEST_THREAD)?;
    let online = evidence.host(&keys::CPU_ONLINE)?;
    let busy = evidence.host(&keys::CPU_BUSY_MEAN)?;
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (process, cpu) in &threads {
        let delay = evidence.quantity(&keys::PROCESS_BUSIEST_DELAY, process);
        let waits = delay.is_ok_and(|delay| delay.value > WAITS.value);
        let is_full = cpu.lasts(|share| share > FULL.value);
        let service = is_service(evidence, process.name());
        if service {
            most = most.max(cpu.value);
        }
        if !is_full && service {
            // Those that wait for their turn wake up again and again, and wait for a CPU then: no sign of full CPUs.
            let spare = busy.value <= ALL.value;
            let of_turns = spare.then(|| in_turns(evidence, process, online.value));
            let of_turns = of_turns.flatten().map(|finding| finding.cite(busy.reading));
            let blocked = || blocked(evidence, process, cpu).filter(|_| !waits);
            findings.extend(of_turns.or_else(blocked));
        }
        if !is_full || waits || of_service(evidence, process) > ALL.value * online.value {
            continue;
        }
        let thread = evidence
            .words(&keys::PROCESS_BUSIEST_NAME, process)
            .map_or_else(|_| called(evidence, process), |name| name.value.to_owned());
        let share = say::percent(cpu.value);
        let finding = if service {
            let idle = (1.0 - busy.value) * online.value;
            let sentence = format!(
                "thread {thread} uses {share} of one CPU and limits the service; {idle:.1} of {} are idle",
                say::count(online.value, "CPU")
            );
            let severity = if idle < 0.5 {
                Grade::Medium
            } else {
                Grade::High
            };
            Finding::act(process, sentence)
                .severity(severity)
                .confidence(Grade::High)
        } else {
            let sentence = format!(
                "thread {thread} uses {share} of one CPU; if clients wait for it, that is their limit"
            );
            Finding::watch(process, sentence).severity(Grade::Low)
        };
        findings.push(finding.cite(cpu.reading).cite(busy.reading).refuted_by(
            "the throughput grows with the offered load while the thread stays as busy",
        ));
    }
    if findings.is_empty() {
        let sentence = format!(
            "no thread of a service uses a whole CPU all the time; the busiest uses {}",
            say::percent(most)
        );
        let clear = Finding::clear(sentence).below(most, FULL.value);
        findings.push(clear.cite(busy.reading));
    }
    Ok(findings)
}

/// Names of processes that run Python.
const PYTHON: [&str; 5] = ["python", "gunicorn", "uwsgi", "uvicorn", "celery"];

/// Threads that run one at a time: together they use one CPU, and others are idle.
fn in_turns(evidence: &Evidence, process: &Subject, online: f64) -> Option<Finding> {
    let waiters = evidence.quantity(&keys::LOCK_TURN_WAITERS, process).ok()?;
    let used = evidence.quantity(&keys::SCHED_PROCESS_CPU, process).ok()?;
    let is_one = |cpus| (ONE.value..=MORE.value).contains(&cpus);
    let allowed = evidence.words(&keys::PROCESS_ALLOWED, process);
    let allowed = allowed.map_or(online, |list| say::parse_cpus(list.value).len() as f64);
    if !used.lasts(is_one)
        || !waiters.lasts(|count| count >= TURNS.value)
        || of_service(evidence, process) > ALL.value * online.min(allowed)
    {
        return None;
    }
    let sentence = format!(
        "{} runs one thread at a time: it uses {:.2} of {}, and {} wait for their turn",
        called(evidence, process),
        used.value,
        say::count(online, "CPU"),
        say::count(waiters.value, "thread")
    );
    let name = evidence.words(&keys::SCHED_PROCESS_NAME, process);
    let is_python = name.is_ok_and(|name| PYTHON.iter().any(|known| name.value.starts_with(known)));
    let finding = if is_python {
        Finding::act(process, format!("{sentence} (global lock of Python)")).severity(Grade::High)
    } else {
        let sentence = format!("{sentence}, as at the global lock of Python");
        Finding::watch(process, sentence).severity(Grade::Medium)
    };
    let confidence = if is_python { Grade::High } else { Grade::Low };
    let finding = finding.confidence(confidence).cite(waiters.reading);
    Some(finding.cite(used.reading).refuted_by(
        "a second process of the service beside it does not raise the throughput (gunicorn --workers 2)",
    ))
}

/// A thread that serves all clients and is busy for milliseconds at a time. Watching switches is optional depth: without it nothing is said.
fn blocked(evidence: &Evidence, process: &Subject, cpu: &Quantity<'_>) -> Option<Finding> {
    let share = (evidence.quantity(&keys::PROCESS_LONG_RUN_SHARE, process)).ok()?;
    let runs = evidence.quantity(&keys::PROCESS_LONG_RUNS, process).ok()?;
    let used = evidence.quantity(&keys::SCHED_PROCESS_CPU, process).ok()?;
    if share.value < BLOCKED.value || used.value > ALONE.value * cpu.value {
        return None;
    }
    // A thread beside the busiest one, which frees memory or writes files, holds up no client.
    let busiest = evidence.words(&keys::PROCESS_BUSIEST_NAME, process);
    let thread = share.reading.origin.line.strip_prefix("thread ");
    if let (Ok(busiest), Some((thread, _))) =
        (busiest, thread.and_then(|line| line.split_once(':')))
        && !busiest.value.ends_with(&format!(":{thread})"))
    {
        return None;
    }
    let sentence = format!(
        "the only busy thread of {} is in runs of 5 ms and more for {} of the time ({}, {:.0} ms each)",
        called(evidence, process),
        say::percent(share.value),
        say::rate(runs.value),
        share.value / runs.value * 1e3,
    );
    // Where most runs are long, they may be its ordinary requests, and workers of one master and backends of a database serve one client
    // at a time.
    let quick = evidence.quantity(&keys::PROCESS_SHORT_RUNS, process).ok();
    let quick = quick.filter(|quick| quick.value >= QUICK.value * runs.value);
    let mean = evidence.quantity(&keys::PROCESS_SHORT_RUN_MEAN, process);
    let mean = mean
        .ok()
        .filter(|mean| share.value / runs.value >= GAP.value * mean.value);
    let finding = match (quick, mean) {
        (Some(quick), Some(mean)) if is_alone(evidence, process) => {
            Finding::act(process, format!("{sentence}: other clients wait meanwhile"))
                .cite(quick.reading)
                .cite(mean.reading)
        }
        _ => {
            let sentence =
                format!("{sentence}; if it serves several clients, the others wait meanwhile");
            Finding::watch(process, sentence)
        }
    };
    let finding = finding.confidence(Grade::High);
    Some(finding.cite(share.reading).cite(runs.reading).refuted_by(
        "the p99 of its clients is as short as without the slow requests (redis SLOWLOG, the event loop lag of node)",
    ))
}

/// CPUs that the process uses together with its siblings.
fn of_service(evidence: &Evidence, process: &Subject) -> f64 {
    let all = evidence.each(&keys::SCHED_PROCESS_CPU).unwrap_or_default();
    all.iter()
        .filter(|(other, _)| *other == process || are_siblings(evidence, process, other))
        .map(|(_, cpu)| cpu.value)
        .sum()
}

/// It is not one of several workers of a master; not known of processes that use little CPU.
fn is_alone(evidence: &Evidence, process: &Subject) -> bool {
    let siblings = evidence.quantity(&keys::PROCESS_SIBLINGS, process);
    siblings.is_ok_and(|siblings| siblings.value < 1.0)
}

/// They have one name and one parent, and that is not the first process: the workers of one master.
fn are_siblings(evidence: &Evidence, process: &Subject, other: &Subject) -> bool {
    let name = |process| {
        evidence
            .words(&keys::SCHED_PROCESS_NAME, process)
            .ok()
            .map(|name| name.value)
    };
    let parent = |process| {
        evidence
            .quantity(&keys::PROCESS_PARENT, process)
            .ok()
            .map(|parent| parent.value)
    };
    parent(process).is_some_and(|pid| pid > 1.0)
        && parent(other) == parent(process)
        && name(other) == name(process)
}
