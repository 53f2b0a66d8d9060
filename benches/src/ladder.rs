//! The cost of a transaction on both sides at the bottom and at the top of the ladder, without the tuner, and with a bare loop on one
//! side: the floor of this machine, against which our code is judged.
//!
//! Two workers and two client threads on two CPUs over veth, 100 bytes. Configurations take turns within a
//! round. The CPU time of the client comes from wait4(2), that of the server from `schedstat`.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;

use crate::bare;
use crate::lab::Lab;
use crate::numbers::{median, ratios, spread};
use crate::rungwise::Rungwise;

const PORT: u16 = 5303;
const CPUS: &str = "0,1";

/// A row of the table.
struct Rung {
    name: &'static str,
    /// Switches of `serve udp`; nothing for the bare server.
    serve: Option<&'static str>,
    /// Switches of `load udp`; nothing for the bare client.
    load: Option<&'static str>,
    /// A transmit queue per CPU on both sides, which leads a datagram to the receive queue of its CPU.
    xps: bool,
    /// The row that its rate is compared with: the first with the same client.
    foot: usize,
}

const FOOT: usize = 0;
const BATCHES: usize = 1;
const AF_XDP: usize = 2;
const BURSTS: usize = 3;
const BARE_CLIENT: usize = 4;
const BARE_SERVER: usize = 5;
const LIGHT_FOOT: usize = 6;
const LIGHT_BATCHES: usize = 7;
const LIGHT_AF_XDP: usize = 8;
/// Rows without bursts that are to meet the targets.
const TOPS: [usize; 4] = [BATCHES, AF_XDP, LIGHT_BATCHES, LIGHT_AF_XDP];

const SERVE_BATCHES: Option<&str> =
    Some("--workers 2 --reuseport --steer cbpf --pin --pmtudisc do --io batch --batch 32");
const LOAD_BATCHES: Option<&str> =
    Some("--threads 2 --sockets 8 --depth 16 --size 100B --pin --pmtudisc-do");

const LOAD_LIGHT: Option<&str> =
    Some("--threads 2 --sockets 8 --depth 16 --size 100B --pin --af-xdp veth0:native");

const RUNGS: [Rung; 9] = [
    Rung {
        name: "one shared socket",
        serve: Some("--workers 2"),
        load: Some("--threads 2 --sockets 8 --depth 16 --size 100B"),
        xps: false,
        foot: FOOT,
    },
    Rung {
        name: "group by CPU, pinned, DO, batches of 32",
        serve: SERVE_BATCHES,
        load: LOAD_BATCHES,
        xps: false,
        foot: FOOT,
    },
    Rung {
        name: "workers on the queues of the device (AF_XDP, native), XPS by CPU",
        serve: Some("--workers 2 --pin --af-xdp veth0:native"),
        load: LOAD_BATCHES,
        xps: true,
        foot: FOOT,
    },
    Rung {
        name: "the second line, same-flow bursts of 32 (GSO and GRO)",
        serve: Some(
            "--workers 2 --reuseport --steer cbpf --pin --pmtudisc do --io batch --batch 32 --gro --gso",
        ),
        load: Some(
            "--threads 2 --sockets 8 --depth 64 --batch 128 --size 100B --pin --pmtudisc-do --burst 32",
        ),
        xps: false,
        foot: FOOT,
    },
    Rung {
        name: "the second line with a bare client",
        serve: SERVE_BATCHES,
        load: None,
        xps: false,
        foot: FOOT,
    },
    Rung {
        name: "the second line with a bare server",
        serve: None,
        load: LOAD_BATCHES,
        xps: false,
        foot: FOOT,
    },
    Rung {
        name: "the first line, client on the queues of the device (AF_XDP, native)",
        serve: Some("--workers 2"),
        load: Some("--threads 2 --sockets 8 --depth 16 --size 100B --af-xdp veth0:native"),
        xps: false,
        foot: LIGHT_FOOT,
    },
    Rung {
        name: "the second line, client by AF_XDP, XPS by CPU",
        serve: SERVE_BATCHES,
        load: LOAD_LIGHT,
        xps: true,
        foot: LIGHT_FOOT,
    },
    Rung {
        name: "the third line, client by AF_XDP: no sockets on either side",
        serve: Some("--workers 2 --pin --af-xdp veth0:native"),
        load: LOAD_LIGHT,
        xps: true,
        foot: LIGHT_FOOT,
    },
];

/// The table as Markdown.
pub(crate) fn measure(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let lab = Lab::new()?;
    let mut costs: [Cost; RUNGS.len()] = Default::default();
    for round in 0..rounds {
        eprintln!("ladder: round {} of {rounds}", round + 1);
        for step in 0..RUNGS.len() {
            // A different one starts each round.
            let at = (step + round) % RUNGS.len();
            let rung = &RUNGS[at];
            lab.set_xps(rung.xps)?;
            let server = match rung.serve {
                Some(switches) => tool.serve(&lab, CPUS, PORT, &words(switches))?,
                None => bare::serve(&lab, CPUS, PORT, window)?,
            };
            let servers = [server.pid()];
            let load = match rung.load {
                Some(switches) => {
                    tool.load(&lab, CPUS, PORT, window, &words(switches), &servers)?
                }
                None => bare::load(&lab, CPUS, PORT, window, &servers)?,
            };
            let cost = &mut costs[at];
            cost.rate.push(load.rate);
            cost.server_us.push(load.server_us);
            cost.client_us.push(load.client_us);
            cost.foreign = cost.foreign.max(load.foreign);
        }
    }
    let gain = |at: usize| ratios(&costs[at].rate, &costs[RUNGS[at].foot].rate);
    let mut rows = String::new();
    for (at, (rung, cost)) in RUNGS.iter().zip(&costs).enumerate() {
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {} | {} | {:.0} % |",
            rung.name,
            spread(&cost.server_us, 2),
            spread(&cost.client_us, 2),
            spread(&cost.rate.iter().map(|n| n / 1000.0).collect::<Vec<_>>(), 0),
            spread(&gain(at), 2),
            cost.foreign * 100.0
        );
    }
    let word = |met: bool| if met { "met" } else { "missed" };
    let batches = &costs[BATCHES];
    let dearer = |cost: &Cost| median(&cost.server_us).max(median(&cost.client_us));
    let cheapest = TOPS
        .map(|at| dearer(&costs[at]))
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    let best = TOPS
        .map(|at| median(&gain(at)))
        .into_iter()
        .fold(0.0, f64::max);
    let light = ratios(&costs[LIGHT_AF_XDP].client_us, &batches.client_us);
    let server = ratios(&batches.server_us, &costs[BARE_SERVER].server_us);
    let client = ratios(&batches.client_us, &costs[BARE_CLIENT].client_us);
    Ok(format!(
        "\n## Cost of a transaction\n\nTwo server workers and two client threads on two CPUs, {} s per run, {rounds} rounds. Targets: \
         server and client at most 1.5 us each on one line without bursts: {}; one of these lines at least 1.5 x the first line with the \
         same client: {}; bursts at least 5 million/s: {}. CPU of our server and client relative to a bare loop in the same place: **{}** \
         and **{}**. CPU of the AF_XDP client on the last line relative to the socket client on the second: **{}**.\n\n| \
         configuration | server us per transaction | client us per transaction | thousand \
         transactions/s | rate, ratio to the first line with the same client | foreign |\n|---|---|---|---|---|---|\n{rows}",
        window.as_secs(),
        word(cheapest <= 1.5),
        word(best >= 1.5),
        word(median(&costs[BURSTS].rate) >= 5e6),
        spread(&server, 2),
        spread(&client, 2),
        spread(&light, 2),
    ))
}

fn words(switches: &str) -> Vec<&str> {
    switches.split_whitespace().collect()
}

#[derive(Default)]
struct Cost {
    rate: Vec<f64>,
    server_us: Vec<f64>,
    client_us: Vec<f64>,
    foreign: f64,
}
