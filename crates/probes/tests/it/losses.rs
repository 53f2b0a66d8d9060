//! The list of loss counters against the kernel that the tests run on.

#![expect(
    clippy::disallowed_methods,
    reason = "a test reads the files of the kernel itself"
)]

use std::collections::BTreeSet;
use std::fs;

use rungwise_formats::snmp;
use rungwise_probes::{LOSSES, ORDINARY};

/// Whether a pattern of the list stands for this name: `*` at its end is any rest.
fn stands_for(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => pattern == name,
    }
}

fn is_listed(group: &str, name: &str) -> bool {
    let loss = LOSSES
        .iter()
        .any(|loss| loss.group == group && loss.name == name);
    let mut ordinary = ORDINARY.iter().filter(|(known, _)| *known == group);
    let ordinary = ordinary.any(|(_, names)| names.iter().any(|known| stands_for(known, name)));
    loss || ordinary
}

#[test]
fn every_protocol_counter_of_this_kernel_is_a_loss_or_ordinary() {
    let read = |path: &str| fs::read_to_string(path).unwrap();
    let mut names: BTreeSet<(String, String)> = BTreeSet::new();
    // Values are left out of the map where they are negative, so the headings are read as well.
    for path in ["/proc/net/snmp", "/proc/net/netstat"] {
        for line in read(path).lines() {
            let (group, rest) = line.split_once(": ").unwrap();
            let words = rest.split_ascii_whitespace();
            let named = words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
            names.extend(named.map(|name| (group.to_owned(), name.to_owned())));
        }
    }
    let six = fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
    let of_six = snmp::parse6(&six).into_keys();
    names.extend(of_six.map(|(group, name)| (group.to_owned(), name.to_owned())));
    for entry in fs::read_dir("/proc/net/stat").unwrap() {
        let table = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&format!("/proc/net/stat/{table}"));
        let words = text
            .lines()
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace();
        names.extend(words.map(|name| (table.clone(), name.to_owned())));
    }
    assert!(names.len() > 250, "only {} counters", names.len());
    let unknown: Vec<_> = names
        .iter()
        .filter(|(group, name)| !is_listed(group, name))
        .collect();
    assert!(
        unknown.is_empty(),
        "neither a loss nor ordinary (crates/probes/src/net/losses/counters.rs): {unknown:?}"
    );
}

#[test]
fn loss_counters_are_listed_once() {
    let mut seen = BTreeSet::new();
    for loss in LOSSES {
        assert!(seen.insert((loss.group, loss.name)), "{loss:?} twice");
    }
}
