//! `/proc/vmstat`: reclaim, compaction, swapping, huge page faults as rates.
//!
//! Source: `mm/vmstat.c`, `include/linux/vm_event_item.h`, Linux 6.18. Names changed with 4.8:
//! before it there was one `allocstall`, and `pgscan_direct` came by zone.

use std::collections::BTreeMap;

use rungwise_formats::flat;
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

const PATH: &str = "/proc/vmstat";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-vmstat",
    summary: "direct reclaim, compaction, refaults, swapping, OOM kills, huge page faults",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::each(PATH)],
    yields: &[
        &keys::MEMORY_ALLOCSTALL,
        &keys::MEMORY_COMPACT_STALL,
        &keys::MEMORY_DIRECT_SCAN,
        &keys::MEMORY_OOM_KILLS,
        &keys::MEMORY_REFAULTS,
        &keys::MEMORY_SWAP_IN,
        &keys::MEMORY_SWAP_OUT,
        &keys::MEMORY_THP_FALLBACK,
    ],
    derive,
    doc: "\
Reclaim caused by a control group's own limit is not counted here (`cgroup_reclaim` in mm/vmscan.c): it appears in \
`memory.events` of the group, and in memory pressure, which includes both. `pgscan_direct_throttle` is not a scan \
counter despite its name: it counts callers that were put to sleep. Swapping counts pages of 4 KiB (or the machine's \
page size), excluding zswap hits. `oom_kill` counts the victims of the machine and those of control groups. In a container the file describes the whole machine. Source: mm/vmstat.c of Linux \
6.18.",
};

/// A key, what is summed up, and which counters that is.
type Sum = (&'static Key, &'static str, fn(&str) -> bool);

const SUMS: &[Sum] = &[
    (&keys::MEMORY_ALLOCSTALL, "allocstall", |name| {
        name == "allocstall" || name.starts_with("allocstall_")
    }),
    (&keys::MEMORY_COMPACT_STALL, "compact_stall", |name| {
        name == "compact_stall"
    }),
    (&keys::MEMORY_DIRECT_SCAN, "pgscan_direct", |name| {
        name.starts_with("pgscan_direct") && name != "pgscan_direct_throttle"
    }),
    // One counter before Linux 5.9, one for each kind of page since.
    (&keys::MEMORY_REFAULTS, "workingset_refault", |name| {
        [
            "workingset_refault",
            "workingset_refault_anon",
            "workingset_refault_file",
        ]
        .contains(&name)
    }),
    (&keys::MEMORY_SWAP_IN, "pswpin", |name| name == "pswpin"),
    (&keys::MEMORY_SWAP_OUT, "pswpout", |name| name == "pswpout"),
    (&keys::MEMORY_THP_FALLBACK, "thp_fault_fallback", |name| {
        name == "thp_fault_fallback"
    }),
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let rates = match window.rates(PATH, sums) {
        Ok(rates) => rates,
        Err(why) => return evidence.absent(PROBE.yields, &why, PATH),
    };
    kills(window, evidence);
    for (key, name, _) in SUMS {
        if let Some(rate) = rates.get(key.id) {
            enter::counter(evidence, key, Subject::host(), (rate, 1.0), (PATH, name));
        } else {
            let why = "this kernel does not count it, or the counter went backwards";
            evidence.absent(&[key], &Absence::because(why), PATH);
        }
    }
}

/// Linux 4.13 and later count them.
fn kills(window: &Window<'_>, evidence: &mut Evidence) {
    let key = &keys::MEMORY_OOM_KILLS;
    let of_kills = |text| {
        let kills = flat::parse(text).get("oom_kill").copied();
        kills.map(|kills| ((), kills as f64)).into_iter().collect()
    };
    match window
        .rates(PATH, of_kills)
        .map(|mut rates| rates.remove(&()))
    {
        Ok(Some(rate)) => {
            let origin = Origin::new(PATH, format!("oom_kill {}", rate.line()));
            evidence.number(key, Subject::host(), rate.delta, origin);
        }
        Ok(None) => {
            let why = "this kernel does not count it";
            evidence.absent(&[key], &Absence::because(why), PATH);
        }
        Err(why) => evidence.absent(&[key], &why, PATH),
    }
}

fn sums(text: &str) -> BTreeMap<&'static str, f64> {
    let mut sums = BTreeMap::new();
    for (name, value) in flat::parse(text) {
        if let Some((key, ..)) = SUMS.iter().find(|(.., is_of)| is_of(name)) {
            *sums.entry(key.id).or_default() += value as f64;
        }
    }
    sums
}
