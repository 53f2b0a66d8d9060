//! `disk-full`: a file system has no room left for what is written to it.
//!
//! Bytes or inodes: both end in ENOSPC, "No space left on device". A server that cannot write its log or its journal stops,
//! or drops what it should keep.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const LEFT: Threshold = Threshold {
    name: "available share of the bytes or inodes",
    value: 0.01,
    origin: "own guess: ext4 and xfs slow down before they are full, and a log rotation needs room",
};

const ROOM: Threshold = Threshold {
    name: "available bytes below which a small share counts",
    value: 1024.0 * 1024.0 * 1024.0,
    origin: "own guess: 1 GiB, since one percent of a large disk is plenty",
};

const SOON: Threshold = Threshold {
    name: "seconds until it is full at the rate of the window",
    value: 1800.0,
    origin: "own guess: half an hour is the time needed to act",
};

pub(crate) static RULE: Rule = Rule {
    id: "disk-full",
    topic: "disk",
    summary: "a file system has no room left, in bytes or inodes",
    needs: &[
        &keys::MOUNT_AVAILABLE,
        &keys::MOUNT_FILLING,
        &keys::MOUNT_INODES_FREE,
        &keys::MOUNT_ROOM,
    ],
    thresholds: &[LEFT, ROOM, SOON],
    knobs: &[],
    measure: Some(Measure::less(&keys::MOUNT_AVAILABLE)),
    doc: Doc {
        looks_for: "A writable local file system with less than 1 % of the bytes (and less than 1 GiB) or less than 1 % of the inodes \
            available; or one that will be full within half an hour at the rate of the window (watch). A path below /proc/PID/root is a \
            file system that only the mount namespace of that process has, such as /dev/shm of a container.",
        hurts: "Writes fail with ENOSPC. Logs are lost, databases stop or refuse writes, temporary files and sockets cannot be created.",
        todo: "Find what fills it (`du -xh --max-depth=2 POINT`; inodes: `du --inodes -x POINT`; deleted files that are still open: \
            `lsof +L1`), rotate or delete it, or make the file system larger. The number of ext4 inodes is fixed when the file \
            system is created.",
        wrong: "A file system that is full on purpose and no longer written does no harm. Root can still write into the \
            blocks that ext4 reserves. User and project quotas are not checked. The free space of network file systems and FUSE is not \
            read: if a service has files open on one, this rule is undecided.",
        sources: "statfs(2); Documentation/filesystems/ext4.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let mounts = evidence.each(&keys::MOUNT_AVAILABLE)?;
    let mut findings = Vec::new();
    let mut least = 1.0_f64;
    for (mount, share) in &mounts {
        let room = evidence.quantity(&keys::MOUNT_ROOM, mount)?;
        let inodes = evidence.quantity(&keys::MOUNT_INODES_FREE, mount).ok();
        least = least
            .min(share.value)
            .min(inodes.map_or(1.0, |inodes| inodes.value));
        let full = share.value < LEFT.value && room.value < ROOM.value;
        let finding = if full {
            let sentence = format!(
                "{} is full: {} of its bytes available ({})",
                mount.name(),
                say::percent(share.value),
                say::bytes(room.value)
            );
            act(mount, sentence, share.value).cite(share.reading)
        } else if let Some(inodes) = inodes.filter(|inodes| inodes.value < LEFT.value) {
            let sentence = format!(
                "{} has {} of its inodes left: no more files can be created, though {} is available",
                mount.name(),
                say::percent(inodes.value),
                say::bytes(room.value)
            );
            act(mount, sentence, inodes.value).cite(inodes.reading)
        } else if let Some((filling, seconds)) = soon(evidence, mount, &room) {
            let sentence = format!(
                "{} fills at {}/s and will be full in {} minutes",
                mount.name(),
                say::bytes(filling.value),
                say::whole((seconds / 60.0).ceil())
            );
            Finding::watch(mount, sentence)
                .severity(Grade::Medium)
                .cite(filling.reading)
        } else {
            continue;
        };
        findings.push(
            finding
                .cite(room.reading)
                .refuted_by("nothing has to be written there: no program reports ENOSPC"),
        );
    }
    if findings.is_empty() {
        // One that a service writes to and that could not be read may be the full one.
        if let Some(unread) = evidence.unread(&keys::MOUNT_AVAILABLE) {
            return Err(unread);
        }
        let sentence = format!("the fullest file system has {} left", say::percent(least));
        findings.push(Finding::clear(sentence).above(least, LEFT.value));
    }
    Ok(findings)
}

fn act(mount: &Subject, sentence: String, left: f64) -> Finding {
    Finding::act(mount, sentence)
        .severity(if left < LEFT.value / 10.0 {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(Grade::High)
}

/// The growth that soon fills the rest, and the seconds until then.
fn soon<'e>(
    evidence: &'e Evidence,
    mount: &Subject,
    room: &Quantity<'e>,
) -> Option<(Quantity<'e>, f64)> {
    let filling = evidence.quantity(&keys::MOUNT_FILLING, mount).ok()?;
    if !filling.lasts(|rate| rate > 0.0) {
        return None;
    }
    let seconds = room.value / filling.value;
    (seconds < SOON.value).then_some((filling, seconds))
}
