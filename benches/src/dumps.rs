//! What thread dumps of a running JVM cost the service in it, in pairs: the same closed loop of requests with and without the tool beside it.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rungwise_testkit::{How, PlantedJvm, program};
use serde_json::Value;

use crate::numbers::{median, spread};
use crate::process;
use crate::rungwise::Rungwise;

/// Connections of the load; each has a thread of the JVM.
const CONNECTIONS: &str = "200";

/// What runs beside the load; `{pid}` and `{s}` are the JVM and the seconds of the window.
const BESIDE: &[(&str, &[&str])] = &[
    (
        "`check --pid --no-jvm --no-stacks`",
        &[
            "check",
            "--pid",
            "{pid}",
            "--for",
            "{s}s",
            "--no-stacks",
            "--no-jvm",
        ],
    ),
    (
        "`check --pid --no-stacks`: three dumps and the GC log",
        &["check", "--pid", "{pid}", "--for", "{s}s", "--no-stacks"],
    ),
    (
        "`jvm threads`, a dump each second",
        &["jvm", "threads", "{pid}", "--count", "{s}", "--every", "1s"],
    ),
];

/// The costs as Markdown.
pub(crate) fn cost(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let java = program("java").context("no java in PATH")?;
    let seconds = window.as_secs().max(3);
    let mut page = format!(
        "\n## Cost of thread dumps\n\n`cargo run --release --manifest-path benches/Cargo.toml -- dumps --rounds {rounds} --seconds {seconds}`\n\n\
         A JVM with a thread for each of {CONNECTIONS} connections, driven in a closed loop for {seconds} s with the tool beside it and as long \
         without it, {rounds} rounds in alternating order. Stopped: by the JVM's own count, sum of the dumps of a window.\n\n\
         | beside the load | requests/s without | with | with / without | stopped, ms |\n|---|---|---|---|---|\n"
    );
    for (what, words) in BESIDE {
        let jvm = PlantedJvm::start(&java, &["-Xmx256m", "-XX:+UseSerialGC"], How::Stay, None);
        let words: Vec<String> = words
            .iter()
            .map(|word| {
                word.replace("{pid}", &jvm.pid().to_string())
                    .replace("{s}", &seconds.to_string())
            })
            .collect();
        // Compiles what the loop runs.
        load(tool, &jvm, seconds)?;
        let (mut with, mut without, mut stopped) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            for half in 0..2 {
                process::check_stopped()?;
                if (round + half) % 2 == 0 {
                    without.push(load(tool, &jvm, seconds)?);
                } else {
                    let beside = Command::new(tool.path())
                        .args(&words)
                        .args(["--format", "json", "--fail-on", "never"])
                        .stdout(Stdio::piped())
                        .stderr(Stdio::null())
                        .spawn()?;
                    with.push(load(tool, &jvm, seconds)?);
                    stopped.push(stopped_ms(beside)?);
                }
            }
        }
        let ratios: Vec<f64> = with.iter().zip(&without).map(|(a, b)| a / b).collect();
        let _ = writeln!(
            page,
            "| {what} | {:.0} | {:.0} | {} | {} |",
            median(&without),
            median(&with),
            spread(&ratios, 3),
            spread(&stopped, 1)
        );
    }
    Ok(page)
}

/// Requests per second of a closed loop.
fn load(tool: &Rungwise, jvm: &PlantedJvm, seconds: u64) -> Result<f64> {
    let output = Command::new(tool.path())
        .args(["load", "http", &jvm.url("/heap/1000")])
        .args(["--connections", CONNECTIONS, "--for"])
        .arg(format!("{seconds}s"))
        .args(["--format", "json"])
        .output()?;
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    document["achieved_per_s"]
        .as_f64()
        .context("the load reports no rate")
}

/// How long the dumps stopped the JVM, ms.
fn stopped_ms(beside: Child) -> Result<f64> {
    let output = beside.wait_with_output()?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    if document["exit"].as_i64() != Some(0) && document["exit"].as_i64() != Some(3) {
        bail!("the tool beside the load failed: {}", document["exit"]);
    }
    let dumps = document["taken"]["dumps"]
        .as_array()
        .or_else(|| document["jvm"]["taken"]["dumps"].as_array());
    let dumps = dumps.into_iter().flatten();
    Ok(dumps.filter_map(|dump| dump["stopped_ms"].as_f64()).sum())
}
