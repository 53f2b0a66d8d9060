//! `cfs-throttled`: a control group used up its CPU quota and was stopped until the next period.
//!
//! The classic cause of a service that waits on a machine with idle CPUs. `nr_throttled` and `nr_periods` of
//! the group's cpu.stat, the same in both versions of control groups (`kernel/sched/fair.c`).

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::group;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const PERIODS: Threshold = Threshold {
    name: "throttled share of the periods",
    value: 0.01,
    origin: "own guess: more than one of the hundred periods in a window of 10 s",
};

const HEAVY: Threshold = Threshold {
    name: "throttled share of the periods that counts as heavy",
    value: 0.10,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: redis stopped in 73 % of its periods had a p99 of 67 ms instead of \
        0.2 ms; redis that was never stopped kept its p99",
};

const FULL: Threshold = Threshold {
    name: "mean busy share of the host's CPUs above which a larger quota gains nothing",
    value: 0.90,
    origin: "own guess: no CPU time is left to give",
};

const LITTLE: Threshold = Threshold {
    name: "share of the time that the group is stopped, below which it is only watched",
    value: 0.01,
    origin: "measured by `cargo xtask faults`: redis, stopped in 6 % of the periods and 0.25 % of the time, kept its p99",
};

pub(crate) static RULE: Rule = Rule {
    id: "cfs-throttled",
    topic: "cpu",
    summary: "a control group is throttled by its CPU quota",
    needs: &[
        &keys::CGROUP_MEMBERS,
        &keys::CGROUP_OWN,
        &keys::CGROUP_QUOTA,
        &keys::CGROUP_THROTTLED,
        &keys::CGROUP_THROTTLED_TIME,
        &keys::CPU_BUSY_MEAN,
    ],
    thresholds: &[PERIODS, HEAVY, FULL, LITTLE],
    knobs: &["cpu.cfs_quota", "jvm.active_cpus"],
    measure: Some(Measure::more(&keys::CGROUP_THROTTLED)),
    doc: Doc {
        looks_for: "A control group with a quota that was throttled in more than 1 % of its periods, in every part of the \
            window. Where it was stopped in at most 10 % of the periods and for less than 1 % of the time, it is only watched.",
        hurts: "When the quota of a period (usually 100 ms) is used up, all threads of the group stop until the next period. \
            A request that hits the stop waits up to a period, even on an idle machine.",
        todo: "Raise or remove the quota (cpu.cfs_quota). A runtime that counts the machine's CPUs instead of the quota's \
            starts too many threads, which use up the quota at once: set its CPU count (jvm.active_cpus). Inside a \
            container the quota is read-only: the container runtime or orchestrator sets it.",
        wrong: "A quota is a contract between tenants; raising it is the operator's decision. One throttled period while a \
            service starts means nothing. Where the host itself is full, a larger quota only moves the wait.",
        sources: "Documentation/scheduler/sched-bwc.rst; Documentation/admin-guide/cgroup-v2.rst (cpu.stat, cpu.max).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let groups = evidence.each(&keys::CGROUP_THROTTLED)?;
    let full = evidence
        .host(&keys::CPU_BUSY_MEAN)
        .ok()
        .filter(|busy| busy.value > FULL.value);
    let mut findings = Vec::new();
    for (group, periods) in &groups {
        if periods.value <= PERIODS.value {
            continue;
        }
        let mut sentence = format!(
            "{} was throttled in {} of its periods",
            group::named(group, evidence),
            say::percent(periods.value)
        );
        let quota = evidence.quantity(&keys::CGROUP_QUOTA, group).ok();
        if let Some(quota) = quota {
            let _ = write!(sentence, " by its quota of {:.2} CPUs", quota.value);
        }
        let time = evidence.quantity(&keys::CGROUP_THROTTLED_TIME, group).ok();
        let members = evidence.words(&keys::CGROUP_MEMBERS, group).ok();
        if let Some(members) = &members {
            let _ = write!(sentence, ", which stops {}", members.value);
        }
        let mut finding = if let Some(full) = full {
            let _ = write!(
                sentence,
                ", on a host that is {} busy itself",
                say::percent(full.value)
            );
            Finding::watch(group, sentence).cite(full.reading)
        } else if periods.value <= HEAVY.value
            && time.as_ref().is_some_and(|time| time.value < LITTLE.value)
        {
            Finding::watch(group, sentence).confidence(Grade::High)
        } else if periods.always(|share| share > 0.0) {
            Finding::act(group, sentence).confidence(Grade::High)
        } else {
            sentence += ", but not in every part of the window";
            Finding::watch(group, sentence).confidence(Grade::Low)
        };
        finding = finding
            .severity(if periods.value > HEAVY.value {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(periods.reading);
        for reading in [quota, time].into_iter().flatten() {
            finding = finding.cite(reading.reading);
        }
        if let Some(members) = members {
            finding = finding.cite(members.reading);
        }
        findings.push(
            group::consider_quota(finding, group)
                .consider("jvm.active_cpus")
                .refuted_by("latency and rate stay the same with the quota removed for a minute"),
        );
    }
    if findings.is_empty() {
        let most = groups
            .iter()
            .map(|(_, periods)| periods.value)
            .fold(0.0, f64::max);
        let limited = evidence
            .each(&keys::CGROUP_QUOTA)
            .map_or(0, |all| all.len());
        // The root group stands for all where none has a quota.
        let sentence = match limited {
            0 => "no control group has a CPU quota".to_owned(),
            n => format!(
                "of {} with a quota, none was throttled in more than {} of its periods",
                say::count(n as f64, "control group"),
                say::percent(most)
            ),
        };
        findings.push(Finding::clear(sentence).below(most, PERIODS.value));
    }
    Ok(findings)
}
