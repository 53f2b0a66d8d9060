//! HTTP/1.1 requests over TCP, each with one response.
//!
//! A thread has a share of the connections and waits for all of them together; each connection carries one request at a time. A
//! response that is not what was expected is counted as an error and is no answer: it enters neither rate nor latency.

mod connection;
mod generator;
mod parameters;
pub mod response;
mod values;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use rungwise_model::load::{Http, Second};
use rungwise_stats::histogram::Histogram;

pub use parameters::Parameters;
pub use values::{Expect, Header, Method, Url};

use generator::{ERRORS, Generator};

use crate::Error;
use crate::engine::{self, Arrival, Completed, Hooks, Kind, Ledger, Plan, Stop};
use crate::parameters::{Contradiction, Length, Load, Probe, refused};

/// What `rungwise explain http` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "http",
    by_hand: true,
    summary: "HTTP/1.1 requests without TLS, each with one response.",
    doc: "\
- **who**: `connections` connections over all `threads` ask one server, one request at a time on each; `no_keepalive` opens a new one per request.
- **messages**: the same request each time: `url`, `method`, `headers`, `body`. Responses may have a length, chunks or an end with the \
    connection; redirects are counted and not followed.
- **when**: closed, so that each connection always has a request under way, or open, at a constant or changing rate that does not wait for the server.
- **until**: a time or a count; then it waits for the last responses, for one `timeout` at most.
- **reported**: rate, latency from the intended and from the actual start, statuses, bytes, time to connect and to the first byte, CPU per request, \
    and whether the generator spoiled the numbers. A response that is not as `expect` says is an error (`status_4xx`, `body`) and no answer.

In a scenario: `[workload]` with `kind = \"http\"`. By hand: `rungwise load http URL`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["connections"],
    warmup: Duration::from_millis(300),
    measure: Duration::from_millis(500),
    quick: Duration::from_millis(200),
};

/// Most connections: an address has no more ports for one target.
pub const MOST_CONNECTIONS: usize = 60_000;

/// Target, request, schedule and threads.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// The bytes of a request, head and body.
    request: Vec<u8>,
    /// Method and URL.
    words: String,
    /// The method is HEAD, so responses have no body.
    to_head: bool,
    /// Over all threads.
    connections: usize,
    /// A connection carries one request after another.
    keepalive: bool,
    expect: Expect,
    target: SocketAddr,
    threads: usize,
    pins: Option<Vec<usize>>,
    arrival: Arrival,
    timeout: Duration,
    warmup: Duration,
    stop: Stop,
}

/// What a thread counts of HTTP alone.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Responses to requests of the window, by status.
    statuses: Vec<u64>,
    /// Bytes received in the window.
    bytes: u64,
    /// Connections established before and during the window.
    opened: u64,
    /// Times to establish them, ns.
    connect: Histogram,
    /// Times to the first byte of responses to requests of the window, ns.
    first_byte: Histogram,
}

impl Workload {
    fn check(&self) -> Result<(), Error> {
        refused(self.target, self.contradictions())
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = self.plan().contradictions();
        found.extend(Contradiction::outside(
            &["connections"],
            "the number of connections",
            self.connections,
            (1, MOST_CONNECTIONS),
        ));
        found
    }

    /// The connections of a thread.
    fn share(&self, thread: usize) -> usize {
        self.connections / self.threads + usize::from(thread < self.connections % self.threads)
    }
}

impl Load for Workload {
    fn probe(&self) -> Probe {
        Probe::Connection
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
            ..self.clone()
        };
        engine::run(&workload, hooks, each_second)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keepalive = if self.keepalive {
            "kept alive"
        } else {
            "new for each request"
        };
        let pinned = if self.pins.is_some() {
            "pinned"
        } else {
            "not pinned"
        };
        write!(
            f,
            "{}, {} on {} connections, {keepalive}, {} threads {pinned}, an answer has {}, timeout {} ms",
            self.words,
            self.arrival,
            self.connections,
            self.threads,
            self.expect,
            self.timeout.as_millis(),
        )
    }
}

impl Kind for Workload {
    type Ground = ();
    type Seat = ();
    type Driver<'a> = Generator<'a>;
    type Own = Counts;

    fn plan(&self) -> Plan {
        Plan {
            target: self.target,
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

    /// One for each connection, one for epoll.
    fn files(&self) -> usize {
        1 + self.share(0)
    }

    fn errors(&self) -> &'static [&'static str] {
        &ERRORS
    }

    fn prepare(
        &self,
        _enter: &(dyn Fn() -> Result<(), Error> + Sync),
    ) -> Result<((), Vec<()>), Error> {
        Ok(((), vec![(); self.threads]))
    }

    fn driver<'a>(&'a self, ledger: Ledger<'a>, _seat: ()) -> Result<Generator<'a>, Error> {
        Generator::new(self, ledger)
    }

    fn complete(&self, _ground: &(), own: Vec<Counts>, completed: &mut Completed) {
        let mut all = Counts::new();
        for counts in &own {
            all.merge(counts);
        }
        completed.measurement.http = Some(all.report());
    }
}

impl Counts {
    fn new() -> Self {
        Self {
            // Of three digits.
            statuses: vec![0; 1000],
            bytes: 0,
            opened: 0,
            connect: Histogram::new(),
            first_byte: Histogram::new(),
        }
    }

    fn merge(&mut self, other: &Self) {
        for (sum, count) in self.statuses.iter_mut().zip(&other.statuses) {
            *sum += count;
        }
        self.bytes += other.bytes;
        self.opened += other.opened;
        self.connect.merge(&other.connect);
        self.first_byte.merge(&other.first_byte);
    }

    fn report(&self) -> Http {
        let statuses = self
            .statuses
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        Http {
            statuses: statuses
                .map(|(status, count)| (status.to_string(), *count))
                .collect(),
            received_bytes: self.bytes,
            connections: self.opened,
            connect_us: self.connect.quantiles(),
            first_byte_us: self.first_byte.quantiles(),
        }
    }
}
