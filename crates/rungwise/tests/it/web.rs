//! `load http` and `tune` with `kind = "http"` on a real nginx.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rungwise_experiment::scenario::builtin;
use rungwise_host::process::{Launch, Ready, Service};
use serde_json::Value;

use crate::run::{Bench, Ended, Machine};
use crate::traffic::measured;
use crate::tune::{assert_valid, climbed};

/// An nginx that answers `hello` and writes a line for each request.
pub(crate) fn nginx(bench: &Bench) -> (Service, String, PathBuf) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let listen = format!("listen {address} backlog=1024;");
    let (service, log) = nginx_with(bench, &listen, &Ready::Tcp(address));
    (service, address.to_string(), log)
}

/// The same with these directives of its server.
pub(crate) fn nginx_with(bench: &Bench, server: &str, ready: &Ready) -> (Service, PathBuf) {
    let at = bench.path("nginx");
    std::fs::create_dir(&at).unwrap();
    let (file, log) = (at.join("nginx.conf"), at.join("access.log"));
    let text = format!(
        "daemon off; user root; worker_processes 2; pid {at}/pid; error_log {at}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ log_format seen '$connection|$request|$http_x_row|$http_cookie|$status';\n\
         access_log {log} seen; server {{ {server} keepalive_requests 100;\n\
         location / {{ return 200 hello; }} location /gone {{ return 410; }} }} }}\n",
        at = at.display(),
        log = log.display(),
    );
    std::fs::write(&file, text).unwrap();
    let service = Service::start(&Launch {
        argv: ["nginx", "-c", &file.display().to_string()]
            .map(str::to_owned)
            .into(),
        ..Launch::default()
    })
    .unwrap();
    service.wait_ready(ready, Duration::from_secs(30)).unwrap();
    (service, log)
}

/// The access log has so many lines.
pub(crate) fn assert_logged(log: &Path, expected: usize) {
    // A worker writes the line when the response has left.
    let lines = || std::fs::read_to_string(log).unwrap().lines().count();
    for _ in 0..100 {
        if lines() >= expected {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(lines(), expected);
}

#[test]
fn a_load_of_a_real_web_server_counts_what_its_access_log_counts() {
    let bench = Bench::new();
    let (_nginx, address, log) = nginx(&bench);
    let mut expected = 0;
    // nginx ends each connection after 100 requests: as it says, and without a lost one.
    for (path, how, good) in [
        ("/", &["--connections", "8"][..], true),
        ("/?q=1", &["--connections", "4", "--rate", "4k/s"], true),
        ("/", &["--connections", "4", "--no-keepalive"], true),
        ("/gone", &["--connections", "2"], false),
        (
            "/gone",
            &["--connections", "2", "--expect", "status=410"],
            true,
        ),
    ] {
        let url = format!("http://{address}{path}");
        let fixed = [
            "load", "http", &url, "--warmup", "0s", "--count", "2000", "--format", "json",
        ];
        let ended = bench.run(&[&fixed, how].concat());
        let report = measured(&ended);
        let answers = if good { 2000 } else { 0 };
        assert_eq!(
            (&report["sent"], &report["received"], &report["lost"]),
            (
                &Value::from(2000),
                &Value::from(answers),
                &Value::from(2000 - answers)
            ),
            "{how:?}: {}",
            report["errors"]
        );
        let status = if path == "/gone" { "410" } else { "200" };
        assert_eq!(report["http"]["statuses"][status], 2000);
        // nginx is found by its listening socket: its CPU time is not that of others.
        let busy = report["client"]["server_busy"].as_f64().unwrap();
        assert!(busy > 0.005, "the workers are the server too: {busy}");
        expected += 2000;
    }
    assert_logged(&log, expected);
    let page = bench.run(&[
        "load",
        "http",
        &format!("http://{address}/"),
        "--for",
        "300ms",
        "--warmup",
        "0s",
    ]);
    // A gate: on a machine too busy to certify a run it says neither.
    let url = format!("http://{address}/");
    for (slo, exit, word) in [
        ("p99<60s,errors<1%", 0, "✓ kept"),
        ("errors<1%,rate>900k/s", 1, "✗ missed"),
    ] {
        let gate = bench.run(&[
            "load", "http", &url, "--for", "300ms", "--warmup", "0s", "--slo", slo,
        ]);
        assert!(
            gate.code == Some(exit) || gate.code == Some(3),
            "{slo}: {:?} {}",
            gate.code,
            gate.stderr
        );
        assert!(gate.stdout.contains(word), "{}", gate.stdout);
    }
    for row in ["Responses by status", "200: ", "Time to first byte"] {
        assert!(page.stdout.contains(row), "{}", page.stdout);
    }
}

/// A server that answers one request after the other, with 4 ms for each: 250/s at most.
fn one_after_the_other() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counter = Arc::new(Mutex::new(()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, counter) = (stream.unwrap(), Arc::clone(&counter));
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                // The generator sends a request at once, and waits for its response.
                while stream.read(&mut head).is_ok_and(|read| read > 0) {
                    let turn = counter.lock().unwrap();
                    std::thread::sleep(Duration::from_millis(4));
                    drop(turn);
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            });
        }
    });
    address
}

#[test]
fn the_limit_of_a_service_is_the_rate_at_which_it_no_longer_keeps_up() {
    let bench = Bench::new();
    let url = format!("http://{}/", one_after_the_other());
    // The server is in this process, whose other tests would count as its load.
    let pid = std::process::id().to_string();
    let words = [
        "load",
        "http",
        &url,
        "--find-limit",
        "--slo",
        "p99<100ms",
        "--for",
        "600ms",
        "--warmup",
        "200ms",
        "--connections",
        "16",
        "--server-pid",
        &pid,
        "--no-keep",
    ];
    let search = |more: &[&str]| bench.run(&[&words, more].concat());
    let ended = search(&["--format", "json"]);
    let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let limit = &report["limit"];
    let steps = limit["steps"].as_array().unwrap();
    let outcomes = |outcome: &str, above: f64| {
        let mut found = steps.iter();
        found.any(|step| step["outcome"] == outcome && step["offered_per_s"].as_f64() > Some(above))
    };
    assert!(
        !outcomes("kept", 251.0),
        "250/s is all it can do: {limit:#}"
    );
    let reasons = limit["steps"].to_string();
    match ended.code {
        Some(0) => {
            let rate = limit["rate_per_s"].as_f64().unwrap();
            let missed = limit["missed_per_s"].as_f64().unwrap();
            assert!(
                50.0 < rate && rate < missed && missed / rate < 1.06,
                "{limit:#}"
            );
            let offered = report["offered_per_s"].as_f64().unwrap();
            assert!((offered - rate).abs() < 1.0, "{limit:#}");
            assert!(reasons.contains("does not keep up") || reasons.contains("p99<100ms: "));
        }
        // On a machine that is not quiet it says so.
        Some(3) => assert!(
            limit["ended"]
                .as_str()
                .unwrap()
                .contains("could not be measured"),
            "{limit:#}"
        ),
        code => panic!("{code:?}: {}", ended.stderr),
    }
    let page = search(&["--rate", "240/s"]);
    for row in ["Search for the highest rate", "Offered"] {
        assert!(page.stdout.contains(row), "{}", page.stdout);
    }
    for (more, said) in [
        (&["--ramp", "1/s..9/s"][..], "remove --ramp"),
        (&["--slo", "rate>5/s"], "--rate"),
    ] {
        let refused = search(more);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
}

#[test]
fn a_url_that_cannot_be_loaded_is_refused_with_the_remedy() {
    let bench = Bench::new();
    for (words, exit, said) in [
        (&["127.0.0.1:80"][..], 2, "http://"),
        (
            &["http://127.0.0.1:9/", "--for", "1s"],
            4,
            "start the server",
        ),
        (
            &["http://127.0.0.1:9/", "--expect", "status=9"],
            2,
            "status=2xx",
        ),
        (
            &["http://127.0.0.1:9/", "--header", "Host"],
            2,
            "Name: value",
        ),
        (
            &["http://127.0.0.1:9/", "--body", "/no/such/file"],
            2,
            "/no/such/file",
        ),
        (&["http://no-such-host.invalid/"], 2, "no-such-host.invalid"),
    ] {
        let ended = bench.run(&[&["load", "http"], words].concat());
        assert_eq!(ended.code, Some(exit), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_web_server_is_tuned_by_our_own_requests() {
    let bench = Bench::new();
    let at = bench.path("nginx");
    std::fs::create_dir(&at).unwrap();
    let text = format!(
        "daemon off; user root; pid {at}/pid; error_log {at}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; server {{ listen 8080; location / {{ return 200 hello; }} }} }}\n",
        at = at.display(),
    );
    let file = bench.write("nginx.conf", &text);
    let scenario = format!(
        r#"
schema = 1
name = "small-nginx"
title = "nginx for tests"

[service]
command = ["nginx", "-c", "{}"]

[service.switches]
"nginx.workers" = {{ 1 = ["-g", "worker_processes 1;"], 2 = ["-g", "worker_processes 2;"] }}

[workload]
kind = "http"
url = "http://{{server}}:8080/page?x=1"
headers = ["X-Test: a"]
connections = 4
expect = "status=200,body~hello"

[experiment]
looks = [4]
alpha = "20%"
quiet = "100%"
discard_above = "100%"
quiet_wait = "100ms"
measure = "200ms"

[baseline]
set = {{ "nginx.workers" = "1" }}

[[rungs]]
id = "nginx.workers"
set = {{ "nginx.workers" = "2" }}
"#,
        file.display()
    );
    let scenario = bench.write("nginx.toml", &scenario);
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    let rung = &report["rungs"][1];
    for pair in rung["pairs"].as_array().unwrap() {
        for half in ["a", "b"] {
            let run = &pair[half];
            let number = |key: &str| run[key].as_f64().unwrap();
            assert!(
                number("rate_per_s") > 0.0 && number("loss") == 0.0,
                "{run:#}"
            );
            // All processes of nginx are the service.
            assert!(number("server_us_per_tx") > 0.0, "{run:#}");
        }
    }
    let method = report["method"].to_string();
    assert!(method.contains("GET http://"), "{method}");
}

/// One early decision, whatever else runs on the machine.
const QUICK: &str = "looks = [4]\nalpha = \"20%\"\nquiet = \"100%\"\ndiscard_above = \"100%\"";

/// The built-in ladder of nginx up to its rungs, over in seconds.
fn short_ladder() -> String {
    let text = builtin("web-nginx").unwrap();
    let (head, _) = text.split_once("[[rungs]]").unwrap();
    let short = head
        .replace("looks = [8, 16, 24]", QUICK)
        .replace("measure = \"300ms\"", "measure = \"100ms\"")
        // A machine that is busy with other tests loses some.
        .replace("guards = [\"errors == 0\", \"p99 < 100ms\"]", "");
    assert!(short.contains("looks = [4]") && short.contains("measure = \"100ms\""));
    short
}

#[test]
fn a_ladder_of_nginx_changes_the_lines_of_its_file() {
    let bench = Bench::new();
    let rungs = r#"
[[rungs]]
id = "workers"
set = { "nginx.worker_processes" = "2", "sock.reuseport" = "on" }
limit = true

[[rungs]]
id = "backlog"
set = { "rpc.backlog" = "1234" , "cpu.pin_threads" = "on" }
limit = true
"#;
    let text = short_ladder().replace("4096 = \"4096\" }", "1234 = \"1234\" }") + rungs;
    let scenario = bench.write("short.toml", &text);
    let temporary = bench.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let before = Machine::now();
    let mut command = bench.command(&["tune", scenario.to_str().unwrap(), "--format", "json"]);
    let ended = Ended::from(command.env("TMPDIR", &temporary).output().unwrap());
    before.assert_unchanged();
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&report, "tune");
    // Processes with their master, listening sockets, backlog: without the change and with it.
    for (id, without, with) in [
        ("workers", [2, 1, 511], [3, 2, 511]),
        ("backlog", [2, 1, 511], [2, 1, 1234]),
    ] {
        let rungs = report["rungs"].as_array().unwrap();
        let rung = rungs.iter().find(|rung| rung["id"] == id).unwrap();
        let pairs = rung["pairs"].as_array().unwrap();
        assert!(pairs.len() >= 4, "{rung:#}");
        for pair in pairs {
            for (half, expected) in [("a", without), ("b", with)] {
                let served = &pair[half]["served"];
                let seen = ["processes", "listeners", "backlog"].map(|key| served[key].as_u64());
                assert_eq!(seen, expected.map(Some), "{id} {half}: {}", pair[half]);
                let each = served["connections"].as_array().unwrap();
                let all: u64 = each.iter().filter_map(Value::as_u64).sum();
                assert!(all <= 64 && each.len() < 3, "{served}");
            }
        }
    }
    // The files are a part of the document, and the page shows them.
    let files = report["files"].as_array().unwrap();
    let conf = files
        .iter()
        .find(|file| file["name"] == "nginx.conf")
        .unwrap();
    let start = conf["start"].as_str().unwrap();
    for line in [
        "worker_processes 1;",
        "listen 10.77.0.1:8080 backlog=511;",
        "access_log access.log combined;",
    ] {
        assert!(start.contains(line), "{line}\n{start}");
    }
    assert_eq!(conf["start"], conf["kept"]);
    let page = std::fs::read_to_string(bench.run_folder().join("report.html")).unwrap();
    for text in ["Listening sockets", "listen 10.77.0.1:8080 backlog=511;"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_web_server_that_is_missing_or_misconfigured_is_named_with_the_remedy() {
    let bench = Bench::new();
    let mut command = bench.command(&["tune", "web-nginx"]);
    let nowhere = Ended::from(command.env("PATH", "/nowhere").output().unwrap());
    nowhere
        .expect(4)
        .says(&["cannot start nginx", "apt-get install nginx-light"]);
    // nginx's own words about its file.
    let rung = "[[rungs]]\nid = \"net.gro\"\nset = { \"net.gro\" = \"off\" }\n";
    let broken = short_ladder().replace("sendfile {nginx.sendfile}", "sendfiel {nginx.sendfile}");
    let broken = bench.write("broken.toml", &(broken + rung));
    let ended = bench.run(&["tune", broken.to_str().unwrap()]);
    ended
        .expect(4)
        .says(&["unknown directive \"sendfiel\"", "nginx.conf:"]);
    let slip = short_ladder().replace("{nginx.sendfile}", "{nginx.sendfiel}") + rung;
    let slip = bench.write("slip.toml", &slip);
    let ended = bench.run(&["tune", slip.to_str().unwrap(), "--dry-run"]);
    ended.expect(2).says(&[
        "slip.toml:37:14: service.files.\"nginx.conf\": '{nginx.sendfiel}'",
        "did you mean 'nginx.sendfile'?",
    ]);
    let away = "schema = 1\nname = \"t\"\ntitle = \"t\"\n[service]\ncommand = [\"nginx\", \"-p\", \"{scratch}\"]\n\
                templates = { \"nginx.conf\" = \"nginx.tpl\" }\n[workload]\nkind = \"http\"\nurl = \"http://{server}/\"\n";
    let away = bench.write("away.toml", &(away.to_owned() + rung));
    let ended = bench.run(&["tune", away.to_str().unwrap(), "--dry-run"]);
    ended.expect(2).says(&[
        "away.toml:6:30: service.templates.\"nginx.conf\"",
        "nginx.tpl",
    ]);
    bench.write("nginx.tpl", "listen {server};\n");
    let ended = bench.run(&["tune", away.to_str().unwrap(), "--dry-run"]);
    ended
        .expect(0)
        .says(&["file     {scratch}/nginx.conf", "| listen 10.77.0.1;"]);
}

#[test]
fn the_rules_choose_a_longer_queue_for_a_web_server_that_drops_connections() {
    let bench = Bench::new();
    let text = builtin("web-nginx-auto").unwrap();
    let short = text
        .replace("looks = [8, 16, 24]", QUICK)
        .replace("measure = \"2s\"", "measure = \"500ms\"")
        .replace("max_rungs = 4", "max_rungs = 1\nlook = \"2s\"")
        // So many that the queue is full at once, whatever else the machine does in these two seconds.
        .replace("connections = 64", "connections = 256")
        .replace("guards = [\"errors == 0\"]", "");
    assert!(short.contains("max_rungs = 1\n") && short.contains("looks = [4]"));
    assert!(short.contains("connections = 256"));
    let scenario = bench.write("auto.toml", &short);
    let before = Machine::now();
    let (ended, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    let rungs = report["rungs"].as_array().unwrap();
    let rung = rungs.iter().find(|rung| rung["id"] == "rpc.backlog=4096");
    let rung = rung.unwrap_or_else(|| {
        let start = &rungs[0];
        panic!("{}\n{}\n{start:#}", ended.stderr, report["could_not"])
    });
    // One backlog limits both queues of a listener; which of them was full in the window is chance.
    let asked = rung["asked"]["rule"].as_str();
    assert!(
        matches!(asked, Some("tcp-listen-overflow" | "tcp-synq-full")),
        "{rung:#}"
    );
    for pair in rung["pairs"].as_array().unwrap() {
        let backlog = ["a", "b"].map(|half| pair[half]["served"]["backlog"].as_u64());
        assert_eq!(backlog, [Some(8), Some(4096)], "{pair:#}");
    }
}
