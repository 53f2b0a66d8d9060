//! `jvm gc` and `check` on the corpus of GC logs: every file gives a document or says why not; sets, packing, pipes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::run::{Bench, Ended};
use crate::tune::assert_valid;

const BEFORE: &str = "seed-cms-remark-before.log";
const G1: &str = "own_jdk17-g1-tospace.log";

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gclog/corpus")
}

fn log(name: &str) -> String {
    corpus().join(name).to_str().unwrap().to_owned()
}

fn text(name: &str) -> Vec<u8> {
    std::fs::read(log(name)).unwrap()
}

#[track_caller]
fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr))
}

#[track_caller]
fn document(bench: &Bench, arguments: &[&str]) -> Value {
    let all = [&["jvm", "gc", "--format", "json"], arguments].concat();
    json(&bench.run(&all))
}

/// The document with this on standard input.
fn piped(bench: &Bench, input: &[u8]) -> Ended {
    let mut child = bench
        .command(&["jvm", "gc", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let ended = Ended::from(child.wait_with_output().unwrap());
    // A program that reads no further is right where the beginning tells enough.
    let _ = writer.join().unwrap();
    ended
}

fn gz(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

/// What does not depend on the way that the text came.
fn told(mut document: Value) -> Value {
    let all = document.as_object_mut().unwrap();
    for own in [
        "command", "started", "finished", "files", "notes", "findings", "exit",
    ] {
        all.remove(own);
    }
    document
}

#[test]
fn every_log_of_the_corpus_gives_a_document_or_says_why_not() {
    let bench = Bench::new();
    let (mut documents, mut refused) = (0, Vec::new());
    let mut names: Vec<_> = std::fs::read_dir(corpus())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .filter(|name| !["README.md", "truth.json"].contains(&&**name))
        .collect();
    names.sort();
    for name in names {
        let ended = bench.run(&["jvm", "gc", &log(&name), "--format", "json"]);
        match ended.code {
            Some(0 | 1 | 3) => {
                let document = json(&ended);
                assert_valid(&document, "jvm-gc");
                let account = &document["account"];
                let sum = ["understood", "ignored", "unknown"]
                    .map(|part| account[part].as_u64().unwrap());
                assert_eq!(account["bytes"], sum.iter().sum::<u64>(), "{name}");
                documents += 1;
            }
            Some(4) => {
                assert!(ended.stderr.contains(&name), "{}", ended.stderr);
                assert_eq!(ended.stdout, "");
                refused.push(name);
            }
            code => panic!("{name}: {code:?} {}", ended.stderr),
        }
    }
    // Nothing at all, no GC log, and three that tell of no collection: of a stall, of statistics, of a degenerated cycle
    // whose end is not there.
    let none = [
        "damaged_empty.log",
        "damaged_not-a-gc-log.log",
        "garbagecat_dataset258.txt",
        "garbagecat_dataset273.txt",
        "garbagecat_dataset274.txt",
    ];
    assert_eq!(refused, none);
    assert!(documents > 100, "{documents}");
}

#[test]
fn the_remark_of_the_seed_is_told_with_its_rescan_and_what_lay_in_the_young_generation() {
    let bench = Bench::new();
    let document = document(&bench, &[&log(BEFORE)]);
    assert_eq!(document["pauses"]["longest_ms"], 18_176.961);
    let remark = &document["runs"][0]["remark"];
    assert_eq!(remark["longest_young_bytes"], 4_756_927_u64 * 1024);
    let text = bench.run(&["jvm", "gc", &log(BEFORE)]).stdout;
    for words in [
        "18.2 s",
        "Rescan (parallel)",
        "4.54 GiB of 6.30 GiB",
        "not understood",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    for format in ["html", "markdown"] {
        let page = bench
            .run(&["jvm", "gc", &log(BEFORE), "--format", format])
            .stdout;
        assert!(page.contains("Rescan (parallel)"), "{page}");
    }
}

#[test]
fn the_way_that_a_log_comes_changes_nothing_of_what_it_says() {
    let bench = Bench::new();
    let plain = told(document(&bench, &[&log(G1)]));
    assert_eq!(told(json(&piped(&bench, &text(G1)))), plain);
    let packed = bench.path("no-name-of-a-log");
    std::fs::write(&packed, gz(&text(G1))).unwrap();
    assert_eq!(told(document(&bench, &[packed.to_str().unwrap()])), plain);
    assert_eq!(told(json(&piped(&bench, &gz(&text(G1))))), plain);
    // Members of a gzip file follow each other, as rotation by concatenation leaves them.
    let (head, tail) = {
        let all = text(G1);
        let middle = all.len() / 2;
        (gz(&all[..middle]), gz(&all[middle..]))
    };
    std::fs::write(&packed, [head, tail].concat()).unwrap();
    assert_eq!(told(document(&bench, &[packed.to_str().unwrap()])), plain);
}

#[test]
fn a_rotated_set_is_read_in_the_order_of_its_time() {
    let bench = Bench::new();
    let (newest, oldest) = (
        log("own_jdk25-g1/jdk25-g1.log"),
        log("own_jdk25-g1/jdk25-g1.log.0"),
    );
    let set = document(&bench, &[&log("own_jdk25-g1")]);
    let names: Vec<_> = set["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["name"])
        .collect();
    assert_eq!(names, [&Value::from(&*oldest), &Value::from(&*newest)]);
    assert_eq!(set["runs"].as_array().unwrap().len(), 1);
    assert_eq!(
        told(document(&bench, &[&newest, &oldest])),
        told(set.clone())
    );
    let whole = [
        text("own_jdk25-g1/jdk25-g1.log.0"),
        text("own_jdk25-g1/jdk25-g1.log"),
    ]
    .concat();
    assert_eq!(told(json(&piped(&bench, &whole))), told(set));
}

#[test]
fn logs_of_two_jvms_are_two_runs_and_that_is_said() {
    let bench = Bench::new();
    let (first, second) = (log("own_jdk17-parallel.log"), log("own_jdk17-serial.log"));
    let both = document(&bench, &[&second, &first]);
    assert_eq!(
        both["runs"].as_array().unwrap().len(),
        2,
        "{:#}",
        both["notes"]
    );
    assert!(!both["notes"].as_array().unwrap().is_empty());
    let count = |of: &Value| of["pauses"]["count"].as_u64().unwrap();
    let alone = [&first, &second].map(|name| count(&document(&bench, &[name])));
    assert_eq!(count(&both), alone[0] + alone[1]);
}

#[test]
fn a_cut_gzip_gives_what_is_there_and_says_what_is_missing() {
    let bench = Bench::new();
    let document = document(&bench, &[&log("damaged_cut.log.gz")]);
    assert_eq!(document["pauses"]["count"], 73);
    assert_eq!(document["files"][0]["broken"], "the gzip stream is cut");
    let text = bench.run(&["jvm", "gc", &log("damaged_cut.log.gz")]).stdout;
    assert!(text.contains("the gzip stream is cut"), "{text}");
}

#[test]
fn what_is_no_gc_log_is_refused_with_what_it_is() {
    let bench = Bench::new();
    let run = |name: &str| bench.run(&["jvm", "gc", name]);
    run(&log("damaged_empty.log"))
        .expect(4)
        .says(&["it is empty", "-Xlog:gc*"]);
    run(&log("damaged_not-a-gc-log.log"))
        .expect(4)
        .says(&["line 1 is 'hello'"]);
    run("no-such.log")
        .expect(2)
        .says(&["no-such.log", "there is no such file"]);
    std::fs::create_dir(bench.path("folder")).unwrap();
    run("folder").expect(4).says(&["folder", "no file in it"]);
    bench.write("folder/a", "text\n");
    bench.write("folder/b", "other text\n");
    run("folder")
        .expect(4)
        .says(&["none of the 2 files is a GC log"]);
    std::fs::write(bench.path("packed"), b"\xfd7zXZ\0rest").unwrap();
    run("packed").expect(2).says(&["unpack it with xz"]);
    bench
        .run(&["jvm", "gc", "-", &log(G1)])
        .expect(2)
        .says(&["standard input", "alone"]);
    assert_eq!(piped(&bench, b"").expect(4).stdout, "");
}

#[test]
fn a_folder_leaves_out_what_is_no_log_and_says_so() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("logs")).unwrap();
    std::fs::copy(log(G1), bench.path("logs/gc.log")).unwrap();
    bench.write("logs/notes.txt", "nothing of a collection\n");
    let document = document(&bench, &["logs"]);
    assert_eq!(document["files"].as_array().unwrap().len(), 1);
    assert!(document["notes"][0].as_str().unwrap().contains("notes.txt"));
}

#[test]
fn a_pause_beyond_the_limit_is_a_failure() {
    let bench = Bench::new();
    let run = |limit: &str| {
        let (log, never) = (log(BEFORE), ["--fail-on", "never", "--format", "json"]);
        bench.run(&[&["jvm", "gc", &log, "--slo", limit][..], &never].concat())
    };
    let (met, missed) = (run("19s"), run("18s").expect(1));
    assert_ne!(met.code, Some(1));
    assert_eq!(json(&met)["slo"]["met"], true);
    let slo = &json(&missed)["slo"];
    assert_eq!((&slo["beyond"], &slo["pauses"]), (&1.into(), &2.into()));
}

#[test]
fn the_logs_of_the_seed_tell_what_its_flag_did() {
    let bench = Bench::new();
    let (before, after) = (log(BEFORE), log("seed-cms-remark-after.log"));
    let compared = json(
        &bench
            .run(&["compare", &before, &after, "--format", "json"])
            .expect(0),
    );
    assert_valid(&compared, "compare");
    let sentence = compared["sentence"].as_str().unwrap();
    for words in [
        "18.2\u{202f}s to 126\u{202f}ms",
        "144 times shorter",
        "4.54\u{202f}GiB",
        "68.9\u{202f}MiB",
        "a young collection now comes first",
    ] {
        assert!(sentence.contains(words), "{words} is not in {sentence}");
    }
    let same = json(
        &bench
            .run(&["compare", &before, &before, "--format", "json"])
            .expect(0),
    );
    assert_eq!(same["metrics"], serde_json::json!([]));
    bench
        .run(&["compare", &before, &log("README.md")])
        .expect(2)
        .says(&["is a GC log, the other is none"]);
}

#[test]
fn check_knows_a_gc_log_by_what_it_says() {
    let bench = Bench::new();
    std::fs::copy(log(G1), bench.path("nohup.out")).unwrap();
    let ended = bench.run(&["check", "nohup.out", "--format", "json"]);
    let checked = json(&ended);
    assert_valid(&checked, "jvm-gc");
    assert_eq!(told(checked), told(document(&bench, &["nohup.out"])));
}
