//! Nothing that comes over the wire, and nothing that a handler does, stops a worker.

use std::net::{SocketAddr, UdpSocket};

use rungwise_serve::udp::{Config, Error, Io, PathMtu, Server};

use crate::client::{ask, connect, serve, wait_until};

const IOS: [Io; 3] = [Io::Single, Io::Batch(8), Io::Uring];

fn config(listen: &str, io: Io) -> Config {
    Config {
        io,
        ..Config::new(listen.parse().unwrap())
    }
}

#[test]
fn a_panicking_handler_costs_one_reply_and_is_counted() {
    for io in IOS {
        let server = Server::start(&config("127.0.0.1:0", io), |_| {
            |request: &[u8], _: SocketAddr, reply: &mut [u8]| {
                assert_ne!(request, b"panic", "the test asked for it");
                reply[..request.len()].copy_from_slice(request);
                Some(request.len())
            }
        })
        .unwrap();
        let socket = connect(server.local_addr());
        socket.send(b"panic").unwrap();
        assert_eq!(ask(&socket, b"still here"), b"still here");
        let total = server.stop().total();
        assert_eq!(
            (total.received, total.sent, total.panics),
            (2, 1, 1),
            "{io}"
        );
    }
}

#[test]
fn silence_and_too_long_replies_are_counted() {
    let server = Server::start(&config("127.0.0.1:0", Io::Batch(4)), |_| {
        |request: &[u8], _: SocketAddr, reply: &mut [u8]| match request {
            b"silence" => None,
            b"too long" => Some(reply.len() + 1),
            _ => Some(0),
        }
    })
    .unwrap();
    let socket = connect(server.local_addr());
    socket.send(b"silence").unwrap();
    socket.send(b"too long").unwrap();
    assert_eq!(ask(&socket, b"empty"), b"");
    let total = server.stop().total();
    assert_eq!(
        (total.received, total.sent, total.refused, total.send_errors),
        (3, 1, 1, 1)
    );
}

#[test]
fn peers_that_are_gone_do_not_disturb_others() {
    for io in IOS {
        let server = serve(&config("127.0.0.1:0", io));
        let stayed = connect(server.local_addr());
        for _ in 0..100 {
            // The reply meets a closed port; the ICMP error comes back to our socket.
            let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
            gone.send_to(b"bye", server.local_addr()).unwrap();
            drop(gone);
            assert_eq!(ask(&stayed, b"hello"), b"hello", "{io}");
        }
        let total = server.stop().total();
        assert_eq!((total.received, total.sent), (200, 200), "{io}");
    }
}

#[test]
fn a_reply_above_the_path_mtu_is_an_error_of_that_reply_alone() {
    for io in IOS {
        // 65 527 bytes and 48 of headers exceed the 65 536 of loopback, and may not be fragmented.
        let server = Server::start(
            &Config {
                path_mtu: PathMtu::Do,
                ..config("[::1]:0", io)
            },
            |_| {
                |request: &[u8], _: SocketAddr, reply: &mut [u8]| {
                    Some(if request == b"large" { reply.len() } else { 1 })
                }
            },
        )
        .unwrap();
        let socket = connect(server.local_addr());
        socket.send(b"large").unwrap();
        assert_eq!(ask(&socket, b"small").len(), 1, "{io}");
        let total = server.stop().total();
        assert_eq!(
            (total.received, total.sent, total.send_errors),
            (2, 1, 1),
            "{io}"
        );
    }
}

#[test]
fn datagrams_beyond_the_buffer_are_dropped_by_the_kernel_and_counted() {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(Some(gate));
    let server = Server::start(
        &Config {
            rcvbuf: Some(4096),
            ..config("127.0.0.1:0", Io::Single)
        },
        move |_| {
            let gate = gate.lock().unwrap().take();
            move |_: &[u8], _: SocketAddr, _: &mut [u8]| {
                // Holds until the other end is dropped.
                let _ = gate.as_ref().map(std::sync::mpsc::Receiver::recv);
                Some(0)
            }
        },
    )
    .unwrap();
    let socket = connect(server.local_addr());
    for _ in 0..200 {
        socket.send(&[0; 1000]).unwrap();
    }
    wait_until(|| server.counters().total().dropped_by_kernel > 100);
    drop(open);
    let total = server.stop().total();
    assert_eq!(total.received + total.dropped_by_kernel, 200);
}

#[test]
fn a_port_in_use_is_an_error_that_says_so() {
    let holder = UdpSocket::bind("127.0.0.1:0").unwrap();
    for reuseport in [false, true] {
        let taken = Config {
            reuseport,
            ..Config::new(holder.local_addr().unwrap())
        };
        let error = Server::start(&taken, crate::client::echo).unwrap_err();
        assert!(matches!(error, Error::PortInUse(_)), "{error}");
        assert!(error.to_string().contains("the port is in use"), "{error}");
    }
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    use rungwise_serve::udp::{Pin, Steering, XdpDevice, XdpMode};
    let plain = Config::new("127.0.0.1:0".parse().unwrap());
    let on_lo = || XdpDevice {
        device: "lo".to_owned(),
        mode: XdpMode::Generic,
    };
    for (config, reason) in [
        (
            Config {
                workers: 0,
                ..plain.clone()
            },
            "choose 1 to 1024",
        ),
        (
            Config {
                io: Io::Batch(0),
                ..plain.clone()
            },
            "batch of 0",
        ),
        (
            Config {
                steering: Steering::Cbpf,
                ..plain.clone()
            },
            "enable reuseport",
        ),
        (
            Config {
                incoming_cpu: true,
                ..plain.clone()
            },
            "SO_INCOMING_CPU chooses among the sockets",
        ),
        (
            Config {
                pin: Pin::Cpus(Vec::new()),
                ..plain.clone()
            },
            "is empty",
        ),
        (
            Config {
                reuseport: true,
                steering: Steering::Ebpf { map: vec![1] },
                ..plain.clone()
            },
            "names worker 1",
        ),
        (
            Config {
                xdp_echo: Some(on_lo()),
                ..plain.clone()
            },
            "needs a port",
        ),
        (
            Config {
                af_xdp: Some(on_lo()),
                ..Config::new("0.0.0.0:7777".parse().unwrap())
            },
            "name the address to serve",
        ),
        (
            Config {
                af_xdp: Some(on_lo()),
                xdp_echo: Some(on_lo()),
                ..Config::new("127.0.0.1:7777".parse().unwrap())
            },
            "runs one XDP program",
        ),
        (
            Config {
                af_xdp: Some(on_lo()),
                io: Io::Uring,
                ..Config::new("127.0.0.1:7777".parse().unwrap())
            },
            "choose one",
        ),
    ] {
        let error = Server::start(&config, crate::client::echo).unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}
