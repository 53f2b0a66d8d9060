//! The statistics that ZGC and Shenandoah print: the table of mean and longest times, often most of what a log contains.

use rungwise_model::gc::{Run, Statistic};

use super::{how_many, millis};
use crate::block::{Bar, BarGroup, Bars, Block, Cell, Chart, Column, Part, Plot, Table};
use crate::numbers;
use crate::scale::Unit;

/// Rows with a bar of their own; all are in the table.
const SHOWN: usize = 12;

const PARTS: [Part; 2] = [
    Part {
        name: "mean",
        hue: 1,
        fill: '█',
    },
    Part {
        name: "up to the longest",
        hue: 2,
        fill: '░',
    },
];

/// The rows, those with the longest time first.
pub(super) fn own(run: &Run) -> Option<Block> {
    let mut rows: Vec<(&String, &Statistic)> = run.statistics.iter().collect();
    rows.sort_by(|a, b| b.1.longest_ms.total_cmp(&a.1.longest_ms));
    let (first, most) = rows.first().filter(|(_, row)| row.longest_ms > 0.0)?;
    let title = format!(
        "Collector statistics: {first} took at most {}, {} on average",
        millis(most.longest_ms),
        millis(most.mean_ms)
    );
    let left = match rows.len().saturating_sub(SHOWN) {
        0 => String::new(),
        left => format!(" {} more are in the table.", numbers::count(left as u64)),
    };
    Some(Block::Chart(Box::new(Chart {
        id: "gc-own-sums",
        note: format!(
            "Since JVM start, from the last table of the log; phases are nested in cycles and in each other.{left}"
        ),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::words("Name", "name"),
                Column::number("Count", "count"),
                Column::number("Mean", "mean_ms"),
                Column::number("Longest", "longest_ms"),
                Column::number("Line", "line"),
            ],
            rows: rows.iter().map(|(name, of)| row(name, of)).collect(),
        },
        title,
        plot: Plot::Bars(Bars {
            quantity: "duration".to_owned(),
            unit: Unit::Micros,
            whole: false,
            parts: PARTS.to_vec(),
            groups: rows
                .iter()
                .take(SHOWN)
                .map(|(name, of)| group(name, of))
                .collect(),
        }),
    })))
}

fn group(name: &str, of: &Statistic) -> BarGroup {
    let mean = of.mean_ms.min(of.longest_ms);
    BarGroup {
        title: name.to_owned(),
        bars: vec![Bar {
            label: String::new(),
            values: [mean, of.longest_ms - mean].map(|ms| ms * 1e3).to_vec(),
            total: millis(of.longest_ms),
        }],
    }
}

fn row(name: &str, of: &Statistic) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::number(of.count.map(|count| count as f64), |n| {
            numbers::count(n as u64)
        }),
        Cell::number(Some(of.mean_ms), millis),
        Cell::number(Some(of.longest_ms), millis),
        how_many(of.line),
    ]
}
