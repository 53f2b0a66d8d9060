//! What the house asks of every rule: a casebook that shows all outcomes, needs that are all it reads, and
//! findings that can be checked.

use std::collections::BTreeSet;

use rungwise_model::check::{Finding, Outcome};
use rungwise_model::evidence::{Evidence, Unit};
use rungwise_rules::change::CHANGES;
use rungwise_rules::{RULES, Rule};
use rungwise_testkit::casebook::Expected;

use crate::{book, none_of};

#[test]
fn rules_are_sorted_and_their_ids_unique() {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[test]
fn every_casebook_shows_a_finding_a_clear_and_an_undecided_case() {
    let books = book::all();
    let mut offenders = Vec::new();
    let changes = CHANGES.iter().map(|change| change.id);
    for id in RULES.iter().map(|rule| rule.id).chain(changes) {
        let Some(book) = books.iter().find(|book| book.rule == id) else {
            offenders.push(format!("{id}: no casebook"));
            continue;
        };
        let shown: BTreeSet<Outcome> = book
            .cases
            .iter()
            .flat_map(|case| &case.expectation.findings)
            .map(Expected::outcome)
            .collect();
        if !shown.contains(&Outcome::Act) && !shown.contains(&Outcome::Watch) {
            offenders.push(format!("{id}: no case with a finding"));
        }
        for outcome in [Outcome::Clear, Outcome::Undecided] {
            if !shown.contains(&outcome) {
                offenders.push(format!("{id}: no case that is {outcome:?}"));
            }
        }
    }
    none_of(&offenders, "casebooks");
}

#[test]
fn a_rule_reads_nothing_that_it_does_not_name() {
    let mut offenders = Vec::new();
    for rule in RULES {
        if rule.needs.is_empty() {
            offenders.push(format!("{}: it needs nothing", rule.id));
        }
        let needs: BTreeSet<&str> = rule.needs.iter().map(|key| key.id).collect();
        if needs.len() != rule.needs.len() {
            offenders.push(format!("{}: it names a key twice", rule.id));
        }
    }
    for (rule, title, evidence) in cases() {
        let mut named = Evidence::over(evidence.seconds());
        // A residual rule asks the rules that know causes, which name what they read.
        let asks = rule.topic == "residual";
        let others = RULES.iter().filter(|_| asks).flat_map(|rule| rule.needs);
        let needs: Vec<_> = rule.needs.iter().chain(others).collect();
        evidence
            .readings()
            .filter(|reading| needs.contains(&&reading.key))
            .for_each(|reading| named.add(reading.clone()));
        if rule.findings(&evidence) != rule.findings(&named) {
            offenders.push(format!("{}: {title}", rule.id));
        }
    }
    none_of(&offenders, "rules that read keys which they do not name");
}

#[test]
fn a_finding_can_be_checked() {
    let mut offenders = Vec::new();
    for (rule, title, evidence) in cases() {
        for finding in rule.findings(&evidence) {
            let faults = faults(rule, &finding);
            offenders.extend(faults.map(|fault| format!("{}: {title}: {fault}", rule.id)));
        }
    }
    none_of(&offenders, "findings");
}

/// The tests of the knobs read the wishes there and plan each of them, which nobody here can.
#[test]
fn every_wish_stands_in_a_casebook() {
    let (mut wished, mut spelled) = (BTreeSet::new(), BTreeSet::new());
    for book in book::all() {
        let Some(rule) = RULES.iter().find(|rule| rule.id == book.rule) else {
            continue;
        };
        for case in book.cases {
            let written = case.expectation.findings.iter().flat_map(Expected::wishes);
            spelled.extend(written.map(|knob| (rule.id, knob.to_owned())));
            for finding in rule.findings(&case.evidence) {
                let turns = finding.knobs.into_iter().filter(|turn| turn.to.is_some());
                wished.extend(turns.map(|turn| (rule.id, turn.id)));
            }
        }
    }
    let offenders: Vec<String> = wished
        .difference(&spelled)
        .map(|(rule, knob)| format!("{rule}: no case says {knob}=WISH"))
        .collect();
    none_of(&offenders, "wishes");
}

fn faults(rule: &Rule, finding: &Finding) -> impl Iterator<Item = String> {
    let found = matches!(finding.outcome, Outcome::Act | Outcome::Watch);
    let unknown: Vec<&str> = finding
        .knobs
        .iter()
        .map(|turn| turn.id.as_str())
        .filter(|id| !rule.knobs.contains(id))
        .collect();
    let odd: Vec<&str> = finding
        .missing
        .iter()
        .map(|lack| lack.key.as_str())
        .filter(|id| !rule.needs.iter().any(|key| key.id == *id))
        .collect();
    let sentence = &finding.sentence;
    [
        (
            found && finding.evidence.is_empty(),
            "it cites nothing".to_owned(),
        ),
        (
            found && finding.refuted_by.is_empty(),
            "nothing could refute it".to_owned(),
        ),
        (
            !found && !finding.knobs.is_empty(),
            "it asks for knobs without a finding".to_owned(),
        ),
        (
            !unknown.is_empty(),
            format!("its rule does not name the knobs {unknown:?}"),
        ),
        (
            !odd.is_empty(),
            format!("its rule does not need the missing {odd:?}"),
        ),
        (
            sentence.is_empty() || sentence.contains('\n'),
            format!("no sentence: {sentence:?}"),
        ),
        (
            sentence.ends_with('.'),
            format!("a full stop: {sentence:?}"),
        ),
        (
            finding
                .distance
                .is_some_and(|distance| !(0.0..=1.0).contains(&distance)),
            format!("distance {:?}", finding.distance),
        ),
        (
            finding
                .estimate
                .as_ref()
                .is_some_and(|e| e.low > e.high || e.basis.is_empty()),
            "an estimate upside down or without a basis".to_owned(),
        ),
    ]
    .into_iter()
    .filter_map(|(fault, what)| fault.then_some(what))
}

#[test]
fn thresholds_say_where_they_come_from() {
    let mut offenders = Vec::new();
    for rule in RULES {
        for line in rule.thresholds {
            if line.name.is_empty() || line.origin.len() < 10 || !line.value.is_finite() {
                offenders.push(format!("{}: {line:?}", rule.id));
            }
        }
        let numbers = rule.needs.iter().any(|key| key.unit != Unit::Text);
        // The lines of residual rules are those of the table of resources.
        let elsewhere = rule.topic == "residual" && rule.page().contains(", at least | ");
        if numbers && rule.thresholds.is_empty() && !elsewhere {
            offenders.push(format!("{}: no threshold", rule.id));
        }
    }
    none_of(&offenders, "thresholds");
}

/// Every case with its rule.
fn cases() -> Vec<(&'static Rule, String, Evidence)> {
    let mut all = Vec::new();
    for book in book::all() {
        let rule = RULES.iter().find(|rule| rule.id == book.rule);
        for case in book.cases {
            if let Some(rule) = rule {
                all.push((*rule, case.title, case.evidence));
            }
        }
    }
    all
}
