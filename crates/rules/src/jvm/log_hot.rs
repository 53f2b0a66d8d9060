//! `log-hot`: a log framework takes much of the CPU time of a service.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::recordings;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the stack samples in a log framework",
    value: 0.10,
    origin: "half of the 20 % that the reference bank hosts had",
};

const FEW: Threshold = Threshold {
    name: "stack samples below which a share is chance",
    value: 100.0,
    origin: "own guess: the standard error of 10 % is 3 % then",
};

const MANY: Threshold = Threshold {
    name: "the same, from which on confidence is high",
    value: 1000.0,
    origin: "own guess: the standard error of 10 % is 1 % then",
};

pub(crate) static RULE: Rule = Rule {
    id: "log-hot",
    topic: "jvm",
    summary: "a log framework takes much of the CPU time",
    needs: &[
        &keys::RECORDING_LOGGING,
        &keys::RECORDING_LOGGING_AT,
        &keys::RECORDING_SAMPLES,
    ],
    thresholds: &[SHARE, FEW, MANY],
    knobs: &["log.guard"],
    measure: Some(Measure::more(&keys::RECORDING_LOGGING)),
    doc: Doc {
        looks_for: "More than a tenth of the stack samples of a recording in a log framework (log4j, logback, slf4j, java.util.logging, \
            jboss-logging): the innermost frames are of the framework, or of the JDK beneath it.",
        hurts: "CPU time of requests goes into formatting and writing of lines, under a lock that only one thread holds. The reference bank \
            hosts spent 20 % of their CPU time on it.",
        todo: "Read the caller that the finding names. Guard statements that build their message (`if (log.isDebugEnabled())`), raise the \
            level, turn off the location (%L, %M, %C need a stack trace for each line), buffer, or write in another thread.",
        wrong: "Samples see Java code that runs: time that threads wait for the lock of an appender is not in the share, lock-contended \
            shows it. A burst of debug output during a short recording is not the daily load.",
        sources: "The reference bank hosts: 20 % in two systems; log4j 1.2.17, WriterAppender.subAppend.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    recordings::each(evidence, &keys::RECORDING_SAMPLES, of_recording)
}

fn of_recording(evidence: &Evidence, recording: &Subject) -> Result<Finding, Missing> {
    let samples = evidence.quantity(&keys::RECORDING_SAMPLES, recording)?;
    let share = evidence.quantity(&keys::RECORDING_LOGGING, recording)?;
    let all = say::count(samples.value, "stack sample");
    if samples.value < FEW.value {
        let sentence = format!("{all} in the recording: too few to judge");
        return Ok(Finding::clear(sentence).cite(samples.reading));
    }
    let mut sentence = format!(
        "logging takes {} of the CPU time of {all}",
        say::percent(share.value)
    );
    if share.value <= SHARE.value {
        return Ok(Finding::clear(sentence)
            .below(share.value, SHARE.value)
            .cite(share.reading));
    }
    let at = evidence.words(&keys::RECORDING_LOGGING_AT, recording).ok();
    if let Some(at) = at {
        sentence = format!("{sentence}: {}", at.value);
    }
    let is_sure = samples.value >= MANY.value;
    let finding = Finding::act(recording, sentence)
        .severity(if share.value > 2.0 * SHARE.value {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(if is_sure { Grade::High } else { Grade::Medium })
        .cite(share.reading)
        .consider("log.guard")
        .expect(format!(
            "at most {} of the CPU time of running threads",
            say::percent(share.value)
        ))
        .refuted_by("the same load with the log level at ERROR takes as much CPU time per request");
    Ok(match at {
        Some(at) => finding.cite(at.reading),
        None => finding,
    })
}
