//! Where runs happen: the engine decides *what* runs next, a stage runs it.
//!
//! The real stage is [`crate::lab`]; tests put a simulated one behind the same trait, so that every
//! decision of the engine can be driven by a known truth.

use std::collections::BTreeMap;
use std::fmt;

use rungwise_load::Parameters;
use rungwise_model::tune::Run;
use rungwise_probes::Capture;
use rungwise_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which end of the topology a setting belongs to. Service switches have no end of their own: `Server`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The end that answers requests.
    Server,
    /// The end that sends requests.
    Client,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}

/// One knob at one end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Setting {
    /// Knob id.
    pub knob: String,
    /// The end it is turned at.
    pub side: Side,
}

/// Parameters of the workload that a rung changes, by their keys; both halves of its pairs run with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
pub struct Changes(BTreeMap<String, Value>);

impl Changes {
    /// Changes nothing.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Whether nothing is changed.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// These changes, and `more` on top.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(more.0.clone());
        Self(all)
    }

    /// The parameters that are changed.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// These parameters with the changes; why not, where a changed value is not one of its kind.
    pub fn applied(&self, parameters: &Parameters) -> Result<Parameters, String> {
        if self.0.is_empty() {
            return Ok(parameters.clone());
        }
        let mut changed = serde_json::to_value(parameters).map_err(|error| error.to_string())?;
        for (key, value) in &self.0 {
            changed[key] = value.clone();
        }
        serde_json::from_value(changed).map_err(|error| error.to_string())
    }
}

impl From<BTreeMap<String, Value>> for Changes {
    /// Designs of before parameters had one type list all that can be changed, and what is not as null.
    fn from(mut changes: BTreeMap<String, Value>) -> Self {
        changes.retain(|_, value| !value.is_null());
        Self(changes)
    }
}

/// Everything that distinguishes one half of a pair from the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Knob values; a setting that is absent keeps the value the machine had.
    pub settings: BTreeMap<Setting, String>,
    /// What is changed about the workload in this comparison.
    pub workload: Changes,
}

impl Variant {
    /// This variant with `changes` on top.
    #[must_use]
    pub fn with(&self, changes: &[(Setting, String)]) -> Self {
        let mut changed = self.clone();
        changed.settings.extend(changes.iter().cloned());
        changed
    }
}

/// What one run gave.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The run as it is reported.
    pub run: Run,
    /// Corrected latency of every reply.
    pub latency: Histogram,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The variant cannot be set up here; the rung is skipped, the ladder goes on.
    #[error("{0}")]
    Unavailable(String),
    /// The service ended or stopped answering in this variant.
    #[error("{0}")]
    ServiceFailed(String),
    /// The service ended and only its owner can start it again; nothing more can be measured.
    #[error("{0}")]
    Gone(String),
    /// A precondition of the whole experiment is missing.
    #[error("{0}")]
    Precondition(String),
    /// The topology or the tool itself failed; nothing more can be measured.
    #[error("{0}")]
    Broken(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Runs variants.
pub trait Stage {
    /// Sets `variant` up once, reads it back and answers whether it can be measured.
    fn try_out(&mut self, variant: &Variant) -> Result<(), StageError>;

    /// Runs `variant` once: set up, warm up, measure.
    fn run(&mut self, variant: &Variant, seed: u64) -> Result<Sample, StageError>;

    /// Runs both variants at once, each with a service of its own, and has the load change between them every few
    /// milliseconds, so that both meet the same machine; `None` where what differs between them does not allow it.
    /// `swapped`: their services change places.
    fn run_in_turns(
        &mut self,
        variants: [&Variant; 2],
        swapped: bool,
        seed: u64,
    ) -> Result<Option<[Sample; 2]>, StageError> {
        let _ = (variants, swapped, seed);
        Ok(None)
    }

    /// Ends the service where it is ours, so that the next run starts it afresh; an error where it had ended by itself.
    fn restart(&mut self) -> Result<(), StageError>;

    /// Captures the machine for `window_s` seconds while `variant` runs under its traffic.
    fn capture(
        &mut self,
        variant: &Variant,
        window_s: f64,
        seed: u64,
    ) -> Result<Capture, StageError>;

    /// Foreign share of all CPUs at this moment, for the quiet gate; waits a fraction of a second.
    fn foreign_now(&mut self) -> Result<f64, StageError>;

    /// Seconds since the experiment began.
    fn elapsed_s(&self) -> f64;
}
