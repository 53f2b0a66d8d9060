//! The smallest service: the reply is the request.
//!
//!     cargo run --release -p rungwise-serve --example echo -- 127.0.0.1:7777
//!
//! One worker per CPU, pinned, each with its own socket, and datagrams received and sent in batches. The values that
//! the kernel reports for these switches are printed.
#![expect(clippy::print_stderr, reason = "an example talks to its reader")]

use std::net::SocketAddr;

use rungwise_serve::udp::{Config, Io, Pin, Server, Steering};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let config = Config {
        workers: std::thread::available_parallelism()?.get(),
        reuseport: true,
        steering: Steering::Cbpf,
        pin: Pin::Allowed,
        io: Io::Batch(32),
        fallback: true,
        ..Config::new(listen.parse()?)
    };
    let server = Server::start(&config, |_worker| {
        |request: &[u8], _peer: SocketAddr, reply: &mut [u8]| {
            reply[..request.len()].copy_from_slice(request);
            Some(request.len())
        }
    })?;
    for read_back in server.read_backs() {
        eprintln!("{read_back}");
    }
    eprintln!("echoing on {}", server.local_addr());
    loop {
        std::thread::park();
    }
}
