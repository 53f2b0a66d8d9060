//! The driving side: workloads, their schedule, and what they measured.
//!
//! [`udp`] asks and counts the answers, in a closed loop (a fixed number of outstanding requests) or an open
//! loop (a schedule that does not depend on the server). [`dns`] turns a query file into requests and
//! checks replies. A generator thread shares nothing while it runs: no allocation, lock or log line per
//! transaction. What the numbers mean, and when they may be used, is written in `docs/load.md`.

mod clock;
mod data;
pub mod dns;
pub mod engine;
mod error;
pub mod parameters;
pub mod stream;
mod template;
pub mod values;
pub mod workloads;

pub use error::Error;
pub use workloads::{
    Parameters, WORKLOADS, Workload, command, connections, dubbo, http, memcached, redis, tcp, udp,
};
