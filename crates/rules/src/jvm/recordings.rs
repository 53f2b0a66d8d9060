//! Flight Recorder files, as the rules see them.

use rungwise_model::check::{Finding, Lack};
use rungwise_model::evidence::{Evidence, Key, Missing, Subject};

use crate::Judgement;

/// Judges each recording that has this reading; missing if there is none. One that lacks what the rule needs is undecided.
pub(super) fn each(
    evidence: &Evidence,
    key: &'static Key,
    judge: impl Fn(&Evidence, &Subject) -> Result<Finding, Missing>,
) -> Judgement {
    let recordings = evidence.each(key)?;
    let findings = recordings.iter().map(|(recording, _)| {
        let found = judge(evidence, recording);
        let mut finding =
            found.unwrap_or_else(|missing| Finding::undecided(vec![Lack::from(missing)]));
        if finding.subject == Subject::host().to_string() {
            finding.subject = recording.to_string();
        }
        finding
    });
    Ok(findings.collect())
}
