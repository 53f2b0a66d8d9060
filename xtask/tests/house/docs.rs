//! The pages: generated ones fresh, written ones linked, the README's promises kept word for word.

use std::path::{Component, Path, PathBuf};
use std::process::Command;

use xtask::tree::Tree;

use crate::{none_of, texts};

/// What the README tells a stranger to type, in this order.
const COMMANDS: &[&str] = &["cargo run --release -- tune udp-echo", "cargo xtask test"];

#[test]
fn generated_pages_are_fresh() {
    let out = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["docs", "--check"])
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

#[test]
fn the_readme_starts_with_the_two_commands() {
    let readme = Tree::ours().read("README.md").unwrap();
    let block = readme
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let commands: Vec<&str> = block
        .expect("README.md has a sh block")
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(commands, COMMANDS);
}

#[test]
fn the_changelog_has_a_place_for_what_comes_next() {
    let changelog = Tree::ours().read("CHANGELOG.md").unwrap();
    for heading in [
        "## [Unreleased]",
        "### Added",
        "### Knobs",
        "### Rules",
        "### Formats",
    ] {
        assert!(
            changelog.contains(&format!("\n{heading}\n")),
            "CHANGELOG.md has no heading {heading}"
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    let tree = Tree::ours();
    let mut offenders = Vec::new();
    for (file, text) in texts(&tree, ".md") {
        for target in links(&text) {
            let path = resolve(&file, &target);
            if !tree.join(&path).exists() {
                offenders.push(format!("{file}: {target}"));
            }
        }
    }
    none_of(&offenders, "links to files that are not there");
}

#[test]
fn every_page_is_reached_from_an_index() {
    let tree = Tree::ours();
    let pages = texts(&tree, ".md");
    let mut offenders = Vec::new();
    for (page, _) in pages.iter().filter(|(file, _)| file.starts_with("docs/")) {
        let linked = pages.iter().any(|(from, text)| {
            from != page
                && links(text)
                    .iter()
                    .any(|target| resolve(from, target) == Path::new(page))
        });
        if !linked {
            offenders.push(page.clone());
        }
    }
    none_of(&offenders, "pages that no other page links to");
}

#[test]
fn every_journal_entry_has_a_row_and_a_date() {
    let tree = Tree::ours();
    let index = tree.read("docs/journal/README.md").unwrap();
    let mut offenders = Vec::new();
    for file in tree.files_ending(".md").unwrap() {
        let Some(name) = file
            .strip_prefix("docs/journal/")
            .filter(|name| *name != "README.md")
        else {
            continue;
        };
        let date = name.get(..11).unwrap_or_default();
        let dated = date
            .bytes()
            .zip("dddd-dd-dd-".bytes())
            .all(|(byte, shape)| {
                if shape == b'd' {
                    byte.is_ascii_digit()
                } else {
                    byte == shape
                }
            });
        let text = tree.read(&file).unwrap();
        if !dated || !index.contains(&format!("({name})")) {
            offenders.push(format!(
                "{file}: needs a date in its name and a row in the index"
            ));
        }
        if !text.contains("\n## What would reopen it\n") {
            offenders.push(format!("{file}: no heading `What would reopen it`"));
        }
    }
    none_of(&offenders, "journal");
}

/// Targets of Markdown links to files: no addresses, no anchors, no code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        // Odd pieces between backticks are code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for piece in prose.split("](").skip(1) {
            let target = piece.split([')', ' ']).next().unwrap_or_default();
            let target = target.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// `target` as seen from `file`, relative to the top.
fn resolve(file: &str, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    let from = Path::new(file).parent().unwrap_or(Path::new(""));
    for part in from.join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[test]
fn links_are_found_in_prose_and_not_in_code() {
    let text =
        "See [a](b.md#c) and `[x](y.md)`.\n```\n[no](no.md)\n```\n[web](https://example.org)\n";
    assert_eq!(links(text), ["b.md"]);
    assert_eq!(
        resolve("docs/journal/README.md", "../cli.md"),
        Path::new("docs/cli.md")
    );
}
