//! Ports on which requests stay open and none that was open for long is answered.
//!
//! A request that has been open for seconds may be held on purpose (long polling). Such a server answers some of its requests within a
//! window, and a service that hangs answers none; that it still answers others at once, such as health checks, says nothing. Source:
//! `tcp_get_info` of net/ipv4/tcp.c, Linux 6.18.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rungwise_model::kernel::{Endpoint, TcpInfo, TcpSocket};

use super::exchange::{ESTABLISHED, both, listening};

/// States of `include/net/tcp_states.h`.
const CLOSE_WAIT: u8 = 8;

/// From then on a request has been open for long, in milliseconds.
const LONG_MS: u32 = 1_000;

/// Clients of a service end after some minutes what is not answered. What is older is held on purpose, or was no request: a client that
/// confirms what the server sent is the last to send.
const FORGOTTEN_MS: u32 = 300_000;

/// Fewest connections that show a pattern.
const FEWEST: usize = 3;

/// Ports without late answers, each with the number of its connections that wait for one, if at least half of them do.
pub(super) fn of(samples: &[&[TcpSocket]]) -> BTreeMap<u16, usize> {
    let mut held: HashMap<(Endpoint, Endpoint), Option<u64>> = HashMap::new();
    let mut answered: BTreeSet<u16> = BTreeSet::new();
    let mut waiting: BTreeMap<u16, (usize, usize)> = BTreeMap::new();
    for sockets in samples {
        let listening = listening(sockets);
        waiting.clear();
        let served = sockets
            .iter()
            .filter(|socket| listening.contains(&socket.local.port));
        for socket in served {
            let ends = (socket.local, socket.remote);
            let port = socket.local.port;
            match (socket.state, &socket.info) {
                (ESTABLISHED | CLOSE_WAIT, Some(info)) => {
                    let (waits, all) = waiting.entry(port).or_default();
                    *all += 1;
                    if held.get(&ends).is_some_and(|sent| info.bytes_acked > *sent) {
                        answered.insert(port);
                    } else if is_open_for_long(info) {
                        held.insert(ends, info.bytes_acked);
                        *waits += 1;
                    }
                }
                // The service closed the connection; what hangs closes none.
                (state, _) if state > ESTABLISHED && held.contains_key(&ends) => {
                    answered.insert(port);
                }
                _ => {}
            }
        }
    }
    let silent = waiting.into_iter().filter(|(port, (waits, all))| {
        *waits >= FEWEST && 2 * waits >= *all && !answered.contains(port)
    });
    silent.map(|(port, (waits, _))| (port, waits)).collect()
}

/// The last data came from the client. Within one tick of the kernel it is unknown which side sent last.
fn is_open_for_long(info: &TcpInfo) -> bool {
    let (has_received, has_sent) = both(info);
    let last = !has_sent || info.last_data_recv_ms < info.last_data_sent_ms;
    has_received && last && (LONG_MS..FORGOTTEN_MS).contains(&info.last_data_recv_ms)
}

#[cfg(test)]
mod tests {
    use super::super::exchange::LISTEN;
    use super::*;

    fn socket(remote: u16, state: u8, (sent_ms, received_ms, sent): (u32, u32, u64)) -> TcpSocket {
        let mut socket = TcpSocket {
            inode: u64::from(remote),
            state,
            info: Some(TcpInfo {
                last_data_sent_ms: sent_ms,
                last_data_recv_ms: received_ms,
                bytes_acked: Some(sent),
                bytes_received: Some(100),
                ..TcpInfo::default()
            }),
            ..TcpSocket::default()
        };
        socket.local.port = 80;
        socket.remote.port = remote;
        socket
    }

    fn waits(remote: u16, since_ms: u32) -> TcpSocket {
        socket(remote, ESTABLISHED, (since_ms + 40, since_ms, 100))
    }

    /// Of samples beside the listener.
    fn over(samples: &[&[TcpSocket]]) -> BTreeMap<u16, usize> {
        let with = |sockets: &&[TcpSocket]| [&[socket(0, LISTEN, (0, 0, 0))], *sockets].concat();
        let samples: Vec<Vec<TcpSocket>> = samples.iter().map(with).collect();
        of(&samples
            .iter()
            .map(|sockets| &sockets[..])
            .collect::<Vec<_>>())
    }

    #[test]
    fn a_service_hangs_though_it_answers_health_checks() {
        let first = [waits(1, 9_000), waits(2, 2_000), waits(3, 6_000)];
        let health = socket(9, ESTABLISHED, (30, 31, 900));
        let last = [
            waits(1, 19_000),
            waits(2, 12_000),
            socket(3, CLOSE_WAIT, (16_040, 16_000, 100)),
            health,
        ];
        assert_eq!(over(&[&first, &last]), [(80, 3)].into());
        assert_eq!(over(&[&first, &last[1..]]), BTreeMap::new(), "too few");
    }

    #[test]
    fn a_server_that_holds_requests_answers_some_of_them_late() {
        let first = [
            waits(1, 9_000),
            waits(2, 2_000),
            waits(3, 6_000),
            waits(4, 3_000),
        ];
        let still = [waits(2, 12_000), waits(3, 16_000), waits(4, 13_000)];
        let answered = socket(1, ESTABLISHED, (500, 499, 300));
        let closed = socket(1, TcpSocket::TIME_WAIT, (0, 0, 0));
        for one in [answered, closed] {
            let last = [&still[..], &[one]].concat();
            assert_eq!(over(&[&first, &last]), BTreeMap::new());
        }
        assert_eq!(over(&[&first, &still]), [(80, 3)].into());
    }

    #[test]
    fn idle_connections_on_which_the_client_was_last_are_no_requests() {
        // Most confirmed what the server sent within one tick, and one of them did so long ago.
        let idle = |remote| socket(remote, ESTABLISHED, (40_000, 40_000, 100));
        let sample = [idle(1), idle(2), idle(3), idle(4), waits(5, 40_000)];
        assert_eq!(over(&[&sample, &sample]), BTreeMap::new());
        let old = [waits(1, 400_000), waits(2, 500_000), waits(3, 600_000)];
        assert_eq!(over(&[&old, &old]), BTreeMap::new());
    }
}
