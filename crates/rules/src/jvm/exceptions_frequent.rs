//! `exceptions-frequent`: a service creates exceptions as a matter of course.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::recordings;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const OFTEN: Threshold = Threshold {
    name: "exceptions per second",
    value: 5000.0,
    origin: "JDK Mission Control, ExceptionRule: information from 5000 on",
};

const VERY_OFTEN: Threshold = Threshold {
    name: "the same, critical",
    value: 10_000.0,
    origin: "JDK Mission Control, ExceptionRule: a warning from 10000 on",
};

pub(crate) static RULE: Rule = Rule {
    id: "exceptions-frequent",
    topic: "jvm",
    summary: "exceptions are created thousands of times per second",
    needs: &[&keys::RECORDING_THROWN, &keys::RECORDING_THROWN_CLASS],
    thresholds: &[OFTEN, VERY_OFTEN],
    knobs: &[],
    measure: Some(Measure::more(&keys::RECORDING_THROWN)),
    doc: Doc {
        looks_for: "More than 5000 exceptions and errors per second, by the counter of the JVM; where it is not recorded, by the events of \
            each exception.",
        hurts: "An exception walks the stack when it is created: microseconds of CPU time and some kilobytes of garbage each, more with deep \
            stacks. A service that throws for each request often hides a fault as well.",
        todo: "Find the class and the place: record with `jcmd PID JFR.start settings=profile jdk.JavaExceptionThrow#enabled=true`. Test \
            instead of catching, return an empty result, or make the exception without a stack trace where it only steers.",
        wrong: "The mean over the recording hides a burst. Exceptions of some libraries have no stack trace and cost little. The JVM itself \
            counts exceptions that no program sees, as during the start.",
        sources: "openjdk/jmc, ExceptionRule: exception.info.limit 5000, exception.warning.limit 10000.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    recordings::each(evidence, &keys::RECORDING_THROWN, of_recording)
}

fn of_recording(evidence: &Evidence, recording: &Subject) -> Result<Finding, Missing> {
    let rate = evidence.quantity(&keys::RECORDING_THROWN, recording)?;
    let mut sentence = format!("{} exceptions are created", say::rate(rate.value));
    if rate.value <= OFTEN.value {
        return Ok(Finding::clear(sentence)
            .below(rate.value, OFTEN.value)
            .cite(rate.reading));
    }
    let class = evidence
        .words(&keys::RECORDING_THROWN_CLASS, recording)
        .ok();
    if let Some(class) = class {
        sentence = format!("{sentence}, most often {}", class.value);
    }
    let finding = if rate.value > VERY_OFTEN.value {
        Finding::act(recording, sentence).severity(Grade::Medium)
    } else {
        Finding::watch(recording, sentence).severity(Grade::Low)
    };
    let finding = finding
        .confidence(Grade::High)
        .cite(rate.reading)
        .refuted_by("a CPU profile shows little time in Throwable.fillInStackTrace");
    Ok(match class {
        Some(class) => finding.cite(class.reading),
        None => finding,
    })
}
