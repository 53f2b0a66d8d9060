//! Where faults in real services begin to hurt, and where rules begin to name them.
//!
//! `cargo xtask faults --write` derives `data/measured.tsv` from the trials in `data/trials.jsonl`: one row per rule, kind of fault and
//! service. Only trials with a single fault count, since the harm of a second fault is not that of the first.

use std::fmt::{self, Write as _};

/// The embedded table.
const TABLE: &str = include_str!("../data/measured.tsv");

/// Names of the columns, in their order.
pub const COLUMNS: &str =
    "rule\tkind\tin\tabout\tharmless\tweak\thurts\twatch\tact\ttrials\tfrom\tto";

/// One kind of fault in one service, as one rule sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// A rule that should name the fault.
    pub rule: String,
    /// The kind of fault, as `cargo xtask faults --kind` takes it.
    pub kind: String,
    /// The service, or the JVM and its collector.
    pub place: String,
    /// What is planted.
    pub about: String,
    /// The most severe trial that was harmless.
    pub harmless: Option<Point>,
    /// The least severe trial with a little harm, if that is below the first that hurt.
    pub weak: Option<Point>,
    /// The least severe trial that hurt.
    pub hurts: Option<Point>,
    /// The least severe trial in which the rule said to watch, if that is below the first to act on.
    pub watch: Option<Point>,
    /// The least severe trial in which the rule said to act.
    pub act: Option<Point>,
    /// Number of trials.
    pub trials: usize,
    /// Day of the first trial.
    pub from: String,
    /// Day of the last trial.
    pub to: String,
}

/// The parameters of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// From 0, harmless, to 1, ruinous.
    pub severity: f64,
    /// `name=value`, separated by spaces; empty for a kind without parameters.
    pub params: String,
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.3} {}", self.severity, self.params)
    }
}

impl Measured {
    /// As a row of the table.
    pub fn row(&self) -> String {
        let cell = |point: &Option<Point>| point.as_ref().map(Point::to_string).unwrap_or_default();
        [
            self.rule.clone(),
            self.kind.clone(),
            self.place.clone(),
            self.about.clone(),
            cell(&self.harmless),
            cell(&self.weak),
            cell(&self.hurts),
            cell(&self.watch),
            cell(&self.act),
            self.trials.to_string(),
            self.from.clone(),
            self.to.clone(),
        ]
        .join("\t")
    }

    fn parse(row: &str) -> Option<Self> {
        let cells: Vec<&str> = row.split('\t').collect();
        let [
            rule,
            kind,
            place,
            about,
            harmless,
            weak,
            hurts,
            watch,
            act,
            trials,
            from,
            to,
        ] = cells[..]
        else {
            return None;
        };
        Some(Self {
            rule: rule.to_owned(),
            kind: kind.to_owned(),
            place: place.to_owned(),
            about: about.to_owned(),
            harmless: point(harmless),
            weak: point(weak),
            hurts: point(hurts),
            watch: point(watch),
            act: point(act),
            trials: trials.parse().ok()?,
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// Harm and findings in one sentence.
    pub fn sentence(&self) -> String {
        // One trial is a point and no line.
        let (up_to, from) = if self.trials == 1 {
            ("at", "at")
        } else {
            ("up to", "from")
        };
        let clauses = |of: &[(&str, &str, &Option<Point>)]| -> Vec<String> {
            let some = of.iter().filter_map(|(what, joint, point)| {
                let params = &point.as_ref()?.params;
                Some(if params.is_empty() {
                    (*what).to_owned()
                } else {
                    format!("{what} {joint} {params}")
                })
            });
            some.collect()
        };
        let mut harm = clauses(&[
            ("harmless", up_to, &self.harmless),
            ("weak harm", from, &self.weak),
            ("hurts", from, &self.hurts),
        ]);
        let first = self.weak.as_ref().or(self.hurts.as_ref());
        if let (Some(harmless), Some(first)) = (&self.harmless, first)
            && harmless.severity >= first.severity
        {
            harm.push("trials in between differ".to_owned());
        }
        let said = clauses(&[("watch", from, &self.watch), ("act", from, &self.act)]);
        let said = if said.is_empty() {
            "no finding of this rule".to_owned()
        } else {
            format!("this rule says {}", said.join(", "))
        };
        format!("{}; {said}", harm.join(", "))
    }

    /// The command that measures more of it, the number of trials and their days.
    pub fn source(&self) -> String {
        let trials = if self.trials == 1 { "trial" } else { "trials" };
        let days = if self.from == self.to {
            self.from.clone()
        } else {
            format!("{} to {}", self.from, self.to)
        };
        format!(
            "`cargo xtask faults --kind {}`; {} {trials} of {days}",
            self.kind, self.trials
        )
    }
}

fn point(cell: &str) -> Option<Point> {
    let (severity, params) = cell.split_once(' ')?;
    Some(Point {
        severity: severity.parse().ok()?,
        params: params.to_owned(),
    })
}

/// The rows of a table; its first line names the columns.
pub fn parse(table: &str) -> Vec<Measured> {
    table.lines().skip(1).filter_map(Measured::parse).collect()
}

/// What was measured of a rule.
pub fn measurements(rule: &str) -> Vec<Measured> {
    // A report asks for every rule: only its own rows are parsed.
    let own = |row: &&str| {
        row.strip_prefix(rule)
            .is_some_and(|rest| rest.starts_with('\t'))
    };
    TABLE
        .lines()
        .skip(1)
        .filter(own)
        .filter_map(Measured::parse)
        .collect()
}

/// The section of a rule's page; empty where nothing was measured.
pub(crate) fn section(rows: &[Measured]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut section = "\n## Measured\n\nFaults planted in real services and JVMs. Harm is lost work or a longer p99, as the load generator or the Java program counts it.\n\n".to_owned();
    for row in rows {
        let (kind, place, about) = (&row.kind, &row.place, &row.about);
        let (sentence, source) = (row.sentence(), row.source());
        let _ = writeln!(
            section,
            "- **{kind}** in {place} ({about}): {sentence}. Source: {source}."
        );
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(severity: f64, params: &str) -> Point {
        Point {
            severity,
            params: params.to_owned(),
        }
    }

    fn loss() -> Measured {
        Measured {
            rule: "tcp-retrans".to_owned(),
            kind: "net-loss-random".to_owned(),
            place: "redis".to_owned(),
            about: "the path loses packets".to_owned(),
            harmless: Some(at(0.1, "perten=2")),
            weak: None,
            hurts: Some(at(0.5, "perten=61")),
            watch: Some(at(0.3, "perten=20")),
            act: Some(at(0.5, "perten=61")),
            trials: 5,
            from: "2026-11-24".to_owned(),
            to: "2026-11-25".to_owned(),
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let table = format!("{COLUMNS}\n{}\n", loss().row());
        assert_eq!(parse(&table), [loss()]);
    }

    #[test]
    fn every_row_of_the_embedded_table_is_read_and_of_a_rule_that_exists() {
        let rows = parse(TABLE);
        assert_eq!(TABLE.lines().next(), Some(COLUMNS));
        assert_eq!(rows.len() + 1, TABLE.lines().count());
        for row in rows {
            assert!(
                crate::RULES.iter().any(|rule| rule.id == row.rule),
                "{}",
                row.rule
            );
        }
    }

    #[test]
    fn the_section_names_parameters_rule_and_source() {
        let section = section(&[loss()]);
        let line = "- **net-loss-random** in redis (the path loses packets): harmless up to perten=2, hurts from perten=61; \
            this rule says watch from perten=20, act from perten=61. Source: `cargo xtask faults --kind net-loss-random`; \
            5 trials of 2026-11-24 to 2026-11-25.\n";
        assert!(section.contains(line), "{section}");
        assert_eq!(super::section(&[]), "");
    }

    #[test]
    fn silence_and_contradictions_are_stated() {
        let mut row = loss();
        (row.watch, row.act) = (None, None);
        row.harmless = Some(at(0.6, "perten=80"));
        assert_eq!(
            row.sentence(),
            "harmless up to perten=80, hurts from perten=61, trials in between differ; no finding of this rule"
        );
    }

    #[test]
    fn a_single_trial_is_a_point() {
        let mut row = loss();
        (row.trials, row.harmless, row.watch) = (1, None, None);
        assert_eq!(
            row.sentence(),
            "hurts at perten=61; this rule says act at perten=61"
        );
    }

    #[test]
    fn a_kind_without_parameters_has_no_line() {
        let mut row = loss();
        (row.harmless, row.watch) = (None, None);
        (row.hurts, row.act) = (Some(at(0.5, "")), Some(at(0.5, "")));
        assert_eq!(row.sentence(), "hurts; this rule says act");
    }
}
