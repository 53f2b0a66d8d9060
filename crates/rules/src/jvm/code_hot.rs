//! `code-hot`: one kind of library code takes much of the CPU time of a service.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::recordings;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the stack samples in one kind of library code",
    value: 0.20,
    origin: "own guess; the reference case of serialization took 10 to 30 % of the CPU",
};

const FEW: Threshold = Threshold {
    name: "stack samples below which a share is chance",
    value: 100.0,
    origin: "own guess: the standard error of 20 % is 4 % then",
};

pub(crate) static RULE: Rule = Rule {
    id: "code-hot",
    topic: "jvm",
    summary: "one kind of library code takes much of the CPU time",
    needs: &[
        &keys::RECORDING_CODE,
        &keys::RECORDING_CODE_AT,
        &keys::RECORDING_CODE_KIND,
        &keys::RECORDING_SAMPLES,
    ],
    thresholds: &[SHARE, FEW],
    knobs: &[],
    measure: Some(Measure::more(&keys::RECORDING_CODE)),
    doc: Doc {
        looks_for: "More than a fifth of the stack samples of a recording in one of: object serialization, JSON, JDBC drivers and connection \
            pools, TLS, XML, compression, regular expressions.",
        hurts: "The CPU time of requests goes into one step that can often be done less often, or cheaper, without a change of the business \
            code.",
        todo: "Read the caller that the finding names. Serialization: another format, fewer fields. TLS: keep connections alive, resume \
            sessions. Regular expressions: compile a Pattern once. Compression: a lower level, or none within a data centre. JDBC: fewer \
            rows and columns, batches, prepared statements.",
        wrong: "A service may exist for that step: a gateway that ends TLS, an exporter that writes XML. Samples see Java code that runs; \
            waits for a database are in the tables of I/O and not in this share.",
        sources: "Packages of the libraries; docs/jfr.md lists them.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    recordings::each(evidence, &keys::RECORDING_SAMPLES, of_recording)
}

fn of_recording(evidence: &Evidence, recording: &Subject) -> Result<Finding, Missing> {
    let samples = evidence.quantity(&keys::RECORDING_SAMPLES, recording)?;
    let share = evidence.quantity(&keys::RECORDING_CODE, recording)?;
    let all = say::count(samples.value, "stack sample");
    if samples.value < FEW.value {
        let sentence = format!("{all} in the recording: too few to judge");
        return Ok(Finding::clear(sentence).cite(samples.reading));
    }
    let words = |key| evidence.words(key, recording).ok();
    let kind = words(&keys::RECORDING_CODE_KIND).map_or("library code", |kind| kind.value);
    let mut sentence = format!(
        "{kind} takes {} of the CPU time of {all}",
        say::percent(share.value)
    );
    if share.value <= SHARE.value {
        return Ok(Finding::clear(sentence)
            .below(share.value, SHARE.value)
            .cite(share.reading));
    }
    let at = words(&keys::RECORDING_CODE_AT);
    if let Some(at) = at {
        sentence = format!("{sentence}: {}", at.value);
    }
    let finding = Finding::watch(recording, sentence)
        .severity(Grade::Medium)
        .confidence(Grade::Medium)
        .cite(share.reading)
        .expect(format!(
            "at most {} of the CPU time of running threads",
            say::percent(share.value)
        ))
        .refuted_by("the service exists for this step, or a CPU profile shows a smaller share");
    Ok(match at {
        Some(at) => finding.cite(at.reading),
        None => finding,
    })
}
