//! Connections that wait for a timer because something was lost: data is unacknowledged long after a round trip.
//!
//! A lost segment that was alone in flight is retransmitted after 200 ms, by a probe (`tcp_schedule_loss_probe`) that no counter of
//! timeouts counts. A delayed acknowledgement of the peer takes 40 ms if the round trip is short
//! (`tcp_send_delayed_ack`). Source: `net/ipv4/tcp_output.c`, Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, TcpSocket};
use rungwise_model::keys;

use super::{SOURCE, state};
use crate::capture::Reply;
use crate::{Window, enter};

/// Milliseconds after which an acknowledgement is overdue.
const OVERDUE_MS: u32 = 60;

/// Maximum shortest round trip for this, microseconds: the path.
const NEAR_US: u32 = 10_000;

/// Maximum mean round trip for this, microseconds. Delayed acknowledgements of 40 ms make it long on the shortest path.
const MEAN_US: u32 = 40_000;

/// Fewest samples that give a mean.
const FEWEST: usize = 12;

pub(super) fn add(window: &Window<'_>, evidence: &mut Evidence) {
    let samples: Vec<usize> = window
        .often()
        .into_iter()
        .filter_map(|moment| match moment.answers.get("tcp") {
            Some(Reply::Answer(Answer::Tcp(sockets))) => {
                Some(sockets.iter().filter(|socket| is_overdue(socket)).count())
            }
            _ => None,
        })
        .collect();
    let key = &keys::TCP_ACK_OVERDUE;
    let line = format!("in each sample: {samples:?}");
    let origin = Origin::new(SOURCE, line);
    if samples.len() < FEWEST {
        let why = Absence::because(
            "too few samples of the sockets: more than 600 are in use, or the window has one sample",
        );
        return enter::absent(evidence, key, Subject::host(), why, origin);
    }
    let mean = samples.iter().sum::<usize>() as f64 / samples.len() as f64;
    evidence.number(key, Subject::host(), mean, origin);
}

fn is_overdue(socket: &TcpSocket) -> bool {
    let open = [state::ESTABLISHED, state::FIN_WAIT1, state::CLOSE_WAIT].contains(&socket.state);
    let waits = socket.info.as_ref().is_some_and(|info| {
        info.unacked > 0
            && info.probes == 0
            && info.rtt <= MEAN_US
            && info.min_rtt.unwrap_or(info.rtt).min(info.rtt) <= NEAR_US
            && info.last_data_sent_ms >= OVERDUE_MS
            && info.last_ack_recv_ms >= OVERDUE_MS
    });
    open && waits
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::TcpInfo;

    use super::*;

    fn overdue(change: fn(&mut TcpInfo)) -> bool {
        let mut info = TcpInfo {
            unacked: 1,
            rtt: 13_000,
            min_rtt: Some(17),
            last_data_sent_ms: 120,
            last_ack_recv_ms: 130,
            ..TcpInfo::default()
        };
        change(&mut info);
        is_overdue(&TcpSocket {
            state: state::ESTABLISHED,
            info: Some(info),
            ..TcpSocket::default()
        })
    }

    #[test]
    fn what_is_not_acknowledged_long_after_a_round_trip_is_overdue() {
        assert!(overdue(|_| {}));
        for ordinary in [
            (|info| info.unacked = 0) as fn(&mut TcpInfo),
            |info| info.last_data_sent_ms = 40,
            |info| info.last_ack_recv_ms = 1,
            |info| info.rtt = 80_000,
            |info| info.min_rtt = Some(12_000),
            |info| info.min_rtt = None,
            |info| info.probes = 1,
        ] {
            assert!(!overdue(ordinary));
        }
    }
}
