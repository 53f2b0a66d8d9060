//! `process-blocked`: a process is stuck in an uninterruptible wait.
//!
//! State D waits for the kernel itself: a disk, a network file system, a frozen file system, a lock of the kernel. It cannot be
//! killed, and it counts as load without using a CPU.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::disk::disk_sync;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const BLOCKED: Threshold = Threshold {
    name: "share of the samples in state D",
    value: 0.90,
    origin: "own guess: every one of four samples",
};

const STUCK: Threshold = Threshold {
    name: "CPU use in CPUs, below which the process makes no progress at all",
    value: 0.001,
    origin: "own guess: less than one tick in ten seconds",
};

pub(crate) const WRITES: Threshold = Threshold {
    name: "share of the samples in which a thread waits in state D in a system call that changes a file",
    value: 0.10,
    origin: "measured by `cargo xtask faults --random 26 --seed 707`: a file system that was frozen for 136 ms of each second took p99 from 2 to 157 ms",
};

const FROZEN: Threshold = Threshold {
    name: "times that a thread begins to wait for a frozen file system, from which on it counts as frozen repeatedly",
    value: 2.0,
    origin: "by definition: one may be the snapshot of a backup",
};

pub(crate) static RULE: Rule = Rule {
    id: "process-blocked",
    topic: "process",
    summary: "a process is stuck in an uninterruptible wait",
    needs: needs!(
        [
            &keys::PROCESS_BLOCKED,
            &keys::PROCESS_FREEZES,
            &keys::PROCESS_SLEEPS,
            &keys::PROCESS_SYNCING,
            &keys::PROCESS_WRITE_BEHIND,
            &keys::PROCESS_WRITE_BLOCKED,
            &keys::SCHED_PROCESS_CPU
        ],
        SERVICE
    ),
    thresholds: &[BLOCKED, STUCK, WRITES, FROZEN],
    knobs: &[],
    measure: Some(Measure::more(&keys::PROCESS_BLOCKED)),
    doc: Doc {
        looks_for: "A process whose first thread is in state D in every sample of the window, and that is the judged process, is a child of it, answers on a port, or makes no progress at all; or a process with a thread in state D in a write in a tenth of the samples (only watched where that is behind its own calls of fsync: disk-sync), or in two samples for a frozen file system (one is watched).",
        hurts: "The thread does nothing else meanwhile: in an event loop all clients of the process wait.",
        todo: "See where it waits (/proc/PID/stack, named in the finding): fsync and writes wait for a disk, rpc_wait for NFS, percpu_rwsem_wait or freeze for a frozen file system (fsfreeze -u).",
        wrong: "A backup or another job that reads a disk all the time is in state D in most samples and does no harm; it is ignored while it makes progress.",
        sources: "proc(5); Brendan Gregg, Linux Load Averages: Solving the Mystery (2017); Documentation/filesystems, freeze_super of fs/super.c, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let blocked = evidence.each(&keys::PROCESS_BLOCKED)?;
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (process, share) in &blocked {
        let used = evidence.quantity(&keys::SCHED_PROCESS_CPU, process);
        let stuck = used.as_ref().is_ok_and(|cpu| cpu.value < STUCK.value);
        if !stuck && !is_service(evidence, process.name()) {
            continue;
        }
        most = most.max(share.value);
        if share.value < BLOCKED.value {
            continue;
        }
        let sleeps = evidence.words(&keys::PROCESS_SLEEPS, process);
        let place = sleeps
            .as_ref()
            .map_or_else(|_| String::new(), |sleeps| format!(": {}", sleeps.value));
        let progress = if stuck {
            "and makes no progress"
        } else {
            "in every sample"
        };
        let sentence = format!(
            "{} is in an uninterruptible wait (state D) {progress}{place}",
            called(evidence, process)
        );
        let mut finding = Finding::act(process, sentence)
            .severity(if stuck { Grade::High } else { Grade::Medium })
            .cite(share.reading);
        if let Ok(sleeps) = sleeps {
            finding = finding.cite(sleeps.reading);
        }
        if let Ok(used) = used {
            finding = finding.cite(used.reading);
        }
        findings.push(finding.refuted_by("/proc/PID/stack shows a different function each time"));
    }
    if findings.is_empty() {
        findings = frozen(evidence);
        let is_new = |finding: &Finding| findings.iter().all(|one| one.subject != finding.subject);
        let more: Vec<Finding> = writers(evidence).into_iter().filter(is_new).collect();
        findings.extend(more);
    }
    if findings.is_empty() {
        let sentence = format!(
            "no service is stuck: at most {} of the samples in state D",
            say::percent(most)
        );
        findings.push(Finding::clear(sentence).below(most, BLOCKED.value));
    }
    Ok(findings)
}

/// How often the process waited for a frozen file system, where that is repeated.
pub(crate) fn freezes<'e>(evidence: &'e Evidence, process: &Subject) -> Option<Quantity<'e>> {
    let met = evidence.quantity(&keys::PROCESS_FREEZES, process).ok();
    met.filter(|met| met.value >= FROZEN.value)
}

/// Processes that wait for a file system that is frozen repeatedly.
fn frozen(evidence: &Evidence) -> Vec<Finding> {
    let shares = evidence.each(&keys::PROCESS_FREEZES).unwrap_or_default();
    let met = shares
        .into_iter()
        .filter(|(_, met)| met.value >= 1.0)
        .filter(|(process, _)| is_service(evidence, process.name()));
    let finding = |(process, met): (&Subject, Quantity<'_>)| {
        let sentence = format!(
            "{} waited for a frozen file system {}: its writes continue only after a thaw",
            called(evidence, process),
            say::count(met.value, "time")
        );
        let finding = if met.value >= FROZEN.value {
            Finding::act(process, sentence)
        } else {
            Finding::watch(process, sentence)
        };
        finding
            .severity(Grade::Medium)
            .confidence(Grade::High)
            .cite(met.reading)
            .refuted_by(
                "no program calls FIFREEZE (fsfreeze, snapshots of LVM, backups of virtual machines)",
            )
    };
    met.map(finding).collect()
}

/// Processes that are often blocked in a write: by a frozen file system, a journal that commits, too many dirty pages.
fn writers(evidence: &Evidence) -> Vec<Finding> {
    let shares = evidence
        .each(&keys::PROCESS_WRITE_BLOCKED)
        .unwrap_or_default();
    let often = shares
        .into_iter()
        .filter(|(_, share)| share.value >= WRITES.value)
        // A backup that writes as fast as it can is blocked by its own writes.
        .filter(|(process, _)| is_service(evidence, process.name()));
    let finding = |(process, share): (&Subject, Quantity<'_>)| {
        let sentence = format!(
            "{} is blocked in writes to files (state D) in {} of the samples",
            called(evidence, process),
            say::percent(share.value)
        );
        if let Some(behind) = disk_sync::behind(evidence, process) {
            let sentence = format!("{sentence}, behind its own calls of fsync: see disk-sync");
            return Finding::watch(process, sentence)
                .severity(Grade::Medium)
                .cite(share.reading)
                .cite(behind.reading)
                .refuted_by("its writes are blocked as often with syncing disabled for a minute");
        }
        let causes = "a frozen file system, its journal, or too many dirty pages";
        Finding::act(process, format!("{sentence}: {causes}"))
            .severity(Grade::Medium)
            .cite(share.reading)
            .refuted_by("/proc/PID/stack shows no function of a file system")
    };
    often.map(finding).collect()
}
