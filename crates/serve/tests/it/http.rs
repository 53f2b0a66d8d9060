//! The fixed HTTP reply, asked over real connections in every way that clients have.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rungwise_serve::http::{Answer, Fixed};
use rungwise_serve::tcp::{Config, Server};

use crate::client::wait_until;
use crate::tcp::{config, connect, on_each_io};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const CLOSE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

fn serve(answer: Answer) -> Server {
    let fixed = Fixed::new(answer).unwrap();
    let config = Config {
        workers: 2,
        ..config()
    };
    Server::start(&config, move |_| fixed.clone()).unwrap_or_else(|error| panic!("{error}"))
}

fn hello() -> Server {
    serve(Answer {
        body: b"hello".to_vec(),
        ..Answer::default()
    })
}

fn reply(connection: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n{connection}\r\n{body}"
    )
}

/// All that comes until the server ends the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn pipelined_requests_are_answered_in_order_and_a_close_ends_them() {
    on_each_io(|| {
        let server = hello();
        let mut stream = connect(&server);
        let head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
        let post =
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let ignored = GET;
        let all = [GET, head, post, GET, CLOSE, ignored].concat();
        stream.write_all(all.as_bytes()).unwrap();
        let (full, bare) = (reply("", "hello"), reply("", ""));
        let last = reply("Connection: close\r\n", "hello");
        assert_eq!(rest(stream), [&*full, &bare, &full, &full, &last].concat());
        let total = server.stop().total();
        assert_eq!((total.requests, total.refused, total.resets), (5, 0, 0));
        assert_eq!(total.received_bytes, all.len() as u64);
    });
}

#[test]
fn requests_may_come_byte_by_byte_and_keep_their_connection() {
    on_each_io(|| {
        let server = hello();
        let mut stream = connect(&server);
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        for _ in 0..3 {
            for request in [GET, post] {
                for byte in request.as_bytes() {
                    stream.write_all(&[*byte]).unwrap();
                }
                let mut got = vec![0; reply("", "hello").len()];
                stream.read_exact(&mut got).unwrap();
                assert_eq!(got, reply("", "hello").as_bytes());
            }
        }
        let total = server.stop().total();
        assert_eq!((total.accepted, total.requests), (1, 6));
    });
}

#[test]
fn old_clients_learn_what_becomes_of_the_connection() {
    on_each_io(|| {
        let server = hello();
        let mut stream = connect(&server);
        let kept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        stream.write_all(kept.as_bytes()).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let expected = [
            reply("Connection: keep-alive\r\n", "hello"),
            reply("Connection: close\r\n", "hello"),
        ];
        assert_eq!(rest(stream), expected.concat());
    });
}

#[test]
fn a_client_that_has_sent_all_and_closed_its_half_gets_its_reply() {
    on_each_io(|| {
        let server = hello();
        let mut stream = connect(&server);
        stream.write_all(GET.repeat(2).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(stream), reply("", "hello").repeat(2));
        let mut cut = connect(&server);
        cut.write_all(&GET.as_bytes()[..10]).unwrap();
        cut.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(cut), "");
        let total = server.stop().total();
        assert_eq!((total.requests, total.cut), (2, 1));
    });
}

#[test]
fn what_is_no_request_gets_400_after_the_replies_before_it() {
    on_each_io(|| {
        let server = hello();
        for (bad, why) in [
            ("nonsense\r\n\r\n", "not that of an HTTP request"),
            ("GET / HTTP/1.1\r\n\r\n", "one Host"),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
                "Content-Length",
            ),
        ] {
            let mut stream = connect(&server);
            stream.write_all(format!("{GET}{bad}").as_bytes()).unwrap();
            // A client that goes on sending still reads why.
            for _ in 0..20 {
                let _ = stream.write_all(&vec![b'x'; 50_000]);
            }
            stream.shutdown(Shutdown::Write).unwrap();
            let text = rest(stream);
            let (first, refusal) = text.split_at(reply("", "hello").len());
            assert_eq!(first, reply("", "hello"));
            assert!(
                refusal.starts_with("HTTP/1.1 400 Bad Request\r\n"),
                "{refusal}"
            );
            assert!(
                refusal.contains(why) && refusal.contains("Connection: close"),
                "{refusal}"
            );
        }
        let mut stream = connect(&server);
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(70_000));
        stream.write_all(long.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(rest(stream).contains("longer than 64 KiB"));
        let total = server.stop().total();
        assert_eq!((total.requests, total.refused, total.resets), (3, 4, 0));
    });
}

#[test]
fn a_refused_client_that_neither_sends_nor_closes_is_closed() {
    on_each_io(|| {
        let server = hello();
        let mut stream = connect(&server);
        stream.write_all(b"nonsense\r\n\r\n").unwrap();
        assert!(server.counters().total().closed == 0);
        wait_until(|| server.counters().total().closed == 1);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.contains("400"), "{text}");
    });
}

#[test]
fn a_client_that_waits_with_its_body_gets_100_continue() {
    on_each_io(|| {
        let server = hello();
        let mut stream = connect(&server);
        let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut interim = [0; 25];
        stream.read_exact(&mut interim).unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"abc").unwrap();
        assert_eq!(rest(stream), reply("Connection: close\r\n", "hello"));
    });
}

#[test]
fn large_bodies_reach_slow_readers_whole_and_in_order() {
    on_each_io(|| {
        let body: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let server = serve(Answer {
            body: body.clone(),
            ..Answer::default()
        });
        let mut stream = connect(&server);
        let requests = [&GET.repeat(9), CLOSE].concat();
        stream.write_all(requests.as_bytes()).unwrap();
        let mut all = Vec::new();
        let mut piece = vec![0; 100_000];
        loop {
            match stream.read(&mut piece).unwrap() {
                0 => break,
                length => all.extend_from_slice(&piece[..length]),
            }
            std::thread::yield_now();
        }
        let mut at = 0;
        for _ in 0..10 {
            let head = all[at..]
                .windows(4)
                .position(|end| end == b"\r\n\r\n")
                .unwrap()
                + 4;
            let text = String::from_utf8_lossy(&all[at..at + head]).to_string();
            assert!(text.contains("Content-Length: 3000000\r\n"), "{text}");
            at += head;
            assert!(all[at..at + body.len()] == body);
            at += body.len();
        }
        assert_eq!(at, all.len());
        let total = server.stop().total();
        assert_eq!((total.requests, total.sent_bytes), (10, all.len() as u64));
    });
}

#[test]
fn a_planted_delay_is_that_of_each_request() {
    on_each_io(|| {
        let delay = Duration::from_millis(50);
        let server = serve(Answer {
            body: b"hello".to_vec(),
            delay,
            ..Answer::default()
        });
        let began = Instant::now();
        let mut streams: Vec<_> = (0..4).map(|_| connect(&server)).collect();
        for stream in &mut streams {
            stream
                .write_all([GET, GET, CLOSE].concat().as_bytes())
                .unwrap();
        }
        // One that leaves meanwhile is not waited for.
        let mut gone = connect(&server);
        gone.write_all(GET.as_bytes()).unwrap();
        drop(gone);
        for stream in streams {
            assert_eq!(rest(stream).matches("hello").count(), 3);
        }
        assert!(began.elapsed() >= 3 * delay);
        // Delays of several connections pass at the same time; this bound has room for a loaded machine.
        assert!(began.elapsed() < 12 * delay + Duration::from_secs(5));
        let total = server.stop().total();
        assert_eq!((total.requests, total.accepted, total.closed), (13, 5, 5));
    });
}
