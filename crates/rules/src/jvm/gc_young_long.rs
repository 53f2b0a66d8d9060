//! `gc-young-long`: young collections are long, and why.
//!
//! A young collection copies what is alive and scans what points into it. Its time follows the survivors, not the
//! garbage; a larger young generation makes it longer only where more survives.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::gc_threads_few::{few_threads, unbound};
use super::late_start::FIXED_YOUNG;
use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const YOUNG: Threshold = Threshold {
    name: "99th percentile of young pauses in seconds, if no goal is given",
    value: 0.2,
    origin: "HotSpot's own goal for G1 (MaxGCPauseMillis), and too long in the reference case of long connections",
};

const SURVIVE: Threshold = Threshold {
    name: "share of the young generation that survives a collection, above which copying takes the time",
    value: 0.1,
    origin: "own guess: HotSpot's survivor spaces are a tenth by default (SurvivorRatio=8)",
};

const STARVED: Threshold = Threshold {
    name: "share of pauses with less CPU time than wall time, above which lack of CPU is the cause",
    value: 0.5,
    origin: "more often than not; garbagecat warns at any",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-young-long",
    topic: "jvm",
    summary: "young collections are long",
    needs: needs!(
        [
            &keys::GC_AGE_SETTLED,
            &keys::GC_AGE_THRESHOLD,
            &keys::GC_CPU_INVERTED,
            &keys::GC_CPUS,
            &keys::GC_EDEN_FREED,
            &keys::GC_PAUSE_GOAL,
            &keys::GC_SURVIVORS,
            &keys::GC_WORKERS,
            &keys::GC_YOUNG_COST,
            &keys::GC_YOUNG_COST_LOW,
            &keys::GC_YOUNG_LONGEST,
            &keys::GC_YOUNG_P50,
            &keys::GC_YOUNG_P99,
            &keys::GC_YOUNGS
        ],
        JDK
    ),
    thresholds: &[YOUNG, SURVIVE, STARVED],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_YOUNG_P99)),
    doc: Doc {
        looks_for: "A 99th percentile of the young and mixed collections above the goal, and what explains it: survivors to copy, pauses \
            that grow with the size of the young generation, or lack of CPU.",
        hurts: "They run every few seconds, so one request in a hundred meets a long one sooner than anything else.",
        todo: "Many survivors: a lower tenuring threshold or a smaller young generation copies less, but promotes more (watch \
            gc-premature-promotion). If the age tables show that from some age on hardly anything dies, use that age as the threshold. In \
            the reference case a threshold of 30 tripled the pauses to 0.2 s, and 15 took half of that back. With G1 leave the young \
            generation to the pause goal (-XX:MaxGCPauseMillis) and remove -Xmn. Fewer threads than the JVM would choose: remove \
            -XX:ParallelGCThreads. No other size is recommended: a smaller young generation means proportionally more collections, and only \
            a pair of runs shows which costs more. If no such pause is acceptable, generational ZGC (21, 25) copies concurrently.",
        wrong: "Swap, huge page allocation while copying and CPUs that other processes use make pauses long as well (gc-cpu-starved). The \
            first collection after the start touches its memory for the first time. Many references, or many roots of thread stacks, take \
            time that no size explains.",
        sources: "The reference case of long connections; our lab of it (first collection 2 to 4 s); HotSpot Garbage Collection Tuning Guide.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_YOUNGS, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let count = run.number(&keys::GC_YOUNGS)?;
    if count.value < 1.0 {
        return Ok(Finding::clear("no young collection in the log").cite(count.reading));
    }
    let p99 = run.number(&keys::GC_YOUNG_P99)?;
    let line = run.goal(&YOUNG);
    let took = seconds(p99.value);
    if p99.value <= line {
        let sentence = format!("99 of 100 young collections take at most {took}");
        return Ok(Finding::clear(sentence)
            .below(p99.value, line)
            .cite(p99.reading));
    }
    let typical = run.value(&keys::GC_YOUNG_P50);
    let mut what = format!("young collections take up to {took} (99th percentile)");
    if let Some(typical) = typical {
        what = format!("{what}, median {}", seconds(typical));
    }
    // One long collection among many short ones is not the copying.
    if typical.is_some_and(|typical| typical <= line) && count.value < 100.0 {
        let sentence = format!("{what}: a few long ones among {}", say::whole(count.value));
        let finding = run
            .watch(sentence)
            .confidence(Grade::Low)
            .refuted_by("a longer log has as large a share of long ones");
        return Ok(cited(run, finding));
    }
    Ok(
        cited(run, reason(run, &what)).severity(if p99.value > 2.0 * line {
            Grade::High
        } else {
            Grade::Medium
        }),
    )
}

fn reason(run: &Run<'_>, what: &str) -> Finding {
    let starved = run.value(&keys::GC_CPU_INVERTED);
    if let Some(share) = starved.filter(|share| *share > STARVED.value) {
        return run
            .watch(format!(
                "{what}; {} of the long pauses got less CPU time than they lasted: see gc-cpu-starved",
                say::percent(share)
            ))
            .refuted_by("pauses are as long on idle CPUs");
    }
    if let Some((threads, usual)) = few_threads(run) {
        let finding = run
            .act(format!(
                "{what}; -XX:ParallelGCThreads allows {threads} GC threads where the JVM would choose {usual}"
            ))
            .expect("shorter pauses, as far as their work can be shared")
            .refuted_by("user time of the pauses is far below threads x real time: there is nothing to share");
        return unbound(run, finding, threads, usual);
    }
    let freed = run.value(&keys::GC_EDEN_FREED);
    let survivors = run.value(&keys::GC_SURVIVORS);
    let survive = freed.zip(survivors).filter(|(freed, _)| *freed > 0.0);
    let survive = survive.map(|(freed, survivors)| survivors / (freed + survivors));
    if let Some(share) = survive.filter(|share| *share > SURVIVE.value) {
        let what = format!(
            "{what}: {} of the young generation survives each collection and is copied",
            say::percent(share)
        );
        return copied(run, what).refuted_by("pauses are as long when the age tables hold less");
    }
    let low = run.value(&keys::GC_YOUNG_COST_LOW).filter(|low| *low > 0.0);
    if let (Some(low), Some(cost)) = (low, run.value(&keys::GC_YOUNG_COST)) {
        let finding = run.act(format!(
            "{what}: they grow with the young generation, by {} per GiB (at least {})",
            seconds(cost),
            seconds(low)
        ));
        return left_to_goal(run, finding)
            .refuted_by("pauses are as long with a smaller young generation");
    }
    run.watch(format!(
        "{what}; neither the survivors nor the size explain it"
    ))
    .refuted_by("a log with -Xlog:gc+phases=debug shows what took the time")
}

/// Survivors take the time: promoted at the age from which on hardly anything dies they are copied less often.
fn copied(run: &Run<'_>, what: String) -> Finding {
    let threshold = run.value(&keys::GC_AGE_THRESHOLD);
    let settled = run.value(&keys::GC_AGE_SETTLED).map(f64::round);
    let settled = settled.filter(|age| *age >= 1.0 && threshold.is_some_and(|now| *age < now));
    let Some(age) = settled else {
        return left_to_goal(run, run.act(what));
    };
    let finding = run
        .act(format!(
            "{what}; from age {age:.0} on hardly anything dies, so copying it again gains nothing"
        ))
        .expect(format!(
            "objects are copied at most {age:.0} times; those of which at most a tenth would have died are promoted sooner"
        ));
    run.lower(finding, Goal::PromoteAt(age as u32))
}

/// G1 shrinks the young generation as far as its pause goal requires, if nothing fixes its size.
fn left_to_goal(run: &Run<'_>, finding: Finding) -> Finding {
    if run.collector() != Collector::G1 {
        return finding;
    }
    let finding = run.take_out(finding, &FIXED_YOUNG);
    if finding.knobs.is_empty() {
        return finding;
    }
    finding.expect("pauses near -XX:MaxGCPauseMillis, but more of them")
}

fn cited(run: &Run<'_>, finding: Finding) -> Finding {
    run.cite(
        finding,
        &[
            &keys::GC_YOUNG_P99,
            &keys::GC_YOUNG_P50,
            &keys::GC_SURVIVORS,
            &keys::GC_EDEN_FREED,
            &keys::GC_YOUNG_COST_LOW,
        ],
    )
}
