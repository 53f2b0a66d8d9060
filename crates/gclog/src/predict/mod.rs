//! Predicts collections under other sizes: from a log, or from a load alone.
//!
//! ```
//! use rungwise_gclog::predict::young_interval;
//!
//! // 500 requests a second of 0.5 MB each fill 15 GB a minute; an Eden of 5 GB fills three times in it.
//! let allocated = 500.0 * 0.5e6;
//! assert_eq!(allocated * 60.0, 15e9);
//! assert_eq!(60.0 / young_interval(5e9, allocated).unwrap(), 3.0);
//! ```
//!
//! From a log: [`Watch`] takes its events, [`predict`] computes. The assumptions, most important first:
//!
//! - The load per wall-clock time is unchanged. If pauses take another share of the time, the interval also covers a closed
//!   loop, whose clients wait for the pauses.
//! - A young collection comes when Eden is full: interval = Eden / allocation. The deviation of the log's own collections is
//!   measured and included.
//! - Objects die by age alone, so one curve of survival serves all sizes: with `C(x)` the bytes that live of
//!   the last `x` bytes allocated, Eden `E` and threshold `n`, a collection leaves `C(nE)` in a survivor space and promotes
//!   `C((n+1)E) - C(nE)`. An age table is `C` at the multiples of `E`; between them it is bounded because the dead stay dead.
//! - Serial, ParNew and G1 lower the threshold to the first age up to which the table exceeds the desired size
//!   (`ageTable.cpp`, `compute_tenuring_threshold`); Parallel without adaptive sizing keeps it. What does not fit into a survivor
//!   space is promoted at once.
//! - The next old collection comes when what is promoted has filled the room between what the last one left and where the next
//!   begins. That place keeps its distance from the end of the old generation with Serial and Parallel, its share of it with CMS,
//!   and with G1 its share of the heap in the first cycles and its distance from the end of the heap later.
//! - A full collection of Serial and Parallel leaves the young generation empty: until what is born then is old enough nothing is
//!   promoted. Where it comes in the place of a young one, these are further apart.
//! - A young pause lies between the log's own and one in proportion to the bytes copied; a relation in the log says where. The
//!   prediction is the median: single long pauses are caused by other work of the machine.
//!
//! Every interval is that of the difference of two runs, from the spread of the log's blocks, and [`MODEL`] wider. Allocation
//! in the old generation, requested collections, and a load that changes over the day are outside the model.

mod blocks;
mod cycles;
mod generations;
mod heap;
mod rhythm;
mod survival;
mod watch;

use rungwise_model::capacity::{Estimate, Figure, Layout, Next, Quantity, WhatIf};
use rungwise_model::gc::LiveSet;

pub use watch::{Facts, Seen, Watch};

/// How much wider than its noise every interval is made. What remained between prediction and measurement on the pairs of logs
/// of `Steady` in `pairs`, beyond the noise; on those of `Sessions`, which were held back, it was enough.
pub const MODEL: f64 = 0.05;

/// Settings that the log may lack: from the options of the JVM, or from the user. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Given {
    /// The heap.
    pub heap: Option<f64>,
    /// Eden and both survivor spaces.
    pub young: Option<f64>,
    /// Where objects are born.
    pub eden: Option<f64>,
    /// One survivor space.
    pub survivor: Option<f64>,
    /// Eden as a multiple of a survivor space.
    pub survivor_ratio: Option<f64>,
    /// Collections that an object survives at most before it is promoted.
    pub max_tenuring: Option<u32>,
    /// Share of a survivor space that the collector wants to use.
    pub target_survivor: Option<f64>,
    /// Parallel adapts sizes and threshold (`UseAdaptiveSizePolicy`).
    pub adaptive: Option<bool>,
    /// Share of the old generation at which CMS begins a cycle.
    pub cycle_at: Option<f64>,
}

/// The change to predict. Bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The text of the request, for the report.
    pub asked: String,
    /// Eden and both survivor spaces.
    pub young: Option<f64>,
    /// Where objects are born.
    pub eden: Option<f64>,
    /// Eden as a multiple of a survivor space.
    pub survivor_ratio: Option<f64>,
    /// Collections that an object survives at most before it is promoted.
    pub tenuring: Option<u32>,
    /// The heap.
    pub heap: Option<f64>,
    /// Load as a multiple of that of the log.
    pub rate: f64,
}

impl Default for Change {
    fn default() -> Self {
        Self {
            asked: String::new(),
            young: None,
            eden: None,
            survivor_ratio: None,
            tenuring: None,
            heap: None,
            rate: 1.0,
        }
    }
}

impl Change {
    /// Nothing of the generations changes.
    fn keeps_young(&self) -> bool {
        self.young.is_none()
            && self.eden.is_none()
            && self.survivor_ratio.is_none()
            && self.tenuring.is_none()
            && (self.rate - 1.0).abs() < 1e-9
    }
}

/// Why nothing can be predicted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The log is too short, or lacks sizes.
    #[error("{0}")]
    TooLittle(String),
    /// The request contradicts itself, the log, or the collector.
    #[error("{0}")]
    Contradiction(String),
}

/// The prediction from a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Sizes of the log.
    pub layout: Layout,
    /// Bytes allocated per second.
    pub allocation: Estimate,
    /// The log's own figures, measured and modelled.
    pub now: Vec<Figure>,
    /// When the next collections come.
    pub next: Vec<Next>,
    /// The figures after the change.
    pub what_if: Option<WhatIf>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Predicts from the values seen in a log. `live` is the live set of the same run.
pub fn predict(
    seen: &Seen,
    given: &Given,
    live: Option<&LiveSet>,
    change: Option<&Change>,
) -> Result<Prediction, Error> {
    let mut prediction = if seen.tells_heap_alone() {
        heap::predict(seen, live, change)?
    } else if seen.stops_for_young() {
        generations::predict(seen, given, live, change)?
    } else {
        cycles::predict(seen, live, change)?
    };
    let checked = prediction
        .now
        .iter()
        .filter_map(|own| Some((own.measured?, own.estimate?)));
    let missed = checked
        .filter(|(measured, estimate)| !estimate.holds(*measured))
        .count();
    if missed > 0 {
        prediction.notes.insert(
            0,
            format!(
                "the model does not fit this log: {missed} of the log's own figures are outside their intervals, so predictions \
                 for other sizes may be too"
            ),
        );
    }
    Ok(prediction)
}

/// Seconds from one young collection to the next; `None` if nothing is allocated.
pub fn young_interval(eden_bytes: f64, allocated_bytes_per_s: f64) -> Option<f64> {
    (allocated_bytes_per_s > 0.0).then(|| eden_bytes / allocated_bytes_per_s)
}

/// A load and sizes, without a log. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plain {
    /// Allocated per second.
    pub allocation: f64,
    /// Where objects are born.
    pub eden: f64,
    /// Mean young pause, seconds.
    pub pause_s: Option<f64>,
    /// The heap.
    pub heap: Option<f64>,
    /// What lives for long.
    pub live: Option<f64>,
    /// What a young collection leaves alive.
    pub survivors: Option<f64>,
}

/// Figures of a load and sizes alone.
pub fn plain(case: &Plain) -> Result<Vec<Figure>, Error> {
    let live = case.live.unwrap_or(0.0);
    if let Some(heap) = case.heap.filter(|heap| *heap < case.eden + live) {
        let (eden, live) = (case.eden, live);
        return Err(Error::Contradiction(format!(
            "Eden of {} and a live set of {} do not fit into a heap of {}",
            size(eden),
            size(live),
            size(heap)
        )));
    }
    let Some(interval) = young_interval(case.eden, case.allocation) else {
        return Err(Error::TooLittle(
            "nothing is allocated, so nothing is collected".to_owned(),
        ));
    };
    if let Some(survivors) = case.survivors.filter(|survivors| *survivors > case.eden) {
        return Err(Error::Contradiction(format!(
            "survivors of {} exceed an Eden of {}",
            size(survivors),
            size(case.eden)
        )));
    }
    let exact = |quantity, value| Figure {
        quantity,
        measured: None,
        estimate: Some(Estimate::exact(value)),
        because: None,
    };
    let mut figures = vec![
        exact(Quantity::AllocationBytesPerS, case.allocation),
        exact(Quantity::AllocationBytesPerMin, case.allocation * 60.0),
        exact(Quantity::YoungIntervalS, interval),
        exact(Quantity::YoungPerMin, 60.0 / interval),
    ];
    if let Some(pause) = case.pause_s {
        figures.push(exact(Quantity::PauseShare, (pause / interval).min(1.0)));
    }
    if let (Some(heap), Some(_), Some(survivors @ 1.0..)) = (case.heap, case.live, case.survivors) {
        let least = (heap - case.eden - live) / survivors * interval;
        figures.push(Figure {
            because: Some(
                "lower bound: assumes that everything that survives a young collection is promoted and stays alive; a log with \
                 age tables shows how much is"
                    .to_owned(),
            ),
            ..exact(Quantity::OldIntervalS, least)
        });
    }
    Ok(figures)
}

/// A size in a message, as a flag would take it.
fn size(bytes: f64) -> String {
    let units = [
        (1_073_741_824.0, "GiB"),
        (1_048_576.0, "MiB"),
        (1024.0, "KiB"),
    ];
    let unit = units.into_iter().find(|(unit, _)| bytes >= *unit);
    match unit {
        Some((unit, name)) => {
            let number = format!("{:.1}", bytes / unit);
            format!("{} {name}", number.trim_end_matches(".0"))
        }
        None => format!("{bytes:.0} B"),
    }
}

/// A figure that is unknown.
fn unknown_figure(quantity: Quantity, measured: Option<f64>, why: impl Into<String>) -> Figure {
    Figure {
        quantity,
        measured,
        estimate: None,
        because: Some(why.into()),
    }
}

/// Seconds from the end of the log.
fn next(kind: &str, in_s: Option<Estimate>, because: impl Into<String>) -> Next {
    Next {
        kind: kind.to_owned(),
        in_s,
        because: because.into(),
    }
}

/// When the live set will have filled its room, if it grows for sure.
fn until_full(live: Option<&LiveSet>) -> Option<Next> {
    let live = live?;
    let (slope, room) = (live.bytes_per_hour?, live.room_bytes? as f64);
    let left = (room - live.last_bytes as f64).max(0.0) * 3600.0;
    (slope.low > 0.0).then(|| {
        let in_s = Estimate {
            point: left / slope.point,
            low: left / slope.high,
            high: left / slope.low,
        };
        next(
            "full",
            Some(in_s),
            "the live set grows; at this rate it fills the heap, and collections no longer help",
        )
    })
}

/// Ends of an interval that are further apart leave no figure: its middle would be off by three times as often as not.
const WIDE: f64 = 9.0;

/// A time between old collections that says something; else why there is none. The middle of an interval without an upper end was off
/// by 2 to 6 times on pairs of real logs.
fn old_interval_worth(figure: Figure) -> Figure {
    let Some(estimate) = figure.estimate else {
        return figure;
    };
    if estimate.low > 0.0 && estimate.high <= WIDE * estimate.low {
        return figure;
    }
    let because = if estimate.low <= 0.0 {
        "unknown: no room is left between two old collections, or the log lacks object lifetimes"
            .to_owned()
    } else {
        let most = if estimate.high.is_finite() {
            format!("at most {}", time(estimate.high))
        } else {
            "without an upper bound".to_owned()
        };
        format!(
            "unknown: at least {}, {most}; the log contains too little about object lifetimes, or about the room between two old collections",
            time(estimate.low)
        )
    };
    Figure {
        estimate: None,
        because: Some(because),
        ..figure
    }
}

/// A time in a message.
fn time(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => format!("{:.0} ms", short * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

/// How much the lengths of few intervals between young collections are supposed to differ.
const YOUNG: f64 = 0.7;
/// Share of a length that does not matter: stamps are of milliseconds, and threads take some to stop.
const JITTER: f64 = 0.01;
/// The same of full collections of a collector that works beside the application: they come when something goes wrong.
const FULL: f64 = 1.0;

/// The next young collection, by the last ones.
fn next_young(seen: &Seen) -> Next {
    let passed = seen.last.map_or(0.0, |last| seen.rhythm.passed(last));
    let in_s = seen
        .last
        .and_then(|last| seen.rhythm.next(last, YOUNG, JITTER));
    let because = match in_s {
        Some(in_s) if in_s.high.is_infinite() => format!(
            "due at any moment: {passed:.3} s have passed since the last one, longer than nearly all of the log's intervals: the \
             load has dropped or ended"
        ),
        Some(_) => {
            "nine in ten of the log's intervals, scaled to the latest ones, less the time since the last one".to_owned()
        }
        None => "unknown: the log contains fewer than two young collections".to_owned(),
    };
    next("young", in_s, because)
}

/// The next old collection, by the last ones; null where the log holds no two.
fn next_old(seen: &Seen) -> Option<Next> {
    let last = seen.last?;
    let in_s = seen.old.rhythm.next(last, seen.unsteady(), MODEL)?;
    let passed = seen.old.rhythm.passed(last);
    let because = if in_s.high.is_infinite() {
        format!(
            "due at any moment: {passed:.1} s have passed since the last one began, longer than the log's intervals suggest"
        )
    } else {
        format!(
            "nine in ten of the log's intervals, less the {passed:.1} s since the last one began; with few intervals, the range \
             follows how much promotion differs from one tenth of the log to the next"
        )
    };
    Some(next("old", Some(in_s), because))
}

/// The next full collection of a collector that works beside the application.
fn next_full(seen: &Seen, live: Option<&LiveSet>) -> Next {
    if let Some(next) = until_full(live) {
        return next;
    }
    let in_s = seen
        .last
        .and_then(|last| seen.old.full.next(last, FULL, MODEL));
    if in_s.is_some() {
        return next(
            "full",
            in_s,
            "from the intervals between the log's full collections; each ran because the collector fell behind or on request",
        );
    }
    let why = match live.map(|live| live.bytes_per_hour.is_some()) {
        Some(true) => {
            "none expected: the live set does not clearly grow, and the log contains at most one"
        }
        _ => {
            "unknown: too few old collections to see whether the live set grows; use a log of several hours"
        }
    };
    next("full", None, why)
}
