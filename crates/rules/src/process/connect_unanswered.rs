//! `connect-unanswered`: connection attempts to another server stay unanswered.
//!
//! A SYN without an answer is sent again after 1, 3, 7 s and so on, and the caller hangs in connect(2) for its timeout, two
//! minutes where none is set. A refusal comes at once; no answer means a dead host, a firewall that drops, or a full accept queue.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const CONNECTING: Threshold = Threshold {
    name: "connection attempts present in two samples",
    value: 1.0,
    origin: "a handshake takes one round trip; the first retransmission comes after 1 s (RFC 6298)",
};

pub(crate) static RULE: Rule = Rule {
    id: "connect-unanswered",
    topic: "process",
    summary: "connection attempts to another server stay unanswered",
    needs: &[
        &keys::DEPENDENCY_CONNECTING,
        &keys::DEPENDENCY_CONNECTING_TO,
        &keys::DEPENDENCY_SAMPLES,
        &keys::SCHED_PROCESS_NAME,
        &keys::TCP_LISTEN_SOCKET_DROPS,
    ],
    thresholds: &[CONNECTING],
    knobs: &[],
    measure: Some(Measure::more(&keys::DEPENDENCY_CONNECTING)),
    doc: Doc {
        looks_for: "A socket in state SYN-SENT in two samples of the window, or sockets in that state to one server in most samples, and none in another state. Where a listening socket of this host drops them at its full accept queue, they are only watched (tcp-listen-overflow).",
        hurts: "The thread or request that connects waits for its timeout, and each retry adds one.",
        todo: "Is the address right and the host up (ip route get, ping)? Does a firewall drop (nft list ruleset, security groups)? Is the accept queue of the peer full (ss -ltn there)? Set a connect timeout of a second.",
        wrong: "A monitor that probes dead hosts does this all day; in a window of less than 2 s a slow path may look the same.",
        sources: "RFC 6298, RFC 9293; net.ipv4.tcp_syn_retries in Documentation/networking/ip-sysctl.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let samples = evidence.host(&keys::DEPENDENCY_SAMPLES)?;
    let connecting = evidence
        .each(&keys::DEPENDENCY_CONNECTING)
        .unwrap_or_default();
    let mut findings = Vec::new();
    for (process, number) in connecting {
        if number.value < CONNECTING.value {
            continue;
        }
        let to = evidence.words(&keys::DEPENDENCY_CONNECTING_TO, process)?;
        let sentence = format!(
            "{} gets no answer from {}: {} in SYN-SENT",
            called(evidence, process),
            to.value,
            say::count(number.value, "connection attempt")
        );
        // The queue is what has to be mended, and the finding about it is of the service.
        let finding = if is_full_here(evidence, to.value) {
            let sentence =
                format!("{sentence}: the accept queue there is full, see tcp-listen-overflow");
            Finding::watch(process, sentence)
        } else {
            Finding::act(process, sentence)
        };
        findings.push(
            finding
                .severity(if number.value > 1.0 {
                    Grade::High
                } else {
                    Grade::Medium
                })
                .confidence(Grade::High)
                .cite(number.reading)
                .refuted_by("a connection from this host to that address is answered at once"),
        );
    }
    if findings.is_empty() {
        let sentence = "every connection attempt was answered or refused between two samples";
        findings.push(Finding::clear(sentence).cite(samples.reading));
    }
    Ok(findings)
}

/// The server is a listening socket of this host, and drops connections at its full accept queue.
fn is_full_here(evidence: &Evidence, server: &str) -> bool {
    let full = evidence
        .each(&keys::TCP_LISTEN_SOCKET_DROPS)
        .unwrap_or_default();
    full.iter().any(|(port, drops)| {
        let listener = port.name().trim_start_matches("tcp/");
        let to_this_host = server.starts_with("127.") || server.starts_with("[::1]");
        let of = |end: &str| end.rsplit_once(':').map(|(_, port)| port.to_owned());
        drops.value > 0.0 && (listener == server || to_this_host && of(listener) == of(server))
    })
}
