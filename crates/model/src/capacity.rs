//! Predicted collections: the document of `capacity gc`.
//!
//! Figures are calculated from a load and from sizes, given or taken from a GC log. Each has an interval; where there
//! is no figure, the reason is given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;

/// The document of `capacity gc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityGcReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Input of the calculation: `figures as given`, or the logs.
    pub target: String,
    /// Caveats.
    pub notes: Vec<String>,
    /// The load.
    pub load: Load,
    /// Sizes and settings of the calculation.
    pub layout: Layout,
    /// Figures for these sizes. For a log, the model's figures for the log's own sizes are listed beside the measured
    /// ones: their difference shows how far to trust the rest.
    pub now: Vec<Figure>,
    /// When to expect the next collections; from a log only.
    pub next: Vec<Next>,
    /// Figures for the sizes in question; null if none were asked for.
    pub what_if: Option<WhatIf>,
}

/// Requests and what they allocate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Requests per second, as given.
    pub requests_per_s: Option<f64>,
    /// Bytes that a request allocates: as given, or allocation divided by requests.
    pub bytes_per_request: Option<Estimate>,
    /// Bytes allocated per second.
    pub allocation_bytes_per_s: Option<Estimate>,
}

/// Sizes of the parts of the heap and the settings that decide about promotion; null where neither the log nor the user gives them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layout {
    /// As in the document of `jvm gc`.
    pub collector: Option<String>,
    /// The whole heap.
    pub heap_bytes: Option<f64>,
    /// Eden and both survivor spaces.
    pub young_bytes: Option<f64>,
    /// Eden.
    pub eden_bytes: Option<f64>,
    /// One survivor space.
    pub survivor_bytes: Option<f64>,
    /// The old generation.
    pub old_bytes: Option<f64>,
    /// Maximum number of collections that an object survives before it is promoted.
    pub max_tenuring: Option<u32>,
}

/// The quantity of a figure; its name includes the unit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Bytes allocated per second.
    AllocationBytesPerS,
    /// Bytes allocated per minute.
    AllocationBytesPerMin,
    /// From the start of one young collection to the next.
    YoungIntervalS,
    /// Young collections per minute.
    YoungPerMin,
    /// In use in a survivor space after a young collection.
    SurvivorsBytes,
    /// Size of a survivor space that would let every object reach the highest age.
    SurvivorSpaceWantedBytes,
    /// Collections that an object survives before it is promoted, as the collector adapts it.
    TenuringThreshold,
    /// Bytes per second that young collections move to the old generation.
    PromotionBytesPerS,
    /// Median young pause.
    YoungPauseMs,
    /// From the start of one old collection or concurrent cycle to the next.
    OldIntervalS,
    /// Share of time in pauses.
    PauseShare,
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The value that the model gives.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; null if there is none, such as for the time until something that may never happen.
    #[serde(with = "endless")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

/// JSON has no infinity.
mod endless {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(high: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*high)
            .filter(|high| high.is_finite())
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Quantity.
    pub quantity: Quantity,
    /// Value measured in the log; null if the log lacks it or it has not happened.
    pub measured: Option<f64>,
    /// Value of the model; null if the model has none.
    pub estimate: Option<Estimate>,
    /// Basis of the estimate where it is not obvious, or why there is none and what would provide one.
    pub because: Option<String>,
}

/// A kind of collection and when to expect the next one, counted from the end of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Next {
    /// `young`, `old`, `full`.
    pub kind: String,
    /// Seconds until then; null if it cannot be estimated.
    pub in_s: Option<Estimate>,
    /// Basis of the estimate, or why there is none.
    pub because: String,
}

/// Sizes that were asked about and their effect under the load of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// What was asked: `young=12g,tenuring=15`.
    pub asked: String,
    /// The sizes in that case.
    pub layout: Layout,
    /// Bytes allocated per second in that case.
    pub allocation_bytes_per_s: Option<Estimate>,
    /// The figures in that case.
    pub figures: Vec<Figure>,
    /// Side effects of the change.
    pub notes: Vec<String>,
}

/// Interval arithmetic for non-negative values: every result contains the result of any values within the operands.
impl Estimate {
    /// An exactly known value.
    pub fn exact(value: f64) -> Self {
        Self {
            point: value,
            low: value,
            high: value,
        }
    }

    /// Widened by `share` on both sides.
    #[must_use]
    pub fn widened(self, share: f64) -> Self {
        Self {
            low: self.low * (1.0 - share).max(0.0),
            high: self.high * (1.0 + share),
            ..self
        }
    }

    /// Multiplied by `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            point: self.point * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            point: self.point + other.point,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }

    /// The difference, not below zero.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            point: (self.point - other.point).max(0.0),
            low: (self.low - other.high).max(0.0),
            high: (self.high - other.low).max(0.0),
        }
    }

    /// The product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            point: self.point * other.point,
            low: self.low * other.low,
            high: self.high * other.high,
        }
    }

    /// The quotient: without an upper end if the other may be zero; none if the other's point is zero.
    pub fn over(self, other: Self) -> Option<Self> {
        (other.point > 0.0).then(|| Self {
            point: self.point / other.point,
            low: self.low / other.high,
            high: if other.low > 0.0 {
                self.high / other.low
            } else {
                f64::INFINITY
            },
        })
    }

    /// The union of both intervals, with the point of this one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            ..self
        }
    }

    /// The value lies in the interval.
    pub fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_never_come_has_no_upper_end_in_json_either() {
        let rate = Estimate {
            point: 2.0,
            low: 0.0,
            high: 4.0,
        };
        let until = Estimate::exact(8.0).over(rate).unwrap();
        let text = serde_json::to_string(&until).unwrap();
        assert_eq!(text, r#"{"point":4.0,"low":2.0,"high":null}"#);
        assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), until);
        assert_eq!(until.over(Estimate::default()), None);
    }

    #[test]
    fn a_quotient_holds_what_any_of_its_parts_would_give() {
        let room = Estimate::exact(100.0).widened(0.1);
        let rate = Estimate::exact(10.0).widened(0.2);
        let time = room.over(rate).unwrap();
        assert!(time.holds(110.0 / 8.0) && time.holds(90.0 / 12.0) && time.holds(10.0));
        assert!(!time.holds(7.0) && !time.holds(14.0));
    }
}
