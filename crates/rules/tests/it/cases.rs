//! Every case of every casebook is judged as it says.

use rungwise_model::check::Finding;
use rungwise_rules::RULES;
use rungwise_rules::change::{self, CHANGES};

use crate::book::Case;
use crate::{book, none_of};

#[test]
fn every_case_comes_out_as_its_casebook_says() {
    let mut offenders = Vec::new();
    for book in book::all() {
        for case in &book.cases {
            let Some(said) = said(&book.rule, case) else {
                offenders.push(format!("cases/{}.md: there is no such rule", book.rule));
                break;
            };
            if let Some(difference) = case.expectation.differs(&said) {
                offenders.push(format!(
                    "cases/{}.md: {}\n{difference}",
                    book.rule, case.title
                ));
            }
        }
    }
    none_of(&offenders, "cases that come out otherwise");
}

/// What the rule, or the judgement of two captures, says of the case; nothing if there is none of that name.
fn said(name: &str, case: &Case) -> Option<Vec<Finding>> {
    let rule = |id: &str| RULES.iter().find(|rule| rule.id == id);
    if let Some(rule) = rule(name) {
        return Some(rule.findings(&case.evidence));
    }
    CHANGES.iter().find(|change| change.id == name)?;
    let (asked, after) = case.change.as_ref()?;
    let mut said = change::judge(rule(asked)?, &case.evidence, after);
    said.retain(|finding| finding.rule == name);
    Some(said)
}

#[test]
fn a_rule_says_the_same_of_the_same_evidence() {
    for book in book::all() {
        for case in &book.cases {
            let first = rungwise_rules::judge(&case.evidence);
            let second = rungwise_rules::judge(&case.evidence);
            assert_eq!(first, second, "{}: {}", book.rule, case.title);
        }
    }
}
