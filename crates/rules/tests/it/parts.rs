//! What a casebook holds besides its outcomes, as the headings of its cases name it: `near miss` on both sides of the
//! line, and the known `false alarm`.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::check::Outcome;
use rungwise_model::evidence::{Evidence, Reading, Unit, Value};
use rungwise_testkit::casebook::Expected;

use crate::book::{self, Case};
use crate::none_of;

const NEAR_MISS: &str = "near miss";
const FALSE_ALARM: &str = "false alarm";

/// Numbers of two near misses lie no further apart than this share: each within a tenth of the line between them.
const APART: f64 = 0.2;

/// Rules whose threshold is not a number but a word, a place in a list, or a cycle.
const OF_WORDS: &[&str] = &[
    "deadlock",
    "gc-log-poor",
    "gc-threads-few",
    "irq-affinity-reverted",
    "irq-hint-ignored",
    "process-stopped",
    "process-traced",
    "tcp-sane-flags",
];

#[test]
fn every_casebook_has_near_misses_on_both_sides_of_the_line() {
    let mut offenders = Vec::new();
    for book in book::all() {
        let (found, clear) = (titled(&book.cases, found), titled(&book.cases, clear));
        for (side, cases) in [("found", &found), ("clear", &clear)] {
            if cases.is_empty() {
                offenders.push(format!("{}: no near miss that is {side}", book.rule));
            }
        }
        let words = OF_WORDS.contains(&book.rule.as_str());
        let meets = |case: &Case, others: &[&Case]| others.iter().any(|o| near(case, o, words));
        let lonely = (found.iter().filter(|case| !meets(case, &clear)))
            .chain(clear.iter().filter(|case| !meets(case, &found)));
        offenders.extend(lonely.map(|case| {
            format!(
                "{}: nothing near it on the other side of the line: {}",
                book.rule, case.title
            )
        }));
    }
    none_of(&offenders, "near misses");
}

#[test]
fn every_casebook_has_the_known_false_alarm() {
    let mut offenders = Vec::new();
    for book in book::all() {
        let of = |case: &&Case| case.title.contains(FALSE_ALARM);
        if !book.cases.iter().any(|case| of(&case)) {
            offenders.push(format!("{}: no case of a false alarm", book.rule));
        }
        // A guard silences the rule, makes it a watch, or puts another remedy in place of the usual one.
        let usual = book.cases[0]
            .expectation
            .findings
            .first()
            .and_then(Expected::remedy);
        for case in book.cases.iter().filter(of) {
            let acts = |row: &&Expected| row.outcome() == Outcome::Act && row.remedy() == usual;
            if case.expectation.findings.iter().any(|row| acts(&row)) {
                offenders.push(format!(
                    "{}: it acts all the same: {}",
                    book.rule, case.title
                ));
            }
        }
    }
    none_of(&offenders, "false alarms");
}

fn found(case: &Case) -> bool {
    let mut outcomes = case.expectation.findings.iter().map(Expected::outcome);
    outcomes.any(|outcome| matches!(outcome, Outcome::Act | Outcome::Watch))
}

fn clear(case: &Case) -> bool {
    let mut outcomes = case.expectation.findings.iter().map(Expected::outcome);
    outcomes.all(|outcome| outcome == Outcome::Clear)
}

/// The near misses of one side.
fn titled(cases: &[Case], side: fn(&Case) -> bool) -> Vec<&Case> {
    let of = cases.iter().filter(|case| case.title.contains(NEAR_MISS));
    of.filter(|case| side(case)).collect()
}

/// The two differ only a little, and only in numbers; for rules without a number, in the text about one subject.
fn near(a: &Case, b: &Case, words: bool) -> bool {
    let mut pairs = vec![(&a.evidence, &b.evidence)];
    match (&a.change, &b.change) {
        (None, None) => {}
        (Some((asked, a)), Some((other, b))) if asked == other => pairs.push((a, b)),
        _ => return false,
    }
    let mut said = BTreeSet::new();
    for (a, b) in pairs {
        let seconds = a.seconds();
        if !close(Unit::Seconds, seconds, seconds, b.seconds()) {
            return false;
        }
        let (a, b) = (by_name(a), by_name(b));
        for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
            match (a.get(name).map(|r| parts(r)), b.get(name).map(|r| parts(r))) {
                (Some(Ok(a)), Some(Ok(b))) if a.len() == b.len() => {
                    let part = seconds / a.len().max(1) as f64;
                    let unit = rungwise_model::evidence::key(name.0).map_or(Unit::Text, |k| k.unit);
                    if !a.iter().zip(&b).all(|(a, b)| close(unit, part, *a, *b)) {
                        return false;
                    }
                }
                (a, b) if a == b => {}
                _ => _ = said.insert(name.1.clone()),
            }
        }
    }
    said.len() <= usize::from(words)
}

/// Key and subject, and what is read of them.
fn by_name(evidence: &Evidence) -> BTreeMap<(&'static str, String), &Reading> {
    let named = |reading| (name(reading), reading);
    evidence.readings().map(named).collect()
}

fn name(reading: &Reading) -> (&'static str, String) {
    (reading.key.id, reading.subject.to_string())
}

/// The number and its course, or the words in place of one.
fn parts(reading: &Reading) -> Result<Vec<f64>, &Value> {
    match &reading.value {
        Value::Number(whole) => Ok([&[*whole], &reading.series[..]].concat()),
        words => Err(words),
    }
}

/// The numbers are near each other, or a single event or subject apart.
fn close(unit: Unit, seconds: f64, a: f64, b: f64) -> bool {
    let one = match unit {
        Unit::Count => 1.0,
        Unit::PerSecond if seconds > 0.0 => 1.001 / seconds,
        _ => 0.0,
    };
    (a - b).abs() <= one.max(a.abs().max(b.abs()) * APART)
}

#[test]
fn near_is_a_fifth_or_a_single_event() {
    for (unit, a, b, is) in [
        (Unit::Fraction, 0.11, 0.09, true),
        (Unit::Fraction, 0.12, 0.09, false),
        (Unit::Count, 0.0, 1.0, true),
        (Unit::Count, 1.0, 3.0, false),
        (Unit::PerSecond, 0.0, 0.1, true),
        (Unit::PerSecond, 0.0, 0.2, false),
        (Unit::Seconds, 0.41, 0.39, true),
    ] {
        assert_eq!(close(unit, 10.0, a, b), is, "{unit:?} {a} {b}");
    }
}
