//! Judges a JVM, one file per question.

pub mod flags;
pub mod gc;
mod input;
mod target;
pub mod threads;
mod utf16;
mod zip;
