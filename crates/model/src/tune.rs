//! The result of a ladder: the document of `rungwise tune`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::machine::{CpuWindow, Machine};

/// Outcome of one rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The interval excludes zero on the good side, and the point estimate is at least the minimum effect.
    Kept,
    /// The interval excludes zero on the bad side, or a guard rail was broken.
    Reverted,
    /// The interval lies inside the minimum effect.
    Same,
    /// Undecided within the allowed pairs; not kept.
    Inconclusive,
    /// Measured or read for comparison only; could not be kept here.
    Observed,
    /// Not tried; the reason says why.
    Skipped,
}

/// A relative change with its interval, as fractions: 0.05 is five percent more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// Centre of the pairs, by Hodges and Lehmann.
    pub point: f64,
    /// Lower end of the interval at the level of the deciding decision point.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs used.
    pub pairs: u32,
    /// Pairs that were measured and discarded, each listed with its reason.
    pub discarded: u32,
}

/// The machine against itself: two identical variants, judged like a rung.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AaCheck {
    /// Lower end of the interval of the difference, a fraction; absent with too few pairs.
    pub low: Option<f64>,
    /// Upper end; absent likewise.
    pub high: Option<f64>,
    /// Pairs used.
    pub pairs: u32,
    /// Smallest relative effect that this machine can show with the pairs of a full rung; absent with too few pairs.
    pub smallest_effect: Option<f64>,
    /// Standard deviation of one pair's log ratio; absent likewise.
    pub noise: Option<f64>,
    /// Why there is no interval although the check was started.
    #[serde(default)]
    pub reason: Option<String>,
}

impl AaCheck {
    /// The interval, if there is one. Older documents write a missing interval as zeros with no pairs.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high).filter(|_| self.pairs > 0)
    }
}

/// Latency quantiles of a rung, microseconds, from the merged histograms of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RungLatency {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A published measurement of the same step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Transactions per second after the step.
    pub rate_per_s: f64,
    /// Factor over their previous step; if our rung was tried without that step, over the one before it.
    pub factor: Option<f64>,
    /// Author and machine.
    pub source: String,
}

/// The finding that requested a rung, and its state with the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// The rule.
    pub rule: String,
    /// Subject of the finding: `host`, `port/udp/10.0.0.1:9000`.
    pub subject: String,
    /// The finding.
    pub sentence: String,
    /// Capture in the run folder that the finding is based on: `look-00.rungwise`; judge it again with `rungwise check`.
    #[serde(rename = "look")]
    pub capture: String,
    /// State of the finding with the change; absent if no capture was taken with it.
    pub became: Option<Became>,
    /// New findings with the change, most severe first: rule and sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came: Vec<(String, String)>,
}

/// State of a finding after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Became {
    /// It is gone.
    Gone,
    /// It remains, with a better number.
    Weaker,
    /// It remains, with about the same number or a worse one.
    Unchanged,
    /// One of the two captures lacks what its rule needs.
    Undecided,
}

impl Became {
    /// The word in reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Weaker => "weaker",
            Self::Unchanged => "unchanged",
            Self::Undecided => "not decidable",
        }
    }
}

/// One half of a pair: a variant that ran once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Seconds since the experiment began.
    pub at_s: f64,
    /// Replies per second.
    pub rate_per_s: f64,
    /// Requests lost, as a fraction of those sent.
    pub loss: f64,
    /// Requests answered with an error instead of an answer (DNS codes other than NOERROR and NXDOMAIN), as a fraction of
    /// those sent. Zero in documents written before it was recorded.
    #[serde(default)]
    pub wrong: f64,
    /// CPU microseconds of server and client together per transaction.
    pub cpu_us_per_tx: f64,
    /// Those of the server alone.
    pub server_us_per_tx: f64,
    /// Those of the client alone.
    pub client_us_per_tx: f64,
    /// Median latency from intended start, microseconds; of a load program, as it reports it. Absent if it does not.
    pub p50_us: Option<f64>,
    /// 99th percentile of it; absent likewise.
    pub p99_us: Option<f64>,
    /// Other metrics that the workload reports, by name; latencies in microseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Metrics that were asked for and this run does not have, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, String>,
    /// CPU use of the machine over the measured window.
    pub cpu: CpuWindow,
    /// Whether the generator certified this run; else why not.
    pub certified: Result<(), Vec<String>>,
    /// What the kernel showed of a service that rungwise loads over TCP; absent for others, and where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
}

/// What the kernel showed of a TCP service when a measured window began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Served {
    /// Processes of the service.
    pub processes: u32,
    /// Sockets that listen at the address of the workload: with `SO_REUSEPORT` more than one.
    pub listeners: u32,
    /// Connections that may wait at each of them to be accepted: the argument of listen(2), limited by `net.core.somaxconn`. The smallest
    /// where they differ.
    pub backlog: u32,
    /// Connections of each process that had any, most first.
    pub connections: Vec<u32>,
}

impl Served {
    /// Share of all connections that the process with the most had; nothing without connections.
    pub fn busiest(&self) -> Option<f64> {
        let all: u32 = self.connections.iter().sum();
        let most = self.connections.first()?;
        Some(f64::from(*most) / f64::from(all))
    }
}

/// An interleaved pair. The order in which its halves ran is `first`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The variant without the change.
    pub a: Run,
    /// The variant with it.
    pub b: Run,
    /// Which half ran first; of halves that took turns, whose service was in the first place.
    pub first: Half,
    /// The halves ran at once, and the load switched between them every few milliseconds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turns: bool,
    /// Why this pair was discarded; absent if it was not.
    pub discarded: Option<String>,
    /// How the service failed in half B, if it did and the half was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

/// A half of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// Without the change.
    A,
    /// With it.
    B,
}

/// A rung that is a grid: which of its cells is best, and what lies around it. Every pair is in `pairs.jsonl` of the run folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grid {
    /// One or two axes.
    pub axes: Vec<GridAxis>,
    /// Every combination of the points, those of the last axis changing fastest.
    pub cells: Vec<GridCell>,
    /// Median of the objective in the state before the rung, over all pairs of the cells that count; absent if none does.
    pub value_before: Option<f64>,
    /// Confidence level of the cells' intervals, a fraction.
    pub confidence: f64,
    /// The cell that was judged: by the estimates of the cells the best one, as the indices of its points. Absent if no cell could be
    /// measured.
    pub best: Option<Vec<usize>>,
    /// The cells next to the best one, judged against it; none if the best one is not better than the state before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<GridNeighbour>,
    /// What was found, as a sentence.
    pub sentence: String,
}

/// An axis of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GridAxis {
    /// What changes along it.
    pub title: String,
    /// The labels of its points, the cheapest first.
    pub points: Vec<String>,
}

/// A cell of a grid: one point of each axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridCell {
    /// Indices of its points, one for each axis.
    pub at: Vec<usize>,
    /// It is the state before the rung: not measured, and no change by definition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_before: bool,
    /// Estimated change of the objective against the state before the rung. It chooses which cell is judged and decides nothing.
    pub change: Option<Delta>,
    /// Median of the objective.
    pub value: Option<f64>,
    /// Pairs that count.
    pub pairs: u32,
    /// Pairs that were measured and discarded.
    pub discarded: u32,
    /// Why it cannot be the best: it was not measured, or it breaks a guard rail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// A cell next to the best one, judged against it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridNeighbour {
    /// The axis along which it is the next, by its index.
    pub axis: usize,
    /// Indices of its points.
    pub at: Vec<usize>,
    /// Kept: better than the best cell. Reverted: worse, or it breaks a guard rail. Same: no difference as large as the minimum effect,
    /// though there may be a smaller one.
    /// Skipped: not measured.
    pub outcome: Outcome,
    /// Change of the objective against the best cell.
    pub delta: Option<Delta>,
    /// Why, in one sentence.
    pub reason: String,
    /// Confidence level of the interval, a fraction; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// A rung of the ladder and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// Identifier within the scenario, a knob's id where the rung turns one knob.
    pub id: String,
    /// The change in words.
    pub title: String,
    /// Outcome.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
    /// Median rate of the variant with the change; absent if nothing was measured.
    pub rate_per_s: Option<f64>,
    /// Median CPU cost of the variant with the change, server and client together.
    pub cpu_us_per_tx: Option<f64>,
    /// Latency of the variant with the change.
    pub latency_us: Option<RungLatency>,
    /// Medians of the other metrics of the variant with the change, those that every counted run has; latencies in microseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Change of the objective against the variant without it.
    pub delta: Option<Delta>,
    /// Change of the CPU cost per transaction; negative is cheaper.
    pub cpu_delta: Option<Delta>,
    /// Judged by CPU cost because there were no quiet pairs.
    pub cost_only: bool,
    /// The traffic for which the rung holds, if not all of it (`same-flow bursts`, `upper limit`).
    pub label: Option<String>,
    /// What the rung set: knob id and value.
    pub set: Vec<(String, String)>,
    /// A published figure for the same step.
    pub reference: Option<Reference>,
    /// The effect has the opposite sign of the published one.
    pub sign_differs: bool,
    /// The finding that requested it, where the rules chose the rungs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// What was tried, where the rung is a grid; the other fields are those of its best cell. Absent from documents of before there were grids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Box<Grid>>,
    /// Confidence level of the intervals, a fraction; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Pairs that were measured and discarded, also if too few remained for an interval.
    #[serde(default)]
    pub discarded: u32,
    /// Every pair, including discarded ones.
    pub pairs: Vec<Pair>,
}

/// Result of the whole ladder in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The final configuration beats the first one.
    Better,
    /// The final configuration is slower.
    Worse,
    /// Within the minimum effect.
    Same,
    /// The machine was too noisy, or there were too few pairs.
    Inconclusive,
}

/// A file that was written for the service before each start; `{scratch}` in it is the folder that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceFile {
    /// Its name in the service's folder.
    pub name: String,
    /// Its text in the initial configuration.
    pub start: String,
    /// Its text with all kept changes.
    pub kept: String,
}

/// The JSON document of `rungwise tune`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneReport {
    /// Common fields.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Name of the scenario.
    pub scenario: String,
    /// The scenario in one line.
    pub title: String,
    /// Final configuration compared with the first, in one word.
    pub verdict: Verdict,
    /// The same as a sentence with its interval.
    pub sentence: String,
    /// Final configuration compared with the first, measured in pairs at the end; absent if nothing was kept.
    pub overall: Option<Delta>,
    /// The metric that decides: `rate_per_s`, `p99_us`, or another metric that the workload reports.
    pub objective: String,
    /// Lower is better. Absent in documents written before metrics had names, where this held for `p99_us` only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minimise: bool,
    /// The load program whose own figures these are; absent if rungwise sent the requests and measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures_of: Option<String>,
    /// Ids of the rungs that were kept, in order.
    pub kept: Vec<String>,
    /// The machine against itself.
    pub aa: AaCheck,
    /// The ladder, in order; rung 0 is the start.
    pub rungs: Vec<Rung>,
    /// What could not be measured or tried, with reason and remedy.
    pub could_not: Vec<String>,
    /// Method, one fact per line: topology, windows, decision points, alpha, seed, command lines.
    pub method: Vec<String>,
    /// Files that were written for the service before each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ServiceFile>,
    /// The machine.
    pub machine: Machine,
    /// Folder of the run.
    pub run_dir: String,
}

impl TuneReport {
    /// A lower value of the objective is better.
    pub fn less_is_better(&self) -> bool {
        self.minimise || self.objective == "p99_us"
    }
}
