//! What the firmware tells of the machine: its maker, its memory slots, its IOMMU.

pub(crate) mod identity;
pub(crate) mod iommu;
pub(crate) mod memory_slots;
