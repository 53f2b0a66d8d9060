//! `gc-threads-few`: an option allows fewer GC threads than there are CPUs.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::run::{Collector, OPTIONS, Run, SHORT, each};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FEW: Threshold = Threshold {
    name: "GC threads as a share of those that the JVM would choose",
    value: 0.5,
    origin: "measured by `cargo xtask faults --random 24 --seed 7002 --layer jvm`: one thread on two CPUs, Parallel, JDK 21, raised p99 of \
        the program from 7 to 54 ms",
};

const PAUSES: Threshold = Threshold {
    name: "share of the run in GC pauses, from which on the rule acts",
    value: 0.01,
    origin: "HotSpot's own goal for G1 and Parallel, GCTimeRatio=99",
};

const MUCH: Threshold = Threshold {
    name: "the same, from which on severity is high",
    value: 0.1,
    origin: "the threshold of gc-throughput, after jifa",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-threads-few",
    topic: "jvm",
    summary: "-XX:ParallelGCThreads leaves CPUs idle during pauses",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_CPUS,
        &keys::GC_FLAGS,
        &keys::GC_PAUSE_LONGEST,
        &keys::GC_SECONDS,
        &keys::GC_THROUGHPUT,
        &keys::GC_WORKERS,
    ],
    thresholds: &[FEW, PAUSES, MUCH, SHORT],
    knobs: &[OPTIONS],
    measure: Some(Measure::less(&keys::GC_THROUGHPUT)),
    doc: Doc {
        looks_for: "At most half of the GC threads that the JVM would choose for its CPUs, by its options or as a unified log reports them \
            at its start.",
        hurts: "Every pause does its work with fewer threads, and so lasts longer.",
        todo: "Remove -XX:ParallelGCThreads. It is recommended where the JVM would choose more than twice as many: on two CPUs, with one \
            thread, removing the option did not halve what requests wait; more CPUs were not available to try it. In a container with a quota, set -XX:ActiveProcessorCount instead, \
            from which the JVM derives all its thread counts.",
        wrong: "The other CPUs may be reserved for other programs on this host. Pauses that do little work, or that copy one long linked \
            list, do not get shorter with more threads.",
        sources: "HotSpot, WorkerPolicy::nof_parallel_worker_threads: all CPUs up to 8, then five of each eight.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_THROUGHPUT, of_run)
}

/// The option that bounds the threads of a pause.
const THREADS: &str = "ParallelGCThreads=";

/// GC threads of the run, if at most half of those that the JVM would choose, and the latter: all CPUs up to 8, then five for
/// each eight (`WorkerPolicy::nof_parallel_worker_threads`). Reads `gc.collector`, `gc.cpus`, `gc.flags`, `gc.workers`.
pub(super) fn few_threads(run: &Run<'_>) -> Option<(u64, u64)> {
    if !pauses_with_threads(run) {
        return None;
    }
    let (threads, cpus) = (threads(run)?, run.value(&keys::GC_CPUS)?);
    let usual = cpus.min(8.0) + (cpus - 8.0).max(0.0) * 5.0 / 8.0;
    (threads >= 1.0 && threads <= usual * FEW.value).then_some((threads as u64, usual as u64))
}

/// Whether the collector does its work in pauses, with the number of threads that [`few_threads`] takes as usual: Z and
/// Shenandoah choose fewer, and work beside the application.
fn pauses_with_threads(run: &Run<'_>) -> bool {
    matches!(
        run.collector(),
        Collector::Parallel | Collector::Cms | Collector::G1
    )
}

/// GC threads: as the command line has it, else as a unified log reports them at its start.
fn threads(run: &Run<'_>) -> Option<f64> {
    run.size_of(THREADS)
        .or_else(|| run.value(&keys::GC_WORKERS))
}

/// Asks to remove the option that bounds the threads. Not where there would be twice as many: that halves a pause at best, and on
/// two CPUs (Parallel, JDK 21) it left 218 of 273 ms of p99.
pub(super) fn unbound(run: &Run<'_>, finding: Finding, threads: u64, usual: u64) -> Finding {
    if 2 * threads >= usual {
        return finding;
    }
    run.take_out(finding, &[THREADS])
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if !pauses_with_threads(run) {
        return Ok(Finding::clear(
            "the collector works with one thread, or while the application runs",
        ));
    }
    if threads(run).is_none() {
        // A command line without the option leaves the number to the JVM.
        if run.words(&keys::GC_FLAGS).is_none() {
            run.number(&keys::GC_WORKERS)?;
        }
        return Ok(Finding::clear(
            "the JVM chooses the number of its GC threads",
        ));
    }
    let cpus = run.number(&keys::GC_CPUS)?;
    let Some((threads, usual)) = few_threads(run) else {
        let sentence = "the JVM uses more than half of the GC threads that it would choose";
        return Ok(Finding::clear(sentence).cite(cpus.reading));
    };
    let throughput = run.number(&keys::GC_THROUGHPUT)?;
    let paused = 1.0 - throughput.value;
    let sentence = format!(
        "{} where the JVM would choose {usual} (-XX:ParallelGCThreads); pauses take {} of the run",
        say::count(threads as f64, "GC thread"),
        say::percent(paused),
    );
    // The first minute of a program collects more than the rest, but not a tenth of its time.
    let counts = paused >= PAUSES.value && !run.is_short() || paused > MUCH.value;
    let finding = if counts {
        run.act(sentence).severity(if paused > MUCH.value {
            Grade::High
        } else {
            Grade::Medium
        })
    } else {
        run.watch(sentence)
    };
    let finding = finding
        .expect("shorter pauses, as far as their work can be shared")
        .refuted_by(
            "user time of the pauses is far below threads x real time: there is nothing to share",
        );
    let finding = unbound(run, finding, threads, usual);
    Ok(run.cite(
        finding,
        &[
            &keys::GC_CPUS,
            &keys::GC_WORKERS,
            &keys::GC_THROUGHPUT,
            &keys::GC_PAUSE_LONGEST,
        ],
    ))
}
