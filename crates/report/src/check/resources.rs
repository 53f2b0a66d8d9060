//! The USE table: of every resource its utilisation, saturation and errors (Brendan Gregg, "The USE Method").

use rungwise_model::check::{Cell as Aspect, CheckReport, Level, Resource};
use rungwise_model::evidence::Unit;
use rungwise_model::evidence_text::number_of;

use crate::block::{Block, Cell, Column, Table};
use crate::numbers;

/// The table with its heading; nothing for a document without resources.
pub(super) fn blocks(report: &CheckReport) -> Vec<Block> {
    if report.resources.is_empty() {
        return Vec::new();
    }
    vec![
        Block::section("resources", "Resources"),
        Block::Table(table(&report.resources)),
        Block::Long {
            brief: String::new(),
            summary: "Readings and thresholds".to_owned(),
            blocks: vec![Block::Table(readings(&report.resources))],
        },
    ]
}

fn table(resources: &[Resource]) -> Table {
    let row = |resource: &Resource| {
        vec![
            Cell::text(&resource.title),
            Cell::text(short(resource.utilisation.as_ref())),
            Cell::text(short(resource.saturation.as_ref())),
            Cell::text(short(resource.errors.as_ref())),
        ]
    };
    Table {
        caption: "Utilisation, saturation and errors of each resource: low, high, or not measured"
            .to_owned(),
        columns: vec![
            Column::words("Resource", "title").unit(Unit::Text),
            Column::words("Utilisation", "utilisation").unit(Unit::Text),
            Column::words("Saturation", "saturation").unit(Unit::Text),
            Column::words("Errors", "errors").unit(Unit::Text),
        ],
        rows: resources.iter().map(row).collect(),
    }
}

/// `low 12 %`, `HIGH 99 % cpu/0`, `not measured`, `none`.
fn short(aspect: Option<&Aspect>) -> String {
    let Some(aspect) = aspect else {
        return String::new();
    };
    let value = value(aspect);
    match aspect.level {
        Level::Low => match value {
            Some(value) => format!("low {value}"),
            None => "low".to_owned(),
        },
        Level::High => {
            let place = match aspect.subject.as_str() {
                "host" => String::new(),
                subject => format!(" {subject}"),
            };
            let cause = match aspect.explained_by.as_str() {
                "" => String::new(),
                rule => format!(" [{rule}]"),
            };
            format!("HIGH {}{place}{cause}", value.unwrap_or_default())
        }
        Level::Unseen => "not measured".to_owned(),
        Level::None => "none".to_owned(),
    }
}

fn value(aspect: &Aspect) -> Option<String> {
    let (value, unit) = (aspect.value?, aspect.unit?);
    Some(match unit {
        Unit::PerSecond => numbers::rate(value),
        Unit::Fraction => numbers::share(value),
        unit => number_of(unit, value),
    })
}

/// A row per cell, with what it rests on.
fn readings(resources: &[Resource]) -> Table {
    let rows = resources.iter().flat_map(|resource| {
        resource.cells().map(|(name, aspect)| {
            let line = aspect
                .line
                .zip(aspect.unit)
                .map(|(line, unit)| number_of(unit, line));
            vec![
                Cell::text(&resource.title),
                Cell::text(name),
                Cell::text(short(Some(aspect))),
                Cell::text(line.unwrap_or_default()),
                Cell::text(&aspect.note),
            ]
        })
    });
    Table {
        caption: "Reading nearest to its threshold".to_owned(),
        columns: vec![
            Column::words("Resource", "title"),
            Column::words("Aspect", "aspect"),
            Column::words("Level", "level"),
            Column::words("Threshold", "line"),
            Column::words("Reading", "note"),
        ],
        rows: rows.collect(),
    }
}

/// `memory saturation, disks errors`: what was not measured, with the reason of the first.
pub(super) fn unseen(resources: &[Resource]) -> String {
    /// So many are named.
    const NAMED: usize = 3;
    let cells = || {
        let all = resources.iter().flat_map(|resource| {
            let title = &resource.title;
            resource
                .cells()
                .map(move |(aspect, cell)| (title, aspect, cell))
        });
        all.filter(|(.., cell)| cell.level == Level::Unseen)
    };
    let names: Vec<String> = cells()
        .map(|(title, aspect, _)| format!("{aspect} of {}", lower(title)))
        .collect();
    let first = cells().next().map_or("", |(.., cell)| cell.note.as_str());
    let named = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() {
        0 => String::new(),
        1..=NAMED => format!("{named} ({first})"),
        all => format!("{named} and {} more ({first})", all - NAMED),
    }
}

/// What is high although no rule asks to act.
pub(super) fn high(resources: &[Resource]) -> String {
    let all = resources.iter().flat_map(|resource| {
        let title = lower(&resource.title);
        resource
            .cells()
            .filter(|(_, cell)| cell.level == Level::High)
            .map(move |(aspect, cell)| {
                format!("{aspect} of {title} {}", value(cell).unwrap_or_default())
            })
    });
    all.collect::<Vec<_>>().join(", ")
}

/// `CPUs` and `TCP` keep their capitals.
fn lower(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}
