//! `gc-survivors-small`: survivor spaces overflow, so that objects are promoted after one or two collections.
//!
//! `HotSpot` aims at survivors that are half full (`TargetSurvivorRatio`) and lowers the threshold until they are
//! (`ageTable.cpp`, `compute_tenuring_threshold`). A threshold of 1 or 2, or a full space, means that the space is too
//! small; the age tables show by how much.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::live;
use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, SHORT, each, flow};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const CUT: Threshold = Threshold {
    name: "mean tenuring threshold, with a higher maximum, up to which objects hardly age",
    value: 2.5,
    origin: "own guess: one or two young collections show little of how long objects live",
};

const FULL: Threshold = Threshold {
    name: "share of the young collections that leave a survivor space full",
    value: 0.5,
    origin: "more often than not",
};

const FEW: Threshold = Threshold {
    name: "age tables needed for a judgement",
    value: 3.0,
    origin: "own guess: the first collections of a service are not like the others",
};

const DIES: Threshold = Threshold {
    name: "share of the old generation that its collections free, above which promotion was unnecessary",
    value: 0.3,
    origin: "planted overflows beside a live set of a fifth of the heap: 0.5 to 0.7; a heap that is full frees less",
};

const SOON: Threshold = Threshold {
    name: "time between old collections in seconds, above which early promotion costs nothing",
    value: 600.0,
    origin: "own guess; in the reference case the old generation was full within minutes",
};

/// Space beside the mean size of all survivors.
const SPARE: f64 = 1.2;
/// Spaces that the young generation has at least: two to copy between, and four for Eden.
const PARTS: f64 = 6.0;
/// Share of the memory that a heap may take.
const MOST: f64 = 0.75;
/// `HotSpot`'s default of `TargetSurvivorRatio`, as a share.
const TARGET: f64 = 0.5;

pub(crate) static RULE: Rule = Rule {
    id: "gc-survivors-small",
    topic: "jvm",
    summary: "survivor spaces are too small for what survives",
    needs: needs!(
        [
            &keys::GC_AGE_DESIRED,
            &keys::GC_AGE_NEEDED,
            &keys::GC_AGE_TABLES,
            &keys::GC_AGE_THRESHOLD,
            &keys::GC_AGE_THRESHOLD_MAX,
            &keys::GC_MEMORY,
            &keys::GC_OLD_INTERVAL,
            &keys::GC_OLD_RECLAIMED,
            &keys::GC_PROMOTED,
            &keys::GC_PROMOTION_RATE,
            &keys::GC_SURVIVORS,
            &keys::GC_SURVIVORS_FULL,
            &keys::GC_YOUNG_CAPACITY
        ],
        live::NEEDS,
        JDK
    ),
    thresholds: &[CUT, FULL, FEW, DIES, SOON, SHORT],
    knobs: &[OPTIONS],
    measure: Some(Measure::less(&keys::GC_AGE_THRESHOLD)),
    doc: Doc {
        looks_for: "A mean tenuring threshold of 1 or 2 with a higher maximum, survivor spaces that are full after more than half of the \
            young collections, or (Serial, Parallel, CMS, without age tables) young collections that promote more than they leave in a \
            survivor space, while old collections free it again; and how large the spaces would have to be.",
        hurts: "Objects that live for seconds are promoted and die in the old generation, whose collections are the expensive ones.",
        todo: "A larger young generation with spaces that hold all survivors (-Xmn and -XX:SurvivorRatio), in a heap that leaves the old \
            generation its size (-Xmx). Parallel resizes its spaces by itself, so a fixed ratio needs -XX:-UseAdaptiveSizePolicy with it. A \
            smaller SurvivorRatio alone takes the space from Eden: fewer old collections, but more young ones. G1 (8, 11, 17, 21, 25) sizes \
            its survivors by itself, so there a larger heap or a longer pause goal gives them space. Generational ZGC and Shenandoah (21, \
            25) have no survivor spaces.",
        wrong: "A burst, or a service that is loading its caches, overflows any space. A long-lived working set has to be promoted once, the \
            sooner the cheaper: then old collections free little (gc-live-growth), and copying less is right. Parallel lowers its threshold \
            to spend less on copying; there only full spaces count. The size is a lower bound: ages that no table shows are extrapolated \
            from the ages before.",
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
    let full = run.value(&keys::GC_SURVIVORS_FULL);
    let tables = run.value(&keys::GC_AGE_TABLES).unwrap_or(0.0);
    // Parallel lowers the threshold to spend less on copying, whether or not there is room.
    let threshold = match run.collector() {
        Collector::Parallel => run.number(&keys::GC_SURVIVORS_FULL),
        _ => run.number(&keys::GC_AGE_THRESHOLD),
    };
    let ages = run.collector() != Collector::Parallel;
    let (what, often, reading) = match (threshold, full) {
        (Ok(threshold), _) if ages && tables >= FEW.value => {
            let roof = run.value(&keys::GC_AGE_THRESHOLD_MAX).unwrap_or(15.0);
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
        _ if overflows(run) => {
            let promoted = run.number(&keys::GC_PROMOTED)?;
            let left = run.number(&keys::GC_SURVIVORS)?;
            let what = format!(
                "young collections promote {} each and leave {} in their survivor space",
                say::bytes(promoted.value),
                say::bytes(left.value)
            );
            (what, Some(1.0), promoted.reading)
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
        .value(&keys::GC_OLD_INTERVAL)
        .is_some_and(|interval| interval < SOON.value);
    let (size, goal, expected) = room(run);
    let sentence = format!("survivors overflow and are promoted at once: {what}{size}");
    // A full heap has no room for survivors either.
    let finding = if soon && !run.is_short() && !live::live(run).fills() {
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
        .refuted_by("as much is promoted with larger spaces: the objects live longer than that");
    Ok(match goal {
        Some(goal) => run.advise(finding, goal),
        None => finding,
    })
}

/// Collectors with survivor spaces of a fixed size promote more than stays, and old collections free it: the promoted objects have
/// not aged. Long-lived objects are promoted too, but pass the survivor space several times before. Reads `gc.collector`,
/// `gc.old_reclaimed`, `gc.promoted` and `gc.survivors`.
pub(super) fn overflows(run: &Run<'_>) -> bool {
    let sized = matches!(
        run.collector(),
        Collector::Serial | Collector::Parallel | Collector::Cms
    );
    let promoted = run.value(&keys::GC_PROMOTED).unwrap_or(0.0);
    let left = run.value(&keys::GC_SURVIVORS).unwrap_or(f64::INFINITY);
    let dies = run
        .value(&keys::GC_OLD_RECLAIMED)
        .is_some_and(|share| share > DIES.value);
    sized && promoted > left && dies
}

/// The required and the current size of a space, in words; the option that sets it; and the expected effect.
fn room(run: &Run<'_>) -> (String, Option<Goal>, String) {
    let rate = run.value(&keys::GC_PROMOTION_RATE).map(flow);
    let less = rate.map_or_else(String::new, |rate| {
        format!("promotion falls by up to {rate}")
    });
    let target = run
        .value_of("TargetSurvivorRatio=")
        .and_then(|percent| percent.parse::<f64>().ok())
        .filter(|percent| (1.0..=100.0).contains(percent))
        .map_or(TARGET, |percent| percent / 100.0);
    let now = run
        .value(&keys::GC_AGE_DESIRED)
        .map(|desired| desired / target);
    // The age tables lack what overflowed, so they are a lower bound; what stays and what is promoted is what has to fit.
    let by_ages = run
        .value(&keys::GC_AGE_NEEDED)
        .map(|needed| needed / target);
    let in_flight = run
        .value(&keys::GC_SURVIVORS)
        .zip(run.value(&keys::GC_PROMOTED))
        .map(|(survivors, promoted)| SPARE * (survivors + promoted));
    let space = match (by_ages, in_flight) {
        (Some(ages), Some(all)) => ages.max(all),
        (one, other) => match one.or(other) {
            Some(space) => space,
            None => return (String::new(), None, String::new()),
        },
    };
    if now.is_some_and(|now| space <= now) {
        return (String::new(), None, String::new());
    }
    let has = now.map_or_else(String::new, |now| format!("has {} but ", say::bytes(now)));
    let size = format!("; a space {has}needs at least {}", say::bytes(space));
    if run.collector() == Collector::G1 {
        return (format!("{size}, which requires a larger heap"), None, less);
    }
    let size = format!("{size}, which requires a larger young generation");
    let Some(goal) = larger_young(run, space, now.unwrap_or(0.0)) else {
        return (size, None, less);
    };
    let and = if less.is_empty() { "" } else { "; " };
    let expected = format!("{less}{and}half as many young collections, and few old ones");
    (size, Some(goal), expected)
}

/// A young generation of at least twice the size, with spaces of this one, in a heap whose old generation keeps twice what lives and
/// room for a young collection that promotes all. Only where the memory is known to hold it. A smaller `SurvivorRatio` alone takes
/// the room from Eden: with a planted overflow (JDK 8 Parallel, JDK 17 Serial) full collections went from 17 to 1 and young ones
/// came three times as often, so that pauses took more time than before.
fn larger_young(run: &Run<'_>, space: f64, now: f64) -> Option<Goal> {
    const MIB: f64 = 1024.0 * 1024.0;
    let heap = run.value(&keys::GC_HEAP_MAX)?;
    // The capacity leaves one of the two spaces out.
    let young = run.value(&keys::GC_YOUNG_CAPACITY)? + now;
    let wanted = (2.0 * young).max(PARTS * space);
    let ratio = (wanted / space).floor().clamp(3.0, 10.0) - 2.0;
    let live = run.value(&keys::GC_LIVE).unwrap_or(0.0);
    let old = (heap - young).max(2.0 * live + wanted);
    let whole = wanted + old;
    let memory = run.value(&keys::GC_MEMORY)?;
    (whole <= MOST * memory).then(|| Goal::Survivors {
        heap: (whole / MIB).ceil() as u64,
        young: (wanted / MIB).ceil() as u64,
        ratio: ratio as u32,
    })
}
