//! `jvm threads` and `check` on the corpus of thread dumps: every form gives a document or says why not.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use rungwise_model::threads::ThreadsReport;
use serde_json::Value;

use crate::run::{Bench, Ended};
use crate::tune::assert_valid;

pub(crate) const OWN: &str = "own_jdk17-jcmd-print-l-e.txt.gz";

pub(crate) fn dump(name: &str) -> String {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../threaddump/corpus");
    corpus.join(name).to_str().unwrap().to_owned()
}

fn document(bench: &Bench, files: &[&str]) -> ThreadsReport {
    let all = [&["jvm", "threads", "--format", "json"], files].concat();
    report_of(&bench.run(&all))
}

/// The document of a run, which keeps to its schema.
fn report_of(ended: &Ended) -> ThreadsReport {
    let document =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert_valid(&document, "jvm-threads");
    serde_json::from_value(document).unwrap()
}

#[test]
fn a_deadlock_comes_first_and_ends_with_status_1() {
    let bench = Bench::new();
    let file = dump(OWN);
    for arguments in [&["jvm", "threads", &*file][..], &["check", &file]] {
        let ended = bench.run(arguments);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(
            ended.stdout.starts_with("✗ act: deadlock: dl-A waits for"),
            "{}",
            ended.stdout
        );
        for said in ["http-nio-8080-exec-*", "RootLogger", "dl-P", "writes a log"] {
            assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
        }
    }
}

#[test]
fn a_file_whose_lines_stand_in_reverse_order_says_the_same() {
    let bench = Bench::new();
    let mut text = String::new();
    let packed = std::fs::File::open(dump(OWN)).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut text).unwrap();
    let as_it_was = bench.write("as-it-was.txt", &text);
    let lines: Vec<&str> = text.lines().rev().collect();
    let reversed = bench.write("reversed.txt", &(lines.join("\n") + "\n"));
    let [as_it_was, reversed] =
        [as_it_was, reversed].map(|path| document(&bench, &[path.to_str().unwrap()]));
    let said = |report: &ThreadsReport| {
        let findings = report.findings.iter();
        findings.map(|one| one.sentence.clone()).collect::<Vec<_>>()
    };
    assert_eq!(said(&reversed), said(&as_it_was));
    let note = reversed
        .notes
        .iter()
        .find(|note| note.contains("reverse order"));
    assert!(note.is_some(), "{:?}", reversed.notes);
}

#[test]
fn every_format_tells_the_same() {
    let bench = Bench::new();
    for format in ["json", "markdown", "html"] {
        let ended = bench.run(&[
            "jvm",
            "threads",
            &dump(OWN),
            "--format",
            format,
            "--fail-on",
            "never",
        ]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(
            ended.stdout.contains("org.apache.log4j.spi.RootLogger"),
            "{format}"
        );
    }
}

#[test]
fn every_dump_of_the_corpus_gives_a_document_that_keeps_to_its_schema() {
    let bench = Bench::new();
    let corpus = dump("");
    let mut read = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let file = path.to_str().unwrap();
        for verb in [&["jvm", "threads"][..], &["check"]] {
            let ended = bench.run(&[verb, &[file, "--format", "json"]].concat());
            if ended.code == Some(4) || ended.code == Some(2) {
                // No dump in it: the pages about the corpus.
                continue;
            }
            report_of(&ended);
            read += 1;
        }
    }
    assert!(read > 40, "{read} documents");
}

#[test]
fn dumps_of_one_jvm_are_one_story() {
    let bench = Bench::new();
    let report = document(&bench, &[&dump("jthreaddump_deadlock-formation")]);
    assert_eq!(report.dumps.len(), 6);
    assert!(report.dumps.iter().all(|dump| dump.jvm == 1));
    let deadlocks: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.rule == "deadlock")
        .map(|finding| finding.sentence.split(':').next().unwrap_or_default())
        .collect();
    assert_eq!(
        deadlocks,
        ["deadlock in 6 of 6 dumps", "deadlock in 3 of 6 dumps"]
    );
}

#[test]
fn a_dump_within_the_output_of_an_application_is_found() {
    let bench = Bench::new();
    let packed = std::fs::read(dump("jifa_jstack_11_with_deadlocks.log")).unwrap();
    let mut output = b"2026-11-21 11:39:30,123 INFO [main] started\n".repeat(300);
    output.extend(b"[0.512s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms\n");
    output.extend(packed);
    output.extend(
        b"\njava.lang.IllegalStateException: no\n\tat A.b(A.java:1)\n\t- locked <0x1> (a B)\n",
    );
    let mut child = bench
        .command(&["jvm", "threads", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&output).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    let report = report_of(&ended);
    assert_eq!(report.dumps[0].deadlocks.len(), 1);
    assert_eq!(report.dumps[0].file, "standard input");
    assert_eq!(
        report.account.unknown_lines, 304,
        "{:?}",
        report.account.samples
    );
}

#[test]
fn what_is_unknown_is_said() {
    let bench = Bench::new();
    for (name, said, code) in [
        (
            "own_jdk25-jstack.txt.gz",
            "9 threads wait for a lock whose owner these dumps lack",
            1,
        ),
        (
            "own_jdk21-vt-plain.txt",
            "a dump has no states and no locks",
            3,
        ),
        ("own_jdk21-vt-print.txt", "shows only mounted ones", 3),
    ] {
        let ended = bench.run(&["jvm", "threads", &dump(name)]);
        let text = ended.stdout.replace('\n', " ");
        assert!(text.contains(said), "{name}: {}", ended.stdout);
        assert_eq!(ended.code, Some(code), "{name}: {}", ended.stdout);
    }
}

#[test]
fn a_file_without_a_dump_is_an_error_with_the_remedy() {
    let bench = Bench::new();
    for text in ["", "hello\nworld\n", "{\"threadDump\": 1}"] {
        let file = bench.write("other.txt", text);
        let ended = bench.run(&["jvm", "threads", file.to_str().unwrap()]);
        assert_eq!(ended.code, Some(4), "{}", ended.stdout);
        assert!(
            ended.stderr.contains("jcmd PID Thread.print -l"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn dumps_beside_a_capture_of_the_host_show_that_it_waits_for_itself() {
    let bench = Bench::new();
    let host = crate::judged::host_path("healthy");
    let dumps = [1, 2].map(|number| {
        dump(&format!(
            "lab_log4j-immediateflush-60threads-jdk17-{number}.txt.gz"
        ))
    });
    let ended = bench.run(&[
        "check", &host, "--format", "json", "--dumps", &dumps[0], &dumps[1],
    ]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "check");
    let findings = document["findings"].as_array().unwrap();
    let of = |rule: &str| findings.iter().find(|finding| finding["rule"] == rule);
    let waiting = of("idle-but-waiting").unwrap();
    assert_eq!(waiting["outcome"], "act", "{waiting:#}");
    assert_eq!(waiting["subject"], "dumps/1");
    // The rules of dumps speak in the same report.
    assert_eq!(of("lock-wait-ratio").unwrap()["subject"], "dumps/1");

    let of_another = dump("tda_java11dump.log");
    let ended = bench.run(&["check", &host, "--dumps", &dumps[0], &of_another]);
    assert!(
        ended.stderr.contains("dumps of 2 JVMs"),
        "{} {}",
        ended.stdout,
        ended.stderr
    );
}
