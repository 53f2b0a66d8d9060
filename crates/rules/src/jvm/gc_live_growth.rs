//! `gc-live-growth`: the live set after old collections grows.
//!
//! Heap in use is no measure, because it includes garbage; what an old collection leaves is live. The slope is the Theil-Sen
//! estimator, which a single outlier does not bend, and only a slope whose whole interval is above zero counts.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Reading};
use rungwise_model::keys;

use super::live::{self, FULL, GROWN, LEVEL, Live, OLD, PEAK, RISE, RISEN, STARTING};
use super::options::Goal;
use super::run::{JDK, OPTIONS, Run, each};
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const OFTEN: Threshold = Threshold {
    name: "seconds between old collections of a full heap, below which severity is high",
    value: 60.0,
    origin: "jifa's threshold for full collections",
};

const SOON: Threshold = Threshold {
    name: "days until the live set reaches its limit, below which the rule acts",
    value: 7.0,
    origin: "own guess: services are redeployed about weekly",
};

const SHORT: Threshold = Threshold {
    name: "length of the run in seconds, below which a service still fills its caches",
    value: 3600.0,
    origin: "own guess; the live set after minutes does not predict the later one",
};

const CLOSE: Threshold = Threshold {
    name: "share of its limit that a rising live set takes in a short run, above which a filling cache is less likely",
    value: 0.7,
    origin: "own guess: caches are sized to leave a third of the heap free",
};

const DAY: f64 = 86400.0;
const HOUR: f64 = 3600.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-live-growth",
    topic: "jvm",
    summary: "the live set grows, or fills the heap",
    needs: needs!(
        [
            &keys::GC_LIVE_EARLY,
            &keys::GC_LIVE_SAMPLES,
            &keys::GC_LIVE_SLOPE_HIGH,
            &keys::GC_MEMORY,
            &keys::GC_OLD_INTERVAL,
            &keys::GC_OUT_OF_MEMORY
        ],
        live::NEEDS,
        JDK
    ),
    thresholds: &[
        RISEN, RISE, FULL, OLD, GROWN, LEVEL, PEAK, STARTING, CLOSE, OFTEN, SOON, SHORT,
    ],
    knobs: &[OPTIONS],
    measure: Some(Measure::more(&keys::GC_LIVE)),
    doc: Doc {
        looks_for: "A live set that grows with 95 % confidence and by more than 5 % over the run, that takes more than 80 % of its limit, or \
            that falls from the top of the heap and rises again.",
        hurts: "Old collections run more and more often and free less and less, until the service ends in an OutOfMemoryError.",
        todo: "A leak (the live set rose until the heap was full, or rises without levelling off): two heap histograms some minutes apart \
            (jcmd PID GC.class_histogram) show which class grows; a heap dump shows what holds it. A larger heap only delays the end. A \
            sawtooth: search for code that catches OutOfMemoryError, and for caches of soft references. A heap that is too small (full from \
            the beginning and level, or filled within seconds of the start): a larger one (-Xmx), or fewer live objects.",
        wrong: "A leak that fills the heap within 10 s of the start is reported as a heap that is too small. A service that has just started \
            fills its caches: below an hour the rule acts on a rise only above 70 % of the limit. Sessions grow in the morning and fall at \
            night: a log of less than a day cannot distinguish them from a leak. A cache without a bound, or with a bound that exceeds the \
            heap, looks like a leak, and hurts like one. Marks and sweeps of CMS and G1 report garbage of the same cycle as live, so the \
            live set is an upper bound.",
        sources: "jifa, JDK Mission Control (live set rule); Sen, Estimates of the regression coefficient based on Kendall's tau, 1968.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    each(evidence, &keys::GC_LIVE, of_run)
}

fn of_run(run: &Run<'_>) -> Result<Finding, Missing> {
    let live = run.number(&keys::GC_LIVE)?;
    let holds = say::bytes(live.value);
    let share = run.value(&keys::GC_LIVE_SHARE);
    let of_room = share.map_or_else(String::new, |share| {
        format!(", {} of its limit", say::percent(share))
    });
    if run
        .value(&keys::GC_OUT_OF_MEMORY)
        .is_some_and(|errors| errors > 0.0)
    {
        let sentence =
            format!("the service ran out of memory; the last live set is {holds}{of_room}");
        let finding = run.advise(run.act(sentence), Goal::HeapDump);
        return Ok(cited(run, finding)
            .severity(Grade::High)
            .confidence(Grade::High)
            .refuted_by("the error's message names threads, metaspace or direct memory"));
    }
    let clear = |sentence: String| {
        let clear = Finding::clear(sentence).cite(live.reading);
        match share {
            Some(share) => clear.below(share, FULL.value),
            None => clear,
        }
    };
    Ok(match live::live(run) {
        Live::Saw { falls } => saw(run, falls, live.reading),
        Live::Leak => leak(run, live.value, live.reading, &of_room),
        Live::Small { at_start } => {
            let since = if let Some(uptime) = at_start {
                format!(", {uptime:.1} s after the start")
            } else if run.value(&keys::GC_LIVE_EARLY).is_some() {
                ", from the beginning to the end".to_owned()
            } else {
                String::new()
            };
            let sentence =
                format!("the heap is too small: the live set is {holds}{of_room}{since}");
            let effect = "proportionally fewer old collections";
            let often = run
                .value(&keys::GC_OLD_INTERVAL)
                .is_some_and(|interval| interval < OFTEN.value);
            cited(run, run.grow(run.act(sentence), effect))
                .severity(if often { Grade::High } else { Grade::Medium })
                .refuted_by("old collections stay rare")
        }
        Live::Rising { low } => rising(run, live.value, share, low, &format!("{holds}{of_room}")),
        Live::Level => clear(format!(
            "the live set is {holds}{of_room}: it grew at first and has levelled off, like a cache that has filled"
        )),
        Live::Freed => clear(format!(
            "the live set is {holds}{of_room}: its earlier growth was freed"
        )),
        Live::Steady => clear(format!(
            "the live set is {holds}{of_room}, without significant growth"
        )),
        Live::Unknown => {
            run.number(&keys::GC_LIVE_SLOPE_LOW)?;
            clear(format!("the live set is {holds}{of_room}"))
        }
    })
}

/// It fills the heap again and again.
fn saw(run: &Run<'_>, falls: f64, live: &Reading) -> Finding {
    let peak = run.value(&keys::GC_LIVE_PEAK).unwrap_or(1.0).min(1.0);
    let least = live.series.iter().copied().fold(f64::INFINITY, f64::min);
    let to = if least.is_finite() {
        format!(", down to {}", say::bytes(least))
    } else {
        String::new()
    };
    // One fall may be a job that ended; a heap that is full once more is a pattern.
    let full = run.value(&keys::GC_LIVE_SHARE);
    let full = full.filter(|share| *share > FULL.value);
    let (and, again) = match full {
        Some(share) => (
            ",",
            format!(", and is at {} of its limit again", say::percent(share)),
        ),
        None => (" and", String::new()),
    };
    let sentence = format!(
        "the live set filled the heap ({}){and} fell {}{to}{again}: a leak with a caught OutOfMemoryError, or a cache too large for the heap",
        say::percent(peak),
        say::count(falls, "time"),
    );
    let often = falls >= 2.0;
    let finding = if often || full.is_some() {
        run.act(sentence)
    } else {
        run.watch(sentence)
    };
    cited(run, run.advise(finding, Goal::HeapDump))
        .severity(Grade::High)
        .confidence(if often { Grade::High } else { Grade::Medium })
        .refuted_by("soft references or an ending job free the heap, without an OutOfMemoryError")
}

/// It rose until the heap was full.
fn leak(run: &Run<'_>, live: f64, reading: &Reading, of_room: &str) -> Finding {
    let early = run.value(&keys::GC_LIVE_EARLY);
    let first = reading.series.first().copied().into_iter().chain(early);
    let first = first.filter(|first| *first < live).min_by(f64::total_cmp);
    let rise = first.map_or_else(String::new, |first| format!("from {} ", say::bytes(first)));
    let sentence = format!(
        "the live set rose {rise}to {}{of_room}: a leak, or a cache too large for the heap",
        say::bytes(live)
    );
    let finding = run.advise(run.act(sentence), Goal::HeapDump);
    cited(run, finding)
        .severity(Grade::High)
        .refuted_by("the live set stays level below the heap limit in a longer log")
}

fn rising(run: &Run<'_>, live: f64, share: Option<f64>, low: f64, holds: &str) -> Finding {
    let high = run
        .value(&keys::GC_LIVE_SLOPE_HIGH)
        .map_or(low, |high| high.max(low));
    let point = run.value(&keys::GC_LIVE_SLOPE).unwrap_or(low);
    // What is left of its limit, if that is known.
    let left = share
        .filter(|share| *share > 0.0)
        .map(|share| (live / share - live).max(0.0));
    let until = left.map(|left| (left / high, left / low));
    let when = until.map_or_else(String::new, |(soonest, latest)| {
        let (soonest, latest) = (span(soonest), span(latest));
        if soonest == latest {
            format!("; it reaches the limit in {latest}")
        } else {
            format!("; it reaches the limit in {soonest} to {latest} (95 % interval)")
        }
    });
    let length = run.value(&keys::GC_SECONDS).unwrap_or(0.0);
    let short = length < SHORT.value;
    let close = share.is_some_and(|share| share > CLOSE.value);
    let or = if short {
        "; a leak, or a cache still filling"
    } else {
        ""
    };
    let sentence = format!(
        "the live set grows by {} an hour and is {holds} now{when}{or}",
        say::bytes(point * HOUR)
    );
    let soon = until.is_none_or(|(soonest, _)| soonest < SOON.value * DAY);
    let act = soon && (!short || close);
    let finding = if act {
        run.act(sentence)
    } else {
        run.watch(sentence)
    };
    // Fewer than ten old collections are a small sample, and marks include garbage.
    let bound = run
        .words(&keys::GC_LIVE_SOURCE)
        .is_some_and(|source| matches!(source.value, "cycle" | "remark"));
    let few = run
        .value(&keys::GC_LIVE_SAMPLES)
        .is_none_or(|samples| samples < 10.0);
    // A larger heap only delays the end; a dump shows what holds the growing objects.
    let finding = run.advise(finding, Goal::HeapDump);
    let finding = match until {
        Some((soonest, _)) => finding.expect(format!(
            "no OutOfMemoryError (due in {} at the earliest), once the growth is fixed",
            span(soonest)
        )),
        None => finding,
    };
    cited(run, finding)
        .severity(if act { Grade::High } else { Grade::Medium })
        .confidence(match (few, bound) {
            _ if short => Grade::Low,
            (true, true) => Grade::Low,
            // Sessions come in the morning and go at night.
            (false, false) if length >= DAY => Grade::High,
            _ => Grade::Medium,
        })
        .refuted_by("it falls again in a longer log, over a day at least")
}

/// Minutes, hours or days.
fn span(seconds: f64) -> String {
    if seconds < 60.0 {
        "less than a minute".to_owned()
    } else if seconds < HOUR {
        say::count(seconds / 60.0, "minute")
    } else if seconds < 2.0 * DAY {
        format!("{:.1} hours", seconds / HOUR)
    } else {
        format!("{:.0} days", (seconds / DAY).min(1e6))
    }
}

fn cited(run: &Run<'_>, finding: Finding) -> Finding {
    run.cite(
        finding,
        &[
            &keys::GC_LIVE,
            &keys::GC_LIVE_SHARE,
            &keys::GC_LIVE_EARLY,
            &keys::GC_LIVE_FALLS,
            &keys::GC_LIVE_PEAK,
            &keys::GC_LIVE_RISE,
            &keys::GC_LIVE_SLOPE_LOW,
            &keys::GC_LIVE_SLOPE_HIGH,
            &keys::GC_OUT_OF_MEMORY,
        ],
    )
}
