//! The verbs as functions: each from a request to a document, with an observer for progress and a flag to stop.
//!
//! The command line, a pipeline, a web page and tests call the same functions. A request holds the arguments of a verb: the
//! command line parses it; an [`Invocation`] is what surrounds all of them. Nothing here prints but the guard ([`knob::watch`]), and nothing ends
//! the process: an error carries its exit status ([`problem::exit_of`]).
//!
//! [`tune::run`] and `knob apply` start the running program again, as guard and as load process, so that only rungwise itself can call them.
#![warn(missing_docs)]

pub mod capacity;
pub mod capture;
pub mod check;
pub mod compare;
pub mod documents;
pub mod explain;
mod file_type;
mod input;
pub mod invocation;
pub mod jvm;
pub mod knob;
pub mod load;
mod network;
pub mod printed;
pub mod problem;
pub mod profile;
pub mod runs;
pub mod serve;
mod service;
pub mod tune;
pub mod values;
mod waiters;

pub use invocation::{Invocation, Observer};
