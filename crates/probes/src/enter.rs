//! Adds to the evidence a value with its origin, or the reason why it is missing.

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Reading, Subject, Value};

use crate::Rate;

/// A number, or why there is none for this subject.
pub(crate) fn number(
    evidence: &mut Evidence,
    key: &'static Key,
    subject: Subject,
    value: Result<f64, Absence>,
    origin: Origin,
) {
    match value {
        Ok(value) => evidence.number(key, subject, value, origin),
        Err(why) => absent(evidence, key, subject, why, origin),
    }
}

/// Words, or why there are none for this subject.
pub(crate) fn text(
    evidence: &mut Evidence,
    key: &'static Key,
    subject: Subject,
    value: Result<&str, Absence>,
    origin: Origin,
) {
    match value {
        Ok(value) => evidence.text(key, subject, value, origin),
        Err(why) => absent(evidence, key, subject, why, origin),
    }
}

/// The growth of a counter per second of the window, multiplied by `unit`, with its course.
pub(crate) fn rate(
    evidence: &mut Evidence,
    key: &'static Key,
    subject: Subject,
    rate: &Rate,
    unit: f64,
    source: &str,
) {
    let series = rate.series.iter().map(|value| value * unit).collect();
    evidence.series(key, subject, rate.per_s * unit, series, rate.origin(source));
}

/// The same for a file with several counters, with the name of this one.
pub(crate) fn counter(
    evidence: &mut Evidence,
    key: &'static Key,
    subject: Subject,
    (rate, unit): (&Rate, f64),
    (source, name): (&str, &str),
) {
    let series = rate.series.iter().map(|value| value * unit).collect();
    let origin = Origin::new(source, format!("{name} {}", rate.line()));
    evidence.series(key, subject, rate.per_s * unit, series, origin);
}

/// The same for time that grows by at most one second per second: a share.
///
/// A sample takes some milliseconds, and its files are read slightly after its recorded time, so the quotient may
/// slightly exceed one.
pub(crate) fn share(
    evidence: &mut Evidence,
    key: &'static Key,
    subject: Subject,
    (rate, unit): (&Rate, f64),
    (source, name): (&str, &str),
) {
    let share = |value: f64| (value * unit).min(1.0);
    let series = rate.series.iter().copied().map(share).collect();
    let origin = Origin::new(source, format!("{name} {}", rate.line()));
    evidence.series(key, subject, share(rate.per_s), series, origin);
}

/// Records why this subject has no value.
pub(crate) fn absent(
    evidence: &mut Evidence,
    key: &'static Key,
    subject: Subject,
    why: Absence,
    origin: Origin,
) {
    debug_assert!(key.of == subject.kind(), "{} is not of {subject}", key.id);
    evidence.add(Reading {
        key,
        subject,
        value: Value::Absent(why),
        series: Vec::new(),
        origin,
    });
}

/// Records the reason for those keys that have neither a value nor a reason yet.
pub(crate) fn absent_if_unset(
    evidence: &mut Evidence,
    keys: &[&'static Key],
    why: &Absence,
    source: &str,
) {
    for key in keys {
        let is_set = evidence.each(key).is_ok()
            || evidence.each_words(key).is_ok()
            || evidence.reading(key, &Subject::host()).is_some();
        if !is_set {
            let why = of_all(evidence, key).unwrap_or_else(|| why.clone());
            evidence.absent(&[key], &why, source);
        }
    }
}

/// The reason of all subjects, if it is the same for all.
fn of_all(evidence: &Evidence, key: &'static Key) -> Option<Absence> {
    let of_key = |reading: &&Reading| reading.key.id == key.id;
    let mut reasons = evidence
        .readings()
        .filter(of_key)
        .map(|reading| &reading.value);
    match reasons.next()? {
        first @ Value::Absent(why) if reasons.all(|other| other == first) => Some(why.clone()),
        _ => None,
    }
}
