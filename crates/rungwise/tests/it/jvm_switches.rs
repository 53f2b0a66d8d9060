//! `tune` on a real JVM: its options as switches, and what a request allocates as the metric.

use std::path::PathBuf;

use rungwise_testkit::compile_planted;
use serde_json::Value;

use crate::run::{Bench, Machine};
use crate::tune::climbed;

/// An array of this length in bytes: its header, and to a multiple of eight.
fn array(length: u64) -> f64 {
    (16 + length).next_multiple_of(8) as f64
}

/// A scenario of the planted server: what comes behind `java`, how it answers, and the rest of the file.
fn write(bench: &Bench, options: &str, how: &str, rest: &str) -> PathBuf {
    let classes = bench.path("classes");
    if !classes.exists() {
        std::fs::create_dir(&classes).unwrap();
        compile_planted(&classes);
    }
    let text = format!(
        r#"schema = 1
name = "planted"
title = "planted allocations"

[service]
command = ["java", {options}"-Xmx256m", "-cp", "{classes}", "Planted", "{how}", "{{server}}:8080"]
ready_within = "30s"

[service.switches]
"app.extra" = {{ on = ["10000"] }}

[workload]
kind = "http"
url = "http://{{server}}:8080/heap/10000"
connections = 4
threads = 1

[experiment]
warmup = "200ms"
measure = "400ms"
looks = [6]
alpha = "20%"
quiet = "100%"
discard_above = "100%"
quiet_wait = "100ms"
max_discards = 40

{rest}"#,
        classes = classes.display(),
    );
    bench.write("planted.toml", &text)
}

fn rung<'r>(report: &'r Value, id: &str) -> &'r Value {
    let rungs = report["rungs"].as_array().unwrap();
    let found = rungs.iter().find(|rung| rung["id"] == id);
    found.unwrap_or_else(|| panic!("no {id}: {report:#}"))
}

#[test]
fn a_planted_allocation_goes_and_options_that_allocate_nothing_are_the_same() {
    let bench = Bench::new();
    let scenario = write(
        &bench,
        "\"-XX:+UseSerialGC\", ",
        "stay",
        r#"
[objective]
minimise = "bytes_per_request"

[baseline]
set = { "app.extra" = "on" }

[[rungs]]
id = "no-extra"
set = { "app.extra" = "off" }

[[rungs]]
id = "collector"
set = { "jvm.gc_choice" = "parallel" }

[[rungs]]
id = "buffers"
set = { "jvm.flags" = "-XX:-ResizeTLAB -XX:TLABSize=64k" }

[[rungs]]
id = "young"
set = { "jvm.xmn" = "1g" }
"#,
    );
    let before = Machine::now();
    let (ended, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    assert_eq!(report["objective"], "bytes_per_request");
    let own = array(10_000);
    let gone = rung(&report, "no-extra");
    assert_eq!(
        gone["outcome"], "kept",
        "{}: {}\n{}\n{gone:#}",
        gone["outcome"], gone["reason"], ended.stderr
    );
    let is = |value: &Value, wanted: f64| {
        let value = value.as_f64().unwrap_or_else(|| panic!("{report:#}"));
        assert!((value / wanted - 1.0).abs() < 0.005, "{value} for {wanted}");
    };
    is(
        &rung(&report, "start")["metrics"]["bytes_per_request"],
        2.0 * own,
    );
    is(&gone["metrics"]["bytes_per_request"], own);
    for id in ["collector", "buffers"] {
        let same = rung(&report, id);
        assert_eq!(same["outcome"], "same", "{same:#}\n{}", ended.stderr);
        is(&same["metrics"]["bytes_per_request"], own);
    }
    // The heap is smaller: the JVM runs with less, and the ladder goes on without that rung.
    let young = rung(&report, "young");
    assert_eq!(young["outcome"], "skipped");
    let why = young["reason"].as_str().unwrap();
    assert!(why.contains("NewSize is") && why.contains("1g"), "{why}");
    let method = report["method"].to_string();
    assert!(
        method.contains(
            "rung collector: java options -XX:+UseParallelGC in place of -XX:+UseSerialGC"
        ),
        "{method}"
    );
    let folder = report["run_dir"].as_str().unwrap();
    let page = bench.run(&["report", folder]).expect(0);
    page.says(&["Heap per request", "B"]);
}

#[test]
fn counts_that_end_with_their_threads_are_no_figure() {
    let bench = Bench::new();
    let rest = r#"
[objective]
minimise = "bytes_per_request"

[[rungs]]
id = "collector"
set = { "jvm.gc_choice" = "parallel" }
"#;
    let scenario = write(&bench, "", "end", rest);
    let text = std::fs::read_to_string(&scenario).unwrap();
    let text = text.replace("max_discards = 40", "max_discards = 1");
    let scenario = bench.write("ends.toml", &text);
    let (_, report) = climbed(&bench, &scenario);
    let why = report["aa"]["reason"].as_str().unwrap();
    assert!(why.contains("threads of the JVM ended"), "{why}");
    let first = &rung(&report, "start")["pairs"][0]["a"];
    let why = &first["unavailable"]["bytes_per_request"];
    assert!(
        why.as_str().unwrap().contains("pool of threads"),
        "{first:#}"
    );
}

#[test]
fn what_is_no_jvm_and_what_its_jdk_refuses_ends_before_the_first_run() {
    let bench = Bench::new();
    let text = r#"schema = 1
name = "no-jvm"
title = "an echo server, which has no heap"
service = { command = ["{rungwise}", "serve", "udp", "--listen", "{server}:9000"] }
workload = { kind = "udp", target = "{server}:9000", sockets = 4 }
objective = { minimise = "bytes_per_request" }
[[rungs]]
id = "net.gro"
set = { "net.gro" = "off" }
"#;
    let scenario = bench.write("no-jvm.toml", text);
    let ended = bench.run(&["tune", scenario.to_str().unwrap()]).expect(4);
    ended.says(&["cannot measure bytes_per_request", "not a JVM"]);
    let rest = r#"
[[rungs]]
id = "cms"
set = { "jvm.gc_choice" = "cms" }

[[rungs]]
id = "default"
set = { "jvm.refproc" = "on" }
"#;
    let scenario = write(&bench, "\"-XX:+UseParallelGC\", ", "stay", rest);
    let scenario = scenario.to_str().unwrap();
    let ended = bench.run(&["tune", scenario]).expect(2);
    ended.says(&[
        "planted.toml:31:27: rungs[0].set",
        "UseConcMarkSweepGC",
        "JDK 17",
    ]);
    let text = std::fs::read_to_string(scenario).unwrap();
    let text = text.replace("\"cms\" }", "\"g1\" }");
    let scenario = bench.write("planted.toml", &text);
    let scenario = scenario.to_str().unwrap();
    let plan = bench.run(&["tune", scenario, "--dry-run"]).expect(0);
    plan.says(&[
        "java options -XX:+UseG1GC in place of -XX:+UseParallelGC",
        "ParallelRefProcEnabled",
    ]);
}
