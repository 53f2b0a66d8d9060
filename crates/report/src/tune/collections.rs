//! What the garbage collector of the service's JVM did in each rung, beside the latency that clients saw.

use rungwise_model::metric::{
    GC_LONGEST_PAUSE, GC_LONGEST_REMARK, GC_PAUSE_SHARE, GC_PROMOTED_PER_S,
};
use rungwise_model::tune::{Rung, TuneReport};

use crate::block::{Block, Cell, Column, Table};
use crate::numbers::{self, THIN};

/// A row for each rung; nothing where no log was read.
pub(super) fn blocks(report: &TuneReport) -> Vec<Block> {
    let rows: Vec<Vec<Cell>> = report
        .rungs
        .iter()
        .enumerate()
        .filter(|(_, rung)| rung.metrics.contains_key(GC_PAUSE_SHARE))
        .map(|(number, rung)| row(number, rung))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    vec![
        Block::section("gc", "The garbage collector"),
        Block::Table(Table {
            caption: "Collections within the measured windows, from the log of the JVM: medians of the runs with the change. A collector with short \
                      pauses may take CPU time from the service's threads instead; the clients' p99 includes both effects"
                .to_owned(),
            columns: vec![
                Column::words("Rung", "rung"),
                Column::number("p99 of the clients", "p99_us"),
                Column::number("Time in pauses", GC_PAUSE_SHARE),
                Column::number("Longest pause", GC_LONGEST_PAUSE),
                Column::number("Longest remark", GC_LONGEST_REMARK).rank(1),
                Column::number("Promoted per second", GC_PROMOTED_PER_S).rank(2),
            ],
            rows,
        }),
    ]
}

fn row(number: usize, rung: &Rung) -> Vec<Cell> {
    let of = |metric: &str| rung.metrics.get(metric).copied();
    vec![
        Cell::text(format!("{number}{THIN} {}", rung.title)),
        Cell::number(rung.latency_us.map(|latency| latency.p99), numbers::micros),
        Cell::number(of(GC_PAUSE_SHARE), numbers::share),
        Cell::number(of(GC_LONGEST_PAUSE), numbers::micros),
        Cell::number(of(GC_LONGEST_REMARK), numbers::micros),
        Cell::number(of(GC_PROMOTED_PER_S), |bytes| numbers::bytes(bytes as u64)),
    ]
}
