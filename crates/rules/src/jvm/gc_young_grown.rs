//! `gc-young-grown`: young collections became longer as the young generation became larger.
//!
//! A JVM that may choose enlarges the young generation under load. A collection costs what survives, and if more survives
//! in a larger young generation, each pause grows with it. The run shows both over time, and the regression of pauses on
//! sizes shows how certain it is.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const GROWN: Threshold = Threshold {
    name: "young pause of the last quarter of the run over that of the first",
    value: 1.5,
    origin: "own guess; in the reference case of long connections the pause tripled with 12 instead of 7 GiB",
};

const SIZE: Threshold = Threshold {
    name: "young generation of the last quarter over that of the first, below which the size is not the reason",
    value: 1.2,
    origin: "own guess: less than the sizes normally vary",
};

const FEW: Threshold = Threshold {
    name: "young collections needed for a trend",
    value: 20.0,
    origin: "own guess: five in each quarter",
};

const LONG: Threshold = Threshold {
    name: "young pause of the last quarter in seconds, above which the rule acts, if no goal is given",
    value: 0.2,
    origin: "HotSpot's own goal for G1 (MaxGCPauseMillis)",
};

const SHRINK: Threshold = Threshold {
    name: "young generation of the last quarter over the recommended one, above which no size is recommended",
    value: 4.0,
    origin: "own guess: four times as many collections cost more than their length gains",
};

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;

pub(crate) static RULE: Rule = Rule {
    id: "gc-young-grown",
    topic: "jvm",
    summary: "young collections became longer with a larger young generation",
    needs: needs!(
        [
            &keys::GC_PAUSE_GOAL,
            &keys::GC_YOUNG_COST,
            &keys::GC_YOUNG_COST_LOW,
            &keys::GC_YOUNG_P50,
            &keys::GC_YOUNG_USED,
            &keys::GC_YOUNGS
        ],
        JDK
    ),
    thresholds: &[GROWN, SIZE, FEW, LONG, SHRINK],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_YOUNG_COST)),
    doc: Doc {
        looks_for: "Young pauses that are half as long again in the last quarter of the run as in the first, while the young generation grew \
            by a fifth or more, and the regression of pauses on sizes is above zero with 95 % confidence.",
        hurts: "Fewer collections, each longer: throughput stays the same, but the requests of that moment wait longer.",
        todo: "If pauses matter more than throughput, fix a size at which they meet the goal: -Xmn with Serial, Parallel and CMS, if the log has \
            pauses at such a size and it is no less than a quarter of the last one. With G1 (8 \
            to 25) lower -XX:MaxGCPauseMillis and omit -Xmn: G1 shrinks the young generation until pauses meet the goal. On 17, 21 and 25 \
            ZGC and Shenandoah copy concurrently and have no such pause. rungwise compare shows the same between two runs.",
        wrong: "More load makes more survive as well, whatever the size; then pauses grow at constant size. G1 enlarges the young generation \
            on purpose as long as pauses meet its goal: below the goal the rule only watches.",
        sources: "The reference case of long connections (7 to 12 GiB, pauses tripled to 0.2 s); HotSpot Garbage Collection Tuning \
            Guide on ergonomics.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_YOUNG_P50, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if let Some(clear) = run.copies_beside() {
        return Ok(clear);
    }
    let pauses = run.number(&keys::GC_YOUNG_P50)?;
    let sizes = run.number(&keys::GC_YOUNG_USED)?;
    let count = run.value(&keys::GC_YOUNGS).unwrap_or(0.0);
    let ends = ends(&pauses.reading.series).zip(ends(&sizes.reading.series));
    let Some(((first, last), (small, large))) = ends.filter(|_| count >= FEW.value) else {
        let sentence = format!(
            "{}: too few for a trend",
            say::count(count, "young collection")
        );
        return Ok(Finding::clear(sentence).cite(pauses.reading));
    };
    let what = format!(
        "young collections took {} at first and {} at the end",
        seconds(first),
        seconds(last)
    );
    if last <= GROWN.value * first {
        return Ok(Finding::clear(what)
            .below(last / first, GROWN.value)
            .cite(pauses.reading));
    }
    let grew = format!(
        "the young generation went from {} to {}",
        say::bytes(small),
        say::bytes(large)
    );
    let low = run
        .value(&keys::GC_YOUNG_COST_LOW)
        .filter(|low| *low > 0.0 && large > SIZE.value * small);
    let Some(low) = low else {
        let sentence = format!("{what}, but {grew}, which does not explain it");
        return Ok(Finding::clear(sentence)
            .cite(pauses.reading)
            .cite(sizes.reading));
    };
    let cost = run.value(&keys::GC_YOUNG_COST).unwrap_or(low);
    let sentence = format!(
        "{what}, while {grew}: each GiB costs {}, at least {}",
        seconds(cost),
        seconds(low)
    );
    let line = run.goal(&LONG);
    let too_long = last > line;
    let finding = if too_long {
        run.act(sentence)
    } else {
        run.watch(sentence).severity(Grade::Low)
    };
    let finding = run
        .cite(
            finding,
            &[
                &keys::GC_YOUNG_P50,
                &keys::GC_YOUNG_USED,
                &keys::GC_YOUNG_COST_LOW,
            ],
        )
        .refuted_by("pauses are as long at the former size: more survives than before");
    if !too_long {
        return Ok(finding);
    }
    // The size at which a pause meets the line, by the regression. Below the sizes that the log shows it does not hold: from a
    // few young generations that grew from 4 to 117 MiB it derived `-Xmn3m`, with 588 collections instead of 31 and 20 full ones
    // instead of 10.
    let fits = large - (last - line).max(0.0) / cost * GIB;
    if fits < small.max(large / SHRINK.value) {
        return Ok(finding);
    }
    let finding = finding.expect(format!(
        "young pauses of about {} with a young generation of {}, but {:.1} times as many",
        seconds(last.min(line)),
        say::bytes(fits),
        (large / fits).clamp(1.0, 1e6)
    ));
    Ok(run.lower(
        finding,
        Goal::YoungMib((fits / MIB).floor().max(1.0) as u64),
    ))
}

/// Means of the first and of the last quarter; none of fewer than four parts, or of nothing.
fn ends(series: &[f64]) -> Option<(f64, f64)> {
    let quarter = series.len() / 4;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    (quarter > 0)
        .then(|| {
            (
                mean(&series[..quarter]),
                mean(&series[series.len() - quarter..]),
            )
        })
        .filter(|(first, last)| *first > 0.0 && *last > 0.0)
}
