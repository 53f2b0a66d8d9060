//! Where runs happen: the engine decides *what* runs next, a stage runs it.
//!
//! The real stage is [`crate::lab`]; tests put a simulated one behind the same trait, so that every
//! decision of the engine can be driven by a known truth.

use std::collections::BTreeMap;
use std::fmt;

use rungwise_model::tune::Run;
use rungwise_probes::Capture;
use rungwise_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// Which end of the topology a setting belongs to. Service switches have no end of their own: `Server`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The end that answers.
    Server,
    /// The end that asks.
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

/// Changes of the workload that a rung asks for; both halves of its pairs run with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Datagrams of one flow sent in one go.
    pub burst: Option<u16>,
    /// Outstanding requests per socket.
    pub depth: Option<usize>,
    /// Datagrams per system call of the generator.
    pub batch: Option<usize>,
    /// Connections that a load program opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Requests per second that a load program sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
}

/// Everything that distinguishes one half of a pair from the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Knob values; a setting that is absent keeps the value the machine had.
    pub settings: BTreeMap<Setting, String>,
    /// Workload of this comparison.
    pub traffic: Traffic,
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

/// Why a run could not be had.
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

    /// Ends the service where it is ours, so that the next run starts it afresh; an error where it had ended by itself.
    fn restart(&mut self) -> Result<(), StageError>;

    /// Looks at the machine for `window_s` seconds while `variant` runs under its traffic.
    fn look(&mut self, variant: &Variant, window_s: f64, seed: u64) -> Result<Capture, StageError>;

    /// Foreign share of all CPUs at this moment, for the quiet gate; waits a fraction of a second.
    fn foreign_now(&mut self) -> Result<f64, StageError>;

    /// Seconds since the experiment began.
    fn elapsed_s(&self) -> f64;
}
