//! CPUs, their NUMA nodes and their threads per core.
//!
//! A kernel without NUMA support has no node directory; in fact that is one node.
//! Source: drivers/base/cpu.c, drivers/base/node.c, kernel/cpu.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::cpulist::{self, Cpus};
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::{setting, unreadable};
use crate::{Cost, Probe, Source, Window};

/// CPUs that are online.
pub(crate) const ONLINE: &str = "/sys/devices/system/cpu/online";
const SMT: &str = "/sys/devices/system/cpu/smt/control";

/// CPUs of each node, for all code that maps one to the other.
pub(crate) const NODES: &str = "/sys/devices/system/node/node*/cpulist";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-cpu",
    summary: "CPUs online, their NUMA nodes, simultaneous multithreading",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::once(ONLINE), Source::once(SMT), Source::once(NODES)],
    yields: &[
        &keys::CPU_NODE,
        &keys::CPU_ONLINE,
        &keys::CPU_SMT,
        &keys::NUMA_NODES,
    ],
    derive,
    doc: "\
`smt/control` is `notsupported` if the CPU has one thread per core, and `off` only if it has more and they are \
switched off. A guest often has one thread per core whatever the hardware has. Nodes without CPUs (memory only, such \
as CXL or HBM) do not count. Sources: drivers/base/cpu.c, drivers/base/node.c, kernel/cpu.c of Linux 6.18; \
Documentation/ABI/testing/sysfs-devices-system-cpu.",
};

/// CPUs of each NUMA node that has any.
pub(crate) fn nodes(window: &Window<'_>) -> Result<BTreeMap<usize, Cpus>, Absence> {
    let nodes: BTreeMap<usize, Cpus> = window
        .matching(NODES)
        .into_iter()
        .filter_map(|(path, stars)| {
            let cpus = cpulist::parse(window.text(path).ok()?)?;
            Some((stars.first()?.parse().ok()?, cpus))
        })
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    if nodes.is_empty() {
        return Err(Absence::because(
            "the kernel shows no NUMA nodes below /sys/devices/system/node",
        ));
    }
    Ok(nodes)
}

/// CPUs that are online.
pub(crate) fn online(window: &Window<'_>) -> Result<Cpus, Absence> {
    cpulist::parse(window.text(ONLINE)?).ok_or_else(|| unreadable(ONLINE))
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    match online(window) {
        Ok(cpus) => {
            let origin = Origin::new(ONLINE, cpulist::format(&cpus));
            let count = cpus.len() as f64;
            evidence.number(&keys::CPU_ONLINE, Subject::host(), count, origin);
        }
        Err(why) => evidence.absent(&[&keys::CPU_ONLINE], &why, ONLINE),
    }
    setting(window, evidence, &keys::CPU_SMT, SMT);
    let nodes = match nodes(window) {
        Ok(nodes) => nodes,
        Err(why) => return evidence.absent(&[&keys::CPU_NODE, &keys::NUMA_NODES], &why, NODES),
    };
    let lists: Vec<String> = nodes
        .iter()
        .map(|(node, cpus)| format!("node{node} {}", cpulist::format(cpus)))
        .collect();
    evidence.number(
        &keys::NUMA_NODES,
        Subject::host(),
        nodes.len() as f64,
        Origin::new(NODES, lists.join(", ")),
    );
    for (node, cpus) in nodes {
        let path = NODES.replace('*', &node.to_string());
        for cpu in &cpus {
            let origin = Origin::new(&path, cpulist::format(&cpus));
            evidence.number(&keys::CPU_NODE, Subject::cpu(*cpu), node as f64, origin);
        }
    }
}
