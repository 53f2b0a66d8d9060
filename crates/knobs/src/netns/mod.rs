//! Knobs of one network namespace. Each file is one knob; its name is the last part of the knob's id.

pub(crate) mod accept_local;
pub(crate) mod iptables_unload;
pub(crate) mod rp_filter;
