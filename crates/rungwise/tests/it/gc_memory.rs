//! However long a GC log is, reading it takes the same memory, and its report has the same size.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

use flate2::read::GzDecoder;
use rungwise_testkit::EndlessLog;
use serde_json::Value;

use crate::run::Bench;
use crate::tune::assert_valid;

fn corpus(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gclog/corpus");
    std::fs::read(folder.join(name)).unwrap()
}

fn log() -> String {
    String::from_utf8(corpus("own_jdk17-g1-tospace.log")).unwrap()
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

/// The document of a log that is one text again and again, its length, and the most memory that reading it took, MiB.
fn repeated(text: &[u8], times: u64) -> (Value, usize, f64) {
    let bench = Bench::new();
    let mut child = start(&bench, "json");
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..times {
        stdin.write_all(text).unwrap();
    }
    let mut stdout = child.stdout.take().unwrap();
    // The shortest pipe there is: no document fits, so that the process waits for us to read and can be looked at.
    rustix::pipe::fcntl_setpipe_size(&stdout, 4096).unwrap();
    // It looks for the lines that it cites only where it can; from here on it writes.
    drop(stdin);
    let mut document = vec![0];
    stdout.read_exact(&mut document).unwrap();
    let peak = peak_mib(&child);
    stdout.read_to_end(&mut document).unwrap();
    child.wait().unwrap();
    let report = serde_json::from_slice(&document).unwrap();
    assert_valid(&report, "jvm-gc");
    (report, document.len(), peak)
}

/// The field of a document, as a number.
fn number(of: &Value, pointer: &str) -> f64 {
    let value = of.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no {pointer}"))
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}

#[test]
fn many_long_runs_in_one_file_take_little_more_memory_than_one() {
    const RUNS: u64 = 25;
    let packed = corpus("gctoolkit_preunified_cms_parnew_details_tenuring_180_fls_bob.log.gz");
    let mut text = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
    let (one, one_length, _) = repeated(&text, 1);
    let (all, length, peak) = repeated(&text, RUNS);
    assert!(peak < 50.0, "{peak} MiB");
    let each = (length - one_length) / (RUNS as usize - 1);
    assert!(
        each < 200_000,
        "{each} bytes for each run that is not drawn"
    );
    for field in [
        "/pauses/count",
        "/pauses/total_ms",
        "/account/lines",
        "/account/bytes",
    ] {
        near(number(&all, field), RUNS as f64 * number(&one, field));
    }
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(runs.len() as u64, RUNS);
    let fine: Vec<_> = runs.iter().filter(|run| run["coarse"] == false).collect();
    let [fine] = fine[..] else {
        panic!("{} runs keep all", fine.len());
    };
    let points = |run: &Value| {
        run["heap"]["parts"]["heap"]["after"]["points"]
            .as_array()
            .unwrap()
            .len()
    };
    assert!(points(fine) > 100, "{}", points(fine));
    for run in runs {
        for field in [
            "/pauses/all/count",
            "/pauses/all/total_ms",
            "/pauses/all/p99_ms",
            "/safepoints/stopped/total_ms",
        ] {
            near(number(run, field), number(fine, field));
        }
        assert!(run["coarse"] == false || points(run) <= 8);
    }
}

#[test]
fn a_service_that_dies_ten_thousand_times_is_reported_in_few_runs_and_exact_sums() {
    const RUNS: u64 = 10_000;
    let text = String::from_utf8(corpus("own_jdk17-serial.log")).unwrap();
    // A header and the first collection.
    let length = text.find(" GC(1) ").unwrap();
    let end = text[..length].rfind('\n').unwrap() + 1;
    let text = &text.as_bytes()[..end];
    let (one, ..) = repeated(text, 1);
    let (all, length, peak) = repeated(text, RUNS);
    assert!(peak < 50.0, "{peak} MiB");
    assert!(length < 2_000_000, "{length} bytes");
    let listed = all["runs"].as_array().unwrap();
    assert_eq!(
        listed.len() as u64 + all["runs_left_out"].as_u64().unwrap(),
        RUNS
    );
    assert!(listed.len() < 40);
    assert_eq!(listed.last().unwrap()["number"], RUNS);
    for field in ["/pauses/count", "/pauses/total_ms", "/account/lines"] {
        near(number(&all, field), RUNS as f64 * number(&one, field));
    }
    let sum = |field: &str| listed.iter().map(|run| number(run, field)).sum::<f64>();
    for (of_run, of_sums) in [
        ("/seconds", "/left_out/seconds"),
        ("/pauses/all/count", "/left_out/pauses/count"),
        ("/pauses/all/total_ms", "/left_out/pauses/total_ms"),
        ("/allocation/bytes", "/left_out/allocated_bytes"),
    ] {
        let of_one = number(&one["runs"][0], of_run);
        near(sum(of_run) + number(&all, of_sums), RUNS as f64 * of_one);
    }
    near(number(&all, "/throughput"), number(&one, "/throughput"));
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
    let document: Value = serde_json::from_str(&text).unwrap();
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
