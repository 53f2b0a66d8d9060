//! How fast GC logs are read: the parser as a process of its own, beside `grep -c` over the same file.
//!
//! The logs are of the corpus, repeated to 210 MB: two of G1, one of Parallel, one of ZGC, and two of CMS of JDK 8, with the
//! print flags that Cassandra sets and with every one; one of JDK 8 and one of G1 also as containers keep them.
//! They lie in the folder for temporary files, where both readers find them in the page cache. CPU time and memory are
//! measured from outside, by `wait4(2)`; start and end of the process are in them.

use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rungwise_gclog::{Event, Names, Parser};

use crate::numbers::{median, ratios, spread};
use crate::process;

/// Word that starts a reader; not in the usage.
const READER: &str = "read-gc-log";

/// Size of a log.
const BYTES: u64 = 210_000_000;

/// Most time that a reader may take.
const LIMIT: Duration = Duration::from_mins(2);

/// The wrapper of a log's lines.
type Kept = fn(&[u8]) -> Vec<u8>;

/// What is read, where it comes from, how it is kept, and what grep counts in it.
const LOGS: &[(&str, &str, Kept, &str)] = &[
    (
        "G1, JDK 17, `gc*,gc+age=trace,safepoint`",
        G1,
        <[u8]>::to_vec,
        "] GC(",
    ),
    ("the same in docker's `json-file`", G1, docker, "] GC("),
    (
        "G1, JDK 11, `gc*,safepoint,gc+ergo*=debug`",
        "own_jdk11-g1.log.gz",
        <[u8]>::to_vec,
        "] GC(",
    ),
    (
        "Parallel, `gc*,gc+phases=debug,gc+age=trace`, pauses only",
        "gctoolkit_unified_parallel_parallelgc.log.gz",
        <[u8]>::to_vec,
        "] GC(",
    ),
    (
        "generational ZGC, JDK 21, `gc*,safepoint`",
        "own_jdk21-genzgc.log",
        <[u8]>::to_vec,
        "] GC(",
    ),
    (
        "CMS, JDK 8, the print flags of Cassandra",
        CMS,
        <[u8]>::to_vec,
        "[ParNew",
    ),
    (
        "CMS, JDK 8, every print flag",
        EVERY_FLAG,
        <[u8]>::to_vec,
        "[ParNew",
    ),
    (
        "the log with Cassandra's flags in a containerd file",
        CMS,
        containerd,
        "[ParNew",
    ),
];

const G1: &str = "own_jdk17-g1-tospace.log";
const CMS: &str = "gctoolkit_preunified_cms_parnew_details_tenuring_180_fls_bob.log.gz";

/// Made by the service of the gclog tests with 6000 MB allocated, `-Xmx96m -XX:+UseConcMarkSweepGC` and `-XX:+` each of `PrintGCDetails`,
/// `PrintGCDateStamps`, `PrintGCTimeStamps`, `PrintGCCause`, `PrintGCID`, `PrintGCApplicationStoppedTime`, `PrintGCApplicationConcurrentTime`,
/// `PrintTenuringDistribution`, `PrintHeapAtGC`, `PrintReferenceGC`, `PrintAdaptiveSizePolicy` and `PrintPromotionFailure`, and
/// `-XX:PrintFLSStatistics=1 -XX:PrintCMSStatistics=1`.
const EVERY_FLAG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/logs/jdk8-cms-every-flag.log.gz"
);

/// As containerd keeps lines.
fn containerd(log: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        kept.extend_from_slice(b"2026-01-02T03:04:05.123456789Z stdout F ");
        kept.extend_from_slice(line);
    }
    kept
}

/// As docker keeps lines that hold no control characters.
fn docker(log: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for line in String::from_utf8_lossy(log).lines() {
        let line = line.replace('\\', r"\\").replace('"', r#"\""#);
        let line = line
            .replace('<', r"\u003c")
            .replace('>', r"\u003e")
            .replace('&', r"\u0026");
        let time = "2026-01-02T03:04:05.123456789Z";
        kept.extend_from_slice(
            format!("{{\"log\":\"{line}\\n\",\"stream\":\"stdout\",\"time\":\"{time}\"}}\n")
                .as_bytes(),
        );
    }
    kept
}

/// Reads a log if that is what this process was started for.
pub(crate) fn read_if_asked(words: &[String]) -> Option<Result<()>> {
    match words {
        [word, path] if word == READER => Some(read(Path::new(path))),
        _ => None,
    }
}

fn read(path: &Path) -> Result<()> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut pauses = 0u64;
    let mut stopped_ns = 0;
    let mut sink = |_: &Names, event: Event<'_>| {
        if let Event::Pause(pause) = event {
            pauses += 1;
            stopped_ns += pause.duration_ns.unwrap_or(0);
        }
    };
    let mut parser = Parser::new();
    let mut piece = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        parser.push(&piece[..read], &mut sink);
    }
    let account = parser.finish(&mut sink);
    println!(
        "{pauses} pauses, {stopped_ns} ns, {} of {} lines unknown",
        account.unknown.lines,
        account.lines()
    );
    Ok(())
}

/// The speeds as Markdown.
pub(crate) fn speed(rounds: usize) -> Result<String> {
    let mut page = format!(
        "\n## Reading GC logs\n\n`cargo run --release --manifest-path benches/Cargo.toml -- gclog --rounds {rounds}`\n\n\
         Each log is {} MB; {rounds} rounds, parser and `grep -c -F` (C locale) in alternating order. MB per CPU second.\n\n\
         | log | parser | grep -c | parser / grep | memory, MiB | result |\n|---|---|---|---|---|---|\n",
        BYTES / 1_000_000
    );
    for (what, source, kept, word) in LOGS {
        let log = Scratch::of(source, *kept)?;
        page += &row(what, READER, &log, word, rounds)?;
    }
    Ok(page)
}

/// A row of speeds: this program started as `reader`, beside grep for a word, over the same file.
pub(crate) fn row(
    what: &str,
    reader: &str,
    log: &Scratch,
    word: &str,
    rounds: usize,
) -> Result<String> {
    let path = &log.path;
    let megabytes = log.bytes()? as f64 / 1e6;
    let (mut ours, mut theirs, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = String::new();
    for round in 0..rounds {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                let mut command = Command::new(std::env::current_exe()?);
                let done = process::run(command.arg(reader).arg(path), LIMIT)?;
                ours.push(megabytes / done.cpu.as_secs_f64());
                memory.push(done.peak_kib / 1024.0);
                done.stdout.trim().clone_into(&mut found);
            } else {
                let mut command = Command::new("grep");
                command
                    .env("LC_ALL", "C")
                    .args(["-c", "-F", word])
                    .arg(path);
                theirs.push(megabytes / process::run(&mut command, LIMIT)?.cpu.as_secs_f64());
            }
        }
    }
    Ok(format!(
        "| {what} | {} | {} | {:.2} | {:.1} | {found} |\n",
        spread(&ours, 0),
        spread(&theirs, 0),
        median(&ratios(&ours, &theirs)),
        median(&memory)
    ))
}

/// A file for one comparison, removed at its end.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A log of the corpus, or one at a path of its own, kept so and repeated.
    fn of(source: &str, kept: Kept) -> Result<Self> {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/gclog/corpus");
        let source = corpus.join(source);
        let log = if source.extension().is_some_and(|end| end == "gz") {
            let mut command = Command::new("gzip");
            process::run(command.arg("-dc").arg(&source), LIMIT)?
                .stdout
                .into_bytes()
        } else {
            std::fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?
        };
        if log.is_empty() {
            bail!("{} is empty", source.display());
        }
        let log = kept(&log);
        Self::with(|file| {
            for _ in 0..BYTES.div_ceil(log.len() as u64) {
                file.write_all(&log)?;
            }
            Ok(())
        })
    }

    /// A file that is filled so.
    pub(crate) fn with(
        fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<Self> {
        let name = format!("rungwise-bench-{}.log", std::process::id());
        let scratch = Self {
            path: std::env::temp_dir().join(name),
        };
        let cannot = || format!("cannot write {}", scratch.path.display());
        let mut file = BufWriter::new(File::create(&scratch.path).with_context(cannot)?);
        fill(&mut file)
            .and_then(|()| file.flush())
            .with_context(cannot)?;
        Ok(scratch)
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(std::fs::metadata(&self.path)?.len())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
