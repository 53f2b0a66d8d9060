//! `gc-remark-long`: the pause at the end of a concurrent mark, and what would shorten it.
//!
//! CMS's remark scans the whole young generation for references into the old one, because it keeps no record of them
//! (`concurrentMarkSweepGeneration.cpp`, `CMSParRemarkTask`). A young collection just before it leaves only
//! survivors. G1's remark scans no young generation; there references and class unloading take the time.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, JDK, LONG, Run, each, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const MOST: Threshold = Threshold {
    name: "share of the remark from which on one phase is its cause",
    value: 0.5,
    origin: "more than all other phases together",
};

const FULL: Threshold = Threshold {
    name: "young generation in use at the remark, as a share of its capacity, above which emptying it pays off",
    value: 0.5,
    origin: "own guess; in the reference case, at 72 %, the remark became 144 times shorter",
};

/// A GiB in bytes: the regression is per GiB.
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-remark-long",
    topic: "jvm",
    summary: "the remark pause is long",
    needs: needs!(
        [
            &keys::GC_PAUSE_GOAL,
            &keys::GC_REMARKS,
            &keys::GC_REMARK_LONGEST,
            &keys::GC_REMARK_MEDIAN,
            &keys::GC_REMARK_REFERENCES,
            &keys::GC_REMARK_RESCAN,
            &keys::GC_REMARK_SCAVENGED,
            &keys::GC_REMARK_TABLES,
            &keys::GC_REMARK_UNLOADING,
            &keys::GC_REMARK_YOUNG,
            &keys::GC_REMARK_YOUNG_COST,
            &keys::GC_REMARK_YOUNG_COST_LOW,
            &keys::GC_REMARK_YOUNG_SHARE,
            &keys::GC_SURVIVORS,
            &keys::GC_YOUNG_P50
        ],
        JDK
    ),
    thresholds: &[LONG, MOST, FULL],
    knobs: &[super::run::OPTIONS],
    measure: Some(Measure::more(&keys::GC_REMARK_LONGEST)),
    doc: Doc {
        looks_for: "A remark longer than the pause goal, and its longest phase: rescanning with a young generation that is more than half \
            full, references, or class unloading with its tables.",
        hurts: "All threads are stopped meanwhile: in the reference case for 18.18 s, of which rescanning took 18.16 s.",
        todo: "With CMS and rescanning: -XX:+CMSScavengeBeforeRemark. It pays off if a young collection is short: in our lab the remark fell \
            from 315 to 50 ms and the collection before it took 209 to 576 ms, so the sum did not fall; in the reference case the collection \
            took 67 ms and the remark fell to 126 ms. From JDK 14 on there is no CMS. The remark of G1 (17, 21, 25) scans no young \
            generation, and generational ZGC (21, 25) and Shenandoah mark in short pauses; none of them has or needs this option. Mostly \
            references: fewer of them (soft, weak and phantom references, finalizers). -XX:+ParallelRefProcEnabled is not proposed: with a \
            million weak references to objects that die old it left 0.9 of the time (G1, JDK 8, two CPUs); more CPUs were not tried.",
        wrong: "Swap, transparent huge pages or too few CPUs make any pause long (gc-cpu-starved). CMS also rescans the dirty cards of the \
            old generation; emptying the young generation does not change that. Without phases in the log the cause is unknown.",
        sources: "The reference case of long connections (18.18 s to 0.126 s, Eden 5,803,756 K to 70,533 K); HotSpot of JDK 8, \
            concurrentMarkSweepGeneration.cpp; JEP 363.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_REMARKS, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let count = run.number(&keys::GC_REMARKS)?;
    if count.value < 1.0 {
        return Ok(Finding::clear("no remark in the log").cite(count.reading));
    }
    let longest = run.number(&keys::GC_REMARK_LONGEST)?;
    let line = run.goal(&LONG);
    let took = seconds(longest.value);
    if longest.value <= line {
        let sentence = format!(
            "the longest of {} took {took}",
            say::count(count.value, "remark")
        );
        return Ok(Finding::clear(sentence)
            .below(longest.value, line)
            .cite(longest.reading));
    }
    let finding = cause(run, longest.value, &took);
    let finding = run.cite(
        finding,
        &[
            &keys::GC_REMARK_LONGEST,
            &keys::GC_REMARK_MEDIAN,
            &keys::GC_REMARK_RESCAN,
            &keys::GC_REMARK_YOUNG,
            &keys::GC_REMARK_YOUNG_SHARE,
        ],
    );
    let severity = if longest.value >= 1.0 {
        Grade::High
    } else {
        Grade::Medium
    };
    Ok(finding.severity(severity))
}

fn cause(run: &Run<'_>, longest: f64, took: &str) -> Finding {
    let part = |key| run.value(key).unwrap_or(0.0);
    let (rescan, references) = (
        part(&keys::GC_REMARK_RESCAN),
        part(&keys::GC_REMARK_REFERENCES),
    );
    let unloading = part(&keys::GC_REMARK_UNLOADING) + part(&keys::GC_REMARK_TABLES);
    if references > MOST.value {
        let sentence = format!(
            "the longest remark took {took}, {} of it for references",
            say::percent(references)
        );
        return run
            .act(sentence)
            .refuted_by("remarks are as long with fewer references");
    }
    if unloading > MOST.value {
        let sentence = format!(
            "the longest remark took {took}, {} of it to unload classes and clean their tables",
            say::percent(unloading)
        );
        return run
            .watch(sentence)
            .refuted_by("few classes are loaded and the remark is as long");
    }
    // A log without phases may still show that remarks grow with the young generation.
    let grows = part(&keys::GC_REMARK_YOUNG_COST_LOW) > 0.0;
    if rescan > MOST.value || grows {
        return rescanning(run, longest, took, rescan);
    }
    let sentence = match run.value(&keys::GC_REMARK_RESCAN) {
        Some(_) => format!("the longest remark took {took}; none of its phases dominates"),
        None => format!("the longest remark took {took}; the log lacks its phases"),
    };
    run.watch(sentence)
        .confidence(Grade::Low)
        .refuted_by("a log with -XX:+PrintGCDetails or -Xlog:gc+phases=debug shows the phase")
}

fn rescanning(run: &Run<'_>, longest: f64, took: &str, rescan: f64) -> Finding {
    let why = if rescan > 0.0 {
        format!("{} of it to rescan", say::percent(rescan))
    } else {
        "and remarks grow with the young generation".to_owned()
    };
    if run.collector() != Collector::Cms {
        return run
            .watch(format!("the longest remark took {took}, {why}"))
            .refuted_by("remarks are shorter under the same load");
    }
    if run
        .value(&keys::GC_REMARK_SCAVENGED)
        .is_some_and(|share| share > 0.5)
    {
        let sentence = format!(
            "the longest remark took {took}, {why}, although young collections run before remarks"
        );
        return run
            .watch(sentence)
            .refuted_by("the long remark is one of those without a young collection before it");
    }
    let (Some(young), Some(full)) = (
        run.value(&keys::GC_REMARK_YOUNG),
        run.value(&keys::GC_REMARK_YOUNG_SHARE),
    ) else {
        let sentence = format!(
            "the longest remark took {took}, {why}; the log lacks the occupancy of the young generation"
        );
        return run
            .watch(sentence)
            .refuted_by("the young generation was nearly empty at the remark");
    };
    if full <= FULL.value {
        let sentence = format!(
            "the longest remark took {took}, {why}, with the young generation only {} full: dirty cards of the old generation take it",
            say::percent(full)
        );
        return run
            .watch(sentence)
            .refuted_by("remarks get shorter with fewer objects in the young generation");
    }
    let gain = predicted(run, longest, rescan, young);
    let scavenge = run.value(&keys::GC_YOUNG_P50);
    let cost = scavenge.map_or_else(String::new, |cost| {
        format!(", plus a young collection of about {}", seconds(cost))
    });
    let sentence = format!(
        "the longest remark took {took}, {why}, with {} in the young generation ({} of it): emptied first, a remark takes {}{cost}",
        say::bytes(young),
        say::percent(full),
        gain.words
    );
    // Each remark pays for the collection.
    if scavenge.is_some_and(|cost| cost >= longest - gain.best) {
        return run
            .watch(format!("{sentence}, so the sum does not fall"))
            .confidence(gain.sure)
            .refuted_by("young collections before remarks are shorter than the others");
    }
    let paid = scavenge.unwrap_or(0.0);
    let least = gain.most.map_or_else(
        || "at most".to_owned(),
        |most| format!("{} to", seconds((longest - most - paid).max(0.0))),
    );
    let expected = format!(
        "a pause {least} {} shorter, including the preceding young collection ({})",
        seconds(longest - gain.best - paid),
        gain.basis
    );
    let finding = run
        .act(sentence)
        .confidence(gain.sure)
        .expect(expected)
        .refuted_by("\"Rescan\" takes as long with the option, after the young collection");
    run.advise(finding, Goal::ScavengeBeforeRemark)
}

/// The remark with an emptied young generation.
struct Gain {
    /// The best case, seconds.
    best: f64,
    /// The worst case, if it can be derived.
    most: Option<f64>,
    /// Both in words.
    words: String,
    sure: Grade,
    /// What it is derived from.
    basis: &'static str,
}

/// With five remarks by their regression; else by what the shares leave, and by rescanning the survivors alone, which a
/// young collection leaves.
fn predicted(run: &Run<'_>, longest: f64, rescan: f64, young: f64) -> Gain {
    let cost = run.value(&keys::GC_REMARK_YOUNG_COST);
    let low = run
        .value(&keys::GC_REMARK_YOUNG_COST_LOW)
        .filter(|low| *low > 0.0);
    // Less than everything but the rescanning it cannot be.
    let floor = longest * (1.0 - rescan);
    if let (Some(cost), Some(low)) = (cost, low) {
        let left =
            |per_gib: f64| (longest - per_gib * young / GIB).clamp(floor.min(longest), longest);
        let (best, most) = (left(cost), left(low));
        return Gain {
            best,
            most: Some(most),
            words: format!("about {}, at most {}", seconds(best), seconds(most)),
            sure: Grade::High,
            basis: "regression of the remarks on the occupancy of the young generation, 95 %",
        };
    }
    let survive = run
        .value(&keys::GC_SURVIVORS)
        .filter(|bytes| *bytes < young);
    let most = survive.map(|bytes| floor + longest * rescan * bytes / young);
    Gain {
        best: floor,
        most,
        words: most.map_or_else(
            || format!("{} at best", seconds(floor)),
            |most| format!("{} to {}", seconds(floor), seconds(most)),
        ),
        sure: Grade::Medium,
        basis: if most.is_some() {
            "shares of one remark: at best no rescanning is left, at worst that of the survivors"
        } else {
            "shares of one remark; the log lacks what a young collection leaves"
        },
    }
}
