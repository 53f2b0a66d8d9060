//! Requests and replies on streams: what all workloads share that ask over TCP, TLS or a Unix socket.
//!
//! A thread has a share of the connections and waits for all of them together; each carries up to `depth` requests at the same time. A
//! kind brings a [`Protocol`], and through it a [`Conversation`] for each connection: how a request is written, where a reply ends, what
//! the reply means and to which request it belongs, in their order or by a number of its own. All else is here: schedule, connecting,
//! TLS, timeouts, connections that end, and what is counted.

pub(crate) mod counts;
mod generator;
mod identity;
mod lane;
pub(crate) mod link;
mod slots;
#[cfg(test)]
mod tests;
pub(crate) mod texts;
pub(crate) mod tls;
pub mod transport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rungwise_model::load::Second;

use self::counts::{Classes, Counts};
use self::generator::{ERRORS, Generator};
use self::transport::{Connections, Route};
use crate::Error;
use crate::engine::{self, Arrival, Completed, Hooks, Kind, Ledger, Plan};
use crate::parameters::{Contradiction, Length, Load, Probe, Schedule, Site, Target, refused};

/// Most connections: an address has no more ports for one target.
pub(crate) const MOST_CONNECTIONS: usize = 60_000;
/// Most requests at the same time on a connection: a ticket keeps 16 bits for its place.
pub(crate) const MOST_DEPTH: usize = (1 << 16) - 1;
/// Most requests at the same time over all connections; each takes some 40 bytes, and those of its bytes.
const MOST_REQUESTS: usize = 1_000_000;
/// Most bytes of a reply that are kept until the rest has come.
const MOST_KEPT: usize = 64 << 20;

/// What travels on the connections of a load, in words as well: `100-byte requests in frames of a fixed length`.
pub(crate) trait Protocol: fmt::Debug + fmt::Display + Send + Sync {
    /// The talk on one connection.
    type Talk: Conversation;
    /// What all connections of a run take in turn, such as numbers.
    type Dealt: Send + Sync;

    /// Its name in a report: `RESP2`.
    fn name(&self) -> String;

    /// Names of the requests, where there are several, by the number that [`Conversation::write`] returns.
    fn requests(&self) -> &[String] {
        &[]
    }

    /// Kinds of answers that are counted apart, by the number of [`Verdict::Answer`].
    fn answers(&self) -> &'static [&'static str] {
        &[]
    }

    /// What the server says without being asked, counted apart, by place in [`Around::events`].
    fn events(&self) -> &'static [&'static str] {
        &[]
    }

    /// Replies have the number of their request, so that one that never comes holds up none of the others.
    fn is_numbered(&self) -> bool {
        false
    }

    /// What to do where a server refuses what a connection begins with.
    fn remedy(&self) -> &'static str {
        "see the server's log"
    }

    /// For one run.
    fn deal(&self) -> Self::Dealt;

    /// The talk on connection `number` of all, from 0, in a run with `seed`; it goes on when the connection is opened anew.
    fn talk(&self, dealt: &Arc<Self::Dealt>, seed: u64, number: usize) -> Self::Talk;
}

/// The talk on one connection. Nothing of it may allocate for each request.
pub(crate) trait Conversation {
    /// The connection was established: forgets what it has half read, and appends to `to` what must be said before the first request. How
    /// many replies that gets; requests wait for them, and an error among them ends the connection.
    fn begin(&mut self, to: &mut Vec<u8>) -> usize;

    /// Appends the next request to `to`, with its `ticket` where the protocol numbers requests. Which request it is.
    fn write(&mut self, ticket: u64, to: &mut Vec<u8>) -> usize;

    /// Reads on in the bytes that have come. What it does not use is shown to it again when more has come; an error is what the server did
    /// against the protocol, and ends the connection.
    fn read(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<Cut, &'static str>;

    /// The server may say something that was not asked for.
    fn is_told_more(&self) -> bool {
        false
    }
}

/// What a conversation reads beside the bytes.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    /// Which request waits longest for its reply, as [`Conversation::write`] said.
    pub(crate) oldest: Option<usize>,
    /// Errors by class, for [`Verdict::Error`].
    pub(crate) classes: &'a mut Classes,
    /// How often the server has said each of [`Protocol::events`] so far.
    pub(crate) events: &'a mut [u64],
    /// What is to be said to the server beside requests, such as an answer to its heartbeat.
    pub(crate) out: &'a mut Vec<u8>,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes that need not be shown again.
    pub(crate) used: usize,
    /// A reply that is complete with them. Without one and without a byte used, more must come.
    pub(crate) reply: Option<Reply>,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The ticket of its request; absent where replies have the order of the requests.
    pub(crate) of: Option<u64>,
    pub(crate) verdict: Verdict,
}

/// What a reply means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What was asked for; where it is counted apart, its place in [`Protocol::answers`].
    Answer(Option<usize>),
    /// No answer, of this class: see [`Classes::of`].
    Error(usize),
}

/// Target, protocol, schedule and threads.
#[derive(Debug)]
pub(crate) struct Workload<P> {
    protocol: Arc<P>,
    /// Target and TLS.
    words: String,
    /// Of random values in requests.
    seed: u64,
    /// Over all threads.
    connections: usize,
    depth: usize,
    nagle: bool,
    route: Route,
    plan: Plan,
}

impl<P> Clone for Workload<P> {
    fn clone(&self) -> Self {
        Self {
            protocol: self.protocol.clone(),
            words: self.words.clone(),
            seed: self.seed,
            connections: self.connections,
            depth: self.depth,
            nagle: self.nagle,
            route: self.route.clone(),
            plan: self.plan.clone(),
        }
    }
}

/// What contradicts itself in a schedule and its connections to `target`.
pub(crate) fn contradictions(
    schedule: &Schedule,
    connections: &Connections,
    target: &str,
) -> Vec<Contradiction> {
    let mut found = schedule.contradictions();
    found.extend(connections.contradictions(target));
    let within = Contradiction::outside;
    let (number, depth) = (connections.connections as usize, connections.depth as usize);
    let what = "the number of connections";
    found.extend(within(
        &["connections"],
        what,
        number,
        (1, MOST_CONNECTIONS),
    ));
    found.extend(within(&["depth"], "the depth", depth, (1, MOST_DEPTH)));
    let requests = number.saturating_mul(depth);
    if requests > MOST_REQUESTS && found.is_empty() {
        let why = format!(
            "{number} connections with {depth} requests each are {requests} requests at the same time, and {MOST_REQUESTS} are the most; use fewer"
        );
        found.push(Contradiction::of(&["depth", "connections"], why));
    }
    found.extend(schedule.plan(&Site::ANY, &Length::ANY).contradictions());
    found
}

impl<P: Protocol> Workload<P> {
    /// The load of `protocol` on these connections to `target` of `site`.
    pub(crate) fn new(
        protocol: P,
        target: &str,
        (schedule, connections): (&Schedule, &Connections),
        site: &Site<'_>,
    ) -> Result<Self, Error> {
        let mut plan = schedule.plan(site, &Length::ANY);
        let number = connections.connections as usize;
        // A thread without a connection has nothing to do.
        plan.threads = plan.threads.min(number.max(1));
        let found = contradictions(schedule, connections, target);
        refused(plan.target.clone(), found)?;
        Ok(Self {
            protocol: Arc::new(protocol),
            words: format!("{target}{connections}"),
            seed: 0,
            connections: number,
            depth: connections.depth as usize,
            nagle: connections.nagle,
            route: connections.route(target, site)?,
            plan,
        })
    }

    /// Why a connection cannot be established, and what to do.
    fn unconnected(&self, error: std::io::Error) -> Error {
        let target = self.plan.target.clone();
        match lane::Unwelcome::behind(&error) {
            Some(lane::Unwelcome(why)) => Error::Unwelcome {
                target,
                why: why.clone(),
                remedy: self.protocol.remedy(),
            },
            None => self.route.unconnected(target, error),
        }
    }

    /// Why a server gave no answer at all, where it wants another client.
    fn refusal(&self, completed: &Result<Completed, Error>) -> Option<Error> {
        let is_silent = match completed {
            Ok(completed) => completed.measurement.received == 0,
            Err(error) => matches!(error, Error::NoReplies { .. }),
        };
        let tls = self.route.tls.as_ref().filter(|_| is_silent)?;
        let (why, remedy) = tls.refusal([].iter())?;
        Some(Error::Tls {
            target: self.plan.target.clone(),
            why,
            remedy,
        })
    }

    /// The connections of a thread.
    fn share(&self, thread: usize) -> usize {
        let threads = self.plan.threads;
        self.connections / threads + usize::from(thread < self.connections % threads)
    }
}

impl<P: Protocol + 'static> Load for Workload<P>
where
    P::Talk: Send,
{
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
            seed: length.seed,
            plan: Plan {
                warmup: length.warmup,
                stop: length.stop,
                ..self.plan.clone()
            },
            ..self.clone()
        };
        let completed = engine::run(&workload, hooks, each_second);
        self.refusal(&completed).map_or(completed, Err)
    }
}

impl<P: Protocol> fmt::Display for Workload<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            arrival,
            threads,
            pins,
            timeout,
            ..
        } = &self.plan;
        write!(f, "{} to {}, {arrival}", self.protocol, self.words)?;
        let each = match (arrival, self.depth) {
            (_, 1) => "one request at a time on each".to_owned(),
            (Arrival::Closed, depth) => format!("{depth} requests at a time on each"),
            (_, depth) => format!("up to {depth} requests at a time on each"),
        };
        let pinned = if pins.is_some() {
            "pinned"
        } else {
            "not pinned"
        };
        write!(
            f,
            " on {} connections, {each}, {threads} threads {pinned}, timeout {} ms",
            self.connections,
            timeout.as_millis(),
        )
    }
}

impl<P: Protocol> Kind for Workload<P> {
    type Ground = ();
    type Seat = Arc<P::Dealt>;
    type Driver<'a>
        = Generator<'a, P>
    where
        Self: 'a;
    type Own = Counts;

    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn check(&self) -> Result<(), Error> {
        refused(self.plan.target.clone(), self.plan.contradictions())
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
    ) -> Result<((), Vec<Arc<P::Dealt>>), Error> {
        let dealt = Arc::new(self.protocol.deal());
        Ok(((), vec![dealt; self.plan.threads]))
    }

    fn driver<'a>(
        &'a self,
        ledger: Ledger<'a>,
        dealt: Arc<P::Dealt>,
    ) -> Result<Generator<'a, P>, Error> {
        Generator::new(self, ledger, &dealt)
    }

    fn complete(&self, _ground: &(), own: Vec<Counts>, completed: &mut Completed) {
        let mut all = Counts::new(&*self.protocol);
        for counts in &own {
            all.merge(counts);
        }
        let errors = &mut completed.measurement.errors;
        errors.extend(all.classes.counted());
        completed.measurement.stream = Some(all.report(&*self.protocol, self.route.tls.as_ref()));
    }
}

/// How long a run of a ladder warms up and is measured, where a stream carries it; as HTTP.
pub(crate) const WARMUP: Duration = Duration::from_millis(300);
pub(crate) const MEASURE: Duration = Duration::from_millis(500);
pub(crate) const QUICK: Duration = Duration::from_millis(200);

impl Route {
    /// Why a connection to `target` cannot be established, and what to do.
    pub(crate) fn unconnected(&self, target: Target, error: std::io::Error) -> Error {
        use std::io::ErrorKind;
        if let (Some(tls), Some(failed)) = (&self.tls, tls::Failed::behind(&error)) {
            let (why, remedy) = tls.explain(failed);
            return Error::Tls {
                target,
                why,
                remedy,
            };
        }
        let is_unix = self.address.is_unix();
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
}
