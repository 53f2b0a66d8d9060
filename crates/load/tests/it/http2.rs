//! HTTP/2 traffic against a server that writes its frames by hand, and keeps to the rules or does not.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::engine::Stop;
use rungwise_load::parameters::Traffic as _;

use crate::http::{errors, written};
use crate::http2_server::{
    Behaviour, CONTINUATION, DATA, END, GOAWAY, HEADERS, Manner, OK, PADDED, PING, PUSH_PROMISE,
    RST_STREAM, SETTINGS, Seen, Server, WHOLE, WINDOW_UPDATE, answers, count, drive, frame, http2,
    named, serve, serve_as,
};

#[test]
fn counts_are_those_of_the_server() {
    for words in [
        &["--connections", "2"][..],
        &["--connections", "2", "--streams", "8", "--threads", "2"],
        &["--connections", "2", "--streams", "8", "--rate", "4000/s"],
        &[
            "--connections",
            "3",
            "--streams",
            "100",
            "--expect",
            "status=200,body~ok",
        ],
    ] {
        let server = serve(answers);
        let completed = count(&server, words, 1_000);
        let m = &completed.measurement;
        assert_eq!(
            (m.sent, m.received, m.lost),
            (1_000, 1_000, 0),
            "{words:?}: {:?}",
            m.errors
        );
        assert_eq!(server.seen.asked(), 1_000);
        let http = m.http.as_ref().unwrap();
        assert_eq!(
            http.connections,
            server.seen.accepted.load(Ordering::Relaxed)
        );
        assert_eq!(named(&http.statuses), [("200", 1_000)]);
        assert!(
            http.first_byte_us.p50 > 0.0 && http.first_byte_us.max <= m.latency_us.uncorrected.max
        );
        let settled = server.seen.settings_acknowledged.load(Ordering::Relaxed);
        assert_eq!(settled, http.connections, "settings are acknowledged");
    }
}

#[test]
fn streams_are_used_at_the_same_time_and_answered_in_any_order() {
    let server = serve(|_, _, peer| {
        if peer.held.len() < 8 {
            return true;
        }
        // The last one first, heads before bodies.
        let held: Vec<u32> = peer.held.drain(..).rev().collect();
        held.iter()
            .all(|stream| peer.frame(HEADERS, WHOLE, *stream, OK))
            && held
                .iter()
                .all(|stream| peer.frame(DATA, END, *stream, b"ok"))
    });
    let words = [
        "--connections",
        "1",
        "--streams",
        "8",
        "--expect",
        "body~ok",
    ];
    let completed = count(&server, &words, 800);
    assert_eq!(completed.measurement.received, 800);
    assert_eq!(errors(&completed), []);
    assert_eq!(server.seen.at_once.load(Ordering::Relaxed), 8);
    assert_eq!(http2(&completed).streams, 8);
}

#[test]
fn a_response_may_have_padding_interim_heads_continuations_and_trailers() {
    let server = serve(|number, stream, peer| {
        peer.close(stream);
        let priority = [0, 0, 0, 0, 16];
        let all = [
            frame(HEADERS, WHOLE, stream, b"\x08\x03103"),
            frame(HEADERS, 0x20, stream, &[&priority[..], OK].concat()),
            frame(CONTINUATION, 0, stream, b"\x0f\x0d\x01"),
            frame(CONTINUATION, WHOLE, stream, b"5"),
            frame(PING, 0, 0, &number.to_be_bytes()),
            frame(DATA, PADDED, stream, b"\x02he\0\0"),
            frame(99, 0, 0, b"unknown"),
            frame(DATA, 0, stream, b""),
            frame(DATA, PADDED, stream, b"\x00llo"),
            frame(HEADERS, WHOLE | END, stream, b"\x00\x01a\x01b"),
        ]
        .concat();
        // In pieces that end anywhere.
        let size = 1 + number as usize % 40;
        all.chunks(size)
            .all(|piece| peer.stream.write_all(piece).is_ok())
    });
    let words = [
        "--connections",
        "2",
        "--streams",
        "4",
        "--expect",
        "body~hello",
    ];
    let completed = count(&server, &words, 200);
    assert_eq!(
        completed.measurement.received,
        200,
        "{:?}",
        errors(&completed)
    );
    assert!(server.seen.pings_acknowledged.load(Ordering::Relaxed) >= 190);
}

#[test]
fn what_is_no_answer_is_counted_by_what_is_wrong_and_the_connection_goes_on() {
    let cases: [(Behaviour, &str); 8] = [
        (
            |_, stream, peer| peer.frame(HEADERS, WHOLE | END, stream, b"\x8e"),
            "status_5xx",
        ),
        (
            |_, stream, peer| peer.frame(HEADERS, WHOLE | END, stream, b"\x08\x03302"),
            "status_3xx",
        ),
        (
            |_, stream, peer| peer.frame(HEADERS, WHOLE | END, stream, OK),
            "body",
        ),
        (
            |_, stream, peer| peer.frame(HEADERS, WHOLE | END, stream, b""),
            "malformed",
        ),
        (
            |_, stream, peer| peer.frame(HEADERS, WHOLE | END, stream, b"\x88\x0f\x0d\x013"),
            "malformed",
        ),
        (
            |_, stream, peer| peer.frame(DATA, END, stream, b"ok"),
            "malformed",
        ),
        (
            |_, stream, peer| peer.frame(RST_STREAM, 0, stream, &[0, 0, 0, 7]),
            "stream_reset",
        ),
        (
            |_, stream, peer| peer.frame(RST_STREAM, 0, stream, &[9, 0, 0, 9]),
            "stream_reset",
        ),
    ];
    for (at, (behaviour, name)) in cases.into_iter().enumerate() {
        // Every second request is answered well, so that it is clear what goes on.
        let server = serve(move |number, stream, peer| {
            peer.close(stream);
            if number % 2 == 0 {
                peer.ok(stream)
            } else {
                behaviour(number, stream, peer)
            }
        });
        let words = [
            "--connections",
            "1",
            "--streams",
            "4",
            "--expect",
            "status=200,body~ok",
        ];
        let completed = count(&server, &words, 400);
        let m = &completed.measurement;
        assert_eq!((m.sent, m.received, m.lost), (400, 200, 200), "{name}");
        assert_eq!(errors(&completed), [(name, 200)], "case {at}");
        assert_eq!(m.http.as_ref().unwrap().connections, 1, "{name}");
        let resets = named(&http2(&completed).resets);
        match at {
            6 => assert_eq!(resets, [("REFUSED_STREAM", 200)]),
            7 => assert_eq!(resets, [("unknown", 200)]),
            _ => assert_eq!(resets, []),
        }
    }
}

#[test]
fn a_request_that_is_not_answered_is_cancelled_and_others_go_on() {
    let server = serve(|number, stream, peer| {
        if number == 20 {
            return true;
        }
        peer.close(stream);
        peer.ok(stream)
    });
    let words = [
        "--connections",
        "1",
        "--streams",
        "4",
        "--timeout",
        "200ms",
        "--rate",
        "500/s",
    ];
    let completed = count(&server, &words, 300);
    let m = &completed.measurement;
    assert_eq!((m.received, m.lost), (299, 1));
    assert_eq!(errors(&completed), [("timeout", 1)]);
    assert_eq!(m.http.as_ref().unwrap().connections, 1);
    assert_eq!(server.seen.resets.load(Ordering::Relaxed), 1);
}

#[test]
fn an_orderly_end_of_a_connection_loses_nothing() {
    for words in [
        &["--connections", "2", "--streams", "1"][..],
        &["--connections", "2", "--streams", "8"],
        &["--connections", "2", "--streams", "8", "--rate", "2000/s"],
    ] {
        let server = serve(|_, stream, peer| {
            peer.close(stream);
            if peer.number > 10 {
                // Not looked at, as it has said; nor counted.
                peer.seen.asked.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            let served = peer.ok(stream);
            if peer.number == 10 {
                let last = stream.to_be_bytes();
                return peer.frame(GOAWAY, 0, 0, &[&last[..], &[0; 4]].concat());
            }
            served
        });
        let completed = count(&server, words, 400);
        let m = &completed.measurement;
        assert_eq!(
            (m.sent, m.received),
            (400, 400),
            "{words:?}: {:?}",
            m.errors
        );
        assert_eq!(server.seen.asked(), 400);
        let http = m.http.as_ref().unwrap();
        assert!(http.connections >= 40, "{words:?}: {}", http.connections);
        let http2 = http2(&completed);
        let ended = http2.goaways["NO_ERROR"];
        assert!((38..=40).contains(&ended), "{words:?}: {ended}");
        if words.contains(&"8") && !words.contains(&"--rate") {
            assert!(http2.repeated > 0, "others were under way");
        }
    }
}

#[test]
fn a_server_that_ends_each_connection_at_once_is_not_asked_without_a_pause() {
    let server = serve(|_, _, peer| peer.frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]));
    let words = ["--connections", "1", "--streams", "2"];
    let completed = drive(&server, &words, Stop::After(Duration::from_millis(400)));
    // It serves nothing: there is no measurement, or one of failures.
    if let Ok(completed) = completed {
        assert_eq!(completed.measurement.received, 0);
    }
    let accepted = server.seen.accepted.load(Ordering::Relaxed);
    assert!((2..=150).contains(&accepted), "{accepted}");
}

#[test]
fn a_connection_that_is_cut_loses_what_was_under_way_and_is_opened_again() {
    let server = serve(|number, stream, peer| {
        if number % 50 == 49 {
            return false;
        }
        peer.close(stream);
        peer.ok(stream)
    });
    for words in [
        &["--connections", "2", "--streams", "1"][..],
        &["--connections", "2", "--streams", "1", "--rate", "1000/s"],
    ] {
        let completed = count(&server, words, 500);
        let m = &completed.measurement;
        assert_eq!(
            (m.sent, m.received, m.lost),
            (500, 490, 10),
            "{:?}",
            m.errors
        );
        let all: u64 = errors(&completed).iter().map(|(_, count)| count).sum();
        assert_eq!(all, 10);
        // Nine are opened again; of the first two, one may come too late to be used.
        assert!(m.http.as_ref().unwrap().connections >= 10);
    }
}

#[test]
fn a_body_waits_for_the_window_of_the_server() {
    for (window, first) in [(1_000, 1_000), (70_000, 70_000), (5_000, 0)] {
        let manner = Manner {
            settings: vec![(3, 100), (4, first), (5, 16_384)],
            window: Some(window),
        };
        let server = serve_as(manner, |_, stream, peer| {
            peer.close(stream);
            let body = peer.bodies.remove(&stream).unwrap_or_default();
            // Each byte at its place.
            if body != text(100_000).as_bytes() {
                peer.seen.broken.store(true, Ordering::Relaxed);
            }
            peer.ok(stream)
        });
        if first == 0 {
            // Nothing may be sent before the window opens, which this server never does.
            let body = format!("text:{}", text(10));
            let words = ["--connections", "1", "--timeout", "100ms", "--body", &body];
            let completed = drive(&server, &words, Stop::Count(2));
            assert!(
                matches!(completed, Err(Error::NoReplies { .. }))
                    || completed.unwrap().measurement.received == 0
            );
            assert_eq!(server.seen.body_bytes.load(Ordering::Relaxed), 0);
            continue;
        }
        let body = format!("text:{}", text(100_000));
        let words = ["--connections", "2", "--streams", "3", "--body", &body];
        let completed = count(&server, &words, 30);
        assert_eq!(
            completed.measurement.received,
            30,
            "{:?}",
            errors(&completed)
        );
        assert!(
            !server.seen.broken.load(Ordering::Relaxed),
            "window {window}"
        );
        assert_eq!(server.seen.body_bytes.load(Ordering::Relaxed), 30 * 100_000);
    }
}

#[test]
fn a_body_larger_than_what_is_framed_ahead_leaves_as_the_kernel_takes_it() {
    let manner = Manner {
        settings: vec![(4, 0x7fff_ffff)],
        window: Some(0x4000_0000),
    };
    let server = serve_as(manner, |_, stream, peer| {
        peer.close(stream);
        peer.bodies.remove(&stream);
        peer.ok(stream)
    });
    let body = format!("text:{}", text(3_000_000));
    let words = ["--connections", "1", "--streams", "4", "--body", &body];
    let completed = count(&server, &words, 12);
    assert_eq!(
        completed.measurement.received,
        12,
        "{:?}",
        http2(&completed)
    );
    assert_eq!(
        server.seen.body_bytes.load(Ordering::Relaxed),
        12 * 3_000_000
    );
}

fn text(length: usize) -> String {
    (0..length)
        .map(|at| char::from(b'a' + (at % 23) as u8))
        .collect()
}

#[test]
fn an_answer_before_the_body_has_left_counts_and_the_rest_is_given_up() {
    let manner = Manner {
        settings: vec![(4, 100)],
        window: None,
    };
    let server = serve_as(manner, |_, _, _| true);
    // The behaviour is only asked at the end of a body, which never comes: the answer is sent as soon as the settings are known.
    let eager = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = eager.local_addr().unwrap();
    drop(server);
    let seen = Arc::new(Seen::default());
    let resets = seen.clone();
    std::thread::spawn(move || {
        let (mut stream, _) = eager.accept().unwrap();
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).unwrap();
        stream
            .write_all(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 100]))
            .unwrap();
        loop {
            let mut header = [0; 9];
            if stream.read_exact(&mut header).is_err() {
                return;
            }
            let [a, b, c, kind, _, id @ ..] = header;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            stream.read_exact(&mut payload).unwrap();
            match kind {
                HEADERS => stream
                    .write_all(&frame(
                        HEADERS,
                        WHOLE | END,
                        u32::from_be_bytes(id),
                        b"\x08\x03413",
                    ))
                    .unwrap(),
                RST_STREAM => {
                    resets.resets.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
        }
    });
    let server = Server { address, seen };
    let body = format!("text:{}", text(10_000));
    let words = [
        "--connections",
        "1",
        "--streams",
        "2",
        "--body",
        &body,
        "--expect",
        "status=413",
    ];
    let completed = count(&server, &words, 50);
    assert_eq!(
        completed.measurement.received,
        50,
        "{:?}",
        errors(&completed)
    );
    assert!(server.seen.resets.load(Ordering::Relaxed) >= 49);
}

#[test]
fn a_server_that_breaks_the_protocol_is_counted_with_the_cause_and_gets_it() {
    let cases: [(Behaviour, &str); 9] = [
        (
            |_, stream, peer| peer.frame(PUSH_PROMISE, WHOLE, stream, &[0, 0, 0, 2, 0x82]),
            "pushes",
        ),
        (
            |_, _, peer| peer.frame(DATA, END, 99_999, b"ok"),
            "never began",
        ),
        (
            |_, _, peer| peer.frame(HEADERS, WHOLE, 2, OK),
            "never began",
        ),
        (
            |_, _, peer| peer.frame(CONTINUATION, WHOLE, 1, OK),
            "never began",
        ),
        (
            |_, stream, peer| peer.frame(DATA, PADDED, stream, b"\x09ok"),
            "padding",
        ),
        (
            |_, _, peer| peer.frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0, 0, 0]),
            "beyond 2 GiB",
        ),
        (
            |_, stream, peer| peer.frame(WINDOW_UPDATE, 0, stream, &[0; 4]),
            "by nothing",
        ),
        (|_, _, peer| peer.frame(PING, 0, 0, &[0; 9]), "length"),
        (
            |_, stream, peer| {
                // The client may close before all is written; what it said before that is read nevertheless.
                let _ = peer.frame(HEADERS, 0, stream, OK)
                    && (0..10).all(|_| peer.frame(CONTINUATION, 0, stream, &[0; 16_000]));
                true
            },
            "64 KiB",
        ),
    ];
    for (behaviour, words_of_cause) in cases {
        let server = serve(move |number, stream, peer| {
            peer.close(stream);
            if number % 10 == 9 {
                behaviour(number, stream, peer)
            } else {
                peer.ok(stream)
            }
        });
        let completed = count(&server, &["--connections", "1"], 100);
        let m = &completed.measurement;
        assert_eq!(
            (m.sent, m.received, m.lost),
            (100, 90, 10),
            "{words_of_cause}: {:?}",
            m.errors
        );
        assert_eq!(errors(&completed), [("malformed", 10)], "{words_of_cause}");
        let broken = named(&http2(&completed).broken);
        assert!(
            broken.len() == 1 && broken[0].0.contains(words_of_cause) && broken[0].1 == 10,
            "{words_of_cause}: {broken:?}"
        );
        let goodbyes = server.seen.goodbyes.load(Ordering::Relaxed);
        assert!(goodbyes > 0, "{words_of_cause}: the server is told");
    }
}

#[test]
fn what_does_not_speak_http2_is_refused_before_the_load() {
    let other = |bytes: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut preface = [0; 24];
                let _ = stream.read_exact(&mut preface);
                let _ = stream.write_all(bytes);
                if bytes.is_empty() {
                    std::thread::sleep(Duration::from_mins(1));
                }
                // The rest is read, so that what was written is not lost to a reset.
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        Server {
            address,
            seen: Arc::default(),
        }
    };
    for (server, streams, words) in [
        (
            other(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            "1",
            "another protocol",
        ),
        (
            other(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
            "1",
            "another protocol",
        ),
        (other(b"\0\0"), "1", "closed the connection"),
        (
            other(b"\0\0\x06\x04\0\0\0\0\0\0\x02\0\0\0\x01"),
            "1",
            "to be pushed to",
        ),
        (serve(answers), "101", "allows 100 streams"),
    ] {
        let tried = drive(
            &server,
            &["--streams", streams, "--connections", "1"],
            Stop::Count(1),
        );
        let error = tried.unwrap_err();
        assert!(matches!(error, Error::Http2 { .. }), "{words}: {error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

#[test]
fn what_contradicts_http2_is_refused() {
    for (words, key) in [
        (&["--streams", "4"][..], "streams"),
        (&["--http2", "--no-keepalive"], "no_keepalive"),
        (&["--http2", "--streams", "0"], "streams"),
        (&["--http2", "--streams", "1001"], "streams"),
        (
            &["--http2", "--streams", "1000", "--connections", "1000"],
            "streams",
        ),
        (&["--http2", "--header", "Keep-Alive: 5"], "headers"),
        (&["--http2", "--header", "TE: gzip"], "headers"),
    ] {
        let found = written("http://127.0.0.1:1/", words).contradictions();
        assert!(
            found.len() == 1 && found[0].keys.contains(&key),
            "{words:?}: {found:?}"
        );
    }
}
