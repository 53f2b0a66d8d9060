//! `deadlock`: threads wait for one another in a cycle.
//!
//! The JVM detects cycles itself: through monitors always, through `ReentrantLock` only if the dump has ownable
//! synchronizers. We derive them from who holds what, so that a dump cut before the JVM's report still shows them.

use rungwise_model::check::{Finding, Grade, Lack};
use rungwise_model::evidence::{Absence, Evidence, Missing, Quantity, Subject};
use rungwise_model::keys;

use super::dumps::{self, Wait};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const CYCLES: Threshold = Threshold {
    name: "deadlocks",
    value: 1.0,
    origin: "one is one too many: these threads never run again",
};

const READERS: Threshold = Threshold {
    name: "threads stuck behind a lock that readers hold, from which on the rule acts; in three or more dumps, one is enough",
    value: 3.0,
    origin: "as for locks: ThreadLogic calls three blocked threads contention",
};

const HELD: Threshold = Threshold {
    name: "locks that no waiting virtual thread got in three or more dumps, from which on the rule acts",
    value: 2.0,
    origin: "a cycle needs two locks",
};

const STUCK: Threshold = Threshold {
    name: "virtual threads that wait for a lock in three or more dumps, none of which names it, from which on the rule acts",
    value: 2.0,
    origin: "a cycle needs two threads; one may wait for its turn to lead",
};

pub(crate) static RULE: Rule = Rule {
    id: "deadlock",
    topic: "jvm",
    summary: "threads wait for one another in a cycle, forever",
    needs: &[
        &keys::THREADS_DEADLOCK,
        &keys::THREADS_DEADLOCK_DUMPS,
        &keys::THREADS_DEADLOCK_REPORTED,
        &keys::THREADS_DEADLOCKS,
        &keys::THREADS_DUMPS,
        &keys::THREADS_OWNERLESS,
        &keys::THREADS_SHARED_WAITS,
        &keys::THREADS_UNRECORDED,
        &keys::THREADS_UNRECORDED_HELD,
        &keys::THREADS_UNRECORDED_LOCKS,
        &keys::THREADS_UNRECORDED_STUCK,
        &keys::THREADS_UNSEEN,
        &keys::THREADS_WAIT,
        &keys::THREADS_WAIT_BEHIND,
        &keys::THREADS_WAIT_KIND,
        &keys::THREADS_WAIT_STILL,
        &keys::THREADS_WAIT_WAITERS,
        &keys::THREADS_BUSINESS,
        &keys::THREADS_WAIT_HOLDERS,
    ],
    thresholds: &[CYCLES, HELD, READERS, STUCK],
    knobs: &["app.lock_split"],
    measure: Some(Measure::more(&keys::THREADS_DEADLOCKS)),
    doc: Doc {
        looks_for: "A cycle of threads in a thread dump, each waiting for a lock that the next one holds: monitors (synchronized), \
            ReentrantLock and similar locks if the dump contains their owners, and class initialisation, which the JVM shows as RUNNABLE and \
            never reports. Deadlocks that the JVM itself reports count too. Also threads that wait for a read-write lock held by readers, \
            while another thread waits for one of their locks: if that thread is a reader, it is a deadlock.",
        hurts: "None of these threads ever runs again, nor does any that needs one of their locks. Pools run out of threads one by one \
            until the service answers nothing.",
        todo: "Restart the service to recover. Then make all code take these locks in the same order, hold one lock at a time, or take the \
            second one with tryLock and a timeout. The frames of both threads show where the locks are taken. Classes that initialise each \
            other: load one of them first, or move what they need into a third. A reader that needs the write lock must release the read \
            lock first.",
        wrong: "Files of Thread.dump_to_file contain threads written one after the other, so a cycle may mix two moments; it is real if the \
            next dump shows it again. Without -l (jstack, jcmd Thread.print) the holder of a ReentrantLock is unknown: the rule is then \
            undecided if threads wait for one. No dump records readers, owners of a StampedLock, or the owner of a ReentrantLock that a \
            virtual thread waits for: the rule then reports a possible deadlock, and acts if no waiter got any of two such locks in three \
            dumps, or, before JDK 25, whose dumps do not name the locks, if two threads stay at theirs; owners that hang for that long \
            look the same. Printed dumps omit virtual threads that are not mounted; then the rule is \
            undecided as well.",
        sources: "HotSpot, VM_FindDeadlocks and ThreadService::find_deadlocks_at_safepoint; the reference bank host, step 4.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, of_jvm)
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Vec<Finding>, Missing> {
    let deadlocks = evidence.quantity(&keys::THREADS_DEADLOCKS, jvm);
    let possible = possible(evidence, jvm)?;
    // Files of before JDK 25 alone show no cycle, but who stays at a lock.
    let deadlocks = match deadlocks {
        Err(_) if !possible.is_empty() => return Ok(possible),
        deadlocks => deadlocks?,
    };
    if deadlocks.value < CYCLES.value {
        if !possible.is_empty() {
            return Ok(possible);
        }
        let lacks = unseen(evidence, jvm)?;
        if !lacks.is_empty() {
            return Ok(vec![Finding::undecided(lacks)]);
        }
        let sentence = "no deadlock: no cycle among the threads that wait for locks";
        return Ok(vec![
            Finding::clear(sentence)
                .below(deadlocks.value, CYCLES.value)
                .cite(deadlocks.reading),
        ]);
    }
    let of_jvm = format!("{}:", jvm.name());
    let cycles = evidence.each_words(&keys::THREADS_DEADLOCK)?;
    let mut findings = cycles
        .into_iter()
        .filter(|(subject, _)| subject.name().starts_with(&of_jvm))
        .map(|(subject, _)| cycle(evidence, jvm, subject))
        .collect::<Result<Vec<_>, _>>()?;
    if findings.is_empty() {
        return Err(evidence.missing(&keys::THREADS_DEADLOCK, jvm));
    }
    findings.extend(possible);
    Ok(findings)
}

/// What the dumps do not show, so that a deadlock cannot be ruled out.
fn unseen(evidence: &Evidence, jvm: &Subject) -> Result<Vec<Lack>, Missing> {
    let mut lacks = Vec::new();
    let ownerless = evidence.quantity(&keys::THREADS_OWNERLESS, jvm)?;
    if ownerless.value > 0.0 {
        let why = Absence::because(format!(
            "{} for locks whose owner the dump lacks",
            threads_wait(ownerless.value)
        ))
        .remedy("jcmd PID Thread.print -l, or jstack -l PID");
        lacks.push(lack(jvm, why));
    }
    let unrecorded = evidence.quantity(&keys::THREADS_UNRECORDED, jvm)?;
    if unrecorded.value > 0.0 {
        lacks.push(lack(
            jvm,
            Absence::because(format!(
                "{} for locks whose owner no dump records",
                threads_wait(unrecorded.value)
            )),
        ));
    }
    if let Ok(why) = evidence.words(&keys::THREADS_UNSEEN, jvm) {
        lacks.push(lack(jvm, Absence::because(why.value)));
    }
    Ok(lacks)
}

fn threads_wait(count: f64) -> String {
    if count > 1.0 {
        format!("{} wait", say::count(count, "thread"))
    } else {
        "1 thread waits".to_owned()
    }
}

fn lack(jvm: &Subject, why: Absence) -> Lack {
    Lack::from(Missing {
        key: keys::THREADS_DEADLOCKS.id,
        subject: jvm.clone(),
        why,
    })
}

/// Deadlocks that no dump can prove: through readers of a lock, and through locks whose owner is never recorded.
fn possible(evidence: &Evidence, jvm: &Subject) -> Result<Vec<Finding>, Missing> {
    let mut findings = Vec::new();
    let waits = dumps::waits(evidence, jvm)?;
    for wait in waits.iter().filter(|wait| wait.kind == "read-lock") {
        findings.extend(by_readers(evidence, wait)?);
    }
    let unrecorded = evidence.quantity(&keys::THREADS_UNRECORDED, jvm)?;
    let locks = evidence.quantity(&keys::THREADS_UNRECORDED_LOCKS, jvm)?;
    let held = evidence.quantity(&keys::THREADS_UNRECORDED_HELD, jvm).ok();
    let held = held.filter(|held| held.value >= HELD.value);
    let lasting = |sentence: String, lasts: Quantity<'_>| {
        Finding::act(jvm, sentence)
            .severity(Grade::High)
            .confidence(Grade::Medium)
            .cite(lasts.reading)
            .cite(unrecorded.reading)
            .consider("app.lock_split")
            .expect("a restart frees these threads; a single lock order prevents a recurrence")
            .refuted_by("a later dump shows one of these threads elsewhere")
    };
    // A cycle needs two of them; several waiters of one lock are a queue.
    if let Some(held) = held {
        let sentence = format!(
            "possible deadlock: the same virtual threads wait for {} in every dump; no dump records who holds them",
            say::count(held.value, "lock")
        );
        findings.push(lasting(sentence, held));
    } else if let Ok(stuck) = evidence.quantity(&keys::THREADS_UNRECORDED_STUCK, jvm)
        && stuck.value >= STUCK.value
    {
        let sentence = format!(
            "possible deadlock: the same {} wait for locks in every dump; no dump before JDK 25 records for which, or who holds them",
            say::count(stuck.value, "virtual thread")
        );
        findings.push(lasting(sentence, stuck));
    } else if findings.is_empty() && unrecorded.value > 1.0 && locks.value > 1.0 {
        let sentence = format!(
            "possible deadlock: {} for {} whose owners no dump records",
            threads_wait(unrecorded.value),
            say::count(locks.value, "lock")
        );
        findings.push(
            Finding::watch(jvm, sentence)
                .severity(Grade::High)
                .confidence(Grade::Low)
                .cite(unrecorded.reading)
                .cite(locks.reading)
                .refuted_by("a later dump shows one of these threads elsewhere"),
        );
    }
    Ok(findings)
}

fn by_readers(evidence: &Evidence, wait: &Wait<'_>) -> Result<Option<Finding>, Missing> {
    let still = evidence.quantity(&keys::THREADS_WAIT_STILL, wait.subject)?;
    let behind = evidence
        .words(&keys::THREADS_WAIT_BEHIND, wait.subject)
        .ok();
    if behind.is_none() && still.value < 1.0 {
        return Ok(None);
    }
    let certain = still.value > 0.0 && wait.dumps > 2;
    let threads = threads_wait(wait.count.value);
    let during = if still.value > 0.0 && wait.dumps > 1 {
        format!(
            ", {} of them unmoved in {} dumps",
            say::whole(still.value),
            wait.dumps
        )
    } else {
        String::new()
    };
    let finding = if let Some(behind) = behind {
        let sentence = format!(
            "possible deadlock: {threads} for {}{during}, and {}: a deadlock if that thread is one of the readers",
            wait.what.value, behind.value
        );
        Finding::act(wait.subject, sentence)
            .severity(Grade::High)
            .cite(behind.reading)
            .refuted_by("a later dump shows one of these threads elsewhere")
    } else {
        let why = if wait.what.value.contains("StampedLock") {
            "its holder never releases it, or waits for it again: a StampedLock is not reentrant"
        } else {
            "the readers never release it, or a waiting thread is itself a reader"
        };
        let sentence = format!("{threads} for {}{during}: {why}", wait.what.value);
        let finding = if still.value >= READERS.value || certain {
            Finding::act(wait.subject, sentence).severity(Grade::High)
        } else {
            Finding::watch(wait.subject, sentence).severity(Grade::Medium)
        };
        finding.refuted_by("a later dump shows these threads elsewhere")
    };
    Ok(Some(
        finding
            .confidence(if certain && still.value >= READERS.value { Grade::High } else { Grade::Medium })
            .cite(wait.what.reading)
            .cite(wait.count.reading)
            .cite(still.reading)
            .consider("app.lock_split")
            .expect("a restart frees these threads; releasing a lock before taking the next prevents a recurrence"),
    ))
}

fn cycle(evidence: &Evidence, jvm: &Subject, subject: &Subject) -> Result<Finding, Missing> {
    let cycle = evidence.words(&keys::THREADS_DEADLOCK, subject)?;
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
    let finding = Finding::act(subject, format!("deadlock{during}: {}", cycle.value))
        .severity(Grade::High)
        .confidence(if certain { Grade::High } else { Grade::Medium })
        .cite(cycle.reading)
        .cite(reported.reading)
        .consider("app.lock_split")
        .expect("a restart frees these threads; a single lock order prevents a recurrence")
        .refuted_by("a later dump shows one of these threads elsewhere");
    Ok(finding)
}
