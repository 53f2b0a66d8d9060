//! A kernel without a file: whatever of a capture is taken away, blank or nonsense, no rule panics, and none sees
//! a sickness that the whole capture did not show. Absent is never zero.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::check::{Level, Outcome, Resource};
use rungwise_probes::capture::{Raw, Reply};
use rungwise_probes::{Capture, bundle};

use super::{acts, judged, recorded};
use crate::run::{Bench, aloud};

/// What stands in the place of what is taken away.
const INSTEAD: &[Option<&str>] = &[
    None,
    Some("! ENOENT"),
    Some("! EACCES"),
    Some("! EIO"),
    Some(""),
    Some("\u{0}\u{fffd} = : ;\n\n,,,\t-\u{1f980}\n"),
];

/// Files of one kind: the path with its numbers replaced.
fn shape(path: &str) -> String {
    let mut shape = String::new();
    for character in path.chars() {
        match character {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            other => shape.push(other),
        }
    }
    shape
}

fn shapes(capture: &Capture) -> BTreeSet<String> {
    let paths = capture
        .moments
        .iter()
        .flat_map(|moment| moment.files.keys());
    paths.map(|path| shape(path)).collect()
}

/// The capture with another word for all files of one shape, or without them.
fn without(capture: &Capture, wanted: &str, instead: Option<&str>) -> Capture {
    let mut less = capture.clone();
    for moment in &mut less.moments {
        let files = std::mem::take(&mut moment.files);
        moment.files = files
            .into_iter()
            .filter_map(|(path, raw)| {
                if shape(&path) != wanted {
                    return Some((path, raw));
                }
                let raw = instead.map(|text| match text.strip_prefix("! ") {
                    Some(failed) => Raw::Failed {
                        failed: failed.to_owned(),
                    },
                    None => Raw::Text(text.to_owned()),
                });
                raw.map(|raw| (path, raw))
            })
            .collect();
    }
    less
}

/// What is wrong with the judgement of `less`, which knows less than a capture in which these rules saw something.
/// They may act now where they watched, when the graver sickness that they stood back for is out of sight, and on
/// something else: on the machine where the process is unknown.
fn wrong(known: &BTreeSet<String>, less: &Capture) -> Vec<String> {
    let findings = judged(less);
    let mut wrong: Vec<String> = acts(&findings)
        .into_iter()
        .filter(|(rule, _)| !known.contains(*rule))
        .map(|(rule, subject)| format!("{rule} now acts on {subject}"))
        .collect();
    for finding in &findings {
        let has_reasons = finding.missing.iter().all(|lack| !lack.reason.is_empty());
        if finding.outcome == Outcome::Undecided && (finding.missing.is_empty() || !has_reasons) {
            wrong.push(format!("{} does not say what it lacks", finding.rule));
        }
    }
    wrong
}

/// Takes everything away in turn; each defect once, with the first hole that shows it.
fn holes(name: &str, capture: &Capture, instead: &[Option<&str>]) -> Vec<String> {
    let mut known: BTreeSet<String> = judged(capture)
        .into_iter()
        .filter(|finding| matches!(finding.outcome, Outcome::Act | Outcome::Watch))
        .map(|finding| finding.rule)
        .collect();
    // What is beyond its line stays so where the rule that explained it cannot be decided.
    let resources = rungwise_rules::resources(&rungwise_probes::evidence(capture));
    let mut cells = resources.iter().flat_map(Resource::cells);
    if cells.any(|(_, cell)| cell.level == Level::High) {
        let residual = rungwise_rules::RULES
            .iter()
            .filter(|rule| rule.topic == "residual");
        known.extend(residual.map(|rule| rule.id.to_owned()));
    }
    let mut found = BTreeMap::new();
    let mut note = |hole: &str, less: &Capture| {
        for defect in wrong(&known, less) {
            found
                .entry(defect)
                .or_insert_with(|| format!("{name} without {hole}"));
        }
    };
    for shape in shapes(capture) {
        for instead in instead {
            let hole = format!("{shape} ({instead:?})");
            note(&hole, &without(capture, &shape, *instead));
        }
    }
    let answers = capture
        .moments
        .iter()
        .flat_map(|moment| moment.answers.keys());
    for answer in answers.collect::<BTreeSet<_>>() {
        for failed in ["EPERM", "EOPNOTSUPP", "something else"] {
            let mut less = capture.clone();
            for moment in &mut less.moments {
                let failed = Reply::Failed(failed.to_owned());
                moment.answers.insert(answer.clone(), failed);
            }
            note(answer, &less);
            for moment in &mut less.moments {
                moment.answers.remove(answer);
            }
            note(answer, &less);
        }
    }
    for at in 0..capture.moments.len() {
        let mut less = capture.clone();
        less.moments.remove(at);
        if !less.moments.is_empty() {
            // A part of the window may look worse than the whole: only that nothing panics.
            judged(&less);
        }
    }
    found
        .into_iter()
        .map(|(defect, hole)| format!("{hole}: {defect}"))
        .collect()
}

#[test]
fn whatever_this_kernel_did_not_show_no_rule_would_see_a_sickness_instead() {
    let bench = Bench::new();
    let own = std::process::id().to_string();
    bench
        .run(&[
            "capture",
            "-o",
            "host.rungwise",
            "--for",
            "600ms",
            "--pid",
            &own,
        ])
        .expect(0);
    let capture = bundle::read(&bench.path("host.rungwise")).unwrap();
    let offenders = holes("this host", &capture, INSTEAD);
    assert!(offenders.is_empty(), "\n{}", offenders.join("\n"));
}

#[test]
fn whatever_a_recorded_host_did_not_show_no_rule_would_see_a_sickness_instead() {
    // It keeps a CPU busy, which a capture of this machine must not see.
    let _alone = Bench::new();
    let mut offenders = Vec::new();
    for host in recorded() {
        let capture = bundle::read(&host).unwrap();
        let name = host.file_name().unwrap().display().to_string();
        offenders.extend(holes(&name, &capture, &INSTEAD[1..2]));
        offenders.extend(holes(&name, &capture, &INSTEAD[4..5]));
    }
    assert!(offenders.is_empty(), "\n{}", offenders.join("\n"));
}

#[test]
fn a_healthy_host_has_nothing_to_act_on() {
    let hosts = recorded();
    let healthy = hosts.iter().find(|host| host.ends_with("healthy")).unwrap();
    let findings = judged(&bundle::read(healthy).unwrap());
    assert!(acts(&findings).is_empty(), "{:?}", acts(&findings));
}

/// Windows until one of them is quiet.
const WINDOWS: usize = 5;

#[test]
fn this_machine_has_nothing_to_act_on_while_it_is_idle() {
    let bench = Bench::new();
    for _ in 0..WINDOWS {
        let ended = bench.run(&["check", "--for", "2s", "--format", "json", "--quiet"]);
        let report = super::document(&ended);
        let findings = report["findings"].as_array().unwrap();
        let quiet = findings
            .iter()
            .any(|finding| finding["rule"] == "noise-gate" && finding["outcome"] == "clear");
        if quiet {
            let acts: Vec<&serde_json::Value> = findings
                .iter()
                .filter(|finding| finding["outcome"] == "act")
                .map(|finding| &finding["sentence"])
                .collect();
            assert!(acts.is_empty(), "{acts:#?}");
            return;
        }
    }
    aloud(&format!(
        "NOT JUDGED this_machine_has_nothing_to_act_on_while_it_is_idle: others used this machine in {WINDOWS} windows of 2 s; run it \
         on a quiet machine"
    ));
}
