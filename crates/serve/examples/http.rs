//! The same reply to every HTTP request, by epoll or by `io_uring`.
//!
//!     cargo run --release -p rungwise-serve --example http -- 127.0.0.1:7777 io_uring
//!
//! One worker. The values that the kernel reports for its switches are printed, then the line `ready http ADDR:PORT`.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "an example talks to its reader"
)]

use rungwise_serve::http::{Answer, Fixed};
use rungwise_serve::tcp::{Config, Io, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let listen = words.next().unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let config = Config {
        io: match words.next().as_deref() {
            Some("io_uring") => Io::Uring,
            _ => Io::Epoll,
        },
        ..Config::new(listen.parse()?)
    };
    let fixed = Fixed::new(Answer {
        body: vec![b'x'; 100],
        ..Answer::default()
    })?;
    let server = Server::start(&config, move |_worker| fixed.clone())?;
    for read_back in server.read_backs() {
        eprintln!("{read_back}");
    }
    println!("ready http {}", server.local_addr());
    loop {
        std::thread::park();
    }
}
