//! Open loops: schedules are kept, stalls show, known service times come out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rungwise_load::Error;
use rungwise_load::udp::{Arrival, Hooks, Payload, Stop, Workload, run};

use crate::server::{Server, drive, errors, reply, workload};

fn open(server: &Server, arrival: Arrival, length: Duration) -> Workload {
    Workload {
        arrival,
        sockets: 4,
        depth: 1024,
        warmup: Duration::from_millis(100),
        stop: Stop::After(length),
        timeout: Duration::from_secs(2),
        ..workload(server.address, 1)
    }
}

#[test]
fn a_schedule_is_sent_in_full_at_constant_and_at_changing_rates() {
    let ramp = Arrival::Ramp {
        from_per_s: 1000.0,
        to_per_s: 5000.0,
    };
    for arrival in [Arrival::Constant { per_s: 3000.0 }, ramp] {
        let server = Server::echo();
        let completed = drive(&open(&server, arrival, Duration::from_secs(1))).unwrap();
        let measured = &completed.measurement;
        assert_eq!(
            measured.sent + errors(&completed, "unsent"),
            3000,
            "{arrival:?}"
        );
        assert_eq!(measured.received + measured.lost, measured.sent);
        assert_eq!(measured.offered_per_s, Some(3000.0));
        assert_eq!(completed.corrected.count(), measured.received);
    }
}

#[test]
fn an_open_loop_with_a_count_sends_exactly_that_many() {
    let server = Server::echo();
    let workload = Workload {
        warmup: Duration::ZERO,
        stop: Stop::Count(777),
        ..open(&server, Arrival::Constant { per_s: 5000.0 }, Duration::ZERO)
    };
    let completed = drive(&workload).unwrap();
    assert_eq!(completed.measurement.sent, 777);
    assert_eq!(completed.measurement.received, 777);
}

/// Answers at once, but for a pause that begins with the first request after `after`.
fn stalling(after: Duration, pause: Duration) -> Server {
    let mut began = None;
    let mut stalled = false;
    Server::start(move |_, request, socket, from| {
        let began = *began.get_or_insert_with(Instant::now);
        if !stalled && began.elapsed() > after {
            stalled = true;
            std::thread::sleep(pause);
        }
        reply(socket, request, from);
    })
}

#[test]
fn a_stall_of_the_server_shows_in_the_corrected_latency_even_if_no_request_can_leave() {
    // 8 slots: during the pause of 200 ms nearly all of the 400 due requests cannot be sent. A generator
    // that forgets them sees 8 slow replies of 2000.
    let server = stalling(Duration::from_millis(400), Duration::from_millis(200));
    let workload = Workload {
        sockets: 1,
        depth: 4,
        ..open(
            &server,
            Arrival::Constant { per_s: 2000.0 },
            Duration::from_secs(1),
        )
    };
    let completed = drive(&workload).unwrap();
    let latency = completed.measurement.latency_us;
    // 400 of 2000 requests were due in the pause, evenly: a tenth of all waited for more than 100 ms.
    assert!(latency.corrected.p90 >= 50_000.0, "{latency:?}");
    assert!(latency.corrected.p99 >= 150_000.0, "{latency:?}");
    assert!(
        latency.uncorrected.p90 <= latency.corrected.p90 / 2.0,
        "{latency:?}"
    );
    assert!(
        latency.uncorrected.p99 <= latency.corrected.p99 / 2.0,
        "{latency:?}"
    );
    assert!(completed.measurement.client.late_sends > 0.1 && completed.measurement.client.starved);
}

#[test]
fn with_enough_slots_a_stall_shows_in_both() {
    let server = stalling(Duration::from_millis(400), Duration::from_millis(200));
    let rate = Arrival::Constant { per_s: 2000.0 };
    let completed = drive(&open(&server, rate, Duration::from_secs(1))).unwrap();
    let latency = completed.measurement.latency_us;
    assert!(
        latency.corrected.p99 >= 150_000.0 && latency.uncorrected.p99 >= 150_000.0,
        "{latency:?}"
    );
}

#[test]
fn a_server_slower_than_the_schedule_is_reported_with_what_was_never_sent() {
    let server = Server::start(|_, request, socket, from| {
        std::thread::sleep(Duration::from_millis(2));
        reply(socket, request, from);
    });
    let workload = Workload {
        depth: 2,
        ..open(
            &server,
            Arrival::Constant { per_s: 5000.0 },
            Duration::from_secs(1),
        )
    };
    let completed = drive(&workload).unwrap();
    let measured = &completed.measurement;
    let unsent = errors(&completed, "unsent");
    assert_eq!(measured.sent + unsent, 5000);
    assert!(unsent > 2500, "{unsent}");
    assert!(
        measured.achieved_per_s < 1000.0,
        "{}",
        measured.achieved_per_s
    );
    assert!(measured.client.late_sends > 0.5 && measured.client.starved);
}

#[test]
fn a_known_service_time_comes_out() {
    // One server, one request at a time, each taking `service`: a closed loop with one request waits for
    // exactly that plus the way; with four requests for four times that, since three are before it.
    let service = Duration::from_millis(2);
    for depth in [1_u32, 4] {
        let server = Server::start(move |_, request, socket, from| {
            std::thread::sleep(service);
            reply(socket, request, from);
        });
        let completed = drive(&one_socket(&server, depth as usize, 300)).unwrap();
        let least = 2000.0 * f64::from(depth);
        let latency = completed.measurement.latency_us.uncorrected;
        // Only the first requests, which find an empty queue, can be faster. The upper ends leave room for
        // the way and for a machine shared with other tests.
        let p5 = completed.corrected.quantile_ns(0.05) as f64 / 1e3;
        assert!(p5 >= least * 0.9, "{depth}: {p5}");
        assert!(
            (least * 0.998..least * 3.0).contains(&latency.p50),
            "{depth}: {latency:?}"
        );
        assert!(
            (latency.p50..least * 10.0).contains(&latency.p90),
            "{depth}: {latency:?}"
        );
    }
}

#[test]
fn a_service_time_with_two_values_has_both_at_their_quantiles() {
    // Every fifth request takes 20 ms, the others 2 ms: below the 80th percentile there is one, above it
    // the other.
    let server = Server::start(|number, request, socket, from| {
        std::thread::sleep(Duration::from_millis(if number % 5 == 0 { 20 } else { 2 }));
        reply(socket, request, from);
    });
    let completed = drive(&one_socket(&server, 1, 200)).unwrap();
    let at = |q: f64| completed.corrected.quantile_ns(q) as f64 / 1e6;
    assert!((1.99..15.0).contains(&at(0.5)), "{}", at(0.5));
    assert!(at(0.7) < 20.0, "{}", at(0.7));
    assert!((19.9..100.0).contains(&at(0.85)), "{}", at(0.85));
    assert!((19.9..100.0).contains(&at(0.95)), "{}", at(0.95));
}

fn one_socket(server: &Server, depth: usize, count: u64) -> Workload {
    Workload {
        threads: 1,
        sockets: 1,
        depth,
        payload: Payload::Sequenced { size: 64 },
        timeout: Duration::from_secs(2),
        ..workload(server.address, count)
    }
}

#[test]
fn a_rate_that_nobody_keeps_ends_with_its_window_and_with_an_interrupt() {
    let server = Server::echo();
    let absurd = Workload {
        timeout: Duration::from_millis(200),
        ..open(
            &server,
            Arrival::Constant { per_s: 1e9 },
            Duration::from_secs(3),
        )
    };
    // One by one, the three billion that were not sent would take a minute and more.
    let limit = Duration::from_secs(15);
    let began = Instant::now();
    let completed = drive(&absurd).unwrap();
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
    let (unsent, sent) = (errors(&completed, "unsent"), completed.measurement.sent);
    assert!(
        (unsent + sent).abs_diff(3_000_000_000) < 100,
        "{unsent} + {sent}"
    );

    let interrupted = AtomicBool::new(false);
    let began = Instant::now();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            interrupted.store(true, Ordering::Relaxed);
        });
        run(
            &absurd,
            &Hooks {
                thread_start: &|_| Ok(()),
                window: &|_| {},
                interrupted: &interrupted,
                turns: None,
            },
        )
    });
    assert!(matches!(ended, Err(Error::Interrupted { .. })), "{ended:?}");
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
}
