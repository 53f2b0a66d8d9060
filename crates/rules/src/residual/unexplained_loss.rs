//! `unexplained-loss`: packets, segments or connections are lost, and no rule explains it.
//!
//! The probe `proc-net-losses` reads every loss counter of the kernel; those that no rule covers are judged here by their
//! share of the traffic.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Quantity};
use rungwise_model::keys;

use super::losses::{DROPS, MUCH, RATE, SHARE, THEIRS, is_delayed, is_limit};
use super::{clear, unexplained};
use crate::resources::{High, Means};
use crate::{Doc, Judgement, Measure, Rule, say};

pub(crate) static RULE: Rule = Rule {
    id: "unexplained-loss",
    topic: "residual",
    summary: "packets, segments or connections are lost, and no other rule explains it",
    needs: &[
        &keys::CGROUP_OOM_KILLS,
        &keys::CGROUP_PIDS_REFUSED,
        &keys::CGROUP_REFUSED,
        &keys::CONNTRACK_DROPPED,
        &keys::CPU_STEAL_MEAN,
        &keys::DISK_ERRORS,
        &keys::LOSS_COUNTERS,
        &keys::LOSS_RATE,
        &keys::LOSS_SHARE,
        &keys::MEMORY_OOM_KILLS,
        &keys::NEIGH_REFUSED,
        &keys::NETNS_OTHER_LOSS,
        &keys::NETNS_OTHER_PACKETS,
        &keys::NETNS_OTHER_QUEUE_LOSS,
        &keys::NETNS_OTHER_QUEUE_MANAGED,
        &keys::NETNS_OWN_PACKETS,
        &keys::QDISC_DROPPED,
        &keys::QDISC_DROPPED_SHARE,
        &keys::SOFTNET_DROPPED,
        &keys::TCP_MEM_PRESSURES,
    ],
    thresholds: &[SHARE, MUCH, RATE, DROPS, THEIRS],
    knobs: &[],
    measure: Some(Measure::more(&keys::LOSS_SHARE)),
    doc: Doc {
        looks_for: "A counter of losses or failures that grew by at least one per second and by at least 0.5 % of the traffic there, \
            and that no rule covers. A counter that rules cover is reported if it is 5 % or more of the traffic and none of them \
            fires. The losses of devices, backlogs and queues count as well; of limits of the cloud that the machine exceeds, any from one per second on: those of bandwidth and packets per second, which delay bursts first, are watched below 0.5 %. So do packets that the kernel drops without counting \
            them, such as those that an XDP program rejects: from 10 per second and 5 % of the packets received on.",
        hurts: "Lost data is requested again after a timeout, or never answered.",
        todo: "The finding names the counter and what it counts. Its place in the kernel shows which stage drops: \
            Documentation/networking/snmp_counter.rst.",
        wrong: "A scanner, a misconfigured peer or a health check causes errors that do no harm. Errors of a device in another \
            network namespace are not visible here.",
        sources: "Documentation/networking/snmp_counter.rst; net/ipv4/proc.c of Linux 6.18; RFC 2863 (ifInErrors, ifOutDiscards).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let mut lost = unexplained(evidence, Means::Lost);
    // A queueing discipline's drops are the device's as well, in newer kernels.
    lost.sort_by(|a, b| rate(evidence, b).value.total_cmp(&rate(evidence, a).value));
    if lost.is_empty() {
        return clear(
            evidence,
            Means::Lost,
            "no loss counter grew much without a rule that explains it",
        );
    }
    Ok(lost.iter().map(|high| finding(evidence, high)).collect())
}

/// How much was lost: for a counter its rate, for any other reading its value.
fn rate<'a>(evidence: &'a Evidence, high: &High<'a>) -> Quantity<'a> {
    let own = Quantity {
        value: high.value,
        reading: high.reading,
    };
    match high.subject.kind() {
        Kind::Counter => evidence
            .quantity(&keys::LOSS_RATE, high.subject)
            .unwrap_or(own),
        _ => own,
    }
}

fn finding(evidence: &Evidence, high: &High<'_>) -> Finding {
    let rate = rate(evidence, high);
    if high.subject.kind() != Kind::Counter {
        let sentence = if high.gauge.key == &keys::CPU_STEAL_MEAN {
            format!(
                "the hypervisor takes {} of the CPU time",
                say::percent(high.value)
            )
        } else if high.gauge.key == &keys::CGROUP_REFUSED {
            format!(
                "the limits of control group {} refused {} huge pages or other counted resources (hugetlb, misc)",
                high.subject.name(),
                say::whole(high.value)
            )
        } else {
            let place = high.row.title.to_lowercase();
            format!(
                "{} lost at {place} ({})",
                say::rate(rate.value),
                high.subject
            )
        };
        return Finding::act(high.subject, sentence)
            .severity(Grade::Medium)
            .confidence(Grade::Medium)
            .cite(rate.reading)
            .refuted_by("clients see no timeout and no error while the counter grows");
    }
    let share = high.value;
    let meaning = meaning(&high.reading.origin.line).unwrap_or("losses");
    let sentence = format!(
        "{} {meaning}: {} of the traffic there ({})",
        say::rate(rate.value),
        say::percent(share),
        high.subject.name()
    );
    // Frames that no program on this host wants count as dropped as well, and proxies close by a reset to leave no TIME_WAIT.
    let name = high.subject.name();
    // A port counts what other guests and programs without the kernel receive as well.
    let of_port = name.contains("_phy") || name.contains(":driver.port");
    let unwanted = name.ends_with(":rx_dropped") || name == "Tcp:EstabResets" || of_port;
    let is_reached = is_limit(high.subject) && (share >= SHARE.value || !is_delayed(high.subject));
    let finding = if (share >= MUCH.value || is_reached) && !unwanted {
        Finding::act(high.subject, sentence).severity(Grade::High)
    } else {
        Finding::watch(high.subject, sentence).severity(Grade::Medium)
    };
    finding
        .confidence(Grade::Medium)
        .cite(rate.reading)
        .cite(high.reading)
        .refuted_by("clients see no timeout and no error while the counter grows")
}

/// What the counter counts, as the probe wrote it in parentheses.
fn meaning(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('(')?;
    let (meaning, _) = rest.split_once(')')?;
    Some(meaning)
}
