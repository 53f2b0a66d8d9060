//! Very many connections that live long: opened at a rate, held, pinged, and ended.
//!
//! Requests and replies are a small part of such a load, and connections are never in the way of each other, so it does not run on the engine of
//! requests: each thread walks over its connections in a fixed order, and knows from the order when each is due. A connection costs 24 bytes here.

mod counts;
mod driver;
mod parameters;
mod preflight;
mod run;
mod socket;
mod sources;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rungwise_model::connections::HostLimit;
use rungwise_model::load::Second;

pub use parameters::Parameters;

use crate::Error;
use crate::engine::{Completed, Hooks};
use crate::parameters::{Length, Load, Probe};

/// What `rungwise explain connections` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "connections",
    by_hand: true,
    summary: "Very many TCP connections that are opened at a rate and held open, with a ping from time to time.",
    doc: "\
- **who**: `count` connections to one server, from `source` addresses in turn. Where the target is an address of 127.0.0.0/8, each 8000 connections have another \
    address of it, which needs no configuration. `threads` threads divide them; each has a table of file descriptors of its own, so that the limit on open files holds for each thread.
- **before**: descriptors, open files of the machine, ports, tracked connections, epoll watches, memory, buffers of TCP and TIME_WAIT are computed before the first connect. Where one does not \
    suffice, nothing is opened, or with `partial` as many as fit.
- **messages**: 16 bytes that the server sends back (`ping`), or to every connection (`broadcast`); `rungwise serve connections` does both, an echo server the first.
- **when**: connections are opened at `rate`; pings are spread evenly over `ping`, each at its time, whatever the server does. The window begins when every connection is established or has failed.
- **until**: a time; then it waits for the last replies, for one `timeout` at most, and ends the connections.
- **how it goes wrong**: `storm` ends all connections in the middle of the window and opens them again at once; `slow_readers` read nothing; `half_open` vanish without a FIN.
- **reported**: connections established, failed and lost by cause, time to connect, pings with latency from the intended and from the actual start, fan-out time of messages, how long after a storm \
    connections were back, memory for each connection, and whether the generator spoiled the numbers.

In a scenario: `[workload]` with `kind = \"connections\"`. By hand: `rungwise load connections HOST:PORT`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["count", "ping", "rate", "slow_readers"],
    warmup: Duration::from_secs(1),
    measure: Duration::from_secs(10),
    quick: Duration::from_secs(5),
};

/// How long connections are held where nothing else is said.
const HOLD: Duration = Duration::from_secs(30);

/// What is opened and held, and what was computed before.
#[derive(Clone, Debug)]
struct Plan {
    target: SocketAddr,
    /// Connections that were asked for, and how many are opened.
    asked: u64,
    count: u64,
    rate_per_s: f64,
    ping: Option<Duration>,
    timeout: Duration,
    broadcast: Option<Duration>,
    storm: bool,
    slow_readers: u64,
    half_open: u64,
    /// None where the kernel chooses the address.
    sources: Vec<IpAddr>,
    threads: usize,
    /// Each thread needs a table of descriptors of its own.
    own_tables: bool,
    limits: Vec<HostLimit>,
    /// Why fewer connections are opened than were asked for.
    partial: Option<String>,
}

/// A load of connections that are held open.
#[derive(Debug)]
struct Held {
    plan: Plan,
    notes: Vec<String>,
}

impl Held {
    fn new(plan: Plan) -> Self {
        let mut notes = Vec::new();
        if let Some((limit, allows)) = preflight::tightest(&plan.limits) {
            notes.push(format!(
                "{} limits of this host for {} connections: the tightest, {}, allows {allows} ({}); raise it with {}",
                plan.limits.len(),
                plan.asked,
                limit.id.replace('_', " "),
                limit.basis,
                limit.knob
            ));
        }
        if plan.count < plan.asked {
            notes.push(format!("opening {} connections (--partial)", plan.count));
        }
        Self { plan, notes }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            count,
            target,
            rate_per_s,
            ..
        } = &self.plan;
        write!(
            f,
            "{count} connections to {target}, opened at {rate_per_s:.0}/s"
        )?;
        match self.plan.ping {
            Some(ping) => write!(f, ", each pinged every {} s", ping.as_secs_f64()),
            None => Ok(()),
        }
    }
}

impl Load for Held {
    fn probe(&self) -> Probe {
        Probe::Connection
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn has_own_pace(&self) -> bool {
        true
    }

    fn hold(&self) -> Option<Duration> {
        Some(HOLD)
    }

    fn run(
        &self,
        length: &Length,
        hooks: &Hooks<'_>,
        each_second: &mut dyn FnMut(&Second),
    ) -> Result<Completed, Error> {
        run::run(&self.plan, length, hooks, each_second)
    }
}
