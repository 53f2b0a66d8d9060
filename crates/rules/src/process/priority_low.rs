//! `priority-low`: a service runs at low priority and waits for a CPU.
//!
//! `SCHED_IDLE` and high nice values are meant for jobs that may wait. A service gets them by accident: started from a niced
//! shell, a cron job or a unit with `Nice=` or `CPUSchedulingPolicy=idle`.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{SERVICE, called, is_service, wait_for_cpu, waits_for_cpu};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WAITS: Threshold = Threshold {
    name: "share of the window in which its busiest thread waits for a CPU",
    value: 0.10,
    origin: "rule runq-delay",
};

const LITTLE: Threshold = Threshold {
    name: "the same share, where it waits for more than half as long as it runs",
    value: 0.045,
    origin: "measured by `cargo xtask faults --random 80 --seed 3001`: nginx under SCHED_IDLE waited for 4 % of the window, twice as long as it ran, and its p99 rose from 0.2 to 0.6 ms; `--random 40 --seed 31002 --layer host`: redis waited for 4.7 %, and its p99 rose from 0.2 to 23 ms",
};

const SOME: Threshold = Threshold {
    name: "share of the window in which its busiest thread waits for a CPU, from which on it is watched",
    value: 0.02,
    origin: "measured by `cargo xtask faults --random 40 --seed 7001 --layer host`: memcached at nice 12 waited for about 3 % of the time, and its \
        p99 rose from 0.3 to 25 ms; other services with the same wait lost nothing",
};

const NICE: Threshold = Threshold {
    name: "nice value from which on a priority counts as low",
    value: 5.0,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: redis at nice 5 next to a busy process had a p99 of 2.5 ms instead of \
        0.1 ms, at nice 14 one of 75 ms; at 5 a process gets a third of the CPU time of its competitor (kernel/sched/core.c, \
        sched_prio_to_weight)",
};

pub(crate) static RULE: Rule = Rule {
    id: "priority-low",
    topic: "process",
    summary: "a service runs at low priority and waits for a CPU",
    needs: needs!(
        [
            &keys::PROCESS_BUSIEST_DELAY,
            &keys::PROCESS_BUSIEST_THREAD,
            &keys::PROCESS_SCHEDULING,
            &keys::PROCESS_STARVED
        ],
        SERVICE
    ),
    thresholds: &[WAITS, LITTLE, SOME, NICE],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_BUSIEST_DELAY)),
    doc: Doc {
        looks_for: "A process that answers on a port, or the judged process with its children, that runs under SCHED_IDLE, SCHED_BATCH or a nice value of 5 or more, and waits for a CPU in more than 10 % of the window, or in more than 4.5 % of it and for more than half as long as it runs. From 2 % on it is watched.",
        hurts: "At nice 19 a process gets 1.5 % of a CPU for which one process of normal priority competes; SCHED_IDLE gets less.",
        todo: "renice -n 0 -p PID and chrt --other -p 0 PID now; Nice= and CPUSchedulingPolicy= of its unit to make it permanent.",
        wrong: "The priority may be intended: a batch service next to a more important one.",
        sources: "sched(7), setpriority(2), systemd.exec(5); sched_prio_to_weight of kernel/sched/core.c, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let scheduling = evidence.each_words(&keys::PROCESS_SCHEDULING)?;
    evidence.each(&keys::PROCESS_BUSIEST_DELAY)?;
    let mut findings = Vec::new();
    let mut longest = 0.0_f64;
    for (process, policy) in scheduling {
        let nice = policy
            .value
            .strip_prefix("nice ")
            .and_then(|nice| nice.parse::<f64>().ok());
        let low = matches!(policy.value, "SCHED_IDLE" | "SCHED_BATCH")
            || nice.is_some_and(|nice| nice >= NICE.value);
        let Some(delay) = wait_for_cpu(evidence, process) else {
            continue;
        };
        if !low || !is_service(evidence, process.name()) {
            continue;
        }
        longest = longest.max(delay.value);
        if delay.value < SOME.value {
            continue;
        }
        let sentence = format!(
            "{} runs at low priority ({}) and waits for a CPU in {} of the window",
            called(evidence, process),
            policy.value,
            say::percent(delay.value)
        );
        let finding = if waits_for_cpu(evidence, process, WAITS.value, LITTLE.value).is_some() {
            Finding::act(process, sentence).severity(Grade::High)
        } else {
            Finding::watch(process, sentence).severity(Grade::Medium)
        };
        findings.push(
            finding
                .confidence(Grade::High)
                .cite(policy.reading)
                .cite(delay.reading)
                .refuted_by("the wait stays at normal priority (`renice -n 0 -p PID`)"),
        );
    }
    if findings.is_empty() {
        let sentence = "no low-priority service waits for a CPU";
        findings.push(Finding::clear(sentence).below(longest, SOME.value));
    }
    Ok(findings)
}
