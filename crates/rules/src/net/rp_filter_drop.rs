//! `rp-filter-drop`: source validation drops packets, because their way back leads through another device.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const DROPPED: Threshold = Threshold {
    name: "packets dropped by source validation, per second",
    value: 1.0,
    origin: "own guess: fewer are strays and scans",
};

const SHARE: Threshold = Threshold {
    name: "the same, as a share of the packets received",
    value: 0.001,
    origin: "own guess: one in a thousand; a host with symmetric routes has none",
};

/// `rp-filter-drop`
pub(crate) static RULE: Rule = Rule {
    id: "rp-filter-drop",
    topic: "net",
    summary: "strict source validation (rp_filter) drops packets",
    needs: &[
        &keys::DEVICE_RX_PACKETS,
        &keys::IP_RECEIVED,
        &keys::IP_REVERSE_PATH,
        &keys::ROUTE_RP_FILTER,
    ],
    thresholds: &[DROPPED, SHARE],
    knobs: &["net.rp_filter"],
    measure: Some(Measure::more(&keys::IP_REVERSE_PATH)),
    doc: Doc {
        looks_for: "IPReversePathFilter that grows by more than one a second and 0.1 % of the packets received.",
        hurts: "The packets vanish without an answer: connections over that path hang, datagrams are lost.",
        todo: "A route back to these sources through the device that they come from, or loose validation (net.rp_filter=2) where routes \
            are asymmetric by design (RFC 3704).",
        wrong: "Spoofed sources are dropped on purpose; on an edge of the Internet there are always some.",
        sources: "fib_validate_source in net/ipv4/fib_frontend.c (Linux 6.18); RFC 3704.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let dropped = evidence.host(&keys::IP_REVERSE_PATH)?;
    let received = evidence.host(&keys::IP_RECEIVED)?;
    let share = dropped.value / received.value.max(dropped.value).max(f64::MIN_POSITIVE);
    if dropped.value <= DROPPED.value || share <= SHARE.value {
        let sentence = format!(
            "source validation dropped {} packets",
            say::rate(dropped.value)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(share, SHARE.value)
                .cite(dropped.reading),
        ]);
    }
    let sentence = format!(
        "strict source validation (rp_filter) drops {} packets, {} of those received",
        say::rate(dropped.value),
        say::percent(share)
    );
    let mut finding = Finding::act(&Subject::host(), sentence)
        .severity(Grade::High)
        .confidence(Grade::High)
        .cite(dropped.reading)
        .cite(received.reading);
    // Only a strict filter drops what another device leads back to; with one such device it is that one.
    let strict: Vec<_> = evidence
        .each(&keys::ROUTE_RP_FILTER)
        .unwrap_or_default()
        .into_iter()
        .filter(|(device, filter)| {
            let receives = evidence
                .quantity(&keys::DEVICE_RX_PACKETS, device)
                .is_ok_and(|packets| packets.value > 0.0);
            (filter.value - 1.0).abs() < 0.5 && receives && device.name() != "lo"
        })
        .collect();
    for (device, filter) in strict {
        finding = finding
            .cite(filter.reading)
            .turn_device("net.rp_filter", device.name(), "2");
    }
    Ok(vec![finding.refuted_by(
        "with rp_filter 2, as many packets are dropped: their sources have no route at all",
    )])
}
