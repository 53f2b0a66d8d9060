//! Knobs of one network namespace.

pub(crate) mod accept_local;
pub(crate) mod ip;
pub(crate) mod iptables_unload;
pub(crate) mod rp_filter;
pub(crate) mod tcp;
