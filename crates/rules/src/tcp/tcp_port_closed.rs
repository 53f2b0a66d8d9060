//! `tcp-port-closed`: clients ask for a port at which no process listens, and the kernel answers with a reset.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const REFUSED: Threshold = Threshold {
    name: "resets per second that no program and no failed attempt of this host explains",
    value: 10.0,
    origin: "own guess: scans of ports from the Internet are fewer",
};

const SHARE: Threshold = Threshold {
    name: "the same, as a share of the connections asked for",
    value: 0.2,
    origin: "one in five is where a lost rate counts as harm in docs/truth.md",
};

/// `tcp-port-closed`
pub(crate) static RULE: Rule = Rule {
    id: "tcp-port-closed",
    topic: "tcp",
    summary: "connections from other hosts are refused: no process listens at the port",
    needs: &[
        &keys::TCP_ATTEMPTS_FAILED,
        &keys::TCP_OPENED,
        &keys::TCP_RESETS_SENT,
        &keys::TCP_RESET_UNREAD,
    ],
    thresholds: &[REFUSED, SHARE],
    knobs: &[],
    doc: Doc {
        looks_for: "More than 10 resets a second, and more than 20 % of the connections asked for, in every third of the window, that are \
            neither of connections closed with unread data nor of attempts of this host.",
        hurts: "Each of these clients gets \"connection refused\". The service has ended, has not started yet, or listens at another port or \
            address.",
        todo: "ss -ltnp shows who listens where; tcpdump -nn 'tcp[tcpflags] & tcp-rst != 0' shows which port is asked for. Start the \
            service, or take this host out of the load balancer.",
        wrong: "A scan of ports, a health check of a service that is meant to be off. A packet that is late for a connection long closed is \
            answered with a reset as well.",
        sources: "tcp_v4_send_reset in net/ipv4/tcp_ipv4.c (Linux 6.18); RFC 9293, 3.5.2.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let resets = evidence.host(&keys::TCP_RESETS_SENT)?;
    let unread = evidence.host(&keys::TCP_RESET_UNREAD)?;
    let failed = evidence.host(&keys::TCP_ATTEMPTS_FAILED)?;
    let opened = evidence.host(&keys::TCP_OPENED)?;
    let refused = (resets.value - unread.value - failed.value).max(0.0);
    let share = refused / (refused + opened.value).max(f64::MIN_POSITIVE);
    let lasts = resets.lasts(|rate| rate > REFUSED.value);
    if refused <= REFUSED.value || share <= SHARE.value || !lasts {
        let sentence = format!(
            "{} connections are refused because no process listens",
            say::rate(refused)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(refused, REFUSED.value)
                .cite(resets.reading)
                .cite(opened.reading),
        ]);
    }
    let sentence = format!(
        "{} connections are refused, {} of those asked for: no process listens at their port",
        say::rate(refused),
        say::percent(share)
    );
    Ok(vec![
        Finding::act(&Subject::host(), sentence)
            .severity(Grade::High)
            .confidence(Grade::Medium)
            .cite(resets.reading)
            .cite(unread.reading)
            .cite(failed.reading)
            .cite(opened.reading)
            .refuted_by("ss -ltn lists a listener at every port that clients ask for"),
    ])
}
