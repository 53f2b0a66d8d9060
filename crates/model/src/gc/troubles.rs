//! What went wrong in a run of a JVM.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Moment;

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Troubles {
    /// `to-space exhausted`, `to-space overflow`, `Evacuation Failure`.
    pub evacuation_failed: Trouble,
    /// `promotion failed`.
    pub promotion_failed: Trouble,
    /// Share of the old generation in use as a promotion failed, with what had been promoted by then: the least of all of them;
    /// null where none failed, or the log does not show.
    pub promotion_failed_at: Option<f64>,
    /// `concurrent mode failure`.
    pub concurrent_mode_failure: Trouble,
    /// `concurrent mode interrupted`.
    pub concurrent_mode_interrupted: Trouble,
    /// `GCLocker Initiated GC`.
    pub gc_locker: Trouble,
    /// `OutOfMemoryError`.
    pub out_of_memory: Trouble,
}

/// One sort of trouble.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trouble {
    /// How often.
    pub count: u64,
    /// Time of the pauses it came in, those within others included.
    pub total_ms: f64,
    /// The first.
    pub first: Option<Moment>,
    /// The longest.
    pub longest: Option<Moment>,
}
