//! `kind = "command"`: an existing load test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use rungwise_load::command::{MetricPlace, Parameters, Pick, READERS, Reader as Format};

use super::fill::{LOAD_PLACEHOLDERS, fill_with};
use super::problem::did_you_mean;
use super::resolve::{Reader, sample_places};
use super::{FillError, Places};
use crate::metric;

/// What a program's output is, and what is wanted of it.
#[derive(Clone, Debug)]
pub struct Output {
    /// The program whose output it is.
    pub reader: Option<&'static Format>,
    /// Numbers by name.
    pub picks: BTreeMap<String, Pick>,
}

impl Output {
    /// What a scenario needs from the output of its program, or why that is impossible.
    pub fn from_parameters(parameters: &Parameters) -> Result<Self, String> {
        let pick = |(name, place): (&String, &MetricPlace)| Ok((name.clone(), pick(place)?));
        Ok(Self {
            reader: parameters.reader.as_deref().and_then(Format::by_id),
            picks: parameters
                .metrics
                .iter()
                .map(pick)
                .collect::<Result<_, String>>()?,
        })
    }
}

/// The words of the program for one run of `seconds` at `target`; `output` is the file that `{output}` names.
pub(crate) fn words(
    parameters: &Parameters,
    places: &Places,
    target: SocketAddr,
    seconds: f64,
    output: &str,
) -> Result<Vec<String>, FillError> {
    let more = |name: &str| match name {
        "target" => Some(target.to_string()),
        "host" => Some(target.ip().to_string()),
        "port" => Some(target.port().to_string()),
        "seconds" => Some(seconds.to_string()),
        "rate" => parameters.rate.map(|rate| rate.0.to_string()),
        "connections" => Some(parameters.connections.to_string()),
        "requests" => parameters.requests.map(|requests| requests.to_string()),
        "output" => Some(output.to_owned()),
        _ => None,
    };
    let fill = |part: &String| fill_with(part, places, &more);
    parameters.command.iter().map(fill).collect()
}

/// Whether the figures are read from a file that the program writes.
pub(crate) fn writes_output(parameters: &Parameters) -> bool {
    takes(parameters, "{output}")
}

/// Whether the program sends as many requests as it is asked to.
pub(super) fn sends_counted(parameters: &Parameters) -> bool {
    takes(parameters, "{requests}")
}

fn takes(parameters: &Parameters, placeholder: &str) -> bool {
    let mut parts = parameters.command.iter();
    parts.any(|part| part.contains(placeholder))
}

/// Notes what is wrong with the program of a file.
pub(super) fn check(parameters: &Parameters, reader: &mut Reader<'_, '_>, whole: &Range<usize>) {
    let program = parameters.command.first();
    if program.is_none_or(|program| program.trim().is_empty()) {
        reader.note("workload.command", whole, "the program is missing");
    }
    for (index, part) in parameters.command.iter().enumerate() {
        // Any value will do to see whether it can be filled.
        let more = |name: &str| {
            let known = LOAD_PLACEHOLDERS.iter().any(|(known, _)| *known == name);
            known.then(|| "1".to_owned())
        };
        let filled = fill_with(part, &sample_places("192.0.2.1"), &more);
        let why = match filled {
            Err(error) => error.to_string(),
            Ok(_) if part.contains("{rate}") && parameters.rate.is_none() => {
                "'{rate}' has no value; set workload.rate".to_owned()
            }
            Ok(_) if part.contains("{requests}") && parameters.requests.is_none() => {
                "'{requests}' has no value; set workload.requests".to_owned()
            }
            Ok(_) => continue,
        };
        let span = reader.spans.get(&format!("workload.command[{index}]"));
        let span = span.unwrap_or(whole).clone();
        reader.problems.add(span, "workload.command", why);
    }
    if let Some(id) = &parameters.reader
        && Format::by_id(id).is_none()
    {
        let ids = READERS.iter().map(|reader| reader.id);
        let message = format!(
            "unknown reader '{id}'{}; readers: {}; or pick numbers with [workload.metrics.NAME]",
            did_you_mean(id, ids.clone()),
            ids.collect::<Vec<_>>().join(", ")
        );
        reader.note("workload.reader", whole, message);
    }
    for (name, place) in &parameters.metrics {
        let key = format!("workload.metrics.{name}");
        if name == "loss"
            || metric::OF_CPU.contains(&name.as_str())
            || metric::OF_JVM.contains(&name.as_str())
        {
            let message = format!("'{name}' is reserved; choose another name");
            reader.note(&key, whole, message);
        }
        if let Err(why) = pick(place) {
            reader.note(&key, whole, why);
        }
    }
    if parameters.reader.is_none() && parameters.metrics.is_empty() {
        let message = "output format unknown; set reader = \"wrk\" (`rungwise explain command` lists the readers), or \
            [workload.metrics.NAME] with a pointer or a pattern";
        reader.problems.add(whole.clone(), "workload", message);
    }
}

/// Notes what a rung changes and the program does not take.
pub(super) fn changed<'k>(
    parameters: &Parameters,
    keys: impl Iterator<Item = &'k str>,
    path: &str,
    reader: &mut Reader<'_, '_>,
) {
    for key in keys {
        let placeholder = format!("{{{key}}}");
        if !takes(parameters, &placeholder) {
            let message = format!("workload.command has no {placeholder}, so nothing would change");
            let span = reader.spans.get(&format!("{path}.{key}")).cloned();
            reader.problems.add(span.unwrap_or(0..0), path, message);
        }
    }
}

fn pick(place: &MetricPlace) -> Result<Pick, String> {
    match (&place.pointer, &place.pattern) {
        (Some(pointer), None) => Pick::pointer(pointer).map_err(|error| error.to_string()),
        (None, Some(pattern)) => Pick::pattern(pattern).map_err(|error| error.to_string()),
        (Some(_), Some(_)) => Err("give either 'pointer' or 'pattern', not both".to_owned()),
        (None, None) => {
            Err("say where the number is: 'pointer' (JSON) or 'pattern' (text)".to_owned())
        }
    }
}
