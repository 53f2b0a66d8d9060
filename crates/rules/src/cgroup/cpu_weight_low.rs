//! `cpu-weight-low`: a control group with a low CPU weight waits while others run.
//!
//! The scheduler shares a full CPU between groups by their weights (`cpu.shares`, `cpu.weight`; kernel/sched/fair.c). A weight of 2
//! against 1024 leaves 0.2 % of a CPU that others fill, and costs nothing on an idle one.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{cite_members, who};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WEIGHT: Threshold = Threshold {
    name: "weight as a share of the default",
    value: 0.5,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: next to busy groups, half of the default took p99 of redis from 0.2 to \
        1.3 ms, 3 % of it to 4.9 ms",
};

const WAITS: Threshold = Threshold {
    name: "share of the window in which the group waits for a CPU",
    value: 0.20,
    origin: "own guess: a group that always has work and equal neighbours waits for half of the time",
};

const SOME: Threshold = Threshold {
    name: "the same, for a process (version 2: a group) that waits for more than half as long as it runs",
    value: 0.02,
    origin: "measured by `cargo xtask faults --random 34 --seed 606`: memcached that waited for 2.5 % of the time and ran for 3 % had a p99 of 5.9 \
        ms instead of 0.14 ms",
};

const FELT: Threshold = Threshold {
    name: "the same, from which on to act",
    value: 0.05,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: redis that waited for 4.2 % of the window had a p99 of 0.9 and 0.7 ms, \
        for 5.3 % of it 4.9 ms",
};

const FULL: Threshold = Threshold {
    name: "busy share of the fullest CPU, from which on a short wait is acted on",
    value: 0.80,
    origin: "own guess: a CPU that others leave idle is there for the group whatever its weight; threads that wake together wait for each other",
};

pub(crate) static RULE: Rule = Rule {
    id: "cpu-weight-low",
    topic: "cgroup",
    summary: "a control group waits for a CPU because its weight is low",
    needs: &[
        &keys::CGROUP_CPU_RAN,
        &keys::CGROUP_CPU_WAIT,
        &keys::CGROUP_MEMBERS,
        &keys::CGROUP_OWN,
        &keys::CGROUP_WEIGHT,
        &keys::CPU_BUSY,
    ],
    thresholds: &[WEIGHT, WAITS, SOME, FELT, FULL],
    knobs: &["cpu.cgroup_weight"],
    measure: Some(Measure::more(&keys::CGROUP_CPU_WAIT)),
    doc: Doc {
        looks_for: "A control group with less than half of the default CPU weight, in which a process (in version 2 any task) waits for a \
            CPU in more than 20 % of most parts of the window, or in more than 2 % and for more than half as long as it runs, which is \
            only watched while no CPU is 80 % busy.",
        hurts: "On a CPU that others fill, the group runs only for its share of the weights. With shares of 2 it waits for \
            hundreds of milliseconds at a time.",
        todo: "Give the group the default weight (cpu.cgroup_weight=1; systemd CPUWeight=100, Kubernetes: a CPU request), or lower \
            the weight of the busy group.",
        wrong: "A low weight is right for a backup that may wait. In version 1 the wait is that of one \
            thread. A wait that a quota causes counts as well; cfs-throttled then reports it.",
        sources: "Documentation/admin-guide/cgroup-v2.rst (cpu.weight); Documentation/scheduler/sched-design-CFS.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let Ok(groups) = evidence.each(&keys::CGROUP_WEIGHT) else {
        // The root represents all groups where every weight is the default.
        evidence.each(&keys::CGROUP_CPU_WAIT)?;
        return Ok(vec![Finding::clear(
            "every control group has the default CPU weight",
        )]);
    };
    let busy = evidence.each(&keys::CPU_BUSY).unwrap_or_default();
    let others_run = busy.is_empty() || busy.iter().any(|(_, busy)| busy.value >= FULL.value);
    let mut findings = Vec::new();
    let (mut most, mut low) = (0.0_f64, 0);
    let mut missing = None;
    for (group, weight) in groups {
        if weight.value >= WEIGHT.value {
            continue;
        }
        low += 1;
        let waits = match evidence.quantity(&keys::CGROUP_CPU_WAIT, group) {
            Ok(waits) => waits,
            Err(why) => {
                // A group without processes waits for nothing.
                missing = missing.or_else(|| {
                    evidence
                        .words(&keys::CGROUP_MEMBERS, group)
                        .is_ok()
                        .then_some(why)
                });
                continue;
            }
        };
        most = most.max(waits.value);
        let ran = evidence.quantity(&keys::CGROUP_CPU_RAN, group).ok();
        let as_long = ran.is_some_and(|ran| waits.value >= 0.5 * ran.value);
        let line = if as_long { SOME.value } else { WAITS.value };
        if !waits.lasts(|share| share > line) {
            continue;
        }
        let sentence = format!(
            "{} waits for a CPU in {} of the time: its CPU weight is {} of the default",
            who(group, evidence),
            say::percent(waits.value),
            say::percent(weight.value)
        );
        let felt = !as_long || waits.value > WAITS.value || others_run && waits.value >= FELT.value;
        let finding = if felt {
            Finding::act(group, sentence)
        } else {
            Finding::watch(group, sentence)
        };
        let finding = finding
            .severity(if waits.value > 0.5 {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(waits.reading)
            .cite(weight.reading)
            .turn_device("cpu.cgroup_weight", group.name(), "1")
            .refuted_by(
                "the wait stays with the default weight: the CPUs are full of the group's own work",
            );
        findings.push(cite_members(finding, group, evidence));
    }
    match missing {
        Some(missing) if findings.is_empty() => return Err(missing),
        _ => {}
    }
    if findings.is_empty() {
        let sentence = format!(
            "{} with a low CPU weight, and none waits for a CPU in more than {} of the time",
            say::count(f64::from(low), "control group"),
            say::percent(most)
        );
        findings.push(Finding::clear(sentence).below(most, WAITS.value));
    }
    Ok(findings)
}
