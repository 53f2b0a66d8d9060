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
/// Share of the time in which a collection stopped all threads of the service's JVM.
pub const GC_PAUSE_SHARE: &str = "gc_pause_share";
/// The longest of these pauses.
pub const GC_LONGEST_PAUSE: &str = "gc_longest_pause";
/// The longest pause that ended a concurrent mark, without a young collection within it; 0 where there was none.
pub const GC_LONGEST_REMARK: &str = "gc_longest_remark";
/// Bytes that moved to the old generation in a second.
pub const GC_PROMOTED_PER_S: &str = "gc_promoted_per_s";

const fn less(id: &'static str, words: &'static str, unit: Unit) -> Metric {
    Metric {
        id,
        words,
        unit,
        more_is_better: false,
    }
}

/// All but the quantiles of the latency, which are `p` and a percentage: `p50`, `p99.9`.
pub static METRICS: [Metric; 13] = [
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
    less(GC_PAUSE_SHARE, "share of time in GC pauses", Unit::Share),
    less(GC_LONGEST_PAUSE, "longest GC pause", Unit::Micros),
    less(GC_LONGEST_REMARK, "longest remark pause", Unit::Micros),
    less(GC_PROMOTED_PER_S, "bytes promoted per second", Unit::Bytes),
];

/// The metric of this name, where its meaning is known.
pub fn find(id: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.id == id)
}
