//! `virtual-thread-pinned`: virtual threads keep their carriers while they wait, so no other virtual thread runs.
//!
//! Until JDK 24 a virtual thread that blocks inside `synchronized` does not leave its carrier. A printed dump has no stack of it, but
//! names the virtual thread of a carrier and its CPU time: the same virtual thread in all dumps without CPU time is pinned.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const HALF: Threshold = Threshold {
    name: "share of carriers held by virtual threads that do not run",
    value: 0.5,
    origin: "own guess: from there on virtual threads have half of the CPUs or less",
};

const ALL: Threshold = Threshold {
    name: "the same, critical",
    value: 1.0,
    origin: "with no carrier left, no virtual thread of the JVM runs",
};

pub(crate) static RULE: Rule = Rule {
    id: "virtual-thread-pinned",
    topic: "jvm",
    summary: "waiting virtual threads pin their carriers, so others do not run",
    needs: &[
        &keys::THREADS_CARRIERS,
        &keys::THREADS_CARRIERS_HELD,
        &keys::THREADS_CARRIER_DUMPS,
        &keys::THREADS_DUMPS,
        &keys::THREADS_PINNED,
        &keys::THREADS_PINNED_AT,
        &keys::THREADS_UNSTARTED,
    ],
    thresholds: &[HALF, ALL],
    knobs: &[],
    measure: Some(Measure::more(&keys::THREADS_CARRIERS_HELD)),
    doc: Doc {
        looks_for: "Carriers with the same virtual thread in all printed dumps and almost no CPU time meanwhile; in files of \
            Thread.dump_to_file, virtual threads that are parked on their carrier, and those that no carrier has run yet.",
        hurts: "There are as many carriers as CPUs. While waiting virtual threads hold them, no other virtual thread runs: requests wait \
            with idle CPUs. If the pinned ones wait for another virtual thread, it is a deadlock.",
        todo: "Use ReentrantLock instead of synchronized around calls that wait (database, HTTP, sleep), or run JDK 24 or later, where \
            synchronized no longer pins. -Djdk.tracePinnedThreads=full (until JDK 23) prints the stack of each. For a cycle of monitors \
            between virtual threads, take the locks in one order.",
        wrong: "A virtual thread that calls native code pins its carrier in any release. Carriers that wait in a blocking read of a file are \
            pinned but not lost. One printed dump cannot show that a carrier makes no progress.",
        sources: "JEP 444 and JEP 491; the programs vt-pinned and vt-monitors in crates/testkit/java on JDK 21 and 25.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, |evidence, jvm| Ok(vec![of_jvm(evidence, jvm)?]))
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Finding, Missing> {
    let number = |key| evidence.quantity(key, jvm);
    let carriers = number(&keys::THREADS_CARRIERS)?;
    let held = number(&keys::THREADS_CARRIERS_HELD)?;
    let pinned = number(&keys::THREADS_PINNED)?;
    let unstarted = number(&keys::THREADS_UNSTARTED)?;
    let dumps = number(&keys::THREADS_CARRIER_DUMPS)?;
    if carriers.value < 1.0 {
        let sentence = "no virtual thread is mounted";
        return Ok(Finding::clear(sentence).cite(carriers.reading));
    }
    // What the dumps saw over time, or the frames at one moment.
    let by_time = dumps.value > 1.0;
    let kept = if by_time { held } else { pinned };
    let share = (kept.value / carriers.value).min(1.0);
    let sentence = format!(
        "{} of {} are held by virtual threads that do not run",
        say::whole(kept.value.min(carriers.value)),
        say::count(carriers.value, "carrier")
    );
    if share < HALF.value {
        return Ok(Finding::clear(sentence)
            .below(share, HALF.value)
            .cite(kept.reading)
            .cite(carriers.reading));
    }
    let at = evidence.words(&keys::THREADS_PINNED_AT, jvm).ok();
    let place = at.map_or_else(String::new, |at| format!(", in {}", at.value));
    let rest = if unstarted.value > 0.0 {
        format!(
            "; {} have not run yet",
            say::count(unstarted.value, "virtual thread")
        )
    } else {
        String::new()
    };
    let during = if by_time {
        format!(" in {}", say::count(dumps.value, "dump"))
    } else {
        String::new()
    };
    let sentence = format!("virtual threads pinned: {sentence}{during}{place}{rest}");
    let acts = share >= ALL.value && (by_time || unstarted.value > 0.0);
    let finding = if acts {
        Finding::act(jvm, sentence).severity(Grade::High)
    } else {
        Finding::watch(jvm, sentence).severity(Grade::Medium)
    };
    let mut finding = finding
        .confidence(if dumps.value > 2.0 {
            Grade::High
        } else {
            Grade::Medium
        })
        .cite(kept.reading)
        .cite(carriers.reading)
        .cite(unstarted.reading)
        .refuted_by("a later dump shows other virtual threads on the carriers");
    if let Some(at) = at {
        finding = finding.cite(at.reading);
    }
    Ok(finding)
}
