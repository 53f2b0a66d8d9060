//! What the collector did while the application ran: a lane for each cycle and phase.

use rungwise_model::gc::{Concurrent, Portion, Run};

use super::{Time, how_many, millis, step};
use crate::block::{Block, Cell, Chart, Column, Layer, Layers, Plot, Table};
use crate::numbers;

/// Lanes at most; the table of the section on concurrent work has all.
const LANES: usize = 10;

pub(super) fn concurrent(run: &Run, time: Time) -> Option<Block> {
    let course = &run.concurrent_course;
    let known = |portion: &Portion| run.concurrent.get(&portion.name);
    let cycle = |portion: &Portion| known(portion).is_some_and(|phase| phase.cycle);
    let mut parts: Vec<&Portion> = course.parts.iter().collect();
    // The sort is stable: within both groups the largest sum stays first.
    parts.sort_by_key(|portion| !cycle(portion));
    parts.truncate(LANES);
    if parts.is_empty() {
        return None;
    }
    let step_ms = course.step_s * 1e3;
    let lane = |portion: &&Portion| Layer {
        name: portion.name.clone(),
        total: known(portion).map_or_else(|| millis(portion.total_ms), describe_phase),
        hue: usize::from(!cycle(portion)),
        shares: portion.steps_ms.iter().map(|ms| ms / step_ms).collect(),
    };
    let row = |portion: &&Portion| {
        vec![
            Cell::text(&portion.name),
            known(portion).map_or_else(|| Cell::text(numbers::ABSENT), |p| how_many(p.time.count)),
            Cell::number(Some(portion.total_ms), millis),
            Cell::number(known(portion).map(|phase| phase.time.longest_ms), millis),
        ]
    };
    let title = title(run, &parts);
    let step = step(course.step_s);
    Some(Block::Chart(Box::new(Chart {
        id: "gc-concurrent-over-time",
        note: format!(
            "A full lane means that the phase ran all the time, in steps of {step}. Phases are nested in cycles."
        ),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::words("Phase", "title"),
                Column::number("Count", "count"),
                Column::number("Sum", "total_ms"),
                Column::number("Longest", "longest_ms"),
            ],
            rows: parts.iter().map(row).collect(),
        },
        plot: Plot::Layers(Layers {
            quantity: "share of time running".to_owned(),
            stacked: false,
            from_s: time.from_s,
            until_s: time.until_s,
            first_s: course.from_s,
            step_s: course.step_s,
            layers: parts.iter().map(lane).collect(),
            spans: Vec::new(),
        }),
        title,
    })))
}

fn describe_phase(phase: &Concurrent) -> String {
    let times = usize::try_from(phase.time.count).unwrap_or(usize::MAX);
    let aborted = if phase.aborted > 0 {
        format!(", {} aborted", numbers::count(phase.aborted))
    } else {
        String::new()
    };
    format!(
        "{}, {}{aborted}",
        numbers::plural(times, "time"),
        millis(phase.time.total_ms)
    )
}

fn title(run: &Run, parts: &[&Portion]) -> String {
    let length = run.old.cycle_length.filter(|_| run.old.cycles > 0);
    match (length, parts.first()) {
        (Some(length), _) => format!(
            "{} ended, longest {}",
            numbers::plural(
                usize::try_from(run.old.cycles).unwrap_or(usize::MAX),
                "concurrent cycle"
            ),
            millis(length.longest_ms)
        ),
        (None, Some(first)) => format!(
            "Concurrent work: {} for {} in total",
            first.name,
            millis(first.total_ms)
        ),
        (None, None) => String::new(),
    }
}
