//! `tcp-recvq-pile`: what arrived is not read.
//!
//! The mirror of tcp-rwnd-limited at the receiving end. As there, a queue in motion is no pile: what counts is
//! how long a byte lies in it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::connections::{self, CARRIES, QUEUE_AGE};
use crate::cpu::group;
use crate::{Doc, Judgement, Measure, Rule, Threshold, process, say};

pub(super) const PILE: Threshold = Threshold {
    name: "bytes in the receive queue",
    value: 65_536.0,
    origin: "own guess; measured: 128,512 bytes at a peer that does not read",
};

pub(super) const SHARE: Threshold = Threshold {
    name: "its memory as a share of the receive buffer",
    value: 0.50,
    origin: "own guess; measured on loopback at a reader of 4 KiB every 5 ms: 72 to 99 % of 128 KiB, with messages of 100 \
             bytes and of 64 KiB alike, while the bytes in it swing between 3 and 91 KB",
};

const THROTTLED: Threshold = Threshold {
    name: "throttled share of the periods of the reader's control group that explains why it is slow",
    value: 0.01,
    origin: "rule cfs-throttled",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-recvq-pile",
    topic: "tcp",
    summary: "an application does not read what arrived",
    needs: &[
        &keys::CGROUP_OF_PROCESS,
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
    measure: Some(Measure::more(&keys::TCP_RECVQ)),
    doc: Doc {
        looks_for: "More than 64 KiB in the receive queue of a connection in the median of the samples, or memory of more than \
            half of its receive buffer; and at every look a queue in which a byte lies for more than 10 ms.",
        hurts: "Each request waits in the kernel before the program even sees it, and soon the window closes and the peer \
            waits too.",
        todo: "The thread that reads does not keep up: it does other work as well (app.lock_split), it is one for all \
            connections (rpc.iothreads, rpc.connections), or it has no CPU (cpu.cfs_quota, runq-delay).",
        wrong: "A program that pauses reading on purpose (flow control) looks the same; where nothing arrives any more it is \
            only watched. A fast transfer keeps a long queue that is read continuously.",
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
    // A reader that pauses has the longest queue, and hides one that is slow: what moves comes first.
    let largest = piles
        .into_iter()
        .max_by(|(_, a, one, _), (_, b, other, _)| {
            let motion = (one.value > 0.0).cmp(&(other.value > 0.0));
            motion.then(a.value.total_cmp(&b.value))
        });
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
        sentence += "; it may be intended";
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
    // Only a quota that holds the owner back explains why it does not read.
    let own = owner
        .and_then(|owner| process::owner_pid(owner.value))
        .and_then(|pid| group::of_process(evidence, pid));
    let holds = |group: &str| own.is_some_and(|own| group::holds(group, own));
    if let Some((group, share)) = group::throttled(evidence, THROTTLED.value, holds) {
        finding = group::consider_quota(finding.cite(share.reading), group);
    }
    Ok(vec![finding.refuted_by(
        "the queue stays with a second reader: the program stops reading on purpose",
    )])
}
