//! `cgroup-io-limit`: a control group reads or writes as much as its limit allows.
//!
//! The kernel delays each request until the limit has room (`blk-throttle.c`); the disk itself is idle meanwhile and shows
//! nothing. The kernel reports what the group did along with the limit, so the share is exact. Buffered writes count only in
//! version 2: in version 1 they belong to the root group.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Quantity, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use super::{cite_members, who};
use crate::disk::disk_sync;
use crate::process::SERVICE;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const USED: Threshold = Threshold {
    name: "used share of the limit",
    value: 0.90,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: a log at 86 % of its limit kept its p99, one at 100 % lost 70 % of its \
        requests",
};

const HALF: Threshold = Threshold {
    name: "used share of the limit, where tasks wait for a disk most of the time and no disk is busy",
    value: 0.50,
    origin: "measured by `cargo xtask faults --random 40 --seed 10001 --layer host`: a log at 79 % of its limit, whose tasks waited for a disk in \
        85 % of the time, lost half of its requests; at 40 %, without such waits, it lost none; the line between them is our own guess",
};

const MOST: Threshold = Threshold {
    name: "share of the window in which a task waits for a disk, for that",
    value: 0.50,
    origin: "definition",
};

const IDLE: Threshold = Threshold {
    name: "share of the window in which the busiest disk works, below which it cannot be what tasks wait for",
    value: 0.50,
    origin: "definition: it has nothing to do in most of the window",
};

const WAITING: Threshold = Threshold {
    name: "share of the window in which a task of the group waits for a disk, if known",
    value: 0.05,
    origin: "own guess, for the guard: a limit without waiters costs nothing",
};

const STUCK: Threshold = Threshold {
    name: "share of the samples in which a process is in an uninterruptible wait",
    value: 0.50,
    origin: "measured by `cargo xtask faults`: postgres behind 40 writes/s (version 1) slept in state D all the time, and io.pressure read 0.06 %",
};

const SHARED: Threshold = Threshold {
    name: "used share of the limit, where calls of fsync of a process of the group take much longer than most",
    value: 0.10,
    origin: "measured: a log of 72 synced lines a second that used 13 % of 690 KiB/s; its p99 was 20.8 ms instead of 2.7 ms. A call waits for all bytes \
        before it, so that bursts meet the limit long before the mean does",
};

pub(crate) static RULE: Rule = Rule {
    id: "cgroup-io-limit",
    topic: "cgroup",
    summary: "a control group is throttled by its limit on reads or writes",
    needs: needs!(
        [
            &keys::CGROUP_IO_LIMIT,
            &keys::CGROUP_IO_USED,
            &keys::CGROUP_IO_WAIT,
            &keys::CGROUP_MEMBERS,
            &keys::CGROUP_OWN,
            &keys::DISK_BUSY,
            &keys::PROCESS_BLOCKED,
            &keys::PROCESS_SYNCS,
            &keys::PROCESS_SYNC_LONGEST,
            &keys::PROCESS_SYNC_MEDIAN,
            &keys::PROCESS_SYNC_SLOW,
            &keys::PSI_IO_SOME
        ],
        SERVICE
    ),
    thresholds: &[USED, HALF, MOST, IDLE, WAITING, STUCK, SHARED],
    knobs: &["disk.cgroup_io"],
    measure: Some(Measure::more(&keys::CGROUP_IO_USED)),
    doc: Doc {
        looks_for: "A control group that uses more than 90 % of its limit on reads or writes to a disk (io.max, \
            blkio.throttle), and more than half of that in every part of the window, while tasks wait for a disk in more than 5 % of the time; \
            or more than 50 %, and more than half of that in every part of the window, while its tasks wait for a disk in more than 50 % of the \
            time and no disk is busy; or more than 10 %, while some calls of fsync of a service in it take much longer than most (disk-sync).",
        hurts: "Each request above the limit is delayed by the kernel. A log line that is synced or a page that is read then takes \
            as long as the queue of delayed requests.",
        todo: "Raise or remove the limit (disk.cgroup_io): `io.max` (version 2) or `blkio.throttle.*_device` (version 1) of the group, systemd \
            IOReadIOPSMax= and the like, `docker run --device-write-iops`. Or write less often: sync in groups, larger writes.",
        wrong: "A limit is a contract between tenants, and a backup that runs into its own limit is what the limit is for. A network file system makes tasks wait while every disk is idle. Where \
            pressure information is missing, it is unknown whether any task waits.",
        sources: "Documentation/admin-guide/cgroup-v2.rst (io.max); Documentation/admin-guide/cgroup-v1/blkio-controller.rst; \
            block/blk-throttle.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let groups = evidence.each(&keys::CGROUP_IO_USED)?;
    let mut findings = Vec::new();
    let mut most = 0.0_f64;
    let mut line_of_most = USED.value;
    for (group, used) in &groups {
        let own = evidence.quantity(&keys::CGROUP_IO_WAIT, group);
        // Of version 1 the machine's own pressure has to do.
        let wait = own.or_else(|_| evidence.host(&keys::PSI_IO_SOME)).ok();
        let idle = wait
            .filter(|wait| wait.value > MOST.value)
            .and_then(|_| busiest_idle_disk(evidence));
        let line = if idle.is_some() {
            HALF.value
        } else {
            USED.value
        };
        if used.value >= most {
            (most, line_of_most) = (used.value, line);
        }
        // Throttling lets requests through in bursts, so a short part of the window may hold fewer.
        if used.value <= line || !used.always(|share| share > line / 2.0) {
            findings.extend(in_bursts(evidence, group, used));
            continue;
        }
        let mut sentence = format!(
            "{} uses {} of its disk limit",
            who(group, evidence),
            say::percent(used.value)
        );
        let limit = evidence.words(&keys::CGROUP_IO_LIMIT, group).ok();
        if let Some(limit) = limit {
            let _ = write!(sentence, " of {}", limit.value);
        }
        let blocked = evidence.each(&keys::PROCESS_BLOCKED).unwrap_or_default();
        let stuck = blocked.iter().find(|(_, share)| share.value > STUCK.value);
        let mut finding = match wait {
            Some(wait) if wait.value > WAITING.value => {
                let _ = write!(
                    sentence,
                    "; tasks wait for a disk in {} of the time{}",
                    say::percent(wait.value),
                    if used.value > USED.value {
                        ""
                    } else {
                        ", and no disk is busy"
                    }
                );
                Finding::act(group, sentence)
                    .severity(Grade::High)
                    .confidence(Grade::High)
                    .cite(wait.reading)
            }
            // What the first version throttles may sleep without being counted as pressure.
            Some(wait) if stuck.is_some() => {
                sentence += "; a process waits for a disk in most samples";
                Finding::act(group, sentence)
                    .severity(Grade::High)
                    .cite(wait.reading)
            }
            Some(wait) => {
                sentence += ", but hardly any task waits for it";
                Finding::watch(group, sentence)
                    .severity(Grade::Low)
                    .cite(wait.reading)
            }
            None => Finding::act(group, sentence).severity(Grade::Medium),
        }
        .cite(used.reading);
        if let Some(busy) = idle.filter(|_| used.value <= USED.value) {
            finding = finding.cite(busy.reading);
        }
        if let Some((_, share)) = stuck {
            finding = finding.cite(share.reading);
        }
        finding = finding
            .refuted_by("latency and rate stay the same with the limit removed for a minute");
        if let Some(limit) = limit {
            finding = finding.cite(limit.reading);
        }
        finding = with_knob(finding, group, limit.map(|limit| limit.value));
        findings.push(cite_members(finding, group, evidence));
    }
    if findings.is_empty() {
        let sentence = if groups.iter().all(|(group, _)| group.name() == "/") && most == 0.0 {
            "no control group has a limit on reads or writes".to_owned()
        } else {
            format!(
                "no control group uses more than {} of its limit on reads or writes",
                say::percent(most)
            )
        };
        findings.push(Finding::clear(sentence).below(most, line_of_most));
    }
    Ok(findings)
}

/// The group reaches its limit in bursts, so that some calls of fsync of a service in it wait.
fn in_bursts(evidence: &Evidence, group: &Subject, used: &Quantity<'_>) -> Option<Finding> {
    let members = evidence.words(&keys::CGROUP_MEMBERS, group).ok()?;
    let limit = evidence.words(&keys::CGROUP_IO_LIMIT, group).ok()?;
    let of_group = |slowest: &disk_sync::Slowest<'_>| {
        let pid = format!("({})", slowest.process.name());
        members.value.contains(&pid)
    };
    let slowest = disk_sync::with_slowest(evidence)
        .into_iter()
        .find(of_group)?;
    if used.value < SHARED.value {
        return None;
    }
    let sentence = format!(
        "{} uses {} of its disk limit of {} on average, and reaches it in bursts: {} of the calls of fsync take 10 ms or longer, up to {}",
        who(group, evidence),
        say::percent(used.value),
        limit.value,
        say::percent(slowest.share.value),
        number_of(Unit::Seconds, slowest.longest.value)
    );
    let finding = Finding::act(group, sentence)
        .severity(Grade::Medium)
        .cite(used.reading)
        .cite(slowest.share.reading)
        .cite(limit.reading)
        .refuted_by("the slowest calls of fsync stay as slow with the limit removed for a minute");
    let finding = with_knob(finding, group, Some(limit.value));
    Some(cite_members(finding, group, evidence))
}

/// Proposes to lift the limit. The top of what a container sees is limited from outside.
fn with_knob(finding: Finding, group: &Subject, limit: Option<&str>) -> Finding {
    if group.name() == "/" {
        return finding;
    }
    match limit.and_then(lifted) {
        Some(wish) if finding.outcome == Outcome::Act => {
            finding.turn_device("disk.cgroup_io", group.name(), wish)
        }
        _ => finding.consider_device("disk.cgroup_io", group.name()),
    }
}

/// The wish without this limit: `vda:wiops=none` for `60 writes/s of vda`.
fn lifted(limit: &str) -> Option<String> {
    let (_, rest) = limit.split_once(' ')?;
    let (what, disk) = rest.split_once(" of ")?;
    let kind = match what {
        "bytes read/s" => "rbps",
        "reads/s" => "riops",
        "bytes written/s" => "wbps",
        "writes/s" => "wiops",
        _ => return None,
    };
    Some(format!("{disk}:{kind}=none"))
}

/// The busiest disk, if even that one has nothing to do most of the time: something else delays the requests.
fn busiest_idle_disk(evidence: &Evidence) -> Option<Quantity<'_>> {
    let disks = evidence.each(&keys::DISK_BUSY).unwrap_or_default();
    let busiest = disks
        .into_iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    busiest
        .map(|(_, busy)| busy)
        .filter(|busy| busy.value < IDLE.value)
}
