//! An HTTP/1.1 service of the TCP server: every request gets the same reply.
//!
//! ```no_run
//! use rungwise_serve::http::{Answer, Fixed};
//! use rungwise_serve::tcp::{Config, Server};
//!
//! let fixed = Fixed::new(Answer { body: b"hello".to_vec(), ..Answer::default() })?;
//! let server = Server::start(&Config::new("127.0.0.1:8080".parse()?), move |_worker| fixed.clone())?;
//! let counters = server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it does is what a client needs to see exactly one reply per request: requests are delimited by RFC 9112, pipelined ones
//! are answered in order, connections are kept or closed as asked, and what is no request is refused with 400. It has no clock
//! for people, so replies have no `Date` (RFC 9110, section 6.6.1).

mod fixed;
mod request;

pub use fixed::{Answer, Fixed};
pub use request::{Bad, Event, Facts, LONGEST_HEAD, Persistence, Request};
