//! `gc-live-growth`: what is alive after old collections grows.
//!
//! Heap in use says nothing, for it holds garbage; what an old collection leaves is alive. Its slope is that of Theil and
//! Sen, which a single odd collection does not bend, and only a slope whose whole interval is above zero counts.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing};
use rungwise_model::keys;

use super::options::Goal;
use super::run::{OPTIONS, Run, each};
use crate::{Doc, Judgement, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "live set as a share of its room that is too much",
    value: 0.8,
    origin: "jifa's line for the old generation after its collection",
};

const GROWN: Threshold = Threshold {
    name: "growth over the run as a share of the live set, below which it is no matter",
    value: 0.05,
    origin: "own guess: caches and sessions move as much",
};

const SOON: Threshold = Threshold {
    name: "days until the room is full, below which somebody should look now",
    value: 7.0,
    origin: "own guess: services are deployed anew each week or so",
};

const SHORT: Threshold = Threshold {
    name: "length of the run in seconds, below which a service still fills its caches",
    value: 3600.0,
    origin: "own guess; what a service holds after minutes says nothing of what it will hold",
};

/// What is alive now over the most that was, below which it was freed. Own guess: what is alive varies by less from one old
/// collection to the next.
const FREED: f64 = 0.5;

const DAY: f64 = 86400.0;
const HOUR: f64 = 3600.0;

const RISEN: Threshold = Threshold {
    name: "what was alive at first over what is alive in a full heap, below which the rise is told",
    value: 0.5,
    origin: "own guess: caches that fill double at most",
};

pub(crate) static RULE: Rule = Rule {
    id: "gc-live-growth",
    topic: "jvm",
    summary: "what is alive in the heap grows, or fills it",
    needs: &[
        &keys::GC_COLLECTOR,
        &keys::GC_FLAGS,
        &keys::GC_HEAP_MAX,
        &keys::GC_LIVE,
        &keys::GC_LIVE_SAMPLES,
        &keys::GC_LIVE_SHARE,
        &keys::GC_LIVE_SLOPE,
        &keys::GC_LIVE_SLOPE_HIGH,
        &keys::GC_LIVE_SLOPE_LOW,
        &keys::GC_LIVE_SOURCE,
        &keys::GC_MEMORY,
        &keys::GC_OUT_OF_MEMORY,
        &keys::GC_SECONDS,
        &keys::GC_UNIFIED,
        &keys::GC_VERSION,
    ],
    thresholds: &[RISEN, FULL, GROWN, SOON, SHORT],
    knobs: &[OPTIONS],
    doc: Doc {
        looks_for: "A live set that grows with certainty (95 %) and by more than 5 % over the run, or that takes more than 80 % of \
            its room.",
        hurts: "Old collections come more and more often and free less and less, until the service ends in an OutOfMemoryError.",
        todo: "Growth: two heap histograms some hours apart (jcmd PID GC.class_histogram) show which class grows; a heap dump shows who \
            holds it. A full heap that does not grow: a larger one (-Xmx), or fewer live objects.",
        wrong: "A service that has just started fills its caches. Sessions grow in the morning and fall at night: a log of less than \
            a day cannot tell. What marks and sweeps of CMS and G1 tell as alive holds garbage of the same cycle, so that the live \
            set is an upper bound.",
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
    let full = share.is_some_and(|share| share > FULL.value);
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
    let slope = run.number(&keys::GC_LIVE_SLOPE_LOW);
    // A heap that is nearly full needs no slope.
    let low = match slope {
        Ok(low) => low.value,
        Err(_) if full => 0.0,
        Err(missing) => return Err(missing),
    };
    let grown = run
        .told(&keys::GC_SECONDS)
        .map_or(0.0, |seconds| low * seconds / live.value.max(1.0));
    // A growth over the run beyond all that is alive now was freed again, unless about as much is alive as ever was: the last
    // old collection may lie long before the end of the run.
    let most = live.reading.series.iter().copied().fold(0.0, f64::max);
    let freed = grown > 1.0 && live.value < FREED * most;
    if low > 0.0 && grown > GROWN.value && !freed {
        return Ok(growing(
            run,
            live.value,
            share,
            low,
            &format!("{holds}{of_room}"),
        ));
    }
    if full {
        // A full heap grows no more, whatever filled it: a slope over all of the run does not tell that it rose.
        let first = live.reading.series.first();
        let risen = first.filter(|first| **first < RISEN.value * live.value);
        let rise = risen.map_or_else(String::new, |first| {
            format!(", {} in the first part of the run", say::bytes(*first))
        });
        let sentence =
            format!("{holds} stay alive{of_room}{rise}: old collections have little to free");
        let effect = "old collections come as many times less often";
        return Ok(cited(run, run.grow(run.act(sentence), effect))
            .severity(Grade::Medium)
            .refuted_by("old collections that come seldom all the same"));
    }
    let sentence = if freed {
        format!("{holds} stay alive{of_room}: what had grown before was freed")
    } else {
        format!("{holds} stay alive{of_room}, and that does not grow for sure")
    };
    let clear = Finding::clear(sentence).cite(live.reading);
    Ok(match share {
        Some(share) => clear.below(share, FULL.value),
        None => clear,
    })
}

fn growing(run: &Run<'_>, live: f64, share: Option<f64>, low: f64, holds: &str) -> Finding {
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
    let sentence = format!(
        "what stays alive grows by {} an hour and is {holds} now{when}",
        say::bytes(point * HOUR)
    );
    let soon = until.is_none_or(|(soonest, _)| soonest < SOON.value * DAY);
    let length = run.told(&keys::GC_SECONDS).unwrap_or(0.0);
    let short = length < SHORT.value;
    let finding = if soon && !short {
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
        .severity(if soon && !short {
            Grade::High
        } else {
            Grade::Medium
        })
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
            &keys::GC_LIVE_SLOPE_LOW,
            &keys::GC_LIVE_SLOPE_HIGH,
            &keys::GC_OUT_OF_MEMORY,
        ],
    )
}
