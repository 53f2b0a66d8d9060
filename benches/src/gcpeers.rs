//! `rungwise jvm gc` beside `GCViewer` and `GCToolkit` on the same logs: speed, memory, and how many pauses each finds.
//!
//! Maven fetches both (`peers/pom.xml`), and `javac` compiles the few lines that make a program of `GCToolkit`, a library
//! (`peers/Toolkit.java`). Logs of the corpus are repeated: of unified logging so that time goes on, since another
//! JVM in each round would be another question. All of a run is measured: start of the JVM, reading, printing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::gcstream::endless;
use crate::numbers::{median, spread};
use crate::process::{self, Finished};
use crate::rungwise::Rungwise;

/// Size of a log; the slowest reads 4 MB in a CPU second.
const BYTES: usize = 40_000_000;
/// Most time that a reader may take.
const LIMIT: Duration = Duration::from_mins(10);
/// A log of JDK 8 with CMS and the flags that Cassandra sets.
const CMS: &str = "gctoolkit_preunified_cms_parnew_details_tenuring_180_fls_bob.log.gz";

/// The comparison as Markdown.
pub(crate) fn compare(tool: &Rungwise, rounds: usize) -> Result<String> {
    let folder = std::env::temp_dir().join(format!("rungwise-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let page = in_folder(tool, rounds, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    page
}

fn in_folder(tool: &Rungwise, rounds: usize, folder: &Path) -> Result<String> {
    let peers = Peers::fetch(folder)?;
    let mut page = format!(
        "\n## Reading GC logs: other tools\n\n\
         `cargo run --release --manifest-path benches/Cargo.toml -- gcpeers --rounds {rounds}`\n\n\
         Logs of {} MB; {rounds} rounds, interleaved. GCViewer 1.36 by its command line, GCToolkit 3.5.0 with a program that counts \
         pauses, both with `-Xmx8g`.\n\n\
         | log | reader | MB per CPU second | wall, s | memory, MiB | pauses | total pause time, s |\n|---|---|---|---|---|---|---|\n",
        BYTES / 1_000_000
    );
    for (what, log) in [
        ("G1, JDK 17, `gc*,gc+age=trace,safepoint`", unified(folder)?),
        ("CMS, JDK 8, the print flags of Cassandra", cms(folder)?),
    ] {
        let megabytes = std::fs::metadata(&log)?.len() as f64 / 1e6;
        let mut seen: [Vec<Seen>; 3] = Default::default();
        for round in 0..rounds {
            for turn in 0..seen.len() {
                let reader = (round + turn) % seen.len();
                seen[reader].push(match reader {
                    0 => ours(tool, &log)?,
                    1 => peers.viewer(&log, folder)?,
                    _ => peers.toolkit(&log)?,
                });
            }
        }
        for (name, seen) in ["rungwise jvm gc", "GCViewer", "GCToolkit"]
            .iter()
            .zip(&seen)
        {
            let of = |of: fn(&Seen) -> f64| seen.iter().map(of).collect::<Vec<_>>();
            let speeds: Vec<f64> = seen.iter().map(|seen| megabytes / seen.cpu_s).collect();
            let _ = writeln!(
                page,
                "| {what} | {name} | {} | {} | {:.0} | {} | {:.3} |",
                spread(&speeds, 1),
                spread(&of(|seen| seen.wall_s), 2),
                median(&of(|seen| seen.mib)),
                median(&of(|seen| seen.pauses)),
                median(&of(|seen| seen.paused_s)),
            );
        }
    }
    Ok(page)
}

/// One run of a reader.
struct Seen {
    cpu_s: f64,
    wall_s: f64,
    mib: f64,
    pauses: f64,
    paused_s: f64,
}

impl Seen {
    fn of(done: &Finished, pauses: f64, paused_s: f64) -> Self {
        Self {
            cpu_s: done.cpu.as_secs_f64(),
            wall_s: done.wall.as_secs_f64(),
            mib: done.peak_kib / 1024.0,
            pauses,
            paused_s,
        }
    }
}

fn ours(tool: &Rungwise, log: &Path) -> Result<Seen> {
    let mut command = Command::new(tool.path());
    command
        .args(["jvm", "gc", "--format", "json", "--fail-on", "never"])
        .arg(log);
    let done = process::run(&mut command, LIMIT)?;
    let document: Value = serde_json::from_str(&done.stdout)?;
    let of = |field: &str| document["pauses"][field].as_f64().unwrap_or(f64::NAN);
    Ok(Seen::of(&done, of("count"), of("total_ms") / 1e3))
}

/// The others, ready to run.
struct Peers {
    jars: PathBuf,
    classes: PathBuf,
}

impl Peers {
    fn fetch(folder: &Path) -> Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let (jars, classes) = (folder.join("jars"), folder.join("classes"));
        let mut maven = Command::new("mvn");
        maven
            .args(["-q", "-B", "-f"])
            .arg(sources.join("pom.xml"))
            .arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", jars.display()));
        process::run(&mut maven, LIMIT)?;
        let mut compiler = Command::new("javac");
        compiler
            .arg("-cp")
            .arg(jars.join("*"))
            .arg("-d")
            .arg(&classes)
            .arg(sources.join("Toolkit.java"));
        process::run(&mut compiler, LIMIT)?;
        Ok(Self { jars, classes })
    }

    fn viewer(&self, log: &Path, folder: &Path) -> Result<Seen> {
        let summary = folder.join("summary.csv");
        let mut command = Command::new("java");
        command
            .args(["-Xmx8g", "-Djava.awt.headless=true", "-jar"])
            .arg(self.jars.join("gcviewer-1.36.jar"))
            .arg(log)
            .arg(&summary)
            .args(["-t", "SUMMARY"]);
        let done = process::run(&mut command, LIMIT)?;
        let text = std::fs::read_to_string(&summary).context("no summary by GCViewer")?;
        let of = |name: &str| {
            let row = text.lines().find_map(|line| line.strip_prefix(name));
            let value = row.and_then(|row| row.split(';').nth(1));
            value
                // Thousands are set apart.
                .and_then(|value| value.trim().replace(',', "").parse().ok())
                .unwrap_or(f64::NAN)
        };
        Ok(Seen::of(&done, of("pauseCount"), of("accumPause")))
    }

    fn toolkit(&self, log: &Path) -> Result<Seen> {
        let mut command = Command::new("java");
        command
            .arg("-Xmx8g")
            .arg("--module-path")
            .arg(&self.jars)
            .args(["--add-modules", "ALL-MODULE-PATH", "-cp"])
            .arg(&self.classes)
            .arg("Toolkit")
            .arg(log);
        let done = process::run(&mut command, LIMIT)?;
        // `44 pauses, 6.376 s`
        let words: Vec<&str> = done.stdout.split_whitespace().collect();
        let [.., pauses, "pauses,", seconds, "s"] = words[..] else {
            bail!("cannot use what GCToolkit printed: {}", done.stdout);
        };
        Ok(Seen::of(&done, pauses.parse()?, seconds.parse()?))
    }
}

fn unified(folder: &Path) -> Result<PathBuf> {
    let (log, mut text) = (endless()?, Vec::new());
    for round in 0.. {
        if text.len() >= BYTES {
            break;
        }
        log.round(round, &mut text);
    }
    let path = folder.join("unified.log");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Repeated unchanged: dates and uptimes go back at each repetition.
fn cms(folder: &Path) -> Result<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/gclog/corpus");
    let mut command = Command::new("gzip");
    let text = process::run(command.arg("-dc").arg(corpus.join(CMS)), LIMIT)?.stdout;
    let path = folder.join("cms.log");
    std::fs::write(&path, text.repeat(BYTES.div_ceil(text.len())))?;
    Ok(path)
}
