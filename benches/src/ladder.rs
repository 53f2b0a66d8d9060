//! What a transaction costs on both sides at the foot and at the top of the ladder, without the tuner, and
//! what it costs where one side is a bare loop: the floor of this machine, which our own code is judged by.
//!
//! Two workers and two client threads on two CPUs over veth, 100 bytes. Configurations take turns within a
//! round. The CPU time of the client comes from wait4(2), that of the server from `schedstat`.

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
}

const FOOT: usize = 0;
const BATCHES: usize = 1;
const AF_XDP: usize = 2;
const BURSTS: usize = 3;
const BARE_CLIENT: usize = 4;
const BARE_SERVER: usize = 5;

const SERVE_BATCHES: Option<&str> =
    Some("--workers 2 --reuseport --steer cbpf --pin --pmtudisc do --io batch --batch 32");
const LOAD_BATCHES: Option<&str> =
    Some("--threads 2 --sockets 8 --depth 16 --size 100B --pin --pmtudisc-do");

const RUNGS: [Rung; 6] = [
    Rung {
        name: "one shared socket",
        serve: Some("--workers 2"),
        load: Some("--threads 2 --sockets 8 --depth 16 --size 100B"),
        xps: false,
    },
    Rung {
        name: "group by CPU, pinned, DO, batches of 32",
        serve: SERVE_BATCHES,
        load: LOAD_BATCHES,
        xps: false,
    },
    Rung {
        name: "workers on the queues of the device (AF_XDP, native), XPS by CPU",
        serve: Some("--workers 2 --pin --af-xdp veth0:native"),
        load: LOAD_BATCHES,
        xps: true,
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
    },
    Rung {
        name: "the second line with a bare client",
        serve: SERVE_BATCHES,
        load: None,
        xps: false,
    },
    Rung {
        name: "the second line with a bare server",
        serve: None,
        load: LOAD_BATCHES,
        xps: false,
    },
];

/// The table as Markdown.
pub fn measure(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
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
    let gain = |at: usize| ratios(&costs[at].rate, &costs[FOOT].rate);
    let mut rows = String::new();
    for (at, (rung, cost)) in RUNGS.iter().zip(&costs).enumerate() {
        rows += &format!(
            "| {} | {} | {} | {} | {} | {:.0} % |\n",
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
    let cheapest = dearer(batches).min(dearer(&costs[AF_XDP]));
    let best = median(&gain(BATCHES)).max(median(&gain(AF_XDP)));
    let server = ratios(&batches.server_us, &costs[BARE_SERVER].server_us);
    let client = ratios(&batches.client_us, &costs[BARE_CLIENT].client_us);
    Ok(format!(
        "\n## Cost of a transaction\n\nTwo server workers and two client threads on two CPUs, {} s a run, {rounds} rounds. Targets: server and client at most \
         1.5 us each on the second or third line: {}; one of them at least 1.5 x the first: {}; bursts at least 5 million/s: {}. CPU of our server and client \
         over that of a bare loop in the same place: **{}** and **{}**.\n\n| configuration | server us per transaction | client us per transaction | thousand \
         transactions/s | rate, ratio to the first line | foreign |\n|---|---|---|---|---|---|\n{rows}",
        window.as_secs(),
        word(cheapest <= 1.5),
        word(best >= 1.5),
        word(median(&costs[BURSTS].rate) >= 5e6),
        spread(&server, 2),
        spread(&client, 2),
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
