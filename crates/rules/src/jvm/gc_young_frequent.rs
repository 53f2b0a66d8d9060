//! `gc-young-frequent`: young collections run so often that they take much of the time.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, SHORT, each, flow, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const INTERVAL: Threshold = Threshold {
    name: "mean time between young collections, in seconds",
    value: 1.0,
    origin: "jifa's threshold for the mean interval",
};

const SHARE: Threshold = Threshold {
    name: "share of the time in young collections, below which their number does not matter",
    value: 0.05,
    origin: "GCeasy's threshold for all collections",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-young-frequent",
    topic: "jvm",
    summary: "young collections run several times a second",
    needs: needs!(
        [
            &keys::GC_ALLOCATION_RATE,
            &keys::GC_EDEN_FREED,
            &keys::GC_HEAP_MAX,
            &keys::GC_LIVE,
            &keys::GC_LIVE_PEAK,
            &keys::GC_LIVE_SOURCE,
            &keys::GC_MEMORY,
            &keys::GC_SECONDS,
            &keys::GC_YOUNG_CAPACITY,
            &keys::GC_YOUNG_INTERVAL,
            &keys::GC_YOUNG_P50,
            &keys::GC_YOUNG_SHARE
        ],
        JDK
    ),
    thresholds: &[INTERVAL, SHARE, SHORT],
    knobs: &[OPTIONS],
    measure: Some(Measure::less(&keys::GC_YOUNG_INTERVAL)),
    doc: Doc {
        looks_for: "Less than a second between young collections on average, while together they take more than 5 % of the run.",
        hurts: "Each has a cost that does not depend on its garbage, and short-lived objects survive because the next collection follows at \
            once.",
        todo: "Allocate less per request (an allocation profile shows where), or enlarge the young generation: with more than twice the Eden \
            less than half as many collections, each about as long as before if the survivors stay the same. Serial, Parallel and CMS: -Xmn; G1 (8 to 25) takes it \
            from a larger heap or a longer pause goal, and -Xmn disables its goal.",
        wrong: "Frequent and short is by design with a small pause goal of G1, and costs little: below 5 % it is clear. In the first minute \
            of a service Eden is still small: a shorter log is only watched. Mixed collections of G1 come in bursts after a mark.",
        sources: "jifa (mean below 1 s); the reference bank's arithmetic: 0.5 MB a request at 500/s fill 15 GB a minute.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_YOUNG_INTERVAL, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if let Some(clear) = run.copies_beside() {
        return Ok(clear);
    }
    let interval = run.number(&keys::GC_YOUNG_INTERVAL)?;
    let every = seconds(interval.value);
    if interval.value >= INTERVAL.value {
        let sentence = format!("young collections run every {every}");
        return Ok(Finding::clear(sentence)
            .above(interval.value, INTERVAL.value)
            .cite(interval.reading));
    }
    let pause = run.number(&keys::GC_YOUNG_P50)?;
    // Not pause over interval: where collections come in bursts, the product of two means is more than their sum was.
    let share = run.number(&keys::GC_YOUNG_SHARE)?.value;
    let what = format!(
        "young collections run every {every}, median {}, and take {} of the run",
        seconds(pause.value),
        say::percent(share)
    );
    if share <= SHARE.value {
        return Ok(Finding::clear(what)
            .below(share, SHARE.value)
            .cite(interval.reading)
            .cite(pause.reading));
    }
    let rate = run.value(&keys::GC_ALLOCATION_RATE);
    let room = run.value(&keys::GC_EDEN_FREED);
    let sentence = match rate.zip(room) {
        Some((rate, room)) => format!(
            "{what}: {} fills {} of Eden; twice the Eden halves that",
            flow(rate),
            say::bytes(room)
        ),
        None => what,
    };
    let finding = if run.is_short() {
        run.watch(sentence).confidence(Grade::Low)
    } else {
        run.act(sentence)
    };
    let finding = finding
        .expect("more than twice the Eden, less than half as many collections of about the same length: at most half of that share")
        .severity(if share > 2.0 * SHARE.value {
            Grade::High
        } else {
            Grade::Medium
        })
        .refuted_by("there are as many with twice the young generation: something else triggers them");
    Ok(run.cite(
        roomier(run, finding),
        &[
            &keys::GC_YOUNG_INTERVAL,
            &keys::GC_YOUNG_P50,
            &keys::GC_YOUNG_SHARE,
            &keys::GC_ALLOCATION_RATE,
            &keys::GC_EDEN_FREED,
        ],
    ))
}

/// More than twice the Eden where the heap has that beside what stays alive; G1 takes it from a larger heap.
fn roomier(run: &Run<'_>, finding: Finding) -> Finding {
    /// What logs call the capacity leaves out one survivor space, so twice that is less than twice the Eden: `-Xmn14m` instead
    /// of `-Xmn8m` (Serial, JDK 17) left 88 of 158 collections, and `-Xmn18m` 69.
    const TIMES: f64 = 2.5;
    const MIB: f64 = 1024.0 * 1024.0;
    if run.collector() == Collector::G1 {
        // Twice the space left 27 of 47 collections on JDK 8, three times 20.
        return match run.larger_by(3.0) {
            Some(larger) => run.raise(finding, larger.goal(run.collector())),
            None => finding,
        };
    }
    let (Some(young), Some(heap)) = (
        run.value(&keys::GC_YOUNG_CAPACITY),
        run.value(&keys::GC_HEAP_MAX),
    ) else {
        return finding;
    };
    let live = run.value(&keys::GC_LIVE).unwrap_or(0.0);
    if TIMES * young + live > 0.8 * heap {
        return finding;
    }
    run.raise(finding, Goal::YoungMib((TIMES * young / MIB) as u64))
}
