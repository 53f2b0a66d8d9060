//! GC logs of HotSpot, JDK 5 to 25: bytes to events, at disk speed, in memory that does not grow.
//!
//! ```
//! use rungwise_gclog::{Event, Parser};
//!
//! let log = b"[0.512s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms\n";
//! let mut longest = 0;
//! let mut parser = Parser::new();
//! let mut sink = |_: &_, event: Event<'_>| {
//!     if let Event::Pause(pause) = event {
//!         longest = longest.max(pause.duration_ns.unwrap_or(0));
//!     }
//! };
//! parser.push(log, &mut sink);
//! let account = parser.finish(&mut sink);
//! assert_eq!(longest, 3_524_000);
//! assert_eq!(account.unknown.lines, 0);
//! ```
//!
//! The crate is not on a registry. Depend on the repository: `rungwise-gclog = { git = "URL", rev = "COMMIT" }`.
//!
//! Pure: no file is opened here, no clock is read, no input makes it panic. A log may be pushed in pieces of any length;
//! the events are the same. One file may hold lines of the application, several JVMs and several formats: each line is
//! parsed by itself, after the prefixes of containers, log collectors and syslog are removed. If lines identify their JVM,
//! several JVMs that interleave in one log are separated ([`Event::Turn`]).

#![expect(
    clippy::doc_markdown,
    reason = "HotSpot, ParNew and DefNew are names of the subject, not of items here"
)]

mod account;
mod clock;
mod context;
mod date;
mod event;
mod jvms;
mod lines;
mod names;
mod number;
mod parser;
pub mod predict;
mod preunified;
mod summary;
mod unified;
mod wrapper;

pub use account::{Account, Sample, Share};
pub use event::{
    AREAS, Ages, Area, Areas, Change, Collector, Concurrent, Cpu, Event, Fact, Kind, Pause, Phase,
    References, Safepoint, Stamp, Statistic, Troubles,
};
pub use jvms::Turns;
pub use names::{Name, Names};
pub use parser::Parser;
pub use summary::{Summarizer, Summary, evidence};
