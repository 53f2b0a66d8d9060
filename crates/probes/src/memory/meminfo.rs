//! `/proc/meminfo`: memory, swap, dirty pages, reserved huge pages.
//!
//! Source: fs/proc/meminfo.c, Linux 6.18.

use rungwise_formats::fields;
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

const PATH: &str = "/proc/meminfo";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-meminfo",
    summary: "memory, swap, dirty pages, reserved huge pages",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::once(PATH)],
    yields: &[
        &keys::MEMORY_AVAILABLE,
        &keys::MEMORY_DIRTY,
        &keys::MEMORY_HUGEPAGES,
        &keys::MEMORY_HUGEPAGES_FREE,
        &keys::MEMORY_SWAP_USED,
        &keys::MEMORY_TOTAL,
    ],
    derive,
    doc: "\
`MemAvailable` is the kernel's own estimate of what can be allocated without swapping (Linux 3.14 and later); \
`MemFree` is not used, since free memory is small on any machine that has run for a while. Huge pages are those of \
the default size; a kernel without hugetlbfs does not print them. In a container the file describes the whole \
machine, not the container's limit. Source: fs/proc/meminfo.c of Linux 6.18.",
};

/// A key, the lines it is made of, and how.
type Sum = (
    &'static Key,
    &'static [&'static str],
    fn(&[f64]) -> Option<f64>,
);

const SUMS: &[Sum] = &[
    (
        &keys::MEMORY_AVAILABLE,
        &["MemAvailable", "MemTotal"],
        |of| (of[1] > 0.0).then(|| of[0] / of[1]),
    ),
    (&keys::MEMORY_DIRTY, &["Dirty"], first),
    (&keys::MEMORY_HUGEPAGES, &["HugePages_Total"], first),
    (&keys::MEMORY_HUGEPAGES_FREE, &["HugePages_Free"], first),
    (&keys::MEMORY_SWAP_USED, &["SwapTotal", "SwapFree"], |of| {
        Some(of[0] - of[1])
    }),
    (&keys::MEMORY_TOTAL, &["MemTotal"], first),
];

fn first(of: &[f64]) -> Option<f64> {
    of.first().copied()
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let text = match window.text(PATH) {
        Ok(text) => text,
        Err(why) => return evidence.absent(PROBE.yields, &why, PATH),
    };
    for (key, names, sum) in SUMS {
        let numbers: Result<Vec<f64>, Absence> = names
            .iter()
            .map(|name| {
                let number = fields::number(text, name).map(|number| number as f64);
                number
                    .ok_or_else(|| Absence::because(format!("{PATH} of this kernel lacks {name}")))
            })
            .collect();
        let value = numbers.and_then(|numbers| {
            sum(&numbers).ok_or_else(|| Absence::because(format!("{PATH} has inconsistent values")))
        });
        let lines: Vec<&str> = names
            .iter()
            .filter_map(|name| fields::line(text, name))
            .collect();
        let origin = Origin::new(PATH, lines.join("; "));
        enter::number(evidence, key, Subject::host(), value, origin);
    }
}
