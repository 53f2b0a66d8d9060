//! `gc-evacuation-failed`: G1 found no free region to copy survivors to.
//!
//! Objects stay where they are, their regions become old ones, and the pause is long. A second failure in a row ends in a
//! full collection (`g1CollectedHeap.cpp`; the log says "to-space exhausted", from JDK 17 on "Evacuation Failure").

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::late_start::{self, FIXED_YOUNG};
use super::live;
use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FAILURES: Threshold = Threshold {
    name: "collections whose evacuation failed",
    value: 0.0,
    origin: "any, as in garbagecat: G1 keeps a reserve so that there is none",
};

const HUMONGOUS: Threshold = Threshold {
    name: "share of the heap in humongous objects, above which they are the cause",
    value: 0.3,
    origin: "own guess; jifa warns at half of the heap",
};

const LITTLE: Threshold = Threshold {
    name: "share of the run in pauses, without full collections, below which failures are only watched",
    value: 0.02,
    origin: "planted: 0.65 % in a healthy service of JDK 25 with 7 failures, 2.2 % and more where bursts filled the heap",
};

const LIVE: Threshold = Threshold {
    name: "live set as a share of the maximum heap, above which the heap is too small",
    value: 0.8,
    origin: "jifa's threshold for the old generation after its collection",
};

const PEAK: Threshold = Threshold {
    name: "most that an old collection left, as a share of the maximum heap, above which a reserve of a fifth has no room",
    value: 0.8,
    origin: "what such a reserve leaves; planted bursts on JDK 17 with it: 8 failures became 9 where old collections left 0.81 to 0.86, 5 became none at 0.6",
};

/// Full collections for each failure from which on a reserve is not enough. Measured with planted bursts: at 1 in 15 a reserve of a
/// fifth ended both (JDK 17); at 27 in 104 it left half of the full collections, and a heap of 1.6 times the size left none (JDK 8).
const OFTEN: f64 = 0.2;
/// Share of the pauses from which on humongous allocations are a pattern, as in gc-humongous.
const BROUGHT: f64 = 0.1;
/// Collections for humongous objects that make a pattern, as in gc-humongous.
const FEW: f64 = 3.0;
/// Percent of the heap to keep free. The default is 10, and the tuning guide says to raise it.
const RESERVE: u32 = 20;

pub(crate) static RULE: Rule = Rule {
    id: "gc-evacuation-failed",
    topic: "jvm",
    summary: "G1 found no free region to copy survivors to",
    needs: needs!(
        [
            &keys::GC_CONCURRENT_ABORTED,
            &keys::GC_CYCLE_LENGTH,
            &keys::GC_CYCLE_OCCUPANCY,
            &keys::GC_EVACUATION_FAILURES,
            &keys::GC_FULLS_ALLOCATION,
            &keys::GC_FULLS_EXPLICIT,
            &keys::GC_HUMONGOUS,
            &keys::GC_HUMONGOUS_SHARE,
            &keys::GC_MEMORY,
            &keys::GC_PAUSES,
            &keys::GC_PROMOTION_PEAK,
            &keys::GC_PROMOTION_RATE,
            &keys::GC_THROUGHPUT
        ],
        live::NEEDS,
        JDK
    ),
    thresholds: &[FAILURES, HUMONGOUS, LITTLE, LIVE, PEAK],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_EVACUATION_FAILURES)),
    doc: Doc {
        looks_for: "Collections with \"to-space exhausted\" or \"Evacuation Failure\", and what had taken the free regions: humongous \
            objects, a fixed young generation, a live set that fills the heap, cycles that start too late, or a burst.",
        hurts: "The collection takes several times as long, objects that could not be moved fill the old generation, and a full collection \
            often follows.",
        todo: "Remove a fixed -Xmn, -XX:NewSize or -XX:NewRatio: with it G1 cannot shrink the young generation to make room. If cycles start \
            above what the promotion of a cycle and the reserve leave: an earlier start (-XX:InitiatingHeapOccupancyPercent, from JDK 9 on \
            with -XX:-G1UseAdaptiveIHOP). If a full collection follows one failure in five, or one left more than four fifths of the heap: a larger heap. Otherwise keep more regions free \
            (-XX:G1ReservePercent=20; JDK 8, 11, 17, 21 and 25 accept it); if that many are free already, or the live set exceeds four \
            fifths of the heap: a larger heap. Humongous objects: gc-humongous.",
        wrong: "One failure at the start, while G1 learns the size of the young generation, is no pattern. From JDK 22 on a region in which \
            native code pins an object (JEP 423) stays in place; \"Evacuation Failure: Pinned\" is not counted.",
        sources: "HotSpot Garbage Collection Tuning Guide, G1, on evacuation failures; JEP 423; own logs of JDK 17 with a heap that \
            is too small.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_EVACUATION_FAILURES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let failures = run.number(&keys::GC_EVACUATION_FAILURES)?;
    if failures.value <= FAILURES.value {
        return Ok(Finding::clear("no evacuation failed").cite(failures.reading));
    }
    let fulls = run.value(&keys::GC_FULLS_ALLOCATION).unwrap_or(0.0);
    let mut what = format!(
        "evacuation failed in {}",
        say::count(failures.value, "collection")
    );
    if fulls > 0.0 {
        let _ = write!(
            what,
            ", and lack of space caused {}",
            say::count(fulls, "full collection")
        );
    }
    let mut finding = remedy(run, &what, failures.value + fulls);
    // A failure that costs no time does no harm; a healthy service of JDK 25 has one in ten collections at its start.
    let lost = run.value(&keys::GC_THROUGHPUT).map(|share| 1.0 - share);
    if fulls < 1.0
        && lost.is_some_and(|lost| lost < LITTLE.value)
        && finding.outcome == Outcome::Act
    {
        finding.outcome = Outcome::Watch;
    }
    let finding = run.cite(
        finding,
        &[
            &keys::GC_EVACUATION_FAILURES,
            &keys::GC_FULLS_ALLOCATION,
            &keys::GC_HUMONGOUS_SHARE,
            &keys::GC_LIVE_SHARE,
            &keys::GC_LIVE_PEAK,
            &keys::GC_CYCLE_OCCUPANCY,
            &keys::GC_CONCURRENT_ABORTED,
        ],
    );
    // Where the heap is full, that is the cause, and it comes first.
    Ok(
        finding.severity(if fulls > 0.0 && !live::live(run).fills() {
            Grade::High
        } else {
            Grade::Medium
        }),
    )
}

fn remedy(run: &Run<'_>, what: &str, troubles: f64) -> Finding {
    let above = |key, line: &Threshold| run.value(key).filter(|share| *share > line.value);
    if let Some(share) = above(&keys::GC_HUMONGOUS_SHARE, &HUMONGOUS) {
        let sentence = format!(
            "{what}; humongous objects took up to {} of the heap: see gc-humongous",
            say::percent(share)
        );
        return run
            .act(sentence)
            .refuted_by("evacuation also fails when few humongous regions are in use");
    }
    let asked = run.value(&keys::GC_HUMONGOUS).unwrap_or(0.0);
    let pauses = run.value(&keys::GC_PAUSES).filter(|pauses| *pauses > 0.0);
    let part = pauses.map(|pauses| asked / pauses);
    if let Some(part) = part.filter(|part| *part > BROUGHT && asked >= FEW) {
        let sentence = format!(
            "{what}; humongous objects triggered {} of the pauses: see gc-humongous",
            say::percent(part.min(1.0))
        );
        // What to do about them is the other rule's matter.
        return run
            .watch(sentence)
            .refuted_by("evacuation also fails when few humongous regions are in use");
    }
    if live::live(run).is_leak() {
        let sentence = format!("{what}; the live set keeps growing: see gc-live-growth");
        return run
            .act(sentence)
            .refuted_by("evacuation fails as often while the live set is level");
    }
    if let Some(share) = above(&keys::GC_LIVE_SHARE, &LIVE) {
        let sentence = format!(
            "{what}; {} of the maximum heap is live, so the heap is too small",
            say::percent(share)
        );
        let finding = run
            .act(sentence)
            .refuted_by("an old collection leaves less in a longer log");
        return run.grow(finding, "space for copying survivors");
    }
    let fixed = ["-Xmn", "-XX:NewSize=", "-XX:MaxNewSize=", "-XX:NewRatio="];
    if let Some(option) = fixed.iter().find(|option| run.has_option(option)) {
        let sentence = format!(
            "{what}; {} fixes the young generation, so G1 cannot shrink it to make room: remove it",
            option.trim_end_matches('=')
        );
        let finding = run
            .act(sentence)
            .confidence(Grade::High)
            .expect("G1 shrinks the young generation before regions run out: at best none of these failures")
            .refuted_by("failures continue without it");
        return run.take_out(finding, &FIXED_YOUNG);
    }
    if troubles <= 1.0 {
        let sentence = format!("{what}, once: a burst or startup");
        return run
            .watch(sentence)
            .confidence(Grade::Low)
            .refuted_by("a longer log has no other failure");
    }
    if let Some(late) = late_start::late(run) {
        let finding = run
            .act(format!("{what}; {}", late.why))
            .refuted_by("failures continue although all cycles start at the new occupancy");
        return late.ask(run, finding);
    }
    let fulls = run.value(&keys::GC_FULLS_ALLOCATION).unwrap_or(0.0);
    let peak = above(&keys::GC_LIVE_PEAK, &PEAK);
    if peak.is_some() || fulls >= OFTEN * (troubles - fulls) {
        let sentence = match peak {
            Some(share) => format!(
                "{what}; an old collection left up to {} of the maximum heap in use, so there is no room for bursts",
                say::percent(share)
            ),
            None => format!("{what}: the heap has no room for bursts"),
        };
        let finding = run
            .act(sentence)
            .refuted_by("failures and full collections continue with a larger heap");
        return run.grow(finding, "space for bursts");
    }
    let reserve = late_start::reserve(run);
    if reserve >= f64::from(RESERVE) / 100.0 {
        let sentence = format!(
            "{what}, although {} of the heap is kept free",
            say::percent(reserve)
        );
        let finding = run
            .act(sentence)
            .refuted_by("failures continue with a larger heap");
        return run.grow(finding, "space for bursts");
    }
    let finding = run
        .act(what.to_owned())
        .expect("space for bursts of a fifth of the heap, and a tenth less for objects: cycles start sooner")
        .refuted_by("failures continue with more regions in reserve");
    run.raise(finding, Goal::Reserve(RESERVE))
}
