//! `gc-safepoints`: threads are stopped for other reasons than collections.
//!
//! A log of collections alone hides them: revocation of biased locks, thread dumps, class redefinition, and above all
//! the time to safepoint.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, SHORT, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const OUTSIDE: Threshold = Threshold {
    name: "share of stop-the-world time outside of collections",
    value: 0.2,
    origin: "garbagecat's threshold for stopped time outside of collections",
};

const STOPPED: Threshold = Threshold {
    name: "share of the run in such stops, below which they cost nothing",
    value: 0.005,
    origin: "own guess: a tenth of what GCeasy allows for collections",
};

const LONG: Threshold = Threshold {
    name: "longest such stop in seconds, if no goal is given",
    value: 0.4,
    origin: "jifa's threshold for pauses",
};

const MUCH: Threshold = Threshold {
    name: "share of the run in such stops, from which on a short log counts too and severity is high",
    value: 0.05,
    origin: "planted: counted loops of 250 ms, JDK 17, a log of 20 s: 10 % of the run, and p99 rose from 0.2 to 235 ms",
};

const BIASED: Threshold = Threshold {
    name: "share of the time of these operations that revokes biased locks, above which that is the cause",
    value: 0.5,
    origin: "more than all others together",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-safepoints",
    topic: "jvm",
    summary: "threads are stopped outside of collections",
    needs: needs!(
        [
            &keys::GC_PAUSE_GOAL,
            &keys::GC_SAFEPOINT_BIASED,
            &keys::GC_SAFEPOINT_LONGEST,
            &keys::GC_SAFEPOINT_OPERATIONS,
            &keys::GC_SAFEPOINT_OUTSIDE,
            &keys::GC_SAFEPOINT_REACHING,
            &keys::GC_SAFEPOINT_REACHING_LONGEST,
            &keys::GC_SECONDS,
            &keys::GC_STOPPED_SHARE
        ],
        JDK
    ),
    thresholds: &[OUTSIDE, STOPPED, LONG, SHORT, MUCH, BIASED],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_SAFEPOINT_OUTSIDE)),
    doc: Doc {
        looks_for: "More than a fifth of stop-the-world time outside of collections, and more than 0.5 % of the run or a stop longer than \
            the pause goal; and whether operations or the time to safepoint take it.",
        hurts: "A request waits the same, whether a collection or something else stopped its thread.",
        todo: "Long time to safepoint: counted loops with an int index and no call (-XX:+UseCountedLoopSafepoints; default with G1, ZGC and \
            Shenandoah from JDK 10 on), memory mapped from slow disks, too few CPUs. Operations: biased locking on JDK 8 to 14 \
            (-XX:-UseBiasedLocking; off by default from 15 on), thread dumps and monitoring that requests them, agents that redefine \
            classes.",
        wrong: "On JDK 8 a log of stopped times without operations counts stops that the JVM does not name as outside of collections. A \
            service that hardly collects has a large share of almost nothing, hence the second threshold.",
        sources: "garbagecat; JEP 374 (biased locking); HotSpot safepoint.cpp.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_SAFEPOINT_OUTSIDE, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let outside = run.number(&keys::GC_SAFEPOINT_OUTSIDE)?;
    let stopped = run.number(&keys::GC_STOPPED_SHARE)?;
    let share = outside.value * stopped.value;
    let reaching_longest = run
        .value(&keys::GC_SAFEPOINT_REACHING_LONGEST)
        .unwrap_or(0.0);
    let longest = run
        .value(&keys::GC_SAFEPOINT_LONGEST)
        .unwrap_or(0.0)
        .max(reaching_longest);
    let long = longest > run.goal(&LONG);
    let what = format!(
        "non-GC safepoints: {} of stop-the-world time ({} of the run, longest {})",
        say::percent(outside.value),
        say::percent(share),
        seconds(longest)
    );
    if outside.value <= OUTSIDE.value || (share <= STOPPED.value && !long) {
        let clear = Finding::clear(what)
            .cite(outside.reading)
            .cite(stopped.reading);
        return Ok(if outside.value <= OUTSIDE.value {
            clear.below(outside.value, OUTSIDE.value)
        } else {
            clear.below(share, STOPPED.value)
        });
    }
    let reaching = run.value(&keys::GC_SAFEPOINT_REACHING);
    let operations = run.words(&keys::GC_SAFEPOINT_OPERATIONS);
    let operations = operations.filter(|operations| !operations.value.is_empty());
    // Most of the time outside of collections is time to safepoint.
    let slow = reaching.filter(|reaching| *reaching > outside.value / 2.0);
    let sentence = match (slow, operations) {
        (Some(reaching), _) => format!(
            "{what}, mostly time to safepoint ({} of stop-the-world time)",
            say::percent(reaching)
        ),
        (None, Some(operations)) => format!("{what}: {}", operations.value),
        (None, None) => what,
    };
    let biased = run.value(&keys::GC_SAFEPOINT_BIASED);
    let biased = biased.filter(|biased| *biased > BIASED.value);
    let sentence = match biased {
        Some(biased) => format!(
            "{sentence}; revoking biased locks takes {} of these operations",
            say::percent(biased)
        ),
        None => sentence,
    };
    // Less than a minute is mostly startup, where a single stop has a large share.
    let finding = if run.is_short() && !long && share <= MUCH.value {
        run.watch(sentence).confidence(Grade::Low)
    } else {
        run.act(sentence)
    };
    let finding = match biased {
        Some(biased) => without_bias(run, finding, share * biased),
        None => finding,
    };
    Ok(run
        .cite(
            finding,
            &[
                &keys::GC_SAFEPOINT_BIASED,
                &keys::GC_SAFEPOINT_OUTSIDE,
                &keys::GC_STOPPED_SHARE,
                &keys::GC_SAFEPOINT_LONGEST,
                &keys::GC_SAFEPOINT_REACHING,
                &keys::GC_SAFEPOINT_REACHING_LONGEST,
            ],
        )
        .severity(if share > MUCH.value || longest > 1.0 {
            Grade::High
        } else {
            Grade::Medium
        })
        .refuted_by("the long stops are collections that the log does not name"))
}

/// Asks for locks without a bias. From JDK 15 on that is the default. `share` of the run went into revoking biased
/// locks.
fn without_bias(run: &Run<'_>, finding: Finding, share: f64) -> Finding {
    let finding = if run.jdk().from(15) {
        run.take_out(finding, &["UseBiasedLocking"])
    } else {
        run.advise(finding, Goal::NoBiasedLocks)
    };
    if finding.knobs.is_empty() {
        return finding;
    }
    finding.expect(format!(
        "at most {} of the run, for one more atomic operation wherever a thread retakes the same lock",
        say::percent(share)
    ))
}
