//! Thread dumps of HotSpot, JDK 5 to 25: bytes to threads and locks, and a summary of several dumps.
//!
//! ```
//! use rungwise_threaddump::{Parser, summary};
//!
//! let dump = b"Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode):\n\n\
//!     \"a\" #1 prio=5 tid=0x1 nid=0x1 waiting for monitor entry\n   java.lang.Thread.State: BLOCKED (on object monitor)\n\
//!     \tat A.one(A.java:1)\n\t- waiting to lock <0x01> (a X)\n\t- locked <0x02> (a Y)\n\n\
//!     \"b\" #2 prio=5 tid=0x2 nid=0x2 waiting for monitor entry\n   java.lang.Thread.State: BLOCKED (on object monitor)\n\
//!     \tat A.two(A.java:2)\n\t- waiting to lock <0x02> (a Y)\n\t- locked <0x01> (a X)\n";
//! let mut parser = Parser::new();
//! parser.begin("dump.txt");
//! parser.push(dump);
//! let (dumps, account) = parser.finish();
//! assert_eq!(account.unknown_lines, 0);
//! assert_eq!(summary(dumps).dumps[0].deadlocks[0].threads, ["a", "b"]);
//! ```
//!
//! It reads the output of `jstack`, `jcmd PID Thread.print` and SIGQUIT, both forms of `jcmd PID Thread.dump_to_file`, and what
//! tools make of the management beans: JMX, VisualVM, Spring Boot Actuator. Pure: no file is opened here, no clock is read, no
//! input makes it panic. Application output before, between and after dumps is counted as not understood.

#![expect(
    clippy::doc_markdown,
    reason = "HotSpot is a name of the subject, not of an item here"
)]

mod activity;
mod beans;
mod classes;
mod course;
mod dump;
mod evidence;
mod frame;
mod full;
mod graph;
mod heat;
mod json;
mod lines;
mod parser;
mod pools;
mod shared;
mod stages;
mod summary;
mod text;
mod times;
mod waits;

pub use dump::{Dump, Hold, How, Lock, Member, Reported, State, Task, Thread, Wait};
pub use evidence::evidence;
pub use parser::Parser;
pub use stages::{BadStage, Stages};
pub use summary::{Summary, summary, summary_by};
