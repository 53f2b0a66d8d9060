//! `gc-cpu-starved`: pauses are long for lack of CPU time.
//!
//! Several threads collect, so a pause costs more CPU time than it lasts. If it costs less, the threads waited: for a
//! CPU, for a page of swap, for a kernel lock. If most of it is kernel time, the kernel is allocating pages.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::run::{Collector, Run, each, seconds};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const INVERTED: Threshold = Threshold {
    name: "share of pauses of 50 ms or more with less CPU time than wall time",
    value: 0.1,
    origin: "own guess; garbagecat warns at any, and a busy machine has one now and then",
};

const SERIAL: Threshold = Threshold {
    name: "CPU time over wall time of those pauses, below which a single GC thread waited",
    value: 0.9,
    origin: "own guess: one thread gets at most 1, less the 10 ms resolution of the log",
};

const SYS: Threshold = Threshold {
    name: "share of those pauses with more kernel than user time",
    value: 0.1,
    origin: "own guess; garbagecat warns at any, jifa at half the wall time",
};

const FEW: Threshold = Threshold {
    name: "pauses of 50 ms or more needed for a judgement",
    value: 5.0,
    origin: "own guess: one of four is a quarter and no pattern",
};

const PATTERN: Threshold = Threshold {
    name: "pauses of either kind that make a pattern",
    value: 3.0,
    origin: "own guess: the first two of a run touch their memory for the first time",
};

/// Seconds from which on a pause is judged: user, sys and real each come in steps of 10 ms.
const JUDGED: f64 = 0.05;

pub(crate) static RULE: Rule = Rule {
    id: "gc-cpu-starved",
    topic: "jvm",
    summary: "GC threads wait for CPUs, or spend their time in the kernel",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_CPU_INVERTED,
        &keys::GC_CPU_PARALLELISM,
        &keys::GC_CPU_PAUSES,
        &keys::GC_CPU_SYS,
        &keys::GC_CPU_SYS_SHARE,
        &keys::GC_CPUS,
        &keys::GC_PAUSE_LONGEST,
        &keys::GC_WORKERS,
    ],
    thresholds: &[INVERTED, SERIAL, SYS, FEW, PATTERN],
    knobs: &["jvm.active_cpus"],
    measure: Some(Measure::more(&keys::GC_CPU_INVERTED)),
    doc: Doc {
        looks_for: "Pauses of 50 ms or more whose CPU time is less than their wall time, or mostly kernel time.",
        hurts: "A pause lasts as long as the slowest of its threads, and no option of the collector makes it shorter.",
        todo: "Check the machine: steal, cfs-throttled, runq-delay, swap-in and thp-stall show which of them it is. In a container with a \
            quota, set the number of CPUs that the JVM counts on (jvm.active_cpus); GC threads beyond the quota are throttled in the middle \
            of a pause. A log on a slow disk stalls a pause as well: -Xlog:async (JDK 17 on), or a log in memory.",
        wrong: "The Serial collector has one thread, whose CPU time can only equal the pause: there the sum of all pauses is judged. Full \
            collections of CMS, of G1 before JDK 10 and of Parallel without UseParallelOldGC have one thread too, and count only if they got \
            less than nine tenths of a CPU. Times in steps of 10 ms make short pauses look inverted, so only those of 50 ms or more count. \
            The first collections touch their memory for the first time, in the kernel.",
        sources: "garbagecat (inverted parallelism, sys above user), jifa (bad sys).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_CPU_PAUSES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let short = run.number(&keys::GC_PAUSE_LONGEST).ok();
    if let Some(longest) = short.filter(|longest| longest.value < JUDGED) {
        let sentence = format!(
            "no pause of 50 ms or more: the longest took {}",
            seconds(longest.value)
        );
        return Ok(Finding::clear(sentence).cite(longest.reading));
    }
    let pauses = run.number(&keys::GC_CPU_PAUSES)?;
    let inverted = run.number(&keys::GC_CPU_INVERTED)?;
    let sys = run.number(&keys::GC_CPU_SYS)?;
    let parallelism = run.number(&keys::GC_CPU_PARALLELISM)?;
    let all = say::count(pauses.value, "pause");
    if pauses.value < FEW.value {
        let sentence = format!("{all} of 50 ms or more: too few for a pattern");
        return Ok(Finding::clear(sentence).cite(pauses.reading));
    }
    let single = run.collector() == Collector::Serial
        || run
            .value(&keys::GC_WORKERS)
            .is_some_and(|workers| workers < 2.0);
    let pattern = |share: f64| (share * pauses.value).round() >= PATTERN.value;
    let starved = if single {
        parallelism.value < SERIAL.value
    } else {
        inverted.value > INVERTED.value && pattern(inverted.value)
    };
    let keys = [
        &keys::GC_CPU_PAUSES,
        &keys::GC_CPU_INVERTED,
        &keys::GC_CPU_PARALLELISM,
        &keys::GC_CPU_SYS,
        &keys::GC_CPU_SYS_SHARE,
        &keys::GC_CPUS,
    ];
    if sys.value > SYS.value && pattern(sys.value) {
        let sentence = format!(
            "GC runs mostly in the kernel in {} of {all} of 50 ms or more: swap, huge page allocation, or first touch of memory",
            say::percent(sys.value)
        );
        return Ok(run
            .cite(run.act(sentence), &keys)
            .severity(if sys.value > 0.5 { Grade::High } else { Grade::Medium })
            .refuted_by("those pauses are the first of the run: then -XX:+AlwaysPreTouch moves them to startup"));
    }
    if starved {
        let sentence = format!(
            "GC threads waited: {} of {all} of 50 ms or more got less CPU time than they lasted ({:.1} CPUs on average)",
            say::percent(inverted.value),
            parallelism.value.clamp(0.0, 9999.0)
        );
        return Ok(run
            .cite(run.act(sentence), &keys)
            .severity(if inverted.value > 0.5 {
                Grade::High
            } else {
                Grade::Medium
            })
            .refuted_by("CPUs were idle during those pauses, without throttling or swap")
            .consider("jvm.active_cpus"));
    }
    let sentence = format!(
        "pauses got enough CPU time: {:.1} CPUs busy on average",
        parallelism.value.clamp(0.0, 9999.0)
    );
    Ok(Finding::clear(sentence)
        .below(inverted.value, INVERTED.value)
        .cite(parallelism.reading)
        .cite(sys.reading))
}
