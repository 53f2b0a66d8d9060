//! Cost of reading GC logs of any length: a stream of 5 GB, the page of 500 MB, and a quiet log that is followed.
//!
//! The stream is made as it is read: a log of the corpus (JDK 17, G1) round after round, with uptimes and numbers that go
//! on. CPU time and memory are those of `rungwise` alone, by `wait4(2)`; the writer is this process.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{ChildStdin, Command};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rungwise_testkit::EndlessLog;

use crate::numbers::{median, spread};
use crate::process::{self, Finished};
use crate::rungwise::Rungwise;

/// The long stream.
const STREAM: u64 = 5_000_000_000;
/// The log whose page is weighed.
const PAGE: u64 = 500_000_000;
/// Most time that one reading may take.
const LIMIT: Duration = Duration::from_mins(15);

/// The figures as Markdown; `window` is how long the quiet log is followed.
pub(crate) fn cost(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let log = endless()?;
    let mut page = format!(
        "\n## GC logs of any length\n\n\
         `cargo run --release --manifest-path benches/Cargo.toml -- gcstream --rounds {rounds} --seconds {}`\n\n\
         | what | CPU | memory, MiB | result | target |\n|---|---|---|---|---|\n",
        window.as_secs()
    );
    for (what, format, bytes) in [
        ("`jvm gc -`, a stream of", "json", PAGE),
        ("`jvm gc -`, a stream of", "json", STREAM),
        ("`jvm gc - --format html`, a stream of", "html", PAGE),
    ] {
        let done = read(tool, format, &log, bytes)?;
        let megabytes = bytes as f64 / 1e6;
        let (mib, page_mb) = (done.peak_kib / 1024.0, done.stdout.len() as f64 / 1e6);
        let (result, target, met) = if format == "html" {
            let met = page_mb < 3.0;
            (format!("page of {page_mb:.2} MB"), "3 MB", met)
        } else {
            let speed = megabytes / done.cpu.as_secs_f64();
            (
                format!("{speed:.0} MB per CPU second"),
                "50 MiB",
                mib < 50.0,
            )
        };
        let _ = writeln!(
            page,
            "| {what} {megabytes:.0} MB | {:.1} s | {mib:.1} | {result} | {target}: {} |",
            done.cpu.as_secs_f64(),
            if met { "met" } else { "missed" }
        );
    }
    page += &quiet(tool, rounds, window)?;
    Ok(page)
}

/// The corpus' log, going on for ever.
pub(crate) fn endless() -> Result<EndlessLog> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/gclog/corpus");
    let path = corpus.join("own_jdk17-g1-tospace.log");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(EndlessLog::new(&text))
}

fn read(tool: &Rungwise, format: &str, log: &EndlessLog, bytes: u64) -> Result<Finished> {
    let log = log.clone();
    let feed = move |mut stdin: ChildStdin| {
        let (mut text, mut written) = (Vec::new(), 0);
        for round in 0.. {
            text.clear();
            log.round(round, &mut text);
            // The reader says why it ended.
            if written >= bytes || stdin.write_all(&text).is_err() {
                return;
            }
            written += text.len() as u64;
        }
    };
    let mut command = Command::new(tool.path());
    command.args(["jvm", "gc", "-", "--format", format]);
    process::run_fed(&mut command, LIMIT, feed)
}

/// CPU of a log to which nothing is written, beyond what start, one reading and the report take.
fn quiet(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let path = std::env::temp_dir().join(format!("rungwise-bench-{}.log", std::process::id()));
    let mut text = Vec::new();
    endless()?.round(0, &mut text);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let follow = |length: Duration| -> Result<Finished> {
        let length = format!("{}ms", length.as_millis());
        let mut command = Command::new(tool.path());
        command
            .args([
                "jvm",
                "gc",
                "--follow",
                "--fail-on",
                "never",
                "--for",
                &length,
            ])
            .arg(&path);
        process::run(&mut command, window + Duration::from_secs(30))
    };
    let mut shares = Vec::new();
    let mut memory = Vec::new();
    let measured = (0..rounds).try_for_each(|_| {
        let short = follow(Duration::from_millis(1))?;
        let long = follow(window)?;
        ensure!(long.wall >= window, "--follow ended too early");
        let more = long.cpu.as_secs_f64() - short.cpu.as_secs_f64();
        shares.push(more / window.as_secs_f64() * 100.0);
        memory.push(long.peak_kib / 1024.0);
        Ok(())
    });
    let _ = std::fs::remove_file(&path);
    measured?;
    let met = median(&shares) < 0.1;
    Ok(format!(
        "| `jvm gc --follow`, a quiet log, {} s, without start and report | {} % | {:.1} | | 0.1 %: {} |\n",
        window.as_secs(),
        spread(&shares, 3),
        median(&memory),
        if met { "met" } else { "missed" }
    ))
}
