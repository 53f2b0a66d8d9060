//! `thread-saturated`: one thread of a service uses a whole CPU.
//!
//! Redis, haproxy with one thread, nginx with one worker: the limit of such a service is one core, however many the machine
//! has, and the mean over all CPUs hides it. The thread is known for processes of one thread, for processes that use most of a
//! CPU, and for the judged process with its children.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{called, is_service};
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

pub(crate) static RULE: Rule = Rule {
    id: "thread-saturated",
    topic: "process",
    summary: "one thread of a service uses a whole CPU",
    needs: &[
        &keys::CPU_BUSY_MEAN,
        &keys::CPU_ONLINE,
        &keys::DEPENDENCY_CLIENTS,
        &keys::PROCESS_BUSIEST_DELAY,
        &keys::PROCESS_BUSIEST_NAME,
        &keys::PROCESS_BUSIEST_THREAD,
        &keys::PROCESS_PARENT,
        &keys::PROCESS_UNREAD,
        &keys::SCHED_PROCESS_CPU,
        &keys::SCHED_PROCESS_NAME,
        &keys::SCHED_THREAD_CPU,
        &keys::TCP_ACCEPT_BACKLOG,
        &keys::TCP_PROCESS,
        &keys::UDP_PROCESS,
    ],
    thresholds: &[FULL, WAITS, ALL],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_BUSIEST_THREAD)),
    doc: Doc {
        looks_for: "A thread that ran for more than 90 % of every part of the window, of the judged process, of its children, or of a process that answers on a port, while the service as a whole leaves CPUs unused.",
        hurts: "The thread is the service's limit: throughput stops growing there, and requests queue in front of it. More CPUs do not help.",
        todo: "Give the service more threads or processes: nginx worker_processes auto, haproxy nbthread, several redis instances or a cluster, io-threads for redis with large replies. If it cannot use more, make each request cheaper: pipelining, connection reuse, no expensive commands (KEYS, SORT, long scripts).",
        wrong: "A busy-polling thread (DPDK, redis modules, spinning event loops) uses a whole CPU without work. A batch job that is not a service is only watched. A service whose threads fill all CPUs is not limited by one of them.",
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

/// CPUs that the process uses together with its siblings of the same name: the workers of one master.
fn of_service(evidence: &Evidence, process: &rungwise_model::evidence::Subject) -> f64 {
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
