//! `tcp-port-closed`: clients ask for a port at which no process listens, and the kernel answers with a reset.

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const REFUSED: Threshold = Threshold {
    name: "resets per second that no program and no failed attempt of this host explains",
    value: 10.0,
    origin: "own guess: scans of ports from the Internet are fewer",
};

const SHARE: Threshold = Threshold {
    name: "the same, as a share of the requested connections",
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
        &keys::TCP_CONNECTS,
        &keys::TCP_LISTEN_OVERFLOWS,
        &keys::TCP_OPENED,
        &keys::TCP_RESETS_SENT,
        &keys::TCP_RESET_UNREAD,
    ],
    thresholds: &[REFUSED, SHARE],
    knobs: &[],
    measure: Some(Measure::more(&keys::TCP_RESETS_SENT)),
    doc: Doc {
        looks_for: "More than 10 resets a second, and more than 20 % of the requested connections, in most parts of the window, that are \
            neither of connections closed with unread data, nor of full accept queues, nor of attempts of this host that failed. It acts where they are more than the \
            connections accepted; else they are watched.",
        hurts: "Each of these clients gets \"connection refused\". The service has ended, has not started yet, or listens at another port or \
            address.",
        todo: "ss -ltnp shows who listens where; tcpdump -nn 'tcp[tcpflags] & tcp-rst != 0' shows the requested port. Start the \
            service, or take this host out of the load balancer.",
        wrong: "A scan of ports, a health check of a service that is meant to be off. What a client sends on a connection that this host has \
            closed is answered with a reset as well. A proxy whose own attempts fail elsewhere hides as many.",
        sources: "tcp_v4_send_reset in net/ipv4/tcp_ipv4.c (Linux 6.18); RFC 9293, 3.5.2.",
    },
    judge,
};

/// Connections refused per second because no process listens, where this rule acts on them.
pub(crate) fn refused(evidence: &Evidence) -> Option<f64> {
    let findings = judge(evidence).ok()?;
    let mut outcomes = findings.iter().map(|finding| finding.outcome);
    let acts = outcomes.any(|outcome| outcome == Outcome::Act);
    unexplained(evidence).ok().filter(|_| acts)
}

/// Resets per second that nothing of this host explains.
fn unexplained(evidence: &Evidence) -> Result<f64, Missing> {
    let of = |key| evidence.host(key).map(|reading| reading.value);
    // A full accept queue may answer with resets as well (tcp_abort_on_overflow). Attempts of this host fail here or elsewhere, and only
    // those that fail here are reset here: where some fail elsewhere, this is too little.
    let explained = of(&keys::TCP_RESET_UNREAD)?
        + of(&keys::TCP_ATTEMPTS_FAILED)?
        + of(&keys::TCP_LISTEN_OVERFLOWS)?;
    Ok((of(&keys::TCP_RESETS_SENT)? - explained).max(0.0))
}

fn judge(evidence: &Evidence) -> Judgement {
    let resets = evidence.host(&keys::TCP_RESETS_SENT)?;
    let unread = evidence.host(&keys::TCP_RESET_UNREAD)?;
    let failed = evidence.host(&keys::TCP_ATTEMPTS_FAILED)?;
    let opened = evidence.host(&keys::TCP_OPENED)?;
    let connects = evidence.host(&keys::TCP_CONNECTS)?;
    let overflows = evidence.host(&keys::TCP_LISTEN_OVERFLOWS)?;
    let refused = unexplained(evidence)?;
    let accepted = (opened.value - connects.value).max(0.0);
    let share = refused / (refused + accepted).max(f64::MIN_POSITIVE);
    let lasts = resets.lasts(|rate| rate > REFUSED.value);
    let cite = |finding: Finding| {
        finding
            .cite(resets.reading)
            .cite(unread.reading)
            .cite(failed.reading)
            .cite(opened.reading)
            .cite(connects.reading)
            .cite(overflows.reading)
    };
    if refused <= REFUSED.value || share <= SHARE.value || !lasts {
        let sentence = format!(
            "{} resets are left that no program sent and no failed attempt explains",
            say::rate(refused)
        );
        return Ok(vec![cite(
            Finding::clear(sentence).below(refused.min(REFUSED.value), REFUSED.value),
        )]);
    }
    // A connection that this host has closed may be reset once by what comes late.
    let finding = if refused > accepted {
        let sentence = format!(
            "{} connections are refused, {} of all requested: no process listens on their port",
            say::rate(refused),
            say::percent(share)
        );
        Finding::act(&Subject::host(), sentence)
            .severity(Grade::High)
            .refuted_by("ss -ltn lists a listener at every port that clients ask for")
    } else {
        let sentence = format!(
            "{} resets are sent beside {} accepted connections: clients ask for a closed port, or send on connections that this host has closed",
            say::rate(refused),
            say::rate(accepted)
        );
        Finding::watch(&Subject::host(), sentence)
            .severity(Grade::Low)
            .refuted_by("the clients see no connection reset")
    };
    Ok(vec![cite(finding.confidence(Grade::Medium))])
}
