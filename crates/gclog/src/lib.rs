//! GC logs of HotSpot, JDK 5 to 25: bytes to events, at disk speed, in memory that does not grow.
//!
//! Pure: no file is opened here, no clock is read, no input makes it panic. A log may be pushed in pieces of any
//! length; the events are the same. One file may hold lines of the application, several JVMs and several formats:
//! each line is judged by itself.

mod account;
mod event;
mod names;

pub use account::{Account, Sample, Share};
pub use event::{
    AREAS, Ages, Area, Areas, Change, Collector, Concurrent, Cpu, Event, Fact, Kind, Pause, Phase, References,
    Safepoint, Stamp, Troubles,
};
pub use names::{Name, Names};
