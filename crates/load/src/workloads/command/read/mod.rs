//! What load programs print, read as figures of one shape. One file per program, sorted by id.
//!
//! A reader takes the program's output and returns the figures in it; missing figures stay absent. It never panics, and says in one
//! sentence why it cannot read a text.

mod ab;
mod dnsperf;
mod hdr;
mod hey;
mod jtl;
mod k6;
mod memtier;
mod oha;
mod pgbench;
mod redis_benchmark;
pub(super) mod text;
mod wrk;

use std::collections::BTreeMap;

use serde_json::Value;

/// The figures of one run of a load program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Requests per second that were answered correctly.
    pub rate_per_s: Option<f64>,
    /// Requests of the run, those that failed included.
    pub requests: Option<f64>,
    /// Requests that failed or were answered with an error, as a share of all.
    pub errors: Option<f64>,
    /// How long the program measured, seconds.
    pub seconds: Option<f64>,
    /// Latency in microseconds by the name of its quantile: `p50`, `p99`, `p99.9`, `mean`, `max`.
    pub latency_us: BTreeMap<String, f64>,
}

/// A reader of the output of one program.
#[derive(Debug)]
pub struct Reader {
    /// The word in a scenario.
    pub id: &'static str,
    /// Which program, which of its formats, and the version that it was tried with.
    pub summary: &'static str,
    /// A limit of its figures; empty where there is none.
    pub caveat: &'static str,
    /// Names of the figures that it can find; some need options of the program.
    pub gives: &'static [&'static str],
    /// Whether a text is that program's.
    pub looks_like: fn(&str) -> bool,
    /// Its figures.
    pub read: fn(&str) -> Result<Figures, String>,
}

/// All readers, sorted by id.
pub static READERS: &[&Reader] = &[
    &ab::READER,
    &dnsperf::READER,
    &hdr::READER,
    &hey::READER,
    &jtl::READER,
    &k6::READER,
    &memtier::READER,
    &oha::READER,
    &pgbench::READER,
    &redis_benchmark::READER,
    &wrk::READER,
];

/// A closed loop sends its next request when an answer has come.
const CLOSED_LOOP: &str = "a closed loop: no request is sent while an answer is late, so latencies omit the time that later requests \
    would have waited (coordinated omission)";

impl Reader {
    /// The reader of this name.
    pub fn by_id(id: &str) -> Option<&'static Self> {
        READERS.iter().copied().find(|reader| reader.id == id)
    }

    /// The reader that recognises this text.
    pub fn recognise(text: &str) -> Option<&'static Self> {
        READERS
            .iter()
            .copied()
            .find(|reader| (reader.looks_like)(text))
    }
}

impl Figures {
    /// Notes a latency given in seconds.
    fn latency(&mut self, name: impl Into<String>, seconds: Option<f64>) {
        if let Some(seconds) = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0) {
            self.latency_us.insert(name.into(), seconds * 1e6);
        }
    }

    /// Notes the quantiles of an object whose keys are `p50`, `p99.90` and so on, in units of so many seconds.
    fn percentiles(&mut self, object: &Value, unit: f64) {
        for (name, value) in object.as_object().into_iter().flatten() {
            let percent = name.strip_prefix('p').and_then(|rest| rest.parse().ok());
            if let Some(percent) = percent {
                self.latency(
                    quantile(percent),
                    value.as_f64().map(|number| number * unit),
                );
            }
        }
    }

    /// Notes how many of all requests failed.
    fn failed(&mut self, failed: f64, all: f64) {
        self.requests = Some(all);
        if all > 0.0 && failed >= 0.0 {
            self.errors = Some((failed / all).min(1.0));
        }
    }
}

/// `p50`, `p99`, `p99.9` of a number of percent.
fn quantile(percent: f64) -> String {
    format!("p{percent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_sorted_and_their_ids_unique() {
        assert!(READERS.windows(2).all(|two| two[0].id < two[1].id));
    }

    #[test]
    fn a_quantile_is_named_by_its_percent() {
        for (percent, name) in [(50.0, "p50"), (99.9, "p99.9"), (99.0, "p99")] {
            assert_eq!(quantile(percent), name);
        }
    }
}
