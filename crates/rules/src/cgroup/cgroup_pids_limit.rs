//! `cgroup-pids-limit`: a control group cannot start another thread or process.
//!
//! `pids.events` counts each fork that the limit refused (kernel/cgroup/pids.c). The program sees EAGAIN: "unable to
//! create native thread", "fork: Resource temporarily unavailable".

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{cite_members, who};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const REFUSED: Threshold = Threshold {
    name: "threads and processes refused in the window",
    value: 0.0,
    origin: "by definition: a program that wants a thread and gets none fails",
};

const NEAR: Threshold = Threshold {
    name: "used share of the limit",
    value: 0.90,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: a service at 89 % of its limit lost nothing, one that was refused \
        threads lost 60 % of its requests",
};

pub(crate) static RULE: Rule = Rule {
    id: "cgroup-pids-limit",
    topic: "cgroup",
    summary: "a control group is at its limit of threads and processes",
    needs: &[
        &keys::CGROUP_MEMBERS,
        &keys::CGROUP_OWN,
        &keys::CGROUP_PIDS,
        &keys::CGROUP_PIDS_LIMIT,
        &keys::CGROUP_PIDS_REFUSED,
    ],
    thresholds: &[REFUSED, NEAR],
    knobs: &["proc.cgroup_pids"],
    measure: Some(Measure::more(&keys::CGROUP_PIDS_REFUSED)),
    doc: Doc {
        looks_for: "A control group to which the kernel refused a thread or process in the window (act), or that uses more than \
            90 % of its limit (watch).",
        hurts: "fork and pthread_create fail with EAGAIN. Servers drop the connection, pools stay small, a JVM throws \
            OutOfMemoryError: unable to create native thread.",
        todo: "Raise the limit (proc.cgroup_pids; systemd TasksMax=, `docker run --pids-limit`), or let the service use fewer \
            threads. A number that only grows is a leak, which a higher limit only delays.",
        wrong: "Version 1, and version 2 before Linux 6.11, count a refusal for the group that asked, not for the one above it that has the \
            limit: refusals in groups below count where that one is full at the end of the window. Refusals by the \
            user's own limit (ulimit -u) and by kernel.pid_max are not counted.",
        sources: "Documentation/admin-guide/cgroup-v2.rst (pids.max, pids.events); kernel/cgroup/pids.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let refusals = evidence.each(&keys::CGROUP_PIDS_REFUSED)?;
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (group, refused) in &refusals {
        let used = evidence.quantity(&keys::CGROUP_PIDS, group).ok();
        let limit = evidence.quantity(&keys::CGROUP_PIDS_LIMIT, group).ok();
        let share = match (&used, &limit) {
            (Some(used), Some(limit)) if limit.value > 0.0 => used.value / limit.value,
            _ => 0.0,
        };
        most = most.max(share);
        let of = match (&used, &limit) {
            (Some(used), Some(limit)) => format!(
                "has {} of {} threads and processes",
                say::whole(used.value),
                say::whole(limit.value)
            ),
            _ => "is at its limit of threads and processes".to_owned(),
        };
        let who = who(group, evidence);
        let finding = if refused.value > REFUSED.value {
            let sentence = format!(
                "{who} {of}: {} more refused in the window",
                say::whole(refused.value)
            );
            Finding::act(group, sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
        } else if share > NEAR.value {
            Finding::watch(group, format!("{who} {of}")).severity(Grade::Low)
        } else {
            continue;
        };
        let mut finding = finding
            .cite(refused.reading)
            .consider_device("proc.cgroup_pids", group.name())
            .refuted_by("the program works without the threads that it was refused");
        for reading in [used, limit].into_iter().flatten() {
            finding = finding.cite(reading.reading);
        }
        findings.push(cite_members(finding, group, evidence));
    }
    if findings.is_empty() {
        let sentence = format!(
            "no control group was refused a thread; the fullest is at {} of its limit",
            say::percent(most)
        );
        findings.push(Finding::clear(sentence).below(most, NEAR.value));
    }
    Ok(findings)
}
