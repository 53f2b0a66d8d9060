//! UDP transactions: many small requests, each with one reply.
//!
//! [`run`] drives a [`Workload`] from plain threads, each with its own connected sockets, slots, histograms
//! and buffers, and merges what they counted. [`certify`] then judges whether the client spoiled the
//! numbers.

mod af_xdp;
mod batch;
mod generator;
mod matching;
mod parameters;
mod payload;
mod slots;
mod socket;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rungwise_model::load::{Second, Transport, TransportKind};

pub use rungwise_serve::udp::{XdpDevice, XdpMode};

pub use parameters::Parameters;
pub use payload::{HEADER, Payload};

use af_xdp::{Ground, Share};
use generator::{Generator, Origins};
use payload::Form;

use crate::Error;
use crate::engine::{self, Kind, Ledger, Plan};
pub use crate::engine::{
    Arrival, Completed, DROPS, Edge, FOREIGN, Hooks, LATE, ROOM, SATURATED, SERVER_BUSY, Stop,
    Surroundings, certify,
};
use crate::parameters::{Contradiction, Length, Load, Probe, refused};

/// What `rungwise explain udp` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "udp",
    by_hand: true,
    summary: "Many small requests, each a datagram with one datagram as its reply.",
    doc: "\
- **who**: `threads` x `sockets` connected sockets, so as many flows, send to one server. With `af_xdp` the same flows use the queues of a device.
- **messages**: numbered datagrams that an echo sends back (`size`), DNS queries from a file (`dns`), or the same bytes each time (`payload`).
- **when**: closed, with `depth` outstanding requests per socket, or open, at a constant or changing rate that does not wait for the server.
- **until**: a time or a count; then it waits for the last replies, for one `timeout` at most.
- **reported**: rate, latency from the intended and from the actual start, losses, late and duplicate replies, CPU per transaction, and \
    whether the generator spoiled the numbers.

In a scenario: `[workload]` with `kind = \"udp\"`. By hand: `rungwise load udp TARGET`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["batch", "burst", "depth"],
    warmup: Duration::from_millis(100),
    measure: Duration::from_millis(300),
    quick: Duration::from_millis(120),
};

/// The largest UDP payload, bytes: what IPv4 can carry.
pub const LARGEST_PAYLOAD: usize = 65_507;
/// Most datagrams that every kernel with `UDP_SEGMENT` takes in one burst (`UDP_MAX_SEGMENTS` before Linux
/// 6.9).
pub const LARGEST_BURST: u16 = 64;
/// Most outstanding requests per socket: a ticket keeps 16 bits for its slot.
pub const LARGEST_DEPTH: usize = 1 << 16;
/// Most outstanding queries per socket: of the 16 bits of a DNS id, 4 distinguish an old reply from a new one.
pub const LARGEST_DNS_DEPTH: usize = 1 << 12;
/// Ports of an address; 0 is none.
const PORTS: usize = 65_535;
/// Most datagrams per system call (the kernel's own limit, `UIO_MAXIOV`).
pub const LARGEST_BATCH: usize = 1024;

/// Target, requests, schedule and threads.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The server.
    pub target: SocketAddr,
    /// Source address; the kernel's choice when absent.
    pub source: Option<IpAddr>,
    /// Generator threads.
    pub threads: usize,
    /// Sockets, and so source ports, per thread.
    pub sockets: usize,
    /// Most outstanding requests per socket; in a closed loop, always as many.
    pub depth: usize,
    /// CPUs of the threads, used in turn; unpinned when absent.
    pub pins: Option<Vec<usize>>,
    /// When requests are sent.
    pub arrival: Arrival,
    /// What they contain.
    pub payload: Payload,
    /// Most datagrams per system call.
    pub batch: usize,
    /// Datagrams of one flow that leave as one `UDP_SEGMENT` burst; replies are taken joined (`UDP_GRO`).
    /// Helps, and is realistic, only where one peer really sends several datagrams at once.
    pub burst: Option<u16>,
    /// A request without a reply is given up after this, counted from its send.
    pub timeout: Duration,
    /// Load before the measured window.
    pub warmup: Duration,
    /// When the measured window ends.
    pub stop: Stop,
    /// Makes this run's requests its own: replies to a run with another seed are foreign.
    pub seed: u64,
    /// Forbid fragments (`IP_PMTUDISC_DO`); the kernel then also skips choosing an IP id.
    pub pmtudisc_do: bool,
    /// Send and receive by the queues of this device (`AF_XDP`, Linux 5.9) instead of by sockets; the route to the target
    /// must lead through it. Needs a queue per thread and the rights to attach a program to the device.
    pub af_xdp: Option<XdpDevice>,
}

/// Drives `workload` and measures it.
pub fn run(workload: &Workload, hooks: &Hooks) -> Result<Completed, Error> {
    engine::run(workload, hooks, &mut |_| {})
}

/// Like [`run`], and reports each second of the window soon after it has passed.
pub fn run_watched(
    workload: &Workload,
    hooks: &Hooks,
    each_second: &mut dyn FnMut(&Second),
) -> Result<Completed, Error> {
    engine::run(workload, hooks, each_second)
}

impl Workload {
    /// Refuses contradictory parameters.
    pub fn check(&self) -> Result<(), Error> {
        refused(self.target, self.contradictions())
    }

    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        let within = Contradiction::outside;
        let about = |keys, why: Option<String>| why.map(|why| Contradiction { keys, why });
        let sockets = "the number of sockets per thread";
        let mut found = self.plan().contradictions();
        found.extend(within(
            &["sockets"],
            sockets,
            self.sockets,
            (1, LARGEST_DEPTH),
        ));
        found.extend(within(
            &["depth"],
            "the depth",
            self.depth,
            (1, LARGEST_DEPTH),
        ));
        found.extend(within(
            &["batch"],
            "the batch",
            self.batch,
            (1, LARGEST_BATCH),
        ));
        found.extend(self.wrong_payload());
        if found.is_empty() {
            let burst = self.burst.and_then(|burst| self.wrong_burst(burst));
            let af_xdp = self.af_xdp.as_ref().and_then(|_| self.not_by_af_xdp());
            found.extend(about(&["sockets", "threads"], self.too_many_ports()));
            found.extend(about(&["burst", "depth", "size"], burst));
            found.extend(about(&["burst", "af_xdp"], af_xdp));
            found.extend(about(&["source"], self.wrong_source()));
        }
        found
    }

    /// All sockets have one address and ask one target, so each needs a port of its own.
    fn too_many_ports(&self) -> Option<String> {
        let ports = self.threads * self.sockets;
        (ports > PORTS).then(|| {
            format!(
                "{} threads x {} sockets need {ports} source ports, but an address has {PORTS}; use fewer sockets",
                self.threads, self.sockets
            )
        })
    }

    fn wrong_payload(&self) -> Option<Contradiction> {
        let wrong = |keys, why: String| Some(Contradiction { keys, why });
        match &self.payload {
            Payload::Sequenced { size } if !(HEADER..=LARGEST_PAYLOAD).contains(size) => wrong(
                &["size"],
                format!(
                    "the size is {size} bytes; numbered requests need {HEADER} to {LARGEST_PAYLOAD}"
                ),
            ),
            Payload::Opaque(bytes) if bytes.len() > LARGEST_PAYLOAD => wrong(
                &["payload"],
                format!(
                    "the payload has {} bytes; a datagram holds {LARGEST_PAYLOAD}",
                    bytes.len()
                ),
            ),
            Payload::Opaque(_) if self.depth != 1 => wrong(
                &["depth"],
                format!(
                    "the depth is {}, but replies to a given payload carry no number, so only one request per socket \
                     can be told apart; use depth 1 and more sockets",
                    self.depth
                ),
            ),
            Payload::Dns(queries) if queries.is_empty() => {
                wrong(&["dns"], "there is no query to send".to_owned())
            }
            Payload::Dns(_) if self.depth > LARGEST_DNS_DEPTH => wrong(
                &["depth"],
                format!(
                    "the depth is {}; the 16-bit id of DNS allows {LARGEST_DNS_DEPTH} per socket, so use more sockets",
                    self.depth
                ),
            ),
            _ => None,
        }
    }

    fn wrong_burst(&self, burst: u16) -> Option<String> {
        let Payload::Sequenced { size } = self.payload else {
            return Some("bursts need numbered requests of one size (--size); send the payload without a burst".to_owned());
        };
        let count = usize::from(burst);
        if !(2..=LARGEST_BURST).contains(&burst) {
            Some(format!(
                "the burst is {burst}; it must be 2 to {LARGEST_BURST}"
            ))
        } else if self.depth < count {
            Some(format!(
                "the depth {} is below the burst {burst}; use at least depth {burst}",
                self.depth
            ))
        } else if count * size > LARGEST_PAYLOAD {
            let fits = LARGEST_PAYLOAD / size;
            let remedy = if fits >= 2 {
                format!("use a burst of {fits}")
            } else {
                format!(
                    "send without a burst, or requests of up to {} bytes",
                    LARGEST_PAYLOAD / 2
                )
            };
            Some(format!(
                "a burst of {burst} x {size} bytes does not fit {LARGEST_PAYLOAD} bytes; {remedy}"
            ))
        } else {
            None
        }
    }

    fn not_by_af_xdp(&self) -> Option<String> {
        let ports = self.threads.saturating_mul(self.sockets);
        let group = match self.target.ip() {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_multicast(),
        };
        if self.burst.is_some() {
            Some("AF_XDP sends single frames, and bursts need a socket; choose one".to_owned())
        } else if ports > af_xdp::LARGEST_RUN {
            Some(format!(
                "AF_XDP needs contiguous source ports, and threads x sockets is {ports}; use at most {}",
                af_xdp::LARGEST_RUN
            ))
        } else {
            group.then(|| {
                "a multicast or broadcast target has no neighbour to resolve; load without AF_XDP".to_owned()
            })
        }
    }

    fn wrong_source(&self) -> Option<String> {
        let source = self.source?;
        (source.is_ipv4() != self.target.is_ipv4()).then(|| {
            format!("the source {source} has another address family than the target; use an address of the same family")
        })
    }
}

impl Load for Workload {
    fn probe(&self) -> Probe {
        Probe::Datagram(match &self.payload {
            Payload::Sequenced { size } => vec![0; *size],
            Payload::Opaque(bytes) => bytes.clone(),
            Payload::Dns(queries) => {
                let first = queries.first();
                first.map(|query| query.wire().to_vec()).unwrap_or_default()
            }
        })
    }

    fn run(
        &self,
        length: &Length,
        hooks: &Hooks<'_>,
        each_second: &mut dyn FnMut(&Second),
    ) -> Result<Completed, Error> {
        let workload = Self {
            warmup: length.warmup,
            stop: length.stop,
            seed: length.seed,
            ..self.clone()
        };
        run_watched(&workload, hooks, each_second)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.payload {
            Payload::Sequenced { size } => write!(f, "{size}-byte requests")?,
            Payload::Opaque(bytes) => write!(f, "a fixed payload of {} bytes", bytes.len())?,
            Payload::Dns(queries) => write!(f, "{} DNS queries in turn", queries.len())?,
        }
        write!(f, " to {}, {}", self.target, self.arrival)?;
        if self.arrival == Arrival::Closed {
            write!(
                f,
                " of {} threads x {} sockets x {} outstanding",
                self.threads, self.sockets, self.depth
            )?;
        }
        let by = match &self.af_xdp {
            Some(at) => format!("by AF_XDP on {}, ", at.device),
            None => String::new(),
        };
        let pinned = if self.pins.is_some() {
            "pinned"
        } else {
            "not pinned"
        };
        write!(
            f,
            ", threads {pinned}, {by}{} datagrams per system call, timeout {} ms",
            self.batch,
            self.timeout.as_millis(),
        )
    }
}

impl Kind for Workload {
    type Ground = Option<Ground>;
    type Seat = Option<Share>;
    type Driver<'a> = Generator<'a>;
    type Own = Origins;

    fn plan(&self) -> Plan {
        Plan {
            target: self.target.into(),
            threads: self.threads,
            pins: self.pins.clone(),
            arrival: self.arrival,
            timeout: self.timeout,
            warmup: self.warmup,
            stop: self.stop,
        }
    }

    fn check(&self) -> Result<(), Error> {
        Self::check(self)
    }

    /// One for each socket, one for epoll.
    fn files(&self) -> usize {
        1 + match &self.af_xdp {
            None => self.sockets,
            Some(_) => af_xdp::ports_of_a_thread(self),
        }
    }

    fn errors(&self) -> &'static [&'static str] {
        &matching::ERRORS
    }

    /// Opens the device's queues where the generators will be.
    fn prepare(
        &self,
        enter: &(dyn Fn() -> Result<(), Error> + Sync),
    ) -> Result<(Option<Ground>, Vec<Option<Share>>), Error> {
        let Some(at) = &self.af_xdp else {
            return Ok((None, (0..self.threads).map(|_| None).collect()));
        };
        let open = || {
            enter()?;
            let form = Form::new(&self.payload);
            let wish = generator::wish(self, &form);
            af_xdp::open(self, at, &wish, form.longest_request())
        };
        // A thread of its own: it stays where it has entered.
        let mut ground = std::thread::scope(|scope| {
            let opened = scope.spawn(open).join();
            opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let shares = std::mem::take(&mut ground.shares);
        Ok((Some(ground), shares.into_iter().map(Some).collect()))
    }

    fn driver<'a>(
        &'a self,
        ledger: Ledger<'a>,
        share: Option<Share>,
    ) -> Result<Generator<'a>, Error> {
        Generator::new(self, ledger, share)
    }

    fn complete(&self, ground: &Option<Ground>, own: Vec<Origins>, completed: &mut Completed) {
        if let (Some(at), Some(ground)) = (&self.af_xdp, ground) {
            completed.measurement.client.transport = transport(at, ground, &own);
        }
    }
}

/// The path of the datagrams.
fn transport(at: &XdpDevice, ground: &Ground, origins: &[Origins]) -> Transport {
    let by_queue: u64 = origins.iter().map(|thread| thread.by_queue).sum();
    let by_socket: u64 = origins.iter().map(|thread| thread.by_socket).sum();
    let all = by_queue + by_socket;
    Transport {
        kind: TransportKind::AfXdp,
        device: Some(at.device.clone()),
        native: Some(at.mode == XdpMode::Native),
        queues: Some(ground.queues),
        by_queue: (all > 0).then(|| by_queue as f64 / all as f64),
    }
}
