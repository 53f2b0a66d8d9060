//! `nic-ring-drop`: the device had no buffer for a packet.
//!
//! The ring between device and driver was full: the host did not drain it in time. Counted by the device
//! under many names (`rx_missed`, `rx_no_buffer`, `rx_fifo`, `out_of_buffer`).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "packets lost in the ring",
    value: 0.0001,
    origin: "own guess: one in ten thousand is what TCP begins to feel",
};

const MUCH: Threshold = Threshold {
    name: "the same, severe",
    value: 0.02,
    origin: "netdata's alarm line for network errors (2 %)",
};

const FEW: Threshold = Threshold {
    name: "packets lost in the window",
    value: 10.0,
    origin: "own guess: fewer are an accident, whatever share of a quiet link they are",
};

/// `nic-ring-drop`
pub(crate) static RULE: Rule = Rule {
    id: "nic-ring-drop",
    topic: "device",
    summary: "a device loses packets because its receive ring is full",
    needs: needs!(
        [
            &keys::COALESCE_RX_USECS,
            &keys::DEVICE_MISSED,
            &keys::DEVICE_MISSED_SHARE,
            &keys::RING_RX,
            &keys::RING_RX_MAXIMUM,
            &keys::UDP_PROCESS,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[SHARE, MUCH, FEW, spread::UDP],
    knobs: &[
        "net.ring",
        "net.irq_affinity",
        "net.coalesce",
        "sock.reuseport",
    ],
    measure: Some(Measure::more(&keys::DEVICE_MISSED_SHARE)),
    doc: Doc {
        looks_for: "More than 0.01 % of the packets of a device lost for lack of a receive buffer, and at least ten.",
        hurts: "Lost datagrams, retransmitted segments, and both look like a slow peer.",
        todo: "A larger ring holds longer bursts. Where it is lost all the time, the CPUs of the queues are too slow: \
               spread the interrupts, for a UDP service with one socket only after SO_REUSEPORT. Moderation that waits too \
               long fills a small ring.",
        wrong: "rx_dropped is not used: it also counts frames of unknown protocols and VLANs that no program uses. A \
                single burst gives the same count as a steady loss; which of the two it was is said where the parts of the \
                window are known.",
        sources: "RHEL 7 performance guide 9.3.2; netdata's alarms on network devices.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let mut findings = Vec::new();
    let shares = evidence.each(&keys::DEVICE_MISSED_SHARE)?;
    for (device, share) in &shares {
        if share.value <= SHARE.value {
            continue;
        }
        let name = device.name();
        let missed = evidence.quantity(&keys::DEVICE_MISSED, device)?;
        if missed.value * evidence.seconds() < FEW.value {
            continue;
        }
        // Many devices are asked at both ends of the window only.
        let when = match missed.reading.series.len() {
            0 | 1 => "",
            _ if missed.always(|rate| rate > 0.0) => ", all the time",
            _ => ", in bursts",
        };
        let sentence = format!(
            "{name} loses {} of its packets ({}) for lack of a receive buffer{when}",
            say::percent(share.value),
            say::rate(missed.value)
        );
        let severity = if share.value > MUCH.value {
            Grade::High
        } else {
            Grade::Medium
        };
        let mut finding = Finding::act(device, sentence)
            .severity(severity)
            .confidence(Grade::High)
            .cite(share.reading)
            .cite(missed.reading)
            .refuted_by("with the largest ring and the queues on idle CPUs, as much is lost");
        let ring = evidence.quantity(&keys::RING_RX, device).ok();
        let most = evidence.quantity(&keys::RING_RX_MAXIMUM, device).ok();
        if let (Some(ring), Some(most)) = (ring, most)
            && ring.value < most.value
        {
            finding = finding.cite(ring.reading).cite(most.reading).turn_device(
                "net.ring",
                name,
                format!("rx={:.0}", most.value),
            );
        }
        finding = spread::over(evidence, finding, name, &[("net.irq_affinity", "spread")]);
        // Moderation is worth a thought only where the driver has it at all.
        if let Ok(moderation) = evidence.quantity(&keys::COALESCE_RX_USECS, device)
            && moderation.value > 0.0
        {
            finding = finding.cite(moderation.reading).consider("net.coalesce");
        }
        findings.push(finding);
    }
    if findings.is_empty() {
        let worst = shares
            .into_iter()
            .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        findings.extend(worst.map(|(device, share)| {
            let sentence = if share.value > 0.0 {
                format!(
                    "{} lost {} of its packets for lack of a receive buffer, more than any other device",
                    device.name(),
                    say::percent(share.value)
                )
            } else {
                "no device lost a packet for lack of a receive buffer".to_owned()
            };
            Finding::clear(sentence)
                .below(share.value, SHARE.value)
                .cite(share.reading)
        }));
    }
    Ok(findings)
}
