//! Pools of connections to another server that are too small for what clients ask.
//!
//! A proxy or an application that may open no more connections to its server queues requests of its clients itself: each of the
//! connections has a request open, and more requests of clients are open than that. The queue is in the memory of the process,
//! where no counter of the kernel shows it; the two sides of its sockets do. A process that works on its requests before it asks
//! another server has open requests too, but has them as well while a connection is free.
//! Sources: `tcp_get_info` of net/ipv4/tcp.c, Linux 6.18; Little's law.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Endpoint, Question, TcpInfo, TcpSocket};
use rungwise_model::keys;

use super::dependencies::awaits_answer;
use crate::capture::Reply;
use crate::net::port;
use crate::{Cost, Need, Probe, Source, When, Window, enter};

const SOURCE: &str = "sock_diag (ss -tinp)";

/// Fewest samples from which a share is taken.
const FEWEST: usize = 8;
/// Share of the samples in which all connections to a server have a request open, from which on it is looked at.
const FULL: f64 = 0.2;
/// Servers and listening ports whose processes are looked for.
const MOST: usize = 16;

/// States of `include/net/tcp_states.h`.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "tcp-pools",
    summary: "connections to another server that all have a request open, and the client requests that wait behind them",
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
Of each process with client connections and connections to other servers: the server whose connections all have a request open in \
most samples (a fifth of them at least), and how many requests of clients are open beyond those that were passed on, in these samples and in the others. A request is open \
if the last data on the connection is the request. Times are counted in ticks (4 ms at 250 Hz); within one tick the acknowledgements \
decide: the server has not yet acknowledged the request, or the client acknowledged the last answer together with its next request. \
On a host with more than 300 sockets they are read at the looks only, which are too few for a share. \
Sources: net/ipv4/tcp.c of Linux 6.18; ss(8).",
};

/// What one sample shows.
struct Sample<'a> {
    /// Connections to a server, and those of them with an open request.
    servers: BTreeMap<Endpoint, (usize, usize)>,
    /// Requests of clients that are open, by local port.
    open: BTreeMap<u16, usize>,
    /// A socket for each server and for each local port with clients.
    socket_to: BTreeMap<Endpoint, &'a TcpSocket>,
    socket_of: BTreeMap<u16, &'a TcpSocket>,
}

impl<'a> Sample<'a> {
    fn of(sockets: &'a [TcpSocket]) -> Self {
        let listening: HashSet<u16> = sockets
            .iter()
            .filter(|socket| socket.state == LISTEN)
            .map(|socket| socket.local.port)
            .collect();
        let mut sample = Self {
            servers: BTreeMap::new(),
            open: BTreeMap::new(),
            socket_to: BTreeMap::new(),
            socket_of: BTreeMap::new(),
        };
        for socket in sockets.iter().filter(|socket| socket.state == ESTABLISHED) {
            let Some(info) = &socket.info else { continue };
            if listening.contains(&socket.local.port) {
                let port = socket.local.port;
                *sample.open.entry(port).or_default() += usize::from(owes_answer(info));
                sample.socket_of.insert(port, socket);
            } else {
                let (all, busy) = sample.servers.entry(socket.remote).or_default();
                *all += 1;
                *busy += usize::from(awaits_answer(info));
                sample.socket_to.insert(socket.remote, socket);
            }
        }
        sample
    }

    /// All connections to this server have a request open; none where there is no connection.
    fn is_full(&self, server: Endpoint) -> Option<bool> {
        self.servers.get(&server).map(|(all, busy)| all == busy)
    }
}

/// Whether a server has received something that it has not answered. A client on a busy connection acknowledges the answer with its
/// next request; one that has nothing more to ask does it later, on its own.
fn owes_answer(info: &TcpInfo) -> bool {
    let (sent, received) = (info.last_data_sent_ms, info.last_data_recv_ms);
    let has_received = info.bytes_received.unwrap_or(0) > 0;
    let has_sent = info.bytes_acked.unwrap_or(0) > 1;
    match (has_received, has_sent) {
        (true, true) if sent == received => info.unacked == 0 && info.last_ack_recv_ms >= received,
        (true, true) => received < sent,
        (has_received, _) => has_received,
    }
}

/// All samples; none where they are too few for a share: then there may be 100,000 sockets in each.
fn samples<'a>(window: &Window<'a>) -> Vec<Sample<'a>> {
    let moments = window.often().into_iter();
    let sockets = moments.filter_map(|moment| match moment.answers.get("tcp")? {
        Reply::Answer(Answer::Tcp(sockets)) => Some(sockets),
        Reply::Answer(_) | Reply::Failed(_) => None,
    });
    let sockets: Vec<_> = sockets.collect();
    if sockets.len() < FEWEST {
        return Vec::new();
    }
    sockets.into_iter().map(|one| Sample::of(one)).collect()
}

/// Servers whose connections all have a request open in a part of the samples, with that part; the most of them first.
fn full(samples: &[Sample<'_>]) -> Vec<(f64, Endpoint)> {
    let Some(last) = samples.last() else {
        return Vec::new();
    };
    let mut servers: Vec<(f64, Endpoint)> = last
        .servers
        .keys()
        .map(|server| {
            let full = samples
                .iter()
                .filter(|sample| sample.is_full(*server) == Some(true));
            (full.count() as f64 / samples.len() as f64, *server)
        })
        .filter(|(share, _)| *share >= FULL)
        .collect();
    servers.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
    servers.truncate(MOST);
    servers
}

/// Inodes of the sockets whose processes are looked for.
pub(crate) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let samples = samples(window);
    let (Some(last), false) = (samples.last(), full(&samples).is_empty()) else {
        return BTreeSet::new();
    };
    // Requests that were passed on to other servers are not in the queue, so their connections count as well.
    let to = last.socket_to.values().take(4 * MOST);
    let of = last.socket_of.values().take(MOST);
    let inodes = to.chain(of).map(|socket| socket.inode);
    inodes.filter(|inode| *inode != 0).collect()
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if let Err(why) = window.answers("tcp") {
        return evidence.absent(PROBE.yields, &why, SOURCE);
    }
    let samples = samples(window);
    let Some(last) = samples.last() else {
        let why = format!(
            "sockets were read fewer than {FEWEST} times: the window is one moment, or there are more than 300 of them"
        );
        let why = Absence::because(why).remedy("--for 10s");
        return evidence.absent(PROBE.yields, &why, SOURCE);
    };
    let owners = port::owners(window).ok();
    let owner = |socket: &TcpSocket| Some(owners?.get(&socket.inode)?.pid);
    let pid_to: BTreeMap<Endpoint, u32> = (last.socket_to.iter())
        .filter_map(|(server, socket)| Some((*server, owner(socket)?)))
        .collect();
    let pid_of: BTreeMap<u16, u32> = (last.socket_of.iter())
        .filter_map(|(port, socket)| Some((*port, owner(socket)?)))
        .collect();
    for (share, server) in full(&samples) {
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
            let busy = sample
                .servers
                .iter()
                .filter(|(to, _)| pid_to.get(to) == Some(&pid));
            let busy: usize = busy.map(|(_, (_, busy))| busy).sum();
            open.saturating_sub(busy) as f64
        };
        let queues = |is_full: bool| -> Vec<f64> {
            let of = |sample: &&Sample<'_>| (sample.is_full(server) == Some(true)) == is_full;
            samples.iter().filter(of).map(queue).collect()
        };
        let mean = |queues: &[f64]| queues.iter().sum::<f64>() / queues.len() as f64;
        let (behind, otherwise) = (queues(true), queues(false));
        let connections = samples
            .iter()
            .filter_map(|sample| sample.servers.get(&server));
        let connections = connections.map(|(all, _)| *all).max().unwrap_or(0);
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
    let none = Absence::none("no process keeps all its connections to a server busy");
    enter::unless_told(evidence, PROBE.yields, &none, SOURCE);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(sent: u32, received: u32, ack: u32, unacked: u32) -> TcpInfo {
        TcpInfo {
            last_data_sent_ms: sent,
            last_data_recv_ms: received,
            last_ack_recv_ms: ack,
            unacked,
            bytes_acked: Some(100),
            bytes_received: Some(100),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn within_one_tick_acknowledgements_tell_an_open_request() {
        // Of a client: sent after the last answer; in the same tick and not acknowledged; acknowledged since; answered.
        assert!(awaits_answer(&info(8, 40, 40, 0)));
        assert!(awaits_answer(&info(40, 40, 40, 1)));
        assert!(awaits_answer(&info(60, 60, 20, 0)));
        assert!(!awaits_answer(&info(60, 60, 60, 0)));
        assert!(!awaits_answer(&info(60, 40, 40, 0)));
        // Of a server: the next request acknowledged the answer; nobody did yet; the client did later, with nothing to ask.
        assert!(owes_answer(&info(60, 60, 60, 0)));
        assert!(!owes_answer(&info(60, 60, 60, 1)));
        assert!(!owes_answer(&info(60, 60, 20, 0)));
        assert!(owes_answer(&info(60, 8, 8, 0)));
    }

    /// A proxy 10.0.0.1 with clients at port 80 and connections to port 90 of 10.0.0.9.
    fn socket(clients: bool, number: u16, open: bool) -> TcpSocket {
        let (sent, received) = if clients == open { (60, 8) } else { (8, 60) };
        let (local, far) = if clients {
            (80, 5_000 + number)
        } else {
            (6_000 + number, 90)
        };
        TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), local),
            remote: Endpoint::new([10, 0, 0, 9].into(), far),
            state: ESTABLISHED,
            inode: u64::from(local) << 16 | u64::from(far),
            info: Some(info(sent, received, sent, 0)),
            ..TcpSocket::default()
        }
    }

    fn listener() -> TcpSocket {
        TcpSocket {
            local: Endpoint::new([0, 0, 0, 0].into(), 80),
            state: LISTEN,
            inode: 1,
            ..TcpSocket::default()
        }
    }

    #[test]
    fn a_server_is_full_where_each_connection_has_a_request_open() {
        let mut sockets = vec![listener()];
        sockets.extend((0..2).map(|number| socket(false, number, true)));
        sockets.extend((0..5).map(|number| socket(true, number, number < 4)));
        let sample = Sample::of(&sockets);
        let server = Endpoint::new([10, 0, 0, 9].into(), 90);
        assert_eq!(sample.is_full(server), Some(true));
        assert_eq!(sample.open.get(&80), Some(&4));
        sockets.push(socket(false, 2, false));
        assert_eq!(Sample::of(&sockets).is_full(server), Some(false));
        let full_of = |full: usize| {
            let free = sockets.clone();
            let busy = &sockets[..sockets.len() - 1];
            let of = |number| {
                if number < full {
                    Sample::of(busy)
                } else {
                    Sample::of(&free)
                }
            };
            super::full(&(0..10).map(of).collect::<Vec<_>>()).len()
        };
        assert_eq!((full_of(1), full_of(2), full_of(10)), (0, 1, 1));
    }
}
