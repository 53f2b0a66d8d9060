//! Checks of a command line: what a JVM of that release does with it, and what its owner should know.
//!
//! Each judgement is one entry of [`OPTION_RULES`] and reports on every command line: findings, no findings, or what is
//! missing to decide. How the JVM treats a flag comes from the table of its release; advice has a lower confidence and a
//! reason.

mod advice;
mod collector;
mod combined;
mod known;
mod log;
mod memory;
mod modules;
mod property;
mod recording;
mod refused;
mod spelled;
mod start;

use rungwise_model::check::{Finding, Lack, Line, Recommendation};
use rungwise_model::evidence::Subject;

pub use collector::Collector;
pub(crate) use collector::SWITCHES as COLLECTOR_SWITCHES;
pub use start::{Start, start};

use crate::between;
use crate::command_line::{CommandLine, Given, Origin};
use crate::machine::Machine;
use crate::release::Release;
use crate::table::{Flag, Table};

/// What is judged.
#[derive(Clone, Debug)]
pub struct Case {
    /// The JDK that runs it.
    pub release: Release,
    /// Its update, if known, of a JDK up to 8: 504 of 8u504.
    pub update: Option<u32>,
    /// Its options.
    pub line: CommandLine,
    /// What it runs on.
    pub machine: Machine,
}

/// A check of every command line, with its page.
#[derive(Debug)]
pub struct OptionRule {
    /// Names what is wrong, read aloud after "found".
    pub id: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it looks for, and what happens then.
    pub looks_for: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// How it can be wrong.
    pub wrong: &'static str,
    /// Where it is from.
    pub sources: &'static str,
    judge: fn(&Case) -> Vec<Finding>,
}

impl OptionRule {
    /// Its page, Markdown.
    pub fn page(&self) -> String {
        format!(
            "# {}\n\n{}.\n\n## What it looks for\n\n{}\n\n## What to do\n\n{}\n\n## How it can be wrong\n\n{}\n\n## Sources\n\n{}\n",
            self.id, self.summary, self.looks_for, self.remedy, self.wrong, self.sources
        )
    }
}

/// All judgements, in the order in which they are reported within an outcome.
pub const OPTION_RULES: &[&OptionRule] = &[
    &known::REMOVED,
    &known::UNKNOWN,
    &spelled::REFUSED,
    &known::LOCKED,
    &known::WRONG_VALUE,
    &collector::TWO_COLLECTORS,
    &combined::SIZES_CONTRADICT,
    &memory::HEAP_EXCEEDS_MEMORY,
    &memory::HEAP_PAST_32G,
    &advice::NEVER_PROMOTED,
    &memory::TOO_MANY_GC_THREADS,
    &known::IGNORED,
    &known::DEPRECATED,
    &combined::WITHOUT_EFFECT,
    &collector::OF_ANOTHER_COLLECTOR,
    &combined::OVERRIDDEN,
    &combined::REDUNDANT,
    &collector::YOUNG_SIZE_FIXED,
    &advice::CMS_START_GUESSED,
    &advice::ZGC_OF_ONE_GENERATION,
    &advice::HUGE_PAGES_LATE,
    &memory::HEAP_NOT_SET,
    &advice::GC_LOG_MISSING,
    &advice::GC_LOG_UNBOUNDED,
    &advice::HEAP_DUMP_MISSING,
    &known::UNSEEN,
    &spelled::NOT_JUDGED,
];

/// The findings of all judgements: act first, then watch, undecided, clear; within each the most severe first.
pub fn judge(case: &Case) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let case = &case.as_read();
    for judgement in OPTION_RULES {
        let said = (judgement.judge)(case).into_iter().map(|mut finding| {
            judgement.id.clone_into(&mut finding.rule);
            finding
        });
        findings.extend(said);
    }
    findings.sort_by_key(|finding| (finding.outcome, std::cmp::Reverse(finding.severity)));
    findings
}

impl Case {
    fn table(&self) -> &'static Table {
        self.release.table()
    }

    /// What the JDK knows of an option that sets a flag, or of one that is no flag.
    fn entry(&self, given: &Given) -> Option<&'static Flag> {
        entry_of(self.release, given)
    }

    /// The case with the options that the launcher of this JDK reads: that of JDK 8 knows no `JDK_JAVA_OPTIONS`.
    fn as_read(&self) -> Self {
        let mut case = self.clone();
        if case.release <= Release(8) {
            let options = &mut case.line.options;
            options.retain(|given| given.origin != Origin::LauncherOptions);
        }
        case
    }

    /// The JVM ignores flags that it does not know.
    fn ignores_unknown(&self) -> bool {
        self.line.is_on("IgnoreUnrecognizedVMOptions")
    }

    /// What the JVM itself said of the flag when the table was made.
    fn words(&self, flag: &Flag) -> Line {
        let table = self.table();
        let of_table = table
            .find(flag.name)
            .is_none_or(|own| own.words == flag.words);
        Line {
            source: if of_table {
                format!("{} ({})", table.release, table.source)
            } else {
                between::SOURCE.to_owned()
            },
            line: flag.words.to_owned(),
        }
    }
}

/// What a JDK knows of an option. Some options are written like flags and are none: `-XX:+AggressiveHeap` of JDK 8.
pub(crate) fn entry(table: &'static Table, given: &Given) -> Option<&'static Flag> {
    if given.is_flag() {
        let name = &given.sets.first()?.name;
        return table
            .find(name)
            .or_else(|| table.find_option(&given.written));
    }
    table.find_option(&given.written)
}

/// The same of any release; between two tables by the dates that are known.
pub(crate) fn entry_of(release: Release, given: &Given) -> Option<&'static Flag> {
    between::taken(release, entry(release.table(), given)?)
}

/// What a person calls the option: `-XX:MaxPermSize`, `-Xmx`.
fn called(given: &Given) -> String {
    match given.sets.first() {
        Some(setting) if given.is_flag() => format!("-XX:{}", setting.name),
        Some(_) => given.written.chars().take(4).collect(),
        None => {
            let end = given
                .written
                .find([':', '=', ' '])
                .unwrap_or(given.written.len());
            given.written[..end].to_owned()
        }
    }
}

fn at(mut finding: Finding, given: &Given) -> Finding {
    finding.subject = format!("option/{}", called(given));
    cite(finding, given)
}

fn cite(mut finding: Finding, given: &Given) -> Finding {
    finding.evidence.push(Line {
        source: given.origin.to_string(),
        line: given.written.clone(),
    });
    finding
}

/// It costs now: the JVM does not start, or does something else than is written.
fn act(given: &Given, sentence: impl Into<String>) -> Finding {
    at(Finding::act(&Subject::host(), sentence), given)
}

/// Worth knowing.
fn watch(given: &Given, sentence: impl Into<String>) -> Finding {
    at(Finding::watch(&Subject::host(), sentence), given)
}

/// Worth knowing of the command line as a whole.
fn watch_all(sentence: impl Into<String>) -> Finding {
    let mut finding = Finding::watch(&Subject::host(), sentence);
    "command-line".clone_into(&mut finding.subject);
    finding
}

fn clear(sentence: impl Into<String>) -> Vec<Finding> {
    let mut finding = Finding::clear(sentence);
    "command-line".clone_into(&mut finding.subject);
    vec![finding]
}

fn undecided(key: &str, reason: impl Into<String>, remedy: impl Into<String>) -> Vec<Finding> {
    let mut finding = Finding::undecided(vec![Lack {
        key: key.to_owned(),
        reason: reason.into(),
        remedy: remedy.into(),
    }]);
    "command-line".clone_into(&mut finding.subject);
    vec![finding]
}

/// These, or that there is nothing.
fn or_clear(findings: Vec<Finding>, sentence: &str) -> Vec<Finding> {
    if findings.is_empty() {
        clear(sentence)
    } else {
        findings
    }
}

/// What to write instead of an option; `TAKE_OUT` for nothing.
fn instead(mut finding: Finding, given: &Given, to: impl Into<String>) -> Finding {
    finding.knobs.push(Recommendation {
        id: called(given),
        device: None,
        from: Some(given.written.clone()),
        to: Some(to.into()),
    });
    finding
}

/// An option to add.
fn add(mut finding: Finding, option: &str) -> Finding {
    let given = Given::new(option, Origin::Line);
    finding.knobs.push(Recommendation {
        id: called(&given),
        device: None,
        from: Some("not given".to_owned()),
        to: Some(option.to_owned()),
    });
    finding
}

/// The wish to take an option out.
pub(crate) const TAKE_OUT: &str = "remove it";

/// Some judgement found something of this rule; for tests.
#[cfg(test)]
pub(crate) fn outcome_of(
    release: u8,
    line: &str,
    machine: Machine,
    rule: &str,
) -> (rungwise_model::check::Outcome, Vec<String>) {
    assert!(
        OPTION_RULES.iter().any(|judgement| judgement.id == rule),
        "{rule}"
    );
    let case = Case {
        release: Release(release),
        update: None,
        line: CommandLine::parse(line),
        machine,
    };
    let said: Vec<Finding> = judge(&case)
        .into_iter()
        .filter(|finding| finding.rule == rule)
        .collect();
    let sentences = said
        .iter()
        .map(|finding| finding.sentence.clone())
        .collect();
    (said[0].outcome, sentences)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rungwise_model::check::{Grade, Outcome};

    use super::*;

    #[test]
    fn every_judgement_has_its_own_id_and_a_full_page() {
        let mut ids = BTreeSet::new();
        for judgement in OPTION_RULES {
            assert!(ids.insert(judgement.id), "{} twice", judgement.id);
            let texts = [
                judgement.summary,
                judgement.looks_for,
                judgement.remedy,
                judgement.wrong,
                judgement.sources,
            ];
            for text in texts {
                assert!(text.len() > 10, "{}: '{text}'", judgement.id);
            }
            assert!(!judgement.summary.ends_with('.'), "{}", judgement.id);
        }
    }

    #[test]
    fn every_judgement_says_something_of_every_command_line() {
        for release in Release::known() {
            for line in ["", "-Xmx1g", "-XX:+UseG1GC -XX:Foo=1 @file -Xincgc"] {
                let case = Case {
                    release,
                    update: None,
                    line: CommandLine::parse(line),
                    machine: Machine::default(),
                };
                let findings = judge(&case);
                for judgement in OPTION_RULES {
                    assert!(
                        findings.iter().any(|finding| finding.rule == judgement.id),
                        "{} of {line}",
                        judgement.id
                    );
                }
                for finding in findings
                    .iter()
                    .filter(|finding| finding.outcome <= Outcome::Watch)
                {
                    let has_evidence =
                        !finding.evidence.is_empty() || finding.subject == "command-line";
                    assert!(has_evidence, "{}: no evidence", finding.rule);
                }
            }
        }
    }

    #[test]
    fn what_stops_the_jvm_is_reported_first() {
        let case = Case {
            release: Release(17),
            update: None,
            line: CommandLine::parse("-Xmx1g -XX:+UseBiasedLocking -XX:MaxPermSize=64m"),
            machine: Machine::default(),
        };
        let first = judge(&case).remove(0);
        assert_eq!((first.outcome, first.severity), (Outcome::Act, Grade::High));
        assert_eq!(first.subject, "option/-XX:MaxPermSize");
    }
}
