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

/// A counter that a rule answers for must be one that is read; all others belong to `unexplained-loss`.
#[test]
fn counters_with_an_owner_are_read() {
    let read: BTreeSet<String> = rungwise_probes::LOSSES
        .iter()
        .map(|loss| format!("{}:{}", loss.group, loss.name))
        .collect();
    let owned = rungwise_rules::owned_counters().map(str::to_owned);
    let offenders: Vec<String> = owned.filter(|name| !read.contains(name)).collect();
    none_of(&offenders, "counters that a rule owns and no probe reads");
}

/// Drops and events that are counted by a rule name one that exists.
#[test]
fn rules_of_drops_and_events_exist() {
    let drops = rungwise_probes::COUNTED.iter();
    let drops = drops.filter_map(|(reason, counted)| match counted {
        rungwise_probes::Counted::Rule(rule) => Some((*reason, *rule)),
        _ => None,
    });
    let events = rungwise_probes::groups::EVENTS.iter();
    let events = events.filter_map(|(file, _, event)| match event {
        rungwise_probes::groups::Event::Rule(rule) => Some((*file, *rule)),
        rungwise_probes::groups::Event::Ordinary(_) => None,
    });
    let exists = |id: &str| rungwise_rules::RULES.iter().any(|rule| rule.id == id);
    let offenders: Vec<String> = drops
        .chain(events)
        .filter(|(_, rule)| !exists(rule))
        .map(|(what, rule)| format!("{what}: no rule {rule}"))
        .collect();
    none_of(&offenders, "rules of drops and of events of control groups");
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
fn every_knob_is_entered_in_the_registry_and_its_file_lies_in_its_scope() {
    let tree = Tree::ours();
    let registry = tree.read("crates/knobs/src/lib.rs").unwrap();
    let mut offenders = Vec::new();
    let mut ids = BTreeSet::new();
    for (file, text) in texts(&tree, ".rs") {
        let Some(path) = file.strip_prefix("crates/knobs/src/") else {
            continue;
        };
        let module = path.trim_end_matches(".rs").replace('/', "::");
        let folder = path.split('/').next().unwrap_or_default();
        // One knob with logic of its own, or several plain ones of a subject.
        let knobs = text
            .split("pub(crate) static ")
            .skip(1)
            .filter_map(|rest| rest.split_once(": Knob = Knob {\n    id: \""));
        for (name, rest) in knobs {
            let entry = format!("&{module}::{name},");
            if !registry.contains(&entry) {
                offenders.push(format!("{file}: no entry {entry} in KNOBS"));
            }
            let id = rest.split('"').next().unwrap_or_default();
            match rungwise_knobs::find(id) {
                Ok(knob) if knob.scope.name() == folder => {}
                Ok(knob) => offenders.push(format!(
                    "{file}: the scope of {id} is {}, not {folder}",
                    knob.scope.name()
                )),
                Err(error) => offenders.push(format!("{file}: {error}")),
            }
            ids.insert(entry);
        }
    }
    none_of(&offenders, "files of knobs");
    assert_eq!(
        ids.len(),
        rungwise_knobs::KNOBS.len(),
        "KNOBS has entries without a file"
    );
}

#[test]
fn every_rule_and_every_probe_file_is_entered_in_its_registry() {
    let tree = Tree::ours();
    let mut offenders = Vec::new();
    for (home, part) in [
        ("crates/rules/src", "RULE: Rule"),
        ("crates/probes/src", "PROBE: Probe"),
    ] {
        let registry = tree.read(format!("{home}/lib.rs")).unwrap();
        let name = part.split(':').next().unwrap_or_default();
        for (file, text) in texts(&tree, ".rs") {
            let Some(path) = file.strip_prefix(&format!("{home}/")) else {
                continue;
            };
            if !text.contains(&format!("static {part}")) {
                continue;
            }
            let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let entry = format!("&{}::{name},", path.replace('/', "::"));
            if !registry.contains(&entry) {
                offenders.push(format!("{file}: no entry {entry}"));
            }
        }
    }
    none_of(&offenders, "files of rules and probes");
}

#[test]
fn a_rule_has_the_id_of_its_file_and_the_topic_of_its_folder() {
    let tree = Tree::ours();
    let offenders: Vec<String> = rungwise_rules::RULES
        .iter()
        .map(|rule| {
            format!(
                "crates/rules/src/{}/{}.rs",
                rule.topic,
                rule.id.replace('-', "_")
            )
        })
        .filter(|file| !tree.join(file).is_file())
        .collect();
    none_of(&offenders, "files that rules should stand in");
}

#[test]
fn probes_are_sorted_and_their_ids_unique() {
    let ids: Vec<&str> = rungwise_probes::PROBES
        .iter()
        .map(|probe| probe.id)
        .collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[test]
fn every_knob_that_a_rule_asks_for_exists() {
    let knobs: BTreeSet<&str> = rungwise_knobs::KNOBS.iter().map(|knob| knob.id).collect();
    let mut offenders = Vec::new();
    for rule in rungwise_rules::RULES {
        let unknown = rule.knobs.iter().filter(|id| !knobs.contains(**id));
        offenders.extend(unknown.map(|id| format!("{}: {id}", rule.id)));
    }
    none_of(&offenders, "knobs that rules ask for");
}

/// Keys from load reports, GC logs, thread dumps and recordings, which no probe of a host can yield.
const OUTSIDE: &[&str] = &[
    "client.",
    "gc.",
    "jvm.",
    "latency.",
    "recording.",
    "threads.",
];

#[test]
fn every_key_that_a_rule_reads_is_yielded_by_a_probe() {
    let yielded: BTreeSet<&str> = rungwise_probes::PROBES
        .iter()
        .flat_map(|probe| probe.yields)
        .map(|key| key.id)
        .collect();
    let mut offenders = Vec::new();
    for rule in rungwise_rules::RULES {
        let unknown = rule.needs.iter().map(|key| key.id).filter(|id| {
            !yielded.contains(id) && !OUTSIDE.iter().any(|prefix| id.starts_with(prefix))
        });
        offenders.extend(unknown.map(|id| format!("{}: {id}", rule.id)));
    }
    none_of(&offenders, "keys that nobody yields");
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
