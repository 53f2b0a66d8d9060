//! `softnet-squeeze`: receive rounds end by their budget, and packets are lost meanwhile.
//!
//! `time_squeeze` has the worst record of all alarms: a few per hour mean nothing, and no setting clears them.
//! So it counts only together with packets that were lost at the ring or the backlog, and never while the
//! hypervisor takes the CPU away. Column 3 of /`proc/net/softnet_stat`.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const SHARE: Threshold = Threshold {
    name: "squeezed rounds, as a share of packets",
    value: 0.01,
    origin: "one in a hundred; netdata's issues 984, 1076 and 4624 are about lower lines",
};

const LOST: Threshold = Threshold {
    name: "packets lost at the ring, as a share",
    value: 0.0001,
    origin: "the line of nic-ring-drop",
};

const STEAL: Threshold = Threshold {
    name: "time of that CPU that the hypervisor took",
    value: 0.02,
    origin: "the line of noise-gate: a round that is stolen ends by time as well",
};

const PACKETS: Threshold = Threshold {
    name: "largest recommended budget, packets",
    value: 1200.0,
    origin: "own guess: twice the kernel's 300, twice over",
};

const TIME: Threshold = Threshold {
    name: "the same, microseconds",
    value: 16_000.0,
    origin: "own guess: twice the kernel's two jiffies at HZ=250; other tasks of the CPU wait as long",
};

/// `softnet-squeeze`
pub(crate) static RULE: Rule = Rule {
    id: "softnet-squeeze",
    topic: "net",
    summary: "receive rounds end by budget while packets are lost",
    needs: &[
        &keys::CPU_STEAL,
        &keys::DEVICE_MISSED_SHARE,
        &keys::SOFTNET_BUDGET,
        &keys::SOFTNET_BUDGET_USECS,
        &keys::SOFTNET_DROPPED,
        &keys::SOFTNET_SQUEEZED,
        &keys::SOFTNET_SQUEEZED_SHARE,
    ],
    thresholds: &[SHARE, LOST, STEAL, PACKETS, TIME],
    knobs: &["net.netdev_budget", "net.irq_affinity", "net.queues"],
    measure: Some(Measure::more(&keys::SOFTNET_SQUEEZED_SHARE)),
    doc: Doc {
        looks_for: "A CPU whose squeezed rounds exceed 1 % of its packets, while packets are lost at a device's ring or \
                    at a backlog.",
        hurts: "What is left of a round waits for the next one or for ksoftirqd, behind other tasks.",
        todo: "Packets and time of the budget together: raising one does nothing where the other is the limit. Up to 1,200 \
               packets and 16 ms: other tasks of the CPU wait that long. Better, more CPUs for the queues.",
        wrong: "Squeezes without losses are normal under load and are not reported. Steal ends rounds by time: above 2 % \
                the hypervisor is the cause, and no budget helps.",
        sources: "net_rx_action in net/core/dev.c (Linux 6.18); netdata issues 984, 1076, 2296, 4624 (no effect until \
                  netdev_budget_usecs was raised, or none at all).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let (cpu, share) = pick::largest(evidence, &keys::SOFTNET_SQUEEZED_SHARE)?;
    let sentence = format!(
        "CPU {} ends a round by budget once per {}",
        cpu.name(),
        match share.value {
            share if share > 0.0 => format!("{:.0} packets", 1.0 / share),
            _ => "window or less".to_owned(),
        }
    );
    if share.value <= SHARE.value {
        let sentence = if share.value > 0.0 {
            sentence
        } else {
            "no receive round ended by its budget".to_owned()
        };
        return Ok(vec![
            Finding::clear(sentence)
                .below(share.value, SHARE.value)
                .cite(share.reading),
        ]);
    }
    let Some((loss, lost)) = loss(evidence)? else {
        return Ok(vec![
            Finding::clear(format!(
                "{sentence}, and no packet is lost: that is load, not harm"
            ))
            .cite(share.reading),
        ]);
    };
    let steal = evidence.quantity(&keys::CPU_STEAL, cpu)?;
    if steal.value > STEAL.value {
        return Ok(vec![
            Finding::watch(
                cpu,
                format!(
                    "{sentence} and {loss}, but the hypervisor takes {} of the CPU: that ends rounds, and no budget \
                     helps",
                    say::percent(steal.value)
                ),
            )
            .severity(Grade::Low)
            .cite(share.reading)
            .cite(lost.reading)
            .cite(steal.reading)
            .refuted_by("without steal, as many rounds end by budget"),
        ]);
    }
    let mut finding = Finding::act(cpu, format!("{sentence}, and {loss}"))
        .cite(share.reading)
        .cite(lost.reading)
        .cite(steal.reading)
        .refuted_by("with twice the budget in packets and time, as many packets are lost");
    if let Ok(squeezed) = evidence.quantity(&keys::SOFTNET_SQUEEZED, cpu) {
        finding = finding.cite(squeezed.reading);
    }
    let packets = evidence.host(&keys::SOFTNET_BUDGET).ok();
    let time = evidence.host(&keys::SOFTNET_BUDGET_USECS).ok();
    finding = match (packets, time) {
        (Some(packets), Some(time))
            if packets.value >= PACKETS.value && time.value >= TIME.value =>
        {
            let _ = write!(
                finding.sentence,
                "; a round may take {} and {} already: longer ones would hold up what else the CPU has to do",
                say::count(packets.value, "packet"),
                number_of(Unit::Seconds, time.value / 1e6)
            );
            finding
                .cite(packets.reading)
                .cite(time.reading)
                .consider("net.netdev_budget")
        }
        (Some(packets), Some(time)) => {
            let twice = |now: f64, most: f64| (now * 2.0).min(most).max(now);
            finding.cite(packets.reading).cite(time.reading).turn(
                "net.netdev_budget",
                format!(
                    "{:.0}/{:.0}us",
                    twice(packets.value, PACKETS.value),
                    twice(time.value, TIME.value)
                ),
            )
        }
        _ => finding.consider("net.netdev_budget"),
    };
    Ok(vec![
        finding.consider("net.irq_affinity").consider("net.queues"),
    ])
}

/// Packets that were lost where a squeezed round would lose them.
fn loss(evidence: &Evidence) -> Result<Option<(String, Quantity<'_>)>, Missing> {
    let ring = pick::largest(evidence, &keys::DEVICE_MISSED_SHARE);
    let backlog = pick::largest(evidence, &keys::SOFTNET_DROPPED);
    let named = |(device, share): (&Subject, _)| -> (String, Quantity<'_>) {
        let share: Quantity<'_> = share;
        (
            format!(
                "{} loses {} of its packets",
                device.name(),
                say::percent(share.value)
            ),
            share,
        )
    };
    match (ring, backlog) {
        (Ok(ring), _) if ring.1.value > LOST.value => Ok(Some(named(ring))),
        (_, Ok((cpu, rate))) if rate.value > 0.0 => Ok(Some((
            format!(
                "{} packets are dropped at the backlog of CPU {}",
                say::rate(rate.value),
                cpu.name()
            ),
            rate,
        ))),
        // One of the two would be needed to say that nothing is lost.
        (Err(missing), Err(_)) => Err(missing),
        _ => Ok(None),
    }
}
