//! What the hypervisor below takes.

pub(crate) mod steal;
