//! Pauses of a run: by type, by cause, the longest with its phases, remarks, and concurrent work.

use std::collections::BTreeMap;

use rungwise_model::gc::{Concurrent, Moment, Phase, References, Remarks, Run, Safepoints, Spread};

use super::millis;
use crate::block::{Block, Cell, Column, Table};
use crate::numbers;

/// Rows of a table that a person reads.
const ROWS: usize = 20;

pub(super) fn blocks(run: &Run) -> Vec<Block> {
    let pauses = &run.pauses;
    let mut blocks = Vec::new();
    if !pauses.by_type.is_empty() {
        blocks.push(Block::section("pauses", "Pauses"));
        let named = pauses
            .by_type
            .iter()
            .map(|(name, spread)| (&**name, spread));
        blocks.push(Block::Table(spreads(
            "Type",
            "By type and cause, the largest sum first.",
            named,
        )));
        // Causes say more where one of them has several types.
        if pauses.by_cause.len() > 1 && pauses.by_cause.len() < pauses.by_type.len() {
            let named = pauses
                .by_cause
                .iter()
                .map(|(name, spread)| (&**name, spread));
            blocks.push(Block::Table(spreads(
                "Cause",
                "By cause, for pauses that have one.",
                named,
            )));
        }
        if pauses.nested.count > 0 {
            let total = millis(pauses.nested.total_ms);
            blocks.push(Block::Prose(match pauses.nested.count {
                1 => format!("1 pause of {total} is nested in another; that time is counted once."),
                count => format!(
                    "{} pauses are nested in others, {total} in total; that time is counted once.",
                    numbers::count(count)
                ),
            }));
        }
        if pauses.unfinished > 0 {
            blocks.push(Block::Prose(format!(
                "The log lacks the duration of {} pauses.",
                numbers::count(pauses.unfinished)
            )));
        }
    }
    if !pauses.longest.is_empty() {
        blocks.push(Block::section("longest", "Longest pauses"));
        blocks.push(Block::Table(longest(&pauses.longest)));
    }
    if !pauses.longest_phases.is_empty() {
        let rows = pauses.longest_phases.iter().take(ROWS);
        let rows = rows.map(|phase| {
            let indent = "\u{a0}".repeat(2 * usize::from(phase.depth));
            vec![
                Cell::text(format!("{indent}{}", phase.name)),
                Cell::number(Some(phase.duration_ms), millis),
            ]
        });
        blocks.push(Block::Table(Table {
            caption: "Phases of the longest pause.".to_owned(),
            columns: vec![
                Column::words("Phase", "part"),
                Column::number("Time", "duration_ms"),
            ],
            rows: rows.collect(),
        }));
    }
    blocks.extend(phases(&pauses.phases));
    blocks.extend(run.remark.as_ref().map(remark));
    blocks.extend(run.safepoints.as_ref().map(safepoints));
    blocks.extend(references(&run.references));
    if !run.concurrent.is_empty() {
        blocks.push(Block::section("concurrent", "Concurrent work"));
        let mut all: Vec<_> = run.concurrent.iter().collect();
        all.sort_by(|a, b| b.1.time.total_ms.total_cmp(&a.1.time.total_ms));
        blocks.push(Block::Table(concurrent(&all)));
    }
    blocks
}

/// One row per name.
fn spreads<'a>(
    what: &str,
    caption: &str,
    named: impl Iterator<Item = (&'a str, &'a Spread)>,
) -> Table {
    let mut named: Vec<_> = named.collect();
    named.sort_by(|a, b| b.1.total_ms.total_cmp(&a.1.total_ms));
    let left = named.len().saturating_sub(ROWS);
    let rows = named.into_iter().take(ROWS).map(|(name, spread)| {
        vec![
            Cell::text(name),
            Cell::number(Some(spread.count as f64), |n| numbers::count(n as u64)),
            Cell::number(Some(spread.total_ms), millis),
            Cell::number(Some(spread.min_ms), millis),
            Cell::number(Some(spread.mean_ms), millis),
            Cell::number(Some(spread.p50_ms), millis),
            Cell::number(Some(spread.p90_ms), millis),
            Cell::number(Some(spread.p99_ms), millis),
            Cell::number(Some(spread.p999_ms), millis),
            Cell::number(Some(spread.longest_ms), millis),
        ]
    });
    Table {
        caption: if left > 0 {
            format!("{caption} {left} more are not shown.")
        } else {
            caption.to_owned()
        },
        columns: vec![
            Column::words(what, "name"),
            Column::number("Count", "count"),
            Column::number("Sum", "total_ms"),
            Column::number("Shortest", "min_ms").rank(6),
            Column::number("Mean", "mean_ms").rank(3),
            Column::number("p50", "p50_ms").rank(2),
            Column::number("p90", "p90_ms").rank(5),
            Column::number("p99", "p99_ms").rank(1),
            Column::number("p99.9", "p999_ms").rank(4),
            Column::number("Longest", "longest_ms"),
        ],
        rows: rows.collect(),
    }
}

/// Phases of the pauses, those with the largest sum first: what a terminal has no room for.
fn phases(all: &BTreeMap<String, Vec<Phase>>) -> Option<Block> {
    /// Names of pauses; the JSON has all.
    const NAMES: usize = 6;
    let outermost = |phases: &[Phase]| -> f64 {
        let top = phases.iter().filter(|phase| phase.depth == 0);
        top.map(|phase| phase.time.total_ms).sum()
    };
    let mut named: Vec<_> = all.iter().collect();
    named.sort_by(|a, b| outermost(b.1).total_cmp(&outermost(a.1)));
    let tables = named.into_iter().take(NAMES).map(|(name, phases)| {
        let rows = phases.iter().map(|phase| {
            let indent = "\u{a0}".repeat(2 * usize::from(phase.depth));
            let time = &phase.time;
            vec![
                Cell::text(format!("{indent}{}", phase.name)),
                Cell::number(Some(time.count as f64), |n| numbers::count(n as u64)),
                Cell::number(Some(time.total_ms), millis),
                Cell::number(Some(time.mean_ms), millis),
                Cell::number(Some(time.p99_ms), millis),
                Cell::number(Some(time.longest_ms), millis),
            ]
        });
        Block::Table(Table {
            caption: name.clone(),
            columns: vec![
                Column::words("Phase", "phase"),
                Column::number("Count", "count"),
                Column::number("Sum", "total_ms"),
                Column::number("Mean", "mean_ms"),
                Column::number("p99", "p99_ms"),
                Column::number("Longest", "longest_ms"),
            ],
            rows: rows.collect(),
        })
    });
    let tables: Vec<Block> = tables.collect();
    (!tables.is_empty()).then(|| Block::Long {
        brief: String::new(),
        summary: "Phases of all pauses".to_owned(),
        blocks: tables,
    })
}

/// References that collections found.
fn references(all: &BTreeMap<String, References>) -> Option<Block> {
    let rows = all.iter().map(|(kind, references)| {
        let time = references.time.as_ref();
        vec![
            Cell::text(kind),
            Cell::number(Some(references.count as f64), |n| numbers::count(n as u64)),
            Cell::number(Some(references.most as f64), |n| numbers::count(n as u64)),
            Cell::number(time.map(|time| time.total_ms), millis),
            Cell::number(time.map(|time| time.longest_ms), millis),
        ]
    });
    let table = Table {
        caption: "References processed: total and maximum per collection.".to_owned(),
        columns: vec![
            Column::words("Kind", "kind"),
            Column::number("Count", "count"),
            Column::number("Most", "most"),
            Column::number("Time", "total_ms"),
            Column::number("Longest", "longest_ms"),
        ],
        rows: rows.collect(),
    };
    (!all.is_empty()).then(|| Block::Long {
        brief: String::new(),
        summary: "References".to_owned(),
        blocks: vec![Block::Table(table)],
    })
}

fn longest(all: &[Moment]) -> Table {
    let rows = all.iter().take(10).map(|pause| {
        let heap = match (pause.heap_before_bytes, pause.heap_after_bytes) {
            (Some(before), Some(after)) => {
                format!("{} → {}", numbers::bytes(before), numbers::bytes(after))
            }
            _ => String::new(),
        };
        vec![
            Cell::number(pause.duration_ms, millis),
            Cell::text(&pause.name),
            Cell::number(pause.at_s, |s| format!("{s:.3}")),
            Cell::number(pause.line.map(|line| line as f64), |n| format!("{n:.0}")),
            Cell::text(heap),
        ]
    });
    Table {
        caption: "Seconds on the log's clock.".to_owned(),
        columns: vec![
            Column::number("Time", "duration_ms"),
            Column::words("Type", "name"),
            Column::number("At second", "at_s").rank(1),
            Column::number("Line", "line"),
            Column::words("Heap", "heap").rank(2),
        ],
        rows: rows.collect(),
    }
}

fn remark(remarks: &Remarks) -> Block {
    let mut facts = vec![
        ("Remarks".to_owned(), numbers::count(remarks.time.count)),
        ("Longest remark".to_owned(), millis(remarks.longest_own_ms)),
    ];
    let parts = remarks.longest_phases.iter();
    if let Some(part) = parts.max_by(|a, b| a.duration_ms.total_cmp(&b.duration_ms)) {
        facts.push((
            "Longest phase of that remark".to_owned(),
            format!("{}, {}", part.name, millis(part.duration_ms)),
        ));
    }
    if let Some(young) = remarks.longest_young_bytes {
        let of = remarks
            .longest_young_capacity_bytes
            .map_or_else(String::new, |capacity| {
                format!(" of {}", numbers::bytes(capacity))
            });
        facts.push((
            "Young generation at its start".to_owned(),
            format!("{}{of}", numbers::bytes(young)),
        ));
    }
    facts.push((
        "Remarks after a young collection".to_owned(),
        numbers::count(remarks.scavenged),
    ));
    if let Some(cost) = remarks.young_cost.filter(|cost| cost.s_per_gib.low > 0.0) {
        facts.push((
            "Remark cost of the young generation".to_owned(),
            format!(
                "{} per GiB, between {} and {}",
                millis(cost.s_per_gib.point * 1e3),
                millis(cost.s_per_gib.low * 1e3),
                millis(cost.s_per_gib.high * 1e3)
            ),
        ));
    }
    Block::Facts(facts)
}

fn safepoints(all: &Safepoints) -> Block {
    let mut facts = vec![(
        "All stops".to_owned(),
        format!(
            "{} times, {} in total, longest {}",
            numbers::count(all.stopped.count),
            millis(all.stopped.total_ms),
            millis(all.stopped.longest_ms)
        ),
    )];
    facts.push((
        "Stops outside collections".to_owned(),
        millis(all.outside_ms),
    ));
    if let Some(reaching) = &all.reaching {
        facts.push((
            "Time to safepoint".to_owned(),
            format!(
                "p99 {}, longest {}",
                millis(reaching.p99_ms),
                millis(reaching.longest_ms)
            ),
        ));
    }
    Block::Facts(facts)
}

fn concurrent(all: &[(&String, &Concurrent)]) -> Table {
    let rows = all.iter().take(ROWS).map(|(name, phase)| {
        // Those whose length the log does not show are counted, and in no sum.
        let timed = phase.time.count > 0;
        let count = phase.time.count + phase.unfinished;
        vec![
            Cell::text(name.as_str()),
            Cell::number(Some(count as f64), |n| numbers::count(n as u64)),
            Cell::number(timed.then_some(phase.time.total_ms), millis),
            Cell::number(timed.then_some(phase.time.longest_ms), millis),
            Cell::number(Some(phase.aborted as f64), |n| numbers::count(n as u64)),
        ]
    });
    Table {
        caption: "Phases and cycles that do not stop threads.".to_owned(),
        columns: vec![
            Column::words("Phase", "name"),
            Column::number("Count", "count"),
            Column::number("Sum", "total_ms"),
            Column::number("Longest", "longest_ms"),
            Column::number("Aborted", "aborted").rank(1),
        ],
        rows: rows.collect(),
    }
}
