//! Requests and answers on TCP connections, from `tcp_info`: which side owes an answer.
//!
//! The times of the last data sent and received show it, unless both are in one tick (4 ms at 250 Hz), as on a busy
//! connection on which the next request follows the last answer at once. Then the acknowledgements show it. Sources:
//! `tcp_get_info` of net/ipv4/tcp.c, `tcp_ack` of `net/ipv4/tcp_input.c` (`rcv_tstamp`), Linux 6.18; RFC 1122, 4.2.3.2.

use std::collections::{HashMap, HashSet};

use rungwise_model::kernel::{Answer, Endpoint, TcpInfo, TcpSocket};

use crate::Window;
use crate::capture::Reply;

/// States of `include/net/tcp_states.h`.
pub(super) const ESTABLISHED: u8 = 1;
pub(super) const CLOSE_WAIT: u8 = 8;
pub(super) const LISTEN: u8 = 10;

/// Most sockets whose courses are kept, at half a kilobyte each.
const MOST: usize = 2_000;

/// Number of one-way transfers from which on no answer is expected.
const ONE_WAY: usize = 3;

/// An acknowledgement is delayed by 40 to 200 ms (`TCP_DELACK_MIN`, `TCP_DELACK_MAX`). A later one is a keepalive
/// probe, which waits for at least a second.
const LATEST_ACKNOWLEDGEMENT_MS: u32 = 300;

/// The sockets of each sample.
pub(super) fn sockets<'a>(window: &Window<'a>) -> Vec<&'a [TcpSocket]> {
    let moments = window.often().into_iter();
    let sockets = moments.filter_map(|moment| match moment.answers.get("tcp")? {
        Reply::Answer(Answer::Tcp(sockets)) => Some(&sockets[..]),
        Reply::Answer(_) | Reply::Failed(_) => None,
    });
    sockets.collect()
}

/// Listening ports.
pub(super) fn listening(sockets: &[TcpSocket]) -> HashSet<u16> {
    let listeners = sockets.iter().filter(|socket| socket.state == LISTEN);
    listeners.map(|socket| socket.local.port).collect()
}

/// The activity of a connection from its first to its last sample.
#[derive(Clone, Copy, Debug)]
struct Course {
    first: TcpInfo,
    last: TcpInfo,
    seen: usize,
    /// Samples in which more bytes had been received, and sent, than in the sample before.
    received: usize,
    sent: usize,
}

/// Connections over the window, by inode.
#[derive(Debug, Default)]
pub(super) struct Courses {
    of: HashMap<u64, Course>,
    /// Local ports, and remote ends, of connections on which data went both ways.
    answering: (HashSet<u16>, HashSet<Endpoint>),
}

impl Courses {
    /// Empty where more than `MOST` sockets are in use.
    pub(super) fn of(samples: &[&[TcpSocket]]) -> Self {
        let many = |sockets: &&[TcpSocket]| {
            let in_use = sockets.iter().filter(|socket| !socket.is_in_time_wait());
            in_use.count() > MOST
        };
        if samples.iter().any(many) {
            return Self::default();
        }
        let mut answering = (HashSet::new(), HashSet::new());
        let mut courses: HashMap<u64, Course> = HashMap::new();
        for socket in samples.iter().copied().flatten() {
            let (Some(info), true) = (socket.info, socket.inode != 0) else {
                continue;
            };
            let course = courses.entry(socket.inode).or_insert(Course {
                first: info,
                last: info,
                seen: 0,
                received: 0,
                sent: 0,
            });
            course.received += usize::from(info.bytes_received > course.last.bytes_received);
            course.sent += usize::from(info.bytes_acked > course.last.bytes_acked);
            course.last = info;
            course.seen += 1;
            if both(&info) == (true, true) {
                answering.0.insert(socket.local.port);
                answering.1.insert(socket.remote);
            }
        }
        Self {
            of: courses,
            answering,
        }
    }

    /// Number of samples that contain it.
    pub(super) fn seen(&self, socket: &TcpSocket) -> usize {
        self.of.get(&socket.inode).map_or(0, |course| course.seen)
    }

    /// Data went some way on it within the window.
    pub(super) fn moves(&self, socket: &TcpSocket) -> bool {
        self.of.get(&socket.inode).is_some_and(|course| {
            let (first, last) = (&course.first, &course.last);
            first.bytes_received != last.bytes_received || first.bytes_acked != last.bytes_acked
        })
    }

    /// Data went both ways on it within the window.
    pub(super) fn exchanges(&self, socket: &TcpSocket) -> bool {
        self.of.get(&socket.inode).is_some_and(|course| {
            let grew = |bytes: fn(&TcpInfo) -> Option<u64>| {
                bytes(&course.last) > bytes(&course.first) && bytes(&course.first).is_some()
            };
            grew(|info| info.bytes_received) && grew(|info| info.bytes_acked)
        })
    }

    /// Data is sent in one direction repeatedly, and no connection to the same end is answered: logs, metrics, an
    /// upload, or a hanging server.
    pub(super) fn is_one_way(&self, socket: &TcpSocket, serves: bool) -> bool {
        let is_answering = if serves {
            self.answering.0.contains(&socket.local.port)
        } else {
            self.answering.1.contains(&socket.remote)
        };
        !is_answering
            && self
                .of
                .get(&socket.inode)
                .is_some_and(|course| course.received.max(course.sent) >= ONE_WAY)
    }

    /// Its peer usually acknowledges answers together with the next request, without a pause in between. Segments
    /// without data are pure acknowledgements.
    fn hurries(&self, socket: &TcpSocket) -> bool {
        self.of.get(&socket.inode).is_some_and(|course| {
            let grown = |count: fn(&TcpInfo) -> Option<u32>| {
                Some(count(&course.last)?.wrapping_sub(count(&course.first)?))
            };
            let (all, data) = (grown(|info| info.segs_in), grown(|info| info.data_segs_in));
            matches!((all, data), (Some(all), Some(data))
                if data > 0 && 2 * all.saturating_sub(data) < data)
        })
    }

    /// A server has received something that it has not answered.
    pub(super) fn owes(&self, socket: &TcpSocket) -> bool {
        let Some(info) = &socket.info else {
            return false;
        };
        let (sent, received) = (info.last_data_sent_ms, info.last_data_recv_ms);
        match both(info) {
            // The client acknowledged the last answer in this tick: with its next request, or, where it pauses, on its own.
            (true, true) if sent == received => {
                info.unacked == 0 && info.last_ack_recv_ms >= received && self.hurries(socket)
            }
            (true, true) => received < sent,
            (has_received, _) => has_received,
        }
    }
}

/// A client has sent something that its server has not answered.
///
/// Within one tick: the server acknowledges the next request later than it sent the last answer, so the request is not
/// acknowledged yet, or an acknowledgement came after the last data.
pub(super) fn awaits(info: &TcpInfo) -> bool {
    let (sent, received) = (info.last_data_sent_ms, info.last_data_recv_ms);
    match both(info) {
        (true, true) if sent == received => {
            let later = received.saturating_sub(info.last_ack_recv_ms);
            info.unacked > 0 || (1..LATEST_ACKNOWLEDGEMENT_MS).contains(&later)
        }
        (true, true) => sent < received,
        (_, has_sent) => has_sent,
    }
}

/// Whether data was received, and sent. Before the first data both times are those of the handshake. One byte that was
/// acknowledged is the SYN.
pub(super) fn both(info: &TcpInfo) -> (bool, bool) {
    (
        info.bytes_received.unwrap_or(0) > 0,
        info.bytes_acked.unwrap_or(0) > 1,
    )
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
    fn within_one_tick_acknowledgements_tell_an_open_request_of_a_client() {
        // Sent after the last answer; in the same tick and not acknowledged; acknowledged since.
        assert!(awaits(&info(8, 40, 40, 0)));
        assert!(awaits(&info(40, 40, 40, 1)));
        assert!(awaits(&info(60, 60, 20, 0)));
        // Answered; answered in the same tick; the same, and a probe of keepalive was acknowledged since.
        assert!(!awaits(&info(60, 40, 40, 0)));
        assert!(!awaits(&info(60, 60, 60, 0)));
        assert!(!awaits(&info(2520, 2520, 484, 0)));
    }

    /// A connection that is seen twice, with so many segments in between, and so many of them with data.
    fn twice(last: TcpInfo, segments: u32, data: u32) -> (Courses, TcpSocket) {
        let socket = |info| TcpSocket {
            inode: 7,
            state: ESTABLISHED,
            info: Some(info),
            ..TcpSocket::default()
        };
        let first = TcpInfo {
            segs_in: Some(10),
            data_segs_in: Some(5),
            ..info(8, 8, 8, 0)
        };
        let last = TcpInfo {
            segs_in: Some(10 + segments),
            data_segs_in: Some(5 + data),
            bytes_acked: Some(200),
            bytes_received: Some(200),
            ..last
        };
        let samples = [vec![socket(first)], vec![socket(last)]];
        let courses = Courses::of(&[&samples[0], &samples[1]]);
        (courses, socket(last))
    }

    #[test]
    fn logs_that_are_sent_and_never_answered_are_no_request() {
        let seen = |received: u64, sent: &[u64]| {
            let socket = |acked: &u64| TcpSocket {
                inode: 7,
                state: ESTABLISHED,
                info: Some(TcpInfo {
                    bytes_received: Some(received),
                    bytes_acked: Some(*acked),
                    ..TcpInfo::default()
                }),
                ..TcpSocket::default()
            };
            let samples: Vec<[TcpSocket; 1]> = sent.iter().map(|acked| [socket(acked)]).collect();
            let samples: Vec<&[TcpSocket]> = samples.iter().map(|one| &one[..]).collect();
            Courses::of(&samples).is_one_way(&samples[0][0], false)
        };
        assert!(seen(0, &[10, 20, 20, 30, 40]));
        assert!(
            !seen(0, &[10, 20, 20, 20, 20]),
            "one request without an answer"
        );
        assert!(!seen(5, &[10, 20, 20, 30, 40]), "it was answered once");
    }

    #[test]
    fn closed_connections_do_not_count_as_many() {
        let connection = |inode, state, received| TcpSocket {
            inode,
            state,
            info: (inode > 0).then(|| TcpInfo {
                bytes_received: Some(received),
                bytes_acked: Some(received),
                ..TcpInfo::default()
            }),
            ..TcpSocket::default()
        };
        let sample = |received| {
            let closed = (0..2 * MOST).map(|_| connection(0, TcpSocket::TIME_WAIT, 0));
            closed
                .chain([connection(7, ESTABLISHED, received)])
                .collect::<Vec<_>>()
        };
        let (first, last) = (sample(10), sample(20));
        let courses = Courses::of(&[&first, &last]);
        assert!(courses.exchanges(&last[2 * MOST]));
    }

    #[test]
    fn a_client_that_pauses_acknowledges_the_answer_on_its_own() {
        let owes = |info, segments, data| {
            let (courses, socket) = twice(info, segments, data);
            assert!(courses.exchanges(&socket) && courses.seen(&socket) == 2);
            courses.owes(&socket)
        };
        // The same tick: each answer was acknowledged with the next request, or by a segment of its own.
        assert!(owes(info(60, 60, 60, 0), 20, 20));
        assert!(!owes(info(60, 60, 60, 0), 40, 20));
        // Not acknowledged yet; acknowledged by the client later.
        assert!(!owes(info(60, 60, 60, 1), 20, 20));
        assert!(!owes(info(60, 60, 20, 0), 20, 20));
        assert!(owes(info(60, 8, 8, 0), 40, 20));
        assert!(!owes(info(8, 60, 8, 0), 20, 20));
    }
}
