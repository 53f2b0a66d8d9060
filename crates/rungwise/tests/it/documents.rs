//! Documents stand alone: `rungwise report` draws each of them as its verb did, byte for byte, and refuses what is none.

use serde_json::{Value, json};

use crate::run::Bench;
use crate::tune::{SMALL, climbed};

const FORMATS: [&str; 3] = ["text", "markdown", "html"];

/// A file of the repository.
fn repository(path: &str) -> String {
    format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// The verbs that work on files, on files of the repository.
fn of_files() -> Vec<Vec<String>> {
    let log = |name: &str| repository(&format!("crates/gclog/pairs/{name}.log.gz"));
    let dump = |name: &str| repository(&format!("crates/threaddump/corpus/{name}"));
    let host = |name: &str| repository(&format!("cases/{name}"));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let options = "-Xmx4g -XX:+UseConcMarkSweepGC -XX:MaxPermSize=1g";
    vec![
        words(&["jvm", "gc", &log("g1-base"), "--slo", "20ms"]),
        words(&["check", &log("cms-base")]),
        words(&[
            "jvm",
            "jfr",
            &repository("fuzz/seeds/recording/invented.jfr"),
        ]),
        words(&[
            "profile",
            &repository("crates/stacks/corpus/perf-java-17-kernel-6.18.script"),
        ]),
        words(&[
            "compare",
            &repository("crates/stacks/corpus/perf-java-17-kernel-6.18.script"),
            &repository("fuzz/seeds/profile/two-events.script"),
        ]),
        words(&["jvm", "threads", &dump("jifa_jstack_11_with_deadlocks.log")]),
        words(&["jvm", "flags", "--for", options, "--jdk", "8u181"]),
        words(&["jvm", "flags", "--for", options, "--jdk", "8", "--to", "21"]),
        words(&["check", &host("healthy")]),
        words(&["check", &host("two-node-82599")]),
        words(&["check", &host("conntrack-full-gateway")]),
        words(&[
            "check",
            &host("healthy"),
            &dump("jifa_jstack_11_with_deadlocks.log"),
            &log("g1-base"),
        ]),
        words(&["compare", &log("g1-base"), &log("g1-heap-288m")]),
        words(&["compare", &host("two-node-82599"), &host("healthy")]),
        words(&["capacity", "gc", "--from", &log("g1-base")]),
        words(&["knob", "show", "net.rp_filter"]),
        words(&["explain", "udp-socket-lock"]),
    ]
}

/// A page may show when it was made, to the second: it is made anew where the clock has moved on since its document.
fn same_page(bench: &Bench, verb: &[&str], format: &str) {
    let mut pages = (String::new(), String::new());
    for _ in 0..20 {
        bench.run(&[verb, &["-q", "-o", "doc.json"]].concat());
        let page = bench.run(&[verb, &["-q", "--format", format]].concat());
        let again = bench.run(&["report", "doc.json", "-q", "--format", format]);
        pages = (page.stdout, again.expect(0).stdout);
        assert!(!pages.0.is_empty(), "{verb:?}: {}", page.stderr);
        if pages.0 == pages.1 {
            return;
        }
    }
    assert_eq!(pages.0, pages.1, "{verb:?} as {format}");
}

#[test]
fn every_document_of_files_gives_the_page_that_its_verb_gave() {
    let bench = Bench::new();
    for verb in of_files() {
        let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
        for format in FORMATS {
            same_page(&bench, &verb, format);
        }
        let stored = std::fs::read_to_string(bench.path("doc.json")).unwrap();
        let again = bench.run(&["report", "doc.json", "--format", "json"]);
        assert_eq!(again.expect(0).stdout, stored, "{verb:?}");
        let document: Value = serde_json::from_str(&stored).unwrap();
        assert!(document["document"].is_string(), "{verb:?}");
        assert!(document["written_on"]["kernel"].is_string(), "{verb:?}");
    }
}

#[test]
fn findings_of_a_stored_document_can_be_written_as_sarif() {
    let bench = Bench::new();
    let host = repository("cases/two-node-82599");
    let sarif = bench.run(&["check", &host, "--format", "sarif"]);
    bench.run(&["check", &host, "-o", "doc.json"]);
    let again = bench.run(&["report", "doc.json", "--format", "sarif"]);
    let results = |text: &str| -> Value {
        let mut document: Value = serde_json::from_str(text).unwrap();
        document["runs"][0]["results"].take()
    };
    assert_eq!(results(&again.expect(0).stdout), results(&sarif.stdout));
    bench.run(&["explain", "udp", "--format", "json", "-o", "udp.json"]);
    let none = bench.run(&["report", "udp.json", "--format", "sarif"]);
    none.expect(2).says(&["SARIF", "explain"]);
}

#[test]
fn what_is_no_document_is_refused_in_one_line_with_a_remedy() {
    let bench = Bench::new();
    let host = repository("cases/healthy");
    bench.run(&["check", &host, "-o", "whole.json"]);
    let whole = std::fs::read_to_string(bench.path("whole.json")).unwrap();
    bench.write("cut.json", &whole[..whole.len() / 2]);
    let newer = whole.replacen("\"schema\": 1", "\"schema\": 7", 1);
    bench.write("newer.json", &newer);
    let damaged = whole.replacen("\"window_s\": ", "\"window_s\": \"x\", \"was\": ", 1);
    bench.write("damaged.json", &damaged);
    bench.write(
        "other.json",
        "{\"name\": \"package\", \"version\": \"1.0.0\"}",
    );
    bench.write("text.json", "it is text\n");
    bench.write("empty.json", "");
    let huge = std::fs::File::create(bench.path("huge.json")).unwrap();
    // Sparse: it takes no room.
    huge.set_len(1 << 30).unwrap();
    std::fs::create_dir(bench.path("folder")).unwrap();
    for (file, parts) in [
        ("cut.json", ["truncated", "copy it again"]),
        ("newer.json", ["schema 7", "reads schema 1"]),
        ("damaged.json", ["it is damaged", "run the verb again"]),
        ("other.json", ["no schema version", "--format json"]),
        ("text.json", ["not a JSON object", "--format json"]),
        ("empty.json", ["it is empty", "--format json"]),
        ("huge.json", ["larger than 256 MiB", "name the document"]),
        ("folder", ["no measurements.json", "rungwise runs list"]),
        ("gone.json", ["no such file", "rungwise runs list"]),
    ] {
        let ended = bench.run(&["report", file, "--format", "html"]).expect(2);
        let ended = ended.says(&[file, parts[0], parts[1]]);
        assert_eq!(ended.stderr.lines().count(), 1, "{file}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{file}: {}", ended.stdout);
    }
}

#[test]
fn a_document_written_before_documents_named_their_kind_is_drawn_and_says_what_it_lacks() {
    let bench = Bench::new();
    let host = repository("cases/healthy");
    bench.run(&["check", &host, "-o", "new.json"]);
    let text = std::fs::read_to_string(bench.path("new.json")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let fields = document.as_object_mut().unwrap();
    for field in ["document", "written_on", "readings"] {
        fields.remove(field).unwrap();
    }
    bench.write("old.json", &document.to_string());
    let ended = bench.run(&["report", "old.json"]).expect(0);
    let findings = document["findings"].as_array().unwrap().iter();
    let clear = findings
        .filter(|finding| finding["outcome"] == "clear")
        .count();
    assert!(clear > 50, "{clear}");
    assert!(
        ended.stdout.contains(&format!("{clear} passed")),
        "{}",
        ended.stdout
    );
    ended.says(&["old.json", "lack part of their page", "run the verb again"]);
}

#[test]
fn two_checks_are_worse_where_a_new_finding_asks_to_act() {
    let bench = Bench::new();
    for name in ["healthy", "two-node-82599"] {
        let host = repository(&format!("cases/{name}"));
        bench.run(&["check", &host, "-o", &format!("{name}.json")]);
    }
    let compared = |a: &str, b: &str, more: &[&str]| {
        let (a, b) = (format!("{a}.json"), format!("{b}.json"));
        bench.run(&[&["compare", &a, &b], more].concat())
    };
    let worse = ["--fail-on", "worse"];
    let ended = compared("healthy", "two-node-82599", &worse).expect(1);
    ended.says(&["worse", "udp-socket-lock"]);
    compared("healthy", "two-node-82599", &[]).expect(0);
    compared("two-node-82599", "healthy", &worse)
        .expect(0)
        .says(&["better"]);
    compared("healthy", "healthy", &worse)
        .expect(0)
        .says(&["same"]);
    bench.write("load.json", &load([1000; 12], true));
    let other = compared("healthy", "load", &worse).expect(2);
    other.says(&["of kind check", "of kind load", "same kind"]);
    let hosts = repository("cases/healthy");
    bench
        .run(&["compare", &hosts, &hosts, "--fail-on", "worse"])
        .expect(2);
}

/// A document of `load` with so many replies in each second.
fn load(seconds: [u64; 12], certified: bool) -> String {
    let received: u64 = seconds.iter().sum();
    let quantiles = json!({"p50": 9.0, "p90": 10.0, "p99": 12.0, "p999": 15.0, "max": 20.0});
    let seconds = seconds.iter().enumerate().map(|(at, received)| {
        json!({
            "at_s": at, "sent": received, "received": received, "lost": 0, "p50_us": 9.0, "p99_us": 12.0
        })
    });
    json!({
        "schema": 1, "document": "load", "tool": {"version": "0.1.0"}, "command": ["rungwise"],
        "started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:12Z", "exit": 0,
        "target": "127.0.0.1:9000", "offered_per_s": null, "achieved_per_s": received as f64 / 12.0,
        "window_s": 12.0, "sent": received, "received": received, "lost": 0, "errors": {},
        "latency_us": {"corrected": quantiles, "uncorrected": quantiles},
        "client": {
            "cpu_us_per_tx": 1.0, "saturated": false, "busy": null, "foreign_cpu": 0.0, "certified": certified,
            "reasons": if certified { vec![] } else { vec!["foreign CPU"] }, "late_sends": 0.0, "socket_drops": 0
        },
        "seconds": seconds.collect::<Vec<_>>()
    })
    .to_string()
}

#[test]
fn two_loads_are_worse_by_an_interval_and_never_without_a_certificate() {
    let bench = Bench::new();
    let around = |rate: u64| std::array::from_fn(|second| rate + [0, 7, 3, 12][second % 4]);
    bench.write("fast.json", &load(around(1000), true));
    bench.write("slow.json", &load(around(800), true));
    bench.write("doubt.json", &load(around(800), false));
    let compared = |a: &str, b: &str| bench.run(&["compare", a, b, "--fail-on", "worse"]);
    compared("fast.json", "slow.json")
        .expect(1)
        .says(&["worse", "One run each", "not tested"]);
    compared("slow.json", "fast.json")
        .expect(0)
        .says(&["better"]);
    compared("fast.json", "fast.json").expect(0).says(&["same"]);
    compared("fast.json", "doubt.json")
        .expect(3)
        .says(&["inconclusive", "foreign CPU"]);
    let json = [
        "compare",
        "fast.json",
        "slow.json",
        "--keep",
        "-o",
        "compared.json",
    ];
    bench.run(&json).expect(0);
    let page = bench.run(&["report", "compared.json"]).expect(0);
    page.says(&["Ratios are after over before", "p99.9"]);
}

#[test]
fn two_tunes_are_worse_by_the_runs_of_their_best_configurations() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let (_, mut tune) = climbed(&bench, &scenario);
    // Four pairs are too few for an interval.
    for rung in tune["rungs"].as_array_mut().unwrap() {
        let pairs = rung["pairs"].as_array_mut().unwrap();
        // Nor would it do to lose one because the machine was busy.
        for pair in pairs.iter_mut() {
            pair["discarded"] = Value::Null;
        }
        let more = [pairs.clone(), pairs.clone(), pairs.clone()].concat();
        pairs.extend(more);
    }
    let runs = |tune: &mut Value, change: &dyn Fn(&mut Value)| {
        let pairs = tune["rungs"].as_array_mut().unwrap().iter_mut();
        let pairs = pairs.flat_map(|rung| rung["pairs"].as_array_mut().unwrap());
        for pair in pairs {
            change(&mut pair["a"]);
            change(&mut pair["b"]);
        }
    };
    // Runs of 50 ms scatter by more than a comparison of four could tell.
    let with_rate = |rate: f64| {
        let mut changed = tune.clone();
        let number = std::cell::Cell::new(0_u32);
        runs(&mut changed, &|run| {
            number.set(number.get() + 1);
            run["rate_per_s"] = json!(rate + f64::from(number.get() % 5));
        });
        changed
    };
    bench.write("fast.json", &with_rate(100_000.0).to_string());
    bench.write("slow.json", &with_rate(80_000.0).to_string());
    let mut other = tune.clone();
    other["objective"] = json!("p99_us");
    bench.write("other.json", &other.to_string());
    let compared = |a: &str, b: &str| bench.run(&["compare", a, b, "--fail-on", "worse"]);
    compared("fast.json", "slow.json")
        .expect(1)
        .says(&["worse", "Best vs. best"]);
    compared("slow.json", "fast.json")
        .expect(0)
        .says(&["better"]);
    compared("fast.json", "fast.json").expect(0).says(&["same"]);
    compared("fast.json", "other.json")
        .expect(2)
        .says(&["rate_per_s", "p99_us", "same objective"]);
}
