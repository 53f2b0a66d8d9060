//! What a transaction costs on both sides at the foot and at the top of the ladder, without the tuner.
//!
//! Two workers and two client threads on two CPUs over veth, 100 bytes. Configurations take turns within a
//! round. The CPU time of the client comes from wait4(2), that of the server from `schedstat`.

use std::time::Duration;

use anyhow::Result;

use crate::lab::Lab;
use crate::numbers::{median, ratios, spread};
use crate::rungwise::Rungwise;

const PORT: u16 = 5303;

/// Name, switches of the server, switches of the client.
const RUNGS: &[(&str, &str, &str)] = &[
    (
        "one shared socket",
        "--workers 2",
        "--threads 2 --sockets 8 --depth 16 --size 100B",
    ),
    (
        "group by CPU, pinned, DO, batches of 32",
        "--workers 2 --reuseport --steer cbpf --pin --pmtudisc do --io batch --batch 32",
        "--threads 2 --sockets 8 --depth 16 --size 100B --pin --pmtudisc-do",
    ),
    (
        "the same, same-flow bursts of 32 (GSO and GRO)",
        "--workers 2 --reuseport --steer cbpf --pin --pmtudisc do --io batch --batch 32 --gro --gso",
        "--threads 2 --sockets 8 --depth 64 --batch 128 --size 100B --pin --pmtudisc-do --burst 32",
    ),
];

/// The table as Markdown.
pub fn measure(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let lab = Lab::new()?;
    let mut sides: Vec<Side> = RUNGS.iter().map(|_| Side::default()).collect();
    for round in 0..rounds {
        eprintln!("ladder: round {} of {rounds}", round + 1);
        for step in 0..RUNGS.len() {
            // A different one starts each round.
            let at = (step + round) % RUNGS.len();
            let (_, serve, drive) = RUNGS[at];
            let serve: Vec<&str> = serve.split_whitespace().collect();
            let drive: Vec<&str> = drive.split_whitespace().collect();
            let server = tool.serve(&lab, "0,1", PORT, &serve)?;
            let load = tool.load(&lab, "0,1", PORT, window, &drive, &[server.pid()])?;
            let side = &mut sides[at];
            side.rate.push(load.rate);
            side.server_us.push(load.server_us);
            side.client_us.push(load.client_us);
            side.foreign = side.foreign.max(load.foreign);
        }
    }
    let mut rows = String::new();
    for ((name, ..), side) in RUNGS.iter().zip(&sides) {
        rows += &format!(
            "| {name} | {} | {} | {} | {} | {:.0} % |\n",
            spread(&side.server_us, 2),
            spread(&side.client_us, 2),
            spread(&side.rate.iter().map(|n| n / 1000.0).collect::<Vec<_>>(), 0),
            spread(&ratios(&side.rate, &sides[0].rate), 2),
            side.foreign * 100.0
        );
    }
    let word = |met: bool| if met { "met" } else { "missed" };
    let cost = median(&sides[1].server_us).max(median(&sides[1].client_us));
    Ok(format!(
        "\n## Cost of a transaction\n\nTwo server workers and two client threads on two CPUs, {} s a run, {rounds} rounds. Targets: server and client at most \
         1.5 us each with pinned workers and batches: {}; at least 1.5 x the first line: {}; bursts at least 5 million/s: {}.\n\n| configuration | server us per \
         transaction | client us per transaction | thousand transactions/s | rate, ratio to the first line | foreign |\n|---|---|---|---|---|---|\n{rows}",
        window.as_secs(),
        word(cost <= 1.5),
        word(median(&ratios(&sides[1].rate, &sides[0].rate)) >= 1.5),
        word(median(&sides[2].rate) >= 5e6),
    ))
}

#[derive(Default)]
struct Side {
    rate: Vec<f64>,
    server_us: Vec<f64>,
    client_us: Vec<f64>,
    foreign: f64,
}
