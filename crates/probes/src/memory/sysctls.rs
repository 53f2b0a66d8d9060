//! `/proc/sys/vm`: how much memory is kept free, and how readily the kernel swaps.
//!
//! Source: `mm/page_alloc.c`, `mm/vmscan.c`, Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

const MIN_FREE: &str = "/proc/sys/vm/min_free_kbytes";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-sys-vm",
    summary: "vm.min_free_kbytes and vm.swappiness",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::once(MIN_FREE), Source::once(SWAPPINESS)],
    yields: &[&keys::MEMORY_MIN_FREE, &keys::MEMORY_SWAPPINESS],
    derive,
    doc: "\
The kernel computes `min_free_kbytes` at boot from the size of memory and raises it when huge pages are switched on: \
no constant suits two machines. A cgroup v1 group has a swappiness of its own, which is not read here. Source: \
mm/page_alloc.c of Linux 6.18; Documentation/admin-guide/sysctl/vm.rst.",
};

/// Keys, files, and what their numbers are multiplied by.
const FILES: &[(&Key, &str, f64)] = &[
    (&keys::MEMORY_MIN_FREE, MIN_FREE, 1024.0),
    (&keys::MEMORY_SWAPPINESS, SWAPPINESS, 1.0),
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for (key, path, unit) in FILES {
        let text = window.text(path).map(str::trim);
        let value = text.clone().and_then(|text| {
            let number = text.parse::<u64>();
            let number = number.map_err(|_| {
                Absence::because(format!("{path} contains '{text}', which is not a number"))
            })?;
            Ok(number as f64 * unit)
        });
        let origin = Origin::new(*path, text.unwrap_or_default());
        enter::number(evidence, key, Subject::host(), value, origin);
    }
}
