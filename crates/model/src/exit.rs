//! Exit codes: what a pipeline can conclude from a run without reading its output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the process ended; the number is the process's exit status.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "u8", try_from = "u8")]
#[schemars(with = "u8")]
#[repr(u8)]
pub enum Exit {
    /// Done: nothing to act on, or passed.
    Done = 0,
    /// A measured failure: a missed objective or a proven regression.
    Failed = 1,
    /// The command line or the tool itself was wrong.
    Usage = 2,
    /// Noise, too few pairs or missing evidence: neither pass nor failure.
    Inconclusive = 3,
    /// A precondition is missing: permission, program, target, kernel feature.
    Precondition = 4,
    /// A change could not be undone; the journal's path was printed.
    Rollback = 5,
    /// Interrupted by the user, after rollback.
    Interrupted = 130,
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        exit as u8
    }
}

impl TryFrom<u8> for Exit {
    type Error = String;

    fn try_from(code: u8) -> Result<Self, String> {
        [
            Self::Done,
            Self::Failed,
            Self::Usage,
            Self::Inconclusive,
            Self::Precondition,
            Self::Rollback,
            Self::Interrupted,
        ]
        .into_iter()
        .find(|exit| *exit as u8 == code)
        .ok_or_else(|| format!("{code} is not an exit code of rungwise"))
    }
}
