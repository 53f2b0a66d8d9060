//! A UDP transaction server: one request datagram in, at most one reply datagram out.
//!
//! ```no_run
//! use std::net::SocketAddr;
//! use rungwise_serve::udp::{Config, Server};
//!
//! let echo = |_worker: usize| {
//!     |request: &[u8], _peer: SocketAddr, reply: &mut [u8]| {
//!         reply[..request.len()].copy_from_slice(request);
//!         Some(request.len())
//!     }
//! };
//! let config = Config { workers: 2, reuseport: true, ..Config::new("[::]:7".parse()?) };
//! let server = Server::start(&config, echo)?;
//! for read_back in server.read_backs() {
//!     eprintln!("{read_back}");
//! }
//! let counters = server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A worker is a plain thread that owns its handler, so a handler needs no lock. Per datagram there is no
//! allocation, no lock, no log line and no system call that the chosen [`Io`] does not need; counters are
//! published once per batch.

mod af_xdp;
mod batch;
mod config;
mod counters;
mod handler;
mod message;
mod outbox;
mod server;
mod single;
mod socket;
mod uring;
mod worker;
mod xdp;

pub use crate::config::{BusyPoll, Pin, Steering};
pub use crate::error::Error;
pub use crate::read_back::ReadBack;
pub use config::{Config, Io, PathMtu, XdpDevice, XdpMode};
pub use counters::{Counters, WorkerCounters, XdpCounters};
pub use handler::{Handler, MAX_REPLY};
pub use server::Server;
