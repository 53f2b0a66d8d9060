//! The answer to one question: does a JVM of this release start with these options?

use rungwise_model::check::{Finding, Grade, Outcome};

use super::{
    Case, advice, collector, combined, judge, known,
    spelled::{self, NOT_JUDGED},
};

/// Whether the JVM starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It does, as far as its options go.
    Yes,
    /// It refuses, for this reason.
    No(String),
    /// Not judged: the options on which it depends.
    Unknown(Vec<String>),
}

/// Judgements whose severest findings are refusals to start.
const STOPS: [&str; 8] = [
    known::REMOVED.id,
    known::UNKNOWN.id,
    known::LOCKED.id,
    known::WRONG_VALUE.id,
    spelled::REFUSED.id,
    collector::TWO_COLLECTORS.id,
    combined::SIZES_CONTRADICT.id,
    advice::NEVER_PROMOTED.id,
];

impl Start {
    /// The answer that findings of [`judge`] hold.
    pub fn from_findings(findings: &[Finding]) -> Self {
        let stops = |finding: &&Finding| {
            STOPS.contains(&finding.rule.as_str())
                && finding.outcome == Outcome::Act
                && finding.severity == Grade::High
        };
        if let Some(first) = findings.iter().find(stops) {
            return Self::No(first.sentence.clone());
        }
        let of = |rule: &'static str| {
            let findings = findings.iter().filter(move |finding| finding.rule == rule);
            findings.flat_map(|finding| &finding.missing)
        };
        let options = of(NOT_JUDGED.id).map(|lack| &lack.key);
        let files = of(known::UNSEEN.id).map(|lack| &lack.reason);
        let unknown: Vec<String> = options.chain(files).cloned().collect();
        if unknown.is_empty() {
            Self::Yes
        } else {
            Self::Unknown(unknown)
        }
    }
}

/// Whether a JVM starts with the options of the case.
pub fn start(case: &Case) -> Start {
    Start::from_findings(&judge(case))
}
