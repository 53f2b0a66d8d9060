//! `deadlock`: threads wait for one another in a circle.
//!
//! The JVM looks for circles itself, through monitors always and through `ReentrantLock` where it was asked for ownable
//! synchronizers; ours are found from who holds what, so that a dump cut before its report still tells.

use rungwise_model::check::{Finding, Grade, Lack};
use rungwise_model::evidence::{Absence, Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Rule, Threshold, say};

const CIRCLES: Threshold = Threshold {
    name: "deadlocks",
    value: 1.0,
    origin: "one is one too many: these threads never go on",
};

pub(crate) static RULE: Rule = Rule {
    id: "deadlock",
    topic: "jvm",
    summary: "threads wait for one another in a circle, for ever",
    needs: &[
        &keys::THREADS_DEADLOCK,
        &keys::THREADS_DEADLOCK_DUMPS,
        &keys::THREADS_DEADLOCK_REPORTED,
        &keys::THREADS_DEADLOCKS,
        &keys::THREADS_DUMPS,
        &keys::THREADS_OWNERLESS,
    ],
    thresholds: &[CIRCLES],
    knobs: &["app.lock_split"],
    doc: Doc {
        looks_for: "A circle of threads in a thread dump, each waiting for a lock that the next one holds: monitors of synchronized, \
            and ReentrantLock and its like where the dump tells who holds them. What the JVM reports itself counts too.",
        hurts: "None of these threads ever runs again, nor does any that needs one of their locks. Pools run out of threads one by one \
            until the service answers nothing.",
        todo: "Restart the service to get it going. Then let all code take these locks in the same order, hold one lock at a time, or \
            take the second one with tryLock and a time limit. The frames of both threads say where the locks are taken.",
        wrong: "Files of Thread.dump_to_file hold threads written one after the other, so that a circle may be put together from two \
            moments; it is real if the next dump shows it again. Without -l (jstack, jcmd Thread.print) nothing is known of who \
            holds a ReentrantLock: the rule is then undecided where threads wait for one.",
        sources: "HotSpot, VM_FindDeadlocks and ThreadService::find_deadlocks_at_safepoint; the reference bank host, step 4.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, of_jvm)
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Vec<Finding>, Missing> {
    let deadlocks = evidence.quantity(&keys::THREADS_DEADLOCKS, jvm)?;
    if deadlocks.value < CIRCLES.value {
        let ownerless = evidence.quantity(&keys::THREADS_OWNERLESS, jvm)?;
        if ownerless.value > 0.0 {
            return Ok(vec![Finding::undecided(vec![Lack::from(unknown(
                jvm,
                ownerless.value,
            ))])]);
        }
        let sentence = "the threads that wait for locks do not wait for one another in a circle";
        return Ok(vec![
            Finding::clear(sentence)
                .below(deadlocks.value, CIRCLES.value)
                .cite(deadlocks.reading),
        ]);
    }
    let of_jvm = format!("{}:", jvm.name());
    let circles = evidence.each_words(&keys::THREADS_DEADLOCK)?;
    let findings = circles
        .into_iter()
        .filter(|(subject, _)| subject.name().starts_with(&of_jvm))
        .map(|(subject, _)| circle(evidence, jvm, subject))
        .collect::<Result<Vec<_>, _>>()?;
    if findings.is_empty() {
        return Err(evidence.missing(&keys::THREADS_DEADLOCK, jvm));
    }
    Ok(findings)
}

fn circle(evidence: &Evidence, jvm: &Subject, subject: &Subject) -> Result<Finding, Missing> {
    let told = evidence.words(&keys::THREADS_DEADLOCK, subject)?;
    let seen = evidence.quantity(&keys::THREADS_DEADLOCK_DUMPS, subject)?;
    let reported = evidence.quantity(&keys::THREADS_DEADLOCK_REPORTED, subject)?;
    let dumps = evidence.quantity(&keys::THREADS_DUMPS, jvm)?;
    let certain = reported.value > 0.0 || seen.value > 1.0;
    let during = if dumps.value > 1.0 {
        format!(
            " in {} of {}",
            say::whole(seen.value),
            say::count(dumps.value, "dump")
        )
    } else {
        String::new()
    };
    let finding = Finding::act(subject, format!("deadlock{during}: {}", told.value))
        .severity(Grade::High)
        .confidence(if certain { Grade::High } else { Grade::Medium })
        .cite(told.reading)
        .cite(reported.reading)
        .consider("app.lock_split")
        .expect("a restart frees these threads; locks taken in one order keep them free")
        .refuted_by("a later dump shows one of these threads at another place");
    Ok(finding)
}

fn unknown(jvm: &Subject, waiting: f64) -> Missing {
    let why = Absence::because(format!(
        "{} for locks whose owner the dump does not tell",
        if waiting > 1.0 {
            format!("{} wait", say::count(waiting, "thread"))
        } else {
            "1 thread waits".to_owned()
        }
    ))
    .remedy("jcmd PID Thread.print -l, or jstack -l PID");
    Missing {
        key: keys::THREADS_DEADLOCKS.id,
        subject: jvm.clone(),
        why,
    }
}
