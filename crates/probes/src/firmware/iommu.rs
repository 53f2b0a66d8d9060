//! `/sys/kernel/iommu_groups`: whether devices use an IOMMU, and in which mode.
//!
//! `DMA` and `DMA-FQ` translate each transfer, `identity` (iommu=pt) does not. Source: drivers/iommu/iommu.c,
//! Linux 6.18.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window};

const TYPES: &str = "/sys/kernel/iommu_groups/*/type";
const CMDLINE: &str = "/proc/cmdline";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-iommu-groups",
    summary: "IOMMU groups and their mode",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::once(TYPES), Source::once(CMDLINE)],
    yields: &[&keys::BIOS_IOMMU],
    derive,
    doc: "\
`none` means that the kernel has no group: no IOMMU, one disabled by the firmware or the command line, or a guest \
without a virtual one. Otherwise the number of groups and their modes: `DMA` and `DMA-FQ` translate (DMA-FQ flushes \
lazily and costs less), `identity` passes through. Bounce buffers by SWIOTLB or for a guest's encrypted memory are not \
shown. Source: drivers/iommu/iommu.c of Linux 6.18; Documentation/ABI/testing/sysfs-kernel-iommu_groups.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if window.moments().is_empty() {
        let why = Absence::because("nothing was read");
        return evidence.absent(PROBE.yields, &why, TYPES);
    }
    let mut modes: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, _) in window.matching(TYPES) {
        match window.text(path) {
            Ok(text) => *modes.entry(text.trim()).or_default() += 1,
            Err(why) => return evidence.absent(PROBE.yields, &why, TYPES),
        }
    }
    let groups: usize = modes.values().sum();
    let each: Vec<String> = modes
        .iter()
        .map(|(mode, number)| format!("{mode} {number}"))
        .collect();
    let words = if groups == 0 {
        "none".to_owned()
    } else {
        format!("{groups} groups: {}", each.join(", "))
    };
    let origin = Origin::new(TYPES, each.join(", "));
    evidence.text(&keys::BIOS_IOMMU, Subject::host(), words, origin);
}
