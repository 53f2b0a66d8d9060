//! Why each rung was tried, where findings suggested the rungs: the finding, and what happened to it.

use rungwise_model::tune::{Asked, Outcome, Rung, TuneReport};

use super::outcome;
use crate::block::{Block, Cell, Column, Table};
use crate::numbers::ABSENT;

/// One row per rung that a finding suggested; nothing where the scenario lists the rungs.
pub(super) fn table(report: &TuneReport) -> Option<Block> {
    let rows: Vec<_> = report
        .rungs
        .iter()
        .enumerate()
        .filter_map(|(number, rung)| Some(row(number, rung, rung.asked.as_ref()?)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    Some(Block::Table(Table {
        caption: "Why each change was tried: the finding that suggested it, and whether the change resolved the finding"
            .to_owned(),
        columns: vec![
            Column::number("#", "rung"),
            Column::words("Rung", "title"),
            Column::words("Rule", "rule"),
            Column::words("Finding", "finding").rank(3),
            Column::words("After the change", "became"),
            Column::words("New findings", "came").rank(4),
            Column::words("Outcome", "outcome"),
            Column::words("Capture", "look").rank(5),
        ],
        rows,
    }))
}

fn row(number: usize, rung: &Rung, asked: &Asked) -> Vec<Cell> {
    let became = match (asked.became, rung.outcome) {
        (Some(became), _) => became.words(),
        (None, Outcome::Observed | Outcome::Skipped) => "not tried",
        (None, _) => "not checked",
    };
    let came: Vec<&str> = asked.came.iter().map(|(rule, _)| rule.as_str()).collect();
    vec![
        Cell::number(Some(number as f64), |n| format!("{n:.0}")),
        Cell::text(&rung.title),
        Cell::text(&asked.rule).note(&asked.subject),
        Cell::text(&asked.sentence),
        Cell::text(became),
        Cell::text(if came.is_empty() {
            ABSENT.to_owned()
        } else {
            came.join(", ")
        }),
        Cell::mark(outcome(rung.outcome)),
        Cell::text(&asked.capture),
    ]
}
