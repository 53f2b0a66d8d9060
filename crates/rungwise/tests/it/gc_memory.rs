//! However long a GC log is, reading it takes the same memory, and its report has the same size.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

use rungwise_testkit::EndlessLog;

use crate::run::Bench;

fn log() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gclog/corpus");
    std::fs::read_to_string(folder.join("own_jdk17-g1-tospace.log")).unwrap()
}

fn start(bench: &Bench, format: &str) -> Child {
    bench
        .command(&["jvm", "gc", "-", "--format", format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Writes rounds until so many bytes are written in all; those of the last pipe's length may not be read yet.
fn feed(child: &mut Child, log: &EndlessLog, round: &mut u64, written: &mut u64, bytes: u64) {
    let stdin = child.stdin.as_mut().unwrap();
    let mut text = Vec::new();
    while *written < bytes {
        text.clear();
        log.round(*round, &mut text);
        stdin.write_all(&text).unwrap();
        *round += 1;
        *written += text.len() as u64;
    }
}

/// Most memory that was resident at once, MiB.
fn peak_mib(child: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB").trim();
    kib.parse::<f64>().unwrap() / 1024.0
}

#[test]
fn three_hundred_megabytes_take_no_more_memory_than_one_hundred() {
    let bench = Bench::new();
    let log = EndlessLog::new(&log());
    let mut child = start(&bench, "json");
    let (mut round, mut written) = (0, 0);
    feed(&mut child, &log, &mut round, &mut written, 100_000_000);
    let early = peak_mib(&child);
    feed(&mut child, &log, &mut round, &mut written, 300_000_000);
    let late = peak_mib(&child);
    drop(child.stdin.take());
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["account"]["bytes"], written);
    assert_eq!(document["runs"].as_array().unwrap().len(), 1);
    child.wait().unwrap();
    assert!(late < 50.0, "{late} MiB");
    // A page here and there: the allocator's own.
    assert!(
        late - early < 1.0,
        "{early} MiB after 100 MB, {late} MiB after 300 MB"
    );
}

#[test]
fn the_page_of_a_long_log_is_as_large_as_that_of_a_shorter_one() {
    let bench = Bench::new();
    // Collections alone: more of them in a megabyte than any other log has.
    let lines = log();
    let lines = lines.lines().filter(|line| line.contains("[gc   "));
    let log = EndlessLog::new(&lines.collect::<Vec<_>>().join("\n"));
    let page = |bytes: u64| {
        let mut child = start(&bench, "html");
        let mut stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut page = Vec::new();
            stdout.read_to_end(&mut page).map(|_| page.len())
        });
        feed(&mut child, &log, &mut 0, &mut 0, bytes);
        drop(child.stdin.take());
        child.wait().unwrap();
        reader.join().unwrap().unwrap()
    };
    let (short, long) = (page(5_000_000), page(25_000_000));
    assert!(long < 3_000_000, "{long} bytes");
    assert!(long < short + short / 10, "{short} bytes, then {long}");
}
