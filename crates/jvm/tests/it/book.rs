//! Casebooks of the judgements and of the ways to another JDK: `cases/<id>.md`, `cases/migrate-8-to-17.md`.
//!
//!     ```options
//!     jdk 17
//!     memory 8g                    # of the machine; limit 4g of its control group; cpus 4
//!     -Xmx9g -XX:+UseG1GC
//!     ```
//!
//! Outcomes are those of all casebooks, with `option=what to write instead` for knobs: `rungwise_testkit::casebook`. A way to
//! another JDK has the new options in place of outcomes, and part of a reason:
//!
//!     ```becomes
//!     -Xmx9g -XX:+UseG1GC          # or: unchanged; nothing
//!     because: "CMS"
//!     ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rungwise_jvm::migrate::migrate;
use rungwise_jvm::{Case, CommandLine, Machine, OPTION_RULES, Release, bytes, judge};
use rungwise_model::check::{Finding, Outcome};
use rungwise_testkit::casebook::{self, Book, Expectation, Expected, block, quoted};

/// How the casebook of a way is called, with the two releases.
const WAY: &str = "migrate-8-to-";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn case(text: &str) -> Result<Case, String> {
    let mut case = Case {
        release: Release(0),
        update: None,
        line: CommandLine::default(),
        machine: Machine::default(),
    };
    let mut options = Vec::new();
    for line in block(text, "options")? {
        let number = |text: &str| bytes(text).ok_or_else(|| format!("'{text}' is no size"));
        match line.split_once(' ') {
            Some(("jdk", text)) => {
                case.release = Release::parse(text).ok_or("jdk is a number")?;
                case.update = Release::update(text);
            }
            Some(("memory", text)) => case.machine.memory = Some(number(text)?),
            Some(("limit", text)) => case.machine.limit = Some(number(text)?),
            Some(("cpus", text)) => {
                case.machine.cpus = Some(text.parse().map_err(|_| "cpus is a number")?);
            }
            _ => options.push(line),
        }
    }
    if case.release == Release(0) {
        return Err("it names no jdk".to_owned());
    }
    case.line = CommandLine::parse(&options.join(" "));
    Ok(case)
}

/// How a case differs from its casebook; `None` where it does not.
fn judged(rule: &str, text: &str) -> Result<Option<String>, String> {
    let case = case(text)?;
    if let Some(to) = rule.strip_prefix(WAY) {
        let to = Release::parse(to).ok_or("there is no such JDK")?;
        return moved(&case, to, text);
    }
    if OPTION_RULES.iter().all(|judgement| judgement.id != rule) {
        return Err("there is no such judgement".to_owned());
    }
    let mut said = judge(&case);
    said.retain(|finding: &Finding| finding.rule == rule);
    Ok(Expectation::parse(text)?.differs(&said))
}

fn moved(case: &Case, to: Release, text: &str) -> Result<Option<String>, String> {
    let moved = migrate(&case.line, case.release, to);
    let becomes = match moved.line.to_string() {
        line if line == case.line.to_string() => "unchanged".to_owned(),
        line if line.is_empty() => "nothing".to_owned(),
        line => line,
    };
    let (mut expected, mut because) = (Vec::new(), Vec::new());
    for line in block(text, "becomes")? {
        match line.strip_prefix("because: ") {
            Some(words) => because.push(quoted(words)?.to_owned()),
            None => expected.push(line),
        }
    }
    let reasons: Vec<&str> = moved.steps.iter().map(|step| step.why.as_str()).collect();
    let has_reason = |words: &String| reasons.iter().any(|why| why.contains(words));
    if expected.join(" ") == becomes && because.iter().all(has_reason) {
        return Ok(None);
    }
    Ok(Some(format!(
        "    expected {expected:?} because {because:?}\n    became   {becomes}\n    because  {reasons:#?}\n"
    )))
}

#[test]
fn every_case_comes_out_as_its_casebook_says() {
    let mut offenders = Vec::new();
    for Book { rule, cases } in casebook::books(&folder()) {
        for (title, text) in cases {
            let difference =
                judged(&rule, &text).unwrap_or_else(|why| Some(format!("    {why}\n")));
            if let Some(difference) = difference {
                offenders.push(format!("cases/{rule}.md: {title}\n{difference}"));
            }
        }
    }
    assert!(
        offenders.is_empty(),
        "cases that come out otherwise:
{}",
        offenders.concat()
    );
}

#[test]
fn every_judgement_has_a_casebook_with_a_finding_a_clear_and_a_near_miss() {
    let books = casebook::books(&folder());
    let mut offenders = Vec::new();
    for id in OPTION_RULES.iter().map(|judgement| judgement.id) {
        let Some(book) = books.iter().find(|book| book.rule == id) else {
            offenders.push(format!("{id}: no casebook"));
            continue;
        };
        let expected = |(_, text): &(String, String)| Expectation::parse(text).ok();
        let shown: BTreeSet<Outcome> = book
            .cases
            .iter()
            .filter_map(expected)
            .flat_map(|expectation| expectation.findings)
            .map(|expected: Expected| expected.outcome())
            .collect();
        if !shown.contains(&Outcome::Clear) || shown.len() < 2 || book.cases.len() < 3 {
            offenders.push(format!(
                "{id}: {} cases that show {shown:?}",
                book.cases.len()
            ));
        }
    }
    for to in Release::known().filter(|to| *to >= Release(17)) {
        let way = format!("{WAY}{}", to.0);
        if books.iter().all(|book| book.rule != way) {
            offenders.push(format!("{way}: no casebook"));
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}
