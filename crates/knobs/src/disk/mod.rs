//! Knobs of one block device.

pub(crate) mod mount;
pub(crate) mod queue;
pub(crate) mod scheduler;
