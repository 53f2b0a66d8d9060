//! From a scenario and what this machine allows to a lab that can be built.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use rungwise_host::files;
use rungwise_host::process::Ready;
use rungwise_load::dns;
use rungwise_load::udp::{Arrival, Payload, Stop, Workload, XdpDevice};

use super::topology::Wanted;
use crate::scenario::{Places, Request, Scenario, Service, Topology, fill};
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

/// How to build a lab.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// Where the two ends are.
    pub topology: Wanted,
    /// The service.
    pub service: Service,
    /// What its placeholders stand for.
    pub places: Places,
    /// The traffic; a variant may change burst, depth and batch.
    pub workload: Workload,
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
        };
        let workload = workload(scenario, &places, &topology, &means.cpus)?;
        Ok(Self {
            topology,
            service: scenario.service.clone(),
            places,
            workload,
            cpus: means.cpus.clone(),
        })
    }

    /// Measured seconds of a run; of a run bounded by a count, none are known.
    pub fn measured_s(&self) -> f64 {
        match self.workload.stop {
            Stop::After(time) => time.as_secs_f64(),
            Stop::Count(_) => 0.0,
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

    /// The line its author named, else any reply to a request of the workload.
    pub(super) fn ready(&self) -> Ready {
        if let Service::Started(started) = &self.service
            && let Some(line) = &started.ready_line
        {
            return Ready::Line(line.clone());
        }
        let request = match &self.workload.payload {
            Payload::Sequenced { size } => vec![0; *size],
            Payload::Opaque(bytes) => bytes.clone(),
            Payload::Dns(queries) => queries
                .first()
                .map(|query| query.wire().to_vec())
                .unwrap_or_default(),
        };
        Ready::Udp {
            address: self.workload.target,
            request,
        }
    }
}

fn workload(
    scenario: &Scenario,
    places: &Places,
    topology: &Wanted,
    cpus: &[usize],
) -> Result<Workload, Unbuildable> {
    let wanted = &scenario.workload;
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
    let target = fill(&wanted.target, places).map_err(|error| Unbuildable(error.to_string()))?;
    let target: SocketAddr = target.parse().map_err(|_| {
        Unbuildable(format!(
            "cannot load '{target}': it is no address with a port; write 127.0.0.1:53 or [::1]:53"
        ))
    })?;
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
        let workload = &self.workload;
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
