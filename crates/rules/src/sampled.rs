//! Shares of stack samples: when there are enough of them, how certain a share is, and whether it costs anything.
//!
//! A share of busy samples says what busy CPUs do. On a machine with idle CPUs it costs nothing, so such
//! findings act only where a CPU is busy. What a change gains is another question: in the reference ladder 2.5
//! % of CPU gained 6.7 % and 4.9 % gained 2.6 %, so no gain is ever estimated from a share.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Absence, Evidence, Key, Missing, Quantity, Subject};
use rungwise_model::keys;

use crate::{Threshold, pick, say};

/// Fewer samples are not judged.
pub(crate) const SAMPLES: Threshold = Threshold {
    name: "busy samples",
    value: 500.0,
    origin: "definition of stack.samples: a share of 3 % of 500 is 15 samples, accurate to about a quarter",
};

/// Below it a CPU has time to spare.
pub(crate) const BUSY: Threshold = Threshold {
    name: "busy share of the busiest CPU",
    value: 0.5,
    origin: "own guess: below half load, a few percent of CPU time are no bottleneck",
};

/// A share of samples with its number of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled<'a> {
    /// The share.
    pub(crate) share: Quantity<'a>,
    /// Of how many samples.
    pub(crate) samples: Quantity<'a>,
}

/// A share of the busy samples.
pub(crate) fn share<'a>(evidence: &'a Evidence, key: &'static Key) -> Result<Sampled<'a>, Missing> {
    let samples = evidence.host(&keys::STACK_SAMPLES)?;
    if samples.value < SAMPLES.value {
        return Err(too_few(&keys::STACK_SAMPLES, samples.value, SAMPLES.value));
    }
    Ok(Sampled {
        share: evidence.host(key)?,
        samples,
    })
}

/// Why a share of so few samples is not judged.
pub(crate) fn too_few(key: &'static Key, samples: f64, least: f64) -> Missing {
    Missing {
        key: key.id,
        subject: Subject::host(),
        why: Absence::because(format!(
            "only {} taken; a share needs at least {least:.0}",
            say::count(samples, "sample")
        ))
        .remedy("run it while the service is under load, or use a longer window (--for 30s)"),
    }
}

impl<'a> Sampled<'a> {
    /// High where the share is above `line` by more than the sampling error, else medium.
    ///
    /// That is, the normal approximation of the binomial distribution puts the share above the line with 99 %
    /// (2.33 standard errors, one side).
    pub(crate) fn confidence(&self, line: f64) -> Grade {
        let share = self.share.value;
        let error = (share * (1.0 - share).max(0.0) / self.samples.value.max(1.0)).sqrt();
        if share - 2.33 * error > line {
            Grade::High
        } else {
            Grade::Medium
        }
    }

    /// No such problem: the share is at or below `line`.
    pub(crate) fn clear(&self, sentence: impl Into<String>, line: f64) -> Finding {
        Finding::clear(sentence)
            .below(self.share.value, line)
            .cite(self.share.reading)
    }

    /// A cost to the host: act where a CPU is busy, watch where none is. Graded by the share.
    pub(crate) fn cost(
        &self,
        evidence: &'a Evidence,
        sentence: &str,
        line: f64,
    ) -> Result<Finding, Missing> {
        self.cost_at(evidence, &Subject::host(), sentence, line)
    }

    /// The same, for a subject other than the host.
    pub(crate) fn cost_at(
        &self,
        evidence: &'a Evidence,
        subject: &Subject,
        sentence: &str,
        line: f64,
    ) -> Result<Finding, Missing> {
        let (cpu, busy) = pick::largest(evidence, &keys::CPU_BUSY)?;
        let finding = if busy.value > BUSY.value {
            Finding::act(subject, sentence).severity(severity(self.share.value))
        } else {
            let spare = format!(
                "{sentence}; no cost now: the busiest CPU ({}) is only {} busy",
                cpu.name(),
                say::percent(busy.value)
            );
            Finding::watch(subject, spare).severity(Grade::Low)
        };
        Ok(finding
            .confidence(self.confidence(line))
            .cite(self.share.reading)
            .cite(self.samples.reading)
            .cite(busy.reading))
    }

    /// Worth knowing, whether or not a CPU is busy.
    pub(crate) fn watch(&self, subject: &Subject, sentence: &str, line: f64) -> Finding {
        Finding::watch(subject, sentence)
            .severity(Grade::Low)
            .confidence(self.confidence(line))
            .cite(self.share.reading)
            .cite(self.samples.reading)
    }
}

/// How severe a share of busy CPU is: low below 5 %, high from 20 % on (own grading).
pub(crate) fn severity(share: f64) -> Grade {
    match share {
        share if share >= 0.20 => Grade::High,
        share if share >= 0.05 => Grade::Medium,
        _ => Grade::Low,
    }
}
