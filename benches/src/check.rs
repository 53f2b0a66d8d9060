//! The cost of `check`: while it watches, for one sample of a large host, and to judge a capture.
//!
//! The large host is a process of this program with 500 threads that sleep and pairs of connected TCP sockets on
//! loopback, beside whatever else this machine runs; the rest is counted in the table. CPU time is that of the
//! whole process, start and end included, by `wait4(2)`, so that a busy machine does not distort it as it distorts
//! the time on the clock.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::cpu::Window;
use crate::numbers::{median, spread};
use crate::process::{self, Server};
use crate::rungwise::Rungwise;

/// Word that starts a large host; not in the usage.
const HOST: &str = "large-host";

/// Threads of the large host, beside the first.
const THREADS: usize = 500;

/// Sockets of one process: the usual limit of open files is above it.
const EACH: usize = 10_000;

/// Length of a watched window.
const WATCHED: Duration = Duration::from_secs(10);

/// One row of the table.
struct Row {
    what: &'static str,
    /// Sockets of the large host.
    sockets: usize,
    arguments: &'static [&'static str],
    target: Target,
}

enum Target {
    /// Fraction of one CPU over the window.
    Share(f64),
    /// Milliseconds and MiB; a size of 0 has no target.
    Once { ms: f64, mib: f64 },
    /// Reported without a target.
    None,
}

const ROWS: &[Row] = &[
    Row {
        what: "watch for 10 s, no stacks",
        sockets: 5_000,
        arguments: &["--for", "10s", "--no-stacks"],
        target: Target::Share(0.01),
    },
    Row {
        what: "watch for 10 s, stacks at 99 Hz and kernel events",
        sockets: 5_000,
        arguments: &["--for", "10s"],
        target: Target::Share(0.03),
    },
    Row {
        what: "watch that process for 10 s, no stacks",
        sockets: 5_000,
        arguments: &["--for", "10s", "--no-stacks", "--pid", "{host}"],
        target: Target::Share(0.01),
    },
    Row {
        what: "watch that process for 10 s, stacks at 99 Hz and kernel events",
        sockets: 5_000,
        arguments: &["--for", "10s", "--pid", "{host}"],
        target: Target::Share(0.03),
    },
    Row {
        what: "one sample",
        sockets: 5_000,
        arguments: &["--for", "0s", "--no-stacks"],
        target: Target::Once {
            ms: 150.0,
            mib: 0.0,
        },
    },
    Row {
        what: "one sample",
        sockets: 100_000,
        arguments: &["--for", "0s", "--no-stacks"],
        target: Target::Once {
            ms: 1000.0,
            mib: 100.0,
        },
    },
];

/// The costs as Markdown.
pub(crate) fn cost(tool: &Rungwise, rounds: usize) -> Result<String> {
    let mut page = format!(
        "\n## Cost of check\n\n`cargo run --release --manifest-path benches/Cargo.toml -- check --rounds {rounds}`\n\n\
         A process with {THREADS} sleeping threads and pairs of TCP sockets, in addition to the machine's other processes; {rounds} \
         rounds. CPU of the whole process, including start and end. The target for one sample is wall-clock time; it is met if CPU \
         and wall-clock time are both below it.\n\n\
         | what | sockets | CPU, ms | of one CPU | wall clock, ms | memory, MiB | target | foreign |\n|---|---|---|---|---|---|---|---|\n"
    );
    // First: the kernel remembers the connections of the last row for a minute after their end.
    let bundle =
        std::env::temp_dir().join(format!("rungwise-bench-{}.rungwise", std::process::id()));
    let judged = judging(tool, rounds, &bundle);
    let _ = std::fs::remove_file(&bundle);
    page += &judged?;
    let mut host: Option<(usize, Large)> = None;
    for row in ROWS {
        if host
            .as_ref()
            .is_none_or(|(sockets, _)| *sockets != row.sockets)
        {
            drop(host.take());
            host = Some((row.sockets, Large::start(row.sockets)?));
        }
        let pid = host
            .as_ref()
            .map_or(0, |(_, host)| host.0[0].pid())
            .to_string();
        let arguments: Vec<String> = row
            .arguments
            .iter()
            .map(|word| word.replace("{host}", &pid))
            .collect();
        let seen = measure(tool, rounds, |command| {
            command
                .args(["check", "--fail-on", "never"])
                .args(&arguments);
        })?;
        page += &line(row.what, &row.sockets.to_string(), &row.target, &seen);
    }
    Ok(page)
}

/// Judging a capture of the current host.
fn judging(tool: &Rungwise, rounds: usize, bundle: &std::path::Path) -> Result<String> {
    let host = Large::start(5_000)?;
    let mut capture = Command::new(tool.path());
    capture
        .args(["capture", "--quiet", "--for", "3s", "-o"])
        .arg(bundle);
    process::run(&mut capture, Duration::from_mins(1))?;
    drop(host);
    let seen = measure(tool, rounds, |command| {
        command
            .arg("check")
            .arg(bundle)
            .args(["--fail-on", "never"]);
    })?;
    let whole = line(
        "judge a capture: the whole command, including unpacking and printing",
        "5000",
        &Target::None,
        &seen,
    );
    let rules = line(
        "judge a capture: the rules",
        "5000",
        &Target::Once { ms: 50.0, mib: 0.0 },
        &rules(bundle, rounds)?,
    );
    Ok(whole + &rules)
}

/// All rules over the evidence of a capture, in this process.
fn rules(bundle: &std::path::Path, rounds: usize) -> Result<Seen> {
    let evidence = rungwise_probes::evidence(&rungwise_probes::bundle::read(bundle)?);
    let mut seen = Seen::default();
    for _ in 0..rounds {
        let foreign = Window::open(&[std::process::id()]);
        let began = std::time::Instant::now();
        let findings = std::hint::black_box(rungwise_rules::judge(&evidence));
        let took = began.elapsed().as_secs_f64() * 1e3;
        seen.foreign = seen.foreign.max(foreign.close().foreign);
        if findings.is_empty() {
            bail!("no rule had a result for {}", bundle.display());
        }
        // One thread that waits for nothing: its CPU time is at most the clock's.
        seen.clock_ms.push(took);
        seen.cpu_ms.push(took);
    }
    Ok(seen)
}

/// What the rounds used.
#[derive(Default)]
struct Seen {
    cpu_ms: Vec<f64>,
    clock_ms: Vec<f64>,
    peak_mib: Vec<f64>,
    foreign: f64,
}

fn measure(tool: &Rungwise, rounds: usize, describe: impl Fn(&mut Command)) -> Result<Seen> {
    let mut seen = Seen::default();
    for round in 0..rounds {
        eprintln!("check: round {} of {rounds}", round + 1);
        let mut command = Command::new(tool.path());
        describe(&mut command);
        command.args(["--quiet", "--format", "json"]);
        let foreign = Window::open(&[std::process::id()]);
        let began = std::time::Instant::now();
        let done = process::run_any(&mut command, Duration::from_mins(2))?;
        seen.clock_ms.push(began.elapsed().as_secs_f64() * 1e3);
        seen.foreign = seen.foreign.max(foreign.close().foreign);
        if !matches!(done.status, 0 | 3) {
            bail!(
                "{command:?} ended with {}: {}",
                done.status,
                done.stderr.trim()
            );
        }
        seen.cpu_ms.push(done.cpu.as_secs_f64() * 1e3);
        seen.peak_mib.push(done.peak_kib / 1024.0);
    }
    Ok(seen)
}

fn line(what: &str, sockets: &str, target: &Target, seen: &Seen) -> String {
    let (cpu, clock, peak) = (
        median(&seen.cpu_ms),
        median(&seen.clock_ms),
        median(&seen.peak_mib),
    );
    let share = cpu / WATCHED.as_secs_f64() / 10.0;
    let verdict = |met| if met { "met" } else { "missed" };
    let (share, said) = match target {
        Target::Share(most) => (
            format!("{share:.2} %"),
            format!("{:.0} %: {}", most * 100.0, verdict(share / 100.0 < *most)),
        ),
        Target::None => (String::new(), String::new()),
        Target::Once { ms, mib } => {
            let size = if *mib > 0.0 {
                format!(", {mib:.0} MiB")
            } else {
                String::new()
            };
            let small = *mib <= 0.0 || peak < *mib;
            let met = verdict(cpu.max(clock) < *ms && small);
            (String::new(), format!("{ms:.0} ms{size}: {met}"))
        }
    };
    // A window's length is no cost.
    let clock = match target {
        Target::Share(_) => String::new(),
        Target::Once { .. } | Target::None => spread(&seen.clock_ms, 1),
    };
    let peak = if peak.is_nan() {
        String::new()
    } else {
        format!("{peak:.0}")
    };
    format!(
        "| {what} | {sockets} | {} | {share} | {clock} | {peak} | {said} | {:.0} % |\n",
        spread(&seen.cpu_ms, 1),
        seen.foreign * 100.0
    )
}

/// The processes of a large host, the one with the threads first; none has more sockets than it may open.
struct Large(Vec<Server>);

impl Large {
    fn start(sockets: usize) -> Result<Self> {
        let path = std::env::current_exe().context("cannot find this program's own file")?;
        let mut processes = Vec::new();
        for first in (0..sockets).step_by(EACH) {
            let threads = if first == 0 { THREADS } else { 1 };
            let own = EACH.min(sockets - first);
            let mut command = Command::new(&path);
            command.args([HOST, &own.to_string(), &threads.to_string()]);
            let mut process = Server::start(&mut command)?;
            let tasks = format!("/proc/{}/task", process.pid());
            process.wait_until("with its threads and sockets", || {
                // Sockets come first: the threads tell that all of it stands.
                std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > threads)
            })?;
            processes.push(process);
        }
        Ok(Self(processes))
    }
}

/// Is a large host if the words ask for one, until it is killed.
pub(crate) fn stand_if_asked(words: &[String]) -> Option<Result<()>> {
    match words {
        [word, sockets, threads] if word == HOST => Some(stand(sockets, threads)),
        _ => None,
    }
}

fn stand(sockets: &str, threads: &str) -> Result<()> {
    let pairs = sockets
        .parse::<usize>()
        .context("not a number of sockets")?
        / 2;
    let threads = threads.parse().context("not a number of threads")?;
    let mut kept = Vec::with_capacity(2 * pairs);
    let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let target = listener.local_addr()?;
    for _ in 0..pairs {
        kept.push(TcpStream::connect(target)?);
        kept.push(listener.accept()?.0);
    }
    std::thread::scope(|scope| {
        for _ in 0..threads {
            // Parked threads use no CPU; a spurious wake-up parks again.
            scope.spawn(|| {
                loop {
                    std::thread::park();
                }
            });
        }
    });
    Ok(())
}
