//! `gc-alloc-failure`: the cause that reads like an error but is none.
//!
//! "Allocation Failure" means that Eden was full, which triggers a young collection. It is neither fragmentation nor a
//! lack of memory. What may be wrong is how often and how long, which this rule judges.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::run::{Run, each, seconds};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const SHARE: Threshold = Threshold {
    name: "share of the run in collection pauses",
    value: 0.05,
    origin: "GCeasy's threshold for the whole log",
};

const LONG: Threshold = Threshold {
    name: "99th percentile of young pauses in seconds, if no goal is given",
    value: 0.2,
    origin: "HotSpot's own goal for G1 (MaxGCPauseMillis)",
};

/// Share of all young collections from which on their interval is reported as that of these, and vice versa: full collections of
/// Serial and CMS have the same cause.
const MOST: f64 = 0.9;

pub(crate) static RULE: Rule = Rule {
    id: "gc-alloc-failure",
    topic: "jvm",
    summary: "collections due to \"Allocation Failure\" cost too much",
    needs: &[
        &keys::GC_ALLOCATION_FAILURES,
        &keys::GC_PAUSE_GOAL,
        &keys::GC_THROUGHPUT,
        &keys::GC_YOUNG_INTERVAL,
        &keys::GC_YOUNG_P99,
        &keys::GC_YOUNGS,
    ],
    thresholds: &[SHARE, LONG],
    knobs: &[],
    measure: Some(Measure::less(&keys::GC_THROUGHPUT)),
    doc: Doc {
        looks_for: "Collections triggered by a full Eden (Allocation Failure, G1 Evacuation Pause) that take more than 5 % of the run or \
            longer than the pause goal.",
        hurts: "Usually not at all: it is the normal trigger of a young collection, and a log without it comes from an idle service.",
        todo: "Clear: nothing; no other collector or heap removes a necessary trigger. Found: gc-young-frequent and gc-young-long show which \
            of the two applies and what helps.",
        wrong: "Full collections of the Serial collector have the same cause; gc-full counts those. A high count is no symptom either: what \
            counts is their share of the time.",
        sources: "The reference bank host, whose log is full of them at 30 % CPU, and where G1 instead of CMS gained nothing; HotSpot \
            gcCause.cpp.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_ALLOCATION_FAILURES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let count = run.number(&keys::GC_ALLOCATION_FAILURES)?;
    if count.value < 1.0 {
        return Ok(Finding::clear("a full Eden triggered no collection").cite(count.reading));
    }
    let lost = 1.0 - run.number(&keys::GC_THROUGHPUT)?.value;
    let long = run.value(&keys::GC_YOUNG_P99);
    let line = run.goal(&LONG);
    // If other collections run too, the interval of all is not that of these.
    let youngs = run.value(&keys::GC_YOUNGS);
    let every = run.value(&keys::GC_YOUNG_INTERVAL).filter(|_| {
        youngs.is_none_or(|youngs| count.value >= MOST * youngs && youngs >= MOST * count.value)
    });
    let every = every.map_or_else(String::new, |every| format!(", every {}", seconds(every)));
    let what = format!(
        "a full Eden triggered {}{every}",
        say::count(count.value, "collection")
    );
    let keys = [
        &keys::GC_ALLOCATION_FAILURES,
        &keys::GC_THROUGHPUT,
        &keys::GC_YOUNG_P99,
        &keys::GC_YOUNG_INTERVAL,
    ];
    let too_long = long.filter(|long| *long > line);
    if lost <= SHARE.value && too_long.is_none() {
        let sentence = format!(
            "{what}: normal, not an error, no action needed; all pauses take {} of the run",
            say::percent(lost)
        );
        return Ok(run.cite(Finding::clear(sentence).below(lost, SHARE.value), &keys));
    }
    let sentence = match too_long {
        Some(long) => format!(
            "{what}: a normal trigger, but they take up to {} (99th percentile)",
            seconds(long)
        ),
        None => format!(
            "{what}: a normal trigger, but all pauses take {} of the run",
            say::percent(lost)
        ),
    };
    Ok(run
        .cite(run.watch(sentence), &keys)
        .severity(Grade::Low)
        .refuted_by("gc-young-frequent and gc-young-long are clear: other pauses take the time"))
}
