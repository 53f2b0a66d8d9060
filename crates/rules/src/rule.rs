//! A rule: which problem it looks for, from which threshold on, and how it can be wrong.

use rungwise_model::check::{Finding, Lack, Outcome};
use rungwise_model::evidence::{Evidence, Key, Missing};

use crate::measure::Measure;

/// One problem.
#[derive(Debug)]
pub struct Rule {
    /// Names the problem, read aloud after "found": `udp-socket-lock`. Never changes once published.
    pub id: &'static str,
    /// Subject matter, and folder of its file.
    pub topic: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The keys it reads.
    pub needs: &'static [&'static Key],
    /// Its thresholds, each with its origin. The function reads them from here.
    pub thresholds: &'static [Threshold],
    /// Knobs that may help, most useful first. A finding names those that apply.
    pub knobs: &'static [&'static str],
    /// The one number that a change is judged by; none for a rule about text, about a setting, or about what is missing.
    pub(crate) measure: Option<Measure>,
    /// Its page.
    pub doc: Doc,
    /// Same evidence in, same findings out. At least one finding, or what is missing.
    pub judge: fn(&Evidence) -> Judgement,
}

/// The keys of a rule: its own, then those that shared code reads for it.
macro_rules! needs {
    ([$($own:expr),* $(,)?] $(, $shared:path)+ $(,)?) => {{
        const LISTS: $crate::rule::Lists = &[&[$($own),*] $(, $shared)+];
        const LENGTH: usize = $crate::rule::length(LISTS);
        &$crate::rule::joined::<LENGTH>(LISTS)
    }};
}
pub(crate) use needs;

pub(crate) type Lists = &'static [&'static [&'static Key]];

pub(crate) const fn length(lists: Lists) -> usize {
    let (mut length, mut list) = (0, 0);
    while list < lists.len() {
        length += lists[list].len();
        list += 1;
    }
    length
}

pub(crate) const fn joined<const N: usize>(lists: Lists) -> [&'static Key; N] {
    let mut all = [lists[0][0]; N];
    let (mut length, mut list) = (0, 0);
    while list < lists.len() {
        let mut key = 0;
        while key < lists[list].len() {
            all[length] = lists[list][key];
            length += 1;
            key += 1;
        }
        list += 1;
    }
    all
}

/// What a rule returns: findings (of any outcome but undecided), or the evidence that it lacks.
pub type Judgement = Result<Vec<Finding>, Missing>;

/// The boundary between healthy and not.
#[derive(Debug)]
pub struct Threshold {
    /// What is compared.
    pub name: &'static str,
    /// The threshold, in the unit of the key.
    pub value: f64,
    /// Where it comes from, or that it is our own guess.
    pub origin: &'static str,
}

/// The five parts of a rule's page.
#[derive(Debug)]
pub struct Doc {
    /// What it looks for.
    pub looks_for: &'static str,
    /// Why it hurts.
    pub hurts: &'static str,
    /// What to do.
    pub todo: &'static str,
    /// How it can be wrong.
    pub wrong: &'static str,
    /// Sources.
    pub sources: &'static str,
}

impl Rule {
    /// Its findings in this evidence: always at least one.
    pub fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        let mut findings = match (self.judge)(evidence) {
            Ok(findings) => findings,
            Err(missing) => vec![Finding::undecided(vec![Lack::from(missing)])],
        };
        debug_assert!(!findings.is_empty(), "{} is silent", self.id);
        for finding in &mut findings {
            self.id.clone_into(&mut finding.rule);
            debug_assert!(
                finding.outcome != Outcome::Act || !finding.evidence.is_empty(),
                "{} acts without evidence",
                self.id
            );
        }
        findings
    }
}
