//! `gc-premature-promotion`: objects that die soon after are promoted.
//!
//! The old generation fills with objects that would have died young, and each of its collections frees most of them. Either
//! the survivor spaces are too small, so that objects leave them early, or the tenuring threshold is too low.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, each, flow, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const RECLAIMED: Threshold = Threshold {
    name: "share of the old generation that one of its collections frees",
    value: 0.8,
    origin: "the reference case of long connections, where nearly all was dead minutes later",
};

const PROMOTED: Threshold = Threshold {
    name: "mean promotion of a young collection as a share of the old generation",
    value: 0.03,
    origin: "jifa's threshold for a single collection",
};

const INTERVAL: Threshold = Threshold {
    name: "time between old collections in seconds, above which a small share promoted costs nothing",
    value: 600.0,
    origin: "own guess; in the reference case the old generation was full within minutes",
};

const OVERFLOW: Threshold = Threshold {
    name: "share of the age tables that exceed the desired size, or have a lowered threshold",
    value: 0.5,
    origin: "more often than not",
};

/// The age has four bits in the header of an object.
const OLDEST: f64 = 15.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-premature-promotion",
    topic: "jvm",
    summary: "objects that die soon after are promoted",
    needs: needs!(
        [
            &keys::GC_AGE_OVERFLOWS,
            &keys::GC_AGE_TABLES,
            &keys::GC_AGE_THRESHOLD_LOWERED,
            &keys::GC_AGE_THRESHOLD_MAX,
            &keys::GC_OLD_CAPACITY,
            &keys::GC_OLD_INTERVAL,
            &keys::GC_OLD_RECLAIMED,
            &keys::GC_PROMOTED,
            &keys::GC_PROMOTION_RATE,
            &keys::GC_SURVIVORS_FULL
        ],
        JDK
    ),
    thresholds: &[RECLAIMED, PROMOTED, INTERVAL, OVERFLOW],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_PROMOTED)),
    doc: Doc {
        looks_for: "Old collections that free more than 80 % of the old generation, while young collections promote more than 3 % of it \
            each, or fill it within ten minutes; and the reason according to the age tables.",
        hurts: "The expensive collections, those of the old generation, do the work of the cheap ones.",
        todo: "Survivors overflow or the threshold is lowered: larger survivor spaces (a smaller -XX:SurvivorRatio) or a larger young \
            generation. The threshold itself is low: -XX:MaxTenuringThreshold=15, the most that fits an object's header. In the reference \
            case a threshold of 15 instead of 9, with a larger young generation, cut the old collections from 15,000 to 1,500 ms. With G1 a \
            fixed young generation (-Xmn) is worse than none; there a larger heap helps. Generational ZGC and Shenandoah (21, 25) find the \
            age by themselves.",
        wrong: "A growing live set is promoted too; then old collections free little (gc-live-growth). A cache that is dropped as a whole \
            looks the same. Objects that live for several young intervals need survivor space for that many intervals, which no heap may \
            hold.",
        sources: "The reference case of long connections; jifa; HotSpot ageTable.cpp and Garbage Collection Tuning Guide.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_PROMOTED, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if let Some(clear) = run.copies_beside() {
        return Ok(clear);
    }
    let promoted = run.number(&keys::GC_PROMOTED)?;
    let reclaimed = run.number(&keys::GC_OLD_RECLAIMED)?;
    if reclaimed.value <= RECLAIMED.value {
        let sentence = format!(
            "old collections free {} of the old generation: many promoted objects stay live",
            say::percent(reclaimed.value)
        );
        return Ok(Finding::clear(sentence)
            .below(reclaimed.value, RECLAIMED.value)
            .cite(reclaimed.reading));
    }
    let old = run.value(&keys::GC_OLD_CAPACITY).filter(|old| *old > 0.0);
    let share = old.map(|old| promoted.value / old);
    let interval = match share {
        Some(_) => run.value(&keys::GC_OLD_INTERVAL),
        // One of the two has to be known.
        None => Some(run.number(&keys::GC_OLD_INTERVAL)?.value),
    };
    let much = share.is_some_and(|share| share > PROMOTED.value);
    let soon = interval.is_some_and(|interval| interval < INTERVAL.value);
    let amount = share.map_or_else(
        || say::bytes(promoted.value),
        |share| format!("{} of the old generation", say::percent(share)),
    );
    let often = interval.map_or_else(String::new, |interval| {
        format!(" every {}", seconds(interval))
    });
    if !much && !soon {
        let sentence = format!("young collections promote {amount}, and old ones run only{often}");
        return Ok(Finding::clear(sentence)
            .cite(promoted.reading)
            .cite(reclaimed.reading));
    }
    let rate = run.value(&keys::GC_PROMOTION_RATE);
    let rate = rate.map_or_else(String::new, |rate| format!(" ({})", flow(rate)));
    let what = format!(
        "young collections promote {amount} each{rate}; old ones free {} of it{often}",
        say::percent(reclaimed.value)
    );
    let finding = run.cite(
        reason(run, &what),
        &[
            &keys::GC_PROMOTED,
            &keys::GC_OLD_RECLAIMED,
            &keys::GC_OLD_INTERVAL,
            &keys::GC_AGE_OVERFLOWS,
            &keys::GC_AGE_THRESHOLD_MAX,
        ],
    );
    Ok(finding.severity(if much && soon {
        Grade::High
    } else {
        Grade::Medium
    }))
}

fn reason(run: &Run<'_>, what: &str) -> Finding {
    if run.value(&keys::GC_AGE_TABLES).unwrap_or(0.0) < 1.0 {
        return run
            .watch(format!("{what}; without age tables the cause is unknown"))
            .confidence(Grade::Low)
            .refuted_by("age tables (-Xlog:gc+age=trace, JDK 8: -XX:+PrintTenuringDistribution) have few bytes at the oldest age");
    }
    let often = |key| run.value(key).filter(|share| *share > OVERFLOW.value);
    let overflows = match run.collector() {
        // Parallel lowers the threshold to spend less on copying, whether or not there is room.
        Collector::Parallel => often(&keys::GC_SURVIVORS_FULL),
        _ => often(&keys::GC_AGE_OVERFLOWS).or_else(|| often(&keys::GC_AGE_THRESHOLD_LOWERED)),
    };
    if let Some(share) = overflows {
        let room = if run.collector() == Collector::G1 {
            "a larger heap"
        } else {
            "larger survivor spaces or a larger young generation"
        };
        return run
            .act(format!(
                "{what}: survivors overflow in {} of the collections and need {room} (size: see gc-survivors-small)",
                say::percent(share)
            ))
            .confidence(Grade::High)
            .refuted_by("as much is promoted when the age tables no longer exceed the desired size");
    }
    match run.value(&keys::GC_AGE_THRESHOLD_MAX) {
        Some(roof) if roof < OLDEST => {
            let rate = run.value(&keys::GC_PROMOTION_RATE);
            let expected = rate.map_or_else(
                || "promotion falls, but young collections copy more".to_owned(),
                |rate| format!("promotion falls by up to {}, but young collections copy more", flow(rate)),
            );
            let finding = run
                .act(format!(
                    "{what}: survivor spaces have room, but objects leave them at age {roof:.0} of 15"
                ))
                .confidence(Grade::High)
                .expect(expected)
                .refuted_by("age tables with the higher threshold show no deaths at the added ages");
            run.raise(finding, Goal::PromoteAt(OLDEST as u32))
        }
        _ => run
            .watch(format!(
                "{what}, although survivor spaces have room and the threshold is at its maximum: the objects live longer than 15 young collections"
            ))
            .refuted_by("as much is promoted with a larger young generation, whose collections are fewer"),
    }
}
