//! Tables of `jvm threads` on what no lock explains: shared waits, threads that use CPU time, carriers of virtual threads.

use rungwise_model::threads::{Carriers, Hot, SharedWait, ThreadsReport};

use crate::block::{Block, Cell, Column, Table};
use crate::numbers::{self, ABSENT};

/// Rows of a table; the JSON has all.
const SHOWN: usize = 15;
/// Names that are listed in a cell.
const NAMED: usize = 4;

/// The sections that have rows.
pub(crate) fn blocks(report: &ThreadsReport) -> Vec<Block> {
    let mut blocks = waits(&report.waits);
    blocks.extend(hot(&report.hot));
    blocks.extend(carriers(&report.carriers));
    blocks
}

fn names(names: &[String], all: u64) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    let rest = all.saturating_sub(names.len().min(NAMED) as u64);
    if rest > 0 && !text.is_empty() {
        text = format!("{text} and {rest} more");
    }
    text
}

fn waits(waits: &[SharedWait]) -> Vec<Block> {
    if waits.is_empty() {
        return Vec::new();
    }
    let rows = waits.iter().take(SHOWN).map(|wait| {
        let counts: Vec<String> = wait.counts.iter().map(ToString::to_string).collect();
        let past = names(&wait.holders, wait.past);
        let release = match &*wait.behind {
            [] if past.is_empty() => ABSENT.to_owned(),
            [] => past,
            behind => behind.join("; "),
        };
        vec![
            Cell::count(wait.waiters.len() as u64),
            Cell::count(wait.still),
            Cell::text(&wait.what).note(wait.at.clone().unwrap_or_default()),
            Cell::text(names(&wait.waiters, wait.waiters.len() as u64)),
            Cell::text(release).note(wait.holders_doing.clone().unwrap_or_default()),
            Cell::text(counts.join(" ")),
        ]
    });
    vec![
        Block::section("waits", "Waits without an owner"),
        Block::Prose(
            "Threads that wait at the same place. Unmoved: same stack and no CPU time in all dumps. Possible releasers: threads past \
             that place in the same method, or in a call that releases it in any of the dumps; no dump records which thread holds a permit or \
             completes a future."
                .to_owned(),
        ),
        Block::Table(Table {
            caption: String::new(),
            columns: vec![
                Column::number("Waiting", "waiters"),
                Column::number("Unmoved", "still"),
                Column::words("For", "what"),
                Column::words("Threads", "threads").rank(2),
                Column::words("Possible releasers", "holders").rank(1),
                Column::words("In each dump", "counts").rank(3),
            ],
            rows: rows.collect(),
        }),
    ]
}

fn hot(hot: &[Hot]) -> Vec<Block> {
    if hot.is_empty() {
        return Vec::new();
    }
    let rows = hot.iter().take(SHOWN).map(|one| {
        let stack = match (one.is_of_jvm, one.moves) {
            (true, _) => "JVM thread",
            (false, true) => "moves",
            (false, false) => "same in all dumps",
        };
        vec![
            Cell::text(&one.thread),
            Cell::number(one.cpu_share, numbers::share),
            Cell::text(stack),
            Cell::text(one.at.clone().unwrap_or_default()),
        ]
    });
    vec![
        Block::section("hot", "Threads that use CPU time"),
        Block::Prose(
            "Growth of cpu= from the first dump to the last (JDK 11 and later), as a share of one CPU; without cpu=, threads \
             that run in every dump."
                .to_owned(),
        ),
        Block::Table(Table {
            caption: String::new(),
            columns: vec![
                Column::words("Thread", "thread"),
                Column::number("CPU", "cpu_share"),
                Column::words("Stack", "stack").rank(1),
                Column::words("Method in all dumps", "at"),
            ],
            rows: rows.collect(),
        }),
    ]
}

fn carriers(carriers: &[Carriers]) -> Vec<Block> {
    if carriers.is_empty() {
        return Vec::new();
    }
    let rows = carriers.iter().map(|one| {
        vec![
            Cell::text(&one.pool),
            Cell::count(one.carriers),
            Cell::count(one.held),
            Cell::count(one.pinned),
            Cell::number(one.virtual_threads.map(|count| count as f64), |n| {
                numbers::count(n as u64)
            }),
            Cell::count(one.unstarted),
        ]
    });
    vec![
        Block::section("carriers", "Carriers of virtual threads"),
        Block::Table(Table {
            caption: "Held: the same virtual thread in all printed dumps, and no CPU time."
                .to_owned(),
            columns: vec![
                Column::words("Carriers", "pool"),
                Column::number("Count", "carriers"),
                Column::number("Held", "held"),
                Column::number("Pinned by frames", "pinned").rank(1),
                Column::number("Virtual threads", "virtual_threads").rank(1),
                Column::number("Not yet run", "unstarted").rank(1),
            ],
            rows: rows.collect(),
        }),
    ]
}
