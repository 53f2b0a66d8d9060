//! The hosts in `cases/`, judged: on each the findings that its story tells, and no others at high confidence.
//!
//! A host says what it expects in `expected.md`, in lines that begin with one of three words:
//! `- certain:` findings of high confidence, no more and no fewer than these; `- likely:` findings that have to be
//! there whatever their confidence; `- silent:` rules that must have nothing to say. All that is said stands beside
//! it in `findings.snap`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rungwise_host::files;
use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_probes::{Capture, bundle};

/// A capture as `rungwise capture` wrote it; other folders contain texts.
const RECORDED: &str = "host.rungwise";

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases")
}

fn hosts() -> Vec<String> {
    let mut names = files::list(&cases()).expect("the folder of the cases");
    names.retain(|name| files::is_folder(&cases().join(name)));
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    names
}

fn capture(host: &str) -> Capture {
    let folder = cases().join(host);
    let recorded = folder.join(RECORDED);
    let path = if files::exists(&recorded) {
        recorded
    } else {
        folder
    };
    bundle::read(&path).expect("a capture")
}

fn judged(host: &str) -> Vec<Finding> {
    rungwise_rules::judge(&rungwise_probes::evidence(&capture(host)))
}

fn text(path: &Path) -> String {
    let bytes = files::read(path).expect("a text");
    String::from_utf8(bytes).expect("UTF-8")
}

/// What `expected.md` says of a host.
#[derive(Debug, Default)]
struct Expected {
    certain: BTreeSet<String>,
    likely: BTreeSet<String>,
    silent: BTreeSet<String>,
}

impl Expected {
    fn of(host: &str) -> Self {
        let mut expected = Self::default();
        for line in text(&cases().join(host).join("expected.md")).lines() {
            let Some((kind, what)) = line
                .strip_prefix("- ")
                .and_then(|rest| rest.split_once(": "))
            else {
                continue;
            };
            let what = what.split(" (").next().unwrap_or(what).trim().to_owned();
            match kind {
                "certain" => expected.certain.insert(what),
                "likely" => expected.likely.insert(what),
                "silent" => expected.silent.insert(what),
                _ => panic!("{host}: a line begins with {kind}"),
            };
        }
        expected
    }
}

/// `act irq-one-node node/0`
fn named(finding: &Finding) -> String {
    format!(
        "{} {} {}",
        word(finding.outcome),
        finding.rule,
        finding.subject
    )
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Act => "act",
        Outcome::Watch => "watch",
        Outcome::Undecided => "undecided",
        Outcome::Clear => "clear",
    }
}

fn speaks(finding: &Finding) -> bool {
    matches!(finding.outcome, Outcome::Act | Outcome::Watch)
}

#[test]
fn each_text_of_a_host_says_what_is_printed_reckoned_and_invented() {
    let mut texts = 0;
    for host in hosts() {
        let folder = cases().join(&host);
        let names = files::list(&folder).expect("the folder of a host");
        for path in names.iter().map(|name| folder.join(name)) {
            if path.extension().is_none_or(|end| end != "txt") {
                continue;
            }
            texts += 1;
            let text = text(&path);
            let story = text.split("\n@ ").next().unwrap_or_default();
            for word in ["Printed", "Reckoned", "Invented"] {
                let says = story
                    .lines()
                    .any(|line| line.starts_with(word) && line.contains(": "));
                assert!(
                    says,
                    "{}: the story does not say what is {word}",
                    path.display()
                );
            }
        }
    }
    assert!(texts > 8, "{texts} texts");
}

#[test]
fn each_host_has_the_findings_of_its_story_and_no_others() {
    let mut wrong = String::new();
    for host in hosts() {
        let expected = Expected::of(&host);
        let findings = judged(&host);
        let said: Vec<&Finding> = findings.iter().filter(|finding| speaks(finding)).collect();
        let certain: BTreeSet<String> = said
            .iter()
            .filter(|finding| finding.confidence == Grade::High)
            .map(|finding| named(finding))
            .collect();
        for name in expected.certain.difference(&certain) {
            let _ = writeln!(wrong, "{host}: expected and not certain: {name}");
        }
        for name in certain.difference(&expected.certain) {
            let _ = writeln!(wrong, "{host}: certain and not expected: {name}");
        }
        if ["healthy", "guest-2cpu-idle", "guest-2cpu-root"].contains(&&*host) {
            let acts = said
                .iter()
                .filter(|finding| finding.outcome == Outcome::Act);
            for finding in acts {
                let _ = writeln!(wrong, "{host}: nothing to act on: {}", finding.sentence);
            }
        }
        let all: BTreeSet<String> = said.iter().map(|finding| named(finding)).collect();
        for name in expected.likely.difference(&all) {
            let _ = writeln!(wrong, "{host}: expected and not said: {name}");
        }
        for finding in said {
            if expected.silent.contains(&finding.rule) {
                let _ = writeln!(wrong, "{host}: should be silent: {}", finding.sentence);
            }
        }
        for rule in &expected.silent {
            let known = rungwise_rules::RULES.iter().any(|known| known.id == rule);
            assert!(known, "{host}: there is no rule {rule}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn all_that_is_said_of_a_host_stands_beside_it() {
    for host in hosts() {
        let mut list = String::new();
        for finding in judged(&host) {
            let name = named(&finding);
            let _ = match finding.outcome {
                Outcome::Clear => writeln!(list, "{name}"),
                Outcome::Undecided => writeln!(list, "{name}: {}", finding.sentence),
                Outcome::Act | Outcome::Watch => writeln!(
                    list,
                    "{name} ({} severity, {} confidence): {}{}",
                    grade(finding.severity),
                    grade(finding.confidence),
                    finding.sentence,
                    wishes(&finding)
                ),
            };
        }
        let mut beside = insta::Settings::clone_current();
        beside.set_snapshot_path(cases().join(&host));
        beside.set_prepend_module_to_snapshot(false);
        beside.set_omit_expression(true);
        beside.bind(|| insta::assert_snapshot!("findings", list));
    }
}

fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Low => "low",
        Grade::Medium => "medium",
        Grade::High => "high",
    }
}

/// ` [net.gro@eth0=off, net.rfs]`
fn wishes(finding: &Finding) -> String {
    let wishes: Vec<String> = finding
        .knobs
        .iter()
        .map(|turn| {
            let device = turn.device.as_ref().map(|device| format!("@{device}"));
            let to = turn.to.as_ref().map(|to| format!("={to}"));
            format!(
                "{}{}{}",
                turn.id,
                device.unwrap_or_default(),
                to.unwrap_or_default()
            )
        })
        .collect();
    if wishes.is_empty() {
        String::new()
    } else {
        format!(" [{}]", wishes.join(", "))
    }
}

#[test]
fn every_host_is_listed_in_the_readme() {
    let readme = text(&cases().join("README.md"));
    for host in hosts() {
        assert!(
            readme.contains(&format!("| `{host}` |")),
            "cases/README.md does not list {host}"
        );
    }
}

#[test]
fn a_host_in_texts_is_the_same_capture_after_a_trip_through_a_file() {
    for host in hosts() {
        let original = capture(&host);
        let packed = bundle::pack(&original).expect("a bundle");
        let back = bundle::unpack(&packed, Path::new("trip")).expect("the same bundle");
        assert!(back == original, "{host} changed on its way");
    }
}
