//! `softnet-drop`: the backlog of a CPU was full, and packets were dropped before any socket saw them.
//!
//! The backlog takes what receive steering, loopback and veth without NAPI hand to a CPU. Hardware queues
//! without steering never pass through it. Column 2 of /`proc/net/softnet_stat`.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use super::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RATE: Threshold = Threshold {
    name: "packets dropped at the backlog, per second, in each part of the window",
    value: 0.0,
    origin: "any, if it persists: a healthy host has none",
};

const LIMITED: Threshold = Threshold {
    name: "drops by the flow limit, as a share of all",
    value: 0.9,
    origin: "the flow limit drops on purpose, and counts in both columns",
};

const LONGEST: Threshold = Threshold {
    name: "longest recommended backlog",
    value: 30_000.0,
    origin: "the end of common practice; at 100,000 packets/s the last of them waits for 0.3 s",
};

/// `softnet-drop`
pub(crate) static RULE: Rule = Rule {
    id: "softnet-drop",
    topic: "net",
    summary: "packets are dropped because the backlog of a CPU is full",
    needs: needs!(
        [
            &keys::FLOWS_LARGEST_SHARE,
            &keys::RPS_CPUS,
            &keys::RPS_MASK,
            &keys::SOFTNET_BACKLOG,
            &keys::SOFTNET_DROPPED,
            &keys::SOFTNET_FLOW_LIMIT,
            &keys::UDP_PROCESS,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[RATE, LIMITED, LONGEST, spread::UDP],
    knobs: &[
        "net.netdev_max_backlog",
        "net.rps_cpus",
        "net.flow_limit",
        "sock.reuseport",
    ],
    measure: Some(Measure::more(&keys::SOFTNET_DROPPED)),
    doc: Doc {
        looks_for: "Drops at the backlog of a CPU in each third of the window.",
        hurts: "Packets that crossed the wire are lost, of all services that this CPU takes packets for.",
        todo: "If one CPU drops, more CPUs in the steering mask that names it alone, for a UDP service with one socket only after \
               SO_REUSEPORT; if one flow floods it, the flow limit keeps room for the others. A longer backlog holds longer bursts, up \
               to 30,000 packets: what waits longer comes too late. It does nothing for a CPU that drops all the time.",
        wrong: "The counters run since boot: only what the window added counts, and only if it goes on. The row is not \
                the CPU on kernels that print its number (column 13). Drops of the flow limit are on purpose. The \
                counters are the whole host's, also in a namespace.",
        sources: "enqueue_to_backlog in net/core/dev.c (Linux 6.18); xsos issue 108; RHEL performance guide. Measured on two CPUs, \
                  Linux 6.18, under a flood: 34 k to 136 k/s dropped with a backlog of 1,000, 86 k/s with 5,000, 208 k/s with 30,000.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let all = evidence.each(&keys::SOFTNET_DROPPED)?;
    let dropping: Vec<_> = all
        .iter()
        .filter(|(_, rate)| rate.value > RATE.value)
        .collect();
    let Some((worst, most)) = dropping
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        return Ok(vec![Finding::clear(format!(
            "no packet was dropped at the backlog of any of {}",
            say::count(all.len() as f64, "CPU")
        ))]);
    };
    let total: f64 = dropping.iter().map(|(_, rate)| rate.value).sum();
    let steady: Vec<_> = dropping
        .iter()
        .filter(|(_, rate)| rate.lasts(|rate| rate > RATE.value))
        .collect();
    let where_ = match dropping.len() {
        1 => format!("CPU {}", worst.name()),
        several => format!("{several} CPUs, most at CPU {}", worst.name()),
    };
    let subject = if dropping.len() == 1 {
        (*worst).clone()
    } else {
        Subject::host()
    };
    let sentence = format!(
        "{} packets are dropped at the backlog of {where_}",
        say::rate(total)
    );
    let limited: f64 = evidence
        .each(&keys::SOFTNET_FLOW_LIMIT)
        .unwrap_or_default()
        .iter()
        .map(|(_, rate)| rate.value)
        .sum();
    let cited = |mut finding: Finding| {
        for (_, rate) in dropping.iter().take(4) {
            finding = finding.cite(rate.reading);
        }
        finding.refuted_by("no packet is dropped there in a second window")
    };
    if limited > LIMITED.value * total {
        return Ok(vec![cited(
            Finding::watch(
                &subject,
                format!("{sentence}, by the flow limit, on purpose"),
            )
            .severity(Grade::Low),
        )]);
    }
    if steady.is_empty() {
        return Ok(vec![
            cited(Finding::watch(&subject, format!("{sentence}, in a burst")).severity(Grade::Low))
                .consider("net.netdev_max_backlog"),
        ]);
    }
    let in_parts = !most.reading.series.is_empty();
    let finding = cited(
        Finding::act(&subject, sentence)
            .severity(Grade::High)
            .confidence(if in_parts { Grade::High } else { Grade::Medium }),
    );
    let alone = (dropping.len() == 1).then_some(*worst);
    Ok(vec![remedies(evidence, finding, alone)])
}

/// `alone` is the CPU that drops, where it is one.
fn remedies(evidence: &Evidence, finding: Finding, alone: Option<&Subject>) -> Finding {
    let mut finding = match evidence.host(&keys::SOFTNET_BACKLOG) {
        Ok(backlog) if backlog.value >= LONGEST.value => {
            let mut finding = finding
                .cite(backlog.reading)
                .consider("net.netdev_max_backlog");
            let _ = write!(
                finding.sentence,
                ", which holds {} already: a longer queue is late",
                say::count(backlog.value, "packet")
            );
            finding
        }
        // No value: see the measurement in the sources.
        Ok(backlog) => finding
            .cite(backlog.reading)
            .consider("net.netdev_max_backlog"),
        Err(_) => finding.consider("net.netdev_max_backlog"),
    };
    // One CPU that drops while a device steers to it alone: let it have company.
    if let Some((device, masks)) = alone.and_then(|cpu| steering_to(evidence, cpu)) {
        finding = finding.cite(masks.reading);
        finding = spread::over(evidence, finding, device.name(), &[("net.rps_cpus", "all")]);
    }
    match evidence.host(&keys::FLOWS_LARGEST_SHARE) {
        Ok(largest) if largest.value > 0.5 => {
            finding.cite(largest.reading).consider("net.flow_limit")
        }
        _ => finding,
    }
}

/// The device whose steering names this CPU and no other.
fn steering_to<'e>(evidence: &'e Evidence, cpu: &Subject) -> Option<(&'e Subject, Quantity<'e>)> {
    let named = evidence.each_words(&keys::RPS_MASK).ok()?;
    let names_it = |device: &Subject| {
        named.iter().any(|(queue, mask)| {
            let of = queue.name().rsplit_once(':').map(|(of, _)| of);
            let cpus = say::parse_cpus(mask.value);
            of == Some(device.name()) && cpus.iter().any(|number| number.to_string() == cpu.name())
        })
    };
    let devices = evidence.each(&keys::RPS_CPUS).ok()?;
    devices
        .into_iter()
        .find(|(device, cpus)| (0.5..1.5).contains(&cpus.value) && names_it(device))
}
