//! Knobs of the whole machine.
//!
//! Some are only shown: turning them takes a reboot, the firmware or the owner's consent.

pub(crate) mod affinity_hint;
pub(crate) mod auditd;
pub(crate) mod boot;
pub(crate) mod cpu;
pub(crate) mod default_qdisc;
pub(crate) mod dirty;
pub(crate) mod firmware;
pub(crate) mod irq_affinity;
pub(crate) mod memory;
pub(crate) mod net_core;
pub(crate) mod netdev_budget;
pub(crate) mod netdev_max_backlog;
pub(crate) mod numa;
pub(crate) mod rmem_max;
pub(crate) mod security;
pub(crate) mod smt;
pub(crate) mod virt;

use std::path::Path;

use crate::knob::Context;

/// Interrupt numbers of a device, or of the bus device above it (virtio); empty without hardware.
fn interrupts(context: &Context<'_>, device: &str) -> Vec<u32> {
    ["device", "device/.."]
        .iter()
        .filter_map(|above| {
            let dir = format!("/sys/class/net/{device}/{above}/msi_irqs");
            let names = context.machine.list(Path::new(&dir)).ok()?;
            let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
            numbers.sort_unstable();
            Some(numbers)
        })
        // Since Linux 5.17 the folder may be there and empty.
        .find(|numbers| !numbers.is_empty())
        .unwrap_or_default()
}
