//! `heap-resize`: the JVM keeps changing the size of its heap.
//!
//! Between `-Xms` and `-Xmx` the heap grows when a collection leaves little free and shrinks when it leaves much. Memory is
//! allocated and touched, or returned, within the pause; and a smaller heap fills sooner.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const OFTEN: Threshold = Threshold {
    name: "heap size changes of 5 % or more per ten minutes, after the first five minutes",
    value: 1.0,
    origin: "the diagnosis catalogue of the reference cases",
};

const LENGTH: Threshold = Threshold {
    name: "seconds of the run after the first five minutes needed for a judgement",
    value: 300.0,
    origin: "own guess: half of the ten minutes of the threshold",
};

/// The start of a service, during which a heap grows by intent. As `gc.heap_resizes` counts.
const START: f64 = 300.0;
const TEN_MINUTES: f64 = 600.0;
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) static RULE: Rule = Rule {
    id: "heap-resize",
    topic: "jvm",
    summary: "the heap keeps changing its size",
    needs: needs!(
        [
            &keys::GC_HEAP_MAX,
            &keys::GC_HEAP_RESIZES,
            &keys::GC_SECONDS
        ],
        JDK
    ),
    thresholds: &[OFTEN, LENGTH],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_HEAP_RESIZES)),
    doc: Doc {
        looks_for: "More than one change of the heap's capacity by 5 % or more per ten minutes, excluding the first five minutes, with a \
            collector that resizes within pauses.",
        hurts: "Pages are allocated and touched within the pause, and while the heap is small it fills sooner and is collected more often.",
        todo: "If the service has its machine or container to itself: -Xms as large as -Xmx (JDK 8, 11, 17, 21 and 25).",
        wrong: "If memory is shared, a heap that returns what it does not need is intended: then change nothing. ZGC and Shenandoah resize \
            concurrently and are not judged. Parallel resizes within its young generation all the time; only its old generation counts.",
        sources: "The reference bank host (-Xms and -Xmx made equal); HotSpot Garbage Collection Tuning Guide, total heap.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_HEAP_RESIZES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if matches!(run.collector(), Collector::Z | Collector::Shenandoah) {
        let sentence = "this collector resizes its heap concurrently";
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
        let sentence = "the heap has its maximum size from the start";
        return Ok(clear(sentence.to_owned()));
    }
    if length < LENGTH.value {
        let sentence = "the log covers little more than the start, when a heap grows";
        return Ok(clear(sentence.to_owned()));
    }
    let often = count.value * TEN_MINUTES / length;
    let what = format!(
        "the heap changed its size {} after the first five minutes, {often:.1} per ten minutes",
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
        .expect("a heap of constant size; the log does not separate the cost of a change from its pause")
        .refuted_by("collections are as frequent and as long with a heap of constant size");
    let finding = run.cite(finding, &[&keys::GC_HEAP_RESIZES, &keys::GC_HEAP_MAX]);
    let most = run
        .size_of("MaxHeapSize=")
        .or_else(|| run.value(&keys::GC_HEAP_MAX));
    Ok(match most.filter(|most| *most >= MIB) {
        Some(most) => run.raise(finding, Goal::HeapMib((most / MIB).floor() as u64)),
        None => finding,
    })
}
