//! Short messages over connections that live long: pings, messages to every connection, tables of descriptors for each worker.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rungwise_serve::tcp::{BROADCAST, Config, Error, Io, MESSAGE, Messages, Server};

use crate::client::wait_until;
use crate::tcp::connect;

fn config() -> Config {
    Config {
        workers: 3,
        reuseport: true,
        broadcast: true,
        ..Config::new("127.0.0.1:0".parse().unwrap())
    }
}

fn serve(config: &Config) -> Server {
    Server::start(config, |_| Messages).unwrap_or_else(|error| panic!("{error}"))
}

fn message(first: u8, number: u8) -> [u8; MESSAGE] {
    let mut message = [number; MESSAGE];
    message[0] = first;
    message
}

fn next(stream: &mut TcpStream) -> [u8; MESSAGE] {
    let mut message = [0; MESSAGE];
    stream.read_exact(&mut message).expect("a message");
    message
}

#[test]
fn a_ping_comes_back_and_a_message_to_all_reaches_every_worker() {
    for own_tables in [false, true] {
        let server = serve(&Config {
            own_tables,
            ..config()
        });
        let mut streams: Vec<_> = (0..60).map(|_| connect(&server)).collect();
        for (number, stream) in (0..).zip(&mut streams) {
            stream.write_all(&message(b'p', number)).unwrap();
            assert_eq!(next(stream), message(b'p', number));
        }
        // In two pieces, and two at once.
        let first = message(BROADCAST, 1);
        streams[7].write_all(&first[..5]).unwrap();
        streams[7].write_all(&first[5..]).unwrap();
        assert_eq!(next(&mut streams[0]), first);
        let both = [message(BROADCAST, 2), message(BROADCAST, 3)].concat();
        streams[8].write_all(&both).unwrap();
        for (at, stream) in streams.iter_mut().enumerate() {
            if at > 0 {
                assert_eq!(next(stream), first);
            }
            assert_eq!(next(stream), message(BROADCAST, 2));
            assert_eq!(next(stream), message(BROADCAST, 3));
        }
        drop(streams);
        let address = server.local_addr();
        let counters = server.stop();
        let total = counters.total();
        assert_eq!((total.accepted, total.closed), (60, 60));
        assert_eq!((total.broadcast, total.not_broadcast), (180, 0));
        assert_eq!(total.requests, 63);
        assert_eq!(total.cut + total.resets + total.panics, 0);
        assert!(counters.workers.iter().all(|worker| worker.accepted > 0));
        // Nobody listens any more, in whatever table.
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_client_that_does_not_read_is_left_out_and_others_are_not() {
    let server = serve(&Config {
        sndbuf: Some(4 << 10),
        rcvbuf: Some(4 << 10),
        ..config()
    });
    let (mut asks, deaf) = (connect(&server), connect(&server));
    let mut asked = 0_u64;
    while server.counters().total().not_broadcast == 0 {
        asks.write_all(&message(BROADCAST, 9)).unwrap();
        assert_eq!(next(&mut asks), message(BROADCAST, 9));
        asked += 1;
        assert!(asked < 10_000_000, "what waits is not bounded");
    }
    let counted = || {
        let total = server.counters().total();
        total.broadcast + total.not_broadcast
    };
    wait_until(|| counted() == 2 * asked);
    drop(deaf);
    let total = server.stop().total();
    assert!(
        total.broadcast >= asked && total.not_broadcast >= 1,
        "{total:?}"
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    for (config, word) in [
        (
            Config {
                io: Io::Uring,
                ..config()
            },
            "need epoll",
        ),
        (
            Config {
                reuseport: false,
                own_tables: true,
                ..config()
            },
            "enable reuseport",
        ),
    ] {
        match Server::start(&config, |_| Messages) {
            Err(Error::Config(why)) => assert!(why.contains(word), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
