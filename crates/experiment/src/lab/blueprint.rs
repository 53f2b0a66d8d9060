//! From a scenario and what this machine allows to a lab that can be built.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use rungwise_host::files;
use rungwise_host::process::{Ready, Url};
use rungwise_load::dns;
use rungwise_load::udp::{Arrival, Payload, Stop, Workload, XdpDevice};

use super::program::Program;
use super::topology::Wanted;
use crate::scenario::{self, Places, ReadyBy, Request, Scenario, Service, Topology, Udp, fill};
use crate::stage::Setting;

/// What the machine and the user allow.
#[derive(Clone, Debug)]
pub struct Means {
    /// Path of this program.
    pub rungwise: String,
    /// CPUs that may be used.
    pub cpus: Vec<usize>,
    /// Why network namespaces cannot be had, if so.
    pub no_namespaces: Option<String>,
}

/// What loads the service; a variant may change a part of it.
#[derive(Clone, Debug)]
pub enum Load {
    /// Datagrams by rungwise itself.
    Udp(Box<Workload>),
    /// A program.
    Program(Box<Program>),
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
    pub load: Load,
    /// How a service that is started shows that it can take work.
    pub(crate) ready: Ready,
    /// CPUs that may be used.
    pub cpus: Vec<usize>,
}

/// Why a scenario cannot be built here, one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unbuildable(String);

impl Blueprint {
    /// Resolves `scenario` for this machine.
    pub fn of(scenario: &Scenario, means: &Means) -> Result<Self, Unbuildable> {
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
        };
        let load = match &scenario.workload {
            scenario::Workload::Udp(udp) => Load::Udp(Box::new(datagrams(
                scenario,
                udp,
                &places,
                &topology,
                &means.cpus,
            )?)),
            scenario::Workload::Command(command) => Load::Program(Box::new(Program {
                command: command.clone(),
                target: target(&command.target, &places)?,
                measure: scenario.measure,
            })),
        };
        let ready = ready(&scenario.service, &load, &places)?;
        Ok(Self {
            ready,
            topology,
            service: scenario.service.clone(),
            places,
            load,
            cpus: means.cpus.clone(),
        })
    }

    /// Measured seconds of a run; of a run bounded by a count, none are known.
    pub fn measured_s(&self) -> f64 {
        match &self.load {
            Load::Udp(workload) => match workload.stop {
                Stop::After(time) => time.as_secs_f64(),
                Stop::Count(_) => 0.0,
            },
            Load::Program(program) => program.measure.as_secs_f64(),
        }
    }

    /// Seconds of a run before it is measured.
    pub fn warmup_s(&self) -> f64 {
        match &self.load {
            Load::Udp(workload) => workload.warmup.as_secs_f64(),
            Load::Program(_) => 0.0,
        }
    }

    /// The load program whose own figures the runs have; absent where rungwise sends the requests.
    pub fn figures_of(&self) -> Option<String> {
        match &self.load {
            Load::Udp(_) => None,
            Load::Program(program) => program.command.command.first().cloned(),
        }
    }

    /// What the figures of a run cannot mean, where that is known.
    pub fn caveat(&self) -> Option<String> {
        match &self.load {
            Load::Udp(_) => None,
            Load::Program(program) => {
                let reader = program.command.output.reader?;
                (!reader.caveat.is_empty())
                    .then(|| format!("figures of {}: {}", reader.id, reader.caveat))
            }
        }
    }

    /// The command line of the service with these settings, or which process it is.
    pub fn service_line(&self, settings: &BTreeMap<Setting, String>) -> String {
        match &self.service {
            Service::Started(started) => started
                .command_for(settings, &self.places)
                .map_or_else(|error| error.to_string(), |argv| argv.join(" ")),
            Service::Running { pid } => format!("process {pid}, which runs already"),
        }
    }
}

/// The sign that its author named, else any reply to a request of the workload.
fn ready(service: &Service, load: &Load, places: &Places) -> Result<Ready, Unbuildable> {
    if let Service::Started(started) = service
        && let Some(by) = &started.ready
    {
        return Ok(match by {
            ReadyBy::Line(line) => Ready::Line(line.clone()),
            ReadyBy::Tcp(address) => Ready::Tcp(target(address, places)?),
            ReadyBy::Http(url) => {
                let url = fill(url, places).map_err(|error| Unbuildable(error.to_string()))?;
                Ready::Http(Url::parse(&url).map_err(Unbuildable)?)
            }
        });
    }
    let workload = match load {
        Load::Udp(workload) => workload,
        Load::Program(program) => return Ok(Ready::Tcp(program.target)),
    };
    let request = match &workload.payload {
        Payload::Sequenced { size } => vec![0; *size],
        Payload::Opaque(bytes) => bytes.clone(),
        Payload::Dns(queries) => queries
            .first()
            .map(|query| query.wire().to_vec())
            .unwrap_or_default(),
    };
    Ok(Ready::Udp {
        address: workload.target,
        request,
    })
}

/// The address that a template names here.
fn target(template: &str, places: &Places) -> Result<SocketAddr, Unbuildable> {
    let target = fill(template, places).map_err(|error| Unbuildable(error.to_string()))?;
    target.parse().map_err(|_| {
        Unbuildable(format!(
            "cannot reach '{target}': it is no address with a port; write 127.0.0.1:53 or [::1]:53"
        ))
    })
}

fn datagrams(
    scenario: &Scenario,
    wanted: &Udp,
    places: &Places,
    topology: &Wanted,
    cpus: &[usize],
) -> Result<Workload, Unbuildable> {
    let af_xdp = match (wanted.af_xdp, topology.client_device()) {
        (None, _) => None,
        (Some(mode), Some(device)) => Some(XdpDevice {
            device: device.to_owned(),
            mode,
        }),
        (Some(_), None) => {
            return Err(Unbuildable(
                "cannot load by AF_XDP: the generator has no device of its own here; use namespaces, name the topology's device, \
                 or take out workload.af_xdp"
                    .to_owned(),
            ));
        }
    };
    let target = target(&wanted.target, places)?;
    let payload = match &wanted.request {
        Request::Sized { bytes } => Payload::Sequenced { size: *bytes },
        Request::Opaque { file } => {
            let bytes =
                files::read(Path::new(file)).map_err(|error| Unbuildable(error.to_string()))?;
            Payload::Opaque(bytes)
        }
        Request::Dns { file } => {
            let text =
                files::read(Path::new(file)).map_err(|error| Unbuildable(error.to_string()))?;
            Payload::Dns(
                dns::parse(&text).map_err(|error| Unbuildable(format!("{file}: {error}")))?,
            )
        }
    };
    let workload = Workload {
        warmup: scenario.warmup,
        stop: Stop::After(scenario.measure),
        seed: scenario.judging.seed,
        af_xdp,
        ..wanted.driven(target, payload, cpus)
    };
    workload
        .check()
        .map_err(|error| Unbuildable(error.to_string()))?;
    Ok(workload)
}

impl fmt::Display for Blueprint {
    /// The traffic in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workload = match &self.load {
            Load::Udp(workload) => workload,
            Load::Program(program) => {
                return write!(
                    f,
                    "{} to {}, {} connections{}, measured {:.1} s a run",
                    program.command.command.join(" "),
                    program.target,
                    program.command.connections,
                    program
                        .command
                        .rate_per_s
                        .map_or_else(String::new, |rate| format!(", {rate:.0}/s")),
                    self.measured_s()
                );
            }
        };
        match &workload.payload {
            Payload::Sequenced { size } => write!(f, "{size}-byte requests")?,
            Payload::Opaque(bytes) => write!(f, "a fixed payload of {} bytes", bytes.len())?,
            Payload::Dns(queries) => write!(f, "{} DNS queries in turn", queries.len())?,
        }
        write!(f, " to {}, ", workload.target)?;
        match workload.arrival {
            Arrival::Closed => write!(
                f,
                "closed loop of {} threads x {} sockets x {} outstanding",
                workload.threads, workload.sockets, workload.depth
            )?,
            Arrival::Constant { per_s } => write!(f, "open loop at {per_s:.0}/s")?,
            Arrival::Ramp {
                from_per_s,
                to_per_s,
            } => write!(f, "open loop from {from_per_s:.0}/s to {to_per_s:.0}/s")?,
        }
        let by = match &workload.af_xdp {
            Some(at) => format!("by AF_XDP on {}, ", at.device),
            None => String::new(),
        };
        let pinned = if workload.pins.is_some() {
            "pinned"
        } else {
            "not pinned"
        };
        write!(
            f,
            ", threads {pinned}, {by}{} datagrams per system call, timeout {} ms; warm-up {} ms, measured {:.0} ms a run",
            workload.batch,
            workload.timeout.as_millis(),
            workload.warmup.as_millis(),
            self.measured_s() * 1e3
        )
    }
}
