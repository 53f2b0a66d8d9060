//! `gc-log-poor`: the log lacks data that other rules need.
//!
//! A log costs next to nothing and contains only what its options request. This rule says what to add, in the syntax of
//! the JDK that wrote it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Key, Missing, Reading};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Rule, Threshold, say};

const LACKS: Threshold = Threshold {
    name: "kinds of data that the log lacks",
    value: 0.0,
    origin: "any: all of them cost a few KiB per collection",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-log-poor",
    topic: "jvm",
    summary: "the log lacks data that other rules need",
    needs: needs!(
        [
            &keys::GC_AGE_TABLES,
            &keys::GC_ALLOCATION_FAILURES,
            &keys::GC_ALLOCATION_RATE,
            &keys::GC_CYCLES,
            &keys::GC_HEAP_CAPACITY,
            &keys::GC_SAFEPOINTS,
            &keys::GC_SECONDS,
            &keys::GC_THROUGHPUT,
            &keys::GC_YOUNGS
        ],
        JDK
    ),
    thresholds: &[LACKS],
    knobs: &[OPTIONS],
    measure: None,
    doc: Doc {
        looks_for: "Pauses, times, causes, the heap before and after, age tables, safepoints or the version of the JVM missing from the log.",
        hurts: "-Xlog:gc of ZGC prints cycles but no pauses, although there may be some. Without age tables the reason for promotion is \
            unknown, without safepoints stops outside of collections are invisible, without the version few options can be recommended.",
        todo: "From JDK 9 on: -Xlog:gc*,gc+age=trace,safepoint:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m. JDK 8 and \
            older: -Xloggc:gc.log -XX:+PrintGCDetails -XX:+PrintGCDateStamps -XX:+PrintGCTimeStamps \
            -XX:+PrintTenuringDistribution -XX:+PrintGCApplicationStoppedTime. From JDK 9 on jcmd PID VM.log turns logging on \
            without a restart.",
        wrong: "A truncated log has lost its header, and with it the version and the options. Non-generational ZGC and Shenandoah have no \
            ages; a log of few collections may not contain an age table yet.",
        sources: "JEP 158 and JEP 271 (unified logging); the java command of JDK 8.",
    },
    judge,
};

/// What the log may lack, and the name of the missing data.
const ANSWERS: &[(&Key, &str)] = &[
    (&keys::GC_THROUGHPUT, "times"),
    (&keys::GC_ALLOCATION_FAILURES, "causes"),
    (&keys::GC_ALLOCATION_RATE, "the heap before and after"),
    (&keys::GC_SAFEPOINTS, "safepoints"),
    (&keys::GC_VERSION, "the version of the JVM"),
];

/// The same for a log without pauses, which has no times and causes of pauses.
const BESIDE_PAUSES: &[(&Key, &str)] = ANSWERS.split_at(2).1;

/// Collections below which an age table need not have come yet.
const FEW_YOUNGS: f64 = 3.0;

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_YOUNGS, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let Ok(youngs) = run.number(&keys::GC_YOUNGS) else {
        return of_cycles(run);
    };
    let mut lacks = lacks(run, ANSWERS);
    let ages = !matches!(run.collector(), Collector::Z | Collector::Shenandoah);
    let tables = run.value(&keys::GC_AGE_TABLES).unwrap_or(0.0);
    if ages && youngs.value >= FEW_YOUNGS && tables < 1.0 {
        lacks.push("age tables");
    }
    if lacks.is_empty() {
        let sentence = "the log contains what the rules need";
        return Ok(Finding::clear(sentence).cite(youngs.reading));
    }
    // A collector without generations, or a quiet JVM, may have none.
    let of = if youngs.value > 0.0 {
        format!(" of {}", say::count(youngs.value, "young collection"))
    } else {
        String::new()
    };
    let sentence = format!("the log{of} lacks {}", lacks.join(", "));
    Ok(advice(run, sentence, youngs.reading))
}

/// A log of concurrent cycles without pauses.
fn of_cycles(run: &Run<'_>) -> Result<Finding, Missing> {
    let cycles = run.number(&keys::GC_CYCLES)?;
    let mut all = vec!["pauses"];
    all.extend(lacks(run, BESIDE_PAUSES));
    let sentence = format!("the log of concurrent cycles lacks {}", all.join(", "));
    Ok(advice(run, sentence, cycles.reading))
}

fn lacks(run: &Run<'_>, answers: &[(&'static Key, &'static str)]) -> Vec<&'static str> {
    let known = |key: &'static Key| {
        run.value(key).is_some()
            || run.words(key).is_some()
            // A single collection has sizes but no rate, a length but no share.
            || *key == keys::GC_ALLOCATION_RATE && run.value(&keys::GC_HEAP_CAPACITY).is_some()
            || *key == keys::GC_THROUGHPUT && run.value(&keys::GC_SECONDS).is_some_and(|s| s > 0.0)
    };
    let lacking = answers.iter().filter(|(key, _)| !known(key));
    lacking.map(|(_, what)| *what).collect()
}

fn advice(run: &Run<'_>, sentence: String, reading: &Reading) -> Finding {
    let finding = run
        .watch(sentence)
        .severity(Grade::Low)
        .confidence(Grade::High)
        .expect(
            "decisions of the rules that are undecided here, for a few KiB of log per collection",
        )
        .refuted_by("another file of the same JVM contains them")
        .cite(reading);
    run.advise(finding, Goal::RichLog)
}
