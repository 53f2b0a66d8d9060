//! The page of each rule, from the registry. The worked example is its casebook, which the writer of the
//! pages appends: a rule does not carry its tests.

use std::fmt::Write as _;

use crate::change::{CHANGES, Change};
use crate::resources::Means;
use crate::rule::{Doc, Rule, Threshold};
use crate::{measured, residual, resources};

impl Rule {
    /// The rule's page as Markdown, with the five headings of the house style.
    pub fn page(&self) -> String {
        let knobs: Vec<String> = self.knobs.iter().map(|id| format!("`{id}`")).collect();
        let knobs = if knobs.is_empty() {
            "none: no setting applies".to_owned()
        } else {
            knobs.join(", ")
        };
        let mut page = format!(
            "# {}\n\n{}\n\n| | |\n|---|---|\n| topic | {} |\n| recommends | {knobs} |\n",
            self.id, self.summary, self.topic
        );
        sections(&mut page, &self.doc);
        page += "\n## What it reads\n\n| key | meaning |\n|---|---|\n";
        let mut keys = self.needs.to_vec();
        keys.sort_unstable_by_key(|key| key.id);
        for key in keys {
            let _ = writeln!(page, "| `{}` | {} |", key.id, key.meaning);
        }
        lines(&mut page, self.thresholds);
        if let Some(means) = residual::means_of(self.id) {
            gauges(&mut page, means);
        }
        page += &measured::section(&measured::measurements(self.id));
        page
    }
}

/// The thresholds of the resource table that a residual rule uses.
fn gauges(page: &mut String, means: Means) {
    for row in resources::ROWS {
        for gauge in row.gauges().filter(|gauge| gauge.means == means) {
            let at = if gauge.falls { "at most" } else { "at least" };
            let (title, id) = (row.title, gauge.key.id);
            let _ = writeln!(
                page,
                "| {title}: `{id}`, {at} | {} | {} |",
                gauge.line, gauge.origin
            );
        }
    }
}

impl Change {
    /// The page of a comparison of two captures.
    pub fn page(&self) -> String {
        let mut page = format!(
            "# {}\n\n{}\n\n| | |\n|---|---|\n| topic | change |\n| recommends | none: it judges a change already made |\n",
            self.id, self.summary
        );
        sections(&mut page, &self.doc);
        lines(&mut page, self.thresholds);
        page
    }
}

fn sections(page: &mut String, doc: &Doc) {
    for (heading, text) in [
        ("What it looks for", doc.looks_for),
        ("Why it hurts", doc.hurts),
        ("What to do", doc.todo),
        ("How it can be wrong", doc.wrong),
        ("Sources", doc.sources),
    ] {
        let _ = write!(page, "\n## {heading}\n\n{text}\n");
    }
}

fn lines(page: &mut String, thresholds: &[Threshold]) {
    *page += "\n## Thresholds\n\n| what is compared | threshold | origin |\n|---|---|---|\n";
    for line in thresholds {
        // In the unit of its key, which the name of the threshold states.
        let _ = writeln!(page, "| {} | {} | {} |", line.name, line.value, line.origin);
    }
}

/// File name and text of the page of every rule, sorted by id, then of every comparison of two captures.
pub fn pages() -> Vec<(String, String)> {
    let rules = crate::RULES
        .iter()
        .map(|rule| (format!("{}.md", rule.id), rule.page()));
    let changes = CHANGES
        .iter()
        .map(|change| (format!("{}.md", change.id), change.page()));
    rules.chain(changes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_sentences_under_every_heading() {
        let rules = crate::RULES
            .iter()
            .map(|rule| (rule.id, rule.summary, &rule.doc));
        let changes = CHANGES
            .iter()
            .map(|change| (change.id, change.summary, &change.doc));
        for ((id, summary, doc), (name, page)) in rules.chain(changes).zip(pages()) {
            assert_eq!(name, format!("{id}.md"));
            for part in [doc.looks_for, doc.hurts, doc.todo, doc.wrong, doc.sources] {
                assert!(part.len() > 20 && page.contains(part), "{id}: '{part}'");
                assert!(part.ends_with('.'), "{id}: '{part}' is no sentence");
                assert!(!part.contains("  "), "{id}: a gap in '{part}'");
            }
            assert!(!summary.ends_with('.'), "{id}: a summary is a phrase");
            // Only what opens a table is a row of bars.
            let odd = page
                .lines()
                .find(|line| line.starts_with("| ") && line.matches(" | ").count() > 2);
            assert_eq!(odd, None, "{id}: a bar inside a cell");
        }
    }
}
