//! `irq-rate-high`: a queue interrupts so often that each interrupt brings next to nothing.
//!
//! An interrupt costs about a microsecond whatever it brings. Moderation in the device, or polling again
//! before the interrupt is armed (`napi_defer_hard_irqs`), trades a little latency for it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use super::irqs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RATE: Threshold = Threshold {
    name: "interrupts of one queue per second",
    value: 20_000.0,
    origin: "own guess, 2 % of a CPU at 1 us each; oeAware's 1,000 is normal traffic today",
};

const PACKETS: Threshold = Threshold {
    name: "packets per interrupt",
    value: 4.0,
    origin: "own guess: polling pays when it finds several packets",
};

const SHORT: Threshold = Threshold {
    name: "busy time of the CPU that takes them",
    value: 0.8,
    origin: "own guess: with time to spare, many interrupts are what low latency looks like",
};

/// `irq-rate-high`
pub(crate) static RULE: Rule = Rule {
    id: "irq-rate-high",
    topic: "device",
    summary: "a queue interrupts very often, for few packets each time",
    needs: &[
        &keys::COALESCE_ADAPTIVE,
        &keys::CPU_BUSY,
        &keys::DEVICE_PACKETS_PER_IRQ,
        &keys::IRQ_BUSIEST_CPU,
        &keys::IRQ_DEVICE,
        &keys::IRQ_RATE,
    ],
    thresholds: &[RATE, PACKETS, SHORT],
    knobs: &["net.coalesce", "net.napi_defer", "net.busy_poll"],
    measure: Some(Measure::more(&keys::IRQ_RATE)),
    doc: Doc {
        looks_for: "More than 20,000 interrupts/s on one queue with fewer than 4 packets each.",
        hurts: "The CPU enters and leaves the interrupt more than it takes packets.",
        todo: "Adaptive moderation in the device, or deferred interrupts (net.napi_defer); busy polling where a CPU \
               can be spared.",
        wrong: "A low-latency service wants this. Moderation is recommended only where the CPU that takes the interrupts is more than \
                80 % busy; otherwise it is only worth watching.",
        sources: "oeAware net_hirq_analysis; Linux commit 6f8b12d661d0 (re-arming the interrupt cost about 20 % on a \
                  100G device with more than 32 queues).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let irqs = irqs::of_devices(evidence)?;
    let mut findings = Vec::new();
    for (device, irqs) in irqs::by_device(&irqs) {
        let Some(irq) = irqs
            .iter()
            .max_by(|a, b| a.rate.value.total_cmp(&b.rate.value))
            .filter(|irq| irq.rate.value > RATE.value)
        else {
            continue;
        };
        let subject = Subject::device(device);
        let packets = evidence.quantity(&keys::DEVICE_PACKETS_PER_IRQ, &subject)?;
        if packets.value < PACKETS.value {
            findings.push(found(evidence, irq, packets)?);
        }
    }
    if findings.is_empty() {
        let most = irqs
            .iter()
            .map(|irq| irq.rate)
            .max_by(|a, b| a.value.total_cmp(&b.value));
        findings.extend(most.map(|most| {
            Finding::clear(format!(
                "the busiest queue interrupts {}, or brings enough packets each time",
                say::rate(most.value)
            ))
            .below(most.value, RATE.value)
            .cite(most.reading)
        }));
    }
    Ok(findings)
}

fn found(
    evidence: &Evidence,
    irq: &irqs::Irq<'_>,
    packets: Quantity<'_>,
) -> Result<Finding, Missing> {
    let device = irq.device.value;
    let subject = Subject::device(device);
    let cpu = evidence
        .quantity(&keys::IRQ_BUSIEST_CPU, irq.subject)?
        .value as usize;
    let busy = evidence.quantity(&keys::CPU_BUSY, &Subject::cpu(cpu))?;
    let sentence = format!(
        "interrupt {} of {device} fires {} for {:.1} packets each time, and its CPU {cpu} is {} busy",
        irq.subject.name(),
        say::rate(irq.rate.value),
        packets.value,
        say::percent(busy.value)
    );
    let finding = if busy.value > SHORT.value {
        Finding::act(&subject, sentence)
    } else {
        Finding::watch(&subject, sentence).severity(Grade::Low)
    };
    let mut finding = finding
        .cite(irq.rate.reading)
        .cite(packets.reading)
        .cite(busy.reading)
        .refuted_by("with fewer interrupts, the CPU is as busy as before, or the latency that is wanted is lost");
    if let Ok(adaptive) = evidence.words(&keys::COALESCE_ADAPTIVE, &subject)
        && adaptive.value == "off"
    {
        finding =
            finding
                .cite(adaptive.reading)
                .turn_device("net.coalesce", device, "adaptive-rx=on");
    }
    Ok(finding
        .turn_device("net.napi_defer", device, "2/20us")
        .consider("net.busy_poll"))
}
