//! HTTP/1.1 and HTTP/2 requests over TCP, TLS or a Unix socket, each with one response.
//!
//! A thread has a share of the connections and waits for all of them together; each connection carries one request at a time, by HTTP/2 one
//! per stream. A response that is not what was expected is counted as an error and is no answer: it enters neither rate nor latency.

mod connection;
mod cookies;
mod generator;
pub mod http2;
mod lane;
pub mod lists;
mod multiplexed;
mod parameters;
mod requests;
pub mod response;
pub mod script;
mod transport;
mod user;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rungwise_model::load::{Http, Http2, Second};
use rungwise_stats::histogram::Histogram;

pub use crate::stream::transport::Version;
pub use crate::template::PLACEHOLDERS;
pub use parameters::Parameters;
pub use transport::{Resolve, Transport};
pub use values::{Expect, Header, Method, Property, Url};

use generator::{ERRORS, Generator};
use requests::{Dealt, Requests};

use crate::Error;
use crate::engine::{self, Arrival, Completed, Hooks, Kind, Ledger, Plan, Stop};
use crate::parameters::{Contradiction, Length, Load, Probe, Target, refused};
use crate::stream::counts::{Handshakes, Named};
use crate::stream::link::Established;
use crate::stream::transport::Route;

/// What `rungwise explain http` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "http",
    by_hand: true,
    summary: "HTTP/1.1 or HTTP/2 requests, by TLS or without, each with one response.",
    doc: "\
- **who**: `connections` connections over all `threads` ask one server, one request at a time on each; `no_keepalive` opens a new one per request. With `http2` \
    each carries up to `streams` requests at the same time.
- **where to**: `url`, `http://` or `https://`; `resolve` gives the address of its host, `unix_socket` the socket of a server on this machine. With TLS the \
    certificate is verified against the CAs of the system, or those of `cacert`; `insecure` accepts any, `tls` fixes the version, `cert` and `key` are sent to a server that asks for them.
- **messages**: `url`, `method`, `headers`, `body`, the same each time or with placeholders: `${counter}`, `${random:1..100}`, `${uuid}`, \
    `${choice:a|b}`, `${csv:NAME}` with the rows of `data`. With `cookies` each connection keeps those it gets. \
    Instead of one request a list: `requests`, or `har` as a browser recorded it, which each connection sends in order, with a count and latency by name; or `jmx`, a \
    test plan of JMeter, whose users are the connections. Responses may have a length, chunks or an end with the connection; redirects are \
    counted and not followed.
- **when**: closed, so that each connection always has a request under way, or open, at a constant or changing rate that does not wait for the server.
- **until**: a time or a count; then it waits for the last responses, for one `timeout` at most.
- **reported**: rate, latency from the intended and from the actual start, statuses, bytes, time to connect and to the first byte, CPU per request, \
    and whether the generator spoiled the numbers. A response that is not as `expect` says is an error (`status_4xx`, `body`) and no answer.

In a scenario: `[workload]` with `kind = \"http\"`. By hand: `rungwise load http URL`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["body", "connections", "streams"],
    warmup: Duration::from_millis(300),
    measure: Duration::from_millis(500),
    quick: Duration::from_millis(200),
};

/// Most requests at the same time over all connections; each takes some 400 bytes of memory.
const MOST_REQUESTS: usize = 200_000;

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
    /// A plan says when each user begins, what it does and when it ends.
    is_plan: bool,
    /// How many streams each has, where they speak HTTP/2.
    http2: Option<usize>,
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
    handshakes: Handshakes,
    /// Times to the first byte of responses to requests of the window, ns.
    first_byte: Histogram,
    /// Requests of the window by name, where there is a list.
    named: Vec<Named>,
    /// By HTTP/2, requests of the window whose stream the server gave up, by error code; connections that it ended in the window, by error code;
    /// those that broke the protocol, by what was wrong.
    resets: BTreeMap<&'static str, u64>,
    goaways: BTreeMap<&'static str, u64>,
    broken: BTreeMap<&'static str, u64>,
    /// Requests of the window that were sent again, because the server had not looked at them.
    repeated: u64,
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
        if let Some(streams) = self.http2 {
            let range = (1, http2::MOST_STREAMS);
            let what = "the number of streams";
            found.extend(Contradiction::outside(&["streams"], what, streams, range));
            let requests = self.connections.saturating_mul(streams);
            if requests > MOST_REQUESTS {
                let why = format!(
                    "{} connections with {streams} streams each are {requests} requests at the same time, and {MOST_REQUESTS} are the most; use fewer",
                    self.connections
                );
                found.push(Contradiction::of(&["streams", "connections"], why));
            }
        }
        found
    }

    /// A connection is tried before the load, though each request opens its own: what TLS or a path has wrong is found at once.
    fn is_tried(&self) -> bool {
        self.is_plan || self.route.tls.is_some() || self.route.address.is_unix()
    }

    /// Why a connection cannot be established, and what to do.
    fn unconnected(&self, error: io::Error) -> Error {
        if let Some(failed) = http2::Failed::behind(&error) {
            let by_tls = self.route.tls.is_some();
            let (why, remedy) = failed.explain(by_tls, self.http2.unwrap_or(1));
            return Error::Http2 {
                target: self.target.clone(),
                why,
                remedy,
            };
        }
        self.route.unconnected(self.target.clone(), error)
    }

    /// Why a server gave no answer at all, where it wants another client.
    fn refusal(&self, completed: &Result<Completed, Error>) -> Option<Error> {
        let tls = self.route.tls.as_ref()?;
        let (why, remedy) = match completed {
            Ok(Completed { measurement, .. }) if measurement.received == 0 => {
                tls.refusal(measurement.http.as_ref()?.statuses.keys())?
            }
            Err(Error::NoReplies { .. }) => tls.refusal([].iter())?,
            _ => return None,
        };
        Some(Error::Tls {
            target: self.target.clone(),
            why,
            remedy,
        })
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

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn has_own_pace(&self) -> bool {
        self.is_plan
    }

    fn ends(&self) -> bool {
        self.requests.ends()
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
        let completed = engine::run(&workload, hooks, each_second);
        self.refusal(&completed).map_or(completed, Err)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keepalive = match self.http2 {
            Some(1) => "HTTP/2, one stream at a time on each".to_owned(),
            Some(streams) => format!("HTTP/2, up to {streams} streams at a time on each"),
            None if self.keepalive => "kept alive".to_owned(),
            None => "new for each request".to_owned(),
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
        completed.measurement.http = Some(all.report(self));
    }
}

impl Counts {
    fn new(names: &[String]) -> Self {
        Self {
            // Of three digits.
            statuses: vec![0; 1000],
            bytes: 0,
            opened: 0,
            connect: Histogram::new(),
            handshakes: Handshakes::new(),
            first_byte: Histogram::new(),
            named: names.iter().map(|name| Named::new(name)).collect(),
            resets: BTreeMap::new(),
            goaways: BTreeMap::new(),
            broken: BTreeMap::new(),
            repeated: 0,
        }
    }

    /// Counts a request of this name, with its latency where it was answered.
    #[inline]
    fn note(&mut self, name: usize, latency: Option<u64>) {
        if let Some(named) = self.named.get_mut(name) {
            named.note(latency);
        }
    }

    fn merge(&mut self, other: &Self) {
        for (sum, count) in self.statuses.iter_mut().zip(&other.statuses) {
            *sum += count;
        }
        self.bytes += other.bytes;
        self.opened += other.opened;
        self.connect.merge(&other.connect);
        self.handshakes.merge(&other.handshakes);
        self.first_byte.merge(&other.first_byte);
        for (sum, one) in self.named.iter_mut().zip(&other.named) {
            sum.merge(one);
        }
        for (sum, one) in [
            (&mut self.resets, &other.resets),
            (&mut self.goaways, &other.goaways),
            (&mut self.broken, &other.broken),
        ] {
            for (name, times) in one {
                *sum.entry(name).or_default() += times;
            }
        }
        self.repeated += other.repeated;
    }

    /// Counts a connection that was established.
    fn opened(&mut self, established: &Established) {
        self.opened += 1;
        if let Some((_, agreed)) = established.tls {
            self.handshakes.agree(agreed, 1);
        }
    }

    /// Records how long that took.
    fn time(&mut self, established: &Established) {
        self.connect.record(established.connect);
        if let Some((handshake, _)) = established.tls {
            self.handshakes.time(handshake);
        }
    }

    /// What is reported of HTTP/2, of so many streams on each connection.
    fn of_http2(&self, streams: usize) -> Http2 {
        let named = |counts: &BTreeMap<&'static str, u64>| {
            let counts = counts.iter();
            counts
                .map(|(name, times)| ((*name).to_owned(), *times))
                .collect()
        };
        Http2 {
            streams: streams as u64,
            resets: named(&self.resets),
            goaways: named(&self.goaways),
            broken: named(&self.broken),
            repeated: self.repeated,
        }
    }

    fn report(&self, workload: &Workload) -> Http {
        let tls = workload.route.tls.as_ref();
        let statuses = self
            .statuses
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        Http {
            protocol: match workload.http2 {
                Some(_) => "HTTP/2",
                None => "HTTP/1.1",
            }
            .to_owned(),
            statuses: statuses
                .map(|(status, count)| (status.to_string(), *count))
                .collect(),
            received_bytes: self.bytes,
            connections: self.opened,
            connect_us: self.connect.quantiles(),
            http2: workload.http2.map(|streams| self.of_http2(streams)),
            tls: tls.map(|tls| self.handshakes.report(tls)),
            first_byte_us: self.first_byte.quantiles(),
            requests: self.named.iter().map(Named::report).collect(),
        }
    }
}
