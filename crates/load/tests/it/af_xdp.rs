//! The generator on the queues of a device: a veth pair of its own, and servers that know nothing of it.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rungwise_load::Error;
use rungwise_load::udp::{
    Arrival, Completed, Edge, Hooks, Payload, Stop, Workload, XdpDevice, XdpMode, run,
};
use rungwise_model::load::TransportKind;
use rungwise_serve::udp::{Config, Server};
use rungwise_testkit::Pair;

use crate::server::workload;

const PORT: u16 = 7777;

fn pair(queues: u32) -> Pair {
    Pair::both_families(queues)
        .unwrap_or_else(|error| panic!("network namespaces need root: {error}"))
}

/// An echo in the server's namespace that drops what `drops` says, counted from 1.
fn echo(pair: &Pair, config: Config, drops: fn(u64) -> bool) -> Server {
    let factory = move |_| {
        let mut number = 0;
        move |request: &[u8], _: SocketAddr, reply: &mut [u8]| {
            number += 1;
            reply[..request.len()].copy_from_slice(request);
            (!drops(number)).then_some(request.len())
        }
    };
    let started = pair.server.run(move || Server::start(&config, factory));
    started.unwrap_or_else(|error| panic!("{error}"))
}

fn at(ip: impl Into<IpAddr>) -> Config {
    Config::new(SocketAddr::new(ip.into(), PORT))
}

/// An echo that drops nothing.
pub(crate) fn echo_at(pair: &Pair) -> Server {
    echo(pair, at(Pair::SERVER), |_| false)
}

/// The same, and it tells of each request.
pub(crate) fn echo_telling(
    pair: &Pair,
    on_request: impl Fn() + Clone + Send + Sync + 'static,
) -> Server {
    let factory = move |_| {
        let on_request = on_request.clone();
        move |request: &[u8], _: SocketAddr, reply: &mut [u8]| {
            on_request();
            reply[..request.len()].copy_from_slice(request);
            Some(request.len())
        }
    };
    let started = pair
        .server
        .run(move || Server::start(&at(Pair::SERVER), factory));
    started.unwrap_or_else(|error| panic!("{error}"))
}

fn device(mode: XdpMode) -> XdpDevice {
    XdpDevice {
        device: Pair::CLIENT_DEVICE.to_owned(),
        mode,
    }
}

pub(crate) fn by_queues(target: SocketAddr, count: u64) -> Workload {
    Workload {
        threads: 1,
        af_xdp: Some(device(XdpMode::Native)),
        ..workload(target, count)
    }
}

fn drive(pair: &Pair, workload: &Workload) -> Result<Completed, Error> {
    let enter = pair.client.enter_fn();
    run(
        workload,
        &Hooks {
            thread_start: &|_| enter(),
            window: &|_: Edge| {},
            interrupted: &AtomicBool::new(false),
            turns: None,
        },
    )
}

/// Of a run whose requests must all have been answered.
#[track_caller]
fn all_answered(pair: &Pair, workload: &Workload) -> Completed {
    let completed = drive(pair, workload).unwrap_or_else(|error| panic!("{error}"));
    let measured = &completed.measurement;
    assert_eq!(measured.received, measured.sent, "{:?}", measured.errors);
    assert!(measured.errors.is_empty(), "{:?}", measured.errors);
    assert!(measured.latency_us.corrected.p50 > 0.0);
    completed
}

#[test]
fn every_request_is_matched_with_its_reply_in_both_modes_and_families() {
    let pair = pair(2);
    for ip in [IpAddr::from(Pair::SERVER), Pair::SERVER6.into()] {
        let server = echo(&pair, at(ip), |_| false);
        for mode in [XdpMode::Native, XdpMode::Generic] {
            for arrival in [Arrival::Closed, Arrival::Constant { per_s: 2000.0 }] {
                let workload = Workload {
                    arrival,
                    af_xdp: Some(device(mode)),
                    ..by_queues((ip, PORT).into(), 500)
                };
                let completed = all_answered(&pair, &workload);
                let transport = completed.measurement.client.transport;
                assert_eq!(transport.kind, TransportKind::AfXdp);
                assert_eq!(transport.device.as_deref(), Some(Pair::CLIENT_DEVICE));
                assert_eq!(transport.native, Some(mode == XdpMode::Native));
                assert_eq!(transport.queues, Some(2));
                let by_queue = transport.by_queue.unwrap();
                match mode {
                    XdpMode::Native => assert!(by_queue > 0.999, "{by_queue}"),
                    // On veth a frame's queue is reported wrongly there, and the stack takes what fits none.
                    XdpMode::Generic => assert!(by_queue > 0.0, "{by_queue}"),
                }
            }
        }
        assert_eq!(server.stop().total().sent, 2000);
    }
}

#[test]
fn replies_on_a_queue_of_another_thread_count_as_well_and_become_few() {
    let pair = pair(2);
    let _server = echo_at(&pair);
    let workload = Workload {
        threads: 2,
        sockets: 8,
        ..by_queues((Pair::SERVER, PORT).into(), 20_000)
    };
    let by_queue = all_answered(&pair, &workload)
        .measurement
        .client
        .transport
        .by_queue
        .unwrap();
    // The server's kernel chooses the queue by a hash over the ports: half of the flows begin on the wrong one. That more
    // than 2 of 16 find no right one in 8 ports has a chance of 1 in 30 000.
    assert!(by_queue > 0.8 && by_queue < 1.0, "{by_queue}");
}

#[test]
fn replies_find_frames_on_every_queue_however_many_requests_are_under_way() {
    let pair = pair(2);
    let config = Config {
        workers: 2,
        reuseport: true,
        // The kernel may give nearly all flows to one worker: its socket holds all that are under way.
        rcvbuf: Some(212_992),
        ..at(Pair::SERVER)
    };
    let _server = echo(&pair, config, |_| false);
    let workload = Workload {
        sockets: 16,
        depth: 16,
        warmup: Duration::from_secs(1),
        ..by_queues((Pair::SERVER, PORT).into(), 500_000)
    };
    all_answered(&pair, &workload);
}

#[test]
fn a_server_on_its_queues_answers_on_the_queue_that_asked() {
    let pair = pair(2);
    let config = Config {
        workers: 2,
        af_xdp: Some(XdpDevice {
            device: Pair::SERVER_DEVICE.to_owned(),
            mode: XdpMode::Native,
        }),
        ..at(Pair::SERVER)
    };
    let server = echo(&pair, config, |_| false);
    let workload = Workload {
        threads: 2,
        sockets: 8,
        ..by_queues((Pair::SERVER, PORT).into(), 2000)
    };
    let completed = all_answered(&pair, &workload);
    assert_eq!(completed.measurement.client.transport.by_queue, Some(1.0));
    let counters = server.stop();
    assert!(counters.workers.iter().all(|worker| worker.received > 0));
}

#[test]
fn what_is_lost_or_wrong_counts_as_with_sockets() {
    let pair = pair(1);
    let _server = echo(&pair, at(Pair::SERVER), |number| number % 10 == 0);
    let workload = Workload {
        timeout: Duration::from_millis(100),
        ..by_queues((Pair::SERVER, PORT).into(), 300)
    };
    let measured = drive(&pair, &workload).unwrap().measurement;
    assert_eq!(
        (measured.sent, measured.received, measured.lost),
        (300, 270, 30)
    );

    // Other bytes than were sent.
    let config = Config::new((Pair::SERVER, 7778).into());
    let wrong = |_| {
        |request: &[u8], _: SocketAddr, reply: &mut [u8]| {
            reply[..request.len()].copy_from_slice(request);
            reply[request.len() - 1] ^= 1;
            Some(request.len())
        }
    };
    let _wrong = pair
        .server
        .run(move || Server::start(&config, wrong).unwrap());
    let workload = Workload {
        warmup: Duration::ZERO,
        ..by_queues((Pair::SERVER, 7778).into(), 20)
    };
    // Nothing came in time that was right: that is what the error says.
    let error = drive(&pair, &workload).unwrap_err();
    assert!(matches!(error, Error::NoReplies { .. }), "{error}");
}

#[test]
fn a_reply_in_fragments_comes_by_the_socket() {
    let pair = pair(1);
    let config = at(Pair::SERVER);
    let long = |_| {
        |_: &[u8], _: SocketAddr, reply: &mut [u8]| {
            reply[..3000].fill(7);
            Some(3000)
        }
    };
    let _server = pair
        .server
        .run(move || Server::start(&config, long).unwrap());
    let workload = Workload {
        payload: Payload::Opaque(b"x".to_vec()),
        depth: 1,
        ..by_queues((Pair::SERVER, PORT).into(), 50)
    };
    let completed = all_answered(&pair, &workload);
    assert_eq!(completed.measurement.client.transport.by_queue, Some(0.0));
}

#[test]
fn a_closed_port_is_reported_by_icmp_as_always() {
    let pair = pair(1);
    let error = drive(&pair, &by_queues((Pair::SERVER, 9).into(), 100)).unwrap_err();
    assert!(error.to_string().contains("the port is closed"), "{error}");
}

#[test]
fn others_on_the_device_are_left_alone_while_it_runs() {
    let pair = pair(2);
    let _server = echo_at(&pair);
    let workload = Workload {
        stop: Stop::After(Duration::from_millis(1500)),
        ..by_queues((Pair::SERVER, PORT).into(), 1)
    };
    std::thread::scope(|scope| {
        let load = scope.spawn(|| all_answered(&pair, &workload));
        pair.client.run(|| {
            let socket = UdpSocket::bind((Pair::CLIENT, 0)).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            socket.connect((Pair::SERVER, PORT)).unwrap();
            let begin = Instant::now();
            // The same server, from a port that is not the generator's.
            while begin.elapsed() < Duration::from_millis(500) {
                socket.send(b"mine").unwrap();
                let mut reply = [0; 8];
                assert_eq!(socket.recv(&mut reply).unwrap(), 4);
                assert_eq!(&reply[..4], b"mine");
            }
            // ARP and ICMP reach the kernel: a neighbour is found again, and tells that nobody listens.
            forget_server();
            socket.connect((Pair::SERVER, 9)).unwrap();
            socket.send(b"x").unwrap();
            let error = socket.recv(&mut [0; 1]).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        });
        load.join().unwrap();
    });
    // And the program has left with it.
    all_answered(&pair, &by_queues((Pair::SERVER, PORT).into(), 100));
}

/// Makes the calling thread's namespace forget the server's Ethernet address.
fn forget_server() {
    let ip = Pair::SERVER.to_string();
    let status = Command::new("ip")
        .args(["neigh", "del", &ip, "dev", Pair::CLIENT_DEVICE])
        .status()
        .unwrap_or_else(|error| panic!("cannot run ip: {error}; install iproute2"));
    assert!(status.success());
}

#[test]
fn a_neighbour_that_is_not_known_is_asked_for() {
    let pair = pair(1);
    let _server = echo_at(&pair);
    pair.client.run(forget_server);
    all_answered(&pair, &by_queues((Pair::SERVER, PORT).into(), 100));
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let pair = pair(2);
    let target = (Pair::SERVER, PORT).into();
    let refused = |change: &dyn Fn(&mut Workload), words: &[&str]| {
        let mut workload = by_queues(target, 10);
        change(&mut workload);
        let error = drive(&pair, &workload).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let absent = || XdpDevice {
        device: "absent0".to_owned(),
        ..device(XdpMode::Native)
    };
    refused(&|w| w.af_xdp = Some(absent()), &["absent0", "ip link"]);
    refused(&|w| w.threads = 3, &["3 threads", "but it has 2"]);
    refused(
        &|w| w.payload = Payload::Sequenced { size: 1473 },
        &["1473 bytes", "1472", "no fragments"],
    );
    refused(&|w| w.burst = Some(2), &["single frames"]);
    refused(
        &|w| w.target = (Pair::CLIENT, PORT).into(),
        &["uses another device", "ip route get"],
    );
    refused(
        &|w| w.target = "10.78.0.99:7777".parse().unwrap(),
        &["next hop", "no answer"],
    );
    refused(
        &|w| w.source = Some("10.78.0.77".parse().unwrap()),
        &["source address"],
    );
    // The server's side may have a program; ours may not have another.
    let holder = Config {
        af_xdp: Some(device(XdpMode::Native)),
        ..at(Pair::CLIENT)
    };
    let mute = |_| |_: &[u8], _: SocketAddr, _: &mut [u8]| None;
    let held = pair
        .client
        .run(move || Server::start(&holder, mute).unwrap());
    refused(&|_| {}, &["open a socket of AF_XDP", "no other program"]);
    drop(held);
    let _server = echo_at(&pair);
    all_answered(&pair, &by_queues(target, 10));
}
