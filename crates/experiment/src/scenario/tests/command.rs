//! Programs that load the service, as a scenario names them.

use super::*;
use crate::scenario::command::{words, writes_output};
use crate::stage::Changes;

const COMMAND: &str = r#"schema = 1
name = "mine"
title = "my server"
service = { command = ["./server"] }
workload = { kind = "command", target = "{server}:80", command = ["wrk", "-c{connections}", "-d{seconds}s", "http://{target}/"], reader = "wrk" }
[[rungs]]
id = "net.gro"
set = { "net.gro" = "off" }
"#;

fn command_with(old: &str, new: &str) -> String {
    let text = COMMAND.replacen(old, new, 1);
    assert_ne!(text, COMMAND, "{old}");
    text
}

#[test]
fn a_program_gets_where_for_how_long_and_by_how_many() {
    let scenario = parse(COMMAND).unwrap();
    assert_eq!(scenario.measure, Duration::from_secs(2));
    assert_eq!(scenario.warmup, Duration::ZERO);
    let changes = Changes::from(BTreeMap::from([("connections".to_owned(), 7.into())]));
    let Ok(Parameters::Command(program)) = changes.applied(&scenario.workload) else {
        panic!("a program");
    };
    let places = resolve::sample_places("192.0.2.1");
    let target = "192.0.2.1:80".parse().unwrap();
    let filled = words(&program, &places, target, 2.0, "/tmp/out");
    assert_eq!(
        filled.unwrap(),
        ["wrk", "-c7", "-d2s", "http://192.0.2.1:80/"]
    );
    assert!(!writes_output(&program));
}

#[test]
fn what_a_program_does_not_report_cannot_decide() {
    let objective =
        |line: &str| command_with("[[rungs]]", &format!("[objective]\n{line}\n[[rungs]]"));
    for (line, says) in [
        ("minimise = \"p99.99\"", "does not report 'p99.99'"),
        ("maximise = \"p99\"", "use minimise = \"p99\""),
        ("minimise = \"rate\"", "use maximise = \"rate\""),
        ("minimise = \"errors\"", "make it a guard"),
        ("guards = [\"loss <= 1%\"]", "'loss' cannot be a guard"),
        ("maximise = \"rat\"", "did you mean 'rate'?"),
        ("guards = [\"jobs < 5\"]", "'jobs' cannot be a guard"),
    ] {
        let message = problem(&objective(line));
        assert!(message.contains(says), "{line}: {message}");
    }
    let scenario = parse(&objective(
        "minimise = \"server.cpu_us_per_tx\"\nguards = [\"max < 1s\"]",
    ));
    let judging = scenario.unwrap().judging;
    assert_eq!(
        judging.objective,
        Objective::minimise("server.cpu_us_per_tx")
    );
    let guard = Guard::Other {
        name: "max".to_owned(),
        at_most: 1e6,
    };
    assert_eq!(judging.guards, [guard]);
}

#[test]
fn a_control_is_a_range_of_a_metric_that_is_reported() {
    let controls = |line: &str| {
        command_with(
            "[[rungs]]",
            &format!("[experiment.controls]\n{line}\n[[rungs]]"),
        )
    };
    for (line, says) in [
        ("jobs = \"1..2\"", "does not report 'jobs'"),
        ("errors = \"0..1\"", "make it a guard"),
        ("rate = \"1..2\"", "decides about changes"),
        ("max = \"100\"", "write max = \"0.9..1.1\""),
        ("max = \"a..b\"", "does not start with a number"),
        ("max = \"2ms..1ms\"", "is empty"),
        ("p99 = \"1..2\"", "the unit is missing"),
    ] {
        let message = problem(&controls(line));
        assert!(
            message.contains("experiment.controls.") && message.contains(says),
            "{line}: {message}"
        );
    }
    let judging = parse(&controls("p99 = \"1ms..2 ms\"")).unwrap().judging;
    let control = Control {
        name: "p99".to_owned(),
        from: 1_000.0,
        to: 2_000.0,
    };
    assert_eq!(judging.controls, [control]);
}

#[test]
fn a_program_that_cannot_be_read_is_refused_at_its_place() {
    for (old, new, says) in [
        (
            "reader = \"wrk\"",
            "reader = \"wrrk\"",
            "unknown reader 'wrrk'; did you mean 'wrk'?",
        ),
        (", reader = \"wrk\"", "", "output format unknown"),
        ("{seconds}", "{rate}", "set workload.rate"),
        ("{seconds}", "{minutes}", "unknown placeholder '{minutes}'"),
        (
            "command = [\"wrk\", ",
            "command = [\"\", ",
            "the program is missing",
        ),
        (
            "reader = \"wrk\"",
            "metrics = { jobs = { } }",
            "say where the number is",
        ),
        (
            "reader = \"wrk\"",
            "metrics = { jobs = { pointer = \"x\" } }",
            "is not a JSON pointer",
        ),
        (
            "reader = \"wrk\"",
            "metrics = { jobs = { pattern = \"x\" } }",
            "has no group",
        ),
        (
            "reader = \"wrk\"",
            "metrics = { jobs = { pattern = \"(x)\" } }",
            "this workload does not report",
        ),
        (
            "[[rungs]]",
            "[experiment]\nwarmup = \"1s\"\n[[rungs]]",
            "no warm-up setting",
        ),
        ("{seconds}", "{requests}", "set workload.requests"),
        (
            "reader = \"wrk\"",
            "reader = \"wrk\", requests = 0",
            "must be more than 0",
        ),
        (
            "[[rungs]]",
            "[experiment]\nwarmup_requests = 5\n[[rungs]]",
            "has no {requests}",
        ),
        (
            "[[rungs]]",
            "[experiment]\ncounted_requests = 500\n[[rungs]]",
            "the program decides",
        ),
        (
            "id = \"net.gro\"",
            "id = \"net.gro\"\nworkload = { rate = \"5/s\" }",
            "has no {rate}",
        ),
    ] {
        let message = problem(&command_with(old, new));
        assert!(message.contains(says), "{new}: {message}");
    }
}
