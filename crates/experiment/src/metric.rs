//! Metrics by name: what an objective or a guard may be.
//!
//! A workload reports some of these, and any other number that a scenario picks from its output; a metric is a name, a unit and the better direction.

use rungwise_load::Parameters;
use rungwise_model::metric::{
    BYTES_PER_REQUEST, GC_LONGEST_PAUSE, GC_LONGEST_REMARK, GC_PAUSE_SHARE, GC_PROMOTED_PER_S,
    Unit, find,
};
use rungwise_model::tune::Run;
use rungwise_stats::decide::Direction;
use serde::{Deserialize, Serialize};

/// Metrics that the machine gives for every workload: CPU microseconds per request, of both sides and of each.
pub const OF_CPU: [&str; 3] = [
    "cpu_us_per_tx",
    "server.cpu_us_per_tx",
    "client.cpu_us_per_tx",
];

/// Metrics of a service that is a JVM. They are measured where a scenario names them: the JVM is asked for them.
pub const OF_JVM: [&str; 5] = [
    BYTES_PER_REQUEST,
    GC_PAUSE_SHARE,
    GC_LONGEST_PAUSE,
    GC_LONGEST_REMARK,
    GC_PROMOTED_PER_S,
];

/// Metrics of the garbage collector, from a log that the service's JVM is asked for.
pub const OF_GC: [&str; 4] = [
    GC_PAUSE_SHARE,
    GC_LONGEST_PAUSE,
    GC_LONGEST_REMARK,
    GC_PROMOTED_PER_S,
];

/// The metrics that a workload may report, with those of the CPUs and of a JVM.
pub fn reportable(workload: &Parameters) -> Vec<&str> {
    let own = workload.traffic().metrics();
    own.into_iter().chain(OF_CPU).chain(OF_JVM).collect()
}

/// The metric that decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Objective {
    metric: String,
    direction: Direction,
}

/// The form in a design: the first two metrics had words of their own.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Word(String),
    Metric { metric: String, maximise: bool },
}

impl From<Stored> for Objective {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Word(word) if word == "rate" => Self::maximise(word),
            Stored::Word(word) => Self::minimise(word),
            Stored::Metric {
                metric,
                maximise: true,
            } => Self::maximise(metric),
            Stored::Metric {
                metric,
                maximise: false,
            } => Self::minimise(metric),
        }
    }
}

impl From<Objective> for Stored {
    fn from(objective: Objective) -> Self {
        match (objective.metric.as_str(), objective.direction) {
            ("rate", Direction::HigherIsBetter) | ("p99", Direction::LowerIsBetter) => {
                Self::Word(objective.metric)
            }
            (_, direction) => Self::Metric {
                metric: objective.metric,
                maximise: direction == Direction::HigherIsBetter,
            },
        }
    }
}

impl Objective {
    /// More of this metric is better.
    pub fn maximise(metric: impl Into<String>) -> Self {
        Self {
            metric: metric.into(),
            direction: Direction::HigherIsBetter,
        }
    }

    /// Less of this metric is better.
    pub fn minimise(metric: impl Into<String>) -> Self {
        Self {
            metric: metric.into(),
            direction: Direction::LowerIsBetter,
        }
    }

    /// Requests per second, more is better.
    pub fn rate() -> Self {
        Self::maximise("rate")
    }

    /// Its name.
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Its name in the JSON document.
    pub fn field(&self) -> &str {
        match self.metric.as_str() {
            "rate" => "rate_per_s",
            "p99" => "p99_us",
            other => other,
        }
    }

    /// For a sentence: `transaction rate`, `p99 latency`.
    pub fn words(&self) -> String {
        match self.metric.as_str() {
            quantile if is_quantile(quantile) => format!("{quantile} latency"),
            other => find(other).map_or(other, |known| known.words).to_owned(),
        }
    }

    /// Its value in a run, where the run has it.
    pub fn value_in(&self, run: &Run) -> Option<f64> {
        value(run, &self.metric)
    }

    /// Less of it is better.
    pub fn less_is_better(&self) -> bool {
        self.direction == Direction::LowerIsBetter
    }

    /// Which way is better.
    pub fn direction(&self) -> Direction {
        self.direction
    }
}

/// The way that is better of a metric whose meaning is known.
pub fn better(metric: &str) -> Option<Direction> {
    match find(metric) {
        Some(known) if known.more_is_better => Some(Direction::HigherIsBetter),
        Some(_) => Some(Direction::LowerIsBetter),
        None => is_quantile(metric).then_some(Direction::LowerIsBetter),
    }
}

/// The unit of its values with a blank before it; empty for a plain number.
pub fn unit(metric: &str) -> &'static str {
    match metric {
        time if is_time(time) => " us",
        bytes if is_bytes(bytes) => " bytes",
        _ => "",
    }
}

/// Its values are bytes.
pub fn is_bytes(metric: &str) -> bool {
    find(metric).is_some_and(|known| known.unit == Unit::Bytes)
}

/// Its values are shares of 1.
pub fn is_share(metric: &str) -> bool {
    find(metric).is_some_and(|known| known.unit == Unit::Share)
}

/// It is a latency (`p50`, `p99.9`, `mean`, `max`) or a pause, in microseconds.
pub fn is_time(metric: &str) -> bool {
    is_quantile(metric)
        || matches!(
            metric,
            "mean" | "max" | GC_LONGEST_PAUSE | GC_LONGEST_REMARK
        )
}

fn is_quantile(metric: &str) -> bool {
    metric.strip_prefix('p').is_some_and(|percent| {
        percent
            .parse::<f64>()
            .is_ok_and(|percent| (0.0..=100.0).contains(&percent))
    })
}

/// The value of a metric in a run, where it has it; latencies in microseconds.
pub fn value(run: &Run, metric: &str) -> Option<f64> {
    match metric {
        "rate" => Some(run.rate_per_s),
        "loss" => Some(run.loss),
        "errors" => Some(run.loss + run.wrong),
        "p50" => run.p50_us,
        "p99" => run.p99_us,
        "cpu_us_per_tx" => Some(run.cpu_us_per_tx),
        "server.cpu_us_per_tx" => Some(run.server_us_per_tx),
        "client.cpu_us_per_tx" => Some(run.client_us_per_tx),
        other => run.metrics.get(other).copied(),
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::metric::METRICS;

    use super::*;

    #[test]
    fn an_objective_is_stored_as_it_was_before_metrics_had_names() {
        let stored = |objective: &Objective| serde_json::to_string(objective).unwrap();
        assert_eq!(stored(&Objective::rate()), "\"rate\"");
        assert_eq!(stored(&Objective::minimise("p99")), "\"p99\"");
        for objective in [
            Objective::rate(),
            Objective::minimise("p99.9"),
            Objective::maximise("jobs"),
        ] {
            let read: Objective = serde_json::from_str(&stored(&objective)).unwrap();
            assert_eq!(read, objective);
        }
    }

    #[test]
    fn the_better_way_is_known_of_what_everybody_reports() {
        assert_eq!(better("rate"), Some(Direction::HigherIsBetter));
        for metric in ["p99", "p99.9", "errors", "max", "server.cpu_us_per_tx"] {
            assert_eq!(better(metric), Some(Direction::LowerIsBetter), "{metric}");
        }
        for metric in &METRICS {
            assert!(better(metric.id).is_some() && !metric.words.is_empty());
        }
        assert_eq!(better("jobs"), None);
        assert_eq!(better("p"), None);
    }
}
