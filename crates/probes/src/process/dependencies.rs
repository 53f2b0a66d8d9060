//! Dependencies between processes: unanswered requests on both sides of a process, unanswered connection attempts and
//! DNS queries, unread data.
//!
//! `tcp_info` contains how long ago data was last sent and last received on a connection. If the last data came in, the process
//! owes an answer; if the last data went out and was acknowledged, its peer does. Taken in a few samples this gives the
//! number of open requests and how long they have been open, for connections that live longer than a request as well as
//! for those that do not. Sources: `tcp_get_info` of net/ipv4/tcp.c, Linux 6.18; resolv.conf(5) for the 5 s of a resolver.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rungwise_formats::syscall;
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Endpoint, TcpSocket};
use rungwise_model::keys;

use super::dns::{self, Query};
use super::exchange::{
    self, CLOSE_WAIT, Courses, ESTABLISHED, LISTEN, awaits, both, complete, is_lopsided, listening,
};
use super::hung::hung_ports;
use super::waits::median;
use crate::net::port;
use crate::window::misplaced;
use crate::{Cost, Need, Probe, Source, When, Window, enter};
use rungwise_model::kernel::Question;

const SOURCE: &str = "sock_diag (ss -tinp)";

/// Milliseconds from which on an answer is late: forty times a request to a local service, and longer than a disk write.
const LATE_MS: u32 = 20;

/// Until then a request that was lost is not sent again, and one that arrived may not be acknowledged: a retransmission
/// takes 200 ms and more, and a kernel that delays its acknowledgement some 40 ms (`TCP_RTO_MIN` and `TCP_DELACK_MIN`
/// of include/net/tcp.h).
const SURELY_ACKNOWLEDGED_MS: u32 = 100;

/// An answer older than this is not of this window.
const RECENT_MS: u32 = 5_000;

/// Shortest mean response time that is reported, in milliseconds: the kernel counts in ticks of 4 ms at 250 Hz.
const TOLD_MS: f64 = 2.0;

/// Fewest responses for a mean.
const FEWEST_ANSWERS: usize = 4;

/// Processes that are looked up, by kind of wait.
const MOST: usize = 16;

/// States of `include/net/tcp_states.h`.
const SYN_SENT: u8 = 2;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "tcp-dependencies",
    summary: "requests, connection attempts and DNS queries that stay unanswered, by process",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Tcp, When::Each),
        Source::ask(Question::Tcp, When::Often),
        Source::ask(Question::Udp, When::Each),
        Source::ask(Question::Udp, When::Often),
        Source::ask(Question::Owners, When::Once),
    ],
    yields: &[
        &keys::DEPENDENCY_ANSWER,
        &keys::DEPENDENCY_ANSWER_OF,
        &keys::DEPENDENCY_CLIENTS,
        &keys::DEPENDENCY_CLIENTS_UNANSWERED,
        &keys::DEPENDENCY_CLIENT_WAIT,
        &keys::DEPENDENCY_CONNECTING,
        &keys::DEPENDENCY_CONNECTING_TO,
        &keys::DEPENDENCY_ONE_WAY,
        &keys::DEPENDENCY_RESOLVER,
        &keys::DEPENDENCY_QUERIES_OPEN,
        &keys::DEPENDENCY_QUERIES_SERVER,
        &keys::DEPENDENCY_RESOLVING,
        &keys::DEPENDENCY_RESOLVING_FOR,
        &keys::DEPENDENCY_RESOLVING_LATE,
        &keys::DEPENDENCY_RESOLVING_OPEN,
        &keys::DEPENDENCY_RESOLVING_SERVER,
        &keys::DEPENDENCY_SAMPLES,
        &keys::DEPENDENCY_UPSTREAM,
        &keys::DEPENDENCY_WAIT,
        &keys::DEPENDENCY_WAITING,
        &keys::PROCESS_UNREAD,
    ],
    derive,
    doc: "\
A client connection is one to a listening port of this host; every other connection is an upstream connection. A \
request is late if it has been open for more than 20 ms. A port hangs if at least \
three of its connections, and half of them, have waited for an answer for a second to five minutes, and none that waited \
was answered or closed by the service in the window. A client that only confirms what it got, or sends on without an \
answer, does not wait. A connection on which small messages went one way, and hardly anything came back, has no requests. A connection with data in one direction only (three samples \
or more) may be a log stream: if no connection to the same end is answered, it is reported as such. For requests \
answered within the last 5 s, the response time is the time between the last data out and the last data in; within one \
tick the acknowledgements show which data came last. The kernel counts in ticks, so only means of at least 4 responses \
and 2 ms are reported. Upstream requests older than 100 ms count once the peer's kernel has acknowledged them, so a \
lossy path is not mistaken for a slow server. A connection attempt or a query to port 53 counts if its socket exists \
in two consecutive samples; an attempt also counts if its server is tried in most samples and reached in none. A \
socket to port 53 that exists in every sample may belong to a resolver that keeps its sockets, and counts only if a \
thread of its process sleeps in poll(2) on one descriptor, like the resolver of glibc. A query is late if its socket is \
seen for 40 ms and is gone within a quarter of a second. Both ends lie between samples, 48 ms apart in a window of 10 s, so \
only answers after 100 ms are surely counted; in longer windows and with many threads samples are further apart, and late \
answers are missed. The mean number of open queries to one server is reported from 20 samples and ten queries on; sockets that existed \
in the first sample or for a quarter of a second are left out. Resolvers whose sockets are not connected (Netty) are not seen. Data counts as unread if it \
waits in every full sample and in three quarters of all samples. Processes are looked up for at most 16 sockets of \
each kind. On a host with more than 1000 TCP sockets only the two ends of the window are complete: clients, upstreams and \
connection attempts have to wait at both. Sources: \
net/ipv4/tcp.c and net/ipv4/inet_diag.c of Linux 6.18; ss(8), resolv.conf(5).",
};

/// The contents of one sample.
struct Sample<'a> {
    /// Client connections with a late answer: local port, milliseconds, socket.
    owed: Vec<(u16, u32, &'a TcpSocket)>,
    /// All client connections: local port, socket.
    served: Vec<(u16, &'a TcpSocket)>,
    /// Upstream connections with a late answer: server, milliseconds.
    awaited: Vec<(Endpoint, u32)>,
    /// All upstream connections: server, milliseconds since something was sent, socket.
    upstream: Vec<(Endpoint, u32, &'a TcpSocket)>,
    /// Upstream connections whose last request was answered: server, milliseconds that the answer took, socket.
    answered: Vec<(Endpoint, u32, &'a TcpSocket)>,
    /// Servers that never answer although data is sent to them repeatedly.
    one_way: HashSet<Endpoint>,
    connecting: HashMap<(Endpoint, Endpoint), &'a TcpSocket>,
    /// Of the servers to which a connection attempt was seen in the window, those with an open connection.
    reached: HashSet<Endpoint>,
    unread: HashMap<(Endpoint, Endpoint), &'a TcpSocket>,
}

impl<'a> Sample<'a> {
    fn of(sockets: &'a [TcpSocket], courses: &Courses, tried: &HashSet<Endpoint>) -> Self {
        let listening = listening(sockets);
        let mut sample = Self {
            owed: Vec::new(),
            served: Vec::new(),
            awaited: Vec::new(),
            upstream: Vec::new(),
            answered: Vec::new(),
            one_way: HashSet::new(),
            connecting: HashMap::new(),
            reached: HashSet::new(),
            unread: HashMap::new(),
        };
        for socket in sockets {
            let ends = (socket.local, socket.remote);
            if socket.state != SYN_SENT && tried.contains(&socket.remote) {
                sample.reached.insert(socket.remote);
            }
            match socket.state {
                SYN_SENT => _ = sample.connecting.insert(ends, socket),
                LISTEN if socket.rqueue > 0 => _ = sample.unread.insert(ends, socket),
                ESTABLISHED | CLOSE_WAIT => {
                    let serves = listening.contains(&socket.local.port);
                    // At the end of a connection one byte is counted for the FIN.
                    if serves && socket.rqueue > 1 {
                        sample.unread.insert(ends, socket);
                    }
                    sample.open(serves, socket, courses);
                }
                _ => {}
            }
        }
        sample
    }

    /// Adds a connection with an open request.
    fn open(&mut self, serves: bool, socket: &'a TcpSocket, courses: &Courses) {
        let Some(info) = &socket.info else { return };
        let one_way = courses.is_one_way(socket, serves);
        if one_way && serves {
            return;
        }
        if one_way {
            self.one_way.insert(socket.remote);
        }
        if serves {
            self.served.push((socket.local.port, socket));
        }
        let (sent, received) = (info.last_data_sent_ms, info.last_data_recv_ms);
        let (has_received, has_sent) = both(info);
        let is_request = !(has_received && has_sent && is_lopsided(info, serves));
        let owes = is_request && courses.owes(socket);
        let awaits = is_request && awaits(info);
        // A request that the peer's kernel has not acknowledged may be lost; one that is lost is sent again.
        let arrived = socket.wqueue == 0 || info.retransmits == 0 && sent < SURELY_ACKNOWLEDGED_MS;
        if serves && owes && received >= LATE_MS {
            self.owed.push((socket.local.port, received, socket));
        } else if !serves && awaits && sent >= LATE_MS && arrived {
            self.awaited.push((socket.remote, sent));
        }
        if !serves {
            self.upstream.push((socket.remote, sent, socket));
        }
        // Both are ages, so the response time is their difference. An old one is not current.
        if !serves && is_request && !awaits && has_received && has_sent && sent < RECENT_MS {
            self.answered.push((socket.remote, sent - received, socket));
        }
    }
}

/// Waits over the samples of the window.
struct Waits<'a> {
    /// From the full samples, which are far apart.
    full_samples: Vec<Sample<'a>>,
    /// From those of them that list all sockets, for connection attempts.
    complete_samples: Vec<Sample<'a>>,
    /// From all samples that list all sockets: what lasts for milliseconds.
    samples: Vec<Sample<'a>>,
    resolving: Vec<Query<'a>>,
}

/// The sockets of each full sample.
fn full_samples<'a>(window: &Window<'a>) -> Result<Vec<&'a [TcpSocket]>, Absence> {
    let answers = window.answers("tcp")?.into_iter();
    let sockets = answers.map(|(_, answer)| match answer {
        Answer::Tcp(sockets) => Ok(&sockets[..]),
        other => Err(misplaced("tcp", other)),
    });
    sockets.collect()
}

fn waits<'a>(window: &Window<'a>) -> Result<Waits<'a>, Absence> {
    let all = exchange::sockets(window);
    let courses = Courses::of(&all);
    let attempts = all.iter().copied().flatten();
    let attempts = attempts.filter(|socket| socket.state == SYN_SENT);
    let tried: HashSet<Endpoint> = attempts.map(|socket| socket.remote).collect();
    let sample = |sockets: &'a [TcpSocket]| Sample::of(sockets, &courses, &tried);
    let listed = full_samples(window)?;
    Ok(Waits {
        complete_samples: complete(listed.clone()).into_iter().map(sample).collect(),
        full_samples: listed.into_iter().map(sample).collect(),
        samples: all.into_iter().map(sample).collect(),
        resolving: dns::queries(window),
    })
}

impl<'a> Waits<'a> {
    /// Servers that answered late in more than half of the samples. Requests sent together are all young in some sample.
    fn slow(&self) -> BTreeSet<Endpoint> {
        let mut late: BTreeMap<Endpoint, usize> = BTreeMap::new();
        for sample in &self.samples {
            let servers: BTreeSet<Endpoint> =
                sample.awaited.iter().map(|(server, _)| *server).collect();
            for server in servers {
                *late.entry(server).or_default() += 1;
            }
        }
        late.retain(|_, samples| 2 * *samples > self.samples.len());
        late.into_keys().collect()
    }

    /// Ports whose clients wait in more than half of the samples.
    fn late(&self) -> BTreeSet<u16> {
        let all = self.samples.iter().flat_map(|sample| &sample.owed);
        let mut ports: BTreeSet<u16> = all.map(|(port, ..)| *port).collect();
        ports.retain(|port| {
            let of = |sample: &&Sample<'a>| sample.owed.iter().any(|(local, ..)| local == port);
            2 * self.samples.iter().filter(of).count() > self.samples.len()
        });
        ports
    }

    /// Servers by the mean time of their answers, in milliseconds, and how many there were; the slowest first.
    fn answers(&self) -> Vec<(f64, usize, Endpoint)> {
        let mut of: BTreeMap<Endpoint, (f64, usize)> = BTreeMap::new();
        // The same answer may appear in several samples.
        let mut counted: HashMap<u64, Option<u64>> = HashMap::new();
        for (server, ms, socket) in self.samples.iter().flat_map(|sample| &sample.answered) {
            let received = socket.info.as_ref().and_then(|info| info.bytes_received);
            if counted.insert(socket.inode, received) == Some(received) && received.is_some() {
                continue;
            }
            let (sum, count) = of.entry(*server).or_default();
            *sum += f64::from(*ms);
            *count += 1;
        }
        let mut means: Vec<_> = of
            .into_iter()
            .filter(|(_, (_, count))| *count >= FEWEST_ANSWERS)
            .map(|(server, (sum, count))| (sum / count as f64, count, server))
            .filter(|(mean, ..)| *mean >= TOLD_MS)
            .collect();
        means.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        means.truncate(MOST);
        means
    }

    /// Sockets that wait in the last full sample and existed in the one before.
    fn lasting(
        samples: &[Sample<'a>],
        of: for<'s> fn(&'s Sample<'a>) -> &'s HashMap<(Endpoint, Endpoint), &'a TcpSocket>,
        all: bool,
    ) -> Vec<&'a TcpSocket> {
        let [before @ .., last] = samples else {
            return Vec::new();
        };
        let earlier = if all {
            before
        } else {
            &before[before.len().saturating_sub(1)..]
        };
        let mut found: Vec<&TcpSocket> = of(last)
            .iter()
            .filter(|(ends, socket)| {
                let same = |sample: &Sample<'a>| {
                    of(sample)
                        .get(*ends)
                        .is_some_and(|other| other.inode == socket.inode)
                };
                !earlier.is_empty() && earlier.iter().all(same)
            })
            .map(|(_, socket)| *socket)
            .collect();
        found.sort_by_key(|socket| (socket.local, socket.remote));
        found
    }

    /// Attempts that last from one sample to the next, and those to a server that is tried in most samples and reached in none: a
    /// caller with a short timeout opens a new socket each time.
    fn connecting(&self) -> Vec<&'a TcpSocket> {
        let samples = &self.complete_samples[..];
        let mut found = Self::lasting(samples, |sample| &sample.connecting, false);
        // In two samples, a new attempt to the same server may be there by chance.
        let [_, _, .., last] = samples else {
            return found;
        };
        let tries = |sample: &&Sample<'a>, server: Endpoint| {
            sample.connecting.keys().any(|(_, to)| *to == server)
        };
        let in_vain = |server: Endpoint| {
            let tried = samples.iter().filter(|sample| tries(sample, server));
            2 * tried.count() > samples.len()
                && !self
                    .samples
                    .iter()
                    .any(|sample| sample.reached.contains(&server))
        };
        let mut more: Vec<&TcpSocket> = last
            .connecting
            .values()
            .copied()
            .filter(|socket| in_vain(socket.remote))
            .filter(|socket| found.iter().all(|known| known.inode != socket.inode))
            .collect();
        more.sort_by_key(|socket| (socket.local, socket.remote));
        found.extend(more);
        found
    }

    /// Sockets with data waiting in every full sample and in most samples: our own sampling delays a service that has
    /// to wait for a CPU.
    fn unread(&self) -> Vec<&'a TcpSocket> {
        let mut found = Self::lasting(&self.full_samples, |sample| &sample.unread, true);
        found.retain(|socket| {
            let ends = (socket.local, socket.remote);
            let waits = |sample: &&Sample<'a>| sample.unread.contains_key(&ends);
            4 * self.samples.iter().filter(waits).count() >= 3 * self.samples.len()
        });
        found
    }
}

/// Inodes of the sockets whose processes are looked up.
pub(crate) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let Ok(waits) = waits(window) else {
        return BTreeSet::new();
    };
    let mut inodes = BTreeSet::new();
    if let Some(last) = waits.samples.last() {
        // The youngest requests are the ones whose connections are still there when their processes are looked up.
        let slow = waits.slow();
        let mut upstream: Vec<_> = last.upstream.iter().collect();
        upstream.retain(|(server, ..)| slow.contains(server));
        upstream.sort_by_key(|(_, sent_ms, _)| *sent_ms);
        // One connection identifies the process of them all.
        for (.., server) in waits.answers() {
            let socket = last.upstream.iter().find(|(to, ..)| *to == server);
            inodes.extend(socket.map(|(.., socket)| socket.inode));
        }
        let mut owed: Vec<_> = last.owed.iter().collect();
        owed.sort_by_key(|(_, waited_ms, _)| *waited_ms);
        for port in waits.late().into_iter().take(MOST) {
            let socket = last.served.iter().find(|(local, _)| *local == port);
            inodes.extend(socket.map(|(_, socket)| socket.inode));
        }
        inodes.extend(upstream.iter().take(MOST).map(|(.., socket)| socket.inode));
        inodes.extend(owed.iter().take(MOST).map(|(.., socket)| socket.inode));
    }
    inodes.extend(
        waits
            .connecting()
            .iter()
            .take(MOST)
            .map(|socket| socket.inode),
    );
    inodes.extend(waits.unread().iter().take(MOST).map(|socket| socket.inode));
    let known = dns::owners(window);
    let resolving = waits.resolving.iter().map(|query| query.socket.inode);
    inodes.extend(
        resolving
            .filter(|inode| !known.contains_key(inode))
            .take(MOST),
    );
    inodes.remove(&0);
    inodes
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let waits = match waits(window) {
        Ok(waits) => waits,
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let samples = waits.samples.len() as f64;
    let origin = Origin::new(SOURCE, format!("{samples} samples"));
    evidence.number(&keys::DEPENDENCY_SAMPLES, Subject::host(), samples, origin);
    let earlier = dns::owners(window);
    let owner = |inode: u64| -> Option<u32> {
        let found = port::owners(window)
            .ok()
            .and_then(|owners| owners.get(&inode));
        let owner = found.or_else(|| earlier.get(&inode).copied())?;
        Some(owner.pid)
    };
    let hung = full_samples(window).map(|sockets| hung_ports(&complete(sockets)));
    clients(evidence, &waits, &hung.unwrap_or_default(), &owner);
    upstreams(evidence, &waits, &owner);
    answers(evidence, &waits, &owner);
    let connecting = waits.connecting();
    let to = |socket: &&TcpSocket| (socket.inode, socket.remote.to_string());
    let keys = (
        &keys::DEPENDENCY_CONNECTING,
        &keys::DEPENDENCY_CONNECTING_TO,
    );
    count(
        evidence,
        keys,
        &owner,
        connecting.iter().map(to),
        "SYN-SENT",
    );
    // A permanent socket may belong to a resolver that keeps it, but not if a thread waits for this socket only.
    let polls = |pid: u32| {
        let threads = window.matching(&format!("/proc/{pid}/task/*/syscall"));
        let mut texts = threads
            .iter()
            .filter_map(|(path, _)| window.text(path).ok());
        texts.any(syscall::polls_one)
    };
    let resolving = waits.resolving.iter();
    let unanswered: Vec<&Query<'_>> = resolving
        .filter(|query| !query.always || owner(query.socket.inode).is_some_and(polls))
        .collect();
    let to = |query: &&Query<'_>| (query.socket.inode, query.socket.remote.to_string());
    let keys = (&keys::DEPENDENCY_RESOLVING, &keys::DEPENDENCY_RESOLVER);
    let servers = unanswered.iter().map(to);
    count(evidence, keys, &owner, servers, "UDP to port 53");
    let mut longest: BTreeMap<u32, f64> = BTreeMap::new();
    for query in unanswered {
        let Some(pid) = owner(query.socket.inode) else {
            continue;
        };
        let waited_s = longest.entry(pid).or_default();
        *waited_s = waited_s.max(query.waited_s);
    }
    for (pid, waited_s) in longest {
        let line = format!("UDP to port 53 open for {waited_s:.2} s");
        evidence.number(
            &keys::DEPENDENCY_RESOLVING_FOR,
            Subject::new(Kind::Process, pid),
            waited_s,
            Origin::new(SOURCE, line),
        );
    }
    slow_lookups(evidence, window, &owner);
    unread(evidence, &waits, &owner);
    let late = waits.late();
    let is_late = |(port, _, socket): &(u16, u32, &TcpSocket)| {
        late.contains(port) && socket.inode != 0 && owner(socket.inode).is_none()
    };
    let none = match window.moments().len() {
        0 | 1 => Absence::because("the window has only one sample")
            .remedy("observe for some seconds: --for 10s"),
        // A connection in an accept queue has no owner yet.
        _ if waits
            .samples
            .last()
            .is_some_and(|last| last.owed.iter().any(is_late)) =>
        {
            Absence::because("requests wait, but their process is not visible")
                .remedy("run as root")
        }
        _ => Absence::none("no visible process waits like this"),
    };
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

type Owner<'f> = dyn Fn(u64) -> Option<u32> + 'f;

/// Milliseconds as seconds.
fn seconds(ms: &[u32]) -> f64 {
    let ms: Vec<f64> = ms.iter().map(|ms| f64::from(*ms)).collect();
    median(&ms) / 1000.0
}

fn clients(
    evidence: &mut Evidence,
    waits: &Waits<'_>,
    hung: &BTreeMap<u16, usize>,
    owner: &Owner<'_>,
) {
    let Some(last) = waits.samples.last() else {
        return;
    };
    for port in waits.late() {
        let of = |sample: &Sample<'_>| -> Vec<u32> {
            let late = sample.owed.iter().filter(|(local, ..)| *local == port);
            late.map(|(_, ms, _)| *ms).collect()
        };
        let course: Vec<f64> = waits.samples.iter().map(|s| of(s).len() as f64).collect();
        let mut sockets = last.served.iter().filter(|(local, _)| *local == port);
        let pid = sockets.find_map(|(_, socket)| owner(socket.inode));
        let Some(pid) = pid else { continue };
        let subject = || Subject::new(Kind::Process, pid);
        // Of all samples: in one, a few requests that were just sent may hide that others are held for long.
        let ages: Vec<u32> = waits.samples.iter().flat_map(of).collect();
        let wait = seconds(&ages);
        let value = median(&course);
        let line = format!("port {port}: {value} late answers, median {wait} s");
        let origin = Origin::new(SOURCE, line);
        let key = &keys::DEPENDENCY_CLIENTS;
        // A process may serve several ports; the one with most late requests counts.
        let more = evidence
            .quantity(key, &subject())
            .is_ok_and(|known| known.value >= value);
        if !more {
            evidence.series(key, subject(), value, course, origin.clone());
            evidence.number(
                &keys::DEPENDENCY_CLIENT_WAIT,
                subject(),
                wait,
                origin.clone(),
            );
            let unanswered = hung.get(&port).map_or(0.0, |waits| *waits as f64);
            let key = &keys::DEPENDENCY_CLIENTS_UNANSWERED;
            evidence.number(key, subject(), unanswered, origin);
        }
    }
}

fn upstreams(evidence: &mut Evidence, waits: &Waits<'_>, owner: &Owner<'_>) {
    let Some(last) = waits.samples.last() else {
        return;
    };
    let slow = waits.slow();
    let mut ages: BTreeMap<Endpoint, Vec<u32>> = BTreeMap::new();
    for (server, ms) in waits.samples.iter().flat_map(|sample| &sample.awaited) {
        if slow.contains(server) {
            ages.entry(*server).or_default().push(*ms);
        }
    }
    let one_way = |server: &Endpoint| waits.samples.iter().any(|of| of.one_way.contains(server));
    // A server that answers is more informative than one that may only receive logs.
    let mut servers: Vec<(bool, usize, Endpoint)> = ages
        .iter()
        .map(|(server, ages)| (!one_way(server), ages.len(), *server))
        .collect();
    servers.sort_unstable_by(|a, b| b.cmp(a));
    for (answers, _, server) in servers.into_iter().take(MOST) {
        let mut sockets = last.upstream.iter().filter(|(to, ..)| *to == server);
        let Some(pid) = sockets.find_map(|(.., socket)| owner(socket.inode)) else {
            continue;
        };
        let subject = || Subject::new(Kind::Process, pid);
        if evidence
            .quantity(&keys::DEPENDENCY_WAITING, &subject())
            .is_ok()
        {
            continue;
        }
        let course: Vec<f64> = waits
            .samples
            .iter()
            .map(|sample| {
                let late = sample.awaited.iter().filter(|(to, _)| *to == server);
                late.count() as f64
            })
            .collect();
        let wait = ages.get(&server).map_or(0.0, |ages| seconds(ages));
        let value = median(&course);
        let line = format!("{server}: {value} late answers, median {wait} s");
        let origin = Origin::new(SOURCE, line);
        let key = &keys::DEPENDENCY_WAITING;
        evidence.series(key, subject(), value, course, origin.clone());
        evidence.number(&keys::DEPENDENCY_WAIT, subject(), wait, origin.clone());
        let server = server.to_string();
        if !answers {
            let key = &keys::DEPENDENCY_ONE_WAY;
            evidence.number(key, subject(), value, origin.clone());
        }
        evidence.text(&keys::DEPENDENCY_UPSTREAM, subject(), server, origin);
    }
}

/// Response times of servers, for completed requests.
fn answers(evidence: &mut Evidence, waits: &Waits<'_>, owner: &Owner<'_>) {
    let Some(last) = waits.samples.last() else {
        return;
    };
    for (mean, count, server) in waits.answers() {
        let mut sockets = last.upstream.iter().filter(|(to, ..)| *to == server);
        let Some(pid) = sockets.find_map(|(.., socket)| owner(socket.inode)) else {
            continue;
        };
        let subject = || Subject::new(Kind::Process, pid);
        let key = &keys::DEPENDENCY_ANSWER;
        if evidence.quantity(key, &subject()).is_ok() {
            continue;
        }
        let line = format!(
            "{server}: the last answers on its connections took {mean:.1} ms, mean of {count}"
        );
        let origin = Origin::new(SOURCE, line);
        evidence.number(key, subject(), mean / 1000.0, origin.clone());
        let server = server.to_string();
        evidence.text(&keys::DEPENDENCY_ANSWER_OF, subject(), server, origin);
    }
}

type Keys = (
    &'static rungwise_model::evidence::Key,
    &'static rungwise_model::evidence::Key,
);

/// Counts sockets by process, with the destination of most of them.
fn count(
    evidence: &mut Evidence,
    (number, name): Keys,
    owner: &Owner<'_>,
    sockets: impl Iterator<Item = (u64, String)>,
    kind: &str,
) {
    let mut by_process: BTreeMap<u32, BTreeMap<String, usize>> = BTreeMap::new();
    for (inode, to) in sockets.take(MOST) {
        if let Some(pid) = owner(inode) {
            *by_process.entry(pid).or_default().entry(to).or_default() += 1;
        }
    }
    for (pid, to) in by_process {
        let all: usize = to.values().sum();
        let Some((most, _)) = to.iter().max_by_key(|(_, count)| **count) else {
            continue;
        };
        let subject = || Subject::new(Kind::Process, pid);
        let origin = Origin::new(SOURCE, format!("{all} x {kind}, most to {most}"));
        evidence.number(number, subject(), all as f64, origin.clone());
        evidence.text(name, subject(), most.as_str(), origin);
    }
}

/// DNS queries that are open at a time, and late answers.
fn slow_lookups(evidence: &mut Evidence, window: &Window<'_>, owner: &Owner<'_>) {
    let slow = dns::slow(window);
    let slow = slow.iter().map(|query| {
        let asker = owner(query.socket.inode);
        (query.socket.remote, asker, query.waited_s)
    });
    if let Some((course, server)) = dns::open(window) {
        let met: f64 = course.iter().sum();
        let line = format!("{met} x open UDP to {server} in {} samples", course.len());
        let origin = Origin::new(SOURCE, line);
        let mean = met / course.len() as f64;
        let open = &keys::DEPENDENCY_QUERIES_OPEN;
        evidence.series(open, Subject::host(), mean, course, origin.clone());
        let named = &keys::DEPENDENCY_QUERIES_SERVER;
        evidence.text(named, Subject::host(), server.to_string(), origin);
    }
    let window_s = window.seconds();
    for (pid, (count, waited_s, server)) in dns::by_process(slow) {
        let subject = || Subject::new(Kind::Process, pid);
        let line = format!("{count} x UDP to {server} open for {waited_s:.2} s altogether");
        let origin = Origin::new(SOURCE, line);
        let late = &keys::DEPENDENCY_RESOLVING_LATE;
        evidence.number(late, subject(), count as f64, origin.clone());
        let open = &keys::DEPENDENCY_RESOLVING_OPEN;
        evidence.number(open, subject(), waited_s / window_s, origin.clone());
        let named = &keys::DEPENDENCY_RESOLVING_SERVER;
        evidence.text(named, subject(), server.to_string(), origin);
    }
}

fn unread(evidence: &mut Evidence, waits: &Waits<'_>, owner: &Owner<'_>) {
    let mut by_process: BTreeMap<u32, (u32, Vec<String>)> = BTreeMap::new();
    for socket in waits.unread().into_iter().take(MOST) {
        let Some(pid) = owner(socket.inode) else {
            continue;
        };
        let (count, lines) = by_process.entry(pid).or_default();
        let kind = if socket.state == LISTEN {
            "LISTEN"
        } else {
            "ESTAB"
        };
        *count += if socket.state == LISTEN {
            socket.rqueue
        } else {
            1
        };
        lines.push(format!("{kind} Recv-Q {} {}", socket.rqueue, socket.local));
    }
    for (pid, (count, lines)) in by_process {
        let subject = Subject::new(Kind::Process, pid);
        let origin = Origin::new(SOURCE, lines.join("; "));
        evidence.number(&keys::PROCESS_UNREAD, subject, f64::from(count), origin);
    }
}
