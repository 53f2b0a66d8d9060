//! The workload of a scenario: its schema by kind, and what only a file can get wrong about it.

use std::net::SocketAddr;
use std::ops::Range;

use rungwise_load::parameters::WrittenTarget;
use rungwise_load::{Parameters, WORKLOADS, Workload};
use schemars::{JsonSchema as _, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::document::{At, Document};
use super::resolve::{Reader, SAMPLES, sample_places};
use super::{command, fill};
use crate::design::Step;
use crate::stage::Changes;

/// Where the schema of a document has that of its workload, and that of what a rung changes.
const WORKLOAD: &str = "/$defs/Parameters";
const CHANGES: [&str; 3] = [
    "/$defs/RungTable/properties/workload",
    "/$defs/RungTable/properties/workload_after",
    "/$defs/PointTable/properties/workload",
];

/// What a rung may change, of all kinds.
pub(super) fn changes(generator: &mut SchemaGenerator) -> Schema {
    let all = Parameters::json_schema(generator).to_value();
    let of = |kind: &&Workload| Some(changes_of(kind, option(&all, kind.id)?));
    let kinds: Vec<Value> = WORKLOADS.iter().filter_map(of).collect();
    schemars::json_schema!({ "anyOf": kinds })
}

/// Makes `schema`, which is of a whole document, one of documents with this kind of workload.
pub(super) fn narrow(schema: &mut Value, kind: &Workload) {
    let Some(parameters) = schema
        .pointer(WORKLOAD)
        .and_then(|all| option(all, kind.id))
    else {
        return;
    };
    let parameters = parameters.clone();
    for place in CHANGES {
        let mut changes = changes_of(kind, &parameters);
        if let Some(any) = schema.pointer_mut(place) {
            if let Some(described) = any.get("description") {
                changes["description"] = described.clone();
            }
            *any = changes;
        }
    }
    if let Some(all) = schema.pointer_mut(WORKLOAD) {
        *all = parameters;
    }
}

/// Refuses keys that no parameter of a kind has. The schema of a type with a flattened part allows them.
pub(super) fn close(schema: &mut Value) {
    let options = schema
        .pointer_mut(WORKLOAD)
        .and_then(|all| all.get_mut("oneOf"))
        .and_then(Value::as_array_mut);
    for option in options.into_iter().flatten() {
        option["additionalProperties"] = Value::Bool(false);
    }
}

/// The schema of a kind among those of all.
fn option<'s>(all: &'s Value, id: &str) -> Option<&'s Value> {
    let options = all.get("oneOf")?.as_array()?;
    options.iter().find(|option| {
        option
            .pointer("/properties/kind/const")
            .and_then(Value::as_str)
            == Some(id)
    })
}

fn changes_of(kind: &Workload, parameters: &Value) -> Value {
    let all = parameters.get("properties").and_then(Value::as_object);
    let some: Map<String, Value> = all
        .into_iter()
        .flatten()
        .filter(|(key, _)| kind.changes.contains(&key.as_str()))
        .map(|(key, value)| {
            let mut value = value.clone();
            // A change has no default: without it all stays as it is.
            if let Some(value) = value.as_object_mut() {
                value.remove("default");
            }
            (key.clone(), value)
        })
        .collect();
    json!({ "type": "object", "properties": some, "additionalProperties": false })
}

impl Reader<'_, '_> {
    /// Notes what is wrong with the workload of a file.
    pub(super) fn workload(&mut self, document: &Document) {
        let parameters = document.workload.get();
        if let WrittenTarget::Address(target) = parameters.traffic().target() {
            self.address(target, "workload.target");
        }
        let whole = document.workload.span();
        self.contradictions(parameters, "workload", &whole);
        if let Parameters::Command(command) = parameters {
            command::check(command, self, &whole);
        }
    }

    /// Notes what contradicts itself in parameters; each at the first of its keys that is written below `path`, else at `whole`.
    fn contradictions(&mut self, parameters: &Parameters, path: &str, whole: &Range<usize>) {
        for contradiction in parameters.traffic().contradictions() {
            let written = contradiction.keys.iter().find_map(|key| {
                let key = format!("{path}.{key}");
                Some((self.spans.get(&key)?.clone(), key))
            });
            let (span, key) = written.unwrap_or_else(|| (whole.clone(), path.to_owned()));
            self.problems.add(span, key, contradiction.why);
        }
    }

    /// Notes which rungs cannot be driven with what they change about the workload.
    pub(super) fn changed(&mut self, document: &Document, rungs: &[Step]) {
        for (index, (rung, step)) in document.rungs.iter().zip(rungs).enumerate() {
            let rung = rung.get();
            let after = step.workload.and(&step.workload_after);
            let own = [
                ("workload", &rung.workload, &step.workload),
                ("workload_after", &rung.workload_after, &after),
            ];
            for (key, written, all) in own {
                if let Some(written) = written {
                    self.applied(document, written, all, format!("rungs[{index}].{key}"));
                }
            }
            for (axis, table) in rung.axes.iter().enumerate() {
                for (number, point) in table.get().points.get().iter().enumerate() {
                    if let Some(written) = &point.get().workload {
                        let path = format!("rungs[{index}].axes[{axis}].points[{number}].workload");
                        let all = step.workload.and(written.get());
                        self.applied(document, written, &all, path);
                    }
                }
            }
        }
    }

    /// Notes it where the workload cannot be driven with `all` changes, of which `written` are in the file at this path.
    fn applied(&mut self, document: &Document, written: &At<Changes>, all: &Changes, path: String) {
        if self.problems.mentions(&path) {
            return;
        }
        let keys = || written.get().keys();
        let first = keys().next();
        let first = first.and_then(|key| self.spans.get(&format!("{path}.{key}")).cloned());
        let whole = first.unwrap_or_else(|| written.span());
        match all.applied(document.workload.get()) {
            Ok(changed) => {
                self.contradictions(&changed, &path, &whole);
                if let Parameters::Command(command) = &changed {
                    command::changed(command, keys(), &path, self);
                }
            }
            Err(why) => self.problems.add(whole, path, why),
        }
    }

    /// Notes it where a template gives no address and port.
    pub(super) fn address(&mut self, target: &str, key: &str) {
        let filled: Result<Vec<String>, _> = SAMPLES
            .iter()
            .map(|address| fill(target, &sample_places(address)))
            .collect();
        let why = match filled {
            Err(error) => error.to_string(),
            Ok(filled) if filled.iter().any(|text| text.parse::<SocketAddr>().is_ok()) => return,
            Ok(_) => format!(
                "'{target}' is not an address and port; write it as {{server}}:9000, 127.0.0.1:53 or [::1]:53"
            ),
        };
        let span = self.spans.get(key).cloned().unwrap_or(0..0);
        self.problems.add(span, key, why);
    }
}
