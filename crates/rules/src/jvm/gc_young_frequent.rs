//! `gc-young-frequent`: young collections come so often that they take much of the time.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::run::{Run, SHORT, each, flow, seconds};
use crate::{Doc, Judgement, Rule, Threshold, say};

const INTERVAL: Threshold = Threshold {
    name: "mean time between young collections, in seconds",
    value: 1.0,
    origin: "jifa's line for the mean interval",
};

const SHARE: Threshold = Threshold {
    name: "share of the time in young collections, below which their number does not matter",
    value: 0.05,
    origin: "GCeasy's line for all collections",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-young-frequent",
    topic: "jvm",
    summary: "young collections come several times a second",
    needs: &[
        &keys::GC_ALLOCATION_RATE,
        &keys::GC_EDEN_FREED,
        &keys::GC_SECONDS,
        &keys::GC_YOUNG_INTERVAL,
        &keys::GC_YOUNG_P50,
    ],
    thresholds: &[INTERVAL, SHARE, SHORT],
    knobs: &[],
    doc: Doc {
        looks_for: "Less than a second between young collections on average, while they take more than 5 % of the time (median pause \
            over mean interval).",
        hurts: "Each has a cost that does not depend on its garbage, and objects that live for a moment survive because the next one \
            comes at once.",
        todo: "Allocate less per request (a profile of allocations shows where), or give the young generation more room: twice the \
            room, half as many, each about as long as before where the survivors stay the same. Serial, Parallel and CMS: -Xmn; G1 \
            (8 to 25) takes it from a larger heap or a longer pause goal, and -Xmn takes its goal away.",
        wrong: "Frequent and short is by design with a small pause goal of G1, and costs little: below 5 % it is clear. In the first minute of a \
            service Eden is still small: a shorter log is only watched. Mixed \
            collections of G1 come in bursts after a mark.",
        sources: "jifa (mean below 1 s); the reference bank's arithmetic: 0.5 MB a request at 500/s fill 15 GB a minute.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_YOUNG_INTERVAL, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let interval = run.number(&keys::GC_YOUNG_INTERVAL)?;
    let every = seconds(interval.value);
    if interval.value >= INTERVAL.value {
        let sentence = format!("young collections come every {every}");
        return Ok(Finding::clear(sentence)
            .above(interval.value, INTERVAL.value)
            .cite(interval.reading));
    }
    let pause = run.number(&keys::GC_YOUNG_P50)?;
    let share = (pause.value / interval.value.max(1e-9)).clamp(0.0, 1.0);
    let what = format!(
        "young collections come every {every} and take {} each, {} of the time",
        seconds(pause.value),
        say::percent(share)
    );
    if share <= SHARE.value {
        return Ok(Finding::clear(what)
            .below(share, SHARE.value)
            .cite(interval.reading)
            .cite(pause.reading));
    }
    let rate = run.told(&keys::GC_ALLOCATION_RATE);
    let room = run.told(&keys::GC_EDEN_FREED);
    let sentence = match rate.zip(room) {
        Some((rate, room)) => format!(
            "{what}: {} fill {} of Eden; twice the room halves that",
            flow(rate),
            say::bytes(room)
        ),
        None => what,
    };
    let finding = if run.is_short() {
        run.watch(sentence).confidence(Grade::Low)
    } else {
        run.act(sentence)
    };
    let finding = finding
        .expect("with twice the room half as many, each as long where as much survives: at most half of that share")
        .severity(if share > 2.0 * SHARE.value {
            Grade::High
        } else {
            Grade::Medium
        })
        .refuted_by("as many with twice the young generation: something else asks for them");
    Ok(run.cite(
        finding,
        &[
            &keys::GC_YOUNG_INTERVAL,
            &keys::GC_YOUNG_P50,
            &keys::GC_ALLOCATION_RATE,
            &keys::GC_EDEN_FREED,
        ],
    ))
}
