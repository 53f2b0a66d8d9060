//! What holds for every source file: its opening, its length, its messages, and what it must not contain.

use xtask::new::STUB;
use xtask::tree::Tree;

use crate::{none_of, texts};

/// Lines a source file may have, tests included.
const LONGEST: usize = 800;

/// Files that are longer, each with the reason.
const LONGER: &[(&str, &str)] = &[];

/// Marks a figure or picture that is still to be taken.
const UNMEASURED: &str = concat!("TO-BE-", "MEASURED");

#[test]
fn every_source_file_opens_with_what_it_is() {
    let tree = Tree::ours();
    let rust = texts(&tree, ".rs")
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//"));
    let shell = texts(&tree, ".sh")
        .into_iter()
        .filter(|(_, text)| !opens_like_a_script(text));
    let offenders: Vec<String> = rust.chain(shell).map(|(file, _)| file).collect();
    none_of(&offenders, "files that do not open with a comment");
}

fn opens_like_a_script(text: &str) -> bool {
    text.starts_with("#!")
        && text
            .lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("# "))
}

#[test]
fn no_file_is_a_bare_placeholder() {
    let mut offenders = Vec::new();
    for (file, text) in texts(&Tree::ours(), "") {
        for word in [STUB, UNMEASURED, concat!("//! place", "holder")] {
            if text.contains(word) {
                offenders.push(format!("{file}: {word}"));
            }
        }
    }
    none_of(&offenders, "files that are not filled in");
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_hold() {
    let tree = Tree::ours();
    let mut offenders = Vec::new();
    for (file, text) in texts(&tree, ".rs") {
        let lines = text.lines().count();
        let excused = LONGER.iter().any(|(name, _)| *name == file);
        if lines > LONGEST && !excused {
            offenders.push(format!(
                "{file}: {lines} lines, {LONGEST} at most without an entry in LONGER"
            ));
        }
        if lines <= LONGEST && excused {
            offenders.push(format!("{file}: {lines} lines need no entry in LONGER"));
        }
    }
    none_of(&offenders, "file length");
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let places = [
        concat!("/", "work/"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
    ];
    let mut offenders = Vec::new();
    for (file, text) in texts(&Tree::ours(), "") {
        for (number, line) in text.lines().enumerate() {
            // `u` is nobody: the home folder of examples.
            let line = line
                .replace(concat!("/ho", "me/u/"), "")
                .replace(concat!("/ho", "me/u\""), "")
                // Files as a process sees them.
                .replace(concat!("/proc/51/ro", "ot/"), "")
                .replace(concat!("/proc/PID/ro", "ot/"), "");
            if places.iter().any(|place| line.contains(place)) {
                offenders.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    none_of(&offenders, "paths of one machine");
}

/// Where the wall clock may be mentioned, and what for.
const WALL_CLOCK: &[(&str, &str)] = &[
    ("crates/host/src/clock.rs", "stamps for people, as text"),
    ("crates/host/src/files.rs", "when a file was changed"),
    (
        "crates/jfr/src/summary/mod.rs",
        "stamps of a recording, as text",
    ),
    (
        "crates/load/src/clock.rs",
        "the placeholder ${time} of a request",
    ),
    (
        "crates/serve/examples/sntp.rs",
        "the time is what it serves",
    ),
];

#[test]
fn the_wall_clock_is_for_stamps_alone_so_no_result_moves_when_it_jumps() {
    let words = [
        concat!("System", "Time"),
        concat!("UNIX_", "EPOCH"),
        concat!("CLOCK_", "REALTIME"),
        concat!("CLOCK_", "TAI"),
        concat!("gettime", "ofday"),
    ];
    let tree = Tree::ours();
    let mut offenders = Vec::new();
    let mut used = Vec::new();
    for (file, text) in texts(&tree, ".rs") {
        let shipped =
            file.starts_with("crates/") && (file.contains("/src/") || file.contains("/examples/"));
        if !shipped || !words.iter().any(|word| text.contains(word)) {
            continue;
        }
        match WALL_CLOCK.iter().find(|(name, _)| *name == file) {
            Some((name, _)) => used.push(*name),
            None => offenders.push(file),
        }
    }
    // A stamp is text; whoever takes one apart again would reckon with it.
    for (file, text) in texts(&tree, ".rs") {
        if file.starts_with("crates/") && text.contains(concat!("parse_", "rfc3339")) {
            offenders.push(file);
        }
    }
    none_of(&offenders, "files that reckon with the wall clock");
    assert_eq!(used.len(), WALL_CLOCK.len(), "only {used:?} mention it");
}

#[test]
fn no_test_is_switched_off() {
    let mut offenders = Vec::new();
    for (file, text) in texts(&Tree::ours(), ".rs") {
        if text.contains(concat!("#[", "ignore")) {
            offenders.push(file);
        }
    }
    none_of(&offenders, "tests that never run");
}

#[test]
fn messages_are_lower_case_without_a_full_stop() {
    let mut offenders = Vec::new();
    for (file, text) in texts(&Tree::ours(), ".rs") {
        for message in messages(&text) {
            if !is_well_said(message) {
                offenders.push(format!("{file}: {message:?}"));
            }
        }
    }
    none_of(&offenders, "messages against the style");
}

/// The string literals of errors: thiserror attributes, anyhow's macros and contexts.
fn messages(text: &str) -> Vec<&str> {
    let openings = [
        concat!("#[", "error("),
        concat!("ba", "il!("),
        concat!("any", "how!("),
        concat!(".con", "text("),
        concat!(".with_con", "text(|| format!("),
    ];
    let mut found = Vec::new();
    for opening in openings {
        for (at, _) in text.match_indices(opening) {
            let rest = text[at + opening.len()..].trim_start();
            if let Some(literal) = rest.strip_prefix('"') {
                found.push(&literal[..end_of_literal(literal)]);
            }
        }
    }
    found
}

fn end_of_literal(literal: &str) -> usize {
    let mut escaped = false;
    for (at, c) in literal.char_indices() {
        match c {
            '"' if !escaped => return at,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    literal.len()
}

/// Lower case and no full stop; a first word in capitals throughout (`SO_REUSEPORT`, `UDP`) is a name.
fn is_well_said(message: &str) -> bool {
    let first: String = message
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let name = first.len() > 1 && !first.chars().any(char::is_lowercase);
    let starts_well = name || !message.starts_with(char::is_uppercase);
    starts_well && (!message.ends_with('.') || message.ends_with("..."))
}

#[test]
fn the_message_rule_knows_a_name_from_a_sentence() {
    for good in [
        "cannot read {path}: {source}",
        "SO_REUSEPORT needs Linux 3.9",
        "{0}",
    ] {
        assert!(is_well_said(good), "{good}");
    }
    for bad in ["Cannot read", "cannot read."] {
        assert!(!is_well_said(bad), "{bad}");
    }
    let attribute = concat!("#[", "error(\"a \\\"b\\\" c\")]");
    assert_eq!(messages(attribute), [r#"a \"b\" c"#]);
}

#[test]
fn every_package_is_used_by_a_test() {
    let tree = Tree::ours();
    let mut sources = texts(&tree, ".rs");
    sources.extend(texts(&tree, "xtask/faults/services.toml"));
    let mut offenders = Vec::new();
    for package in xtask::packages::PACKAGES {
        let call = format!("{}\"", package.program);
        let used = sources.iter().any(|(file, text)| {
            let starts = file.starts_with("crates/")
                || ["xtask/src/jvms.rs", "xtask/faults/services.toml"].contains(&file.as_str());
            starts && text.contains(&call)
        });
        if !used {
            offenders.push(format!("{} ({})", package.name, package.program));
        }
    }
    none_of(
        &offenders,
        "packages in xtask/src/packages.rs that neither a test nor a service of `faults` starts",
    );
}
