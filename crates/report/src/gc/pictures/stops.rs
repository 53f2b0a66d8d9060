//! What stopped the threads: safepoints by operation, with the time to safepoint.

use rungwise_model::gc::{Operation, Run};

use super::{Time, how_many, millis, moment, step};
use crate::block::{
    self, Bar, BarGroup, Bars, Block, Cell, Chart, Column, Part, Plot, Series, Table,
};
use crate::numbers;
use crate::scale::Unit;

/// Operations with a bar of their own; the rest is one bar, and in the table.
const SHOWN: usize = 12;

const PARTS: [Part; 2] = [
    Part {
        name: "time to safepoint",
        hue: 4,
        fill: '▒',
    },
    Part {
        name: "operation",
        hue: 1,
        fill: '█',
    },
];

/// The longest stop of each step, for whatever reason, and the longest time until all threads stood still.
pub(super) fn over_time(run: &Run, time: Time) -> Option<Block> {
    let safepoints = run.safepoints.as_ref()?;
    let kinds = [
        ("stopped", &safepoints.course, (false, 1)),
        (PARTS[0].name, &safepoints.reaching_course, (true, 2)),
    ];
    let known = || {
        kinds
            .iter()
            .filter(|(_, course, _)| !course.points.is_empty())
    };
    let series: Vec<Series> = known()
        .map(|(name, course, (square, hue))| Series {
            name: (*name).to_owned(),
            square: *square,
            joined: false,
            hue: *hue,
            points: course
                .points
                .iter()
                .map(|point| block::Point {
                    at_s: point.at_s,
                    value: point.max * 1e3,
                    hollow: false,
                })
                .collect(),
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let rows = known().flat_map(|(name, course, _)| {
        course.points.iter().map(|point| {
            vec![
                moment(point.at_s),
                Cell::text(*name),
                Cell::number(Some(point.max), millis),
                how_many(point.count),
            ]
        })
    });
    let longest = millis(safepoints.stopped.longest_ms);
    let title = match &safepoints.reaching {
        Some(reaching) => format!(
            "Longest time to safepoint {}; longest stop {longest}",
            millis(reaching.longest_ms)
        ),
        None => format!("Longest stop of the threads: {longest}"),
    };
    let step = step(safepoints.course.step_s);
    Some(Block::Chart(Box::new(Chart {
        id: "gc-stops-over-time",
        note: format!("Longest of each {step}, for collections and other operations."),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("At", "at_s"),
                Column::words("What", "what"),
                Column::number("Longest", "longest_ms"),
                Column::number("Safepoints", "safepoints"),
            ],
            rows: rows.collect(),
        },
        title,
        plot: time.dots("threads stopped", Unit::Micros, series),
    })))
}

pub(super) fn operations(run: &Run) -> Option<Block> {
    let safepoints = run.safepoints.as_ref()?;
    let mut operations: Vec<(&String, &Operation)> = safepoints.operations.iter().collect();
    operations.sort_by(|a, b| b.1.stopped.total_ms.total_cmp(&a.1.stopped.total_ms));
    let (first, _) = operations.first()?;
    let title = title(run, first, operations[0].1);
    let mut groups: Vec<BarGroup> = operations
        .iter()
        .take(SHOWN)
        .map(|(name, operation)| group((*name).clone(), halves(operation)))
        .collect();
    let rest = operations.get(SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let sum = rest.iter().fold([0.0; 2], |sum, (_, operation)| {
            let more = halves(operation);
            [sum[0] + more[0], sum[1] + more[1]]
        });
        groups.push(group(format!("{} others", rest.len()), sum));
    }
    Some(Block::Chart(Box::new(Chart {
        id: "gc-safepoints",
        note: "Whole run, by operation: from the stop request until all threads ran again."
            .to_owned(),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::words("Operation", "title"),
                Column::words("Collection", "collection"),
                Column::number("Safepoints", "safepoints"),
                Column::number("Stopped", "stopped_ms"),
                Column::number("Longest", "longest_ms"),
                Column::number("Time to safepoint", "reaching_ms"),
                Column::number("Longest time to safepoint", "reaching_longest_ms"),
            ],
            rows: operations.iter().map(|(name, of)| row(name, of)).collect(),
        },
        title,
        plot: Plot::Bars(Bars {
            quantity: "total stopped time".to_owned(),
            unit: Unit::Micros,
            whole: false,
            parts: PARTS.to_vec(),
            groups,
        }),
    })))
}

fn title(run: &Run, first: &str, most: &Operation) -> String {
    let stops = run.safepoints.as_ref();
    let all = stops.map_or(0.0, |stops| stops.stopped.total_ms);
    let share = stops
        .and_then(|stops| stops.share)
        .map_or_else(String::new, |share| {
            format!(" ({} of the run)", numbers::share(share))
        });
    format!(
        "Safepoints stopped the threads for {}{share}, {first} for {}",
        millis(all),
        millis(most.stopped.total_ms)
    )
}

/// Until all threads stood still, and the rest of the stop. Milliseconds in all; where the first is not printed, all is
/// rest.
fn halves(operation: &Operation) -> [f64; 2] {
    let stopped = operation.stopped.total_ms;
    let reaching = operation.reaching.map_or(0.0, |spread| spread.total_ms);
    [reaching, (stopped - reaching).max(0.0)]
}

fn group(title: String, halves: [f64; 2]) -> BarGroup {
    BarGroup {
        title,
        bars: vec![Bar {
            label: String::new(),
            values: halves.iter().map(|ms| ms * 1e3).collect(),
            total: millis(halves[0] + halves[1]),
        }],
    }
}

fn row(name: &str, operation: &Operation) -> Vec<Cell> {
    let reaching = operation.reaching.as_ref();
    vec![
        Cell::text(name),
        Cell::text(if operation.collection { "yes" } else { "no" }),
        how_many(operation.stopped.count),
        Cell::number(Some(operation.stopped.total_ms), millis),
        Cell::number(Some(operation.stopped.longest_ms), millis),
        Cell::number(reaching.map(|spread| spread.total_ms), millis),
        Cell::number(reaching.map(|spread| spread.longest_ms), millis),
    ]
}
