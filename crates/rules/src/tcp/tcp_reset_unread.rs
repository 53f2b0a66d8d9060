//! `tcp-reset-unread`: a program closes connections with data that it has not read, and the peer gets a reset.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RESETS: Threshold = Threshold {
    name: "connections reset with unread data, per second",
    value: 1.0,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: 4.5 resets a second cost 1 % of the requests, 32 cost 7 %; 0.1 left no \
        trace",
};

const SHARE: Threshold = Threshold {
    name: "the same, as a share of the connections opened",
    value: 0.05,
    origin: "own guess: one in twenty is how the program ends its connections",
};

const OF_PACKETS: Threshold = Threshold {
    name: "the same, as a share of the packets sent, below which few requests are hit",
    value: 0.05,
    origin: "measured by `cargo xtask faults --random 40 --seed 5001 --layer host`: 10 resets a second beside 452 requests cost 2 % of them",
};

/// `tcp-reset-unread`
pub(crate) static RULE: Rule = Rule {
    id: "tcp-reset-unread",
    topic: "tcp",
    summary: "a program closes connections with unread data, which resets them",
    needs: &[
        &keys::DEVICE_TX_PACKETS,
        &keys::TCP_OPENED,
        &keys::TCP_RESET_UNREAD,
    ],
    thresholds: &[RESETS, SHARE, OF_PACKETS],
    knobs: &[],
    measure: Some(Measure::more(&keys::TCP_RESET_UNREAD)),
    doc: Doc {
        looks_for: "More than one connection a second, and more than 5 % of those opened, that a local program closed while data of the \
            peer was unread or still arrived. Where they are fewer than 5 % of the packets sent, it is only watched.",
        hurts: "The kernel answers with RST instead of FIN: the peer may lose the reply that it has not read yet and reports \
            \"connection reset by peer\".",
        todo: "Read the request to its end before closing (a body after an error reply, a pipelined request), or shut down the \
            sending side and read until end of file. nginx: lingering_close.",
        wrong: "Clients that abort downloads on purpose, health checks that connect and close, and programs that set SO_LINGER to 0 to \
            avoid TIME_WAIT do this by design.",
        sources: "__tcp_close in net/ipv4/tcp.c (Linux 6.18): TCPAbortOnClose, TCPAbortOnData; RFC 2525, 2.17.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let resets = evidence.host(&keys::TCP_RESET_UNREAD)?;
    let opened = evidence.host(&keys::TCP_OPENED)?;
    let share = resets.value / opened.value.max(resets.value).max(f64::MIN_POSITIVE);
    let sentence = format!(
        "{} connections are closed with unread data and reset",
        say::rate(resets.value)
    );
    // Clients that end together reset many connections once.
    let lasts = resets.lasts(|rate| rate > 0.0);
    if resets.value <= RESETS.value || share <= SHARE.value || !lasts {
        return Ok(vec![
            Finding::clear(sentence)
                .below(resets.value, RESETS.value)
                .cite(resets.reading)
                .cite(opened.reading),
        ]);
    }
    let sentence = format!("{sentence}, {} of those opened", say::percent(share));
    // A service with many requests on a connection loses few of them.
    let packets = evidence.each(&keys::DEVICE_TX_PACKETS).ok();
    let packets = packets.map(|devices| devices.iter().map(|(_, rate)| rate.value).sum::<f64>());
    let few = packets.is_some_and(|packets| resets.value < OF_PACKETS.value * packets);
    let finding = if few {
        Finding::watch(&Subject::host(), sentence)
    } else {
        Finding::act(&Subject::host(), sentence)
    };
    Ok(vec![
        finding
            .severity(Grade::Medium)
            .confidence(Grade::Medium)
            .cite(resets.reading)
            .cite(opened.reading)
            .refuted_by("the clients read every reply in full and see no reset"),
    ])
}
