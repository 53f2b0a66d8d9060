//! The connections of the service that was named: which they are, and their queues in frequent samples.
//!
//! A connection is judged at its near end: the server's where that is in this network namespace, else the client's. Its far end may be
//! another socket here, one in another network namespace of this machine (the same two ends, reversed), or on another host.

use std::collections::{HashMap, HashSet};

use rungwise_model::evidence::{Evidence, Key, Origin, Subject};
use rungwise_model::kernel::{Endpoint, TcpInfo, TcpSocket};
use rungwise_model::keys;
use rungwise_model::service::ServicePort;

use super::connections::{
    Connection, ConnectionReadings, Course, choose_among, courses, is_connection,
};
use super::{SOURCE, Sample, state};
use crate::Window;
use crate::capture::Service;
use crate::net::port;
use crate::net::rates;

/// A send queue that fills its buffer; as in `tcp-sndbuf-limited`.
const FULL: f64 = 0.90;

/// What is reported of a service, or why it is not.
pub(super) static KEYS: &[&Key] = &[
    &keys::SERVICE_BUFFER_FULL,
    &keys::SERVICE_CONNECTIONS,
    &keys::SERVICE_CWND_FULL,
    &keys::SERVICE_DELIVERY,
    &keys::SERVICE_PORTS,
    &keys::SERVICE_RECVQ,
    &keys::SERVICE_RECVQ_MOST,
    &keys::SERVICE_RECVQ_SHARE,
    &keys::SERVICE_RETRANSMITTED,
    &keys::SERVICE_ROLE,
    &keys::SERVICE_SAMPLES,
    &keys::SERVICE_SENDQ,
    &keys::SERVICE_SENDQ_MOST,
    &keys::SERVICE_TO_CLIENTS,
    &keys::SERVICE_TO_SERVER,
];

type Ends = (Endpoint, Endpoint);

fn ends(socket: &TcpSocket) -> Ends {
    (socket.local, socket.remote)
}

fn reversed(socket: &TcpSocket) -> Ends {
    (socket.remote, socket.local)
}

/// The named service among the sockets of one sample.
pub(super) struct Named<'a> {
    service: &'a Service,
    /// Its ports with a listening socket here.
    served: HashSet<ServicePort>,
    /// Its connections with an end here.
    here: HashSet<Ends>,
}

/// The side of a connection that an end is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

impl<'a> Named<'a> {
    /// None if none was named.
    pub(super) fn among(window: &Window<'a>, sockets: &[TcpSocket]) -> Option<Self> {
        let service = window.capture().service.as_ref()?;
        let listening = sockets.iter().filter(|one| one.state == state::LISTEN);
        let listening: Vec<Endpoint> = listening.map(|socket| socket.local).collect();
        let is_served = |port: &&ServicePort| listening.iter().any(|end| port.is_served_at(*end));
        let has = |socket: &&TcpSocket| service.ports.iter().any(|port| port.has(socket));
        let connections = sockets.iter().filter(|socket| is_connection(socket));
        Some(Self {
            service,
            served: service.ports.iter().filter(is_served).copied().collect(),
            here: connections.filter(has).map(ends).collect(),
        })
    }

    /// The side that this end is on; none if it is no end of a connection of the service.
    fn role(&self, socket: &TcpSocket) -> Option<Role> {
        self.service.ports.iter().find_map(|port| {
            let (at, to) = (port.is_at(socket.local), port.is_at(socket.remote));
            let is_served = self.served.contains(port);
            // Where no process listens, the port may be a client's that the kernel chose.
            if at && (is_served || !to && socket.local.port < socket.remote.port) {
                Some(Role::Server)
            } else if to && (!is_served || self.here.contains(&reversed(socket))) {
                Some(Role::Client)
            } else {
                None
            }
        })
    }

    /// The side of an end at which its connection is judged.
    fn near(&self, socket: &TcpSocket) -> Option<Role> {
        let role = self.role(socket)?;
        let other_is_near = role == Role::Client && self.here.contains(&reversed(socket));
        (!other_is_near).then_some(role)
    }

    /// The far ends in other network namespaces in the last sample, by both ends.
    fn elsewhere(&self) -> HashMap<Ends, &'a TcpSocket> {
        let last = self.service.samples.last();
        let sockets = last.map_or(&[][..], |sample| &sample.elsewhere[..]);
        sockets
            .iter()
            .map(|socket| (ends(socket), socket))
            .collect()
    }
}

/// The reported connections of the service: indexes of all, and sockets in other network namespaces.
pub(super) struct Reported<'a> {
    /// Near ends of all its connections.
    all: Vec<usize>,
    /// Those that are reported.
    near: Vec<usize>,
    /// Their far ends here.
    far: Vec<usize>,
    /// Their far ends in other network namespaces.
    elsewhere: Vec<&'a TcpSocket>,
}

impl<'a> Reported<'a> {
    pub(super) fn of(named: &Named<'a>, connections: &[Connection<'_>]) -> Self {
        let last = |index: usize| connections[index].last;
        let all: Vec<usize> = (0..connections.len())
            .filter(|index| named.near(last(*index)).is_some())
            .collect();
        let near = choose_among(connections, &all);
        let wanted: HashSet<Ends> = near.iter().map(|index| reversed(last(*index))).collect();
        let far = (0..connections.len())
            .filter(|index| wanted.contains(&ends(last(*index))))
            .collect();
        let others = named.elsewhere();
        // The loopback of another network namespace is another one.
        let elsewhere = near
            .iter()
            .map(|index| reversed(last(*index)))
            .filter(|far| !named.here.contains(far) && !far.0.address.is_loopback())
            .filter_map(|far| others.get(&far).copied())
            .collect();
        Self {
            all,
            near,
            far,
            elsewhere,
        }
    }

    /// Those with a socket here, the near ends first.
    pub(super) fn here(&self) -> impl Iterator<Item = usize> {
        self.near.iter().chain(&self.far).copied()
    }

    /// Inodes of the far ends in other network namespaces.
    pub(super) fn inodes_elsewhere(&self) -> impl Iterator<Item = u64> {
        self.elsewhere.iter().map(|socket| socket.inode)
    }

    /// Yields the keys of the service; those of its sockets here are there already, except the frequent ones.
    pub(super) fn add(
        &self,
        window: &Window<'_>,
        named: &Named<'a>,
        (samples, connections): (&[Sample<'_>], &[Connection<'_>]),
        evidence: &mut Evidence,
    ) {
        self.add_totals(window, named, connections, evidence);
        let service = named.service;
        let here = service.samples.iter();
        let here = here.map(|sample| (sample.at_s, &sample.sockets[..]));
        let mut here: Vec<Sample<'_>> = samples.iter().copied().chain(here).collect();
        here.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let elsewhere = service.samples.iter();
        let elsewhere: Vec<Sample<'_>> = elsewhere
            .map(|sample| (sample.at_s, &sample.elsewhere[..]))
            .collect();
        let sampled = |sample: &&Sample<'_>| !sample.1.is_empty();
        let count = here.iter().filter(sampled).count();
        let key = &keys::SERVICE_SAMPLES;
        let line = format!("{count} samples, {} of all sockets", samples.len());
        let origin = Origin::new(SOURCE, line);
        evidence.number(key, Subject::host(), count as f64, origin);
        let sockets: Vec<&TcpSocket> = self.here().map(|index| connections[index].last).collect();
        for (socket, course) in sockets.iter().zip(courses(&here, &sockets)) {
            Frequent { course: &course }
                .add(&port::connection(socket.local, socket.remote), evidence);
        }
        for index in &self.near {
            let socket = connections[*index].last;
            let side = match named.near(socket) {
                Some(Role::Client) => "client",
                _ => "server",
            };
            let subject = port::connection(socket.local, socket.remote);
            let origin = Origin::new(SOURCE, subject.name().to_owned());
            evidence.text(&keys::SERVICE_ROLE, subject, side, origin);
        }
        let owners = port::owners(window);
        let courses = courses(&elsewhere, &self.elsewhere);
        for (socket, course) in self.elsewhere.iter().zip(courses) {
            let subject = port::connection(socket.local, socket.remote);
            if let Some(mut readings) = ConnectionReadings::new(evidence, &subject, &course) {
                readings.all(false);
            }
            Frequent { course: &course }.add(&subject, evidence);
            let key = &keys::TCP_PROCESS;
            port::owner(evidence, key, &subject, &owners, socket.inode);
        }
    }

    /// How many connections it has, and what they carry together.
    fn add_totals(
        &self,
        window: &Window<'_>,
        named: &Named<'a>,
        connections: &[Connection<'_>],
        evidence: &mut Evidence,
    ) {
        let host = Subject::host;
        let names: Vec<String> = named
            .service
            .ports
            .iter()
            .map(ToString::to_string)
            .collect();
        let names = names.join(", ");
        let count = self.all.len();
        let line = format!("{count} connections of {names}");
        let origin = Origin::new(SOURCE, line);
        evidence.text(&keys::SERVICE_PORTS, host(), names, origin.clone());
        evidence.number(&keys::SERVICE_CONNECTIONS, host(), count as f64, origin);
        let seconds = window.seconds();
        if seconds <= 0.0 {
            return;
        }
        let (mut to_clients, mut to_server) = (0_u64, 0_u64);
        for index in &self.all {
            let Connection {
                last,
                sent,
                received,
                ..
            } = &connections[*index];
            let is_client = named.near(last) == Some(Role::Client);
            let (down, up) = if is_client {
                (received, sent)
            } else {
                (sent, received)
            };
            to_clients += down;
            to_server += up;
        }
        for (key, bytes) in [
            (&keys::SERVICE_TO_CLIENTS, to_clients),
            (&keys::SERVICE_TO_SERVER, to_server),
        ] {
            let origin = Origin::new(SOURCE, format!("{bytes} bytes on {count} connections"));
            evidence.number(key, host(), bytes as f64 / seconds, origin);
        }
    }
}

/// What the frequent samples show of a connection.
struct Frequent<'c, 'a> {
    course: &'c Course<'a>,
}

impl Frequent<'_, '_> {
    fn add(&self, subject: &Subject, evidence: &mut Evidence) {
        if self.course.is_empty() {
            return;
        }
        let mut number = |key: &'static Key, value: f64, line: String| {
            evidence.number(key, subject.clone(), value, Origin::new(SOURCE, line));
        };
        for (typical, most, name, of) in [
            (
                &keys::SERVICE_RECVQ,
                &keys::SERVICE_RECVQ_MOST,
                "Recv-Q",
                (|socket| socket.rqueue) as fn(&TcpSocket) -> u32,
            ),
            (
                &keys::SERVICE_SENDQ,
                &keys::SERVICE_SENDQ_MOST,
                "Send-Q",
                (|socket| socket.wqueue) as fn(&TcpSocket) -> u32,
            ),
        ] {
            let course = self.course.iter().map(|(_, socket)| f64::from(of(socket)));
            let course: Vec<f64> = course.collect();
            let (median, longest) = (
                rates::median(&course),
                course.iter().copied().fold(0.0, f64::max),
            );
            let line = format!(
                "{name} of {} samples: median {median:.0}, longest {longest:.0}",
                course.len()
            );
            number(typical, median, line.clone());
            number(most, longest, line);
        }
        let shares = self
            .course
            .iter()
            .filter_map(|(_, socket)| unread_share(socket));
        let shares: Vec<f64> = shares.collect();
        if !shares.is_empty() {
            let line = format!("r/rb of skmem in {} samples", shares.len());
            number(&keys::SERVICE_RECVQ_SHARE, rates::median(&shares), line);
        }
        for (key, what, is_so) in [
            (
                &keys::SERVICE_BUFFER_FULL,
                "a full send buffer and open windows",
                is_buffer_full as fn(&TcpSocket, &TcpInfo) -> bool,
            ),
            (
                &keys::SERVICE_CWND_FULL,
                "a congestion window that is used up",
                is_window_used_up as fn(&TcpSocket, &TcpInfo) -> bool,
            ),
        ] {
            let known: Vec<bool> = self
                .course
                .iter()
                .filter_map(|(_, socket)| Some(is_so(socket, socket.info.as_ref()?)))
                .collect();
            let so = known.iter().filter(|so| **so).count();
            if !known.is_empty() {
                let line = format!("{so} of {} samples with {what}", known.len());
                number(key, so as f64 / known.len() as f64, line);
            }
        }
        let infos: Vec<TcpInfo> = self
            .course
            .iter()
            .filter_map(|(_, socket)| socket.info)
            .collect();
        if let [first, .., last] = &infos[..] {
            // The counter has 32 bits.
            let again = last.total_retrans.wrapping_sub(first.total_retrans);
            let line = format!("retrans {} to {}", first.total_retrans, last.total_retrans);
            number(&keys::SERVICE_RETRANSMITTED, f64::from(again), line);
        }
        let delivery = infos.last().and_then(|info| info.delivery_rate);
        if let Some(rate) = delivery.filter(|rate| *rate > 0) {
            let line = format!("delivery_rate {rate} bytes/s at the end");
            number(&keys::SERVICE_DELIVERY, rate as f64, line);
        }
    }
}

/// Memory of unread data as a share of the receive buffer.
fn unread_share(socket: &TcpSocket) -> Option<f64> {
    let memory = socket.memory.filter(|memory| memory.rcvbuf > 0)?;
    // Memory without a byte to read holds what came out of order: the program cannot take it.
    let unread = if socket.rqueue > 0 { memory.rmem } else { 0 };
    Some(f64::from(unread.max(socket.rqueue)) / f64::from(memory.rcvbuf))
}

fn is_window_used_up(_: &TcpSocket, info: &TcpInfo) -> bool {
    info.snd_cwnd > 0 && info.unacked >= info.snd_cwnd
}

/// The send queue fills its buffer, and neither window is the limit.
fn is_buffer_full(socket: &TcpSocket, info: &TcpInfo) -> bool {
    let Some(memory) = socket.memory else {
        return false;
    };
    let filled = f64::from(memory.queued.max(socket.wqueue));
    filled >= FULL * f64::from(memory.sndbuf)
        && info.snd_wnd.is_some_and(|window| window > socket.wqueue)
        && info.unacked < info.snd_cwnd
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::Kind;
    use rungwise_model::kernel::{Answer, SocketMemory};

    use super::*;
    use crate::Capture;
    use crate::capture::{Moment, Reply, ServiceSample};

    fn socket(local: &str, remote: &str, state: u8) -> TcpSocket {
        TcpSocket {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            state,
            inode: local.bytes().chain(remote.bytes()).map(u64::from).sum(),
            memory: Some(SocketMemory {
                rcvbuf: 100_000,
                sndbuf: 100_000,
                ..SocketMemory::default()
            }),
            info: Some(TcpInfo {
                snd_cwnd: 10,
                bytes_acked: Some(0),
                bytes_received: Some(0),
                ..TcpInfo::default()
            }),
            ..TcpSocket::default()
        }
    }

    fn listener(local: &str) -> TcpSocket {
        socket(local, "0.0.0.0:0", state::LISTEN)
    }

    fn open(local: &str, remote: &str) -> TcpSocket {
        socket(local, remote, state::ESTABLISHED)
    }

    /// A window of ten seconds with these sockets at both ends, and samples of the service at this port between.
    fn seen(port: &str, sockets: &[TcpSocket], samples: Vec<ServiceSample>) -> Evidence {
        let moment = |at_s| {
            let answer = Reply::Answer(Answer::Tcp(sockets.to_vec()));
            Moment {
                at_s,
                answers: [("tcp".to_owned(), answer)].into(),
                ..Moment::default()
            }
        };
        let capture = Capture {
            moments: vec![moment(0.0), moment(10.0)],
            service: Some(Service {
                ports: vec![port.parse().unwrap()],
                samples,
            }),
            ..Capture::default()
        };
        let mut evidence = Evidence::over(10.0);
        (super::super::PROBE.derive)(&Window::of(&capture), &mut evidence);
        evidence
    }

    fn roles(evidence: &Evidence) -> Vec<(&str, &str)> {
        let roles = evidence.each_words(&keys::SERVICE_ROLE);
        let roles = roles.unwrap_or_default().into_iter();
        roles
            .map(|(subject, role)| (subject.name(), role.value))
            .collect()
    }

    #[test]
    fn where_the_service_listens_the_server_s_end_is_judged() {
        let sockets = [
            listener("0.0.0.0:80"),
            open("127.0.0.1:80", "127.0.0.1:5000"),
            open("127.0.0.1:5000", "127.0.0.1:80"),
            open("10.0.0.1:80", "10.0.0.2:5000"),
            // Another service with the same port, elsewhere; and another port.
            open("10.0.0.1:5001", "10.0.0.3:80"),
            open("10.0.0.1:443", "10.0.0.2:5000"),
        ];
        let server = |name| (name, "server");
        let evidence = seen(":80", &sockets, Vec::new());
        let local = server("127.0.0.1:80>127.0.0.1:5000");
        let distant = server("10.0.0.1:80>10.0.0.2:5000");
        assert_eq!(roles(&evidence), [distant, local]);
        let count = evidence.host(&keys::SERVICE_CONNECTIONS).unwrap().value;
        assert!((count - 2.0).abs() < 1e-9);
        let far = Subject::new(Kind::Connection, "127.0.0.1:5000>127.0.0.1:80");
        assert!(evidence.quantity(&keys::SERVICE_RECVQ, &far).is_ok());
        let evidence = seen("10.0.0.1:80", &sockets, Vec::new());
        assert_eq!(roles(&evidence), [distant]);
    }

    #[test]
    fn where_no_process_listens_the_end_of_the_client_is_judged() {
        let sockets = [
            open("10.0.0.1:5001", "10.0.0.3:80"),
            open("10.0.0.1:80", "10.0.0.2:22"),
            open("10.0.0.1:5002", "10.0.0.3:443"),
        ];
        let evidence = seen(":80", &sockets, Vec::new());
        assert_eq!(roles(&evidence), [("10.0.0.1:5001>10.0.0.3:80", "client")]);
        let evidence = seen("10.0.0.4:80", &sockets, Vec::new());
        assert_eq!(roles(&evidence), []);
    }

    #[test]
    fn queues_are_those_of_the_frequent_samples_and_far_ends_come_from_other_namespaces() {
        let (near, far) = (
            open("10.0.0.1:80", "10.0.0.2:5000"),
            open("10.0.0.2:5000", "10.0.0.1:80"),
        );
        let sample = |at: u32| {
            let (mut near, mut far) = (near.clone(), far.clone());
            near.wqueue = 1000 * at;
            (far.rqueue, far.memory.as_mut().unwrap().rmem) = (90_000, 95_000);
            ServiceSample {
                at_s: f64::from(at),
                sockets: vec![near],
                elsewhere: vec![far],
            }
        };
        let sockets = [listener("0.0.0.0:80"), near.clone()];
        let evidence = seen(":80", &sockets, (1..=9).map(sample).collect());
        let of = |key, local: &str, remote: &str| {
            let subject = Subject::new(Kind::Connection, format_args!("{local}>{remote}"));
            evidence.quantity(key, &subject).unwrap().value
        };
        let (server, client) = ("10.0.0.1:80", "10.0.0.2:5000");
        for (key, value) in [
            (&keys::SERVICE_SENDQ, 4000.0),
            (&keys::SERVICE_SENDQ_MOST, 9000.0),
        ] {
            assert!((of(key, server, client) - value).abs() < 1e-9, "{}", key.id);
        }
        assert!((of(&keys::SERVICE_RECVQ_SHARE, client, server) - 0.95).abs() < 1e-9);
        assert!((of(&keys::TCP_RECVQ, client, server) - 90_000.0).abs() < 1e-9);
        let samples = evidence.host(&keys::SERVICE_SAMPLES).unwrap().value;
        assert!((samples - 11.0).abs() < 1e-9);
    }
}
