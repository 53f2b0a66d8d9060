//! Classifies the live set of a run: a leak, a cache that filled, or a heap that is too small.
//!
//! All of them end in a full heap or in a rising line. A heap that is too small is full from the beginning; a leak rises until it is
//! full; a cache rises and then stays level below; and where an `OutOfMemoryError` is caught, or soft references are cleared, the
//! live set falls from the top of the heap and rises again.

use rungwise_model::evidence::Key;
use rungwise_model::keys;

use super::run::{Collector, Run};
use crate::Threshold;

/// What is read here, beside the collector.
pub(crate) const NEEDS: &[&Key] = &[
    &keys::GC_BEGAN,
    &keys::GC_HEAP_CAPACITY,
    &keys::GC_HEAP_MAX,
    &keys::GC_LIVE,
    &keys::GC_LIVE_FALLS,
    &keys::GC_LIVE_LATE,
    &keys::GC_LIVE_PEAK,
    &keys::GC_LIVE_RISE,
    &keys::GC_LIVE_SHARE,
    &keys::GC_LIVE_SLOPE,
    &keys::GC_LIVE_SLOPE_LOW,
    &keys::GC_LIVE_SOURCE,
    &keys::GC_OLD_CAPACITY,
    &keys::GC_SECONDS,
];

/// Live set as a share of its limit above which old collections have little to free.
pub(super) const FULL: Threshold = Threshold {
    name: "live set as a share of its limit, above which the heap is full",
    value: 0.8,
    origin: "jifa's threshold for the old generation after its collection; planted leaks and small heaps of JDK 8 to 25 double their collections above it",
};

/// First part of the run against the last, below which the live set rose.
pub(super) const RISEN: Threshold = Threshold {
    name: "first live set over the live set in a full heap, below which the rise is reported",
    value: 0.5,
    origin: "own guess: caches that fill double at most",
};

/// The same, known from all collections.
pub(super) const RISE: Threshold = Threshold {
    name: "smallest heap after any collection at the end of the run over the same in its first part, above which the live set rose",
    value: 1.33,
    origin: "planted leaks that filled the heap within the run: 1.7 to 5; planted small heaps and bursts: 0.9 to 1.1",
};

/// With two generations the old one has to hold the live set.
pub(super) const OLD: Threshold = Threshold {
    name: "live set over the old generation of Serial or Parallel, above which the heap is too small",
    value: 0.95,
    origin: "planted live sets of 96 MiB with an old generation of 85 MiB: each young collection became a full one",
};

/// Growth over the run that matters.
pub(super) const GROWN: Threshold = Threshold {
    name: "growth over the run as a share of the live set, below which it does not matter",
    value: 0.05,
    origin: "own guess: caches and sessions vary as much",
};

/// The height that a live set has to fall from.
pub(super) const PEAK: Threshold = Threshold {
    name: "largest live set after an old collection as a share of its limit, above which a later fall counts",
    value: 0.88,
    origin: "planted services that caught their OutOfMemoryError: 0.90 to 0.99 under Parallel and G1; planted bursts: 0.81 at most",
};

/// Growth of the second half over that of the whole, below which the live set is level again.
pub(super) const LEVEL: Threshold = Threshold {
    name: "growth over the second half of the run as a share of the growth over all of it, below which the live set is level",
    value: 0.25,
    origin: "planted caches that filled in the first half: below 0.1; planted leaks: 0.9 and more",
};

/// A rise that is part of the start.
pub(super) const STARTING: Threshold = Threshold {
    name: "uptime of the JVM at the end of the log in seconds, below which a live set that fills the heap is what the service loads at startup",
    value: 10.0,
    origin: "planted live sets of 0.9 of the heap fill it 0.1 to 0.5 s after the start; own guess that no leak fills a heap in 10 s",
};

/// Capacity over the largest heap from which on the heap has its largest size: Parallel leaves a survivor space out.
const GROWN_UP: f64 = 0.9;
/// Live set now over the largest one, below which it was freed. Own guess: the live set varies by less from one old
/// collection to the next.
const FREED: f64 = 0.5;

/// What the live set did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Live {
    /// It filled the heap and fell, this many times.
    Saw { falls: f64 },
    /// It rose until it filled the heap.
    Leak,
    /// It fills the heap, and did from the beginning of the log, or since the start of the JVM.
    Small {
        /// Uptime of the JVM at the end of the log, where that is the start.
        at_start: Option<f64>,
    },
    /// It rises, by at least this many bytes a second.
    Rising { low: f64 },
    /// It rose, and is level now.
    Level,
    /// It had grown, and the growth was freed.
    Freed,
    /// There is space, and no significant growth.
    Steady,
    /// There is space, and too few old collections to detect growth.
    Unknown,
}

impl Live {
    /// It fills the heap, or is about to.
    pub(super) fn fills(self) -> bool {
        matches!(self, Self::Small { .. }) || self.is_leak()
    }

    /// More heap only delays the end.
    pub(super) fn is_leak(self) -> bool {
        matches!(self, Self::Saw { .. } | Self::Leak | Self::Rising { .. })
    }
}

/// Full collections of Serial and Parallel leave more than the old generation holds, which has its largest size.
fn fills_old(run: &Run<'_>, live: f64, source: &str) -> bool {
    let old = run.value(&keys::GC_OLD_CAPACITY).filter(|old| *old > 0.0);
    let grown = run
        .value(&keys::GC_HEAP_CAPACITY)
        .zip(run.value(&keys::GC_HEAP_MAX))
        .is_some_and(|(now, most)| now > GROWN_UP * most);
    matches!(run.collector(), Collector::Serial | Collector::Parallel)
        && source == "full"
        && grown
        && old.is_some_and(|old| live > OLD.value * old)
}

/// Reads `gc.began`, `gc.collector`, `gc.heap_capacity`, `gc.heap_max`, `gc.live`, `gc.live_rise`, `gc.live_falls`, `gc.live_late`, `gc.live_peak`, `gc.live_share`, `gc.live_slope`, `gc.live_slope_low`,
/// `gc.live_source`, `gc.old_capacity` and `gc.seconds`.
pub(super) fn live(run: &Run<'_>) -> Live {
    let Ok(live) = run.number(&keys::GC_LIVE) else {
        return Live::Unknown;
    };
    let source = run
        .words(&keys::GC_LIVE_SOURCE)
        .map_or("", |words| words.value);
    // What the heap holds after a cycle of ZGC or Shenandoah was allocated meanwhile as well: no heap is full by that.
    let full = source != "cycle"
        && (run
            .value(&keys::GC_LIVE_SHARE)
            .is_some_and(|share| share > FULL.value)
            || fills_old(run, live.value, source));
    let falls = run.value(&keys::GC_LIVE_FALLS).unwrap_or(0.0);
    let peak = run.value(&keys::GC_LIVE_PEAK).unwrap_or(0.0);
    // What marks and mixed collections leave has garbage of the same cycle in it, which comes and goes.
    let exact = matches!(source, "full" | "sweep" | "mark");
    if falls >= 1.0 && peak > PEAK.value && exact {
        return Live::Saw { falls };
    }
    let low = run.value(&keys::GC_LIVE_SLOPE_LOW);
    let seconds = run.value(&keys::GC_SECONDS).unwrap_or(0.0);
    let grown = low.map_or(0.0, |low| low * seconds / live.value.max(1.0));
    let series = &live.reading.series;
    // A growth over the run beyond all that is alive now was freed again, unless about as much is alive as ever was: the last
    // old collection may lie long before the end of the run.
    let most = series.iter().copied().fold(0.0, f64::max);
    let freed = grown > 1.0 && live.value < FREED * most;
    let rises = grown > GROWN.value && !freed;
    // A full heap grows no more, whatever filled it: a slope over all of the run does not tell that it rose.
    let risen = series
        .first()
        .is_some_and(|first| *first < RISEN.value * live.value);
    // Full collections may come only when the heap is full; what all collections left before shows that it was not.
    // What comes and goes in bursts does not rise from early to late.
    let rise = run.value(&keys::GC_LIVE_RISE);
    let risen = match rise {
        Some(rise) => rise > RISE.value,
        None => risen,
    };
    let uptime = run.value(&keys::GC_BEGAN).map(|began| began + seconds);
    let at_start = uptime.filter(|uptime| *uptime < STARTING.value && seconds > 0.0);
    match low {
        _ if full && (risen || rises) && at_start.is_none() => Live::Leak,
        _ if full => Live::Small { at_start },
        None => Live::Unknown,
        Some(low) if rises => {
            let point = run.value(&keys::GC_LIVE_SLOPE).unwrap_or(low).max(low);
            let level = run
                .value(&keys::GC_LIVE_LATE)
                .is_some_and(|late| late < LEVEL.value * point);
            if level {
                Live::Level
            } else {
                Live::Rising { low }
            }
        }
        Some(_) if freed => Live::Freed,
        Some(_) => Live::Steady,
    }
}
