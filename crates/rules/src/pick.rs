//! Picking one subject out of many.

use rungwise_model::evidence::{Evidence, Key, Missing, Quantity, Subject};

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
