//! `/sys/kernel/mm/transparent_hugepage`: whether processes get huge pages by default, and the effort of a fault to get
//! one. Also the cost of small pages, if the machine has hardware counters.
//!
//! Source: `mm/huge_memory.c`, Linux 6.18.

use rungwise_formats::choice;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, TlbLoads};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter, stack};

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
/// The name of its answer in a capture.
const TLB: &str = "tlb";
const COUNTERS: &str = "/sys/bus/event_source/devices/*/type";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-transparent-hugepage",
    summary: "transparent huge pages and their defragmentation",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::once(ENABLED),
        Source::once(DEFRAG),
        Source::once(COUNTERS),
    ],
    yields: &[
        &keys::MEMORY_THP,
        &keys::MEMORY_THP_DEFRAG,
        &keys::MEMORY_TLB_SHARE,
    ],
    derive,
    doc: "\
With `madvise` only processes that request huge pages get them (such as a JVM with `-XX:+UseTransparentHugePages`), \
with `always` all processes. With defrag `always` every fault compacts memory synchronously; with `madvise` only the \
faults of requesting processes do; `defer` leaves it to kcompactd. The CPU itself counts loads that miss the TLB, on \
all CPUs for the whole window; if it does not, as in most guests, the key gives the reason. Sources: mm/huge_memory.c \
of Linux 6.18; Documentation/admin-guide/mm/transhuge.rst.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for (key, path) in [
        (&keys::MEMORY_THP, ENABLED),
        (&keys::MEMORY_THP_DEFRAG, DEFRAG),
    ] {
        let text = window.text(path);
        let selected = text.clone().and_then(|text| {
            choice::selected(text).ok_or_else(|| {
                Absence::because(format!("{path} marks none of its values as selected"))
            })
        });
        let origin = Origin::new(path, text.unwrap_or_default().trim());
        enter::text(evidence, key, Subject::host(), selected, origin);
    }
    match window.answer(TLB) {
        Ok(Answer::Tlb(TlbLoads { loads, misses })) if *loads > 0.0 => {
            let origin = Origin::new(
                "perf_event_open",
                format!("dTLB-loads {loads:.0}, dTLB-load-misses {misses:.0}"),
            );
            let share = (misses / loads).min(1.0);
            evidence.number(&keys::MEMORY_TLB_SHARE, Subject::host(), share, origin);
        }
        _ => evidence.absent(&[&keys::MEMORY_TLB_SHARE], &uncounted(window), COUNTERS),
    }
}

/// Why TLB misses are unknown.
fn uncounted(window: &Window<'_>) -> Absence {
    // The CPU's own counters: `cpu` on x86, `cpu_core` and `cpu_atom` on its hybrids, `armv8_pmuv3_0` on ARM.
    let counters = window.matching(COUNTERS).into_iter().any(|(_, stars)| {
        stars
            .iter()
            .any(|name| name.starts_with("cpu") || name.starts_with("armv"))
    });
    if let Some(why) = window.unlisted(COUNTERS) {
        why
    } else if counters {
        let why = stack::absence(window, TLB, "TLB misses were not counted");
        why.remedy("run perf stat -a -e dTLB-loads,dTLB-load-misses sleep 10")
    } else {
        Absence::because(
            "this machine has no hardware counters, like a guest without a virtual PMU",
        )
        .remedy("give the guest a virtual PMU (libvirt: <pmu state='on'/>), or count on its host")
    }
}
