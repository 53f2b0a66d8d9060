//! Who may import whom. The table is the law; `cargo metadata` is the witness.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use xtask::tree::Tree;

use crate::{none_of, printed};

/// Importer, and what it may import directly; arrows chain. Crates that are not built yet have
/// their arrows already, so that a new crate starts with them.
const ARROWS: &[(&str, &[&str])] = &[
    ("rungwise-bpf", &[]),
    ("rungwise-dubbo", &[]),
    ("rungwise-model", &[]),
    ("rungwise-stats", &["rungwise-model"]),
    ("rungwise-formats", &["rungwise-model"]),
    ("rungwise-gclog", &["rungwise-stats"]),
    ("rungwise-threaddump", &["rungwise-model"]),
    ("rungwise-jfr", &["rungwise-model"]),
    ("rungwise-jvm", &["rungwise-model"]),
    ("rungwise-stacks", &["rungwise-formats"]),
    ("rungwise-host", &["rungwise-model"]),
    ("rungwise-probes", &["rungwise-host", "rungwise-formats"]),
    ("rungwise-rules", &["rungwise-stats"]),
    ("rungwise-knobs", &["rungwise-host"]),
    ("rungwise-serve", &["rungwise-bpf", "rungwise-stats"]),
    (
        "rungwise-load",
        &["rungwise-dubbo", "rungwise-stats", "rungwise-serve"],
    ),
    (
        "rungwise-profile",
        &["rungwise-bpf", "rungwise-host", "rungwise-stacks"],
    ),
    (
        "rungwise-experiment",
        &[
            "rungwise-stats",
            "rungwise-load",
            "rungwise-gclog",
            "rungwise-jvm",
            "rungwise-knobs",
            "rungwise-probes",
            "rungwise-rules",
        ],
    ),
    ("rungwise-report", &["rungwise-stats", "rungwise-stacks"]),
    ("rungwise-fleet", &["rungwise-model"]),
    ("rungwise-live", &["rungwise-model"]),
    ("rungwise-testkit", &["rungwise-host"]),
    (
        "rungwise-verbs",
        &[
            "rungwise-experiment",
            "rungwise-report",
            "rungwise-profile",
            "rungwise-gclog",
            "rungwise-threaddump",
            "rungwise-jfr",
            "rungwise-jvm",
        ],
    ),
    (
        "rungwise",
        &["rungwise-verbs", "rungwise-fleet", "rungwise-live"],
    ),
    ("xtask", &["rungwise-experiment"]),
    (
        "rungwise-benches",
        &[
            "rungwise-gclog",
            "rungwise-probes",
            "rungwise-rules",
            "rungwise-threaddump",
        ],
    ),
    (
        "rungwise-fuzz",
        &[
            "rungwise-experiment",
            "rungwise-jfr",
            "rungwise-report",
            "rungwise-threaddump",
        ],
    ),
];

/// What only tests may import.
const TESTS_ONLY: &str = "rungwise-testkit";
/// Crates that are part of no program that users run.
const TESTING: &[&str] = &["rungwise-benches", "rungwise-fuzz"];

#[test]
fn every_import_follows_an_arrow() {
    let reach = closure();
    let mut offenders = Vec::new();
    for (importer, imported, kind) in imports() {
        let Some(allowed) = reach.get(importer.as_str()) else {
            offenders.push(format!("{importer} has no line in ARROWS"));
            continue;
        };
        let is_for_tests = kind == "dev" || TESTING.contains(&importer.as_str());
        let testing = is_for_tests && imported == TESTS_ONLY;
        if !testing && !allowed.contains(imported.as_str()) {
            offenders.push(format!("{importer} imports {imported} ({kind})"));
        }
    }
    none_of(&offenders, "imports against the arrows");
}

#[test]
fn every_crate_obeys_the_lint_table_and_is_never_published() {
    let tree = Tree::ours();
    let mut offenders = Vec::new();
    for package in packages() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let text = std::fs::read_to_string(manifest).unwrap();
        if !text.contains("[lints]\nworkspace = true") {
            offenders.push(format!("{manifest}: no `[lints] workspace = true`"));
        }
        for field in ["version", "edition", "rust-version", "license", "publish"] {
            if !text.contains(&format!("{field}.workspace = true")) {
                offenders.push(format!("{manifest}: {field} is not the workspace's"));
            }
        }
        if package["description"].as_str().is_none_or(str::is_empty) {
            offenders.push(format!("{manifest}: no description"));
        }
    }
    none_of(&offenders, "manifests that go their own way");
    assert!(
        tree.read("Cargo.toml")
            .unwrap()
            .contains("unsafe_code = \"deny\"")
    );
}

/// Each importer with all that its arrows reach.
fn closure() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = ARROWS
        .iter()
        .map(|(from, to)| (*from, to.iter().copied().collect()))
        .collect();
    // As many rounds as there are crates is more than any chain is long.
    for _ in ARROWS {
        let step = reach.clone();
        for all in reach.values_mut() {
            let further: Vec<&str> = all
                .iter()
                .filter_map(|to| step.get(to))
                .flatten()
                .copied()
                .collect();
            all.extend(further);
        }
    }
    reach
}

fn packages() -> Vec<Value> {
    let mut command = Tree::ours().cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = printed(&mut command).parse().unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Importer, imported and kind of every import inside the workspace.
fn imports() -> Vec<(String, String, String)> {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut imports = Vec::new();
    for package in &packages {
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            if ours.contains(name) {
                imports.push((
                    package["name"].as_str().unwrap().to_owned(),
                    name.to_owned(),
                    dependency["kind"].as_str().unwrap_or("normal").to_owned(),
                ));
            }
        }
    }
    imports
}
