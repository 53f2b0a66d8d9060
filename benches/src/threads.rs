//! How fast thread dumps are read and judged: the parser with its summary as a process of its own, beside `grep -c`.
//!
//! The dumps are generated, in the form of `jcmd PID Thread.print -l` of JDK 17: a pool whose threads wait for work, a pool that
//! runs, and a queue before one lock. All dumps are held until the last is read, since they are compared with one another, so
//! memory grows with them: the table shows both.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use rungwise_threaddump::{Parser, summary};

use crate::gclog::{self, Scratch};

/// Word that starts a reader; not in the usage.
const READER: &str = "read-thread-dump";

/// What is read: its name, dumps, threads of each, frames of each thread.
const INPUTS: &[(&str, usize, usize, usize)] = &[
    ("60 dumps of 1 000 threads, 30 frames each", 60, 1000, 30),
    ("3 dumps of 50 000 threads, 8 frames each", 3, 50_000, 8),
];

/// Reads dumps if that is what this process was started for.
pub(crate) fn read_if_asked(words: &[String]) -> Option<Result<()>> {
    match words {
        [word, path] if word == READER => Some(read(Path::new(path))),
        _ => None,
    }
}

fn read(path: &Path) -> Result<()> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut parser = Parser::new();
    parser.begin("dumps.txt");
    let mut piece = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        parser.push(&piece[..read]);
    }
    let (dumps, account) = parser.finish();
    let summary = summary(dumps);
    let waiters: usize = summary
        .dumps
        .iter()
        .flat_map(|dump| &dump.locks)
        .map(|lock| lock.waiters.len())
        .sum();
    println!(
        "{} dumps, {waiters} waiters, {} of {} lines unknown",
        summary.dumps.len(),
        account.unknown_lines,
        account.lines
    );
    Ok(())
}

/// The speeds as Markdown.
pub(crate) fn speed(rounds: usize) -> Result<String> {
    let mut page = format!(
        "\n## Reading thread dumps\n\n`cargo run --release --manifest-path benches/Cargo.toml -- threads --rounds {rounds}`\n\n\
         {rounds} rounds, parser with its summary and `grep -c -F` (C locale) in alternating order. MB per CPU second.\n\n\
         | dumps | parser | grep -c | parser / grep | memory, MiB | result |\n|---|---|---|---|---|---|\n",
    );
    for (what, dumps, threads, frames) in INPUTS {
        let scratch = Scratch::with(|file| {
            for dump in 0..*dumps {
                file.write_all(generated(dump, *threads, *frames).as_bytes())?;
            }
            Ok(())
        })?;
        let what = format!("{what}, {} MB", scratch.bytes()? / 1_000_000);
        page += &gclog::row(&what, READER, &scratch, "java.lang.Thread.State", rounds)?;
    }
    Ok(page)
}

/// One dump. Of ten threads six idle, three run and one waits for the lock that the first of all holds.
fn generated(dump: usize, threads: usize, frames: usize) -> String {
    let mut text = format!(
        "4711:\n2026-11-22 10:{:02}:00\nFull thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):\n\n",
        dump % 60
    );
    for thread in 0..threads {
        let (doing, state, first) = match thread % 10 {
            _ if thread == 0 => (
                "runnable",
                "RUNNABLE",
                "\t- locked <0x00000000ff700530> (a com.example.Ledger)\n",
            ),
            0 => (
                "waiting for monitor entry",
                "BLOCKED (on object monitor)",
                "\t- waiting to lock <0x00000000ff700530> (a com.example.Ledger)\n",
            ),
            1..=3 => ("runnable", "RUNNABLE", ""),
            _ => (
                "waiting on condition",
                "WAITING (parking)",
                "\t- parking to wait for  <0x00000000ff800530> (a java.util.concurrent.SynchronousQueue$TransferStack)\n",
            ),
        };
        let _ = writeln!(
            text,
            "\"pool-{}-thread-{thread}\" #{} daemon prio=5 os_prio=0 cpu={}.{:02}ms elapsed=4711.09s tid=0x00007f6c{:08x} nid=0x{:x} {doing}  [0x00007f6cec1fe000]\n   java.lang.Thread.State: {state}",
            thread % 7,
            thread + 10,
            thread * 3 + dump,
            thread % 100,
            thread * 64,
            thread + 4711,
        );
        for frame in 0..frames {
            let _ = writeln!(
                text,
                "\tat com.example.layer{}.Service{}.call(Service{0}.java:{})",
                frame % 12,
                (thread + frame) % 50,
                frame * 7 + 11
            );
            if frame == 0 {
                text += first;
            }
        }
        text += "\n   Locked ownable synchronizers:\n\t- None\n\n";
    }
    text + "JNI global refs: 42, weak refs: 7\n\n"
}
