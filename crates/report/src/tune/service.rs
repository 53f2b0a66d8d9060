//! What the kernel showed of the service in each rung, and the files that it was started with.

use rungwise_model::tune::{Rung, Served, TuneReport};

use crate::block::{Block, Cell, Column, Table};
use crate::numbers::{self, THIN};

/// Processes whose connections are shown: more only tire.
const SHOWN: usize = 8;

/// Processes and connections by rung, and the files; nothing where there are neither.
pub(super) fn blocks(report: &TuneReport) -> Vec<Block> {
    let table = table(report);
    if table.rows.is_empty() && report.files.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::section("service", "The service")];
    if !table.rows.is_empty() {
        blocks.push(Block::Table(table));
    }
    for file in &report.files {
        let lines = |text: &str| Block::Code(text.lines().map(str::to_owned).collect());
        let (summary, blocks_of) = if file.start == file.kept {
            (
                format!(
                    "{}, the same at the start and with all kept changes",
                    file.name
                ),
                vec![lines(&file.kept)],
            )
        } else {
            (
                format!("{} with all kept changes, and at the start", file.name),
                vec![
                    lines(&file.kept),
                    Block::Prose("At the start:".to_owned()),
                    lines(&file.start),
                ],
            )
        };
        blocks.push(Block::Fold {
            summary,
            blocks: blocks_of,
        });
    }
    blocks
}

/// A row for each rung: of its runs with the change, the last.
fn table(report: &TuneReport) -> Table {
    let mut table = Table {
        caption: "Processes, listening sockets and connections when a measured window began, in the last run with the change".to_owned(),
        columns: vec![
            Column::words("Rung", "rung"),
            Column::number("Processes", "processes"),
            Column::number("Listening sockets", "listeners"),
            Column::number("Backlog", "backlog"),
            Column::words("Connections by process", "connections"),
            Column::number("Busiest process, median", "busiest").rank(1),
        ],
        rows: Vec::new(),
    };
    for (number, rung) in report.rungs.iter().enumerate() {
        let runs = served(rung);
        let Some(last) = runs.last() else {
            continue;
        };
        let shares = runs.iter().filter_map(|run| run.busiest());
        let whole = |number: u32| Cell::number(Some(f64::from(number)), |n| format!("{n:.0}"));
        table.rows.push(vec![
            Cell::text(format!("{number}{THIN} {}", rung.title)),
            whole(last.processes),
            whole(last.listeners),
            whole(last.backlog),
            Cell::text(by_process(last)),
            Cell::number(numbers::median(shares), numbers::share),
        ]);
    }
    table
}

/// `40 + 24`
fn by_process(served: &Served) -> String {
    let counts = &served.connections;
    let mut words: Vec<String> = counts.iter().take(SHOWN).map(u32::to_string).collect();
    match counts.len().saturating_sub(SHOWN) {
        0 if words.is_empty() => return "none".to_owned(),
        0 => {}
        more => words.push(format!("those of {more} more")),
    }
    words.join(" + ")
}

/// What was seen in the runs with the change: those that count, else all.
fn served(rung: &Rung) -> Vec<&Served> {
    let of = |counted: bool| -> Vec<&Served> {
        let pairs = rung.pairs.iter();
        let pairs = pairs.filter(|pair| !counted || pair.discarded.is_none());
        pairs.filter_map(|pair| pair.b.served.as_ref()).collect()
    };
    let counted = of(true);
    if counted.is_empty() {
        of(false)
    } else {
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_shown_process_by_process_and_a_long_list_is_cut() {
        let served = |connections: &[u32]| Served {
            connections: connections.to_vec(),
            ..Served::default()
        };
        assert_eq!(by_process(&served(&[])), "none");
        assert_eq!(by_process(&served(&[40, 24])), "40 + 24");
        let many = by_process(&served(&[1; 10]));
        assert!(many.ends_with("1 + those of 2 more"), "{many}");
    }
}
