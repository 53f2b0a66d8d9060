//! Sizes of objects in a run of a JVM.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Moment;

/// Sizes of objects. Quantiles are within 0.4 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    /// Number.
    pub count: u64,
    /// Median.
    pub p50_bytes: u64,
    /// 90th percentile.
    pub p90_bytes: u64,
    /// Largest.
    pub largest_bytes: u64,
    /// The last one in the log.
    pub last: Moment,
}
