//! HTTP traffic against small servers that know what they were asked, and answer well, badly, late, in pieces or not at all.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use rungwise_load::engine::{Completed, Edge, Hooks, Stop};
use rungwise_load::http::Parameters;
use rungwise_load::parameters::{Driven as _, Length, Site, Target, Traffic as _};
use rungwise_load::{Error, WORKLOADS};

/// What a server does with request `n` of all, whose body is given; false closes the connection.
type Behaviour = fn(u64, &[u8], &mut TcpStream) -> bool;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Requests that it has read to their end.
    asked: Arc<AtomicU64>,
    accepted: Arc<AtomicU64>,
}

pub(crate) fn serve(
    behaviour: impl Fn(u64, &[u8], &mut TcpStream) -> bool + Clone + Send + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    let (asked, accepted) = (server.asked.clone(), server.accepted.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, asked, behaviour) = (stream.unwrap(), asked.clone(), behaviour.clone());
            accepted.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || answer(stream, &asked, behaviour));
        }
    });
    server
}

/// Reads requests as RFC 9112 delimits them.
fn answer(
    mut stream: TcpStream,
    asked: &AtomicU64,
    behaviour: impl Fn(u64, &[u8], &mut TcpStream) -> bool,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let number = asked.fetch_add(1, Ordering::Relaxed);
        if !behaviour(number, &body, &mut stream) {
            return;
        }
    }
}

fn say(stream: &mut TcpStream, text: &str) -> bool {
    stream.write_all(text.as_bytes()).is_ok()
}

pub(crate) fn ok(_: u64, _: &[u8], stream: &mut TcpStream) -> bool {
    say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

fn parameters(server: &Server, words: &[&str]) -> Parameters {
    written(&format!("http://{}/path", server.address), words)
}

/// The words after `rungwise load http` as parameters.
pub(crate) fn written(url: &str, words: &[&str]) -> Parameters {
    let command = Parameters::augment_args(clap::Command::new("http"));
    let line = ["http", url].into_iter().chain(words.iter().copied());
    let matches = command.try_get_matches_from(line).unwrap();
    Parameters::from_arg_matches(&matches).unwrap()
}

fn drive(server: &Server, words: &[&str], stop: Stop) -> Result<Completed, Error> {
    let no_files = |_: &str| Err("there are no files".to_owned());
    let parameters = parameters(server, words);
    driven(&parameters, server.address.into(), &no_files, stop)
}

/// Drives it, with files to `read`.
pub(crate) fn driven(
    parameters: &Parameters,
    target: Target,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    stop: Stop,
) -> Result<Completed, Error> {
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    run(parameters, target, read, stop, &hooks)
}

/// Drives it without files, observed.
pub(crate) fn drive_with(
    server: &Server,
    words: &[&str],
    stop: Stop,
    hooks: &Hooks<'_>,
) -> Result<Completed, Error> {
    let no_files = |_: &str| Err("there are no files".to_owned());
    let parameters = parameters(server, words);
    run(&parameters, server.address.into(), &no_files, stop, hooks)
}

fn run(
    parameters: &Parameters,
    target: Target,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    stop: Stop,
    hooks: &Hooks<'_>,
) -> Result<Completed, Error> {
    assert_eq!(parameters.contradictions(), []);
    let site = Site {
        target,
        cpus: &[0, 1],
        device: None,
        read,
    };
    let load = parameters.prepare(&site)?;
    let length = Length {
        warmup: Duration::ZERO,
        stop,
        seed: 1,
    };
    load.run(&length, hooks, &mut |_| {})
}

/// So many requests on four connections.
fn count(behaviour: Behaviour, number: u64, words: &[&str]) -> (Completed, Server) {
    let server = serve(behaviour);
    let words: Vec<&str> = ["--connections", "4"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let completed = drive(&server, &words, Stop::Count(number)).unwrap();
    (completed, server)
}

pub(crate) fn errors(completed: &Completed) -> Vec<(&str, u64)> {
    let errors = completed.measurement.errors.iter();
    errors
        .map(|(name, count)| (name.as_str(), *count))
        .collect()
}

fn statuses(completed: &Completed) -> Vec<(&str, u64)> {
    let http = completed.measurement.http.as_ref().unwrap();
    let statuses = http.statuses.iter();
    statuses
        .map(|(status, count)| (status.as_str(), *count))
        .collect()
}

#[test]
fn counts_are_those_of_the_server() {
    let (completed, server) = count(ok, 1_000, &[]);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received, m.lost), (1_000, 1_000, 0));
    assert_eq!(server.asked.load(Ordering::Relaxed), 1_000);
    assert_eq!(statuses(&completed), [("200", 1_000)]);
    assert_eq!(errors(&completed), []);
    let http = m.http.as_ref().unwrap();
    let accepted = server.accepted.load(Ordering::Relaxed);
    assert_eq!((http.connections, accepted), (4, 4));
    assert!(http.first_byte_us.p50 > 0.0 && http.first_byte_us.max <= m.latency_us.uncorrected.max);
    assert!(http.connect_us.max > 0.0);
}

#[test]
fn each_request_may_have_a_connection_of_its_own() {
    let closes: Behaviour = |_, _, stream| {
        say(
            stream,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        );
        false
    };
    for (behaviour, words) in [(ok as Behaviour, &["--no-keepalive"][..]), (closes, &[])] {
        let (completed, server) = count(behaviour, 200, words);
        assert_eq!(completed.measurement.received, 200);
        assert_eq!(server.asked.load(Ordering::Relaxed), 200);
        assert!((200..=204).contains(&server.accepted.load(Ordering::Relaxed)));
        assert_eq!(errors(&completed), []);
    }
}

#[test]
fn responses_may_be_delimited_in_any_way_and_come_in_pieces() {
    let any: Behaviour = |number, _, stream| match number % 4 {
        0 => say(
            stream,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        1 => say(
            stream,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        ),
        2 => {
            say(stream, "HTTP/1.1 200 OK\r\n\r\nuntil the end, ok");
            false
        }
        _ => {
            let pieces = [
                "HTTP/1.1 200 O",
                "K\r\nContent-Le",
                "ngth: 2\r\n\r",
                "\no",
                "k",
            ];
            pieces.iter().all(|piece| {
                std::thread::sleep(Duration::from_millis(2));
                say(stream, piece)
            })
        }
    };
    let (completed, server) = count(any, 400, &[]);
    assert_eq!(
        completed.measurement.received, 400,
        "{:?}",
        completed.measurement.errors
    );
    assert_eq!(server.asked.load(Ordering::Relaxed), 400);
    assert_eq!(statuses(&completed), [("200", 300), ("204", 100)]);
}

#[test]
fn head_has_no_body_and_a_post_has_one() {
    let to_head: Behaviour =
        |_, _, stream| say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n");
    let (completed, _) = count(to_head, 100, &["--method", "HEAD"]);
    assert_eq!(completed.measurement.received, 100);
    let wants_body: Behaviour = |number, body, stream| {
        assert_eq!(body, b"{\"x\":1}");
        ok(number, body, stream)
    };
    let (completed, server) = count(wants_body, 100, &["--body", "text:{\"x\":1}"]);
    assert_eq!(completed.measurement.received, 100);
    assert_eq!(server.asked.load(Ordering::Relaxed), 100);
}

#[test]
fn what_is_not_expected_is_no_answer() {
    let some: Behaviour = |number, body, stream| match number % 4 {
        0 => ok(number, body, stream),
        1 => say(stream, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
        2 => say(
            stream,
            "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
        ),
        _ => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nerror"),
    };
    let (completed, _) = count(some, 400, &[]);
    let m = &completed.measurement;
    assert_eq!((m.received, m.lost), (300, 100));
    assert_eq!(errors(&completed), [("status_5xx", 100)]);
    let (completed, server) = count(some, 400, &["--expect", "status=200,body~ok"]);
    let m = &completed.measurement;
    assert_eq!((m.received, m.lost), (100, 300));
    assert_eq!(
        errors(&completed),
        [("body", 100), ("status_3xx", 100), ("status_5xx", 100)]
    );
    assert_eq!(
        statuses(&completed),
        [("200", 200), ("302", 100), ("503", 100)]
    );
    // A wrong answer is no reason to leave the connection.
    assert_eq!(server.accepted.load(Ordering::Relaxed), 4);
}

#[test]
fn a_server_that_never_answers_well_is_measured_and_not_called_silent() {
    let broken: Behaviour =
        |_, _, stream| say(stream, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let (completed, _) = count(broken, 50, &[]);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received, m.lost), (50, 0, 50));
    assert_eq!(statuses(&completed), [("500", 50)]);
}

#[test]
fn broken_responses_are_counted_by_what_is_wrong() {
    let broken: Behaviour = |number, body, stream| match number % 5 {
        0 => ok(number, body, stream),
        // Half of a response.
        1 => {
            say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
            false
        }
        2 => say(stream, "SSH-2.0-OpenSSH_9.6\r\n\r\n"),
        // More than one.
        3 => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore"),
        // Closed without a word.
        _ => false,
    };
    let (completed, server) = count(broken, 100, &[]);
    let m = &completed.measurement;
    assert_eq!(server.asked.load(Ordering::Relaxed), 100);
    assert_eq!((m.sent, m.received, m.lost), (100, 20, 80));
    let all: u64 = m.errors.values().sum();
    assert_eq!(all, 80, "{:?}", m.errors);
    assert_eq!(m.errors.get("malformed"), Some(&40), "{:?}", m.errors);
}

#[test]
fn endless_heads_and_chunks_take_no_memory_and_end() {
    let endless: Behaviour = |_, _, stream| {
        say(stream, "HTTP/1.1 200 OK\r\nX: ");
        while say(stream, &"x".repeat(1 << 16)) {}
        false
    };
    let (completed, _) = count(endless, 8, &["--timeout", "2s"]);
    assert_eq!(errors(&completed), [("malformed", 8)]);
}

#[test]
fn a_late_response_is_lost_and_the_load_goes_on() {
    let slow: Behaviour = |number, body, stream| {
        if number % 10 == 9 {
            std::thread::sleep(Duration::from_millis(300));
        }
        ok(number, body, stream)
    };
    let (completed, _) = count(slow, 100, &["--timeout", "100ms"]);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received, m.lost), (100, 90, 10));
    assert_eq!(errors(&completed), [("timeout", 10)]);
    assert!(m.latency_us.corrected.max < 100_000.0);
}

#[test]
fn a_stall_shows_in_the_corrected_latency_of_an_open_loop_alone() {
    // A server that stalls once for 300 ms, for all.
    let stalls: Behaviour = |number, body, stream| {
        static STALL: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _held = STALL.lock().unwrap();
        if number == 300 {
            std::thread::sleep(Duration::from_millis(300));
        }
        ok(number, body, stream)
    };
    let server = serve(stalls);
    let words = ["--connections", "2", "--rate", "1000/s"];
    let completed = drive(&server, &words, Stop::Count(1_000)).unwrap();
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received, m.lost), (1_000, 1_000, 0));
    // Some 300 requests were due meanwhile; two of them were under way.
    assert!(m.latency_us.corrected.p90 > 100_000.0, "{:?}", m.latency_us);
    assert!(
        m.latency_us.uncorrected.p99 < 100_000.0,
        "{:?}",
        m.latency_us
    );
    assert!(
        m.latency_us.uncorrected.max > 290_000.0,
        "{:?}",
        m.latency_us
    );
}

#[test]
fn connections_that_the_server_closes_between_requests_are_opened_again() {
    let leaves: Behaviour = |number, body, stream| {
        ok(number, body, stream);
        number % 10 != 9
    };
    let server = serve(leaves);
    let words = ["--connections", "4", "--rate", "500/s"];
    let completed = drive(&server, &words, Stop::Count(300)).unwrap();
    let m = &completed.measurement;
    assert!(m.received >= 295, "{} {:?}", m.received, m.errors);
    assert!(server.accepted.load(Ordering::Relaxed) >= 30);
}

/// A server that answers `most` requests, then closes everything, its port too.
fn serve_until(most: u64) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    let asked = server.asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            if asked.load(Ordering::Relaxed) >= most {
                return;
            }
            let asked = asked.clone();
            std::thread::spawn(move || answer(stream.unwrap(), &asked, dies));
        }
    });
    server
}

fn dies(number: u64, body: &[u8], stream: &mut TcpStream) -> bool {
    number < 200 && ok(number, body, stream)
}

#[test]
fn a_server_that_dies_under_load_leaves_each_request_counted_once() {
    for loop_of in [&["--rate", "1000/s"][..], &[]] {
        let server = serve_until(200);
        let words = [
            &["--connections", "4", "--threads", "1", "--timeout", "200ms"],
            loop_of,
        ]
        .concat();
        let completed = drive(&server, &words, Stop::After(Duration::from_secs(1))).unwrap();
        let m = &completed.measurement;
        assert_eq!(m.received, 200, "{loop_of:?} {:?}", m.errors);
        assert!(m.lost > 10, "{loop_of:?} {:?}", m.errors);
        assert_eq!(m.sent, m.received + m.lost, "{loop_of:?} {:?}", m.errors);
        assert!(
            m.errors.contains_key("refused"),
            "{loop_of:?} {:?}",
            m.errors
        );
    }
}

#[test]
fn an_answer_to_half_a_request_counts_and_its_connection_is_not_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            say(
                &mut stream,
                "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n",
            );
            // It stays open for a moment, unread: what is left of the body must not be followed by a request.
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let body = format!("text:{}", "x".repeat(8 << 20));
    let words = [
        "--connections",
        "1",
        "--body",
        &body,
        "--expect",
        "status=413",
    ];
    let completed = drive(&server, &words, Stop::Count(20)).unwrap();
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received), (20, 20), "{:?}", m.errors);
    assert_eq!(m.http.as_ref().unwrap().connections, 20);
}

#[test]
fn a_closed_port_is_an_error_before_the_load_and_in_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    drop(listener);
    for words in [&[][..], &["--no-keepalive"]] {
        let error = drive(&server, words, Stop::After(Duration::from_secs(3))).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("refused") && text.contains("start the server"),
            "{text}"
        );
    }
}

#[test]
fn more_connections_than_threads_and_fewer_both_work() {
    for (connections, threads) in [("1", "2"), ("7", "3")] {
        let server = serve(ok);
        let words = ["--connections", connections, "--threads", threads];
        let completed = drive(&server, &words, Stop::Count(100)).unwrap();
        assert_eq!(completed.measurement.received, 100);
        let accepted = server.accepted.load(Ordering::Relaxed);
        assert_eq!(accepted.to_string(), connections);
    }
}

#[test]
fn contradictions_name_their_parameter() {
    let server = Server {
        address: ([127, 0, 0, 1], 9).into(),
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    for (words, key) in [
        (&["--connections", "0"][..], "connections"),
        (&["--connections", "99999"], "connections"),
        (&["--rate", "5/s", "--ramp", "1/s..2/s"], "ramp"),
        (&["--method", "HEAD", "--expect", "body~x"], "expect"),
    ] {
        let found = parameters(&server, words).contradictions();
        assert!(
            found.iter().any(|one| one.keys.contains(&key)),
            "{words:?}: {found:?}"
        );
    }
    assert!(
        WORKLOADS
            .iter()
            .any(|kind| kind.id == "http" && kind.by_hand)
    );
}
