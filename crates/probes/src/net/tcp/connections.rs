//! Single connections: which are reported, and what limits them.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::kernel::{Answer, Endpoint, TcpInfo, TcpSocket};
use rungwise_model::keys;

use super::service::{Named, Reported};
use super::{CONGESTION, SOURCE, Sample, state};
use crate::net::port::{self, MOST};
use crate::net::rates;
use crate::{Rate, Window, enter};

/// Microseconds of busy time below which a share of it is meaningless: its clock ticks once a millisecond
/// (`tcp_jiffies32`, 1 to 10 ms).
const BUSY_ENOUGH_US: f64 = 10_000.0;

/// Congestion window at the start of a connection (`TCP_INIT_CWND`), restored after an idle period.
const INITIAL_CWND: u32 = 10;

/// Key of a connection in another sample. The inode alone is not enough: it is 0 for connections that no process has open any more.
type Place = (u64, u16, u16);

fn place(socket: &TcpSocket) -> Place {
    (socket.inode, socket.local.port, socket.remote.port)
}

pub(super) fn is_connection(socket: &TcpSocket) -> bool {
    let open = [state::ESTABLISHED, state::FIN_WAIT1, state::CLOSE_WAIT];
    open.contains(&socket.state)
}

/// A connection that is open in the last full sample, with its activity since the first.
pub(super) struct Connection<'a> {
    pub(super) last: &'a TcpSocket,
    /// Bytes acknowledged.
    pub(super) sent: u64,
    /// Bytes received.
    pub(super) received: u64,
    /// Microseconds in which it was limited.
    limited: u64,
    /// Bytes in its queues.
    queued: u64,
}

impl<'a> Connection<'a> {
    fn of(first: Option<&TcpSocket>, last: &'a TcpSocket) -> Self {
        let grown = |of: fn(&TcpInfo) -> Option<u64>| {
            let end = last.info.as_ref().and_then(of).unwrap_or(0);
            let begin = first.and_then(|socket| socket.info.as_ref().and_then(of));
            // Without a first sample its activity in this window is unknown.
            begin.map_or(0, |begin| end.saturating_sub(begin))
        };
        Self {
            last,
            sent: grown(|info| info.bytes_acked),
            received: grown(|info| info.bytes_received),
            limited: grown(|info| info.rwnd_limited) + grown(|info| info.sndbuf_limited),
            queued: u64::from(last.rqueue) + u64::from(last.wqueue),
        }
    }

    /// Bytes acknowledged and received.
    fn moved(&self) -> u64 {
        self.sent + self.received
    }

    /// It moved data, was limited or has data in a queue. With a single sample only queued data is known. Otherwise its
    /// process is not needed, and the lookup is expensive.
    fn carries(&self) -> bool {
        self.moved() > 0 || self.limited > 0 || self.queued > 0
    }
}

/// All connections that are open in the last full sample.
fn connections<'a>(samples: &[Sample<'a>]) -> Vec<Connection<'a>> {
    let [(_, first), .., (_, last)] = samples else {
        let alone = samples.first().map_or(&[][..], |(_, alone)| alone);
        let open = alone.iter().filter(|socket| is_connection(socket));
        return open.map(|socket| Connection::of(None, socket)).collect();
    };
    let mut before = Before::new(first);
    last.iter()
        .filter(|socket| is_connection(socket))
        .map(|socket| Connection::of(before.find(socket), socket))
        .collect()
}

/// Connections of an earlier sample, to look up those of a later one.
///
/// The kernel lists them in the order of its table, so both samples have most of them in the same order, and the next
/// one needed is nearly always the next one here.
struct Before<'a> {
    sockets: &'a [TcpSocket],
    /// Those not found so far.
    rest: &'a [TcpSocket],
    /// All of them, once one was needed that is not near.
    places: Option<HashMap<Place, &'a TcpSocket>>,
}

impl<'a> Before<'a> {
    /// Sockets that may have gone between two that stayed, before all are searched.
    const NEAR: usize = 8;

    fn new(sockets: &'a [TcpSocket]) -> Self {
        Self {
            sockets,
            rest: sockets,
            places: None,
        }
    }

    fn find(&mut self, sought: &TcpSocket) -> Option<&'a TcpSocket> {
        let is_it = |socket: &&TcpSocket| is_connection(socket) && socket.is_same(sought);
        let near = self
            .rest
            .iter()
            .take(Self::NEAR)
            .position(|socket| is_it(&socket));
        if let Some(at) = near {
            let found = &self.rest[at];
            self.rest = &self.rest[at + 1..];
            return Some(found);
        }
        let places = self.places.get_or_insert_with(|| {
            let open = self.sockets.iter().filter(|socket| is_connection(socket));
            open.map(|socket| (place(socket), socket)).collect()
        });
        places.get(&place(sought)).copied().filter(is_it)
    }
}

/// Connections of the first full sample with data in a queue, fullest first, at most as many as are reported: a queue
/// that is empty in one sample does not pile up.
pub(super) fn queued(first: &[TcpSocket]) -> Vec<TcpSocket> {
    let open = first.iter().filter(|socket| is_connection(socket));
    let open: Vec<_> = open.map(|socket| Connection::of(None, socket)).collect();
    let all: Vec<usize> = (0..open.len()).collect();
    let largest = top(&open, &all, |connection| connection.queued, 1);
    largest
        .into_iter()
        .map(|index| open[index].last.clone())
        .collect()
}

/// Inodes of the reported connections whose process is looked up.
pub(super) fn sought(window: &Window<'_>, samples: &[Sample<'_>]) -> Vec<u64> {
    let connections = connections(samples);
    let named = samples
        .last()
        .and_then(|(_, last)| Named::among(window, last));
    let reported = named.map(|named| Reported::of(&named, &connections));
    let elsewhere = reported.iter().flat_map(Reported::inodes_elsewhere);
    let of_service = reported.iter().flat_map(Reported::here);
    choose(&connections)
        .into_iter()
        .filter(|index| connections[*index].carries())
        .chain(of_service)
        .map(|index| connections[index].last.inode)
        .chain(elsewhere)
        .filter(|inode| *inode != 0)
        .collect()
}

pub(super) fn add(window: &Window<'_>, samples: &[Sample<'_>], evidence: &mut Evidence) {
    let Some((_, last)) = samples.last() else {
        return;
    };
    let connections = connections(samples);
    let carrying = connections.iter().filter(|open| open.carries()).count();
    evidence.number(
        &keys::TCP_CARRYING,
        Subject::host(),
        carrying as f64,
        Origin::new(SOURCE, format!("{carrying} of {}", connections.len())),
    );
    flows(window, &connections, evidence);
    let named = Named::among(window, last);
    let reported = named
        .as_ref()
        .map(|named| Reported::of(named, &connections));
    let of_service: HashSet<usize> = reported.iter().flat_map(Reported::here).collect();
    let mut seen = HashSet::new();
    let chosen: Vec<usize> = reported
        .iter()
        .flat_map(Reported::here)
        .chain(choose(&connections))
        .filter(|index| seen.insert(*index))
        .collect();
    let sockets: Vec<&TcpSocket> = chosen
        .iter()
        .map(|index| connections[*index].last)
        .collect();
    let courses = courses(samples, &sockets);
    let parallel = Parallel::among(last);
    let owners = port::owners(window);
    let bbr = window
        .text(CONGESTION)
        .is_ok_and(|text| text.starts_with("bbr"));
    for (at, course) in chosen.into_iter().zip(courses) {
        let socket = connections[at].last;
        let subject = port::connection(socket.local, socket.remote);
        let Some(mut readings) = ConnectionReadings::new(evidence, &subject, &course) else {
            continue;
        };
        readings.all(bbr);
        let (count, server) = parallel.of(socket);
        readings.number(
            &keys::TCP_PARALLEL,
            f64::from(count),
            format!(
                "{count} ESTAB between {} and {} with server port {server}",
                socket.local.address, socket.remote.address
            ),
        );
        if let Ok(known) = &owners
            && !known.contains_key(&socket.inode)
            && !connections[at].carries()
            && !of_service.contains(&at)
        {
            let nothing = if samples.len() < 2 {
                "its queues were empty"
            } else {
                "it carried nothing in the window"
            };
            let why = format!("{nothing}, so its process was not looked up");
            readings.absent(&keys::TCP_PROCESS, why);
            continue;
        }
        port::owner(
            evidence,
            &keys::TCP_PROCESS,
            &subject,
            &owners,
            socket.inode,
        );
    }
    if let (Some(named), Some(reported)) = (&named, &reported) {
        reported.add(window, named, (samples, &connections), evidence);
    }
}

/// Indexes of the reported connections, at most [`MOST`]: the largest by each measure in turn, then others.
fn choose(connections: &[Connection<'_>]) -> Vec<usize> {
    let all: Vec<usize> = (0..connections.len()).collect();
    choose_among(connections, &all)
}

/// The same of some of them.
pub(super) fn choose_among(connections: &[Connection<'_>], some: &[usize]) -> Vec<usize> {
    let measures: [fn(&Connection<'_>) -> u64; 3] = [
        |connection| connection.moved(),
        |connection| connection.limited,
        |connection| connection.queued,
    ];
    let largest = measures.map(|measure| top(connections, some, measure, 1));
    let by_turns = (0..MOST).flat_map(|rank| largest.iter().filter_map(move |list| list.get(rank)));
    let mut seen = HashSet::new();
    let mut chosen: Vec<usize> = by_turns
        .copied()
        .filter(|index| seen.insert(*index))
        .take(MOST)
        .collect();
    if chosen.len() < MOST {
        // All have this measure, so it fills up by address.
        let rest = top(connections, some, |_| 1, 0).into_iter();
        let others = rest.filter(|index| seen.insert(*index));
        chosen.extend(others.take(MOST - chosen.len()));
    }
    chosen
}

/// Indexes of the [`MOST`] of these connections with the largest measure of at least `least`, largest first.
fn top(
    connections: &[Connection<'_>],
    some: &[usize],
    measure: impl Fn(&Connection<'_>) -> u64,
    least: u64,
) -> Vec<usize> {
    let mut indexes = some.to_vec();
    indexes.retain(|index| measure(&connections[*index]) >= least);
    let order = |a: &usize, b: &usize| {
        let (a, b) = (&connections[*a], &connections[*b]);
        let by_measure = measure(b).cmp(&measure(a));
        let address = |connection: &Connection<'_>| (connection.last.local, connection.last.remote);
        by_measure.then_with(|| address(a).cmp(&address(b)))
    };
    if indexes.len() > MOST {
        indexes.select_nth_unstable_by(MOST, order);
        indexes.truncate(MOST);
    }
    indexes.sort_unstable_by(order);
    indexes
}

/// The course of a connection over the full samples that contain it.
pub(super) type Course<'a> = Vec<(f64, &'a TcpSocket)>;

/// The courses of these connections, in their order.
pub(super) fn courses<'a>(samples: &[Sample<'a>], of: &[&TcpSocket]) -> Vec<Course<'a>> {
    let mut wanted: HashMap<Place, Vec<usize>> = HashMap::new();
    for (course, socket) in of.iter().enumerate() {
        let places = wanted.entry(place(socket));
        places.or_default().push(course);
    }
    let mut courses = vec![Course::new(); of.len()];
    for (at, sockets) in samples {
        for socket in sockets.iter().filter(|socket| is_connection(socket)) {
            for course in wanted.get(&place(socket)).into_iter().flatten() {
                if of[*course].is_same(socket) {
                    courses[*course].push((*at, socket));
                }
            }
        }
    }
    courses
}

/// Connections by their two addresses and the server's port, ends within the host apart.
struct Parallel {
    listening: HashSet<u16>,
    count: HashMap<(IpAddr, IpAddr, u16, bool), u32>,
}

impl Parallel {
    fn among(sockets: &[TcpSocket]) -> Self {
        let listening = sockets
            .iter()
            .filter(|socket| socket.state == state::LISTEN)
            .map(|socket| socket.local.port)
            .collect();
        let mut parallel = Self {
            listening,
            count: HashMap::new(),
        };
        for socket in sockets
            .iter()
            .filter(|socket| socket.state == state::ESTABLISHED)
        {
            *parallel.count.entry(parallel.key(socket)).or_default() += 1;
        }
        parallel
    }

    /// Number of parallel connections, and the server's port.
    fn of(&self, socket: &TcpSocket) -> (u32, u16) {
        let key = self.key(socket);
        (self.count.get(&key).copied().unwrap_or(1), key.2)
    }

    fn key(&self, socket: &TcpSocket) -> (IpAddr, IpAddr, u16, bool) {
        let (local, remote) = (socket.local, socket.remote);
        let here = self.listening.contains(&local.port);
        let there = local.address == remote.address && self.listening.contains(&remote.port);
        let serves = here || (!there && local.port < remote.port);
        let port = if serves { local.port } else { remote.port };
        (local.address, remote.address, port, serves)
    }
}

/// Distinct remote ends, and the size of the largest connection.
fn flows(window: &Window<'_>, connections: &[Connection<'_>], evidence: &mut Evidence) {
    let abroad = |end: &Endpoint| !end.address.is_loopback();
    let open = connections
        .iter()
        .filter(|connection| abroad(&connection.last.remote));
    let tcp: HashSet<Endpoint> = open
        .clone()
        .map(|connection| connection.last.remote)
        .collect();
    let udp: HashSet<Endpoint> = match window.answer("udp") {
        Ok(Answer::Udp(sockets)) => sockets
            .iter()
            .map(|socket| socket.remote)
            .filter(|remote| remote.port != 0 && abroad(remote))
            .collect(),
        _ => HashSet::new(),
    };
    let line = format!("{} remote ends of TCP, {} of UDP", tcp.len(), udp.len());
    evidence.number(
        &keys::FLOWS_COUNT,
        Subject::host(),
        (tcp.len() + udp.len()) as f64,
        Origin::new(SOURCE, line),
    );
    let moved: u64 = open.clone().map(Connection::moved).sum();
    let largest = open.max_by_key(|connection| connection.moved());
    match largest {
        Some(largest) if moved > 0 => {
            let socket = largest.last;
            let line = format!(
                "{} of {moved} bytes on {} {}",
                largest.moved(),
                socket.local,
                socket.remote
            );
            evidence.number(
                &keys::FLOWS_LARGEST_SHARE,
                Subject::host(),
                largest.moved() as f64 / moved as f64,
                Origin::new(SOURCE, line),
            );
        }
        _ => {
            let why = Absence::none("no TCP connection to another host moved bytes");
            evidence.absent(&[&keys::FLOWS_LARGEST_SHARE], &why, SOURCE);
        }
    }
}

/// One connection while its keys are added.
pub(super) struct ConnectionReadings<'t, 'a> {
    evidence: &'t mut Evidence,
    subject: &'t Subject,
    course: &'t Course<'a>,
}

impl<'t, 'a> ConnectionReadings<'t, 'a> {
    /// None if no sample contains it.
    pub(super) fn new(
        evidence: &'t mut Evidence,
        subject: &'t Subject,
        course: &'t Course<'a>,
    ) -> Option<Self> {
        (!course.is_empty()).then_some(Self {
            evidence,
            subject,
            course,
        })
    }

    /// Everything but its process and the number of others like it.
    pub(super) fn all(&mut self, bbr: bool) {
        self.queues();
        self.counters();
        self.limits();
        self.window(bbr);
    }

    fn number(&mut self, key: &'static Key, value: f64, line: String) {
        self.series(key, value, Vec::new(), line);
    }

    fn series(&mut self, key: &'static Key, value: f64, series: Vec<f64>, line: String) {
        let origin = Origin::new(SOURCE, line);
        self.evidence
            .series(key, self.subject.clone(), value, series, origin);
    }

    fn absent(&mut self, key: &'static Key, why: impl Into<String>) {
        let why = Absence::because(why);
        let origin = Origin::new(SOURCE, "");
        enter::absent(self.evidence, key, self.subject.clone(), why, origin);
    }

    fn last(&self) -> &TcpSocket {
        let (_, socket) = self
            .course
            .last()
            .expect("a connection that no sample contains is not reported");
        socket
    }

    /// Both queues, and their share of the buffers.
    fn queues(&mut self) {
        self.queue(&keys::TCP_RECVQ, "Recv-Q", |socket| {
            Some(f64::from(socket.rqueue))
        });
        self.queue(&keys::TCP_SENDQ, "Send-Q", |socket| {
            Some(f64::from(socket.wqueue))
        });
        let Some(memory) = self.last().memory else {
            for key in [
                &keys::TCP_RCVBUF,
                &keys::TCP_SNDBUF,
                &keys::TCP_RECVQ_SHARE,
                &keys::TCP_SENDQ_SHARE,
            ] {
                self.absent(key, "the kernel reports no memory of this socket");
            }
            return;
        };
        let line = format!("skmem:(rb{},tb{})", memory.rcvbuf, memory.sndbuf);
        self.number(&keys::TCP_RCVBUF, f64::from(memory.rcvbuf), line.clone());
        self.number(&keys::TCP_SNDBUF, f64::from(memory.sndbuf), line);
        // What counts against either buffer is memory (`tcp_try_rmem_schedule`, `sk_stream_memory_free`): of small
        // messages, many times their bytes.
        self.queue(&keys::TCP_RECVQ_SHARE, "r/rb of skmem", |socket| {
            let memory = socket.memory?;
            // Memory without a byte to read holds what came out of order: the program cannot take it.
            let unread = if socket.rqueue > 0 { memory.rmem } else { 0 };
            share_of(unread.max(socket.rqueue), memory.rcvbuf)
        });
        self.queue(&keys::TCP_SENDQ_SHARE, "w/tb of skmem", |socket| {
            let memory = socket.memory?;
            share_of(memory.queued.max(socket.wqueue), memory.sndbuf)
        });
    }

    fn queue(&mut self, key: &'static Key, name: &str, of: fn(&TcpSocket) -> Option<f64>) {
        let series: Vec<f64> = self
            .course
            .iter()
            .filter_map(|(_, socket)| of(socket))
            .collect();
        if series.is_empty() {
            return self.absent(key, "the kernel reports no buffer size");
        }
        let said: Vec<String> = series.iter().map(|queue| rounded(*queue)).collect();
        let line = format!("{name} per sample: {}", said.join(", "));
        self.series(key, rates::median(&series), series, line);
    }

    /// The rate of a counter of `tcp_info`; `None` if a sample lacks it.
    fn rate(&self, of: fn(&TcpInfo) -> Option<u64>) -> Option<Rate> {
        let course: Option<Vec<(f64, u64)>> = self
            .course
            .iter()
            .map(|(at, socket)| Some((*at, of(socket.info.as_ref()?)?)))
            .collect();
        rates::of_course(&course?)
    }

    /// Bytes both ways, and retransmitted bytes.
    fn counters(&mut self) {
        let acked = self.rate(|info| info.bytes_acked);
        let received = self.rate(|info| info.bytes_received);
        for (key, name, rate) in [
            (&keys::TCP_BYTES_SENT, "bytes_acked", acked),
            (&keys::TCP_BYTES_RECEIVED, "bytes_received", received),
        ] {
            match rate {
                Some(rate) => {
                    let line = format!("{name} {}", rate.line());
                    self.series(key, rate.per_s, rate.series, line);
                }
                None => self.absent(key, UNKNOWN),
            }
        }
        let key = &keys::TCP_RETRANS_BYTES_SHARE;
        let again = self.rate(|info| info.bytes_retrans);
        let sent = self.rate(|info| info.bytes_sent);
        let (Some(again), Some(sent)) = (again, sent) else {
            return self.absent(key, UNKNOWN);
        };
        let line = format!("bytes_retrans {}; bytes_sent {}", again.line(), sent.line());
        match rates::share(&again, &sent) {
            Some((share, series)) => self.series(key, share, series, line),
            None => self.absent(key, line),
        }
    }

    /// Shares of the busy time in which the peer's window or the own buffer was the limit.
    fn limits(&mut self) {
        let busy = self.rate(|info| info.busy_time);
        let closed = self.rate(|info| info.rwnd_limited);
        let full = self.rate(|info| info.sndbuf_limited);
        match &busy {
            Some(busy) => {
                let series = busy.series.iter().map(|us| us * 1e-6).collect();
                let line = format!("busy:{:.0}ms in the window", busy.delta / 1e3);
                self.series(&keys::TCP_BUSY, busy.per_s * 1e-6, series, line);
            }
            None => self.absent(&keys::TCP_BUSY, UNKNOWN),
        }
        for (key, name, limited) in [
            (&keys::TCP_RWND_LIMITED, "rwnd_limited", closed),
            (&keys::TCP_SNDBUF_LIMITED, "sndbuf_limited", full),
        ] {
            let (Some(busy), Some(limited)) = (&busy, &limited) else {
                self.absent(key, UNKNOWN);
                continue;
            };
            if busy.delta < BUSY_ENOUGH_US {
                let why = format!(
                    "it had data to send for {:.1} ms of the window, too little for a share",
                    busy.delta / 1e3
                );
                self.absent(key, why);
                continue;
            }
            let line = format!(
                "{name}:{:.0}ms of busy:{:.0}ms in the window ({name}:{:.0}ms busy:{:.0}ms at its end)",
                limited.delta / 1e3,
                busy.delta / 1e3,
                limited.ends.1 / 1e3,
                busy.ends.1 / 1e3
            );
            match rates::share(limited, busy) {
                Some((share, series)) => self.series(key, share, series, line),
                None => self.absent(key, line),
            }
        }
    }

    /// Round trip, congestion window and the peer's window.
    fn window(&mut self, bbr: bool) {
        let Some(info) = self.last().info else {
            for key in [
                &keys::TCP_RTT,
                &keys::TCP_RTT_MIN,
                &keys::TCP_CWND,
                &keys::TCP_CWND_FULL,
                &keys::TCP_SND_WND,
                &keys::TCP_IDLE_RESTARTS,
            ] {
                self.absent(key, "the kernel reported no tcp_info for this socket");
            }
            return;
        };
        let line = format!(
            "rtt:{:.3}/{:.3} cwnd:{} unacked:{} snd_wnd:{}",
            f64::from(info.rtt) / 1e3,
            f64::from(info.rttvar) / 1e3,
            info.snd_cwnd,
            info.unacked,
            info.snd_wnd.map_or("?".to_owned(), |wnd| wnd.to_string())
        );
        if info.rtt > 0 {
            self.number(&keys::TCP_RTT, f64::from(info.rtt) / 1e6, line.clone());
        } else {
            self.absent(&keys::TCP_RTT, "no round-trip time has been measured yet");
        }
        match info.min_rtt {
            Some(least) if least < u32::MAX => {
                let line = format!("minrtt:{:.3}", f64::from(least) / 1e3);
                self.number(&keys::TCP_RTT_MIN, f64::from(least) / 1e6, line);
            }
            Some(_) => self.absent(
                &keys::TCP_RTT_MIN,
                "no round-trip time has been measured yet",
            ),
            None => self.absent(
                &keys::TCP_RTT_MIN,
                "this kernel or capture does not report it",
            ),
        }
        self.number(&keys::TCP_CWND, f64::from(info.snd_cwnd), line.clone());
        let wnd = info.snd_wnd.map_or(-1.0, f64::from);
        self.number(&keys::TCP_SND_WND, wnd, line.clone());
        let full: Vec<f64> = self
            .course
            .iter()
            .filter_map(|(_, socket)| socket.info)
            .map(|info| f64::from(u8::from(info.snd_cwnd > 0 && info.unacked >= info.snd_cwnd)))
            .collect();
        // Half of the samples or more: one of them is a burst.
        let used_up = f64::from(u8::from(rates::median(&full) >= 0.5));
        self.series(&keys::TCP_CWND_FULL, used_up, full, line);
        self.restarts(bbr);
    }

    fn restarts(&mut self, bbr: bool) {
        let key = &keys::TCP_IDLE_RESTARTS;
        let infos: Vec<(f64, TcpInfo)> = self
            .course
            .iter()
            .filter_map(|(at, socket)| Some((*at, socket.info?)))
            .collect();
        let seconds = match (infos.first(), infos.last()) {
            (Some((began, _)), Some((ended, _))) => ended - began,
            _ => 0.0,
        };
        if bbr {
            return self.absent(key, "BBR ignores tcp_slow_start_after_idle");
        }
        if seconds <= 0.0 {
            return self.absent(key, ONE_LOOK);
        }
        let restarts = infos
            .windows(2)
            .filter(|two| {
                let (before, after) = (two[0].1, two[1].1);
                // A loss lowers the window as well, but it retransmits.
                before.snd_cwnd > INITIAL_CWND
                    && after.snd_cwnd <= INITIAL_CWND
                    && after.total_retrans == before.total_retrans
            })
            .count();
        let cwnds: Vec<String> = infos
            .iter()
            .map(|(_, info)| info.snd_cwnd.to_string())
            .collect();
        let line = format!("cwnd per sample: {}", cwnds.join(", "));
        self.number(key, restarts as f64 / seconds, line);
    }
}

const ONE_LOOK: &str = "it was in one sample only, and a rate needs two";
const UNKNOWN: &str = "it was in one sample only, or this kernel's tcp_info is too short";

fn share_of(part: u32, whole: u32) -> Option<f64> {
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}

/// A queue in bytes, or a share of one.
fn rounded(queue: f64) -> String {
    if queue.fract() == 0.0 {
        format!("{queue:.0}")
    } else {
        format!("{queue:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(ports: &[u16]) -> Vec<TcpSocket> {
        let socket = |port: &u16| TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), *port),
            state: state::ESTABLISHED,
            inode: u64::from(*port),
            ..TcpSocket::default()
        };
        ports.iter().map(socket).collect()
    }

    #[test]
    fn a_connection_is_found_in_whatever_order_the_samples_list_it() {
        let stayed: Vec<u16> = (0..100).collect();
        let orders = [
            stayed.clone(),
            stayed.iter().rev().copied().collect(),
            // Many went, and others came.
            (0..30).chain(200..230).chain(90..100).collect(),
        ];
        let first = sockets(&stayed);
        for order in orders {
            let mut before = Before::new(&first);
            for socket in sockets(&order) {
                let found = before.find(&socket).map(|found| found.inode);
                let expected = Some(socket.inode).filter(|inode| *inode < 100);
                assert_eq!(found, expected);
            }
        }
    }
}
