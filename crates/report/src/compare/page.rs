//! A comparison as blocks: findings on one host only, then the settings relevant to rules, then the rest.

use std::collections::BTreeMap;

use rungwise_model::check::Outcome;
use rungwise_model::compare::{CompareReport, Metric, NotCompared, RuleDifference};
use rungwise_model::tune;

use crate::block::{self, Block, Cell, Column, Mark, Table, Tone};
use crate::numbers;
use crate::tune::moment;

/// The whole report.
pub fn blocks(report: &CompareReport) -> Vec<Block> {
    let same = report.metrics.is_empty() && report.findings.is_empty();
    let mut blocks = vec![Block::Verdict(block::Verdict {
        mark: if let Some(verdict) = report.verdict {
            of_documents(verdict)
        } else if same {
            Mark {
                symbol: "=",
                word: "same",
                tone: Tone::Quiet,
            }
        } else {
            Mark {
                symbol: "≠",
                word: "differs",
                tone: Tone::Doubt,
            }
        },
        sentence: report.sentence.clone(),
        context: vec![
            format!("before: {}", report.before),
            format!("after: {}", report.after),
            moment(&report.envelope.started),
        ],
        caveats: Vec::new(),
    })];
    blocks.extend(report.notes.iter().map(|note| Block::Notice {
        tone: Tone::Doubt,
        text: note.clone(),
    }));
    if report.verdict.is_some() && !report.metrics.is_empty() {
        blocks.push(Block::section("metrics", "Measured metrics"));
        blocks.push(Block::Table(measured(&report.metrics)));
        return blocks;
    }
    if !report.findings.is_empty() {
        blocks.push(Block::section("findings", "Findings on one side only"));
        blocks.push(Block::Table(findings(&report.findings)));
    }
    let (cared, others): (Vec<_>, Vec<_>) = report
        .metrics
        .iter()
        .partition(|metric| !metric.rules.is_empty());
    if !cared.is_empty() {
        blocks.push(Block::section("cared", "Differences relevant to rules"));
        blocks.extend(tables(&cared, true));
    }
    if !others.is_empty() {
        blocks.push(Block::section("others", "Other differences"));
        blocks.extend(tables(&others, false));
    }
    if !report.not_compared.is_empty() {
        blocks.push(Block::section("not-compared", "Not compared"));
        blocks.push(Block::List(lacking(&report.not_compared)));
    }
    blocks
}

fn of_documents(verdict: tune::Verdict) -> Mark {
    let (symbol, word, tone) = match verdict {
        tune::Verdict::Better => ("✓", "better", Tone::Good),
        tune::Verdict::Worse => ("✗", "worse", Tone::Bad),
        tune::Verdict::Same => ("=", "same", Tone::Quiet),
        tune::Verdict::Inconclusive => ("?", "inconclusive", Tone::Doubt),
    };
    Mark { symbol, word, tone }
}

/// Each metric of both documents, with its ratio or why there is none.
fn measured(metrics: &[Metric]) -> Table {
    let text = |value: &Option<String>| Cell::text(value.as_deref().unwrap_or(numbers::ABSENT));
    let rows = metrics.iter().map(|metric| {
        let ratio = metric.ratio.map_or_else(
            || metric.no_ratio.clone().unwrap_or_default(),
            |ratio| {
                let [point, low, high] = [ratio.point, ratio.low, ratio.high].map(numbers::factor);
                format!("{point} ({low} to {high})")
            },
        );
        vec![
            Cell::text(&metric.name),
            text(&metric.before),
            text(&metric.after),
            Cell::text(ratio),
        ]
    });
    Table {
        caption: "Ratios are after over before with a 95 % interval.".to_owned(),
        columns: vec![
            Column::words("Metric", "name"),
            Column::words("Before", "before"),
            Column::words("After", "after"),
            Column::words("Ratio", "ratio"),
        ],
        rows: rows.collect(),
    }
}

/// One line per side and reason: an old capture lacks much for the same one.
fn lacking(all: &[NotCompared]) -> Vec<String> {
    /// Names that are listed; the JSON has all.
    const NAMED: usize = 8;
    let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for lack in all {
        let names = groups.entry((&lack.side, &lack.reason)).or_default();
        names.push(&lack.name);
    }
    groups
        .into_iter()
        .map(|((side, reason), names)| {
            let rest = match names.len().saturating_sub(NAMED) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let named: Vec<&str> = names.into_iter().take(NAMED).collect();
            format!("{side}: {reason}: {}{rest}", named.join(", "))
        })
        .collect()
}

fn findings(all: &[RuleDifference]) -> Table {
    let word = |outcome| match outcome {
        Outcome::Act => "act",
        Outcome::Watch => "watch",
        Outcome::Undecided => "unknown",
        Outcome::Clear => "clear",
    };
    let rows = all
        .iter()
        .map(|difference| {
            vec![
                Cell::text(&difference.rule),
                Cell::text(word(difference.before)),
                Cell::text(word(difference.after)),
                Cell::text(&difference.sentence),
            ]
        })
        .collect();
    Table {
        caption: String::new(),
        columns: vec![
            Column::words("Rule", "title"),
            Column::words("Before", "before"),
            Column::words("After", "after"),
            Column::words("Finding", "reason"),
        ],
        rows,
    }
}

/// One table per subject matter. Of a setting that differs for each of many, a few stand for all, and the
/// whole is closed at first.
fn tables(metrics: &[&Metric], cared: bool) -> Vec<Block> {
    let mut groups: BTreeMap<&str, Vec<&Metric>> = BTreeMap::new();
    for metric in metrics {
        groups.entry(&metric.group).or_default().push(metric);
    }
    groups
        .into_iter()
        .flat_map(|(group, metrics)| {
            let short = Table {
                caption: group.to_owned(),
                columns: columns(cared),
                rows: few(&metrics, cared),
            };
            let whole = (short.rows.len() < metrics.len()).then(|| Block::Long {
                brief: String::new(),
                summary: format!("All {} of {group}", metrics.len()),
                blocks: vec![Block::Table(Table {
                    caption: String::new(),
                    columns: columns(cared),
                    rows: metrics.iter().map(|metric| row(metric, cared)).collect(),
                })],
            });
            [Some(Block::Table(short)), whole].into_iter().flatten()
        })
        .collect()
}

fn columns(cared: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::words("Setting", "title"),
        Column::words("Of", "subjects"),
        Column::words("Before", "before"),
        Column::words("After", "after"),
    ];
    if cared {
        columns.push(Column::words("Rules", "rules"));
    }
    columns
}

/// The first rows of each setting, and how many more there are.
fn few(metrics: &[&Metric], cared: bool) -> Vec<Vec<Cell>> {
    const EACH: usize = 3;
    let mut rows = Vec::new();
    for alike in metrics.chunk_by(|a, b| a.name == b.name) {
        let shown = if alike.len() > EACH + 1 {
            EACH
        } else {
            alike.len()
        };
        rows.extend(alike.iter().take(shown).map(|metric| row(metric, cared)));
        if shown < alike.len() {
            let mut more = vec![
                Cell::text(&alike[0].name),
                Cell::text(format!("… and {} more", alike.len() - shown)),
            ];
            more.resize(columns(cared).len(), Cell::text(""));
            rows.push(more);
        }
    }
    rows
}

fn row(metric: &Metric, cared: bool) -> Vec<Cell> {
    let side = |value: &Option<String>| {
        Cell::text(value.clone().unwrap_or_else(|| numbers::ABSENT.to_owned()))
    };
    let mut row = vec![
        Cell::text(&metric.name),
        Cell::text(several(&metric.subjects)),
        side(&metric.before),
        side(&metric.after),
    ];
    if cared {
        row.push(Cell::text(metric.rules.join(", ")));
    }
    row
}

/// The first of many, and how many more.
fn several(subjects: &[String]) -> String {
    match subjects {
        [] => "host".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
