//! `load http` and `tune` by TLS and through a Unix socket, on a real nginx with the certificate of a CA of our own.

use std::net::SocketAddr;
use std::path::PathBuf;

use rungwise_host::process::{Ready, Service};
use rungwise_testkit::Authority;
use serde_json::Value;

use crate::run::Bench;
use crate::traffic::measured;
use crate::tune::climbed;
use crate::web::{assert_logged, nginx_with};

/// An nginx that answers `hello` by TLS, and on a Unix socket without; and the file of its CA.
struct Nginx {
    _service: Service,
    address: SocketAddr,
    socket: String,
    cacert: String,
    log: PathBuf,
}

fn nginx(bench: &Bench) -> Nginx {
    nginx_of(bench, &Authority::new(), "")
}

/// The same with the certificate of this CA, and more lines of configuration.
fn nginx_of(bench: &Bench, authority: &Authority, more: &str) -> Nginx {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let issued = authority.issue(&["shop.example", "127.0.0.1"]);
    let path = |name: &str, text: &str| bench.write(name, text).display().to_string();
    let (certificate, key) = (
        path("server.pem", &issued.certificate),
        path("server.key", &issued.key),
    );
    let socket = bench.path("nginx.sock").display().to_string();
    let server = format!(
        "listen {address} ssl backlog=1024; listen unix:{socket} backlog=1024;\n\
         ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;\n\
         ssl_session_cache shared:all:1m;\n{more}\n"
    );
    let (service, log) = nginx_with(bench, &server, &Ready::Tcp(address));
    Nginx {
        _service: service,
        address,
        socket,
        cacert: path("ca.pem", &authority.certificate()),
        log,
    }
}

#[test]
fn a_load_by_tls_counts_what_the_access_log_counts_and_says_what_was_negotiated() {
    let bench = Bench::new();
    let nginx = nginx(&bench);
    let port = nginx.address.port();
    let (by_name, by_address) = (
        format!("https://shop.example:{port}/"),
        format!("https://{}/", nginx.address),
    );
    let resolve = format!("shop.example:{port}:127.0.0.1");
    let verified = ["--cacert", &nginx.cacert, "--resolve", &resolve];
    for (url, how, version, is_verified) in [
        (
            &by_name,
            &[&verified[..], &["--tls", "1.2"]].concat()[..],
            "TLS 1.2",
            true,
        ),
        (
            &by_name,
            &[&verified[..], &["--tls", "1.3"]].concat(),
            "TLS 1.3",
            true,
        ),
        (
            &by_name,
            &[&verified[..], &["--rate", "4k/s"]].concat(),
            "TLS 1.3",
            true,
        ),
        (&by_address, &["--cacert", &nginx.cacert], "TLS 1.3", true),
        (&by_address, &["--insecure"], "TLS 1.3", false),
        (
            &by_address,
            &["--insecure", "--no-keepalive", "--tls", "1.2"],
            "TLS 1.2",
            false,
        ),
        (
            &by_address,
            &["--insecure", "--no-keepalive"],
            "TLS 1.3",
            false,
        ),
    ] {
        let fixed = [
            "load",
            "http",
            url,
            "--warmup",
            "0s",
            "--count",
            "1000",
            "--connections",
            "4",
            "--format",
            "json",
        ];
        let ended = bench.run(&[&fixed, how].concat());
        let report = measured(&ended);
        assert_eq!(
            (&report["sent"], &report["received"]),
            (&Value::from(1000), &Value::from(1000)),
            "{how:?}: {}",
            report["errors"]
        );
        let tls = &report["http"]["tls"];
        let number = |key: &str| tls[key].as_u64().unwrap();
        let connections = report["http"]["connections"].as_u64().unwrap();
        assert_eq!(number("full") + number("resumed"), connections);
        assert_eq!(tls["verified"], is_verified);
        let negotiated: Vec<_> = tls["negotiated"].as_object().unwrap().keys().collect();
        assert!(
            negotiated.len() == 1 && negotiated[0].starts_with(version),
            "{how:?}: {negotiated:?}"
        );
        if how.contains(&"--no-keepalive") {
            // One is tried before, and each of the four connections begins once.
            assert_eq!(connections, 1001);
            assert!((4..=5).contains(&number("full")), "{how:?}: {tls}");
        } else {
            // nginx ends each connection after 100 requests, and it is opened again.
            assert!((4..=16).contains(&connections), "{connections}");
            assert!((4..=5).contains(&number("full")), "{how:?}: {tls}");
        }
        assert!(tls["handshake_us"]["p50"].as_f64().unwrap() > 0.0);
        let busy = report["client"]["server_busy"].as_f64().unwrap();
        assert!(busy > 0.01, "nginx is found by its socket: {busy}");
    }
    assert_logged(&nginx.log, 7 * 1000);
    let page = |how: &[&str]| {
        let fixed = [
            "load",
            "http",
            &by_address,
            "--for",
            "200ms",
            "--warmup",
            "0s",
        ];
        bench.run(&[&fixed, how].concat()).stdout
    };
    let secure = page(&["--cacert", &nginx.cacert]);
    for words in [
        "TLS 1.3 TLS_",
        "certificate verified",
        "TLS handshakes",
        "Time of TLS handshake",
    ] {
        assert!(secure.contains(words), "{secure}");
    }
    assert!(page(&["--insecure"]).contains("certificate not verified (--insecure)"));
}

#[test]
fn a_load_through_a_unix_socket_counts_what_the_access_log_counts() {
    let bench = Bench::new();
    let nginx = nginx(&bench);
    for how in [&[][..], &["--no-keepalive"], &["--rate", "4k/s"]] {
        let fixed = [
            "load",
            "http",
            "http://shop.example/x",
            "--unix-socket",
            &nginx.socket,
            "--warmup",
            "0s",
            "--count",
            "1000",
            "--connections",
            "4",
            "--format",
            "json",
        ];
        let ended = bench.run(&[&fixed, how].concat());
        let report = measured(&ended);
        assert_eq!(report["received"], 1000, "{how:?}: {}", report["errors"]);
        assert_eq!(report["target"], format!("unix:{}", nginx.socket));
        assert!(report["http"].get("tls").is_none());
        // nginx is found by the file of its socket.
        let busy = report["client"]["server_busy"].as_f64().unwrap();
        assert!(busy > 0.005, "the workers are the server: {busy}");
    }
    assert_logged(&nginx.log, 3 * 1000);
}

#[test]
fn what_cannot_be_connected_is_refused_with_the_remedy() {
    let bench = Bench::new();
    let nginx = nginx(&bench);
    let url = format!("https://{}/", nginx.address);
    let plain = format!("https://shop.example/ --unix-socket {}", nginx.socket);
    let elsewhere = format!(
        "https://else.example:{0}/ --resolve else.example:{0}:127.0.0.1",
        nginx.address.port()
    );
    let cacert = format!("--cacert {}", nginx.cacert);
    for (words, exit, said) in [
        (url.clone(), 4, &["CA", "--cacert FILE", "--insecure"][..]),
        (
            format!("{elsewhere} {cacert}"),
            4,
            &["shop.example", "not for else.example", "--resolve"],
        ),
        (
            format!("{plain} --insecure"),
            4,
            &["without TLS", "http://", "unix:/"],
        ),
        (
            "https://no-such-host.invalid/".to_owned(),
            2,
            &["no-such-host.invalid", "--resolve"],
        ),
        (format!("{url} --cacert /no/such.pem"), 2, &["/no/such.pem"]),
        (
            format!("{url} --cacert {}", bench.path("server.key").display()),
            2,
            &["no certificate in PEM form"],
        ),
        (
            format!("{url} --cacert {} --insecure", nginx.cacert),
            2,
            &["remove one"],
        ),
        (format!("{url} --tls 1.1"), 2, &["1.2 or 1.3"]),
        (
            format!("{url} --resolve a:1:b"),
            2,
            &["shop.example:443:192.0.2.1"],
        ),
        (
            format!("{url} --resolve a:1:127.0.0.1"),
            2,
            &["resolve", "a:1"],
        ),
        (
            "http://a/ --unix-socket /no/such.sock".to_owned(),
            4,
            &["/no/such.sock", "correct the path"],
        ),
        (
            format!("http://127.0.0.1:9/ {cacert}"),
            2,
            &["cacert", "https://"],
        ),
    ] {
        let arguments: Vec<&str> = ["load", "http"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        let ended = bench.run(&[&arguments[..], &["--for", "1s"]].concat());
        assert_eq!(ended.code, Some(exit), "{words}: {}", ended.stderr);
        for word in said {
            assert!(ended.stderr.contains(word), "{words}: {}", ended.stderr);
        }
    }
    // TLS with http:// in the URL is what the server says it is.
    let ended = bench.run(&[
        "load",
        "http",
        &format!("http://{}/", nginx.address),
        "--count",
        "20",
        "--warmup",
        "0s",
        "--format",
        "json",
    ]);
    let report = measured(&ended);
    assert_eq!(report["http"]["statuses"]["400"], 20);
}

/// `openssl` with these words, which reads and writes files of the bench.
#[track_caller]
fn openssl(words: &str) {
    let output = std::process::Command::new("openssl")
        .args(words.split(' '))
        .output()
        .expect("openssl is in PATH; cargo xtask test installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {words}: {said}");
}

#[test]
fn a_client_shows_its_certificate_with_a_key_of_any_form() {
    let bench = Bench::new();
    let authority = Authority::new();
    let ca = bench.write("clients.pem", &authority.certificate());
    let more = format!(
        "ssl_client_certificate {}; ssl_verify_client on;",
        ca.display()
    );
    let nginx = nginx_of(&bench, &authority, &more);
    let url = format!("https://{}/", nginx.address);
    let at = |name: &str| bench.path(name).display().to_string();
    let rsa = at("rsa.key");
    openssl(&format!(
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out {rsa}"
    ));
    let rsa_key = std::fs::read_to_string(&rsa).unwrap();
    let (ec, by_rsa) = (
        authority.issue_client(None),
        authority.issue_client(Some(&rsa_key)),
    );
    bench.write("ec.pem", &ec.certificate);
    bench.write("ec.key", &ec.key);
    bench.write("rsa.pem", &by_rsa.certificate);
    bench.write("both.pem", &format!("{}{}", ec.key, ec.certificate));
    for (from, to, how) in [
        ("ec.key", "ec.sec1", "pkey -traditional"),
        ("rsa.key", "rsa.pkcs1", "pkey -traditional"),
        ("ec.key", "ec.der", "pkey -outform DER"),
        (
            "ec.key",
            "ec.encrypted",
            "pkcs8 -topk8 -v2 aes256 -passout pass:x",
        ),
        (
            "rsa.key",
            "rsa.encrypted",
            "pkey -traditional -aes256 -passout pass:x",
        ),
    ] {
        openssl(&format!("{how} -in {} -out {}", at(from), at(to)));
    }
    let begins = |name: &str, words: &str| {
        let text = std::fs::read_to_string(at(name)).unwrap();
        assert!(text.starts_with(words), "{name}: {text}");
    };
    begins("ec.key", "-----BEGIN PRIVATE KEY");
    begins("ec.sec1", "-----BEGIN EC PRIVATE KEY");
    begins("rsa.pkcs1", "-----BEGIN RSA PRIVATE KEY");
    begins("ec.encrypted", "-----BEGIN ENCRYPTED PRIVATE KEY");
    let run = |cert: &str, key: Option<&str>, more: &[&str]| {
        let (cert, key) = (at(cert), key.map(at));
        let fixed = ["load", "http", &url, "--cacert", &nginx.cacert];
        let fixed = [&fixed[..], &["--warmup", "0s", "--count", "100"]].concat();
        let mut words = [&fixed[..], &["--format", "json", "--cert", &cert], more].concat();
        words.extend(key.iter().flat_map(|key| ["--key", key]));
        bench.run(&words)
    };
    let mut loads = 0;
    for (cert, key) in [
        ("both.pem", None),
        ("ec.pem", Some("ec.key")),
        ("ec.pem", Some("ec.sec1")),
        ("rsa.pem", Some("rsa.key")),
        ("rsa.pem", Some("rsa.pkcs1")),
    ] {
        for version in ["1.2", "1.3"] {
            let ended = run(cert, key, &["--tls", version]);
            let report = measured(&ended);
            let what = format!("{cert} {key:?} {version}");
            assert_eq!(report["received"], 100, "{what}: {}", report["errors"]);
            loads += 1;
        }
    }
    assert_logged(&nginx.log, loads * 100);
    for (cert, key, said) in [
        ("ec.pem", None, &["ec.pem", "no private key", "--key"][..]),
        ("ec.pem", Some("rsa.key"), &["does not belong", "rsa.key"]),
        (
            "ec.pem",
            Some("ec.encrypted"),
            &["encrypted", "openssl pkey"],
        ),
        (
            "rsa.pem",
            Some("rsa.encrypted"),
            &["encrypted", "openssl pkey"],
        ),
        ("ec.pem", Some("ec.der"), &["PEM", "-inform DER"]),
        ("ec.der", None, &["no certificate", "-inform DER"]),
        ("none.pem", None, &["none.pem"]),
    ] {
        run(cert, key, &[]).expect(2).says(said);
    }
    // Nothing more has reached the server; a client without a certificate does.
    assert_logged(&nginx.log, loads * 100);
    for version in ["1.2", "1.3"] {
        let words = ["load", "http", &url, "--cacert", &nginx.cacert];
        let more = ["--tls", version, "--warmup", "0s", "--count", "100"];
        bench.run(&[&words[..], &more].concat()).expect(4).says(&[
            "wants a certificate of the client",
            "status 400",
            "--cert FILE",
        ]);
    }
}

#[test]
fn a_server_is_tuned_by_tls_and_through_a_unix_socket() {
    let bench = Bench::new();
    let authority = Authority::new();
    let issued = authority.issue(&["shop.example"]);
    let cacert = bench.write("ca.pem", &authority.certificate());
    let (certificate, key) = (
        bench.write("server.pem", &issued.certificate),
        bench.write("server.key", &issued.key),
    );
    let at = bench.path("nginx");
    std::fs::create_dir(&at).unwrap();
    let socket = bench.path("nginx.sock");
    let text = format!(
        "daemon off; user root; pid {at}/pid; error_log {at}/error.log; events {{ worker_connections 4096; }}\n\
         http {{ access_log off; server {{ listen 8443 ssl; listen unix:{socket}; ssl_certificate {certificate};\n\
         ssl_certificate_key {key}; location / {{ return 200 hello; }} }} }}\n",
        at = at.display(),
        socket = socket.display(),
        certificate = certificate.display(),
        key = key.display(),
    );
    let file = bench.write("nginx.conf", &text);
    let by_tls = format!(
        "url = \"https://shop.example:8443/x\"\nresolve = [\"shop.example:8443:{{server}}\"]\ncacert = \"{}\"\ntls = \"1.2\"",
        cacert.display()
    );
    let by_socket = format!(
        "url = \"http://localhost/x\"\nunix_socket = \"{}\"",
        socket.display()
    );
    for (how, words) in [(by_tls, "with TLS 1.2"), (by_socket, "through /")] {
        let scenario = format!(
            r#"
schema = 1
name = "secure-nginx"
title = "nginx for tests"

[service]
command = ["nginx", "-c", "{}"]

[service.switches]
"nginx.workers" = {{ 1 = ["-g", "worker_processes 1;"], 2 = ["-g", "worker_processes 2;"] }}

[workload]
kind = "http"
{how}
connections = 4

[experiment]
looks = [4]
alpha = "20%"
quiet = "100%"
discard_above = "100%"
quiet_wait = "100ms"
measure = "100ms"

[baseline]
set = {{ "nginx.workers" = "1" }}

[[rungs]]
id = "nginx.workers"
set = {{ "nginx.workers" = "2" }}
"#,
            file.display()
        );
        let scenario = bench.write("nginx.toml", &scenario);
        let (_, report) = climbed(&bench, &scenario);
        let run = &report["rungs"][1]["pairs"][0]["a"];
        let number = |key: &str| run[key].as_f64().unwrap();
        assert!(
            number("rate_per_s") > 0.0 && number("loss") == 0.0,
            "{run:#}"
        );
        assert!(number("server_us_per_tx") > 0.0, "{run:#}");
        let method = report["method"].to_string();
        assert!(method.contains(words), "{method}");
        std::fs::remove_dir_all(bench.path("runs")).unwrap();
    }
}
