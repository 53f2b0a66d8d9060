//! A GC log that is still written, as it goes: the lines of `jvm gc --follow --format json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Finding;
use crate::gc::GcReport;

/// One line, a document of its own. The last one is the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum FollowLine {
    /// A pause or a cycle has ended.
    Collection(Collection),
    /// How the JVM stands: of the last minute of the log, or a little more.
    Standing(Standing),
    /// What a rule says: when it says so first, and when it becomes worse.
    Finding(Finding),
    /// Another JVM writes from here on.
    Restart,
    /// The JVM ran out of memory.
    OutOfMemory,
    /// What all of the log says, as `jvm gc` without `--follow` tells it.
    Report(Box<GcReport>),
}

/// A pause, or a cycle beside the application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// Which JVM, where several write by turns, as their lines tell it; null elsewhere, and before the second has told something.
    pub source: Option<String>,
    /// Line of the log, from 1; lines are counted through all files.
    pub line: u64,
    /// When it began, seconds of uptime; null where the log does not show.
    pub at_s: Option<f64>,
    /// When it began, RFC 3339 in UTC; null where the log has no dates.
    pub at: Option<String>,
    /// `young`, `mixed`, `full`, `degenerated`, `start`, `remark`, `cleanup`, `other`, and `cycle` of what is no pause.
    pub kind: String,
    /// As printed, with the cause.
    pub name: String,
    /// Why it came, where told.
    pub cause: Option<String>,
    /// How long; null where the log is cut before the figure.
    pub duration_ms: Option<f64>,
    /// It lies within another pause, whose duration holds its own.
    pub nested: bool,
    /// Heap in use before.
    pub heap_before_bytes: Option<u64>,
    /// Heap in use after.
    pub heap_after_bytes: Option<u64>,
    /// Heap that there was.
    pub heap_bytes: Option<u64>,
}

/// What a while of the log came to. Pauses within others are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Which JVM, where several write by turns; null elsewhere.
    pub source: Option<String>,
    /// When the while ended, seconds on the clock of the run.
    pub until_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Pauses in it.
    pub pauses: u64,
    /// Their sum.
    pub paused_ms: f64,
    /// The longest of them; null where there was none.
    pub longest_ms: Option<f64>,
    /// Their share of the time; null while the run has told of no pause.
    pub share: Option<f64>,
    /// Allocation; null where the log does not show.
    pub allocation_bytes_per_s: Option<f64>,
}
