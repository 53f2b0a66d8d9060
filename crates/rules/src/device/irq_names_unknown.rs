//! `irq-names-unknown`: a hardware device whose interrupts could not be distinguished from others.
//!
//! Names in /proc/interrupts are the drivers' own. Where neither name nor bus finds a match, all rules
//! about the placement of this device's interrupts are blind, and that has to be said.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold};

const UNMATCHED: Threshold = Threshold {
    name: "device without an interrupt of its own",
    value: 0.5,
    origin: "a claim, 0 or 1",
};

/// `irq-names-unknown`
pub(crate) static RULE: Rule = Rule {
    id: "irq-names-unknown",
    topic: "device",
    summary: "the interrupts of a hardware device cannot be identified",
    needs: &[&keys::DEVICE_DRIVER, &keys::DEVICE_UP, &keys::IRQ_UNMATCHED],
    thresholds: &[UNMATCHED],
    knobs: &["net.irq_affinity"],
    measure: None,
    doc: Doc {
        looks_for: "A hardware device that is up and to which no row of /proc/interrupts could be matched, by name or \
                    by the msi_irqs of its bus device.",
        hurts: "Rules about this device's interrupts cannot see, and tools that place interrupts by name do nothing \
                or the wrong thing.",
        todo: "Find the rows by hand (the driver's name, the bus address) and place them by number.",
        wrong: "Kernels from 5.17 on may show an empty msi_irqs list for some devices. A device without interrupts of \
                its own (a port of a multi-function card, USB) has none to match.",
        sources: "The bank's second method (by bus address); oeAware's hardirq_tune.conf; redpanda issues 2162 and \
                  10975.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let devices = evidence.each(&keys::IRQ_UNMATCHED)?;
    let all = devices.len();
    let findings: Vec<_> = devices
        .into_iter()
        .filter(|(device, unmatched)| {
            // Where it is unknown whether the device is up, it is taken for up.
            let down = evidence
                .quantity(&keys::DEVICE_UP, device)
                .is_ok_and(|up| up.value < 0.5);
            unmatched.value > UNMATCHED.value && !down
        })
        .map(|(device, unmatched)| {
            let driver = evidence
                .words(&keys::DEVICE_DRIVER, device)
                .map_or(String::new(), |driver| format!(" (driver {})", driver.value));
            let sentence = format!(
                "no row of /proc/interrupts could be matched to {}{driver}: where its interrupts go is unknown",
                device.name()
            );
            Finding::watch(device, sentence)
                .severity(Grade::Low)
                .confidence(Grade::Medium)
                .cite(unmatched.reading)
                .consider("net.irq_affinity")
                .refuted_by("the device has no interrupts of its own")
        })
        .collect();
    if findings.is_empty() {
        return Ok(vec![Finding::clear(format!(
            "the interrupts of every hardware device that is up are known ({all} checked)"
        ))]);
    }
    Ok(findings)
}
