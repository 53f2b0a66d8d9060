//! Collectors that work beside the application: ZGC and Shenandoah. Little of them is reckoned, since they decide most by
//! themselves: when cycles come follows the room above what they leave, and pauses do not follow sizes at all.

use rungwise_model::capacity::{Estimate, Figure, Layout, Quantity, WhatIf};
use rungwise_model::gc::LiveSet;

use super::watch::Seen;
use super::{Change, Error, MODEL, Prediction, next, next_full, untold};
use crate::event::Collector;
use crate::summary::clock::seconds;

/// Cycles below which nothing is said of their intervals.
const FEWEST: u64 = 3;

pub(super) fn predict(
    seen: &Seen,
    live: Option<&LiveSet>,
    change: Option<&Change>,
) -> Result<Prediction, Error> {
    let name = match seen.facts.collector {
        Some(Collector::Z) => "ZGC",
        Some(Collector::Shenandoah) => "Shenandoah",
        Some(Collector::GenerationalZ) => return Err(generational("generational ZGC")),
        Some(Collector::GenerationalShenandoah) => {
            return Err(generational("generational Shenandoah"));
        }
        Some(Collector::Epsilon) => {
            return Err(Error::TooLittle("Epsilon never collects".to_owned()));
        }
        _ => {
            return Err(Error::TooLittle(
                "the log does not tell which collector wrote it, or of no collection".to_owned(),
            ));
        }
    };
    let (Some(interval), Some(at), Some(left)) = (
        (seen.old.interval.count() + 1 >= FEWEST).then_some(&seen.old.interval),
        seen.old.at_start.mean(),
        seen.old.left().and_then(|left| left.mean()),
    ) else {
        return Err(Error::TooLittle(format!(
            "the log tells of fewer than {FEWEST} cycles of {name} with their sizes"
        )));
    };
    let at_share = |share: f64| interval.quantile(share) as f64 / 1e9;
    let mean = interval.sum_ms() / 1e3 / interval.count() as f64;
    let (least, most) = (at_share(0.05).min(mean), at_share(0.95).max(mean));
    let room = at - left;
    if room <= 0.0 {
        return Err(Error::TooLittle(format!(
            "the cycles of {name} in the log free nothing"
        )));
    }
    let spread = Estimate {
        point: mean,
        low: least,
        high: most,
    };
    // What is allocated during a cycle is not seen, so this is the rate at which the room fills.
    let allocation = Estimate::exact(room).over(spread).unwrap_or_default();
    // Under -Xlog:gc ZGC prints no pause, and no pause is not known to be none.
    let share = (seen.pauses_s > 0.0).then(|| seen.pauses_s / seen.seconds());
    let heap = seen
        .facts
        .max_heap
        .map(|bytes| bytes as f64)
        .or(seen.heap.last);
    let layout = Layout {
        collector: Some(name.to_owned()),
        heap_bytes: heap,
        ..Layout::default()
    };
    let own = Figure {
        quantity: Quantity::OldIntervalS,
        measured: Some(mean),
        estimate: Some(spread),
        because: Some("nine in ten of the log's intervals".to_owned()),
    };
    let pauses = untold(
        Quantity::PauseShare,
        share,
        format!("pauses of {name} follow neither the heap nor what lives in it"),
    );
    let what_if = change
        .map(|change| what_if(change, name, heap, [at, left], spread, &layout))
        .transpose()?;
    let passed = seen
        .last
        .zip(seen.old.last_start)
        .map_or(0.0, |(last, at)| seconds(last - at));
    let left_s = |value: f64| (value - passed).max(0.0);
    let in_s = Estimate {
        point: left_s(mean),
        low: left_s(least),
        high: left_s(most),
    };
    Ok(Prediction {
        layout,
        allocation,
        now: vec![own, pauses],
        next: vec![
            next(
                "old",
                Some(in_s),
                "a cycle: the log's intervals, less the time since the last one began",
            ),
            next_full(seen, live),
        ],
        what_if,
        notes: vec![format!(
            "{name} has no young generation: allocation is what fills the heap between cycles, and what is allocated during them is \
             not seen"
        )],
    })
}

fn generational(name: &str) -> Error {
    Error::TooLittle(format!(
        "{name} sets the sizes of its generations and when it collects them by itself, all the time; nothing is predicted of it \
         from a log; `rungwise jvm gc` tells what it did"
    ))
}

fn what_if(
    change: &Change,
    name: &str,
    heap: Option<f64>,
    [at, left]: [f64; 2],
    interval: Estimate,
    layout: &Layout,
) -> Result<WhatIf, Error> {
    if change.young.is_some()
        || change.eden.is_some()
        || change.survivor_ratio.is_some()
        || change.tenuring.is_some()
    {
        return Err(Error::Contradiction(format!(
            "{name} has no young generation; of it heap= and rate= can be asked"
        )));
    }
    let mut room = Estimate::exact(at - left);
    if let (Some(wanted), Some(heap)) = (change.heap, heap) {
        if wanted <= left {
            return Err(Error::Contradiction(format!(
                "{} stay in use after cycles, which do not fit into a heap of {}",
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
            "the log does not tell the size of the heap that it was written with; say it with --heap".to_owned(),
        ));
    }
    let longer = room.scaled(1.0 / (at - left) / change.rate);
    let estimate = interval.times(longer).widened(MODEL);
    Ok(WhatIf {
        asked: change.asked.clone(),
        layout: Layout {
            heap_bytes: change.heap.or(heap),
            ..layout.clone()
        },
        allocation_bytes_per_s: None,
        figures: vec![
            Figure {
                quantity: Quantity::OldIntervalS,
                measured: None,
                estimate: Some(estimate),
                because: Some("the log's intervals, longer as the room between what a cycle leaves and where one begins".to_owned()),
            },
            untold(
                Quantity::PauseShare,
                None,
                format!("pauses of {name} follow neither the heap nor what lives in it"),
            ),
        ],
        notes: Vec::new(),
    })
}
