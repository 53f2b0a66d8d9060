//! `gc-long-pause`: the longest pause against the goal, and its longest phase.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::run::{LONG, Run, each, seconds};
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const MOST: Threshold = Threshold {
    name: "share of the pause from which on its longest phase is named",
    value: 0.5,
    origin: "more than all other phases together",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-long-pause",
    topic: "jvm",
    summary: "a pause exceeds the goal",
    needs: &[
        &keys::GC_PAUSE_GOAL,
        &keys::GC_PAUSE_LONGEST,
        &keys::GC_PAUSE_LONGEST_NAME,
        &keys::GC_PAUSE_LONGEST_PHASE,
        &keys::GC_PAUSE_LONGEST_PHASE_SHARE,
        &keys::GC_PAUSE_P99,
        &keys::GC_PAUSES,
    ],
    thresholds: &[LONG, MOST],
    knobs: &[],
    measure: Some(Measure::more(&keys::GC_PAUSE_LONGEST)),
    doc: Doc {
        looks_for: "A longest pause above the goal (--slo), or above 400 ms without one; with its name and its longest phase.",
        hurts: "Every request at that moment waits as long, and requests that arrive meanwhile queue behind them.",
        todo: "The rule for its kind says what helps: gc-remark-long, gc-full, gc-young-long, gc-evacuation-failed, gc-cmf; gc-cpu-starved \
            if the machine is the cause.",
        wrong: "One pause at the start of a service, or during a heap dump, is no pattern: if 99 of 100 pauses meet the goal, the rule only \
            watches. ZGC and Shenandoah can make requests wait without a pause (gc-stall).",
        sources: "jifa (400 ms), JDK Mission Control (1 s).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_PAUSES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let count = run.number(&keys::GC_PAUSES)?;
    if count.value < 1.0 {
        return Ok(Finding::clear("no pause in the log").cite(count.reading));
    }
    let longest = run.number(&keys::GC_PAUSE_LONGEST)?;
    let p99 = run.number(&keys::GC_PAUSE_P99)?;
    let line = run.goal(&LONG);
    if longest.value <= line {
        let sentence = format!(
            "the longest of {} took {}",
            say::count(count.value, "pause"),
            seconds(longest.value)
        );
        return Ok(Finding::clear(sentence)
            .below(longest.value, line)
            .cite(longest.reading));
    }
    let mut sentence = format!("the longest pause took {}", seconds(longest.value));
    if let Some(name) = run.words(&keys::GC_PAUSE_LONGEST_NAME) {
        let _ = write!(sentence, " ({})", name.value.trim());
    }
    let share = run.value(&keys::GC_PAUSE_LONGEST_PHASE_SHARE);
    let phase = run.words(&keys::GC_PAUSE_LONGEST_PHASE);
    if let Some((phase, share)) = phase.zip(share.filter(|share| *share > MOST.value)) {
        let _ = write!(
            sentence,
            ", {} of it {}",
            say::percent(share),
            phase.value.trim()
        );
    }
    let often = p99.value > line;
    let finding = if often {
        run.act(sentence)
    } else {
        let _ = write!(sentence, "; 99 of 100 take at most {}", seconds(p99.value));
        run.watch(sentence)
    };
    Ok(run
        .cite(
            finding,
            &[
                &keys::GC_PAUSE_LONGEST,
                &keys::GC_PAUSE_P99,
                &keys::GC_PAUSE_LONGEST_PHASE_SHARE,
            ],
        )
        .severity(if longest.value > 2.5 * line {
            Grade::High
        } else {
            Grade::Medium
        })
        .confidence(Grade::High)
        .refuted_by(
            "the collection was requested by hand or by a tool, or the service was just starting",
        ))
}
