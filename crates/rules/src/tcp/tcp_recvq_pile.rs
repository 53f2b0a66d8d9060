//! `tcp-recvq-pile`: what arrived is not read.
//!
//! The mirror of tcp-rwnd-limited at the receiving end. As there, a queue in motion is no pile: what counts is
//! how long a byte lies in it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::connections::{self, CARRIES, QUEUE_AGE};
use crate::{Doc, Judgement, Rule, Threshold, say};

const PILE: Threshold = Threshold {
    name: "bytes in the receive queue, median of the looks",
    value: 65_536.0,
    origin: "own guess; measured: 128,512 bytes at a peer that does not read",
};

const SHARE: Threshold = Threshold {
    name: "the same as a share of the receive buffer",
    value: 0.25,
    origin: "own guess: half of the window that a new connection offers, which is half of its buffer; measured at a slow \
             reader: 49 to 117 KB of 131 KB, since a closed window opens in large steps",
};

const THROTTLED: Threshold = Threshold {
    name: "throttled share of a control group's periods that explains a slow reader",
    value: 0.01,
    origin: "rule cfs-throttled",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-recvq-pile",
    topic: "tcp",
    summary: "an application does not read what arrived",
    needs: &[
        &keys::CGROUP_THROTTLED,
        &keys::TCP_BYTES_RECEIVED,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_PROCESS,
        &keys::TCP_RECVQ,
        &keys::TCP_RECVQ_SHARE,
    ],
    thresholds: &[PILE, SHARE, QUEUE_AGE, THROTTLED, CARRIES],
    knobs: &[
        "rpc.iothreads",
        "rpc.connections",
        "app.lock_split",
        "cpu.cfs_quota",
    ],
    doc: Doc {
        looks_for: "More than 64 KiB in the receive queue of a connection in the median of the looks, or more than a quarter of \
            its receive buffer; and at every look a queue in which a byte lies for more than 10 ms.",
        hurts: "Each request waits in the kernel before the program even sees it, and soon the window closes and the peer \
            waits too.",
        todo: "The thread that reads does not keep up: it does other work as well (app.lock_split), it is one for all \
            connections (rpc.iothreads, rpc.connections), or it has no CPU (cpu.cfs_quota, runq-delay).",
        wrong: "A program that pauses reading on purpose (flow control) looks the same; where nothing arrives any more it is \
            only watched. A fast transfer keeps a long queue that is read at once.",
        sources: "The reference RPC case, picture of the client's side; measured on loopback: 128,512 bytes and a closed \
            window.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let receivers = connections::receivers(evidence)?;
    if receivers.is_empty() {
        return Ok(vec![connections::nothing_to_judge("receives")]);
    }
    let queues = connections::each_of(evidence, &keys::TCP_RECVQ, &receivers)?;
    let mut piles = Vec::new();
    let mut most = 0.0_f64;
    for (connection, queue) in queues {
        most = most.max(queue.value);
        let rate = evidence.quantity(&keys::TCP_BYTES_RECEIVED, connection)?;
        let waits = |bytes: f64| connections::age(bytes, rate.value);
        let fills = evidence
            .quantity(&keys::TCP_RECVQ_SHARE, connection)
            .is_ok_and(|share| share.value > SHARE.value);
        // The queue of a slow reader comes and goes, as its window opens in large steps; it is never young.
        if (fills || queue.value > PILE.value)
            && queue.always(|bytes| waits(bytes) > QUEUE_AGE.value)
        {
            let waits = waits(queue.value);
            piles.push((connection, queue, rate, waits));
        }
    }
    let number = piles.len();
    let largest = piles
        .into_iter()
        .max_by(|(_, a, _, _), (_, b, _, _)| a.value.total_cmp(&b.value));
    let Some((connection, queue, rate, waits)) = largest else {
        let sentence = format!(
            "the longest receive queue holds {}, and none holds a byte for long",
            say::bytes(most)
        );
        return Ok(vec![Finding::clear(sentence).below(most, PILE.value)]);
    };
    let owner = evidence.words(&keys::TCP_PROCESS, connection).ok();
    let mut sentence = format!(
        "{} leaves {} unread on {} ({}){}",
        owner.map_or("the application", |owner| owner.value),
        say::bytes(queue.value),
        connection.name(),
        connections::age_in_words(waits),
        connections::and_more(number - 1)
    );
    let moves = rate.value > 0.0;
    if !moves {
        sentence += "; it may be meant so";
    }
    let mut finding = if moves {
        Finding::act(connection, sentence).severity(Grade::Medium)
    } else {
        Finding::watch(connection, sentence).severity(Grade::Low)
    };
    finding = finding
        .confidence(if moves { Grade::High } else { Grade::Low })
        .cite(queue.reading)
        .cite(rate.reading);
    if let Some(owner) = owner {
        finding = finding.cite(owner.reading);
    }
    if let Ok(share) = evidence.quantity(&keys::TCP_RECVQ_SHARE, connection) {
        finding = finding.cite(share.reading);
    }
    finding = finding
        .consider("rpc.iothreads")
        .consider("rpc.connections")
        .consider("app.lock_split");
    let throttled = evidence
        .each(&keys::CGROUP_THROTTLED)
        .ok()
        .and_then(|groups| {
            groups
                .into_iter()
                .find(|(_, share)| share.value > THROTTLED.value)
        });
    if let Some((group, share)) = throttled {
        finding = finding
            .cite(share.reading)
            .consider_device("cpu.cfs_quota", group.name());
    }
    Ok(vec![finding.refuted_by(
        "the queue stays with a second reader: the program stops reading on purpose",
    )])
}
