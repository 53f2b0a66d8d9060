//! `serve tcp` and `serve http` as processes: what they promise to scripts, and that both ends of a connection count the same.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::run::{Bench, Ended, binary};
use crate::traffic::{Serving, measured};
use crate::tune::assert_valid;

/// The document of a server that ended.
fn counted(ended: Ended, kind: &str, code: i32) -> Value {
    let ended = ended.expect(code);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, kind);
    assert_eq!(report["exit"], code);
    report
}

fn connect(server: &Serving) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    stream
}

#[test]
fn a_load_and_the_server_that_it_drives_count_the_same() {
    let bench = Bench::new();
    for io in ["epoll", "uring"] {
        counts_the_same(&bench, io);
    }
}

fn counts_the_same(bench: &Bench, io: &str) {
    let switches = [
        "--workers",
        "2",
        "--reuseport",
        "--body-size",
        "3KiB",
        "--io",
        io,
    ];
    let fixed = ["--listen", "127.0.0.1:0", "--format", "json"];
    let body = bench.write("order.json", "{\"order\": 1}");
    let body = body.display().to_string();
    for (how, signal, code) in [
        (&["--connections", "8"][..], libc::SIGTERM, 0),
        (&["--connections", "4", "--rate", "4k/s"], libc::SIGINT, 130),
        (&["--connections", "4", "--no-keepalive"], libc::SIGTERM, 0),
        (
            &["--connections", "2", "--method", "POST", "--body", &body],
            libc::SIGTERM,
            0,
        ),
    ] {
        let server = Serving::spawn(bench, "http", &[&fixed[..], &switches].concat());
        let url = format!("http://{}/", server.address);
        let load = [
            "load", "http", &url, "--warmup", "0s", "--count", "2000", "--format", "json",
        ];
        let report = measured(&bench.run(&[&load, how].concat()));
        assert_eq!(
            (&report["sent"], &report["received"]),
            (&2000.into(), &2000.into())
        );
        let served = counted(server.end(signal), "serve-http", code);
        let total = &served["total"];
        assert_eq!(total["requests"], 2000, "{io} {how:?}");
        assert_eq!(total["accepted"], report["http"]["connections"], "{how:?}");
        assert_eq!(
            total["sent_bytes"], report["http"]["received_bytes"],
            "{how:?}"
        );
        assert_eq!(total["failed"]["bad_requests"], 0);
        let workers = served["workers"].as_array().unwrap();
        let sum: u64 = workers
            .iter()
            .map(|w| w["requests"].as_u64().unwrap())
            .sum();
        assert_eq!((workers.len(), sum), (2, 2000));
    }
}

/// The stream's request has a reply.
fn asks(stream: &mut TcpStream) {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut reply = [0; 17];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 200 OK\r\n");
}

#[test]
fn without_descriptors_clients_wait_until_others_leave() {
    for io in ["epoll", "uring"] {
        let program = binary().display().to_string();
        let child = Command::new("sh")
            .args(["-c", "ulimit -n 48; exec \"$@\"", "sh", &program])
            .args(["serve", "http", "--quiet", "--listen", "127.0.0.1:0"])
            .args(["--io", io, "--format", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Serving::ready(child, "http");
        let mut streams: Vec<_> = (0..60).map(|_| connect(&server)).collect();
        asks(&mut streams[0]);
        // More than the server has descriptors for leave: the last may be accepted.
        streams.drain(..50);
        asks(&mut streams[9]);
        let served = counted(server.end(libc::SIGTERM), "serve-http", 0);
        let total = &served["total"];
        assert_eq!(total["accepted"], 60, "{io}");
        assert!(total["out_of_descriptors"].as_u64().unwrap() > 0, "{io}");
    }
}

#[test]
fn ten_thousand_connections_of_a_load_take_less_than_100_mb() {
    let bench = Bench::new();
    let server = Serving::spawn(&bench, "http", &["--listen", "127.0.0.1:0"]);
    let url = format!("http://{}/", server.address);
    let load = [
        "load",
        "http",
        &url,
        "--connections",
        "10000",
        "--timeout",
        "60s",
        "--warmup",
        "0s",
        "--count",
        "50000",
        "--format",
        "json",
    ];
    let mut tool = bench.start(&load);
    let mut output = tool.stdout.take().unwrap();
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    });
    // The kernel keeps the most that the process ever had.
    let most_kib = || -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", tool.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    let mut most = 0;
    while let Some(kib) = most_kib() {
        most = kib;
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = tool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    let report: Value = serde_json::from_str(&read.join().unwrap()).expect(&said);
    // All of them carried requests.
    assert_eq!(report["http"]["connections"], 10_000, "{said}");
    assert_eq!(report["received"], 50_000, "{}", report["errors"]);
    assert!(most > 0 && most * 1024 < 100_000_000, "{most} KiB");
}

#[test]
fn a_planted_delay_is_what_a_load_measures() {
    let bench = Bench::new();
    let listen = [
        "--listen",
        "127.0.0.1:0",
        "--delay",
        "20ms",
        "--status",
        "503",
    ];
    let server = Serving::spawn(&bench, "http", &listen);
    let url = format!("http://{}/", server.address);
    let report = measured(&bench.run(&[
        "load",
        "http",
        &url,
        "--warmup",
        "0s",
        "--count",
        "50",
        "--connections",
        "2",
        "--expect",
        "status=503",
        "--format",
        "json",
    ]));
    assert_eq!(report["received"], 50);
    let p50 = report["latency_us"]["uncorrected"]["p50"].as_f64().unwrap();
    assert!(p50 >= 20_000.0, "{p50}");
    server
        .end(libc::SIGTERM)
        .expect(0)
        .says(&["worker", "accepted"]);
}

#[test]
fn clients_without_a_descriptor_wait_until_one_is_free() {
    let bench = Bench::new();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 24; exec \"$0\" \"$@\""])
        .arg(binary());
    let words = [
        "serve",
        "tcp",
        "--quiet",
        "--listen",
        "127.0.0.1:0",
        "--workers",
        "2",
        "--format",
        "json",
    ];
    let child = bench
        .dress(limited, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let server = Serving::ready(child, "tcp");
    // Each is served in the order of the backlog; those that are served leave, so that the next ones can be.
    let mut waiting: Vec<_> = (0..60).map(|_| connect(&server)).collect();
    for stream in &mut waiting {
        stream.write_all(b"hello").unwrap();
    }
    for mut stream in waiting {
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"hello");
    }
    let served = counted(server.end(libc::SIGTERM), "serve-tcp", 0);
    let total = &served["total"];
    assert_eq!(
        (&total["accepted"], &total["requests"]),
        (&60.into(), &60.into())
    );
    let paused = total["out_of_descriptors"].as_u64().unwrap();
    assert!((1..1000).contains(&paused), "{paused}");
}

#[test]
fn a_server_ends_by_itself_and_refuses_what_contradicts_itself() {
    let bench = Bench::new();
    let ended = bench.run(&[
        "serve",
        "tcp",
        "--listen",
        "127.0.0.1:0",
        "--reply",
        "discard",
        "--for",
        "10ms",
    ]);
    ended
        .expect(0)
        .says(&["ready tcp 127.0.0.1:", "backlog: default; holds"]);
    for (words, code, said) in [
        (&["http", "--status", "100"][..], 2, "200 to 599"),
        (
            &["http", "--status", "204", "--body-size", "1B"],
            2,
            "no body",
        ),
        (&["http", "--body", "/no/such/file"], 2, "/no/such/file"),
        (&["tcp", "--steer", "cbpf"], 2, "enable reuseport"),
        (&["tcp", "--backlog", "1000000000"], 4, "net.core.somaxconn"),
        (&["tcp", "--pin=4000"], 4, "cpu 4000"),
    ] {
        let listen = ["--listen", "127.0.0.1:0", "--for", "10ms"];
        let ended = bench.run(&[&["serve"], words, &listen].concat());
        ended.expect(code).says(&[said]);
    }
}
