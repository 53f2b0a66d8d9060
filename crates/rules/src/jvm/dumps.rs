//! The thread dumps of one JVM, as the rules see them.

use rungwise_model::check::{Finding, Lack};
use rungwise_model::evidence::{Evidence, Missing, Quantity, Subject, Words};
use rungwise_model::keys;

use crate::Judgement;

/// Judges each JVM that has dumps; missing if there is none. A JVM that lacks what the rule needs is undecided.
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

/// Threads that wait for one resource that no thread owns.
pub(super) struct Wait<'e> {
    pub(super) subject: &'e Subject,
    pub(super) kind: &'e str,
    pub(super) what: Words<'e>,
    /// Threads of the last dump.
    pub(super) count: Quantity<'e>,
    /// Threads that may release it.
    pub(super) past: Option<Words<'e>>,
    /// Dumps in which such threads were counted.
    pub(super) dumps: usize,
    /// Threads with something to do, mean of the dumps; at least those that wait.
    business: f64,
}

/// The waits of this JVM.
pub(super) fn waits<'e>(evidence: &'e Evidence, jvm: &Subject) -> Result<Vec<Wait<'e>>, Missing> {
    let groups = evidence.quantity(&keys::THREADS_SHARED_WAITS, jvm)?;
    if groups.value < 1.0 {
        return Ok(Vec::new());
    }
    // Files before JDK 25 have no states: the waiting threads are known, the number of busy ones is not.
    let business = evidence.quantity(&keys::THREADS_BUSINESS, jvm);
    let business = business.map_or(0.0, |business| business.value);
    let of_jvm = format!("{}:", jvm.name());
    let all = evidence.each_words(&keys::THREADS_WAIT)?;
    all.into_iter()
        .filter(|(subject, _)| subject.name().starts_with(&of_jvm))
        .map(|(subject, what)| {
            let count = evidence.quantity(&keys::THREADS_WAIT_WAITERS, subject)?;
            let kind = evidence.words(&keys::THREADS_WAIT_KIND, subject)?;
            Ok(Wait {
                subject,
                kind: kind.value,
                what,
                past: evidence.words(&keys::THREADS_WAIT_HOLDERS, subject).ok(),
                dumps: count.reading.series.len(),
                business: business.max(count.value),
                count,
            })
        })
        .collect()
}

impl Wait<'_> {
    /// Threads that wait in every dump, at least.
    pub(super) fn lasting(&self) -> f64 {
        let series = self.count.reading.series.iter().copied();
        series.fold(self.count.value, f64::min)
    }

    /// This number of threads as a share of those with something to do.
    pub(super) fn share_of(&self, threads: f64) -> f64 {
        threads / self.business.max(1.0)
    }

    /// The share that waits in every dump.
    pub(super) fn lasting_share(&self) -> f64 {
        self.share_of(self.lasting())
    }

    /// The threads that may release it, as the end of a sentence.
    pub(super) fn holders(&self) -> String {
        let of_limit = matches!(self.kind, "connection" | "semaphore");
        if let Some(past) = self.past {
            let role = if of_limit {
                "likely holders"
            } else {
                "may release it"
            };
            return format!("; {role}: {}", past.value);
        }
        let unknown = match self.kind {
            _ if of_limit => return "; no likely holder, so it may have leaked".to_owned(),
            "latch" => "counts it down",
            "future" => "completes it",
            "task" => "computes it",
            "full-queue" => "takes from it",
            "phaser" | "barrier" | "exchanger" => "is missing",
            _ => return String::new(),
        };
        format!("; the dumps do not record which thread {unknown}")
    }
}
