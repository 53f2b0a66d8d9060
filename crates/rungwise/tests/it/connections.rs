//! `load connections` against `serve connections`: both ends count the same, and what goes wrong is counted, bounded and said.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::{Bench, Ended, binary, kill};
use crate::traffic::{Serving, measured};
use crate::tune::assert_valid;

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// A program under a limit on open files.
fn limited(bench: &Bench, files: u32, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let limit = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
    command.args(["-c", &limit]).arg(binary());
    let mut command = bench.dress(command, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `load connections` with these options, as a command line.
fn load<'a>(target: &'a str, how: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["load", "connections", target, "--format", "json"];
    [&fixed[..], how].concat()
}

/// What a server counted that ends by SIGTERM.
fn counted(server: Serving) -> Value {
    let ended = server.end(libc::SIGTERM).expect(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "serve-connections");
    report
}

/// The document of a load, whatever its exit status.
#[track_caller]
fn document(ended: &Ended, code: i32) -> Value {
    assert_eq!(ended.code, Some(code), "{}\n{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "load");
    assert_eq!(report["exit"], code);
    report
}

/// Connections to this address that are established on the client's side.
fn established(address: &str) -> usize {
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    let is_ours = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(2).is_some_and(|word| word.ends_with(&remote)) && words.get(3) == Some(&"01")
    };
    table.lines().filter(is_ours).count()
}

#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A load in the background whose connections are established for the kernel; the load may have that to learn yet.
fn held(bench: &Bench, address: &str, count: usize, how: &[&str]) -> Child {
    let number = count.to_string();
    let fixed = ["--count", &number, "--rate", "50k/s", "--for", "1h"];
    let child = bench.start(&load(address, &[&fixed[..], how].concat()));
    wait_until("connections", || established(address) == count);
    child
}

#[test]
fn both_ends_count_the_same_and_a_message_reaches_every_connection() {
    let bench = Bench::new();
    // More than either has descriptors for in one table.
    let serve = ["serve", "connections", "--quiet", "--most", "3000"];
    let words = [&serve[..], &LISTEN, &["--format", "json"]].concat();
    let server = Serving::ready(limited(&bench, 600, &words).spawn().unwrap(), "connections");
    let how = [
        "--count",
        "3000",
        "--rate",
        "20k/s",
        "--ping",
        "4s",
        "--broadcast",
        "500ms",
        "--hold",
        "2s",
    ];
    let ended = limited(&bench, 600, &load(&server.address, &how)).output();
    let report = measured(&Ended::from(ended.unwrap()));
    let held = &report["connections"];
    for (field, expected) in [
        ("asked", 3000),
        ("tried", 3000),
        ("opened", 3000),
        ("held", 3000),
    ] {
        assert_eq!(held[field], expected, "{field}: {report:#}");
    }
    assert_eq!(report["errors"], serde_json::json!({}), "{report:#}");
    assert_eq!(held["partial"], Value::Null);
    let (sent, received) = (&report["sent"], &report["received"]);
    assert_eq!(sent, received);
    // Half of the connections in half of the time.
    let sent = sent.as_u64().unwrap();
    assert!((1_400..=1_500).contains(&sent), "{sent}");
    assert_eq!(report["lost"], 0);
    let all = &held["broadcast"];
    assert_eq!(
        (&all["messages"], &all["expected"]),
        (&3.into(), &9000.into())
    );
    assert_eq!(all["received"], 9000);
    assert!(all["fan_out_us"]["max"].as_f64().unwrap() > 0.0);
    assert!(held["connect_us"]["max"].as_f64().unwrap() > 0.0);
    assert_eq!(report["seconds"].as_array().unwrap().len(), 2);
    assert_eq!(held["limits"].as_array().unwrap().len(), 8);

    let served = counted(server);
    let total = &served["total"];
    assert_eq!(
        (&total["accepted"], &served["open"]),
        (&3000.into(), &0.into())
    );
    assert_eq!(total["broadcast"]["sent"], 9000);
    for (kind, count) in total["failed"].as_object().unwrap() {
        assert_eq!(*count, 0, "{kind}");
    }
    assert_eq!(total["out_of_descriptors"], 0);
    assert!(total["requests"].as_u64().unwrap() >= sent + 3);

    // The page is drawn again from what was kept.
    let folder = bench.run_folder();
    let page = bench.run(&["report", folder.to_str().unwrap()]).expect(0);
    page.says(&[
        "3 000 of 3 000 connections",
        "Fan-out time",
        "epoll watches",
    ]);
}

#[test]
fn connections_are_held_without_a_ping() {
    let bench = Bench::new();
    let server = Serving::spawn(&bench, "tcp", &LISTEN);
    let how = ["--count", "200", "--for", "600ms", "--no-keep"];
    let report = measured(&bench.run(&load(&server.address, &how)));
    assert_eq!(report["connections"]["held"], 200);
    assert_eq!(
        (&report["sent"], &report["offered_per_s"]),
        (&0.into(), &Value::Null)
    );
    let reasons = report["client"]["reasons"].to_string();
    assert!(!reasons.contains("no answer"), "{reasons}");
}

#[test]
fn a_server_that_is_killed_ends_the_load_with_what_was_measured() {
    let bench = Bench::new();
    let server = Serving::spawn(&bench, "connections", &LISTEN);
    let child = held(&bench, &server.address, 500, &["--ping", "500ms"]);
    kill(server.child.id().cast_signed(), libc::SIGKILL);
    let report = document(&Ended::from(child.wait_with_output().unwrap()), 3);
    let held = &report["connections"];
    assert_eq!(held["held"], 0);
    let errors = &report["errors"];
    let count = |kind: &str| errors[kind].as_u64().unwrap_or(0);
    let (opened, unborn) = (held["opened"].as_u64().unwrap(), count("connect_reset"));
    assert_eq!(opened + unborn, 500, "{report:#}");
    let ended = count("closed") + count("reset");
    assert_eq!(ended + unborn, 500, "{errors}");
    let why = held["partial"].as_str().unwrap();
    assert!(why.contains("every connection had ended"), "{why}");
}

#[test]
fn an_interrupt_gives_what_was_measured_and_a_kill_leaves_nothing() {
    let bench = Bench::new();
    let server = Serving::spawn(
        &bench,
        "connections",
        &[&LISTEN[..], &["--format", "json"]].concat(),
    );
    let child = held(&bench, &server.address, 300, &["--ping", "100ms"]);
    // Its window begins 50 ms after it knows that all are established.
    std::thread::sleep(Duration::from_secs(2));
    kill(child.id().cast_signed(), libc::SIGINT);
    let report = document(&Ended::from(child.wait_with_output().unwrap()), 130);
    let held_open = &report["connections"];
    assert_eq!(held_open["opened"], 300);
    assert_eq!(held_open["interrupted"], true);
    let count = |field: &str| report[field].as_u64().unwrap();
    assert!(count("sent") > 0, "{report:#}");
    assert_eq!(count("sent"), count("received") + count("lost"));

    let mut child = held(&bench, &server.address, 300, &[]);
    kill(child.id().cast_signed(), libc::SIGKILL);
    child.wait().unwrap();
    wait_until("the end of all connections", || {
        established(&server.address) == 0
    });
    let served = counted(server);
    assert_eq!(
        (&served["total"]["accepted"], &served["open"]),
        (&600.into(), &0.into())
    );
}

#[test]
fn a_storm_comes_back_past_slow_readers_and_peers_that_vanished() {
    let owner = std::fs::metadata("/proc/self").unwrap().uid();
    assert_eq!(
        owner, 0,
        "run the tests as root: they let connections vanish"
    );
    let bench = Bench::new();
    let server = Serving::spawn(
        &bench,
        "connections",
        &[&LISTEN[..], &["--format", "json"]].concat(),
    );
    let how = [
        "--count",
        "1000",
        "--rate",
        "20k/s",
        "--ping",
        "5s",
        "--for",
        "2s",
        "--storm",
        "--slow-readers",
        "10",
        "--half-open",
        "20",
        "--broadcast",
        "400ms",
    ];
    let report = measured(&bench.run(&load(&server.address, &how)));
    let held = &report["connections"];
    assert_eq!(
        (&held["opened"], &held["held"]),
        (&1000.into(), &980.into())
    );
    let storm = &held["storm"];
    assert_eq!(
        (&storm["dropped"], &storm["back"]),
        (&970.into(), &970.into())
    );
    assert!(storm["back_us"]["max"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (&held["half_open"], &held["slow_readers"]),
        (&20.into(), &10.into())
    );
    assert_eq!(report["lost"], 0, "{report:#}");
    let served = counted(server);
    let total = &served["total"];
    assert_eq!(total["accepted"], 1970);
    // Those of the storm, those that vanished, of which the kernel tells once a message is sent, and those that end with something unread.
    assert_eq!(total["failed"]["reset"], 1000);
}

#[test]
fn a_peer_that_never_reads_ends_nothing_but_its_pings() {
    let bench = Bench::new();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = deaf.local_addr().unwrap().to_string();
    let how = [
        "--count",
        "50",
        "--ping",
        "200ms",
        "--timeout",
        "150ms",
        "--for",
        "1s",
        "--server-pid",
    ];
    let pid = std::process::id().to_string();
    let ended = bench.run(&load(&address, &[&how[..], &[&pid]].concat()));
    let report = document(&ended, 3);
    assert_eq!(
        (&report["received"], &report["sent"]),
        (&0.into(), &report["lost"])
    );
    assert!(report["errors"]["timeout"].as_u64().unwrap() >= 200);
    assert_eq!(report["connections"]["held"], 50);
}

#[test]
fn a_limit_is_named_before_the_first_connect() {
    let bench = Bench::new();
    let server = Serving::spawn(
        &bench,
        "connections",
        &[&LISTEN[..], &["--format", "json"]].concat(),
    );
    let many = ["--count", "200000", "--source", "127.0.0.9", "--for", "1s"];
    bench.run(&load(&server.address, &many)).expect(4).says(&[
        "cannot open 200000 connections",
        "limit ports: at most",
        "--source",
        "--partial",
    ]);
    let served = counted(server);
    assert_eq!(served["total"]["accepted"], 0);

    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = deaf.local_addr().unwrap().to_string();
    drop(deaf);
    for (target, how, code, word) in [
        (&*closed, &["--count", "10"][..], 4, "start the server"),
        (&closed, &["--count", "0"], 2, "there must be 1"),
        (
            &closed,
            &["--ping", "1s", "--timeout", "2s"],
            2,
            "shorten it",
        ),
        (
            &closed,
            &["--slow-readers", "1000"],
            2,
            "leave at least one",
        ),
        (&closed, &["--source", "127.0.0.9-127.0.0.1"], 2, "reversed"),
        (&closed, &["--source", "::1"], 2, "of its family"),
        (
            &closed,
            &["--find-limit", "--slo", "p99<1s"],
            2,
            "--find-limit",
        ),
        ("unix:/run/x", &[], 2, "port"),
    ] {
        bench.run(&load(target, how)).expect(code).says(&[word]);
    }
}

#[test]
fn what_fits_is_opened_where_a_part_is_asked_for() {
    let bench = Bench::new();
    // In a network namespace with few ports: each of them is in TIME_WAIT afterwards, which other tests would see.
    let ports = 1_000_u64;
    let alone = "ip link set lo up && echo 32768 33767 >/proc/sys/net/ipv4/ip_local_port_range && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", alone]).arg(binary());
    let serve = [
        "serve",
        "connections",
        "--quiet",
        "--listen",
        "127.0.0.1:7000",
    ];
    let mut command = bench.dress(command, &serve);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = Serving::ready(command.spawn().unwrap(), "connections");
    let (one_thread, count) = (["--threads", "1"], (ports + 1).to_string());
    let how = [
        "--count",
        &count,
        "--source",
        "127.0.0.9",
        "--rate",
        "1M/s",
        "--for",
        "1s",
        "--partial",
    ];
    let mut command = Command::new("nsenter");
    let pid = server.child.id().to_string();
    command.args(["--net", "--target", &pid]).arg(binary());
    let words = load(&server.address, &[&how[..], &one_thread].concat());
    let ended = Ended::from(bench.dress(command, &words).output().unwrap());
    let report = document(&ended, 3);
    let held = &report["connections"];
    let why = held["partial"].as_str().unwrap();
    assert!(ended.stderr.contains("--partial"), "{}", ended.stderr);
    assert_eq!(held["tried"], ports, "{held:#}");
    assert!(why.contains(&format!("of {count} connections")), "{why}");
}
