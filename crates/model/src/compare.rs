//! What differs between two hosts: the document of `compare`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::check::Outcome;
use crate::gc::Run;

/// What became of one metric.
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

/// A ratio with its interval, for what was measured; a setting has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioInterval {
    /// After over before.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Its name: a key of the evidence, a sysctl, a feature of a device.
    pub name: String,
    /// Subject matter under which it is shown: `cpu`, `device`, ...
    pub group: String,
    /// What it is about, where it is not the host: `cpu/3`, `device/eth0`. The same difference of several stands once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// On the first side; null where it is not there.
    pub before: Option<String>,
    /// On the second side.
    pub after: Option<String>,
    /// The same as a number in `unit`, for what was measured; of several logs the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_value: Option<f64>,
    /// On the second side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_value: Option<f64>,
    /// Of the two numbers: `ms`, `count`, `per_min`, `fraction`, `bytes`, `bytes_per_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// For what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<RatioInterval>,
    /// Why there is no ratio with an interval, where both sides have been measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_ratio: Option<String>,
    /// What became of it.
    pub verdict: Verdict,
    /// Rules that read it, or that turn its knob.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The knob that turns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<String>,
}

/// A rule that says of one side what it does not say of the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleDifference {
    /// The rule.
    pub rule: String,
    /// Its worst outcome on the first side.
    pub before: Outcome,
    /// Its worst outcome on the second side.
    pub after: Outcome,
    /// What it says where it found more.
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
}

/// A GC log of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedLog {
    /// Its name.
    pub name: String,
    /// The run that the log covers the longest time of.
    pub run: Run,
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
    /// Of two documents, what the second is against the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<crate::tune::Verdict>,
    /// The first side.
    pub before: String,
    /// The second side.
    pub after: String,
    /// What it comes to.
    pub sentence: String,
    /// What the reader should know of the two sides: what was left out of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What differs; what is the same is left out.
    pub metrics: Vec<Metric>,
    /// Rules that speak on one side only.
    pub findings: Vec<RuleDifference>,
    /// What could be read on one side only.
    pub not_compared: Vec<NotCompared>,
    /// Of GC logs, the clauses of the sentence: the headline first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
    /// Of GC logs, those of the first side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before_logs: Vec<ComparedLog>,
    /// Those of the second side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_logs: Vec<ComparedLog>,
}
