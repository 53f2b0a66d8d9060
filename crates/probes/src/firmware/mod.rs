//! Firmware: vendor of the machine, memory slots, IOMMU.

pub(crate) mod identity;
pub(crate) mod iommu;
pub(crate) mod memory_slots;
