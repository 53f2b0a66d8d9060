//! `lock-contended`: threads spend much time in the queue of one lock.
//!
//! The time that all threads waited for a lock, divided by the length of the recording, is the mean length of its queue.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::recordings;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const QUEUE: Threshold = Threshold {
    name: "threads that wait for one lock at a time, mean of the recording",
    value: 1.0,
    origin: "own guess: the lock is then never free, while at least one thread waits",
};

const LONG_QUEUE: Threshold = Threshold {
    name: "the same, critical",
    value: 3.0,
    origin: "ThreadLogic calls three blocked threads contention",
};

pub(crate) static RULE: Rule = Rule {
    id: "lock-contended",
    topic: "jvm",
    summary: "threads spend much time in the queue of one lock",
    needs: &[
        &keys::RECORDING_LOCK,
        &keys::RECORDING_LOCK_LONGEST,
        &keys::RECORDING_LOCK_OWNER,
        &keys::RECORDING_LOCK_WAITERS,
    ],
    thresholds: &[QUEUE, LONG_QUEUE],
    knobs: &["log.guard", "app.lock_split"],
    measure: Some(Measure::more(&keys::RECORDING_LOCK_WAITERS)),
    doc: Doc {
        looks_for: "A monitor or a ReentrantLock whose recorded waits add up to more than the length of the recording: more than one thread \
            waits for it at any time, in the mean. More than three are something to act on.",
        hurts: "Only one thread at a time works under the lock. More CPUs, threads or requests make the queue longer and nothing faster.",
        todo: "Read where the threads wait, and what is done under the lock. It writes a log: guard, raise the level, buffer, or write in \
            another thread. It waits for a disk, a socket or a database: do that outside the lock. It computes: split the lock, or hold it \
            for less time.",
        wrong: "A recording has only waits above a threshold, 20 ms by default and 10 ms with settings=profile: a queue of many short waits \
            looks short, so a clear result excludes only long ones. Locks of one class are counted together. A few long waits at the start \
            of a short recording look like a lasting queue.",
        sources: "Little's law; ThreadLogic's advisories on blocked threads; jfrEventSetting of OpenJDK 17, default.jfc and profile.jfc.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    recordings::each(evidence, &keys::RECORDING_LOCK_WAITERS, of_recording)
}

fn of_recording(evidence: &Evidence, recording: &Subject) -> Result<Finding, Missing> {
    let waiters = evidence.quantity(&keys::RECORDING_LOCK_WAITERS, recording)?;
    if waiters.value <= QUEUE.value {
        let sentence = format!(
            "{:.2} threads wait for the most contended lock at a time",
            waiters.value
        );
        return Ok(Finding::clear(sentence)
            .below(waiters.value, QUEUE.value)
            .cite(waiters.reading));
    }
    let words = |key| evidence.words(key, recording).ok();
    let lock = words(&keys::RECORDING_LOCK);
    let owner = words(&keys::RECORDING_LOCK_OWNER);
    let mut sentence = format!("{:.1} threads wait for one lock at a time", waiters.value);
    if let Some(lock) = lock {
        sentence = format!("{sentence}: {}", lock.value);
    }
    let longest = evidence.quantity(&keys::RECORDING_LOCK_LONGEST, recording);
    if let Ok(longest) = &longest {
        sentence = format!(
            "{sentence}; the longest wait is {} ms",
            say::whole(longest.value * 1e3)
        );
    }
    let is_long = waiters.value > LONG_QUEUE.value;
    let finding = if is_long {
        Finding::act(recording, sentence).severity(Grade::High)
    } else {
        Finding::watch(recording, sentence).severity(Grade::Medium)
    };
    let is_log = lock.is_some_and(|lock| {
        ["log4j", "logback", "logging"]
            .iter()
            .any(|word| lock.value.contains(word))
    });
    let mut finding = finding
        .confidence(Grade::High)
        .cite(waiters.reading)
        .consider(if is_log {
            "log.guard"
        } else {
            "app.lock_split"
        })
        .refuted_by("throughput is the same without the lock");
    for cited in [lock, owner].into_iter().flatten() {
        finding = finding.cite(cited.reading);
    }
    Ok(finding)
}
