//! Profiles as trees of stacks: read from folded text or the output of `perf script`, summed by frame and thread, cut to what a page can
//! show, written as folded text or speedscope JSON.
//!
//! ```
//! let mut reader = rungwise_stacks::Reader::default();
//! reader.push(b"main;parse 2\nmain;write;fsync 5\n");
//! let profile = reader.finish()?;
//! assert_eq!(profile.stacks.total(), 7);
//! # Ok::<(), rungwise_stacks::Error>(())
//! ```
//!
//! Text comes in pieces of any length. Memory is bounded whatever the text: distinct frames, tree nodes and lengths of names have limits,
//! and what exceeds them is counted and reported, never dropped silently. No input makes the readers panic. Nothing here opens files.

mod cut;
mod folded;
mod frame;
mod perf_script;
mod reader;
mod speedscope;
mod stacks;
mod sums;

pub use cut::{Cut, CutNode, LEFT_OUT};
pub use folded::{folded, kept, read as read_folded};
pub use frame::{Frame, Thread, pattern};
pub use perf_script::java_method;
pub use reader::{Error, Format, Reader, Text};
pub use speedscope::speedscope;
pub use stacks::Stacks;
pub use sums::{Hot, Threads, by_kind, hot, threads};
