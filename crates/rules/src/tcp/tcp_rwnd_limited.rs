//! `tcp-rwnd-limited`: a connection has data to send, and its peer's window is closed.
//!
//! `tcpi_rwnd_limited` over `tcpi_busy_time` of `sock_diag` (`net/ipv4/tcp_output.c`, `tcp_chrono_set`). The
//! remedy depends on why it is closed: an application that does not read, or a buffer too small for the path.
//! The peer's receive queue tells the two apart, where the peer is on this host.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use super::connections::{self, CARRIES, QUEUE_AGE};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

pub(super) const LIMITED: Threshold = Threshold {
    name: "share of its busy time in which a connection waited for its peer's window",
    value: 0.10,
    origin: "own guess; the reference RPC case had 29.9 %",
};

const HEAVY: Threshold = Threshold {
    name: "the same, much",
    value: 0.50,
    origin: "own guess: it is stalled more often than not",
};

pub(super) const UNREAD: Threshold = Threshold {
    name: "share of the peer's receive buffer that lies unread from which on its application is slow",
    value: 0.50,
    origin: "own guess; measured with a peer that does not read: all of it",
};

pub(super) const READ: Threshold = Threshold {
    name: "the same, below which the peer reads without delay and its buffer is too small",
    value: 0.10,
    origin: "own guess: next to nothing",
};

pub(super) const WAITED: Threshold = Threshold {
    name: "share of the window that it waited so, below which it is only watched",
    value: 0.01,
    origin: "measured by `cargo xtask faults`: 0.4 % of the window, all of its busy time, left p99 where it was (--random 34 --seed 606); 2 to 3 % took \
        it from 1.5 to 7.8 ms (--random 26 --seed 707)",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-rwnd-limited",
    topic: "tcp",
    summary: "a connection waits for its peer's window",
    needs: &[
        &keys::TCP_BUSY,
        &keys::TCP_BYTES_RECEIVED,
        &keys::TCP_BYTES_SENT,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_RECVQ,
        &keys::TCP_RECVQ_SHARE,
        &keys::TCP_RWND_LIMITED,
        &keys::TCP_SENDQ,
        &keys::TCP_SND_WND,
    ],
    thresholds: &[LIMITED, HEAVY, UNREAD, READ, QUEUE_AGE, CARRIES, WAITED],
    knobs: &["rpc.connections", "rpc.iothreads", "tcp.rmem"],
    measure: Some(Measure::more(&keys::TCP_RWND_LIMITED)),
    doc: Doc {
        looks_for: "A connection that sends, and whose peer's window was closed in more than 10 % of the time in which it had \
            data to send; one that waited for less than 1 % of the window is watched.",
        hurts: "The sender is stalled although CPU and network are idle. With one connection for all requests, all of \
            them stall.",
        todo: "Look at the receive queue at the other end. Full: the application does not read fast enough, and a larger buffer \
            only delays; give it more connections and I/O threads. Empty: the window is too small for the path; raise \
            tcp.rmem there, up to twice rate times round trip.",
        wrong: "A reader that pauses on purpose closes its window too; a connection on which nothing moves is only watched. A \
            large buffer at a peer that does not read hides the matter for a while.",
        sources: "The reference RPC case (29.9 % seen, one I/O thread per connection); measured: 100 % with a peer that does \
            not read, 86 % with a receive buffer of 4 KiB; net/ipv4/tcp_output.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let senders = connections::senders(evidence)?;
    if senders.is_empty() {
        return Ok(vec![connections::nothing_to_judge("sends")]);
    }
    let shares = connections::each_of(evidence, &keys::TCP_RWND_LIMITED, &senders)?;
    let moves = |connection: &Subject| {
        let sent = evidence.quantity(&keys::TCP_BYTES_SENT, connection);
        sent.is_ok_and(|rate| rate.value > 0.0)
    };
    // A peer that pauses has the largest share, and hides one that is slow: what moves comes first.
    let limited = shares
        .iter()
        .filter(|(_, share)| share.value > LIMITED.value);
    let number = limited.clone().count();
    let worst = limited.max_by(|(one, a), (other, b)| {
        let motion = moves(one).cmp(&moves(other));
        motion.then(a.value.total_cmp(&b.value))
    });
    let Some((connection, share)) = worst else {
        let largest = shares
            .iter()
            .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let Some((_, share)) = largest else {
            return Ok(vec![connections::nothing_to_judge("sends")]);
        };
        let waits = say::percent(share.value);
        let sentence = format!(
            "of {} of which it is known, none waits for its peer's window for more than {waits} of its time",
            say::count(shares.len() as f64, "connection")
        );
        let clear = Finding::clear(sentence)
            .below(share.value, LIMITED.value)
            .cite(share.reading);
        return Ok(vec![clear]);
    };
    let mut sentence = format!(
        "{} waited for its peer's window in {} of the time in which it had data to send{}",
        connection.name(),
        say::percent(share.value),
        connections::and_more(number - 1)
    );
    let moves = moves(connection);
    let why = closed(evidence, connection);
    match &why {
        Closed::Unread(Some(share)) => {
            let _ = write!(
                sentence,
                ": the peer leaves {} of its receive buffer unread",
                say::percent(*share)
            );
        }
        Closed::Unread(None) => sentence += ": the window is closed, so the peer does not read",
        Closed::Small => sentence += ": the peer reads without delay, so its buffer is too small",
        Closed::Unknown => sentence += ": check the receive queue at the other end",
    }
    if !moves {
        sentence += "; nothing moves, which may be intended";
    }
    let busy = evidence.quantity(&keys::TCP_BUSY, connection).ok();
    let shortly = busy.is_some_and(|busy| busy.value * share.value < WAITED.value);
    if shortly {
        sentence += "; it seldom had any";
    }
    let finding = if moves && !shortly {
        Finding::act(connection, sentence)
    } else {
        Finding::watch(connection, sentence)
    };
    let mut finding = finding
        .severity(if share.value > HEAVY.value {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(match why {
            Closed::Unknown => Grade::Medium,
            _ if !moves => Grade::Medium,
            _ => Grade::High,
        })
        .cite(share.reading);
    for key in [&keys::TCP_BYTES_SENT, &keys::TCP_SENDQ, &keys::TCP_SND_WND] {
        if let Ok(quantity) = evidence.quantity(key, connection) {
            finding = finding.cite(quantity.reading);
        }
    }
    finding = match why {
        Closed::Unread(_) => finding
            .consider("rpc.connections")
            .consider("rpc.iothreads"),
        Closed::Small => finding.consider("tcp.rmem").consider("rpc.connections"),
        Closed::Unknown => finding
            .consider("rpc.connections")
            .consider("rpc.iothreads")
            .consider("tcp.rmem"),
    };
    Ok(vec![finding.refuted_by(
        "the rate stays when the peer reads into nowhere (discard), or with more connections",
    )])
}

/// Why a window is closed.
enum Closed {
    /// The application does not read; the share that lies unread, where the peer is on this host.
    Unread(Option<f64>),
    /// It reads at once: the buffer is too small.
    Small,
    /// The other end would have to tell.
    Unknown,
}

fn closed(evidence: &Evidence, connection: &Subject) -> Closed {
    let unread = connections::other_end(connection).and_then(|peer| {
        evidence
            .quantity(&keys::TCP_RECVQ_SHARE, &peer)
            .ok()
            .map(|share| share.value)
    });
    match unread {
        Some(share) if share < READ.value || reads_at_once(evidence, connection) => Closed::Small,
        Some(share) if share > UNREAD.value => Closed::Unread(Some(share)),
        Some(_) => Closed::Unknown,
        // A window of nothing at the moment of the sample is a full buffer; -1 is a kernel that does not say.
        None => match evidence.quantity(&keys::TCP_SND_WND, connection) {
            Ok(window) if window.value == 0.0 => Closed::Unread(None),
            _ => Closed::Unknown,
        },
    }
}

/// What lies in the queue of the peer is read in a moment, however much of a small buffer it takes.
fn reads_at_once(evidence: &Evidence, connection: &Subject) -> bool {
    let Some(peer) = connections::other_end(connection) else {
        return false;
    };
    let of = |key| Some(evidence.quantity(key, &peer).ok()?.value);
    let age = || {
        let queue = of(&keys::TCP_RECVQ)?;
        Some(connections::age(queue, of(&keys::TCP_BYTES_RECEIVED)?))
    };
    age().is_some_and(|age| age <= QUEUE_AGE.value)
}
