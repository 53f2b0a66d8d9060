//! Ports whose connections wait for answers that do not come.
//!
//! A request that has been open for seconds may be held on purpose (long polling). Such a server answers some of its requests within a
//! window; a service that hangs answers none, though it may answer others at once, such as health checks. Source: `tcp_get_info` of
//! net/ipv4/tcp.c, Linux 6.18.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rungwise_model::kernel::{Endpoint, TcpInfo, TcpSocket};

use super::exchange::{CLOSE_WAIT, ESTABLISHED, both, is_lopsided, listening};

/// From then on a request has been open for long, in milliseconds.
const LONG_MS: u32 = 1_000;

/// Clients of a service give up after some minutes. What is older is held on purpose, or was no request.
const OLDEST_MS: u32 = 300_000;

/// A client that confirms what the server sent does so after a round trip and some milliseconds. What it sends later is a request.
const CONFIRMS_MS: u32 = 10;

/// Fewest connections that show a pattern.
const FEWEST: usize = 3;

/// Of complete samples, oldest first: ports with the number of connections that have waited for 1 s to 5 min in the last one, if they are
/// at least half of all and none that waited was answered or closed by the service from one sample to the next.
pub(super) fn hung_ports(samples: &[&[TcpSocket]]) -> BTreeMap<u16, usize> {
    let mut waited: HashMap<(Endpoint, Endpoint), TcpInfo> = HashMap::new();
    let mut streams: HashSet<(Endpoint, Endpoint)> = HashSet::new();
    let mut answered: BTreeSet<u16> = BTreeSet::new();
    let mut waiting: BTreeMap<u16, (usize, usize)> = BTreeMap::new();
    for sockets in samples {
        let listening = listening(sockets);
        let mut open = HashSet::new();
        waiting.clear();
        for socket in *sockets {
            let (Some(info), ESTABLISHED | CLOSE_WAIT) = (socket.info, socket.state) else {
                continue;
            };
            if !listening.contains(&socket.local.port) {
                continue;
            }
            let ends = (socket.local, socket.remote);
            open.insert(ends);
            let (waits, all) = waiting.entry(socket.local.port).or_default();
            *all += 1;
            match waited.get(&ends) {
                Some(before) if info.bytes_acked > before.bytes_acked => {
                    answered.insert(socket.local.port);
                }
                // It sends on without an answer. The end of a connection counts as a byte.
                Some(before)
                    if info.bytes_received
                        > before.bytes_received.map(|all| all.saturating_add(1)) =>
                {
                    streams.insert(ends);
                }
                _ if !streams.contains(&ends) && is_open_for_long(&info) => {
                    waited.insert(ends, info);
                    *waits += 1;
                }
                _ => {}
            }
        }
        // What hangs closes no connection.
        let closed = waited.keys().filter(|ends| !open.contains(*ends));
        answered.extend(closed.map(|(local, _)| local.port));
    }
    let hung = waiting.into_iter().filter(|(port, (waits, all))| {
        *waits >= FEWEST && 2 * waits >= *all && !answered.contains(port)
    });
    hung.map(|(port, (waits, _))| (port, waits)).collect()
}

/// The last data came from the client, and was a request: the first of a connection, or more than a confirmation of what it got.
fn is_open_for_long(info: &TcpInfo) -> bool {
    let (has_received, has_sent) = both(info);
    // Before the first data, data was last sent when the connection began.
    let later_ms = info
        .last_data_sent_ms
        .saturating_sub(info.last_data_recv_ms);
    let is_request = if has_sent {
        // The mean round trip contains pauses of the client, which sends its next request with the acknowledgement.
        let rtt = info.min_rtt.filter(|rtt| *rtt < u32::MAX);
        !is_lopsided(info, true) && later_ms > CONFIRMS_MS.max(rtt.unwrap_or(info.rtt) / 500)
    } else {
        later_ms < LONG_MS
    };
    has_received && is_request && (LONG_MS..OLDEST_MS).contains(&info.last_data_recv_ms)
}

#[cfg(test)]
mod tests {
    use super::super::exchange::LISTEN;
    use super::*;

    fn socket(remote: u16, state: u8, sent_ms: u32, received_ms: u32) -> TcpSocket {
        let mut socket = TcpSocket {
            inode: u64::from(remote),
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
        socket.local.port = 80;
        socket.remote.port = remote;
        socket
    }

    fn waits(remote: u16, since_ms: u32) -> TcpSocket {
        socket(remote, ESTABLISHED, since_ms + 40, since_ms)
    }

    fn with(mut socket: TcpSocket, change: fn(&mut TcpInfo)) -> TcpSocket {
        socket.info.iter_mut().for_each(change);
        socket
    }

    /// Of samples beside the listener.
    fn over(samples: &[&[TcpSocket]]) -> BTreeMap<u16, usize> {
        let beside = |sockets: &&[TcpSocket]| [&[socket(0, LISTEN, 0, 0)], *sockets].concat();
        let samples: Vec<Vec<TcpSocket>> = samples.iter().map(beside).collect();
        let samples: Vec<&[TcpSocket]> = samples.iter().map(|sockets| &sockets[..]).collect();
        hung_ports(&samples)
    }

    #[test]
    fn a_service_hangs_though_it_answers_health_checks() {
        let first = [waits(1, 9_000), waits(2, 2_000), waits(3, 6_000)];
        let mut gone = with(waits(3, 16_000), |info| info.bytes_received = Some(101));
        gone.state = CLOSE_WAIT;
        let health = with(socket(9, ESTABLISHED, 30, 31), |info| {
            info.bytes_acked = Some(900);
        });
        let fresh = with(socket(4, ESTABLISHED, 3_002, 3_000), |info| {
            info.bytes_acked = Some(1);
        });
        let last = [waits(1, 19_000), waits(2, 12_000), gone, health, fresh];
        assert_eq!(over(&[&first, &last]), [(80, 4)].into());
        let half = [&last[..], &[socket(10, ESTABLISHED, 30, 31)]].concat();
        let more = [&half[..], &[socket(11, ESTABLISHED, 30, 31)]].concat();
        let most = [&more[..], &[socket(12, ESTABLISHED, 30, 31)]].concat();
        assert_eq!(over(&[&first, &more]), [(80, 4)].into());
        assert_eq!(over(&[&first, &most]), [(80, 4)].into());
        let few = [&most[..], &[socket(13, ESTABLISHED, 30, 31)]].concat();
        assert_eq!(over(&[&first, &few]), BTreeMap::new(), "less than half");
        assert_eq!(over(&[&last[..2], &last[..2]]), BTreeMap::new(), "too few");
    }

    #[test]
    fn a_server_that_holds_requests_answers_some_of_them_late() {
        let first = [1, 2, 3, 4].map(|remote| waits(remote, 3_000));
        let still = [2, 3, 4].map(|remote| waits(remote, 13_000));
        let answered = with(waits(1, 13_000), |info| info.bytes_acked = Some(200));
        let all = [&still[..], &[waits(1, 13_000)]].concat();
        assert_eq!(over(&[&first, &all]), [(80, 4)].into());
        let all = [&still[..], &[answered]].concat();
        assert_eq!(over(&[&first, &all]), BTreeMap::new());
        assert_eq!(over(&[&first, &still]), BTreeMap::new(), "one was closed");
    }

    #[test]
    fn what_a_client_confirms_or_streams_is_no_request() {
        let each = |of: fn(u16) -> TcpSocket| [1, 2, 3, 4].map(of);
        let confirmed = each(|remote| socket(remote, ESTABLISHED, 40_004, 40_000));
        assert_eq!(over(&[&confirmed, &confirmed]), BTreeMap::new());
        let far = each(|remote| with(waits(remote, 40_000), |info| info.min_rtt = Some(30_000)));
        assert_eq!(over(&[&far, &far]), BTreeMap::new());
        // A log: nothing was ever sent to its senders.
        let log = each(|remote| {
            with(waits(remote, 9_000), |info| {
                info.bytes_acked = Some(1);
                info.last_data_sent_ms = 600_000;
            })
        });
        assert_eq!(over(&[&log, &log]), BTreeMap::new());
        // MQTT without confirmations: a few bytes when they connected.
        let publishers = each(|remote| {
            with(waits(remote, 9_000), |info| {
                (info.bytes_acked, info.bytes_received) = (Some(5), Some(3_000));
                info.data_segs_in = Some(50);
            })
        });
        assert_eq!(over(&[&publishers, &publishers]), BTreeMap::new());
        let first = each(|remote| waits(remote, 9_000));
        let later =
            each(|remote| with(waits(remote, 2_000), |info| info.bytes_received = Some(300)));
        assert_eq!(over(&[&first, &later]), BTreeMap::new());
        let old = each(|remote| waits(remote, 400_000));
        assert_eq!(over(&[&old, &old]), BTreeMap::new());
    }
}
