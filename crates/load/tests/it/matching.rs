//! Faulty servers: every reply is counted as what it is.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rungwise_load::dns;
use rungwise_load::udp::{Completed, Payload, Workload};

use crate::server::{Server, drive, errors, reply, workload};

/// The counts that matter here: sent, received, lost.
fn counts(completed: &Completed) -> (u64, u64, u64) {
    let measured = &completed.measurement;
    (measured.sent, measured.received, measured.lost)
}

#[test]
fn dropped_requests_are_lost() {
    let server = Server::start(|number, request, socket, from| {
        if number % 10 != 0 {
            reply(socket, request, from);
        }
    });
    let completed = drive(&workload(server.address, 100)).unwrap();
    assert_eq!(counts(&completed), (100, 90, 10));
    assert!(completed.measurement.errors.is_empty());
}

#[test]
fn second_replies_are_duplicates() {
    let server = Server::start(|number, request, socket, from| {
        reply(socket, request, from);
        // Not the last ones: nobody would wait for their duplicates.
        if number % 7 == 0 && number < 650 {
            reply(socket, request, from);
        }
    });
    let completed = drive(&workload(server.address, 700)).unwrap();
    assert_eq!(counts(&completed), (700, 700, 0));
    assert_eq!(errors(&completed, "duplicate"), 92);
}

#[test]
fn replies_after_the_timeout_are_late_and_their_requests_lost() {
    let mut held = None;
    let server = Server::start(move |number, request, socket, from| {
        if number == 10 {
            held = Some((request.to_vec(), from, std::time::Instant::now()));
        } else {
            reply(socket, request, from);
        }
        if let Some((bytes, to, since)) = held.take() {
            if since.elapsed() > Duration::from_millis(150) {
                reply(socket, &bytes, to);
            } else {
                held = Some((bytes, to, since));
            }
        }
    });
    let workload = Workload {
        timeout: Duration::from_millis(50),
        stop: rungwise_load::udp::Stop::After(Duration::from_millis(500)),
        ..workload(server.address, 1)
    };
    let completed = drive(&workload).unwrap();
    let (sent, received, lost) = counts(&completed);
    assert_eq!(sent, received + lost);
    // On a busy machine others may wait for more than 50 ms too.
    assert!(
        lost >= 1 && errors(&completed, "late") >= 1,
        "{:?}",
        completed.measurement
    );
}

#[test]
fn replies_of_another_length_or_with_other_bytes_are_no_replies() {
    let server = Server::start(|number, request, socket, from| match number % 50 {
        1 => reply(socket, &request[..99], from),
        2 => reply(socket, &[request, b"x"].concat(), from),
        3 => {
            let mut other = request.to_vec();
            other[60] ^= 1;
            reply(socket, &other, from);
        }
        _ => reply(socket, request, from),
    });
    let completed = drive(&workload(server.address, 1000)).unwrap();
    assert_eq!(counts(&completed), (1000, 940, 60));
    assert_eq!(errors(&completed, "truncated"), 40);
    assert_eq!(errors(&completed, "corrupt"), 20);
}

#[test]
fn garbage_is_counted_and_disturbs_no_request() {
    let server = Server::start(|number, request, socket, from| {
        match number % 50 {
            1 => reply(socket, b"", from),
            2 => reply(socket, b"short", from),
            3 => reply(socket, &[0xff; 100], from),
            4 => {
                // A ticket that was never given.
                let mut other = request.to_vec();
                other[14] = 0x77;
                reply(socket, &other, from);
            }
            5 => {
                // Another run's request of the same shape.
                let mut other = request.to_vec();
                other[0] ^= 0xff;
                reply(socket, &other, from);
            }
            _ => {}
        }
        reply(socket, request, from);
    });
    let completed = drive(&workload(server.address, 1000)).unwrap();
    assert_eq!(counts(&completed), (1000, 1000, 0));
    assert_eq!(errors(&completed, "truncated"), 40);
    assert_eq!(errors(&completed, "unexpected"), 60);
}

#[test]
fn a_reply_that_went_to_the_wrong_socket_is_unexpected() {
    let mut last: Option<(Vec<u8>, SocketAddr)> = None;
    let strays = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&strays);
    let server = Server::start(move |_, request, socket, from| {
        // Somebody else's reply first: its number may well be one that this socket waits for.
        if let Some((bytes, _)) = last.as_ref().filter(|(_, owner)| *owner != from) {
            reply(socket, bytes, from);
            counted.fetch_add(1, Ordering::Relaxed);
        }
        reply(socket, request, from);
        last = Some((request.to_vec(), from));
    });
    let completed = drive(&workload(server.address, 500)).unwrap();
    assert_eq!(counts(&completed), (500, 500, 0));
    let strays = strays.load(Ordering::Relaxed);
    assert!(strays > 0);
    assert_eq!(errors(&completed, "unexpected"), strays);
}

#[test]
fn the_kernel_keeps_replies_from_another_port_away() {
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = Server::start(move |number, request, socket, from| {
        reply(&stranger, request, from);
        if number % 10 != 0 {
            reply(socket, request, from);
        }
    });
    let completed = drive(&workload(server.address, 100)).unwrap();
    assert_eq!(counts(&completed), (100, 90, 10));
    assert!(
        completed.measurement.errors.is_empty(),
        "{:?}",
        completed.measurement.errors
    );
}

#[test]
fn an_opaque_payload_takes_any_reply_for_its_own() {
    let server = Server::start(|_, request, socket, from| {
        assert_eq!(request, b"ping");
        reply(socket, b"a much longer pong", from);
    });
    let workload = Workload {
        depth: 1,
        payload: Payload::Opaque(b"ping".to_vec()),
        ..workload(server.address, 300)
    };
    let completed = drive(&workload).unwrap();
    assert_eq!(counts(&completed), (300, 300, 0));
    let deeper = Workload {
        depth: 2,
        ..workload
    };
    let error = drive(&deeper).unwrap_err().to_string();
    assert!(error.contains("use depth 1"), "{error}");
}

#[test]
fn dns_replies_are_matched_by_id_and_question_and_counted_by_their_code() {
    // www: answer; nx: NXDOMAIN; ref: REFUSED; cut: TC bit; odd: reply to another question; mad: not a response.
    let server = Server::start(|_, query, socket, from| {
        let mut answer = query.to_vec();
        answer[2] |= 0x80;
        match &query[13..15] {
            b"nx" => answer[3] |= 3,
            b"re" => answer[3] |= 5,
            b"cu" => answer[2] |= 2,
            b"od" => answer[13] = b'O' ^ 0x01,
            b"ma" => answer[2] &= 0x7f,
            b"sh" => answer.truncate(5),
            _ => {}
        }
        reply(socket, &answer, from);
        if &query[13..15] == b"nx" {
            // No question at all, for no reason: to nobody.
            answer.truncate(12);
            reply(socket, &answer, from);
        }
    });
    let names = b"www.a A\nnx.a AAAA\ncut.a A\nodd.a A\nmad.a A\nwww.b TXT\nwww.c A\nref.d A\nsho.a A\nwww.e TYPE99\n";
    let workload = Workload {
        threads: 1,
        payload: Payload::Dns(dns::parse(names).unwrap()),
        timeout: Duration::from_millis(400),
        ..workload(server.address, 100)
    };
    let completed = drive(&workload).unwrap();
    assert_eq!(counts(&completed), (100, 70, 30));
    assert_eq!(errors(&completed, "rcode_nxdomain"), 10);
    assert_eq!(errors(&completed, "rcode_refused"), 10);
    // That there is no such name is an answer.
    assert_eq!(completed.wrong, 10);
    assert_eq!(errors(&completed, "dns_truncated"), 10);
    assert_eq!(errors(&completed, "truncated"), 10);
    // odd and mad; what follows an NXDOMAIN is a duplicate.
    assert_eq!(errors(&completed, "unexpected"), 20);
    assert_eq!(errors(&completed, "duplicate"), 10);
}
