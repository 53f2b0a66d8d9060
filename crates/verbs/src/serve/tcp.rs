//! `serve tcp` and `serve http`: the upper limit to compare real servers with, on listeners whose every technique is a switch.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;
use rungwise_host::{clock, files};
use rungwise_load::values::Size;
use rungwise_model::{Exit, units};
use rungwise_serve::http::{Answer, Fixed};
use rungwise_serve::tcp::{
    Config, Counters, Discard, Echo, Error, Io, ReadBack, Server, WorkerCounters,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listen, OnCpu, Run, Sockets, Switch, number, on, on_cpus, problem, switches};
use crate::Invocation;
use crate::documents;
use crate::printed::{Printed, WithText};

/// Largest body from a file, bytes: it is held in memory.
const LARGEST_FILE: u64 = 1 << 30;

/// Bytes of the body where neither its size nor a file is given.
const BODY: usize = 100;

/// Echo what arrives over TCP connections until SIGINT, SIGTERM or the end of --for.
#[derive(Debug, clap::Args)]
pub struct Tcp {
    /// How it listens, and what its connections have.
    #[command(flatten)]
    pub connections: Connections,
    /// What goes back: every byte, or nothing.
    #[arg(long, value_enum, default_value_t = Back::Echo)]
    pub reply: Back,
    /// What it does where a switch is refused, and how long it runs.
    #[command(flatten)]
    pub run: Run,
}

/// Answer every HTTP/1.1 request with the same reply until SIGINT, SIGTERM or the end of --for.
#[derive(Debug, clap::Args)]
pub struct Http {
    /// How it listens, and what its connections have.
    #[command(flatten)]
    pub connections: Connections,
    /// Status of the reply, 200 to 599.
    #[arg(long, value_name = "STATUS", default_value_t = 200)]
    pub status: u16,
    /// Size of its body [default: 100B, 0B with status 204 or 304].
    #[arg(long, value_name = "SIZE", conflicts_with = "body")]
    pub body_size: Option<Size>,
    /// Its body is this file, read once.
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,
    /// Reply this long after the last byte of the request; requests of one connection wait one after the other.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub delay: Option<Duration>,
    /// What it does where a switch is refused, and how long it runs.
    #[command(flatten)]
    pub run: Run,
}

/// How a server of connections listens, and what they have.
#[derive(Debug, clap::Args)]
pub struct Connections {
    /// Where it listens.
    #[command(flatten)]
    pub listen: Listen,
    /// Connections that may wait to be accepted, at each listening socket [default: 4096, or net.core.somaxconn].
    #[arg(long, value_name = "N")]
    pub backlog: Option<u32>,
    /// Send small replies while earlier ones are not acknowledged (`TCP_NODELAY`).
    #[arg(long)]
    pub nodelay: bool,
    /// Accept a connection when its first bytes arrive, or after this time, rounded up to seconds (`TCP_DEFER_ACCEPT`).
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub defer_accept: Option<Duration>,
    /// How workers wait for connections, receive and send.
    #[arg(long, alias = "engine", value_enum, default_value_t = ConnectionIo::Epoll)]
    pub io: ConnectionIo,
    /// Options of its sockets.
    #[command(flatten)]
    pub sockets: Sockets,
}

/// How workers wait for connections, receive and send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum ConnectionIo {
    Epoll,
    #[value(alias = "io_uring")]
    Uring,
}

/// What goes back over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum Back {
    Echo,
    Discard,
}

/// Serves connections until `ended` returns. `ready` is called once every socket listens and every switch is set; `ended` waits for
/// the end, for no longer than the time that it is given, and returns the exit status.
pub fn tcp(
    request: &Tcp,
    ready: &mut dyn FnMut(SocketAddr) -> anyhow::Result<()>,
    ended: &mut dyn FnMut(Option<Duration>) -> Exit,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Printed> {
    let config = request.connections.config(&request.run);
    let start = || match request.reply {
        Back::Echo => Server::start(&config, |_| Echo),
        Back::Discard => Server::start(&config, |_| Discard),
    };
    serve("serve-tcp", start, &request.run, ready, ended, invocation)
}

/// Answers HTTP requests until `ended` returns; see [`tcp`].
pub fn http(
    request: &Http,
    ready: &mut dyn FnMut(SocketAddr) -> anyhow::Result<()>,
    ended: &mut dyn FnMut(Option<Duration>) -> Exit,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Printed> {
    let config = request.connections.config(&request.run);
    let fixed = Fixed::new(request.answer()?).map_err(problem)?;
    let start = || Server::start(&config, move |_| fixed.clone());
    serve("serve-http", start, &request.run, ready, ended, invocation)
}

pub(super) fn serve(
    kind: &'static str,
    start: impl FnOnce() -> Result<Server, Error>,
    run: &Run,
    ready: &mut dyn FnMut(SocketAddr) -> anyhow::Result<()>,
    ended: &mut dyn FnMut(Option<Duration>) -> Exit,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Printed> {
    let started = clock::utc_now();
    let server = start().map_err(problem)?;
    for read_back in server.read_backs() {
        invocation.say(&read_back.to_string());
    }
    let address = server.local_addr();
    ready(address)?;

    let exit = ended(run.duration);
    let read_backs = server.read_backs().to_vec();
    let open = server.counters().total();
    let counters = server.stop();
    let envelope = invocation.envelope(kind, started, exit);
    let mut body = body(address, &read_backs, &counters);
    body.open = open.accepted - open.closed;
    Printed::new(kind, envelope, text(&counters, body.open), body)
}

impl Connections {
    fn config(&self, run: &Run) -> Config {
        Config {
            workers: self.listen.workers,
            reuseport: self.listen.reuseport,
            steering: self.listen.steering(),
            pin: self.listen.pin(),
            backlog: self.backlog,
            nodelay: self.nodelay,
            defer_accept: self.defer_accept,
            io: match self.io {
                ConnectionIo::Epoll => Io::Epoll,
                ConnectionIo::Uring => Io::Uring,
            },
            busy_poll: self.sockets.busy_poll(),
            rcvbuf: self.sockets.rcvbuf.map(|size| size.0),
            sndbuf: self.sockets.sndbuf.map(|size| size.0),
            incoming_cpu: self.sockets.incoming_cpu,
            fallback: run.fallback,
            ..Config::new(self.listen.listen)
        }
    }
}

impl Http {
    fn answer(&self) -> anyhow::Result<Answer> {
        let size = match (self.body_size, self.status) {
            (Some(size), _) => size.0,
            (None, 204 | 304) => 0,
            (None, _) => BODY,
        };
        let (body, content_type) = match &self.body {
            Some(path) => (file(path)?, "application/octet-stream"),
            None if size as u64 > LARGEST_FILE => bail!(
                "cannot reply with a body of {size} bytes: it is held in memory; choose {LARGEST_FILE}B at most"
            ),
            None => (vec![b'x'; size], "text/plain"),
        };
        Ok(Answer {
            status: self.status,
            body,
            content_type,
            delay: self.delay.unwrap_or_default(),
        })
    }
}

fn file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = files::read_at_most(path, LARGEST_FILE + 1)?;
    if bytes.len() as u64 > LARGEST_FILE {
        bail!(
            "cannot reply with {}: it is larger than {LARGEST_FILE} bytes and is held in memory; choose a smaller file",
            path.display()
        );
    }
    Ok(bytes)
}

/// The schema of the documents of servers of connections.
pub(super) fn schema() -> serde_json::Value {
    documents::schema::<WithText<ServedConnections<'_>>>()
}

/// The document of `rungwise serve tcp`, `rungwise serve http` and `rungwise serve connections`.
#[derive(Serialize, JsonSchema)]
struct ServedConnections<'a> {
    /// Where it listened.
    address: SocketAddr,
    /// Requested settings and what the kernel granted.
    switches: Vec<Switch<'a>>,
    /// Each worker with what it accepted and answered: the accept spread.
    workers: Vec<ConnectionWorker>,
    /// Sum of all workers.
    total: ConnectionWorker,
    /// Connections that were open when the end came.
    open: u64,
}

#[derive(Serialize, JsonSchema)]
struct ConnectionWorker {
    /// Connections accepted.
    accepted: u64,
    /// Requests answered. Of `serve tcp`: receive calls that brought bytes.
    requests: u64,
    received_bytes: u64,
    sent_bytes: u64,
    failed: Failed,
    /// Messages to every connection (`serve connections`): sends to one connection, and those left out because its client had not read what was sent before.
    broadcast: Broadcast,
    /// Times that accepting paused because no file descriptor was left.
    out_of_descriptors: u64,
    /// SYNs and handshakes dropped at its listening socket, mostly because the backlog was full.
    dropped_by_kernel: u64,
    /// Requests answered per return of epoll or `io_uring`; absent without requests.
    per_round: Option<f64>,
    /// CPU microseconds of the worker's thread, and per request.
    cpu_us: f64,
    cpu_us_per_tx: Option<f64>,
    /// Requests by the CPU that the worker ran on.
    cpus: Vec<OnCpu>,
    /// Connections by the CPU that received their packets before they were accepted: what steering by CPU decides.
    incoming_cpus: Vec<OnCpu>,
}

/// Messages to every connection.
#[derive(Serialize, JsonSchema)]
struct Broadcast {
    sent: u64,
    left_out: u64,
}

/// Connections and requests that did not end well, by what ended them.
#[derive(Serialize, JsonSchema)]
struct Failed {
    /// Connections reset by the client, timed out or unreachable.
    reset: u64,
    /// Connections that the client ended within a request.
    cut: u64,
    /// Requests refused with 400.
    bad_requests: u64,
    /// Connections closed because the service panicked.
    panics: u64,
    /// Connections that failed before they were accepted.
    accept_errors: u64,
}

impl From<&WorkerCounters> for ConnectionWorker {
    fn from(of: &WorkerCounters) -> Self {
        let cpu_us = of.cpu_ns as f64 / 1e3;
        Self {
            accepted: of.accepted,
            requests: of.requests,
            received_bytes: of.received_bytes,
            sent_bytes: of.sent_bytes,
            failed: Failed {
                reset: of.resets,
                cut: of.cut,
                bad_requests: of.refused,
                panics: of.panics,
                accept_errors: of.accept_errors,
            },
            broadcast: Broadcast {
                sent: of.broadcast,
                left_out: of.not_broadcast,
            },
            out_of_descriptors: of.out_of_descriptors,
            dropped_by_kernel: of.dropped_by_kernel,
            per_round: (of.rounds > 0).then(|| of.requests as f64 / of.rounds as f64),
            cpu_us,
            cpu_us_per_tx: (of.requests > 0).then(|| cpu_us / of.requests as f64),
            cpus: on_cpus(&of.cpus),
            incoming_cpus: on_cpus(&of.incoming_cpus),
        }
    }
}

fn body<'a>(
    address: SocketAddr,
    read_backs: &'a [ReadBack],
    counters: &Counters,
) -> ServedConnections<'a> {
    ServedConnections {
        address,
        switches: switches(read_backs),
        workers: counters
            .workers
            .iter()
            .map(ConnectionWorker::from)
            .collect(),
        total: ConnectionWorker::from(&counters.total()),
        open: 0,
    }
}

fn text(counters: &Counters, open: u64) -> String {
    let line = |name: &str, of: &WorkerCounters| {
        let row = ConnectionWorker::from(of);
        format!(
            "{name:<8}{:>10}{:>14}{:>16}{:>16}{:>8}{:>8}{:>12}{:>10}  {}\n",
            of.accepted,
            of.requests,
            of.received_bytes,
            of.sent_bytes,
            of.resets,
            of.cut + of.refused + of.panics + of.accept_errors,
            number(row.per_round),
            number(row.cpu_us_per_tx),
            on(&of.incoming_cpus),
        )
    };
    let mut text = format!(
        "{:<8}{:>10}{:>14}{:>16}{:>16}{:>8}{:>8}{:>12}{:>10}  {}\n",
        "worker",
        "accepted",
        "requests",
        "received B",
        "sent B",
        "reset",
        "failed",
        "per round",
        "us/tx",
        "connections from cpu",
    );
    for (worker, counters) in counters.workers.iter().enumerate() {
        text.push_str(&line(&worker.to_string(), counters));
    }
    let total = counters.total();
    text.push_str(&line("total", &total));
    if open > 0 {
        let _ = writeln!(text, "connections open at the end: {open}");
    }
    if total.broadcast + total.not_broadcast > 0 {
        let _ = writeln!(
            text,
            "messages to every connection: {} sent, {} left out because a client had not read what was sent before",
            total.broadcast, total.not_broadcast
        );
    }
    if total.out_of_descriptors > 0 {
        let _ = writeln!(
            text,
            "accepting paused {} times: no file descriptor was left; raise the limit (`ulimit -n`)",
            total.out_of_descriptors
        );
    }
    if total.dropped_by_kernel > 0 {
        let _ = writeln!(
            text,
            "the kernel dropped {} SYNs or handshakes, mostly because the backlog was full; raise --backlog and net.core.somaxconn",
            total.dropped_by_kernel
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rungwise_serve::tcp::{BusyPoll, Pin, Steering};

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        http: Http,
    }

    fn parsed(line: &str) -> Result<Http, clap::Error> {
        let words = ["http"].into_iter().chain(line.split_whitespace());
        Ok(Cli::try_parse_from(words)?.http)
    }

    #[test]
    fn every_switch_reaches_the_configuration() {
        let request = parsed(
            "--listen [::]:80 --workers 2 --reuseport --steer ebpf --pin=1,3-4 --backlog 16 --nodelay --defer-accept 3s \
             --busy-poll 50us --busy-poll-prefer --busy-poll-budget 8 --rcvbuf 4MiB --sndbuf 64KiB --incoming-cpu --fallback",
        )
        .unwrap();
        let expected = Config {
            workers: 2,
            reuseport: true,
            steering: Steering::Ebpf { map: Vec::new() },
            pin: Pin::Cpus(vec![1, 3, 4]),
            backlog: Some(16),
            nodelay: true,
            defer_accept: Some(Duration::from_secs(3)),
            busy_poll: Some(BusyPoll {
                time: Duration::from_micros(50),
                prefer: true,
                budget: 8,
            }),
            rcvbuf: Some(4 << 20),
            sndbuf: Some(64 << 10),
            incoming_cpu: true,
            fallback: true,
            ..Config::new("[::]:80".parse().unwrap())
        };
        assert_eq!(request.connections.config(&request.run), expected);
    }

    #[test]
    fn the_reply_has_the_size_that_its_status_allows() {
        let size = |line: &str| parsed(line).unwrap().answer().unwrap().body.len();
        assert_eq!(size(""), 100);
        assert_eq!(size("--status 503"), 100);
        assert_eq!(size("--status 204"), 0);
        assert_eq!(size("--body-size 2KiB"), 2048);
        let error = parsed("--body-size 2GiB").unwrap().answer().unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
        assert!(parsed("--body-size 1B --body f").is_err());
    }

    #[test]
    fn what_ran_out_is_said_below_the_table() {
        let worker = WorkerCounters {
            accepted: 3,
            requests: 6,
            rounds: 3,
            cpu_ns: 60_000,
            out_of_descriptors: 2,
            dropped_by_kernel: 5,
            incoming_cpus: vec![(1, 3)],
            ..WorkerCounters::default()
        };
        let counters = Counters {
            workers: vec![worker],
        };
        let text = text(&counters, 1);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 6);
        let words: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(
            words,
            ["0", "3", "6", "0", "0", "0", "0", "2.00", "10.00", "1:3"]
        );
        assert_eq!(lines[3], "connections open at the end: 1");
        assert!(lines[4].contains("paused 2 times") && lines[4].contains("ulimit -n"));
        assert!(lines[5].contains("dropped 5") && lines[5].contains("--backlog"));
    }
}
