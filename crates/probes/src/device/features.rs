//! Features of each device, one reading each: no rule reads them, but `compare` shows where two hosts differ.
//!
//! Source: `ETHTOOL_MSG_FEATURES_GET`, net/ethtool/features.c (Linux 6.18).

use rungwise_model::evidence::{Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::Question;
use rungwise_model::keys;

use super::devices;
use crate::{Cost, Probe, Source, When, Window};

const SOURCE: &str = "ethtool -k";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "ethtool-features",
    summary: "features of each network device by their kernel names",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::ask(Question::Devices, When::Once)],
    yields: &[&keys::DEVICE_FEATURE],
    derive,
    doc: "\
Names are the kernel's own: `ethtool -k` prints some of them under older names and groups others. Fixed features \
cannot be switched on this device. Source: net/ethtool/features.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let devices = match devices(window) {
        Ok(devices) => devices,
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let none = rungwise_model::evidence::Absence::because("no device reports its features");
    evidence.absent(PROBE.yields, &none, SOURCE);
    for device in devices {
        for (name, (on, fixed)) in &device.features {
            let state = if *on { "on" } else { "off" };
            let fixed = if *fixed { " (fixed)" } else { "" };
            let subject = Subject::new(Kind::Setting, format!("{}:{name}", device.name));
            let origin = Origin::new(format!("{SOURCE} {}", device.name), name.clone());
            evidence.text(
                &keys::DEVICE_FEATURE,
                subject,
                format!("{state}{fixed}"),
                origin,
            );
        }
    }
}
