//! Turns a scenario and the abilities of this machine into a lab that can be built.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rungwise_host::files;
use rungwise_host::process::{Ready, Url};
use rungwise_load::Parameters;
use rungwise_load::engine::Arrival;
use rungwise_load::parameters::{Load, Probe, Site, Target, WrittenTarget};

use super::allocation;
use super::program::Program;
use super::topology::Wanted;
use crate::scenario::command::Output;
use crate::scenario::{JvmReadings, Places, ReadyBy, Scenario, Service, Topology, fill};
use crate::stage::{Changes, Setting};

/// What the machine and the user allow.
#[derive(Clone, Debug)]
pub struct Means {
    /// Path of this program.
    pub rungwise: String,
    /// CPUs that may be used.
    pub cpus: Vec<usize>,
    /// Why network namespaces are unavailable, if they are.
    pub no_namespaces: Option<String>,
    /// Folder of the built service, where the scenario builds one.
    pub built: Option<String>,
}

/// What loads the service; a variant may change a part of it.
#[derive(Clone, Debug)]
pub enum Loader {
    /// rungwise itself.
    Own(Box<Own>),
    /// A program.
    Program(Box<Program>),
}

/// Traffic by rungwise itself.
#[derive(Clone, Debug)]
pub struct Own {
    /// As the scenario has it.
    parameters: Parameters,
    pub(super) target: Target,
    cpus: Vec<usize>,
    /// The generator's device.
    device: Option<String>,
    /// Load before each measured window.
    pub warmup: Duration,
    /// Requests before each measured window instead, 0 for none.
    pub(super) warmup_requests: u64,
    /// Requests whose allocation is counted; absent, as many as were answered.
    pub(super) counted_requests: Option<u64>,
    /// Measured length of a run.
    pub measure: Duration,
    /// Loads that are already prepared, by the changes to the parameters: files are read once.
    made: Vec<(Changes, Arc<dyn Load>)>,
}

impl Own {
    /// With these changes the loop is closed: the load is silent as soon as its replies are there.
    pub(super) fn is_closed(&self, changes: &Changes) -> bool {
        let Ok(parameters) = changes.applied(&self.parameters) else {
            return false;
        };
        let driven = parameters.traffic().driven();
        driven.is_some_and(|driven| driven.schedule().arrival() == Arrival::Closed)
    }

    /// The traffic with these changes.
    pub(super) fn load(&mut self, changes: &Changes) -> Result<Arc<dyn Load>, String> {
        if let Some((_, load)) = self.made.iter().find(|(made, _)| made == changes) {
            return Ok(load.clone());
        }
        let parameters = changes.applied(&self.parameters)?;
        let driven = parameters.traffic().driven();
        let driven = driven.ok_or("a program drives this workload")?;
        let site = Site {
            target: self.target.clone(),
            cpus: &self.cpus,
            device: self.device.as_deref(),
            read: &|file| files::read(Path::new(file)).map_err(|error| error.to_string()),
        };
        let load = driven.prepare(&site).map_err(|error| error.to_string())?;
        let load: Arc<dyn Load> = Arc::from(load);
        self.made.push((changes.clone(), load.clone()));
        Ok(load)
    }
}

/// How to build a lab.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// Where the two ends are.
    pub topology: Wanted,
    /// The service.
    pub service: Service,
    /// What its placeholders stand for.
    pub places: Places,
    /// What loads the service.
    pub loader: Loader,
    /// The traffic in words.
    words: String,
    /// How a service that is started shows that it can take work.
    pub(crate) ready: Ready,
    /// CPUs that may be used.
    pub cpus: Vec<usize>,
    /// Variants take turns where they can.
    pub(crate) turns: bool,
    /// What is asked of the service's JVM in each run.
    pub(crate) jvm_readings: JvmReadings,
    /// Neither a rate nor a latency is judged.
    pub(crate) untimed: bool,
}

/// Why a scenario cannot be built here, one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unbuildable(String);

impl Blueprint {
    /// Resolves `scenario` for this machine.
    pub fn resolve(scenario: &Scenario, means: &Means) -> Result<Self, Unbuildable> {
        let cpus = means.cpus.len();
        let topology = match (&scenario.topology, &means.no_namespaces) {
            (Topology::Namespaces { .. }, Some(why)) => Wanted::Loopback { why: why.clone() },
            (Topology::Namespaces { queues }, None) => Wanted::Namespaces {
                queues: queues.on(cpus) as u32,
            },
            (Topology::Host { device }, _) => Wanted::Host {
                device: device.clone(),
            },
        };
        let places = Places {
            server: topology.server().to_string(),
            client: topology.client().to_string(),
            device: topology.device().map(str::to_owned),
            cpus,
            rungwise: means.rungwise.clone(),
            // Each run has one of its own.
            scratch: "{scratch}".to_owned(),
            built: means.built.clone(),
        };
        let target = match scenario.workload.traffic().target() {
            WrittenTarget::Address(text) => Target::Address(target(text, &places)?),
            WrittenTarget::Unix(path) => Target::Unix(path.into()),
        };
        let (loader, words, answer) = if let Parameters::Command(command) = &scenario.workload {
            let program = Program {
                command: command.clone(),
                output: Output::from_parameters(command).map_err(Unbuildable)?,
                target: target
                    .address()
                    .expect("programs ask an address and a port"),
                measure: scenario.measure,
                warmup_requests: scenario.warmup_requests,
            };
            let words = program.to_string();
            (Loader::Program(Box::new(program)), words, Probe::Connection)
        } else {
            let mut own = Own {
                parameters: scenario.workload.clone(),
                target: target.clone(),
                cpus: means.cpus.clone(),
                device: topology.client_device().map(str::to_owned),
                warmup: scenario.warmup,
                warmup_requests: scenario.warmup_requests,
                counted_requests: scenario.counted_requests,
                measure: scenario.measure,
                made: Vec::new(),
            };
            let load = own.load(&Changes::NONE).map_err(Unbuildable)?;
            let mut words = match scenario.warmup_requests {
                0 => format!("{load}; warm-up {} ms", scenario.warmup.as_millis()),
                requests => format!("{load}; warm-up {requests} requests"),
            };
            if let Some(counted) = scenario.counted_requests {
                let _ = write!(words, ", {counted} requests counted");
            }
            (Loader::Own(Box::new(own)), words, load.probe())
        };
        let answer = match (answer, target) {
            (Probe::Datagram(request), Target::Address(address)) => Ready::Udp { address, request },
            (Probe::Connection, Target::Address(address)) => Ready::Tcp(address),
            (_, Target::Unix(path)) => Ready::Unix(path),
        };
        let ready = ready(&scenario.service, answer, &places)?;
        Ok(Self {
            ready,
            topology,
            service: scenario.service.clone(),
            places,
            loader,
            words,
            cpus: means.cpus.clone(),
            // Counted requests come before and after a run, and have no turns; nor has a collection, which would reach into those of the other.
            turns: scenario.turns
                && scenario.jvm_readings == JvmReadings::default()
                && scenario.warmup_requests == 0,
            jvm_readings: scenario.jvm_readings,
            untimed: !scenario.judging.is_timed(),
        })
    }

    /// Measured seconds of a run.
    pub fn measured_s(&self) -> f64 {
        match &self.loader {
            Loader::Own(own) => own.measure.as_secs_f64(),
            Loader::Program(program) => program.measure.as_secs_f64(),
        }
    }

    /// Seconds of a run before it is measured.
    pub fn warmup_s(&self) -> f64 {
        match &self.loader {
            Loader::Own(own) => own.warmup.as_secs_f64(),
            Loader::Program(_) => 0.0,
        }
    }

    /// Seconds of a run after it is measured, about: blocks of counted requests for what they allocate.
    pub fn counted_s(&self) -> f64 {
        match &self.loader {
            Loader::Own(own) if self.jvm_readings.allocation && own.counted_requests.is_none() => {
                allocation::PART * own.measure.as_secs_f64()
            }
            Loader::Own(_) | Loader::Program(_) => 0.0,
        }
    }

    /// Requests of a run that take as long as they take.
    pub fn requests(&self) -> u64 {
        match &self.loader {
            Loader::Own(own) => {
                let counted = own
                    .counted_requests
                    .filter(|_| self.jvm_readings.allocation);
                own.warmup_requests + counted.map_or(0, allocation::with_first)
            }
            Loader::Program(program) => {
                program.warmup_requests + program.command.requests.unwrap_or(0)
            }
        }
    }

    /// The load program whose own figures the runs have; absent where rungwise sends the requests.
    pub fn figures_of(&self) -> Option<String> {
        match &self.loader {
            Loader::Own(_) => None,
            Loader::Program(program) => program.command.command.first().cloned(),
        }
    }

    /// A known limit of the figures of a run.
    pub fn caveat(&self) -> Option<String> {
        let Loader::Program(program) = &self.loader else {
            return None;
        };
        let reader = program.output.reader?;
        (!reader.caveat.is_empty()).then(|| format!("figures of {}: {}", reader.id, reader.caveat))
    }

    /// The files of the service with these settings, by their names in its scratch folder.
    pub fn service_files(&self, settings: &BTreeMap<Setting, String>) -> BTreeMap<String, String> {
        match &self.service {
            // What cannot be filled fails the run, which says so.
            Service::Started(started) => started
                .files_for(settings, &self.places)
                .unwrap_or_default(),
            Service::Running(_) => BTreeMap::new(),
        }
    }

    /// What these settings change about the `java` of the service's command, in words; nothing where they change none.
    pub fn java_changes(&self, settings: &BTreeMap<Setting, String>) -> Option<String> {
        let Service::Started(started) = &self.service else {
            return None;
        };
        started.java_command(settings, &self.places).ok()?.changes()
    }

    /// The command line of the service with these settings, or which process it is.
    pub fn service_line(&self, settings: &BTreeMap<Setting, String>) -> String {
        match &self.service {
            Service::Started(started) => started
                .command_for(settings, &self.places)
                .map_or_else(|error| error.to_string(), |argv| argv.join(" ")),
            Service::Running(existing) => format!("{existing} (already running)"),
        }
    }
}

/// The readiness check of the scenario, else `answer`.
fn ready(service: &Service, answer: Ready, places: &Places) -> Result<Ready, Unbuildable> {
    let Service::Started(started) = service else {
        return Ok(answer);
    };
    Ok(match &started.ready {
        None => answer,
        Some(ReadyBy::Line(line)) => Ready::Line(line.clone()),
        Some(ReadyBy::Tcp(address)) => Ready::Tcp(target(address, places)?),
        Some(ReadyBy::Http(url)) => {
            let url = fill(url, places).map_err(|error| Unbuildable(error.to_string()))?;
            Ready::Http(Url::parse(&url).map_err(Unbuildable)?)
        }
    })
}

/// The address that a template names here.
fn target(template: &str, places: &Places) -> Result<SocketAddr, Unbuildable> {
    let target = fill(template, places).map_err(|error| Unbuildable(error.to_string()))?;
    target.parse().map_err(|_| {
        Unbuildable(format!(
            "cannot reach '{target}': not an address with a port; write 127.0.0.1:53 or [::1]:53"
        ))
    })
}

impl fmt::Display for Blueprint {
    /// The traffic in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, measured {:.0} ms a run",
            self.words,
            self.measured_s() * 1e3
        )
    }
}
