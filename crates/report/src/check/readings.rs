//! Looking readings up for people: an absent value stays absent, with its reason where there is room for it.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::evidence::{Evidence, Key, Subject, Unit};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::block::Cell;
use crate::numbers;

/// The number of this key, if it is known.
pub(super) fn number(evidence: &Evidence, key: &'static Key, subject: &Subject) -> Option<f64> {
    Some(evidence.quantity(key, subject).ok()?.value)
}

/// The words of this key, if they are known and not empty.
pub(super) fn words<'a>(
    evidence: &'a Evidence,
    key: &'static Key,
    subject: &Subject,
) -> Option<&'a str> {
    let words = evidence.words(key, subject).ok()?.value;
    (!words.is_empty()).then_some(words)
}

/// A number of this key as people write it: an MTU in bytes, a rate with its thousands.
pub(super) fn said(key: &Key, number: f64) -> String {
    match key.unit {
        _ if key == &keys::DEVICE_MTU => format!("{number:.0}"),
        Unit::PerSecond => numbers::rate(number),
        unit => number_of(unit, number),
    }
}

/// The number or the words as a person reads them.
pub(super) fn shown(evidence: &Evidence, key: &'static Key, subject: &Subject) -> Option<String> {
    words(evidence, key, subject)
        .map(str::to_owned)
        .or_else(|| number(evidence, key, subject).map(|number| said(key, number)))
}

/// The same as a cell of a table.
pub(super) fn cell(evidence: &Evidence, key: &'static Key, subject: &Subject) -> Cell {
    match number(evidence, key, subject) {
        Some(value) => Cell::number(Some(value), |value| said(key, value)),
        None => Cell::text(words(evidence, key, subject).unwrap_or(numbers::ABSENT)),
    }
}

/// Every subject that has one of these keys, in order; the host is not one.
pub(super) fn subjects(evidence: &Evidence, keys: &[&'static Key]) -> BTreeSet<Subject> {
    keys.iter()
        .flat_map(|key| {
            let numbers = evidence.each(key).unwrap_or_default();
            let words = evidence.each_words(key).unwrap_or_default();
            let numbers = numbers.into_iter().map(|(subject, _)| subject.clone());
            numbers.chain(words.into_iter().map(|(subject, _)| subject.clone()))
        })
        .filter(|subject| subject.kind() != rungwise_model::evidence::Kind::Host)
        .collect()
}

/// The subjects with the largest numbers of this key, largest first; those at zero are left out.
pub(super) fn largest(evidence: &Evidence, key: &'static Key, most: usize) -> Vec<Subject> {
    let mut all = evidence.each(key).unwrap_or_default();
    all.retain(|(_, quantity)| quantity.value > 0.0);
    all.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    all.into_iter()
        .take(most)
        .map(|(subject, _)| subject.clone())
        .collect()
}

/// The numbers of a kernel list such as `0-4,10-14`; what is not a number is left out.
pub(super) fn cpus(list: &str) -> BTreeSet<usize> {
    /// `NR_CPUS` is 8192 at most; a longer range is not from a kernel.
    const MOST: usize = 8192;
    list.trim()
        .split(',')
        .filter_map(|run| {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (last < MOST).then_some(first..=last)
        })
        .flatten()
        .collect()
}

/// How often each word stands there, in order of the words: `eth0 ×3, eth1`.
pub(super) fn tallied<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(word, count)| match count {
            1 => word.to_owned(),
            _ => format!("{word} ×{count}"),
        })
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_and_nonsense_is_not() {
        assert_eq!(cpus("0-1,4"), [0, 1, 4].into());
        assert_eq!(cpus("x,3-1,0-99999999999"), [].into());
    }

    #[test]
    fn the_same_word_is_counted_once() {
        assert_eq!(tallied(["eth1", "eth0", "eth1"]), "eth0, eth1 ×2");
    }
}
