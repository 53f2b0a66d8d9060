//! `tcp-synq-full`: more handshakes are under way than a listening socket may hold.
//!
//! The queue of half-open connections is as long as the accept queue (`inet_csk_reqsk_queue_is_full` compares
//! with the socket's backlog). When it is full, the kernel answers with SYN cookies, or drops. The sysctl
//! `tcp_max_syn_backlog` decides only where cookies are off.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RATE: Threshold = Threshold {
    name: "times the queue was full, per second",
    value: 1.0 / 60.0,
    origin: "one per minute: pcp's tcpqfulldocookies takes cookies in normal operation for limits that are too low",
};

const ATTACK: Threshold = Threshold {
    name: "the same, as an attack has it",
    value: 1000.0,
    origin: "own guess: few services see as many real new connections fail",
};

/// `tcp-synq-full`
pub(crate) static RULE: Rule = Rule {
    id: "tcp-synq-full",
    topic: "net",
    summary: "the queue of half-open connections is full",
    needs: &[&keys::TCP_FLAGS, &keys::TCP_SYNQ_FULL],
    thresholds: &[RATE, ATTACK],
    knobs: &["rpc.backlog", "net.somaxconn", "net.syn_backlog"],
    measure: Some(Measure::more(&keys::TCP_SYNQ_FULL)),
    doc: Doc {
        looks_for: "TCPReqQFullDrop or TCPReqQFullDoCookies growing by more than one per minute.",
        hurts: "With cookies, connections lose options (window scaling, SACK) where timestamps are off; without \
                cookies, they are dropped.",
        todo: "A longer queue: the service's listen() and net.core.somaxconn. tcp_max_syn_backlog matters only \
               with cookies off; leave them on.",
        wrong: "An attack fills any queue: above 1,000/s it is only worth watching, and cookies do their work. With \
                tcp_syncookies = 2 the kernel answers every handshake with a cookie and counts it here.",
        sources: "tcp_conn_request in net/ipv4/tcp_input.c, inet_csk_reqsk_queue_is_full (Linux 4.4 to 6.18); pcp's \
                  tcpqfulldocookies.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let full = evidence.host(&keys::TCP_SYNQ_FULL)?;
    let sentence = format!(
        "the queue of half-open connections was full {}",
        say::rate(full.value)
    );
    if full.value <= RATE.value {
        return Ok(vec![
            Finding::clear(sentence)
                .below(full.value, RATE.value)
                .cite(full.reading),
        ]);
    }
    let off = evidence.words(&keys::TCP_FLAGS, &Subject::host()).ok();
    let no_cookies = off.filter(|off| off.value.contains("syncookies"));
    let host = Subject::host();
    if full.value > ATTACK.value {
        return Ok(vec![
            Finding::watch(&host, format!("{sentence}: as many as in an attack"))
                .severity(if no_cookies.is_some() {
                    Grade::High
                } else {
                    Grade::Medium
                })
                .confidence(Grade::Low)
                .cite(full.reading)
                .consider("net.syn_backlog")
                .refuted_by("the addresses are those of real clients, which connect at that rate"),
        ]);
    }
    let finding = match no_cookies {
        Some(off) => Finding::act(
            &host,
            format!("{sentence}, and without cookies each is a dropped handshake"),
        )
        .severity(Grade::High)
        .cite(off.reading),
        None => Finding::act(&host, format!("{sentence}, and cookies took over")),
    }
    .cite(full.reading)
    .consider("rpc.backlog")
    .consider("net.somaxconn")
    .refuted_by("with a queue four times as long, it is full as often");
    Ok(vec![if no_cookies.is_some() {
        finding.consider("net.syn_backlog")
    } else {
        finding
    }])
}
