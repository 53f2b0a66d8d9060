//! `tcp-stalled`: connections send the same again and again, and the peer does not answer.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const STALLED: Threshold = Threshold {
    name: "stalled connections",
    value: 5.0,
    origin: "own guess: on the Internet a peer vanishes now and then",
};

const SHARE: Threshold = Threshold {
    name: "stalled connections as a share of all",
    value: 0.05,
    origin: "own guess: one in twenty is not an accident",
};

/// `tcp-stalled`
pub(crate) static RULE: Rule = Rule {
    id: "tcp-stalled",
    topic: "tcp",
    summary: "connections make no progress: their peers do not acknowledge anything",
    needs: &[
        &keys::TCP_ESTABLISHED,
        &keys::TCP_STALLED,
        &keys::TCP_STALLED_FULL,
        &keys::TCP_STALLED_WHO,
    ],
    thresholds: &[STALLED, SHARE],
    knobs: &[],
    measure: Some(Measure::more(&keys::TCP_STALLED)),
    doc: Doc {
        looks_for: "Five connections or more, and 5 % of all, that stand after three retransmission timeouts in a row or more without \
            any acknowledgement.",
        hurts: "Whoever waits for them waits up to 15 minutes (tcp_retries2); their threads, buffers and descriptors are taken.",
        todo: "See whether the peers are there (`ping`, `ip route get PEER`), and whether a firewall or load balancer on the way \
            forgot the connections. Against the waiting: TCP_USER_TIMEOUT or a time limit in the program.",
        wrong: "Peers of a mobile network vanish by the dozen. Connections that wait for a closed window are not counted.",
        sources: "tcp_retransmit_timer in net/ipv4/tcp_timer.c (Linux 6.18); tcp(7).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let all = evidence.host(&keys::TCP_STALLED)?;
    let full = evidence.host(&keys::TCP_STALLED_FULL)?;
    let established = evidence.host(&keys::TCP_ESTABLISHED)?;
    // Those have a rule of their own.
    let stalled = all.value - full.value;
    let share = stalled / established.value.max(stalled).max(1.0);
    let sentence = format!(
        "{} ({}) make no progress",
        say::count(stalled, "connection"),
        say::percent(share)
    );
    if stalled < STALLED.value || share <= SHARE.value {
        return Ok(vec![
            Finding::clear(sentence)
                .below(stalled, STALLED.value)
                .cite(all.reading),
        ]);
    }
    let who = evidence.words(&keys::TCP_STALLED_WHO, &Subject::host())?;
    let sentence = format!(
        "{sentence}: the peers acknowledge nothing, such as {}",
        who.value
    );
    Ok(vec![
        Finding::act(&Subject::host(), sentence)
            .severity(Grade::Medium)
            .confidence(Grade::High)
            .cite(all.reading)
            .cite(established.reading)
            .cite(who.reading)
            .refuted_by("a capture shows acknowledgements of these peers arriving"),
    ])
}
