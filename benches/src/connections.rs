//! Very many connections of this machine to itself: how long it takes to open them, what fails, and what they cost in memory.
//! `serve connections` and `load connections` on one machine share its CPUs, so that the time is that of both ends and of the kernel between them.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::numbers::median;
use crate::process::{self, Server};
use crate::rungwise::Rungwise;

const ADDRESS: &str = "127.0.0.1:18077";
const COUNT: u64 = 500_000;
/// All of them in 20 s.
const RATE: &str = "25k/s";
/// Between two looks at the memory.
const TICK: Duration = Duration::from_millis(100);

struct Round {
    opened: u64,
    errors: Value,
    opening_s: f64,
    /// Available memory that went, bytes: of the kernel and of both processes.
    all_bytes: f64,
    client_each: f64,
    server_each: f64,
    ping_p99_us: f64,
    pings_lost: u64,
}

/// The figures as Markdown.
pub(crate) fn measure(tool: &Rungwise, rounds: usize) -> Result<String> {
    let mut page = format!(
        "\n## Half a million connections\n\n`cargo run --release --manifest-path benches/Cargo.toml -- connections --rounds {rounds}`\n\n\
         `rungwise serve connections --most {COUNT}` and `rungwise load connections {ADDRESS} --count {COUNT} --rate {RATE} --ping 60s --hold 20s` on one machine. \
         Memory of an end is that of its process beyond what it had before; all memory is what became unavailable, the kernel's included.\n\n\
         | round | opened | errors | opening, s | all memory, GB | client, B each | server, B each | p99 of pings, ms | pings lost |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    let mut times = Vec::new();
    for number in 1..=rounds.max(1) {
        process::check_stopped()?;
        let round = round(tool)?;
        times.push(round.opening_s);
        let _ = writeln!(
            page,
            "| {number} | {} | {} | {:.1} | {:.2} | {:.0} | {:.0} | {:.1} | {} |",
            round.opened,
            round.errors,
            round.opening_s,
            round.all_bytes / 1e9,
            round.client_each,
            round.server_each,
            round.ping_p99_us / 1e3,
            round.pings_lost
        );
    }
    let _ = writeln!(page, "\nMedian time to open them: {:.1} s.", median(&times));
    Ok(page)
}

fn round(tool: &Rungwise) -> Result<Round> {
    let most = COUNT.to_string();
    let mut serve = Command::new(tool.path());
    serve.args(["serve", "connections", "--quiet", "--listen", ADDRESS]);
    let mut server = Server::start(serve.args(["--most", &most]))?;
    server.wait_until("listening", || TcpStream::connect(ADDRESS).is_ok())?;
    let began = resident(server.pid())?;
    let least = AtomicU64::new(available()?);
    let before = least.load(Ordering::Relaxed);
    let over = AtomicBool::new(false);
    let finished = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if let Ok(now) = available() {
                    least.fetch_min(now, Ordering::Relaxed);
                }
                thread::sleep(TICK);
            }
        });
        let mut load = Command::new(tool.path());
        load.args([
            "load",
            "connections",
            ADDRESS,
            "--no-keep",
            "--format",
            "json",
        ]);
        load.args([
            "--count", &most, "--rate", RATE, "--ping", "60s", "--hold", "20s",
        ]);
        let finished = process::run_any(&mut load, Duration::from_mins(5));
        over.store(true, Ordering::Relaxed);
        finished
    })?;
    let report: Value = serde_json::from_str(&finished.stdout)
        .with_context(|| format!("the load did not end well: {}", finished.stderr.trim()))?;
    let held = &report["connections"];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let Some(opened) = held["opened"].as_u64().filter(|opened| *opened > 0) else {
        bail!("no connection was opened: {}", finished.stderr.trim());
    };
    Ok(Round {
        opened,
        errors: report["errors"].clone(),
        opening_s: number(&held["opening_s"]),
        all_bytes: before.saturating_sub(least.load(Ordering::Relaxed)) as f64,
        client_each: number(&held["client_bytes_each"]),
        server_each: most_resident(server.pid())?.saturating_sub(began) as f64 / opened as f64,
        ping_p99_us: number(&report["latency_us"]["corrected"]["p99"]),
        pings_lost: report["lost"].as_u64().unwrap_or(0),
    })
}

fn available() -> Result<u64> {
    line("/proc/meminfo", "MemAvailable:")
}

fn resident(pid: u32) -> Result<u64> {
    line(&format!("/proc/{pid}/status"), "VmRSS:")
}

fn most_resident(pid: u32) -> Result<u64> {
    line(&format!("/proc/{pid}/status"), "VmHWM:")
}

/// A number of kilobytes, in bytes.
fn line(path: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = rest.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    Ok(kib.with_context(|| format!("{path} has no {name}"))? << 10)
}
