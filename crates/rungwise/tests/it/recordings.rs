//! `jvm jfr` and `check` on recordings: plain, packed, through a pipe, cut, unfinished, and what is none.

use std::io::Write as _;
use std::process::Stdio;

use rungwise_model::jfr::JfrReport;
use rungwise_testkit::InventedRecording;

use crate::run::{Bench, Ended};
use crate::tune::assert_valid;

/// Samples in a log framework, and three threads that wait for a lock all the time.
const BUSY: InventedRecording = InventedRecording {
    chunks: 2,
    samples: 2000,
    waits: 2000,
    is_finished: true,
};

fn recorded(bench: &Bench, name: &str, recording: InventedRecording) -> String {
    let path = bench.path(name);
    std::fs::write(&path, recording.bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn report(ended: &Ended) -> JfrReport {
    let document =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert_valid(&document, "jvm-jfr");
    serde_json::from_value(document).unwrap()
}

#[test]
fn a_contended_lock_comes_first_and_ends_with_status_1() {
    let bench = Bench::new();
    let file = recorded(&bench, "busy", BUSY);
    for verb in [&["jvm", "jfr", &*file][..], &["check", &file]] {
        let ended = bench.run(verb);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(
            ended
                .stdout
                .starts_with("✗ act: 4.0 threads wait for one lock at a time: shop.Ledger"),
            "{}",
            ended.stdout
        );
        for said in [
            "shop.Cart.add",
            "shop.Main.run:42",
            "lock-contended ·",
            "logging",
        ] {
            assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
        }
    }
}

#[test]
fn every_format_tells_the_same() {
    let bench = Bench::new();
    let file = recorded(&bench, "busy", BUSY);
    for format in ["json", "markdown", "html"] {
        let verb = [
            "jvm",
            "jfr",
            &file,
            "--format",
            format,
            "--fail-on",
            "never",
        ];
        let ended = bench.run(&verb);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("shop.Ledger"), "{format}");
    }
}

#[test]
fn a_packed_recording_and_one_from_a_pipe_say_the_same_as_the_file() {
    let bench = Bench::new();
    let file = recorded(&bench, "plain", BUSY);
    let plain = report(&bench.run(&["jvm", "jfr", &file, "--format", "json"]));
    assert_eq!(plain.recording.events["jdk.ExecutionSample"], 4000);
    let packed = std::process::Command::new("gzip")
        .args(["-k", &file])
        .status();
    assert!(packed.unwrap().success());
    let packed = format!("{file}.gz");
    for verb in ["jfr", "check"] {
        let words: &[&str] = if verb == "jfr" {
            &["jvm", "jfr", &packed, "--format", "json"]
        } else {
            &["check", &packed, "--format", "json"]
        };
        assert_eq!(report(&bench.run(words)).recording, plain.recording);
    }
    let mut child = bench
        .command(&["jvm", "jfr", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&BUSY.bytes()).unwrap();
    drop(input);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(report(&ended).recording, plain.recording);
}

#[test]
fn an_unfinished_recording_is_judged_with_a_note() {
    let bench = Bench::new();
    let unfinished = InventedRecording {
        is_finished: false,
        ..BUSY
    };
    let file = recorded(&bench, "unfinished", unfinished);
    let ended = bench.run(&["jvm", "jfr", &file]);
    assert!(ended.stdout.contains("not finished"), "{}", ended.stdout);
    assert!(ended.stdout.contains("shop.Cart.add"), "{}", ended.stdout);
}

#[test]
fn what_is_no_recording_ends_with_status_4_and_says_what_it_is() {
    let bench = Bench::new();
    for (name, bytes, said) in [
        ("empty", &b""[..], "it is empty"),
        (
            "text",
            b"Full thread dump",
            "it begins with the bytes 46 75 6c 6c",
        ),
        ("old", b"FLR\0\0\0\0\x09", "version 0.9"),
        ("short", b"FLR\0\0\x02\0\x01", "cut within its header"),
    ] {
        std::fs::write(bench.path(name), bytes).unwrap();
        let ended = bench.run(&["jvm", "jfr", name]);
        assert_eq!(ended.code, Some(4), "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{name}: {}", ended.stderr);
    }
}
