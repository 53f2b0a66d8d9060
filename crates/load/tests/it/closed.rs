//! Closed loops: counts, windows, sockets of every shape.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rungwise_load::Error;
use rungwise_load::engine::{Completed, Seat, Turns};
use rungwise_load::udp::{Arrival, Edge, Hooks, Stop, Workload, run, run_watched};

use crate::server::{Server, drive, errors, reply, workload};

/// What must hold for every run in which each request got exactly one good reply.
#[track_caller]
fn expect_clean(workload: &Workload, server: &Server, count: u64) {
    let completed = drive(workload).unwrap();
    let measured = &completed.measurement;
    assert_eq!(
        (measured.sent, measured.received, measured.lost),
        (count, count, 0)
    );
    assert!(measured.errors.is_empty(), "{:?}", measured.errors);
    assert_eq!(server.seen.load(Ordering::Relaxed), count);
    assert_eq!(completed.corrected.count(), count);
    assert_eq!(completed.uncorrected.count(), count);
    let latency = measured.latency_us;
    assert!(
        latency.corrected.p50 >= latency.uncorrected.p50 * 0.999,
        "{latency:?}"
    );
    assert!(latency.uncorrected.p50 > 1.0, "{latency:?}");
    assert!(measured.achieved_per_s > 0.0);
    // Never nothing: absent where the run was over before the clocks were read.
    assert!(measured.client.cpu_us_per_tx.is_none_or(|cost| cost > 0.0));
}

#[test]
fn a_count_is_exact_over_threads_sockets_and_depths() {
    for (threads, sockets, depth, batch) in [
        (1, 1, 1, 64),
        (1, 1, 8, 4),
        (2, 3, 1, 64),
        (3, 2, 16, 5),
        (2, 1, 4, 1),
    ] {
        let server = Server::echo();
        let workload = Workload {
            threads,
            sockets,
            depth,
            batch,
            ..workload(server.address, 1001)
        };
        expect_clean(&workload, &server, 1001);
    }
}

#[test]
fn ipv6_a_source_address_pins_and_the_smallest_payload_work() {
    let server = Server::start_at("[::1]:0", |_, request, socket, from| {
        reply(socket, request, from);
    });
    let workload = Workload {
        source: Some("::1".parse().unwrap()),
        pins: Some(vec![0]),
        payload: rungwise_load::udp::Payload::Sequenced { size: 16 },
        ..workload(server.address, 500)
    };
    expect_clean(&workload, &server, 500);
}

#[test]
fn the_seed_chooses_the_source_ports() {
    let ports = |seed, taken: &[u16]| {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let noted = Arc::clone(&seen);
        let server = Server::start(move |_, request, socket, from| {
            noted.lock().unwrap().insert(from.port());
            reply(socket, request, from);
        });
        // An address of its own: other tests run beside this one.
        let source: IpAddr = "127.0.77.1".parse().unwrap();
        let held: Vec<_> = taken
            .iter()
            .map(|port| UdpSocket::bind((source, *port)).unwrap())
            .collect();
        let workload = Workload {
            threads: 2,
            sockets: 3,
            source: Some(source),
            seed,
            // Each thread has half of them, also where one starts late.
            arrival: Arrival::Constant { per_s: 6_000.0 },
            ..workload(server.address, 600)
        };
        expect_clean(&workload, &server, 600);
        drop(held);
        let seen = seen.lock().unwrap();
        seen.iter().copied().collect::<Vec<_>>()
    };
    let first = ports(7, &[]);
    assert_eq!(first.len(), 6);
    assert_eq!(ports(7, &[]), first);
    assert!(ports(8, &[]).iter().all(|port| !first.contains(port)));
    // Where one of them is taken, another is used, and the rest stays.
    let others = ports(7, &first[1..2]);
    let common = others.iter().filter(|port| first.contains(port)).count();
    assert_eq!((others.len(), common), (6, 5));
}

#[test]
fn bursts_of_one_flow_arrive_whole_and_their_replies_are_distinguished() {
    let server = Server::echo();
    let workload = Workload {
        burst: Some(8),
        depth: 16,
        batch: 32,
        ..workload(server.address, 1003)
    };
    expect_clean(&workload, &server, 1003);
}

#[test]
fn many_sockets_are_many_source_ports() {
    let ports = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&ports);
    let server = Server::start(move |_, request, socket, from| {
        seen.lock().unwrap().insert(from.port());
        reply(socket, request, from);
    });
    let workload = Workload {
        // Few enough that the server's receive buffer holds one request of each.
        sockets: 60,
        depth: 1,
        ..workload(server.address, 3000)
    };
    expect_clean(&workload, &server, 3000);
    assert_eq!(ports.lock().unwrap().len(), 120);
}

#[test]
fn a_window_has_its_length_its_seconds_and_its_edges_and_the_warm_up_is_not_in_it() {
    let server = Server::echo();
    let workload = Workload {
        warmup: Duration::from_millis(300),
        stop: Stop::After(Duration::from_millis(2100)),
        ..workload(server.address, 1)
    };
    let edges = Mutex::new(Vec::new());
    let started = Mutex::new(Vec::new());
    let mut live = Vec::new();
    let completed = run_watched(
        &workload,
        &Hooks {
            thread_start: &|thread| {
                started.lock().unwrap().push(thread);
                Ok(())
            },
            window: &|edge| edges.lock().unwrap().push(edge),
            interrupted: &AtomicBool::new(false),
            turns: None,
        },
        &mut |second| live.push(*second),
    )
    .unwrap();
    let measured = &completed.measurement;
    assert_eq!(edges.into_inner().unwrap(), [Edge::Began, Edge::Ended]);
    started.lock().unwrap().sort_unstable();
    assert_eq!(started.into_inner().unwrap(), [0, 1]);
    assert!((measured.window_s - 2.1).abs() < 1e-9);
    assert_eq!(measured.seconds, live);
    assert_eq!(
        live.iter().map(|second| second.at_s).collect::<Vec<_>>(),
        [0.0, 1.0]
    );
    let in_seconds: u64 = live.iter().map(|second| second.received).sum();
    assert!(
        in_seconds <= measured.received && live.iter().all(|s| s.received > 0 && s.p50_us > 0.0)
    );
    assert_eq!(measured.sent, measured.received + measured.lost);
    assert_eq!(
        completed.corrected.count(),
        measured.received,
        "the threads' histograms were merged"
    );
    let warm_up = server.seen.load(Ordering::Relaxed) - measured.sent;
    assert!(warm_up > 0, "nothing was sent before the window");
}

#[test]
fn raising_the_flag_ends_the_run() {
    let server = Server::echo();
    let flag = AtomicBool::new(false);
    let workload = Workload {
        stop: Stop::After(Duration::from_mins(1)),
        ..workload(server.address, 1)
    };
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|edge| {
            if edge == Edge::Began {
                flag.store(true, Ordering::Relaxed);
            }
        },
        interrupted: &flag,
        turns: None,
    };
    let error = run(&workload, &hooks).unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
}

#[test]
fn a_client_that_lost_its_replies_waits_no_longer_than_the_timeout_for_them() {
    // The last 16 of 200 requests stay without reply: 2 threads x 2 sockets x 4.
    let server = Server::start(|number, request, socket, from| {
        if number <= 184 {
            reply(socket, request, from);
        }
    });
    let completed = drive(&workload(server.address, 200)).unwrap();
    let measured = &completed.measurement;
    assert_eq!(
        (measured.sent, measured.received, measured.lost),
        (200, 184, 16)
    );
    assert_eq!(errors(&completed, "late"), 0);
}

/// Drives a load that takes turns with the one in the other seat.
fn by_turns(workload: &Workload, seat: Seat<'_>) -> Result<Completed, Error> {
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: Some(seat),
    };
    run(workload, &hooks)
}

#[test]
fn loads_that_take_turns_send_one_at_a_time_and_count_each_reply_once() {
    // On one thread of one socket, and on several of several: the generator waits for replies in two ways.
    for (threads, sockets) in [(1, 1), (2, 3)] {
        let began = Instant::now();
        // The milliseconds in which each server got a request.
        let asked = [0, 1].map(|_| Arc::new(Mutex::new(BTreeSet::new())));
        let servers = [0, 1].map(|which| {
            let asked = Arc::clone(&asked[which]);
            Server::start(move |_, request, socket, from| {
                asked.lock().unwrap().insert(began.elapsed().as_millis());
                reply(socket, request, from);
            })
        });
        let turns = Turns::new(5);
        let seats = turns.seats();
        let ended = std::thread::scope(|scope| {
            let loads = [0, 1].map(|which| {
                let workload = Workload {
                    threads,
                    sockets,
                    warmup: Duration::from_millis(40),
                    stop: Stop::After(Duration::from_millis(600)),
                    ..workload(servers[which].address, 1)
                };
                let seat = seats[which];
                scope.spawn(move || by_turns(&workload, seat))
            });
            loads.map(|load| load.join().unwrap().unwrap())
        });
        for completed in &ended {
            let measured = &completed.measurement;
            assert!(measured.sent > 100, "{measured:?}");
            assert_eq!((measured.received, measured.lost), (measured.sent, 0));
            // Half of the window, less what each change of turns leaves uncounted.
            assert!((0.2..0.3).contains(&measured.window_s), "{measured:?}");
            assert!(completed.arrived > measured.received);
        }
        let [one, other] = asked.map(|asked| asked.lock().unwrap().clone());
        let both = one.intersection(&other).count();
        // 32 turns of 20 ms: at each change the last request of one and the first of the other may share a millisecond or two.
        assert!(both <= 64, "{both} of {} and {} ms", one.len(), other.len());
        assert!(
            one.len() > 20 && other.len() > 20,
            "{} and {} ms",
            one.len(),
            other.len()
        );
    }
}

#[test]
fn a_load_whose_partner_cannot_start_ends() {
    let server = Server::echo();
    let turns = Turns::new(1);
    let seats = turns.seats();
    let drive = |seat, threads| {
        let workload = Workload {
            threads,
            stop: Stop::After(Duration::from_millis(100)),
            ..workload(server.address, 1)
        };
        by_turns(&workload, seat)
    };
    let [broken, sound] = std::thread::scope(|scope| {
        let drive = &drive;
        let loads = [(seats[0], 0), (seats[1], 1)]
            .map(|(seat, threads)| scope.spawn(move || drive(seat, threads)));
        loads.map(|load| load.join().unwrap())
    });
    assert!(broken.is_err());
    assert!(matches!(sound, Err(Error::Interrupted { .. })));
}
