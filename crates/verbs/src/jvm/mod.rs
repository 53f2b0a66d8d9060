//! Judges a JVM, one file per question.

pub mod flags;
pub mod gc;
pub mod heap_per_request;
mod input;
mod target;
pub mod threads;
mod utf16;
mod zip;
