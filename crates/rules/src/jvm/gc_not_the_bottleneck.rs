//! `gc-not-the-bottleneck`: collections take too little time for tuning to matter.
//!
//! The reference bank host spent days on its collector and gained nothing, because its threads waited for a lock. The
//! share of pauses is the most that any option of the collector can gain (Amdahl's law).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::live;
use super::run::{Collector, LONG, Run, SHORT, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Rule, Threshold, say};

const LITTLE: Threshold = Threshold {
    name: "share of the run in GC pauses",
    value: 0.01,
    origin: "own guess: a service varies by more from one run to the next",
};

const WORST: Threshold = Threshold {
    name: "the same for the worst 60 s",
    value: 0.05,
    origin: "GCeasy's threshold for a whole log",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-not-the-bottleneck",
    topic: "jvm",
    summary: "collections take too little time for tuning to matter",
    needs: needs!(
        [
            &keys::GC_COLLECTOR,
            &keys::GC_DEGENERATED,
            &keys::GC_METADATA_LAST,
            &keys::GC_PAUSE_GOAL,
            &keys::GC_PAUSE_P99,
            &keys::GC_STALLS,
            &keys::GC_THROUGHPUT,
            &keys::GC_THROUGHPUT_WORST
        ],
        live::NEEDS
    ),
    thresholds: &[LITTLE, WORST, SHORT, LONG],
    knobs: &[],
    measure: None,
    doc: Doc {
        looks_for: "Pauses that take at most 1 % of the run and 5 % of its worst minute, of which 99 in 100 meet the goal, while no thread \
            waited for memory.",
        hurts: "Nothing; what hurts is time spent on tuning the collector. This is information.",
        todo: "Leave the collector alone and look elsewhere: locks (idle-but-waiting), CPUs, the network, the database. On JDK 8, 11, 17, 21 \
            and 25 alike a change of the collector cannot gain more than the reported share.",
        wrong: "Concurrent collectors (CMS, G1, ZGC, Shenandoah) take CPU time from the service, which no pause shows; on a machine without \
            idle CPUs that costs as well. gc-long-pause covers a single long pause, which a share hides.",
        sources: "The reference bank host (CMS to G1 gained nothing); Amdahl, Validity of the single processor approach, 1967.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_THROUGHPUT, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let whole = run.number(&keys::GC_THROUGHPUT)?;
    let worst = run.number(&keys::GC_THROUGHPUT_WORST)?;
    let (lost, least) = (1.0 - whole.value, 1.0 - worst.value);
    let share = say::percent(lost);
    let clear = |sentence: String| Ok(Finding::clear(sentence).cite(whole.reading));
    if run.is_short() {
        let sentence =
            "the log covers only the start of a service: its share of pauses means little";
        return clear(sentence.to_owned());
    }
    if lost > LITTLE.value {
        let sentence = format!("GC pauses take {share} of the run, which may matter");
        return clear(sentence).map(|finding| finding.above(lost, LITTLE.value));
    }
    if least > WORST.value {
        let sentence = format!(
            "GC pauses take {share} of the run, but {} of its worst minute",
            say::percent(least)
        );
        return clear(sentence).map(|finding| finding.above(least, WORST.value));
    }
    let count = |key| run.value(key).unwrap_or(0.0);
    if count(&keys::GC_STALLS) + count(&keys::GC_DEGENERATED) > 0.0 {
        return clear(format!(
            "GC pauses take {share} of the run, but threads waited for memory: see gc-stall"
        ));
    }
    if live::live(run).fills() {
        return clear(format!(
            "GC pauses take {share} of the run, but the live set fills the heap: see gc-live-growth"
        ));
    }
    if count(&keys::GC_METADATA_LAST) > 0.0 {
        return clear(format!(
            "GC pauses take {share} of the run, but metaspace is at its limit: see gc-metadata"
        ));
    }
    let line = run.goal(&LONG);
    if let Some(long) = run.value(&keys::GC_PAUSE_P99).filter(|long| *long > line) {
        return clear(format!(
            "GC pauses take {share} of the run, but up to {} each (99th percentile)",
            seconds(long)
        ));
    }
    let beside = matches!(
        run.collector(),
        Collector::Cms | Collector::G1 | Collector::Z | Collector::Shenandoah
    );
    let finding = run
        .watch(format!(
            "the collector is not the bottleneck: its pauses take {share} of the run and {} of its worst minute",
            say::percent(least)
        ))
        .severity(Grade::Low)
        .confidence(if beside { Grade::Medium } else { Grade::High })
        .expect(format!(
            "no option of the collector can gain more than {share} of the time"
        ))
        .refuted_by(if beside {
            "all CPUs are busy, many of them with GC threads"
        } else {
            "a longer log under normal load has a larger share"
        });
    Ok(run.cite(
        finding,
        &[
            &keys::GC_THROUGHPUT,
            &keys::GC_THROUGHPUT_WORST,
            &keys::GC_PAUSE_P99,
        ],
    ))
}
