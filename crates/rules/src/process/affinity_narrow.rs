//! `affinity-narrow`: a service is confined to a few CPUs and waits for them while others are idle.
//!
//! An affinity mask (`taskset`, `CPUAffinity=`, `cpuset`, a container runtime) outlives the reason for it. The run queue of its CPUs
//! is long while the others idle, and the mean over all CPUs looks healthy.
use std::collections::BTreeMap;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use super::{SERVICE, called, is_service, waits_for_cpu};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WAITS: Threshold = Threshold {
    name: "share of the window in which its busiest thread waits for a CPU",
    value: 0.10,
    origin: "rule runq-delay",
};

const SERVICE_WAITS: Threshold = Threshold {
    name: "the same share from which on a service is named before a batch job that waits longer",
    value: 0.01,
    origin: "own guess: a service sleeps between requests, so its share is far below that of a busy process beside it, which was named \
        instead in three of four trials of cpu-pinned-together",
};

const HELD_UP: Threshold = Threshold {
    name: "the same share of a service that waits half as long as it runs, or longer",
    value: 0.05,
    origin: "measured by `cargo xtask faults --random 40 --seed 31012 --layer host`: p99 of memcached grew from 0.7 to 12.7 ms where it waited in \
        8 % of the window",
};

const NEIGHBOUR: Threshold = Threshold {
    name: "CPUs that another process with the same mask uses, from which on the service is moved to the other CPUs alone",
    value: 0.10,
    origin: "own guess; measured beside three spinning processes on one CPU of two, 2026-11-27: p99 of a UDP echo 12.0 ms, 8.9 ms with both \
        CPUs, 3.0 ms with the idle one alone; of memcached 10.7, 1.5 and 0.2 ms",
};

const USED: Threshold = Threshold {
    name: "CPU time of the processes, as a share of the CPUs that they may use",
    value: 0.60,
    origin: "own guess: below it the wait comes from elsewhere",
};

const IDLE: Threshold = Threshold {
    name: "busy share of the other CPUs below which they have room",
    value: 0.70,
    origin: "own guess: room for a third of a CPU on each",
};

pub(crate) static RULE: Rule = Rule {
    id: "affinity-narrow",
    topic: "process",
    summary: "a service is confined to a few CPUs and waits for them while others are idle",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::CPU_ONLINE,
            &keys::PROCESS_ALLOWED,
            &keys::PROCESS_BUSIEST_DELAY,
            &keys::PROCESS_BUSIEST_THREAD,
            &keys::PROCESS_CPUSET,
            &keys::PROCESS_CPUSET_GROUP,
            &keys::PROCESS_STARVED,
            &keys::SCHED_PROCESS_CPU
        ],
        SERVICE
    ),
    thresholds: &[WAITS, SERVICE_WAITS, HELD_UP, NEIGHBOUR, USED, IDLE],
    knobs: &["cpu.pin_threads", "virt.container_cpuset"],
    measure: Some(Measure::more(&keys::PROCESS_BUSIEST_DELAY)),
    doc: Doc {
        looks_for: "Processes that may run on only some of the CPUs, use most of them, and wait for them in more than 10 % of the window (5 % for a service that waits half as long as it runs, or longer), while the other CPUs are less than 70 % busy.",
        hurts: "The service queues for a few CPUs of the machine. Each request waits, although CPUs are free.",
        todo: "Widen the mask, or move the service to the idle CPUs alone where a busy process keeps the others: taskset -acp LIST PID, CPUAffinity= of its unit, cpuset.cpus of its group, worker_cpu_affinity of nginx, cpu-map of haproxy.",
        wrong: "The other CPUs may be reserved on purpose: isolated, or meant for another service. A pinned process alone on its CPU does not wait \
            and is not reported. The cpuset of a parent group narrows the mask as well; then a wider cpuset of the process's own group has no \
            effect, and `knob apply` says so.",
        sources: "sched_setaffinity(2), taskset(1), cpuset(7); Documentation/scheduler/sched-stats.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let allowed = evidence.each_words(&keys::PROCESS_ALLOWED)?;
    let online = evidence.host(&keys::CPU_ONLINE)?;
    let cpus = evidence.each(&keys::CPU_BUSY)?;
    let mut masks: BTreeMap<&str, Vec<&Subject>> = BTreeMap::new();
    for (process, list) in &allowed {
        masks.entry(list.value).or_default().push(process);
    }
    let mut findings = Vec::new();
    let mut longest = 0.0_f64;
    for (list, processes) in masks {
        let own = say::parse_cpus(list);
        let (inside, outside): (Vec<_>, Vec<_>) = cpus
            .iter()
            .partition(|(cpu, _)| cpu.name().parse().is_ok_and(|cpu| own.contains(&cpu)));
        if inside.is_empty() || outside.is_empty() {
            continue;
        }
        let used = |process: &&&Subject| evidence.quantity(&keys::SCHED_PROCESS_CPU, process).ok();
        let total: f64 = processes
            .iter()
            .filter_map(|p| used(&p))
            .map(|cpu| cpu.value)
            .sum();
        let held_up = |process: &Subject| {
            waits_for_cpu(evidence, process, WAITS.value, HELD_UP.value)
                .filter(|_| is_service(evidence, process.name()))
        };
        let delay = |process: &&Subject| {
            let counted = evidence.quantity(&keys::PROCESS_BUSIEST_DELAY, process);
            held_up(process).or(counted.ok())
        };
        let most = processes
            .iter()
            .filter_map(|process| Some(delay(process)?.value));
        let most = most.fold(0.0, f64::max);
        let waits: Option<(&Subject, Quantity<'_>)> = processes
            .iter()
            .filter_map(|process| Some((*process, delay(process)?)))
            // A service that waits is named before a batch job that waits longer.
            .max_by(|(p, a), (q, b)| {
                let rank = |process: &Subject, waits: f64| {
                    waits > SERVICE_WAITS.value && is_service(evidence, process.name())
                };
                let held = held_up(p).is_some().cmp(&held_up(q).is_some());
                let held = held.then(rank(p, a.value).cmp(&rank(q, b.value)));
                held.then(a.value.total_cmp(&b.value))
            });
        let Some((process, waits)) = waits else {
            continue;
        };
        let is_held_up = held_up(process).is_some();
        longest = longest.max(most);
        let idle = outside.iter().map(|(_, busy)| busy.value).sum::<f64>() / outside.len() as f64;
        if most <= WAITS.value && !is_held_up
            || total < USED.value * inside.len() as f64
            || idle > IDLE.value
        {
            continue;
        }
        let others = processes.len() - 1;
        let more = if others == 0 {
            String::new()
        } else {
            format!(
                " and {} with the same mask",
                say::count(others as f64, "process").replace("processs", "processes")
            )
        };
        let sentence = format!(
            "{}{more} may run on {} only; waits for a CPU take {} of the window, and the other CPUs are {} busy",
            called(evidence, process),
            say::the_cpus(&own),
            say::percent(waits.value),
            say::percent(idle)
        );
        let all: std::collections::BTreeSet<usize> = cpus
            .iter()
            .filter_map(|(cpu, _)| cpu.name().parse().ok())
            .collect();
        // All of its workers: freeing one of them does not help the others.
        let name = |process: &Subject| {
            let name = evidence.words(&keys::SCHED_PROCESS_NAME, process);
            name.ok().map(|name| name.value.to_owned())
        };
        let (workers, neighbours): (Vec<&Subject>, Vec<&Subject>) = processes
            .iter()
            .copied()
            .partition(|other| *other == process || name(other) == name(process));
        let pids: Vec<&str> = workers.iter().map(|worker| worker.name()).collect();
        let is_busy = |other: &&Subject| {
            let cpu = evidence.quantity(&keys::SCHED_PROCESS_CPU, other);
            name(other).is_some() && cpu.is_ok_and(|cpu| cpu.value > NEIGHBOUR.value)
        };
        // A busy process with the same mask stays on its CPUs, and a scheduler that may put the service there again does so.
        let cpus = if neighbours.iter().any(is_busy) {
            all.difference(&own).copied().collect()
        } else {
            all.clone()
        };
        let wish = format!("{}:{}", pids.join(","), say::cpus(&cpus));
        let mut finding = Finding::act(process, sentence)
            .severity(Grade::High)
            .confidence(Grade::High)
            .cite(waits.reading);
        if let Ok(mask) = evidence.words(&keys::PROCESS_ALLOWED, process) {
            finding = finding.cite(mask.reading);
        }
        // No mask reaches beyond the cpuset of the group.
        let cpuset = evidence.words(&keys::PROCESS_CPUSET, process).ok();
        let narrow = cpuset.filter(|cpuset| !all.is_subset(&say::parse_cpus(cpuset.value)));
        let group = evidence.words(&keys::PROCESS_CPUSET_GROUP, process).ok();
        let finding = match (narrow, group) {
            // The other CPUs may belong to another group, so no value is proposed.
            (Some(cpuset), Some(group)) => finding
                .cite(cpuset.reading)
                .consider_device("virt.container_cpuset", group.value),
            _ => finding.turn("cpu.pin_threads", wish),
        };
        findings.push(finding.refuted_by(
            "the wait stays after the process got all CPUs (taskset -acp, or the cpuset of its group)",
        ));
    }
    if findings.is_empty() {
        let sentence = format!(
            "no process confined to some of the {} waits while others are idle",
            say::count(online.value, "CPU")
        );
        findings.push(
            Finding::clear(sentence)
                .below(longest, WAITS.value)
                .cite(online.reading),
        );
    }
    Ok(findings)
}
