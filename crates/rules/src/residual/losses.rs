//! Which counters of losses are worth a finding: how much is lost, and whose business it is.

use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::Threshold;
use crate::resources::{Owner, explained_by, owner};

pub(crate) const SHARE: Threshold = Threshold {
    name: "share of the traffic that a counter without a rule lost",
    value: 0.005,
    origin: "own guess: one packet of 200 shows in p99.5 of requests of one packet",
};

pub(crate) const MUCH: Threshold = Threshold {
    name: "share of the traffic that is much, whatever the rules of the counter say",
    value: 0.05,
    origin: "own guess: at 5 % a loss has a noticeable cost",
};

pub(crate) const RATE: Threshold = Threshold {
    name: "losses per second that are worth a word",
    value: 1.0,
    origin: "own guess: fewer are events of an ordinary network",
};

/// The counter says that much was lost; one that rules answer for, where one of them says so or it is very much.
pub(crate) fn is_a_loss(evidence: &Evidence, counter: &Subject) -> bool {
    let value = |key| {
        evidence
            .quantity(key, counter)
            .map_or(0.0, |quantity| quantity.value)
    };
    let (rate, share) = (value(&keys::LOSS_RATE), value(&keys::LOSS_SHARE));
    if rate < RATE.value {
        return false;
    }
    match owner(counter.name()) {
        Owner::None => share >= SHARE.value,
        Owner::Follows => share >= MUCH.value,
        Owner::Rules(rules) => {
            share >= MUCH.value || explained_by(rules, counter, evidence).is_some()
        }
    }
}
