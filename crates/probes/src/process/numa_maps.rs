//! `/proc/PID/numa_maps`: the share of a process's memory on nodes where none of its threads runs.
//!
//! Source: `fs/proc/task_mmu.c`, Linux 6.18. Reading walks the page tables of the whole process with its mmap lock
//! held for reading, mapping by mapping: about 10 ns per page of 4 KiB, so it is done once, at the end of the
//! window, and only for the judged process.

use std::collections::BTreeSet;

use rungwise_formats::{cpulist, numa_maps, task};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::{stat_rates, unnamed};
use crate::cpu::topology;
use crate::{Cost, Need, Probe, Source, When, Window, enter};

const MAPS: &str = "/proc/{pid}/numa_maps";
const STATS: &str = "/proc/{pid}/task/*/stat";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-numa-maps",
    summary: "memory of the judged process by NUMA node, against where its threads run",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::once(MAPS),
        Source::begin(STATS),
        Source::running(STATS, When::Each),
        Source::running(STATS, When::Once),
        Source::once(topology::NODES),
    ],
    yields: &[&keys::NUMA_PROCESS_REMOTE],
    derive,
    doc: "\
Only the process's own memory counts (heap, stacks, anonymous mappings); file pages belong to the process that touched \
them first. The nodes of its threads are those of the CPUs on which threads that used CPU time in the window were \
found in the full samples. Pages show where memory is, not how often it is used. Reading walks the page tables of the \
process and holds its mmap lock for reading meanwhile: in a process with 64 GiB in small pages, mmap and munmap block \
for some 0.2 s (calculated, not measured). Other users' processes need root. Sources: fs/proc/task_mmu.c of Linux \
6.18; numa(7).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let Some(process) = &window.capture().process else {
        return evidence.absent(PROBE.yields, &unnamed(), MAPS);
    };
    let path = MAPS.replace("{pid}", &process.pid.to_string());
    let subject = Subject::new(Kind::Process, process.pid);
    let (value, line) = match remote(window, &path, process.pid) {
        Ok((share, line)) => (Ok(share), line),
        Err(why) => (Err(why), String::new()),
    };
    let origin = Origin::new(path, line);
    enter::number(evidence, &keys::NUMA_PROCESS_REMOTE, subject, value, origin);
}

fn remote(window: &Window<'_>, path: &str, pid: u32) -> Result<(f64, String), Absence> {
    let bytes = numa_maps::own_bytes(window.text(path)?);
    let total: u64 = bytes.values().sum();
    if total == 0 {
        return Err(Absence::because(format!(
            "{path} shows no memory that belongs to the process itself"
        )));
    }
    let nodes = topology::nodes(window)?;
    let cpus = cpus(window, pid);
    if cpus.is_empty() {
        return Err(Absence::because("none of its threads ran in the window"));
    }
    let near: BTreeSet<usize> = nodes
        .into_iter()
        .filter(|(_, of_node)| !of_node.is_disjoint(&cpus))
        .map(|(node, _)| node)
        .collect();
    let far: u64 = bytes
        .iter()
        .filter(|(node, _)| !near.contains(node))
        .map(|(_, bytes)| bytes)
        .sum();
    let by_node: Vec<String> = bytes
        .iter()
        .map(|(node, bytes)| format!("N{node} {} MiB", bytes >> 20))
        .collect();
    let line = format!(
        "{}; threads on CPUs {}",
        by_node.join(", "),
        cpulist::format(&cpus)
    );
    Ok((far as f64 / total as f64, line))
}

/// CPUs of threads that used CPU time; with a single sample, of all threads.
fn cpus(window: &Window<'_>, pid: u32) -> BTreeSet<usize> {
    let pattern = STATS.replace("{pid}", &pid.to_string());
    let single = window.moments().len() < 2;
    let mut cpus = BTreeSet::new();
    for (path, _) in window.matching(&pattern) {
        if single || stat_rates(window, path).is_some_and(|used| used.ticks.delta > 0.0) {
            let texts = window.texts(path).unwrap_or_default();
            let seen = texts.into_iter().filter_map(|(_, text)| task::stat(text));
            cpus.extend(seen.map(|stat| stat.last_cpu));
        }
    }
    cpus
}
