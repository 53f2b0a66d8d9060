//! `thread-saturated`: one thread of a service uses a whole CPU.
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
    name: "share of all CPUs that the service uses, above which one thread is not its limit",
    value: 0.85,
    origin: "rule runq-delay: the CPUs are full",
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

pub(crate) static RULE: Rule = Rule {
    id: "thread-saturated",
    topic: "process",
    summary: "one thread of a service uses a whole CPU",
    needs: needs!(
        [
            &keys::CPU_BUSY_MEAN,
            &keys::CPU_ONLINE,
            &keys::PROCESS_BUSIEST_DELAY,
            &keys::PROCESS_BUSIEST_NAME,
            &keys::PROCESS_BUSIEST_THREAD,
            &keys::PROCESS_LONG_RUNS,
            &keys::PROCESS_LONG_RUN_SHARE,
            &keys::SCHED_PROCESS_CPU
        ],
        SERVICE
    ),
    thresholds: &[FULL, WAITS, ALL, BLOCKED, ALONE],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_BUSIEST_THREAD)),
    doc: Doc {
        looks_for: "A thread that ran for more than 90 % of every part of the window, of the judged process, of its children, or of a process that answers on a port, while the service as a whole leaves CPUs unused. Watched: a service whose only busy thread is for 5 % of the time in runs of 5 ms and more.",
        hurts: "The thread is the service's limit: throughput stops growing there, and requests queue in front of it. More CPUs do not help. While it runs for milliseconds on one request, as with a slow command of redis or a long callback of node, all other clients wait.",
        todo: "Give the service more threads or processes: nginx worker_processes auto, haproxy nbthread, several redis instances or a cluster, io-threads for redis with large replies. If it cannot use more, make each request cheaper: pipelining, connection reuse, no expensive commands (KEYS, SORT, long scripts).",
        wrong: "A busy-polling thread (DPDK, redis modules, spinning event loops) uses a whole CPU without work. Many short requests that came at once make a long run as well: their clients wait no less. A batch job that is not a service is only watched. A service whose threads fill all CPUs is not limited by one of them.",
        sources: "Brendan Gregg, Systems Performance, USE method, per-thread utilisation; redis.io, Diagnosing latency issues; nginx.org, worker_processes.",
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
        if !is_full && !waits && service {
            findings.extend(blocked(evidence, process, cpu));
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

/// A thread that serves all clients and is busy for milliseconds at a time. Watching switches is optional depth: without it nothing is said.
fn blocked(evidence: &Evidence, process: &Subject, cpu: &Quantity<'_>) -> Option<Finding> {
    let share = (evidence.quantity(&keys::PROCESS_LONG_RUN_SHARE, process)).ok()?;
    let runs = evidence.quantity(&keys::PROCESS_LONG_RUNS, process).ok()?;
    let used = evidence.quantity(&keys::SCHED_PROCESS_CPU, process).ok()?;
    if share.value < BLOCKED.value || used.value > ALONE.value * cpu.value {
        return None;
    }
    let sentence = format!(
        "the only busy thread of {} is in runs of 5 ms and more for {} of the time ({}, {:.0} ms each): other clients wait meanwhile",
        called(evidence, process),
        say::percent(share.value),
        say::rate(runs.value),
        share.value / runs.value * 1e3,
    );
    let finding = Finding::watch(process, sentence).confidence(Grade::High);
    Some(finding.cite(share.reading).cite(runs.reading).refuted_by(
        "the p99 of its clients is as short as without the slow requests (redis SLOWLOG, the event loop lag of node)",
    ))
}

/// CPUs that the process uses together with its siblings of the same name: the workers of one master.
fn of_service(evidence: &Evidence, process: &Subject) -> f64 {
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
    let all = evidence.each(&keys::SCHED_PROCESS_CPU).unwrap_or_default();
    let same = |other| {
        other == process
            || (parent(process).is_some_and(|pid| pid > 1.0)
                && parent(other) == parent(process)
                && name(other) == name(process))
    };
    all.iter()
        .filter(|(other, _)| same(*other))
        .map(|(_, cpu)| cpu.value)
        .sum()
}
