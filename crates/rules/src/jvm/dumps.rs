//! The thread dumps of one JVM, as the rules see them.

use rungwise_model::check::{Finding, Lack};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use crate::Judgement;

/// Judges each JVM that there are dumps of; missing if there is none. One that lacks what the rule needs is undecided.
pub(super) fn each(
    evidence: &Evidence,
    judge: impl Fn(&Evidence, &Subject) -> Result<Vec<Finding>, Missing>,
) -> Judgement {
    let mut findings = Vec::new();
    for (jvm, _) in evidence.each(&keys::THREADS_DUMPS)? {
        let found = judge(evidence, jvm)
            .unwrap_or_else(|missing| vec![Finding::undecided(vec![Lack::from(missing)])]);
        findings.extend(found.into_iter().map(|mut finding| {
            if finding.subject == Subject::host().to_string() {
                finding.subject = jvm.to_string();
            }
            finding
        }));
    }
    Ok(findings)
}
