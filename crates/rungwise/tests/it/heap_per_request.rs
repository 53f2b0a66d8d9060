//! `jvm heap-per-request` on real JVMs whose requests allocate a planted number of bytes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use rungwise_testkit::{How, PlantedJvm, program, skipped};
use serde_json::Value;

use crate::run::{Bench, Ended, kill};
use crate::tune::assert_valid;

fn java() -> PathBuf {
    program("java").expect("java is in PATH")
}

/// An array of this length in bytes: its header, and to a multiple of eight.
fn array(length: u64) -> f64 {
    (16 + length).next_multiple_of(8) as f64
}

fn ask(bench: &Bench, jvm: &PlantedJvm, path: &str, more: &[&str]) -> Ended {
    let (pid, url) = (jvm.pid().to_string(), jvm.url(path));
    let words = [
        "jvm",
        "heap-per-request",
        &pid,
        "--load",
        &url,
        "--connections",
        "4",
        "--format",
        "json",
    ];
    bench.run(&[&words, more].concat())
}

#[track_caller]
fn document(ended: &Ended) -> Value {
    let document = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {:?} {}", ended.code, ended.stderr));
    assert_valid(&document, "jvm-heap-per-request");
    document
}

/// An estimate holds a value, but for as much beside it.
#[track_caller]
fn assert_holds(estimate: &Value, value: f64, beside: f64, what: &str) {
    let (low, high) = ends(estimate);
    assert!(
        low - beside <= value && value <= high + beside,
        "{what}: {value} is not in {low} to {high}"
    );
}

#[track_caller]
fn ends(estimate: &Value) -> (f64, f64) {
    let of = |key: &str| estimate[key].as_f64();
    of("low")
        .zip(of("high"))
        .unwrap_or_else(|| panic!("{estimate}"))
}

fn method<'a>(document: &'a Value, kind: &str) -> &'a Value {
    let methods = document["methods"].as_array().unwrap();
    let found = methods.iter().find(|method| method["kind"] == kind);
    &found.unwrap_or_else(|| panic!("no {kind}: {document}"))["bytes_per_request"]
}

#[test]
fn planted_sizes_come_out_under_every_collector() {
    let bench = Bench::new();
    for (collector, name) in [
        ("Serial", "serial"),
        ("Parallel", "parallel"),
        ("G1", "g1"),
        ("Z", "zgc"),
        ("Shenandoah", "shenandoah"),
    ] {
        let flag = format!("-XX:+Use{collector}GC");
        let jvm = PlantedJvm::start(&java(), &[&flag, "-Xmx1g", "-Xms1g"], How::Stay, None);
        let mut figures = Vec::new();
        for (length, requests) in [(1000, "5000"), (100_000, "1500")] {
            let path = format!("/heap/{length}");
            let ended = ask(
                &bench,
                &jvm,
                &path,
                &["--requests", requests, "--at", "1000/s"],
            );
            let document = document(&ended);
            assert_eq!(ended.code, Some(0), "{collector}: {document:#}");
            assert_eq!(document["collector"], name);
            let planted = array(length);
            // Requests allocate next to nothing beside it; a sampled few of the JVM's own do.
            let beside = 0.01 * planted;
            let answer = &document["bytes_per_request"];
            assert_holds(answer, planted, beside, collector);
            let (low, high) = ends(answer);
            assert!(high - low < 0.05 * planted, "{collector}: {answer}");
            for kind in ["thread_counters", "heap_used"] {
                let measured = method(&document, kind);
                assert_holds(measured, planted, beside, &format!("{collector} {kind}"));
            }
            if ["serial", "parallel"].contains(&name) {
                let (low, high) = ends(method(&document, "heap_used"));
                assert!(high - low < 0.05 * planted, "{collector}: {document:#}");
                // At 1000 requests per second.
                let collections = &document["collections"];
                let per_min = collections["young_per_min"]["point"].as_f64().unwrap();
                let eden = collections["eden_bytes"]["point"].as_f64().unwrap();
                let expected = planted * 1000.0 * 60.0 / eden;
                assert!(
                    (per_min / expected - 1.0).abs() < 0.1,
                    "{per_min} {expected}"
                );
                assert!(document["occupied"]["bias"].as_f64().unwrap() > 0.0);
            }
            let requests = &document["requests"];
            assert_eq!(requests["failed"], 0);
            assert_eq!(requests["sent"], requests["answered"]);
            figures.push(answer["point"].as_f64().unwrap());
        }
        let slope = (figures[1] - figures[0]) / (array(100_000) - array(1000));
        assert!((slope - 1.0).abs() < 0.01, "{collector}: {slope}");
    }
}

#[test]
fn a_gc_log_that_the_jvm_writes_is_a_method_of_its_own() {
    let bench = Bench::new();
    let log = "-Xlog:gc*=info,gc+tlab=debug:file=gc-%p.log";
    for (collector, size) in [
        ("Serial", 0.05),
        ("Parallel", 0.05),
        ("G1", 0.2),
        ("Z", 0.5),
    ] {
        let flag = format!("-XX:+Use{collector}GC");
        let jvm = PlantedJvm::start(&java(), &[&flag, "-Xmx1g", "-Xms1g", log], How::Stay, None);
        let ended = ask(&bench, &jvm, "/heap/10000", &["--requests", "8000"]);
        let document = document(&ended);
        assert_eq!(ended.code, Some(0), "{collector}: {document:#}");
        let planted = array(10_000);
        let logged = method(&document, "gc_log");
        assert_holds(logged, planted, 0.01 * planted, collector);
        let (low, high) = ends(logged);
        assert!(high - low < size * planted, "{collector}: {document:#}");
        let page = bench.path("page.json");
        std::fs::write(&page, &ended.stdout).unwrap();
        bench
            .run(&["report", page.to_str().unwrap()])
            .expect(0)
            .says(&["GC log"]);
    }
    for (flags, said) in [
        (
            &["-XX:+UseShenandoahGC", log][..],
            "Shenandoah does not log",
        ),
        (
            &["-XX:+UseParallelGC", "-Xlog:gc:file=gc.log"],
            "what=gc*=info,gc+tlab=debug",
        ),
        (
            &["-XX:+UseParallelGC", "-Xlog:gc*,gc+tlab=debug:stdout"],
            "goes to stdout",
        ),
    ] {
        let jvm = PlantedJvm::start(&java(), &[flags, &["-Xmx512m"]].concat(), How::Stay, None);
        let ended = ask(&bench, &jvm, "/heap/10000", &["--requests", "2000"]);
        let document = document(&ended);
        let methods = document["methods"].as_array().unwrap();
        let logged = methods.iter().find(|one| one["kind"] == "gc_log").unwrap();
        let because = logged["because"].as_str().unwrap();
        assert!(because.contains(said), "{because}");
        assert!(logged["bytes_per_request"].is_null());
    }
}

#[test]
fn ten_megabytes_and_buffers_outside_the_heap() {
    let bench = Bench::new();
    let options = ["-XX:+UseParallelGC", "-Xmx1500m", "-Xmn1g"];
    let jvm = PlantedJvm::start(&java(), &options, How::Stay, None);
    let ended = ask(&bench, &jvm, "/heap/10000000", &["--requests", "100"]);
    let large = document(&ended);
    assert_eq!(ended.code, Some(0), "{large:#}");
    assert_holds(&large["bytes_per_request"], array(10_000_000), 0.0, "10 MB");
    let ended = ask(&bench, &jvm, "/direct/100000", &["--requests", "2000"]);
    let direct = document(&ended);
    let (_, high) = ends(&direct["bytes_per_request"]);
    assert!(
        high < 1024.0,
        "a buffer outside of the heap counts: {direct:#}"
    );
}

#[test]
fn threads_that_end_leave_bounds_and_without_buffers_an_answer() {
    let bench = Bench::new();
    let planted = array(10_000);
    let options = ["-XX:+UseParallelGC", "-Xmx512m"];
    let jvm = PlantedJvm::start(&java(), &options, How::End, None);
    let ended = ask(&bench, &jvm, "/heap/10000", &["--requests", "1000"]);
    let bounds = document(&ended);
    assert_eq!(ended.code, Some(3), "{bounds:#}");
    assert!(bounds["bytes_per_request"].is_null());
    let why = bounds["because"].as_str().unwrap();
    assert!(why.contains("threads that end"), "{why}");
    let (least, _) = ends(method(&bounds, "thread_counters"));
    let (_, most) = ends(method(&bounds, "heap_used"));
    assert!(least <= planted && planted <= most, "{least} to {most}");
    drop(jvm);
    let options = ["-XX:+UseParallelGC", "-Xmx512m", "-XX:-UseTLAB"];
    let jvm = PlantedJvm::start(&java(), &options, How::End, None);
    let ended = ask(&bench, &jvm, "/heap/10000", &["--requests", "1000"]);
    let exact = document(&ended);
    assert_eq!(ended.code, Some(0), "{exact:#}");
    // The thread itself is some hundred bytes.
    let point = exact["bytes_per_request"]["point"].as_f64().unwrap();
    assert!((planted..planted + 1500.0).contains(&point), "{point}");
}

#[test]
fn virtual_threads_count_and_jdk_8_has_the_second_method() {
    let bench = Bench::new();
    for release in [21, 25] {
        let Some(java) = program(&format!("java-{release}")) else {
            skipped(format_args!(
                "no java-{release} in PATH; cargo xtask test provides one"
            ));
            continue;
        };
        let jvm = PlantedJvm::start(&java, &["-XX:+UseParallelGC", "-Xmx1g"], How::Virtual, None);
        let ended = ask(&bench, &jvm, "/heap/20000", &["--requests", "3000"]);
        let document = document(&ended);
        let point = document["bytes_per_request"]["point"].as_f64().unwrap();
        // The virtual thread itself and its stack beside the array.
        let planted = array(20_000);
        assert!(
            (planted..planted + 2500.0).contains(&point),
            "{release}: {document:#}"
        );
    }
    for flag in [
        "-XX:+UseParallelGC",
        "-XX:+UseSerialGC",
        "-XX:+UseConcMarkSweepGC",
    ] {
        let Some(java) = program("java-8") else {
            skipped("no java-8 in PATH; cargo xtask test provides one");
            return;
        };
        let jvm = PlantedJvm::start(&java, &[flag, "-Xmx512m"], How::Stay, None);
        let ended = ask(&bench, &jvm, "/heap/10000", &["--requests", "3000"]);
        let document = document(&ended);
        assert_eq!(ended.code, Some(0), "{flag}: {document:#}");
        let planted = array(10_000);
        assert_holds(
            &document["bytes_per_request"],
            planted,
            0.01 * planted,
            flag,
        );
        assert_eq!(document["methods"].as_array().unwrap().len(), 1);
        assert!(document["notes"][0].as_str().unwrap().contains("JDK 11"));
    }
}

#[test]
fn background_is_measured_and_no_part_of_the_figure() {
    let bench = Bench::new();
    let jvm = PlantedJvm::start(&java(), &["-XX:+UseParallelGC", "-Xmx1g"], How::Busy, None);
    let ended = ask(
        &bench,
        &jvm,
        "/heap/10000",
        &["--requests", "5000", "--no-collect"],
    );
    let document = document(&ended);
    let (low, _) = ends(&document["background_bytes_per_s"]);
    assert!(low > 10e6, "a megabyte each 10 ms: {document:#}");
    let methods = document["methods"].as_array().unwrap();
    assert!(methods[1]["bytes_per_request"].is_null());
    let (low, high) = ends(&document["bytes_per_request"]);
    assert!(
        high - low > 50.0,
        "background varies, and so does the figure: {document:#}"
    );
}

#[test]
fn the_page_is_drawn_again_from_its_document() {
    let bench = Bench::new();
    let jvm = PlantedJvm::start(&java(), &["-XX:+UseSerialGC", "-Xmx512m"], How::Stay, None);
    let file = bench.path("heap.json");
    let file = file.to_str().unwrap();
    let ended = ask(
        &bench,
        &jvm,
        "/heap/10000",
        &["--requests", "2000", "--at", "500/s", "-o", file],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let page = bench.run(&["report", file]).expect(0);
    page.says(&[
        "one request costs",
        "thread counters",
        "heap in use",
        "Eden used / requests",
        "Young collections per minute",
    ]);
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_remedy() {
    let bench = Bench::new();
    let mut sleeper = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let pid = sleeper.id().to_string();
    let words = [
        "jvm",
        "heap-per-request",
        &pid,
        "--load",
        "http://127.0.0.1:9/",
    ];
    bench.run(&words).expect(4).says(&["not a JVM"]);
    assert!(sleeper.try_wait().unwrap().is_none());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let jvm = PlantedJvm::start(&java(), &["-XX:+DisableAttachMechanism"], How::Stay, None);
    ask(&bench, &jvm, "/heap/1", &[])
        .expect(4)
        .says(&["DisableAttachMechanism", "start the JVM without"]);
    let mut jvm = PlantedJvm::start(&java(), &["-Xmx256m"], How::Stay, None);
    ask(&bench, &jvm, "/fail", &["--requests", "500"])
        .expect(3)
        .says(&["requests failed", "load http", "--expect"]);
    let pid = jvm.pid().cast_signed();
    kill(pid, libc::SIGSTOP);
    ask(&bench, &jvm, "/heap/1", &[])
        .expect(4)
        .says(&["stopped", "kill -CONT"]);
    kill(pid, libc::SIGCONT);
    assert!(jvm.is_running());
    let url = jvm.url("/heap/1");
    let at = jvm.pid().to_string();
    let at = ["jvm", "heap-per-request", &at, "--load", &url];
    bench
        .run(&[&at[..], &["--requests", "0"]].concat())
        .expect(2)
        .says(&["--requests"]);
    let hidden = PlantedJvm::start(&java(), &["-XX:-UsePerfData", "-Xmx256m"], How::Stay, None);
    let ended = ask(&bench, &hidden, "/heap/5000", &["--requests", "2000"]);
    let document = document(&ended);
    assert_eq!(ended.code, Some(0), "{document:#}");
    let because = document["methods"][1]["because"].as_str().unwrap();
    assert!(because.contains("UsePerfData"), "{because}");
}

/// Starts a measurement that would take for ever, does this to the JVM after its first block, and waits for the end.
fn disturbed(signal: i32) -> (PlantedJvm, Ended) {
    let bench = Bench::new();
    let jvm = PlantedJvm::start(&java(), &["-Xmx256m"], How::Stay, None);
    let (pid, url) = (jvm.pid().to_string(), jvm.url("/heap/100"));
    let words = [
        "jvm",
        "heap-per-request",
        &pid,
        "--load",
        &url,
        "--requests",
        "3000",
        "--rate",
        "3000/s",
        "--blocks",
        "1000",
    ];
    let mut tool = bench.start(&words);
    let mut lines = BufReader::new(tool.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("block 1") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    kill(jvm.pid().cast_signed(), signal);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut lines, &mut rest).unwrap();
    let mut ended = Ended::from(tool.wait_with_output().unwrap());
    ended.stderr = rest;
    assert!(!Path::new(&format!("/tmp/.attach_pid{pid}")).exists());
    let trigger = jvm.folder().join(format!(".attach_pid{pid}"));
    assert!(!trigger.exists());
    (jvm, ended)
}

#[test]
fn a_jvm_that_dies_or_stops_in_the_middle_ends_the_measurement() {
    let (_, ended) = disturbed(libc::SIGKILL);
    ended.expect(4).says(&["ended"]);
    let (jvm, ended) = disturbed(libc::SIGSTOP);
    ended.expect(4).says(&["stopped", "kill -CONT"]);
    kill(jvm.pid().cast_signed(), libc::SIGCONT);
}
