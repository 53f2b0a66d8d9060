//! The list of loss counters against the kernel that the tests run on.

#![expect(
    clippy::disallowed_methods,
    reason = "a test reads the files of the kernel itself"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use rungwise_formats::{flat, snmp, tracepoint::Format};
use rungwise_probes::{COUNTED, LOSSES, ORDINARY, UNCOUNTED, groups};
use rungwise_testkit::skipped;

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
    for (path, group) in [
        ("/proc/net/xfrm_stat", "xfrm_stat"),
        ("/proc/net/tls_stat", "tls_stat"),
        ("/proc/net/sctp/snmp", "sctp"),
    ] {
        let text = fs::read_to_string(path).unwrap_or_default();
        let counters = flat::parse(&text).into_keys();
        names.extend(counters.map(|name| (group.to_owned(), name.to_owned())));
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

/// The format of the event that names the reasons. In a mount namespace of its own, so that no mount is left behind.
fn format_of_drops() -> Option<String> {
    let script = "mount --make-rprivate / && mount -t tracefs none /sys/kernel/tracing && cat /sys/kernel/tracing/events/skb/kfree_skb/format";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn every_reason_of_a_drop_has_a_counter_a_rule_or_the_residual_rule() {
    let Some(text) = format_of_drops() else {
        eprintln!("SKIPPED the reasons of drops: tracefs cannot be mounted; run as root");
        return;
    };
    let names = Format::parse(&text).unwrap().names("reason");
    // What is not dropped, and the bits of the enumeration that are no reason.
    let none = ["NOT_DROPPED_YET", "CONSUMED", "MAX", "SUBSYS_MASK"];
    let reasons: BTreeSet<&String> = names
        .values()
        .filter(|name| !none.contains(&name.as_str()))
        .collect();
    assert!(reasons.len() > 60, "only {} reasons", reasons.len());
    let is_listed = |reason: &str| {
        COUNTED.iter().any(|(known, _)| *known == reason)
            || UNCOUNTED.iter().any(|(known, _)| *known == reason)
    };
    let unknown: Vec<_> = reasons.iter().filter(|name| !is_listed(name)).collect();
    assert!(
        unknown.is_empty(),
        "neither counted nor uncounted (crates/probes/src/net/losses/reasons.rs): {unknown:?}"
    );
}

/// `pattern` with one `*` for any part.
fn fits(pattern: &str, name: &str) -> bool {
    pattern
        .split_once('*')
        .map_or(pattern == name, |(begin, end)| {
            name.strip_prefix(begin)
                .is_some_and(|rest| rest.ends_with(end))
        })
}

/// The events files below a folder of control groups, each with its text.
fn events_below(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            events_below(&entry.path(), found);
        } else if name.ends_with(".events") || name.ends_with(".events.local") {
            // A group may end while it is read.
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            found.push((name.trim_end_matches(".local").to_owned(), text));
        }
    }
}

#[test]
fn every_event_of_control_groups_has_a_rule_or_is_ordinary() {
    let mut found = Vec::new();
    events_below(Path::new("/sys/fs/cgroup"), &mut found);
    if found.is_empty() {
        skipped("no control group of version 2 below /sys/fs/cgroup has a file of events");
    }
    let mut unknown = BTreeSet::new();
    for (file, text) in &found {
        for name in flat::parse(text).into_keys() {
            let known =
                |(pattern, event, _): &&(&str, &str, _)| fits(pattern, file) && fits(event, name);
            if groups::EVENTS.iter().find(known).is_none() {
                unknown.insert(format!("{file} {name}"));
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "neither of a rule nor ordinary (crates/probes/src/groups.rs): {unknown:?}"
    );
}
