//! `disk-errors`: a file system or a disk counts errors, or an array lacks a member.
//!
//! A failing disk retries for seconds before it gives up, so errors are latency first and lost data later.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const NEW: Threshold = Threshold {
    name: "errors counted in the window",
    value: 0.0,
    origin: "by definition: a disk that works counts none",
};

const KEPT: Threshold = Threshold {
    name: "errors that the file system recorded before the window",
    value: 0.0,
    origin: "by definition: they stay until the file system is checked",
};

const LACKS: Threshold = Threshold {
    name: "members that an array lacks",
    value: 0.0,
    origin: "by definition: a degraded array reads and rebuilds from the others",
};

pub(crate) static RULE: Rule = Rule {
    id: "disk-errors",
    topic: "disk",
    summary: "a disk or its file system counts errors, or an array lacks a member",
    needs: &[
        &keys::DISK_DEGRADED,
        &keys::DISK_ERRORS,
        &keys::DISK_ERRORS_KEPT,
    ],
    thresholds: &[NEW, KEPT, LACKS],
    knobs: &[],
    measure: Some(Measure::more(&keys::DISK_ERRORS)),
    doc: Doc {
        looks_for: "Error counters of ext4 and btrfs that grow in the window, and degraded md arrays; earlier errors of ext4 and btrfs are watched.",
        hurts: "A failing disk tries again for seconds, so every request on it waits. ext4 may turn read-only, and writes then fail. A degraded array is slower and has lost its redundancy.",
        todo: "Read dmesg and `smartctl -a`, save the data, replace the disk. Check the file system offline (e2fsck -f, which also clears the count), or `btrfs scrub`; for an array, add the missing member (mdadm --add).",
        wrong: "Earlier errors may come from a fault that is already fixed: e2fsck or `btrfs device stats --reset` clears them.",
        sources: "fs/ext4/sysfs.c, fs/btrfs/sysfs.c, drivers/md/md.c, Linux 6.18; Documentation/ABI/testing/sysfs-fs-ext4.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let each = |key| match evidence.each(key) {
        Ok(all) => Ok(all),
        // No disk has this counter.
        Err(Missing { why, .. }) if why.is_none => Ok(Vec::new()),
        Err(missing) => Err(missing),
    };
    let grown = each(&keys::DISK_ERRORS)?;
    let kept = each(&keys::DISK_ERRORS_KEPT).unwrap_or_default();
    let degraded = each(&keys::DISK_DEGRADED).unwrap_or_default();
    let new = grown
        .into_iter()
        .filter(|(_, errors)| errors.value > NEW.value);
    let mut findings: Vec<Finding> = new
        .map(|(disk, errors)| {
            let count = say::count(errors.value, "error");
            let sentence = format!("{} counted {count} within the window", disk.name());
            Finding::act(disk, sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(errors.reading)
                .refuted_by("dmesg has no error of this disk within the window")
        })
        .collect();
    let lacking = degraded
        .into_iter()
        .filter(|(_, lacks)| lacks.value > LACKS.value);
    findings.extend(lacking.map(|(array, lacks)| {
        let sentence = format!(
            "array {} lacks {}",
            array.name(),
            say::count(lacks.value, "member")
        );
        Finding::act(array, sentence)
            .severity(Grade::High)
            .confidence(Grade::High)
            .cite(lacks.reading)
            .refuted_by("/proc/mdstat shows all members, [UU]")
    }));
    for (disk, errors) in kept {
        let is_reported = findings
            .iter()
            .any(|finding| finding.subject == disk.to_string());
        if errors.value <= KEPT.value || is_reported {
            continue;
        }
        let count = say::count(errors.value, "error");
        let sentence = format!(
            "the file system on {} recorded {count} before the window, and none since",
            disk.name()
        );
        findings.push(
            Finding::watch(disk, sentence)
                .severity(Grade::Medium)
                .confidence(Grade::High)
                .cite(errors.reading)
                .refuted_by("the file system was checked since, and the count is 0"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::clear("no disk and no file system counts errors"));
    }
    Ok(findings)
}
