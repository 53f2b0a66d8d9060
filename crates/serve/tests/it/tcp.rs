//! What goes in over a connection comes out, byte for byte, however it is cut; and everything is counted.

use std::cell::Cell;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rungwise_serve::tcp::{
    BusyPoll, Config, Echo, Error, Handler, Io, Pin, Reply, Server, Steering, Step, Then,
    WorkerCounters,
};

use crate::client::{cpus, no_forks, on_cpu, wait_until};
use crate::refusal::{Call, refusing};

thread_local! {
    /// How the servers of this test work.
    static IO: Cell<Io> = const { Cell::new(Io::Epoll) };
}

/// Runs a test with each way in which a server can work.
#[expect(clippy::print_stderr, reason = "a failure shows which it was")]
pub(crate) fn on_each_io(test: impl Fn()) {
    for io in [Io::Epoll, Io::Uring] {
        eprintln!("by {io}");
        IO.set(io);
        test();
    }
}

pub(crate) fn config() -> Config {
    Config {
        io: IO.get(),
        ..Config::new("127.0.0.1:0".parse().unwrap())
    }
}

fn serve(config: &Config) -> Server {
    Server::start(config, |_| Echo).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.local_addr()).unwrap();
    // Far above any delay of a loaded machine; only a lost reply takes this long.
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends `request` and reads as much back.
fn ask(stream: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).unwrap();
    let mut reply = vec![0; request.len()];
    stream.read_exact(&mut reply).expect("a reply");
    reply
}

/// Bytes without a pattern.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn every_byte_comes_back_in_order_whatever_the_pieces_and_the_buffers() {
    on_each_io(|| {
        for (listen, small, reuseport) in [
            ("127.0.0.1:0", false, false),
            ("127.0.0.1:0", true, true),
            ("[::1]:0", true, false),
            ("[::]:0", false, true),
        ] {
            let server = serve(&Config {
                workers: 2,
                reuseport,
                // So small that most sends are partial.
                rcvbuf: small.then_some(4096),
                sndbuf: small.then_some(4096),
                nodelay: true,
                listen: listen.parse().unwrap(),
                ..config()
            });
            let all: usize = 2 << 20;
            let sent = noise(all);
            let target = SocketAddr::from(([127, 0, 0, 1], server.local_addr().port()));
            let clients: Vec<_> = (0..4)
                .map(|client: usize| {
                    let sent = sent.clone();
                    let mut stream = match listen {
                        "[::]:0" => TcpStream::connect(target).unwrap(),
                        _ => connect(&server),
                    };
                    thread::spawn(move || {
                        let mut reader = stream.try_clone().unwrap();
                        let back = thread::spawn(move || {
                            let mut back = Vec::new();
                            reader.read_to_end(&mut back).unwrap();
                            back
                        });
                        let mut rest = sent.as_slice();
                        for n in 0.. {
                            let piece = (n * 7919 + client * 31) % 20_000 + 1;
                            let (first, others) = rest.split_at(piece.min(rest.len()));
                            stream.write_all(first).unwrap();
                            rest = others;
                            if rest.is_empty() {
                                break;
                            }
                        }
                        // The other half stays open: what is on its way back comes.
                        stream.shutdown(Shutdown::Write).unwrap();
                        assert!(back.join().unwrap() == sent, "client {client}");
                    })
                })
                .collect();
            for client in clients {
                client.join().unwrap();
            }
            let total = server.stop().total();
            let bytes = 4 * all as u64;
            assert_eq!(
                (total.received_bytes, total.sent_bytes),
                (bytes, bytes),
                "{listen}"
            );
            assert_eq!((total.accepted, total.closed), (4, 4), "{listen}");
            assert_eq!((total.resets, total.cut), (0, 0), "{listen}");
        }
    });
}

#[test]
fn messages_and_connections_are_counted_exactly() {
    on_each_io(|| {
        for reuseport in [false, true] {
            let server = serve(&Config {
                workers: 3,
                reuseport,
                ..config()
            });
            for n in 0..100_u8 {
                let mut stream = connect(&server);
                for size in 1..4 {
                    let message = vec![n; size];
                    assert_eq!(ask(&mut stream, &message), message);
                }
            }
            let counters = server.stop();
            let total = counters.total();
            assert_eq!(total.accepted, 100);
            assert_eq!((total.requests, total.received_bytes), (300, 600));
            assert_eq!(
                total
                    .incoming_cpus
                    .iter()
                    .map(|(_, count)| count)
                    .sum::<u64>(),
                100
            );
            assert_eq!(total.cpus.iter().map(|(_, count)| count).sum::<u64>(), 300);
            assert!(total.cpu_ns > 0);
            if reuseport {
                // The flow hash finds each of three listeners in a hundred connections: 3 × (2/3)^100 against.
                assert!(counters.workers.iter().all(|worker| worker.accepted > 0));
            }
        }
    });
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    on_each_io(|| {
        let server = serve(&Config {
            sndbuf: Some(16 << 10),
            rcvbuf: Some(16 << 10),
            ..config()
        });
        let mut stream = connect(&server);
        stream.set_nonblocking(true).unwrap();
        let sent = noise(64 << 20);
        let mut at = 0;
        let mut quiet_since = Instant::now();
        // Until nothing more is taken for a while.
        while quiet_since.elapsed() < Duration::from_millis(300) {
            match stream.write(&sent[at..]) {
                Ok(written) => {
                    at += written;
                    quiet_since = Instant::now();
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    thread::yield_now();
                }
            }
            assert!(at < sent.len(), "all was taken");
        }
        let total = server.counters().total();
        let held = total.received_bytes - total.sent_bytes;
        // One receive. Or a reply of one buffer, what is kept until the kernel is told to wait, and what it took before it heard
        // that: 32 buffers (MULTISHOT_MAX_RETRY, io_uring/net.c).
        let most = match IO.get() {
            Io::Epoll => 64 << 10,
            Io::Uring => (16 + 64 + 32 * 16) << 10,
        };
        assert!(held <= most, "{held} bytes are held");
        // Another client does not wait for this one.
        assert_eq!(ask(&mut connect(&server), b"hello"), b"hello");
        stream.set_nonblocking(false).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert!(back == sent[..at]);
    });
}

#[test]
fn resets_are_counted_and_disturb_nobody() {
    on_each_io(|| {
        let server = serve(&config());
        let mut stayed = connect(&server);
        for n in 0..20 {
            let mut gone = connect(&server);
            if n % 2 == 0 {
                ask(&mut gone, b"x");
            }
            // What was never read makes the close a reset.
            gone.write_all(b"unread").unwrap();
            let mut waiting = [0; 1];
            gone.peek(&mut waiting).unwrap();
            drop(gone);
            assert_eq!(ask(&mut stayed, b"hello"), b"hello");
        }
        wait_until(|| server.counters().total().closed == 20);
        let total = server.stop().total();
        assert_eq!((total.accepted, total.resets), (21, 20));
    });
}

/// Connections per worker after a client on `cpu` opened 30.
fn accepted(server: &Server, cpu: usize) -> (Vec<u64>, Vec<WorkerCounters>) {
    let count = || -> Vec<u64> {
        let workers = server.counters().workers;
        workers.iter().map(|worker| worker.accepted).collect()
    };
    let before = count();
    on_cpu(cpu, || {
        for n in 0..30_u8 {
            assert_eq!(ask(&mut connect(server), &[n]), [n]);
        }
    });
    let mut grown = Vec::new();
    wait_until(|| {
        let now = count();
        grown = now
            .iter()
            .zip(&before)
            .map(|(now, then)| now - then)
            .collect();
        grown.iter().sum::<u64>() == 30
    });
    (grown, server.counters().workers)
}

#[test]
fn cbpf_hands_the_connections_of_each_cpu_to_the_worker_of_its_number() {
    on_each_io(|| {
        let cpus = cpus();
        let server = serve(&Config {
            workers: cpus.last().unwrap() + 1,
            reuseport: true,
            steering: Steering::Cbpf,
            ..config()
        });
        for cpu in cpus {
            let (grown, workers) = accepted(&server, cpu);
            assert_eq!(grown[cpu], 30, "client on cpu {cpu}");
            assert_eq!(workers[cpu].incoming_cpus, [(cpu, 30)]);
        }
    });
}

#[test]
fn ebpf_follows_workers_to_cpus_in_any_order_and_takes_any_map() {
    on_each_io(|| {
        let mut cpus = cpus();
        cpus.reverse();
        let server = serve(&Config {
            workers: cpus.len(),
            reuseport: true,
            steering: Steering::Ebpf { map: Vec::new() },
            pin: Pin::Cpus(cpus.clone()),
            listen: "[::1]:0".parse().unwrap(),
            ..config()
        });
        for (worker, cpu) in cpus.iter().enumerate() {
            assert_eq!(accepted(&server, *cpu).0[worker], 30, "client on cpu {cpu}");
        }
        let server = serve(&Config {
            workers: 3,
            reuseport: true,
            steering: Steering::Ebpf {
                map: vec![2; cpus[0] + 1],
            },
            ..config()
        });
        for cpu in cpus {
            assert_eq!(accepted(&server, cpu).0, [0, 0, 30], "client on cpu {cpu}");
        }
    });
}

#[test]
fn a_group_of_one_can_be_steered() {
    on_each_io(|| {
        for steering in [Steering::Cbpf, Steering::Ebpf { map: Vec::new() }] {
            let server = serve(&Config {
                reuseport: true,
                steering,
                ..config()
            });
            assert_eq!(accepted(&server, cpus()[0]).0, [30]);
        }
    });
}

#[test]
fn without_descriptors_accepting_pauses_and_is_counted() {
    for reuseport in [false, true] {
        let began = Instant::now();
        let call = Call::Any(libc::SYS_accept4);
        let server = refusing(call, libc::EMFILE, || {
            serve(&Config {
                workers: 2,
                reuseport,
                ..config()
            })
        });
        let _waits = connect(&server);
        wait_until(|| server.counters().total().out_of_descriptors >= 5);
        // Each worker that is woken pauses for 100 ms each time.
        assert!(began.elapsed() >= Duration::from_millis(200));
        let total = server.stop().total();
        assert_eq!(total.accepted, 0);
        assert!(total.out_of_descriptors < 1000, "{total:?}");
    }
}

/// Panics at `panic`, never ends a request that begins with `?`, and closes after `.`.
struct Odd;

impl Handler for Odd {
    type Session = ();

    fn handle(&mut self, (): &mut (), input: &[u8], reply: &mut Reply) -> Step {
        assert_ne!(input, b"panic", "the test asked for it");
        let waits = input.first() == Some(&b'?');
        if !waits {
            reply.push(input);
            reply.answered();
        }
        Step {
            taken: if waits { 0 } else { input.len() },
            delay: None,
            then: if input == b"." {
                Then::Close
            } else {
                Then::Continue
            },
        }
    }
}

#[test]
fn what_a_handler_does_costs_its_connection_alone() {
    on_each_io(|| {
        let server = Server::start(&config(), |_| Odd).unwrap();
        let mut stayed = connect(&server);
        let mut end = Vec::new();
        for (message, reply) in [(&b"panic"[..], &b""[..]), (b".", b".")] {
            let mut stream = connect(&server);
            stream.write_all(message).unwrap();
            end.clear();
            // A connection that is closed with bytes unread is reset.
            let _ = stream.read_to_end(&mut end);
            assert_eq!(end, reply);
        }
        // An incomplete request is kept up to a limit.
        let mut endless = connect(&server);
        let mut written = 0;
        while endless.write_all(&[b'?'; 1000]).is_ok() {
            written += 1;
            assert!(written < 100_000, "all was kept");
        }
        let mut half = connect(&server);
        half.write_all(b"?").unwrap();
        half.shutdown(Shutdown::Write).unwrap();
        half.read_to_end(&mut end).unwrap();
        assert_eq!(ask(&mut stayed, b"hello"), b"hello");
        let total = server.stop().total();
        assert_eq!((total.panics, total.requests, total.cut), (1, 2, 2));
    });
}

/// Takes nothing and replies, at once or without end.
struct Stuck {
    delay: Option<Duration>,
}

impl Handler for Stuck {
    type Session = ();

    fn handle(&mut self, (): &mut (), input: &[u8], reply: &mut Reply) -> Step {
        reply.push(input);
        Step {
            taken: 0,
            delay: self.delay,
            then: Then::Continue,
        }
    }
}

#[test]
fn a_handler_that_takes_nothing_and_goes_on_loses_its_connection() {
    on_each_io(|| {
        for delay in [None, Some(Duration::ZERO)] {
            let server = Server::start(&config(), move |_| Stuck { delay }).unwrap();
            let mut stream = connect(&server);
            stream.write_all(b"x").unwrap();
            let mut end = Vec::new();
            stream.read_to_end(&mut end).unwrap();
            assert!(end.is_empty(), "{delay:?}");
            let total = server.stop().total();
            assert_eq!((total.panics, total.requests), (1, 0), "{delay:?}");
        }
    });
}

#[test]
fn a_stop_answers_what_has_arrived_and_frees_the_port() {
    on_each_io(|| {
        let _guard = no_forks();
        for reuseport in [false, true] {
            let mut config = Config {
                workers: 2,
                reuseport,
                ..config()
            };
            for _ in 0..20 {
                let server = serve(&config);
                config.listen = server.local_addr();
                // Sent before the stop, accepted perhaps not yet.
                let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
                for client in &mut clients {
                    client.write_all(b"queued").unwrap();
                }
                let idle = connect(&server);
                let total = server.stop().total();
                for mut client in clients {
                    let mut reply = Vec::new();
                    client.read_to_end(&mut reply).unwrap();
                    assert_eq!(reply, b"queued");
                }
                assert_eq!((total.accepted, total.closed, total.requests), (5, 5, 4));
                drop(idle);
            }
            drop(serve(&config));
            assert_eq!(ask(&mut connect(&serve(&config)), b"x"), b"x");
        }
    });
}

#[test]
fn a_stop_does_not_wait_for_a_client_that_does_not_read() {
    on_each_io(|| {
        let server = serve(&Config {
            sndbuf: Some(4096),
            ..config()
        });
        let mut stream = connect(&server);
        let waiting = Some(Duration::from_millis(200));
        stream.set_write_timeout(waiting).unwrap();
        while stream.write(&[0; 16_000]).is_ok() {}
        let before = server.counters().total().cpu_ns;
        let began = Instant::now();
        let total = server.stop().total();
        // One second is the bound; the rest is a loaded machine.
        assert!(began.elapsed() < Duration::from_secs(6));
        let busy = Duration::from_nanos(total.cpu_ns - before);
        assert!(busy < Duration::from_millis(300), "it polled for {busy:?}");
        assert_eq!((total.accepted, total.closed), (1, 1));
    });
}

#[test]
fn switches_are_reported_with_what_the_kernel_granted() {
    let cpus = cpus();
    let server = serve(&Config {
        workers: 2,
        backlog: Some(10),
        nodelay: true,
        pin: Pin::Cpus(vec![cpus[0]]),
        busy_poll: Some(BusyPoll {
            time: Duration::from_micros(50),
            prefer: true,
            budget: 8,
        }),
        fallback: true,
        ..config()
    });
    let lines: Vec<_> = server
        .read_backs()
        .iter()
        .map(ToString::to_string)
        .collect();
    let cpu = cpus[0];
    let pins = format!("worker 0 on cpu {cpu}, worker 1 on cpu {cpu}");
    for expected in [
        "nodelay: 1; holds: TCP_NODELAY 1".to_owned(),
        "backlog: 10; holds: 10 by TCP_INFO".to_owned(),
        format!("pin: {pins}; holds: {pins} by sched_getaffinity"),
    ] {
        assert!(lines.contains(&expected), "{expected}: {lines:?}");
    }
    let line = |name: &str| lines.iter().find(|line| line.starts_with(name)).unwrap();
    assert!(line("listener: shared; holds: ").contains("EPOLLEXCLUSIVE"));
    // A kernel before 6.9, or without CONFIG_NET_RX_BUSY_POLL, says so.
    let poll = line("busy-poll: 50 us, interrupts off, 8 packets; ");
    assert!(
        poll.ends_with("holds: EPIOCGPARAMS 50 us, interrupts off, 8 packets")
            || poll.contains("DIFFERS: off: "),
        "{poll}"
    );
    assert_eq!(ask(&mut connect(&server), b"x"), b"x");
}

#[test]
fn io_uring_reads_back_and_where_it_is_refused_epoll_serves_if_it_may() {
    let by_ring = Config {
        io: Io::Uring,
        workers: 2,
        ..config()
    };
    let lines = |server: &Server| -> Vec<String> {
        let lines = server.read_backs().iter();
        lines.map(ToString::to_string).collect()
    };
    let server = serve(&by_ring);
    let said = lines(&server);
    for expected in [
        "io: io_uring; holds: ",
        "listener: shared; holds: accepted by",
    ] {
        assert!(
            said.iter().any(|line| line.starts_with(expected)),
            "{said:?}"
        );
    }
    assert_eq!(ask(&mut connect(&server), b"x"), b"x");
    drop(server);
    for (answer, why) in [
        (libc::ENOSYS, "which Linux has since 6.1"),
        (libc::EPERM, "kernel.io_uring_disabled"),
    ] {
        let setup = Call::Any(libc::SYS_io_uring_setup);
        let error = refusing(setup, answer, || {
            Server::start(&by_ring, |_| Echo).unwrap_err().to_string()
        });
        assert!(error.contains(why), "{error}");
        let may = Config {
            fallback: true,
            ..by_ring.clone()
        };
        let server = refusing(setup, answer, || serve(&may));
        let said = lines(&server);
        assert!(
            said.iter()
                .any(|line| line.starts_with("io: io_uring; DIFFERS: epoll: ")),
            "{said:?}"
        );
        assert_eq!(ask(&mut connect(&server), b"x"), b"x");
        assert_eq!(server.stop().total().requests, 1);
    }
}

#[test]
fn a_deferred_accept_waits_for_the_first_bytes() {
    on_each_io(|| {
        let server = serve(&Config {
            defer_accept: Some(Duration::from_secs(10)),
            ..config()
        });
        let mut early = connect(&server);
        let mut late = connect(&server);
        assert_eq!(ask(&mut late, b"x"), b"x");
        assert_eq!(server.counters().total().accepted, 1);
        assert_eq!(ask(&mut early, b"y"), b"y");
        assert_eq!(server.stop().total().accepted, 2);
    });
}

#[test]
fn what_cannot_be_served_is_refused_with_the_reason() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    for (config, reason) in [
        (
            Config {
                workers: 0,
                ..config()
            },
            "choose 1 to 1024",
        ),
        (
            Config {
                backlog: Some(0),
                ..config()
            },
            "backlog of 0",
        ),
        (
            Config {
                backlog: Some(u32::MAX),
                ..config()
            },
            "choose 1 to",
        ),
        (
            Config {
                defer_accept: Some(Duration::ZERO),
                ..config()
            },
            "deferred",
        ),
        (
            Config {
                io: Io::Uring,
                busy_poll: Some(BusyPoll {
                    time: Duration::from_micros(50),
                    prefer: false,
                    budget: 0,
                }),
                ..config()
            },
            "choose io_uring or busy polling",
        ),
        (
            Config {
                steering: Steering::Cbpf,
                ..config()
            },
            "enable reuseport",
        ),
        (
            Config {
                incoming_cpu: true,
                ..config()
            },
            "enable reuseport",
        ),
        (Config::new(taken), "the port is in use"),
        (
            Config {
                reuseport: true,
                ..Config::new(taken)
            },
            "ss -ltnp",
        ),
        (
            Config::new("192.0.2.1:0".parse().unwrap()),
            "belongs to this host",
        ),
    ] {
        let error = Server::start(&config, |_| Echo).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(reason), "{reason}: {said}");
        let known = matches!(
            error,
            Error::Config(_) | Error::PortInUse(_) | Error::Bind { .. }
        );
        assert!(known, "{said}");
    }
}
