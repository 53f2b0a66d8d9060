//! Development only: what the tests of several crates need.
//!
//! An invented machine with everything the knobs touch, a record of the real machine's settings to
//! prove "exactly as before", a way to kill a program at its nth system call, and namespaces with one
//! planted fault each, or none. A rule of audit, certificates, a GC log that does not end, an invented recording, casebooks, and a loud word for what is skipped.

mod audit;
pub mod casebook;
mod certificates;
mod clock;
mod endless;
pub mod faults;
mod guest;
mod invented;
mod invented_recording;
mod killed;
mod limit;
mod own_tmp;
mod pair;
mod planted_jvm;
mod record;
mod skipped;
mod unit;

pub use audit::{RecordedUser, a_user_of_nobody};
pub use certificates::{Authority, Issued};
pub use clock::WallClock;
pub use endless::EndlessLog;
pub use guest::Guest;
pub use invented::{BOOT_ID, DEVICE, QUEUES, invented};
pub use invented_recording::InventedRecording;
pub use killed::{Killed, Traced};
pub use limit::TimeLimit;
pub use own_tmp::own_tmp;
pub use pair::Pair;
pub use planted_jvm::{How, PlantedJvm, compile_planted, program};
pub use record::{Record, differences, record};
pub use skipped::skipped;
pub use unit::{UnitGroup, remove_group};
