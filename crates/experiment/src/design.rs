//! The design of an experiment: what will be compared and how it will be judged, fixed before the first run.

use std::collections::BTreeMap;
use std::fmt;

use rungwise_load::Parameters;
use rungwise_model::metric::BYTES_PER_REQUEST;
use rungwise_stats::budget::Budget;
use rungwise_stats::decide::Rules;
use rungwise_stats::interval::FEWEST;
use serde::{Deserialize, Serialize};

use crate::metric;
pub use crate::metric::Objective;
use crate::stage::{Changes, Setting};

/// A limit that a variant must hold, whatever it gains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "metric", rename_all = "snake_case")]
pub enum Guard {
    /// Lost requests, a fraction of those sent, at most.
    Loss {
        /// Largest share allowed.
        at_most: f64,
    },
    /// Requests lost, or answered with an error instead of an answer, a fraction of those sent, at most.
    Errors {
        /// Largest share allowed.
        at_most: f64,
    },
    /// 99th percentile of corrected latency, microseconds, at most.
    P99 {
        /// Largest value allowed.
        at_most_us: f64,
    },
    /// Another metric that the workload reports, at most; a latency in microseconds.
    Other {
        /// Its name.
        name: String,
        /// Largest value allowed.
        at_most: f64,
    },
}

/// A metric that only a disturbance takes out of its range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The metric.
    pub name: String,
    /// Smallest value allowed; a latency in microseconds.
    pub from: f64,
    /// Largest value allowed.
    pub to: f64,
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, from, to } = self;
        let unit = metric::unit(name);
        write!(
            f,
            "a pair is discarded if {name} is outside {from} to {to}{unit} in either half"
        )
    }
}

/// How pairs are gated and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judging {
    /// The metric that decides.
    pub objective: Objective,
    /// Limits with a veto.
    pub guards: Vec<Guard>,
    /// Ranges outside which a pair does not count.
    #[serde(default)]
    pub controls: Vec<Control>,
    /// Smallest effect worth keeping, a fraction.
    pub min_effect: f64,
    /// Chance of any wrong decision over the whole ladder.
    pub alpha: f64,
    /// Numbers of pairs at which a decision may be taken.
    pub looks: Vec<u32>,
    /// Comparisons that share `alpha`.
    pub comparisons: usize,
    /// Foreign share of all CPUs below which a pair may start.
    pub quiet: f64,
    /// Foreign share in either half above which a pair does not count.
    pub discard_above: f64,
    /// Longest wait for quiet before a pair, seconds.
    pub quiet_wait_s: f64,
    /// Discarded pairs per comparison after which no more are tried.
    pub max_discards: u32,
    /// Seed of orders and intervals.
    pub seed: u64,
}

impl Judging {
    /// The decision rules for a comparison whose chance of a wrong decision is `alpha`.
    pub fn rules(&self, alpha: f64) -> Rules {
        Rules {
            min_effect: self.min_effect,
            alpha,
            looks: self.looks.clone(),
        }
    }

    /// What is to be used up over the whole ladder.
    pub fn budget(&self) -> Budget {
        Budget::new(self.alpha)
    }

    /// A rate or a latency is judged, which foreign load and a generator at its limit would distort. What a request allocates is the
    /// same at each rate.
    pub fn is_timed(&self) -> bool {
        let counted = |name: &str| name == BYTES_PER_REQUEST;
        let timed = |guard: &Guard| match guard {
            Guard::Loss { .. } | Guard::Errors { .. } => false,
            Guard::P99 { .. } => true,
            Guard::Other { name, .. } => !counted(name),
        };
        !counted(self.objective.metric()) || self.guards.iter().any(timed)
    }

    /// A guard rail judges error replies; without one, a run with more than a few of them is not usable.
    pub fn guards_errors(&self) -> bool {
        let errors = |guard: &Guard| matches!(guard, Guard::Errors { .. });
        self.guards.iter().any(errors)
    }

    /// Pairs at the last decision point.
    pub fn most_pairs(&self) -> u32 {
        self.looks.last().copied().unwrap_or(0)
    }
}

/// How a rung takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Part {
    /// Judged; what is kept carries into the following rungs.
    Step,
    /// Judged for its own traffic; not carried forward.
    Branch,
    /// Measured for comparison only.
    Limit,
    /// Never run.
    Observe {
        /// What is known about it and why it was not tried.
        note: String,
    },
}

/// A rung as it will be tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Identifier.
    pub id: String,
    /// Title of the change.
    pub title: String,
    /// How it takes part.
    pub part: Part,
    /// What it sets.
    pub set: Vec<(Setting, String)>,
    /// What it chooses from instead, where it is a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    /// Ids of earlier rungs that are tried again together with this one if they were not kept alone.
    pub bundle_with: Vec<String>,
    /// What it changes about the workload, in both halves of its pairs.
    #[serde(alias = "traffic")]
    pub workload: Changes,
    /// What it changes about the workload in the half with the change alone.
    #[serde(default, skip_serializing_if = "Changes::is_none")]
    pub workload_after: Changes,
    /// Threads contend for a lock, so it is never judged by CPU cost alone.
    pub shared_lock: bool,
    /// What it holds for.
    pub label: Option<String>,
    /// A published figure.
    pub reference: Option<rungwise_model::tune::Reference>,
    /// The finding that asked for it, where the rules chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<rungwise_model::tune::Asked>,
}

impl Step {
    /// Comparisons that may decide something about it, at most: the rung alone, a bundle with the check of its partners, and for a grid the
    /// neighbours of its best cell. Cells decide nothing.
    pub fn comparisons(&self) -> usize {
        let axes = self.grid.as_ref().map_or(0, |grid| grid.axes.len());
        1 + self.bundle_with.len() + 2 * axes
    }

    /// Everything that it may set.
    pub fn settings(&self) -> impl Iterator<Item = &(Setting, String)> {
        let axes = self.grid.iter().flat_map(|grid| &grid.axes);
        let points = axes.flat_map(|axis| &axis.points);
        self.set.iter().chain(points.flat_map(|point| &point.set))
    }
}

/// Combinations of points that a rung chooses from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// One or two.
    pub axes: Vec<Axis>,
}

/// What changes along one side of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// In words.
    pub title: String,
    /// Two or more, the cheapest first.
    pub points: Vec<Point>,
}

/// A place on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its name on the axis.
    pub label: String,
    /// What it sets.
    pub set: Vec<(Setting, String)>,
    /// What it changes about the workload, in the half with the change.
    #[serde(default, skip_serializing_if = "Changes::is_none")]
    pub workload: Changes,
}

impl Grid {
    /// Cells of a grid at most, which are 512 runs: a guess at the most worth waiting for.
    pub const MOST_CELLS: usize = 64;

    /// Every cell as the indices of its points, those of the last axis changing fastest.
    pub fn cells(&self) -> Vec<Vec<usize>> {
        self.axes.iter().fold(vec![Vec::new()], |cells, axis| {
            let of = |cell: Vec<usize>| {
                (0..axis.points.len()).map(move |point| [&cell[..], &[point]].concat())
            };
            cells.into_iter().flat_map(of).collect()
        })
    }

    /// The points of a cell.
    pub fn points<'s>(&'s self, at: &'s [usize]) -> impl Iterator<Item = &'s Point> {
        let axes = self.axes.iter().zip(at);
        axes.map(|(axis, point)| &axis.points[*point])
    }

    /// The point of one axis in words: `connections 4`.
    pub fn point_name(&self, axis: usize, point: usize) -> String {
        let axis = &self.axes[axis];
        format!("{} {}", axis.title, axis.points[point].label)
    }

    /// A cell in words: `TCP buffers 256 KB, connections 4`.
    pub fn cell_name(&self, at: &[usize]) -> String {
        let names = at.iter().enumerate();
        let names: Vec<String> = names
            .map(|(axis, point)| self.point_name(axis, *point))
            .collect();
        names.join(", ")
    }

    /// The cells next to one of them: the axis along which they lie, the cheaper one first.
    pub fn neighbours(&self, at: &[usize]) -> Vec<(usize, Vec<usize>)> {
        let mut around = Vec::new();
        for (axis, point) in at.iter().enumerate() {
            let dearer = Some(point + 1).filter(|next| *next < self.axes[axis].points.len());
            for next in [point.checked_sub(1), dearer].into_iter().flatten() {
                let mut cell = at.to_vec();
                cell[axis] = next;
                around.push((axis, cell));
            }
        }
        around
    }

    /// Requests change along an axis.
    pub fn changes_workload(&self) -> bool {
        let mut points = self.axes.iter().flat_map(|axis| &axis.points);
        points.any(|point| !point.workload.is_none())
    }
}

/// How rungs are found while the ladder is climbed. Their identity is unknown before the first run, but their maximum number is fixed, and
/// the chance of a wrong decision is divided by that number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Auto {
    /// Maximum number of changes to try, without bundles.
    pub max_rungs: u32,
    /// Length of a capture, seconds.
    #[serde(rename = "look_s")]
    pub capture_s: f64,
    /// Also try changes that may disrupt other services on this machine.
    pub disruptive: bool,
    /// The ladder is climbed on this host itself and not in namespaces of its own.
    pub on_this_host: bool,
    /// Switches of the service and their values, `off` among them.
    pub switches: BTreeMap<String, Vec<String>>,
    /// The command of the service starts a JVM, whose options can be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub java: bool,
    /// Device for device knobs.
    pub device: Option<String>,
}

impl Auto {
    /// Retries as a bundle, at most.
    pub const BUNDLES: u32 = 3;
    /// Changes in a bundle, at most.
    pub const MEMBERS: usize = 3;

    /// Upper bound of the comparisons that share the family's alpha.
    pub fn comparisons(&self) -> usize {
        // A bundle itself, and once without each partner of its first member.
        self.max_rungs as usize + Self::BUNDLES as usize * Self::MEMBERS + 1
    }
}

/// The whole design; written to the run folder before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Name of the scenario.
    pub scenario: String,
    /// One line about it.
    pub title: String,
    /// Topology, traffic and machine in words: pairs measured elsewhere cannot be mixed with these.
    pub place: String,
    /// The traffic; absent from designs of before it was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Parameters>,
    /// Runs and captures were shortened for a first impression.
    pub quick: bool,
    /// Some rung restarts the service with other arguments.
    #[serde(default)]
    pub restarts: bool,
    /// The state the ladder starts from.
    pub baseline: Vec<(Setting, String)>,
    /// A published figure for that state.
    pub start_reference: Option<rungwise_model::tune::Reference>,
    /// The rungs in order; none where the rules choose them.
    pub steps: Vec<Step>,
    /// How rungs are found, where the rules choose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Auto>,
    /// How pairs are judged.
    pub judging: Judging,
}

impl Design {
    /// Pairs of a grid's cell: as few as give an interval, since it decides nothing.
    pub const PAIRS_OF_A_CELL: u32 = FEWEST as u32;

    /// Upper bound of the comparisons that share the family's alpha: those of every judged rung, and the overall comparison. Limits decide
    /// nothing and do not count.
    pub fn count_comparisons(steps: &[Step]) -> usize {
        steps
            .iter()
            .filter(|step| matches!(step.part, Part::Step | Part::Branch))
            .map(Step::comparisons)
            .sum::<usize>()
            + 1
    }
}
