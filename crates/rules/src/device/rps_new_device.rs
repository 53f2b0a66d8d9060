//! `rps-new-device`: a device that came later than the tuning, and was missed by it.
//!
//! A script that sets receive steering at boot does not see the veth of the next container. The kernel can
//! give every new device a mask (`net.core.rps_default_mask`).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Rule, Threshold};

const MASKED: Threshold = Threshold {
    name: "CPUs in a device's RPS masks",
    value: 0.5,
    origin: "a count: none, or at least one",
};

/// `rps-new-device`
pub(crate) static RULE: Rule = Rule {
    id: "rps-new-device",
    topic: "device",
    summary: "a younger device lacks the receive steering of its older siblings",
    needs: needs!(
        [
            &keys::DEVICE_BORN,
            &keys::DEVICE_DRIVER,
            &keys::DEVICE_KIND,
            &keys::DEVICE_UP,
            &keys::RPS_CPUS,
            &keys::RPS_MASK,
            &keys::UDP_PROCESS,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[MASKED, spread::UDP],
    knobs: &["net.rps_cpus", "net.rps_default_mask", "sock.reuseport"],
    measure: None,
    doc: Doc {
        looks_for: "A device that is up and has no RPS mask, while an older device of the same kind and driver has one.",
        hurts: "Packets of the new device are not steered; this goes unnoticed until it carries the load.",
        todo: "Give it its siblings' mask, and set net.core.rps_default_mask for those to come.",
        wrong: "It may have been left out on purpose, so it is never more than worth watching. Where one UDP socket takes the \
                packets, steering makes the CPUs contend for its lock, so SO_REUSEPORT comes first.",
        sources: "Terway issue 90; Documentation/admin-guide/sysctl/net.rst (rps_default_mask).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let devices = evidence.each(&keys::RPS_CPUS)?;
    evidence.each(&keys::DEVICE_BORN)?;
    let mut findings = Vec::new();
    for (device, masks) in &devices {
        // Where it is unknown whether the device is up, it is taken for up.
        let down = evidence
            .quantity(&keys::DEVICE_UP, device)
            .is_ok_and(|up| up.value < 0.5);
        if masks.value > MASKED.value || down {
            continue;
        }
        let sibling = devices.iter().find(|(sibling, masks)| {
            masks.value > MASKED.value && is_older_sibling(evidence, sibling, device)
        });
        if let Some((sibling, theirs)) = sibling {
            findings.push(found(evidence, device, *masks, sibling, *theirs));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::clear(format!(
            "no device lacks the receive steering of an older sibling ({} checked)",
            devices.len()
        )));
    }
    Ok(findings)
}

/// Same kind, same driver where both are known, and made earlier.
fn is_older_sibling(evidence: &Evidence, sibling: &Subject, device: &Subject) -> bool {
    let born = |of: &Subject| {
        evidence
            .quantity(&keys::DEVICE_BORN, of)
            .map(|born| born.value)
    };
    let kind = |of: &Subject| {
        evidence
            .words(&keys::DEVICE_KIND, of)
            .map(|kind| kind.value)
    };
    let driver = |of: &Subject| {
        evidence
            .words(&keys::DEVICE_DRIVER, of)
            .ok()
            .map(|driver| driver.value)
    };
    let (Ok(theirs), Ok(ours)) = (born(sibling), born(device)) else {
        return false;
    };
    let (Ok(their_kind), Ok(our_kind)) = (kind(sibling), kind(device)) else {
        return false;
    };
    theirs < ours && their_kind == our_kind && driver(sibling) == driver(device)
}

fn found(
    evidence: &Evidence,
    device: &Subject,
    masks: Quantity<'_>,
    sibling: &Subject,
    theirs: Quantity<'_>,
) -> Finding {
    let queue = format!("{}:", sibling.name());
    let mask = evidence
        .each_words(&keys::RPS_MASK)
        .ok()
        .and_then(|queues| {
            queues
                .into_iter()
                .find(|(of, mask)| of.name().starts_with(&queue) && !mask.value.is_empty())
                .map(|(_, mask)| mask.value)
        });
    let sentence = format!(
        "{} has no receive steering, and its older sibling {} steers over {:.0} CPUs: tuning at start missed it",
        device.name(),
        sibling.name(),
        theirs.value
    );
    let finding = Finding::watch(device, sentence)
        .severity(Grade::Low)
        .cite(masks.reading)
        .cite(theirs.reading)
        .refuted_by("it was left out on purpose");
    match mask {
        Some(mask) => {
            let wish = ("net.rps_cpus", mask);
            let finding = spread::over(evidence, finding, device.name(), &[wish]);
            if spread::is_safe(evidence) == Ok(true) {
                finding.turn("net.rps_default_mask", mask)
            } else {
                finding.consider("net.rps_default_mask")
            }
        }
        None => finding.consider("net.rps_default_mask"),
    }
}
