//! `udp-sndbuf-drop`: datagrams are not sent, because the send buffer of their socket is full.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "datagrams not sent, as a share of all",
    value: 0.001,
    origin: "own guess: one in a thousand, as for datagrams that arrive",
};

const RATE: Threshold = Threshold {
    name: "datagrams not sent per second",
    value: 1.0,
    origin: "own guess: fewer are no bottleneck",
};

/// `udp-sndbuf-drop`
pub(crate) static RULE: Rule = Rule {
    id: "udp-sndbuf-drop",
    topic: "net",
    summary: "datagrams are not sent because a send buffer or the queue of the device is full",
    needs: &[&keys::UDP_SENT, &keys::UDP_SNDBUF_DROPS],
    thresholds: &[SHARE, RATE],
    knobs: &[],
    measure: Some(Measure::more(&keys::UDP_SNDBUF_DROPS)),
    doc: Doc {
        looks_for: "SndbufErrors of UDP above 0.1 % of the datagrams sent.",
        hurts: "The send fails with EAGAIN or ENOBUFS; a program that ignores the error has lost the reply.",
        todo: "Give the socket a larger send buffer (SO_SNDBUF, with net.core.wmem_max above it), or wait until it is writable. \
            Where the device's queue is the limit (qdisc-limit), a larger buffer only waits longer.",
        wrong: "A sender without a pace fills any buffer.",
        sources: "udp_sendmsg in net/ipv4/udp.c (Linux 6.18): UDP_MIB_SNDBUFERRORS.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let lost = evidence.host(&keys::UDP_SNDBUF_DROPS)?;
    let sent = evidence.host(&keys::UDP_SENT)?;
    let share = lost.value / (lost.value + sent.value).max(f64::MIN_POSITIVE);
    if lost.value <= RATE.value || share <= SHARE.value {
        let sentence = format!("{} datagrams failed to be sent", say::rate(lost.value));
        return Ok(vec![
            Finding::clear(sentence)
                .below(share, SHARE.value)
                .cite(lost.reading),
        ]);
    }
    let sentence = format!(
        "{} datagrams ({}) are not sent: a send buffer or the device's queue is full",
        say::rate(lost.value),
        say::percent(share)
    );
    Ok(vec![
        Finding::act(&Subject::host(), sentence)
            .severity(if share > 10.0 * SHARE.value {
                Grade::High
            } else {
                Grade::Medium
            })
            .confidence(Grade::High)
            .cite(lost.reading)
            .cite(sent.reading)
            .refuted_by("with a send buffer four times as large, as many sends fail"),
    ])
}
