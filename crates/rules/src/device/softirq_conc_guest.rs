//! `softirq-conc-guest`: a guest with a single queue, whose packets one CPU has to take.
//!
//! Without a multi-queue virtual device the only move inside the guest is receive steering, and a gain is
//! not assured: in the bank's guest the load was spread and nothing came of it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::irq_one_cpu::{self, Cause, Concentration, SHARE, SOFTIRQ};
use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const SINGLE: Threshold = Threshold {
    name: "queues that the driver offers",
    value: 1.0,
    origin: "definition: no virtual multi-queue",
};

const SHORT: Threshold = Threshold {
    name: "busy time of that CPU",
    value: 0.8,
    origin: "the bank's guest: below it, softirq was not the main bottleneck",
};

const REPORTED: Threshold = Threshold {
    name: "softirq time of that CPU from which on it is reported",
    value: 0.25,
    origin: "own guess, half of the line of irq-one-cpu; a case without a figure",
};

/// `softirq-conc-guest`
pub(crate) static RULE: Rule = Rule {
    id: "softirq-conc-guest",
    topic: "device",
    summary: "a guest with one queue takes all its packets on one CPU",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::CPU_SOFTIRQ,
            &keys::DEVICE_KIND,
            &keys::DEVICE_RX_PACKETS,
            &keys::IRQ_BUSIEST_CPU,
            &keys::IRQ_DEVICE,
            &keys::IRQ_RATE,
            &keys::QUEUES_MAXIMUM,
            &keys::RPS_CPUS,
            &keys::RPS_MASK,
            &keys::SOFTIRQ_NET_RX_SHARE,
            &keys::SOFTNET_PROCESSED,
            &keys::SOFTNET_RECEIVED_RPS,
            &keys::UDP_SHARE,
            &keys::VIRT_HYPERVISOR
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[SINGLE, SHORT, SHARE, REPORTED, SOFTIRQ],
    knobs: &["virt.multiqueue", "net.rps_cpus"],
    measure: Some(Measure::more(&keys::SOFTIRQ_NET_RX_SHARE)),
    doc: Doc {
        looks_for: "A guest whose device offers a single queue, and one CPU with more than 60 % of the NET_RX soft interrupts, which of \
                    all CPUs spends the most time in softirq, 25 % or more of it.",
        hurts: "One virtual CPU is the ceiling of the guest's traffic.",
        todo: "Ask for a device with several queues (virtio queues=N). Receive steering inside the guest spreads the \
               load of the protocols, not that of the device.",
        wrong: "As long as that CPU is not above 80 %, or does not spend more than half of its time in softirq \
                (irq-one-cpu), softirq is not the main bottleneck, and spreading brings nothing: it is only worth watching.",
        sources: "A bank's guest without multi-queue: softirq spread by RPS, no gain.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let hypervisor = evidence.words(&keys::VIRT_HYPERVISOR, &Subject::host())?;
    if hypervisor.value.is_empty() {
        return Ok(vec![
            Finding::clear("the machine is not a guest").cite(hypervisor.reading),
        ]);
    }
    let seen = irq_one_cpu::concentration(evidence)?;
    if !seen.holds() && !is_concentrated(evidence, &seen)? {
        return Ok(vec![
            Finding::clear(format!(
                "CPU {} of the guest takes {} of NET_RX and spends {} of its time in softirq",
                seen.cpu.name(),
                say::percent(seen.share.value),
                say::percent(seen.softirq.value)
            ))
            .below(seen.softirq.value, REPORTED.value)
            .cite(seen.softirq.reading),
        ]);
    }
    let Cause::Interrupts(device, _) = irq_one_cpu::cause(evidence, &seen)? else {
        return Ok(vec![
            Finding::clear(
                "the packets of the busiest CPU do not come by an interrupt of a device",
            )
            .cite(seen.share.reading),
        ]);
    };
    let subject = Subject::device(device);
    let most = evidence.quantity(&keys::QUEUES_MAXIMUM, &subject)?;
    if most.value > SINGLE.value + 0.5 {
        return Ok(vec![
            Finding::clear(format!(
                "{device} offers {}, so the guest can spread them itself (irq-one-cpu)",
                say::count(most.value, "queue")
            ))
            .cite(most.reading),
        ]);
    }
    let busy = evidence.quantity(&keys::CPU_BUSY, seen.cpu)?;
    let sentence = format!(
        "{device} of this {} guest has one queue, and CPU {} takes {} of NET_RX",
        hypervisor.value,
        seen.cpu.name(),
        say::percent(seen.share.value)
    );
    let finding = if !seen.holds() {
        let sentence = format!(
            "{sentence}; at {} of its time in softirq that is not the main bottleneck",
            say::percent(seen.softirq.value)
        );
        Finding::watch(&subject, sentence).severity(Grade::Low)
    } else if busy.value > SHORT.value {
        Finding::act(
            &subject,
            format!("{sentence}, {} busy", say::percent(busy.value)),
        )
    } else {
        Finding::watch(
            &subject,
            format!(
                "{sentence}; at {} busy it is not the main bottleneck",
                say::percent(busy.value)
            ),
        )
        .severity(Grade::Low)
    };
    let finding = finding
        .cite(hypervisor.reading)
        .cite(most.reading)
        .cite(seen.softirq.reading)
        .cite(busy.reading)
        .refuted_by("with steering on, the CPU is less busy and the rate stays as it was")
        .consider("virt.multiqueue");
    let unsteered = evidence
        .quantity(&keys::RPS_CPUS, &subject)
        .is_ok_and(|cpus| cpus.value < 0.5);
    Ok(vec![
        if unsteered && spread::is_safe(evidence).unwrap_or(false) {
            finding.turn_device("net.rps_cpus", device, "all")
        } else {
            finding
        },
    ])
}

/// One CPU takes most packets and has the most work with them of all, though it may have time left.
fn is_concentrated(evidence: &Evidence, seen: &Concentration<'_>) -> Result<bool, Missing> {
    let (busiest, _) = pick::largest(evidence, &keys::CPU_SOFTIRQ)?;
    Ok(seen.share.always(|share| share > SHARE.value)
        && seen.softirq.always(|time| time > REPORTED.value)
        && seen.softirq.value <= SOFTIRQ.value
        && busiest == seen.cpu)
}
