//! What `HotSpot`'s flags mean: the tables of JDK 8 to 25 as real JVMs printed them, that of JDK 7 from its source, a parser
//! of command lines, checks of them, and the migration from one JDK to another.
//!
//! ```
//! use rungwise_jvm::{Case, CommandLine, Machine, Release, judge};
//! use rungwise_model::check::Outcome;
//!
//! let case = Case {
//!     release: Release::parse("17.0.15").unwrap(),
//!     update: None,
//!     line: CommandLine::parse("-Xmx4g -XX:+UseConcMarkSweepGC"),
//!     machine: Machine::default(),
//! };
//! let findings = judge(&case);
//! assert_eq!(findings[0].rule, "jvm-flag-removed");
//! assert_eq!(findings[0].outcome, Outcome::Act);
//! ```
//!
//! Pure: no file is opened, no process is started, no input makes it panic. The tables are part of the program and are
//! read when the first flag is looked up, one JDK at a time.

mod between;
mod command_line;
pub mod edit;
mod history;
mod judge;
mod machine;
pub mod migrate;
mod release;
mod size;
mod table;

pub use command_line::{CommandLine, Given, Origin, Setting};
pub use history::{Standing, State, history, lifetime};
pub use judge::{Case, Collector, OPTION_RULES, OptionRule, Start, judge, start};
pub use machine::Machine;
pub use release::Release;
pub use size::{bytes, shown};
pub use table::{Bounds, Default, Flag, Kind, Table, Type};
