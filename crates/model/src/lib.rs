//! The nouns of rungwise as plain data, shared by every crate.
//!
//! No I/O, no clock, no command line. What a script may rely on (`docs/schemas`) is
//! generated from the types in [`load`], [`tune`] and [`envelope`], so a field's doc
//! comment here is also its description there. Fractions are fractions (0.037, never
//! "3.7 %"); a plain number carries its unit in its name (`_us`, `_per_s`, `_bytes`).
#![warn(missing_docs)]

pub mod capacity;
pub mod capacity_rpc;
pub mod check;
pub mod compare;
pub mod connections;
pub mod envelope;
pub mod evidence;
pub mod evidence_text;
pub mod exit;
pub mod gc;
pub mod gc_follow;
pub mod heap_per_request;
pub mod jfr;
pub mod jvm_flags;
pub mod kernel;
pub mod keys;
pub mod load;
pub mod machine;
pub mod metric;
pub mod profile;
pub mod readings;
pub mod service;
pub mod threads;
pub mod tune;
pub mod units;

pub use envelope::{Envelope, SCHEMA_VERSION, Tool};
pub use exit::Exit;
