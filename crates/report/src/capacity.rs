//! The report of `capacity gc`: the prediction first, then the deviation of the model from the log, then when the next
//! collections occur.

use rungwise_model::capacity::{CapacityGcReport, Estimate, Figure, Layout, Quantity, WhatIf};

use crate::block::{Block, Cell, Column, Mark, Table, Tone, Verdict};
use crate::numbers::{self, ABSENT};
use crate::tune::moment;

/// A span is given in minutes and hours from here on, seconds.
const LONG: f64 = 120.0;
/// Of what the model makes that much more or less of than the log, no figure is put first. A guess: half as much again is
/// what a change of a size should at least do to be worth a test.
const MISSES: f64 = 1.5;

/// The whole report.
pub fn blocks(report: &CapacityGcReport) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report))];
    for note in &report.notes {
        blocks.push(notice(note));
    }
    if let Some(what_if) = &report.what_if {
        blocks.push(Block::section("what-if", format!("With {}", what_if.asked)));
        blocks.extend(what_if.notes.iter().map(|note| notice(note)));
        blocks.push(Block::Table(compared(&report.now, what_if)));
        blocks.extend(reasons(&what_if.figures));
    }
    let from_log = report.now.iter().any(|figure| figure.measured.is_some());
    let title = if from_log {
        "Model vs. log"
    } else {
        "Predicted collections"
    };
    blocks.push(Block::section("now", title));
    if from_log {
        blocks.push(Block::Prose(
            "The model applied to the log's own sizes. Its deviation from the log shows how far to trust the prediction. \
             Intervals, pauses and their share cover all collections in the log; the model leaves out the first ones, \
             which are warm-up."
                .to_owned(),
        ));
    }
    blocks.push(Block::Table(own(&report.now, from_log)));
    blocks.extend(reasons(&report.now));
    if !report.next.is_empty() {
        blocks.push(Block::section("next", "Next collections after the log"));
        blocks.push(Block::Table(next(report)));
        let reasons = report
            .next
            .iter()
            .map(|next| (kind(&next.kind), next.because.as_str()));
        blocks.extend(list(reasons));
    }
    blocks.push(Block::section("load", "Load and sizes"));
    blocks.push(Block::Facts(facts(report)));
    blocks
}

fn notice(text: &str) -> Block {
    Block::Notice {
        tone: Tone::Doubt,
        text: text.to_owned(),
    }
}

fn verdict(report: &CapacityGcReport) -> Verdict {
    let mut sentences = Vec::new();
    if let Some(what_if) = &report.what_if {
        sentences.extend(asked(&report.now, what_if));
    } else {
        if let Some(interval) = estimate(&report.now, Quantity::YoungIntervalS) {
            sentences.push(format!(
                "a young collection every {}, {} per minute",
                show(Quantity::YoungIntervalS, interval.point),
                numbers::significant(60.0 / interval.point)
            ));
        }
        if let Some(allocated) = report.load.allocation_bytes_per_s {
            sentences.push(format!(
                "{} allocated per minute",
                bytes(allocated.point * 60.0)
            ));
        }
    }
    if sentences.is_empty() {
        sentences.push("little can be predicted for this collector".to_owned());
    }
    let mut context = vec![report.target.clone()];
    context.extend(report.layout.collector.clone());
    context.push(moment(&report.envelope.started));
    Verdict {
        mark: Mark {
            symbol: "•",
            word: "predicted",
            tone: Tone::Plain,
        },
        sentence: sentences.join("; "),
        context,
        caveats: Vec::new(),
    }
}

fn estimate(figures: &[Figure], quantity: Quantity) -> Option<Estimate> {
    let mut of = figures.iter().filter(|figure| figure.quantity == quantity);
    of.find_map(|figure| figure.estimate)
}

/// How many times as much the model makes of it as the log says.
fn off(own: &Figure) -> Option<f64> {
    let measured = own.measured.filter(|measured| *measured > 0.0)?;
    Some(own.estimate?.point / measured)
}

/// What would be, beside what the same model makes of the log: what it is wrong by is in both. Where it is too wrong that is
/// said instead.
fn asked(now: &[Figure], what_if: &WhatIf) -> Vec<String> {
    let quantities = [
        (Quantity::YoungIntervalS, "a young collection every"),
        (Quantity::PromotionBytesPerS, "promoted"),
        (Quantity::OldIntervalS, "an old collection every"),
    ];
    let (mut sentences, mut missed) = (Vec::new(), Vec::new());
    for (quantity, words) in quantities {
        let Some(then) = estimate(&what_if.figures, quantity) else {
            continue;
        };
        let own = now.iter().find(|own| own.quantity == quantity);
        let off = own
            .and_then(off)
            .filter(|off| !(1.0 / MISSES..=MISSES).contains(off));
        if let Some(off) = off {
            missed.push(format!("{} ({})", name(quantity), numbers::factor(off)));
            continue;
        }
        // Of an upper bound alone the middle is no prediction.
        if then.low <= 0.0 {
            sentences.push(format!("{words} at most {}", show(quantity, then.high)));
            continue;
        }
        let then = show(quantity, then.point);
        let measured = own.and_then(|own| own.measured);
        let own = estimate(now, quantity).map(|own| own.point).or(measured);
        let own = own.map(|own| show(quantity, own));
        sentences.push(match own {
            Some(own) if own == then => format!("{words} {then}, as now"),
            Some(own) => format!("{words} {then} instead of {own}"),
            None => format!("{words} {then}"),
        });
    }
    if let Some(first) = sentences.first_mut() {
        first.insert_str(0, "according to the model, ");
    }
    if !missed.is_empty() {
        sentences.push(format!(
            "omitted because the model is off by more than {} on the log itself: {}",
            numbers::factor(MISSES),
            missed.join(", ")
        ));
    }
    sentences
}

/// What the model makes of the log beside what would be.
fn compared(now: &[Figure], what_if: &WhatIf) -> Table {
    let rows = what_if.figures.iter().map(|figure| {
        let own = estimate(now, figure.quantity).map(|own| own.point);
        let then = figure.estimate;
        let factor = own.zip(then).filter(|(own, _)| *own > 0.0);
        vec![
            Cell::text(name(figure.quantity)),
            Cell::number(own, |value| show(figure.quantity, value)),
            Cell::number(then.map(|then| then.point), |value| {
                show(figure.quantity, value)
            }),
            between(figure.quantity, then),
            Cell::number(factor.map(|(own, then)| then.point / own), numbers::factor),
        ]
    });
    Table {
        caption: "Both columns come from the model; its deviation from the log is below."
            .to_owned(),
        columns: vec![
            Column::words("Figure", "figure"),
            Column::number("Now", "now"),
            Column::number("Predicted", "predicted"),
            Column::words("Interval", "interval"),
            Column::number("Factor", "factor").rank(1),
        ],
        rows: rows.collect(),
    }
}

/// The log's figures beside those of the model.
fn own(now: &[Figure], from_log: bool) -> Table {
    let rows = now.iter().map(|figure| {
        let estimate = figure.estimate;
        let mut row = vec![Cell::text(name(figure.quantity))];
        if from_log {
            row.push(Cell::number(figure.measured, |value| {
                show(figure.quantity, value)
            }));
        }
        row.push(Cell::number(
            estimate.map(|estimate| estimate.point),
            |value| show(figure.quantity, value),
        ));
        if from_log {
            row.push(Cell::number(
                off(figure).map(|off| off - 1.0),
                numbers::change,
            ));
            row.push(between(figure.quantity, estimate));
        }
        row
    });
    let mut columns = vec![Column::words("Figure", "figure")];
    if from_log {
        columns.push(Column::number("Log", "measured"));
    }
    columns.push(Column::number("Model", "predicted"));
    if from_log {
        columns.push(Column::number("Deviation", "off"));
        columns.push(Column::words("Interval", "interval").rank(1));
    }
    Table {
        caption: String::new(),
        columns,
        rows: rows.collect(),
    }
}

fn next(report: &CapacityGcReport) -> Table {
    let rows = report.next.iter().map(|next| {
        vec![
            Cell::text(kind(&next.kind)),
            Cell::number(next.in_s.map(|in_s| in_s.point), span),
            between(Quantity::OldIntervalS, next.in_s),
        ]
    });
    Table {
        caption: String::new(),
        columns: vec![
            Column::words("Next", "kind"),
            Column::number("In", "seconds"),
            Column::words("Interval", "interval"),
        ],
        rows: rows.collect(),
    }
}

fn kind(kind: &str) -> &'static str {
    match kind {
        "young" => "young collection",
        "full" => "full collection",
        _ => "old collection or cycle",
    }
}

/// What each figure rests on, or why it is unknown: those that say so.
fn reasons(figures: &[Figure]) -> Option<Block> {
    list(
        figures
            .iter()
            .filter_map(|figure| Some((name(figure.quantity), figure.because.as_deref()?))),
    )
}

/// Names with what there is to say of them, once for the same words.
fn list<'a>(said: impl Iterator<Item = (&'static str, &'a str)>) -> Option<Block> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, words) in said {
        match all.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(name),
            None => all.push((words, vec![name])),
        }
    }
    let lines = all
        .into_iter()
        .map(|(words, names)| format!("{}: {words}", names.join(", ")));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then_some(Block::List(lines))
}

fn between(quantity: Quantity, estimate: Option<Estimate>) -> Cell {
    let Some(estimate) = estimate else {
        return Cell::text(ABSENT);
    };
    if estimate.high.is_finite() {
        Cell::text(format!(
            "{} – {}",
            show(quantity, estimate.low),
            show(quantity, estimate.high)
        ))
    } else if show(quantity, estimate.low) == show(quantity, 0.0) {
        Cell::text("no bound")
    } else {
        Cell::text(format!("at least {}", show(quantity, estimate.low)))
    }
}

fn facts(report: &CapacityGcReport) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.push((name.to_owned(), value));
        }
    };
    let load = &report.load;
    let interval = |estimate: Option<Estimate>, show: &dyn Fn(f64) -> String| {
        let estimate = estimate?;
        Some(if estimate.low < estimate.high {
            let (low, high) = (show(estimate.low), show(estimate.high));
            format!("{}, between {low} and {high}", show(estimate.point))
        } else {
            show(estimate.point)
        })
    };
    let per_second = |value: f64| format!("{}/s", bytes(value));
    fact("Requests", load.requests_per_s.map(numbers::rate));
    fact(
        "Allocated per request",
        interval(load.bytes_per_request, &bytes),
    );
    fact(
        "Allocated",
        interval(load.allocation_bytes_per_s, &per_second),
    );
    let then = report.what_if.as_ref();
    let size = |of: fn(&Layout) -> Option<f64>| {
        let own = of(&report.layout).map(bytes);
        let then = then.and_then(|what_if| of(&what_if.layout)).map(bytes);
        changed(own, then)
    };
    fact("Heap", size(|layout| layout.heap_bytes));
    fact("Young generation", size(|layout| layout.young_bytes));
    fact("Eden", size(|layout| layout.eden_bytes));
    fact("Survivor space", size(|layout| layout.survivor_bytes));
    fact("Old generation", size(|layout| layout.old_bytes));
    let age = |layout: &Layout| layout.max_tenuring.map(|age| age.to_string());
    fact(
        "Maximum age",
        changed(
            age(&report.layout),
            then.and_then(|what_if| age(&what_if.layout)),
        ),
    );
    facts
}

fn changed(own: Option<String>, then: Option<String>) -> Option<String> {
    match (own, then) {
        (Some(own), Some(then)) if own != then => Some(format!("{own} → {then}")),
        (own, then) => own.or(then),
    }
}

fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::AllocationBytesPerS => "allocation",
        Quantity::AllocationBytesPerMin => "allocation per minute",
        Quantity::YoungIntervalS => "young collection interval",
        Quantity::YoungPerMin => "young collections per minute",
        Quantity::SurvivorsBytes => "survivor space in use",
        Quantity::SurvivorSpaceWantedBytes => "survivor space needed for all ages",
        Quantity::TenuringThreshold => "age at promotion",
        Quantity::PromotionBytesPerS => "promotion",
        Quantity::YoungPauseMs => "young pause, median",
        Quantity::OldIntervalS => "old collection interval",
        Quantity::PauseShare => "share of time in pauses",
    }
}

fn show(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::AllocationBytesPerS | Quantity::PromotionBytesPerS => {
            format!("{}/s", bytes(value))
        }
        Quantity::AllocationBytesPerMin
        | Quantity::SurvivorsBytes
        | Quantity::SurvivorSpaceWantedBytes => bytes(value),
        Quantity::YoungIntervalS | Quantity::OldIntervalS => span(value),
        Quantity::YoungPerMin | Quantity::TenuringThreshold => numbers::significant(value),
        Quantity::YoungPauseMs => numbers::micros(value * 1e3),
        Quantity::PauseShare => numbers::share(value),
    }
}

fn span(seconds: f64) -> String {
    if seconds < LONG {
        numbers::micros(seconds * 1e6)
    } else {
        numbers::span(seconds)
    }
}

fn bytes(bytes: f64) -> String {
    numbers::bytes(bytes.max(0.0).round() as u64)
}
