//! What reading the thread counters of a JVM costs the service in it, in pairs: the same closed loop of requests on the Spring Boot service of the
//! lab heap-per-request, with a reading each second and without. `jvm heap-per-request` reads them twice per block of 20,000
//! requests, outside the time in which it sends; each second is as often or more often, and under full load.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rungwise_host::clock::process_cpu;
use rungwise_host::hotspot::Jvm;
use rungwise_probes::jvm::ThreadCounters;
use rungwise_stats::interval::centre_interval;
use serde_json::Value;

use crate::numbers::median;
use crate::process::{self, Server};
use crate::rungwise::Rungwise;

const PORT: u16 = 18_099;
/// As in the lab: what a request costs no longer changes after so many.
const WARMUP: &str = "80000";
const EVERY: Duration = Duration::from_secs(1);
/// Between two checks whether the window is over.
const TICK: Duration = Duration::from_millis(10);
/// Chance that the interval misses the ratio.
const ALPHA: f64 = 0.05;

/// The cost as Markdown.
pub(crate) fn cost(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let rounds = rounds.max(4);
    let seconds = window.as_secs().max(2);
    let folder = std::env::temp_dir().join(format!("rungwise-bench-{}", std::process::id()));
    let built = build(&folder);
    let measured = built.and_then(|()| measure(tool, &folder, rounds, seconds));
    let _ = std::fs::remove_dir_all(&folder);
    let Measured {
        with,
        without,
        readings_ms,
    } = measured?;
    let mut page = format!(
        "\n## Cost of thread counters\n\n`cargo run --release --manifest-path benches/Cargo.toml -- counters --rounds {rounds} --seconds {seconds}`\n\n\
         The service of the lab heap-per-request in a closed loop on 10 connections for {seconds} s, with its thread counters read each second and \
         without, {rounds} rounds in alternating order; 95 % intervals. A reading took {:.1} ms, from the question to the last line of the answer.\n\n\
         | | without | with | change |\n|---|---|---|---|\n",
        median(&readings_ms)
    );
    let figures: [(&str, Figure); 2] = [
        ("requests/s", |half| half.rate),
        ("CPU of the service per request, us", |half| half.cpu_us),
    ];
    for (what, figure) in figures {
        let [with, without] =
            [&with, &without].map(|halves| halves.iter().map(figure).collect::<Vec<_>>());
        let logs: Vec<f64> = with
            .iter()
            .zip(&without)
            .map(|(a, b)| (a / b).ln())
            .collect();
        let change = centre_interval(&logs, ALPHA).context("too few rounds for an interval")?;
        let percent = |log: f64| log.exp_m1() * 100.0;
        let _ = writeln!(
            page,
            "| {what} | {:.1} | {:.1} | {:+.1} % [{:+.1} %, {:+.1} %] |",
            median(&without),
            median(&with),
            percent(change.point),
            percent(change.low),
            percent(change.high)
        );
    }
    Ok(page)
}

type Figure = fn(&Half) -> f64;

/// A window of the load.
struct Half {
    rate: f64,
    /// CPU time of the service per request, microseconds.
    cpu_us: f64,
}

struct Measured {
    with: Vec<Half>,
    without: Vec<Half>,
    readings_ms: Vec<f64>,
}

/// Maven builds the service in a copy of the lab.
fn build(folder: &Path) -> Result<()> {
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../labs/heap-per-request");
    std::fs::create_dir_all(folder)?;
    let mut copy = Command::new("cp");
    copy.args(["-r", &format!("{lab}/pom.xml"), &format!("{lab}/src")]);
    process::run(copy.arg(folder), Duration::from_secs(10))?;
    let mut maven = Command::new("mvn");
    maven.args(["-B", "-q", "package"]).current_dir(folder);
    process::run(&mut maven, Duration::from_mins(10))?;
    Ok(())
}

fn measure(tool: &Rungwise, folder: &Path, rounds: usize, seconds: u64) -> Result<Measured> {
    let mut java = Command::new("java");
    java.args(["-Xms1g", "-Xmx1g", "-Xmn512m", "-XX:+UseParallelGC", "-jar"])
        .arg(folder.join("target/orders.jar"))
        .arg(format!("--server.port={PORT}"))
        .args([
            "--server.address=127.0.0.1",
            "--server.tomcat.threads.min-spare=10",
        ])
        .arg("--server.tomcat.threads.max=10");
    let server = Server::start(&mut java)?;
    let deadline = Instant::now() + Duration::from_mins(2);
    while std::net::TcpStream::connect(("127.0.0.1", PORT)).is_err() {
        process::check_stopped()?;
        if Instant::now() > deadline {
            bail!("the service does not accept connections after 120 s");
        }
        thread::sleep(TICK);
    }
    let counters = ThreadCounters::new(Jvm::open(server.pid())?);
    if counters.read()?.is_none() {
        bail!("this JDK prints no thread counters; put JDK 11 or later first in PATH");
    }
    load(tool, folder, server.pid(), &["--count", WARMUP])?;
    let for_seconds = format!("{seconds}s");
    let length = ["--for", for_seconds.as_str()];
    let mut measured = Measured {
        with: Vec::new(),
        without: Vec::new(),
        readings_ms: Vec::new(),
    };
    for round in 0..rounds {
        for half in 0..2 {
            process::check_stopped()?;
            if (round + half) % 2 == 0 {
                measured
                    .without
                    .push(load(tool, folder, server.pid(), &length)?);
            } else {
                let (rate, mut readings) =
                    beside(&counters, || load(tool, folder, server.pid(), &length))?;
                measured.with.push(rate);
                measured.readings_ms.append(&mut readings);
            }
        }
    }
    Ok(measured)
}

/// What `work` gives while the counters are read each second, and how long each reading took, ms.
fn beside(
    counters: &ThreadCounters,
    work: impl FnOnce() -> Result<Half>,
) -> Result<(Half, Vec<f64>)> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| -> Result<Vec<f64>> {
            let mut took = Vec::new();
            let mut due = Instant::now() + EVERY / 2;
            while !over.load(Ordering::Relaxed) {
                if Instant::now() < due {
                    thread::sleep(TICK);
                    continue;
                }
                due += EVERY;
                let began = Instant::now();
                counters.read()?;
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
            Ok(took)
        });
        let rate = work();
        over.store(true, Ordering::Relaxed);
        let took = reader
            .join()
            .map_err(|_| anyhow::anyhow!("the reader panicked"))?;
        Ok((rate?, took?))
    })
}

/// A closed loop of so long on the service `pid`. Its run folder goes with `folder`.
fn load(tool: &Rungwise, folder: &Path, pid: u32, length: &[&str]) -> Result<Half> {
    let before = process_cpu(pid)?;
    let output = Command::new(tool.path())
        .current_dir(folder)
        .args(["load", "http", &format!("http://127.0.0.1:{PORT}/create")])
        .args(["--header", "Content-Type: application/json"])
        .args([
            "--body",
            r#"text:{"userId": 32898493, "productId":39043, "detail": ""}"#,
        ])
        .args([
            "--connections",
            "10",
            "--threads",
            "1",
            "--warmup",
            "0s",
            "--format",
            "json",
        ])
        .args(length)
        .output()?;
    let cpu = process_cpu(pid)?.saturating_sub(before);
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let number = |name: &str| {
        let number = document[name].as_f64();
        number.with_context(|| format!("the load reports no {name}"))
    };
    Ok(Half {
        rate: number("achieved_per_s")?,
        cpu_us: cpu.as_secs_f64() * 1e6 / number("received")?,
    })
}
