//! Side-by-side runs of rungwise and its peers: same machine, same minute, alternating order.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml -- all` as root installs the peers, builds rungwise,
//! makes two network namespaces and prints Markdown tables for `docs/benchmarks.md`. What is compared is
//! the median of each side and of the ratio within a round, because a machine drifts from round to round.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a bench starts programs, reads clocks and files, and says how far it is"
)]
#![cfg_attr(
    test,
    expect(clippy::float_cmp, reason = "figures are read, not computed")
)]

mod aa;
mod bare;
mod check;
mod connections;
mod counters;
mod cpu;
mod depth1;
mod dns;
mod dumps;
mod gclog;
mod gcpeers;
mod gcstream;
mod http;
mod lab;
mod ladder;
mod machine;
mod numbers;
mod process;
mod rungwise;
mod threads;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: rungwise-benches [dns|http|depth1|ladder|aa|check|gclog|gcpeers|gcstream|threads|dumps|counters|connections|all] [--rounds N] [--seconds N] [--repeats N] [--foreign N,N] [--binary FILE] [-o FILE]

  dns      rungwise load udp --dns and dnsperf against the same nsd
  http     rungwise load http and wrk against the same nginx
  depth1   rungwise and sockperf ping-pong, each against its own echo server
  ladder   CPU per transaction of server and client, compared with bare loops; same-flow bursts
  aa       repeats of tune with identical variants: false keeps
  check    CPU, time and memory of check: watching, one sample, judging a capture
  gclog    the GC log parser against grep; needs neither root nor a build of rungwise
  gcpeers  jvm gc against GCViewer and GCToolkit, which Maven fetches; needs no root
  gcstream memory and speed over 5 GB of log, its page, --follow on a quiet log; needs no root
  threads  the thread dump parser against grep; needs neither root nor a build of rungwise
  dumps    a JVM under load with thread dumps and without, in pairs; needs a JDK, and no root
  counters the Spring Boot service of a lab with its thread counters read each second and without, in pairs; needs a JDK and Maven, and no root
  connections  half a million connections of this machine to itself: time, errors, memory; needs about 6 GB, and no root
  all      all thirteen benches

  --rounds N    interleaved rounds of each comparison (5)
  --seconds N   length of each run (5)
  --repeats N   repeats of the A/A ladder (20)
  --foreign N,N shares of a CPU, in percent, that a program uses beside the A/A ladders (none)
  --binary FILE use this rungwise instead of a release build of the checkout
  -o FILE       write the tables to FILE instead of standard output";

/// What was asked for.
struct Args {
    what: String,
    rounds: usize,
    window: Duration,
    repeats: usize,
    foreign: Vec<u32>,
    binary: Option<PathBuf>,
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rungwise-benches: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(done) = bare::run_if_asked(&words) {
        return done;
    }
    if let Some(done) = check::stand_if_asked(&words) {
        return done;
    }
    if let Some(done) = gclog::read_if_asked(&words) {
        return done;
    }
    if let Some(done) = threads::read_if_asked(&words) {
        return done;
    }
    let args = parse(words.into_iter())?;
    process::stop_on_signals();
    if args.what == "gclog" {
        return write(args.output.as_deref(), &gclog::speed(args.rounds)?);
    }
    if args.what == "threads" {
        return write(args.output.as_deref(), &threads::speed(args.rounds)?);
    }
    if let "gcpeers" | "gcstream" | "dumps" | "counters" | "connections" = &*args.what {
        let tool = tool(args.binary)?;
        let page = match &*args.what {
            "connections" => connections::measure(&tool, args.rounds)?,
            "counters" => counters::cost(&tool, args.rounds, args.window)?,
            "dumps" => dumps::cost(&tool, args.rounds, args.window)?,
            "gcpeers" => gcpeers::compare(&tool, args.rounds)?,
            _ => gcstream::cost(&tool, args.rounds, args.window)?,
        };
        return write(args.output.as_deref(), &page);
    }
    machine::check_root()?;
    let wanted = |name: &str| args.what == name || args.what == "all";
    let mut needed = vec![("ip", "iproute2"), ("taskset", "util-linux")];
    if wanted("dns") {
        needed.extend([("dnsperf", "dnsperf"), ("nsd", "nsd")]);
    }
    if wanted("http") {
        needed.extend([("wrk", "wrk"), ("nginx", "nginx-light")]);
    }
    if wanted("depth1") {
        needed.push(("sockperf", "sockperf"));
    }
    if wanted("gcpeers") || wanted("counters") {
        needed.extend([("mvn", "maven"), ("javac", "default-jdk-headless")]);
    }
    machine::install(&needed)?;
    let tool = tool(args.binary)?;

    let mut page = machine::describe(&tool);
    if wanted("dns") {
        page += &dns::compare(&tool, args.rounds, args.window)?;
    }
    if wanted("http") {
        page += &http::compare(&tool, args.rounds, args.window)?;
    }
    if wanted("depth1") {
        page += &depth1::compare(&tool, args.rounds, args.window)?;
    }
    if wanted("ladder") {
        page += &ladder::measure(&tool, args.rounds, args.window)?;
    }
    if wanted("aa") {
        page += &aa::count(&tool, args.repeats, &args.foreign)?;
    }
    if wanted("check") {
        page += &check::cost(&tool, args.rounds)?;
    }
    if wanted("gclog") {
        page += &gclog::speed(args.rounds)?;
    }
    if wanted("gcpeers") {
        page += &gcpeers::compare(&tool, args.rounds)?;
    }
    if wanted("gcstream") {
        page += &gcstream::cost(&tool, args.rounds, args.window)?;
    }
    if wanted("threads") {
        page += &threads::speed(args.rounds)?;
    }
    if wanted("dumps") {
        page += &dumps::cost(&tool, args.rounds, args.window)?;
    }
    if wanted("counters") {
        page += &counters::cost(&tool, args.rounds, args.window)?;
    }
    if wanted("connections") {
        page += &connections::measure(&tool, args.rounds)?;
    }
    write(args.output.as_deref(), &page)
}

/// The program under test.
fn tool(binary: Option<PathBuf>) -> Result<rungwise::Rungwise> {
    match binary {
        Some(path) => Ok(rungwise::Rungwise::at(path)),
        None => rungwise::Rungwise::build(),
    }
}

fn write(output: Option<&Path>, page: &str) -> Result<()> {
    if let Some(path) = output {
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
    } else {
        print!("{page}");
        Ok(())
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args> {
    let mut args = Args {
        what: "all".to_owned(),
        rounds: 5,
        window: Duration::from_secs(5),
        repeats: 20,
        foreign: Vec::new(),
        binary: None,
        output: None,
    };
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word} needs a value\n{USAGE}"))
        };
        match word.as_str() {
            "dns" | "http" | "depth1" | "ladder" | "aa" | "check" | "gclog" | "gcpeers"
            | "gcstream" | "threads" | "dumps" | "counters" | "connections" | "all" => {
                args.what = word;
            }
            "--rounds" => args.rounds = value()?.parse().context("--rounds takes a number")?,
            "--seconds" => {
                args.window =
                    Duration::from_secs(value()?.parse().context("--seconds takes a number")?);
            }
            "--repeats" => args.repeats = value()?.parse().context("--repeats takes a number")?,
            "--foreign" => {
                args.foreign = (value()?.split(','))
                    .map(|share| share.parse().ok().filter(|share| (1..=100).contains(share)))
                    .collect::<Option<_>>()
                    .context("--foreign takes percentages from 1 to 100, separated by commas")?;
            }
            "--binary" => args.binary = Some(value()?.into()),
            "-o" => args.output = Some(value()?.into()),
            _ => bail!("unknown argument {word}\n{USAGE}"),
        }
    }
    if args.rounds == 0 || args.window.is_zero() || args.repeats == 0 {
        bail!("rounds, seconds and repeats must be at least 1\n{USAGE}");
    }
    Ok(args)
}
