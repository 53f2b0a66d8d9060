//! Connections that retransmit repeatedly without progress: the peer is gone, or large segments do not arrive.
//!
//! If handshake and request succeeded but the peer has never acknowledged a large segment, the path has a link with a
//! smaller MTU whose ICMP messages are lost: a path MTU black hole. If the peer shows no sign of life on any
//! connection, it may simply be gone. Source: `tcp_retransmit_timer` in `net/ipv4/tcp_timer.c` (Linux 6.18), RFC 4821.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use rungwise_model::evidence::{Evidence, Origin, Subject};
use rungwise_model::kernel::{TcpInfo, TcpSocket};
use rungwise_model::keys;

use super::{SOURCE, Sample, state};

/// Timeouts in a row from which on a connection is stalled: 1.4 s at least (200, 400 and 800 ms).
const IN_A_ROW: u8 = 3;

/// The same for large segments to a live peer: nothing else explains a second timeout. Clients give up after a second.
const IN_A_ROW_LARGE: u8 = 2;

/// Bytes from which on a segment is large: what IPv4 carries everywhere (RFC 879), so no link drops less for its size.
const LARGE: u64 = 536;

/// Connections that are named.
const NAMED: usize = 1;

pub(super) fn add(samples: &[Sample<'_>], evidence: &mut Evidence) {
    let Some((_, last)) = samples.last() else {
        return;
    };
    let suspects: Vec<(&TcpSocket, &TcpInfo)> = last
        .iter()
        .filter(|socket| {
            [
                state::ESTABLISHED,
                state::FIN_WAIT1,
                state::CLOSE_WAIT,
                state::LAST_ACK,
                // Both ends closed: a reply of the last request, whose client gave up.
                state::CLOSING,
            ]
            .contains(&socket.state)
        })
        .filter_map(|socket| Some((socket, socket.info.as_ref()?)))
        .filter(|(_, info)| {
            info.retransmits >= IN_A_ROW_LARGE && info.probes == 0 && info.unacked > 0
        })
        .collect();
    let (mut gone, mut large) = (Vec::new(), Vec::new());
    if !suspects.is_empty() {
        let first = samples.first().map_or(&[][..], |(_, first)| first);
        let earlier = Earlier::of(first);
        let alive = earlier.alive(last);
        for (socket, info) in suspects {
            let before = earlier.find(socket);
            if before.is_some_and(|before| before.bytes_acked != info.bytes_acked) {
                continue;
            }
            // A connection that was opened within the window has a live peer.
            let new = before.is_none() && samples.len() > 1;
            if never_large(socket, info) && (new || alive.contains(&socket.remote.address)) {
                large.push((socket, info));
            } else if info.retransmits >= IN_A_ROW {
                gone.push((socket, info));
            }
        }
    }
    let all = gone.len() + large.len();
    let line = format!(
        "{all} of {} sockets with {IN_A_ROW} timeouts in a row or more and no progress, {} of them on large segments (there {IN_A_ROW_LARGE})",
        last.len(),
        large.len()
    );
    let origin = Origin::new(SOURCE, line);
    let host = Subject::host;
    evidence.number(&keys::TCP_STALLED, host(), all as f64, origin.clone());
    let number = large.len() as f64;
    evidence.number(&keys::TCP_STALLED_FULL, host(), number, origin.clone());
    evidence.text(&keys::TCP_STALLED_WHO, host(), names(&gone), origin.clone());
    evidence.text(&keys::TCP_STALLED_FULL_WHO, host(), names(&large), origin);
}

/// The peer sent data, has not acknowledged a single large segment, and one is waiting for its acknowledgement.
fn never_large(socket: &TcpSocket, info: &TcpInfo) -> bool {
    let segment = segment(socket, info);
    info.bytes_received.is_some_and(|bytes| bytes > 0)
        && info.bytes_acked.is_some_and(|bytes| bytes < segment)
        && segment >= LARGE
}

/// Bytes of the first waiting segment: a full one, or all data.
fn segment(socket: &TcpSocket, info: &TcpInfo) -> u64 {
    u64::from(info.snd_mss.min(socket.wqueue))
}

fn names(sockets: &[(&TcpSocket, &TcpInfo)]) -> String {
    let name = |(socket, info): &(&TcpSocket, &TcpInfo)| {
        format!(
            "{}>{} (a segment of {} bytes, {} timeouts in a row)",
            socket.local,
            socket.remote,
            segment(socket, info),
            info.retransmits
        )
    };
    let names: Vec<String> = sockets.iter().take(NAMED).map(name).collect();
    names.join(", ")
}

/// Connections of the first full sample by their ends and inode.
struct Earlier<'a>(HashMap<(u64, u16, u16), &'a TcpInfo>);

impl<'a> Earlier<'a> {
    fn of(first: &'a [TcpSocket]) -> Self {
        let known = |socket: &'a TcpSocket| Some((place(socket), socket.info.as_ref()?));
        Self(first.iter().filter_map(known).collect())
    }

    fn find(&self, socket: &TcpSocket) -> Option<&'a TcpInfo> {
        self.0.get(&place(socket)).copied()
    }

    /// Addresses of peers that sent or acknowledged something in the window.
    fn alive(&self, last: &[TcpSocket]) -> HashSet<IpAddr> {
        last.iter()
            .filter(|socket| {
                let Some(info) = &socket.info else {
                    return false;
                };
                self.find(socket).is_some_and(|before| {
                    (before.bytes_acked, before.bytes_received)
                        != (info.bytes_acked, info.bytes_received)
                })
            })
            .map(|socket| socket.remote.address)
            .collect()
    }
}

fn place(socket: &TcpSocket) -> (u64, u16, u16) {
    (socket.inode, socket.local.port, socket.remote.port)
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::Endpoint;

    use super::*;

    fn socket(port: u16, change: impl FnOnce(&mut TcpSocket, &mut TcpInfo)) -> TcpSocket {
        let mut socket = TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), 80),
            remote: Endpoint::new([10, 0, 0, 2].into(), port),
            state: state::ESTABLISHED,
            inode: u64::from(port),
            wqueue: 20_000,
            ..TcpSocket::default()
        };
        let mut info = TcpInfo {
            retransmits: 4,
            unacked: 1,
            snd_mss: 1448,
            bytes_acked: Some(0),
            bytes_received: Some(16),
            ..TcpInfo::default()
        };
        change(&mut socket, &mut info);
        socket.info = Some(info);
        socket
    }

    /// Stalled connections, and those of them that stall on large segments.
    fn counted(first: &[TcpSocket], last: &[TcpSocket]) -> (f64, f64) {
        let mut evidence = Evidence::over(3.0);
        add(&[(0.0, first), (3.0, last)], &mut evidence);
        let of = |key| evidence.host(key).unwrap().value;
        (of(&keys::TCP_STALLED), of(&keys::TCP_STALLED_FULL))
    }

    #[test]
    fn a_new_connection_without_a_large_segment_meets_a_black_hole() {
        assert_eq!(counted(&[], &[socket(5, |_, _| {})]), (1.0, 1.0));
        let small = socket(5, |socket, _| socket.wqueue = 100);
        assert_eq!(counted(&[], &[small]), (1.0, 0.0));
        let one_reply = socket(5, |socket, _| socket.wqueue = 1100);
        assert_eq!(counted(&[], &[one_reply]), (1.0, 1.0));
        // The server closes after its reply, the client gives up: no process has the socket open any more.
        let closing = socket(5, |socket, info| {
            (socket.state, socket.inode) = (state::CLOSING, 0);
            info.retransmits = 2;
        });
        assert_eq!(counted(&[], &[closing]), (1.0, 1.0));
        let long_lived = socket(5, |_, info| info.bytes_acked = Some(9000));
        assert_eq!(counted(&[], &[long_lived]), (1.0, 0.0));
    }

    #[test]
    fn a_peer_without_a_sign_of_life_may_be_gone() {
        let stuck = [socket(5, |_, _| {})];
        assert_eq!(counted(&stuck, &stuck), (1.0, 0.0));
        let moves = |bytes| {
            socket(6, |_, info| {
                info.retransmits = 0;
                info.bytes_acked = Some(bytes);
            })
        };
        let first = [stuck[0].clone(), moves(1)];
        let last = [stuck[0].clone(), moves(2)];
        assert_eq!(counted(&first, &last), (1.0, 1.0));
    }

    #[test]
    fn a_connection_that_moves_or_waits_for_a_window_is_not_stalled() {
        let before = [socket(5, |_, _| {})];
        let moved = [socket(5, |_, info| info.bytes_acked = Some(1448))];
        assert_eq!(counted(&before, &moved), (0.0, 0.0));
        let probing = socket(5, |_, info| info.probes = 3);
        assert_eq!(counted(&[], &[probing]), (0.0, 0.0));
        let lost_once = socket(5, |_, info| info.retransmits = 1);
        assert_eq!(counted(&[], &[lost_once]), (0.0, 0.0));
    }
}
