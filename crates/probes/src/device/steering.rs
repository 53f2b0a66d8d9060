//! Which CPUs the stack spreads packets over: masks of RPS and XPS below `/sys/class/net/DEV/queues`.
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

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "queue-steering",
    summary: "CPUs that RPS and XPS spread the packets of each device over",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::once(RPS),
        Source::once(TX_QUEUES),
        Source::once(XPS),
    ],
    yields: &[&keys::RPS_CPUS, &keys::RPS_MASK, &keys::XPS_CPUS],
    derive,
    doc: "\
A mask of 0 is no steering: RPS leaves the packet on the CPU that took the interrupt, and without XPS the flow's \
hash picks the transmit queue. Some drivers (ixgbe, i40e, mlx5) set XPS themselves. A device with a single \
transmit queue has no XPS: its file cannot even be read. Sources: net/core/net-sysfs.c of Linux 6.18; \
Documentation/networking/scaling.rst.",
};

/// Masks of the queues of one device, by number of the queue.
type Masks = BTreeMap<u32, Cpus>;

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let rps = masks(window, RPS);
    for (device, masks) in &rps {
        union(evidence, &keys::RPS_CPUS, device, "rx", masks);
        for (number, cpus) in masks {
            let path = RPS
                .replacen('*', device, 1)
                .replacen('*', &number.to_string(), 1);
            let list = cpulist::format(cpus);
            let origin = Origin::new(path, format!("'{list}'"));
            evidence.text(&keys::RPS_MASK, queue(device, "rx", number), list, origin);
        }
    }
    let xps = masks(window, XPS);
    for (device, masks) in &xps {
        union(evidence, &keys::XPS_CPUS, device, "tx", masks);
    }
    let shown = window.matching(TX_QUEUES);
    let shown: BTreeSet<&str> = shown
        .iter()
        .filter_map(|(_, stars)| stars.first().copied())
        .collect();
    for device in shown.into_iter().filter(|device| !xps.contains_key(device)) {
        let why = Absence::because("the device has a single transmit queue, or the kernel no XPS");
        let origin = Origin::new(XPS.replacen('*', device, 1), "");
        enter::absent(
            evidence,
            &keys::XPS_CPUS,
            Subject::device(device),
            why,
            origin,
        );
    }
    let none = Absence::because("no device shows such queues below /sys/class/net");
    enter::unless_told(evidence, PROBE.yields, &none, "/sys/class/net");
}

/// Masks by device; a text that is no mask is left out.
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
