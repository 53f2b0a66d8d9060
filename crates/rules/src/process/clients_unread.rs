//! `clients-unread`: a process does not read what its clients have sent.
//!
//! Data waits in the receive queue in every sample, or connections are not accepted, while the process hardly uses a CPU: its
//! threads sleep somewhere else. The finding says where, which shows the reason: a lock, another server, a disk, a pause.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const UNREAD: Threshold = Threshold {
    name: "connections with unread data in every sample",
    value: 1.0,
    origin: "own guess: unread data in one sample is a burst, in four samples it is a reader that does something else",
};

const IDLE: Threshold = Threshold {
    name: "CPUs that the process uses, below which it counts as idle",
    value: 0.50,
    origin: "own guess: half of a thread",
};

const WAITS: Threshold = Threshold {
    name: "share of the window in which its busiest thread waits for a CPU, above which it is short of CPUs instead",
    value: 0.10,
    origin: "rule runq-delay",
};

pub(crate) static RULE: Rule = Rule {
    id: "clients-unread",
    topic: "process",
    summary: "a process does not read what its clients have sent",
    needs: &[
        &keys::DEPENDENCY_SAMPLES,
        &keys::PROCESS_BUSIEST_DELAY,
        &keys::PROCESS_SLEEPS,
        &keys::PROCESS_UNREAD,
        &keys::SCHED_PROCESS_CPU,
        &keys::SCHED_PROCESS_NAME,
    ],
    thresholds: &[UNREAD, IDLE, WAITS],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_UNREAD)),
    doc: Doc {
        looks_for: "Connections of a listening process with data in the receive queue, or connections in its accept queue, in every sample, while the process uses less than half of a CPU.",
        hurts: "The clients wait although the process has nothing to compute: no CPU, no network and no kernel setting is the limit.",
        todo: "See where its threads sleep (the finding names the kernel functions) and what they wait for: gdb -batch -ex 'thread apply all bt' -p PID, a thread dump, a log that stopped.",
        wrong: "A process may leave data in the queue on purpose, to slow its clients down (flow control); a client that died may leave its last request there until a timeout.",
        sources: "tcp(7), SIOCINQ; Brendan Gregg, Systems Performance, off-CPU analysis.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let samples = evidence.host(&keys::DEPENDENCY_SAMPLES)?;
    let unread = evidence.each(&keys::PROCESS_UNREAD).unwrap_or_default();
    let mut findings = Vec::new();
    for (process, number) in unread {
        let used = evidence.quantity(&keys::SCHED_PROCESS_CPU, process).ok();
        let delay = evidence.quantity(&keys::PROCESS_BUSIEST_DELAY, process);
        let waits = delay.is_ok_and(|delay| delay.value > WAITS.value);
        let idle = used.is_none_or(|cpu| cpu.value < IDLE.value) && !waits;
        if number.value < UNREAD.value || !idle {
            continue;
        }
        let sleeps = evidence.words(&keys::PROCESS_SLEEPS, process).ok();
        let place = sleeps.map_or_else(String::new, |sleeps| {
            format!("; its threads: {}", sleeps.value)
        });
        let sentence = format!(
            "{} leaves data from {} unread and uses {} of a CPU{place}",
            called(evidence, process),
            say::count(number.value, "connection"),
            used.map_or("none".to_owned(), |cpu| say::percent(cpu.value))
        );
        let mut finding = Finding::act(process, sentence)
            .severity(Grade::High)
            .confidence(if sleeps.is_some() {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(number.reading);
        if let Some(sleeps) = sleeps {
            finding = finding.cite(sleeps.reading);
        }
        if let Some(used) = used {
            finding = finding.cite(used.reading);
        }
        findings.push(finding.refuted_by("its receive queues are empty in the next window"));
    }
    if findings.is_empty() {
        let sentence = "no idle process leaves its clients' data unread";
        findings.push(Finding::clear(sentence).cite(samples.reading));
    }
    Ok(findings)
}
