//! Where the two ends of the traffic are: our own namespaces, loopback, or this host.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use rungwise_host::Host;
use rungwise_host::cpu::{CpuSource, Owner};
use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_host::veth::{self, End, Spec};
use rungwise_knobs::Place;
use rungwise_knobs::edit::Places;

use crate::stage::Side;

/// The topology a scenario asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Two namespaces joined by a veth pair with this many queues.
    Namespaces {
        /// Receive and transmit queues of each end.
        queues: u32,
    },
    /// Both ends on loopback because namespaces are unavailable, and why.
    Loopback {
        /// The reason.
        why: String,
    },
    /// This host; device knobs turn this device.
    Host {
        /// Its name, where the scenario has device knobs.
        device: Option<String>,
    },
}

/// Address of the answering end in the lab.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
/// Address of the asking end in the lab.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const SERVER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
const CLIENT_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));
const SERVER_DEVICE: &str = "rw-server";
const CLIENT_DEVICE: &str = "rw-client";

/// The topology as built.
#[derive(Debug)]
pub struct Topology {
    kind: Kind,
    losses: Vec<String>,
}

#[derive(Debug)]
enum Kind {
    Namespaces {
        server: Arc<Namespace>,
        client: Arc<Namespace>,
        queues: u32,
    },
    Loopback,
    Host {
        device: Option<String>,
    },
}

/// One end of the topology as the knobs see it.
pub(super) struct KnobEnd {
    pub(super) host: Arc<dyn Host>,
    pub(super) place: Place,
    pub(super) device: Option<String>,
}

impl KnobEnd {
    fn lab(namespace: &Arc<Namespace>, device: &str) -> Self {
        Self {
            place: Place::Namespace(namespace.name().to_owned()),
            host: Arc::clone(namespace) as Arc<dyn Host>,
            device: Some(device.to_owned()),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespaces { queues } => write!(
                f,
                "two network namespaces, a veth pair with {queues} queues between them"
            ),
            Self::Loopback { why } => write!(f, "loopback ({why})"),
            Self::Host { device: None } => f.write_str("this host"),
            Self::Host {
                device: Some(device),
            } => write!(f, "this host, device {device}"),
        }
    }
}

impl Wanted {
    /// Address of the server for `{server}` in a scenario.
    pub fn server(&self) -> IpAddr {
        match self {
            Self::Namespaces { .. } => SERVER,
            Self::Loopback { .. } | Self::Host { .. } => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// Device of the server for `{device}` in a scenario, where it has one of its own.
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::Namespaces { .. } => Some(SERVER_DEVICE),
            Self::Loopback { .. } => None,
            Self::Host { device } => device.as_deref(),
        }
    }

    /// Device by which the client reaches the server, where there is one of its own.
    pub fn client_device(&self) -> Option<&str> {
        match self {
            Self::Namespaces { .. } => Some(CLIENT_DEVICE),
            Self::Loopback { .. } => None,
            Self::Host { device } => device.as_deref(),
        }
    }

    /// Address of the client for `{client}` in a scenario.
    pub fn client(&self) -> IpAddr {
        match self {
            Self::Namespaces { .. } => CLIENT,
            Self::Loopback { .. } | Self::Host { .. } => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }
}

impl Topology {
    pub(super) fn build(wanted: &Wanted) -> rungwise_host::Result<Self> {
        Self::named(wanted, ["server", "client"])
    }

    /// The same once more beside it; `None` where there can be but one.
    pub(super) fn second(wanted: &Wanted) -> rungwise_host::Result<Option<Self>> {
        match wanted {
            Wanted::Namespaces { .. } => {
                Self::named(wanted, ["second server", "second client"]).map(Some)
            }
            Wanted::Loopback { .. } | Wanted::Host { .. } => Ok(None),
        }
    }

    fn named(wanted: &Wanted, [server, client]: [&str; 2]) -> rungwise_host::Result<Self> {
        match wanted {
            Wanted::Namespaces { queues } => {
                let server = Namespace::create(server)?;
                let client = Namespace::create(client)?;
                let end = |device: &str, v4, v6| End {
                    device: device.to_owned(),
                    addresses: vec![(v4, 24), (v6, 64)],
                };
                veth::connect(
                    &server,
                    &client,
                    &Spec {
                        queues: *queues,
                        ends: [
                            end(SERVER_DEVICE, SERVER, SERVER_V6),
                            end(CLIENT_DEVICE, CLIENT, CLIENT_V6),
                        ],
                    },
                )?;
                Ok(Self {
                    kind: Kind::Namespaces {
                        server: Arc::new(server),
                        client: Arc::new(client),
                        queues: *queues,
                    },
                    losses: Vec::new(),
                })
            }
            Wanted::Loopback { why } => Ok(Self {
                kind: Kind::Loopback,
                losses: vec![format!(
                    "no network namespaces: {why}; server and client use loopback, which has no queues and no driver, so device and \
                     network knobs (RPS, XPS, GRO, netfilter, source validation, XDP) cannot be tried"
                )],
            }),
            Wanted::Host { device } => Ok(Self {
                kind: Kind::Host {
                    device: device.clone(),
                },
                losses: Vec::new(),
            }),
        }
    }

    /// The end whose knobs are turned; why not where they may not be.
    pub(super) fn end(&self, side: Side) -> Result<KnobEnd, String> {
        match (&self.kind, side) {
            (Kind::Namespaces { server, .. }, Side::Server) => {
                Ok(KnobEnd::lab(server, SERVER_DEVICE))
            }
            (Kind::Namespaces { client, .. }, Side::Client) => {
                Ok(KnobEnd::lab(client, CLIENT_DEVICE))
            }
            (Kind::Loopback, _) => Err(
                "needs its own network namespace: on loopback it would change this host".to_owned(),
            ),
            (Kind::Host { device }, Side::Server) => Ok(KnobEnd {
                host: Arc::new(Live),
                place: Place::Host,
                device: device.clone(),
            }),
            (Kind::Host { .. }, Side::Client) => {
                Err("the client runs on this host too; set it on the server side".to_owned())
            }
        }
    }

    /// The place of the service, as probes see it.
    pub(super) fn seen(&self) -> Arc<dyn Host> {
        match &self.kind {
            Kind::Namespaces { server, .. } => Arc::clone(server) as Arc<dyn Host>,
            Kind::Loopback | Kind::Host { .. } => Arc::new(Live),
        }
    }

    pub(super) fn server_namespace(&self) -> Option<&Namespace> {
        match &self.kind {
            Kind::Namespaces { server, .. } => Some(server),
            _ => None,
        }
    }

    /// Where a program that loads the service runs, if not on the host as it is.
    pub(super) fn client_namespace(&self) -> Option<&Namespace> {
        match &self.kind {
            Kind::Namespaces { client, .. } => Some(client),
            _ => None,
        }
    }

    /// The CPU time of all processes in the namespace of the service, which it has to itself; none where it runs in that of the host.
    pub(super) fn namespace_cpu(&self) -> Option<CpuSource> {
        self.server_namespace().map(|server| {
            CpuSource::processes(
                Owner::Service,
                "the server's namespace",
                server.processes_fn(),
            )
        })
    }

    /// A message if a device of this topology no longer exists.
    pub(super) fn lost_device(&self) -> Option<String> {
        let there = |host: &dyn Host, device: &str| {
            // Where the list cannot be had, nothing is known of the device.
            let devices = host.list(Path::new("/sys/class/net"));
            devices.map_or(true, |devices| devices.iter().any(|name| name == device))
        };
        let lost = match &self.kind {
            Kind::Namespaces { server, client, .. } => {
                [(server, SERVER_DEVICE), (client, CLIENT_DEVICE)]
                    .into_iter()
                    .find(|(end, device)| !there(&***end, device))
                    .map(|(_, device)| device.to_owned())
            }
            Kind::Host {
                device: Some(device),
            } => (!there(&Live, device)).then(|| device.clone()),
            Kind::Loopback | Kind::Host { device: None } => None,
        };
        lost.map(|device| {
            format!(
                "the network device {device} was removed during the ladder; restore it, or leave the lab's devices alone, and continue \
                 with rungwise tune --resume"
            )
        })
    }

    /// What every generator thread does first.
    pub(super) fn client_entry(&self) -> Box<dyn Fn(usize) -> io::Result<()> + Sync> {
        match &self.kind {
            Kind::Namespaces { client, .. } => {
                let enter = client.enter_fn();
                Box::new(move |_| enter())
            }
            _ => Box::new(|_| Ok(())),
        }
    }

    pub(super) fn losses(&self) -> &[String] {
        &self.losses
    }

    pub(super) fn description(&self) -> Vec<String> {
        match &self.kind {
            Kind::Namespaces { queues, .. } => vec![
                format!(
                    "two network namespaces joined by a veth pair with {queues} receive and {queues} transmit queues at each end; server {SERVER}, client {CLIENT}"
                ),
                "on veth the sender's CPU runs the receiver's softirq, so each side's CPU time holds part of the other's receive path".to_owned(),
            ],
            Kind::Loopback => vec!["server and client over loopback".to_owned()],
            Kind::Host { device } => vec![format!(
                "this host{}",
                device.as_ref().map_or_else(String::new, |name| format!(", device {name}"))
            )],
        }
    }
}

/// Every place that edits may reach; the host too, since some knobs of a device have a part there.
pub(super) fn places(topologies: &[&Topology]) -> Places {
    let ends = topologies
        .iter()
        .flat_map(|topology| [Side::Server, Side::Client].map(|side| topology.end(side)));
    ends.flatten()
        .filter(|end| end.place != Place::Host)
        .fold(Places::host(Arc::new(Live)), |places, end| {
            places.with(end.place, end.host)
        })
}
