//! `rss-skew-flows`: many flows, and one queue gets most of the packets.
//!
//! Many drivers hash UDP by the two addresses alone ("sd"), so that fragments stay with their datagram. All
//! flows between two machines then land on one queue.

use std::collections::BTreeMap;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Absence, Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SKEW: Threshold = Threshold {
    name: "packets of the largest queue, against the mean",
    value: 3.0,
    origin: "own guess; 100 flows over 16 queues stay below it by chance",
};

const FLOWS: Threshold = Threshold {
    name: "flows",
    value: 100.0,
    origin: "own guess: with fewer, skew is what chance gives",
};

const ELEPHANT: Threshold = Threshold {
    name: "bytes of the largest flow",
    value: 0.5,
    origin: "one flow that is half of the traffic fills one queue, whatever is hashed",
};

const TRAFFIC: Threshold = Threshold {
    name: "packets per second of the device",
    value: 1000.0,
    origin: "own guess: below it, shares of queues are accidents",
};

const UDP: Threshold = Threshold {
    name: "UDP share of packets",
    value: 0.5,
    origin: "own guess: where most packets are UDP, UDP's hash fields decide",
};

/// `rss-skew-flows`
pub(crate) static RULE: Rule = Rule {
    id: "rss-skew-flows",
    topic: "device",
    summary: "one receive queue gets most packets although there are many flows",
    needs: needs!(
        [
            &keys::DEVICE_RX_PACKETS,
            &keys::FLOWS_COUNT,
            &keys::FLOWS_LARGEST_SHARE,
            &keys::QUEUES_RX,
            &keys::QUEUE_SHARE,
            &keys::RPS_CPUS,
            &keys::RSS_UDP4_FIELDS,
            &keys::UDP_PROCESS,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[SKEW, FLOWS, ELEPHANT, TRAFFIC, UDP, spread::UDP],
    knobs: &["net.rss_hash_fields", "net.rps_cpus", "sock.reuseport"],
    measure: Some(Measure::more(&keys::QUEUE_SHARE)),
    doc: Doc {
        looks_for: "A receive queue with more than three times the mean packets of its device's queues, while more than \
                    100 flows are known.",
        hurts: "The CPU of that queue is the ceiling of the device.",
        todo: "Hash UDP by addresses and ports (sdfn); or receive steering, which hashes all four. Where one UDP socket takes \
               the packets, SO_REUSEPORT comes first: else the CPUs of the queues contend for its lock.",
        wrong: "One flow that carries half of the bytes looks the same; TCP's largest flow is checked, UDP's cannot be. \
                Clients of an unconnected UDP socket are not counted as flows: where UDP dominates and few flows are \
                known, it is not decided. With ports hashed, fragments of a datagram may go to another queue.",
        sources: "Cloudflare, How to receive a million packets per second (2015); redpanda and seastar issues.",
    },
    judge,
};

struct Skew<'a> {
    device: String,
    queues: usize,
    largest: (&'a Subject, Quantity<'a>),
    factor: f64,
}

fn judge(evidence: &Evidence) -> Judgement {
    let skews = match skews(evidence) {
        Ok(skews) => skews,
        // Queues without packets have no shares, and many drivers do not count by queue.
        Err(missing) if missing.key == keys::QUEUE_SHARE.id => {
            return Ok(vec![too_quiet(evidence).ok_or(missing)?]);
        }
        Err(missing) => return Err(missing),
    };
    let Some(worst) = skews
        .into_iter()
        .max_by(|a, b| a.factor.total_cmp(&b.factor))
    else {
        return Ok(vec![Finding::clear(
            "no device with several receive queues takes enough packets for their shares to mean something",
        )]);
    };
    let (queue, share) = worst.largest;
    let sentence = format!(
        "queue {} takes {} of the packets of {}, {:.1} times the mean of {}",
        queue.name(),
        say::percent(share.value),
        worst.device,
        worst.factor,
        say::count(worst.queues as f64, "queue")
    );
    if worst.factor <= SKEW.value {
        return Ok(vec![
            Finding::clear(sentence)
                .below(worst.factor, SKEW.value)
                .cite(share.reading),
        ]);
    }
    let flows = evidence.host(&keys::FLOWS_COUNT)?;
    let udp = evidence.host(&keys::UDP_SHARE)?;
    if flows.value <= FLOWS.value {
        if udp.value > UDP.value {
            return Err(Missing {
                key: keys::FLOWS_COUNT.id,
                subject: Subject::host(),
                why: Absence::because(
                    "clients of unconnected UDP sockets cannot be counted, and UDP is most of the traffic",
                ),
            });
        }
        return Ok(vec![
            Finding::clear(format!(
                "{sentence}, but {} are too few to spread",
                say::count(flows.value, "flow")
            ))
            .cite(share.reading)
            .cite(flows.reading),
        ]);
    }
    let largest = evidence.host(&keys::FLOWS_LARGEST_SHARE).ok();
    if let Some(largest) =
        largest.filter(|largest| largest.value > ELEPHANT.value && udp.value <= UDP.value)
    {
        return Ok(vec![
            Finding::clear(format!(
                "{sentence}, but one connection carries {} of the bytes",
                say::percent(largest.value)
            ))
            .cite(share.reading)
            .cite(largest.reading),
        ]);
    }
    let subject = Subject::device(&worst.device);
    let fields = evidence.words(&keys::RSS_UDP4_FIELDS, &subject).ok();
    let narrow = fields.filter(|fields| fields.value == "sd" && udp.value > UDP.value);
    let mut finding = match narrow {
        Some(fields) => {
            let sentence = format!(
                "{sentence}: UDP is hashed by addresses only, over {}",
                say::count(flows.value, "flow")
            );
            let finding = Finding::act(&subject, sentence)
                .confidence(Grade::High)
                .cite(fields.reading);
            let ports = ("net.rss_hash_fields", "sdfn");
            spread::over(evidence, finding, &worst.device, &[ports])
        }
        None => Finding::watch(
            &subject,
            format!("{sentence}, over {}", say::count(flows.value, "flow")),
        ),
    }
    .cite(share.reading)
    .cite(flows.reading)
    .cite(udp.reading)
    .refuted_by(
        "with ports hashed as well, the largest queue keeps its share: few flows carry the packets",
    );
    let unsteered = evidence
        .quantity(&keys::RPS_CPUS, &subject)
        .is_ok_and(|cpus| cpus.value < 0.5);
    if unsteered && spread::is_safe(evidence).unwrap_or(false) {
        // Where the hash is to blame, steering is what is left if the device refuses another.
        finding = if narrow.is_some() {
            finding.consider_device("net.rps_cpus", &worst.device)
        } else {
            finding.turn_device("net.rps_cpus", &worst.device, "all")
        };
    }
    Ok(vec![finding])
}

/// No device that could have a skew is known to take more than accidents.
fn too_quiet(evidence: &Evidence) -> Option<Finding> {
    let devices = evidence.each(&keys::DEVICE_RX_PACKETS).ok()?;
    let several = devices.into_iter().filter(|(device, _)| {
        let queues = evidence.quantity(&keys::QUEUES_RX, device);
        !queues.is_ok_and(|queues| queues.value < 1.5)
    });
    let Some((device, packets)) = several.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        return Some(Finding::clear(
            "no device has several receive queues, so none can be unequal",
        ));
    };
    let sentence = format!(
        "too little traffic for shares of queues to mean something: {} takes most of those with several queues, {}",
        device.name(),
        say::rate(packets.value)
    );
    (packets.value <= TRAFFIC.value).then(|| {
        Finding::clear(sentence)
            .below(packets.value, TRAFFIC.value)
            .cite(packets.reading)
    })
}

/// The largest receive queue of each device with several queues and enough packets.
fn skews(evidence: &Evidence) -> Result<Vec<Skew<'_>>, Missing> {
    let mut devices: BTreeMap<&str, Vec<(&Subject, Quantity<'_>)>> = BTreeMap::new();
    for (queue, share) in evidence.each(&keys::QUEUE_SHARE)? {
        if let Some((device, name)) = queue.name().rsplit_once(':')
            && name.starts_with("rx")
        {
            devices.entry(device).or_default().push((queue, share));
        }
    }
    let mut skews = Vec::new();
    for (device, queues) in devices {
        let subject = Subject::device(device);
        let packets = evidence.quantity(&keys::DEVICE_RX_PACKETS, &subject)?;
        // Drivers may list counters of queues that are not in use; those do not belong to the mean.
        let count = match evidence.quantity(&keys::QUEUES_RX, &subject) {
            Ok(used) => queues.len().min(used.value as usize),
            Err(_) => queues.len(),
        };
        let largest = queues
            .into_iter()
            .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        if let Some(largest) = largest
            && count > 1
            && packets.value > TRAFFIC.value
        {
            skews.push(Skew {
                device: device.to_owned(),
                queues: count,
                largest,
                factor: largest.1.value * count as f64,
            });
        }
    }
    Ok(skews)
}
