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

/// The middle of these numbers, the mean of the middle two; nothing of nothing.
pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    Some(if numbers.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(numbers[middle - 1], upper)
    })
}
