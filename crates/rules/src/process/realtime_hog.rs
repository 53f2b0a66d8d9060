//! `realtime-hog`: a real-time process takes a CPU from all others.
//!
//! A task under `SCHED_FIFO` or `SCHED_RR` runs before every ordinary task of its CPU for as long as it wants. The kernel keeps 5 %
//! for the others (`sched_rt_runtime_us`, or the fair server since Linux 6.8).
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{called, is_service, waits_for_cpu};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const HOGS: Threshold = Threshold {
    name: "CPU time of the real-time process, in CPUs",
    value: 0.2,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: 0.24 CPUs on each CPU took p99 of redis from 0.2 to 22.9 ms, 0.06 to \
        1.5 ms",
};

const SOME: Threshold = Threshold {
    name: "the same, from which on it is watched",
    value: 0.05,
    origin: "measured by `cargo xtask faults`: 9 ms of each 100 on each CPU took p99 of a UDP service from 0.1 to 8 ms",
};

const WAITS: Threshold = Threshold {
    name: "share of the window in which some task waits for a CPU",
    value: 0.10,
    origin: "rule runq-delay",
};

const LITTLE: Threshold = Threshold {
    name: "share of the window in which a service waits, where it waits for more than half as long as it runs",
    value: 0.01,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: redis, which waited for 2.8 % of the window, had a p99 of 1.5 ms \
        instead of 0.2 ms",
};

pub(crate) static RULE: Rule = Rule {
    id: "realtime-hog",
    topic: "process",
    summary: "a real-time process takes a CPU from all others",
    needs: &[
        &keys::PROCESS_BUSIEST_DELAY,
        &keys::PROCESS_BUSIEST_THREAD,
        &keys::PROCESS_SCHEDULING,
        &keys::PROCESS_STARVED,
        &keys::PSI_CPU_SOME,
        &keys::SCHED_PROCESS_CPU,
        &keys::SCHED_PROCESS_NAME,
        &keys::SCHED_THREAD_CPU,
        &keys::TCP_ACCEPT_BACKLOG,
        &keys::TCP_PROCESS,
        &keys::UDP_PROCESS,
    ],
    thresholds: &[HOGS, SOME, WAITS, LITTLE],
    knobs: &[],
    measure: Some(Measure::more(&keys::SCHED_PROCESS_CPU)),
    doc: Doc {
        looks_for: "A process under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE that uses more than 0.2 CPUs in most parts of the window; from 0.05 CPUs on if a service waits for a CPU in 1 % of the window and half as long as it runs, otherwise it is watched if tasks wait. Kernel threads are excluded.",
        hurts: "Ordinary tasks on its CPU wait up to 95 % of the time, and tasks queued there before it started migrate late.",
        todo: "Find out why it needs real-time priority: chrt -p PID shows it, chrt --other -p 0 PID ends it. If it needs it, give it a CPU of its own (isolcpus, cpuset) and the service the others.",
        wrong: "On a machine with isolated CPUs, or in audio and telephony, this is intended; without waiting tasks it is only watched.",
        sources: "sched(7); Documentation/scheduler/sched-rt-group.rst; kernel/sched/deadline.c (fair server), Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let scheduling = evidence.each_words(&keys::PROCESS_SCHEDULING)?;
    let waiting = evidence.host(&keys::PSI_CPU_SOME)?;
    let delays = evidence
        .each(&keys::PROCESS_BUSIEST_DELAY)
        .unwrap_or_default();
    let harmed = delays.iter().find_map(|(process, _)| {
        waits_for_cpu(evidence, process, WAITS.value, LITTLE.value)
            .filter(|_| is_service(evidence, process.name()))
    });
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (process, policy) in scheduling {
        if !matches!(policy.value, "SCHED_FIFO" | "SCHED_RR" | "SCHED_DEADLINE") {
            continue;
        }
        let Ok(cpu) = evidence.quantity(&keys::SCHED_PROCESS_CPU, process) else {
            continue;
        };
        most = most.max(cpu.value);
        let hogs = cpu.lasts(|cpus| cpus > HOGS.value);
        if !hogs && (cpu.value <= SOME.value || waiting.value <= SOME.value) {
            continue;
        }
        let sentence = format!(
            "{} runs under {} and takes {:.2} CPUs from ordinary tasks, which wait in {} of the time",
            called(evidence, process),
            policy.value,
            cpu.value,
            say::percent(waiting.value)
        );
        let harms = harmed.filter(|_| cpu.lasts(|cpus| cpus > SOME.value));
        let finding = match harms {
            _ if hogs && waiting.value > WAITS.value => Finding::act(process, sentence)
                .severity(Grade::High)
                .confidence(Grade::High),
            Some(delay) => Finding::act(process, sentence)
                .severity(Grade::Medium)
                .confidence(Grade::Medium)
                .cite(delay.reading),
            None => Finding::watch(process, sentence),
        };
        findings.push(
            finding
                .cite(policy.reading)
                .cite(cpu.reading)
                .cite(waiting.reading)
                .refuted_by("the wait stays after `chrt --other -p 0 PID`"),
        );
    }
    if findings.is_empty() {
        let sentence = format!("real-time processes use {most:.2} CPUs at most");
        findings.push(
            Finding::clear(sentence)
                .below(most, SOME.value)
                .cite(waiting.reading),
        );
    }
    Ok(findings)
}
