//! Logs that contain the heap but not its generations, as `-Xlog:gc` and `-verbose:gc` print them: how often young collections come,
//! how long they take, and what is allocated. How long objects live is not in them, and so nothing that follows sizes.

use rungwise_model::capacity::{Estimate, Figure, Layout, Quantity, WhatIf};
use rungwise_model::gc::LiveSet;

use super::generations::median_pause;
use super::watch::Seen;
use super::{
    Change, Error, MODEL, Prediction, next, next_full, next_old, next_young, unknown_figure,
};
use crate::summary::collector_word;

/// What would tell the rest.
const LOG: &str =
    "log with -Xlog:gc*,gc+age=trace (JDK 8: -XX:+PrintGCDetails -XX:+PrintTenuringDistribution)";

pub(super) fn predict(
    seen: &Seen,
    live: Option<&LiveSet>,
    change: Option<&Change>,
) -> Result<Prediction, Error> {
    let blocks = &seen.by_heap;
    let (Some(allocation), sum) = (blocks.ratio(|b| b.allocated, |b| b.seconds), blocks.sum())
    else {
        return Err(Error::TooLittle("the log contains no sizes".to_owned()));
    };
    if allocation.point <= 0.0 {
        return Err(Error::TooLittle("the log shows no allocation".to_owned()));
    }
    let allocation = allocation.widened(MODEL);
    let step = sum.allocated / sum.count;
    let layout = Layout {
        collector: seen
            .facts
            .collector
            .map(|collector| collector_word(collector).to_owned()),
        heap_bytes: seen
            .facts
            .max_heap
            .map(|bytes| bytes as f64)
            .or(seen.heap.last),
        ..Layout::default()
    };
    let what_if = change
        .map(|change| what_if(change, allocation, step, &layout))
        .transpose()?;
    let mut now = figures(Estimate::exact(step).over(allocation).unwrap_or_default());
    for figure in &mut now {
        match figure.quantity {
            Quantity::YoungIntervalS => figure.measured = seen.mean_spacing_s(),
            Quantity::YoungPerMin => figure.measured = seen.mean_spacing_s().map(|s| 60.0 / s),
            Quantity::YoungPauseMs => {
                let measured = seen.every.quantile(0.5) as f64 / 1e6;
                let estimate = median_pause(seen, blocks).map(|s| s.scaled(1e3));
                *figure = Figure {
                    quantity: figure.quantity,
                    measured: (seen.every.count() > 0).then_some(measured),
                    estimate,
                    because: None,
                };
            }
            Quantity::PauseShare => {
                figure.measured = Some(seen.pauses_s / seen.seconds());
            }
            _ => {}
        }
    }
    let old = next_old(seen).unwrap_or_else(|| {
        next(
            "old",
            None,
            "unknown: the log contains fewer than two old collections",
        )
    });
    Ok(Prediction {
        layout,
        allocation,
        now,
        next: vec![next_young(seen), old, next_full(seen, live)],
        what_if,
        notes: vec![format!(
            "the log contains the heap but not its generations: allocation is the growth of the heap between pauses, without what \
             a concurrent cycle freed meanwhile, and only eden= and rate= apply; for the rest, {LOG}"
        )],
    })
}

/// Of a time from one young collection to the next.
fn figures(interval: Estimate) -> Vec<Figure> {
    use Quantity as Q;
    let figure = |quantity, estimate| Figure {
        quantity,
        measured: None,
        estimate,
        because: None,
    };
    let mut figures = vec![
        figure(Q::YoungIntervalS, Some(interval)),
        figure(Q::YoungPerMin, Estimate::exact(60.0).over(interval)),
    ];
    let rest = [
        Q::YoungPauseMs,
        Q::SurvivorsBytes,
        Q::TenuringThreshold,
        Q::PromotionBytesPerS,
        Q::OldIntervalS,
        Q::PauseShare,
    ];
    figures.extend(rest.map(|quantity| {
        let why = format!("unknown: it depends on object lifetimes, which the log lacks; {LOG}");
        unknown_figure(quantity, None, why)
    }));
    figures
}

fn what_if(
    change: &Change,
    allocation: Estimate,
    step: f64,
    layout: &Layout,
) -> Result<WhatIf, Error> {
    let asked = [
        ("young", change.young.is_some()),
        ("survivor-ratio", change.survivor_ratio.is_some()),
        ("tenuring", change.tenuring.is_some()),
        ("heap", change.heap.is_some()),
    ];
    if let Some((key, _)) = asked.into_iter().find(|(_, asked)| *asked) {
        return Err(Error::TooLittle(format!(
            "the effect of {key}= depends on the sizes of the generations and on object lifetimes, but the log contains only the heap; {LOG}"
        )));
    }
    let allocation = allocation.scaled(change.rate);
    let eden = change.eden.unwrap_or(step);
    Ok(WhatIf {
        asked: change.asked.clone(),
        layout: Layout {
            eden_bytes: change.eden,
            ..layout.clone()
        },
        allocation_bytes_per_s: Some(allocation),
        figures: figures(Estimate::exact(eden).over(allocation).unwrap_or_default()),
        notes: Vec::new(),
    })
}
