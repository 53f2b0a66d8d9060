//! `jvm gc` and `check` on the corpus of GC logs: every file gives a document or says why not; sets, packing, pipes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use serde_json::Value;

use crate::run::{Bench, Ended};
use crate::tune::assert_valid;

const BEFORE: &str = "seed-cms-remark-before.log";
const G1: &str = "own_jdk17-g1-tospace.log";

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gclog/corpus")
}

pub(crate) fn log(name: &str) -> String {
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

/// What does not depend on the way that the text came. Lines are cited only of a log that can be read twice, so of findings
/// that is left out.
fn comparable(mut document: Value) -> Value {
    let all = document.as_object_mut().unwrap();
    for own in ["command", "started", "finished", "files", "notes", "target"] {
        all.remove(own);
    }
    let findings = all["findings"].as_array_mut().unwrap();
    assert!(!findings.is_empty());
    for finding in findings {
        let said = ["rule", "subject", "outcome", "sentence"];
        *finding = said.map(|part| finding[part].clone()).into_iter().collect();
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
    assert_eq!(refused, ["damaged_empty.log", "damaged_not-a-gc-log.log"]);
    assert!(documents > 100, "{documents}");
}

#[test]
fn the_remark_of_the_seed_is_reported_with_its_rescan_and_what_lay_in_the_young_generation() {
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

/// A ZIP archive of these files, not compressed: local headers, central directory, its end (APPNOTE.TXT 4.3).
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    let number = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
    for (name, text) in files {
        let mut crc = Crc::new();
        crc.update(text);
        // Version 1.0, no flags, stored, no time; then sums, sizes and the length of the name.
        let mut common = vec![10, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend(number(text.len()));
        common.extend(number(text.len()));
        common.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x0a\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(number(archive.len()));
        directory.extend(name.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(name.as_bytes());
        archive.extend(*text);
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let (start, length) = (number(archive.len()), number(directory.len()));
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count, count].concat());
    archive.extend([length, start].concat());
    archive.extend([0, 0]);
    archive
}

/// The middle of a text, behind a line.
fn middle(text: &[u8]) -> usize {
    let half = text.len() / 2;
    half + 1 + text[half..].iter().position(|&byte| byte == b'\n').unwrap()
}

#[test]
fn the_way_that_a_log_comes_changes_nothing_of_what_it_says() {
    let bench = Bench::new();
    let file = bench.path("no-name-of-a-log");
    for name in [
        G1,
        BEFORE,
        "own_jdk8-cms-cmf.log",
        "own_jdk21-genzgc.log",
        "garbagecat_dataset273.txt",
        "damaged_two-jvms-one-file.log",
        "damaged_garbage-bytes.log",
    ] {
        let text = text(name);
        let plain = comparable(document(&bench, &[&log(name)]));
        let (head, tail) = text.split_at(text.len() / 2);
        // Members of a gzip file follow each other, as rotation by concatenation leaves them.
        let packed = [
            gz(&text),
            [gz(head), gz(tail)].concat(),
            zip(&[("gc", &text)]),
            zip(&[("gc.log.gz", &gz(&text))]),
        ];
        for bytes in packed {
            std::fs::write(&file, &bytes).unwrap();
            let unpacked = comparable(document(&bench, &[file.to_str().unwrap()]));
            assert_eq!(unpacked, plain, "{name}");
        }
        for bytes in [text.clone(), gz(&text)] {
            assert_eq!(comparable(json(&piped(&bench, &bytes))), plain, "{name}");
        }
    }
}

#[test]
fn a_log_that_was_redirected_by_powershell_is_read() {
    let bench = Bench::new();
    let file = bench.path("gc.log");
    let plain = String::from_utf8(text(G1)).unwrap();
    let units = std::iter::once(0xfeff).chain(plain.encode_utf16());
    std::fs::write(&file, units.flat_map(u16::to_le_bytes).collect::<Vec<_>>()).unwrap();
    let document = document(&bench, &[file.to_str().unwrap()]);
    assert_eq!(document["files"][0]["packed"], "UTF-16");
    assert_eq!(
        comparable(document),
        comparable(self::document(&bench, &[&log(G1)]))
    );
}

#[test]
fn a_set_says_what_its_files_say_one_behind_the_other() {
    let bench = Bench::new();
    for name in [G1, "own_jdk8-cms-seedflags.log", "own_jdk25-genshen.log"] {
        let text = text(name);
        let plain = comparable(document(&bench, &[&log(name)]));
        let (older, newer) = text.split_at(middle(&text));
        std::fs::write(bench.path("z.log"), older).unwrap();
        std::fs::write(bench.path("a.log"), gz(newer)).unwrap();
        // Whatever the names, and the order in which they are given.
        for files in [["a.log", "z.log"], ["z.log", "a.log"]] {
            assert_eq!(comparable(document(&bench, &files)), plain, "{name}");
        }
        std::fs::write(
            bench.path("set"),
            zip(&[("gc.log", newer), ("gc.log.1.gz", &gz(older))]),
        )
        .unwrap();
        assert_eq!(comparable(document(&bench, &["set"])), plain, "{name}");
    }
}

#[test]
fn jvms_of_an_undated_set_are_distinguished_though_no_line_says_so() {
    let bench = Bench::new();
    let pause = |at: &str, id: u32| {
        format!("[{at}s][info][gc] GC({id}) Pause Young (Allocation Failure) 4M->1M(9M) 1.000ms\n")
    };
    // The second begins where the first has got to, in less than a second.
    bench.write("one", &(pause("0.100", 0) + &pause("0.200", 1)));
    bench.write("two", &(pause("0.200", 0) + &pause("9.000", 1)));
    let document = document(&bench, &["one", "two"]);
    let counts: Vec<_> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["pauses"]["all"]["count"])
        .collect();
    assert_eq!(counts, [2, 2]);
}

#[test]
fn a_log_cut_down_to_the_sums_of_its_collector_gives_them() {
    let bench = Bench::new();
    let document = document(&bench, &[&log("garbagecat_dataset258.txt")]);
    let sums = &document["runs"][0]["statistics"];
    assert_eq!(document["pauses"]["count"], 0);
    assert_eq!(sums["Pause Init Mark (G)"]["count"], 94);
    // Two phases have this name.
    assert_eq!(sums["Concurrent Cleanup"]["count"], 186);
    assert_eq!(sums["Pause Degenerated GC (G)"]["mean_ms"], 9.262);
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
        comparable(document(&bench, &[&newest, &oldest])),
        comparable(set.clone())
    );
    let whole = [
        text("own_jdk25-g1/jdk25-g1.log.0"),
        text("own_jdk25-g1/jdk25-g1.log"),
    ]
    .concat();
    assert_eq!(comparable(json(&piped(&bench, &whole))), comparable(set));
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

/// Lines of two logs by turns, as `docker compose logs` shows them.
fn by_turns(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut logs = [("web-1   ", first), ("worker-1", second)]
        .map(|(name, log)| (name, log.split_inclusive(|byte| *byte == b'\n')));
    // Three lines of the one and two of the other.
    for turn in (0..5).cycle() {
        let which = turn % 2;
        let line = logs[which].1.next().or_else(|| logs[1 - which].1.next());
        let Some(line) = line else { break };
        text.extend_from_slice(logs[which].0.as_bytes());
        text.extend_from_slice(b" | ");
        text.extend_from_slice(line);
    }
    text
}

#[test]
fn jvms_that_write_by_turns_have_a_run_each_and_nothing_mixes_them() {
    let bench = Bench::new();
    let names = [G1, "own_jdk21-genzgc.log"];
    // As long as each other, so that none is left over that would be written under the wrong name.
    let texts = names.map(text);
    let lines = texts
        .each_ref()
        .map(|text| text.split_inclusive(|byte| *byte == b'\n').count());
    let cut = |which: usize, count: usize| -> Vec<u8> {
        let lines = texts[which].split_inclusive(|byte| *byte == b'\n');
        lines.take(count).flatten().copied().collect()
    };
    let turns = (lines[0] / 3).min(lines[1] / 2);
    let alone = [cut(0, turns * 3), cut(1, turns * 2)];
    let both = by_turns(&alone[0], &alone[1]);
    let file = bench.path("compose.log");
    std::fs::write(&file, &both).unwrap();
    let file = file.to_str().unwrap();
    let document = document(&bench, &[file]);
    let runs = document["runs"].as_array().unwrap();
    let sources: Vec<&Value> = runs.iter().map(|run| &run["source"]).collect();
    assert_eq!(sources, ["web-1", "worker-1"]);
    for (run, alone) in runs.iter().zip(&alone) {
        let alone = json(&piped(&bench, alone));
        let alone = &alone["runs"][0];
        for part in ["all", "by_type", "phases"] {
            assert_eq!(run["pauses"][part], alone["pauses"][part], "{part}");
        }
        assert_eq!(run["jvm"], alone["jvm"]);
        assert_eq!(run["seconds"], alone["seconds"]);
    }
    let notes = document["notes"].to_string();
    assert!(notes.contains("web-1; worker-1"), "{notes}");
    let plain = comparable(document);
    for bytes in [both.clone(), gz(&both)] {
        assert_eq!(comparable(json(&piped(&bench, &bytes))), plain);
    }
    let page = bench.run(&["check", file]);
    assert!(page.stdout.contains("Written by"), "{}", page.stdout);
    assert!(page.stdout.contains("worker-1"), "{}", page.stdout);
}

#[test]
fn messages_that_the_jvm_dropped_are_said_before_anything_is_counted() {
    let bench = Bench::new();
    let mut text = text(G1);
    text.extend(b"[9.0s][warning][      ]     83 messages dropped due to async logging\n");
    std::fs::write(bench.path("async.log"), text).unwrap();
    let document = document(&bench, &["async.log"]);
    let notes = document["notes"].to_string();
    assert!(notes.contains("the JVM dropped 83 messages"), "{notes}");
    assert_eq!(document["account"]["unknown_lines"], 0);
}

#[test]
fn a_cut_gzip_gives_what_is_there_and_says_what_is_missing() {
    let bench = Bench::new();
    let document = document(&bench, &[&log("damaged_cut.log.gz")]);
    assert_eq!(document["pauses"]["count"], 73);
    assert_eq!(
        document["files"][0]["broken"],
        "the gzip stream is truncated"
    );
    let text = bench.run(&["jvm", "gc", &log("damaged_cut.log.gz")]).stdout;
    assert!(text.contains("the gzip stream is truncated"), "{text}");
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
    run("folder")
        .expect(4)
        .says(&["folder", "it contains no files"]);
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
fn a_limit_is_undecided_where_the_log_prints_no_pause() {
    let bench = Bench::new();
    let cycle = |number: u32| {
        format!(
            "[{}.000s][info][gc] GC({number}) Minor Collection (Allocation Rate) 100M(50%)->20M(10%) 0.120s\n",
            number * 5 + 5
        )
    };
    let log = "[0.010s][info][gc] Using The Z Garbage Collector\n".to_owned()
        + &(0..40).map(cycle).collect::<String>();
    bench.write("gc.log", &log);
    let run = |more: &[&str]| bench.run(&[&["jvm", "gc", "gc.log"], more].concat());
    let limited = json(&run(&["--slo", "10ms", "--format", "json"]).expect(3));
    assert_eq!(limited["slo"]["met"], Value::Null);
    assert_eq!(limited["throughput"], Value::Null);
    let text = run(&["--slo", "10ms"]).expect(3).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["not all pauses are in the log", "gc+phases", "lacks pauses"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for words in ["not the bottleneck", "Throughput 100"] {
        assert!(!text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_limit_and_a_rate_reach_the_rules() {
    let bench = Bench::new();
    let outcome = |more: &[&str], rule: &str| {
        let document = document(&bench, &[&[&*log("own_jdk11-parallel.log")], more].concat());
        let findings = document["findings"].as_array().unwrap();
        let of_rule = findings.iter().find(|finding| finding["rule"] == rule);
        of_rule.unwrap()["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome(&[], "gc-long-pause"), "clear");
    assert_ne!(outcome(&["--slo", "1ms"], "gc-long-pause"), "clear");
    assert_eq!(outcome(&[], "alloc-per-request"), "undecided");
    assert_eq!(outcome(&["--rate", "1/s"], "alloc-per-request"), "watch");
    assert_eq!(outcome(&["--rate", "100k/s"], "alloc-per-request"), "clear");
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
        "a young collection now runs first",
        "5\u{202f}803\u{202f}756\u{202f}K to 70\u{202f}533\u{202f}K",
        "67.0\u{202f}ms of the 126\u{202f}ms",
        "CMSScavengeBeforeRemark is meant for shorter remarks, and achieved that here",
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
        .says(&["is a GC log, the other is not"]);
    for words in [
        "cost: start pauses take 353\u{202f}ms per minute instead of 136\u{202f}ms",
        "the longest remark went from 18.2\u{202f}s to 126\u{202f}ms, 144 times shorter",
    ] {
        assert!(sentence.contains(words), "{words} is not in {sentence}");
    }
}

#[test]
fn of_a_log_of_several_jvms_one_run_is_compared_with_its_own_pauses() {
    let bench = Bench::new();
    let both = [text("own_jdk8-cms-cmf.log"), text(G1)].concat();
    std::fs::write(bench.path("both.log"), both).unwrap();
    let runs = document(&bench, &["both.log"])["runs"].clone();
    let seconds = |run: &Value| run["seconds"].as_f64().unwrap();
    let longest = usize::from(seconds(&runs[1]) > seconds(&runs[0]));
    let alone = log(["own_jdk8-cms-cmf.log", G1][longest]);
    let compared = json(
        &bench
            .run(&["compare", "both.log", &alone, "--format", "json"])
            .expect(0),
    );
    // The same run on both sides: nothing differs.
    assert_eq!(compared["metrics"], serde_json::json!([]), "{compared:#}");
    assert!(
        compared["sentence"]
            .as_str()
            .unwrap()
            .contains("on both sides")
    );
    let note = compared["notes"][0].as_str().unwrap();
    let number = format!("jvm/{}", longest + 1);
    assert!(
        note.contains("2 JVM runs") && note.contains(&number),
        "{note}"
    );
    let predicted = ["capacity", "gc", "--from", "both.log", "--format", "json"];
    let predicted = json(&bench.run(&predicted).expect(0));
    let notes = predicted["notes"].to_string();
    assert!(notes.contains("2 JVM runs, and only the one"), "{notes}");
}

#[test]
fn what_is_there_twice_is_read_once() {
    let bench = Bench::new();
    let whole = text(G1);
    std::fs::create_dir(bench.path("logs")).unwrap();
    std::fs::write(bench.path("logs/gc.log"), &whole).unwrap();
    let plain = comparable(document(&bench, &["logs/gc.log"]));
    let same = |files: &[&str], note: &str| {
        let document = document(&bench, files);
        let notes = document["notes"].to_string();
        assert!(notes.contains(note), "{notes}");
        assert_eq!(comparable(document), plain, "{files:?}");
    };
    same(&["logs/gc.log", "logs/gc.log"], "named twice");
    std::fs::write(bench.path("logs/gc.log.gz"), gz(&whole)).unwrap();
    same(&["logs"], "skipped");
    // Copied while it was written.
    let (older, _) = whole.split_at(middle(&whole));
    std::fs::write(bench.path("logs/gc.log.gz"), gz(older)).unwrap();
    same(&["logs"], "gc.log.gz has the same content as");
}

/// Young pauses of some length in each second, a little longer in each log.
fn invented(ms: f64, log: u32) -> String {
    let line = |n: u32| {
        let ms = ms + f64::from(log) / 10.0 + f64::from(n * 7 % 10) / 10.0;
        format!(
            "[{n}.500s][info][gc] GC({n}) Pause Young (Allocation Failure) 50M->29M(123M) {ms:.3}ms\n"
        )
    };
    (0..60).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn groups_of_logs_are_compared_by_log() {
    let bench = Bench::new();
    let group = |side: &str, ms: f64| -> Vec<String> {
        (0..4)
            .map(|log| {
                let name = format!("{side}{log}.log");
                bench.write(&name, &invented(ms, log));
                name
            })
            .collect()
    };
    let (before, after) = (group("a", 10.0).join(","), group("b", 20.0).join(","));
    let compare = |before: &str, after: &str| {
        json(
            &bench
                .run(&["compare", before, after, "--format", "json"])
                .expect(0),
        )
    };
    let ratio = |document: &Value, name: &str| {
        let all = document["metrics"].as_array().unwrap();
        let metric = all.iter().find(|metric| metric["name"] == name);
        metric.unwrap_or_else(|| panic!("{document:#}"))["ratio"].clone()
    };
    let groups = compare(&before, &after);
    assert_valid(&groups, "compare");
    assert_eq!(groups["before"], "a0.log, a1.log, a2.log, a3.log");
    let longest = ratio(&groups, "young: longest");
    let (low, high) = (
        longest["low"].as_f64().unwrap(),
        longest["high"].as_f64().unwrap(),
    );
    assert!(low > 1.5 && high < 2.5, "{longest}");
    // Of one log each nothing says how much the longest pause differs from run to run.
    let single = compare("a0.log", "b0.log");
    assert_eq!(ratio(&single, "young: longest"), Value::Null);
    assert!(ratio(&single, "young: median")["low"].as_f64().unwrap() > 1.5);
    bench
        .run(&["compare", "a0.log,no-such.log", "b0.log"])
        .expect(2)
        .says(&["b0.log", "no-such.log: there is no such file"]);
}

#[test]
fn a_comparison_names_the_options_that_the_logs_tell_and_draws_both_on_one_scale() {
    let bench = Bench::new();
    let (before, after) = (
        log("own_jdk8-cms-seedflags.log"),
        log("own_jdk8-cms-scavenge-before-remark.log"),
    );
    let page = bench
        .run(&["compare", &before, &after, "--format", "html"])
        .expect(0)
        .stdout;
    for words in [
        "CMSScavengeBeforeRemark",
        "id=\"gc-pauses-before\"",
        "id=\"gc-pauses-after\"",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    // Labels of the first picture's axis are those of the second.
    let axes: Vec<Vec<&str>> = page
        .split("<svg class=\"time\"")
        .skip(1)
        .map(|svg| {
            let axis = svg.split("<g class=\"ticks\"").next().unwrap();
            let labels = axis.split("text-anchor=\"end\">").skip(1);
            labels.filter_map(|label| label.split('<').next()).collect()
        })
        .collect();
    assert_eq!(axes.len(), 2);
    assert!(axes[0].len() > 1 && axes[0] == axes[1], "{axes:?}");
}

#[test]
fn a_log_without_details_tells_the_options_that_are_missing() {
    let bench = Bench::new();
    let unified = "-Xlog:gc*,gc+age=trace,safepoint:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m";
    let before = "-XX:+PrintGCDetails -XX:+PrintGCDateStamps -XX:+PrintGCTimeStamps -XX:+PrintTenuringDistribution \
                  -XX:+PrintGCApplicationStoppedTime";
    for (name, options) in [
        // -Xlog:gc, with and without tags, and -XX:+PrintGC: none of them names a version.
        ("gctoolkit_unified_g1gc_minimal.log.gz", unified),
        ("jifa_11G1PrintGC.log", unified),
        ("gcviewer_ujl_sample-ujl-cms-gc-defaults.txt", unified),
        ("jifa_8CMSPrintGC.log", before),
        ("gcviewer_SampleSun1_6_0G1_gc_verbose.txt.gz", before),
    ] {
        let document = document(&bench, &[&log(name)]);
        assert_eq!(document["jvm"]["version"], Value::Null, "{name}");
        let findings = document["findings"].as_array().unwrap();
        let poor: Vec<_> = findings
            .iter()
            .filter(|finding| finding["rule"] == "gc-log-poor")
            .collect();
        assert_eq!(poor.len(), 1, "{name}");
        assert_eq!(poor[0]["knobs"][0]["to"], options, "{name}: {}", poor[0]);
    }
}

#[test]
fn check_knows_a_gc_log_by_what_it_says() {
    let bench = Bench::new();
    std::fs::copy(log(G1), bench.path("nohup.out")).unwrap();
    let ended = bench.run(&["check", "nohup.out", "--format", "json"]);
    let checked = json(&ended);
    assert_valid(&checked, "jvm-gc");
    // What scripts read of any check is there as well.
    assert_eq!(checked["target"], "nohup.out");
    assert_eq!(checked["window_s"], checked["runs"][0]["seconds"]);
    bench.write("check.json", &ended.stdout);
    bench
        .run(&["knob", "plan", "--from", "check.json"])
        .expect(2)
        .says(&["it judges a JVM"]);
    assert_eq!(
        comparable(checked),
        comparable(document(&bench, &["nohup.out"]))
    );
    for (name, words) in [
        ("damaged_empty.log", "it is empty"),
        ("damaged_not-a-gc-log.log", "it begins with 'hello'"),
    ] {
        bench
            .run(&["check", &log(name)])
            .expect(2)
            .says(&[words, "rungwise capture"]);
    }
    bench
        .run(&["jvm", "gc", "nohup.out", "--rate", "0/s"])
        .expect(2)
        .says(&["the rate is zero"]);
}
