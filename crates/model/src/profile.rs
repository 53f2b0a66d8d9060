//! The document of `profile`: stacks with their weights, and what they add up to by frame and by thread.
//!
//! How each format is read, and what it leaves out: `docs/profile.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;

/// What the profile measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Where threads run.
    Cpu,
    /// Where threads are, running or not.
    Wall,
    /// Where memory is allocated.
    Alloc,
    /// Where threads wait for locks.
    Lock,
    /// Where threads wait for anything.
    OffCpu,
    /// Unknown: the file does not say what it counts.
    Unknown,
}

/// Unit of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Samples.
    Samples,
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Unknown: the file has numbers without a unit.
    Count,
}

/// The kind of code that a frame is.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// Native code, or code of unknown kind.
    #[default]
    Native,
    /// Java.
    Java,
    /// Inlined into its caller.
    Inlined,
    /// The kernel.
    Kernel,
    /// The class of an object that was allocated or waited for.
    Class,
}

/// The document of `profile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Target as named on the command line.
    pub target: String,
    /// The profile.
    #[serde(flatten)]
    pub profile: Profile,
}

/// A profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Format of the file: `folded`, `perf-script`, `jfr`; `live` of a running process.
    pub format: String,
    /// What it measures.
    pub event: Event,
    /// The name of the event in the file, such as `cpu-clock` or `jdk.ExecutionSample`; null if it has none.
    pub source: Option<String>,
    /// Unit of all weights.
    pub unit: Unit,
    /// Samples, or events, that were read; null if the file does not say.
    pub samples: Option<u64>,
    /// The sum of all weights.
    pub total: u64,
    /// Notes on the file and on how it was read.
    pub notes: Vec<String>,
    /// Frames by their own weight, most first.
    pub hot: Vec<HotFrame>,
    /// Weight by kind of the innermost frame, most first.
    pub shares: Vec<Share>,
    /// Threads by weight, most first; empty if the file names none.
    pub threads: Vec<ThreadShare>,
    /// The stacks.
    pub stacks: Stacks,
}

/// A frame by its weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotFrame {
    /// Its name.
    pub frame: String,
    /// Its kind.
    pub kind: FrameKind,
    /// Weight of stacks that end in it.
    #[serde(rename = "self")]
    pub own: u64,
    /// Weight of stacks that contain it.
    pub total: u64,
    /// `self` as a share of all.
    pub self_share: f64,
    /// `total` as a share of all.
    pub total_share: f64,
}

/// A share of the weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The kind of the innermost frame.
    pub name: FrameKind,
    /// Its share.
    pub share: f64,
    /// Lower end of the 95 % interval of sampling; null if the weights are not samples.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A thread, or several whose names differ by numbers only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadShare {
    /// The name, with `*` for numbers that differ.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// Their weight.
    pub weight: u64,
    /// The same as a share.
    pub share: f64,
    /// The frame with most weight of its own.
    pub hottest: Option<String>,
}

/// The stacks of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stacks {
    /// Distinct stacks in the file.
    pub distinct: u64,
    /// Of these, the rarest ones that were left out of `folded`, so that the document stays below its size limit; their weight is in
    /// stacks of one frame, `[left out]`.
    pub left_out: u64,
    /// `root;...;leaf WEIGHT`, sorted. Where threads are known, the first frame is `[NAME tid=ID]`. Frames end in `_[j]` for Java, `_[i]`
    /// inlined, `_[k]` kernel, `_[c]` class.
    pub folded: Vec<String>,
}
