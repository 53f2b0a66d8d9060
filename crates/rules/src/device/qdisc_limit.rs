//! `qdisc-limit`: the queueing discipline of a device holds packets back, or drops them.
//!
//! A shaper (`tbf`, `htb`) keeps a configured rate: what is offered beyond it waits and is then dropped. TCP slows down to that
//! rate without a loss on the way, so neither retransmissions nor device counters show it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::kernel::Qdisc;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

pub(crate) const DROPPED: Threshold = Threshold {
    name: "packets dropped by the queueing disciplines of a device, as a share of those handed to them",
    value: 0.001,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: 0.17 % of the packets dropped took p99 of nginx from 0.7 to 739 ms; \
        with none dropped at the same rate it was 3.5 ms",
};

pub(crate) const MANAGED: Threshold = Threshold {
    name: "the same, of a discipline that drops on purpose to keep its queue short",
    value: 0.01,
    origin: "own guess: codel and its kin signal congestion with fewer drops",
};

const RATE: Threshold = Threshold {
    name: "packets dropped per second",
    value: 1.0,
    origin: "own guess: fewer are no bottleneck",
};

const WAITING: Threshold = Threshold {
    name: "packets waiting in every sample, in a discipline that holds packets back",
    value: 1.0,
    origin: "definition: a queue that is never empty",
};

const HELD: Threshold = Threshold {
    name: "times that packets were held back, per packet sent",
    value: 0.1,
    origin: "measured by `cargo xtask faults`: htb held 0.11 packets back for each sent, and p50 of nginx went from 0.5 to 1.9 ms without a queue at any look",
};

/// `qdisc-limit`
pub(crate) static RULE: Rule = Rule {
    id: "qdisc-limit",
    topic: "device",
    summary: "the queueing discipline of a device holds packets back or drops them",
    needs: &[
        &keys::DEVICE_TX_PACKETS,
        &keys::QDISC_BACKLOG,
        &keys::QDISC_DROPPED,
        &keys::QDISC_DROPPED_SHARE,
        &keys::QDISC_OVERLIMITS,
        &keys::QDISC_RATE,
        &keys::QDISC_ROOT,
        &keys::QDISC_SENT,
    ],
    thresholds: &[DROPPED, MANAGED, RATE, WAITING, HELD],
    knobs: &[],
    measure: Some(Measure::more(&keys::QDISC_DROPPED_SHARE)),
    doc: Doc {
        looks_for: "A device whose queueing disciplines drop more than 0.1 % of the packets, or hold packets back (overlimits) while \
            packets wait at most looks. Packets that are held back and wait at no look are watched.",
        hurts: "TCP runs at the configured rate and its replies wait in the queue; datagrams are lost. The CPU and the \
            network look idle.",
        todo: "Look at `tc -s qdisc show dev DEVICE` and `tc -s class show dev DEVICE`. Raise the rate of the shaper, or its limit \
            where only bursts are dropped. A leaf queue without a limit of its own takes the txqueuelen that the device had \
            when the discipline was made: set txqueuelen first, then make the discipline again.",
        wrong: "A rate that was bought or agreed on is kept on purpose: then this is the capacity of the host. A discipline that manages \
            its queue (fq_codel, cake) drops a little on purpose; its line is 1 %. Queues of the peer and of switches \
            are not visible.",
        sources: "net/sched/sch_tbf.c, sch_htb.c of Linux 6.18; tc(8). Planted: tbf 20 Mbit/s under four request-response connections \
            and two bulk ones, p50 from 0.1 to 27 ms.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let roots = evidence.each_words(&keys::QDISC_ROOT)?;
    let mut findings: Vec<(f64, Finding)> = Vec::new();
    let mut most: Option<Quantity<'_>> = None;
    let mut waiting = 0.0_f64;
    for (device, kind) in roots {
        let of = |key| evidence.quantity(key, device).ok();
        let share = of(&keys::QDISC_DROPPED_SHARE);
        let dropped = of(&keys::QDISC_DROPPED);
        let line = if Qdisc::drops_on_purpose(kind.value) {
            MANAGED.value
        } else {
            DROPPED.value
        };
        let drops = share.filter(|share| {
            share.value > line && dropped.is_some_and(|rate| rate.value > RATE.value)
        });
        let backlog = of(&keys::QDISC_BACKLOG);
        let shaped = backlog.filter(|backlog| {
            let held = of(&keys::QDISC_OVERLIMITS).is_some_and(|held| held.value > 0.0);
            held && backlog.reading.series.len() > 1
                && backlog.lasts(|waiting| waiting >= WAITING.value)
        });
        waiting = waiting.max(backlog.map_or(0.0, |backlog| backlog.value));
        if drops.is_none() && shaped.is_none() {
            if let Some(held) = held_back(evidence, device) {
                findings.push((0.0, held));
            }
            if share.is_some_and(|share| most.is_none_or(|most| share.value > most.value)) {
                most = share;
            }
            continue;
        }
        let finding = found(evidence, device, kind.value, drops, shaped);
        findings.push((drops.map_or(0.0, |share| share.value), finding));
    }
    findings.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    if !findings.is_empty() {
        return Ok(findings.into_iter().map(|(_, finding)| finding).collect());
    }
    let share = most.map_or(0.0, |most| most.value);
    let sentence = format!(
        "the queueing disciplines drop {} of the packets at most, and hold none back all the time",
        say::percent(share)
    );
    let clear = Finding::clear(sentence).below(share, DROPPED.value);
    Ok(vec![match most {
        Some(most) => clear.cite(most.reading),
        None => clear,
    }])
}

/// Packets wait between the samples.
fn held_back(evidence: &Evidence, device: &Subject) -> Option<Finding> {
    let of = |key| evidence.quantity(key, device).ok();
    let (held, sent) = (of(&keys::QDISC_OVERLIMITS)?, of(&keys::DEVICE_TX_PACKETS)?);
    if held.value <= HELD.value * sent.value || held.value <= RATE.value {
        return None;
    }
    let sentence = format!(
        "the queueing discipline of {} holds packets back to keep its rate, {} times, with {} packets sent",
        device.name(),
        say::rate(held.value),
        say::rate(sent.value)
    );
    Some(
        Finding::watch(device, sentence)
            .severity(Grade::Medium)
            .confidence(Grade::High)
            .cite(held.reading)
            .cite(sent.reading)
            .refuted_by("with twice the rate in `tc`, replies are as late"),
    )
}

fn found(
    evidence: &Evidence,
    device: &Subject,
    kind: &str,
    drops: Option<Quantity<'_>>,
    shaped: Option<Quantity<'_>>,
) -> Finding {
    let name = device.name();
    let of = |key| evidence.quantity(key, device).ok();
    let dropped = of(&keys::QDISC_DROPPED);
    let lost = |share: Quantity<'_>| {
        let rate = dropped.map_or(0.0, |rate| rate.value);
        format!(
            "{} of the packets ({})",
            say::percent(share.value),
            say::rate(rate)
        )
    };
    let limit = match of(&keys::QDISC_RATE) {
        Some(rate) => format!("its configured rate of {}", bits(rate.value)),
        None => "the rate that its queueing discipline allows".to_owned(),
    };
    let sentence = match (shaped, drops) {
        (Some(queue), Some(share)) => format!(
            "{name} sends at {limit} ({kind}): {} wait, and it drops {}",
            say::count(queue.value, "packet"),
            lost(share)
        ),
        (Some(queue), None) => format!(
            "{name} sends at {limit} ({kind}): {} wait in its queue",
            say::count(queue.value, "packet")
        ),
        (None, Some(share)) => {
            let rate = of(&keys::QDISC_RATE).map_or_else(String::new, |rate| {
                format!(" (configured for {})", bits(rate.value))
            });
            format!("the {kind} queue of {name}{rate} drops {}", lost(share))
        }
        (None, None) => format!("{name} is not limited"),
    };
    let severe = shaped.is_some() || drops.is_some_and(|share| share.value > MANAGED.value);
    let mut finding = Finding::act(device, sentence)
        .severity(if severe { Grade::High } else { Grade::Medium })
        .confidence(Grade::High);
    for quantity in [
        drops,
        dropped,
        shaped,
        of(&keys::QDISC_OVERLIMITS),
        of(&keys::QDISC_RATE),
        of(&keys::QDISC_SENT),
    ]
    .into_iter()
    .flatten()
    {
        finding = finding.cite(quantity.reading);
    }
    finding
        .refuted_by("with twice the rate and limit in `tc`, as many packets wait and are dropped")
}

/// Bytes per second as networks are sold: `20 Mbit/s`.
fn bits(bytes: f64) -> String {
    let bits = bytes * 8.0;
    match bits {
        bits if bits >= 1e9 => format!("{:.3} Gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.1} Mbit/s", bits / 1e6),
        bits => format!("{:.0} kbit/s", bits / 1e3),
    }
}
