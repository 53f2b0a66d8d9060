//! `connect-refused`: connections that this host opens are refused.
//!
//! A port that nobody listens on, a backend that died, a firewall that rejects: the attempt ends at once, with RST, and no socket is
//! left that could tell who tried. The kernel's counter is the only trace.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

const SHARE: Threshold = Threshold {
    name: "attempts that failed, as a share of the connections opened",
    value: 0.05,
    origin: "own guess: one in twenty is an error that a client sees, or a retry in the tail of its latency",
};

const RATE: Threshold = Threshold {
    name: "attempts that failed, per second",
    value: 1.0,
    origin: "own guess: fewer are health checks of a server that is known to be down",
};

/// Tcp `AttemptFails` of RFC 4022: from SYN-SENT or SYN-RECEIVED to CLOSED.
const COUNTER: &str = "Tcp:AttemptFails";

/// Half-open connections of a server that its peer reset; they are among the failed ones.
const ABORTED: &str = "TcpExt:EmbryonicRsts";

/// `connect-refused`
pub(crate) static RULE: Rule = Rule {
    id: "connect-refused",
    topic: "tcp",
    summary: "connections that this host opens are refused",
    needs: &[
        &keys::DEPENDENCY_CONNECTING,
        &keys::LOSS_COUNTERS,
        &keys::LOSS_RATE,
        &keys::LOSS_SHARE,
    ],
    thresholds: &[SHARE, RATE],
    knobs: &[],
    measure: Some(Measure::more(&keys::LOSS_SHARE)),
    doc: Doc {
        looks_for: "More than one connection attempt per second fails immediately, and more than 5 % of all attempts.",
        hurts: "Each refused attempt is an error, or a retry at another server that takes time and adds to its load.",
        todo: "Find who connects where: `tcpdump -n 'tcp[tcpflags] & tcp-rst != 0'` for a second, or the log of the proxy. Is the service \
            there running and listening on that address (`ss -ltn`)? Does a firewall reject? Take the dead server out of the pool until then.",
        wrong: "A monitor that tries hosts which are down does so all day. Handshakes that a peer aborts, such as port scans, are subtracted.",
        sources: "RFC 4022 (tcpAttemptFails); tcp_done and tcp_reset in net/ipv4, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let read = evidence.host(&keys::LOSS_COUNTERS)?;
    let counter = Subject::new(Kind::Counter, COUNTER);
    let of = |key| evidence.quantity(key, &counter).ok();
    let (Some(failed), Some(of_all)) = (of(&keys::LOSS_RATE), of(&keys::LOSS_SHARE)) else {
        let clear = Finding::clear("no attempt to open a connection failed");
        return Ok(vec![clear.below(0.0, SHARE.value).cite(read.reading)]);
    };
    let rate = (failed.value - pick::loss_rate(evidence, ABORTED)).max(0.0);
    let share = of_all.value * rate / failed.value.max(f64::MIN_POSITIVE);
    if share <= SHARE.value || rate <= RATE.value {
        let sentence = format!(
            "{} attempts of this host to open a connection failed, {} of all connections",
            say::rate(rate),
            say::percent(share)
        );
        let clear = Finding::clear(sentence).below(share.min(SHARE.value), SHARE.value);
        return Ok(vec![clear.cite(failed.reading)]);
    }
    // Attempts that nobody answers fail as well, one by one after their timeouts.
    let silent = evidence.each(&keys::DEPENDENCY_CONNECTING);
    let silent = silent.is_ok_and(|each| each.iter().any(|(_, number)| number.value >= 1.0));
    let sentence = format!(
        "connections that this host opens are refused: {}, {} of all attempts",
        say::rate(rate),
        say::percent(share)
    );
    Ok(vec![
        Finding::act(&Subject::host(), sentence)
            .severity(Grade::High)
            .confidence(if silent { Grade::Medium } else { Grade::High })
            .cite(failed.reading)
            .cite(of_all.reading)
            .refuted_by(
                "`ss -ltn` at the destination shows the port, and a connection from here opens",
            ),
    ])
}
