//! Ports whose clients asked during the window and got no answer in it.
//!
//! A request that has been open for seconds may be held on purpose (long polling), and so may be all requests of a port. But where
//! requests keep coming and none is answered, a service hangs. The times of the last data are those of `tcp_get_info` of
//! net/ipv4/tcp.c, Linux 6.18.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::kernel::{Answer, TcpSocket};

use super::exchange::{ESTABLISHED, both, listening};
use crate::Window;
use crate::capture::Reply;

/// States of `include/net/tcp_states.h`.
const FIN_WAIT1: u8 = 4;
const FIN_WAIT2: u8 = 5;
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;
const CLOSING: u8 = 11;

/// Ports without an answer, each with the number of connections on which a request came in.
pub(super) fn of(window: &Window<'_>) -> BTreeMap<u16, usize> {
    let moments = window.often().into_iter();
    let samples = moments.filter_map(|moment| match moment.answers.get("tcp")? {
        Reply::Answer(Answer::Tcp(sockets)) => Some((moment.at_s, &sockets[..])),
        Reply::Answer(_) | Reply::Failed(_) => None,
    });
    unanswered(&samples.collect::<Vec<_>>())
}

/// Of samples with their times in seconds, oldest first.
fn unanswered(samples: &[(f64, &[TcpSocket])]) -> BTreeMap<u16, usize> {
    let mut asked: BTreeMap<u16, BTreeSet<u64>> = BTreeMap::new();
    let mut answered: BTreeSet<u16> = BTreeSet::new();
    let mut closed_before: Option<BTreeMap<u16, usize>> = None;
    let first_s = samples.first().map_or(0.0, |(at_s, _)| *at_s);
    for (at_s, sockets) in samples {
        let since_ms = (at_s - first_s) * 1000.0;
        let listening = listening(sockets);
        let mut closed: BTreeMap<u16, usize> = BTreeMap::new();
        let served = sockets
            .iter()
            .filter(|socket| listening.contains(&socket.local.port));
        for socket in served {
            let port = socket.local.port;
            match (socket.state, &socket.info) {
                (ESTABLISHED | CLOSE_WAIT, Some(info)) => {
                    let (has_received, has_sent) = both(info);
                    if has_sent && f64::from(info.last_data_sent_ms) < since_ms {
                        answered.insert(port);
                    }
                    if has_received && f64::from(info.last_data_recv_ms) < since_ms {
                        asked.entry(port).or_default().insert(socket.inode);
                    }
                }
                // The service closed it, as some do after each answer. What hangs closes nothing.
                (FIN_WAIT1 | FIN_WAIT2 | CLOSING | LAST_ACK, _) => _ = answered.insert(port),
                _ if socket.is_in_time_wait() => *closed.entry(port).or_default() += 1,
                _ => {}
            }
        }
        if let Some(before) = closed_before {
            let more = |(port, count): &(&u16, &usize)| {
                before.get(port).is_none_or(|before| *count > before)
            };
            answered.extend(closed.iter().filter(more).map(|(port, _)| port));
        }
        closed_before = Some(closed);
    }
    let silent = asked.into_iter();
    let silent = silent.filter(|(port, _)| !answered.contains(port));
    silent.map(|(port, asked)| (port, asked.len())).collect()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use rungwise_model::kernel::{Endpoint, TcpInfo};

    use super::super::exchange::LISTEN;
    use super::*;

    fn socket(inode: u64, state: u8, sent_ms: u32, received_ms: u32) -> TcpSocket {
        let mut socket = TcpSocket {
            inode,
            state,
            info: Some(TcpInfo {
                last_data_sent_ms: sent_ms,
                last_data_recv_ms: received_ms,
                bytes_acked: Some(100),
                bytes_received: Some(100),
                ..TcpInfo::default()
            }),
            ..TcpSocket::default()
        };
        socket.local = Endpoint {
            port: 80,
            ..socket.local
        };
        socket
    }

    /// Of a sample at the start of a window and one 10 s later, each beside the listener.
    fn over(first: &[TcpSocket], last: &[TcpSocket]) -> BTreeMap<u16, usize> {
        let with = |sockets: &[TcpSocket]| [&[socket(1, LISTEN, 0, 0)], sockets].concat();
        let (first, last) = (with(first), with(last));
        unanswered(&[(2.0, &first), (12.0, &last)])
    }

    #[test]
    fn requests_come_in_and_none_is_answered() {
        let old = socket(7, ESTABLISHED, 31_000, 30_000);
        let new = socket(8, ESTABLISHED, 13_000, 6_000);
        let gone = socket(9, CLOSE_WAIT, 13_000, 9_000);
        assert_eq!(
            over(from_ref(&old), &[old.clone(), new.clone(), gone]),
            [(80, 2)].into()
        );
        assert_eq!(
            over(from_ref(&new), from_ref(&old)),
            BTreeMap::new(),
            "no request came in"
        );
        let answered = socket(10, ESTABLISHED, 9_900, 9_990);
        assert_eq!(over(&[old], &[new, answered]), BTreeMap::new());
    }

    #[test]
    fn a_service_that_closes_connections_answers() {
        let new = socket(8, ESTABLISHED, 13_000, 6_000);
        let closed = |inode| socket(inode, TcpSocket::TIME_WAIT, 0, 0);
        let over = |first: &[TcpSocket], last: &[TcpSocket]| {
            over(first, &[&[new.clone()][..], last].concat()).is_empty()
        };
        assert!(over(&[], &[closed(0)]));
        assert!(over(&[], &[socket(11, FIN_WAIT2, 0, 0)]));
        assert!(
            !over(&[closed(0)], &[closed(0)]),
            "it was closed before the window"
        );
    }
}
