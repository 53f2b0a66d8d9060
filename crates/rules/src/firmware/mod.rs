//! What the hardware has and the firmware keeps from us.

pub(crate) mod memory_channels;
pub(crate) mod smt_off;
