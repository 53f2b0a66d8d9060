//! The ladder as a picture of changes around zero, and as a table of everything measured.

use rungwise_model::metric::BYTES_PER_REQUEST;
use rungwise_model::tune::{Outcome, Rung, TuneReport};

use super::{outcome, reference_name};
use crate::block::{
    Block, Cell, Chart, Column, IntervalRow, Intervals, Plot, ReferenceMark, Table, Tone,
};
use crate::numbers::{self, ABSENT};

/// One row per rung: what it did to the objective, with its interval.
pub(super) fn picture(report: &TuneReport) -> Block {
    let band = report.aa.smallest_effect.filter(|effect| *effect > 0.0);
    let reference = reference_name(report);
    let (metric, sides) = match report.objective.as_str() {
        "rate_per_s" => ("the rate", ("slower", "faster")),
        "p99_us" => ("p99", ("shorter", "longer")),
        BYTES_PER_REQUEST => ("heap per request", ("less", "more")),
        other => (other, ("less", "more")),
    };
    let quantity = format!("change of {metric} against the variant without the change");
    let note = match band {
        Some(effect) => format!(
            "Line: interval; dot: centre of the pairs. Shaded, ±{}: effects too small to detect reliably on this machine \
             (missed more than 20 % of the time).",
            numbers::share(effect)
        ),
        None => "Line: interval; dot: centre of the pairs.".to_owned(),
    };
    Block::Chart(Box::new(Chart {
        id: "ladder-changes",
        title: headline(report),
        note,
        plot: Plot::Intervals(Intervals {
            quantity,
            sides,
            band,
            reference,
            rows: report
                .rungs
                .iter()
                .enumerate()
                .map(|(n, rung)| row(n, rung))
                .collect(),
        }),
        data: data(report),
    }))
}

fn headline(report: &TuneReport) -> String {
    let comparable = |rung: &&Rung| {
        rung.label.is_none() && !matches!(rung.outcome, Outcome::Observed | Outcome::Skipped)
    };
    let changes = || {
        report
            .rungs
            .iter()
            .filter(comparable)
            .filter_map(|rung| rung.delta.map(|delta| (rung, delta.point)))
    };
    let kept = report.kept.len();
    // Where less is better the best change is the smallest one.
    let sign = if report.less_is_better() { -1.0 } else { 1.0 };
    let best = changes()
        .filter(|(rung, _)| rung.outcome == Outcome::Kept)
        .max_by(|a, b| (a.1 * sign).total_cmp(&(b.1 * sign)));
    let worst = changes()
        .filter(|(rung, _)| rung.outcome == Outcome::Reverted)
        .min_by(|a, b| (a.1 * sign).total_cmp(&(b.1 * sign)));
    if !super::tried(report).any(|rung| rung.delta.is_some() || rung.cost_only) {
        return "No change could be measured".to_owned();
    }
    let clause = |extreme: Option<(&Rung, f64)>, join: &str, verb: &str| {
        extreme.map_or_else(String::new, |(rung, change)| {
            format!(
                "{join}“{}” {verb} most ({})",
                rung.title,
                numbers::change(change)
            )
        })
    };
    format!(
        "{kept} of {} kept{}{}",
        numbers::plural(super::tried(report).count(), "change"),
        clause(best, "; ", "helped"),
        clause(worst, if best.is_some() { ", " } else { "; " }, "hurt")
    )
}

fn row(number: usize, rung: &Rung) -> IntervalRow {
    let mut tags: Vec<String> = rung.label.iter().cloned().collect();
    if rung.cost_only {
        tags.push("judged by CPU cost only".to_owned());
    }
    let instead = match (rung.delta.is_some(), number, rung.rate_per_s) {
        (true, ..) => String::new(),
        (false, 0, Some(_)) => "initial configuration: every later rung builds on it".to_owned(),
        _ => rung.reason.clone(),
    };
    IntervalRow {
        number,
        title: rung.title.clone(),
        tags,
        value: rung
            .rate_per_s
            .map_or_else(|| ABSENT.to_owned(), numbers::rate),
        change: rung.delta.map(|delta| (delta.point, delta.low, delta.high)),
        instead,
        mark: outcome(rung.outcome),
        reference: rung.reference.as_ref().map(|reference| ReferenceMark {
            value: numbers::rate(reference.rate_per_s),
            factor: reference.factor,
            sign_differs: rung.sign_differs,
        }),
    }
}

/// The numbers behind the picture.
fn data(report: &TuneReport) -> Table {
    let columns = vec![
        Column::number("#", "rung"),
        Column::words("Id", "id"),
        Column::words("Rung", "title"),
        Column::number("Rate", "rate_per_s"),
        Column::number("Change", "delta_point"),
        Column::number("Low", "delta_low"),
        Column::number("High", "delta_high"),
        Column::number("Pairs", "pairs"),
        Column::number("Discarded", "discarded"),
        Column::words("Outcome", "outcome"),
        Column::number("Reference rate", "reference_rate_per_s"),
        Column::number("Reference factor", "reference_factor"),
    ];
    let row = |(number, rung): (usize, &Rung)| {
        let delta = rung.delta.as_ref();
        let reference = rung.reference.as_ref();
        vec![
            Cell::number(Some(number as f64), |n| format!("{n:.0}")),
            Cell::text(&rung.id),
            Cell::text(&rung.title),
            Cell::number(rung.rate_per_s, numbers::rate),
            Cell::number(delta.map(|d| d.point), numbers::change),
            Cell::number(delta.map(|d| d.low), numbers::change),
            Cell::number(delta.map(|d| d.high), numbers::change),
            Cell::number(delta.map(|d| f64::from(d.pairs)), |n| format!("{n:.0}")),
            Cell::number(delta.map(|d| f64::from(d.discarded)), |n| format!("{n:.0}")),
            Cell::text(outcome(rung.outcome).word),
            Cell::number(reference.map(|r| r.rate_per_s), numbers::rate),
            Cell::number(reference.and_then(|r| r.factor), numbers::factor),
        ]
    };
    Table {
        caption: "Change of the objective per rung".to_owned(),
        columns,
        rows: report.rungs.iter().enumerate().map(row).collect(),
    }
}

/// Columns of a terminal within which a title still tells its rung from the others; own guess.
const SHORT_TITLE: usize = 12;

/// The column of the heap per request: behind the change.
const HEAP_AT: usize = 4;

/// Everything measured, one rung a row.
pub(super) fn table(report: &TuneReport) -> Block {
    let reference = reference_name(report);
    let mut columns = vec![
        Column::number("#", "rung"),
        // The picture above has the titles in full.
        Column::words("Rung", "title").least(SHORT_TITLE),
        Column::number("Rate", "rate_per_s"),
        Column::number("Change", "delta"),
        Column::number("CPU per tx", "cpu_us_per_tx").rank(1),
        Column::number("p50", "p50_us").rank(5),
        Column::number("p99", "p99_us").rank(3),
        Column::number("Pairs", "pairs").rank(4),
        Column::words("Outcome", "outcome"),
        Column::words("Reason", "reason").rank(7),
    ];
    let with_heap = super::has_heap(report);
    if with_heap {
        let column = Column::number("Heap per request", BYTES_PER_REQUEST);
        columns.insert(HEAP_AT, column.rank(1));
    }
    if let Some(name) = &reference {
        let mut column = Column::number(name.clone(), "reference_rate_per_s").rank(2);
        column.about = super::reference_note(report);
        columns.push(column);
    }
    let rows = report
        .rungs
        .iter()
        .enumerate()
        .map(|(number, rung)| {
            let mut cells = table_row(number, rung, reference.is_some());
            if with_heap {
                cells.insert(
                    HEAP_AT,
                    Cell::number(super::heap(rung), numbers::whole_bytes),
                );
            }
            cells
        })
        .collect();
    Block::Table(Table {
        caption: "Every rung: medians with the change; changes and their intervals relative to the variant without \
                  it"
            .to_owned(),
        columns,
        rows,
    })
}

fn table_row(number: usize, rung: &Rung, with_reference: bool) -> Vec<Cell> {
    let mark = outcome(rung.outcome);
    let set: Vec<String> = rung
        .set
        .iter()
        .map(|(knob, value)| format!("{knob} = {value}"))
        .collect();
    let title = match &rung.label {
        Some(label) => format!("{} ({label})", rung.title),
        None => rung.title.clone(),
    };
    let delta = |delta: Option<&rungwise_model::tune::Delta>| {
        Cell::number(delta.map(|d| d.point), numbers::change)
            .note(delta.map_or_else(String::new, |d| numbers::interval(d.low, d.high)))
    };
    let cost = Cell::number(rung.cpu_us_per_tx, numbers::micros_only).note(
        rung.cpu_delta.map_or_else(String::new, |d| {
            format!(
                "{} {}",
                numbers::change(d.point),
                numbers::interval(d.low, d.high)
            )
        }),
    );
    let counted = rung.delta.or(rung.cpu_delta);
    let pairs = Cell::number(counted.map(|d| f64::from(d.pairs)), |n| format!("{n:.0}")).note(
        match counted.map_or(0, |d| d.discarded) {
            0 => String::new(),
            n => format!("+{n} discarded"),
        },
    );
    let mut cells = vec![
        Cell::number(Some(number as f64), |n| format!("{n:.0}")),
        Cell::text(title).note(set.join(", ")),
        Cell::number(rung.rate_per_s, numbers::rate),
        delta(rung.delta.as_ref()).tone(match rung.outcome {
            Outcome::Kept | Outcome::Reverted => mark.tone,
            _ => Tone::Plain,
        }),
        cost,
        Cell::number(rung.latency_us.map(|l| l.p50), numbers::micros_only),
        Cell::number(rung.latency_us.map(|l| l.p99), numbers::micros_only),
        pairs,
        Cell::mark(mark).note(if rung.cost_only { "cost only" } else { "" }),
        Cell::text(&rung.reason),
    ];
    if with_reference {
        let reference = rung.reference.as_ref();
        let factor = reference.and_then(|r| r.factor).map(numbers::factor);
        let differs = rung.sign_differs.then(|| "≠ sign differs".to_owned());
        let note: Vec<String> = factor.into_iter().chain(differs).collect();
        cells.push(
            Cell::number(reference.map(|r| r.rate_per_s), numbers::rate).note(note.join(" ")),
        );
    }
    cells
}
