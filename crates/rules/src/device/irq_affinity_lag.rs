//! `irq-affinity-lag`: an interrupt was given a new place and has not fired since.
//!
//! On x86 a new affinity takes effect when the next interrupt arrives: until then `smp_affinity_list` shows the
//! wish and `effective_affinity_list` the old place (measured on a virtio guest, Linux 6.18).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use super::irqs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SILENT: Threshold = Threshold {
    name: "interrupts per second",
    value: 0.0,
    origin: "an interrupt that fired has moved; measured on Linux 6.18, interrupt 41 of a virtio device",
};

/// `irq-affinity-lag`
pub(crate) static RULE: Rule = Rule {
    id: "irq-affinity-lag",
    topic: "device",
    summary: "an interrupt has a new affinity that waits for its next arrival",
    needs: &[
        &keys::IRQ_AFFINITY,
        &keys::IRQ_DEVICE,
        &keys::IRQ_EFFECTIVE,
        &keys::IRQ_RATE,
    ],
    thresholds: &[SILENT],
    knobs: &["net.irq_affinity"],
    measure: Some(Measure::more(&keys::IRQ_RATE)),
    doc: Doc {
        looks_for: "An interrupt of a network device that is still bound outside its affinity and did not fire in \
                    the window.",
        hurts: "Nothing directly. But a measurement taken now shows the old placement.",
        todo: "Send traffic through the queue, then look again; judge a new affinity only after an interrupt.",
        wrong: "It does not look at interrupts that fired: those go where the kernel bound them.",
        sources: "kernel/irq/migration.c (Linux 6.18); measured: after a write of CPU 1 smp_affinity_list read 1 and \
                  effective_affinity_list still 0.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    evidence.each_words(&keys::IRQ_EFFECTIVE)?;
    let irqs = irqs::of_devices(evidence)?;
    let mut findings = Vec::new();
    for (device, irqs) in irqs::by_device(&irqs) {
        let late: Vec<_> = irqs
            .iter()
            .filter_map(|irq| {
                let wanted = evidence.words(&keys::IRQ_AFFINITY, irq.subject).ok()?;
                let found = evidence.words(&keys::IRQ_EFFECTIVE, irq.subject).ok()?;
                let (allowed, bound) =
                    (say::parse_cpus(wanted.value), say::parse_cpus(found.value));
                let waits = irq.rate.value <= SILENT.value
                    && !allowed.is_empty()
                    && !bound.is_empty()
                    && !bound.is_subset(&allowed);
                waits.then_some((irq, wanted, found))
            })
            .collect();
        let Some((first, wanted, bound)) = late.first() else {
            continue;
        };
        let more = match late.len() {
            1 => String::new(),
            all => format!(", and {} more wait like it", all - 1),
        };
        let sentence = format!(
            "interrupt {} of {device} may go to {} and is still bound to {}: it has not fired since{more}",
            first.subject.name(),
            say::the_cpus(&say::parse_cpus(wanted.value)),
            say::the_cpus(&say::parse_cpus(bound.value))
        );
        findings.push(
            Finding::watch(&Subject::device(device), sentence)
                .severity(Grade::Low)
                .confidence(Grade::High)
                .cite(wanted.reading)
                .cite(bound.reading)
                .cite(first.rate.reading)
                .consider("net.irq_affinity")
                .refuted_by("the interrupt fires and effective_affinity_list stays as it is"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::clear(format!(
            "no silent interrupt of a network device waits for a new place ({} seen)",
            irqs.len()
        )));
    }
    Ok(findings)
}
