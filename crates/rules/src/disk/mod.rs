//! Block devices.

pub(crate) mod disk_errors;
pub(crate) mod disk_full;
pub(crate) mod disk_queue;
pub(crate) mod disk_readahead;
pub(crate) mod disk_saturated;
pub(crate) mod disk_sync;
