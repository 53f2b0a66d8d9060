//! Registries: sorted, ids unique, every part of a page present, no file forgotten.
//!
//! The crates test the order of their own slices; here stands what needs the tree: a file of a knob that
//! nobody entered would compile into nothing.

use std::collections::BTreeSet;

use rungwise_experiment::scenario::Scenario;
use xtask::tree::Tree;

use crate::{none_of, texts};

/// The headings of a knob's page, in order.
const KNOB_HEADINGS: &[&str] = &[
    "What it does",
    "When it helps",
    "What it costs",
    "How it is undone",
    "Sources",
];

#[test]
fn knobs_are_sorted_and_their_ids_unique() {
    let ids: Vec<&str> = rungwise_knobs::KNOBS.iter().map(|knob| knob.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[test]
fn every_knob_page_has_its_headings_with_text_below() {
    let mut offenders = Vec::new();
    for (name, page) in rungwise_knobs::pages() {
        let parts: Vec<(&str, &str)> = page
            .split("\n## ")
            .skip(1)
            .map(|part| part.split_once('\n').unwrap_or((part, "")))
            .collect();
        let headings: Vec<&str> = parts.iter().map(|(heading, _)| *heading).collect();
        if headings != KNOB_HEADINGS {
            offenders.push(format!("{name}: {headings:?}"));
        }
        let empty = parts.iter().filter(|(_, body)| body.trim().is_empty());
        offenders.extend(empty.map(|(heading, _)| format!("{name}: nothing under {heading}")));
    }
    none_of(&offenders, "pages of knobs");
}

#[test]
fn every_knob_file_is_entered_in_the_registry_and_in_its_scope() {
    let tree = Tree::ours();
    let registry = tree.read("crates/knobs/src/lib.rs").unwrap();
    let mut offenders = Vec::new();
    let mut ids = BTreeSet::new();
    for (file, text) in texts(&tree, ".rs") {
        let Some(path) = file.strip_prefix("crates/knobs/src/") else {
            continue;
        };
        if !text.contains("static KNOB: Knob") {
            continue;
        }
        let entry = format!(
            "&{}::KNOB,",
            path.trim_end_matches(".rs").replace('/', "::")
        );
        if !registry.contains(&entry) {
            offenders.push(format!("{file}: no entry {entry} in KNOBS"));
        }
        let folder = path.split('/').next().unwrap_or_default();
        let scope = text
            .split_once("scope: Scope::")
            .map_or("", |(_, rest)| rest);
        if !scope.to_lowercase().starts_with(folder) {
            offenders.push(format!("{file}: its scope is not {folder}"));
        }
        ids.insert(entry);
    }
    none_of(&offenders, "files of knobs");
    assert_eq!(
        ids.len(),
        rungwise_knobs::KNOBS.len(),
        "KNOBS has entries without a file"
    );
}

#[test]
fn every_scenario_of_the_tree_is_read() {
    let mut offenders = Vec::new();
    for (file, text) in texts(&Tree::ours(), ".toml") {
        let scenario = file.starts_with("labs/") || file == "benches/aa.toml";
        if scenario && let Err(problems) = Scenario::parse(&text, &file) {
            offenders.push(problems.to_string());
        }
    }
    none_of(&offenders, "scenarios");
}
