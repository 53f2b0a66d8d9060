//! `irq-one-node`: the packets are taken on one NUMA node, and that node has no time left.
//!
//! Interrupts near the device are right while their node has idle CPUs; irqbalance places them so on
//! purpose. It becomes a sickness when the node is saturated and the other one is not asked.

use std::collections::BTreeSet;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::irqs;
use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const SHARE: Threshold = Threshold {
    name: "NET_RX of one node",
    value: 0.9,
    origin: "own guess; the reference case showed all of it on node 0",
};

const SOFTIRQ: Threshold = Threshold {
    name: "softirq time of that node's CPUs, mean",
    value: 0.4,
    origin: "own guess: soft interrupts are most of what the node does",
};

const BUSY: Threshold = Threshold {
    name: "busy time of that node's CPUs, mean",
    value: 0.8,
    origin: "own guess for saturated; below it, near the device is the right place",
};

/// `irq-one-node`
pub(crate) static RULE: Rule = Rule {
    id: "irq-one-node",
    topic: "device",
    summary: "interrupts of the network sit on one NUMA node that has no time left",
    needs: needs!(
        [
            &keys::CPU_BUSY,
            &keys::CPU_NODE,
            &keys::IRQ_BALANCER,
            &keys::IRQ_BUSIEST_CPU,
            &keys::IRQ_DEVICE,
            &keys::IRQ_HINT,
            &keys::IRQ_RATE,
            &keys::NUMA_NODES,
            &keys::SOFTIRQ_NET_RX_NODE_SHARE,
            &keys::SOFTIRQ_NODE_TIME,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[SHARE, SOFTIRQ, BUSY],
    knobs: &[
        "net.affinity_hint",
        "net.irq_affinity",
        "net.irqbalance_stop",
        "sock.reuseport",
    ],
    measure: Some(Measure::more(&keys::SOFTIRQ_NET_RX_NODE_SHARE)),
    doc: Doc {
        looks_for: "More than 90 % of NET_RX on one of several nodes, more than 40 % of that node's time in softirq, \
                    its CPUs more than 80 % busy, and the interrupts of the devices on that node.",
        hurts: "Half of the machine takes no packets, while the other half has no time left for the service.",
        todo: "Follow the driver's hints where they name both nodes, or deal the queues over all CPUs; keep the \
               balancer from putting them back.",
        wrong: "While the node has idle CPUs, near the device is the right place. NET_RX of receive steering, veth and \
                loopback does not involve interrupts; the interrupts themselves have to be on the node. While \
                udp-socket-lock holds, spreading makes it worse (reference case: 270 k to 17 k transactions/s), and it \
                is only worth watching.",
        sources: "The reference case (20 cores on two nodes, 82599ES, irqbalance): interrupts on CPUs 0-4 and 10-14 \
                  only; irqbalance issues 50, 175 and 234.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let nodes = evidence.host(&keys::NUMA_NODES)?;
    if nodes.value < 1.5 {
        return Ok(vec![
            Finding::clear("there is one NUMA node").cite(nodes.reading),
        ]);
    }
    let (node, share) = pick::largest(evidence, &keys::SOFTIRQ_NET_RX_NODE_SHARE)?;
    let softirq = evidence.quantity(&keys::SOFTIRQ_NODE_TIME, node)?;
    let busy = busy(evidence, node)?;
    let name = node.name();
    let sentence = format!(
        "node {name} takes {} of NET_RX, spends {} of its time in softirq and is {} busy",
        say::percent(share.value),
        say::percent(softirq.value),
        say::percent(busy)
    );
    let clear = |finding: Finding| vec![finding.cite(share.reading).cite(softirq.reading)];
    if share.value <= SHARE.value {
        return Ok(clear(
            Finding::clear(sentence).below(share.value, SHARE.value),
        ));
    }
    if softirq.value <= SOFTIRQ.value {
        return Ok(clear(
            Finding::clear(sentence).below(softirq.value, SOFTIRQ.value),
        ));
    }
    if busy <= BUSY.value {
        return Ok(clear(
            Finding::clear(format!(
                "{sentence}: it has time left, and near the device is the right place"
            ))
            .below(busy, BUSY.value),
        ));
    }
    let irqs = irqs::of_devices(evidence)?;
    let here = |irq: &irqs::Irq<'_>| {
        irq.cpu(evidence)
            .and_then(|cpu| evidence.quantity(&keys::CPU_NODE, &Subject::cpu(cpu)).ok())
            .is_some_and(|of| format!("{:.0}", of.value) == name)
    };
    let all: f64 = irqs.iter().map(|irq| irq.rate.value).sum();
    let on_node: f64 = irqs
        .iter()
        .filter(|irq| here(irq))
        .map(|irq| irq.rate.value)
        .sum();
    let Some((device, of_device)) =
        irqs::most_frequent(&irqs, here).filter(|_| on_node > SHARE.value * all)
    else {
        return Ok(clear(Finding::clear(format!(
            "{sentence}, but the hard interrupts are not there: steering, veth or loopback bring the packets"
        ))));
    };
    let cpus: BTreeSet<usize> = of_device
        .iter()
        .filter_map(|irq| irq.cpu(evidence))
        .collect();
    let mut finding = Finding::act(
        node,
        format!(
            "{sentence}; {} of {device} all arrive on {}",
            say::count(of_device.len() as f64, "interrupt"),
            say::the_cpus(&cpus)
        ),
    )
    .severity(Grade::High)
    .confidence(if share.always(|share| share > SHARE.value) {
        Grade::High
    } else {
        Grade::Medium
    })
    .cite(share.reading)
    .cite(softirq.reading)
    .refuted_by("with the queues on CPUs of all nodes, the rate stays as it was");
    for irq in of_device.iter().take(4) {
        finding = finding.cite(irq.rate.reading);
    }
    let hinted: BTreeSet<usize> = of_device
        .iter()
        .filter_map(|irq| evidence.words(&keys::IRQ_HINT, irq.subject).ok())
        .flat_map(|hint| say::parse_cpus(hint.value))
        .collect();
    let elsewhere = hinted.iter().any(|cpu| {
        evidence
            .quantity(&keys::CPU_NODE, &Subject::cpu(*cpu))
            .is_ok_and(|of| format!("{:.0}", of.value) != name)
    });
    // Both write the same files: one of them is asked for.
    finding = if elsewhere {
        finding
            .turn_device("net.affinity_hint", device, "follow")
            .consider_device("net.irq_affinity", device)
    } else {
        finding.turn_device("net.irq_affinity", device, "spread")
    };
    if let Ok(balancer) = evidence.words(&keys::IRQ_BALANCER, &Subject::host())
        && !balancer.value.is_empty()
    {
        finding = finding
            .cite(balancer.reading)
            .turn("net.irqbalance_stop", "ban");
    }
    Ok(vec![spread::not_alone(evidence, finding)])
}

/// Mean busy share of the node's CPUs.
fn busy(evidence: &Evidence, node: &Subject) -> Result<f64, Missing> {
    let busy: Vec<f64> = evidence
        .each(&keys::CPU_NODE)?
        .into_iter()
        .filter(|(_, of)| format!("{:.0}", of.value) == node.name())
        .filter_map(|(cpu, _)| evidence.quantity(&keys::CPU_BUSY, cpu).ok())
        .map(|busy| busy.value)
        .collect();
    if busy.is_empty() {
        return Err(evidence.missing(&keys::CPU_BUSY, &Subject::host()));
    }
    Ok(busy.iter().sum::<f64>() / busy.len() as f64)
}
