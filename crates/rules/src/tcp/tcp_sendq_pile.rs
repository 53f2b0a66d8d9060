//! `tcp-sendq-pile`: what the application writes leaves more slowly than it is written.
//!
//! A long send queue alone is what every bulk transfer has. What harms an RPC is the time that a byte spends in
//! it: queue over rate. So the age is judged, and as no latency goal is known it is only watched.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

use super::connections::{self, CARRIES, FULL, QUEUE_AGE};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const PILE: Threshold = Threshold {
    name: "send queue as a share of the send buffer, in each sample",
    value: 0.50,
    origin: "own guess; the reference RPC case had 27,474 and 65,160 bytes of 64 KiB",
};

const LIMITED: Threshold = Threshold {
    name: "share of its busy time from which on window or buffer explain the pile",
    value: 0.10,
    origin: "rules tcp-rwnd-limited and tcp-sndbuf-limited",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-sendq-pile",
    topic: "tcp",
    summary: "data waits in the send queue of a connection",
    needs: &[
        &keys::TCP_BYTES_SENT,
        &keys::TCP_CWND_FULL,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_RWND_LIMITED,
        &keys::TCP_SENDQ,
        &keys::TCP_SENDQ_SHARE,
        &keys::TCP_SND_WND,
        &keys::TCP_SNDBUF_LIMITED,
    ],
    thresholds: &[PILE, LIMITED, FULL, QUEUE_AGE, CARRIES],
    knobs: &["rpc.connections", "tcp.wmem", "tcp.congestion"],
    measure: Some(Measure::more(&keys::TCP_SENDQ_SHARE)),
    doc: Doc {
        looks_for: "A send queue above half of the send buffer in every sample, in which a byte waits for more than 10 ms.",
        hurts: "A reply waits behind all that was written before it. On a connection that many requests share, they wait for \
            each other.",
        todo: "The finding names what holds the data back. The peer's window: see tcp-rwnd-limited. The congestion window: the \
            path, or the algorithm (tcp.congestion). One connection for many requests: more connections.",
        wrong: "A bulk transfer fills its queue always, and rightly; without a latency goal it looks like an RPC, so \
            this never asks to act. A queue that leaves within 10 ms is in motion.",
        sources: "The reference RPC case (send queues of 27,474 and 65,160 bytes before the buffer was raised).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let senders = connections::senders(evidence)?;
    if senders.is_empty() {
        return Ok(vec![connections::nothing_to_judge("sends")]);
    }
    let shares = connections::each_of(evidence, &keys::TCP_SENDQ_SHARE, &senders)?;
    let mut piles = Vec::new();
    let mut most = 0.0_f64;
    for (connection, share) in shares {
        most = most.max(share.value);
        let waits = age(evidence, connection)?;
        if share.always(|share| share > PILE.value) && waits > QUEUE_AGE.value {
            piles.push((connection, share, waits));
        }
    }
    let number = piles.len();
    let oldest = piles
        .into_iter()
        .max_by(|(_, _, a), (_, _, b)| a.total_cmp(b));
    let Some((connection, share, waits)) = oldest else {
        let sentence = format!(
            "the fullest send queue is at {} of its buffer, and none holds a byte for long",
            say::percent(most)
        );
        return Ok(vec![Finding::clear(sentence).below(most, PILE.value)]);
    };
    let (reason, blame, knobs): (_, Option<Quantity<'_>>, &[&str]) = holds(evidence, connection);
    let sentence = format!(
        "{} keeps its send queue at {} of its buffer ({}){}; {reason}",
        connection.name(),
        say::percent(share.value),
        connections::age_in_words(waits),
        connections::and_more(number - 1),
    );
    let mut finding = Finding::watch(connection, sentence)
        .severity(Grade::Medium)
        .confidence(Grade::Medium)
        .cite(share.reading);
    for quantity in [
        evidence.quantity(&keys::TCP_SENDQ, connection).ok(),
        evidence.quantity(&keys::TCP_BYTES_SENT, connection).ok(),
        blame,
    ]
    .into_iter()
    .flatten()
    {
        finding = finding.cite(quantity.reading);
    }
    Ok(vec![
        knobs
            .iter()
            .fold(finding, |finding, knob| finding.consider(knob))
            .refuted_by("it is a bulk transfer, where single bytes are not waited for"),
    ])
}

fn age(
    evidence: &Evidence,
    connection: &Subject,
) -> Result<f64, rungwise_model::evidence::Missing> {
    let queue = evidence.quantity(&keys::TCP_SENDQ, connection)?;
    let rate = evidence.quantity(&keys::TCP_BYTES_SENT, connection)?;
    Ok(connections::age(queue.value, rate.value))
}

/// What holds the data back, the reading that says so, and what may help.
fn holds<'e>(
    evidence: &'e Evidence,
    connection: &Subject,
) -> (&'static str, Option<Quantity<'e>>, &'static [&'static str]) {
    let of = |key| evidence.quantity(key, connection).ok();
    let above = |share: &Quantity<'_>| share.value > LIMITED.value;
    if let Some(share) = of(&keys::TCP_RWND_LIMITED).filter(above) {
        return (
            "its peer's window is closed (see tcp-rwnd-limited)",
            Some(share),
            &["rpc.connections"],
        );
    }
    let counted = of(&keys::TCP_SNDBUF_LIMITED).filter(above);
    if let Some(share) = counted.or_else(|| connections::fills(evidence, connection)) {
        return (
            "its send buffer is the limit (see tcp-sndbuf-limited)",
            Some(share),
            &["tcp.wmem", "rpc.connections"],
        );
    }
    match of(&keys::TCP_CWND_FULL) {
        Some(full) if full.value > 0.0 => (
            "the congestion window is used up, so the path or its losses are the limit",
            Some(full),
            &["tcp.congestion", "rpc.connections"],
        ),
        full => (
            "neither window nor buffer nor congestion explains it",
            full,
            &["rpc.connections"],
        ),
    }
}
