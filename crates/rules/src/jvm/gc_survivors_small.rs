//! `gc-survivors-small`: survivor spaces overflow, so that objects are promoted after one or two collections.
//!
//! `HotSpot` aims at survivors that are half full (`TargetSurvivorRatio`) and lowers the threshold until they are
//! (`ageTable.cpp`, `compute_tenuring_threshold`). A threshold of 1 or 2, or a space that is full, says that the room is
//! missing; the age tables say how much of it.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, OPTIONS, Run, SHORT, each, flow};
use crate::{Doc, Judgement, Rule, Threshold, say};

const CUT: Threshold = Threshold {
    name: "mean tenuring threshold, of a higher roof, from which down objects hardly age",
    value: 2.5,
    origin: "own guess: one or two young collections tell little of how long an object lives",
};

const FULL: Threshold = Threshold {
    name: "share of the young collections that leave a survivor space full",
    value: 0.5,
    origin: "more often than not",
};

const FEW: Threshold = Threshold {
    name: "age tables that it takes to judge",
    value: 3.0,
    origin: "own guess: the first collections of a service are not like the others",
};

const SOON: Threshold = Threshold {
    name: "time between old collections in seconds, above which early promotion costs nothing",
    value: 600.0,
    origin: "own guess; in the reference case the old generation was full within minutes",
};

/// `HotSpot`'s default of `TargetSurvivorRatio`, as a share.
const TARGET: f64 = 0.5;

pub(crate) static RULE: Rule = Rule {
    id: "gc-survivors-small",
    topic: "jvm",
    summary: "survivor spaces are too small for what survives",
    needs: &[
        &keys::GC_AGE_DESIRED,
        &keys::GC_AGE_NEEDED,
        &keys::GC_AGE_TABLES,
        &keys::GC_AGE_THRESHOLD,
        &keys::GC_AGE_THRESHOLD_MAX,
        &keys::GC_COLLECTOR,
        &keys::GC_FLAGS,
        &keys::GC_OLD_INTERVAL,
        &keys::GC_PROMOTION_RATE,
        &keys::GC_SECONDS,
        &keys::GC_SURVIVORS_FULL,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
        &keys::GC_YOUNG_CAPACITY,
    ],
    thresholds: &[CUT, FULL, FEW, SOON, SHORT],
    knobs: &[OPTIONS],
    doc: Doc {
        looks_for: "A tenuring threshold of 1 or 2 on average where the roof is higher, or survivor spaces that are full after more \
            than half of the young collections; and how large they would have to be.",
        hurts: "What lives for some seconds is promoted and dies in the old generation, whose collections are the dear ones.",
        todo: "Serial and CMS: -XX:SurvivorRatio so that twice what has to be held fits into one space. Parallel moves its \
            spaces by itself, so that a fixed ratio needs -XX:-UseAdaptiveSizePolicy with it. Where the young generation does not hold that: a larger one (-Xmn). G1 (8, 11, 17, \
            21, 25) sizes its survivors by itself, so there a larger heap or a longer pause goal gives them room. ZGC and \
            Shenandoah with generations (21, 25) have no survivor spaces.",
        wrong: "A burst, or a service that just loads its caches, overflows any space. A long-lived working set has to be promoted \
            once, the sooner the cheaper: then old collections free little (gc-live-growth), and copying less is right. Parallel \
            lowers its threshold to spend less on copying; there only full spaces count. The size is a lower bound: what an age would \
            hold that no table shows is reckoned from the ages before.",
        sources: "HotSpot ageTable.cpp; HotSpot Garbage Collection Tuning Guide, survivor space sizing; the reference case of long \
            connections.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_AGE_TABLES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    if let Some(clear) = run.copies_beside() {
        return Ok(clear);
    }
    let full = run.told(&keys::GC_SURVIVORS_FULL);
    let tables = run.told(&keys::GC_AGE_TABLES).unwrap_or(0.0);
    // Parallel lowers the threshold to spend less on copying, whether or not there is room.
    let threshold = match run.collector() {
        Collector::Parallel => run.number(&keys::GC_SURVIVORS_FULL),
        _ => run.number(&keys::GC_AGE_THRESHOLD),
    };
    let ages = run.collector() != Collector::Parallel;
    let (what, often, reading) = match (threshold, full) {
        (Ok(threshold), _) if ages && tables >= FEW.value => {
            let roof = run.told(&keys::GC_AGE_THRESHOLD_MAX).unwrap_or(15.0);
            let what = format!(
                "the tenuring threshold is {:.1} of {roof:.0} on average",
                threshold.value
            );
            let cut = threshold.value <= CUT.value && roof > CUT.value;
            let overflow = full.is_some_and(|share| share > FULL.value);
            if !cut && !overflow {
                let line = if roof > CUT.value { CUT.value } else { 0.0 };
                return Ok(Finding::clear(format!("{what}: objects stay young"))
                    .above(threshold.value, line)
                    .cite(threshold.reading));
            }
            (what, None, threshold.reading)
        }
        (_, Some(share)) => {
            let full = run.number(&keys::GC_SURVIVORS_FULL)?;
            let what = format!(
                "a survivor space is full after {} of the young collections",
                say::percent(share)
            );
            if share <= FULL.value {
                return Ok(Finding::clear(what)
                    .below(share, FULL.value)
                    .cite(full.reading));
            }
            (what, Some(share), full.reading)
        }
        (Err(missing), None) => return Err(missing),
        (Ok(few), None) => {
            let sentence = format!("{}: too few to judge", say::count(tables, "age table"));
            return Ok(Finding::clear(sentence).cite(few.reading));
        }
    };
    let soon = run
        .told(&keys::GC_OLD_INTERVAL)
        .is_some_and(|interval| interval < SOON.value);
    let (size, goal, expected) = room(run);
    let sentence = format!("{what}: survivors overflow and are promoted at once{size}");
    let finding = if soon && !run.is_short() {
        run.act(sentence)
    } else {
        run.watch(sentence)
    };
    let finding = run
        .cite(
            finding.cite(reading),
            &[
                &keys::GC_AGE_DESIRED,
                &keys::GC_AGE_NEEDED,
                &keys::GC_PROMOTION_RATE,
                &keys::GC_OLD_INTERVAL,
            ],
        )
        .confidence(match often {
            _ if run.is_short() => Grade::Low,
            Some(_) => Grade::Medium,
            None => Grade::High,
        })
        .expect(expected)
        .refuted_by("as much promoted with larger spaces: the objects live longer than that");
    Ok(match goal {
        Some(goal) => run.lower(finding, goal),
        None => finding,
    })
}

/// How large a space would have to be and is, in words; the option that gives it; and what to expect of it.
fn room(run: &Run<'_>) -> (String, Option<Goal>, String) {
    let rate = run.told(&keys::GC_PROMOTION_RATE).map(flow);
    let less = rate.map_or_else(String::new, |rate| {
        format!("at most {rate} less is promoted")
    });
    let (Some(needed), Some(desired)) = (
        run.told(&keys::GC_AGE_NEEDED),
        run.told(&keys::GC_AGE_DESIRED)
            .filter(|desired| *desired > 0.0),
    ) else {
        return (String::new(), None, String::new());
    };
    let target = run
        .value_of("TargetSurvivorRatio=")
        .and_then(|percent| percent.parse::<f64>().ok())
        .filter(|percent| (1.0..=100.0).contains(percent))
        .map_or(TARGET, |percent| percent / 100.0);
    let (now, space) = (desired / target, needed / target);
    if space <= now {
        return (String::new(), None, String::new());
    }
    let size = format!(
        "; a space has {} and would need {} at least",
        say::bytes(now),
        say::bytes(space)
    );
    if run.collector() == Collector::G1 {
        return (format!("{size}, which takes a larger heap"), None, less);
    }
    // The capacity leaves one of the two spaces out.
    let young = run.told(&keys::GC_YOUNG_CAPACITY).map(|young| young + now);
    let Some(young) = young.filter(|young| *young > 2.0 * space) else {
        return (
            format!("{size}, which takes a larger young generation"),
            None,
            less,
        );
    };
    let ratio = (young / space).floor() - 2.0;
    if ratio < 1.0 {
        return (
            format!("{size}, which takes a larger young generation"),
            None,
            less,
        );
    }
    // Spaces of one part, and so many parts of Eden.
    let eden = young - 2.0 * young / (ratio + 2.0);
    let often = (young - 2.0 * now) / eden;
    let and = if less.is_empty() { "" } else { "; " };
    let expected = format!(
        "{less}{and}Eden has {}, so young collections come {often:.1} times as often",
        say::bytes(eden)
    );
    (
        size,
        Some(Goal::SurvivorRatio(ratio.min(1000.0) as u32)),
        expected,
    )
}
