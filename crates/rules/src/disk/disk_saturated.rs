//! `disk-saturated`: a disk is always busy, requests take long, and tasks wait for them.
//!
//! Three numbers must agree: the disk is never idle, a request takes milliseconds, and some task waits. The queue shows the cause:
//! many waiting requests mean too much load for the disk, one means that the disk itself is slow. /proc/PID/io shows which
//! processes make the requests.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const BUSY: Threshold = Threshold {
    name: "share of the window with a request in flight",
    value: 0.90,
    origin: "own guess: hardly ever idle",
};

const SLOW: Threshold = Threshold {
    name: "mean time of a request, seconds",
    value: 0.005,
    origin: "own guess: flash takes less than 1 ms, a spindle 4 to 10 ms",
};

const WAITING: Threshold = Threshold {
    name: "share of time in which some task waits for a disk",
    value: 0.10,
    origin: "own guess, as in disk-queue",
};

const QUEUED: Threshold = Threshold {
    name: "mean number of requests above which the load is too large, rather than the disk slow",
    value: 4.0,
    origin: "own guess: one or two programs that wait for each of their requests",
};

pub(crate) static RULE: Rule = Rule {
    id: "disk-saturated",
    topic: "disk",
    summary: "a disk cannot keep up and tasks wait for it",
    needs: &[
        &keys::DISK_AWAIT,
        &keys::DISK_BUSY,
        &keys::DISK_QUEUE,
        &keys::DISK_USERS,
        &keys::PSI_IO_SOME,
    ],
    thresholds: &[BUSY, SLOW, WAITING, QUEUED],
    knobs: &["disk.wbt"],
    measure: Some(Measure::more(&keys::DISK_AWAIT)),
    doc: Doc {
        looks_for: "A disk with a request in flight in more than 90 % of every part of the window and more than 5 ms per request, while \
            some task waits for a disk in more than 10 % of the time.",
        hurts: "Every read that misses the page cache and every sync waits for the requests before it. Threads in that wait serve \
            no requests and cannot be killed.",
        todo: "The finding names the processes with most bytes: move the batch job to another disk or another hour, limit it \
            (io.max of its group, `ionice`), or let background writes yield to reads (disk.wbt). If the queue is short, the \
            disk itself is slow: check the volume's limits, the hypervisor, the array.",
        wrong: "A disk on top of others (dm, md, loop) counts the same requests as the one below. A batch job that may wait \
            does no harm. The kernel counts bytes of a process when it dirties pages; the disk may write them later.",
        sources: "Brendan Gregg, Systems Performance, disks; Documentation/admin-guide/iostats.rst; Documentation/accounting/psi.rst.",
    },
    judge,
};

/// A disk that is always busy and slow, while tasks wait.
pub(crate) fn slow(evidence: &Evidence) -> Option<&Subject> {
    let disks = evidence.each(&keys::DISK_BUSY).unwrap_or_default();
    let mut disks = disks.into_iter().map(|(disk, _)| disk);
    disks.find(|disk| is_slow(evidence, disk))
}

/// This disk is always busy and slow, while tasks wait.
pub(crate) fn is_slow(evidence: &Evidence, disk: &Subject) -> bool {
    let some = evidence.host(&keys::PSI_IO_SOME);
    let value = |key| evidence.quantity(key, disk);
    some.is_ok_and(|some| some.value > WAITING.value)
        && value(&keys::DISK_BUSY).is_ok_and(|busy| busy.lasts(|share| share > BUSY.value))
        && value(&keys::DISK_AWAIT).is_ok_and(|time| time.value > SLOW.value)
}

fn judge(evidence: &Evidence) -> Judgement {
    let disks = evidence.each(&keys::DISK_BUSY)?;
    let mut findings = Vec::new();
    let (mut busiest, mut waits) = (0.0_f64, None);
    for (disk, busy) in &disks {
        busiest = busiest.max(busy.value);
        if !busy.lasts(|share| share > BUSY.value) {
            continue;
        }
        // A disk that completed nothing all the time it was busy is the slowest of all.
        let time = evidence.quantity(&keys::DISK_AWAIT, disk).ok();
        if time.is_some_and(|time| time.value <= SLOW.value) {
            continue;
        }
        let waiting = evidence.host(&keys::PSI_IO_SOME)?;
        waits = Some(waiting.value);
        if waiting.value <= WAITING.value {
            continue;
        }
        let queue = evidence.quantity(&keys::DISK_QUEUE, disk)?;
        let each = time.map_or("and none was completed".to_owned(), |time| {
            format!("each takes {}", number_of(Unit::Seconds, time.value))
        });
        let mut sentence = if queue.value > QUEUED.value {
            format!(
                "{} cannot keep up: {} requests queued or in flight, {each}",
                disk.name(),
                say::whole(queue.value)
            )
        } else {
            format!(
                "{} is slow: {queue:.1} requests in flight, {each}",
                disk.name(),
                queue = queue.value
            )
        };
        let _ = write!(
            sentence,
            "; tasks wait for a disk in {} of the time",
            say::percent(waiting.value)
        );
        let users = evidence.words(&keys::DISK_USERS, &Subject::host()).ok();
        let users = users.filter(|users| users.value != "none");
        if let Some(users) = &users {
            let _ = write!(sentence, "; most bytes: {}", users.value);
        }
        let mut finding = Finding::act(disk, sentence)
            .severity(Grade::High)
            .confidence(Grade::High)
            .cite(busy.reading)
            .cite(queue.reading)
            .cite(waiting.reading)
            .consider_device("disk.wbt", disk.name())
            .refuted_by("the service is no faster on another disk, or while the processes with most bytes are stopped");
        for reading in time
            .map(|time| time.reading)
            .into_iter()
            .chain(users.map(|users| users.reading))
        {
            finding = finding.cite(reading);
        }
        findings.push(finding);
    }
    if findings.is_empty() {
        let clear = match waits {
            Some(waits) => Finding::clear(format!(
                "a disk is slow and never idle, but tasks wait for it in only {} of the time",
                say::percent(waits)
            ))
            .below(waits, WAITING.value),
            None => Finding::clear(format!(
                "the busiest disk is busy in {} of the time, and none is both busy and slow",
                say::percent(busiest)
            ))
            .below(busiest, BUSY.value),
        };
        findings.push(clear);
    }
    Ok(findings)
}
