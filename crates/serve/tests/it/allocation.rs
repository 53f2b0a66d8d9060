//! A worker allocates nothing per datagram: counted by the allocator of this whole test binary, on the threads
//! whose handlers asked to be counted.
#![allow(unsafe_code, reason = "a global allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use rungwise_serve::http::{Answer, Fixed};
use rungwise_serve::tcp;
use rungwise_serve::udp::{Config, Io, Pin, Server, Steering, XdpDevice, XdpMode};

use crate::client::{ask, connect, wait_until};
use crate::namespace::Namespace;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no cell any more.
        if COUNTED.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn workers_allocate_nothing_after_their_first_request() {
    for io in [Io::Single, Io::Batch(32), Io::Uring] {
        for listen in ["127.0.0.1:0", "[::]:0"] {
            let server = Server::start(
                &Config {
                    workers: 2,
                    reuseport: true,
                    steering: Steering::Cbpf,
                    pin: Pin::Allowed,
                    io,
                    gro: true,
                    gso: true,
                    ..Config::new(listen.parse().unwrap())
                },
                counted,
            )
            .unwrap();
            exchange(&server, &format!("{io} on {listen}"));
        }
    }
    on_a_queue();
    on_connections(tcp::Io::Epoll);
    on_connections(tcp::Io::Uring);
}

/// The same for a worker on a queue of `AF_XDP`; not a test of its own, since they share the counter.
fn on_a_queue() {
    let Some((here, there)) = Namespace::pair() else {
        return;
    };
    let config = Config {
        af_xdp: Some(XdpDevice {
            device: "veth0".to_owned(),
            mode: XdpMode::Native,
        }),
        ..Config::new("10.9.0.1:7777".parse().unwrap())
    };
    let server = here.run(move || Server::start(&config, counted).unwrap());
    there.run(move || exchange(&server, "AF_XDP"));
}

/// The same for requests over connections.
fn on_connections(io: tcp::Io) {
    /// Bytes of a reply: a head of 67, and its body.
    const REPLY: usize = 1067;
    let fixed = Fixed::new(Answer {
        body: vec![b'x'; 1000],
        ..Answer::default()
    });
    let fixed = CountedHttp(fixed.unwrap());
    let listen = "127.0.0.1:0".parse().unwrap();
    let config = tcp::Config {
        io,
        ..tcp::Config::new(listen)
    };
    let server = tcp::Server::start(&config, move |_| fixed.clone()).unwrap();
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    let limit = Some(std::time::Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    let request = b"GET /page HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\n\r\n";
    let mut before = 0;
    for n in 0..1000 {
        if n == 10 {
            before = ALLOCATIONS.load(Ordering::Relaxed);
        }
        // One request, or several together.
        for _ in 0..=n % 3 {
            stream.write_all(request).unwrap();
        }
        let mut replies = [0; 3 * REPLY];
        let length = (n % 3 + 1) * REPLY;
        stream.read_exact(&mut replies[..length]).unwrap();
        assert!(replies[..length].starts_with(b"HTTP/1.1 200 OK") && replies[length - 1] == b'x');
    }
    assert_eq!(
        ALLOCATIONS.load(Ordering::Relaxed) - before,
        0,
        "HTTP, {io}"
    );
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").unwrap();
    wait_until(|| ALLOCATIONS.load(Ordering::Relaxed) > before);
}

/// A fixed reply whose thread is counted from its first request on.
#[derive(Clone)]
struct CountedHttp(Fixed);

impl tcp::Handler for CountedHttp {
    type Session = <Fixed as tcp::Handler>::Session;

    fn handle(
        &mut self,
        session: &mut Self::Session,
        input: &[u8],
        reply: &mut tcp::Reply,
    ) -> tcp::Step {
        COUNTED.set(true);
        self.0.handle(session, input, reply)
    }
}

/// An echo whose thread is counted from its first request on, and that can allocate.
fn counted(_worker: usize) -> impl FnMut(&[u8], SocketAddr, &mut [u8]) -> Option<usize> {
    |request, _, reply| {
        COUNTED.set(true);
        if request == b"allocate" {
            drop(std::hint::black_box(vec![0_u8; 100]));
        }
        reply[..request.len()].copy_from_slice(request);
        Some(request.len())
    }
}

/// 2000 transactions of all sizes with `server`, none of which allocates.
fn exchange(server: &Server, what: &str) {
    let sockets: Vec<_> = (0..4).map(|_| connect(server.local_addr())).collect();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for n in 0..2000_usize {
        let request = [n as u8; 1200];
        let request = &request[..n % 1200];
        let socket = &sockets[n % 4];
        socket.send(request).unwrap();
        let mut reply = [0; 1500];
        assert_eq!(socket.recv(&mut reply).expect("a reply"), request.len());
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "{what}");
    // The proof that the counter counts.
    ask(&sockets[0], b"allocate");
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > before);
}
