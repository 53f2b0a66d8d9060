//! `load http --http2` on a real nginx, without TLS and with it.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use rungwise_host::process::{Ready, Service};
use rungwise_testkit::Authority;
use serde_json::Value;

use crate::run::Bench;
use crate::traffic::measured;
use crate::web::{assert_logged, nginx_with};

/// An nginx that answers `hello` by HTTP/2, on one port without TLS and on one with it; on a third by HTTP/1.1 and TLS alone.
struct Nginx {
    _service: Service,
    plain: SocketAddr,
    secure: SocketAddr,
    old: SocketAddr,
    cacert: String,
    log: PathBuf,
}

fn nginx(bench: &Bench) -> Nginx {
    let ports = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [plain, secure, old] = ports.each_ref().map(|port| port.local_addr().unwrap());
    drop(ports);
    let authority = Authority::new();
    let issued = authority.issue(&["127.0.0.1"]);
    let path = |name: &str, text: &str| bench.write(name, text).display().to_string();
    let (certificate, key) = (
        path("server.pem", &issued.certificate),
        path("server.key", &issued.key),
    );
    let server = format!(
        "listen {plain} http2 backlog=1024; listen {secure} ssl http2 backlog=1024; listen {old} ssl;\n\
         ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;\n\
         client_body_buffer_size 1k; http2_max_concurrent_streams 64;\n\
         add_header Set-Cookie 'seen=$request_length; Path=/';\n"
    );
    let (service, log) = nginx_with(bench, &server, &Ready::Tcp(plain));
    Nginx {
        _service: service,
        plain,
        secure,
        old,
        cacert: path("ca.pem", &authority.certificate()),
        log,
    }
}

#[test]
fn a_load_by_http2_counts_what_the_access_log_counts() {
    let bench = Bench::new();
    let nginx = nginx(&bench);
    let plain = format!("http://{}", nginx.plain);
    let secure = format!("https://{}", nginx.secure);
    let body = bench
        .write("body.bin", &"b".repeat(300_000))
        .display()
        .to_string();
    let list = bench.write(
        "list.jsonl",
        "{\"path\": \"/gone\", \"expect\": \"status=410\"}\n{\"path\": \"/${counter}\", \"method\": \"PUT\", \"body\": {\"a\": 1}}\n",
    );
    let list = list.display().to_string();
    let mut expected = 0;
    // nginx ends each connection after 100 requests: in an orderly way, and without a lost one.
    for (url, how) in [
        (&plain, &["--connections", "4"][..]),
        (
            &plain,
            &["--connections", "4", "--streams", "16", "--threads", "2"],
        ),
        (
            &plain,
            &["--connections", "2", "--streams", "8", "--rate", "4k/s"],
        ),
        (&secure, &["--connections", "4", "--streams", "16"]),
        (
            &secure,
            &[
                "--connections",
                "2",
                "--streams",
                "8",
                "--rate",
                "4k/s",
                "--tls",
                "1.2",
            ],
        ),
        (
            &plain,
            &["--connections", "2", "--streams", "4", "--body", &body],
        ),
        (
            &secure,
            &["--connections", "2", "--streams", "4", "--body", &body],
        ),
        (
            &plain,
            &["--connections", "2", "--streams", "4", "--requests", &list],
        ),
        (
            &plain,
            &["--connections", "2", "--streams", "4", "--cookies"],
        ),
        (
            &plain,
            &["--connections", "2", "--streams", "4", "--method", "HEAD"],
        ),
        (
            &secure,
            &[
                "--connections",
                "2",
                "--header",
                "X-Row: ${uuid}",
                "--expect",
                "status=200,body~hello",
            ],
        ),
    ] {
        let fixed = [
            "load", "http", url, "--http2", "--warmup", "0s", "--count", "1000", "--format", "json",
        ];
        let trust: &[&str] = if url == &secure {
            &["--cacert", &nginx.cacert]
        } else {
            &[]
        };
        let ended = bench.run(&[&fixed, how, trust].concat());
        let report = measured(&ended);
        let http = &report["http"];
        assert_eq!(
            (&report["sent"], &report["received"]),
            (&Value::from(1000), &Value::from(1000)),
            "{url} {how:?}: {} {http}",
            report["errors"]
        );
        assert_eq!(http["protocol"], "HTTP/2");
        assert_eq!(http.get("tls").is_some(), url == &secure);
        let goaways = http["http2"]["goaways"]["NO_ERROR"].as_u64().unwrap();
        let connections = http["connections"].as_u64().unwrap();
        assert!(goaways >= 5 && connections >= goaways, "{how:?}: {http}");
        assert!(http["http2"].get("resets").is_none(), "{how:?}: {http}");
        let busy = report["client"]["server_busy"].as_f64().unwrap();
        assert!(busy > 0.005, "nginx is found by its socket: {busy}");
        expected += 1000;
    }
    assert_logged(&nginx.log, expected);
    let log = std::fs::read_to_string(&nginx.log).unwrap();
    assert!(log.lines().all(|line| line.contains(" HTTP/2.0|")));
    let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    // Each of eight users has sent half of its requests, or the first of a pair more.
    let gone = count("|GET /gone HTTP/2.0|");
    assert!((500..=508).contains(&gone), "{gone}");
    assert_eq!(count("|HEAD / HTTP/2.0|"), 1000);
    let users = log.lines().filter(|line| line.contains("|seen=")).count();
    assert!(
        (950..1000).contains(&users),
        "each stream keeps its cookie: {users}"
    );
}

#[test]
fn the_page_shows_protocol_and_streams_and_a_search_works() {
    let bench = Bench::new();
    let nginx = nginx(&bench);
    let url = format!("https://{}/", nginx.secure);
    let fixed = [
        "load",
        "http",
        &url,
        "--http2",
        "--streams",
        "8",
        "--connections",
        "2",
    ];
    let how = ["--cacert", &nginx.cacert, "--for", "300ms"];
    let page = bench.run(&[&fixed[..], &how].concat()).stdout;
    for words in [
        "HTTP/2, up to 8 streams at a time on each connection",
        "TLS 1.3",
    ] {
        assert!(page.contains(words), "{page}");
    }
    let search = ["--find-limit", "--slo", "p99<10s", "--format", "json"];
    let ended = bench.run(&[&fixed[..], &how, &search].concat());
    // On a busy machine the search may end without a limit, but not without steps.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(!document["limit"]["steps"].as_array().unwrap().is_empty());
}

#[test]
fn a_server_without_http2_is_refused_before_the_load() {
    let bench = Bench::new();
    let nginx = nginx(&bench);
    let too_many = ["--streams", "65"];
    for (url, how, words) in [
        (format!("https://{}/", nginx.old), &[][..], "remove --http2"),
        (format!("http://{}/", nginx.secure), &[], "https://"),
        (
            format!("http://{}/", nginx.plain),
            &too_many,
            "allows 64 streams",
        ),
    ] {
        let fixed = ["load", "http", &url, "--http2", "--count", "10"];
        let trust: &[&str] = if url.starts_with("https") {
            &["--insecure"]
        } else {
            &[]
        };
        let ended = bench.run(&[&fixed[..], how, trust].concat());
        assert_eq!(ended.code, Some(4), "{url}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{url}: {}", ended.stderr);
    }
    // nginx logs what it refuses, but no request was sent.
    let log = std::fs::read_to_string(&nginx.log).unwrap();
    assert!(!log.contains("|GET /"), "{log}");
}
