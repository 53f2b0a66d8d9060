//! `mtu-large-wins`: full packets of 1500 bytes on a busy link; larger ones would be fewer.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, pick, say};

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
        &keys::DEVICE_USE,
    ],
    thresholds: &[SIZE, SMALL, USE, SOFTIRQ],
    knobs: &["net.mtu"],
    doc: Doc {
        looks_for: "A hardware device with MTU 1500, packets of more than 1300 bytes on average, and a link above 60 % \
                    or a CPU above 30 % softirq.",
        hurts: "The stack and the interrupts work per packet.",
        todo: "MTU 9000 on a closed network.",
        wrong: "Every hop has to take part, which cannot be seen from here, so it is never more than worth watching. GRO \
                and TSO already hide most of it from the host: with GRO on and softirq below 30 % nothing is said.",
        sources: "The bank's write-up (no figure); Documentation/networking/segmentation-offloads.rst (Linux).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let sizes = evidence.each(&keys::DEVICE_PACKET_SIZE)?;
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
        if !hardware || mtu.value > SMALL.value {
            continue;
        }
        let filled = size.value / mtu.value.max(1.0);
        let used = evidence.quantity(&keys::DEVICE_USE, device).ok();
        let gro = evidence.words(&keys::DEVICE_GRO, device).ok();
        let hidden = gro.is_some_and(|gro| gro.value.starts_with("on"));
        let full = used.is_some_and(|used| used.value > USE.value);
        let load = match used {
            Some(used) => format!("the link {} used", say::percent(used.value)),
            None => "the link's use not known".to_owned(),
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
            None => Finding::clear("no hardware device with MTU 1500 carries packets"),
        });
    }
    Ok(findings)
}
