//! What a run prints: a line per trial, totals, the list of kinds, and the page docs/truth.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::host::Tried;
use super::kinds::Kinds;
use super::score::{Harm, Score, lost};

/// A trial as tables show it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Place in the run.
    pub number: usize,
    /// The kind.
    pub id: String,
    /// Service, or JVM and collector.
    pub place: String,
    /// From 0 to 1.
    pub severity: f64,
    /// How much it hurt.
    pub harm: Harm,
    /// The same in figures.
    pub measured: String,
    /// What was said first, or why the trial is void.
    pub said: String,
    /// What that is worth.
    pub score: Score,
}

impl Row {
    /// One line of a terminal.
    pub fn line(&self) -> String {
        let said: String = self.said.chars().take(110).collect();
        format!(
            "{:>3} {:9} {:22} {:26} severity {:.2} {:8} {:32} {said}",
            self.number,
            self.score.name(),
            self.id,
            self.place,
            self.severity,
            self.harm.name(),
            self.measured,
        )
    }
}

/// Rate and tail without and with the fault.
pub fn measured(tried: &Tried) -> String {
    let (without, with) = (&tried.without, &tried.with);
    format!(
        "lost {:.0} %, p99 {:.1} to {:.1} ms",
        lost(without, with) * 100.0,
        without.p99_ms,
        with.p99_ms
    )
}

fn count(rows: &[&Row], score: Score) -> usize {
    rows.iter().filter(|row| row.score == score).count()
}

/// How many of each score, and the shares that the bars are about.
pub fn totals(rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().collect();
    let counts: Vec<String> = Score::ALL
        .iter()
        .map(|&score| format!("{} {}", count(&rows, score), score.name()))
        .collect();
    format!(
        "{} trials: {}\n{}",
        rows.len(),
        counts.join(", "),
        shares(&rows)
    )
}

fn shares(rows: &[&Row]) -> String {
    let first = count(rows, Score::First);
    let named = count(rows, Score::Named);
    let denied = count(rows, Score::Denied);
    let hurts = first + named + denied + count(rows, Score::Missed);
    let wrong = count(rows, Score::FalseAct);
    let harmless = wrong + count(rows, Score::Quiet);
    let percent = |part: usize, whole: usize| {
        if whole == 0 {
            "-".to_owned()
        } else {
            format!("{:.0} %", part as f64 / whole as f64 * 100.0)
        }
    };
    format!(
        "of {hurts} that hurt: cause first in {}, named in {}, denied in {denied}; of {harmless} harmless: false act in {}\n",
        percent(first, hurts),
        percent(first + named, hurts),
        percent(wrong, harmless)
    )
}

/// All kinds with the rules that name them, and the rules that do not exist.
pub fn list(kinds: &Kinds, known: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let mut unknown = BTreeSet::new();
    let host = kinds.host.iter().map(|kind| {
        (
            &kind.id,
            "host",
            &kind.resource,
            &kind.aspect,
            kind.services.join(" "),
            &kind.expects,
            &kind.about,
        )
    });
    let jvm = kinds.jvm.iter().map(|kind| {
        let jdks: Vec<String> = kind.jdks.iter().map(ToString::to_string).collect();
        (
            &kind.id,
            "jvm",
            &kind.resource,
            &kind.aspect,
            format!("jdk {}", jdks.join(" ")),
            &kind.expects,
            &kind.about,
        )
    });
    for (id, layer, resource, aspect, places, expects, about) in host.chain(jvm) {
        let expects: Vec<String> = expects
            .iter()
            .map(|rule| {
                if known.contains(rule) {
                    rule.clone()
                } else {
                    unknown.insert(rule.clone());
                    format!("{rule} (no such rule yet)")
                }
            })
            .collect();
        let _ = writeln!(
            text,
            "{id}  [{layer}, {resource}, {aspect}; {places}]\n    {about}\n    named by: {}",
            or_none(&expects.join(", "))
        );
    }
    let _ = writeln!(
        text,
        "{} host kinds, {} JVM kinds; rules that do not exist yet: {}",
        kinds.host.len(),
        kinds.jvm.len(),
        or_none(&unknown.into_iter().collect::<Vec<_>>().join(", "))
    );
    text
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// The page docs/truth.md.
pub fn page(rows: &[Row], kinds: &Kinds, command: &str) -> String {
    let mut page = format!(
        "# Truth as a number\n\n\
         Written by `{command} --write`.\n\n\
         Each trial plants a fault in a service under an ordinary load (20 to 60 % of one CPU), confirms it by other means, and asks\n\
         `rungwise check`, `jvm threads` or `jvm gc`. Harm is what a client with a fixed timetable sees: *hurts* where 20 % of the rate is\n\
         lost or fails, or p99 is three times what it was; *harmless* below 5 % and 1.5 times; *weak* in between.\n\n\
         Of faults that hurt: *first*, the first finding to act on names the cause; *named*, a later one does; *missed*, none does;\n\
         *denied*, the verdict is a tick. Of harmless trials: *quiet*, nothing to act on; *false act*, something is. A trial is *void* where\n\
         the fault was not confirmed, or the service was as slow after it was undone.\n\n"
    );
    let all: Vec<&Row> = rows.iter().collect();
    page += &shares(&all);
    page += "\n## By severity\n\n";
    let mut by_severity: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_severity
            .entry(third(row.severity).to_owned())
            .or_default()
            .push(row);
    }
    table(&mut page, "severity", &by_severity);
    page += "\n## By kind\n\n";
    let mut by_kind: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_kind.entry(row.id.clone()).or_default().push(row);
    }
    table(&mut page, "kind", &by_kind);
    page += "\n## Kinds\n\n";
    let about = kinds
        .host
        .iter()
        .map(|kind| (&kind.id, &kind.about, &kind.expects));
    let about = about.chain(
        kinds
            .jvm
            .iter()
            .map(|kind| (&kind.id, &kind.about, &kind.expects)),
    );
    for (id, about, expects) in about.filter(|(id, _, _)| by_kind.contains_key(*id)) {
        let _ = write!(page, "- **{id}**: {about}");
        if !expects.is_empty() {
            let _ = write!(page, "; named by {}", expects.join(", "));
        }
        page += "\n";
    }
    page
}

fn third(severity: f64) -> &'static str {
    match severity {
        low if low < 1.0 / 3.0 => "0 to 0.33",
        middle if middle < 2.0 / 3.0 => "0.33 to 0.67",
        _ => "0.67 to 1",
    }
}

fn table(page: &mut String, title: &str, groups: &BTreeMap<String, Vec<&Row>>) {
    let names: Vec<&str> = Score::ALL.iter().map(|score| score.name()).collect();
    let _ = writeln!(page, "| {title} | trials | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|--:|{}", "--:|".repeat(names.len()));
    for (name, rows) in groups {
        let cells: Vec<String> = Score::ALL
            .iter()
            .map(|&score| match count(rows, score) {
                0 => String::new(),
                some => some.to_string(),
            })
            .collect();
        let _ = writeln!(page, "| {name} | {} | {} |", rows.len(), cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, severity: f64, harm: Harm, score: Score) -> Row {
        Row {
            number: 1,
            id: id.to_owned(),
            place: "redis".to_owned(),
            severity,
            harm,
            measured: String::new(),
            said: String::new(),
            score,
        }
    }

    #[test]
    fn shares_are_of_the_trials_that_hurt_and_of_those_that_do_not() {
        let rows = [
            row("a", 0.9, Harm::Hurts, Score::First),
            row("a", 0.9, Harm::Hurts, Score::Named),
            row("b", 0.9, Harm::Hurts, Score::Missed),
            row("b", 0.9, Harm::Hurts, Score::Denied),
            row("b", 0.1, Harm::Harmless, Score::Quiet),
            row("b", 0.5, Harm::Hurts, Score::Void),
        ];
        let text = totals(&rows);
        assert!(
            text.contains("of 4 that hurt: cause first in 25 %, named in 50 %, denied in 1"),
            "{text}"
        );
        assert!(text.contains("of 1 harmless: false act in 0 %"), "{text}");
    }

    #[test]
    fn the_page_has_a_row_per_kind_and_per_third() {
        let kinds = Kinds::built_in().unwrap();
        let rows = [
            row("cpu-stopped", 0.9, Harm::Hurts, Score::First),
            row("cpu-stopped", 0.1, Harm::Harmless, Score::Quiet),
        ];
        let page = page(&rows, &kinds, "cargo xtask faults --random 2 --seed 1");
        assert!(page.contains("--random 2 --seed 1 --write"));
        assert!(
            page.contains("| cpu-stopped | 2 | 1 |  |  |  | 1 |  |  |  |"),
            "{page}"
        );
        assert!(page.contains("| 0 to 0.33 | 1 |"));
        assert!(page.contains("- **cpu-stopped**: "));
    }

    #[test]
    fn a_run_without_trials_has_no_shares() {
        assert!(totals(&[]).contains("of 0 that hurt: cause first in -"));
    }

    #[test]
    fn the_list_names_rules_that_do_not_exist() {
        let kinds = Kinds::built_in().unwrap();
        let known = BTreeSet::from(["cfs-throttled".to_owned()]);
        let text = list(&kinds, &known);
        assert!(text.contains("process-stopped (no such rule yet)"));
        assert!(text.contains("named by: cfs-throttled\n"));
    }
}
