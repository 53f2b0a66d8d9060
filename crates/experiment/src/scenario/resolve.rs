//! Turns the document into a scenario: units, defaults, and contradictions.
//!
//! A reader notes each problem and continues with a substitute value, so that one pass finds everything; substitutes never leave, because
//! a file with a problem gives no scenario.

mod grid;
mod judging;
mod ladder;
mod quantity;

use std::collections::BTreeMap;
use std::ops::Range;

use rungwise_host::process::Url;
use rungwise_load::Parameters;
use rungwise_load::values::Count;

use super::document::{At, BuildTable, Document, ServiceTable, SwitchEffect, TopologyKind};
use super::known::Named;
use super::problem::{Collector, Problem};
use super::{
    Build, Effect, Existing, FillError, OFF, Places, ReadyBy, SCHEMA, Scenario, Service, Source,
    Started, Switches, Topology, files, fill,
};
use crate::design::Design;

/// Turns a document into a scenario; what is wrong goes to `problems`.
pub(super) fn resolve(
    document: Document,
    auto: bool,
    spans: BTreeMap<String, Range<usize>>,
    file: &str,
    problems: &mut Collector<'_>,
) -> Option<Scenario> {
    let mut reader = Reader {
        problems,
        spans,
        named: Vec::new(),
        files: files::Named::default(),
    };
    reader.identity(&document);
    let service = reader.service(&document.service);
    let topology = reader.topology(&document, service.as_ref());
    let workload = document.workload.get().clone();
    reader.workload(&document);
    if let Some(Service::Started(started)) = &service {
        reader.built(&document, started, &workload);
    }
    let switches = match &service {
        Some(Service::Started(started)) => &started.switches,
        Some(Service::Running(_)) | None => &BTreeMap::new(),
    };
    let start = reader.start(&document.baseline, switches);
    let rungs = reader.rungs(&document.rungs, switches, document.service.get());
    // What has a wrong value would be refused for it again.
    if !reader.problems.mentions("workload") {
        reader.changed(&document, &rungs);
    }
    let objective = reader.objective(&document.objective, &workload);
    let started = matches!(service, Some(Service::Started(_)) | None);
    let jvm_readings = reader.jvm_readings(
        &document.objective,
        &document.experiment,
        &objective,
        started,
    );
    let on_this_host = matches!(topology, Some(Topology::Host { .. }));
    let auto = reader.auto(document.auto.as_ref(), auto, on_this_host, switches);
    let comparisons = match &auto {
        Some(auto) => auto.comparisons(),
        None => Design::count_comparisons(&rungs),
    };
    let by_count = reader.by_count(&document.experiment, &workload, jvm_readings.allocation);
    let (warmup, measure, judging) =
        reader.experiment(&document.experiment, &workload, objective, comparisons);
    if let Parameters::Command(command) = &workload
        && command.within.0 <= measure
        && !reader.problems.mentions("workload")
    {
        let message = format!(
            "the program measures for {} s but is stopped after {} s; raise workload.within",
            measure.as_secs_f64(),
            command.within.0.as_secs_f64()
        );
        reader
            .problems
            .add(document.workload.span(), "workload.within", message);
    }
    let program = document.service.get().command.as_ref();
    let program_at = program
        .and_then(|command| command.get().first())
        .map(|program| reader.place(program.span(), "service.command"));
    let (named, files) = (reader.named, reader.files);
    if !problems.is_empty() {
        return None;
    }
    Some(Scenario {
        name: document.name.get().clone(),
        title: document.title,
        service: service?,
        topology: topology?,
        workload,
        warmup,
        warmup_requests: by_count.warmup,
        counted_requests: by_count.counted,
        measure,
        turns: document.experiment.turns.unwrap_or(true),
        jvm_readings,
        start,
        rungs,
        auto,
        judging,
        quick: false,
        named,
        program_at,
        files,
        file: file.to_owned(),
    })
}

/// Reads the values of a document and notes what is wrong with them.
pub(super) struct Reader<'p, 't> {
    pub(super) problems: &'p mut Collector<'t>,
    /// The place of each value, by its path.
    pub(super) spans: BTreeMap<String, Range<usize>>,
    named: Vec<Named>,
    files: files::Named,
}

impl Reader<'_, '_> {
    fn identity(&mut self, document: &Document) {
        if *document.schema.get() != SCHEMA {
            let message = format!("this version of rungwise reads schema {SCHEMA}");
            self.problems.add(document.schema.span(), "schema", message);
        }
        let name = document.name.get();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // It becomes part of a folder's name.
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            let message =
                format!("'{name}' is not a valid name; use letters, digits, '-', '_' and '.'");
            self.problems.add(document.name.span(), "name", message);
        }
    }

    fn service(&mut self, table: &At<ServiceTable>) -> Option<Service> {
        let service = table.get();
        let pid = service.pid.as_ref();
        let unit = service.unit.as_ref();
        let existing = pid
            .map(|pid| (pid.span(), Existing::Process(*pid.get())))
            .or_else(|| unit.map(|unit| (unit.span(), Existing::Unit(unit.get().clone()))));
        match (&service.command, existing) {
            (Some(_), Some((span, _))) => {
                let message = "set 'command' (rungwise starts the service) or 'pid' or 'unit' (already running), not both";
                self.problems.add(span, "service", message);
                None
            }
            (None, None) => {
                let message = "set 'command' to start the service, or 'pid' or 'unit' (systemd) if it is already running";
                self.problems.add(table.span(), "service", message);
                None
            }
            (None, Some((span, existing))) => {
                self.existing(service, &span, &existing);
                Some(Service::Running(existing))
            }
            (Some(command), None) => Some(Service::Started(self.started(service, command))),
        }
    }

    /// Refuses keys that have no meaning for a service that runs already, and a process or unit that cannot exist.
    fn existing(&mut self, service: &ServiceTable, span: &Range<usize>, existing: &Existing) {
        if let Some((id, _)) = service.switches.first_key_value() {
            let message = "a running service cannot be restarted with other arguments; set 'command', or remove the switches";
            self.problems.add(id.span(), "service.switches", message);
        }
        for (key, files) in [("files", &service.files), ("templates", &service.templates)] {
            if let Some((name, _)) = files.first_key_value() {
                let message =
                    "files are written before a start, and this service already runs; remove them";
                self.problems
                    .add(name.span(), format!("service.{key}"), message);
            }
        }
        for (key, text) in [
            ("ready_line", &service.ready_line),
            ("ready_tcp", &service.ready_tcp),
            ("ready_http", &service.ready_http),
            ("install", &service.install),
            ("ready_within", &service.ready_within),
            ("stop_within", &service.stop_within),
        ] {
            if let Some(text) = text {
                let message = "has no effect for a service that is already running; remove it";
                self.problems
                    .add(text.span(), format!("service.{key}"), message);
            }
        }
        if let Some(build) = &service.build {
            let message = "a service that already runs is not built; remove it";
            self.problems.add(build.span(), "service.build", message);
        }
        if service.pid.is_some() && service.unit.is_some() {
            let message = "set 'pid' or 'unit', not both";
            self.problems.add(span.clone(), "service", message);
        }
        match existing {
            Existing::Process(0) => {
                self.problems
                    .add(span.clone(), "service.pid", "0 is not a process id");
            }
            Existing::Unit(unit) if unit.contains('/') || !unit.contains('.') => {
                let message = format!(
                    "'{unit}' is not the name of a unit; include the suffix, for example nginx.service"
                );
                self.problems.add(span.clone(), "service.unit", message);
            }
            Existing::Process(_) | Existing::Unit(_) => {}
        }
    }

    fn started(&mut self, service: &ServiceTable, command: &At<Vec<At<String>>>) -> Started {
        if command
            .get()
            .first()
            .is_none_or(|program| program.get().trim().is_empty())
        {
            self.problems
                .add(command.span(), "service.command", "the program is missing");
        }
        let command = self.templates(command.get(), "service.command");
        let mut switches = BTreeMap::new();
        for (id, values) in &service.switches {
            let key = format!("service.switches.\"{}\"", id.get());
            self.name(id, None, true, &key);
            // A value that was refused for its shape has left the switch and has its own problem.
            if values.is_empty() && !self.problems.mentions(&key) {
                self.problems.add(
                    id.span(),
                    &key,
                    "a switch needs a value, such as on = [\"--argument\"]",
                );
            }
            let mut effects = BTreeMap::from([(OFF.to_owned(), Effect::Arguments(Vec::new()))]);
            for (value, effect) in values {
                let effect = match effect.get() {
                    SwitchEffect::Text(text) => {
                        let at = self.place(effect.span(), &key);
                        self.files.switches.entry(id.get().clone()).or_insert(at);
                        Effect::Text(text.clone())
                    }
                    SwitchEffect::Arguments(parts) => {
                        if value.get() == OFF && !parts.is_empty() {
                            let message = "'off' means no extra arguments; choose another name for this value";
                            self.problems.add(value.span(), &key, message);
                        }
                        let key = format!("{key}.{}", value.get());
                        Effect::Arguments(self.templates(parts, &key))
                    }
                };
                effects.insert(value.get().clone(), effect);
            }
            switches.insert(id.get().clone(), effects);
        }
        let mut started = Started {
            command,
            ready: self.ready(service),
            ready_within: self.duration(
                service.ready_within.as_ref(),
                "service.ready_within",
                10_000,
            ),
            stop_within: self.duration(service.stop_within.as_ref(), "service.stop_within", 2_000),
            switches,
            files: BTreeMap::new(),
            install: service.install.as_ref().map(|at| at.get().clone()),
            build: service
                .build
                .as_ref()
                .map(|build| Box::new(self.build(build))),
        };
        self.files(service, &mut started);
        started
    }

    fn build(&mut self, table: &At<BuildTable>) -> Build {
        let build = table.get();
        let texts = |list: &[At<String>]| list.iter().map(|at| at.get().clone()).collect();
        let command = build.command.get();
        if command
            .first()
            .is_none_or(|program| program.get().trim().is_empty())
        {
            let message = "the program is missing";
            self.problems
                .add(build.command.span(), "service.build.command", message);
        }
        let sources = build.sources.get();
        if sources.is_empty() {
            let message = "nothing would be built; name the files that the build reads";
            self.problems
                .add(build.sources.span(), "service.build.sources", message);
        }
        for source in sources {
            if files::misnamed(source.get()).is_some() {
                let message = format!(
                    "'{}' is not below the folder of the scenario; write it as pom.xml or src/main",
                    source.get()
                );
                self.problems
                    .add(source.span(), "service.build.sources", message);
            }
        }
        Build {
            command: texts(command),
            sources: texts(sources),
            within: self.duration(build.within.as_ref(), "service.build.within", 600_000),
            install: build.install.as_ref().map(|at| at.get().clone()),
        }
    }

    /// Whether `{built}` has a meaning, and is used where it has one.
    fn built(&mut self, document: &Document, started: &Started, workload: &Parameters) {
        let service = document.service.get();
        let is_named = started.names_built(workload, service.build.is_some());
        let Some(command) = &service.command else {
            return;
        };
        let (at, key, message) = match &service.build {
            None if is_named => (command.span(), "service", FillError::NoBuild.to_string()),
            Some(build) if !is_named => (
                build.span(),
                "service.build",
                "the result is in the folder '{built}', which no command or file of the scenario contains; \
                 for example command = [\"{built}/server\"]"
                    .to_owned(),
            ),
            _ => return,
        };
        self.problems.add(at, key, message);
    }

    /// The files of the service, and whether every text of a switch has a place in them.
    fn files(&mut self, service: &ServiceTable, started: &mut Started) {
        let inline = service.files.iter().map(|file| (file, "service.files"));
        let templates = service
            .templates
            .iter()
            .map(|file| (file, "service.templates"));
        for ((name, text), table) in inline.chain(templates) {
            let key = format!("{table}.\"{}\"", name.get());
            if let Some(why) = files::misnamed(name.get()) {
                self.problems.add(name.span(), &key, why);
            }
            if started.files.contains_key(name.get()) {
                let message = "[service.files] contains this file already; remove one of them";
                self.problems.add(name.span(), &key, message);
            } else {
                let mut others = started.files.keys();
                if let Some(why) = others.find_map(|other| files::conflict(name.get(), other)) {
                    self.problems.add(name.span(), &key, why);
                }
            }
            let source = if table == "service.files" {
                self.slips(text.get(), text.span(), &started.switches, true, &key);
                Source::Inline(text.get().clone())
            } else {
                let at = self.place(text.span(), &key);
                self.files.templates.insert(name.get().clone(), at);
                Source::Template {
                    path: text.get().clone(),
                    text: None,
                }
            };
            started.files.insert(name.get().clone(), source);
        }
        for (id, values) in &service.switches {
            for (value, effect) in values {
                if let SwitchEffect::Text(text) = effect.get() {
                    let key = format!("service.switches.\"{}\".{}", id.get(), value.get());
                    self.slips(text, effect.span(), &started.switches, false, &key);
                }
            }
        }
        let mut words = started.command.iter();
        if let (Some(command), Some(_)) = (&service.command, started.files.first_key_value())
            && !words.any(|word| word.contains("{scratch}"))
        {
            let message =
                "the files are written into '{scratch}', which the command does not contain";
            self.problems
                .add(command.span(), "service.command", message);
        }
        // A slip in a file is why a text has no place.
        if self.problems.mentions("service.files") {
            return;
        }
        for (id, message) in files::without_place(started) {
            if let Some(at) = self.files.switches.get(&id) {
                self.problems.put(Problem {
                    message,
                    ..at.clone()
                });
            }
        }
    }

    /// Notes the names that cannot be replaced in a text, each at its place.
    fn slips(
        &mut self,
        text: &str,
        span: Range<usize>,
        switches: &Switches,
        of_file: bool,
        key: &str,
    ) {
        for files::Mistake { name, at, why } in files::mistakes(text, switches, of_file) {
            // What TOML writes otherwise (\\, \n) moves places, but not the order of the names.
            let name = format!("{{{name}}}");
            let before = text[..at].matches(&name).count();
            let at = self.problems.find(span.clone(), &name, before);
            self.problems.add(at..at, key, why);
        }
    }

    /// The readiness check of the file.
    fn ready(&mut self, service: &ServiceTable) -> Option<ReadyBy> {
        let ServiceTable {
            ready_line: line,
            ready_tcp: tcp,
            ready_http: http,
            ..
        } = service;
        if let Some(tcp) = tcp {
            self.address(tcp.get(), "service.ready_tcp");
        }
        if let Some(http) = http {
            self.url(http, "service.ready_http");
        }
        let given = [
            ("ready_line", line),
            ("ready_tcp", tcp),
            ("ready_http", http),
        ];
        let given: Vec<_> = given
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.as_ref()?)))
            .collect();
        if let [others @ .., (_, last)] = &given[..]
            && !others.is_empty()
        {
            let named: Vec<String> = given.iter().map(|(key, _)| format!("'{key}'")).collect();
            let message = format!(
                "only one readiness check is allowed, not {}; keep the one that succeeds last",
                named.join(" and ")
            );
            self.problems.add(last.span(), "service", message);
        }
        let text = |at: &At<String>| at.get().clone();
        (line.as_ref().map(|line| ReadyBy::Line(text(line))))
            .or(tcp.as_ref().map(|tcp| ReadyBy::Tcp(text(tcp))))
            .or(http.as_ref().map(|http| ReadyBy::Http(text(http))))
    }

    fn url(&mut self, url: &At<String>, key: &str) {
        let filled: Result<Vec<String>, _> = SAMPLES
            .iter()
            .map(|address| fill(url.get(), &sample_places(address)))
            .collect();
        let why = match filled {
            Err(error) => error.to_string(),
            Ok(filled) if filled.iter().any(|url| Url::parse(url).is_ok()) => return,
            // The template as it is written, where it is the same for each address.
            Ok(filled) => match Url::parse(&filled[0]) {
                Err(why) => why,
                Ok(_) => return,
            },
        };
        self.problems.add(url.span(), key, why);
    }

    fn templates(&mut self, parts: &[At<String>], key: &str) -> Vec<String> {
        for part in parts {
            if let Err(error) = fill(part.get(), &sample_places("192.0.2.1")) {
                self.problems.add(part.span(), key, error.to_string());
            }
        }
        parts.iter().map(|part| part.get().clone()).collect()
    }

    fn topology(&mut self, document: &Document, service: Option<&Service>) -> Option<Topology> {
        let running = matches!(service, Some(Service::Running(_)));
        let Some(at) = &document.topology else {
            return Some(if running {
                Topology::Host { device: None }
            } else {
                Topology::Namespaces {
                    queues: Count::Cpus,
                }
            });
        };
        let table = at.get();
        match table.kind {
            TopologyKind::Host => {
                if let Some(queues) = &table.queues {
                    let message = "queues need kind = \"namespaces\"; remove it or change the kind";
                    self.problems.add(queues.span(), "topology.queues", message);
                }
                Some(Topology::Host {
                    device: table.device.as_ref().map(|device| device.get().clone()),
                })
            }
            TopologyKind::Namespaces if running => {
                let message = "a running service cannot be moved into a namespace; set 'command', or use kind = \"host\"";
                self.problems.add(at.span(), "topology.kind", message);
                None
            }
            TopologyKind::Namespaces => {
                if let Some(device) = &table.device {
                    let message =
                        "namespaces have their own devices; remove it or use kind = \"host\"";
                    self.problems.add(device.span(), "topology.device", message);
                }
                // rtnl_create_link (net/core/rtnetlink.c) refuses more.
                let queues = self.count(table.queues.as_ref(), "topology.queues", 4096);
                Some(Topology::Namespaces { queues })
            }
        }
    }

    fn name(&mut self, id: &At<String>, value: Option<&At<String>>, switch: bool, key: &str) {
        self.named.push(Named {
            knob: id.get().clone(),
            value: value.map(|value| value.get().clone()),
            switch,
            id_at: self.place(id.span(), key),
            value_at: self.place(value.map_or(id.span(), At::span), key),
        });
    }

    /// Notes a problem of the value with this path, or of `whole` where it is not written.
    pub(super) fn note(&mut self, path: &str, whole: &Range<usize>, message: impl Into<String>) {
        let span = self.spans.get(path).unwrap_or(whole).clone();
        self.problems.add(span, path, message);
    }

    /// A problem that others may find here later.
    fn place(&self, span: Range<usize>, key: &str) -> Problem {
        let (line, column) = self.problems.place(span.start);
        Problem {
            line,
            column,
            key: key.to_owned(),
            message: String::new(),
        }
    }
}

/// An address of each family, for either may take the place of a placeholder.
pub(super) const SAMPLES: [&str; 2] = ["192.0.2.1", "2001:db8::1"];

/// Stand-ins from the blocks for documentation (RFC 5737, RFC 3849): enough to see whether a template can be filled.
pub(super) fn sample_places(address: &str) -> Places {
    Places {
        server: address.to_owned(),
        client: address.to_owned(),
        device: Some("eth0".to_owned()),
        cpus: 1,
        rungwise: "rungwise".to_owned(),
        scratch: "/tmp".to_owned(),
        built: Some("/tmp".to_owned()),
    }
}
