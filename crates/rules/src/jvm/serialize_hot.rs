//! `serialize-hot`: Java serialization takes much of the CPU time of a service.
//!
//! `ObjectOutputStream` walks every object by reflection and writes the names of its classes; other formats do the same work
//! in a fraction of the time. A dump is a sample of every thread at once, so a few of them show the share.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the running threads with Java serialization on their stack",
    value: 0.05,
    origin: "own guess; the reference case of another format took 10 to 30 % of the CPU",
};

const FEW: Threshold = Threshold {
    name: "running threads in all dumps, below which a share is chance",
    value: 40.0,
    origin: "own guess: with 40, two threads reach the threshold",
};

const MANY: Threshold = Threshold {
    name: "the same, from which on confidence is medium",
    value: 200.0,
    origin: "own guess: the standard error of 5 % is 1.5 % then",
};

pub(crate) static RULE: Rule = Rule {
    id: "serialize-hot",
    topic: "jvm",
    summary: "running threads are busy with Java serialization",
    needs: &[
        &keys::THREADS_DUMPS,
        &keys::THREADS_RUNNING,
        &keys::THREADS_SERIALIZING,
    ],
    thresholds: &[SHARE, FEW, MANY],
    knobs: &[],
    measure: Some(Measure::more(&keys::THREADS_SERIALIZING)),
    doc: Doc {
        looks_for: "More than a twentieth of the running threads with ObjectInputStream or ObjectOutputStream on their stack, in dumps with \
            at least 40 running threads together.",
        hurts: "Java serialization inspects each object by reflection and writes the names of its classes. The same message takes several \
            times the CPU time and the bytes of other formats, and its garbage makes collections more frequent.",
        todo: "Choose another format for messages between processes (RPC, sessions, caches): protobuf, or what the framework offers. Send \
            less: omit what the other side does not read (transient).",
        wrong: "A thread that waits for a socket within readObject is runnable for the JVM; if its frames show that, it is excluded. Dumps \
            show threads at safepoints, which native code and tight loops rarely reach, so the share is of what dumps show. A CPU profile \
            (async-profiler, JFR) shows it exactly.",
        sources: "The reference case of a faster serializer (10 to 30 % of the CPU); java.io.ObjectOutputStream.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, |evidence, jvm| Ok(vec![of_jvm(evidence, jvm)?]))
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Finding, Missing> {
    let running = evidence.quantity(&keys::THREADS_RUNNING, jvm)?;
    let share = evidence.quantity(&keys::THREADS_SERIALIZING, jvm)?;
    let all = say::count(running.value, "running thread");
    if running.value < FEW.value {
        let sentence = format!("{all} in the dumps: too few to judge");
        return Ok(Finding::clear(sentence).cite(running.reading));
    }
    let sentence = format!(
        "{} of {all} are busy with Java serialization",
        say::percent(share.value)
    );
    if share.value <= SHARE.value {
        return Ok(Finding::clear(sentence)
            .below(share.value, SHARE.value)
            .cite(share.reading));
    }
    let sure = running.value >= MANY.value;
    Ok(Finding::act(jvm, sentence)
        .severity(if share.value > 2.0 * SHARE.value {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(if sure { Grade::Medium } else { Grade::Low })
        .cite(share.reading)
        .expect(format!(
            "at most {} of the CPU time of running threads",
            say::percent(share.value)
        ))
        .refuted_by(
            "a CPU profile shows a smaller share of ObjectInputStream and ObjectOutputStream",
        ))
}
