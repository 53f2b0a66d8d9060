//! `tune` with `kind = "command"`: a program of somebody else loads a real redis, and what becomes of one that does not work.

use crate::run::{Bench, Machine};
use crate::tune::climbed;

/// A redis that syncs each write, under redis-benchmark; on a machine as busy as it may be.
const REDIS: &str = r#"
schema = 1
name = "small-redis"
title = "redis for tests"

[service]
command = ["redis-server", "--port", "6379", "--bind", "{server}", "--protected-mode", "no", "--dir", "{scratch}", "--save", "", "--appendonly", "yes"]

[service.switches]
"redis.appendfsync" = { always = ["--appendfsync", "always"], no = ["--appendfsync", "no"] }

[workload]
kind = "command"
target = "{server}:6379"
command = ["redis-benchmark", "-h", "{host}", "-p", "{port}", "-c", "{connections}", "-n", "2000", "-t", "set", "--csv"]
reader = "redis-benchmark"
connections = 8
within = "30s"

[experiment]
looks = [4]
alpha = "20%"
quiet = "100%"
discard_above = "100%"
quiet_wait = "100ms"

[baseline]
set = { "redis.appendfsync" = "always" }

[[rungs]]
id = "redis.appendfsync"
set = { "redis.appendfsync" = "no" }
"#;

fn with(old: &str, new: &str) -> String {
    let text = REDIS.replacen(old, new, 1);
    assert_ne!(text, REDIS, "{old}");
    text
}

#[test]
fn redis_is_tuned_by_the_figures_of_its_own_benchmark() {
    let bench = Bench::new();
    let scenario = bench.write("redis.toml", REDIS);
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    let rung = &report["rungs"][1];
    // Whether four pairs decide is the machine's doing; the way it points is redis's.
    assert!(rung["delta"]["point"].as_f64().unwrap() > 0.0, "{rung:#}");
    for pair in rung["pairs"].as_array().unwrap() {
        for half in ["a", "b"] {
            let run = &pair[half];
            let number = |key: &str| run[key].as_f64().unwrap();
            assert!(
                number("rate_per_s") > 0.0 && number("p99_us") > 0.0,
                "{run:#}"
            );
            // The program's CPU time is known, though it ended within the window.
            assert!(
                number("client_us_per_tx") > 0.0 && number("server_us_per_tx") > 0.0,
                "{run:#}"
            );
            assert!(run["metrics"]["mean"].as_f64().is_some(), "{run:#}");
        }
    }
    assert_eq!(report["figures_of"], "redis-benchmark");
    let method = report["method"].to_string();
    assert!(method.contains("coordinated omission"), "{method}");
}

#[test]
fn a_metric_of_ones_own_decides() {
    let bench = Bench::new();
    let text = with(
        "reader = \"redis-benchmark\"",
        "metrics = { p99 = { pattern = '\"SET\",\"[^\"]*\",\"[^\"]*\",\"[^\"]*\",\"[^\"]*\",\"[^\"]*\",\"([0-9.]+)\"' } }",
    );
    let text = text.replacen(
        "[experiment]",
        "[objective]\nminimise = \"p99\"\n[experiment]",
        1,
    );
    let scenario = bench.write("redis.toml", &text);
    let (_, report) = climbed(&bench, &scenario);
    assert_eq!(report["objective"], "p99_us");
    for pair in report["rungs"][1]["pairs"].as_array().unwrap() {
        for half in ["a", "b"] {
            // Picked in milliseconds, and taken for seconds as the page says.
            let p99 = pair[half]["p99_us"].as_f64().unwrap();
            assert!(p99 > 1e3 && pair[half]["discarded"].is_null(), "{pair:#}");
        }
    }
}

#[test]
fn a_program_that_does_not_work_is_quoted_and_nothing_is_left() {
    let bench = Bench::new();
    let before = Machine::now();
    let command = REDIS
        .lines()
        .find(|line| line.starts_with("command = [\"redis-benchmark\""))
        .unwrap();
    for (program, words) in [
        (r#"["no-such-program"]"#, &["no-such-program"][..]),
        (
            r#"["sh", "-c", "echo about to fail >&2; exit 7"]"#,
            &["the load program failed", "7", "about to fail"],
        ),
        (r#"["true"]"#, &["it printed nothing"]),
        (
            r#"["echo", "hello"]"#,
            &["as output of redis-benchmark", "--csv", "hello"],
        ),
        (
            r#"["sh", "-c", "echo still here; sleep 600"]"#,
            &["did not finish within 3 s", "still here"],
        ),
        // A daemon in its group ends with it.
        (
            r#"["sh", "-c", "sleep 600 & echo begun"]"#,
            &["as output of redis-benchmark"],
        ),
        (
            r#"["sh", "-c", "cat /dev/zero | head -c 1000 > /dev/null; echo none > {output}.other"]"#,
            &["its results cannot be read"],
        ),
    ] {
        let text = REDIS
            .replacen(command, &format!("command = {program}"), 1)
            .replacen("within = \"30s\"", "within = \"3s\"", 1);
        let scenario = bench.write("redis.toml", &text);
        bench
            .run(&["tune", scenario.to_str().unwrap()])
            .expect(4)
            .says(words);
    }
    before.assert_unchanged();
}

#[test]
fn a_program_that_floods_its_output_is_cut_in_bounded_memory() {
    let bench = Bench::new();
    let command = REDIS
        .lines()
        .find(|line| line.starts_with("command = [\"redis-benchmark\""))
        .unwrap();
    let flood = r#"command = ["sh", "-c", "head -c 80000000 /dev/zero | tr '\\0' x"]"#;
    let scenario = bench.write("redis.toml", &REDIS.replacen(command, flood, 1));
    bench
        .run(&["tune", scenario.to_str().unwrap()])
        .expect(4)
        .says(&["printed more than 64 MiB"]);
}

#[test]
fn a_program_that_sends_fewer_requests_than_asked_is_no_measurement() {
    let bench = Bench::new();
    let command = REDIS
        .lines()
        .find(|line| line.starts_with("command = [\"redis-benchmark\""))
        .unwrap();
    // Succeeds with no more than 3,000 samples, as JMeter does where a plan's loops are not what they seem.
    let samples = r#"command = ["awk", "BEGIN {{ print \"timeStamp,elapsed,success\"; for (i = 0; i < {requests} && i < 3000; i++) print 1700000000000 + i \",1,true\" }}"]"#;
    let none = r#"command = ["echo", "timeStamp,elapsed,success"]"#;
    let uncounted = r#"command = ["echo", "Requests/sec: 10.00"]"#;
    for (program, reader, keys, words) in [
        (
            samples,
            "jtl",
            "requests = 5000\n\n[experiment]",
            "shows 3000 requests instead of the 5000",
        ),
        (
            none,
            "jtl",
            "requests = 5000\n\n[experiment]",
            "ApacheJMeter_functions",
        ),
        (
            uncounted,
            "wrk",
            "requests = 5000\n\n[experiment]",
            "does not show how many requests it sent",
        ),
        // The run before the measured one is asked for its own number.
        (
            samples,
            "jtl",
            "requests = 2000\n\n[experiment]\nwarmup_requests = 4000",
            "shows 3000 requests instead of the 4000",
        ),
    ] {
        let text = REDIS
            .replacen(command, program, 1)
            .replacen("\"redis-benchmark\"\n", &format!("\"{reader}\"\n"), 1)
            .replacen(
                "within = \"30s\"\n\n[experiment]",
                &format!("within = \"30s\"\n{keys}\n"),
                1,
            );
        let scenario = bench.write("redis.toml", &text);
        let ended = bench.run(&["tune", scenario.to_str().unwrap()]).expect(4);
        ended.says(&["the load program", words]);
    }
}
