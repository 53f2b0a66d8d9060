//! Connections as several rules read them: which carry something, who is at the other end, how old a queue is.
//!
//! The kernel's limits are shares of the time in which a connection had data to send, so a connection that
//! sends a byte an hour can be limited all its life without harm. Only connections that carry are judged.

use rungwise_model::check::Finding;
use rungwise_model::evidence::{Evidence, Key, Kind, Missing, Quantity, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::{Threshold, say};

/// Less is not judged, unless a queue stands.
pub(super) const CARRIES: Threshold = Threshold {
    name: "bytes per second of a connection that counts",
    value: 65_536.0,
    origin: "own guess: one large message per second",
};

/// A queue that is younger is in motion.
pub(super) const QUEUE_AGE: Threshold = Threshold {
    name: "time that a byte spends in the queue, seconds",
    value: 0.010,
    origin: "own guess: what a request between services may take as a whole",
};

/// A queue that fills its buffer.
pub(super) const FULL: Threshold = Threshold {
    name: "send queue as a share of the send buffer",
    value: 0.90,
    origin: "own guess: room for less than one more segment of ten",
};

/// Connections that send: enough bytes, or a queue that waits to be sent. None where there is none.
pub(super) fn senders(evidence: &Evidence) -> Result<Vec<&Subject>, Missing> {
    carrying(evidence, &keys::TCP_BYTES_SENT, &keys::TCP_SENDQ)
}

/// Connections that receive: enough bytes, or a queue that waits to be read. None where there is none.
pub(super) fn receivers(evidence: &Evidence) -> Result<Vec<&Subject>, Missing> {
    carrying(evidence, &keys::TCP_BYTES_RECEIVED, &keys::TCP_RECVQ)
}

fn carrying<'e>(
    evidence: &'e Evidence,
    rate: &'static Key,
    queue: &'static Key,
) -> Result<Vec<&'e Subject>, Missing> {
    let rates = match evidence.each(rate) {
        Ok(rates) => rates,
        // No connection at all is an answer; connections without rates are not.
        Err(missing) => {
            let none = evidence
                .host(&keys::TCP_ESTABLISHED)
                .is_ok_and(|connections| connections.value == 0.0);
            return if none { Ok(Vec::new()) } else { Err(missing) };
        }
    };
    let queued = |connection: &Subject| {
        evidence
            .quantity(queue, connection)
            .is_ok_and(|queue| queue.value > 0.0)
    };
    Ok(rates
        .into_iter()
        .filter(|(connection, rate)| rate.value >= CARRIES.value || queued(connection))
        .map(|(connection, _)| connection)
        .collect())
}

/// The numbers of this key, of those connections that have one; missing if connections are there and none has.
pub(super) fn each_of<'e>(
    evidence: &'e Evidence,
    key: &'static Key,
    connections: &[&'e Subject],
) -> Result<Vec<(&'e Subject, Quantity<'e>)>, Missing> {
    let known: Vec<_> = connections
        .iter()
        .filter_map(|connection| Some((*connection, evidence.quantity(key, connection).ok()?)))
        .collect();
    match connections.first() {
        Some(first) if known.is_empty() => Err(evidence.missing(key, first)),
        _ => Ok(known),
    }
}

/// The same connection as the other end sees it; in evidence only where that end is on this host.
pub(super) fn other_end(connection: &Subject) -> Option<Subject> {
    let (local, remote) = connection.name().split_once('>')?;
    Some(Subject::new(
        Kind::Connection,
        format_args!("{remote}>{local}"),
    ))
}

/// The port of the serving side: the lower one, since clients take ephemeral ports.
pub(super) fn server_port(connection: &Subject) -> Option<u16> {
    let port = |end: &str| end.rsplit_once(':')?.1.parse::<u16>().ok();
    let (local, remote) = connection.name().split_once('>')?;
    Some(port(local)?.min(port(remote)?))
}

/// How long a byte of this queue has waited at this rate, in seconds; infinite where nothing moves.
pub(super) fn age(queue: f64, per_second: f64) -> f64 {
    if queue <= 0.0 {
        0.0
    } else if per_second > 0.0 {
        queue / per_second
    } else {
        f64::INFINITY
    }
}

/// The send queue as a share of the buffer, if it fills the buffer and nothing else can be the limit.
pub(super) fn fills<'e>(evidence: &'e Evidence, connection: &Subject) -> Option<Quantity<'e>> {
    let of = |key| evidence.quantity(key, connection).ok();
    let share = of(&keys::TCP_SENDQ_SHARE)?;
    let (queue, window) = (of(&keys::TCP_SENDQ)?, of(&keys::TCP_SND_WND)?);
    let free = window.value > queue.value && of(&keys::TCP_CWND_FULL)?.value == 0.0;
    (share.value >= FULL.value && free).then_some(share)
}

/// An age in words.
pub(super) fn age_in_words(seconds: f64) -> String {
    if seconds.is_finite() {
        number_of(Unit::Seconds, seconds)
    } else {
        "nothing moves".to_owned()
    }
}

/// `, and 3 more connections`, or nothing.
pub(super) fn and_more(others: usize) -> String {
    match others {
        0 => String::new(),
        n => format!(", and {} like it", say::count(n as f64, "more connection")),
    }
}

/// No connection carries anything.
pub(super) fn nothing_to_judge(what: &str) -> Finding {
    Finding::clear(format!("no TCP connection {what} enough to judge"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_another_end_and_a_serving_side() {
        let connection = Subject::new(Kind::Connection, "10.0.0.1:20880>10.0.0.2:40112");
        let other = other_end(&connection).unwrap();
        assert_eq!(other.name(), "10.0.0.2:40112>10.0.0.1:20880");
        assert_eq!(other_end(&other), Some(connection.clone()));
        assert_eq!(server_port(&connection), Some(20880));
        let v6 = Subject::new(Kind::Connection, "[::1]:80>[::1]:41000");
        assert_eq!(server_port(&v6), Some(80));
        assert_eq!(server_port(&Subject::new(Kind::Connection, "odd")), None);
    }

    #[test]
    fn a_queue_is_as_old_as_its_bytes_take_to_leave() {
        assert!((age(1000.0, 100.0) - 10.0).abs() < 1e-9);
        assert!(age(1.0, 0.0).is_infinite());
        assert!(age(0.0, 0.0).abs() < 1e-9);
    }
}
