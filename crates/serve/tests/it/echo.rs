//! What goes in comes out, with every way of I/O, every steering and both families; and it is counted.

use std::time::Duration;

use rungwise_serve::udp::{BusyPoll, Config, Error, Io, PathMtu, Pin, Server, Steering};
use rungwise_testkit::skipped;

use crate::client::{ask, connect, connect_from, echo, segment, serve};
use crate::namespace::Namespace;

const IOS: [Io; 3] = [Io::Single, Io::Batch(8), Io::Uring];

fn steerings() -> [Steering; 3] {
    [
        Steering::FlowHash,
        Steering::Cbpf,
        Steering::Ebpf { map: Vec::new() },
    ]
}

/// Sizes that hit every edge, and in between ones without a pattern.
fn sizes() -> impl Iterator<Item = usize> {
    let edges = [0, 1, 1472, 1473, 4096, 65_507];
    edges
        .into_iter()
        .chain((edges.len()..1000).map(|n| n * 7919 % 3000))
}

#[test]
fn every_io_and_steering_echoes_both_families_and_counts() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        for io in IOS {
            for steering in steerings() {
                let context = format!("{listen}, {io}, {steering}");
                let server = serve(&Config {
                    workers: 2,
                    reuseport: true,
                    pin: Pin::Allowed,
                    steering,
                    io,
                    ..Config::new(listen.parse().unwrap())
                });
                let sockets: Vec<_> = (0..8).map(|_| connect(server.local_addr())).collect();
                let mut bytes = 0;
                for (n, size) in sizes().enumerate() {
                    let request: Vec<u8> = (0..size).map(|at| (at * 31 + n) as u8).collect();
                    bytes += size as u64;
                    assert!(
                        ask(&sockets[n % 8], &request) == request,
                        "{context}, {size} bytes"
                    );
                }
                let counters = server.stop();
                let total = counters.total();
                assert_eq!((total.received, total.sent), (1000, 1000), "{context}");
                assert_eq!(
                    (total.received_bytes, total.sent_bytes),
                    (bytes, bytes),
                    "{context}"
                );
                let dropped =
                    total.dropped_by_kernel + total.refused + total.panics + total.send_errors;
                assert_eq!((dropped, total.receive_errors), (0, 0), "{context}");
                assert!(
                    total.rounds > 0 && total.rounds <= 1000 && total.cpu_ns > 0,
                    "{context}"
                );
                for worker in &counters.workers {
                    let on_cpus: u64 = worker.cpus.iter().map(|(_, received)| received).sum();
                    assert_eq!(on_cpus, worker.received, "{context}");
                }
            }
        }
    }
}

#[test]
fn one_shared_socket_serves_several_workers() {
    for io in IOS {
        let server = serve(&Config {
            workers: 3,
            io,
            ..Config::new("127.0.0.1:0".parse().unwrap())
        });
        let socket = connect(server.local_addr());
        for n in 0..100_u8 {
            assert_eq!(ask(&socket, &[n]), [n]);
        }
        assert_eq!(server.stop().total().sent, 100, "{io}");
    }
}

#[test]
fn a_wildcard_serves_both_families_and_replies_from_the_address_it_was_asked_at() {
    for (listen, asked) in [
        ("0.0.0.0:0", "127.0.0.1"),
        ("0.0.0.0:0", "127.0.0.9"),
        ("[::]:0", "127.0.0.9"),
        ("[::]:0", "::1"),
    ] {
        for io in IOS {
            let server = serve(&Config {
                io,
                path_mtu: PathMtu::Do,
                ..Config::new(listen.parse().unwrap())
            });
            let to = (
                asked.parse::<std::net::IpAddr>().unwrap(),
                server.local_addr().port(),
            )
                .into();
            let from = if asked.contains(':') {
                "::1"
            } else {
                "127.0.0.5"
            };
            // A connected socket hears only the address that it talks to.
            let socket = connect_from(from.parse().unwrap(), to);
            assert_eq!(
                ask(&socket, b"where from"),
                b"where from",
                "{listen} {asked} {io}"
            );
        }
    }
}

#[test]
fn a_burst_of_one_flow_is_taken_and_answered_as_one() {
    for io in IOS {
        let server = serve(&Config {
            io,
            gro: true,
            gso: true,
            ..Config::new("127.0.0.1:0".parse().unwrap())
        });
        let socket = connect(server.local_addr());
        segment(&socket, 100);
        let burst: Vec<u8> = (0..1550).map(|at| (at / 100) as u8).collect();
        socket.send(&burst).unwrap();
        let mut replies = Vec::new();
        for _ in 0..16 {
            let mut reply = [0; 200];
            let length = socket.recv(&mut reply).expect("a reply");
            replies.push(reply[..length].to_vec());
        }
        let expected: Vec<_> = burst.chunks(100).map(<[u8]>::to_vec).collect();
        assert_eq!(replies, expected, "{io}");
        let total = server.stop().total();
        assert_eq!(
            (total.received, total.sent, total.sent_bytes),
            (16, 16, 1550),
            "{io}"
        );
        assert_eq!(total.rounds, 1, "{io}");
    }
}

#[test]
fn read_backs_name_every_switch() {
    let server = serve(&Config {
        workers: 2,
        reuseport: true,
        steering: Steering::Cbpf,
        pin: Pin::Allowed,
        path_mtu: PathMtu::Do,
        io: Io::Uring,
        gro: true,
        gso: true,
        rcvbuf: Some(1 << 17),
        sndbuf: Some(1 << 17),
        incoming_cpu: true,
        ..Config::new("127.0.0.1:0".parse().unwrap())
    });
    let switches: Vec<_> = server
        .read_backs()
        .iter()
        .map(|entry| entry.switch)
        .collect();
    for switch in [
        "reuseport",
        "steering",
        "pin",
        "pmtudisc",
        "io",
        "gro",
        "gso",
        "rcvbuf",
        "sndbuf",
        "incoming-cpu",
    ] {
        assert!(switches.contains(&switch), "{switch} in {switches:?}");
    }
    assert!(
        server.read_backs().iter().all(|entry| entry.holds),
        "{:?}",
        server.read_backs()
    );
}

#[test]
fn busy_poll_reads_back_and_the_server_answers() {
    let config = Config {
        busy_poll: Some(BusyPoll {
            time: Duration::from_micros(50),
            prefer: true,
            budget: 16,
        }),
        ..Config::new("127.0.0.1:0".parse().unwrap())
    };
    let server = match Server::start(&config, echo) {
        Err(error @ Error::Refused { .. }) => {
            assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
            skipped("busy polling needs root (CAP_NET_ADMIN)");
            return;
        }
        other => other.unwrap(),
    };
    let lines: Vec<_> = server
        .read_backs()
        .iter()
        .map(ToString::to_string)
        .collect();
    for expected in [
        "busy-poll: 50; holds: SO_BUSY_POLL 50",
        "busy-poll-prefer: 1; holds: SO_PREFER_BUSY_POLL 1",
        "busy-poll-budget: 16; holds: accepted; it cannot be read back",
    ] {
        assert!(
            lines.iter().any(|line| line == expected),
            "{expected} in {lines:?}"
        );
    }
    assert_eq!(ask(&connect(server.local_addr()), b"x"), b"x");
}

#[test]
fn a_wildcard_answers_link_local_peers_through_the_device_they_came_by() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    for io in IOS {
        let config = Config {
            io,
            ..Config::new("[::]:0".parse().unwrap())
        };
        let server = here.run(move || Server::start(&config, echo).unwrap());
        let port = server.local_addr().port();
        there.run(move || {
            // The only device beside lo; its index is its zone.
            let zone = std::fs::read_to_string("/proc/thread-self/net/if_inet6")
                .unwrap()
                .lines()
                .find(|line| line.ends_with("veth1"))
                .and_then(|line| u32::from_str_radix(line.split(' ').nth(1)?, 16).ok())
                .unwrap();
            let socket = connect(format!("[fe80::9:1%{zone}]:{port}").parse().unwrap());
            assert_eq!(ask(&socket, b"next door"), b"next door");
        });
        assert_eq!(server.stop().total().sent, 1, "{io}");
    }
}
