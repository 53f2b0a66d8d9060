//! Requests over TCP against small servers that answer well, badly, late, in pieces or not at all.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rungwise_load::Error;
use rungwise_load::engine::{Completed, Edge, Hooks, Stop};
use rungwise_load::parameters::{Driven, Length, Site, Traffic};
use rungwise_load::tcp::Parameters;
use rungwise_load::{memcached, redis};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Whole requests that it has read.
    pub(crate) asked: Arc<AtomicU64>,
    accepted: Arc<AtomicU64>,
}

/// A server that reads requests of `size` bytes each and does with the number of each of all, from 0, what `behaviour` does; false closes the
/// connection.
pub(crate) fn serve(
    size: usize,
    behaviour: impl Fn(u64, &[u8], &mut TcpStream) -> bool + Clone + Send + 'static,
) -> Server {
    serve_at("127.0.0.1:0", size, behaviour)
}

fn serve_at(
    at: &str,
    size: usize,
    behaviour: impl Fn(u64, &[u8], &mut TcpStream) -> bool + Clone + Send + 'static,
) -> Server {
    let listener = TcpListener::bind(at).unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    let (asked, accepted) = (server.asked.clone(), server.accepted.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, asked) = (stream.unwrap(), asked.clone());
            let behaviour = behaviour.clone();
            accepted.fetch_add(1, Ordering::Relaxed);
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let mut request = vec![0; size];
                while stream.read_exact(&mut request).is_ok() {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    if !behaviour(number, &request, &mut stream) {
                        return;
                    }
                }
            });
        }
    });
    server
}

pub(crate) fn echo(_: u64, request: &[u8], stream: &mut TcpStream) -> bool {
    stream.write_all(request).is_ok()
}

/// The words after `rungwise load KIND` as parameters of that kind.
fn written<P: clap::Args>(target: &str, words: &[&str]) -> P {
    let command = P::augment_args(clap::Command::new("load"));
    let line = ["load", target].into_iter().chain(words.iter().copied());
    let matches = command.try_get_matches_from(line).unwrap();
    P::from_arg_matches(&matches).unwrap()
}

/// Drives a load of any kind on streams.
pub(crate) fn drive_with<P: clap::Args + Traffic + Driven>(
    address: SocketAddr,
    words: &[&str],
    stop: Stop,
    hooks: &Hooks<'_>,
) -> Result<Completed, Error> {
    let parameters: P = written(&address.to_string(), words);
    assert_eq!(parameters.contradictions(), []);
    let read = |_: &str| Err("there are no files".to_owned());
    let site = Site {
        target: address.into(),
        cpus: &[0, 1],
        device: None,
        read: &read,
    };
    let length = Length {
        warmup: Duration::ZERO,
        stop,
        seed: 1,
    };
    parameters.prepare(&site)?.run(&length, hooks, &mut |_| {})
}

fn drive(server: &Server, words: &[&str], stop: Stop) -> Result<Completed, Error> {
    drive_of::<Parameters>(server, words, stop)
}

fn drive_of<P: clap::Args + Traffic + Driven>(
    server: &Server,
    words: &[&str],
    stop: Stop,
) -> Result<Completed, Error> {
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    drive_with::<P>(server.address, words, stop, &hooks)
}

/// So many requests on four connections.
fn count(server: &Server, number: u64, words: &[&str]) -> Completed {
    let words = [&["--connections", "4", "--threads", "2"], words].concat();
    drive(server, &words, Stop::Count(number)).unwrap()
}

fn errors(completed: &Completed) -> Vec<(&str, u64)> {
    let errors = completed.measurement.errors.iter();
    errors
        .map(|(name, count)| (name.as_str(), *count))
        .collect()
}

#[track_caller]
fn assert_all_answered(completed: &Completed, server: &Server, number: u64) {
    let m = &completed.measurement;
    assert_eq!(
        (m.sent, m.received, m.lost),
        (number, number, 0),
        "{:?}",
        m.errors
    );
    assert_eq!(server.asked.load(Ordering::Relaxed), number);
    assert!(m.errors.is_empty(), "{:?}", m.errors);
}

#[test]
fn counts_are_those_of_the_server_in_both_loops_at_any_depth_and_in_all_frames() {
    for (size, words) in [
        (100, &[][..]),
        (100, &["--depth", "16"]),
        (100, &["--nagle", "--rate", "20k/s"]),
        (100, &["--depth", "8", "--rate", "20k/s"]),
        (100, &["--ramp", "1k/s..20k/s", "--reply", "100B"]),
        (104, &["--frames", "length-prefixed", "--depth", "3"]),
        (
            102,
            &[
                "--frames",
                "length-prefixed",
                "--prefix-bytes",
                "2",
                "--prefix-little-endian",
                "--prefix-counts-itself",
            ],
        ),
        (101, &["--frames", "delimited", "--reply", "100B"]),
        (
            102,
            &[
                "--frames",
                "delimited",
                "--delimiter",
                "\\r\\n",
                "--depth",
                "5",
            ],
        ),
        (70_000, &["--request", "70000B", "--depth", "3"]),
        (
            4,
            &[
                "--request",
                "text:ping",
                "--reply",
                "text:ping",
                "--depth",
                "100",
            ],
        ),
        (2, &["--request", "hex:00ff", "--reply", "hex:00ff"]),
    ] {
        let server = serve(size, echo);
        let number = if size > 1000 { 500 } else { 5_000 };
        let completed = count(&server, number, words);
        assert_all_answered(&completed, &server, number);
        let stream = completed.measurement.stream.as_ref().unwrap();
        let bytes = number * size as u64;
        assert_eq!(
            (stream.sent_bytes, stream.received_bytes),
            (bytes, bytes),
            "{words:?}"
        );
        assert_eq!((stream.connections, stream.reconnects), (4, 0), "{words:?}");
        assert_eq!(server.accepted.load(Ordering::Relaxed), 4, "{words:?}");
        let latency = completed.measurement.latency_us;
        assert!(latency.uncorrected.p50 > 0.0 && latency.corrected.max >= latency.uncorrected.max);
    }
}

#[test]
fn requests_differ_where_their_text_has_placeholders() {
    let server = serve(5, |number, request, stream| {
        // Of one connection they come in order.
        assert_eq!(request, format!("{:04}\n", number + 1000).as_bytes());
        stream.write_all(b"ok\n").is_ok()
    });
    let words = [
        "--connections",
        "1",
        "--threads",
        "1",
        "--frames",
        "delimited",
        "--request",
        "text:${counter:1000}",
    ];
    let completed = drive(&server, &words, Stop::Count(500)).unwrap();
    assert_all_answered(&completed, &server, 500);
}

#[test]
fn ipv6_is_an_address_like_any_other() {
    let server = serve_at("[::1]:0", 100, echo);
    let completed = count(&server, 200, &[]);
    assert_all_answered(&completed, &server, 200);
}

#[test]
fn replies_in_pieces_and_several_at_once_are_taken_apart() {
    let server = serve(104, |_, request, stream| {
        request.chunks(7).all(|piece| {
            std::thread::sleep(Duration::from_micros(100));
            stream.write_all(piece).is_ok()
        })
    });
    let completed = count(
        &server,
        100,
        &["--frames", "length-prefixed", "--depth", "2"],
    );
    assert_all_answered(&completed, &server, 100);
    // All replies of four requests at once.
    let server = serve(400, echo);
    let words = ["--connections", "1", "--threads", "1", "--depth", "4"];
    let completed = drive(&server, &words, Stop::Count(400)).unwrap();
    let m = &completed.measurement;
    assert_eq!((m.received, m.lost), (400, 0));
}

#[test]
fn another_length_or_other_bytes_are_errors_and_the_connection_goes_on() {
    let server = serve(5, |number, _, stream| {
        let reply: &[u8] = match number % 4 {
            0 => b"pong\n",
            1 => b"pang\n",
            2 => b"pongs\n",
            _ => b"\n",
        };
        stream.write_all(reply).is_ok()
    });
    let words = [
        "--request",
        "text:ping",
        "--reply",
        "text:pong",
        "--frames",
        "delimited",
    ];
    let completed = count(&server, 400, &words);
    let m = &completed.measurement;
    assert_eq!(
        errors(&completed),
        [("reply_content", 100), ("reply_length", 200)]
    );
    assert_eq!((m.received, m.lost), (100, 300));
    let stream = m.stream.as_ref().unwrap();
    assert_eq!((stream.connections, stream.reconnects), (4, 0));
    assert!(stream.quotes["reply_content"].text.contains("other bytes"));
}

#[test]
fn a_server_that_closes_is_asked_again_on_a_new_connection() {
    // Each tenth request ends its connection: half of them with half a reply.
    let server = serve(100, |number, request, stream| match number % 20 {
        9 => false,
        19 => {
            let _ = stream.write_all(&request[..50]);
            false
        }
        _ => echo(number, request, stream),
    });
    let completed = count(&server, 1_000, &[]);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received, m.lost), (1_000, 900, 100));
    let all: u64 = errors(&completed).iter().map(|(_, count)| count).sum();
    assert_eq!(all, 100, "{:?}", m.errors);
    assert!(
        errors(&completed)
            .iter()
            .all(|(name, _)| ["closed", "reset"].contains(name))
    );
    let stream = m.stream.as_ref().unwrap();
    assert_eq!(stream.connections, server.accepted.load(Ordering::Relaxed));
    assert_eq!(stream.reconnects, stream.connections - 4);
    assert!(
        (96..=100).contains(&stream.reconnects),
        "{}",
        stream.reconnects
    );
}

#[test]
fn resets_are_counted_and_all_requests_of_their_connection_are_lost() {
    let server = serve(100, |number, request, stream| {
        if number % 50 == 49 {
            // Closed with bytes unread, or with this option, a connection is reset.
            let socket = socket2::SockRef::from(&*stream);
            socket.set_linger(Some(Duration::ZERO)).unwrap();
            return false;
        }
        echo(number, request, stream)
    });
    let completed = count(&server, 2_000, &["--depth", "4"]);
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received + m.lost), (2_000, 2_000));
    let all: u64 = errors(&completed).iter().map(|(_, count)| count).sum();
    assert_eq!(all, m.lost, "{:?}", m.errors);
    assert!(m.errors["reset"] > 0, "{:?}", m.errors);
    assert!(m.stream.as_ref().unwrap().reconnects > 10);
}

#[test]
fn half_a_reply_and_then_silence_ends_with_the_timeout() {
    let server = serve(100, |number, request, stream| {
        if number % 10 == 9 {
            return stream.write_all(&request[..99]).is_ok();
        }
        echo(number, request, stream)
    });
    let began = Instant::now();
    let words = [
        "--timeout",
        "50ms",
        "--connections",
        "2",
        "--threads",
        "1",
        "--depth",
        "2",
    ];
    let completed = drive(&server, &words, Stop::Count(100)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(20));
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received + m.lost), (100, 100));
    let [timeouts, abandoned] =
        ["timeout", "abandoned"].map(|name| m.errors.get(name).copied().unwrap_or(0));
    assert!(timeouts > 0, "{:?}", m.errors);
    assert_eq!(timeouts + abandoned, m.lost, "{:?}", m.errors);
}

#[test]
fn a_silent_or_absent_server_ends_the_run_with_the_cause() {
    let server = serve(100, |_, _, _| true);
    let began = Instant::now();
    let ended = drive(
        &server,
        &["--timeout", "100ms"],
        Stop::After(Duration::from_mins(1)),
    );
    assert!(matches!(ended, Err(Error::NoReplies { .. })), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = Server {
        address: gone.local_addr().unwrap(),
        asked: Arc::default(),
        accepted: Arc::default(),
    };
    drop(gone);
    let ended = drive(&nobody, &[], Stop::Count(1)).unwrap_err();
    assert!(ended.to_string().contains("start the server"), "{ended}");
}

#[test]
fn what_is_no_reply_ends_its_connection_and_says_why() {
    for (words, reply, why) in [
        (
            &["--frames", "length-prefixed", "--request", "96B"][..],
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "a length prefix above 1 GiB",
        ),
        // Longer than it should be.
        (&["--reply", "10B"], b"0123456789abc", "more bytes"),
    ] {
        let server = serve(100, move |number, _, stream| {
            let good: &[u8] = if why.starts_with("more") {
                b"0123456789"
            } else {
                b"\0\0\0\x01a"
            };
            let reply = if number % 4 == 3 { reply } else { good };
            stream.write_all(reply).is_ok()
        });
        let completed = count(&server, 200, words);
        let m = &completed.measurement;
        assert_eq!(
            (m.sent, m.received, m.lost),
            (200, 150, 50),
            "{:?}",
            m.errors
        );
        assert_eq!(errors(&completed), [("malformed", 50)]);
        let stream = m.stream.as_ref().unwrap();
        let (broken, times) = stream.broken.first_key_value().unwrap();
        assert!(broken.contains(why) && *times == 50, "{:?}", stream.broken);
    }
}

#[test]
fn a_stall_is_in_the_latency_from_the_intended_start() {
    let server = serve(100, |number, request, stream| {
        if number == 100 {
            std::thread::sleep(Duration::from_millis(300));
        }
        echo(number, request, stream)
    });
    let words = ["--connections", "1", "--threads", "1", "--rate", "1k/s"];
    let completed = drive(&server, &words, Stop::Count(500)).unwrap();
    let m = &completed.measurement;
    assert_eq!((m.received, m.lost), (500, 0), "{:?}", m.errors);
    let latency = m.latency_us;
    assert!(latency.corrected.p90 > 100_000.0, "{latency:?}");
    assert!(
        latency.uncorrected.p90 < latency.corrected.p90,
        "{latency:?}"
    );
    assert!(
        m.client.starved && m.client.late_sends > 0.3,
        "{:?}",
        m.client
    );
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    for (target, words, key) in [
        ("a:1", &["--prefix-bytes", "4"][..], "prefix_bytes"),
        (
            "a:1",
            &["--frames", "length-prefixed", "--prefix-bytes", "3"],
            "prefix_bytes",
        ),
        (
            "a:1",
            &[
                "--frames",
                "length-prefixed",
                "--prefix-bytes",
                "1",
                "--request",
                "256B",
            ],
            "prefix_bytes",
        ),
        (
            "a:1",
            &["--frames", "length-prefixed", "--delimiter", ";"],
            "delimiter",
        ),
        (
            "a:1",
            &["--frames", "delimited", "--request", "text:a\nb"],
            "request",
        ),
        ("a:1", &["--request", "text:${counter}"], "reply"),
        ("a:1", &["--request", "text:${conter}"], "request"),
        ("a:1", &["--request", "text:"], "request"),
        ("a:1", &["--reply", "0B"], "reply"),
        ("a:1", &["--depth", "0"], "depth"),
        ("a:1", &["--connections", "0"], "connections"),
        (
            "a:1",
            &["--connections", "60000", "--depth", "1000"],
            "depth",
        ),
        ("a:1", &["--insecure"], "insecure"),
        ("unix:/run/a", &["--tls"], "server_name"),
        ("a:1", &["--rate", "1/s", "--ramp", "1/s..2/s"], "ramp"),
    ] {
        let found = written::<Parameters>(target, words).contradictions();
        let is_found = found.iter().any(|one| one.keys.contains(&key));
        assert!(is_found, "{words:?}: {found:?}");
    }
}

/// What is under way when a server answers each fourth request with what is no reply of its protocol.
fn broken<P: clap::Args + Traffic + Driven>(
    (size, words): (usize, &[&str]),
    good: &'static str,
    bad: &'static str,
) -> Completed {
    let server = serve(size, move |number, _, stream| {
        let reply = if number % 4 == 3 { bad } else { good };
        stream.write_all(reply.as_bytes()).is_ok()
    });
    let words = [&["--connections", "2", "--threads", "1"], words].concat();
    let completed = drive_of::<P>(&server, &words, Stop::Count(100)).unwrap();
    let m = &completed.measurement;
    assert_eq!(
        (m.sent, m.received, m.lost),
        (100, 75, 25),
        "{bad:?}: {:?}",
        m.errors
    );
    completed
}

#[test]
fn what_is_no_reply_of_redis_or_memcached_ends_its_connection_and_an_error_does_not() {
    let ping = (14, &[][..]);
    let get = (16, &["--keys", "1", "--sets", "0"][..]);
    let hit = "VALUE rungwise:1 0 2\r\nok\r\nEND\r\n";
    for (completed, is_broken) in [
        (
            broken::<redis::Parameters>(ping, "+PONG\r\n", "PONG\r\n"),
            true,
        ),
        (
            broken::<redis::Parameters>(ping, "+PONG\r\n", "+PONG\r\n+PONG\r\n"),
            true,
        ),
        (
            broken::<redis::Parameters>(ping, "*1\r\n*1\r\n:1\r\n", "$2\r\nabc\r\n"),
            true,
        ),
        (
            broken::<redis::Parameters>(ping, "+PONG\r\n", "-LOADING wait\r\n"),
            false,
        ),
        (
            broken::<memcached::Parameters>(get, hit, "STORED\r\n"),
            true,
        ),
        (
            broken::<memcached::Parameters>(get, hit, "SERVER_ERROR out of memory\r\n"),
            false,
        ),
    ] {
        let m = &completed.measurement;
        let stream = m.stream.as_ref().unwrap();
        if is_broken {
            assert_eq!(errors(&completed), [("malformed", 25)]);
            assert_eq!(stream.broken.values().sum::<u64>(), 25);
            assert!(stream.reconnects >= 20);
        } else {
            let (class, quote) = stream.quotes.first_key_value().unwrap();
            assert_eq!(m.errors[class], 25);
            assert!(["LOADING wait", "SERVER_ERROR out of memory"].contains(&&*quote.text));
            assert_eq!(stream.reconnects, 0);
        }
    }
}

#[test]
fn half_a_reply_of_redis_and_then_silence_ends_with_the_timeout() {
    let server = serve(14, |number, _, stream| {
        let reply: &[u8] = if number % 10 == 9 {
            b"*2\r\n$5\r\nab"
        } else {
            b"+PONG\r\n"
        };
        stream.write_all(reply).is_ok()
    });
    let words = ["--timeout", "50ms", "--connections", "2", "--threads", "1"];
    let completed = drive_of::<redis::Parameters>(&server, &words, Stop::Count(100)).unwrap();
    assert_eq!(errors(&completed), [("timeout", 10)]);
}
