//! `check` and `compare` on hosts in texts: the report in every form, and what differs between two.

use std::path::{Path, PathBuf};
use std::process::Command;

use rungwise_probes::bundle;

use crate::drawn::{self, PROBE};
use crate::run::{Bench, Ended, binary};
use crate::tune::assert_valid;

/// The server of the reference case, before and after its interrupts were dealt out.
const CONCENTRATED: &str = "two-node-82599";
const SPREAD: &str = "two-node-82599-pinned";

pub(crate) fn host_path(name: &str) -> String {
    let cases = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    cases.join(name).to_str().unwrap().to_owned()
}

fn judged(bench: &Bench, name: &str, format: &str) -> Ended {
    let ended = bench.run(&["check", &host_path(name), "--format", format]);
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    ended
}

fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn on_a_terminal_a_check_is_read_in_one_go() {
    let text = judged(&Bench::new(), CONCENTRATED, "text").stdout;
    assert!(text.lines().count() < 220, "{text}");
    for line in text.lines() {
        // A command is pasted and never cut; without a terminal a line has 100 columns.
        let pasted = line.starts_with("  → rungwise ");
        assert!(pasted || line.chars().count() <= 100, "{line}");
    }
    let sections = [
        "Act (",
        "Could not measure (",
        "Passed (",
        "This host ─",
        "CPUs ─",
    ];
    let places: Vec<_> = sections
        .iter()
        .map(|title| text.find(&format!("\n{title}")))
        .collect();
    assert!(places.iter().all(Option::is_some), "{places:?}");
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_check_keeps_to_its_schema_and_so_does_a_comparison() {
    let bench = Bench::new();
    for name in [CONCENTRATED, SPREAD, "healthy"] {
        assert_valid(&json(&judged(&bench, name, "json")), "check");
    }
    let (before, after) = (host_path(CONCENTRATED), host_path(SPREAD));
    let ended = bench.run(&["compare", &before, &after, "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_valid(&json(&ended), "compare");
}

#[test]
fn a_check_tells_in_numbers_what_its_page_draws() {
    let bench = Bench::new();
    let report = json(&judged(&bench, CONCENTRATED, "json"));
    let html = judged(&bench, CONCENTRATED, "html")
        .stdout
        .replace('\u{202f}', " ");
    let tables = report["tables"].as_array().unwrap();
    let ids: Vec<&str> = tables
        .iter()
        .map(|table| table["id"].as_str().unwrap())
        .collect();
    for id in [
        "load",
        "host",
        "fullness",
        "devices",
        "queues",
        "core-map",
        "loss-ladder",
        "scheduling",
    ] {
        assert!(ids.contains(&id), "{id}: {ids:?}");
    }
    for (place, table) in tables.iter().enumerate() {
        assert!(!ids[..place].contains(&ids[place]), "{ids:?}");
        let columns = table["columns"].as_array().unwrap();
        let mut keys: Vec<&str> = columns
            .iter()
            .map(|column| column["key"].as_str().unwrap())
            .collect();
        keys.sort_unstable();
        for row in table["rows"].as_array().unwrap() {
            let row = row.as_object().unwrap();
            let mut named: Vec<&str> = row.keys().map(String::as_str).collect();
            named.sort_unstable();
            assert_eq!(named, keys, "{table:#}");
            for column in columns {
                let (value, unit) = (&row[column["key"].as_str().unwrap()], &column["unit"]);
                // Words are of the unit text; a number says what it is measured in, here or in its row.
                assert!(
                    !value.is_number()
                        || unit != "text" && (!unit.is_null() || !row["unit"].is_null())
                );
                assert!(!value.is_string() || unit == "text", "{column}: {value}");
                if let Some(text) = value.as_str() {
                    let shown = text
                        .replace('&', "&amp;")
                        .replace('<', "&lt;")
                        .replace('>', "&gt;");
                    assert!(
                        ids[place] == "load" || html.contains(&shown) || column["key"] == "unit",
                        "{text}"
                    );
                }
            }
        }
    }
    let of = |id: &str| &tables[ids.iter().position(|known| *known == id).unwrap()];
    let map = of("core-map")["rows"].as_array().unwrap();
    assert_eq!(map.len(), 20);
    let net_rx = |node: f64| -> f64 {
        let rows = map.iter().filter(|row| row["node"] == node);
        rows.filter_map(|row| row["net_rx"].as_f64()).sum()
    };
    // The story of this host: node 0 takes it all.
    assert!(net_rx(0.0) > 0.99 && net_rx(1.0) < 0.01, "{map:#?}");
    let ladder = of("loss-ladder")["rows"].as_array().unwrap();
    assert!(
        ladder.iter().any(|row| row["title"] == "Driver ring"),
        "{ladder:#?}"
    );
    for row in ladder {
        let known = ["none", "lost"].contains(&row["state"].as_str().unwrap());
        assert_eq!(row["lost_per_s"].is_number(), known, "{row}");
    }
}

#[test]
fn a_check_of_before_it_had_tables_is_still_planned_from() {
    let bench = Bench::new();
    let mut report = json(&judged(&bench, CONCENTRATED, "json"));
    let plan = |report: &serde_json::Value| {
        let path = bench.write("check.json", &report.to_string());
        let plan = bench.run(&[
            "knob",
            "plan",
            "--from",
            path.to_str().unwrap(),
            "--format",
            "json",
        ]);
        (plan.code, plan.stderr)
    };
    let planned = plan(&report);
    assert!(report.as_object_mut().unwrap().remove("tables").is_some());
    assert_valid(&report, "check");
    assert_eq!(plan(&report), planned);
}

#[test]
fn sarif_is_wholly_as_its_standard_models_it() {
    let bench = Bench::new();
    let dump = crate::threads::dump(crate::threads::OWN);
    for target in [host_path(CONCENTRATED), host_path("healthy"), dump] {
        let ended = bench.run(&["check", &target, "--format", "sarif"]);
        let document = json(&ended);
        // The model is made of the standard's schema: what it does not know is lost on the way, what is no value is an error.
        let model: serde_sarif::sarif::Sarif = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(serde_json::to_value(model).unwrap(), document, "{target}");
    }
}

#[test]
fn sarif_names_each_rule_with_its_page() {
    let bench = Bench::new();
    let sarif = json(&judged(&bench, CONCENTRATED, "sarif"));
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        let page = rule["help"]["markdown"].as_str().unwrap();
        assert!(page.contains("What to do"), "{page}");
        let level = result["level"].as_str().unwrap();
        assert!(["error", "warning", "note"].contains(&level), "{level}");
        // What GitHub asks for, beside what SARIF 2.1.0 does.
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(!uri.is_empty() && !uri.contains([' ', '*']), "{uri}");
        assert_eq!(place["region"]["startLine"], 1);
        assert!(result["partialFingerprints"].is_object());
        assert!(result["message"]["text"].is_string());
        let subject = &result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"];
        assert!(subject.as_str().is_some_and(|name| !name.is_empty()));
    }
}

#[test]
fn only_a_check_is_written_as_sarif() {
    let ended = Bench::new().run(&["knob", "list", "--format", "sarif"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("rungwise check"), "{}", ended.stderr);
}

#[test]
fn a_host_does_not_differ_from_itself() {
    let host = host_path(CONCENTRATED);
    let ended = Bench::new().run(&["compare", &host, &host, "--format", "json"]);
    let report = json(&ended);
    assert_eq!(report["metrics"], serde_json::json!([]));
    assert_eq!(report["findings"], serde_json::json!([]));
    assert!(
        report["sentence"]
            .as_str()
            .unwrap()
            .starts_with("no setting differs")
    );
}

#[test]
fn a_comparison_names_what_was_turned_and_who_cares() {
    let (before, after) = (host_path(CONCENTRATED), host_path(SPREAD));
    let ended = Bench::new().run(&["compare", &before, &after, "--format", "json"]);
    let report = json(&ended);
    let metrics = report["metrics"].as_array().unwrap();
    let affinity: Vec<_> = metrics
        .iter()
        .filter(|metric| metric["name"] == "irq.affinity")
        .collect();
    assert!(!affinity.is_empty(), "{report:#}");
    for metric in affinity {
        assert_eq!(metric["verdict"], "differs");
        let rules = metric["rules"].as_array().unwrap();
        assert!(rules.iter().any(|rule| rule == "irq-one-node"), "{metric}");
    }
    let findings = report["findings"].as_array().unwrap();
    let cured = findings.iter().any(|finding| {
        let clear = |side: &str| finding[side] == "clear";
        finding["rule"] == "irq-one-node" && !clear("before") && clear("after")
    });
    assert!(cured, "{findings:#?}");
}

#[test]
fn the_page_of_a_check_is_whole_and_fits_a_wide_and_a_narrow_window() {
    let bench = Bench::new();
    let html = judged(&bench, CONCENTRATED, "html").stdout;
    for outside in ["<script", "src=\"http", "href=\"http", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    let page = bench.write(
        "probed.html",
        &html.replace("</body>", &format!("{PROBE}</body>")),
    );
    for width in [1600, 500] {
        let seen = drawn::seen(&bench, &page, width);
        assert_eq!(seen["wide"], 0, "{width} px: {seen}");
        assert_eq!(seen["scroll"], false, "{width} px: {seen}");
    }
}

/// What `client-bound` says of a host beside this report.
fn of_the_client(bench: &Bench, report: &Path) -> serde_json::Value {
    let host = host_path("healthy");
    let load = report.to_str().unwrap();
    let ended = bench.run(&["check", &host, "--load", load, "--format", "json"]);
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("2026-01-02T03:04:05Z"),
        "when the load ran is unknown: {}",
        ended.stderr
    );
    let report = json(&ended);
    assert_valid(&report, "check");
    let findings = report["findings"].as_array().unwrap();
    let mut ours = findings
        .iter()
        .filter(|finding| finding["rule"] == "client-bound");
    let finding = ours.next().unwrap().clone();
    assert!(ours.next().is_none());
    finding
}

/// A load report whose generator was busy for this share of its window, beside a service with room.
fn load_report(bench: &Bench, name: &str, busy: f64) -> PathBuf {
    let quantiles = r#"{"p50":80.0,"p90":90.0,"p99":120.0,"p999":200.0,"max":400.0}"#;
    let saturated = busy >= 0.95;
    let reasons = if saturated {
        r#"["it was full"]"#
    } else {
        "[]"
    };
    bench.write(
        name,
        &format!(
            r#"{{"schema":1,"tool":{{"version":"0.1.0"}},"command":["rungwise","load","udp"],"started":"2026-01-02T03:04:05Z",
            "finished":"2026-01-02T03:04:16Z","exit":0,"target":"10.0.0.1:9000","offered_per_s":null,"achieved_per_s":90000.0,
            "window_s":10.0,"sent":900000,"received":900000,"lost":0,"errors":{{}},
            "latency_us":{{"corrected":{quantiles},"uncorrected":{quantiles}}},
            "client":{{"cpu_us_per_tx":10.0,"busy":{busy},"saturated":{saturated},"server_busy":0.3,"shared_idle":0.4,
            "foreign_cpu":0.01,"certified":{},"reasons":{reasons},"late_sends":0.0,"starved":false,"socket_drops":0}},
            "seconds":[]}}"#,
            !saturated
        ),
    )
}

#[test]
fn with_the_report_of_the_load_a_check_says_whose_limit_was_measured() {
    let bench = Bench::new();
    let full = of_the_client(&bench, &load_report(&bench, "full.json", 0.99));
    assert_eq!(full["outcome"], "watch");
    assert_eq!(full["confidence"], "high");
    let sentence = full["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("its threads never waited (99 % of the window)"),
        "{sentence}"
    );
    let lines = full["evidence"].as_array().unwrap();
    assert_eq!(lines[0]["source"], "report of the load generator");
    let free = of_the_client(&bench, &load_report(&bench, "free.json", 0.5));
    assert_eq!(free["outcome"], "clear");
}

/// What wrk2 prints of 1,000 requests, of which the last 300 took up to `slowest` ms.
fn wrk2(slowest: &str) -> String {
    format!(
        "Running 10s test @ http://127.0.0.1:8080/\n  Detailed Percentile spectrum:\n\
         \x20      Value   Percentile   TotalCount 1/(1-Percentile)\n\n\
         \x20      0.210     0.000000            1         1.00\n\
         \x20      0.430     0.500000          500         2.00\n\
         \x20      0.980     0.700000          700         3.33\n\
         \x20     {slowest}     0.750000          760         4.00\n\
         \x20     {slowest}     1.000000         1000          inf\n\
         #[Mean    =        0.000, StdDeviation   =        0.000]\n\
         #[Max     =        0.000, Total count    =         1000]\n\
         Requests/sec:    100.00\n"
    )
}

#[test]
fn with_the_latencies_of_a_load_a_check_sees_delayed_acknowledgements() {
    let bench = Bench::new();
    let host = host_path("healthy");
    let judged_with = |slowest: &str| {
        let load = bench.write("load.txt", &wrk2(slowest));
        let load = load.to_str().unwrap();
        let ended = bench.run(&["check", &host, "--load", load, "--format", "json"]);
        assert!(
            ended.stderr.contains("does not record when"),
            "{}",
            ended.stderr
        );
        let report = json(&ended);
        assert_valid(&report, "check");
        let findings = report["findings"].as_array().unwrap();
        let ours = findings
            .iter()
            .find(|finding| finding["rule"] == "tcp-nagle-40ms");
        ours.unwrap().clone()
    };
    let heap = judged_with("43.999");
    assert_eq!(heap["outcome"], "act", "{heap:#}");
    assert_eq!(heap["knobs"][0]["id"], "tcp.nodelay", "{heap:#}");
    let line = heap["evidence"][0]["line"].as_str().unwrap();
    let rows = "of 1000 requests 700 within 0.980 ms, 1000 within 43.999 ms";
    assert!(line.starts_with(rows), "{line}");
    let none = judged_with("1.250");
    assert_eq!(none["outcome"], "clear", "{none:#}");

    // Microseconds look alike, so nothing is guessed.
    let bare = wrk2("43.999").replace("  Detailed Percentile spectrum:\n", "");
    let bare = bench.write("bare.txt", &bare);
    let bare = bare.to_str().unwrap();
    bench
        .run(&["check", &host, "--load", bare])
        .expect(2)
        .says(&["cannot read the table of percentiles in", "--load-unit ms"]);
    let ended = bench.run(&["check", &host, "--load", bare, "--load-unit", "us"]);
    assert!(
        !ended.stdout.contains("in a heap at 40"),
        "{}",
        ended.stdout
    );
}

#[test]
fn what_is_said_of_a_host_is_refused_beside_a_log_of_a_jvm() {
    let bench = Bench::new();
    let log = bench.write(
        "gc.log",
        "[0.5s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.2ms\n",
    );
    let dump = crate::threads::dump(crate::threads::OWN);
    let load = load_report(&bench, "load.json", 0.5);
    let (log, dump, load) = (log.to_str().unwrap(), &*dump, load.to_str().unwrap());
    for (target, kind) in [(log, "a GC log"), (dump, "thread dumps")] {
        for (option, given) in [("--load", load), ("--dumps", dump)] {
            let ended = bench.run(&["check", target, option, given]).expect(2);
            let said = format!("with {option}: it is {kind}");
            assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        }
        // And these are refused by the command line itself.
        for options in [["--pid", "1"], ["--for", "1s"]] {
            let ended = bench.run(&[&["check", target], &options[..]].concat());
            assert_eq!(ended.code, Some(2), "{}", ended.stderr);
            assert!(ended.stderr.contains(options[0]), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_file_that_is_no_load_report_is_refused_before_the_capture() {
    let bench = Bench::new();
    let checked = bench.write("check.json", r#"{"schema":1,"findings":[]}"#);
    let cut = bench.write("cut.json", r#"{"schema":1,"target":"#);
    let capture = host_path("guest-2cpu-udp") + "/host.rungwise";
    let nowhere = bench.path("nowhere.json");
    for (file, why) in [
        (checked.to_str().unwrap(), "it is the report of a check"),
        (cut.to_str().unwrap(), "it is not a JSON document"),
        (&capture, "it is a capture"),
        (nowhere.to_str().unwrap(), "there is no such file"),
        (bench.dir.path().to_str().unwrap(), "it is a folder"),
    ] {
        let ended = bench.run(&["check", "--load", file]).expect(2);
        let said = &ended.stderr;
        assert!(said.contains(why), "{said}");
        assert!(said.contains("rungwise load udp"), "{said}");
        assert!(!said.contains("sampling"), "{said}");
    }
}

#[test]
fn who_keeps_all_cpus_busy_is_named_only_where_it_is_known() {
    let busy = Bench::new().run(&["check", &host_path("guest-2cpu-busy")]);
    let head = busy.stdout.replace('\n', " ");
    assert!(head.contains("All CPUs saturated: 99.7 %"), "{head}");
    assert!(
        head.contains("many small or short-lived processes"),
        "{head}"
    );
    assert!(!head.contains("(0.00 CPUs)"), "{head}");
    let served = Bench::new().run(&["check", &host_path("guest-2cpu-udp")]);
    let head = served.stdout.replace('\n', " ");
    assert!(
        head.contains("rungwise 26930 (0.50 CPUs)") && head.contains("the rest by"),
        "{head}"
    );
}

#[test]
fn a_capture_that_saw_little_is_not_called_good() {
    let bench = Bench::new();
    let mut capture = bundle::read(Path::new(&host_path("guest-2cpu-idle"))).unwrap();
    // One sample: no rate is known.
    capture.moments.truncate(1);
    let file = bench.path("blind.rungwise");
    std::fs::write(&file, bundle::pack(&capture).unwrap()).unwrap();
    let text = bench.run(&["check", file.to_str().unwrap()]).stdout;
    assert!(
        text.starts_with("? incomplete: nothing found, but not measured: "),
        "{text}"
    );
    assert!(!text.contains("nothing to act on"), "{text}");
}

#[test]
fn a_guest_with_nothing_to_do_gets_the_green_line_as_root() {
    let bench = Bench::new();
    let host = host_path("guest-2cpu-root");
    let text = bench.run(&["check", &host]).expect(0).stdout;
    let head = text.replace('\n', " ");
    assert!(head.starts_with("✓ nothing to act on: "), "{text}");
    assert!(
        head.contains(
            " rules found nothing, and every resource was measured; nearest to its limit: "
        ),
        "{text}"
    );
    let report = json(&bench.run(&["check", &host, "--format", "json"]).expect(0));
    assert_eq!(report["standing"], "healthy");
    let resources = report["resources"].as_array().unwrap();
    let cells = resources.iter().flat_map(|row| {
        ["utilisation", "saturation", "errors"].map(|name| (&row["id"], &row[name]["level"]))
    });
    for (row, level) in cells.filter(|(_, level)| !level.is_null()) {
        assert!(
            ["low", "none"].contains(&level.as_str().unwrap()),
            "{row}: {level}"
        );
    }
}

#[test]
fn without_pressure_information_the_run_queue_shows_that_tasks_wait() {
    let bench = Bench::new();
    let report = json(&judged(&bench, "no-pressure", "json"));
    let row = |id: &str| {
        let rows = report["resources"].as_array().unwrap();
        rows.iter().find(|row| row["id"] == id).unwrap().clone()
    };
    let cpus = row("cpus");
    assert_eq!(cpus["saturation"]["level"], "high", "{cpus}");
    let note = cpus["saturation"]["note"].as_str().unwrap();
    assert!(note.starts_with("cpu.run_queue: "), "{note}");
    // Nothing else answers for these two.
    for id in ["memory", "disks"] {
        assert_eq!(row(id)["saturation"]["level"], "unseen", "{id}");
    }
}

#[test]
fn a_gain_is_estimated_from_the_stage_of_the_reference_case_that_a_host_is_at() {
    let bench = Bench::new();
    for (name, gain) in [
        (CONCENTRATED, "×1.00 to ×9.40;"),
        ("two-node-82599-steered", "×1.00 to ×149;"),
    ] {
        let text = judged(&bench, name, "text").stdout;
        assert!(text.contains(gain), "{name}: {text}");
    }
}

#[test]
fn a_capture_may_come_through_a_pipe_and_a_log_says_by_what_it_may() {
    let bench = Bench::new();
    let piped = |file: &str| {
        let script = format!(
            "cat {file} | {} check - --fail-on never",
            binary().display()
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, text) = piped(&(host_path("guest-2cpu-idle") + "/host.rungwise"));
    // Recorded before limits of control groups were read.
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("? incomplete: nothing found"), "{text}");
    let log = bench.write(
        "gc.log",
        "[0.1s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.1ms\n",
    );
    let (code, text) = piped(log.to_str().unwrap());
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("rungwise jvm gc -"), "{text}");
}
