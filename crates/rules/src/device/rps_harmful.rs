//! `rps-harmful`: receive steering where each CPU has a hardware queue of its own.
//!
//! The hardware has dealt the packets already; steering deals them again, by interrupts between CPUs and a
//! second queue per packet.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const PER_IRQ: Threshold = Threshold {
    name: "NET_RX soft interrupts per hard interrupt",
    value: 1.3,
    origin: "redpanda pull request 27680: 1.6 with steering, 1 without",
};

const WOKEN: Threshold = Threshold {
    name: "wake-ups of other CPUs for steering, per second",
    value: 1000.0,
    origin: "own guess: a thousandth of a CPU at 1 us each; below it, steering costs nothing worth a change",
};

/// `rps-harmful`
pub(crate) static RULE: Rule = Rule {
    id: "rps-harmful",
    topic: "device",
    summary: "receive steering although each CPU has a hardware queue",
    needs: &[
        &keys::CPU_ONLINE,
        &keys::DEVICE_KIND,
        &keys::IPI_CALL,
        &keys::QUEUES_RX,
        &keys::RFS_ENTRIES,
        &keys::RPS_CPUS,
        &keys::RSS_TABLE_QUEUES,
        &keys::SOFTIRQ_NET_RX_PER_IRQ,
        &keys::SOFTNET_RECEIVED_RPS,
    ],
    thresholds: &[PER_IRQ, WOKEN],
    knobs: &["net.rps_cpus"],
    measure: Some(Measure::more(&keys::SOFTIRQ_NET_RX_PER_IRQ)),
    doc: Doc {
        looks_for: "A hardware device with RPS masks and at least one receive queue per CPU, more than 1.3 NET_RX soft \
                    interrupts per hard interrupt, and more than 1,000 wake-ups of other CPUs per second.",
        hurts: "Each packet is queued twice and moves between caches, and the CPUs interrupt each other.",
        todo: "RPS off on that device.",
        wrong: "Receive flow steering (RFS) needs the masks: with a flow table this rule reports nothing. The same holds where the \
                RSS table names fewer queues than there are CPUs: steering reaches the others. \
                Where the table cannot be read it is watched only.",
        sources: "redpanda pull request 27680 (1.6 to 1 soft interrupts per interrupt, softirq time halved); OpenShift \
                  NTO pull request 1370, which switched it off by default.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let cpus = evidence.host(&keys::CPU_ONLINE)?;
    let mut steered = Vec::new();
    for (device, masks) in evidence.each(&keys::RPS_CPUS)? {
        let kind = evidence.words(&keys::DEVICE_KIND, device)?;
        if kind.value != "hardware" || masks.value < 0.5 {
            continue;
        }
        let queues = evidence.quantity(&keys::QUEUES_RX, device)?;
        // Of the 20 queues of an 82599 packets reach 16; steering is how the other CPUs get any.
        let named = evidence.quantity(&keys::RSS_TABLE_QUEUES, device).ok();
        let reached = named.map_or(queues.value, |named| named.value.min(queues.value));
        if reached >= cpus.value {
            steered.push((device, masks, queues, named));
        }
    }
    if steered.is_empty() {
        return Ok(vec![Finding::clear(
            "no hardware device has both receive steering and a queue for each CPU",
        )]);
    }
    let flows = evidence.host(&keys::RFS_ENTRIES)?;
    if flows.value > 0.5 {
        return Ok(vec![
            Finding::clear(format!(
                "receive steering serves flow steering here (a table of {:.0} flows)",
                flows.value
            ))
            .cite(flows.reading),
        ]);
    }
    let per_irq = evidence.host(&keys::SOFTIRQ_NET_RX_PER_IRQ)?;
    let woken: f64 = evidence
        .each(&keys::SOFTNET_RECEIVED_RPS)?
        .iter()
        .map(|(_, woken)| woken.value)
        .sum();
    if per_irq.value <= PER_IRQ.value || woken <= WOKEN.value {
        let sentence = format!(
            "steering costs little: {:.2} NET_RX soft interrupts per interrupt, {} wake-ups of other CPUs",
            per_irq.value,
            say::rate(woken)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(per_irq.value, PER_IRQ.value)
                .cite(per_irq.reading),
        ]);
    }
    let findings = steered.into_iter().map(|(device, masks, queues, named)| {
        let sentence = format!(
            "{} has a queue for each of {} and steers packets once more: {:.2} soft interrupts per interrupt, {} \
             wake-ups of other CPUs",
            device.name(),
            say::count(cpus.value, "CPU"),
            per_irq.value,
            say::rate(woken)
        );
        let finding = if let Some(named) = named {
            Finding::act(device, sentence)
                .confidence(Grade::High)
                .cite(named.reading)
        } else {
            let sentence = format!("{sentence}; whether its RSS table names all is unknown");
            Finding::watch(device, sentence).confidence(Grade::Medium)
        };
        let finding = finding
            .cite(masks.reading)
            .cite(queues.reading)
            .cite(per_irq.reading)
            .turn_device("net.rps_cpus", device.name(), "off")
            .refuted_by("with steering off, softirq time stays as it was, or one CPU takes most packets");
        match evidence.host(&keys::IPI_CALL) {
            Ok(calls) => finding.cite(calls.reading),
            Err(_) => finding,
        }
    });
    Ok(findings.collect())
}
