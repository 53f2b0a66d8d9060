//! `gc-live-growth`: what is alive after old collections grows.
//!
//! Heap in use is no measure, because it holds garbage; what an old collection leaves is alive. Its slope is that of Theil and
//! Sen, which a single odd collection does not bend, and only a slope whose whole interval is above zero counts.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Reading};
use rungwise_model::keys;

use super::live::{self, FULL, GROWN, LEVEL, Live, OLD, PEAK, RISE, RISEN, STARTING};
use super::options::Goal;
use super::run::{OPTIONS, Run, each};
use crate::{Doc, Judgement, Rule, Threshold, say};

const OFTEN: Threshold = Threshold {
    name: "seconds between old collections of a full heap, below which it has a cost now",
    value: 60.0,
    origin: "jifa's line for full collections",
};

const SOON: Threshold = Threshold {
    name: "days until the room is full, below which action is due",
    value: 7.0,
    origin: "own guess: services are redeployed about weekly",
};

const SHORT: Threshold = Threshold {
    name: "length of the run in seconds, below which a service still fills its caches",
    value: 3600.0,
    origin: "own guess; what a service holds after minutes does not show what it will hold",
};

const CLOSE: Threshold = Threshold {
    name: "share of its room that a rising live set has to take in a short run, from which on a cache that fills is less likely",
    value: 0.7,
    origin: "own guess: caches are sized to leave a third of the heap free",
};

const DAY: f64 = 86400.0;
const HOUR: f64 = 3600.0;

pub(crate) static RULE: Rule = Rule {
    id: "gc-live-growth",
    topic: "jvm",
    summary: "the live set grows, or fills the heap",
    needs: &[
        &keys::GC_BEGAN,
        &keys::GC_COLLECTOR,
        &keys::GC_FLAGS,
        &keys::GC_HEAP_CAPACITY,
        &keys::GC_HEAP_MAX,
        &keys::GC_LIVE,
        &keys::GC_LIVE_EARLY,
        &keys::GC_LIVE_FALLS,
        &keys::GC_LIVE_LATE,
        &keys::GC_LIVE_PEAK,
        &keys::GC_LIVE_RISE,
        &keys::GC_LIVE_SAMPLES,
        &keys::GC_LIVE_SHARE,
        &keys::GC_LIVE_SLOPE,
        &keys::GC_LIVE_SLOPE_HIGH,
        &keys::GC_LIVE_SLOPE_LOW,
        &keys::GC_LIVE_SOURCE,
        &keys::GC_MEMORY,
        &keys::GC_OLD_CAPACITY,
        &keys::GC_OLD_INTERVAL,
        &keys::GC_OUT_OF_MEMORY,
        &keys::GC_SECONDS,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
    ],
    thresholds: &[
        RISEN, RISE, FULL, OLD, GROWN, LEVEL, PEAK, STARTING, CLOSE, OFTEN, SOON, SHORT,
    ],
    knobs: &[OPTIONS],
    doc: Doc {
        looks_for: "A live set that grows with certainty (95 %) and by more than 5 % over the run, that takes more than 80 % of its \
            room, or that falls from the end of the heap and rises again.",
        hurts: "Old collections come more and more often and free less and less, until the service ends in an OutOfMemoryError.",
        todo: "A leak (the live set rose until the heap was full, or rises without levelling off): two heap histograms some minutes apart \
            (jcmd PID GC.class_histogram) show which class grows; a heap dump shows what holds it. A larger heap only delays the end. A \
            saw-tooth: search for code that catches OutOfMemoryError, and for caches made of soft references. A heap that is too small (full \
            from the beginning, and level, or filled within seconds of the start): a larger one (-Xmx), or fewer live objects.",
        wrong: "A leak that fills the heap within 10 s of the start is called a heap that is too small. A service that has just started fills its caches: below an hour a rise is an act finding only above 70 % of the room. Sessions \
            grow in the morning and fall at night: a log of less than a day cannot distinguish them from a leak. A cache without a bound, or \
            with a bound that the heap cannot hold, looks like a leak, and hurts like one. What marks and sweeps of CMS and G1 report as alive \
            includes garbage of the same cycle, so the live set is an upper bound.",
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
    let share = run.told(&keys::GC_LIVE_SHARE);
    let of_room = share.map_or_else(String::new, |share| {
        format!(", {} of its room", say::percent(share))
    });
    if run
        .told(&keys::GC_OUT_OF_MEMORY)
        .is_some_and(|errors| errors > 0.0)
    {
        let sentence = format!("the service ran out of memory; {holds} were alive last{of_room}");
        let finding = run.advise(run.act(sentence), Goal::HeapDump);
        return Ok(cited(run, finding)
            .severity(Grade::High)
            .confidence(Grade::High)
            .refuted_by(
                "the error is of threads, metaspace or direct memory, which its message says",
            ));
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
            } else if run.told(&keys::GC_LIVE_EARLY).is_some() {
                ", from the beginning to the end".to_owned()
            } else {
                String::new()
            };
            let sentence = format!("the heap is too small: {holds} stay alive{of_room}{since}");
            let effect = "old collections come as many times less often";
            let often = run
                .told(&keys::GC_OLD_INTERVAL)
                .is_some_and(|interval| interval < OFTEN.value);
            cited(run, run.grow(run.act(sentence), effect))
                .severity(if often { Grade::High } else { Grade::Medium })
                .refuted_by("old collections that come seldom all the same")
        }
        Live::Rising { low } => rising(run, live.value, share, low, &format!("{holds}{of_room}")),
        Live::Level => clear(format!(
            "{holds} stay alive{of_room}: the live set grew at first and has levelled off, as a cache does that has filled"
        )),
        Live::Freed => clear(format!(
            "{holds} stay alive{of_room}: what had grown before was freed"
        )),
        Live::Steady => clear(format!(
            "{holds} stay alive{of_room}, and that does not grow for sure"
        )),
        Live::Unknown => {
            run.number(&keys::GC_LIVE_SLOPE_LOW)?;
            clear(format!("{holds} stay alive{of_room}"))
        }
    })
}

/// It fills the heap again and again.
fn saw(run: &Run<'_>, falls: f64, live: &Reading) -> Finding {
    let peak = run.told(&keys::GC_LIVE_PEAK).unwrap_or(1.0).min(1.0);
    let least = live.series.iter().copied().fold(f64::INFINITY, f64::min);
    let to = if least.is_finite() {
        format!(", down to {}", say::bytes(least))
    } else {
        String::new()
    };
    let sentence = format!(
        "the live set filled the heap ({}) and fell {}{to}: a leak whose OutOfMemoryError is caught, or a cache that the heap cannot hold",
        say::percent(peak),
        say::count(falls, "time"),
    );
    let often = falls >= 2.0;
    let finding = if often {
        run.act(sentence)
    } else {
        run.watch(sentence)
    };
    cited(run, run.advise(finding, Goal::HeapDump))
        .severity(Grade::High)
        .confidence(if often { Grade::High } else { Grade::Medium })
        .refuted_by("a log without OutOfMemoryError in which soft references or a job that ends free the heap")
}

/// It rose until the heap was full.
fn leak(run: &Run<'_>, live: f64, reading: &Reading, of_room: &str) -> Finding {
    let early = run.told(&keys::GC_LIVE_EARLY);
    let first = reading.series.first().copied().into_iter().chain(early);
    let first = first.filter(|first| *first < live).min_by(f64::total_cmp);
    let rise = first.map_or_else(String::new, |first| format!("from {} ", say::bytes(first)));
    let sentence = format!(
        "the live set rose {rise}to {}{of_room}: a leak, or a cache that the heap cannot hold",
        say::bytes(live)
    );
    let finding = run.advise(run.act(sentence), Goal::HeapDump);
    cited(run, finding)
        .severity(Grade::High)
        .refuted_by("a longer log in which the live set stays level below the end of the heap")
}

fn rising(run: &Run<'_>, live: f64, share: Option<f64>, low: f64, holds: &str) -> Finding {
    let high = run
        .told(&keys::GC_LIVE_SLOPE_HIGH)
        .map_or(low, |high| high.max(low));
    let point = run.told(&keys::GC_LIVE_SLOPE).unwrap_or(low);
    // What is left of its room, where that is known.
    let left = share
        .filter(|share| *share > 0.0)
        .map(|share| (live / share - live).max(0.0));
    let until = left.map(|left| (left / high, left / low));
    let when = until.map_or_else(String::new, |(soonest, latest)| {
        let (soonest, latest) = (span(soonest), span(latest));
        if soonest == latest {
            format!("; its room is full in {latest}")
        } else {
            format!("; its room is full in {soonest} to {latest} (95 % interval)")
        }
    });
    let length = run.told(&keys::GC_SECONDS).unwrap_or(0.0);
    let short = length < SHORT.value;
    let close = share.is_some_and(|share| share > CLOSE.value);
    let or = if short {
        "; a leak, or a cache that still fills"
    } else {
        ""
    };
    let sentence = format!(
        "what stays alive grows by {} an hour and is {holds} now{when}{or}",
        say::bytes(point * HOUR)
    );
    let soon = until.is_none_or(|(soonest, _)| soonest < SOON.value * DAY);
    let act = soon && (!short || close);
    let finding = if act {
        run.act(sentence)
    } else {
        run.watch(sentence)
    };
    // Fewer than ten old collections are a short story, and marks tell of garbage too.
    let bound = run
        .words(&keys::GC_LIVE_SOURCE)
        .is_some_and(|source| matches!(source.value, "cycle" | "remark"));
    let few = run
        .told(&keys::GC_LIVE_SAMPLES)
        .is_none_or(|samples| samples < 10.0);
    // A larger heap only puts the end off; a dump shows who holds what grows.
    let finding = run.advise(finding, Goal::HeapDump);
    let finding = match until {
        Some((soonest, _)) => finding.expect(format!(
            "no end of the memory in {} at the soonest, once what grows is found",
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
        .refuted_by("a longer log, over a day at least, in which it falls again")
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
