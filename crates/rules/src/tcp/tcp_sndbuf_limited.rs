//! `tcp-sndbuf-limited`: a connection could send more, and its own send buffer is the limit.
//!
//! `tcpi_sndbuf_limited` of `sock_diag` misses the plainest case: with a buffer of 4.6 KB it stayed at 0 % while
//! the rate fell to 2 MB/s (measured, Linux 6.18). So a send queue that fills the buffer while window and
//! congestion window are open counts as well.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::connections::{self, CARRIES, FULL};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

pub(super) const LIMITED: Threshold = Threshold {
    name: "share of its busy time in which the send buffer was the limit",
    value: 0.10,
    origin: "own guess; the reference RPC case had 32.4 %",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-sndbuf-limited",
    topic: "tcp",
    summary: "a connection's own send buffer is the limit",
    needs: &[
        &keys::TCP_BYTES_SENT,
        &keys::TCP_CWND_FULL,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_SENDQ,
        &keys::TCP_SENDQ_SHARE,
        &keys::TCP_SNDBUF,
        &keys::TCP_SNDBUF_LIMITED,
        &keys::TCP_SND_WND,
    ],
    thresholds: &[LIMITED, FULL, CARRIES],
    knobs: &["tcp.wmem", "rpc.payload"],
    measure: Some(Measure::more(&keys::TCP_SNDBUF_LIMITED)),
    doc: Doc {
        looks_for: "A connection that sends and was held up by its own send buffer in more than 10 % of its busy time; or whose \
            send queue takes 90 % of the buffer while the peer's window is larger than the queue and the congestion window is \
            not used up.",
        hurts: "The application blocks in write, or its I/O thread spins, while the network could take more. A message larger \
            than the buffer takes several rounds.",
        todo: "Raise the largest send buffer (tcp.wmem), and take away a fixed SO_SNDBUF in the program, which switches the \
            kernel's own sizing off. Or make messages smaller (rpc.payload).",
        wrong: "The kernel's counter can stay at 0 although the buffer is the limit, hence the second condition. A buffer far \
            above rate times round trip only moves the queue from the application to the kernel.",
        sources: "The reference RPC case (32.4 % seen; up to 4 MB response times fell, above not); measured: SO_SNDBUF 4608 \
            gave 2 MB/s at 0 %; net/ipv4/tcp_output.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let senders = connections::senders(evidence)?;
    if senders.is_empty() {
        return Ok(vec![connections::nothing_to_judge("sends")]);
    }
    let counted: Vec<_> = senders
        .iter()
        .filter_map(|connection| {
            let share = evidence
                .quantity(&keys::TCP_SNDBUF_LIMITED, connection)
                .ok()?;
            Some((*connection, share))
        })
        .collect();
    let by_counter: Vec<_> = counted
        .iter()
        .filter(|(_, share)| share.value > LIMITED.value)
        .copied()
        .collect();
    let by_queue: Vec<_> = senders
        .iter()
        .filter_map(|connection| Some((*connection, connections::fills(evidence, connection)?)))
        .collect();
    let worst = by_counter
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let number = by_counter.len()
        + by_queue
            .iter()
            .filter(|(filled, _)| {
                !by_counter
                    .iter()
                    .any(|(connection, _)| connection == filled)
            })
            .count();
    let (connection, sentence, sure) = if let Some((connection, share)) = worst {
        let held = say::percent(share.value);
        let sentence = format!(
            "{} was held up by its own send buffer in {held} of its busy time",
            connection.name()
        );
        (*connection, sentence, Grade::High)
    } else if let Some((connection, queue)) = by_queue.first() {
        let sentence = format!(
            "{} fills its send buffer with {}, while the peer's window and the congestion window are open",
            connection.name(),
            of_buffer(queue.value)
        );
        (*connection, sentence, Grade::Medium)
    } else {
        // Without the counter the queues alone cannot clear it: they were looked at four times.
        let known = connections::each_of(evidence, &keys::TCP_SNDBUF_LIMITED, &senders)?;
        let most = known
            .iter()
            .map(|(_, share)| share.value)
            .fold(0.0, f64::max);
        let sentence = format!(
            "no connection was held up by its send buffer for more than {} of its busy time",
            say::percent(most)
        );
        return Ok(vec![Finding::clear(sentence).below(most, LIMITED.value)]);
    };
    let mut finding = Finding::act(
        connection,
        format!("{sentence}{}", connections::and_more(number - 1)),
    )
    .severity(Grade::Medium)
    .confidence(sure);
    for key in [
        &keys::TCP_SNDBUF_LIMITED,
        &keys::TCP_SENDQ_SHARE,
        &keys::TCP_SNDBUF,
        &keys::TCP_SND_WND,
        &keys::TCP_BYTES_SENT,
    ] {
        if let Ok(quantity) = evidence.quantity(key, connection) {
            finding = finding.cite(quantity.reading);
        }
    }
    Ok(vec![
        finding
            .consider("tcp.wmem")
            .consider("rpc.payload")
            .refuted_by("the rate of the connection stays with a send buffer twice as large"),
    ])
}

/// A share of a buffer; one large write can exceed a small buffer several times.
fn of_buffer(share: f64) -> String {
    if share > 1.5 {
        format!("{share:.1} times its size")
    } else {
        format!("{} of its size", say::percent(share))
    }
}
