//! `neigh-unanswered`: neighbours that packets are sent to do not answer ARP or NDP.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const GIVEN_UP: Threshold = Threshold {
    name: "neighbours given up per second",
    value: 0.1,
    origin: "own guess: the kernel gives up after three requests, a second apart: at this rate something keeps trying",
};

/// `neigh-unanswered`
pub(crate) static RULE: Rule = Rule {
    id: "neigh-unanswered",
    topic: "net",
    summary: "neighbours do not answer ARP or NDP",
    needs: &[
        &keys::NEIGH_FAILED,
        &keys::NEIGH_UNANSWERED,
        &keys::NEIGH_UNANSWERED_WHO,
    ],
    thresholds: &[GIVEN_UP],
    knobs: &[],
    measure: Some(Measure::more(&keys::NEIGH_UNANSWERED)),
    doc: Doc {
        looks_for: "Neighbours of this network namespace in the states INCOMPLETE or FAILED, while the kernel gives up one every ten \
            seconds or more.",
        hurts: "Packets to them wait up to three seconds and are then dropped; connects fail with EHOSTUNREACH.",
        todo: "The host is down, has another address, is in another VLAN, or filters ARP. Look with `ip neigh` and `arping`, and take \
            it out of the list of backends.",
        wrong: "A scan of the network, or monitoring that asks addresses without a host, fails by design. The count of neighbours given \
            up is that of all network namespaces; the list is that of this one.",
        sources: "neigh_timer_handler in net/core/neighbour.c (Linux 6.18).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let silent = evidence.host(&keys::NEIGH_UNANSWERED)?;
    if silent.value < 1.0 {
        return Ok(vec![
            Finding::clear("all neighbours answer").cite(silent.reading),
        ]);
    }
    let failed = evidence.host(&keys::NEIGH_FAILED)?;
    let who = evidence.words(&keys::NEIGH_UNANSWERED_WHO, &Subject::host())?;
    if failed.value <= GIVEN_UP.value {
        let sentence = format!(
            "{} did not answer, but the kernel gives up {} only",
            say::count(silent.value, "neighbour"),
            say::rate(failed.value)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(failed.value, GIVEN_UP.value)
                .cite(silent.reading)
                .cite(failed.reading),
        ]);
    }
    let verb = if silent.value < 1.5 { "does" } else { "do" };
    let sentence = format!(
        "{} {verb} not answer ARP or NDP: {}",
        say::count(silent.value, "neighbour"),
        who.value
    );
    Ok(vec![
        Finding::act(&Subject::host(), sentence)
            .severity(Grade::Medium)
            .confidence(Grade::High)
            .cite(silent.reading)
            .cite(failed.reading)
            .cite(who.reading)
            .refuted_by("`arping` gets an answer from these addresses"),
    ])
}
