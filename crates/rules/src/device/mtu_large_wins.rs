//! `mtu-large-wins`: full packets of 1500 bytes on a busy link; larger ones would be fewer.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const SIZE: Threshold = Threshold {
    name: "mean bytes per packet, as a share of the MTU",
    value: 0.867,
    origin: "1300 of 1500 bytes: most packets are full",
};

const SMALL: Threshold = Threshold {
    name: "MTU, bytes",
    value: 1500.0,
    origin: "Ethernet's own; anything above is a jumbo frame already",
};

const USE: Threshold = Threshold {
    name: "use of the link",
    value: 0.6,
    origin: "own guess: the link is what limits soon",
};

const SOFTIRQ: Threshold = Threshold {
    name: "softirq time of the CPU that spends most",
    value: 0.3,
    origin: "own guess: packets cost a good part of a CPU",
};

const TRAFFIC: Threshold = Threshold {
    name: "packets per second of the device, both directions",
    value: 1000.0,
    origin: "own guess: a thousandth of a CPU at 1 us each; fewer of them would not be felt",
};

/// `mtu-large-wins`
pub(crate) static RULE: Rule = Rule {
    id: "mtu-large-wins",
    topic: "device",
    summary: "a link full of 1500-byte packets, which jumbo frames would make six times fewer",
    needs: &[
        &keys::CPU_SOFTIRQ,
        &keys::DEVICE_GRO,
        &keys::DEVICE_KIND,
        &keys::DEVICE_MTU,
        &keys::DEVICE_PACKET_SIZE,
        &keys::DEVICE_RX_PACKETS,
        &keys::DEVICE_TX_PACKETS,
        &keys::DEVICE_USE,
    ],
    thresholds: &[SIZE, SMALL, USE, SOFTIRQ, TRAFFIC],
    knobs: &["net.mtu"],
    measure: Some(Measure::more(&keys::CPU_SOFTIRQ)),
    doc: Doc {
        looks_for: "A hardware device with MTU 1500, at least 1,000 packets/s of more than 1300 bytes on average, and a \
                    link above 60 % or a CPU above 30 % softirq.",
        hurts: "The stack and the interrupts work per packet.",
        todo: "MTU 9000 on a closed network.",
        wrong: "Every hop has to take part, which cannot be seen from here, so it is never more than worth watching. GRO \
                and TSO already hide most of it from the host: with GRO on and softirq below 30 %, the rule reports nothing.",
        sources: "The bank's write-up (no figure); Documentation/networking/segmentation-offloads.rst (Linux).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let sizes = match evidence.each(&keys::DEVICE_PACKET_SIZE) {
        Ok(sizes) => sizes,
        // A device without packets has no size of them.
        Err(missing) => return Ok(vec![all_quiet(evidence).ok_or(missing)?]),
    };
    let (_, softirq) = pick::largest(evidence, &keys::CPU_SOFTIRQ)?;
    let pressed = softirq.value > SOFTIRQ.value;
    let (mut findings, mut nearest) = (Vec::new(), None::<(String, f64)>);
    for (device, size) in sizes {
        let hardware = evidence
            .words(&keys::DEVICE_KIND, device)
            .is_ok_and(|kind| kind.value == "hardware");
        let Ok(mtu) = evidence.quantity(&keys::DEVICE_MTU, device) else {
            continue;
        };
        let quiet = packets(evidence, device).is_some_and(|(rate, _)| rate < TRAFFIC.value);
        if !hardware || mtu.value > SMALL.value || quiet {
            continue;
        }
        let filled = size.value / mtu.value.max(1.0);
        let used = evidence.quantity(&keys::DEVICE_USE, device).ok();
        let gro = evidence.words(&keys::DEVICE_GRO, device).ok();
        let hidden = gro.is_some_and(|gro| gro.value.starts_with("on"));
        let full = used.is_some_and(|used| used.value > USE.value);
        let load = match used {
            Some(used) => format!("the link {} used", say::percent(used.value)),
            None => "link utilisation unknown".to_owned(),
        };
        let sentence = format!(
            "packets of {} are {:.0} bytes on average at MTU {:.0}, {load}, softirq at most {}",
            device.name(),
            size.value,
            mtu.value,
            say::percent(softirq.value)
        );
        if filled <= SIZE.value || !(pressed || full && !hidden) {
            if nearest.as_ref().is_none_or(|(_, other)| *other < filled) {
                nearest = Some((sentence, filled));
            }
            continue;
        }
        let mut finding = Finding::watch(device, sentence)
            .severity(if full { Grade::Medium } else { Grade::Low })
            .confidence(Grade::Low)
            .cite(size.reading)
            .cite(mtu.reading)
            .cite(softirq.reading)
            .turn_device("net.mtu", device.name(), "9000")
            .refuted_by("a hop that cannot take 9000 bytes, or the same CPU time per byte with it");
        if let Some(used) = used {
            finding = finding.cite(used.reading);
        }
        findings.push(finding);
    }
    if findings.is_empty() {
        findings.push(match nearest {
            Some((sentence, filled)) => Finding::clear(sentence).below(filled, SIZE.value),
            None => Finding::clear(
                "no hardware device with MTU 1500 carries packets enough for their size to matter",
            ),
        });
    }
    Ok(findings)
}

/// Packets per second of a device in both directions, with the larger of the two.
fn packets<'a>(evidence: &'a Evidence, device: &Subject) -> Option<(f64, Quantity<'a>)> {
    let received = evidence.quantity(&keys::DEVICE_RX_PACKETS, device).ok()?;
    let sent = evidence.quantity(&keys::DEVICE_TX_PACKETS, device).ok()?;
    let larger = if received.value > sent.value {
        received
    } else {
        sent
    };
    Some((received.value + sent.value, larger))
}

/// Every device is known to carry next to nothing.
fn all_quiet(evidence: &Evidence) -> Option<Finding> {
    let devices = evidence.each(&keys::DEVICE_RX_PACKETS).ok()?;
    let rates: Option<Vec<_>> = devices
        .into_iter()
        .map(|(device, _)| Some((device, packets(evidence, device)?)))
        .collect();
    let (device, (rate, larger)) = rates?
        .into_iter()
        .max_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))?;
    let sentence = format!(
        "too little traffic for the size of packets to matter: {} carries most, {}",
        device.name(),
        say::rate(rate)
    );
    (rate < TRAFFIC.value).then(|| {
        Finding::clear(sentence)
            .below(rate, TRAFFIC.value)
            .cite(larger.reading)
    })
}
