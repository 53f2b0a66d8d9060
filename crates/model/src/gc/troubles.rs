//! Failures in a run of a JVM.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Moment;

/// Failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Troubles {
    /// `to-space exhausted`, `to-space overflow`, `Evacuation Failure`.
    pub evacuation_failed: Trouble,
    /// `promotion failed`.
    pub promotion_failed: Trouble,
    /// Lowest share of the old generation in use when a promotion failed, bytes promoted by then included; null if none
    /// failed or the log does not show it.
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

/// One kind of failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trouble {
    /// Number of occurrences.
    pub count: u64,
    /// Total time of the pauses in which it occurred, those within others included.
    pub total_ms: f64,
    /// The first.
    pub first: Option<Moment>,
    /// The longest.
    pub longest: Option<Moment>,
}
