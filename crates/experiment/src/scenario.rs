//! The scenario file: which service, what traffic, which changes, judged how.
//!
//! [`Scenario::parse`] reads TOML in three passes: the text becomes a tree with positions, the tree is
//! compared with the JSON schema (`shape`), and its values become types that cannot be invalid
//! (`resolve`). Each pass notes every problem with its line and column and continues. [`Scenario::validate`]
//! compares it with the knobs there are. The page for authors is `docs/scenario.md`.

pub(crate) mod command;
mod document;
pub(crate) mod files;
mod fill;
mod java;
pub(crate) mod known;
mod problem;
mod resolve;
mod shape;
mod workload;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::time::Duration;

use rungwise_host::cpu::{CpuSource, Owner};
use rungwise_host::{Host, process};
use rungwise_knobs::Knob;
use rungwise_load::values::Count;
use rungwise_load::{Parameters, WORKLOADS, Workload};
use rungwise_model::tune::Reference;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

pub use files::{LARGEST, Source};
pub use fill::{FillError, LOAD_PLACEHOLDERS, PLACEHOLDERS, Places, fill};
pub use java::{JavaCommand, Judged};
pub use problem::{Problem, Problems};

use crate::design::{Auto, Design, Judging, Step};
use crate::stage::Setting;
use document::{AUTO, Document};
use problem::{Collector, did_you_mean};

/// Version of the file format.
pub const SCHEMA: u32 = 1;
/// The default value of every service switch.
pub const OFF: &str = "off";

/// Placeholder for the folder of the build.
const BUILT: &str = "{built}";

/// A scenario inside the binary.
struct Builtin {
    name: &'static str,
    text: &'static str,
    /// Names and texts of the files beside it that its build reads.
    sources: &'static [(&'static str, &'static str)],
}

const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "dubbo-burst",
        text: include_str!("../../../labs/dubbo-burst/scenario.toml"),
        sources: HELLO,
    },
    Builtin {
        name: "heap-per-request",
        text: include_str!("../../../labs/heap-per-request/scenario.toml"),
        sources: ORDERS,
    },
    Builtin {
        name: "heap-per-request-cases",
        text: include_str!("../../../labs/heap-per-request-cases/scenario.toml"),
        sources: ORDERS,
    },
    Builtin {
        name: "heap-per-request-jmeter",
        text: include_str!("../../../labs/heap-per-request-jmeter/scenario.toml"),
        sources: ORDERS,
    },
    Builtin {
        name: "heap-per-request-jvms",
        text: include_str!("../../../labs/heap-per-request-jvms/scenario.toml"),
        sources: ORDERS,
    },
    Builtin {
        name: "mass-connections",
        text: include_str!("../../../labs/mass-connections/scenario.toml"),
        sources: MASS,
    },
    Builtin {
        name: "redis-command",
        text: include_str!("../../../labs/redis-command/scenario.toml"),
        sources: &[],
    },
    Builtin {
        name: "udp-echo",
        text: include_str!("../../../labs/udp-echo/scenario.toml"),
        sources: &[],
    },
    Builtin {
        name: "udp-echo-auto",
        text: include_str!("../../../labs/udp-echo-auto/scenario.toml"),
        sources: &[],
    },
    Builtin {
        name: "web-nginx",
        text: include_str!("../../../labs/web-nginx/scenario.toml"),
        sources: &[],
    },
    Builtin {
        name: "web-nginx-auto",
        text: include_str!("../../../labs/web-nginx-auto/scenario.toml"),
        sources: &[],
    },
];

/// Provider and consumer of the Dubbo lab.
const HELLO: &[(&str, &str)] = &[
    ("pom.xml", include_str!("../../../labs/dubbo-burst/pom.xml")),
    (
        "src/main/java/demo/Consumer.java",
        include_str!("../../../labs/dubbo-burst/src/main/java/demo/Consumer.java"),
    ),
    (
        "src/main/java/demo/HelloService.java",
        include_str!("../../../labs/dubbo-burst/src/main/java/demo/HelloService.java"),
    ),
    (
        "src/main/java/demo/HelloServiceImpl.java",
        include_str!("../../../labs/dubbo-burst/src/main/java/demo/HelloServiceImpl.java"),
    ),
    (
        "src/main/java/demo/Provider.java",
        include_str!("../../../labs/dubbo-burst/src/main/java/demo/Provider.java"),
    ),
    (
        "src/main/java/demo/Settings.java",
        include_str!("../../../labs/dubbo-burst/src/main/java/demo/Settings.java"),
    ),
];

/// The server of the lab with many connections.
const MASS: &[(&str, &str)] = &[
    (
        "pom.xml",
        include_str!("../../../labs/mass-connections/pom.xml"),
    ),
    (
        "src/main/java/demo/Connection.java",
        include_str!("../../../labs/mass-connections/src/main/java/demo/Connection.java"),
    ),
    (
        "src/main/java/demo/Garbage.java",
        include_str!("../../../labs/mass-connections/src/main/java/demo/Garbage.java"),
    ),
    (
        "src/main/java/demo/Server.java",
        include_str!("../../../labs/mass-connections/src/main/java/demo/Server.java"),
    ),
    (
        "src/main/java/demo/Session.java",
        include_str!("../../../labs/mass-connections/src/main/java/demo/Session.java"),
    ),
    (
        "src/main/java/demo/Settings.java",
        include_str!("../../../labs/mass-connections/src/main/java/demo/Settings.java"),
    ),
];

/// The Spring Boot service of the heap labs.
const ORDERS: &[(&str, &str)] = &[
    (
        "jmeter/pom.xml",
        include_str!("../../../labs/heap-per-request/jmeter/pom.xml"),
    ),
    (
        "pom.xml",
        include_str!("../../../labs/heap-per-request/pom.xml"),
    ),
    (
        "src/main/java/orders/Application.java",
        include_str!("../../../labs/heap-per-request/src/main/java/orders/Application.java"),
    ),
    (
        "src/main/java/orders/JsonBuffers.java",
        include_str!("../../../labs/heap-per-request/src/main/java/orders/JsonBuffers.java"),
    ),
    (
        "src/main/java/orders/Order.java",
        include_str!("../../../labs/heap-per-request/src/main/java/orders/Order.java"),
    ),
    (
        "src/main/java/orders/OrderController.java",
        include_str!("../../../labs/heap-per-request/src/main/java/orders/OrderController.java"),
    ),
];

/// What is asked of a service's JVM in each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JvmReadings {
    /// What requests allocate.
    pub allocation: bool,
    /// What the collector did.
    pub collections: bool,
}

/// A scenario whose every value was checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Short name.
    pub name: String,
    /// One line about it.
    pub title: String,
    /// The service under test.
    pub service: Service,
    /// Where server and client live.
    pub topology: Topology,
    /// The traffic.
    pub workload: Parameters,
    /// Discarded at the start of every run.
    pub warmup: Duration,
    /// Requests that are sent at the start of every run and discarded, 0 for none; there is no `warmup` then.
    pub warmup_requests: u64,
    /// Requests whose allocation is counted after a run; absent, as many as it answered.
    pub counted_requests: Option<u64>,
    /// Measured length of every run.
    pub measure: Duration,
    /// Variants take turns of a few milliseconds where they can.
    pub turns: bool,
    /// What is asked of the service's JVM in each run.
    pub jvm_readings: JvmReadings,
    /// The state in which the ladder starts.
    pub start: Start,
    /// The changes to try, in order; none where they are found.
    pub rungs: Vec<Step>,
    /// How they are found, where the rules choose them.
    pub auto: Option<Auto>,
    /// How pairs are judged.
    pub judging: Judging,
    /// [`Scenario::make_quick`] was applied.
    quick: bool,
    /// Where the file names knobs, for [`Scenario::validate`].
    named: Vec<known::Named>,
    /// Where it names the service's program; its message is still to be written.
    program_at: Option<Problem>,
    /// Where it names files of the service, and texts for them.
    files: files::Named,
    file: String,
}

/// The state in which the ladder starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// In words.
    pub title: String,
    /// Knobs and their values.
    pub set: Vec<(Setting, String)>,
    /// A published figure.
    pub reference: Option<Reference>,
}

/// The service under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// rungwise starts it for every run and ends it afterwards.
    Started(Started),
    /// It runs already and is left alone.
    Running(Existing),
}

/// The processes of a service that is already running: without them, its CPU time would count as foreign load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    /// This process and those that it started.
    Process(u32),
    /// All processes of this systemd unit.
    Unit(String),
}

impl Existing {
    /// The process that must live on.
    pub(crate) fn main(&self) -> rungwise_host::Result<u32> {
        match self {
            Self::Process(pid) => Ok(*pid),
            Self::Unit(unit) => process::main_of_unit(unit),
        }
    }

    /// All of them.
    pub(crate) fn members(&self) -> io::Result<Vec<u32>> {
        match self {
            Self::Process(pid) => process::family(*pid),
            Self::Unit(unit) => process::members_of_unit(unit),
        }
    }

    /// Their CPU time.
    pub(crate) fn cpu(&self) -> CpuSource {
        let what = match self {
            Self::Process(pid) => format!("process {pid} and its descendants"),
            Self::Unit(unit) => format!("processes of {unit}"),
        };
        let these = self.clone();
        CpuSource::processes(Owner::Service, what, move || these.members())
    }
}

impl fmt::Display for Existing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Unit(unit) => f.write_str(unit),
        }
    }
}

/// Knob id, value, what the value changes.
pub type Switches = BTreeMap<String, BTreeMap<String, Effect>>;

/// What a value of a switch changes about a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It appends these arguments to the command.
    Arguments(Vec<String>),
    /// This text takes the place of the switch's placeholder in files.
    Text(String),
}

/// A service that rungwise starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Program and arguments, with placeholders.
    pub command: Vec<String>,
    /// How it shows that it is ready; where absent, it answers a request.
    pub ready: Option<ReadyBy>,
    /// How long it may take until it is ready.
    pub ready_within: Duration,
    /// How long it may take to end after SIGTERM.
    pub stop_within: Duration,
    /// What rungs can switch in the command line and in files.
    pub switches: Switches,
    /// Files that are written into the scratch folder before each start, by their names in it.
    pub files: BTreeMap<String, Source>,
    /// The command that installs the program.
    pub install: Option<String>,
    /// How it is built before its first start.
    pub build: Option<Box<Build>>,
}

/// How a service is built: a command that runs in a folder of its own, among copies of the sources. `{built}` is that folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Files, or folders with all that is below them, relative to the scenario.
    pub sources: Vec<String>,
    /// How long it may take.
    pub within: Duration,
    /// The command that installs what it needs.
    pub install: Option<String>,
}

/// How the author of a scenario recognises a service that can take work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyBy {
    /// It has printed a line on standard output that begins so.
    Line(String),
    /// It accepts a connection at this address and port, with placeholders.
    Tcp(String),
    /// It answers at this URL with a status of 200 to 399, with placeholders.
    Http(String),
}

impl Started {
    /// The command line for these settings: the command with the options of a JVM, then the arguments of each switch by knob id.
    /// Settings that are no switches of this service add nothing.
    pub fn command_for(
        &self,
        settings: &BTreeMap<Setting, String>,
        places: &Places,
    ) -> Result<Vec<String>, FillError> {
        Ok(self.java_command(settings, places)?.words)
    }

    /// Whether `{built}` is in what starts the service or loads it; `unread` is the answer for a template that was not read yet.
    fn names_built(&self, workload: &Parameters, unread: bool) -> bool {
        let effects = self.switches.values().flat_map(BTreeMap::values);
        let switched = effects.flat_map(|effect| match effect {
            Effect::Arguments(words) => words.as_slice(),
            Effect::Text(text) => std::slice::from_ref(text),
        });
        let loads = match workload {
            Parameters::Command(command) => command.command.as_slice(),
            _ => &[],
        };
        let mut words = self.command.iter().chain(switched).chain(loads);
        let in_file = |source: &Source| match source {
            Source::Inline(text) => text.contains(BUILT),
            Source::Template { text, .. } => {
                text.as_ref().map_or(unread, |text| text.contains(BUILT))
            }
        };
        words.any(|word| word.contains(BUILT)) || self.files.values().any(in_file)
    }

    /// Whether the service restarts where this knob is set.
    fn is_switch(&self, knob: &str) -> bool {
        let of_java = || rungwise_knobs::find(knob).is_ok_and(Knob::is_of_java);
        self.switches.contains_key(knob) || of_java()
    }

    /// The files for these settings, by their names in the scratch folder. A switch without a setting is off.
    pub fn files_for(
        &self,
        settings: &BTreeMap<Setting, String>,
        places: &Places,
    ) -> Result<BTreeMap<String, String>, FillError> {
        self.filled(places, |id| {
            let mut settings = settings.iter();
            let found = settings.find(|(setting, _)| setting.knob == id);
            found.map(|(_, value)| value.as_str())
        })
    }
}

/// Where server and client live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Two namespaces joined by a veth pair with this many queues per direction.
    Namespaces {
        /// Queues.
        queues: Count,
    },
    /// This host, without namespaces.
    Host {
        /// Device for device knobs.
        device: Option<String>,
    },
}

impl Scenario {
    /// Reads a scenario. `file` is the name used in messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, Problems> {
        let mut problems = Collector::new(text);
        let scenario = read(text, file, &mut problems);
        match (scenario, problems.into_problems(file)) {
            (_, Some(problems)) => Err(problems),
            (Some(scenario), None) => Ok(scenario),
            (None, None) => unreachable!("a file that gives no scenario has a problem"),
        }
    }

    /// What the file says about knobs, checked against those that exist and what they can be set to on `machine`.
    pub fn validate(&self, machine: &dyn Host) -> Result<(), Problems> {
        let wrong = known::check(&self.named, &self.topology, machine);
        match problem::in_order(&self.file, wrong) {
            Some(problems) => Err(problems),
            None => Ok(()),
        }
    }

    /// How the service is built, where it is.
    pub fn build(&self) -> Option<&Build> {
        match &self.service {
            Service::Started(started) => started.build.as_deref(),
            Service::Running(_) => None,
        }
    }

    /// Whether the service's program is a result of its build.
    pub fn builds_program(&self) -> bool {
        let Service::Started(started) = &self.service else {
            return false;
        };
        let program = started.command.first();
        started.build.is_some() && program.is_some_and(|program| program.contains(BUILT))
    }

    /// Whether the service's program can be started here.
    pub fn find_program(&self, places: &Places) -> Result<(), Problems> {
        let (Service::Started(started), Some(at)) = (&self.service, &self.program_at) else {
            return Ok(());
        };
        let program = started.command.first().map(|word| fill(word, places));
        let message = match program {
            Some(Ok(program)) => match process::find(&program) {
                Ok(()) => return Ok(()),
                Err(error) => match &started.install {
                    Some(install) => format!("{error}; install it with: {install}"),
                    None => error.to_string(),
                },
            },
            Some(Err(error)) => error.to_string(),
            None => return Ok(()),
        };
        Err(Problems {
            file: self.file.clone(),
            list: vec![Problem {
                message,
                ..at.clone()
            }],
        })
    }

    /// Shorter runs and one early look: for a first impression, and blind to small effects.
    pub fn make_quick(&mut self) {
        self.quick = true;
        // Code that the JIT compiler has not seen long enough allocates more, few requests allocate less than the JVM rounds, and a short window may have
        // no collection.
        if self.jvm_readings == JvmReadings::default() {
            self.warmup = self.warmup.min(Duration::from_millis(40));
            self.measure = self.measure.min(self.workload.traffic().kind().quick);
        }
        self.judging.looks.truncate(1);
        if let Some(auto) = &mut self.auto {
            auto.capture_s = auto.capture_s.min(2.0);
        }
        self.judging.quiet_wait_s = self.judging.quiet_wait_s.min(0.5);
        self.judging.max_discards = self.judging.max_discards.min(4);
    }

    /// Whether some rung switches the service, which then restarts; for rungs that the rules choose, whether one can.
    fn restarts(&self) -> bool {
        let Service::Started(started) = &self.service else {
            return false;
        };
        let switches = |step: &Step| {
            let mut set = step.settings();
            set.any(|(setting, _)| started.is_switch(&setting.knob))
        };
        let can = !started.switches.is_empty() || self.starts_java();
        self.auto.is_some() && can || self.rungs.iter().any(switches)
    }

    /// Its service is a JVM, and options of that can be set.
    fn starts_java(&self) -> bool {
        let Service::Started(started) = &self.service else {
            return false;
        };
        rungwise_jvm::edit::java_word(&started.command).is_some()
    }

    /// What is compared with what, at a `place` in words; device knobs set `device`.
    pub fn design(&self, place: String, device: Option<&str>) -> Design {
        let auto = self.auto.clone().map(|auto| Auto {
            device: device.map(str::to_owned),
            java: self.starts_java(),
            ..auto
        });
        Design {
            auto,
            scenario: self.name.clone(),
            title: self.title.clone(),
            place,
            workload: Some(self.workload.clone()),
            quick: self.quick,
            restarts: self.restarts(),
            baseline: self.start.set.clone(),
            start_reference: self.start.reference.clone(),
            steps: self.rungs.clone(),
            judging: self.judging.clone(),
        }
    }
}

/// The names of the scenarios inside the binary.
pub fn builtins() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|builtin| builtin.name)
}

/// `; did you mean 'NAME'?` where a scenario inside the binary is called almost so.
pub fn nearest_builtin(name: &str) -> String {
    did_you_mean(name, builtins())
}

/// The text of a scenario inside the binary.
pub fn builtin(name: &str) -> Option<&'static str> {
    find_builtin(name).map(|builtin| builtin.text)
}

/// Names and texts of the files that the build of a scenario inside the binary reads.
pub fn builtin_sources(name: &str) -> &'static [(&'static str, &'static str)] {
    find_builtin(name).map_or(&[], |builtin| builtin.sources)
}

fn find_builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

/// The JSON schema of the file.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Document).to_value();
    workload::close(&mut schema);
    schema
}

fn read(text: &str, file: &str, problems: &mut Collector<'_>) -> Option<Scenario> {
    let (mut tree, mistakes) = DeTable::parse_recoverable(text);
    for mistake in &mistakes {
        problems.add(
            mistake.span().unwrap_or(0..0),
            "",
            format!("not TOML: {}", mistake.message()),
        );
    }
    let auto = take_auto(tree.get_mut(), problems);
    // Half a file would be reported as missing keys that are there.
    if !mistakes.is_empty() {
        return None;
    }
    let mut schema = schema();
    if let Some((word, span)) = kind_of(tree.get_ref()) {
        let Some(kind) = Workload::by_id(word) else {
            let kinds = || WORKLOADS.iter().map(|kind| kind.id);
            let (listed, near) = (problem::any_of(kinds()), did_you_mean(word, kinds()));
            let message = format!("'{word}' is not {listed}{near}");
            problems.add(span, "workload.kind", message);
            return None;
        };
        workload::narrow(&mut schema, kind);
    }
    // What is missing or has another type, the schema notices.
    if !shape::check(&schema, &mut tree, problems) {
        return None;
    }
    let spans = shape::spans(&tree);
    match <Document as serde::Deserialize>::deserialize(Deserializer::from(tree)) {
        Ok(document) => resolve::resolve(document, auto, spans, file, problems),
        Err(error) => {
            problems.add(
                error.span().unwrap_or(0..0),
                "",
                error.message().trim().to_owned(),
            );
            None
        }
    }
}

/// The word in `kind` of the workload, and its place.
fn kind_of<'t>(tree: &'t DeTable<'_>) -> Option<(&'t str, Range<usize>)> {
    let DeValue::Table(workload) = tree.get("workload")?.get_ref() else {
        return None;
    };
    let kind = workload.get("kind")?;
    match kind.get_ref() {
        DeValue::String(word) => Some((word.as_ref(), kind.span())),
        _ => None,
    }
}

/// Whether a word replaces the list of rungs; it is replaced by an empty list, so that one type describes both.
fn take_auto(tree: &mut DeTable<'_>, problems: &mut Collector<'_>) -> bool {
    let Some(rungs) = tree.get_mut("rungs") else {
        return false;
    };
    let DeValue::String(word) = rungs.get_ref() else {
        return false;
    };
    let auto = word.as_ref() == AUTO;
    if !auto {
        let near = did_you_mean(word, [AUTO]);
        let message = format!("expected a list of [[rungs]] or \"{AUTO}\"{near}");
        problems.add(rungs.span(), "rungs", message);
    }
    *rungs.get_mut() = DeValue::Array(DeArray::new());
    auto
}

#[cfg(test)]
mod tests;
