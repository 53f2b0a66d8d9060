//! `disk-sync`: programs wait for the disk to make each write durable.
//!
//! fsync ends in a flush of the disk's cache, and on slow or virtual disks that takes milliseconds. The disk looks idle between:
//! neither its queue nor its throughput shows it. Flushes are counted separately since Linux 5.5 (block/blk-flush.c).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Quantity, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use super::disk_saturated;
use crate::process::{SERVICE, called, is_service, process_blocked};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "flushes per second times the time of one",
    value: 0.20,
    origin: "own guess: one thread that syncs spends a fifth of its time in it",
};

const FLUSHES: Threshold = Threshold {
    name: "the same on a disk that is slow for any request, below which the flushes only wait behind other requests",
    value: 0.50,
    origin: "own guess; measured with redis that syncs each write to a disk of 16 MB/s, to which four other programs write: 8 flushes per \
        second of 30 ms each, 0.25",
};

const SLOW: Threshold = Threshold {
    name: "mean time of a flush, seconds",
    value: 0.002,
    origin: "own guess: a disk with a cache that survives a power cut answers in less than 0.5 ms",
};

const WAITING: Threshold = Threshold {
    name: "share of time in which some task waits for a disk",
    value: 0.10,
    origin: "own guess, as in disk-queue",
};

const SYNCING: Threshold = Threshold {
    name: "share of the samples in which a service waits for a flush, from which on it is watched",
    value: 0.03,
    origin: "measured by `cargo xtask faults --random 60 --seed 4001 --layer host`: a flush for each 18th request, 7.4 % of the time, took p99 \
        from 0.8 to 12.0 ms",
};

const MOSTLY: Threshold = Threshold {
    name: "the same, from which on there is something to act on",
    value: 0.50,
    origin: "measured by `cargo xtask faults`: logs in fsync in 100 % of the samples (seeds 8001 and 10001) took p99 from 1.4 to 10585 ms and from 3.8 to \
        8088 ms; at 30 % an application took p99 from 0.2 to 3.9 ms, and at 12 % and below the p99 of most stayed",
};

const QUEUED: Threshold = Threshold {
    name: "the same, where its writes are blocked in a tenth of the samples, most of them while another of its threads is in a flush",
    value: 0.30,
    origin: "measured by hand with a server of which each request appends to one file and syncs it: in fsync in 40 % of the samples, blocked in writes \
        in 26 %, p50 of 5.6 ms; without, 0.4 ms",
};

const SLOWEST: Threshold = Threshold {
    name: "share of a service's calls of fsync that take 10 ms or longer, from which on there is something to act on",
    value: 0.005,
    origin: "measured by `cargo xtask faults`, seeds 31003 and 31004: logs with p99 of 20.8 and 33.6 ms, 2.7 and 2.9 ms without the fault, were in fsync \
        in 6 % and 12 % of the samples as before; half of one in a hundred is the share of p99 that half of the requests cause",
};

const TIMES: Threshold = Threshold {
    name: "longest of them, as a multiple of the median",
    value: 2.0,
    origin: "measured by `cargo xtask faults`, seeds 31005 and 31006: p99 from 0.5, 0.6 and 1.8 to 9.1, 8.3 and 11.5 ms, with a longest call of 2.6, 4.8 and 3.1 \
        times the median; where all calls are as long, the disk is slow rather than its tail",
};

const OFTEN: Threshold = Threshold {
    name: "its calls of fsync per second",
    value: 5.0,
    origin: "own guess: a thread in the background that syncs once a second delays no client",
};

pub(crate) static RULE: Rule = Rule {
    id: "disk-sync",
    topic: "disk",
    summary: "programs wait for slow flushes: fsync for each write",
    needs: needs!(
        [
            &keys::DISK_AWAIT,
            &keys::DISK_BUSY,
            &keys::DISK_FLUSHES,
            &keys::DISK_FLUSH_TIME,
            &keys::DISK_USERS,
            &keys::PROCESS_FREEZES,
            &keys::PROCESS_SYNCING,
            &keys::PROCESS_SYNCS,
            &keys::PROCESS_SYNC_LONGEST,
            &keys::PROCESS_SYNC_MEDIAN,
            &keys::PROCESS_SYNC_SLOW,
            &keys::PROCESS_WRITE_BEHIND,
            &keys::PROCESS_WRITE_BLOCKED,
            &keys::PSI_IO_SOME
        ],
        SERVICE
    ),
    thresholds: &[
        SHARE, FLUSHES, SLOW, WAITING, SYNCING, MOSTLY, QUEUED, SLOWEST, TIMES, OFTEN,
    ],
    knobs: &[],
    measure: Some(Measure::more(&keys::DISK_FLUSH_TIME)),
    doc: Doc {
        looks_for: "A disk whose flushes take more than 2 ms each and together more than 20 % of the window, while some task waits for a \
            disk in more than 10 % of the time; where the disk is slow for any request and flushes take less than half of its time, it is only watched (disk-saturated). A process that serves clients and is in fsync in 3 % of the samples is watched; in 50 %, or in 30 % if its other writes wait behind that, it is something to act on, unless its disk is slow for any request (disk-saturated): then fewer syncs are the lesser remedy, and it is watched. A service \
            is also something to act on if it calls fsync five times a second or more, 0.5 % of the calls take 10 ms or longer, and the longest is more than twice the median; it is watched while its file system is frozen repeatedly (process-blocked).",
        hurts: "Each commit or synced log line waits for a flush. The rate of one writer is at most one over that time, \
            whatever the CPU and the disk could do.",
        todo: "Sync in groups instead of for each request (commit_delay of PostgreSQL, appendfsync everysec of Redis, buffered access \
            logs), do not mount with `sync` or `dirsync`, or use a disk with a protected cache.",
        wrong: "Losing the last writes in a crash may not be acceptable: then only a faster disk helps. The journal of ext4 flushes for \
            others, too; a disk without a cache to flush shows none.",
        sources: "fsync(2); block/blk-flush.c; Documentation/admin-guide/iostats.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let mut syncing = syncing(evidence);
    for finding in slowest(evidence) {
        syncing.retain(|known| known.outcome == Outcome::Act || known.subject != finding.subject);
        syncing.insert(0, finding);
    }
    let disks = match evidence.each(&keys::DISK_FLUSHES) {
        Err(absence) if syncing.is_empty() => return Err(absence),
        disks => disks.unwrap_or_default(),
    };
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    for (disk, flushes) in &disks {
        let Ok(time) = evidence.quantity(&keys::DISK_FLUSH_TIME, disk) else {
            continue;
        };
        let share = flushes.value * time.value;
        most = most.max(share);
        if share <= SHARE.value || time.value <= SLOW.value {
            continue;
        }
        let waiting = evidence.host(&keys::PSI_IO_SOME)?;
        if waiting.value <= WAITING.value {
            continue;
        }
        let mut sentence = format!(
            "{}: {} flushes (fsync), each takes {}; tasks wait for a disk in {} of the time",
            disk.name(),
            say::rate(flushes.value),
            number_of(Unit::Seconds, time.value),
            say::percent(waiting.value)
        );
        let users = evidence.words(&keys::DISK_USERS, &Subject::host()).ok();
        let users = users.filter(|users| users.value != "none");
        if let Some(users) = &users {
            let _ = write!(sentence, "; most bytes: {}", users.value);
        }
        // Flushes that wait behind other requests: fewer flushes would leave the disk as busy.
        let is_behind = share < FLUSHES.value && disk_saturated::is_slow(evidence, disk);
        let finding = if is_behind {
            let _ = write!(
                sentence,
                "; the disk is busy with other requests: see disk-saturated"
            );
            Finding::watch(disk, sentence)
        } else {
            Finding::act(disk, sentence)
        };
        let mut finding = finding
            .severity(Grade::High)
            .cite(flushes.reading)
            .cite(time.reading)
            .cite(waiting.reading)
            .refuted_by("the service is as slow with syncing disabled for a minute");
        if let Some(users) = users {
            finding = finding.cite(users.reading);
        }
        findings.push(finding);
    }
    if findings.is_empty() {
        findings = syncing;
    }
    if findings.is_empty() {
        let sentence = format!(
            "disk flushes take {} of the time, or no task waits for them",
            say::percent(most)
        );
        findings.push(Finding::clear(sentence).below(most, SHARE.value));
    }
    Ok(findings)
}

/// A process whose slowest calls of fsync are much longer than most.
pub(crate) struct Slowest<'e> {
    pub(crate) process: &'e Subject,
    pub(crate) share: Quantity<'e>,
    pub(crate) longest: Quantity<'e>,
    pub(crate) median: Quantity<'e>,
}

/// Services whose slowest calls of fsync make their slowest replies.
pub(crate) fn with_slowest(evidence: &Evidence) -> Vec<Slowest<'_>> {
    let slow = evidence.each(&keys::PROCESS_SYNC_SLOW).unwrap_or_default();
    let of_service = |(process, share)| {
        let value = |key| evidence.quantity(key, process).ok();
        let slowest = Slowest {
            process,
            share,
            longest: value(&keys::PROCESS_SYNC_LONGEST)?,
            median: value(&keys::PROCESS_SYNC_MEDIAN)?,
        };
        let holds = share.value >= SLOWEST.value
            && slowest.longest.value > TIMES.value * slowest.median.value
            && value(&keys::PROCESS_SYNCS)?.value >= OFTEN.value
            && is_service(evidence, process.name());
        holds.then_some(slowest)
    };
    slow.into_iter().filter_map(of_service).collect()
}

fn slowest(evidence: &Evidence) -> Vec<Finding> {
    // Where the disk is slow for any request, fewer syncs are the lesser remedy.
    let is_slow = disk_saturated::slow(evidence).is_some();
    let finding = |slowest: Slowest<'_>| {
        // The freeze is the cause then: all writes wait for the thaw, and reach the disk together (process-blocked).
        let freezes = process_blocked::freezes(evidence, slowest.process);
        let meanwhile = freezes.as_ref().map_or_else(String::new, |freezes| {
            format!(
                "; the file system is frozen {} meanwhile: see process-blocked",
                say::count(freezes.value, "time")
            )
        });
        let sentence = format!(
            "{}: {} of its calls of fsync take 10 ms or longer, up to {}, where half take at most {}; its clients wait as well{meanwhile}",
            called(evidence, slowest.process),
            say::percent(slowest.share.value),
            number_of(Unit::Seconds, slowest.longest.value),
            number_of(Unit::Seconds, slowest.median.value)
        );
        let finding = if is_slow || freezes.is_some() {
            Finding::watch(slowest.process, sentence)
        } else {
            Finding::act(slowest.process, sentence)
        };
        let finding = match freezes {
            Some(freezes) => finding.cite(freezes.reading),
            None => finding,
        };
        finding
            .severity(Grade::Medium)
            .cite(slowest.share.reading)
            .refuted_by("the slowest replies stay as slow with syncing disabled for a minute")
    };
    with_slowest(evidence).into_iter().map(finding).collect()
}

/// Services that are often in a flush; of several processes of one name the one that is there most.
fn syncing(evidence: &Evidence) -> Vec<Finding> {
    let slow = disk_saturated::slow(evidence);
    let acts = |process: &Subject, share: f64| {
        let line = behind(evidence, process).map_or(MOSTLY, |_| QUEUED);
        share >= line.value && slow.is_none()
    };
    let mut services: BTreeMap<&str, (&Subject, Quantity<'_>)> = BTreeMap::new();
    for (process, share) in evidence.each(&keys::PROCESS_SYNCING).unwrap_or_default() {
        let name = evidence.words(&keys::SCHED_PROCESS_NAME, process);
        let name = name.map_or(process.name(), |name| name.value);
        if !is_service(evidence, process.name()) {
            continue;
        }
        let rank = |process, share: f64| (acts(process, share), share);
        let is_more = services
            .get(name)
            .is_none_or(|(known, most)| rank(known, most.value) < rank(process, share.value));
        if share.value >= SYNCING.value && is_more {
            services.insert(name, (process, share));
        }
    }
    let finding = |(process, share): (&Subject, Quantity<'_>)| {
        let mut sentence = format!(
            "{} waits for fsync in {} of the samples; its clients wait as well",
            called(evidence, process),
            say::percent(share.value)
        );
        if let Some(disk) = slow {
            let _ = write!(sentence, "; disk {} is slow", disk.name());
        }
        let behind = behind(evidence, process);
        if let Some(behind) = &behind {
            let share = say::percent(behind.value);
            let _ = write!(sentence, "; other writes wait behind it in {share}");
        }
        let finding = if acts(process, share.value) {
            Finding::act(process, sentence).severity(Grade::High)
        } else {
            Finding::watch(process, sentence).severity(Grade::Medium)
        };
        let finding = finding.cite(share.reading);
        let finding = match behind {
            Some(behind) => finding.cite(behind.reading),
            None => finding,
        };
        finding.refuted_by("another thread answers its clients meanwhile")
    };
    services.into_values().map(finding).collect()
}

/// How often writes of the process are blocked, if that is often and another of its threads is in a flush most of these times.
pub(crate) fn behind<'e>(evidence: &'e Evidence, process: &Subject) -> Option<Quantity<'e>> {
    let of = |key| evidence.quantity(key, process).ok();
    let (syncing, blocked) = (
        of(&keys::PROCESS_SYNCING)?,
        of(&keys::PROCESS_WRITE_BLOCKED)?,
    );
    let behind = of(&keys::PROCESS_WRITE_BEHIND)?;
    let is_frozen = of(&keys::PROCESS_FREEZES).is_some_and(|times| times.value >= 1.0);
    let often = syncing.value >= QUEUED.value && blocked.value >= process_blocked::WRITES.value;
    (often && !is_frozen && behind.value > 0.5 * blocked.value).then_some(behind)
}
