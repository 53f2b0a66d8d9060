//! `heap-resize`: the JVM keeps changing the size of its heap.
//!
//! Between `-Xms` and `-Xmx` the heap grows when a collection leaves little and shrinks when it leaves much. Memory is
//! taken and touched, or given back, within the pause; and a smaller heap fills sooner.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, OPTIONS, Run, each};
use crate::{Doc, Judgement, Rule, Threshold, say};

const OFTEN: Threshold = Threshold {
    name: "changes of the heap's size by a twentieth and more in ten minutes, after the first five",
    value: 1.0,
    origin: "the diagnosis catalogue of the reference cases",
};

const LENGTH: Threshold = Threshold {
    name: "seconds of the run after the first five minutes that it takes to judge",
    value: 300.0,
    origin: "own guess: half of the time that the line is drawn over",
};

/// The start of a service, during which a heap grows by intent. As `gc.heap_resizes` counts.
const START: f64 = 300.0;
const TEN_MINUTES: f64 = 600.0;
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) static RULE: Rule = Rule {
    id: "heap-resize",
    topic: "jvm",
    summary: "the heap changes its size again and again",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_FLAGS,
        &keys::GC_HEAP_MAX,
        &keys::GC_HEAP_RESIZES,
        &keys::GC_SECONDS,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
    ],
    thresholds: &[OFTEN, LENGTH],
    knobs: &[OPTIONS],
    doc: Doc {
        looks_for: "More than one change of the heap's capacity by 5 % and more in ten minutes, the first five minutes left out, with \
            a collector that changes it within pauses.",
        hurts: "Pages are taken and touched within the pause, and while the heap is small it fills sooner and is collected more often.",
        todo: "A service that has its machine or its container to itself: -Xms as large as -Xmx (JDK 8, 11, 17, 21 and 25).",
        wrong: "Where memory is shared, a heap that gives back what it does not need is wanted: then leave it. ZGC and Shenandoah \
            give back beside the service and are not judged. Parallel moves sizes within its young generation all the time; only \
            its old one is looked at.",
        sources: "The reference bank host (-Xms and -Xmx made equal); HotSpot Garbage Collection Tuning Guide, total heap.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_HEAP_RESIZES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if matches!(run.collector(), Collector::Z | Collector::Shenandoah) {
        let sentence = "this collector changes the size of its heap beside the service";
        return Ok(run.cite(Finding::clear(sentence), &[&keys::GC_COLLECTOR]));
    }
    let count = run.number(&keys::GC_HEAP_RESIZES)?;
    let length = run.number(&keys::GC_SECONDS)?.value - START;
    let clear = |sentence: String| Finding::clear(sentence).cite(count.reading);
    let fixed = run
        .size_of("InitialHeapSize=")
        .zip(run.size_of("MaxHeapSize="))
        .is_some_and(|(initial, most)| initial >= most);
    if fixed {
        let sentence = "the heap has its largest size from the start";
        return Ok(clear(sentence.to_owned()));
    }
    if length < LENGTH.value {
        let sentence = "the log holds little more than the start, in which a heap grows";
        return Ok(clear(sentence.to_owned()));
    }
    let often = count.value * TEN_MINUTES / length;
    let what = format!(
        "the heap changed its size {} after the first five minutes, {often:.1} in ten minutes",
        say::count(count.value, "time")
    );
    if often <= OFTEN.value {
        return Ok(clear(what).below(often, OFTEN.value));
    }
    let finding = run
        .watch(what)
        .severity(if often > 10.0 * OFTEN.value {
            Grade::Medium
        } else {
            Grade::Low
        })
        .expect("a heap that stays as it is; what one change costs, the log does not separate from its pause")
        .refuted_by("collections as long, and as many, with a heap that stays as it is");
    let finding = run.cite(finding, &[&keys::GC_HEAP_RESIZES, &keys::GC_HEAP_MAX]);
    let most = run
        .size_of("MaxHeapSize=")
        .or_else(|| run.told(&keys::GC_HEAP_MAX));
    Ok(match most.filter(|most| *most >= MIB) {
        Some(most) => run.raise(finding, Goal::HeapMib((most / MIB).floor() as u64)),
        None => finding,
    })
}
