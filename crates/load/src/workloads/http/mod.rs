//! HTTP/1.1 requests over TCP, TLS or a Unix socket, each with one response.
//!
//! A thread has a share of the connections and waits for all of them together; each connection carries one request at a time. A
//! response that is not what was expected is counted as an error and is no answer: it enters neither rate nor latency.

mod connection;
mod cookies;
mod data;
mod generator;
pub mod lists;
mod parameters;
mod requests;
pub mod response;
mod template;
mod tls;
mod transport;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use rungwise_model::load::{Http, HttpRequest, Second, Tls as TlsReport};
use rungwise_stats::histogram::Histogram;

pub use parameters::Parameters;
pub use template::PLACEHOLDERS;
pub use transport::{Resolve, Transport, Version};
pub use values::{Expect, Header, Method, Url};

use connection::Established;
use generator::{ERRORS, Generator};
use requests::{Dealt, Requests};
use tls::{Agreed, Failed, Tls};
use transport::Route;

use crate::Error;
use crate::engine::{self, Arrival, Completed, Hooks, Kind, Ledger, Plan, Stop};
use crate::parameters::{Contradiction, Length, Load, Probe, Target, refused};

/// What `rungwise explain http` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "http",
    by_hand: true,
    summary: "HTTP/1.1 requests, by TLS or without, each with one response.",
    doc: "\
- **who**: `connections` connections over all `threads` ask one server, one request at a time on each; `no_keepalive` opens a new one per request.
- **where to**: `url`, `http://` or `https://`; `resolve` gives the address of its host, `unix_socket` the socket of a server on this machine. With TLS the \
    certificate is verified against the CAs of the system, or those of `cacert`; `insecure` accepts any, `tls` fixes the version.
- **messages**: `url`, `method`, `headers`, `body`, the same each time or with placeholders: `${counter}`, `${random:1..100}`, `${uuid}`, \
    `${choice:a|b}`, `${csv:NAME}` with the rows of `data`. With `cookies` each connection keeps those it gets. \
    Instead of one request a list: `requests`, or `har` as a browser recorded it, which each connection sends in order, with a count and latency by name. Responses may have a length, chunks or an end with the connection; redirects are \
    counted and not followed.
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
    /// What is sent.
    requests: Arc<Requests>,
    /// Method and URL, or the list.
    words: String,
    /// What a list contains and is not sent.
    notes: Vec<String>,
    /// Of random values in requests.
    seed: u64,
    /// Over all threads.
    connections: usize,
    /// A connection carries one request after another.
    keepalive: bool,
    /// What makes a response an answer, in words.
    expect: String,
    target: Target,
    route: Route,
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
    /// What was agreed in the handshakes of TLS, and how often; a handful.
    agreed: Vec<(Agreed, u64)>,
    /// Times of these handshakes, ns.
    handshake: Histogram,
    /// Times to the first byte of responses to requests of the window, ns.
    first_byte: Histogram,
    /// Requests of the window by name, where there is a list.
    named: Vec<Named>,
}

/// Requests of one name.
#[derive(Debug)]
struct Named {
    name: String,
    sent: u64,
    errors: u64,
    /// From the intended start, ns.
    latency: Histogram,
}

impl Workload {
    fn check(&self) -> Result<(), Error> {
        refused(self.target.clone(), self.contradictions())
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

    /// A connection is tried before the load, though each request opens its own: what TLS or a path has wrong is found at once.
    fn is_tried(&self) -> bool {
        self.route.tls.is_some() || self.route.address.is_unix()
    }

    /// Why a connection cannot be established, and what to do.
    fn unconnected(&self, error: io::Error) -> Error {
        let target = self.target.clone();
        if let (Some(tls), Some(failed)) = (&self.route.tls, Failed::behind(&error)) {
            let (why, remedy) = tls.explain(failed);
            return Error::Tls {
                target,
                why,
                remedy,
            };
        }
        let is_unix = self.route.address.is_unix();
        Error::Socket {
            step: "open a connection",
            target,
            source_ip: None,
            remedy: match error.kind() {
                ErrorKind::NotFound => "start the server, or correct the path",
                ErrorKind::PermissionDenied if is_unix => {
                    "run as a user who may write to the socket and enter its folders"
                }
                ErrorKind::ConnectionRefused if is_unix => {
                    "nothing listens on this path: start the server, or correct the path"
                }
                ErrorKind::WouldBlock => {
                    "the server does not accept connections: check that it runs, and its backlog"
                }
                ErrorKind::StorageFull => {
                    "use fewer --connections, or raise fs.epoll.max_user_watches"
                }
                _ if is_unix => "check that the path is that of a server's stream socket",
                ErrorKind::ConnectionRefused => "start the server, or correct the port",
                ErrorKind::AddrNotAvailable => {
                    "use fewer --connections, or widen net.ipv4.ip_local_port_range"
                }
                _ => {
                    "check the route to the target, a firewall on the path, and the server's backlog"
                }
            },
            error,
        }
    }

    /// The connections of a thread.
    fn share(&self, thread: usize) -> usize {
        self.connections / self.threads + usize::from(thread < self.connections % self.threads)
    }

    /// The number of a thread's first connection, where those of all threads are numbered one after the other.
    fn first(&self, thread: usize) -> usize {
        thread * (self.connections / self.threads) + thread.min(self.connections % self.threads)
    }
}

impl Load for Workload {
    fn probe(&self) -> Probe {
        Probe::Connection
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn run(
        &self,
        length: &Length,
        hooks: &Hooks<'_>,
        each_second: &mut dyn FnMut(&Second),
    ) -> Result<Completed, Error> {
        let workload = Self {
            seed: length.seed,
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
    type Seat = Arc<Dealt>;
    type Driver<'a> = Generator<'a>;
    type Own = Counts;

    fn plan(&self) -> Plan {
        Plan {
            target: self.target.clone(),
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
    ) -> Result<((), Vec<Arc<Dealt>>), Error> {
        let dealt = Arc::new(self.requests.dealt());
        Ok(((), vec![dealt; self.threads]))
    }

    fn driver<'a>(&'a self, ledger: Ledger<'a>, dealt: Arc<Dealt>) -> Result<Generator<'a>, Error> {
        Generator::new(self, ledger, dealt)
    }

    fn complete(&self, _ground: &(), own: Vec<Counts>, completed: &mut Completed) {
        let mut all = Counts::new(self.requests.names());
        for counts in &own {
            all.merge(counts);
        }
        completed.measurement.http = Some(all.report(self.route.tls.as_ref()));
    }
}

impl Counts {
    fn new(names: &[String]) -> Self {
        let named = |name: &String| Named {
            name: name.clone(),
            sent: 0,
            errors: 0,
            latency: Histogram::new(),
        };
        Self {
            // Of three digits.
            statuses: vec![0; 1000],
            bytes: 0,
            opened: 0,
            connect: Histogram::new(),
            agreed: Vec::new(),
            handshake: Histogram::new(),
            first_byte: Histogram::new(),
            named: names.iter().map(named).collect(),
        }
    }

    /// Counts a request of this name, with its latency where it was answered.
    #[inline]
    fn note(&mut self, name: usize, latency: Option<u64>) {
        let Some(named) = self.named.get_mut(name) else {
            return;
        };
        named.sent += 1;
        match latency {
            Some(ns) => named.latency.record(ns),
            None => named.errors += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        for (sum, count) in self.statuses.iter_mut().zip(&other.statuses) {
            *sum += count;
        }
        self.bytes += other.bytes;
        self.opened += other.opened;
        self.connect.merge(&other.connect);
        for (agreed, times) in &other.agreed {
            self.agree(*agreed, *times);
        }
        self.handshake.merge(&other.handshake);
        self.first_byte.merge(&other.first_byte);
        for (sum, one) in self.named.iter_mut().zip(&other.named) {
            sum.sent += one.sent;
            sum.errors += one.errors;
            sum.latency.merge(&one.latency);
        }
    }

    /// Counts a connection that was established.
    fn opened(&mut self, established: &Established) {
        self.opened += 1;
        if let Some((_, agreed)) = established.tls {
            self.agree(agreed, 1);
        }
    }

    fn agree(&mut self, agreed: Agreed, times: u64) {
        match self.agreed.iter_mut().find(|(known, _)| *known == agreed) {
            Some((_, sum)) => *sum += times,
            None => self.agreed.push((agreed, times)),
        }
    }

    /// Records how long that took.
    fn time(&mut self, established: &Established) {
        self.connect.record(established.connect);
        if let Some((handshake, _)) = established.tls {
            self.handshake.record(handshake);
        }
    }

    /// What is reported of TLS.
    fn of_tls(&self, tls: &Tls) -> TlsReport {
        let mut negotiated = BTreeMap::new();
        let (mut full, mut resumed) = (0, 0);
        for (agreed, times) in &self.agreed {
            // rustls has names of its own for the suites of TLS 1.3.
            let suite = agreed.suite.replacen("TLS13_", "TLS_", 1);
            *negotiated
                .entry(format!("{} {suite}", agreed.version))
                .or_default() += times;
            if agreed.resumed {
                resumed += times;
            } else {
                full += times;
            }
        }
        TlsReport {
            verified: tls.verifies(),
            negotiated,
            full,
            resumed,
            handshake_us: self.handshake.quantiles(),
        }
    }

    fn report(&self, tls: Option<&Tls>) -> Http {
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
            tls: tls.map(|tls| self.of_tls(tls)),
            first_byte_us: self.first_byte.quantiles(),
            requests: self.named.iter().map(Named::report).collect(),
        }
    }
}

impl Named {
    fn report(&self) -> HttpRequest {
        let latency = self.latency.quantiles();
        HttpRequest {
            name: self.name.clone(),
            sent: self.sent,
            errors: self.errors,
            p50_us: latency.p50,
            p99_us: latency.p99,
        }
    }
}
