//! What survives old collections, and the source of that figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Course, Moment, Slope};

/// Source of a live set, the most reliable first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LiveSource {
    /// The heap after full collections.
    #[default]
    Full,
    /// ZGC and Shenandoah: live bytes found by marking, without allocations during the mark.
    Mark,
    /// The heap after whole cycles of a concurrent compacting collector.
    Cycle,
    /// CMS: the old generation after a sweep.
    Sweep,
    /// G1: the heap after some mixed collections; includes garbage that was not worth collecting.
    Mixed,
    /// G1: the heap after a mark or the next young collection, whichever is smaller; includes all regions with a live object.
    Remark,
}

impl LiveSource {
    /// The word in the document.
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
    /// Source of the figure.
    pub source: LiveSource,
    /// Collections from which it is derived.
    pub samples: u64,
    /// After the last of them.
    pub last_bytes: u64,
    /// Least.
    pub min_bytes: u64,
    /// Most.
    pub max_bytes: u64,
    /// Its upper limit, where known.
    pub room_bytes: Option<u64>,
    /// Growth per hour, bytes; null with fewer than five steps of the course.
    pub bytes_per_hour: Option<Slope>,
    /// The last collection.
    pub last: Moment,
    /// All of them.
    pub course: Course,
}
