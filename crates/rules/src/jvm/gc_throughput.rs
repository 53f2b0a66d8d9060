//! `gc-throughput`: the share of GC pauses in the whole run and in its worst minute.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::run::{Collector, Run, SHORT, each};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WHOLE: Threshold = Threshold {
    name: "share of the run without GC pauses",
    value: 0.95,
    origin: "GCeasy; the threshold of jifa is 90 %",
};

const LITTLE: Threshold = Threshold {
    name: "the same, below which severity is high",
    value: 0.9,
    origin: "jifa's threshold for the whole log",
};

const WORST: Threshold = Threshold {
    name: "the same for the worst 60 s",
    value: 0.9,
    origin: "JDK Mission Control: 10 % of pauses within 60 s",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-throughput",
    topic: "jvm",
    summary: "GC pauses take too much of the time",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_PAUSES,
        &keys::GC_SECONDS,
        &keys::GC_STALL_TIME,
        &keys::GC_THROUGHPUT,
        &keys::GC_THROUGHPUT_WORST,
    ],
    thresholds: &[WHOLE, LITTLE, WORST, SHORT],
    knobs: &[],
    measure: Some(Measure::less(&keys::GC_THROUGHPUT)),
    doc: Doc {
        looks_for: "The share of the run in GC pauses, and the same for its worst 60 s.",
        hurts: "During a pause no request is answered; requests that arrive meanwhile wait and then reach the service all at once.",
        todo: "See what the other findings of this run say about the pauses. If there is none, the heap is too small for the allocation \
            rate: each doubling of the space that the live set leaves halves the collections. If they take next to nothing, \
            gc-not-the-bottleneck says so.",
        wrong: "Concurrent collectors take CPU time from the service, which no pause shows; on a machine without idle CPUs that costs as \
            well. A log of less than a minute shows startup. Pauses on a machine without free CPUs are long for that reason \
            (gc-cpu-starved).",
        sources: "GCeasy, jifa and JDK Mission Control for the thresholds; the reference bank host (CMS to G1 gained nothing).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_THROUGHPUT, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let whole = run.number(&keys::GC_THROUGHPUT)?;
    let worst = run.number(&keys::GC_THROUGHPUT_WORST)?;
    let lost = say::percent(1.0 - whole.value);
    let worst_lost = say::percent(1.0 - worst.value);
    let cite = [
        &keys::GC_THROUGHPUT,
        &keys::GC_THROUGHPUT_WORST,
        &keys::GC_PAUSES,
    ];
    let short = run.is_short();
    let confidence = if short { Grade::Low } else { Grade::High };
    if whole.value < WHOLE.value {
        let sentence =
            format!("GC pauses take {lost} of the run, and {worst_lost} of its worst minute");
        let finding = if short {
            run.watch(sentence)
        } else {
            run.act(sentence)
        };
        let severity = if whole.value < LITTLE.value {
            Grade::High
        } else {
            Grade::Medium
        };
        return Ok(run
            .cite(finding, &cite)
            .severity(severity)
            .confidence(confidence)
            .expect(format!(
                "at most {lost} of the time, the whole share of pauses"
            ))
            .refuted_by("a longer log under normal load has a smaller share"));
    }
    if worst.value < WORST.value {
        let sentence = format!(
            "GC pauses take {worst_lost} of the worst minute, but only {lost} of the whole run"
        );
        return Ok(run
            .cite(run.watch(sentence), &cite)
            .confidence(confidence)
            .refuted_by("that minute is the start of the service or a heap dump"));
    }
    let concurrent = matches!(
        run.collector(),
        Collector::Z | Collector::Shenandoah | Collector::Cms | Collector::G1
    );
    let beside = if concurrent {
        "; its concurrent CPU cost does not show in pauses"
    } else {
        ""
    };
    let stalled = run
        .value(&keys::GC_STALL_TIME)
        .is_some_and(|time| time > 0.0);
    let sentence = if stalled {
        format!(
            "GC pauses take {lost} of the run, but threads also waited for memory: see gc-stall"
        )
    } else {
        format!("GC pauses take {lost} of the run, and {worst_lost} of its worst minute{beside}")
    };
    Ok(Finding::clear(sentence)
        .below(1.0 - whole.value, 1.0 - WHOLE.value)
        .cite(whole.reading)
        .cite(worst.reading))
}
