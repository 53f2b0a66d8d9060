//! `cgroup-frozen`: the processes of a control group are stopped by the freezer.
//!
//! A frozen process looks like one that sleeps, and only its group shows why it never answers
//! (`freezer.state` of version 1, `cgroup.freeze` of version 2; kernel/cgroup/freezer.c, Linux 6.18).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{cite_members, who};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const INSIDE: Threshold = Threshold {
    name: "processes in a frozen group",
    value: 0.0,
    origin: "by definition: a frozen process does nothing",
};

const ALWAYS: Threshold = Threshold {
    name: "share of samples in which a permanently frozen group is frozen",
    value: 1.0,
    origin: "by definition: less means that it was thawed in between",
};

const LITTLE: Threshold = Threshold {
    name: "share of samples in which a group is frozen, below which it is only watched",
    value: 0.01,
    origin: "by definition p99 begins at 1 % of the time; measured by `cargo xtask faults --random 40 --seed 5001 --layer host`: freezes of 2 ms, \
        in 0.6 % of the samples, did not affect any client's p99",
};

pub(crate) static RULE: Rule = Rule {
    id: "cgroup-frozen",
    topic: "cgroup",
    summary: "a control group is frozen: its processes do not run",
    needs: &[
        &keys::CGROUP_FROZEN,
        &keys::CGROUP_FROZEN_SHARE,
        &keys::CGROUP_MEMBERS,
        &keys::CGROUP_OWN,
    ],
    thresholds: &[INSIDE, ALWAYS, LITTLE],
    knobs: &["cpu.cgroup_freezer"],
    measure: Some(Measure::more(&keys::CGROUP_FROZEN)),
    doc: Doc {
        looks_for: "A control group that is frozen and contains processes; one that is frozen in less than 1 % of the samples is watched.",
        hurts: "No thread of the group runs. Connections are still accepted by the kernel until the listen queue is full, \
            so clients wait and time out.",
        todo: "Thaw the group (cpu.cgroup_freezer=thawed; `docker unpause`, `systemctl thaw`), and find out who froze it. A group that is frozen \
            repeatedly is frozen by a tool: backups and snapshots pause containers, and so do CRIU and batch schedulers.",
        wrong: "A container that was paused on purpose is frozen as well.",
        sources: "Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst; Documentation/admin-guide/cgroup-v2.rst \
            (cgroup.freeze).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let groups = evidence.each(&keys::CGROUP_FROZEN)?;
    let frozen = groups
        .iter()
        .filter(|(_, inside)| inside.value > INSIDE.value);
    let mut findings: Vec<Finding> = frozen
        .map(|(group, inside)| {
            let who = who(group, evidence);
            let run = if inside.value > 1.0 {
                format!("its {} processes do not run", say::whole(inside.value))
            } else {
                "its process does not run".to_owned()
            };
            let share = evidence.quantity(&keys::CGROUP_FROZEN_SHARE, group).ok();
            // Thawing helps a group that stays frozen; a group that is frozen repeatedly would freeze again.
            let finding = match share.filter(|share| share.value < ALWAYS.value) {
                None => Finding::act(group, format!("{who} is frozen: {run}"))
                    .severity(Grade::High)
                    .turn_device("cpu.cgroup_freezer", group.name(), "thawed"),
                Some(share) => {
                    let part = say::percent(share.value);
                    let sentence = format!(
                        "{who} is frozen repeatedly, in {part} of the samples; meanwhile {run}"
                    );
                    let finding = if share.value < LITTLE.value {
                        Finding::watch(group, sentence)
                    } else {
                        Finding::act(group, sentence)
                    };
                    finding.severity(Grade::Medium).cite(share.reading)
                }
            };
            let finding = finding
                .confidence(Grade::High)
                .cite(inside.reading)
                .refuted_by("the group was paused on purpose, and no client waits for it");
            cite_members(finding, group, evidence)
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::clear("no control group with processes is frozen"));
    }
    Ok(findings)
}
