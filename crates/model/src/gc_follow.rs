//! A GC log that is still being written: the lines of `jvm gc --follow --format json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Finding;
use crate::gc::GcReport;

/// One line, a complete document. The last one is the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum FollowLine {
    /// A pause or a cycle has ended.
    Collection(Collection),
    /// Statistics over the last minute of the log, or slightly more.
    Standing(Standing),
    /// A finding of a rule, when it first appears and when it becomes worse.
    Finding(Finding),
    /// From here on another JVM writes the log.
    Restart,
    /// The JVM ran out of memory.
    OutOfMemory,
    /// The report over the whole log, the same as from `jvm gc` without `--follow`.
    Report(Box<GcReport>),
}

/// A pause, or a concurrent cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// The JVM, where several write to the log in turn, as its lines identify it; null elsewhere, and until the second
    /// JVM has written something.
    pub source: Option<String>,
    /// Line of the log, from 1; lines are counted through all files.
    pub line: u64,
    /// When it began, seconds of uptime; null if the log does not show it.
    pub at_s: Option<f64>,
    /// When it began, RFC 3339 in UTC; null where the log has no dates.
    pub at: Option<String>,
    /// `young`, `mixed`, `full`, `degenerated`, `start`, `remark`, `cleanup`, `other`, and `cycle` for a concurrent cycle.
    pub kind: String,
    /// As printed, with the cause.
    pub name: String,
    /// Cause, where logged.
    pub cause: Option<String>,
    /// Duration; null if the log is cut before the figure.
    pub duration_ms: Option<f64>,
    /// It lies within another pause, whose duration includes its own.
    pub nested: bool,
    /// Heap in use before.
    pub heap_before_bytes: Option<u64>,
    /// Heap in use after.
    pub heap_after_bytes: Option<u64>,
    /// Heap capacity.
    pub heap_bytes: Option<u64>,
}

/// Statistics over a span of the log. Pauses within others are not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The JVM, where several write to the log in turn; null elsewhere.
    pub source: Option<String>,
    /// End of the span, seconds on the clock of the run.
    pub until_s: f64,
    /// Length of the span.
    pub seconds: f64,
    /// Pauses in it.
    pub pauses: u64,
    /// Their sum.
    pub paused_ms: f64,
    /// The longest of them; null where there was none.
    pub longest_ms: Option<f64>,
    /// Their share of the time; null until the run has logged a pause.
    pub share: Option<f64>,
    /// Allocation; null if the log does not show it.
    pub allocation_bytes_per_s: Option<f64>,
}
