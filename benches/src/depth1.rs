//! One outstanding request: `sockperf ping-pong` and `rungwise load udp`, each against its own echo server.
//!
//! sockperf's messages carry its own header, so the servers cannot be shared. Server on CPU 0, client on
//! CPU 1, 100-byte messages; sockperf prints half the round trip unless `--full-rtt` is given.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::cpu::Window;
use crate::lab::{Lab, SERVER};
use crate::numbers::{ratios, spread};
use crate::process::{self, Server};
use crate::rungwise::Rungwise;

const OURS: u16 = 5301;
const THEIRS: u16 = 5302;

/// The comparison as Markdown.
pub(crate) fn compare(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let lab = Lab::new()?;
    let mine = tool.serve(&lab, "0", OURS, &["--workers", "1"])?;
    let mut peer = Server::start(lab.at_server("0", "sockperf").args([
        "server",
        "-i",
        SERVER,
        "-p",
        &THEIRS.to_string(),
    ]))?;
    peer.wait_until("bound", || lab.is_bound(THEIRS))?;

    let mut ours = Side::default();
    let mut theirs = Side::default();
    for round in 0..rounds {
        eprintln!("depth1: round {} of {rounds}", round + 1);
        let order = if round % 2 == 0 {
            [true, false]
        } else {
            [false, true]
        };
        for is_ours in order {
            if is_ours {
                let switches = [
                    "--threads",
                    "1",
                    "--sockets",
                    "1",
                    "--depth",
                    "1",
                    "--size",
                    "100B",
                ];
                let load = tool.load(&lab, "1", OURS, window, &switches, &[mine.pid()])?;
                let p50 = &load.report["latency_us"]["uncorrected"]["p50"];
                ours.p50
                    .push(p50.as_f64().context("rungwise printed no median")?);
                ours.rate.push(load.rate);
                ours.client_us.push(load.client_us);
                ours.foreign = ours.foreign.max(load.foreign);
            } else {
                let cpu = Window::open(&[peer.pid()]);
                let mut command = lab.at_client("1", "sockperf");
                command.args([
                    "ping-pong",
                    "-i",
                    SERVER,
                    "-p",
                    &THEIRS.to_string(),
                    "-m",
                    "100",
                    "--full-rtt",
                ]);
                command.args(["-t", &window.as_secs().to_string()]);
                let done = process::run(&mut command, window + Duration::from_secs(30))?;
                let used = cpu.close();
                let said = Said::read(&done.stdout).with_context(|| {
                    format!("cannot read what sockperf printed:\n{}", done.stdout)
                })?;
                theirs.p50.push(said.p50);
                theirs.rate.push(said.rate);
                // Its warm-up is in the CPU time and not in the count; less than a tenth.
                theirs
                    .client_us
                    .push(done.cpu.as_secs_f64() * 1e6 / said.all);
                theirs.foreign = theirs.foreign.max(used.foreign);
            }
        }
    }
    let row = |name: &str, side: &Side, ratio: &str| {
        format!(
            "| {name} | {} | {ratio} | {} | {} | {:.0} % |\n",
            spread(&side.rate.iter().map(|n| n / 1000.0).collect::<Vec<_>>(), 1),
            spread(&side.p50, 1),
            spread(&side.client_us, 2),
            side.foreign * 100.0
        )
    };
    Ok(format!(
        "\n## One request at a time\n\nServer on CPU 0, client on CPU 1, 100 bytes, {} s per run, {rounds} rounds, each client with its \
         own echo server. Target: not \
         slower.\n\n| client | thousand transactions/s | ratio | median round trip, us | client CPU us per transaction | foreign |\n|---|---|---|---|---|---|\n{}{}",
        window.as_secs(),
        row(
            "rungwise load udp",
            &ours,
            &spread(&ratios(&ours.rate, &theirs.rate), 2)
        ),
        row("sockperf ping-pong", &theirs, "1"),
    ))
}

#[derive(Default)]
struct Side {
    rate: Vec<f64>,
    p50: Vec<f64>,
    client_us: Vec<f64>,
    foreign: f64,
}

/// The figures of sockperf's summary.
struct Said {
    /// Messages per second of the valid part of the run.
    rate: f64,
    /// Messages of the whole run.
    all: f64,
    /// Median round trip, microseconds.
    p50: f64,
}

impl Said {
    fn read(text: &str) -> Option<Self> {
        let valid = text
            .lines()
            .find(|line| line.contains("[Valid Duration]"))?;
        let total = text
            .lines()
            .find(|line| line.contains("[Total Run]"))
            .unwrap_or(valid);
        let p50 = text.lines().find_map(|line| {
            line.split_once("percentile 50.000 =")?
                .1
                .trim()
                .parse()
                .ok()
        })?;
        Some(Self {
            rate: after(valid, "ReceivedMessages=")? / after(valid, "RunTime=")?,
            all: after(total, "ReceivedMessages=")?,
            p50,
        })
    }
}

/// The number right behind `label`.
fn after(line: &str, label: &str) -> Option<f64> {
    let rest = line.split_once(label)?.1;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_summary_of_sockperf() {
        let text = "sockperf: [Total Run] RunTime=2.000 sec; Warm up time=400 msec; SentMessages=120; ReceivedMessages=119\n\
                    sockperf: [Valid Duration] RunTime=1.600 sec; SentMessages=80; ReceivedMessages=80\n\
                    sockperf: ---> percentile 50.000 =   11.250\n";
        let said = Said::read(text).unwrap();
        assert!(
            (said.rate - 50.0).abs() < 1e-9
                && (said.all - 119.0).abs() < 1e-9
                && (said.p50 - 11.25).abs() < 1e-9
        );
        assert!(Said::read("nothing").is_none());
    }
}
