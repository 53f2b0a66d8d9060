//! CPUs over which the stack spreads packets: RPS and XPS masks below `/sys/class/net/DEV/queues`.
//!
//! Source: net/core/net-sysfs.c (Linux 6.18); Documentation/networking/scaling.rst.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_formats::cpulist::{self, Cpus};
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use super::identity::TX_QUEUES;
use super::queue;
use crate::{Cost, Probe, Source, Window, enter};

const RPS: &str = "/sys/class/net/*/queues/rx-*/rps_cpus";
const XPS: &str = "/sys/class/net/*/queues/tx-*/xps_cpus";
/// Since Linux 4.18.
const XPS_RXQS: &str = "/sys/class/net/*/queues/tx-*/xps_rxqs";

/// Why a device shows no XPS.
const SINGLE: &str = "the device has a single transmit queue, or the kernel lacks XPS";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "queue-steering",
    summary: "CPUs over which RPS and XPS spread the packets of each device",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::once(RPS),
        Source::once(TX_QUEUES),
        Source::once(XPS),
        Source::once(XPS_RXQS),
    ],
    yields: &[
        &keys::RPS_CPUS,
        &keys::RPS_MASK,
        &keys::XPS_CPUS,
        &keys::XPS_MASK,
        &keys::XPS_RXQS,
    ],
    derive,
    doc: "\
A mask of 0 means no steering: the packet stays on the CPU that took the interrupt (RPS), and the flow hash selects \
the transmit queue (XPS). If a queue lists receive queues (`xps_rxqs`), they take precedence over the CPUs. Some \
drivers (ixgbe, i40e, mlx5) set XPS themselves. A device with a single transmit queue has no XPS: its file cannot be \
read. Sources: net/core/net-sysfs.c of Linux 6.18; Documentation/networking/scaling.rst.",
};

/// Masks of the queues of one device, by number of the queue: bits are CPUs, or receive queues.
type Masks = BTreeMap<u32, Cpus>;

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let rps = masks(window, RPS);
    for (device, masks) in &rps {
        union(evidence, &keys::RPS_CPUS, device, "rx", masks);
        each(evidence, &keys::RPS_MASK, (device, "rx", RPS), masks);
    }
    let xps = masks(window, XPS);
    for (device, masks) in &xps {
        union(evidence, &keys::XPS_CPUS, device, "tx", masks);
        each(evidence, &keys::XPS_MASK, (device, "tx", XPS), masks);
    }
    for (device, masks) in &masks(window, XPS_RXQS) {
        each(evidence, &keys::XPS_RXQS, (device, "tx", XPS_RXQS), masks);
    }
    let shown = window.matching(TX_QUEUES);
    let shown: BTreeSet<&str> = shown
        .iter()
        .filter_map(|(_, stars)| stars.first().copied())
        .collect();
    for device in shown.iter().filter(|device| !xps.contains_key(*device)) {
        let origin = Origin::new(XPS.replacen('*', device, 1), "");
        enter::absent(
            evidence,
            &keys::XPS_CPUS,
            Subject::device(device),
            Absence::because(SINGLE),
            origin,
        );
    }
    if !shown.is_empty() {
        let single = Absence::because(SINGLE);
        enter::absent_if_unset(evidence, &[&keys::XPS_MASK], &single, XPS);
        let old = Absence::because(
            "no device has several transmit queues, or the kernel lacks xps_rxqs (before Linux 4.18)",
        );
        enter::absent_if_unset(evidence, &[&keys::XPS_RXQS], &old, XPS_RXQS);
    }
    let none = window
        .unlisted(RPS)
        .unwrap_or_else(|| Absence::because("no device shows such queues below /sys/class/net"));
    enter::absent_if_unset(evidence, PROBE.yields, &none, "/sys/class/net");
}

/// The mask of each queue as a list.
fn each(
    evidence: &mut Evidence,
    key: &'static Key,
    (device, direction, pattern): (&str, &str, &str),
    masks: &Masks,
) {
    for (number, mask) in masks {
        let path = pattern
            .replacen('*', device, 1)
            .replacen('*', &number.to_string(), 1);
        let list = cpulist::format(mask);
        let origin = Origin::new(path, format!("'{list}'"));
        evidence.text(key, queue(device, direction, number), list, origin);
    }
}

/// Masks by device; a text that is not a mask is omitted.
fn masks<'a>(window: &Window<'a>, pattern: &str) -> BTreeMap<&'a str, Masks> {
    let mut masks: BTreeMap<&str, Masks> = BTreeMap::new();
    for (path, stars) in window.matching(pattern) {
        if let [device, number] = stars[..]
            && let Ok(number) = number.parse()
            && let Some(cpus) = window.text(path).ok().and_then(cpulist::parse_mask)
        {
            masks.entry(device).or_default().insert(number, cpus);
        }
    }
    masks
}

fn union(evidence: &mut Evidence, key: &'static Key, device: &str, direction: &str, masks: &Masks) {
    let all: Cpus = masks.values().flatten().copied().collect();
    let mut alike: BTreeMap<String, u32> = BTreeMap::new();
    for cpus in masks.values() {
        *alike.entry(cpulist::format(cpus)).or_default() += 1;
    }
    let line: Vec<String> = alike
        .iter()
        .map(|(list, queues)| match list.as_str() {
            "" => format!("{queues} {direction} queues without a mask"),
            list => format!("{queues} {direction} queues on CPUs {list}"),
        })
        .collect();
    let path = format!("/sys/class/net/{device}/queues/{direction}-*");
    let origin = Origin::new(path, line.join("; "));
    evidence.number(key, Subject::device(device), all.len() as f64, origin);
}
