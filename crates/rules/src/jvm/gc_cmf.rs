//! `gc-cmf`: CMS does not free the old generation in time.
//!
//! CMS frees memory while the service allocates. If it starts too late, or finds no block large enough, one thread compacts
//! the whole old generation in a pause (`concurrent mode failure`, `promotion failed`).

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::late_start::{CYCLES, promoted_in_a_cycle};
use super::live;
use super::options::Goal;
use super::run::{Collector, JDK, OPTIONS, Run, each, flow, seconds};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FAILURES: Threshold = Threshold {
    name: "concurrent mode failures and promotion failures",
    value: 0.0,
    origin: "any, as in garbagecat; a cycle that starts in time has none",
};

const LIVE: Threshold = Threshold {
    name: "live set as a share of the old generation, above which no start is early enough",
    value: 0.8,
    origin: "jifa's threshold for the old generation after its collection",
};

const PIECES: Threshold = Threshold {
    name: "largest free block as a share of the free space, below which the old generation is fragmented",
    value: 0.1,
    origin: "own guess: an array as large as a tenth of the free space finds no block",
};

/// Space beyond the promotion of a cycle, as a share of the old generation: for bursts and unusable fragments.
const SPARE: f64 = 0.1;
/// Upper bound of the space kept free for the largest promotion: the first one may move everything that a service holds.
const MOST: f64 = 0.15;
/// The start that the reference case ended with, for a log without the rates.
const USUAL: f64 = 0.7;

pub(crate) static RULE: Rule = Rule {
    id: "gc-cmf",
    topic: "jvm",
    summary: "CMS does not free the old generation in time",
    needs: needs!(
        [
            &keys::GC_CONCURRENT_MODE_FAILURES,
            &keys::GC_CYCLE_LENGTH,
            &keys::GC_CYCLE_OCCUPANCY,
            &keys::GC_FREE_LARGEST,
            &keys::GC_FULL_LONGEST,
            &keys::GC_MEMORY,
            &keys::GC_PROMOTED_LARGEST,
            &keys::GC_PROMOTION_FAILED_AT,
            &keys::GC_PROMOTION_FAILURES,
            &keys::GC_PROMOTION_PEAK,
            &keys::GC_PROMOTION_RATE
        ],
        live::NEEDS,
        JDK
    ),
    thresholds: &[FAILURES, LIVE, PIECES],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_CONCURRENT_MODE_FAILURES)),
    doc: Doc {
        looks_for: "A concurrent mode failure or a promotion failure of CMS, with the occupancy at which its cycles start, their length and \
            the promotion meanwhile.",
        hurts: "One thread collects the whole heap while the service is stopped, for seconds per GiB.",
        todo: "Start earlier, at a fixed occupancy: -XX:CMSInitiatingOccupancyFraction with -XX:+UseCMSInitiatingOccupancyOnly. The share \
            leaves space for the promotion of one and a half cycles, for the largest single promotion, because CMS collects the young \
            generation only if that much is free, and a tenth to spare. If the live set leaves no such space, only a larger old generation \
            or fewer live objects help. From JDK 14 on there is no CMS: G1 (17, 21, 25) adapts its start and compacts as it goes; its \
            counterpart of this problem is gc-evacuation-failed.",
        wrong: "System.gc() and heap dumps interrupt a cycle, which is not counted here. Very large arrays fail to be promoted if the free \
            space of the old generation is fragmented; an earlier start helps little then.",
        sources: "The reference case of long connections (70 %); HotSpot of JDK 8, concurrentMarkSweepGeneration.cpp; JEP 363.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_CONCURRENT_MODE_FAILURES, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let failures = run.number(&keys::GC_CONCURRENT_MODE_FAILURES)?;
    let promotions = run.number(&keys::GC_PROMOTION_FAILURES)?;
    let all = failures.value + promotions.value;
    if all <= FAILURES.value {
        let sentence = "no concurrent mode failure and no promotion failure";
        return Ok(Finding::clear(sentence).cite(failures.reading));
    }
    if !matches!(run.collector(), Collector::Cms | Collector::Other) {
        let sentence =
            "promotions failed, but this collector compacts in each full collection; see gc-full";
        return Ok(Finding::clear(sentence).cite(promotions.reading));
    }
    let longest = run
        .value(&keys::GC_FULL_LONGEST)
        .filter(|longest| *longest > 0.0);
    let longest = longest.map_or_else(String::new, |longest| {
        format!(", longest full collection {}", seconds(longest))
    });
    let troubles: Vec<String> = [
        (failures.value, "concurrent mode failure"),
        (promotions.value, "promotion failure"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0.0)
    .map(|(count, what)| say::count(count, what))
    .collect();
    let what = format!("{}{longest}", troubles.join(" and "));
    let finding = remedy(run, &what);
    let finding = run.cite(
        finding,
        &[
            &keys::GC_CONCURRENT_MODE_FAILURES,
            &keys::GC_PROMOTION_FAILURES,
            &keys::GC_PROMOTION_FAILED_AT,
            &keys::GC_CYCLE_OCCUPANCY,
            &keys::GC_CYCLE_LENGTH,
            &keys::GC_PROMOTION_RATE,
            &keys::GC_LIVE_SHARE,
        ],
    );
    // Where the heap is full, that is the cause, and it comes first.
    Ok(finding.severity(if live::live(run).fills() {
        Grade::Medium
    } else {
        Grade::High
    }))
}

/// What helps: only more space, less fragmentation, or an earlier start.
fn remedy(run: &Run<'_>, what: &str) -> Finding {
    if live::live(run).is_leak() {
        let sentence = format!("{what}: the live set keeps growing, see gc-live-growth");
        return run
            .act(sentence)
            .refuted_by("CMS fails as often while the live set is level");
    }
    no_start_helps(run, what).unwrap_or_else(|| start(run, what))
}

/// A larger heap, and a start that leaves space in it: with a planted late start a larger heap alone had as many failures.
fn roomier(run: &Run<'_>, finding: Finding) -> Finding {
    if run.larger().is_none() {
        return finding;
    }
    let finding = run.grow(finding, "space for the promotion of a cycle");
    // Half of that heap is alive.
    run.lower(finding, Goal::StartCyclesAt((USUAL * 100.0) as u32))
}

/// The least that a sweep left, as a share of the old generation: a late sweep leaves garbage of its own cycle.
fn live_share(run: &Run<'_>) -> Option<f64> {
    let share = run.value(&keys::GC_LIVE_SHARE)?;
    let Ok(live) = run.number(&keys::GC_LIVE) else {
        return Some(share);
    };
    let least = live
        .reading
        .series
        .iter()
        .copied()
        .fold(live.value, f64::min);
    Some(share * least / live.value.max(1.0))
}

/// The old generation is too full, or fragmented.
fn no_start_helps(run: &Run<'_>, what: &str) -> Option<Finding> {
    let value = |key| run.value(key);
    if let Some(live) = live_share(run).filter(|live| *live > LIVE.value) {
        let sentence = format!(
            "{what}: the live set takes {} of the old generation, so no start is early enough",
            say::percent(live)
        );
        let refuted = "an old collection leaves less in a longer log";
        let finding = run.act(sentence).refuted_by(refuted);
        return Some(roomier(run, finding));
    }
    let largest = value(&keys::GC_FREE_LARGEST).filter(|largest| *largest < PIECES.value)?;
    let sentence = format!(
        "{what}: the old generation is fragmented, its largest free block is {} of the free space; a compacting collector such as G1 avoids that",
        say::percent(largest)
    );
    let refuted = "CMS fails just after a full collection, which compacts the old generation";
    Some(run.act(sentence).refuted_by(refuted))
}

/// Where cycles have to start, and why.
fn start(run: &Run<'_>, what: &str) -> Finding {
    // The configured start, for a log without cycles.
    let asked = run
        .value_of("CMSInitiatingOccupancyFraction=")
        .and_then(|percent| percent.parse::<f64>().ok())
        .map(|percent| percent / 100.0);
    let seen = run.value(&keys::GC_CYCLE_OCCUPANCY);
    let needed = promoted_in_a_cycle(run, &keys::GC_OLD_CAPACITY);
    let largest = run.value(&keys::GC_PROMOTED_LARGEST).unwrap_or(0.0);
    let wanted = wanted(seen.or(asked), needed.map(|(share, _)| share), largest);
    let sentence = reasons(what, seen, needed);
    if let Some(seen) = seen.or(asked).filter(|seen| wanted >= *seen) {
        let sentence = format!(
            "{sentence}; a start at {} leaves room for that, so a burst or fragmentation is the cause",
            say::percent(seen)
        );
        return run
            .act(sentence)
            .refuted_by("-XX:PrintFLSStatistics=1 shows large free blocks, and no burst of promotion precedes the failures");
    }
    let live = live_share(run);
    // Where nothing but promotions failed, a start beyond what was in use then would have come too late.
    let failed_at = run
        .value(&keys::GC_PROMOTION_FAILED_AT)
        .filter(|at| wanted >= *at && only_promotions(run));
    if let Some(at) = failed_at {
        let sentence = format!(
            "{sentence}; with {} of the old generation in use there was room, so a burst or fragmentation is the cause",
            say::percent(at)
        );
        return run
            .act(sentence)
            .refuted_by("-XX:PrintFLSStatistics=1 shows large free blocks, and no burst of promotion precedes the failures");
    }
    // Below the live set cycles would follow one another without end.
    let lowest = live.map_or(0.1, |live| live + 0.05);
    if wanted < lowest {
        let sentence =
            format!("{sentence}; no start leaves room for both the live set and promotion");
        let finding = run
            .act(sentence)
            .refuted_by("a log with more cycles shows a lower promotion rate");
        return roomier(run, finding);
    }
    let confidence = if needed.is_some() && live.is_some() && seen.is_some() {
        Grade::High
    } else {
        Grade::Medium
    };
    let finding = run
        .act(sentence)
        .confidence(confidence)
        .expect(gain(run, seen, live, wanted))
        .refuted_by("failures continue although all initial marks start at the new occupancy");
    run.lower(
        finding,
        Goal::StartCyclesAt((wanted * 100.0).floor() as u32),
    )
}

/// No cycle was too late: what failed were promotions.
fn only_promotions(run: &Run<'_>) -> bool {
    run.value(&keys::GC_CONCURRENT_MODE_FAILURES)
        .is_some_and(|count| count < 1.0)
}

/// The share at which cycles should start: `now` is where they do, `needed` what is promoted in one, `largest` the most that one young
/// collection promoted. With a planted late start (JDK 8, cycles from 95 % on) a start at 88 % failed as often, and 80 % and 65 % never.
fn wanted(now: Option<f64>, needed: Option<f64>, largest: f64) -> f64 {
    let room = needed.map(|share| 1.0 - CYCLES * share - SPARE - largest.clamp(0.0, MOST));
    match (room, now) {
        (Some(room), Some(_)) => room,
        // It may start earlier by itself already.
        (Some(room), None) => room.min(USUAL),
        (None, Some(now)) => (now - SPARE).min(USUAL),
        (None, None) => USUAL,
    }
}

/// The sentence with the start of cycles and the promotion meanwhile, as far as the log contains them.
fn reasons(what: &str, seen: Option<f64>, needed: Option<(f64, f64)>) -> String {
    let start = seen.map(|seen| {
        format!(
            "cycles start at {} of the old generation",
            say::percent(seen)
        )
    });
    let meanwhile = needed.map(|(share, rate)| {
        format!(
            "{} is promoted during a cycle ({})",
            say::percent(share),
            flow(rate)
        )
    });
    let reasons: Vec<String> = start.into_iter().chain(meanwhile).collect();
    match reasons.join(" and ") {
        reasons if reasons.is_empty() => what.to_owned(),
        reasons => format!("{what}: {reasons}"),
    }
}

/// What an earlier start gains and costs.
fn gain(run: &Run<'_>, seen: Option<f64>, live: Option<f64>, wanted: f64) -> String {
    // Between two cycles the old generation fills from the live set up to the start.
    let often = seen
        .zip(live)
        .filter(|(seen, live)| wanted < *seen && wanted > *live)
        .map_or_else(String::new, |(seen, live)| {
            format!(
                ", but {:.1} times as many cycles",
                ((seen - live) / (wanted - live)).clamp(1.0, 1e6)
            )
        });
    let longest = run
        .value(&keys::GC_FULL_LONGEST)
        .filter(|longest| *longest > 0.0)
        .map_or_else(String::new, |longest| {
            format!(" and pauses of up to {}", seconds(longest))
        });
    format!("at best none of these failures{longest}{often}")
}
