//! How a device distributes packets over its queues, from the driver's own counters (`ethtool -S`).

use std::collections::BTreeMap;

use rungwise_formats::queue_counter::{self, Direction};
use rungwise_model::evidence::{Absence, Evidence, Origin};
use rungwise_model::kernel::{Answer, NetDevice, Question};
use rungwise_model::keys;

use super::queue;
use crate::{Cost, Probe, Rate, Source, When, Window, enter};

const SOURCE: &str = "ethtool -S";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "queue-counters",
    summary: "packets of each queue of a device",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ask(Question::Devices, When::Ends)],
    yields: &[&keys::QUEUE_PACKETS, &keys::QUEUE_SHARE],
    derive,
    doc: "\
Queues are `eth0:rx-3` and `eth0:tx-3`; a share is of all queues of the same direction, and absent without packets. \
The probe knows the counter names of some twenty drivers; other names are absent. virtio_net no longer reports \
packets here since Linux 6.10; veth and vmxnet3 never did. Counters of unused queues may still be listed. Sources: \
the drivers of Linux 6.18.",
};

type Queue<'a> = (&'a str, Direction, u32);

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let rates = match window.answer_rates("devices", counters) {
        Ok(rates) => rates,
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let mut totals: BTreeMap<(&str, Direction), f64> = BTreeMap::new();
    for ((device, direction, _), rate) in &rates {
        *totals.entry((device, *direction)).or_default() += rate.delta;
    }
    for ((device, direction, number), rate) in &rates {
        let total = totals.get(&(device, *direction)).copied().unwrap_or(0.0);
        tell(device, *direction, *number, rate, total, evidence);
    }
    let none = Absence::because(if rates.is_empty() {
        "no driver reports packets per queue under a known name"
    } else {
        "no queue had packets in this window"
    });
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

fn tell(
    device: &str,
    direction: Direction,
    number: u32,
    rate: &Rate,
    total: f64,
    evidence: &mut Evidence,
) {
    let direction = match direction {
        Direction::Rx => "rx",
        Direction::Tx => "tx",
    };
    let subject = queue(device, direction, number);
    let source = format!("{SOURCE} {device}");
    enter::rate(
        evidence,
        &keys::QUEUE_PACKETS,
        subject.clone(),
        rate,
        1.0,
        &source,
    );
    let share = if total > 0.0 {
        Ok(rate.delta / total)
    } else {
        Err(Absence::because(format!(
            "no {direction} packets in this window"
        )))
    };
    let line = format!("{} of {total} on all {direction} queues", rate.line());
    let origin = Origin::new(source, line);
    enter::number(evidence, &keys::QUEUE_SHARE, subject, share, origin);
}

/// Packets of each queue; a queue with several counters has their sum.
fn counters(answer: &Answer) -> BTreeMap<Queue<'_>, f64> {
    let mut counters = BTreeMap::new();
    let Answer::Devices(devices) = answer else {
        return counters;
    };
    for device in devices {
        for (name, count) in &device.statistics {
            if let Some(found) = queue_counter::parse(name)
                && has(device, found.direction, found.queue)
            {
                let key = (&*device.name, found.direction, found.queue);
                *counters.entry(key).or_insert(0.0) += *count as f64;
            }
        }
    }
    counters
}

/// A device has no queue beyond those allocated: a larger number is something else.
fn has(device: &NetDevice, direction: Direction, queue: u32) -> bool {
    let room = match direction {
        Direction::Rx => device.num_rx_queues,
        Direction::Tx => device.num_tx_queues,
    };
    room == 0 || queue < room
}
