//! Picking one subject out of many.

use rungwise_model::evidence::{Evidence, Key, Kind, Missing, Quantity, Subject};
use rungwise_model::keys;

/// Growth per second of a counter of losses, `group:name`; 0 for one that did not grow, which has no reading.
pub(crate) fn loss_rate(evidence: &Evidence, counter: &str) -> f64 {
    let rate = evidence.quantity(&keys::LOSS_RATE, &Subject::new(Kind::Counter, counter));
    rate.map_or(0.0, |rate| rate.value)
}

/// The subject with the largest number of this key.
pub(crate) fn largest<'a>(
    evidence: &'a Evidence,
    key: &'static Key,
) -> Result<(&'a Subject, Quantity<'a>), Missing> {
    evidence
        .each(key)?
        .into_iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
        .ok_or_else(|| evidence.missing(key, &Subject::host()))
}
