//! `disk-queue`: requests fill the queue of a disk, and tasks wait for them.
//!
//! Three numbers must agree: the queue is nearly full, the disk is never without a request, and some task
//! waits. The last is the guard: on the reference bank host queue and scheduler were tuned without any gain,
//! because no task waited for the disk. A disk with several hardware queues has `nr_requests` slots in each
//! (`blk_mq_update_nr_requests` of block/blk-mq.c, Linux 6.18), and iostats report the sum over them.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::evidence::Unit;
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "mean queue as a share of its length",
    value: 0.80,
    origin: "own guess: a queue that is always nearly full is full at times",
};

const BUSY: Threshold = Threshold {
    name: "share of the window with a request in flight",
    value: 0.95,
    origin: "own guess: never idle, apart from rounding",
};

const WAITING: Threshold = Threshold {
    name: "share of time in which some task waits for a disk",
    value: 0.10,
    origin: "own guess, for the guard: a queue without waiters costs nothing",
};

const SERIAL: Threshold = Threshold {
    name: "service time of the disk for each request, above which no longer queue is recommended",
    value: 0.002,
    origin: "own guess: flash takes less than 1 ms, a spindle 4 to 10 ms for each request that needs a seek",
};

/// Longest queue that is recommended: the reference bank host went from 256 to 512.
const LONGEST: f64 = 512.0;

pub(crate) static RULE: Rule = Rule {
    id: "disk-queue",
    topic: "disk",
    summary: "a disk's request queue is full and tasks wait for it",
    needs: &[
        &keys::DISK_AWAIT,
        &keys::DISK_BUSY,
        &keys::DISK_HARDWARE_QUEUES,
        &keys::DISK_NR_REQUESTS,
        &keys::DISK_QUEUE,
        &keys::DISK_SCHEDULER,
        &keys::PSI_IO_SOME,
    ],
    thresholds: &[FULL, BUSY, WAITING, SERIAL],
    knobs: &["disk.nr_requests", "disk.queue_depth", "disk.scheduler"],
    measure: Some(Measure::more(&keys::DISK_QUEUE)),
    doc: Doc {
        looks_for: "A mean queue above 80 % of nr_requests times the number of hardware queues, a disk busy for more than 95 % of the window, and \
            tasks that wait for a disk in more than 10 % of the time.",
        hurts: "When the queue is full, the next writer stops in the kernel until a slot is free, log writers included.",
        todo: "A longer queue lets an array or SSD sort and work in parallel (disk.nr_requests, disk.queue_depth). If the disk \
            itself is saturated, only fewer or different requests help, and each waits longer in a longer queue: for a disk \
            that takes more than 2 ms per request the rule recommends none.",
        wrong: "A busy share of 100 % means nothing for a device that works on many requests at once. One of several hardware queues \
            may be full while the others have room: a single writer uses the queue of its CPU, and the mean over all does not show it. \
            Adapters that share their tags between queues have less room than the rule assumes. A queue that only a backup waits for \
            does no harm: the bank host's remedies here had no effect, because its service wrote little.",
        sources: "The reference bank host, section on disks; Documentation/admin-guide/iostats.rst; \
            Documentation/block/queue-sysfs.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let queues = evidence.each(&keys::DISK_QUEUE)?;
    let mut findings = Vec::new();
    let (mut fullest, mut seen) = (0.0_f64, 0);
    let mut missing = None;
    for (disk, queue) in queues {
        let each = match evidence.quantity(&keys::DISK_NR_REQUESTS, disk) {
            Ok(each) if each.value > 0.0 => each,
            Ok(_) => continue,
            Err(why) => {
                missing = missing.or(Some(why));
                continue;
            }
        };
        let busy = evidence.quantity(&keys::DISK_BUSY, disk)?;
        // A kernel or a device that shows none has one.
        let hardware = evidence.quantity(&keys::DISK_HARDWARE_QUEUES, disk).ok();
        let number = hardware.map_or(1.0, |hardware| hardware.value.max(1.0));
        let room = each.value * number;
        seen += 1;
        fullest = fullest.max(queue.value / room);
        let full = queue.lasts(|queue| queue / room > FULL.value);
        if !full || busy.value <= BUSY.value {
            continue;
        }
        let waiting = evidence.host(&keys::PSI_IO_SOME)?;
        let places = if number > 1.0 {
            format!("{number:.0} queues of {:.0} each", each.value)
        } else {
            format!("a queue of {:.0}", each.value)
        };
        let mut sentence = format!(
            "{} has {:.0} requests in {places} and is never idle",
            disk.name(),
            queue.value
        );
        if waiting.value <= WAITING.value {
            let _ = write!(
                sentence,
                ", but tasks wait for a disk in only {} of the time",
                say::percent(waiting.value)
            );
            let clear = Finding::clear(sentence)
                .below(waiting.value, WAITING.value)
                .cite(waiting.reading);
            findings.push(clear);
            continue;
        }
        let mut finding = Finding::act(disk, "");
        let mut is_serial = false;
        if let Ok(time) = evidence.quantity(&keys::DISK_AWAIT, disk)
            && time.value > 0.0
        {
            // Little's law: what is in the queue, over the time in it.
            let done = queue.value / time.value;
            is_serial = done * SERIAL.value < 1.0;
            let _ = write!(
                sentence,
                "; a request takes {}, {} complete",
                number_of(Unit::Seconds, time.value),
                say::rate(done)
            );
            finding = finding.cite(time.reading);
        }
        let _ = write!(
            sentence,
            ", and some task waits in {} of the time",
            say::percent(waiting.value)
        );
        finding.sentence = sentence;
        finding = finding
            .severity(Grade::Medium)
            .cite(queue.reading)
            .cite(each.reading)
            .cite(busy.reading)
            .cite(waiting.reading);
        if let Some(hardware) = hardware {
            finding = finding.cite(hardware.reading);
        }
        let longer = (each.value * 2.0).min(LONGEST);
        let scheduler = evidence.words(&keys::DISK_SCHEDULER, disk).ok();
        if let Some(scheduler) = scheduler {
            finding = finding.cite(scheduler.reading);
        }
        if longer > each.value {
            // Without a scheduler the device's own depth is the most, and more is refused (blk_mq_update_nr_requests).
            let takes = scheduler.is_some_and(|scheduler| scheduler.value != "none");
            finding = if takes && !is_serial {
                finding.turn_device("disk.nr_requests", disk.name(), format!("{longer:.0}"))
            } else {
                finding.consider_device("disk.nr_requests", disk.name())
            };
        }
        findings.push(
            finding
                .consider_device("disk.queue_depth", disk.name())
                .consider_device("disk.scheduler", disk.name())
                .refuted_by(
                    "a longer queue only makes each request take longer: the disk is saturated",
                ),
        );
    }
    match (seen, missing) {
        (0, Some(missing)) => return Err(missing),
        _ if findings.is_empty() => {
            let sentence = format!(
                "the fullest disk queue is at {} of its length",
                say::percent(fullest)
            );
            findings.push(Finding::clear(sentence).below(fullest, FULL.value));
        }
        _ => {}
    }
    Ok(findings)
}
