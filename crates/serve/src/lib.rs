//! A UDP transaction server that a DNS, RADIUS, NTP or SNMP service embeds.
//!
//! A service is a [`udp::Handler`]: bytes of a request in, bytes of a reply out. Around it are
//! the switches that decide how many transactions a host can serve: workers, a `SO_REUSEPORT`
//! group, steering, pinned threads, batches, `io_uring`. Each is independent, and each is read back
//! from the kernel after it was set, because a switch that was silently ignored looks exactly like
//! a switch that has no effect.
#![warn(missing_docs)]

pub mod af_xdp;
mod affinity;
mod bpf;
mod config;
mod counters;
mod error;
mod guard;
mod name;
mod pins;
mod read_back;
mod socket;
mod steer;
mod stop;
pub mod udp;
