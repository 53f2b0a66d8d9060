//! Memory on the wrong node.

pub(crate) mod numa_hint_faults;
pub(crate) mod numa_remote;
