//! What could not be measured, by reason, because one remedy often helps many rules; and what passed.

use std::collections::BTreeMap;

use rungwise_model::check::{CheckReport, Finding, Lack, Outcome};

use super::findings_with;
use crate::block::{Block, Cell, Column, Table};
use crate::numbers;

/// One line per reason with its remedy and the rules that wait for it; each rule with the key below.
pub(super) fn undecided(report: &CheckReport) -> Vec<Block> {
    let findings: Vec<&Finding> = findings_with(report, Outcome::Undecided).collect();
    if findings.is_empty() {
        return Vec::new();
    }
    // A rule waits for the first thing that it lacks; the others are in the table.
    let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for finding in &findings {
        let reason = finding
            .missing
            .first()
            .map_or(("no reason recorded", ""), |lack| {
                (&*lack.reason, &*lack.remedy)
            });
        groups.entry(reason).or_default().push(&finding.rule);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, rules)| std::cmp::Reverse(rules.len()));
    let lines = groups
        .into_iter()
        .map(|((reason, remedy), mut rules)| {
            rules.sort_unstable();
            rules.dedup();
            let remedy = if remedy.is_empty() {
                String::new()
            } else {
                format!("; {remedy}")
            };
            format!("{reason}{remedy}: {}", rules.join(", "))
        })
        .collect();
    let table = Table {
        caption: String::new(),
        columns: vec![
            Column::words("Rule", "title"),
            Column::words("Lacks", "key"),
            Column::words("Reason", "reason"),
            Column::words("Remedy", "remedy"),
        ],
        rows: findings
            .iter()
            .flat_map(|finding| lacking(finding))
            .collect(),
    };
    vec![
        Block::section(
            "undecided",
            format!("Could not measure ({})", findings.len()),
        ),
        Block::List(lines),
        Block::Long {
            brief: String::new(),
            summary: "Missing evidence by rule".to_owned(),
            blocks: vec![Block::Table(table)],
        },
    ]
}

fn lacking(finding: &Finding) -> Vec<Vec<Cell>> {
    let row = |lack: &Lack| {
        vec![
            Cell::text(&finding.rule),
            Cell::text(&lack.key),
            Cell::text(&lack.reason),
            Cell::text(&lack.remedy),
        ]
    };
    finding.missing.iter().map(row).collect()
}

/// The names in a terminal; elsewhere also what was seen, and how far from the line.
pub(super) fn passed(report: &CheckReport) -> Vec<Block> {
    let findings: Vec<&Finding> = findings_with(report, Outcome::Clear).collect();
    if findings.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = findings.iter().map(|finding| &*finding.rule).collect();
    let rows = findings
        .iter()
        .map(|finding| {
            vec![
                Cell::text(&finding.rule),
                Cell::text(&finding.sentence),
                Cell::number(finding.distance, numbers::share),
            ]
        })
        .collect();
    let table = Table {
        caption: "Distance: gap between the evidence and the rule's threshold, as a share of the threshold."
            .to_owned(),
        columns: vec![
            Column::words("Rule", "title"),
            Column::words("Evidence", "reason"),
            Column::number("Distance", "distance"),
        ],
        rows,
    };
    vec![
        Block::section("passed", format!("Passed ({})", findings.len())),
        Block::Long {
            brief: names.join(", "),
            summary: "Rules that found nothing".to_owned(),
            blocks: vec![Block::Table(table)],
        },
    ]
}

#[cfg(test)]
mod tests {
    use rungwise_model::{Envelope, Exit, SCHEMA_VERSION, Tool};

    use rungwise_model::readings::Readings;

    use super::*;

    #[test]
    fn rules_that_wait_for_the_same_thing_stand_in_one_line() {
        let lack = || Lack {
            key: "stack.samples".to_owned(),
            reason: "not permitted".to_owned(),
            remedy: "run as root".to_owned(),
        };
        let findings = ["b", "a"]
            .into_iter()
            .map(|rule| Finding {
                rule: rule.to_owned(),
                ..Finding::undecided(vec![lack()])
            })
            .collect();
        let report = CheckReport {
            place: None,
            taken: None,
            envelope: Envelope {
                schema: SCHEMA_VERSION,
                document: None,
                run: None,
                written_on: None,
                tool: Tool {
                    version: String::new(),
                },
                command: Vec::new(),
                started: String::new(),
                finished: String::new(),
                exit: Exit::Inconclusive,
            },
            target: String::new(),
            host: String::new(),
            window_s: 10.0,
            findings,
            standing: None,
            resources: Vec::new(),
            tables: Vec::new(),
            readings: Readings::default(),
            jvm: None,
            service: None,
            files: Vec::new(),
        };
        let blocks = undecided(&report);
        let lines = blocks.iter().find_map(|block| match block {
            Block::List(lines) => Some(lines),
            _ => None,
        });
        assert_eq!(lines.unwrap(), &["not permitted; run as root: a, b"]);
    }
}
