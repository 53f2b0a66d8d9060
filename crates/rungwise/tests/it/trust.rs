//! What a person may rely on before running `check` on a machine that matters: it refuses nothing because of what
//! it may not see, it changes nothing, it tells no secret, and it takes no orders from a file.

mod denied;
mod lacks;
mod secrets;
mod signals;
mod strangers;
mod untouched;

use std::path::{Path, PathBuf};

use rungwise_model::check::{Finding, Outcome};
use rungwise_probes::Capture;
use serde_json::Value;

use crate::run::{Bench, Ended};

/// A capture that is short, and no reason to fail.
const SHORT: &[&str] = &["--for", "300ms", "--fail-on", "never"];

/// All formats that this build prints, as its own refusal of another lists them.
fn formats(bench: &Bench) -> Vec<String> {
    let refused = bench.run(&["check", "--format", "nonsense"]).expect(2);
    let (_, rest) = refused.stderr.split_once("[possible values: ").unwrap();
    let (list, _) = rest.split_once(']').unwrap();
    let formats: Vec<String> = list.split(", ").map(str::to_owned).collect();
    assert!(formats.len() >= 4, "{formats:?}");
    formats
}

/// The document of a check that ended well.
#[track_caller]
fn document(ended: &Ended) -> Value {
    assert!(
        matches!(ended.code, Some(0 | 1 | 3)),
        "{:?}\nstdout:\n{}\nstderr:\n{}",
        ended.code,
        ended.stdout,
        ended.stderr
    );
    serde_json::from_str(&ended.stdout).unwrap()
}

/// What is undecided, with rule, reason and remedy of each lack; fails where one is missing.
#[track_caller]
fn lacks(report: &Value) -> Vec<(String, String, String)> {
    let mut lacks = Vec::new();
    for finding in report["findings"].as_array().unwrap() {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let rule = word(&finding["rule"]);
        assert!(!word(&finding["sentence"]).is_empty(), "{rule} is silent");
        if finding["outcome"] != "undecided" {
            continue;
        }
        let missing = finding["missing"].as_array().unwrap();
        assert!(!missing.is_empty(), "{rule} does not say what it lacks");
        for lack in missing {
            let (reason, remedy) = (word(&lack["reason"]), word(&lack["remedy"]));
            assert!(!reason.is_empty(), "{rule} lacks {lack} for no reason");
            let refused = ["not permitted", "ermission denied"];
            assert!(
                !remedy.is_empty() || !refused.iter().any(|word| reason.contains(word)),
                "{rule}: no remedy for: {reason}"
            );
            lacks.push((rule.clone(), reason, remedy));
        }
    }
    lacks
}

fn judged(capture: &Capture) -> Vec<Finding> {
    rungwise_rules::judge(&rungwise_probes::evidence(capture))
}

/// What rules say should be done, and of what.
fn acts(findings: &[Finding]) -> Vec<(&str, &str)> {
    findings
        .iter()
        .filter(|finding| finding.outcome == Outcome::Act)
        .map(|finding| (finding.rule.as_str(), finding.subject.as_str()))
        .collect()
}

/// Every name below `folder`, sorted.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&entry.path()));
        }
        found.push(entry.path());
    }
    found.sort();
    found
}

/// The recorded hosts of the checkout.
fn recorded() -> Vec<PathBuf> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let mut hosts: Vec<PathBuf> = std::fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("capture.json").exists())
        .collect();
    hosts.sort();
    assert!(!hosts.is_empty(), "cases/ has no recorded host");
    hosts
}
