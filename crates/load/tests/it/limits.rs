//! What cannot be measured is said, with cause and remedy, and soon.

use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::udp::{
    Arrival, Edge, Hooks, Payload, Stop, Surroundings, Workload, certify, run,
};

use rungwise_testkit::Pair;

use crate::af_xdp::echo_at;
use crate::server::{Server, drive, errors, reply, workload};

#[test]
fn a_closed_port_stops_the_run_after_a_second() {
    let address = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let long = Workload {
        stop: Stop::After(Duration::from_hours(1)),
        timeout: Duration::from_mins(10),
        ..workload(address, 1)
    };
    let error = drive(&long).unwrap_err();
    let Error::NoReplies {
        refused, after_s, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(*refused > 0 && *after_s < 60.0, "{error}");
    assert!(error.to_string().contains("the port is closed"), "{error}");
}

#[test]
fn a_silent_port_stops_the_run_after_three_timeouts() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let long = Workload {
        stop: Stop::After(Duration::from_hours(1)),
        timeout: Duration::from_millis(200),
        ..workload(silent.local_addr().unwrap(), 1)
    };
    let error = drive(&long).unwrap_err();
    assert!(
        matches!(error, Error::NoReplies { refused: 0, .. }),
        "{error}"
    );
    // A run that ends before that says the same.
    let short = Workload {
        stop: Stop::Count(5),
        ..long
    };
    let error = drive(&short).unwrap_err();
    assert!(matches!(error, Error::NoReplies { sent: 5, .. }), "{error}");
}

#[test]
fn a_server_that_dies_after_the_start_leaves_losses_and_no_certificate() {
    let server = Server::start(|number, request, socket, from| {
        if number <= 100 {
            reply(socket, request, from);
        }
    });
    let workload = Workload {
        warmup: Duration::from_millis(300),
        timeout: Duration::from_millis(100),
        stop: Stop::After(Duration::from_millis(300)),
        ..workload(server.address, 1)
    };
    let mut completed = drive(&workload).unwrap();
    certify(&mut completed, &Surroundings::default());
    let measured = &completed.measurement;
    assert_eq!(measured.received, 0);
    assert!(measured.lost > 0 && !measured.client.certified);
    assert!(
        measured.client.reasons[0].contains("no answer"),
        "{:?}",
        measured.client.reasons
    );
}

#[test]
fn a_closed_port_behind_a_device_is_reported_with_what_was_sent() {
    // Unlike loopback, it answers a few requests only and then keeps silent: within one batch.
    let pair = Pair::new(1).unwrap_or_else(|error| panic!("network namespaces need root: {error}"));
    let enter = pair.client.enter_fn();
    let short = Workload {
        threads: 1,
        depth: 16,
        timeout: Duration::from_millis(100),
        warmup: Duration::from_millis(300),
        stop: Stop::After(Duration::from_millis(10)),
        ..workload((Pair::SERVER, 9).into(), 1)
    };
    let error = run(
        &short,
        &Hooks {
            thread_start: &|_| enter(),
            window: &|_| {},
            interrupted: &AtomicBool::new(false),
            turns: None,
        },
    )
    .unwrap_err();
    let Error::NoReplies { refused, sent, .. } = error else {
        panic!("{error}")
    };
    assert!(refused > 1 && sent >= 32, "{error}");
    assert!(error.to_string().contains("the port is closed"), "{error}");
}

#[test]
fn a_batch_that_a_filter_cuts_short_is_not_sent_and_not_refused() {
    // Every seventh datagram fails at the client itself, in the midst of a batch, and goes through when it is tried again.
    let pair = Pair::new(1).unwrap_or_else(|error| panic!("network namespaces need root: {error}"));
    let rules = "add table inet cut; \
                 add chain inet cut out { type filter hook output priority 0; }; \
                 add rule inet cut out udp dport 7777 numgen inc mod 7 0 drop";
    let nft = pair.client.run(move || {
        let mut nft = std::process::Command::new("nft");
        nft.arg(rules)
            .output()
            .expect("install the package nftables")
    });
    assert!(
        nft.status.success(),
        "{}",
        String::from_utf8_lossy(&nft.stderr)
    );
    let server = echo_at(&pair);
    let enter = pair.client.enter_fn();
    let workload = Workload {
        threads: 1,
        depth: 16,
        timeout: Duration::from_millis(200),
        ..workload(server.local_addr(), 500)
    };
    let hooks = Hooks {
        thread_start: &|_| enter(),
        window: &|_| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    let completed = run(&workload, &hooks).unwrap();
    assert_eq!(errors(&completed, "refused"), 0, "{completed:?}");
    assert!(errors(&completed, "send") > 10, "{completed:?}");
    assert_eq!(completed.measurement.received, completed.measurement.sent);
}

#[test]
fn contradictions_are_refused_with_what_would_be_right() {
    let good = workload("127.0.0.1:9".parse().unwrap(), 1);
    let cases: [(Workload, &str); 12] = [
        (
            Workload {
                threads: 1000,
                sockets: 60_000,
                ..good.clone()
            },
            "60000000 source ports, but an address has 65535",
        ),
        (
            Workload {
                threads: 0,
                ..good.clone()
            },
            "threads is 0",
        ),
        (
            Workload {
                depth: 70_000,
                ..good.clone()
            },
            "1 to 65536",
        ),
        (
            Workload {
                batch: 0,
                ..good.clone()
            },
            "the batch is 0",
        ),
        (
            Workload {
                payload: Payload::Sequenced { size: 15 },
                ..good.clone()
            },
            "16 to 65507",
        ),
        (
            Workload {
                burst: Some(16),
                ..good.clone()
            },
            "at least depth 16",
        ),
        (
            Workload {
                burst: Some(4),
                payload: Payload::Sequenced { size: 40_000 },
                ..good.clone()
            },
            "send without a burst, or requests of up to 32753 bytes",
        ),
        (
            Workload {
                arrival: Arrival::Constant { per_s: f64::NAN },
                ..good.clone()
            },
            "above 0",
        ),
        (
            Workload {
                arrival: Arrival::Ramp {
                    from_per_s: 0.0,
                    to_per_s: 0.0,
                },
                ..good.clone()
            },
            "not both 0",
        ),
        (
            Workload {
                stop: Stop::Count(0),
                ..good.clone()
            },
            "at least one request",
        ),
        (
            Workload {
                source: Some("::1".parse().unwrap()),
                ..good.clone()
            },
            "address family",
        ),
        (
            Workload {
                target: "127.0.0.1:0".parse().unwrap(),
                ..good.clone()
            },
            "port 0",
        ),
    ];
    for (workload, words) in cases {
        let error = drive(&workload).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_source_that_is_not_ours_and_a_thread_that_cannot_start_are_named() {
    let good = workload("127.0.0.1:9".parse().unwrap(), 1);
    let stranger = Workload {
        source: Some("192.0.2.1".parse().unwrap()),
        ..good.clone()
    };
    let error = drive(&stranger).unwrap_err().to_string();
    assert!(
        error.contains("bind the source address") && error.contains("192.0.2.1"),
        "{error}"
    );
    assert_eq!(error.matches("os error").count(), 1, "{error}");
    let nowhere = Workload {
        pins: Some(vec![100_000]),
        ..good
    };
    let error = drive(&nowhere).unwrap_err().to_string();
    assert!(
        error.contains("bind to a CPU") && error.contains("CPUs that are online"),
        "{error}"
    );
}

#[test]
fn a_thread_that_panics_at_its_start_ends_the_run() {
    let hooks = Hooks {
        thread_start: &|thread| {
            assert_eq!(thread, 0, "the test asked for it");
            Ok(())
        },
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    let long = Workload {
        stop: Stop::After(Duration::from_hours(1)),
        ..workload(Server::echo().address, 1)
    };
    let ended = catch_unwind(AssertUnwindSafe(|| run(&long, &hooks)));
    assert!(ended.is_err());
}
