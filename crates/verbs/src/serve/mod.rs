//! The answering side: servers to measure against, with each technique as a switch of its own.

mod connections;
mod tcp;
mod udp;

use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use rungwise_load::values::{Pins, Size};
use rungwise_model::{Exit, units};
use rungwise_serve::udp::{BusyPoll, Error, Pin, ReadBack, Steering};
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::Problem;
use crate::values;

pub use connections::{Held, connections};
pub use tcp::{Back, ConnectionIo, Connections, Http, Tcp, http, tcp};
pub use udp::{Discover, How, Udp, udp};

/// Where a server listens, and its workers.
#[derive(Debug, clap::Args)]
pub struct Listen {
    /// Address and port to listen on; `[::]:PORT` serves IPv4 as well, port 0 lets the kernel choose.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7777", value_parser = values::listen)]
    pub listen: SocketAddr,
    /// Worker threads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// One socket per worker in a `SO_REUSEPORT` group, instead of one shared socket.
    #[arg(long)]
    pub reuseport: bool,
    /// How the socket of the group is chosen: by flow hash, or by the CPU that received the datagram or the SYN.
    #[arg(long, value_enum, default_value_t = Steer::Hash)]
    pub steer: Steer,
    /// Pin workers to CPUs: LIST as in `0,2-5`; without LIST, worker i to the i-th allowed CPU.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true")]
    pub pin: Pins,
}

/// Options of a server's sockets.
#[derive(Debug, clap::Args)]
pub struct Sockets {
    /// Poll the device's queue this long before sleeping.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub busy_poll: Option<Duration>,
    /// Keep the device's interrupts off while polling.
    #[arg(long, requires = "busy_poll")]
    pub busy_poll_prefer: bool,
    /// Packets per poll.
    #[arg(
        long,
        value_name = "N",
        requires = "busy_poll",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub busy_poll_budget: u16,
    /// Receive buffer of each socket.
    #[arg(long, value_name = "SIZE")]
    pub rcvbuf: Option<Size>,
    /// Send buffer of each socket.
    #[arg(long, value_name = "SIZE")]
    pub sndbuf: Option<Size>,
    /// Prefer the socket of the CPU that received the datagram or the SYN (`SO_INCOMING_CPU`).
    #[arg(long)]
    pub incoming_cpu: bool,
}

/// What a server does where a switch is refused, and how long it runs.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// Warn and continue without a switch that this kernel refuses.
    #[arg(long)]
    pub fallback: bool,
    /// Stop after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<Duration>,
}

/// How the socket of a group is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum Steer {
    Hash,
    Cbpf,
    Ebpf,
}

impl Listen {
    fn steering(&self) -> Steering {
        match self.steer {
            Steer::Hash => Steering::FlowHash,
            Steer::Cbpf => Steering::Cbpf,
            Steer::Ebpf => Steering::Ebpf { map: Vec::new() },
        }
    }

    fn pin(&self) -> Pin {
        match &self.pin {
            Pins::Off => Pin::Free,
            Pins::Allowed => Pin::Allowed,
            Pins::List(cpus) => Pin::Cpus(cpus.clone()),
        }
    }
}

impl Sockets {
    fn busy_poll(&self) -> Option<BusyPoll> {
        self.busy_poll.map(|time| BusyPoll {
            time,
            prefer: self.busy_poll_prefer,
            budget: self.busy_poll_budget,
        })
    }
}

/// The schemas of the documents of `rungwise serve`.
pub(crate) fn schemas() -> [(&'static str, serde_json::Value); 4] {
    [
        ("serve-udp", udp::schema()),
        ("serve-tcp", tcp::schema()),
        ("serve-http", tcp::schema()),
        ("serve-connections", tcp::schema()),
    ]
}

fn problem(error: Error) -> anyhow::Error {
    let exit = match &error {
        Error::Config(_) => Exit::Usage,
        _ => Exit::Precondition,
    };
    Problem::with(exit, error)
}

#[derive(Serialize, JsonSchema)]
struct Switch<'a> {
    name: &'a str,
    wanted: &'a str,
    actual: &'a str,
    holds: bool,
}

fn switches(read_backs: &[ReadBack]) -> Vec<Switch<'_>> {
    read_backs
        .iter()
        .map(|read_back| Switch {
            name: read_back.switch,
            wanted: &read_back.wanted,
            actual: &read_back.actual,
            holds: read_back.holds,
        })
        .collect()
}

#[derive(Serialize, JsonSchema)]
struct OnCpu {
    cpu: usize,
    received: u64,
}

fn on_cpus(cpus: &[(usize, u64)]) -> Vec<OnCpu> {
    cpus.iter()
        .map(|&(cpu, received)| OnCpu { cpu, received })
        .collect()
}

/// `cpu:count` of each CPU.
fn on(cpus: &[(usize, u64)]) -> String {
    let cpus: Vec<_> = cpus
        .iter()
        .map(|(cpu, count)| format!("{cpu}:{count}"))
        .collect();
    cpus.join(" ")
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}
