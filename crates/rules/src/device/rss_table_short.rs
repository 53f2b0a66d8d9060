//! `rss-table-short`: queues that the indirection table never names.
//!
//! The hardware hashes a packet to an entry of the table, and the entry names a queue. A table that names
//! fewer queues than are switched on leaves the rest without packets. An 82599 offers 64 queues and its
//! table can name 16, which `ethtool -X equal 20` answers with EINVAL.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject, Words};
use rungwise_model::keys;

use crate::net::spread;
use crate::net::udp_socket_lock;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const ALIVE: Threshold = Threshold {
    name: "packets of a queue that counts as used, as a share of the device's",
    value: 0.01,
    origin: "own guess; in the reference case queues 16 to 19 had 0 to 8 packets",
};

const FLOWS: Threshold = Threshold {
    name: "flows per queue, for empty queues to mean something",
    value: 4.0,
    origin: "own guess: with 4 flows per queue, a queue is empty by chance with 2 %",
};

const PRESSED: Threshold = Threshold {
    name: "softirq time of the CPU that spends most",
    value: 0.5,
    origin: "own guess: below it, more queues would not be felt",
};

const TRAFFIC: Threshold = Threshold {
    name: "packets per second of the device",
    value: 1000.0,
    origin: "rule rss-skew-flows: below it, the CPU that is short of time is not short for this device",
};

/// Driver, entries of its table, and the most queues that these can name, of hardware that is known for its limit: the
/// 82598, 82599 and X540. An X550 has 512 entries and names 64. Source: `ixgbe_rss_indir_tbl_entries` and
/// `ixgbe_rss_indir_tbl_max` in ixgbe (`ixgbe_ethtool.c`, Linux 6.18).
const REACH: &[(&str, u32, u32)] = &[("ixgbe", 128, 16)];

/// `rss-table-short`
pub(crate) static RULE: Rule = Rule {
    id: "rss-table-short",
    topic: "device",
    summary: "the RSS table names fewer queues than are switched on",
    needs: needs!(
        [
            &keys::CPU_ONLINE,
            &keys::CPU_SOFTIRQ,
            &keys::DEVICE_DRIVER,
            &keys::DEVICE_RX_PACKETS,
            &keys::DEVICE_UP,
            &keys::FLOWS_COUNT,
            &keys::QUEUE_SHARE,
            &keys::QUEUES_RX,
            &keys::RPS_CPUS,
            &keys::RSS_TABLE_QUEUES,
            &keys::RSS_TABLE_SIZE,
            &keys::UDP_SHARE
        ],
        udp_socket_lock::NEEDS
    ),
    thresholds: &[ALIVE, FLOWS, PRESSED, TRAFFIC],
    knobs: &[
        "net.rss_table",
        "net.rps_cpus",
        "bios.nic_queues",
        "sock.reuseport",
    ],
    measure: Some(Measure::less(&keys::RSS_TABLE_QUEUES)),
    doc: Doc {
        looks_for: "A device whose indirection table names fewer queues than are in use. Queues without packets, with \
                    at least 4 flows per queue, confirm it.",
        hurts: "The CPUs of the queues that are left out take no packets.",
        todo: "Deal the table over all queues. Where the device refuses (the table cannot name so many, as is known of \
               the 82599), steer the rest by RPS, or choose a device with as many queues as cores.",
        wrong: "Queues may be left out for n-tuple filters or busy-polling programs, or made up for by \
                receive steering. Empty queues alone prove nothing: \
                a few flows look the same, so the table is asked. A device that hardly receives is only worth watching, whatever \
                the CPUs do. A device without a readable table (virtual ones) is \
                not judged.",
        sources: "The reference case (82599ES: 64 queues offered, 16 reachable, `-X equal 20` refused). See the journal \
                  for why `fewer queues than CPUs` is not a problem on its own.",
    },
    judge,
};

struct Short<'a> {
    device: &'a Subject,
    named: Quantity<'a>,
    queues: Quantity<'a>,
}

impl Short<'_> {
    /// The driver, where its hardware is known and the table names as many queues as it can.
    fn limit<'e>(&self, evidence: &'e Evidence) -> Option<Words<'e>> {
        let driver = evidence.words(&keys::DEVICE_DRIVER, self.device).ok()?;
        let size = evidence.quantity(&keys::RSS_TABLE_SIZE, self.device).ok()?;
        let name = driver.value.split_whitespace().next()?;
        let reached = REACH.iter().any(|(known, entries, most)| {
            name == *known && size.value as u32 == *entries && self.named.value as u32 >= *most
        });
        reached.then_some(driver)
    }
}

fn judge(evidence: &Evidence) -> Judgement {
    let tables = evidence.each(&keys::RSS_TABLE_QUEUES)?;
    let (_, softirq) = pick::largest(evidence, &keys::CPU_SOFTIRQ)?;
    let (mut short, mut whole) = (Vec::new(), None);
    for (device, named) in tables {
        let up = evidence.quantity(&keys::DEVICE_UP, device);
        if up.is_ok_and(|up| up.value < 0.5) {
            continue;
        }
        let queues = evidence.quantity(&keys::QUEUES_RX, device)?;
        if named.value < queues.value {
            short.push(Short {
                device,
                named,
                queues,
            });
        } else {
            whole = Some((device, named, queues));
        }
    }
    if let (true, Some((device, named, queues))) = (short.is_empty(), whole) {
        let sentence = format!(
            "the RSS table of {} names {} of {}",
            device.name(),
            say::whole(named.value),
            say::count(queues.value, "queue")
        );
        return Ok(vec![
            Finding::clear(sentence)
                .cite(named.reading)
                .cite(queues.reading),
        ]);
    }
    if short.is_empty() {
        return Ok(vec![Finding::clear(
            "no device that is up has an RSS table",
        )]);
    }
    short
        .iter()
        .map(|short| found(evidence, short, softirq))
        .collect()
}

fn found(
    evidence: &Evidence,
    short: &Short<'_>,
    softirq: Quantity<'_>,
) -> Result<Finding, Missing> {
    let device = short.device.name();
    let empty = empty_queues(evidence, short);
    let seen = match &empty {
        Some((1, _)) => ", and 1 queue gets next to no packets".to_owned(),
        Some((count, _)) => format!(", and {count} queues get next to no packets"),
        None => String::new(),
    };
    let limit = short.limit(evidence);
    let sentence = format!(
        "the RSS table of {device} names {} of {}{}{seen}",
        say::whole(short.named.value),
        say::count(short.queues.value, "queue"),
        limit.map_or("", |_| " (its hardware can name no more)")
    );
    let cpus = evidence.host(&keys::CPU_ONLINE)?;
    let reaches_all = short.named.value >= cpus.value;
    let steered = evidence.quantity(&keys::RPS_CPUS, short.device).ok();
    let made_up = steered.filter(|cpus| cpus.value > 0.5);
    let quiet = evidence
        .quantity(&keys::DEVICE_RX_PACKETS, short.device)
        .is_ok_and(|packets| packets.value < TRAFFIC.value);
    let mut finding = if let Some(steered) = made_up {
        let sentence = format!(
            "{sentence}; receive steering over {} makes up for it",
            say::count(steered.value, "CPU")
        );
        Finding::watch(short.device, sentence)
            .severity(Grade::Low)
            .cite(steered.reading)
    } else if steered.is_none() {
        let sentence = format!("{sentence}; whether receive steering makes up for it is unknown");
        Finding::watch(short.device, sentence)
    } else if softirq.value > PRESSED.value && !quiet && !(limit.is_some() && reaches_all) {
        Finding::act(short.device, sentence).severity(Grade::High)
    } else {
        Finding::watch(short.device, sentence).severity(Grade::Low)
    }
    .confidence(if empty.is_some() {
        Grade::High
    } else {
        Grade::Medium
    })
    .cite(short.named.reading)
    .cite(short.queues.reading)
    .cite(softirq.reading)
    .refuted_by("the queues that are left out serve n-tuple filters or a program that polls them");
    if let Some((_, example)) = empty {
        finding = finding.cite(example.reading);
    }
    let steer = steered.is_some_and(|cpus| cpus.value < 0.5)
        && !reaches_all
        && spread::is_safe(evidence).unwrap_or(false);
    // A plan is carried out whole or not at all, and a device may refuse a table: never ask for both at once.
    if let Some(driver) = limit {
        finding = finding.cite(driver.reading);
        if steer {
            finding = finding.turn_device("net.rps_cpus", device, "all");
        }
    } else {
        let equal = format!("equal {:.0}", short.queues.value);
        finding = finding.turn_device("net.rss_table", device, equal);
        if steer {
            finding = finding.consider_device("net.rps_cpus", device);
        }
    }
    if !reaches_all {
        finding = finding.consider("bios.nic_queues");
    }
    Ok(spread::not_alone(evidence, finding))
}

/// Receive queues with next to no packets, and one of them; nothing where flows are too few to tell.
fn empty_queues<'a>(evidence: &'a Evidence, short: &Short<'_>) -> Option<(usize, Quantity<'a>)> {
    let flows = evidence.host(&keys::FLOWS_COUNT).ok()?;
    if flows.value < FLOWS.value * short.queues.value {
        return None;
    }
    let prefix = format!("{}:rx-", short.device.name());
    let empty: Vec<_> = evidence
        .each(&keys::QUEUE_SHARE)
        .ok()?
        .into_iter()
        .filter(|(queue, share)| {
            // Drivers may list counters of queues that are not in use.
            let number = queue.name().strip_prefix(&prefix);
            number.is_some_and(|number| {
                number
                    .parse::<f64>()
                    .is_ok_and(|number| number < short.queues.value)
            }) && share.value < ALIVE.value
        })
        .collect();
    let (_, example) = empty.last()?;
    Some((empty.len(), *example))
}
