//! `tune` on real traffic: what a run leaves in its folder, and nothing anywhere else.

use std::path::Path;

use crate::run::{Bench, Ended, Machine, kill};

/// A ladder that is over in seconds: tiny runs, one decision point, every kind of rung.
pub(crate) const SMALL: &str = r#"
schema = 1
name = "small"
title = "a ladder for tests"

[service]
command = ["{rungwise}", "serve", "udp", "--listen", "{server}:9000", "--workers", "{cpus}"]
ready_line = "ready udp"

[service.switches]
"sock.reuseport" = { on = ["--reuseport"] }

[workload]
kind = "udp"
target = "{server}:9000"
sockets = 2
depth = 4

[experiment]
warmup = "20ms"
measure = "50ms"
looks = [4]
quiet_wait = "100ms"
max_discards = 2

[baseline]
set = { "net.gro" = "on", "net.rp_filter" = "1" }

[[rungs]]
id = "net.rps_cpus"
set = { "net.rps_cpus" = "all" }

[[rungs]]
id = "sock.reuseport"
set = { "sock.reuseport" = "on" }
bundle_with = ["net.rps_cpus"]

[[rungs]]
id = "net.rp_filter"
set = { "net.rp_filter" = "0" }

[[rungs]]
id = "sec.auditd"
observe = "belongs to the whole host"
"#;

/// A ladder climbed to its end, whatever the verdict, and its document.
pub(crate) fn climbed(bench: &Bench, scenario: &Path) -> (Ended, serde_json::Value) {
    let ended = bench.run(&["tune", scenario.to_str().unwrap(), "--format", "json"]);
    assert!(
        matches!(ended.code, Some(0 | 1 | 3)),
        "{:?}\n{}",
        ended.code,
        ended.stderr
    );
    let report = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "tune");
    (ended, report)
}

#[test]
fn a_ladder_leaves_a_report_and_nothing_else() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let before = Machine::now();
    let (ended, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    assert_promised(&report);
    assert_eq!(
        i64::from(ended.code.unwrap()),
        report["exit"].as_i64().unwrap()
    );
    let rungs = report["rungs"].as_array().unwrap();
    let ids: Vec<_> = rungs
        .iter()
        .map(|rung| rung["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[0], "start");
    assert!(
        ids.contains(&"net.rps_cpus") && ids.contains(&"sec.auditd"),
        "{ids:?}"
    );
    let audit = rungs
        .iter()
        .find(|rung| rung["id"] == "sec.auditd")
        .unwrap();
    assert_eq!(audit["outcome"], "observed");
    // Also where too few pairs are left for a delta, which counts them too.
    for rung in rungs {
        let pairs = rung["pairs"].as_array().unwrap();
        let left_out = pairs.iter().filter(|pair| !pair["discarded"].is_null());
        assert_eq!(rung["discarded"], left_out.count(), "{rung:#}");
    }

    let folder = bench.run_folder();
    for name in [
        "design.json",
        "manifest.json",
        "measurements.json",
        "pairs.jsonl",
        "report.html",
        "scenario.toml",
    ] {
        assert!(folder.join(name).exists(), "{name}");
    }
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let before = manifest["knobs"]["before"].as_array().unwrap();
    let gro = before
        .iter()
        .find(|knob| knob["knob"] == "net.gro")
        .unwrap();
    assert_eq!(
        (&gro["value"], &gro["side"]),
        (&"on".into(), &"server".into())
    );
    assert!(manifest["knobs"]["after"].as_array().unwrap().len() >= before.len());
    // Not what the baseline set, but what a new namespace has.
    let found = manifest["knobs"]["found"].as_array().unwrap();
    let rp_filter = found
        .iter()
        .find(|held| held["target"] == "/proc/sys/net/ipv4/conf/rw-server/rp_filter");
    let fresh = std::fs::read_to_string("/proc/sys/net/ipv4/conf/default/rp_filter").unwrap();
    assert_eq!(
        rp_filter.map(|held| held["value"].as_str().unwrap()),
        Some(fresh.trim()),
        "{found:?}"
    );
    assert_eq!(manifest["seed"], 1);
    let sums = std::process::Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
        .current_dir(&folder)
        .status()
        .unwrap();
    assert!(sums.success());
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    let (head, _) = page.split_once("id=\"ladder\"").unwrap();
    let main = &head[head.find("<main").unwrap()..];
    assert_eq!(main.matches("a ladder for tests").count(), 1, "{main}");
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    // No journal stays open.
    bench.run(&["knob", "undo"]).expect(0);
}

/// Every field that scripts may rely on is there, if only as null.
#[track_caller]
fn assert_promised(report: &serde_json::Value) {
    let all = |value: &serde_json::Value, fields: &[&str]| {
        for field in fields {
            assert!(value.get(field).is_some(), "{field} in {value:#}");
        }
    };
    let head = ["schema", "tool", "command", "started", "finished", "exit"];
    all(report, &head);
    all(report, &["verdict", "kept", "aa", "rungs"]);
    all(&report["aa"], &["low", "high", "pairs"]);
    let fields = [
        "id",
        "title",
        "outcome",
        "reason",
        "rate_per_s",
        "cpu_us_per_tx",
        "latency_us",
        "delta",
        "reference",
    ];
    for rung in report["rungs"].as_array().unwrap() {
        all(rung, &fields);
        let parts: [(&str, &[&str]); 3] = [
            ("latency_us", &["p50", "p99"]),
            ("delta", &["point", "low", "high", "pairs", "discarded"]),
            ("reference", &["rate_per_s", "source"]),
        ];
        for (field, parts) in parts {
            if !rung[field].is_null() {
                all(&rung[field], parts);
            }
        }
    }
}

/// The cure of a server with one socket and free threads, step by step, and the rules that ask for each. Where others
/// use the CPUs as well, the one socket overflows.
const CURE: [(&str, &[&str]); 3] = [
    (
        "sock.reuseport",
        &["udp-rcvbuf-drop", "udp-shared-socket", "udp-socket-lock"],
    ),
    (
        "sock.reuseport_bpf",
        &["udp-reader-unbound", "udp-reuseport-hash"],
    ),
    (
        "cpu.pin_threads",
        &[
            "udp-reader-unbound",
            "udp-reuseport-hash",
            "udp-thread-remote",
        ],
    ),
];

#[test]
fn a_ladder_finds_its_rungs_in_the_evidence_and_says_which_finding_asked() {
    let bench = Bench::new();
    let before = Machine::now();
    let ended = bench.run(&["tune", "udp-echo-auto", "--quick", "--format", "json"]);
    assert!(
        matches!(ended.code, Some(0 | 1 | 3)),
        "{:?}\n{}",
        ended.code,
        ended.stderr
    );
    before.assert_unchanged();
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "tune");
    let rungs = report["rungs"].as_array().unwrap();
    // Kept or not depends on the machine; what is tried does not: each step of the cure was asked for.
    for (knob, rules) in CURE {
        let tried = |rung: &serde_json::Value| {
            let sets = rung["set"].as_array().unwrap();
            rung["outcome"] != "observed" && sets.iter().any(|set| set[0] == knob)
        };
        let at = rungs.iter().position(tried);
        let at = at.unwrap_or_else(|| panic!("{knob} was not tried: {rungs:#?}"));
        // The rung's own rule; in a bundle, one that came where an earlier change sent the finding away.
        let asked = &rungs[at]["asked"];
        assert!(!asked["sentence"].as_str().unwrap().is_empty(), "{asked}");
        let came = rungs[..at]
            .iter()
            .filter_map(|rung| rung["asked"]["came"].as_array())
            .flatten()
            .map(|came| &came[0]);
        let asking: Vec<_> = came.chain([&asked["rule"]]).collect();
        let known = |rule: &&serde_json::Value| rules.iter().any(|known| *rule == known);
        assert!(asking.iter().any(known), "{knob}: {asking:?}");
    }

    // The evidence is in the folder and says the same again.
    let folder = bench.run_folder();
    let capture = folder.join("look-00.rungwise");
    let judged = bench.run(&["check", capture.to_str().unwrap(), "--format", "json"]);
    let judged: serde_json::Value = serde_json::from_str(&judged.stdout).unwrap();
    let found = judged["findings"].as_array().unwrap();
    // Which rule asked first depends on how the machine shares its CPUs between the workers.
    let first = rungs.iter().find_map(|rung| rung.get("asked")).unwrap();
    assert!(
        found.iter().any(|finding| {
            let speaks = finding["outcome"] == "act" || finding["outcome"] == "watch";
            finding["rule"] == first["rule"] && speaks
        }),
        "{first:#} was not found again: {found:#?}"
    );
    // What the generator reported of itself is in the capture.
    let client = found
        .iter()
        .find(|finding| finding["rule"] == "client-bound")
        .unwrap();
    assert_ne!(client["outcome"], "undecided", "{client:#}");
    let plan = std::fs::read_to_string(folder.join("plan.jsonl")).unwrap();
    assert!(plan.lines().count() >= 2, "{plan}");
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("Why each change was tried"));
}

#[test]
fn the_loopback_ladder_says_what_is_lost() {
    let bench = Bench::new();
    let scenario = bench.write(
        "small.toml",
        &SMALL.replace(
            "[baseline]\nset = { \"net.gro\" = \"on\", \"net.rp_filter\" = \"1\" }",
            "",
        ),
    );
    let ended = bench.run(&[
        "tune",
        scenario.to_str().unwrap(),
        "--loopback",
        "--format",
        "json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    let lost = report["could_not"].to_string();
    assert!(
        lost.contains("loopback") && lost.contains("net.rps_cpus"),
        "{lost}"
    );
}

#[test]
fn a_ladder_is_driven_past_the_network_stack() {
    let bench = Bench::new();
    let by_queues = SMALL
        .replace("sockets = 2", "sockets = 2\naf_xdp = \"native\"")
        .split("[baseline]")
        .next()
        .unwrap()
        .to_owned()
        + "[[rungs]]\nid = \"sock.reuseport\"\nset = { \"sock.reuseport\" = \"on\" }\n";
    let scenario = bench.write("by-queues.toml", &by_queues);
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    assert!(
        report["method"].to_string().contains("by AF_XDP on"),
        "{report:#}"
    );
    let pairs = report["rungs"][1]["pairs"].as_array().unwrap();
    assert!(!pairs.is_empty(), "{report:#}");
    for half in pairs.iter().flat_map(|pair| [&pair["a"], &pair["b"]]) {
        assert!(half["rate_per_s"].as_f64().unwrap() > 0.0, "{half:#}");
    }
}

#[test]
fn a_service_that_forks_is_measured_with_its_children() {
    let bench = Bench::new();
    // A shell that waits, and the server as its child.
    let forking = SMALL
        .replace(
            r#"["{rungwise}", "serve", "udp", "--listen", "{server}:9000", "--workers", "{cpus}"]"#,
            r#"["sh", "-c", "{rungwise} serve udp --listen {server}:9000 --workers {cpus} & wait"]"#,
        )
        .split("[service.switches]")
        .next()
        .unwrap()
        .to_owned()
        + &SMALL[SMALL.find("[workload]").unwrap()..SMALL.find("[baseline]").unwrap()]
        + "[[rungs]]\nid = \"net.gro\"\nset = { \"net.gro\" = \"off\" }\n";
    // A port of its own: over loopback all tests share one machine.
    let scenario = bench.write("forking.toml", &forking.replace("9000", "9017"));
    for place in [&[][..], &["--loopback"]] {
        let arguments = ["tune", scenario.to_str().unwrap(), "--format", "json"];
        let ended = bench.run(&[&arguments, place].concat());
        let report: serde_json::Value = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
        let pairs = report["rungs"][0]["pairs"].as_array().unwrap();
        // A window of 50 ms may be over before a busy machine lets its clocks be read; the shell alone spends nothing in any.
        let spent = |pair: &serde_json::Value| pair["a"]["server_us_per_tx"].as_f64().unwrap();
        assert!(pairs.iter().any(|pair| spent(pair) > 0.0), "{pairs:#?}");
    }
}

#[test]
fn an_interrupted_ladder_is_resumed_to_its_end() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let before = Machine::now();
    let child = bench.start(&["tune", scenario.to_str().unwrap()]);
    wait_for_pairs(bench.dir.path(), 3);
    kill(child.id().cast_signed(), libc::SIGINT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    let ended = ended.expect(130).says(&["--resume"]);
    drop(ended);
    before.assert_unchanged();
    let folder = bench.run_folder();
    let measured = lines(&folder.join("pairs.jsonl"));
    let ended = bench.run(&[
        "tune",
        "--resume",
        folder.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert!(
        matches!(ended.code, Some(0 | 1 | 3)),
        "{:?}\n{}",
        ended.code,
        ended.stderr
    );
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "tune");
    assert!(lines(&folder.join("pairs.jsonl")) > measured);
    before.assert_unchanged();
}

/// A run of `arguments` that is interrupted after its first pair; its folder.
pub(crate) fn interrupted(bench: &Bench, arguments: &[&str]) -> std::path::PathBuf {
    let child = bench.start(arguments);
    wait_for_pairs(bench.dir.path(), 1);
    kill(child.id().cast_signed(), libc::SIGINT);
    Ended::from(child.wait_with_output().unwrap()).expect(130);
    bench.run_folder()
}

#[test]
fn a_resumed_run_keeps_its_lengths_and_its_clock() {
    let bench = Bench::new();
    let long = SMALL.replace("measure = \"50ms\"", "measure = \"2s\"");
    let scenario = bench.write("small.toml", &long);
    let folder = interrupted(&bench, &["tune", scenario.to_str().unwrap(), "--quick"]);
    let ended = bench.run(&[
        "tune",
        "--resume",
        folder.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let method = report["method"].to_string();
    assert!(!method.contains("measured 2000 ms"), "{method}");
    let pairs = report["rungs"][0]["pairs"].as_array().unwrap();
    let began = |pair: &serde_json::Value| {
        let half = |half: &str| pair[half]["at_s"].as_f64().unwrap();
        half("a").min(half("b"))
    };
    assert!(
        pairs
            .windows(2)
            .all(|next| began(&next[0]) < began(&next[1])),
        "the clock started anew"
    );
}

#[test]
fn a_folder_is_not_touched_while_another_instance_is_at_work() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let folder = interrupted(&bench, &["tune", scenario.to_str().unwrap()]);
    // A torn last line, which a run that goes on mends.
    let pairs = folder.join("pairs.jsonl");
    let mut torn = std::fs::read(&pairs).unwrap();
    torn.pop();
    std::fs::write(&pairs, &torn).unwrap();
    let lock = rungwise_host::lock::InstanceLock::acquire(&bench.state()).unwrap();
    bench
        .run(&["tune", "--resume", folder.to_str().unwrap()])
        .expect(4)
        .says(&["another instance is running"]);
    assert_eq!(std::fs::read(&pairs).unwrap(), torn);
    drop(lock);
}

#[test]
fn a_scenario_that_is_not_there_is_reported_once_with_the_nearest_name() {
    let bench = Bench::new();
    bench
        .run(&["tune", "udp-ech"])
        .expect(2)
        .says(&["did you mean 'udp-echo'?"]);
    let ended = bench.run(&["tune", "no-such.toml"]).expect(2);
    assert_eq!(
        ended.stderr.matches("cannot read").count(),
        1,
        "{}",
        ended.stderr
    );
}

#[test]
fn a_run_is_not_resumed_on_another_topology_or_with_another_scenario() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let folder = interrupted(&bench, &["tune", scenario.to_str().unwrap()]);
    let run = folder.to_str().unwrap();
    bench
        .run(&["tune", "--resume", run, "--loopback"])
        .expect(2)
        .says(&["from another machine", "veth", "loopback"]);
    let other = SMALL.replace("\"net.rp_filter\" = \"0\"", "\"net.rp_filter\" = \"2\"");
    std::fs::write(folder.join("scenario.toml"), other).unwrap();
    // As a killed run leaves it: one that ended by itself would name the changed file.
    std::fs::remove_file(folder.join("SHA256SUMS")).unwrap();
    bench
        .run(&["tune", "--resume", run])
        .expect(2)
        .says(&["different experiments"]);
}

#[test]
fn on_a_busy_machine_only_the_cost_is_judged_and_never_around_a_lock() {
    let bench = Bench::new();
    let (ground, _) = SMALL.split_once("[[rungs]]").unwrap();
    let locked = format!(
        "{ground}[[rungs]]\nid = \"locked\"\nset = {{ \"net.gro\" = \"off\" }}\nshared_lock = true\n"
    );
    let free = locked.replace("shared_lock = true\n", "");
    let cost_only = |text: &str| {
        let scenario = bench.write(
            "busy.toml",
            // Not every pair on such a machine can be certified: enough for four that are.
            &text.replace("max_discards = 2", "max_discards = 16"),
        );
        let busy = std::sync::atomic::AtomicBool::new(true);
        let spin = || {
            while busy.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        // Threads of ours are foreign to the tool, and cannot outlive the test.
        let ended = std::thread::scope(|scope| {
            scope.spawn(spin);
            scope.spawn(spin);
            let output = bench
                .command(&["tune", scenario.to_str().unwrap(), "--format", "json"])
                .output();
            busy.store(false, std::sync::atomic::Ordering::Relaxed);
            Ended::from(output.unwrap())
        });
        let report: serde_json::Value = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
        assert_eq!(report["aa"]["pairs"], 0, "{}", report["aa"]);
        let rungs = report["rungs"].as_array().unwrap();
        let rung = rungs.iter().find(|rung| rung["id"] == "locked").unwrap();
        rung["cost_only"].as_bool().unwrap()
    };
    assert!(cost_only(&free));
    assert!(!cost_only(&locked));
}

#[test]
fn a_terminal_that_closes_does_not_end_the_ladder() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let before = Machine::now();
    let mut child = bench.start(&["tune", scenario.to_str().unwrap(), "--format", "json"]);
    drop(child.stderr.take());
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{:?}", ended.code);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "tune");
    before.assert_unchanged();
}

#[test]
fn an_unprivileged_user_gets_namespaces_or_the_reason_why_not() {
    let bench = Bench::new();
    let before = Machine::now();
    let scenario = bench.write("small.toml", SMALL);
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(bench.dir.path(), permissions).unwrap();
    let binary = bench.path("rungwise");
    std::fs::copy(crate::run::binary(), &binary).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&binary)
        .args(["tune", scenario.to_str().unwrap(), "--format", "json"])
        .current_dir(bench.dir.path())
        .env("RUNGWISE_STATE", bench.state())
        .output()
        .unwrap();
    let ended = Ended::from(output);
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    before.assert_unchanged();
    // Queue masks belong to the host's root: skipped with that reason, or everything ran over loopback.
    let lost = report["could_not"].to_string();
    assert!(lost.contains("net.rps_cpus"), "{lost}");
}

#[test]
fn root_without_network_namespaces_gets_loopback_and_the_reason() {
    let bench = Bench::new();
    // A port of its own: over loopback all tests share one machine.
    let scenario = bench.write("small.toml", &SMALL.replace("9000", "9018"));
    let forbid = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$0\" \"$@\"";
    // Root of a user namespace, whose limit is its own.
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", forbid])
        .arg(crate::run::binary())
        .args(["tune", scenario.to_str().unwrap(), "--format", "json"])
        .current_dir(bench.dir.path())
        .env("RUNGWISE_STATE", bench.state())
        .output()
        .unwrap();
    let ended = Ended::from(output);
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    let lost = report["could_not"].to_string();
    assert!(lost.contains("user.max_net_namespaces allows 0"), "{lost}");
}

#[test]
fn a_title_gives_the_terminal_no_orders() {
    let bench = Bench::new();
    let text = SMALL.replace(
        "a ladder for tests",
        "a ladder\\u001b[2J\\u009b31m for tests",
    );
    let scenario = bench.write("small.toml", &text);
    let run = ["tune", scenario.to_str().unwrap()];
    let planned = bench.run(&[&run[..], &["--dry-run"]].concat()).expect(0);
    let child = bench.start(&run);
    wait_for_pairs(bench.dir.path(), 1);
    kill(child.id().cast_signed(), libc::SIGINT);
    let cut = Ended::from(child.wait_with_output().unwrap()).expect(130);
    for said in [&planned.stdout, &cut.stdout, &cut.stderr] {
        assert!(said.contains("for tests"), "{said}");
        assert!(!said.contains(['\u{1b}', '\u{9b}']), "{said:?}");
    }
}

/// Waits until the only run has measured `count` pairs.
pub(crate) fn wait_for_pairs(dir: &Path, count: usize) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    loop {
        let found = std::fs::read_dir(dir.join("runs"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|run| lines(&run.path().join("pairs.jsonl")))
            .max();
        if found >= Some(count) {
            return;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "no {count} pairs within a minute"
        );
        std::thread::yield_now();
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |bytes| bytes.split(|byte| *byte == b'\n').count() - 1)
}

/// Validates a document against its checked-in schema.
pub(crate) fn assert_valid(document: &serde_json::Value, schema: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{schema}.json"));
    let schema = std::fs::read_to_string(&path).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
