//! `kind = "command"`: a load test that somebody already has.

use std::collections::BTreeMap;
use std::time::Duration;

use rungwise_load::command::{Pick, READERS, Reader as Format};
use rungwise_model::units;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::{At, Document};
use super::super::fill::{LOAD_PLACEHOLDERS, fill_with};
use super::super::problem::did_you_mean;
use super::super::resolve::{Reader, sample_places};
use super::super::{FillError, Places, Workload};
use super::{Kind, Tables};
use crate::design::Step;
use crate::metric;
use crate::stage::Traffic;

/// Value of `{connections}` by default.
const CONNECTIONS: u32 = 16;
/// A guess at the most that a program on one machine opens.
const MOST_CONNECTIONS: u32 = 1_000_000;

/// The traffic of a program that loads the service and prints numbers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct CommandTable {
    pub kind: CommandKind,
    /// Address and port of the service: `{server}:6379`, `127.0.0.1:80`. It is ready once it accepts a connection there.
    pub target: At<String>,
    /// Program and arguments, started anew for each run. No shell is involved. Placeholders: those of the service, and
    /// `{target}`, `{host}`, `{port}`, `{seconds}`, `{rate}`, `{connections}`, `{output}`.
    pub command: At<Vec<At<String>>>,
    /// Which program's output it prints: `wrk`, `k6`, `redis-benchmark`, ... Not needed where `metrics` name all that is wanted.
    pub reader: Option<At<String>>,
    /// What `{connections}` stands for. Default 16.
    pub connections: Option<At<u32>>,
    /// What `{rate}` stands for, requests per second: `20k/s`.
    pub rate: Option<At<String>>,
    /// The program is ended, and the run fails, if it takes longer. Default 60s.
    pub within: Option<At<String>>,
    /// Numbers to be picked out of its output, by name.
    #[serde(default)]
    pub metrics: BTreeMap<At<String>, At<MetricTable>>,
}

/// The word of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum CommandKind {
    /// Any program that loads the service.
    Command,
}

/// Where a number stands in the output: either `pointer` or `pattern`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct MetricTable {
    /// A JSON pointer into the output: `/summary/rate`.
    pub pointer: Option<At<String>>,
    /// A regular expression with a group around the number: `done in ([0-9.]+) s`. The last match counts.
    pub pattern: Option<At<String>>,
}

/// What a rung may change about the program's traffic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct CommandChange {
    /// What `{connections}` stands for.
    pub connections: Option<At<u32>>,
    /// What `{rate}` stands for, requests per second.
    pub rate: Option<At<String>>,
}

/// A program that loads the service.
#[derive(Clone, Debug)]
pub struct Command {
    /// Address and port of the service, with placeholders.
    pub target: String,
    /// Program and arguments, with placeholders.
    pub command: Vec<String>,
    /// What its output is.
    pub output: Output,
    /// Value of `{connections}`.
    pub connections: u32,
    /// Value of `{rate}`, requests per second.
    pub rate_per_s: Option<f64>,
    /// How long it may take.
    pub within: Duration,
}

/// What a program's output is, and what is wanted of it.
#[derive(Clone, Debug)]
pub struct Output {
    /// The program whose output it is.
    pub reader: Option<&'static Format>,
    /// Numbers by name.
    pub picks: BTreeMap<String, Pick>,
}

impl Output {
    /// Metrics that may be found in it.
    pub fn gives(&self) -> impl Iterator<Item = &str> {
        let of_reader = self.reader.iter().flat_map(|reader| reader.gives).copied();
        of_reader.chain(self.picks.keys().map(String::as_str))
    }
}

impl Command {
    /// The words of the program for one run of `seconds` at `target`; `output` is the file that `{output}` names.
    pub fn words(
        &self,
        places: &Places,
        target: std::net::SocketAddr,
        traffic: &Traffic,
        seconds: f64,
        output: &str,
    ) -> Result<Vec<String>, FillError> {
        let rate = traffic.rate_per_s.or(self.rate_per_s);
        let more = |name: &str| match name {
            "target" => Some(target.to_string()),
            "host" => Some(target.ip().to_string()),
            "port" => Some(target.port().to_string()),
            "seconds" => Some(seconds.to_string()),
            "rate" => rate.map(|rate| rate.to_string()),
            "connections" => {
                let count = traffic.connections.unwrap_or(self.connections);
                Some(count.to_string())
            }
            "output" => Some(output.to_owned()),
            _ => None,
        };
        let fill = |part: &String| fill_with(part, places, &more);
        self.command.iter().map(fill).collect()
    }

    /// Its figures are read from a file that it writes.
    pub fn writes_output(&self) -> bool {
        self.command.iter().any(|part| part.contains("{output}"))
    }
}

impl Tables for CommandTable {
    type Change = CommandChange;
}

impl Kind for CommandTable {
    const WARMUP_MS: u64 = 0;
    const MEASURE_MS: u64 = 2_000;

    fn resolve(table: &At<Self>, reader: &mut Reader<'_, '_>) -> Option<Workload> {
        let whole = table.span();
        let table = table.get();
        let CommandKind::Command = table.kind;
        reader.target(&table.target);
        let program = table.command.get().first();
        if program.is_none_or(|program| program.get().trim().is_empty()) {
            let span = table.command.span();
            reader
                .problems
                .add(span, "workload.command", "the program is missing");
        }
        for part in table.command.get() {
            // Any value will do to see whether it can be filled.
            let more = |name: &str| {
                let known = LOAD_PLACEHOLDERS.iter().any(|(known, _)| *known == name);
                known.then(|| "1".to_owned())
            };
            let filled = fill_with(part.get(), &sample_places("192.0.2.1"), &more);
            if let Err(error) = filled {
                let message = error.to_string();
                reader
                    .problems
                    .add(part.span(), "workload.command", message);
            } else if part.get().contains("{rate}") && table.rate.is_none() {
                let message = "'{rate}' has no value; set workload.rate";
                reader
                    .problems
                    .add(part.span(), "workload.command", message);
            }
        }
        let format = table.reader.as_ref().and_then(|at| {
            let found = Format::by_id(at.get());
            if found.is_none() {
                let ids = READERS.iter().map(|reader| reader.id);
                let message = format!(
                    "there is no reader '{}'{}; there are {}, or pick numbers with [workload.metrics.NAME]",
                    at.get(),
                    did_you_mean(at.get(), ids.clone()),
                    ids.collect::<Vec<_>>().join(", ")
                );
                reader.problems.add(at.span(), "workload.reader", message);
            }
            found
        });
        let mut picks = BTreeMap::new();
        for (name, at) in &table.metrics {
            let key = format!("workload.metrics.{}", name.get());
            if name.get() == "loss" || metric::OF_CPU.contains(&name.get().as_str()) {
                let message = format!(
                    "'{}' has a meaning of its own; choose another name",
                    name.get()
                );
                reader.problems.add(name.span(), key.as_str(), message);
            }
            if let Some(pick) = pick(at, &key, reader) {
                picks.insert(name.get().clone(), pick);
            }
        }
        if table.reader.is_none() && table.metrics.is_empty() {
            let message = "say what the program prints: reader = \"wrk\" (rungwise explain command lists them), or \
                           [workload.metrics.NAME] with a pointer or a pattern";
            reader.problems.add(whole, "workload", message);
        }
        let connections = table.connections.as_ref().map_or(CONNECTIONS, |at| {
            reader.between(at, "workload.connections", 1, MOST_CONNECTIONS)
        });
        let rate = table.rate.as_ref();
        Some(Workload::Command(Command {
            target: table.target.get().clone(),
            command: table
                .command
                .get()
                .iter()
                .map(|part| part.get().clone())
                .collect(),
            output: Output {
                reader: format,
                picks,
            },
            connections,
            rate_per_s: rate.map(|at| reader.positive(at, "workload.rate", units::per_second)),
            within: reader.duration(table.within.as_ref(), "workload.within", 60_000),
        }))
    }

    fn traffic(change: &CommandChange, reader: &mut Reader<'_, '_>, key: &str) -> Traffic {
        let connections = change.connections.as_ref().map(|at| {
            let key = format!("{key}.workload.connections");
            reader.between(at, &key, 1, MOST_CONNECTIONS)
        });
        let rate_per_s = change.rate.as_ref().map(|at| {
            let key = format!("{key}.workload.rate");
            reader.positive(at, &key, units::per_second)
        });
        Traffic {
            connections,
            rate_per_s,
            ..Traffic::default()
        }
    }

    fn drivable(
        workload: &Workload,
        document: &Document<Self>,
        _rungs: &[Step],
        reader: &mut Reader<'_, '_>,
    ) {
        let Workload::Command(command) = workload else {
            return;
        };
        let takes = |name: &str| command.command.iter().any(|part| part.contains(name));
        for (index, rung) in document.rungs.iter().enumerate() {
            let Some(change) = &rung.get().workload else {
                continue;
            };
            let key = format!("rungs[{index}].workload");
            let connections = change.connections.as_ref().map(At::span);
            let rate = change.rate.as_ref().map(At::span);
            for (at, name) in [(connections, "{connections}"), (rate, "{rate}")] {
                if let Some(at) = at.filter(|_| !takes(name)) {
                    let message =
                        format!("workload.command has no {name}, so nothing would change");
                    reader.problems.add(at, key.as_str(), message);
                }
            }
        }
    }
}

fn pick(at: &At<MetricTable>, key: &str, reader: &mut Reader<'_, '_>) -> Option<Pick> {
    let table = at.get();
    let (place, read) = match (&table.pointer, &table.pattern) {
        (Some(pointer), None) => (pointer, Pick::pointer(pointer.get())),
        (None, Some(pattern)) => (pattern, Pick::pattern(pattern.get())),
        (Some(_), Some(second)) => {
            let message = "give either 'pointer' or 'pattern', not both";
            reader.problems.add(second.span(), key, message);
            return None;
        }
        (None, None) => {
            let message = "say where the number is: 'pointer' (JSON) or 'pattern' (text)";
            reader.problems.add(at.span(), key, message);
            return None;
        }
    };
    match read {
        Ok(pick) => Some(pick),
        Err(error) => {
            reader.problems.add(place.span(), key, error.to_string());
            None
        }
    }
}
