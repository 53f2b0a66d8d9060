//! A stop answers what was queued, ends in time, and frees the port.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use rungwise_serve::udp::{Config, Io, Server};

use crate::client::{ask, connect, no_forks, serve, wait_until};

const IOS: [Io; 3] = [Io::Single, Io::Batch(8), Io::Uring];

#[test]
fn what_is_queued_when_the_stop_comes_is_answered() {
    for io in IOS {
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(Some(gate));
        let server = Server::start(
            &Config {
                io,
                ..Config::new("127.0.0.1:0".parse().unwrap())
            },
            move |_| {
                let mut gate = gate.lock().unwrap().take();
                move |request: &[u8], _: SocketAddr, reply: &mut [u8]| {
                    // The first request waits at the gate, and the others behind it.
                    if let Some(gate) = gate.take() {
                        gate.recv().unwrap();
                    }
                    reply[..request.len()].copy_from_slice(request);
                    Some(request.len())
                }
            },
        )
        .unwrap();
        let socket = connect(server.local_addr());
        for n in 0..50_u8 {
            socket.send(&[n]).unwrap();
        }
        let stopping = std::thread::spawn(move || server.stop());
        open.send(()).unwrap();
        let total = stopping.join().unwrap().total();
        assert_eq!((total.received, total.sent), (50, 50), "{io}");
        let mut reply = [0; 8];
        for n in 0..50_u8 {
            assert_eq!(socket.recv(&mut reply).expect("a reply"), 1);
            assert_eq!(reply[0], n, "{io}");
        }
    }
}

#[test]
fn a_stop_under_load_ends_in_time_and_the_counters_add_up() {
    for io in IOS {
        for reuseport in [false, true] {
            let server = serve(&Config {
                workers: 2,
                reuseport,
                io,
                ..Config::new("127.0.0.1:0".parse().unwrap())
            });
            let address = server.local_addr();
            let over = Arc::new(AtomicBool::new(false));
            let floods: Vec<_> = (0..2)
                .map(|_| {
                    let over = Arc::clone(&over);
                    std::thread::spawn(move || {
                        let socket = connect(address);
                        let mut sent = 0_u64;
                        while !over.load(Ordering::Relaxed) {
                            // Refused once the server is gone.
                            sent += u64::from(socket.send(&[7; 100]).is_ok());
                        }
                        sent
                    })
                })
                .collect();
            wait_until(|| server.counters().total().received >= 5000);
            let began = Instant::now();
            let total = server.stop().total();
            let took = began.elapsed();
            over.store(true, Ordering::Relaxed);
            let offered: u64 = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
            // One second is the bound on draining; the rest is a loaded machine.
            assert!(took < Duration::from_secs(5), "{io}: {took:?}");
            assert_eq!(total.received, total.sent + total.send_errors, "{io}");
            assert!(total.received + total.dropped_by_kernel <= offered, "{io}");
        }
    }
}

#[test]
fn the_port_is_free_after_a_stop_and_after_a_drop() {
    let _guard = no_forks();
    for io in IOS {
        let config = Config {
            workers: 2,
            reuseport: true,
            io,
            ..Config::new("127.0.0.1:0".parse().unwrap())
        };
        let server = serve(&config);
        let again = Config {
            listen: server.local_addr(),
            ..config
        };
        server.stop();
        for _ in 0..20 {
            serve(&again).stop();
        }
        drop(serve(&again));
        let server = serve(&again);
        assert_eq!(ask(&connect(server.local_addr()), b"x"), b"x", "{io}");
    }
}

#[test]
fn counters_stand_still_after_the_stop() {
    let server = serve(&Config::new("127.0.0.1:0".parse().unwrap()));
    let socket = connect(server.local_addr());
    for _ in 0..10 {
        ask(&socket, b"x");
    }
    let counters = server.stop();
    assert_eq!(counters.workers.len(), 1);
    assert_eq!(counters.workers[0].received, 10);
    assert!(counters.workers[0].cpu_ns > 0);
}
