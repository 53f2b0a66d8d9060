//! Collectors that work beside the application: ZGC and Shenandoah. Little of them is reckoned, since they decide most by
//! themselves: when cycles come follows the room above what they leave, and pauses do not follow sizes at all.

use rungwise_model::capacity::{Estimate, Figure, Layout, Quantity, WhatIf};
use rungwise_model::gc::LiveSet;

use super::watch::Seen;
use super::{
    Change, Error, MODEL, Prediction, next_full, next_old, old_interval_worth, unknown_figure,
};
use crate::event::Collector;

/// Cycles below which nothing is said of their intervals.
const FEWEST: u64 = 3;

/// The cycles of the log.
struct Cycles {
    /// The collector.
    name: &'static str,
    /// From the start of one to that of the next, seconds: the mean, and nine in ten of them.
    interval: Estimate,
    /// In use when one begins, bytes.
    at: f64,
    /// In use when one has ended, bytes.
    left: f64,
}

pub(super) fn predict(
    seen: &Seen,
    live: Option<&LiveSet>,
    change: Option<&Change>,
) -> Result<Prediction, Error> {
    let cycles = Cycles::of(seen)?;
    let name = cycles.name;
    // What is allocated during a cycle is not seen, so this is the rate at which the room fills.
    let room = Estimate::exact(cycles.at - cycles.left);
    let allocation = room.over(cycles.interval).unwrap_or_default();
    let heap = seen.facts.max_heap.map(|bytes| bytes as f64);
    let layout = Layout {
        collector: Some(name.to_owned()),
        heap_bytes: heap.or(seen.heap.last),
        ..Layout::default()
    };
    let what_if = change
        .map(|change| what_if(change, &cycles, &layout))
        .transpose()?;
    Ok(Prediction {
        layout,
        allocation,
        now: cycles.now(seen),
        next: next_old(seen)
            .into_iter()
            .chain([next_full(seen, live)])
            .collect(),
        what_if,
        notes: vec![format!(
            "{name} has no young generation: allocation is measured between cycles, and what is allocated during a cycle is not \
             counted"
        )],
    })
}

impl Cycles {
    fn of(seen: &Seen) -> Result<Self, Error> {
        let name = name(seen.facts.collector)?;
        let intervals = &seen.old.interval;
        let (true, Some(at), Some(left)) = (
            intervals.count() + 1 >= FEWEST,
            seen.old.at_start.mean(),
            seen.old.left().and_then(|left| left.mean()),
        ) else {
            return Err(Error::TooLittle(format!(
                "the log contains fewer than {FEWEST} cycles of {name} with sizes"
            )));
        };
        if at <= left {
            return Err(Error::TooLittle(format!(
                "the cycles of {name} in the log free nothing"
            )));
        }
        let at_share = |share: f64| intervals.quantile(share) as f64 / 1e9;
        let mean = intervals.sum_ms() / 1e3 / intervals.count() as f64;
        Ok(Self {
            name,
            interval: Estimate {
                point: mean,
                low: at_share(0.05).min(mean),
                high: at_share(0.95).max(mean),
            },
            at,
            left,
        })
    }

    /// What the log has of the figures that are predicted.
    fn now(&self, seen: &Seen) -> Vec<Figure> {
        let interval = Figure {
            quantity: Quantity::OldIntervalS,
            measured: Some(self.interval.point),
            estimate: Some(self.interval),
            because: Some("nine in ten of the log's intervals".to_owned()),
        };
        // Under -Xlog:gc ZGC prints no pause, and no pause is unknown to be none.
        let share = (seen.pauses_s > 0.0).then(|| seen.pauses_s / seen.seconds());
        vec![interval, self.pauses(share)]
    }

    fn pauses(&self, share: Option<f64>) -> Figure {
        let name = self.name;
        unknown_figure(
            Quantity::PauseShare,
            share,
            format!("pauses of {name} depend neither on the heap size nor on the live set"),
        )
    }
}

/// The collector, if its cycles can be reckoned with.
fn name(collector: Option<Collector>) -> Result<&'static str, Error> {
    match collector {
        Some(Collector::Z) => Ok("ZGC"),
        Some(Collector::Shenandoah) => Ok("Shenandoah"),
        Some(Collector::GenerationalZ) => Err(generational("generational ZGC")),
        Some(Collector::GenerationalShenandoah) => Err(generational("generational Shenandoah")),
        Some(Collector::Epsilon) => Err(Error::TooLittle("Epsilon never collects".to_owned())),
        _ => Err(Error::TooLittle(
            "the log does not show which collector wrote it, or contains no collection".to_owned(),
        )),
    }
}

fn generational(name: &str) -> Error {
    Error::TooLittle(format!(
        "{name} constantly adjusts the sizes of its generations and the times of its collections, so its logs allow no \
         prediction; `rungwise jvm gc` shows what it did"
    ))
}

fn what_if(change: &Change, cycles: &Cycles, layout: &Layout) -> Result<WhatIf, Error> {
    let &Cycles { name, at, left, .. } = cycles;
    let heap = layout.heap_bytes;
    if change.young.is_some()
        || change.eden.is_some()
        || change.survivor_ratio.is_some()
        || change.tenuring.is_some()
    {
        return Err(Error::Contradiction(format!(
            "{name} has no young generation; only heap= and rate= apply"
        )));
    }
    let mut room = Estimate::exact(at - left);
    if let (Some(wanted), Some(heap)) = (change.heap, heap) {
        if wanted <= left {
            return Err(Error::Contradiction(format!(
                "{} stay in use after cycles and do not fit into a heap of {}",
                super::size(left),
                super::size(wanted)
            )));
        }
        // A cycle begins so far from the end of the heap, or at such a share of it, or something between.
        let by_share = (at * wanted / heap - left).max(0.0);
        let by_distance = (at + wanted - heap - left).max(0.0);
        room = Estimate {
            point: f64::midpoint(by_share, by_distance),
            low: by_share.min(by_distance),
            high: by_share.max(by_distance),
        };
    } else if change.heap.is_some() {
        return Err(Error::TooLittle(
            "the log does not contain the heap size; pass --heap".to_owned(),
        ));
    }
    let longer = room.scaled(1.0 / (at - left) / change.rate);
    let estimate = cycles.interval.times(longer).widened(MODEL);
    Ok(WhatIf {
        asked: change.asked.clone(),
        layout: Layout {
            heap_bytes: change.heap.or(heap),
            ..layout.clone()
        },
        allocation_bytes_per_s: None,
        figures: vec![
            old_interval_worth(Figure {
                quantity: Quantity::OldIntervalS,
                measured: None,
                estimate: Some(estimate),
                because: Some("the log's intervals, scaled with the room between the heap after a cycle and at the start of the next".to_owned()),
            }),
            cycles.pauses(None),
        ],
        notes: Vec::new(),
    })
}
