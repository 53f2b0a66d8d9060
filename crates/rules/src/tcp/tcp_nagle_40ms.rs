//! `tcp-nagle-40ms`: requests that wait for a delayed acknowledgement.
//!
//! Nagle's algorithm keeps the second half of a request until the first is acknowledged, and the peer delays
//! the acknowledgement by 40 ms (200 ms on other systems). It shows as a heap at those times in the distribution of
//! latency and nowhere on the host; the probe finds the heap and takes off what lies beside it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "requests in a cluster at 38 to 52 or 200 to 210 ms",
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

const HELD: Threshold = Threshold {
    name: "connections whose small segment waits in nearly every sample",
    value: 1.0,
    origin: "any: by chance a sample meets that state for a round trip, not three samples of four",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-nagle-40ms",
    topic: "tcp",
    summary: "requests wait for a delayed acknowledgement",
    needs: &[
        &keys::LATENCY_DELAYED_ACK,
        &keys::PSI_CPU_SOME,
        &keys::PSI_IO_SOME,
        &keys::TCP_HELD_SMALL,
        &keys::TCP_HELD_SMALL_WHO,
    ],
    thresholds: &[SHARE, CPU, DISK, HELD],
    knobs: &["tcp.nodelay"],
    measure: Some(Measure::more(&keys::LATENCY_DELAYED_ACK)),
    doc: Doc {
        looks_for: "Connections that in nearly every sample have less than a segment to send, wait for an acknowledgement and have both \
            windows open. Or more than 2 % of the requests in a heap at 38 to 52 ms or 200 to 210 ms, in the table of percentiles that \
            HdrHistogram prints (wrk2 --latency, given to check --load). A heap is at least twice as dense as the denser of \
            its sides, each half as wide as the heap's place; what that side would put there is taken off, so a broad \
            distribution that passes through is none. Between two rows of the table the requests are taken to be \
            spread evenly; where they are too far apart to tell, it is undecided. The place reaches to 52 ms because the kernel's \
            timer fires a tick late: 44 ms at 250 ticks a second, 50 ms at 100.",
        hurts: "A request that goes out in two writes waits 40 ms in the sender's kernel, while nothing is busy anywhere.",
        todo: "Write each request with one call, or set TCP_NODELAY in the program (tcp.nodelay).",
        wrong: "A scheduler's period, a disk, a timer in the program or work that simply takes as long gives 40 ms too: where tasks of \
            the host wait for a CPU or a disk, it is a watch of low confidence. A way of 10 ms or more moves the heap out of its place. \
            ss -ti shows a stalled connection with lastsnd and lastrcv near 40 while it waits. A capture of one slow request decides: the second segment leaves right after the acknowledgement of the first.",
        sources: "RFC 896, RFC 1122 section 4.2.3.2; tcp(7); TCP_DELACK_MIN in include/net/tcp.h (40 ms).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    if let Some(finding) = held(evidence) {
        return Ok(vec![finding]);
    }
    let heap = evidence.host(&keys::LATENCY_DELAYED_ACK)?;
    let share = say::percent(heap.value);
    if heap.value <= SHARE.value {
        let sentence =
            format!("{share} of the requests cluster at the length of a delayed acknowledgement");
        let clear = Finding::clear(sentence)
            .below(heap.value, SHARE.value)
            .cite(heap.reading);
        return Ok(vec![clear]);
    }
    let sentence = format!(
        "{share} of the requests cluster at 40 or 200 ms, the length of a delayed acknowledgement"
    );
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

/// Sockets that show it: no table of latencies is needed then.
fn held(evidence: &Evidence) -> Option<Finding> {
    let held = evidence.host(&keys::TCP_HELD_SMALL).ok()?;
    if held.value < HELD.value {
        return None;
    }
    let host = Subject::host();
    let who = evidence.words(&keys::TCP_HELD_SMALL_WHO, &host).ok()?;
    let verb = if held.value < 1.5 { "holds" } else { "hold" };
    let sentence = format!(
        "{} {verb} back a small segment until the peer's delayed acknowledgement (40 ms), such as {}",
        say::count(held.value, "connection"),
        who.value
    );
    let finding = Finding::act(&host, sentence)
        .severity(Grade::Medium)
        .confidence(Grade::High)
        .cite(held.reading)
        .cite(who.reading)
        .consider("tcp.nodelay");
    Some(finding.refuted_by("the program has set TCP_NODELAY"))
}
