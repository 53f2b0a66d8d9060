//! What survives old collections, and what that is known from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Course, Moment, Slope};

/// What a live set is known from, the surest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LiveSource {
    /// The heap after full collections.
    #[default]
    Full,
    /// ZGC and Shenandoah: what marks found alive, without what was allocated meanwhile.
    Mark,
    /// The heap after whole cycles of a collector that moves everything concurrently.
    Cycle,
    /// CMS: the old generation after a sweep.
    Sweep,
    /// G1: the heap after some mixed collections; holds what was not worth collecting.
    Mixed,
    /// G1: the heap after a mark or the next young collection, whichever is less; holds all regions with a live object.
    Remark,
}

impl LiveSource {
    /// As in the document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Mark => "mark",
            Self::Cycle => "cycle",
            Self::Sweep => "sweep",
            Self::Mixed => "mixed",
            Self::Remark => "remark",
        }
    }
}

/// What survives old collections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveSet {
    /// What it is known from.
    pub source: LiveSource,
    /// Collections that it is known from.
    pub samples: u64,
    /// After the last of them.
    pub last_bytes: u64,
    /// Least.
    pub min_bytes: u64,
    /// Most.
    pub max_bytes: u64,
    /// The most that there is room for, where known.
    pub room_bytes: Option<u64>,
    /// Growth per hour, bytes; null below five steps of the course.
    pub bytes_per_hour: Option<Slope>,
    /// The last collection.
    pub last: Moment,
    /// All of them.
    pub course: Course,
}
