//! Ladders as a whole: the built-in one in its lab, and services that run already, that do not start, or that start late.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rungwise_experiment::design::Part;
use rungwise_experiment::scenario::{Scenario, builtin};
use rungwise_testkit::UnitGroup;
use serde_json::Value;

use crate::run::{Bench, Ended, Machine, binary, kill};
use crate::tune::{SMALL, assert_valid, climbed, wait_for_pairs};

/// The row of rung `id`.
#[track_caller]
fn row<'r>(report: &'r Value, id: &str) -> &'r Value {
    let rows = report["rungs"].as_array().unwrap();
    let found = rows.iter().find(|row| row["id"] == id);
    found.unwrap_or_else(|| panic!("no rung {id}: {rows:#?}"))
}

/// Both halves of every pair of a rung that was measured.
#[track_caller]
fn halves(row: &Value) -> impl Iterator<Item = &Value> {
    let pairs = row["pairs"].as_array().unwrap();
    assert!(!pairs.is_empty(), "not measured: {row:#}");
    pairs.iter().flat_map(|pair| [&pair["a"], &pair["b"]])
}

/// What SMALL says before its switches, with another command, and what it says of traffic and pairs; rungs are to follow.
fn small_with(command: &str, switches: &str) -> String {
    let from = SMALL.find("command = ").unwrap();
    let end = SMALL[from..].find('\n').unwrap() + from;
    let (head, _) = SMALL.split_once("[baseline]").unwrap();
    let head = head.replace(&SMALL[from..end], &format!("command = {command}"));
    head.replace(
        "\"sock.reuseport\" = { on = [\"--reuseport\"] }\n",
        switches,
    )
}

#[test]
fn a_grid_is_measured_cell_by_cell_and_shown_as_a_map() {
    let bench = Bench::new();
    let (head, _) = SMALL.split_once("[[rungs]]").unwrap();
    let grid = r#"
[[rungs]]
id = "both"
[[rungs.axes]]
title = "sockets"
points = [{ label = "one" }, { label = "each", set = { "sock.reuseport" = "on" } }]
[[rungs.axes]]
title = "GRO"
points = [{ label = "on", set = { "net.gro" = "on" } }, { label = "off", set = { "net.gro" = "off" } }]
"#;
    let scenario = bench.write("grid.toml", &format!("{head}{grid}"));
    let plan = bench.run(&["tune", scenario.to_str().unwrap(), "--dry-run"]);
    for words in ["4 cells of grids", "grid of 4 cells: 32 runs", "axis GRO"] {
        assert!(plan.stdout.contains(words), "{words}\n{}", plan.stdout);
    }
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    let grid = &row(&report, "both")["grid"];
    let cells = grid["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    assert_eq!(cells[0]["is_before"], true);
    for cell in &cells[1..] {
        // On a busy machine a cell may have no pair that counts, and then it has the reason.
        let measured = cell["pairs"].as_u64() == Some(4) && !cell["change"].is_null();
        assert!(measured || cell["why_not"].is_string(), "{cell:#}");
    }
    let folder = bench.run_folder();
    let pairs = std::fs::read_to_string(folder.join("pairs.jsonl")).unwrap();
    for id in ["both@0,1", "both@1,0", "both@1,1"] {
        assert!(pairs.contains(&format!("\"{id}\"")), "{id}");
    }
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("<figure id=\"grid-1\">"));
}

#[test]
fn the_built_in_ladder_is_climbed_rung_by_rung() {
    let bench = Bench::new();
    let before = Machine::now();
    let ended = bench.run(&["tune", "udp-echo", "--quick", "--format", "json"]);
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    before.assert_unchanged();
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "tune");

    let scenario = Scenario::parse(builtin("udp-echo").unwrap(), "udp-echo").unwrap();
    let mut rows = report["rungs"].as_array().unwrap().iter();
    assert_eq!(halves(rows.next().unwrap()).count() % 2, 0);
    for step in &scenario.rungs {
        // Alone, or as the last of a bundle.
        let bundle = format!("+{}", step.id);
        let tried = |row: &&Value| {
            let id = row["id"].as_str().unwrap();
            id == step.id || id.ends_with(&bundle)
        };
        let row = rows.find(tried);
        let row = row.unwrap_or_else(|| panic!("{} was not tried in its turn", step.id));
        if let Part::Observe { .. } = step.part {
            assert_eq!(row["outcome"], "observed");
            continue;
        }
        for half in halves(row) {
            assert!(half["rate_per_s"].as_f64().unwrap() > 0.0, "{half:#}");
        }
    }
    // Nothing that its switches and knobs need is missing.
    for row in report["rungs"].as_array().unwrap() {
        assert_ne!(row["outcome"], "skipped", "{row:#}");
    }
    let page = std::fs::read_to_string(bench.run_folder().join("report.html")).unwrap();
    assert!(page.contains("cannot show a 20-core factor"));
}

#[test]
fn switches_for_latency_and_for_placement_are_turned() {
    let bench = Bench::new();
    let scenario = small_with(
        r#"["{rungwise}", "serve", "udp", "--listen", "{server}:9000", "--workers", "{cpus}", "--reuseport", "--pin"]"#,
        "\"sock.busy_poll\" = { 50us = [\"--busy-poll\", \"50us\"] }\n\"sock.incoming_cpu\" = { on = [\"--incoming-cpu\"] }\n",
    ) + r#"
[[rungs]]
id = "sock.busy_poll"
set = { "sock.busy_poll" = "50us" }

[[rungs]]
id = "sock.incoming_cpu"
set = { "sock.incoming_cpu" = "on" }
"#;
    let scenario = bench.write("switched.toml", &scenario);
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    for id in ["sock.busy_poll", "sock.incoming_cpu"] {
        assert!(halves(row(&report, id)).count() > 0);
    }
}

/// Whether the variants of each pair of a rung took turns.
fn in_turns(row: &Value) -> Vec<bool> {
    let pairs = row["pairs"].as_array().unwrap().iter();
    pairs.map(|pair| pair["in_turns"] == true).collect()
}

#[test]
fn variants_take_turns_where_threads_are_pinned_and_the_change_stays_in_the_lab() {
    let bench = Bench::new();
    let switches =
        "\"sock.pmtudisc\" = { do = [\"--fallback\"] }\n\"sock.busy_poll\" = { 50us = [] }\n";
    let rungs = r#"
[[rungs]]
id = "sock.pmtudisc"
set = { "sock.pmtudisc" = "do" }

[[rungs]]
id = "net.gro"
set = { "net.gro" = "off" }

[[rungs]]
id = "net.rfs"
set = { "net.rfs" = "512" }
"#;
    let serve = |pin: &str| {
        format!(
            r#"["{{rungwise}}", "serve", "udp", "--listen", "{{server}}:9000", "--workers", "{{cpus}}", "--reuseport"{pin}]"#
        )
    };
    let pinned = small_with(&serve(", \"--pin\""), switches) + rungs;
    let free = small_with(&serve(""), switches) + rungs;
    let by_halves = pinned.replace("[experiment]", "[experiment]\nturns = false");
    let before = Machine::now();
    let (_, report) = climbed(&bench, &bench.write("pinned.toml", &pinned));
    for (id, expected) in [
        ("start", true),
        ("sock.pmtudisc", true),
        ("net.gro", true),
        // Its table is that of the whole machine.
        ("net.rfs", false),
    ] {
        let row = row(&report, id);
        for half in halves(row) {
            assert!(half["rate_per_s"].as_f64().unwrap() > 0.0, "{half:#}");
            assert!(half["server_us_per_tx"].as_f64().unwrap() > 0.0, "{half:#}");
        }
        let pairs = in_turns(row);
        assert!(
            !pairs.is_empty() && pairs.iter().all(|turns| *turns == expected),
            "{row:#}"
        );
    }
    for (name, scenario) in [("free.toml", free), ("halves.toml", by_halves)] {
        let (_, report) = climbed(&bench, &bench.write(name, &scenario));
        for row in report["rungs"].as_array().unwrap() {
            assert!(in_turns(row).iter().all(|turns| !turns), "{name}: {row:#}");
        }
    }
    before.assert_unchanged();
}

#[test]
fn a_start_is_tried_again_only_where_the_port_was_still_taken() {
    let bench = Bench::new();
    bench.write(
        "service.sh",
        r#"echo "$3" >> starts
case "$3" in
broken) echo "no such option" >&2; exit 1 ;;
taken) [ "$(grep -c taken starts)" -gt 3 ] || { echo "Address already in use" >&2; exit 1; } ;;
esac
exec "$1" serve udp --listen "$2"
"#,
    );
    let scenario = small_with(
        r#"["sh", "service.sh", "{rungwise}", "{server}:9000"]"#,
        "\"app.broken\" = { on = [\"broken\"] }\n\"app.taken\" = { on = [\"taken\"] }\n",
    ) + r#"
[[rungs]]
id = "app.broken"
set = { "app.broken" = "on" }

[[rungs]]
id = "app.taken"
set = { "app.taken" = "on" }
"#;
    let scenario = bench.write("starts.toml", &scenario);
    let (_, report) = climbed(&bench, &scenario);
    let broken = row(&report, "app.broken");
    assert_eq!(broken["outcome"], "skipped");
    assert!(
        broken["reason"]
            .as_str()
            .unwrap()
            .contains("no such option")
    );
    assert!(halves(row(&report, "app.taken")).count() > 0);
    let starts = std::fs::read_to_string(bench.path("starts")).unwrap();
    assert_eq!(starts.matches("broken").count(), 1, "{starts}");
    assert!(starts.matches("taken").count() > 3, "{starts}");
}

#[test]
fn a_service_whose_command_is_complete_only_with_the_baseline_starts_with_it() {
    let bench = Bench::new();
    // Without the switch it listens elsewhere: 127.0.0.1:7777.
    bench.write("service.sh", "echo \"$*\" >> starts\nexec \"$@\"\n");
    let scenario = small_with(
        r#"["sh", "service.sh", "{rungwise}", "serve", "udp"]"#,
        "\"app.listen\" = { here = [\"--listen\", \"{server}:9000\"] }\n",
    )
    .replace("ready_line = \"ready udp\"", "ready_within = \"2s\"")
        + r#"
[baseline]
set = { "app.listen" = "here", "net.gro" = "on", "net.rp_filter" = "1" }

[[rungs]]
id = "net.rps_cpus"
set = { "net.rps_cpus" = "all" }
"#;
    let scenario = bench.write("complete.toml", &scenario);
    let (_, report) = climbed(&bench, &scenario);
    assert!(halves(row(&report, "net.rps_cpus")).count() > 0);
    let starts = std::fs::read_to_string(bench.path("starts")).unwrap();
    assert!(!starts.is_empty());
    for start in starts.lines() {
        assert!(start.ends_with("--listen 10.77.0.1:9000"), "{starts}");
    }
}

/// A server in a network namespace of its own, with loopback alone, that nobody stops but the test.
struct Server(Child);

impl Server {
    fn start() -> Self {
        let up = "ip link set lo up && exec \"$@\"";
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", up, "sh"])
            .arg(binary())
            .args(["serve", "udp", "--listen", "127.0.0.1:9000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with("ready udp"), "{line}");
        Self(child)
    }

    /// `arguments` run where the server is.
    fn beside(&self, bench: &Bench, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--net", "--target", &self.0.id().to_string()])
            .args(arguments)
            .current_dir(bench.dir.path())
            .env("RUNGWISE_STATE", bench.state())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A ladder of one knob on it, in runs of `measure`.
    fn tune(&self, bench: &Bench, measure: &str) -> Child {
        self.tune_as(bench, measure, &format!("pid = {}", self.0.id()))
    }

    /// The same, where the scenario names it so.
    fn tune_as(&self, bench: &Bench, measure: &str, service: &str) -> Child {
        let (_, rest) = SMALL.split_once("[experiment]").unwrap();
        let (experiment, _) = rest.split_once("[baseline]").unwrap();
        let experiment = experiment.replace("measure = \"50ms\"", measure);
        let text = format!(
            r#"
schema = 1
name = "running"
title = "a server that runs already"
service = {{ {service} }}
topology = {{ kind = "host", device = "lo" }}
workload = {{ kind = "udp", target = "127.0.0.1:9000", sockets = 2, depth = 4 }}

[experiment]{experiment}

[[rungs]]
id = "net.rp_filter"
set = {{ "net.rp_filter" = "2" }}
"#
        );
        let scenario = bench.write("running.toml", &text);
        let tool = binary().to_str().unwrap();
        let scenario = scenario.to_str().unwrap();
        let tune = [tool, "tune", scenario, "--format", "json"];
        self.beside(bench, &tune).spawn().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone, where the test killed it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_service_that_runs_already_is_measured_and_left_alone() {
    let bench = Bench::new();
    let mut server = Server::start();
    let filter = || {
        let read = ["cat", "/proc/sys/net/ipv4/conf/lo/rp_filter"];
        let read = server.beside(&bench, &read).output().unwrap();
        String::from_utf8(read.stdout).unwrap()
    };
    let before = filter();
    let tune = server.tune(&bench, "measure = \"50ms\"");
    expect_measured(tune);
    assert_eq!(filter(), before);
    assert_eq!(server.0.try_wait().unwrap(), None, "it was ended");
}

/// Both comparisons know what the service spent.
fn expect_measured(tune: Child) {
    let ended = Ended::from(tune.wait_with_output().unwrap());
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "tune");
    for id in ["start", "net.rp_filter"] {
        let spent = halves(row(&report, id)).map(|half| half["server_us_per_tx"].as_f64().unwrap());
        assert!(spent.sum::<f64>() > 0.0, "{report:#}");
    }
}

#[test]
fn a_unit_is_measured_with_all_processes_of_its_group() {
    let bench = Bench::new();
    let unit = UnitGroup::new("rungwise-unit").expect("a control group can be made");
    let mut server = Server::start();
    unit.take(server.0.id()).unwrap();
    let service = format!("unit = \"{}\"", unit.name());
    expect_measured(server.tune_as(&bench, "measure = \"50ms\"", &service));
    assert_eq!(server.0.try_wait().unwrap(), None, "it was ended");
    let unknown = server.tune_as(
        &bench,
        "measure = \"50ms\"",
        "unit = \"rungwise-none.service\"",
    );
    Ended::from(unknown.wait_with_output().unwrap())
        .expect(4)
        .says(&["rungwise-none.service", "systemctl status"]);
}

#[test]
fn a_service_that_runs_already_and_dies_under_way_is_asked_for_anew() {
    let bench = Bench::new();
    let server = Server::start();
    let tune = server.tune(&bench, "measure = \"1s\"");
    wait_for_pairs(bench.dir.path(), 1);
    kill(server.0.id().cast_signed(), libc::SIGKILL);
    let pid = format!("process {} ended under load", server.0.id());
    Ended::from(tune.wait_with_output().unwrap())
        .expect(1)
        .says(&[&pid, "pass the pid of the new process"]);
}

#[test]
fn a_resolver_that_only_refuses_is_not_taken_for_a_fast_one() {
    let bench = Bench::new();
    bench.write("queries.txt", "www.example A\n");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    // The service is this process.
    let scenario = format!(
        r#"
schema = 1
name = "refusing"
title = "a resolver that refuses"
service = {{ pid = {} }}
workload = {{ kind = "udp", target = "{}", dns = "queries.txt", sockets = 1, depth = 4 }}
experiment = {{ warmup = "20ms", measure = "50ms", looks = [4], quiet_wait = "100ms", max_discards = 2 }}

[[rungs]]
id = "sec.auditd"
observe = "nothing is tried"
"#,
        std::process::id(),
        socket.local_addr().unwrap()
    );
    let scenario = bench.write("refusing.toml", &scenario);
    let over = AtomicBool::new(false);
    let refuse = || {
        let mut query = [0; 512];
        while !over.load(Ordering::Relaxed) {
            if let Ok((length, from)) = socket.recv_from(&mut query) {
                query[2] |= 0x80;
                query[3] = 5;
                socket.send_to(&query[..length], from).unwrap();
            }
        }
    };
    let (_, report) = std::thread::scope(|scope| {
        scope.spawn(refuse);
        let ended = std::panic::catch_unwind(|| climbed(&bench, &scenario));
        over.store(true, Ordering::Relaxed);
        ended.unwrap()
    });
    assert_eq!(report["aa"]["pairs"], 0, "{}", report["aa"]);
    for half in halves(row(&report, "start")) {
        assert!(half["wrong"].as_f64().unwrap() > 0.9, "{half:#}");
        let why = half["certified"].to_string();
        assert!(why.contains("answered with an error"), "{why}");
    }
}
