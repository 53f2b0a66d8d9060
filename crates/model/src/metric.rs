//! Metrics whose meaning is known whatever the workload: name, unit, and which direction is better.
//!
//! Any other number that a scenario picks from a program's output is a metric too; it has a name alone.

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events in a second.
    PerSecond,
    /// A fraction.
    Share,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
}

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in scenarios and documents.
    pub id: &'static str,
    /// For a sentence: `transaction rate`.
    pub words: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// More of it is better; less is, otherwise.
    pub more_is_better: bool,
}

/// Heap that the service's JVM allocates for each request that it answers.
pub const BYTES_PER_REQUEST: &str = "bytes_per_request";

const fn less(id: &'static str, words: &'static str, unit: Unit) -> Metric {
    Metric {
        id,
        words,
        unit,
        more_is_better: false,
    }
}

/// All but the quantiles of the latency, which are `p` and a percentage: `p50`, `p99.9`.
pub static METRICS: [Metric; 9] = [
    Metric {
        id: "rate",
        words: "transaction rate",
        unit: Unit::PerSecond,
        more_is_better: true,
    },
    less("loss", "loss", Unit::Share),
    less("errors", "errors", Unit::Share),
    less("mean", "mean latency", Unit::Micros),
    less("max", "longest latency", Unit::Micros),
    less("cpu_us_per_tx", "CPU time per transaction", Unit::Micros),
    less(
        "server.cpu_us_per_tx",
        "server's CPU time per transaction",
        Unit::Micros,
    ),
    less(
        "client.cpu_us_per_tx",
        "client's CPU time per transaction",
        Unit::Micros,
    ),
    less(BYTES_PER_REQUEST, "heap allocated per request", Unit::Bytes),
];

/// The metric of this name, where its meaning is known.
pub fn find(id: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.id == id)
}
