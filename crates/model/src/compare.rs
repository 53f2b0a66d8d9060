//! Differences between two hosts, logs or reports: the document of `compare`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::check::Outcome;
use crate::gc::Run;
use crate::profile::{Event, Stacks, Unit};

/// Result for one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Both sides have it, with different values.
    Differs,
    /// Only the first side has it.
    OnlyBefore,
    /// Only the second side has it.
    OnlyAfter,
}

/// A ratio with its interval, for measurements; a setting has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioInterval {
    /// After over before.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Its name: a key of the evidence, a sysctl, a feature of a device.
    pub name: String,
    /// Group under which it is shown: `cpu`, `device`, ...
    pub group: String,
    /// Its subjects, where not the host: `cpu/3`, `device/eth0`. The same difference of several subjects is listed once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Value on the first side; null if the side lacks it.
    pub before: Option<String>,
    /// On the second side.
    pub after: Option<String>,
    /// The same as a number in `unit`, for measurements; the median of several logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_value: Option<f64>,
    /// On the second side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_value: Option<f64>,
    /// Of the two numbers: `ms`, `count`, `per_min`, `fraction`, `bytes`, `bytes_per_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// For measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<RatioInterval>,
    /// Why there is no ratio with an interval although both sides were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_ratio: Option<String>,
    /// Result.
    pub verdict: Verdict,
    /// Rules that read it or turn its knob.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The knob that turns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<String>,
}

/// A rule whose result differs between the sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleDifference {
    /// The rule.
    pub rule: String,
    /// Its worst outcome on the first side.
    pub before: Outcome,
    /// Its worst outcome on the second side.
    pub after: Outcome,
    /// Its sentence on the side with the worse outcome.
    pub sentence: String,
}

/// A setting that one side could not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// Its name.
    pub name: String,
    /// The side that lacks it, by its name.
    pub side: String,
    /// Why.
    pub reason: String,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Captures of two hosts.
    Hosts,
    /// GC logs.
    GcLogs,
    /// Two documents of `load`.
    Loads,
    /// Two documents of `tune`.
    Tunes,
    /// Two documents of `check`.
    Checks,
    /// Profiles.
    Profiles,
}

/// A GC log of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedLog {
    /// Its name.
    pub name: String,
    /// The run of which the log covers the longest time.
    pub run: Run,
}

/// A profile of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileSide {
    /// The name of the event in the file; null if it has none.
    pub source: Option<String>,
    /// The sum of all weights.
    pub total: u64,
    /// The stacks.
    pub stacks: Stacks,
}

/// Two profiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profiles {
    /// What both measure.
    pub event: Event,
    /// Unit of all weights.
    pub unit: Unit,
    /// The first side.
    pub before: ProfileSide,
    /// The second side.
    pub after: ProfileSide,
}

/// The document of `compare`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What is compared; absent in documents written before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Of>,
    /// For two documents: the second compared with the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<crate::tune::Verdict>,
    /// The first side.
    pub before: String,
    /// The second side.
    pub after: String,
    /// Result in one sentence.
    pub sentence: String,
    /// Notes on the two sides, such as what was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Differences; equal values are omitted.
    pub metrics: Vec<Metric>,
    /// Rules with a finding on one side only.
    pub findings: Vec<RuleDifference>,
    /// What could be read on one side only.
    pub not_compared: Vec<NotCompared>,
    /// For GC logs: the clauses of the sentence, the headline first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
    /// For GC logs: those of the first side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before_logs: Vec<ComparedLog>,
    /// Those of the second side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_logs: Vec<ComparedLog>,
    /// For profiles: those of both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Box<Profiles>>,
}
