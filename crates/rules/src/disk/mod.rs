//! Block devices.

pub(crate) mod disk_queue;
pub(crate) mod disk_readahead;
