//! `serve connections`: very many connections that live long, with as little as possible for each.

use std::net::SocketAddr;
use std::time::Duration;

use rungwise_host::machine;
use rungwise_load::values::Size;
use rungwise_model::Exit;
use rungwise_serve::files;
use rungwise_serve::tcp::{Config, Messages, Server};

use super::Run;
use super::tcp::serve;
use crate::printed::Printed;
use crate::{Invocation, values};

/// Files that a worker has open beside its connections: standard streams, listeners, what wakes it. A guess.
const OTHER_FILES: u64 = 64;
/// Workers differ in how many connections the hash of `SO_REUSEPORT` gives them: 14.5 to 15.1 thousand of 502 thousand in 34 processes
/// were measured, which is 2 % above the mean. This much room is left.
const ROOM: f64 = 1.1;
/// Most workers that a server takes.
const MOST_WORKERS: u64 = 1024;

/// Hold very many connections: send each message of 16 bytes back, or to every connection if its first byte is `b`.
#[derive(Debug, clap::Args)]
pub struct Held {
    /// Address and port to listen on; `[::]:PORT` serves IPv4 as well, port 0 lets the kernel choose.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7777", value_parser = values::listen)]
    pub listen: SocketAddr,
    /// Connections that it must be able to hold. Where the limit on open files is lower, it is raised if that is allowed; otherwise more workers divide them, each
    /// with a table of descriptors of its own.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub most: u64,
    /// Worker threads, each with a listening socket of its own (`SO_REUSEPORT`) [default: one for each CPU, or as many as --most needs].
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Connections that may wait to be accepted, at each listening socket [default: 4096, or net.core.somaxconn].
    #[arg(long, value_name = "N")]
    pub backlog: Option<u32>,
    /// Receive buffer of each connection.
    #[arg(long, value_name = "SIZE")]
    pub rcvbuf: Option<Size>,
    /// Send buffer of each connection.
    #[arg(long, value_name = "SIZE")]
    pub sndbuf: Option<Size>,
    /// What it does where a switch is refused, and how long it runs.
    #[command(flatten)]
    pub run: Run,
}

/// Holds connections until `ended` returns; see [`tcp`](super::tcp()).
pub fn connections(
    request: &Held,
    ready: &mut dyn FnMut(SocketAddr) -> anyhow::Result<()>,
    ended: &mut dyn FnMut(Option<Duration>) -> Exit,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Printed> {
    let cpus = machine::allowed_cpus().map_or(1, |cpus| cpus.len());
    let limit = files::raise(request.most + OTHER_FILES);
    let config = request.config(cpus, limit);
    let fits = fits(config.workers as u64, limit);
    if fits < request.most {
        invocation.say(&format!(
            "rungwise: {} workers have room for {fits} connections, not for {}: a process may have {limit} files open; use more --workers, or raise the limit (ulimit -n)",
            config.workers, request.most
        ));
    }
    let start = || Server::start(&config, |_| Messages);
    serve(
        "serve-connections",
        start,
        &request.run,
        ready,
        ended,
        invocation,
    )
}

/// Connections for which so many workers have descriptors.
fn fits(workers: u64, limit: u64) -> u64 {
    ((workers * limit.saturating_sub(OTHER_FILES)) as f64 / ROOM) as u64
}

impl Held {
    fn config(&self, cpus: usize, limit: u64) -> Config {
        let cpus = cpus.max(1) as u64;
        let needed = (cpus..MOST_WORKERS).find(|workers| fits(*workers, limit) >= self.most);
        // One for each CPU suffices mostly.
        let workers = needed.unwrap_or(MOST_WORKERS) as usize;
        Config {
            workers: self.workers.unwrap_or(workers),
            reuseport: true,
            backlog: self.backlog,
            nodelay: true,
            rcvbuf: self.rcvbuf.map(|size| size.0),
            sndbuf: self.sndbuf.map(|size| size.0),
            broadcast: true,
            own_tables: limit < self.most + OTHER_FILES,
            fallback: self.run.fallback,
            ..Config::new(self.listen)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        held: Held,
    }

    fn config(line: &str, cpus: usize, limit: u64) -> Config {
        let words = ["connections"].into_iter().chain(line.split_whitespace());
        let held = Cli::try_parse_from(words).unwrap().held;
        held.config(cpus, limit)
    }

    fn workers(line: &str, cpus: usize, limit: u64) -> usize {
        config(line, cpus, limit).workers
    }

    #[test]
    fn there_are_as_many_workers_as_descriptors_or_cpus_ask_for() {
        assert_eq!(workers("", 2, 1 << 20), 2);
        assert_eq!(workers("", 16, 1 << 20), 16);
        assert_eq!(workers("", 2, 20_000), 6);
        assert_eq!(workers("--most 500000", 2, 20_000), 28);
        assert_eq!(workers("--most 500000 --workers 3", 2, 20_000), 3);
        assert!(config("--most 500000", 2, 20_000).own_tables);
        assert!(!config("--most 500000", 2, 1 << 20).own_tables);
        // What no number of workers could hold is reported, and served as far as it goes.
        assert_eq!(workers("--most 500000", 2, 64), 1024);
    }
}
