//! Servers to measure against, which services embed: UDP transactions, TCP connections, many of them for long, HTTP.
//!
//! A service is a handler: bytes of a request in, bytes of a reply out ([`udp::Handler`] for DNS, RADIUS, NTP or SNMP,
//! [`tcp::Handler`] for connections). Around it are the switches that decide how many transactions a host can serve: workers, a
//! `SO_REUSEPORT` group, steering, pinned threads, batches, `io_uring`. Each is independent, and each is read back
//! from the kernel after it was set, because a switch that was silently ignored looks exactly like
//! a switch that has no effect.
#![warn(missing_docs)]

pub mod af_xdp;
mod affinity;
mod bpf;
mod config;
mod counters;
mod error;
pub mod files;
mod guard;
pub mod http;
mod name;
mod pins;
mod read_back;
mod socket;
mod steer;
mod stop;
pub mod tcp;
pub mod udp;
mod uring;
