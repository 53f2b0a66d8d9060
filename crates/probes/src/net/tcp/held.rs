//! Connections whose last small segment waits for an acknowledgement: Nagle's algorithm against a delayed acknowledgement.
//!
//! Less than one segment is written and not sent, something sent is not acknowledged, and both windows have room:
//! nothing but `tcp_nagle_check` holds it back. Where the peer acknowledges at once, that is over in a round trip; if
//! nearly every sample shows it, the connection spends its time there. Source: `tcp_nagle_test` in
//! `net/ipv4/tcp_output.c` (Linux 6.18).

use std::collections::HashMap;

use rungwise_model::evidence::{Evidence, Origin, Subject};
use rungwise_model::kernel::TcpSocket;
use rungwise_model::keys;

use super::{SOURCE, Sample, state};

/// Samples that must show it, of at least one more.
const FEWEST_SAMPLES: usize = 3;

pub(super) fn add(samples: &[Sample<'_>], evidence: &mut Evidence) {
    let mut seen: HashMap<(u64, u16, u16), (usize, &TcpSocket)> = HashMap::new();
    for (_, sockets) in samples {
        for socket in sockets.iter().filter(|socket| is_held(socket)) {
            let place = (socket.inode, socket.local.port, socket.remote.port);
            seen.entry(place).or_insert((0, socket)).0 += 1;
        }
    }
    let often = |times: usize| times >= FEWEST_SAMPLES && times + 1 >= samples.len();
    let mut held: Vec<&TcpSocket> = seen
        .into_values()
        .filter(|(times, _)| often(*times))
        .map(|(_, socket)| socket)
        .collect();
    held.sort_by_key(|socket| (socket.local, socket.remote));
    let who = held.first().map_or_else(String::new, |socket| {
        format!("{}>{}", socket.local, socket.remote)
    });
    let line = format!(
        "{} connections with a partial segment held back",
        held.len()
    );
    let origin = Origin::new(SOURCE, line);
    let (host, count) = (Subject::host, held.len() as f64);
    evidence.number(&keys::TCP_HELD_SMALL, host(), count, origin.clone());
    evidence.text(&keys::TCP_HELD_SMALL_WHO, host(), who, origin);
}

fn is_held(socket: &TcpSocket) -> bool {
    let Some(info) = socket.info.as_ref() else {
        return false;
    };
    let open = [state::ESTABLISHED, state::CLOSE_WAIT].contains(&socket.state);
    let small = info
        .notsent_bytes
        .is_some_and(|bytes| bytes > 0 && bytes < info.snd_mss);
    let room = (u64::from(info.unacked) + 1) * u64::from(info.snd_mss);
    let window = info.snd_wnd.is_none_or(|window| u64::from(window) >= room);
    open && small
        && window
        && info.unacked > 0
        && info.unacked < info.snd_cwnd
        && info.retransmits == 0
        && info.probes == 0
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::{Endpoint, TcpInfo};

    use super::*;

    fn socket(change: impl FnOnce(&mut TcpInfo)) -> TcpSocket {
        let mut info = TcpInfo {
            unacked: 1,
            snd_mss: 1448,
            snd_cwnd: 10,
            snd_wnd: Some(65_536),
            notsent_bytes: Some(100),
            ..TcpInfo::default()
        };
        change(&mut info);
        TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), 4000),
            remote: Endpoint::new([10, 0, 0, 2].into(), 80),
            state: state::ESTABLISHED,
            inode: 7,
            info: Some(info),
            ..TcpSocket::default()
        }
    }

    fn count(samples: [TcpSocket; 4]) -> f64 {
        let samples: Vec<[TcpSocket; 1]> = samples.into_iter().map(|socket| [socket]).collect();
        let samples: Vec<Sample<'_>> = samples.iter().map(|sample| (0.0, &sample[..])).collect();
        let mut evidence = Evidence::over(3.0);
        add(&samples, &mut evidence);
        evidence.host(&keys::TCP_HELD_SMALL).unwrap().value
    }

    #[test]
    fn a_small_segment_that_waits_in_nearly_every_sample_is_held_back() {
        let held = || socket(|_| {});
        let idle = || socket(|info| (info.unacked, info.notsent_bytes) = (0, Some(0)));
        let counts = [
            count([held(), held(), idle(), held()]),
            count([held(), idle(), idle(), held()]),
        ];
        assert_eq!(counts.map(|count| count as u64), [1, 0]);
    }

    #[test]
    fn what_waits_for_a_window_is_not_held_back_by_nagle() {
        let closed = || socket(|info| info.snd_wnd = Some(1448));
        let full = || socket(|info| info.unacked = 10);
        let much = || socket(|info| info.notsent_bytes = Some(90_000));
        for socket in [closed(), full(), much()] {
            assert!(!is_held(&socket), "{socket:?}");
        }
    }
}
