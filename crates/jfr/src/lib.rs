//! Recordings of JDK Flight Recorder, format 1.0 to 2.1 (JDK 9 to 25, 8u262 and later, async-profiler): a streaming reader of events,
//! and a summary.
//!
//! ```no_run
//! use rungwise_jfr::{Recording, Wanted};
//!
//! # fn read(file: std::fs::File) -> Result<(), rungwise_jfr::Error> {
//! let mut recording = Recording::open(file)?;
//! let wanted = [Wanted { event: "jdk.JavaMonitorEnter", fields: &["duration", "monitorClass"] }];
//! while let Some(chunk) = recording.next_chunk(&wanted)? {
//!     // Damage is not an error: the chunk before it was read.
//!     let Ok(mut chunk) = chunk else { break };
//!     chunk.each(|event| {
//!         let [duration, class] = event.fields else { return };
//!         println!("{:?} ns for {:?}", duration.int(), event.constants.class_name(*class));
//!     })?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Only the events that are asked for are decoded; others are counted and passed over by their size. Memory is a block of the file
//! and the constants of one chunk. A recording that is cut, or that the JVM did not finish, gives what it has and says what is
//! missing. No input makes the reader panic. Nothing here opens files.

mod bytes;
mod code;
mod constants;
mod error;
mod evidence;
mod header;
mod metadata;
mod recording;
mod stacks;
mod summary;
mod value;
mod window;

pub use bytes::Text;
pub use constants::{Constants, Frame, Method, Thread};
pub use error::Error;
pub use evidence::evidence;
pub use header::Header;
pub use recording::{Chunk, Count, Damage, Event, MOST_FIELDS, Recording, Wanted};
pub use stacks::{Passed, Source, Weighed, stacks};
pub use summary::summary;
pub use value::{Array, Constant, Value};

/// First bytes of every recording.
pub const MAGIC: &[u8] = header::MAGIC;
