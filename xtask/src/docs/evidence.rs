//! Pages of what `check` reads and reports: a page per rule with its casebook as worked example, a page per
//! probe, and the keys, which join the two.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use rungwise_model::evidence::Key;
use rungwise_model::keys;
use rungwise_probes::{PROBES, page};
use rungwise_rules::RULES;
use rungwise_rules::change::CHANGES;

use crate::tree::Tree;

pub(super) fn rules(tree: &Tree, pages: &mut BTreeMap<String, String>) -> Result<()> {
    let mut index = String::from(
        "# Rules\n\nWritten by `cargo xtask docs` from the registry and the casebooks; change `crates/rules/src/<topic>/<id>.rs` \
         or\n`crates/rules/cases/<id>.md`. `rungwise explain ID` prints the same page without the cases.\n\n\
         | rule | topic | what it finds |\n|---|---|---|\n",
    );
    for rule in RULES {
        let _ = writeln!(
            index,
            "| [{0}]({0}.md) | {1} | {2} |",
            rule.id, rule.topic, rule.summary
        );
    }
    index += "\nFrom two captures, one before a change and one after it:\n\n| judgement | what it finds |\n|---|---|\n";
    for change in CHANGES {
        let _ = writeln!(index, "| [{0}]({0}.md) | {1} |", change.id, change.summary);
    }
    pages.insert("docs/rules/README.md".to_owned(), index);
    for (name, page) in rungwise_rules::pages() {
        let cases = cases(&tree.read(format!("crates/rules/cases/{name}"))?)
            .with_context(|| format!("cannot make pages of crates/rules/cases/{name}"))?;
        pages.insert(format!("docs/rules/{name}"), with_links(page) + &cases);
    }
    Ok(())
}

/// A casebook as the last section of its rule's page.
fn cases(book: &str) -> Result<String> {
    let (_, cases) = book.split_once("\n## ").context("it has no case")?;
    let cases = format!("\n## {cases}").replace("\n## ", "\n### ");
    Ok(format!(
        "\n## Cases\n\nEvidence and the expected result; the tests run these.\n{cases}"
    ))
}

/// Links the knobs in the table of a page to their pages.
fn with_links(page: String) -> String {
    let Some((before, rest)) = page.split_once("| recommends | ") else {
        return page;
    };
    let (row, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let row = rungwise_knobs::KNOBS
        .iter()
        .fold(row.to_owned(), |row, knob| {
            row.replace(
                &format!("`{}`", knob.id),
                &format!("[{0}](../knobs/{0}.md)", knob.id),
            )
        });
    format!("{before}| recommends | {row}\n{after}")
}

pub(super) fn probes(pages: &mut BTreeMap<String, String>) {
    let mut index = String::from(
        "# Probes\n\nWritten by `cargo xtask docs` from the registry; change `crates/probes/src/<subject>/<name>.rs`. What the \
         probes\nyield and the rules read is listed in [keys](keys.md).\n\n\
         | probe | cost | needs | what it reads |\n|---|---|---|---|\n",
    );
    for probe in PROBES {
        let _ = writeln!(
            index,
            "| [{0}]({0}.md) | {1} | {2} | {3} |",
            probe.id,
            probe.cost.words(),
            probe.needs_words(),
            probe.summary
        );
        pages.insert(format!("docs/probes/{}.md", probe.id), probe.page());
    }
    pages.insert("docs/probes/README.md".to_owned(), index);
    pages.insert("docs/probes/keys.md".to_owned(), vocabulary());
}

/// Every key with the probe that yields it and the rules that read it.
fn vocabulary() -> String {
    let mut page = String::from(
        "# Keys\n\nWritten by `cargo xtask docs`; change `crates/model/src/keys`. A probe yields a key, or says why it cannot; a rule \
         lists\nthe keys that it reads. A key without a probe comes from elsewhere: a load report, a thread dump.\n\n\
         | key | of | unit | meaning | probe | rules |\n|---|---|---|---|---|---|\n",
    );
    let mut all: Vec<&Key> = keys::all().collect();
    all.sort_unstable_by_key(|key| key.id);
    for key in all {
        let probes = PROBES
            .iter()
            .filter(|probe| probe.yields.contains(&key))
            .map(|probe| format!("[{0}]({0}.md)", probe.id));
        let rules = RULES
            .iter()
            .filter(|rule| rule.needs.contains(&key))
            .map(|rule| format!("[{0}](../rules/{0}.md)", rule.id));
        let (probes, rules): (Vec<_>, Vec<_>) = (probes.collect(), rules.collect());
        let row = page::row_of(key);
        let _ = writeln!(
            page,
            "{} {} | {} |",
            row.trim_end(),
            probes.join(", "),
            rules.join(", ")
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_casebook_becomes_the_last_section() {
        let section = cases("# r\n\n## One\ntext\n\n## Two\nmore\n").unwrap();
        assert!(section.contains("\n### One\ntext\n"), "{section}");
        assert!(section.contains("\n### Two\n"), "{section}");
        assert!(cases("# r\n").is_err());
    }

    #[test]
    fn every_probe_and_key_has_its_row() {
        let mut pages = BTreeMap::new();
        probes(&mut pages);
        assert_eq!(pages.len(), PROBES.len() + 2);
        let keys = &pages["docs/probes/keys.md"];
        assert_eq!(
            keys.lines().filter(|line| line.starts_with("| `")).count(),
            keys::all().count()
        );
    }
}
