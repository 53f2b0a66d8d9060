//! `tcp-idle-cwnd`: a long connection starts slowly again after every pause.
//!
//! After an idle time of one retransmission timeout the congestion window falls back to its start
//! (`tcp_slow_start_after_idle`, `net/ipv4/tcp_output.c`). A burst of requests then takes round trips for what
//! one would have carried before. How much that is depends on the round trip: on a local network, nothing.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Unit;
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RESTARTS: Threshold = Threshold {
    name: "restarts seen in the window, all connections",
    value: 2.0,
    origin: "own guess: it repeats per burst; one alone may be the end of a conversation",
};

const FAR: Threshold = Threshold {
    name: "round trip from which on a restart is felt, seconds",
    value: 0.001,
    origin: "own guess: two or three round trips more per burst",
};

pub(crate) static RULE: Rule = Rule {
    id: "tcp-idle-cwnd",
    topic: "tcp",
    summary: "long connections start slowly again after every pause",
    needs: &[
        &keys::TCP_CONGESTION,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_IDLE_RESTARTS,
        &keys::TCP_RTT,
        &keys::TCP_SLOW_START_IDLE,
    ],
    thresholds: &[RESTARTS, FAR],
    knobs: &["tcp.slow_start_idle"],
    measure: Some(Measure::more(&keys::TCP_IDLE_RESTARTS)),
    doc: Doc {
        looks_for: "tcp_slow_start_after_idle on, and at least two falls of the congestion window to its start without a loss, \
            on connections with a round trip of a millisecond or more.",
        hurts: "A reply of 500 KB over a window of ten segments takes five round trips where one would do.",
        todo: "tcp.slow_start_idle=off on the sending side, for connections inside a network that one knows.",
        wrong: "Short connections start slowly by nature. BBR takes no notice of the switch: under it the rule is clear, though a \
            program may ask for another algorithm on its own sockets. With four looks per window most restarts are not seen, so the number \
            is a lower bound. After a pause the network may have changed: a full window can then meet a queue that is full.",
        sources: "TuneD profile network-throughput (0); RFC 2861; net/ipv4/tcp_output.c (tcp_slow_start_after_idle_check).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let switch = evidence.host(&keys::TCP_SLOW_START_IDLE)?;
    if switch.value == 0.0 {
        let clear = Finding::clear("slow start after idle is off").cite(switch.reading);
        return Ok(vec![clear]);
    }
    // Algorithms with a pace of their own skip the check (tcp_slow_start_after_idle_check of include/net/tcp.h).
    if let Ok(congestion) = evidence.words(&keys::TCP_CONGESTION, &Subject::host())
        && congestion.value.starts_with("bbr")
    {
        let sentence = format!(
            "{} is the congestion control here, and takes no notice of slow start after idle",
            congestion.value
        );
        return Ok(vec![Finding::clear(sentence).cite(congestion.reading)]);
    }
    let restarts = match evidence.each(&keys::TCP_IDLE_RESTARTS) {
        Ok(restarts) => restarts,
        Err(missing) => {
            let connections = evidence.host(&keys::TCP_ESTABLISHED);
            if connections.is_ok_and(|connections| connections.value == 0.0) {
                return Ok(vec![Finding::clear("no TCP connection is open")]);
            }
            return Err(missing);
        }
    };
    let felt: Vec<_> = restarts
        .iter()
        .filter(|(connection, rate)| {
            rate.value > 0.0
                && evidence
                    .quantity(&keys::TCP_RTT, connection)
                    .is_ok_and(|trip| trip.value >= FAR.value)
        })
        .collect();
    // Not a sum: that of nothing is -0.
    let rates = felt.iter().fold(0.0, |sum, (_, rate)| sum + rate.value);
    let number = rates * evidence.seconds();
    let most = felt
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    // Rates of whole events: half an event is rounding.
    let Some((connection, rate)) = most.filter(|_| number > RESTARTS.value - 0.5) else {
        let sentence = format!(
            "{} of a congestion window after idle where it would be felt",
            say::count(number, "restart")
        );
        return Ok(vec![Finding::clear(sentence).below(number, RESTARTS.value)]);
    };
    let mut sentence = format!(
        "{} of congestion windows after idle on {}",
        say::count(number, "restart"),
        say::count(felt.len() as f64, "connection"),
    );
    let mut finding = Finding::act(&Subject::host(), "")
        .cite(rate.reading)
        .cite(switch.reading);
    if let Ok(trip) = evidence.quantity(&keys::TCP_RTT, connection) {
        let _ = write!(
            sentence,
            ", most of them on {} at a round trip of {}",
            connection.name(),
            number_of(Unit::Seconds, trip.value)
        );
        finding = finding.cite(trip.reading);
    }
    finding.sentence = sentence;
    Ok(vec![
        finding
            .severity(Grade::Low)
            .confidence(Grade::Medium)
            .turn("tcp.slow_start_idle", "off")
            .refuted_by("the latency of the first request after a pause stays with the switch off"),
    ])
}
