//! Development only: what the tests of several crates need.
//!
//! An invented machine with everything the knobs touch, a record of the real machine's settings to
//! prove "exactly as before", and a way to kill a program at its nth system call.

mod invented;
mod killed;
mod record;

pub use invented::{BOOT_ID, DEVICE, QUEUES, invented};
pub use killed::{Killed, Traced};
pub use record::{Record, differences, record};
