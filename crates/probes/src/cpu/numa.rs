//! NUMA: page allocations that crossed nodes, and the work of automatic balancing.
//!
//! Source: mm/vmstat.c, `mm/page_alloc.c` (`zone_statistics`), mm/mprotect.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::flat;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::{no_rate, setting};
use crate::{Cost, Probe, Source, Window};

const NUMASTAT: &str = "/sys/devices/system/node/node*/numastat";
const VMSTAT: &str = "/proc/vmstat";
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// Page allocations below which a share is meaningless; own guess: 4 MB in pages of 4 KB.
const FEW: f64 = 1000.0;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "numa",
    summary: "page allocations that crossed nodes, hinting faults and migrations",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::ends(NUMASTAT),
        Source::ends(VMSTAT),
        Source::once(BALANCING),
    ],
    yields: &[
        &keys::NUMA_BALANCING,
        &keys::NUMA_HINT_FAULTS,
        &keys::NUMA_MIGRATED,
        &keys::NUMA_OTHER_SHARE,
    ],
    derive,
    doc: "\
`other_node` counts pages of this node that were allocated by a process running on another node: memory that is \
allocated once and then used remotely for hours is not counted, but page cache is, even if it is never accessed again. \
`numa_hint_faults` are the faults that automatic balancing provokes to find out which node uses a page. Hinting faults \
and migrations are absent without CONFIG_NUMA_BALANCING. With vm.numa_stat=0 the counters do not grow. Sources: \
mm/vmstat.c, mm/page_alloc.c of Linux 6.18; Documentation/admin-guide/numastat.rst.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    setting(window, evidence, &keys::NUMA_BALANCING, BALANCING);
    for (key, name) in [
        (&keys::NUMA_HINT_FAULTS, "numa_hint_faults"),
        (&keys::NUMA_MIGRATED, "numa_pages_migrated"),
    ] {
        match window
            .rates(VMSTAT, numbers)
            .map(|mut all| all.remove(name))
        {
            Ok(Some(rate)) => {
                let origin = Origin::new(VMSTAT, format!("{name} {}", rate.line()));
                evidence.series(key, Subject::host(), rate.per_s, rate.series, origin);
            }
            Ok(None) => {
                let why = Absence::because(format!("this kernel does not count {name}"));
                evidence.absent(&[key], &why, VMSTAT);
            }
            Err(why) => evidence.absent(&[key], &why, VMSTAT),
        }
    }
    other_share(window, evidence);
}

fn other_share(window: &Window<'_>, evidence: &mut Evidence) {
    let mut why = Absence::because("the kernel shows no NUMA nodes");
    let mut found = false;
    for (path, stars) in window.matching(NUMASTAT) {
        let Some(node) = stars.first().and_then(|node| node.parse::<usize>().ok()) else {
            continue;
        };
        let rates = match window.rates(path, numbers) {
            Ok(rates) => rates,
            Err(refused) => {
                why = refused;
                continue;
            }
        };
        let (Some(local), Some(other)) = (rates.get("local_node"), rates.get("other_node")) else {
            why = no_rate(window, path, "local_node or other_node is not counted");
            continue;
        };
        let all = local.delta + other.delta;
        if all < FEW {
            why = Absence::because(format!(
                "{all} pages were allocated in the window, too few for a share"
            ));
            continue;
        }
        found = true;
        let line = format!("local_node {}; other_node {}", local.line(), other.line());
        evidence.number(
            &keys::NUMA_OTHER_SHARE,
            Subject::node(node),
            other.delta / all,
            Origin::new(path, line),
        );
    }
    if !found {
        evidence.absent(&[&keys::NUMA_OTHER_SHARE], &why, NUMASTAT);
    }
}

fn numbers(text: &str) -> BTreeMap<&str, f64> {
    flat::parse(text)
        .into_iter()
        .map(|(name, count)| (name, count as f64))
        .collect()
}
