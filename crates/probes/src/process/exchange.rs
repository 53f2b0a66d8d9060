//! Requests and answers on TCP connections, from `tcp_info`: which side owes an answer.
//!
//! The times of the last data sent and received show it, unless both are in one tick (4 ms at 250 Hz), as on a busy
//! connection on which the next request follows the last answer at once. Then the acknowledgements show it. Sources:
//! `tcp_get_info` of net/ipv4/tcp.c, `tcp_ack` of `net/ipv4/tcp_input.c` (`rcv_tstamp`), Linux 6.18; RFC 1122, 4.2.3.2.

use std::collections::{HashMap, HashSet};

use rungwise_model::kernel::{Answer, Endpoint, TcpInfo, TcpSocket};

use crate::capture::Reply;
use crate::{Window, net};

/// States of `include/net/tcp_states.h`.
pub(super) const ESTABLISHED: u8 = 1;
pub(super) const CLOSE_WAIT: u8 = 8;
pub(super) const LISTEN: u8 = 10;

/// Number of one-way transfers, one in each step from sample to sample, from which on no answer is expected; where there are fewer steps,
/// one in each of them.
const ONE_WAY: usize = 3;

/// Fewest bytes of answers for each segment of requests: the shortest replies (redis) have five.
const FEWEST_BYTES: u64 = 4;

/// Bytes of a segment below which it is a message of its own, and not a part of an upload.
const MESSAGE: u64 = 500;

/// An acknowledgement is delayed by 40 to 200 ms (`TCP_DELACK_MIN`, `TCP_DELACK_MAX`). A later one is a keepalive
/// probe, which waits for at least a second.
const LATEST_ACKNOWLEDGEMENT_MS: u32 = 300;

/// The sockets of each complete sample: on a host with many sockets, of the two ends of the window.
pub(super) fn sockets<'a>(window: &Window<'a>) -> Vec<&'a [TcpSocket]> {
    let moments = window.often().into_iter();
    let sockets = moments.filter_map(|moment| match moment.answers.get("tcp")? {
        Reply::Answer(Answer::Tcp(sockets)) => Some(&sockets[..]),
        Reply::Answer(_) | Reply::Failed(_) => None,
    });
    complete(sockets.collect())
}

/// Without the samples that contain a part of the sockets.
pub(super) fn complete<T: AsRef<[TcpSocket]>>(mut samples: Vec<T>) -> Vec<T> {
    let is_partial = samples
        .first()
        .is_some_and(|first| net::tcp::between(first.as_ref()).is_some());
    if is_partial && samples.len() > 2 {
        samples.drain(1..samples.len() - 1);
    }
    samples
}

/// Listening ports.
pub(super) fn listening(sockets: &[TcpSocket]) -> HashSet<u16> {
    let listeners = sockets.iter().filter(|socket| socket.state == LISTEN);
    listeners.map(|socket| socket.local.port).collect()
}

/// What went over a connection until now: bytes, segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    bytes_received: Option<u64>,
    bytes_acked: Option<u64>,
    segs_in: Option<u32>,
    data_segs_in: Option<u32>,
}

impl Counts {
    fn of(info: &TcpInfo) -> Self {
        Self {
            bytes_received: info.bytes_received,
            bytes_acked: info.bytes_acked,
            segs_in: info.segs_in,
            data_segs_in: info.data_segs_in,
        }
    }
}

/// The activity of a connection from its first to its last sample.
#[derive(Clone, Copy, Debug)]
struct Course {
    first: Counts,
    last: Counts,
    seen: usize,
    /// Samples in which more bytes had been received, and sent, than in the sample before.
    received: usize,
    sent: usize,
}

/// Connections over the window, by inode.
#[derive(Debug, Default)]
pub(super) struct Courses {
    of: HashMap<u64, Course>,
    /// Number of one-way transfers from which on no answer is expected.
    one_way: usize,
    /// Local ports, and remote ends, of connections on which data went both ways.
    answering: (HashSet<u16>, HashSet<Endpoint>),
}

impl Courses {
    pub(super) fn of(samples: &[&[TcpSocket]]) -> Self {
        let mut answering = (HashSet::new(), HashSet::new());
        let mut courses: HashMap<u64, Course> = HashMap::new();
        for socket in samples.iter().copied().flatten() {
            let (Some(info), true) = (socket.info, socket.inode != 0) else {
                continue;
            };
            let counts = Counts::of(&info);
            let course = courses.entry(socket.inode).or_insert(Course {
                first: counts,
                last: counts,
                seen: 0,
                received: 0,
                sent: 0,
            });
            // The first data may be a request. One byte that was acknowledged is the SYN.
            let goes_on = |now: Option<u64>, before: Option<u64>, none: u64| {
                usize::from(now > before && before > Some(none))
            };
            course.received += goes_on(info.bytes_received, course.last.bytes_received, 0);
            course.sent += goes_on(info.bytes_acked, course.last.bytes_acked, 1);
            course.last = counts;
            course.seen += 1;
            if both(&info) == (true, true) {
                answering.0.insert(socket.local.port);
                answering.1.insert(socket.remote);
            }
        }
        Self {
            of: courses,
            one_way: ONE_WAY.min(samples.len().saturating_sub(1)).max(1),
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
            let grew = |bytes: fn(&Counts) -> Option<u64>| {
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
                .is_some_and(|course| course.received.max(course.sent) >= self.one_way)
    }

    /// Its peer usually acknowledges answers together with the next request, without a pause in between. Segments
    /// without data are pure acknowledgements.
    fn hurries(&self, socket: &TcpSocket) -> bool {
        self.of.get(&socket.inode).is_some_and(|course| {
            let grown = |count: fn(&Counts) -> Option<u32>| {
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

/// Small messages went one way, and hardly anything came back: publishers of telemetry, whose server answered when they connected.
pub(super) fn is_lopsided(info: &TcpInfo, serves: bool) -> bool {
    let (received, sent) = (
        info.bytes_received.unwrap_or(0),
        info.bytes_acked.unwrap_or(0),
    );
    let (there, segments, back) = if serves {
        (received, info.data_segs_in, sent)
    } else {
        // Every other one may only acknowledge an answer.
        (sent, info.segs_out.map(|all| all / 2), received)
    };
    let segments = u64::from(segments.unwrap_or(1));
    there < MESSAGE * segments && back < FEWEST_BYTES * segments.saturating_sub(1)
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

    fn info_of(received: u64, acked: u64) -> TcpInfo {
        TcpInfo {
            bytes_received: Some(received),
            bytes_acked: Some(acked),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn small_messages_one_way_differ_from_requests_and_uploads() {
        let of = |received, acked, segments| TcpInfo {
            data_segs_in: Some(segments),
            segs_out: Some(segments),
            ..info_of(received, acked)
        };
        // Fifty readings of a sensor; an upload of 10 MB; requests to redis; the first request.
        assert!(is_lopsided(&of(3_000, 5, 50), true));
        assert!(is_lopsided(&of(5, 3_000, 50), false));
        assert!(!is_lopsided(&of(10_000_000, 250, 7_000), true));
        assert!(!is_lopsided(&of(300, 10_000_000, 7_000), false));
        assert!(!is_lopsided(&of(1_500, 250, 50), true));
        assert!(!is_lopsided(&of(250, 1_500, 100), false));
        assert!(!is_lopsided(&of(60, 1, 1), true));
        assert!(!is_lopsided(&info_of(3_000, 5), true), "an older capture");
    }

    #[test]
    fn a_first_request_without_an_answer_is_no_one_way_transfer() {
        let at = |received| {
            [TcpSocket {
                inode: 7,
                state: ESTABLISHED,
                info: Some(info_of(received, 1)),
                ..TcpSocket::default()
            }]
        };
        let one_way = |first, last| {
            let (first, last) = (at(first), at(last));
            Courses::of(&[&first, &last]).is_one_way(&last[0], true)
        };
        assert!(!one_way(0, 90));
        assert!(one_way(50, 90));
    }

    #[test]
    fn of_many_sockets_the_ends_of_the_window_show_what_goes_one_way() {
        let samples = [1, 2, 3].map(|sample| {
            let received = if sample == 3 { 90 } else { 50 };
            let socket = |inode| TcpSocket {
                inode,
                state: ESTABLISHED,
                info: Some(TcpInfo {
                    bytes_received: Some(received),
                    bytes_acked: Some(1),
                    ..TcpInfo::default()
                }),
                ..TcpSocket::default()
            };
            let count = if sample == 2 { 1 } else { 3_000 };
            (1..=count).map(socket).collect::<Vec<_>>()
        });
        let samples = complete(samples.iter().map(|sample| &sample[..]).collect());
        assert_eq!(samples.iter().map(|one| one.len()).sum::<usize>(), 6_000);
        let courses = Courses::of(&samples);
        assert!(courses.is_one_way(&samples[1][0], true));
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
