//! `capacity gc` from outside: from a load, from a log, what it says of other sizes and of questions that make no sense.

use std::path::Path;

use serde_json::Value;

use crate::run::{Bench, Ended};
use crate::traffic::Serving;
use crate::tune::assert_valid;

fn log(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../gclog")
        .join(name);
    path.to_str().unwrap().to_owned()
}

fn base() -> String {
    log("pairs/serial-base.log.gz")
}

#[track_caller]
fn document(ended: Ended) -> Value {
    let document = serde_json::from_str(&ended.expect(0).stdout).unwrap();
    assert_valid(&document, "capacity-gc");
    document
}

#[track_caller]
fn figure<'a>(figures: &'a Value, quantity: &str) -> &'a Value {
    let all = figures.as_array().unwrap();
    let found = all.iter().find(|figure| figure["quantity"] == quantity);
    found.unwrap_or_else(|| panic!("no {quantity} in {figures:#}"))
}

#[test]
fn half_a_megabyte_five_hundred_times_a_second_fills_fifteen_gigabytes_a_minute() {
    let bench = Bench::new();
    let load = [
        "capacity",
        "gc",
        "--alloc-per-request",
        "0.5MB",
        "--rate",
        "500/s",
        "--eden",
        "5GB",
    ];
    let report =
        document(bench.run(&[&load[..], &["--pause", "40ms", "--format", "json"]].concat()));
    let point = |quantity| &figure(&report["now"], quantity)["estimate"]["point"];
    assert_eq!(point("allocation_bytes_per_min"), 15e9);
    assert_eq!(point("young_interval_s"), 20.0);
    assert_eq!(point("young_per_min"), 3.0);
    assert_eq!(point("pause_share"), 0.002);
    let text = bench.run(&load).expect(0);
    text.says(&[
        "a young collection every 20.0 s, 3.00 per minute",
        "14.0 GiB allocated per minute",
    ]);
    let with = |more: &[&str]| bench.run(&[&load[..], more].concat());
    with(&["--heap", "16GB", "--live", "6GB", "--survivors", "50MB"])
        .expect(0)
        .says(&["old collection interval", "lower bound"]);
    with(&["--heap", "8GB", "--live", "4GB"])
        .expect(2)
        .says(&["do not fit into a heap"]);
}

#[test]
fn a_log_predicts_what_another_size_does_and_all_forms_tell_it() {
    let bench = Bench::new();
    let (base, run) = (base(), |format| {
        let what_if = [
            "--what-if",
            "young=96m",
            "--rate",
            "500/s",
            "--format",
            format,
        ];
        bench.run(&[&["capacity", "gc", "--from", &base()][..], &what_if].concat())
    });
    let report = document(run("json"));
    assert!(report["target"].as_str().unwrap().ends_with(&base));
    assert_eq!(report["layout"]["collector"], "Serial");
    assert_eq!(report["layout"]["young_bytes"], f64::from(48 << 20));
    assert_eq!(
        report["what_if"]["layout"]["eden_bytes"],
        f64::from(48 << 20)
    );
    let twice = &figure(&report["what_if"]["figures"], "young_interval_s")["estimate"];
    let own = figure(&report["now"], "young_interval_s")["measured"]
        .as_f64()
        .unwrap();
    let ratio = twice["point"].as_f64().unwrap() / own;
    assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
    let per_request = report["load"]["bytes_per_request"]["point"]
        .as_f64()
        .unwrap();
    assert!(
        (per_request / 200e3 - 1.0).abs() < 0.05,
        "100 MB/s by 500/s is not {per_request}"
    );
    assert_eq!(report["next"].as_array().unwrap().len(), 3);
    for format in ["text", "markdown", "html"] {
        run(format)
            .expect(0)
            .says(&["young=96m", "promotion", "Model vs. log"]);
    }
}

#[test]
fn a_prediction_stands_beside_what_the_same_model_makes_of_the_log() {
    let bench = Bench::new();
    let ask = |name: &str, format| {
        let what_if = ["--what-if", "rate=x2", "--format", format];
        bench.run(&[&["capacity", "gc", "--from", &log(name)][..], &what_if].concat())
    };
    let tospace = "corpus/own_jdk17-g1-tospace.log";
    let report = document(ask(tospace, "json"));
    let point = |figures: &Value| {
        let point = &figure(figures, "young_interval_s")["estimate"]["point"];
        point.as_f64().unwrap()
    };
    // Twice the load, the same Eden.
    let factor = point(&report["what_if"]["figures"]) / point(&report["now"]);
    assert!((factor - 0.5).abs() < 0.02, "{factor}");
    let scavenge = "corpus/own_jdk8-cms-scavenge-before-remark.log";
    for (name, words) in [
        (
            tospace,
            "according to the model, a young collection every 244 ms instead of 488 ms",
        ),
        (
            scavenge,
            "omitted because the model is off by more than ×1.50 on the log itself: promotion (×2.73)",
        ),
        (
            scavenge,
            "old collection interval: unknown: no room is left between two old collections",
        ),
        (scavenge, "no bound"),
    ] {
        let text = ask(name, "text").expect(0).stdout;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn a_log_of_the_heap_alone_tells_what_follows_from_it() {
    let bench = Bench::new();
    let ask = |what_if: &str| {
        let from = log("corpus/gctoolkit_unified_g1gc_minimal.log.gz");
        let what_if = ["--what-if", what_if, "--format", "json"];
        bench.run(&[&["capacity", "gc", "--from", &from][..], &what_if].concat())
    };
    let report = document(ask("rate=x2"));
    let interval = figure(&report["now"], "young_interval_s");
    let measured = interval["measured"].as_f64().unwrap();
    assert!((measured - 0.0485).abs() < 0.001, "{measured}");
    // 17 GiB a second, by the heap before each collection and after the one before it.
    let allocated = &report["load"]["allocation_bytes_per_s"]["point"];
    let gib = allocated.as_f64().unwrap() / f64::from(1 << 30);
    assert!((gib - 17.1).abs() < 0.1, "{gib}");
    let twice = &figure(&report["what_if"]["figures"], "young_interval_s")["estimate"];
    assert!((twice["point"].as_f64().unwrap() / measured - 0.5).abs() < 0.02);
    let promotion = figure(&report["now"], "promotion_bytes_per_s");
    assert!(promotion["estimate"].is_null());
    assert!(
        promotion["because"]
            .as_str()
            .unwrap()
            .contains("-Xlog:gc*,gc+age=trace")
    );
    ask("tenuring=4")
        .expect(3)
        .says(&["the effect of tenuring=", "-Xlog:gc*,gc+age=trace"]);
}

#[test]
fn questions_that_make_no_sense_say_what_would() {
    let bench = Bench::new();
    let ask =
        |what_if: &str| bench.run(&["capacity", "gc", "--from", &base(), "--what-if", what_if]);
    ask("yuong=3g").expect(2).says(&["did you mean young?"]);
    ask("young=3g")
        .expect(2)
        .says(&["3 GiB does not fit into a heap of 144 MiB"]);
    ask("young=30").expect(2).says(&["unit is missing", "512m"]);
    ask("young=1g,eden=1g").expect(2).says(&["one of them"]);
    ask("heap=64m")
        .expect(2)
        .says(&["stay in use", "old generation of 16 MiB"]);
    ask("rate=800/s").expect(2).says(&["--rate or --requests"]);
    bench.run(&["capacity", "gc"]).expect(2).says(&["--eden"]);
}

#[test]
fn what_a_log_does_not_tell_is_no_mistake_of_who_asks() {
    let bench = Bench::new();
    let ask = |name: &str| bench.run(&["capacity", "gc", "--from", &log(name)]);
    ask("corpus/own_jdk25-genzgc.log.gz")
        .expect(3)
        .says(&["generational ZGC", "allow no prediction"]);
    ask("corpus/seed-cms-remark-before.log")
        .expect(3)
        .says(&["a prediction needs 5"]);
    ask("corpus/damaged_not-a-gc-log.log")
        .expect(4)
        .says(&["line 1 is 'hello'"]);
    // Of collections for other reasons than a full Eden the model knows nothing.
    ask("corpus/own_jdk8-cms-scavenge-before-remark.log")
        .expect(0)
        .says(&["the model does not fit this log", "50 % of Eden"]);
    ask("corpus/jifa_8CMSParser.log")
        .expect(0)
        .says(&["full collections empty it"]);
    ask("corpus/gctoolkit_preunified_cms_defnew_details_defnew.log.gz")
        .expect(0)
        .says(&["-XX:+PrintTenuringDistribution"]);
}

#[test]
fn every_log_of_the_corpus_is_predicted_or_says_why_not() {
    let bench = Bench::new();
    let mut predicted = 0;
    let folder = log("corpus");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let ended = bench.run(&[
            "capacity",
            "gc",
            "--from",
            &format!("{folder}/{name}"),
            "--format",
            "json",
        ]);
        match ended.code {
            Some(0) => {
                document(ended);
                predicted += 1;
            }
            Some(3 | 4) => assert!(
                !ended.stderr.is_empty() && ended.stdout.is_empty(),
                "{name}"
            ),
            code => panic!("{name}: {code:?} {}", ended.stderr),
        }
    }
    assert!(predicted > 50, "{predicted}");
}

#[test]
fn connections_for_large_calls_are_counted_also_after_a_site_has_failed() {
    let bench = Bench::new();
    let asked = [
        "capacity",
        "rpc",
        "--message",
        "500kB",
        "--per-connection",
        "7MB/s",
        "--link",
        "1Gb/s",
        "--target",
        "200/s",
    ];
    let with = |more: &[&str]| bench.run(&[&asked[..], more].concat());
    with(&["--connections", "16"])
        .expect(0)
        .says(&["! barely enough", "used for more than 80 %"]);
    with(&[]).expect(0).says(&[
        "200 /s needs at least 15 connections",
        "the link of a site allows 1.25",
        "80 %",
        "14.0 calls per second",
    ]);
    let ended = with(&[
        "--sites",
        "2",
        "--connections",
        "10",
        "--service-time",
        "150ms",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&ended.expect(1).stdout).unwrap();
    assert_valid(&report, "capacity-rpc");
    let [both, one] = [0, 1].map(|at| &report["plans"][at]);
    assert_eq!(
        (&both["connections"], &one["connections"]),
        (&8.into(), &15.into())
    );
    assert_eq!(one["busy_threads"], 30.0);
    assert_eq!(one["headroom"], 0.7);
    assert_eq!(report["limits"][0]["resource"], "connections");
    with(&["--sites", "2", "--connections", "10"])
        .expect(1)
        .says(&[
            "8 connections per site",
            "15 connections if one site fails",
            "140 /s of 200 /s",
        ]);
    for words in [
        &["--target", "1/s"][..],
        &["--target", "1/s", "--message", "1MB"],
    ] {
        let silent = bench.run(&[&["capacity", "rpc"], words].concat()).expect(2);
        let says = "pass --message and --per-connection, or --from";
        assert!(silent.stderr.contains(says), "{}", silent.stderr);
    }
    for (more, says) in [
        (&["--threads", "5"][..], "--service-time"),
        (&["--connections", "0"], "--connections"),
        (&["--service-time", "150"], "unit is missing"),
    ] {
        let wrong = with(more).expect(2);
        assert!(wrong.stderr.contains(says), "{}", wrong.stderr);
    }
}

#[test]
fn what_a_connection_carries_is_taken_from_a_load_and_doubts_are_said() {
    let bench = Bench::new();
    let server = Serving::spawn(&bench, "tcp", &["--listen", "127.0.0.1:0"]);
    let load = bench.path("load.json");
    let ran = bench.run(&[
        "load",
        "tcp",
        &server.address,
        "--for",
        "300ms",
        "-o",
        load.to_str().unwrap(),
    ]);
    assert!(load.exists(), "{}", ran.stderr);
    let measured: Value = serde_json::from_slice(&std::fs::read(&load).unwrap()).unwrap();
    let of = |change: &dyn Fn(&mut Value)| {
        let mut document = measured.clone();
        document["received"] = 1_000.into();
        document["window_s"] = 10.0.into();
        document["stream"]["sent_bytes"] = 51_200_000.into();
        document["stream"]["received_bytes"] = 102_400_000.into();
        document["stream"]["connections"] = 2.into();
        document["stream"]["reconnects"] = 1.into();
        change(&mut document);
        let file = bench.write("changed.json", &document.to_string());
        let file = file.to_str().unwrap();
        bench.run(&["capacity", "rpc", "--target", "1k/s", "--from", file])
    };
    // 102 KB per reply and 10 MB/s on the one connection that there was: a hundred calls per second.
    of(&|_| ()).expect(0).says(&[
        "needs at least 10 connections",
        "calls under way per connection",
    ]);
    of(&|document| document["offered_per_s"] = 100.0.into())
        .expect(0)
        .says(&["at a fixed rate of 100 per second"]);
    of(&|document| document["stream"]["connections"] = 5.into())
        .expect(0)
        .says(&["the load had 4 connections"]);
    let silent = of(&|document| document["stream"] = Value::Null).expect(3);
    assert!(silent.stderr.contains("load dubbo"), "{}", silent.stderr);
    let log = base();
    let wrong = bench.run(&["capacity", "rpc", "--target", "1/s", "--from", &log]);
    wrong.expect(2);
}
