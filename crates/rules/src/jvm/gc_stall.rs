//! `gc-stall`: threads wait for memory because the concurrent collector falls behind.
//!
//! ZGC stalls the thread that allocates, Shenandoah paces it and then stops all threads to finish the cycle (a degenerated
//! collection). The pauses of such a log look excellent while requests wait.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{JDK, LONG, OPTIONS, Run, each, flow, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const STALLS: Threshold = Threshold {
    name: "allocation stalls, pacing waits and degenerated collections",
    value: 0.0,
    origin: "any: a concurrent collector that keeps up has none",
};

const FEW: Threshold = Threshold {
    name: "longest such wait in seconds, below which it is harmless",
    value: 0.01,
    origin: "own guess; Shenandoah paces for at most 10 ms at a time (ShenandoahPacingMaxDelay)",
};

const TIGHT: Threshold = Threshold {
    name: "live set as a share of the heap, above which the heap is too small",
    value: 0.7,
    origin: "own guess: less than a third is left for allocation during a cycle",
};

const BURST: Threshold = Threshold {
    name: "peak over mean allocation rate, above which it is a burst",
    value: 3.0,
    origin: "own guess: a load that triples within the run",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-stall",
    topic: "jvm",
    summary: "threads wait for memory because the collector falls behind",
    needs: needs!(
        [
            &keys::GC_ALLOCATION_PEAK,
            &keys::GC_ALLOCATION_RATE,
            &keys::GC_CONCURRENT_WORKERS,
            &keys::GC_CPUS,
            &keys::GC_DEGENERATED,
            &keys::GC_DEGENERATED_LONGEST,
            &keys::GC_HEAP_MAX,
            &keys::GC_LIVE,
            &keys::GC_LIVE_PEAK,
            &keys::GC_LIVE_SHARE,
            &keys::GC_LIVE_SOURCE,
            &keys::GC_MEMORY,
            &keys::GC_PAUSE_GOAL,
            &keys::GC_STALLS,
            &keys::GC_STALL_LONGEST,
            &keys::GC_STALL_RATE,
            &keys::GC_STALL_TIME
        ],
        JDK
    ),
    thresholds: &[STALLS, FEW, TIGHT, BURST, LONG],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_STALL_TIME)),
    doc: Doc {
        looks_for: "Allocation stalls of ZGC, pacing and degenerated collections of Shenandoah.",
        hurts: "A request that allocates waits for the end of a cycle, often longer than any pause of an older collector.",
        todo: "More heap is the remedy for both: the collector needs space for allocation during a cycle. Then more concurrent threads \
            (-XX:ConcGCThreads) if CPUs are idle, or fewer allocations. Non-generational ZGC (11, 17, and 21 without -XX:+ZGenerational): \
            the generational one of 21 and later collects the young generation first. A burst after quiet times: a soft limit below the heap \
            (-XX:SoftMaxHeapSize; ZGC from JDK 13 on, so not with 11) starts cycles earlier.",
        wrong: "A few stalls in the first seconds, before the collector knows the allocation rate, are normal. If all CPUs are busy, the \
            collector falls behind for lack of CPU, and more heap only delays it.",
        sources: "JDK Mission Control (stalls per minute); JEP 439; Shenandoah wiki on pacing and degenerated collections.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_STALLS, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let stalls = run.number(&keys::GC_STALLS)?;
    let degenerated = run.number(&keys::GC_DEGENERATED)?;
    if stalls.value + degenerated.value <= STALLS.value {
        let sentence = "no thread waited for memory";
        return Ok(Finding::clear(sentence)
            .cite(stalls.reading)
            .cite(degenerated.reading));
    }
    let longest_stall = run.value(&keys::GC_STALL_LONGEST).unwrap_or(0.0);
    let longest = longest_stall.max(run.value(&keys::GC_DEGENERATED_LONGEST).unwrap_or(0.0));
    let mut what = String::new();
    if stalls.value > 0.0 {
        let _ = write!(
            what,
            "threads waited for memory {}, longest {}",
            say::count(stalls.value, "time"),
            seconds(longest_stall)
        );
    }
    if degenerated.value > 0.0 {
        let and = if what.is_empty() { "" } else { ", and " };
        let _ = write!(
            what,
            "{and}{} stopped all threads",
            say::count(degenerated.value, "degenerated collection")
        );
    }
    let keys = [
        &keys::GC_STALLS,
        &keys::GC_STALL_LONGEST,
        &keys::GC_STALL_TIME,
        &keys::GC_DEGENERATED,
        &keys::GC_DEGENERATED_LONGEST,
        &keys::GC_ALLOCATION_RATE,
        &keys::GC_LIVE_SHARE,
    ];
    if longest <= FEW.value && degenerated.value <= STALLS.value {
        return Ok(run
            .cite(run.watch(what), &keys)
            .severity(Grade::Low)
            .refuted_by("waits get longer under more load"));
    }
    let why = reason(run);
    let finding = run
        .act(format!("{what}{why}"))
        .confidence(Grade::High)
        .refuted_by("waits continue with a larger heap and idle CPUs");
    let finding = run.grow(
        finding,
        "that much more allocation during a cycle before a thread waits",
    );
    // By default they are a quarter of the CPUs; some JVMs of later releases take more.
    let half = run.value(&keys::GC_CPUS).map(|cpus| (cpus / 2.0).floor());
    let now = run.value(&keys::GC_CONCURRENT_WORKERS).unwrap_or(1.0);
    let tight = run
        .value(&keys::GC_LIVE_SHARE)
        .is_some_and(|share| share > TIGHT.value);
    let finding = match half.filter(|half| !tight && *half > now) {
        Some(half) => run.raise(finding, Goal::ConcurrentThreads(half as u32)),
        None => finding,
    };
    let high = longest > run.goal(&LONG);
    Ok(run
        .cite(finding, &keys)
        .severity(if high { Grade::High } else { Grade::Medium }))
}

/// Why the collector fell behind: a full heap, a burst, or the mean allocation rate.
fn reason(run: &Run<'_>) -> String {
    let live = run.value(&keys::GC_LIVE_SHARE);
    if let Some(share) = live.filter(|share| *share > TIGHT.value) {
        return format!(
            ": {} of the heap is live, so it is too small",
            say::percent(share)
        );
    }
    let Some(rate) = run.value(&keys::GC_ALLOCATION_RATE) else {
        return String::new();
    };
    let peak = run.value(&keys::GC_ALLOCATION_PEAK);
    match peak.filter(|peak| *peak > BURST.value * rate) {
        Some(peak) => format!(
            ": the allocation rate is {} at the peak, {} on average",
            flow(peak),
            flow(rate)
        ),
        None => format!(": the allocation rate is {}", flow(rate)),
    }
}
