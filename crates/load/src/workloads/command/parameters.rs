//! The parameters of a program that loads a service.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Reader;
use crate::parameters::{Contradiction, Traffic, WrittenTarget};
use crate::values::{Rate, Time};

/// A guess at the most connections that a program on one machine opens.
const MOST_CONNECTIONS: usize = 1_000_000;

/// A program that loads the service and prints numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Parameters {
    /// Address and port of the service: `{server}:6379`, `127.0.0.1:80`. The service is ready once it accepts a connection there.
    pub target: String,
    /// Program and arguments, started for each run. No shell is involved. Placeholders: those of the service, and
    /// `{target}`, `{host}`, `{port}`, `{seconds}`, `{rate}`, `{connections}`, `{requests}`, `{output}`.
    pub command: Vec<String>,
    /// Format of its output: `wrk`, `k6`, `redis-benchmark`, ... Not needed if `metrics` names every number you want.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
    /// Value of `{connections}`.
    #[serde(default = "connections")]
    pub connections: u32,
    /// Value of `{rate}`, requests per second: `20k/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Value of `{requests}`, and how many the output must show: a run of fewer is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Maximum time; after it the program is stopped and the run fails.
    #[serde(default = "within")]
    pub within: Time,
    /// Numbers to pick from its output, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, MetricPlace>,
}

/// Where the output contains a number: a `pointer` or a `pattern`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricPlace {
    /// A JSON pointer into the output: `/summary/rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// A regular expression with a group around the number: `done in ([0-9.]+) s`. The last match counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

fn connections() -> u32 {
    16
}

fn within() -> Time {
    Time(Duration::from_mins(1))
}

impl Traffic for Parameters {
    fn kind(&self) -> &'static crate::Workload {
        &super::WORKLOAD
    }

    fn target(&self) -> WrittenTarget<'_> {
        WrittenTarget::Address(&self.target)
    }

    /// What the reader finds and what is picked.
    fn metrics(&self) -> Vec<&str> {
        let reader = self.reader.as_deref().and_then(Reader::by_id);
        let of_reader = reader.iter().flat_map(|reader| reader.gives).copied();
        of_reader
            .chain(self.metrics.keys().map(String::as_str))
            .collect()
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let connections = self.connections as usize;
        let mut found = Vec::from_iter(Contradiction::outside(
            &["connections"],
            "the number of connections",
            connections,
            (1, MOST_CONNECTIONS),
        ));
        if self.requests == Some(0) {
            let why = "must be more than 0";
            found.push(Contradiction::of(&["requests"], why));
        }
        let day = Duration::from_hours(24);
        if self.within.0.is_zero() || self.within.0 > day {
            let why = "must be more than 0 and at most 24h";
            found.push(Contradiction::of(&["within"], why));
        }
        found
    }
}
