//! `tcp-reordering`: segments overtake each other, and TCP sends again what was not lost.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const EVENTS: Threshold = Threshold {
    name: "times per second that segments were seen to be reordered",
    value: 1.0,
    origin: "own guess: fewer cost nothing",
};

const SPURIOUS: Threshold = Threshold {
    name: "segments sent again that the peer had already, as a share of all sent again",
    value: 0.30,
    origin: "own guess: above it, most of what is sent again was not lost, as some reports are merged",
};

/// `tcp-reordering`
pub(crate) static RULE: Rule = Rule {
    id: "tcp-reordering",
    topic: "tcp",
    summary: "segments arrive out of order, and TCP sends again what was not lost",
    needs: &[
        &keys::TCP_DUPLICATES_REPORTED,
        &keys::TCP_OUT_OF_ORDER,
        &keys::TCP_RETRANSMITTED,
    ],
    thresholds: &[EVENTS, SPURIOUS],
    knobs: &[],
    measure: Some(Measure::more(&keys::TCP_OUT_OF_ORDER)),
    doc: Doc {
        looks_for: "Reordering seen more than once a second (TCPSACKReorder, TCPTSReorder, TCPRenoReorder), while peers report that they had \
            30 % or more of what was sent again.",
        hurts: "The sender takes reordering for loss: it sends again and lowers its rate. The receiver sorts.",
        todo: "Find what spreads one flow over several paths: bonding in balance-rr mode, per-packet ECMP, RPS or a driver that moves a \
            flow between queues. Spread by flow.",
        wrong: "Retransmission timeouts that are too short (a delay that jumps) are reported as duplicates as well, but no \
            reordering is seen then.",
        sources: "Documentation/networking/snmp_counter.rst; RFC 2883 (DSACK); tcp_check_sack_reordering (Linux 6.18).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let events = evidence.host(&keys::TCP_OUT_OF_ORDER)?;
    let reported = evidence.host(&keys::TCP_DUPLICATES_REPORTED)?;
    let again = evidence.host(&keys::TCP_RETRANSMITTED)?;
    let share = if again.value > 0.0 {
        (reported.value / again.value).min(1.0)
    } else {
        0.0
    };
    let sentence = format!(
        "reordering was seen {}, and peers had {} of what was sent again",
        say::rate(events.value),
        say::percent(share)
    );
    if events.value <= EVENTS.value || share <= SPURIOUS.value {
        return Ok(vec![
            Finding::clear(sentence)
                .below(events.value, EVENTS.value)
                .cite(events.reading)
                .cite(reported.reading),
        ]);
    }
    let sentence = format!(
        "segments arrive out of order: {}, and {} of what TCP sends again was not lost",
        say::rate(events.value),
        say::percent(share)
    );
    Ok(vec![
        Finding::act(&Subject::host(), sentence)
            .severity(Grade::Medium)
            .confidence(Grade::High)
            .cite(events.reading)
            .cite(reported.reading)
            .cite(again.reading)
            .refuted_by("a capture at the receiver shows the segments in order"),
    ])
}
