//! `serve udp` echoes every datagram: the reference server of the ladder.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;
use rungwise_host::clock;
use rungwise_model::Exit;
use rungwise_serve::udp::{
    Config, Counters, Io, PathMtu, ReadBack, Server, WorkerCounters, XdpDevice,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listen, OnCpu, Run, Sockets, Switch, number, on, on_cpus, problem, switches};
use crate::Invocation;
use crate::documents;
use crate::printed::{Printed, WithText};

/// Datagrams per system call by default.
const BATCH: usize = 32;

/// Echo UDP datagrams until SIGINT, SIGTERM or the end of --for.
#[derive(Debug, clap::Args)]
pub struct Udp {
    /// Where it listens.
    #[command(flatten)]
    pub listen: Listen,
    /// `do` never fragments and skips the IP identification.
    #[arg(long, value_enum, default_value_t = Discover::Want)]
    pub pmtudisc: Discover,
    /// How datagrams pass between kernel and worker.
    #[arg(long, value_enum, default_value_t = How::Single)]
    pub io: How,
    /// Datagrams per system call with `--io batch` [default: 32].
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Receive a burst of one flow as one buffer (`UDP_GRO`); helps only bursts of one flow.
    #[arg(long)]
    pub gro: bool,
    /// Send consecutive replies to one peer as one buffer (`UDP_SEGMENT`); helps only bursts of one flow.
    #[arg(long)]
    pub gso: bool,
    /// Options of its sockets.
    #[command(flatten)]
    pub sockets: Sockets,
    /// Answer inside the kernel on DEVICE, before any socket; `:native` runs in the driver.
    #[arg(long, value_name = "DEVICE[:native]")]
    pub xdp_echo: Option<XdpDevice>,
    /// Receive datagrams from DEVICE's queues with `AF_XDP`, worker i from queue i, bypassing the network stack;
    /// `:native` runs in the driver.
    #[arg(long, value_name = "DEVICE[:native]", conflicts_with = "xdp_echo")]
    pub af_xdp: Option<XdpDevice>,
    /// What it does where a switch is refused, and how long it runs.
    #[command(flatten)]
    pub run: Run,
}

/// Path-MTU discovery of the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum Discover {
    Do,
    Want,
}

/// How datagrams pass between kernel and worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum How {
    Single,
    Batch,
    Uring,
}

/// Echoes until `ended` returns. `ready` is called once every socket is bound and every switch is set; `ended` waits for the end, for no
/// longer than the time that it is given, and returns the exit status.
pub fn udp(
    request: &Udp,
    ready: &mut dyn FnMut(SocketAddr) -> anyhow::Result<()>,
    ended: &mut dyn FnMut(Option<Duration>) -> Exit,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Printed> {
    request.check()?;
    let started = clock::utc_now();
    let own_port = Arc::new(AtomicU16::new(0));
    let port = Arc::clone(&own_port);
    let server =
        Server::start(&request.config(), move |_| echo(Arc::clone(&port))).map_err(problem)?;
    own_port.store(server.local_addr().port(), Ordering::Relaxed);
    for read_back in server.read_backs() {
        invocation.say(&read_back.to_string());
    }
    let address = server.local_addr();
    ready(address)?;

    let exit = ended(request.run.duration);
    let read_backs = server.read_backs().to_vec();
    let counters = server.stop();
    let envelope = invocation.envelope("serve-udp", started, exit);
    let body = body(address, &read_backs, &counters);
    Printed::new("serve-udp", envelope, text(&counters), body)
}

/// The handler: the reply is the request. A peer on our own port is left alone, or two echoes that a forged
/// datagram makes meet would talk for ever.
fn echo(own_port: Arc<AtomicU16>) -> impl FnMut(&[u8], SocketAddr, &mut [u8]) -> Option<usize> {
    move |request, peer, reply| {
        if peer.port() == own_port.load(Ordering::Relaxed) {
            return None;
        }
        reply.get_mut(..request.len())?.copy_from_slice(request);
        Some(request.len())
    }
}

impl Udp {
    /// Refuses a switch that would have no effect.
    fn check(&self) -> anyhow::Result<()> {
        match self.batch {
            Some(batch) if self.io != How::Batch => bail!(
                "cannot use --batch {batch}: only --io batch passes several datagrams per system call; add --io batch, or \
                 remove --batch"
            ),
            _ => Ok(()),
        }
    }

    fn config(&self) -> Config {
        Config {
            workers: self.listen.workers,
            reuseport: self.listen.reuseport,
            steering: self.listen.steering(),
            pin: self.listen.pin(),
            path_mtu: match self.pmtudisc {
                Discover::Do => PathMtu::Do,
                Discover::Want => PathMtu::Want,
            },
            io: match self.io {
                How::Single => Io::Single,
                How::Batch => Io::Batch(self.batch.unwrap_or(BATCH)),
                How::Uring => Io::Uring,
            },
            gro: self.gro,
            gso: self.gso,
            busy_poll: self.sockets.busy_poll(),
            rcvbuf: self.sockets.rcvbuf.map(|size| size.0),
            sndbuf: self.sockets.sndbuf.map(|size| size.0),
            incoming_cpu: self.sockets.incoming_cpu,
            xdp_echo: self.xdp_echo.clone(),
            af_xdp: self.af_xdp.clone(),
            fallback: self.run.fallback,
            ..Config::new(self.listen.listen)
        }
    }
}

/// The schema of the document of `rungwise serve udp`.
pub(super) fn schema() -> serde_json::Value {
    documents::schema::<WithText<Served<'_>>>()
}

/// The document of `rungwise serve udp`.
#[derive(Serialize, JsonSchema)]
struct Served<'a> {
    /// Where it listened.
    address: SocketAddr,
    /// Requested settings and what the kernel granted.
    switches: Vec<Switch<'a>>,
    workers: Vec<Worker>,
    /// Sum of all workers.
    total: Worker,
    /// What the XDP program echoed; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    xdp: Option<Xdp>,
}

#[derive(Serialize, JsonSchema)]
struct Worker {
    received: u64,
    sent: u64,
    received_bytes: u64,
    sent_bytes: u64,
    dropped: Dropped,
    receive_errors: u64,
    /// Requests answered per round of system calls; absent without requests.
    per_round: Option<f64>,
    /// CPU microseconds of the worker's thread, and per request.
    cpu_us: f64,
    cpu_us_per_tx: Option<f64>,
    cpus: Vec<OnCpu>,
}

/// Requests that got no reply, by who dropped them.
#[derive(Serialize, JsonSchema)]
struct Dropped {
    kernel: u64,
    refused: u64,
    panics: u64,
    send_errors: u64,
}

#[derive(Serialize, JsonSchema)]
struct Xdp {
    echoed: u64,
    bytes: u64,
    cpus: Vec<OnCpu>,
}

impl From<&WorkerCounters> for Worker {
    fn from(of: &WorkerCounters) -> Self {
        let cpu_us = of.cpu_ns as f64 / 1e3;
        Self {
            received: of.received,
            sent: of.sent,
            received_bytes: of.received_bytes,
            sent_bytes: of.sent_bytes,
            dropped: Dropped {
                kernel: of.dropped_by_kernel,
                refused: of.refused,
                panics: of.panics,
                send_errors: of.send_errors,
            },
            receive_errors: of.receive_errors,
            per_round: (of.rounds > 0).then(|| of.received as f64 / of.rounds as f64),
            cpu_us,
            cpu_us_per_tx: (of.received > 0).then(|| cpu_us / of.received as f64),
            cpus: on_cpus(&of.cpus),
        }
    }
}

fn body<'a>(address: SocketAddr, read_backs: &'a [ReadBack], counters: &Counters) -> Served<'a> {
    Served {
        address,
        switches: switches(read_backs),
        workers: counters.workers.iter().map(Worker::from).collect(),
        total: Worker::from(&counters.total()),
        xdp: counters.xdp.as_ref().map(|xdp| Xdp {
            echoed: xdp.echoed,
            bytes: xdp.bytes,
            cpus: on_cpus(&xdp.cpus),
        }),
    }
}

fn text(counters: &Counters) -> String {
    let line = |name: &str, of: &WorkerCounters| {
        let row = Worker::from(of);
        format!(
            "{name:<8}{:>14}{:>14}{:>10}{:>10}{:>12}{:>10}  {}\n",
            of.received,
            of.sent,
            of.dropped_by_kernel,
            of.refused + of.panics + of.send_errors,
            number(row.per_round),
            number(row.cpu_us_per_tx),
            on(&of.cpus),
        )
    };
    let mut text = format!(
        "{:<8}{:>14}{:>14}{:>10}{:>10}{:>12}{:>10}  received on cpu\n",
        "worker", "received", "sent", "dropped", "unsent", "per round", "us/tx"
    );
    for (worker, counters) in counters.workers.iter().enumerate() {
        text.push_str(&line(&worker.to_string(), counters));
    }
    text.push_str(&line("total", &counters.total()));
    if let Some(xdp) = &counters.xdp {
        let (echoed, bytes, cpus) = (xdp.echoed, xdp.bytes, on(&xdp.cpus));
        let line = format!("echoed in the kernel: {echoed} datagrams, {bytes} bytes  {cpus}\n");
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use rungwise_serve::udp::{BusyPoll, Pin, Steering};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        udp: Udp,
    }

    fn config(line: &str) -> Result<Config, clap::Error> {
        let cli = Cli::try_parse_from(["udp"].into_iter().chain(line.split_whitespace()))?;
        Ok(cli.udp.config())
    }

    #[test]
    fn every_switch_reaches_the_configuration() {
        let config = config(
            "--listen [::]:53 --workers 2 --reuseport --steer ebpf --pin=1,3-4 --pmtudisc do --io batch --batch 16 \
             --gro --gso --busy-poll 50us --busy-poll-prefer --rcvbuf 4MiB --sndbuf 64KiB --incoming-cpu \
             --xdp-echo veth0:native --fallback",
        )
        .unwrap();
        let expected = Config {
            workers: 2,
            reuseport: true,
            steering: Steering::Ebpf { map: Vec::new() },
            pin: Pin::Cpus(vec![1, 3, 4]),
            path_mtu: PathMtu::Do,
            io: Io::Batch(16),
            gro: true,
            gso: true,
            busy_poll: Some(BusyPoll {
                time: Duration::from_micros(50),
                prefer: true,
                budget: 0,
            }),
            rcvbuf: Some(4 << 20),
            sndbuf: Some(64 << 10),
            incoming_cpu: true,
            xdp_echo: Some(XdpDevice {
                device: "veth0".to_owned(),
                mode: rungwise_serve::udp::XdpMode::Native,
            }),
            fallback: true,
            ..Config::new("[::]:53".parse().unwrap())
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn pin_without_a_list_means_the_allowed_cpus() {
        assert_eq!(config("--pin --workers 2").unwrap().pin, Pin::Allowed);
        assert_eq!(config("").unwrap().pin, Pin::Free);
    }

    #[test]
    fn a_wrong_word_names_the_right_one() {
        for (line, expected) in [
            ("--pin=3-1", "1-3"),
            ("--pin=x", "0,2-5"),
            ("--rcvbuf 4096", "unit is missing"),
            ("--xdp-echo eth0:fast", "DEVICE:native"),
            ("--xdp-echo :native", "name of the device"),
            ("--busy-poll-prefer", "--busy-poll"),
        ] {
            let error = config(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_echo_answers_anybody_but_its_own_port() {
        let mut echo = echo(Arc::new(AtomicU16::new(7)));
        let mut reply = [0; 8];
        assert_eq!(
            echo(b"abc", "10.0.0.1:40000".parse().unwrap(), &mut reply),
            Some(3)
        );
        assert_eq!(&reply[..3], b"abc");
        assert_eq!(
            echo(b"abc", "10.0.0.1:7".parse().unwrap(), &mut reply),
            None
        );
    }
}
