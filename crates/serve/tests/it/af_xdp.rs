//! `AF_XDP` on a veth pair of its own, with clients that know nothing of it.

use std::net::SocketAddr;

use rungwise_serve::udp::{Config, Error, Pin, Server, XdpDevice, XdpMode};

use crate::client::{ask, connect, cpus, echo, no_forks, wait_until};
use crate::namespace::{Namespace, ip};

fn config(listen: &str, mode: XdpMode) -> Config {
    Config {
        af_xdp: Some(XdpDevice {
            device: "veth0".to_owned(),
            mode,
        }),
        ..Config::new(listen.parse().unwrap())
    }
}

fn start(namespace: &Namespace, config: Config) -> Server {
    namespace.run(move || Server::start(&config, echo).unwrap_or_else(|error| panic!("{error}")))
}

fn echoes(namespace: &Namespace, server: &str, sizes: &'static [usize]) {
    let server = server.parse().unwrap();
    namespace.run(move || {
        let socket = connect(server);
        for size in sizes {
            let request: Vec<u8> = (0..*size).map(|at| at as u8).collect();
            assert_eq!(ask(&socket, &request), request);
        }
    });
}

/// UDP datagrams that the namespace's stack delivered to sockets, of both families.
fn delivered(namespace: &Namespace) -> u64 {
    namespace.run(|| {
        let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let v4 = snmp.lines().filter(|line| line.starts_with("Udp: ")).nth(1);
        let snmp6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
        let v6 = snmp6
            .lines()
            .find(|line| line.starts_with("Udp6InDatagrams"));
        [v4, v6]
            .map(|line| line.unwrap().split_whitespace().nth(1).unwrap())
            .map(|count| count.parse::<u64>().unwrap())
            .iter()
            .sum()
    })
}

#[test]
fn every_size_of_both_families_is_answered_before_the_stack() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let _guard = no_forks();
    for mode in [XdpMode::Generic, XdpMode::Native] {
        for listen in ["10.9.0.1:7777", "[fd09::1]:7777"] {
            let server = start(&here, config(listen, mode));
            echoes(&there, listen, &[0, 1, 2, 3, 100, 1400]);
            assert_eq!(delivered(&here), 0, "{listen} {mode:?}");
            let total = server.stop().total();
            assert_eq!((total.received, total.sent), (6, 6));
            assert_eq!((total.received_bytes, total.sent_bytes), (1506, 1506));
            assert_eq!((total.receive_errors, total.dropped_by_kernel), (0, 0));
        }
    }
}

#[test]
fn what_does_not_fit_a_frame_goes_by_the_socket_both_ways() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let _guard = no_forks();
    let server = start(&here, config("10.9.0.1:7777", XdpMode::Native));
    // Fragments are the stack's to put together.
    echoes(&there, "10.9.0.1:7777", &[1472, 1473, 9000, 100]);
    assert_eq!(delivered(&here), 2);
    assert_eq!(server.stop().total().sent, 4);

    let long = |_| {
        |request: &[u8], _: SocketAddr, reply: &mut [u8]| {
            reply[..3000].fill(request[0]);
            Some(3000)
        }
    };
    let config = config("10.9.0.1:7777", XdpMode::Native);
    let server = here.run(move || Server::start(&config, long).unwrap());
    there.run(|| {
        let socket = connect("10.9.0.1:7777".parse().unwrap());
        assert_eq!(ask(&socket, b"x"), [b'x'; 3000]);
    });
    let total = server.stop().total();
    assert_eq!((total.received, total.sent, total.sent_bytes), (1, 1, 3000));
    assert_eq!(delivered(&here), 2, "the request itself came in a frame");
}

#[test]
fn other_ports_and_protocols_are_left_to_the_stack() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let _server = start(&here, config("10.9.0.1:7777", XdpMode::Native));
    let _other = start(&here, Config::new("10.9.0.1:7778".parse().unwrap()));
    echoes(&there, "10.9.0.1:7778", &[1, 100]);
    assert_eq!(delivered(&here), 2);
    // A port that nobody holds: ICMP tells, as always.
    there.run(|| {
        let socket = connect("10.9.0.1:7779".parse().unwrap());
        socket.send(b"x").unwrap();
        let error = socket.recv(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn each_worker_has_its_queue_and_a_burst_is_answered_whole() {
    let (Some(here), Some(there)) = (Namespace::new(), Namespace::new()) else {
        return;
    };
    let peer = there.path().to_owned();
    here.run(move || {
        let queues = ["numrxqueues", "2", "numtxqueues", "2"];
        let mut words = vec!["link", "add", "veth0"];
        words.extend(queues);
        words.extend(["type", "veth", "peer", "name", "veth1", "netns", &peer]);
        words.extend(queues);
        ip(&words);
    });
    for (namespace, device, address) in [
        (&here, "veth0", "10.9.0.1/24"),
        (&there, "veth1", "10.9.0.2/24"),
    ] {
        namespace.run(move || {
            ip(&["addr", "add", address, "dev", device]);
            ip(&["link", "set", device, "up"]);
        });
    }
    let config = Config {
        workers: 2,
        reuseport: true,
        pin: Pin::Cpus(cpus()),
        ..config("10.9.0.1:7777", XdpMode::Native)
    };
    let server = start(&here, config);
    there.run(|| {
        // Ports hash to transmit queues, and a datagram keeps its queue over veth.
        let sockets: Vec<_> = (0..64)
            .map(|_| connect("10.9.0.1:7777".parse().unwrap()))
            .collect();
        for socket in &sockets {
            for n in 0..8 {
                socket.send(&[n; 100]).unwrap();
            }
        }
        for socket in &sockets {
            for n in 0..8 {
                let mut reply = [0; 200];
                assert_eq!(socket.recv(&mut reply).unwrap(), 100);
                assert_eq!(reply[..100], [n; 100]);
            }
        }
    });
    let counters = server.stop();
    assert!(counters.workers.iter().all(|worker| worker.received > 0));
    assert_eq!(counters.total().sent, 512);
    assert_eq!(delivered(&here), 0);
}

#[test]
fn the_program_leaves_with_its_server_and_a_second_is_refused() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let _guard = no_forks();
    let first = start(&here, config("10.9.0.1:7777", XdpMode::Generic));
    let second = config("10.9.0.1:7778", XdpMode::Generic);
    let error = here.run(move || Server::start(&second, echo).unwrap_err());
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(
        error.to_string().contains("no other XDP program"),
        "{error}"
    );
    drop(first);
    let _plain = start(&here, Config::new("10.9.0.1:7777".parse().unwrap()));
    echoes(&there, "10.9.0.1:7777", &[5]);
    assert_eq!(delivered(&here), 1);
}

#[test]
fn more_workers_than_queues_are_refused_or_served_by_sockets() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let _guard = no_forks();
    let config = Config {
        workers: 1000,
        ..config("10.9.0.1:7777", XdpMode::Native)
    };
    let strict = config.clone();
    let error = here.run(move || Server::start(&strict, echo).unwrap_err());
    assert!(
        error
            .to_string()
            .contains("at most as many workers as the device has receive queues"),
        "{error}"
    );
    let lenient = Config {
        fallback: true,
        workers: 40,
        ..config
    };
    let server = start(&here, lenient);
    assert!(server.read_backs().iter().any(|entry| !entry.holds
        && entry.switch == "af-xdp"
        && entry.actual.starts_with("off, served from sockets")));
    echoes(&there, "10.9.0.1:7777", &[5]);
    assert_eq!(delivered(&here), 1);
}

#[test]
fn a_device_that_goes_away_leaves_the_sockets() {
    let Some((here, _there)) = Namespace::pair() else {
        return;
    };
    let server = start(&here, config("10.9.0.1:7777", XdpMode::Native));
    here.run(|| {
        ip(&["link", "del", "veth0"]);
        ip(&["addr", "add", "10.9.0.1/32", "dev", "lo"]);
    });
    echoes(&here, "10.9.0.1:7777", &[5, 100]);
    wait_until(|| server.counters().total().sent == 2);
    let total = server.stop().total();
    assert_eq!((total.received, total.receive_errors), (2, 0));
}
