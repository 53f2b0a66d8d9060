//! Judges a JVM, one file per question.

pub mod flags;
pub mod gc;
pub mod heap_per_request;
pub mod jfr;
pub(crate) mod live;
mod reversed;
mod target;
pub mod threads;
pub(crate) mod watch;
