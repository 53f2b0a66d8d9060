//! `load tcp`, `load redis` and `load memcached`, and `tune` with them, on the real redis-server and memcached and on servers of our own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rungwise_host::process::{Launch, Ready, Service};
use rungwise_testkit::Authority;
use serde_json::Value;

use crate::run::{Bench, Machine};
use crate::traffic::{Serving, measured};
use crate::tune::climbed;

/// An address that is free now.
fn free() -> SocketAddr {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    port.local_addr().unwrap()
}

fn start(words: &[&str], ready: SocketAddr) -> Service {
    let service = Service::start(&Launch {
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        ..Launch::default()
    })
    .unwrap();
    service
        .wait_ready(&Ready::Tcp(ready), Duration::from_secs(30))
        .unwrap();
    service
}

/// A redis that keeps nothing on disk.
fn redis(bench: &Bench, more: &[&str]) -> (Service, SocketAddr) {
    let address = free();
    let (port, dir) = (address.port().to_string(), bench.path(""));
    let own = [
        "redis-server",
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
    ];
    let dir = ["--dir", dir.to_str().unwrap(), "--appendonly", "no"];
    (start(&[&own[..], &dir, more].concat(), address), address)
}

/// What redis says to one command.
fn ask_redis(address: SocketAddr, command: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("{command}\r\n").as_bytes())
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let Some(length) = line.strip_prefix('$') else {
        return line;
    };
    let mut text = vec![0; length.trim().parse().unwrap()];
    reader.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// How often a command was called, as `INFO commandstats` has it.
fn calls(address: SocketAddr, command: &str) -> u64 {
    let stats = ask_redis(address, "INFO commandstats");
    let begin = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&begin));
    line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

/// A load of 2000 requests.
fn load(bench: &Bench, kind: &str, target: &str, how: &[&str]) -> Value {
    let fixed = [
        "load",
        kind,
        target,
        "--warmup",
        "0s",
        "--count",
        "2000",
        "--connections",
        "8",
    ];
    let ended = bench.run(&[&fixed, how, &["--format", "json"]].concat());
    measured(&ended)
}

#[track_caller]
fn assert_counts(report: &Value, sent: u64, received: u64) {
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(
        (count("sent"), count("received"), count("lost")),
        (sent, received, sent - received),
        "{:#}",
        report["errors"]
    );
}

#[test]
fn a_load_of_a_real_redis_counts_what_its_commandstats_count() {
    let bench = Bench::new();
    let (_redis, address) = redis(&bench, &[]);
    let target = address.to_string();
    let (set, get) = (
        "SET key:${random:1..100} ${bytes:100B}",
        "GET key:${random:1..200}",
    );
    let both = ["--command", set, "--command", get, "--weights", "1,9"];
    for how in [
        &[][..],
        &["--depth", "16"],
        &["--resp3"],
        &["--rate", "10k/s", "--depth", "4", "--resp3"],
    ] {
        ask_redis(address, "CONFIG RESETSTAT");
        let report = load(&bench, "redis", &target, &[&both, how].concat());
        assert_counts(&report, 2000, 2000);
        let stream = &report["stream"];
        let [sets, gets] = ["set", "get"].map(|name| calls(address, name));
        assert_eq!(sets + gets, 2000, "{how:?}");
        assert_eq!(stream["requests"][0]["sent"], sets);
        assert_eq!(stream["requests"][1]["sent"], gets);
        assert!((100..300).contains(&sets), "one in ten: {sets}");
        let answers = |kind: &str| stream["answers"][kind].as_u64().unwrap();
        assert_eq!(answers("values") + answers("nils"), 2000);
        assert!(answers("nils") > 500, "half of the keys are never set");
        assert_eq!(
            stream["protocol"],
            if how.contains(&"--resp3") {
                "RESP3"
            } else {
                "RESP2"
            }
        );
        assert_eq!(
            (&stream["connections"], &stream["reconnects"]),
            (&8.into(), &0.into())
        );
        // Found by its listening socket.
        assert!(report["client"]["server_busy"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn errors_of_redis_are_counted_and_quoted_by_class() {
    let bench = Bench::new();
    let (_redis, address) = redis(&bench, &[]);
    let target = address.to_string();
    ask_redis(address, "LPUSH list a");
    let how = [
        "--command",
        "INCR list",
        "--command",
        "NONSENSE",
        "--command",
        "PING",
        "--weights",
        "2,1,1",
    ];
    let report = load(&bench, "redis", &target, &how);
    let count = |name: &str| report["errors"][name].as_u64().unwrap();
    let (wrong, unknown) = (count("reply_wrongtype"), count("reply_err"));
    assert_counts(&report, 2000, 2000 - wrong - unknown);
    assert!((800..1200).contains(&wrong) && (350..650).contains(&unknown));
    assert_eq!(calls(address, "ping"), 2000 - wrong - unknown);
    let quote = |class: &str| report["stream"]["quotes"][class]["text"].as_str().unwrap();
    assert!(quote("reply_wrongtype").starts_with("WRONGTYPE Operation against a key"));
    assert!(quote("reply_err").starts_with("ERR unknown command"));
    assert_eq!(report["stream"]["reconnects"], 0);
    // The page has them in the server's words.
    let words = [
        "load",
        "redis",
        &target,
        "--for",
        "200ms",
        "--command",
        "INCR list",
    ];
    let page = bench.run(&words);
    assert!(
        page.stdout.contains("WRONGTYPE Operation against"),
        "{}",
        page.stdout
    );
    let refused = bench.run(&["load", "redis", &target, "--command", "SUBSCRIBE a"]);
    refused.expect(2).says(&["single reply"]);
}

#[test]
fn nested_replies_data_files_passwords_and_databases_of_redis() {
    let bench = Bench::new();
    let (_redis, address) = redis(&bench, &["--requirepass", "hunter2"]);
    let target = address.to_string();
    let file = bench.write("password", "hunter2\n");
    let by_file = format!("file:{}", file.display());
    let data = bench.write("users.csv", "name,city\nann,Oslo\nbob,\"New York\"\n");
    let data = data.to_str().unwrap();
    let auth = ["--password", "hunter2", "--user", "default", "--db", "3"];
    for password in [
        &auth[..],
        &["--password", &by_file],
        &["--password", "hunter2", "--resp3"],
    ] {
        let how = [
            "--command",
            "HSET user:${csv:name} city '${csv:city}'",
            "--command",
            "HGETALL user:${csv:name}",
            "--command",
            "COMMAND DOCS get set",
            "--command",
            "EVAL \"return {1, {2, {'a', false}}}\" 0",
            "--data",
            data,
        ];
        let ended = bench.run(
            &[
                &[
                    "load", "redis", &target, "--count", "500", "--warmup", "0s", "--format",
                    "json",
                ],
                &how[..],
                password,
            ]
            .concat(),
        );
        assert!(!ended.stdout.contains("hunter2") && !ended.stderr.contains("hunter2"));
        let report = measured(&ended);
        assert_counts(&report, 500, 500);
    }
    let size = |db: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(format!("AUTH hunter2\r\nSELECT {db}\r\nDBSIZE\r\n").as_bytes())
            .unwrap();
        let lines = BufReader::new(stream).lines().take(3);
        lines.map(Result::unwrap).last().unwrap()
    };
    assert_eq!((&*size("3"), &*size("0")), (":2", ":2"));
    bench
        .run(&["load", "redis", &target, "--password", "wrong"])
        .expect(4)
        .says(&["WRONGPASS", "--password"]);
    // Without one each command is refused, which is counted and not hidden.
    let report = load(&bench, "redis", &target, &[]);
    assert_counts(&report, 2000, 0);
    assert_eq!(report["errors"]["reply_noauth"], 2000);
}

#[test]
fn redis_by_tls_and_through_a_unix_socket() {
    let bench = Bench::new();
    let authority = Authority::new();
    let issued = authority.issue(&["cache.example", "127.0.0.1"]);
    let path = |name: &str, text: &str| bench.write(name, text).display().to_string();
    let (certificate, key) = (
        path("server.pem", &issued.certificate),
        path("server.key", &issued.key),
    );
    let ca = path("ca.pem", &authority.certificate());
    let (tls, socket) = (free(), bench.path("redis.sock").display().to_string());
    let port = tls.port().to_string();
    let (_redis, address) = redis(
        &bench,
        &[
            "--tls-port",
            &port,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            "no",
            "--unixsocket",
            &socket,
        ],
    );
    let secure = tls.to_string();
    for (how, version) in [
        (&["--tls", "--cacert", &ca][..], "TLS 1.3"),
        (
            &[
                "--tls",
                "--cacert",
                &ca,
                "--server-name",
                "cache.example",
                "--tls-version",
                "1.2",
            ],
            "TLS 1.2",
        ),
        (&["--tls", "--insecure", "--depth", "8"], "TLS 1.3"),
    ] {
        let report = load(&bench, "redis", &secure, how);
        assert_counts(&report, 2000, 2000);
        let negotiated = report["stream"]["tls"]["negotiated"].as_object().unwrap();
        assert!(
            negotiated.keys().all(|what| what.starts_with(version)),
            "{negotiated:?}"
        );
    }
    let report = load(&bench, "redis", &format!("unix:{socket}"), &[]);
    assert_counts(&report, 2000, 2000);
    assert_eq!(report["target"], format!("unix:{socket}"));
    assert_eq!(calls(address, "ping"), 8000);
    for (target, how, said) in [
        (
            &secure,
            &["--tls", "--cacert", &ca, "--server-name", "other.example"][..],
            "--server-name",
        ),
        (&secure, &["--tls"], "--cacert"),
        (&address.to_string(), &["--tls", "--insecure"], "TLS"),
    ] {
        let ended = bench.run(&[&["load", "redis", target], how].concat());
        ended.expect(4).says(&[said]);
    }
}

/// What memcached counts.
fn stat(address: SocketAddr, name: &str) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"stats\r\n").unwrap();
    let begin = format!("STAT {name} ");
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut lines = lines.take_while(|line| line != "END");
    let value = lines.find_map(|line| line.strip_prefix(&begin).map(str::to_owned));
    value.unwrap().trim().parse().unwrap()
}

#[test]
fn a_load_of_a_real_memcached_counts_what_its_stats_count() {
    let bench = Bench::new();
    let address = free();
    let port = address.port().to_string();
    let _memcached = start(
        &["memcached", "-l", "127.0.0.1", "-p", &port, "-u", "nobody"],
        address,
    );
    let target = address.to_string();
    for how in [
        &[][..],
        &["--depth", "16", "--value-size", "4KiB"],
        &[
            "--gets", "1", "--sets", "3", "--keys", "50", "--expire", "1m",
        ],
        &["--gets", "0", "--key-prefix", "other:"],
        &["--sets", "0", "--rate", "10k/s", "--depth", "4"],
    ] {
        let names = ["get_hits", "get_misses", "cmd_set"];
        let before = names.map(|name| stat(address, name));
        let report = load(&bench, "memcached", &target, how);
        assert_counts(&report, 2000, 2000);
        let after = names.map(|name| stat(address, name));
        let counted = ["hits", "misses", "stored"].map(|kind| &report["stream"]["answers"][kind]);
        for at in 0..3 {
            assert_eq!(
                counted[at],
                after[at] - before[at],
                "{how:?}: {}",
                names[at]
            );
        }
        assert!(report["client"]["server_busy"].as_f64().unwrap() > 0.0);
    }
    // Larger than an item of it may be.
    let words = [
        "load",
        "memcached",
        &target,
        "--warmup",
        "0s",
        "--count",
        "20",
        "--gets",
        "0",
    ];
    let large = ["--value-size", "2MiB", "--format", "json"];
    let report = measured(&bench.run(&[&words[..], &large].concat()));
    assert_counts(&report, 20, 0);
    assert_eq!(report["errors"]["reply_server_error"], 20);
    let quote = &report["stream"]["quotes"]["reply_server_error"]["text"];
    assert!(quote.as_str().unwrap().contains("too large"), "{quote}");
    let page = bench.run(&["load", "memcached", &target, "--for", "200ms"]);
    for words in ["hits: ", "misses: ", "Connections opened", "get", "set"] {
        assert!(page.stdout.contains(words), "{}", page.stdout);
    }
}

#[test]
fn a_service_that_is_killed_under_load_is_counted_and_never_waited_for() {
    let bench = Bench::new();
    let (redis, address) = redis(&bench, &[]);
    let target = address.to_string();
    let words = [
        "load",
        "redis",
        &target,
        "--for",
        "2s",
        "--warmup",
        "0s",
        "--depth",
        "4",
        "--timeout",
        "300ms",
        "--format",
        "json",
    ];
    let child = bench.start(&words);
    // The first few are asked before the load: whether the service is there at all.
    while calls(address, "ping") < 100 {
        std::thread::sleep(Duration::from_millis(20));
    }
    // What is answered before the measured window begins does not count.
    std::thread::sleep(Duration::from_millis(500));
    drop(redis);
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(count("sent"), count("received") + count("lost"));
    assert!(count("received") > 0 && count("lost") > 0);
    let errors = report["errors"].as_object().unwrap();
    assert!(
        errors.contains_key("connect") && errors.contains_key("refused"),
        "{errors:?}"
    );
}

#[test]
fn load_tcp_asks_our_own_server_and_its_documents_are_compared_and_shown_again() {
    let bench = Bench::new();
    let server = Serving::spawn(&bench, "tcp", &["--listen", "127.0.0.1:0"]);
    let pid = server.child.id().to_string();
    let mut documents = Vec::new();
    for (name, how) in [("before.json", &[][..]), ("after.json", &["--depth", "4"])] {
        let path = bench.path(name).display().to_string();
        let words = [
            "load",
            "tcp",
            &server.address,
            "--server-pid",
            &pid,
            "--for",
            "400ms",
            "--warmup",
            "100ms",
        ];
        let ended = bench.run(&[&words, how, &["--format", "json", "-o", &path]].concat());
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
        let text = std::fs::read_to_string(&path).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["lost"], 0, "{:#}", report["errors"]);
        documents.push(path);
    }
    let compared = bench.run(&["compare", &documents[0], &documents[1]]);
    assert!(
        compared.stdout.contains("rate"),
        "{} {}",
        compared.stdout,
        compared.stderr
    );
    for format in ["text", "html", "markdown"] {
        let page = bench
            .run(&["report", &documents[1], "--format", format])
            .expect(0);
        assert!(
            page.stdout.contains("TCP, with replies of 100 bytes"),
            "{}",
            page.stdout
        );
    }
    let search = bench.run(&[
        "load",
        "tcp",
        &server.address,
        "--server-pid",
        &pid,
        "--find-limit",
        "--slo",
        "p99<1s",
        "--for",
        "300ms",
        "--warmup",
        "100ms",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&search.stdout).expect(&search.stderr);
    assert!(
        report["limit"]["steps"].as_array().unwrap().len() > 1,
        "{report:#}"
    );
    server.end(libc::SIGTERM);
}

#[test]
fn a_target_that_cannot_be_loaded_is_refused_with_the_remedy() {
    let bench = Bench::new();
    for (words, exit, said) in [
        (&["tcp", "127.0.0.1"][..], 2, "127.0.0.1"),
        (&["tcp", "127.0.0.1:9"], 4, "start the server"),
        (&["tcp", "unix:/no/such.sock"], 4, "correct the path"),
        (
            &["tcp", "127.0.0.1:9", "--frames", "lines"],
            2,
            "length-prefixed",
        ),
        (&["tcp", "127.0.0.1:9", "--request", "ping"], 2, "text:TEXT"),
        (
            &["tcp", "127.0.0.1:9", "--request", "file:/no/such"],
            2,
            "/no/such",
        ),
        (
            &["redis", "127.0.0.1:9", "--command", "GET ${rnd:1}"],
            2,
            "placeholder",
        ),
        (&["redis", "127.0.0.1:9", "--weights", "1,2"], 2, "weights"),
        (
            &["memcached", "127.0.0.1:9", "--gets", "0", "--sets", "0"],
            2,
            "nothing is sent",
        ),
        (
            &["memcached", "127.0.0.1:9", "--key-prefix", "a b"],
            2,
            "spaces",
        ),
    ] {
        let ended = bench.run(&[&["load"], words].concat());
        assert_eq!(ended.code, Some(exit), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_redis_is_tuned_by_our_own_commands() {
    let bench = Bench::new();
    let scenario = bench.write(
        "redis.toml",
        r#"
schema = 1
name = "small-redis"
title = "redis for tests"

[service]
command = ["redis-server", "--port", "6379", "--bind", "{server}", "--protected-mode", "no", "--dir", "{scratch}", "--save", "", "--appendonly", "yes"]
ready_tcp = "{server}:6379"

[service.switches]
"redis.appendfsync" = { always = ["--appendfsync", "always"], no = ["--appendfsync", "no"] }

[workload]
kind = "redis"
target = "{server}:6379"
commands = ["SET key:${random:1..1000} ${bytes:100B}", "GET key:${random:1..1000}"]
weights = [1, 1]
connections = 8

[experiment]
looks = [4]
alpha = "20%"
quiet = "100%"
discard_above = "100%"
quiet_wait = "100ms"
measure = "200ms"

[baseline]
set = { "redis.appendfsync" = "always" }

[[rungs]]
id = "redis.appendfsync"
set = { "redis.appendfsync" = "no" }

[[rungs]]
id = "depth"
title = "four commands at a time"
workload_after = { depth = 4 }
branch = true
"#,
    );
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    for rung in &report["rungs"].as_array().unwrap()[1..] {
        for pair in rung["pairs"].as_array().into_iter().flatten() {
            for half in ["a", "b"] {
                let run = &pair[half];
                let number = |key: &str| run[key].as_f64().unwrap();
                assert!(
                    number("rate_per_s") > 0.0 && number("loss") == 0.0,
                    "{run:#}"
                );
            }
        }
    }
}
