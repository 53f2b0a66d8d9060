//! The file format: the types behind the JSON schema and the reference page.
//!
//! Nothing here is checked beyond its shape; [`super::resolve`] turns it into a [`super::Scenario`].
//! A doc comment here is the field's description in the schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use rungwise_load::Parameters;
use rungwise_load::values::Count;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use toml::Spanned;

use super::workload;
use crate::stage::Changes;

/// A value with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub(super) struct At<T>(Spanned<T>);

impl<T> At<T> {
    pub(super) fn span(&self) -> Range<usize> {
        self.0.span()
    }

    pub(super) fn get(&self) -> &T {
        self.0.get_ref()
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Values of a switch and what each changes.
pub(super) type SwitchValues = BTreeMap<At<String>, At<SwitchEffect>>;

/// A list of arguments that are appended to the command, or a text that replaces the placeholder of the switch in files.
#[derive(Debug)]
pub(super) enum SwitchEffect {
    Arguments(Vec<At<String>>),
    Text(String),
}

impl<'de> Deserialize<'de> for SwitchEffect {
    // By hand: an untagged enum would lose the places of the arguments.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrText;

        impl<'de> Visitor<'de> for ListOrText {
            type Value = SwitchEffect;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of arguments or a text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(SwitchEffect::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut arguments = Vec::new();
                while let Some(argument) = list.next_element()? {
                    arguments.push(argument);
                }
                Ok(SwitchEffect::Arguments(arguments))
            }
        }

        deserializer.deserialize_any(ListOrText)
    }
}

impl JsonSchema for SwitchEffect {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SwitchEffect".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let arguments = generator.subschema_for::<Vec<String>>();
        schemars::json_schema!({ "anyOf": [arguments, { "type": "string" }] })
    }
}

/// Knob id to value.
pub(super) type Settings = BTreeMap<At<String>, At<String>>;

/// A scenario: a service, the traffic that loads it, the metric that decides, and the changes to try.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// Version of this format: 1.
    pub schema: At<u32>,
    /// Short name: letters, digits, `-`, `_` and `.`.
    pub name: At<String>,
    /// One line about what is measured.
    pub title: String,
    pub service: At<ServiceTable>,
    pub topology: Option<At<TopologyTable>>,
    pub workload: At<Parameters>,
    #[serde(default)]
    pub objective: ObjectiveTable,
    #[serde(default)]
    pub experiment: ExperimentTable,
    #[serde(default)]
    pub baseline: BaselineTable,
    pub auto: Option<At<AutoTable>>,
    /// The changes to try, in order; or `"auto"`: those that the rules recommend under load.
    #[schemars(schema_with = "rungs")]
    pub rungs: Vec<At<RungTable>>,
}

/// The word that replaces the list of rungs.
pub(super) const AUTO: &str = "auto";

fn rungs(generator: &mut SchemaGenerator) -> Schema {
    let list = generator.subschema_for::<Vec<RungTable>>();
    // A pattern, for the word is no alternative to the keys of a rung.
    schemars::json_schema!({ "anyOf": [list, { "type": "string", "pattern": "^auto$" }] })
}

/// How rungs are found, with `rungs = "auto"`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AutoTable {
    /// Maximum number of changes to try, not counting up to three retries as a bundle. Default 8.
    pub max_rungs: Option<At<u32>>,
    /// Length of the capture that is taken under load before the first rung and after each. Default 4s.
    pub look: Option<At<String>>,
    /// Also try changes that may cost other services on this machine speed, packets or protection. Default false.
    pub disruptive: Option<bool>,
}

/// The service under test: `command`, `pid` or `unit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceTable {
    /// Program and arguments that start it. No shell is involved. Placeholders: `{server}`, `{client}`,
    /// `{device}`, `{cpus}`, `{rungwise}`, `{scratch}`, `{built}`.
    pub command: Option<At<Vec<At<String>>>>,
    /// The service already runs as this process and is neither started nor stopped.
    pub pid: Option<At<u32>>,
    /// The service already runs as this systemd unit, such as `nginx.service`, and is neither started nor stopped. All processes of its control
    /// group are the service.
    pub unit: Option<At<String>>,
    /// Ready once it prints a line that begins with this on standard output. Default: ready once it answers a request.
    pub ready_line: Option<At<String>>,
    /// Ready once it accepts a TCP connection here: `{server}:8080`.
    pub ready_tcp: Option<At<String>>,
    /// Ready once it answers a request for this URL with a status of 200 to 399: `http://{server}:8080/health`.
    pub ready_http: Option<At<String>>,
    /// Maximum time until it is ready. Default 10s.
    pub ready_within: Option<At<String>>,
    /// Maximum time to exit after SIGTERM, before SIGKILL. Default 2s.
    pub stop_within: Option<At<String>>,
    /// What rungs can switch: knob id, value, and what the value changes: a list of arguments that it appends to the command, or a text
    /// that replaces `{ID}` in `files`. The value `off` always exists, appends nothing, has an empty text unless it is given one, and is
    /// the initial value of every switch.
    #[serde(default)]
    pub switches: BTreeMap<At<String>, SwitchValues>,
    /// Files that are written into `{scratch}` before each start: name, text. Placeholders as in `command`, and `{ID}` for each switch
    /// with a text; all other braces stay.
    #[serde(default)]
    pub files: BTreeMap<At<String>, At<String>>,
    /// The same with the text in a file: name, path.
    #[serde(default)]
    pub templates: BTreeMap<At<String>, At<String>>,
    /// Command that installs the program, for the message that it is missing.
    pub install: Option<At<String>>,
    /// How the service is built before its first start; the result stays in a cache.
    pub build: Option<At<BuildTable>>,
}

/// How the service is built: copies of the sources in a folder of their own, and a command that runs there. `{built}` is that folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BuildTable {
    /// Program and arguments, executed in the folder that contains the sources. No shell is involved, and nothing is replaced in them.
    pub command: At<Vec<At<String>>>,
    /// Files, or folders with all that is below them; relative to the scenario.
    pub sources: At<Vec<At<String>>>,
    /// Maximum time; after it the build is stopped. Default 10m.
    pub within: Option<At<String>>,
    /// Command that installs what the build needs, for the message that it failed.
    pub install: Option<At<String>>,
}

/// Where server and client live. Default: namespaces for a command, host for a service that already runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TopologyTable {
    pub kind: TopologyKind,
    /// Receive and transmit queues of each end of the veth pair. Default `{cpus}`.
    pub queues: Option<At<Count>>,
    /// Network device of this host for device knobs. Needed only if a rung sets one.
    pub device: Option<At<String>>,
}

/// Where server and client live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum TopologyKind {
    /// Two network namespaces joined by a veth pair, created for the run and removed after it.
    Namespaces,
    /// This host, without namespaces.
    Host,
}

/// The metric that decides, and limits that a change must not violate. Default: maximise the rate.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectiveTable {
    /// Metric to maximise: `rate`, or one that the workload reports.
    pub maximise: Option<At<String>>,
    /// Metric to minimise: `p99`, `cpu_us_per_tx`, or another that the workload reports.
    pub minimise: Option<At<String>>,
    /// Limits with a veto: `loss <= 1%`, `errors == 0`, `p99 < 20ms`.
    #[serde(default)]
    pub guards: Vec<At<String>>,
    /// Metrics of a service's JVM that are measured and shown without deciding anything: `bytes_per_request`, `gc_pause_share`, `gc_longest_pause`,
    /// `gc_longest_remark`, `gc_promoted_per_s`. All other metrics always are.
    #[serde(default)]
    pub readings: Vec<At<String>>,
}

/// How pairs are run and judged; every key has a default that suits most machines.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExperimentTable {
    /// Warm-up at the start of every run, not measured. Default 100ms.
    pub warmup: Option<At<String>>,
    /// Warm-up by a number of requests instead of a time: the same work however fast the machine is. Default: none.
    pub warmup_requests: Option<At<u64>>,
    /// Requests whose allocation is counted after a run for `bytes_per_request`. Default: as many as the run answered.
    pub counted_requests: Option<At<u64>>,
    /// Measured length of every run. Default 300ms.
    pub measure: Option<At<String>>,
    /// Run both variants at once and switch the load between them every 20 ms, where the change allows it. Default true.
    pub turns: Option<bool>,
    /// Decision points: numbers of pairs at which a rung may be decided. Default 8, 16, 24.
    pub looks: Option<At<Vec<At<u32>>>>,
    /// Chance of any wrong decision over the whole ladder. Default 1%.
    pub alpha: Option<At<String>>,
    /// Smallest change worth keeping. Default 2%.
    pub min_effect: Option<At<String>>,
    /// A pair starts only while other processes use less than this share of all CPUs. Default 12%.
    pub quiet: Option<At<String>>,
    /// A pair is discarded if other processes use more than this share of all CPUs in either half. Default 5%.
    pub discard_above: Option<At<String>>,
    /// Metrics that stay within a range on an undisturbed machine, whatever is changed: `service_s = "0.135..0.165"`. A pair with a
    /// value outside is discarded. Default: none.
    #[serde(default)]
    pub controls: BTreeMap<String, At<String>>,
    /// Longest wait for a quiet machine before a pair. Default 5s.
    pub quiet_wait: Option<At<String>>,
    /// Maximum number of discarded pairs per rung. Default 12.
    pub max_discards: Option<u32>,
    /// Seed of the random number generator. Default 1.
    pub seed: Option<At<u64>>,
}

/// The initial configuration; applied and journalled before the first run, undone after the last.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BaselineTable {
    /// Title of the initial configuration. Default: `start`.
    pub title: Option<String>,
    /// Knob ids and values.
    #[serde(default)]
    pub set: Settings,
    /// Ends of the topology at which they are set. Default: the server.
    pub on: Option<At<Vec<At<End>>>>,
    /// Published figure for the same state.
    pub reference: Option<ReferenceTable>,
}

/// An end of the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    /// The end that answers requests.
    Server,
    /// The end that sends requests.
    Client,
}

/// One change. It is judged and kept when it helps, unless `branch`, `limit` or `observe` says otherwise.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RungTable {
    /// Name within the file; usually the id of the knob that it sets.
    pub id: At<String>,
    /// Title of the change. Default: the id.
    pub title: Option<String>,
    /// Knob ids and their values. Quote ids, because they contain dots.
    #[serde(default)]
    pub set: Settings,
    /// A grid in place of `set`: one or two axes. Every combination of their points is measured, and the best one is judged.
    #[serde(default)]
    pub axes: Vec<At<AxisTable>>,
    /// Ends of the topology at which they are set. Default: the server. Ignored for service switches.
    pub on: Option<At<Vec<At<End>>>>,
    /// Earlier rungs to retry together with this one if they were not kept on their own.
    #[serde(default)]
    pub bundle_with: Vec<At<String>>,
    /// Never run: the reason why it cannot be tried here, and what is known about it.
    pub observe: Option<At<String>>,
    /// Judged, but not carried into the following rungs.
    pub branch: Option<At<bool>>,
    /// Measured for comparison only.
    pub limit: Option<At<bool>>,
    /// Threads contend for a lock, so the CPU cost alone may not decide.
    #[serde(default)]
    pub shared_lock: bool,
    /// Traffic to which the result applies, if not all: `same-flow bursts`.
    pub label: Option<String>,
    /// Workload parameters that it changes, in both halves of its pairs.
    #[serde(default)]
    #[schemars(schema_with = "workload::changes")]
    pub workload: Option<At<Changes>>,
    /// Workload parameters that it changes in the half with the change alone: the requests are the change. Only with `branch` or `limit`.
    #[serde(default)]
    #[schemars(schema_with = "workload::changes")]
    pub workload_after: Option<At<Changes>>,
    /// Published figure after the same step.
    pub reference: Option<ReferenceTable>,
}

/// An axis of a grid.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisTable {
    /// What changes along it, such as `connections`.
    pub title: String,
    /// Its points, the cheapest first: two or more.
    pub points: At<Vec<At<PointTable>>>,
}

/// A point of an axis. Without `set` and `workload` it leaves everything as it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PointTable {
    /// Its name on the axis, such as `256 KB`.
    pub label: At<String>,
    /// Knob ids and their values.
    #[serde(default)]
    pub set: Settings,
    /// Workload parameters that it changes, in the half with the change alone. The grid is reported then, and nothing of it kept.
    #[serde(default)]
    #[schemars(schema_with = "workload::changes")]
    pub workload: Option<At<Changes>>,
}

/// A published figure to compare with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceTable {
    /// Transactions per second after the step: `17k/s`.
    pub rate: At<String>,
    /// Factor over the previous step of the same source.
    pub factor: Option<f64>,
    /// Who measured it, and on what hardware.
    pub source: String,
}
