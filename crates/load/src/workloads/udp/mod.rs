//! UDP transactions: many small requests, each with one reply.
//!
//! [`run`] drives a [`Workload`] from plain threads, each with its own connected sockets, slots, histograms
//! and buffers, and merges what they counted. [`certify`] then judges whether the client spoiled the
//! numbers.

mod af_xdp;
mod batch;
mod books;
mod coordinate;
mod generator;
mod health;
mod payload;
mod schedule;
mod slots;
mod socket;
mod tally;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rungwise_model::load::{Measurement, Second};
use rungwise_stats::histogram::Histogram;

pub use rungwise_serve::udp::{XdpDevice, XdpMode};

pub use health::{DROPS, FOREIGN, LATE, ROOM, SATURATED, SERVER_BUSY, Surroundings, certify};
pub use payload::{HEADER, Payload};

use crate::Error;

/// What `rungwise explain udp` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "udp",
    by_hand: true,
    summary: "Many small requests, each a datagram, each with one datagram as its reply.",
    doc: "\
- **who**: `threads` x `sockets` connected sockets, so as many flows, ask one server. With `af_xdp` the same flows leave and come by the queues of a device.
- **messages**: numbered datagrams that an echo sends back (`size`), DNS queries of a file (`dns`), or the same bytes each time (`payload`).
- **when**: closed, with `depth` requests under way per socket, or open, at a constant or changing rate that does not wait for the server.
- **until**: a time or a count; then it waits for the last replies, for one `timeout` at most.
- **told**: rate, latency from the intended and from the real start, losses, late and second replies, CPU per transaction, and whether the generator spoiled the numbers.

In a scenario: `[workload]` with `kind = \"udp\"`. By hand: `rungwise load udp TARGET`.",
};

/// The largest UDP payload, bytes: what IPv4 can carry.
pub const LARGEST_PAYLOAD: usize = 65_507;
/// Most datagrams that every kernel with `UDP_SEGMENT` takes in one burst (`UDP_MAX_SEGMENTS` before Linux
/// 6.9).
pub const LARGEST_BURST: u16 = 64;
/// Most outstanding requests per socket: a ticket keeps 16 bits for its slot.
pub const LARGEST_DEPTH: usize = 1 << 16;
/// Most outstanding queries per socket: of the 16 bits of a DNS id, 4 tell an old reply from a new one.
pub const LARGEST_DNS_DEPTH: usize = 1 << 12;
/// Ports of an address; 0 is none.
const PORTS: usize = 65_535;
/// Most datagrams per system call (the kernel's own limit, `UIO_MAXIOV`).
pub const LARGEST_BATCH: usize = 1024;

/// Who is asked what, how often, by whom.
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
    /// Helps, and is true to life, only where one peer really sends several datagrams at once.
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

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Closed loop: the next request leaves when a reply (or a timeout) has freed its slot.
    Closed,
    /// Open loop at a constant rate over all threads, requests per second.
    Constant {
        /// Requests per second.
        per_s: f64,
    },
    /// Open loop whose rate changes linearly over the window.
    Ramp {
        /// Requests per second at the window's beginning, and during the warm-up.
        from_per_s: f64,
        /// Requests per second at its end.
        to_per_s: f64,
    },
}

/// When the measured window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this time.
    After(Duration),
    /// When exactly this many requests have been sent, and each has its reply or its timeout.
    Count(u64),
}

/// An edge of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The window begins now.
    Began,
    /// The window ends now.
    Ended,
}

/// What the caller wants to happen at certain moments.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// Called first in every generator thread with its number, before sockets are opened, for instance to
    /// enter a network namespace.
    pub thread_start: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
    /// Called at both edges of the measured window from the thread that called [`run`].
    pub window: &'a (dyn Fn(Edge) + Sync),
    /// Raised by the caller to end the run; looked at every 20 ms.
    pub interrupted: &'a AtomicBool,
}

/// A finished run.
#[derive(Clone, Debug, Default)]
pub struct Completed {
    /// The numbers; not certified before [`certify`] says so.
    pub measurement: Measurement,
    /// Latency from the intended start, ns.
    pub corrected: Histogram,
    /// Latency from the send, ns.
    pub uncorrected: Histogram,
    /// CPU seconds of the generator's threads within the window.
    pub client_cpu_s: f64,
    /// Replies in time that came within the window, whenever they were asked for: what its CPU time was spent on.
    pub arrived: u64,
    /// Requests of the window that were answered in time with an error instead of an answer: DNS codes other than NOERROR
    /// and NXDOMAIN.
    pub wrong: u64,
}

/// Drives `workload` and measures it.
pub fn run(workload: &Workload, hooks: &Hooks) -> Result<Completed, Error> {
    coordinate::run(workload, hooks, &mut |_| {})
}

/// Like [`run`], and tells each second of the window soon after it has passed.
pub fn run_watched(
    workload: &Workload,
    hooks: &Hooks,
    each_second: &mut dyn FnMut(&Second),
) -> Result<Completed, Error> {
    coordinate::run(workload, hooks, each_second)
}

impl Workload {
    /// Refuses what cannot be driven as asked.
    pub fn check(&self) -> Result<(), Error> {
        match self.contradiction() {
            None => Ok(()),
            Some(why) => Err(Error::Workload {
                target: self.target,
                why,
            }),
        }
    }

    fn contradiction(&self) -> Option<String> {
        let within = |what: &str, value: usize, low: usize, high: usize| {
            (!(low..=high).contains(&value))
                .then(|| format!("{what} is {value}; it must be {low} to {high}"))
        };
        within("the number of threads", self.threads, 1, 1024)
            .or_else(|| {
                within(
                    "the number of sockets per thread",
                    self.sockets,
                    1,
                    LARGEST_DEPTH,
                )
            })
            .or_else(|| self.too_many_ports())
            .or_else(|| within("the depth", self.depth, 1, LARGEST_DEPTH))
            .or_else(|| within("the batch", self.batch, 1, LARGEST_BATCH))
            .or_else(|| self.wrong_payload())
            .or_else(|| self.burst.and_then(|burst| self.wrong_burst(burst)))
            .or_else(|| self.af_xdp.as_ref().and_then(|_| self.not_by_af_xdp()))
            .or_else(|| self.wrong_times())
            .or_else(|| self.wrong_addresses())
    }

    /// All sockets have one address and ask one target, so each needs a port of its own.
    fn too_many_ports(&self) -> Option<String> {
        let ports = self.threads * self.sockets;
        (ports > PORTS).then(|| {
            format!(
                "{} threads x {} sockets are {ports} source ports, and an address has {PORTS}; use fewer sockets",
                self.threads, self.sockets
            )
        })
    }

    fn wrong_payload(&self) -> Option<String> {
        match &self.payload {
            Payload::Sequenced { size } if !(HEADER..=LARGEST_PAYLOAD).contains(size) => {
                Some(format!(
                    "the size is {size} bytes; numbered requests have {HEADER} to {LARGEST_PAYLOAD}"
                ))
            }
            Payload::Opaque(bytes) if bytes.len() > LARGEST_PAYLOAD => Some(format!(
                "the payload has {} bytes; a datagram holds {LARGEST_PAYLOAD}",
                bytes.len()
            )),
            Payload::Opaque(_) if self.depth != 1 => Some(format!(
                "the depth is {}, but replies to a given payload carry no number, so only one request per socket \
                 can be told apart; use depth 1 and more sockets",
                self.depth
            )),
            Payload::Dns(queries) if queries.is_empty() => {
                Some("there is no query to ask".to_owned())
            }
            Payload::Dns(_) if self.depth > LARGEST_DNS_DEPTH => Some(format!(
                "the depth is {}; the 16-bit id of DNS allows {LARGEST_DNS_DEPTH} per socket, so use more sockets",
                self.depth
            )),
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
            Some(
                "AF_XDP sends frame by frame, and a burst is the work of a socket; choose one"
                    .to_owned(),
            )
        } else if ports > af_xdp::LARGEST_RUN {
            Some(format!(
                "AF_XDP needs source ports side by side, and threads x sockets is {ports}; use at most {}",
                af_xdp::LARGEST_RUN
            ))
        } else {
            group.then(|| {
                "a group has no Ethernet address to ask for; load without AF_XDP".to_owned()
            })
        }
    }

    fn wrong_times(&self) -> Option<String> {
        let rate = |per_s: f64| per_s.is_finite() && (0.0..=1e9).contains(&per_s);
        match self.arrival {
            Arrival::Constant { per_s } if !rate(per_s) || per_s <= 0.0 => {
                return Some(format!(
                    "the rate is {per_s}/s; it must be above 0 and at most 1e9"
                ));
            }
            Arrival::Ramp {
                from_per_s,
                to_per_s,
            } if !rate(from_per_s) || !rate(to_per_s) || from_per_s + to_per_s <= 0.0 => {
                return Some(format!(
                    "the ramp goes from {from_per_s}/s to {to_per_s}/s; its ends must be 0 to 1e9 and not both 0"
                ));
            }
            _ => {}
        }
        let day = Duration::from_hours(24);
        if self.timeout < Duration::from_millis(1) || self.timeout > day {
            return Some(format!(
                "the timeout is {:?}; it must be 1 ms to a day",
                self.timeout
            ));
        }
        if self.warmup > day {
            return Some(format!(
                "the warm-up is {:?}; it must be at most a day",
                self.warmup
            ));
        }
        match self.stop {
            Stop::Count(0) => Some("the count is 0; ask for at least one request".to_owned()),
            Stop::After(length) if length < Duration::from_millis(10) || length > 30 * day => Some(
                format!("the window is {length:?}; it must be 10 ms to 30 days"),
            ),
            _ => None,
        }
    }

    fn wrong_addresses(&self) -> Option<String> {
        if self.target.port() == 0 {
            return Some("port 0 cannot be asked; give the server's port".to_owned());
        }
        if self.pins.as_ref().is_some_and(Vec::is_empty) {
            return Some("there is no CPU to pin to; name at least one".to_owned());
        }
        let source = self.source?;
        (source.is_ipv4() != self.target.is_ipv4()).then(|| {
            format!("the source {source} is of another address family; use one of the target's")
        })
    }
}
