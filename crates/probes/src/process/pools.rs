//! Connection pools to another server that are too small for the clients' requests.
//!
//! A proxy or an application that cannot open more connections to its server queues the requests of its clients: each
//! connection has an open request, and more client requests are open than that. The queue is in the memory of the
//! process, invisible to kernel counters; the two sides of its sockets show it. A process that works on its requests
//! before it calls another server has open requests too, but also while a connection is free. Sources: `tcp_get_info`
//! of net/ipv4/tcp.c, Linux 6.18; Little's law.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::{Endpoint, Question, TcpSocket};
use rungwise_model::keys;

use super::exchange::{self, Courses, ESTABLISHED, awaits, listening};
use super::waits::median;
use crate::net::port;
use crate::{Cost, Need, Probe, Source, When, Window, enter};

const SOURCE: &str = "sock_diag (ss -tinp)";

/// Fewest samples from which a share is taken.
const FEWEST: usize = 8;
/// Share of the samples with a request open on all connections to a server, from which on it is examined.
const FULL: f64 = 0.2;
/// Servers and listening ports whose processes are looked up.
const MOST: usize = 16;

/// Samples that must contain a pooled connection.
const KEPT: usize = 3;
/// Median age of the open requests, in milliseconds, from which on the server is slow or holds them on purpose: rule
/// `upstream-slow`.
const SOON_MS: f64 = 1_000.0;
/// A request of a client that is older may be a long poll.
const LONG_MS: u32 = 5_000;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "tcp-pools",
    summary: "connection pools to another server with a request open on every connection, and the client requests that wait for them",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Tcp, When::Each),
        Source::ask(Question::Tcp, When::Often),
        Source::ask(Question::Owners, When::Once),
    ],
    yields: &[
        &keys::DEPENDENCY_POOL,
        &keys::DEPENDENCY_POOL_FULL,
        &keys::DEPENDENCY_POOL_OF,
        &keys::DEPENDENCY_POOL_QUEUE,
        &keys::DEPENDENCY_POOL_QUEUE_ELSE,
    ],
    derive,
    doc: "\
For each process with client connections and a connection pool to another server: how often all connections of the \
pool have a request open (at least a fifth of the samples), and how many client requests are open beyond those passed \
on, in these samples and in the others. A pool is a set of connections that exist in at least three samples, each with \
data in both directions, whose number stays the same while all are in use, and whose requests are answered within a second. \
It is full as well where the same number of requests is open in nine samples of ten and never more: a proxy may keep more \
connections than it uses at a time, or replace them. A request is open if the last data on the connection is the request. Times are counted in ticks (4 ms at 250 \
Hz); within one tick the acknowledgements decide. Connections of several processes to one server are combined, under \
one of these processes. On a host with more than 1000 TCP sockets they are read in the full samples only, which are too few \
for a share. Sources: net/ipv4/tcp.c of Linux 6.18; ss(8).",
};

/// The contents of one sample.
struct Sample<'a> {
    /// Connections to each server.
    servers: BTreeMap<Endpoint, Connections<'a>>,
    /// Requests of clients that are open, by local port.
    open: BTreeMap<u16, usize>,
    /// A socket for each local port with clients.
    socket_of: BTreeMap<u16, &'a TcpSocket>,
}

/// Connections to one server.
#[derive(Default)]
struct Connections<'a> {
    all: Vec<&'a TcpSocket>,
    /// Milliseconds since the open requests among them were sent.
    open_ms: Vec<f64>,
}

impl Connections<'_> {
    fn are_full(&self) -> bool {
        self.all.len() == self.open_ms.len()
    }
}

impl<'a> Sample<'a> {
    fn of(sockets: &'a [TcpSocket], courses: &Courses) -> Self {
        let listening = listening(sockets);
        let mut sample = Self {
            servers: BTreeMap::new(),
            open: BTreeMap::new(),
            socket_of: BTreeMap::new(),
        };
        // A connection without an inode waits to be accepted.
        let connections = sockets
            .iter()
            .filter(|socket| socket.state == ESTABLISHED && socket.inode != 0);
        for socket in connections {
            let Some(info) = &socket.info else { continue };
            if listening.contains(&socket.local.port) {
                let port = socket.local.port;
                // A client that only sends waits for no answer, and one that waits for long does so on purpose.
                let is_open = courses.exchanges(socket)
                    && courses.owes(socket)
                    && info.last_data_recv_ms < LONG_MS;
                *sample.open.entry(port).or_default() += usize::from(is_open);
                sample.socket_of.insert(port, socket);
            } else {
                let to = sample.servers.entry(socket.remote).or_default();
                to.all.push(socket);
                if awaits(info) {
                    to.open_ms.push(f64::from(info.last_data_sent_ms));
                }
            }
        }
        sample
    }

    /// Requests to this server that are open.
    fn open_to(&self, server: Endpoint) -> usize {
        self.servers.get(&server).map_or(0, |to| to.open_ms.len())
    }

    /// All connections to this server have a request open, or as many as there may be.
    fn is_full(&self, server: Endpoint, limit: Option<usize>) -> bool {
        let all = self.servers.get(&server).is_some_and(Connections::are_full);
        all || limit.is_some_and(|limit| self.open_to(server) >= limit)
    }
}

/// How many requests to a server may be open: as many as in nearly all samples, and never more. A proxy may keep more connections
/// than it uses at a time.
fn limit(samples: &[Sample<'_>], server: Endpoint) -> Option<usize> {
    let open = || samples.iter().map(|sample| sample.open_to(server));
    let most = open().max().filter(|most| *most > 0)?;
    (10 * open().filter(|open| *open == most).count() >= 9 * samples.len()).then_some(most)
}

/// All samples; none if they are too few for a share: then each may have 100,000 sockets.
fn samples<'a>(window: &Window<'a>) -> (Vec<Sample<'a>>, Courses) {
    let sockets = exchange::sockets(window);
    if sockets.len() < FEWEST {
        return Default::default();
    }
    let courses = Courses::of(&sockets);
    let samples = sockets.into_iter();
    let samples = samples.map(|one| Sample::of(one, &courses)).collect();
    (samples, courses)
}

/// A server whose pool is full in some samples.
struct Full {
    /// In this share of them.
    share: f64,
    server: Endpoint,
    limit: Option<usize>,
}

/// Servers of pools that are full in some samples; those most often full first.
///
/// A pool has the same connections in several samples, on each of which data went both ways, and no more of them while
/// requests wait; or it opens them anew, but has never more requests open than in nine samples of ten (a client that gives up ends
/// the connection of its request). A connection for each request is no pool, nor is one on which a server holds a request for
/// long, or that only sends.
fn full(samples: &[Sample<'_>], courses: &Courses) -> Vec<Full> {
    let Some(last) = samples.last() else {
        return Vec::new();
    };
    let full_pool = |server: Endpoint| {
        let limit = limit(samples, server);
        let full = || {
            samples
                .iter()
                .filter(|sample| sample.is_full(server, limit))
        };
        let of = |sample: &'_ Sample<'_>| sample.servers.get(&server).map_or(0, |to| to.all.len());
        let most = samples.iter().map(of).max().unwrap_or(0);
        let at_most = full().filter(|sample| of(sample) == most).count();
        let open: Vec<f64> = full()
            .filter_map(|sample| sample.servers.get(&server))
            .flat_map(|to| to.open_ms.iter().copied())
            .collect();
        let fits = |socket: &&TcpSocket| {
            if courses.seen(socket) >= KEPT {
                // An unused connection does not matter where the number of open requests is the limit.
                limit.is_some() && !courses.moves(socket) || courses.exchanges(socket)
            } else {
                limit.is_some()
            }
        };
        let is_pool = last.servers[&server].all.iter().all(fits)
            && (limit.is_some() || 10 * at_most >= 9 * full().count())
            && median(&open) < SOON_MS;
        let share = full().count() as f64 / samples.len() as f64;
        (is_pool && share >= FULL).then_some(Full {
            share,
            server,
            limit,
        })
    };
    let servers = last.servers.keys().copied();
    let mut found: Vec<Full> = servers.filter_map(full_pool).collect();
    found.sort_by(|a, b| {
        let by_share = b.share.total_cmp(&a.share);
        by_share.then(a.server.cmp(&b.server))
    });
    found.truncate(MOST);
    found
}

/// Inodes of the sockets whose processes are looked up.
pub(crate) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let (samples, courses) = samples(window);
    let full = full(&samples, &courses);
    let (Some(last), false) = (samples.last(), full.is_empty()) else {
        return BTreeSet::new();
    };
    // Requests that were passed on to other servers are not in the queue, so their connections count as well.
    let servers = full.iter().map(|full| &full.server);
    let servers = servers.chain(last.servers.keys()).take(4 * MOST);
    let to = servers.filter_map(|server| last.servers[server].all.first());
    let of = last.socket_of.values().take(MOST);
    to.chain(of).map(|socket| socket.inode).collect()
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if let Err(why) = window.answers("tcp") {
        return evidence.absent(PROBE.yields, &why, SOURCE);
    }
    let (samples, courses) = samples(window);
    let Some(last) = samples.last() else {
        let why = format!(
            "sockets were read fewer than {FEWEST} times: the window has one sample, or there are more than 1000 TCP sockets"
        );
        let why = Absence::because(why).remedy("observe for some seconds: --for 10s");
        return evidence.absent(PROBE.yields, &why, SOURCE);
    };
    let owners = port::owners(window).ok();
    let owner = |socket: &TcpSocket| Some(owners?.get(&socket.inode)?.pid);
    let pid_to: BTreeMap<Endpoint, u32> = (last.servers.iter())
        .filter_map(|(server, to)| Some((*server, owner(to.all.first()?)?)))
        .collect();
    let pid_of: BTreeMap<u16, u32> = (last.socket_of.iter())
        .filter_map(|(port, socket)| Some((*port, owner(socket)?)))
        .collect();
    for Full {
        share,
        server,
        limit,
    } in full(&samples, &courses)
    {
        let Some(pid) = pid_to.get(&server).copied() else {
            continue;
        };
        let subject = || Subject::new(Kind::Process, pid);
        // Without clients it is a client itself, such as a load generator.
        if !pid_of.values().any(|of| *of == pid)
            || evidence
                .quantity(&keys::DEPENDENCY_POOL_FULL, &subject())
                .is_ok()
        {
            continue;
        }
        let queue = |sample: &Sample<'_>| {
            let open = sample
                .open
                .iter()
                .filter(|(port, _)| pid_of.get(port) == Some(&pid));
            let open: usize = open.map(|(_, open)| open).sum();
            let to = sample.servers.iter();
            let busy = to.filter(|(to, _)| pid_to.get(to) == Some(&pid));
            let busy: usize = busy.map(|(_, to)| to.open_ms.len()).sum();
            open.saturating_sub(busy) as f64
        };
        let queues = |is_full: bool| -> Vec<f64> {
            let of = |sample: &&Sample<'_>| sample.is_full(server, limit) == is_full;
            samples.iter().filter(of).map(queue).collect()
        };
        let mean = |queues: &[f64]| queues.iter().sum::<f64>() / queues.len() as f64;
        let (behind, otherwise) = (queues(true), queues(false));
        let to = samples
            .iter()
            .filter_map(|sample| sample.servers.get(&server));
        let most = to.map(|to| to.all.len()).max().unwrap_or(0);
        let connections = limit.unwrap_or(most);
        let line = format!(
            "{server}: a request open on all connections (at most {connections}) in {} of {} samples; \
             client requests not passed on meanwhile {:?}",
            behind.len(),
            samples.len(),
            behind
        );
        let origin = || Origin::new(SOURCE, line.clone());
        let number = |evidence: &mut Evidence, key, value| {
            evidence.number(key, subject(), value, origin());
        };
        number(evidence, &keys::DEPENDENCY_POOL, connections as f64);
        number(evidence, &keys::DEPENDENCY_POOL_FULL, share);
        number(evidence, &keys::DEPENDENCY_POOL_QUEUE, mean(&behind));
        if !otherwise.is_empty() {
            number(
                evidence,
                &keys::DEPENDENCY_POOL_QUEUE_ELSE,
                mean(&otherwise),
            );
        }
        evidence.text(
            &keys::DEPENDENCY_POOL_OF,
            subject(),
            server.to_string(),
            origin(),
        );
    }
    let none = Absence::none("no process has all its connections to a server busy");
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::TcpInfo;

    use super::super::exchange::LISTEN;
    use super::*;

    /// A connection of 10.0.0.1 that is in sample number `sample`: with a client at port 80, or to port 90 of 10.0.0.9.
    fn socket(sample: u64, clients: bool, number: u16, open: bool, answers: bool) -> TcpSocket {
        let (sent, received) = if clients == open { (60, 8) } else { (8, 60) };
        let (local, far) = if clients {
            (80, 5_000 + number)
        } else {
            (6_000 + number, 90)
        };
        let bytes = 100 + 100 * sample;
        TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), local),
            remote: Endpoint::new([10, 0, 0, 9].into(), far),
            state: ESTABLISHED,
            inode: u64::from(local) << 16 | u64::from(far),
            info: Some(TcpInfo {
                last_data_sent_ms: sent,
                last_data_recv_ms: received,
                last_ack_recv_ms: sent,
                bytes_acked: Some(bytes),
                bytes_received: Some(if answers { bytes } else { 100 }),
                ..TcpInfo::default()
            }),
            ..TcpSocket::default()
        }
    }

    /// Ten samples of `connections` to a server, of which `busy` have a request open in the first `full` samples and
    /// one is free in the others, and of five clients with four requests open.
    fn shares(connections: u16, full_in: u64, alter: fn(u64, TcpSocket) -> TcpSocket) -> usize {
        let listener = TcpSocket {
            local: Endpoint::new([0, 0, 0, 0].into(), 80),
            state: LISTEN,
            inode: 1,
            ..TcpSocket::default()
        };
        let sockets: Vec<Vec<TcpSocket>> = (0..10)
            .map(|sample| {
                let open = |number: u16| number > 0 || sample < full_in;
                let to = (0..connections)
                    .map(|number| alter(sample, socket(sample, false, number, open(number), true)));
                let of = (0..5).map(|number| socket(sample, true, number, number < 4, true));
                to.chain(of).chain([listener.clone()]).collect()
            })
            .collect();
        let sockets: Vec<&[TcpSocket]> = sockets.iter().map(|sockets| &sockets[..]).collect();
        let courses = Courses::of(&sockets);
        let samples: Vec<Sample<'_>> = sockets
            .iter()
            .map(|one| Sample::of(one, &courses))
            .collect();
        assert_eq!(samples[9].open.get(&80), Some(&4));
        full(&samples, &courses).len()
    }

    #[test]
    fn a_pool_is_full_where_each_of_its_connections_has_a_request_open() {
        let as_it_is = |_, socket| socket;
        assert_eq!(shares(2, 1, as_it_is), 0);
        assert_eq!(shares(2, 2, as_it_is), 1);
        assert_eq!(shares(2, 10, as_it_is), 1);
    }

    #[test]
    fn a_pool_may_replace_its_connections_but_has_never_more() {
        let new_each_time = |sample, mut socket: TcpSocket| {
            socket.inode += 1_000 * sample;
            socket
        };
        assert_eq!(shares(2, 10, new_each_time), 1);
    }

    #[test]
    fn what_is_no_pool_is_not_called_full() {
        // A connection for each request, and so more or fewer of them.
        let new_each_time = |sample, mut socket: TcpSocket| {
            socket.inode += 1_000 * sample;
            if sample % 2 == 1 && socket.local.port == 6_001 {
                socket.inode = 0;
            }
            socket
        };
        assert_eq!(shares(2, 10, new_each_time), 0);
        // A request that the server holds for long.
        let long = |_, mut socket: TcpSocket| {
            let info = socket.info.as_mut().unwrap();
            (info.last_data_sent_ms, info.last_data_recv_ms) = (9_000, 30_000);
            socket
        };
        assert_eq!(shares(1, 10, long), 0);
        // A connection that only sends.
        let one_way = |sample, socket: TcpSocket| {
            self::socket(sample, false, socket.local.port - 6_000, true, false)
        };
        assert_eq!(shares(1, 10, one_way), 0);
    }
}
