//! `check` on several files: what a JVM wrote, and a capture of its host, in one list.

use std::path::Path;

use rungwise_model::check::CheckReport;
use rungwise_testkit::InventedRecording;

use crate::run::Bench;
use crate::tune::assert_valid;

const DUMPS: &str = "../threaddump/corpus/lab_log4j-contention-plus-deadlocks-jdk17.txt.gz";
/// Threads wait for memory; with dates.
const LOG: &str = "../gclog/corpus/own_jdk25-genzgc.log.gz";

fn of_crate(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    path.to_str().unwrap().to_owned()
}

/// Three threads that wait for a lock all the time.
fn recorded(bench: &Bench) -> String {
    let recording = InventedRecording {
        chunks: 2,
        samples: 2000,
        waits: 2000,
        is_finished: true,
    };
    let path = bench.path("rec.jfr");
    std::fs::write(&path, recording.bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn judged(bench: &Bench, files: &[&str]) -> CheckReport {
    let ended = bench.run(&[&["check", "--format", "json"], files].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let document = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "check");
    serde_json::from_value(document).unwrap()
}

fn rules(report: &CheckReport) -> Vec<&str> {
    let findings = report.findings.iter();
    findings.map(|finding| finding.rule.as_str()).collect()
}

#[test]
fn what_a_jvm_wrote_is_one_list_with_the_causes_first() {
    let bench = Bench::new();
    let (dumps, log, recording) = (of_crate(DUMPS), of_crate(LOG), recorded(&bench));
    let report = judged(&bench, &[&log, &recording, &dumps]);
    assert_eq!(report.findings[0].rule, "deadlock");
    let rules = rules(&report);
    for rule in ["lock-wait-ratio", "lock-contended", "log-hot", "gc-stall"] {
        assert!(rules.contains(&rule), "{rule}: {rules:?}");
    }
    // Without a capture there are no findings about the host.
    assert!(report.resources.is_empty());
    assert!(!rules.contains(&"runq-delay"), "{rules:?}");
    let files: Vec<(&str, bool)> = report
        .files
        .iter()
        .map(|file| (&*file.what, file.from.is_some() && file.to.is_some()))
        .collect();
    let all = [
        ("a Flight Recorder file", true),
        ("thread dumps", true),
        ("a GC log", true),
    ];
    assert_eq!(files, all);
    let page = bench.run(&["check", &log, &recording, &dumps]).expect(1);
    let page = page.says(&["act: deadlock", "Files", "cover different times"]);
    assert!(!page.stdout.contains("0.0 s window"), "{}", page.stdout);
}

#[test]
fn a_capture_of_the_host_and_dumps_of_its_jvm_are_judged_together() {
    let bench = Bench::new();
    let capture = bench.path("host.rungwise");
    let capture = capture.to_str().unwrap();
    let captured = bench.run(&["capture", "--for", "300ms", "-o", capture]);
    assert_eq!(captured.code, Some(0), "{}", captured.stderr);
    let dumps = of_crate(DUMPS);
    let report = judged(&bench, &[capture, &dumps]);
    let rules = rules(&report);
    for rule in ["deadlock", "lock-wait-ratio", "runq-delay"] {
        assert!(rules.contains(&rule), "{rule}: {rules:?}");
    }
    assert!(!report.resources.is_empty());
    assert_eq!(report.files[0].what, "a capture");
    assert_eq!(report.files[0].from, report.taken);
    let html = bench.run(&["check", capture, &dumps, "--format", "html"]);
    html.expect(1).says(&["Thread dumps print local time"]);
}

#[test]
fn files_that_cannot_be_judged_together_are_named() {
    let bench = Bench::new();
    let (dumps, recording) = (of_crate(DUMPS), recorded(&bench));
    let text = bench.write("notes.txt", "nothing of the kind\n");
    let (text, dumps) = (text.to_str().unwrap(), &*dumps);
    let other = bench.write("other.txt", "neither\n");
    let other = other.to_str().unwrap();
    for (files, words) in [
        (&[text, other, dumps][..], "At most one of them"),
        (&[dumps, "missing.log"], "there is no such file"),
        (&[dumps, text], "notes.txt"),
        (&[&recording, &recording], "2 recordings together"),
        (&[dumps, "-"], "it can be read only once"),
        (&[dumps, &recording, "--load", text], "no host"),
    ] {
        let ended = bench.run(&[&["check"], files].concat()).expect(2);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}
