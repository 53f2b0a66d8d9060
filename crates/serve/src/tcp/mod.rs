//! A TCP server: what a [`Handler`] makes of the bytes of each connection.
//!
//! ```no_run
//! use rungwise_serve::tcp::{Config, Echo, Server};
//!
//! let config = Config { workers: 2, reuseport: true, ..Config::new("127.0.0.1:7".parse()?) };
//! let server = Server::start(&config, |_worker| Echo)?;
//! for read_back in server.read_backs() {
//!     eprintln!("{read_back}");
//! }
//! let counters = server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A worker is a plain thread with an epoll of its own, or an `io_uring` ([`Io`]). It accepts from a listener of its own (`reuseport`) or from the one
//! that all share, and keeps what it accepted. A transaction costs three system calls: wait, receive, send; with
//! `io_uring` a round of them costs one.
//!
//! A connection that is between two requests holds no buffer. A client that does not read its replies is not read
//! from, so no connection holds more than what one receive brought, its replies, and one request that is not complete.

mod config;
mod connection;
mod counters;
mod desk;
mod engine;
mod epoll;
mod handler;
mod hub;
mod listener;
mod messages;
mod server;
mod slab;
mod timers;
mod uring;
mod worker;

pub use crate::config::{BusyPoll, Pin, Steering};
pub use crate::error::Error;
pub use crate::read_back::ReadBack;
pub use config::{Config, Io};
pub use counters::{Counters, WorkerCounters};
pub use handler::{Discard, Echo, Handler, MOST_KEPT, Reply, Step, Then};
pub use messages::{BROADCAST, MESSAGE, Messages};
pub use server::Server;
