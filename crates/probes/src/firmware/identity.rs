//! `/sys/class/dmi/id`: product and firmware by name.
//!
//! Source: drivers/firmware/dmi-id.c, Linux 6.18. A machine with a device tree instead (most ARM boards) names its
//! model there; a micro-VM has neither.

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

const BIOS_VENDOR: &str = "/sys/class/dmi/id/bios_vendor";
const BIOS_VERSION: &str = "/sys/class/dmi/id/bios_version";
const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
const PRODUCT: &str = "/sys/class/dmi/id/product_name";
const MODEL: &str = "/sys/firmware/devicetree/base/model";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-dmi-id",
    summary: "product name and firmware of the machine",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::once(BIOS_VENDOR),
        Source::once(BIOS_VERSION),
        Source::once(VENDOR),
        Source::once(PRODUCT),
        Source::once(MODEL),
    ],
    yields: &[&keys::BIOS_PRODUCT, &keys::BIOS_VENDOR],
    derive,
    doc: "\
Serial numbers and the machine's UUID are in the same folder and are never read. A guest shows what its hypervisor \
presents. Source: drivers/firmware/dmi-id.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    add_text(
        window,
        evidence,
        &keys::BIOS_VENDOR,
        &[BIOS_VENDOR, BIOS_VERSION],
    );
    let product: &[&str] = if window.text(PRODUCT).is_err() && window.text(MODEL).is_ok() {
        &[MODEL]
    } else {
        &[VENDOR, PRODUCT]
    };
    add_text(window, evidence, &keys::BIOS_PRODUCT, product);
}

/// The text of several files in one line; absent if all are empty.
fn add_text(window: &Window<'_>, evidence: &mut Evidence, key: &'static Key, paths: &[&str]) {
    let words: Vec<&str> = paths
        .iter()
        .filter_map(|path| window.text(path).ok())
        // Strings of a device tree end in a zero byte.
        .map(|text| text.trim_matches(|c: char| c == '\0' || c.is_whitespace()))
        .filter(|text| !text.is_empty())
        .collect();
    let line = words.join(" ");
    let value = if line.is_empty() {
        Err(Absence::because(
            "the firmware names neither itself nor the machine (no DMI, no device tree)",
        ))
    } else {
        Ok(line.as_str())
    };
    let origin = Origin::new(paths.join(", "), &line);
    enter::text(evidence, key, Subject::host(), value, origin);
}
