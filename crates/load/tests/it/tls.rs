//! HTTP traffic by TLS and through Unix sockets, against servers that keep to the rules or do not.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::engine::{Completed, Stop};
use rungwise_load::parameters::Target;
use rungwise_model::load::Tls;
use rungwise_testkit::{Authority, Issued};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

use crate::http::{driven, errors, written};

type Stream = rustls::StreamOwned<ServerConnection, TcpStream>;

/// What a server does with request `n` of all, whose body is read; false ends the connection, by TLS or not.
type Behaviour = fn(u64, &mut Stream) -> bool;

/// Whose certificate a server shows.
type Issue = fn(&Authority) -> Issued;

struct Server {
    address: SocketAddr,
    authority: Authority,
    asked: Arc<AtomicU64>,
    accepted: Arc<AtomicU64>,
}

const ANY_VERSION: &[&SupportedProtocolVersion] = rustls::ALL_VERSIONS;

/// A server with a certificate for `localhost`; of connection `n`, `accepts` says whether TLS begins at all.
fn serve(
    versions: &[&'static SupportedProtocolVersion],
    issue: Issue,
    accepts: fn(u64) -> bool,
    behaviour: Behaviour,
) -> Server {
    serve_to(false, versions, issue, accepts, behaviour)
}

/// The same to clients with a certificate of the server's own CA alone, where it `demands` one.
fn serve_to(
    demands: bool,
    versions: &[&'static SupportedProtocolVersion],
    issue: Issue,
    accepts: fn(u64) -> bool,
    behaviour: Behaviour,
) -> Server {
    let authority = Authority::new();
    let issued = issue(&authority);
    let chain = CertificateDer::pem_slice_iter(issued.certificate.as_bytes());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .unwrap();
    let config = if demands {
        let mut roots = RootCertStore::empty();
        let ca = authority.certificate();
        roots
            .add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap())
            .unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        config.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        config.with_no_client_auth()
    };
    let config = config.with_single_cert(
        chain.map(Result::unwrap).collect(),
        PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap(),
    );
    let mut config = config.unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        authority,
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    let (asked, accepted) = (server.asked.clone(), server.accepted.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            if !accepts(accepted.fetch_add(1, Ordering::Relaxed)) {
                continue;
            }
            let tls = ServerConnection::new(config.clone()).unwrap();
            let stream = rustls::StreamOwned::new(tls, stream);
            let asked = asked.clone();
            std::thread::spawn(move || answer(stream, &asked, behaviour));
        }
    });
    server
}

/// Reads heads and bodies of a known length, without caring what else they contain.
fn answer(mut stream: Stream, asked: &AtomicU64, behaviour: Behaviour) {
    let mut read = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let whole = || {
            let head = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            let text = String::from_utf8_lossy(&read[..head]).to_lowercase();
            let length = text.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            Some(head + length.unwrap_or(0_usize)).filter(|whole| *whole <= read.len())
        };
        if let Some(whole) = whole() {
            read.drain(..whole);
            if !behaviour(asked.fetch_add(1, Ordering::Relaxed), &mut stream) {
                return;
            }
            continue;
        }
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => read.extend_from_slice(&piece[..length]),
            _ => return,
        }
    }
}

fn say(stream: &mut Stream, text: &str) -> bool {
    stream.write_all(text.as_bytes()).is_ok() && stream.flush().is_ok()
}

/// Announces the end of what is sent.
fn say_bye(stream: &mut Stream) {
    stream.conn.send_close_notify();
    let _ = stream.conn.complete_io(&mut stream.sock);
}

fn ok(_: u64, stream: &mut Stream) -> bool {
    say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

fn good(authority: &Authority) -> Issued {
    authority.issue(&["localhost"])
}

fn always(_: u64) -> bool {
    true
}

fn run(server: &Server, words: &[&str], stop: Stop) -> Result<Completed, Error> {
    let url = format!("https://localhost:{}/path", server.address.port());
    let read = |file: &str| match file {
        "ca.pem" => Ok(server.authority.certificate().into_bytes()),
        _ => Err(format!("there is no {file}")),
    };
    driven(&written(&url, words), server.address.into(), &read, stop)
}

/// So many requests on four connections to a server that is trusted.
fn count(server: &Server, number: u64, words: &[&str]) -> Completed {
    let fixed = ["--connections", "4", "--cacert", "ca.pem"];
    run(server, &[&fixed[..], words].concat(), Stop::Count(number)).unwrap()
}

fn of_tls(completed: &Completed) -> &Tls {
    let http = completed.measurement.http.as_ref().unwrap();
    let tls = http.tls.as_ref().unwrap();
    assert_eq!(tls.full + tls.resumed, http.connections);
    tls
}

#[test]
fn each_version_counts_what_the_server_counts_and_is_named() {
    for (words, version) in [
        (&["--tls", "1.2"][..], "TLS 1.2 TLS_ECDHE_"),
        (&["--tls", "1.3"], "TLS 1.3 TLS_AES_"),
        (&[], "TLS 1.3 TLS_AES_"),
        (&["--rate", "2000/s"], "TLS 1.3 TLS_AES_"),
    ] {
        let server = serve(ANY_VERSION, good, always, ok);
        let completed = count(&server, 500, words);
        let m = &completed.measurement;
        assert_eq!((m.sent, m.received), (500, 500), "{words:?} {:?}", m.errors);
        assert_eq!(server.asked.load(Ordering::Relaxed), 500);
        assert_eq!(server.accepted.load(Ordering::Relaxed), 4);
        let tls = of_tls(&completed);
        assert_eq!((tls.full, tls.resumed, tls.verified), (4, 0, true));
        assert!(tls.handshake_us.p50 > 0.0);
        let (negotiated, times) = tls.negotiated.first_key_value().unwrap();
        assert!(negotiated.starts_with(version), "{words:?} {negotiated}");
        assert_eq!((tls.negotiated.len(), *times), (1, 4));
    }
}

#[test]
fn each_connection_resumes_its_own_session() {
    for version in ["1.2", "1.3"] {
        let server = serve(ANY_VERSION, good, always, ok);
        let completed = count(&server, 200, &["--no-keepalive", "--tls", version]);
        let m = &completed.measurement;
        assert_eq!(m.received, 200, "{version} {:?}", m.errors);
        assert_eq!(server.asked.load(Ordering::Relaxed), 200);
        // One more was tried before; of four connections each began once.
        let tls = of_tls(&completed);
        assert_eq!(tls.full + tls.resumed, 201, "{version}");
        assert!((4..=5).contains(&tls.full), "{version} {}", tls.full);
    }
}

#[test]
fn a_response_that_ends_with_the_connection_must_be_said_to_end() {
    let ends: Behaviour = |number, stream| {
        match number % 4 {
            // Nothing says whether that was all.
            0 => say(stream, "HTTP/1.1 200 OK\r\n\r\nuntil the end"),
            // It was not.
            1 => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
            // By its length it is known to be whole.
            2 => ok(number, stream),
            _ => {
                say(stream, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
                say_bye(stream);
                true
            }
        };
        number % 4 >= 2
    };
    let server = serve(ANY_VERSION, good, always, ends);
    let completed = count(&server, 200, &[]);
    let m = &completed.measurement;
    assert_eq!(
        (m.sent, m.received, m.lost),
        (200, 100, 100),
        "{:?}",
        m.errors
    );
    assert_eq!(errors(&completed), [("closed", 50), ("tls", 50)]);
}

#[test]
fn a_connection_whose_end_was_said_is_opened_again_though_it_is_only_half_closed() {
    let leaves: Behaviour = |number, stream| {
        ok(number, stream);
        if number % 10 == 9 {
            say_bye(stream);
        }
        true
    };
    for words in [&[][..], &["--rate", "500/s"]] {
        let server = serve(ANY_VERSION, good, always, leaves);
        let completed = count(&server, 300, words);
        let m = &completed.measurement;
        // What was sent before the end was seen is lost.
        assert!(m.received >= 270, "{words:?} {:?}", m.errors);
        assert_eq!(m.received + m.lost, 300);
        assert!(server.accepted.load(Ordering::Relaxed) >= 30);
    }
}

#[test]
fn long_bodies_and_short_records_pass_both_ways() {
    let long: Behaviour = |_, stream| {
        let length = 3 << 20;
        say(
            stream,
            &format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"),
        ) && say(stream, &"x".repeat(length))
    };
    let server = serve(ANY_VERSION, good, always, long);
    let body = format!("text:{}", "y".repeat(3 << 20));
    let completed = count(&server, 20, &["--body", &body, "--timeout", "60s"]);
    assert_eq!(
        completed.measurement.received, 20,
        "{:?}",
        completed.measurement.errors
    );
    assert!(completed.measurement.http.unwrap().received_bytes > 20 * (3 << 20));
    let bytewise: Behaviour = |_, stream| {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        (0..text.len()).all(|at| say(stream, &text[at..=at]))
    };
    let server = serve(ANY_VERSION, good, always, bytewise);
    let completed = count(&server, 100, &["--expect", "body~ok"]);
    assert_eq!(
        completed.measurement.received, 100,
        "{:?}",
        completed.measurement.errors
    );
}

#[test]
fn handshakes_that_fail_under_load_are_counted_by_their_name() {
    // Every fifth connection ends before TLS begins; the first, which is tried, does not.
    let server = serve(ANY_VERSION, good, |number| number % 5 != 4, ok);
    let completed = count(&server, 100, &["--no-keepalive"]);
    let m = &completed.measurement;
    assert_eq!(m.sent, m.received + m.lost);
    let broken = server.accepted.load(Ordering::Relaxed) / 5;
    assert_eq!(errors(&completed), [("tls", broken)]);
}

#[test]
fn a_server_that_cannot_be_trusted_is_refused_before_the_load() {
    let cases: [(Issue, &[&str], &[&str]); 6] = [
        (
            good,
            &[],
            &["ca-certificates.crt", "--cacert", "--insecure"],
        ),
        (
            |ca| ca.issue(&["shop.example", "127.0.0.1"]),
            &["--cacert", "ca.pem"],
            &[
                "for shop.example, 127.0.0.1, not for localhost",
                "--resolve",
                "--insecure",
            ],
        ),
        (
            |ca| ca.issue(&[]),
            &["--cacert", "ca.pem"],
            &["no host", "subjectAltName"],
        ),
        (
            |ca| ca.issue_expired(&["localhost"]),
            &["--cacert", "ca.pem"],
            &["expired", "days ago", "renew"],
        ),
        (
            |ca| Issued {
                certificate: ca.certificate(),
                key: ca.key(),
            },
            &["--cacert", "ca.pem"],
            &["that of a CA", "--insecure"],
        ),
        (good, &["--cacert", "other.pem"], &["there is no other.pem"]),
    ];
    for (issue, words, said) in cases {
        for keepalive in [&[][..], &["--no-keepalive"]] {
            let server = serve(ANY_VERSION, issue, always, ok);
            // The CAs of the system are those of somebody else.
            let other = Authority::new().certificate();
            let read = |file: &str| match file {
                "ca.pem" => Ok(server.authority.certificate().into_bytes()),
                "/etc/ssl/certs/ca-certificates.crt" => Ok(other.clone().into_bytes()),
                _ => Err(format!("there is no {file}")),
            };
            let url = format!("https://localhost:{}/path", server.address.port());
            let parameters = written(&url, &[words, keepalive].concat());
            let stop = Stop::After(Duration::from_secs(3));
            let error = driven(&parameters, server.address.into(), &read, stop).unwrap_err();
            let text = error.to_string();
            assert!(
                said.iter().all(|word| text.contains(word)),
                "{words:?}: {text}"
            );
            assert_eq!(server.asked.load(Ordering::Relaxed), 0);
        }
        if said[0] != "there is no other.pem" {
            let server = serve(ANY_VERSION, issue, always, ok);
            let completed = run(&server, &["--insecure"], Stop::Count(10)).unwrap();
            assert_eq!(completed.measurement.received, 10);
            assert!(!of_tls(&completed).verified);
        }
    }
}

#[test]
fn a_server_that_speaks_something_else_is_refused_before_the_load() {
    let plain = |words: &'static str, reads: bool| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if reads {
                    let _ = stream.read(&mut [0; 4096]);
                }
                let _ = stream.write_all(words.as_bytes());
            }
        });
        address
    };
    let of_version =
        |version: &'static SupportedProtocolVersion| serve(&[version], good, always, ok).address;
    for (address, words, said) in [
        (
            plain("HTTP/1.1 400 Bad Request\r\n\r\n", true),
            &[][..],
            ["without TLS", "http://"],
        ),
        (
            plain("SSH-2.0-OpenSSH_9.6\r\n", true),
            &[],
            ["without TLS", "http://"],
        ),
        (
            plain("", true),
            &[],
            ["closed the connection", "serves TLS"],
        ),
        // Unread bytes make the end a reset.
        (plain("", false), &[], ["in the handshake", "serves TLS"]),
        (
            of_version(&rustls::version::TLS12),
            &["--tls", "1.3"],
            ["does not speak TLS 1.3", "--tls"],
        ),
        (
            of_version(&rustls::version::TLS13),
            &["--tls", "1.2"],
            ["does not speak TLS 1.2", "--tls"],
        ),
    ] {
        let url = format!("https://localhost:{}/", address.port());
        let parameters = written(&url, &[&["--insecure"], words].concat());
        let stop = Stop::After(Duration::from_secs(3));
        let no_files = |_: &str| Err(String::new());
        let error = driven(&parameters, address.into(), &no_files, stop).unwrap_err();
        let text = error.to_string();
        assert!(
            said.iter().all(|word| text.contains(word)),
            "{words:?}: {text}"
        );
    }
}

#[test]
fn a_server_that_wants_a_certificate_gets_it_or_the_cause_is_named() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for keepalive in [&[][..], &["--no-keepalive"]] {
            let server = serve_to(true, &[version], good, always, ok);
            let (own, foreign) = (
                server.authority.issue_client(None),
                Authority::new().issue_client(None),
            );
            let url = format!("https://localhost:{}/path", server.address.port());
            let run = |words: &[&str]| {
                let read = |file: &str| {
                    let text = match file {
                        "ca.pem" => server.authority.certificate(),
                        "own.pem" => format!("{}{}", own.key, own.certificate),
                        "foreign.pem" => format!("{}{}", foreign.certificate, foreign.key),
                        _ => return Err(format!("there is no {file}")),
                    };
                    Ok(text.into_bytes())
                };
                let fixed = ["--connections", "2", "--cacert", "ca.pem"];
                let words = [&fixed, words, keepalive].concat();
                let stop = Stop::Count(50);
                driven(&written(&url, &words), server.address.into(), &read, stop)
            };
            let measured = run(&["--cert", "own.pem"]).unwrap().measurement;
            assert_eq!(measured.received, 50, "{version:?} {:?}", measured.errors);
            for (words, said) in [
                (&[][..], ["and none is sent", "--cert FILE"]),
                (
                    &["--cert", "foreign.pem"],
                    [
                        "does not accept the client certificate of foreign.pem",
                        "CA",
                    ],
                ),
            ] {
                let error = run(words).unwrap_err().to_string();
                let is_said = said.iter().all(|word| error.contains(word));
                assert!(is_said, "{version:?} {words:?}: {error}");
            }
            assert_eq!(server.asked.load(Ordering::Relaxed), 50);
        }
    }
}

#[test]
fn requests_go_through_a_unix_socket_and_one_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let load = |path: &Path, words: &[&str], stop| {
        let words = [
            &[
                "--connections",
                "4",
                "--unix-socket",
                path.to_str().unwrap(),
            ],
            words,
        ]
        .concat();
        let target = Target::Unix(path.to_owned());
        driven(
            &written("http://shop.example/x", &words),
            target,
            &|_| Err(String::new()),
            stop,
        )
    };
    let listener = UnixListener::bind(&path).unwrap();
    let again = listener.try_clone().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for stream in again.incoming() {
            let (mut stream, counted) = (stream.unwrap(), counted.clone());
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                while let Ok(length) = stream.read(&mut head) {
                    let text = String::from_utf8_lossy(&head[..length]);
                    if !text.contains("Host: shop.example\r\n") {
                        return;
                    }
                    counted.fetch_add(1, Ordering::Relaxed);
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    for (words, connections) in [(&[][..], 4), (&["--no-keepalive"], 201)] {
        let completed = load(&path, words, Stop::Count(200)).unwrap();
        let m = &completed.measurement;
        assert_eq!((m.sent, m.received), (200, 200), "{:?}", m.errors);
        assert_eq!(asked.swap(0, Ordering::Relaxed), 200);
        let http = m.http.as_ref().unwrap();
        assert_eq!((http.connections, http.tls.is_none()), (connections, true));
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let gone = folder.path().join("gone.sock");
    drop(UnixListener::bind(&gone).unwrap());
    for (path, said) in [
        (
            folder.path().join("none.sock"),
            ["No such file", "correct the path"],
        ),
        (file, ["refused", "nothing listens"]),
        (gone, ["refused", "nothing listens"]),
    ] {
        for words in [&[][..], &["--no-keepalive"]] {
            let error = load(&path, words, Stop::Count(10)).unwrap_err().to_string();
            assert!(error.contains("unix:/"), "{error}");
            assert!(said.iter().all(|word| error.contains(word)), "{error}");
        }
    }
}

#[test]
fn a_unix_socket_with_a_short_queue_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&socket2::SockAddr::unix(&path).unwrap())
        .unwrap();
    socket.listen(1).unwrap();
    std::thread::spawn(move || {
        loop {
            let (mut stream, _) = socket.accept().unwrap();
            std::thread::spawn(move || {
                while stream.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    let _ = stream.write_all(answer);
                }
            });
        }
    });
    let words = [
        "--connections",
        "40",
        "--unix-socket",
        path.to_str().unwrap(),
    ];
    let target = Target::Unix(path.clone());
    let parameters = written("http://localhost/", &words);
    let completed = driven(
        &parameters,
        target,
        &|_| Err(String::new()),
        Stop::Count(400),
    )
    .unwrap();
    assert_eq!(
        completed.measurement.received, 400,
        "{:?}",
        completed.measurement.errors
    );
}
