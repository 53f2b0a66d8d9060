//! Knobs of the whole machine. Each file is one knob; its name is the last part of the knob's id.
//!
//! Some are only shown: turning them takes a reboot, the firmware or the owner's consent.

pub(crate) mod affinity_hint;
pub(crate) mod auditd;
pub(crate) mod irq_affinity;
pub(crate) mod netdev_budget;
pub(crate) mod netdev_max_backlog;
pub(crate) mod rmem_max;
pub(crate) mod smt;

use std::path::Path;

use crate::knob::{Context, Draft, Knob, Settable};
use crate::{Error, Result};

/// The draft of a knob that is only shown.
fn shown_only(knob: &Knob) -> Result<Draft> {
    let why = match knob.settable {
        Settable::No(why) => why,
        Settable::Yes => "it is only shown",
    };
    Err(Error::NotSettable {
        knob: knob.id,
        why: why.to_owned(),
    })
}

/// Interrupt numbers of a device, or of the bus device above it (virtio); empty without hardware.
fn interrupts(context: &Context<'_>, device: &str) -> Vec<u32> {
    ["device", "device/.."]
        .iter()
        .find_map(|above| {
            let dir = format!("/sys/class/net/{device}/{above}/msi_irqs");
            let names = context.machine.list(Path::new(&dir)).ok()?;
            let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
            numbers.sort_unstable();
            Some(numbers)
        })
        .unwrap_or_default()
}
