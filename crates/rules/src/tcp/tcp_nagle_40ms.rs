//! `tcp-nagle-40ms`: requests that wait for a delayed acknowledgement.
//!
//! Nagle's algorithm keeps the second half of a request until the first is acknowledged, and the peer delays
//! the acknowledgement by 40 ms (200 ms on other systems). It shows as a heap at those times in the latency
//! histogram and nowhere on the host.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Absence, Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "requests answered after 38 to 44 or 200 to 210 ms",
    value: 0.02,
    origin: "own guess: visible in p99, and more than a scheduler's stray delays",
};

const CPU: Threshold = Threshold {
    name: "share of time in which some task waits for a CPU, which delays answers as well",
    value: 0.20,
    origin: "the line of noise-gate",
};

const DISK: Threshold = Threshold {
    name: "the same for a disk",
    value: 0.10,
    origin: "the line of disk-queue",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-nagle-40ms",
    topic: "tcp",
    summary: "requests wait for a delayed acknowledgement",
    needs: &[
        &keys::LATENCY_DELAYED_ACK,
        &keys::PSI_CPU_SOME,
        &keys::PSI_IO_SOME,
    ],
    thresholds: &[SHARE, CPU, DISK],
    knobs: &["tcp.nodelay"],
    doc: Doc {
        looks_for: "More than 2 % of the requests answered after 38 to 44 ms or 200 to 210 ms, in a load report.",
        hurts: "A request that goes out in two writes waits 40 ms in the sender's kernel, while nothing is busy anywhere.",
        todo: "Write a request at once, or set TCP_NODELAY in the program (tcp.nodelay).",
        wrong: "A scheduler's period, a disk or a timer in the program gives 40 ms too: where tasks of the host wait for a CPU or \
            a disk, it is a watch of low confidence. A capture of one slow request decides: the second segment leaves right after the acknowledgement of the first.",
        sources: "RFC 896, RFC 1122 section 4.2.3.2; tcp(7); TCP_DELACK_MIN in include/net/tcp.h (40 ms).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    let Ok(heap) = evidence.host(&keys::LATENCY_DELAYED_ACK) else {
        let why = match evidence.reading(&keys::LATENCY_DELAYED_ACK, &host) {
            Some(_) => evidence.missing(&keys::LATENCY_DELAYED_ACK, &host).why,
            None => Absence::because(
                "it shows in a latency histogram only, and the report of `rungwise load` holds quantiles alone",
            )
            .remedy("capture the packets of a slow request: its second segment waits for an acknowledgement"),
        };
        return Err(Missing {
            key: keys::LATENCY_DELAYED_ACK.id,
            subject: host,
            why,
        });
    };
    let share = say::percent(heap.value);
    if heap.value <= SHARE.value {
        let sentence = format!("{share} of the requests took as long as a delayed acknowledgement");
        let clear = Finding::clear(sentence)
            .below(heap.value, SHARE.value)
            .cite(heap.reading);
        return Ok(vec![clear]);
    }
    let sentence =
        format!("{share} of the requests took 40 or 200 ms, as long as a delayed acknowledgement");
    let waits = [
        (&keys::PSI_CPU_SOME, CPU, "a CPU"),
        (&keys::PSI_IO_SOME, DISK, "a disk"),
    ]
    .into_iter()
    .find_map(|(key, line, what)| {
        let waits = evidence.host(key).ok()?;
        (waits.value > line.value).then_some((waits, what))
    });
    let finding = match waits {
        None => Finding::act(&host, sentence),
        Some((waits, what)) => {
            let share = say::percent(waits.value);
            let sentence = format!(
                "{sentence}; some task waited for {what} in {share} of the time, which delays as long"
            );
            Finding::watch(&host, sentence)
                .confidence(Grade::Low)
                .cite(waits.reading)
        }
    };
    Ok(vec![
        finding
            .severity(if heap.value > 0.2 {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(heap.reading)
            .consider("tcp.nodelay")
            .refuted_by(
                "a capture of a slow request shows no segment that waits for an acknowledgement",
            ),
    ])
}
