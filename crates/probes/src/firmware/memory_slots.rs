//! The SMBIOS table: number of memory channels, and of those with a module.
//!
//! Source: `drivers/firmware/dmi_scan.c`, Linux 6.18; DMTF DSP0134. See `formats::smbios` for the meaning of slot names.

use rungwise_formats::smbios;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Need, Probe, Source, Window};

const TABLE: &str = "/sys/firmware/dmi/tables/DMI";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "smbios-memory",
    summary: "memory channels, and those with a module",
    cost: Cost::Free,
    needs: &[Need::Root],
    sources: &[Source::once("/sys/firmware/dmi/tables/DMI#hex")],
    yields: &[&keys::DIMM_CHANNELS, &keys::DIMM_CHANNELS_USED],
    derive,
    doc: "\
The standard has no field for the channel of a slot: vendors encode it in the slot's name (`P0_Node0_Channel2_Dimm0`, \
`CPU1_DIMM_A1`, `DIMM_P0_A0`). If a name lacks it (`A1`, `PROC 1 DIMM 1`, every guest), the keys are absent and the \
names are cited. A channel without slots on the board is not counted. The table also contains serial numbers and the \
UUID of the machine: a capture keeps only the names of the slots. Sources: DMTF DSP0134 (SMBIOS 3.7), 7.18; \
drivers/firmware/dmi_scan.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    match channels(window) {
        Ok((channels, line)) => {
            for (key, number) in [
                (&keys::DIMM_CHANNELS, channels.all),
                (&keys::DIMM_CHANNELS_USED, channels.used),
            ] {
                let origin = Origin::new(TABLE, &line);
                evidence.number(key, Subject::host(), number as f64, origin);
            }
        }
        Err(why) => evidence.absent(PROBE.yields, &why, TABLE),
    }
}

fn channels(window: &Window<'_>) -> Result<(smbios::Channels, String), Absence> {
    let slots = smbios::slots(window.text(TABLE)?)
        .ok_or_else(|| Absence::because(format!("{TABLE} is damaged or truncated")))?;
    if slots.is_empty() {
        return Err(Absence::because("the firmware lists no memory slots"));
    }
    let channels = smbios::channels(&slots).ok_or_else(|| {
        let first = &slots[0];
        Absence::because(format!(
            "the names of the {} memory slots do not show their channels ('{}' on '{}', ...)",
            slots.len(),
            first.device,
            first.bank
        ))
        .remedy("compare the slots with the manual of the board")
    })?;
    let filled: Vec<&str> = slots
        .iter()
        .filter(|slot| slot.filled)
        .map(|slot| slot.device.as_str())
        .collect();
    let line = format!(
        "{} slots, modules in {} ({})",
        slots.len(),
        filled.len(),
        filled.join(", ")
    );
    Ok((channels, line))
}
