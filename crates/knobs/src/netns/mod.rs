//! Knobs of one network namespace. Each file is one knob; its name is the last part of the knob's id.

pub mod accept_local;
pub mod iptables_unload;
pub mod rp_filter;
