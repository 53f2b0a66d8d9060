//! `cargo xtask faults`: truth as a number. Plants faults, confirms each by other means, asks `rungwise`, and scores what it says.
//!
//! Kinds are data (`xtask/faults`); a trial follows from a seed. Whether a fault hurts is decided by the load alone: the rate and the tail of
//! a client with a fixed schedule, with the fault and without. So the reader is compared with harm, not with what was planted.

#![expect(clippy::print_stdout, reason = "the table is the result of the chore")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use self::host::{Pace, Programs};
use self::kept::Trial;
use self::kinds::{Kinds, Layer};
use self::plan::{Plan, Wanted, What};
use self::score::{Harm, Said, Score};
use self::shell::Interrupted;
use self::table::Row;
use crate::tree::Tree;
use crate::{jvms, packages, test};

pub mod app;
pub mod bench;
pub mod client;
pub mod host;
pub mod jars;
pub mod jvm;
pub mod kept;
pub mod kinds;
pub mod memory;
pub mod plan;
pub mod score;
pub mod shell;
pub mod subjects;
pub mod table;

/// Exit status when a program, a JVM or root is missing.
const PRECONDITION: u8 = 4;
/// Where lines for later analysis go.
const LINES: &str = "target/faults";

/// Plant faults, run rungwise, and score its findings.
#[derive(Clone, Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct Options {
    /// Run N random trials instead of the small fixed set.
    #[arg(long, value_name = "N")]
    random: Option<usize>,
    /// Measure a curve: N trials of each kind at evenly spaced severities, in its first place, without a second fault or neighbour.
    #[arg(long, value_name = "N", requires = "kind", conflicts_with_all = ["random", "severity", "rehearse"], value_parser = clap::value_parser!(u16).range(2..))]
    steps: Option<u16>,
    /// Seed of the random trials; default: taken from the clock and printed.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Only these kinds; may be repeated.
    #[arg(long, value_name = "ID")]
    kind: Vec<String>,
    /// Only this layer.
    #[arg(long, value_enum)]
    layer: Option<Layer>,
    /// The same severity in all trials, from 0 (harmless) to 1 (ruinous).
    #[arg(long, value_name = "0..1")]
    severity: Option<f64>,
    /// Print the kinds, with the rules that name each, and plant nothing.
    #[arg(long)]
    list: bool,
    /// Plant each kind briefly under little load and print what confirms it; no reader is judged.
    #[arg(long, conflicts_with = "write")]
    rehearse: bool,
    /// Store these trials beside the stored ones, and write docs/truth.md and the curves of rules from all of them.
    #[arg(long)]
    write: bool,
    /// Plant nothing; read the trials of an earlier run from its lines in FILE, or stored trials. May be repeated.
    #[arg(long, value_name = "FILE", requires = "write", conflicts_with_all = ["random", "steps", "kind", "layer", "severity", "rehearse"])]
    from: Vec<PathBuf>,
    /// Only check that the packages are installed; install nothing.
    #[arg(long)]
    no_install: bool,
    /// The rungwise to judge; default: target/release/rungwise or target/debug/rungwise, whichever is newer.
    #[arg(long, value_name = "PATH")]
    rungwise: Option<PathBuf>,
}

/// Runs the trials. Exit status 1 where a fault that hurts was denied.
pub fn run(tree: &Tree, options: &Options) -> Result<ExitCode> {
    let kinds = Kinds::built_in()?;
    for id in &options.kind {
        kinds.must_know(id)?;
    }
    if options.list {
        print!("{}", table::list(&kinds, &known_rules()));
        return Ok(ExitCode::SUCCESS);
    }
    if !options.from.is_empty() {
        let mut trials = Vec::new();
        for file in &options.from {
            trials.extend(kept::read(file)?);
        }
        for trial in &mut trials {
            trial.judge_again(&kinds);
        }
        let rows: Vec<Row> = trials.iter().map(|trial| trial.row.clone()).collect();
        print!("{}", table::totals(&rows));
        kept::write(tree, &kinds, trials)?;
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = Wanted {
        ids: options.kind.clone(),
        layer: options.layer,
        severity: options.severity.map(|severity| severity.clamp(0.0, 1.0)),
    };
    let seed = options.seed.unwrap_or_else(|| {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        clock.map_or(1, |time| time.as_secs())
    });
    let plans = match (options.random, options.steps) {
        (Some(count), _) => Plan::random(&kinds, &wanted, count, seed),
        (None, Some(count)) => Plan::steps(&kinds, &wanted, count, seed),
        (None, None) => Plan::fixed(&kinds, &wanted),
    };
    let Some(rungwise) = options.rungwise.clone().or_else(|| built(tree)) else {
        eprintln!("xtask: rungwise is not built; run `cargo build` first, or pass --rungwise PATH");
        return Ok(ExitCode::from(PRECONDITION));
    };
    if !test::provide(options.no_install)? {
        return Ok(ExitCode::from(PRECONDITION));
    }
    if plans.iter().any(|plan| matches!(plan.what, What::Jvm(_))) {
        jvms::provide(options.no_install)?;
    }
    let missing = missing(&kinds, &plans);
    if !missing.is_empty() {
        for line in missing {
            eprintln!("xtask: {line}");
        }
        return Ok(ExitCode::from(PRECONDITION));
    }
    let programs = Programs {
        rungwise: rungwise
            .canonicalize()
            .with_context(|| format!("cannot find {}", rungwise.display()))?,
        rehearses: options.rehearse,
        pace: if options.random.is_some() || options.steps.is_some() {
            Pace::ORDINARY
        } else {
            Pace::SHORT
        },
        xtask: std::env::current_exe().context("cannot find our own program")?,
    };
    let command = command_line(options, seed);
    eprintln!("xtask: {} trials: {command}", plans.len());
    bench::clean_stale();
    let interrupted = Interrupted::by_signals()?;
    let folder = tree.join(LINES);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    // One seed draws other trials for each layer.
    let layer = (options.layer).map_or(String::new(), |layer| format!("-{}", layer.name()));
    let name = match (options.random, options.steps) {
        (Some(_), _) => format!("{seed}{layer}.jsonl"),
        (None, Some(_)) => format!("steps-{seed}{layer}.jsonl"),
        (None, None) => "fixed.jsonl".to_owned(),
    };
    let mut lines = std::fs::File::create(folder.join(&name))
        .context("cannot create the lines for analysis")?;
    let mut jvms = jvm::Jvms::new(tree);
    let mut rows = Vec::new();
    let mut trials = Vec::new();
    let day = kept::day(None)?;
    for plan in &plans {
        let mut second = Harm::Harmless;
        let tried = match &plan.what {
            What::Host(host) => host::run(host, plan.number, &kinds, &programs, &interrupted).map(|tried| {
                let void = if options.rehearse {
                        Some(tried.confirmed.clone().unwrap_or_else(|why| format!("not confirmed: {why}")))
                    } else {
                        tried.void()
                    };
                let facts = json!({
                    "load": host.load, "with_pid": host.with_pid, "params": host.params,
                    "without": tried.without, "with": tried.with, "after": tried.after,
                    "confirmed": tried.confirmed.as_ref().ok(), "unconfirmed": tried.confirmed.as_ref().err(),
                    "check_s": tried.check.as_secs_f64(),
                    "cured": tried.cure.as_ref().and_then(|cure| cure.load.as_ref().ok()),
                });
                let cured = tried.cured();
                if matches!(host.beside, plan::Beside::Fault(_)) {
                    second = Harm::between(&tried.after, &tried.without);
                }
                (tried.harm(), void, table::measured(&tried), facts, cured, tried.document, tried.verdict, Some(tried.subjects))
            }),
            What::Jvm(plan) => jvms.run(plan, &programs, &interrupted).map(|tried| {
                let facts = json!({"params": plan.params, "jdk": plan.jdk, "collector": plan.collector, "confirmed": tried.confirmed});
                (tried.harm, tried.void, tried.confirmed, facts, None, tried.document, tried.verdict, None)
            }),
        };
        interrupted.check()?;
        let (harm, void, measured, facts, cured, document, verdict, subjects) = tried
            .unwrap_or_else(|error| {
                (
                    Harm::Harmless,
                    Some(format!("{error:#}")),
                    String::new(),
                    Value::Null,
                    None,
                    Value::Null,
                    String::new(),
                    None,
                )
            });
        let said = Said::from_document(&document, &verdict, subjects.as_ref());
        let elsewhere = said.acts.iter().filter(|act| act.is_elsewhere);
        let elsewhere: BTreeSet<&str> = elsewhere.map(|act| act.rule.as_str()).collect();
        let expects = plan.expects();
        let score = match &void {
            Some(_) => Score::Void,
            None => match Score::rate(harm, second, &expects, &said) {
                Score::FalseAct if plan.forewarned(&said.acts) => Score::Weak,
                score => score,
            },
        };
        let row = Row {
            number: plan.number,
            id: plan.id().to_owned(),
            place: plan.place(),
            severity: plan.severity,
            harm,
            measured,
            said: void.clone().unwrap_or_else(|| said.first.clone()),
            score,
            beside: if matches!(score, Score::First | Score::Named) {
                expects.beside(&said.acts)
            } else {
                Vec::new()
            },
            cured: cured.filter(|_| void.is_none()),
        };
        println!("{}", row.line());
        let line = json!({
            "command": command, "day": day, "number": plan.number, "kind": row.id, "place": row.place, "severity": row.severity, "harm": harm,
            "measured": row.measured, "said": row.said, "score": score, "beside": row.beside, "cured": row.cured, "void": void, "expects": expects.own, "second": expects.second, "facts": facts,
            "verdict": verdict, "elsewhere": elsewhere, "standing": document["standing"], "findings": document["findings"], "resources": document["resources"],
        });
        writeln!(lines, "{line}").context("cannot write the lines for analysis")?;
        if matches!(
            score,
            Score::Watched | Score::WrongSubject | Score::Missed | Score::Denied | Score::FalseAct
        ) {
            // With all its readings: what a wrong answer rests on.
            let stem = name.trim_end_matches(".jsonl");
            let path = folder.join(format!("{stem}-{}.json", plan.number));
            std::fs::write(&path, document.to_string())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        trials.push(Trial::parse(&line, &day)?);
        rows.push(row);
    }
    print!("{}", table::totals(&rows));
    eprintln!("xtask: rules and values of each trial: {LINES}/{name}");
    if options.write {
        kept::write(tree, &kinds, trials)?;
    }
    let denied = rows.iter().any(|row| row.score == Score::Denied);
    Ok(ExitCode::from(u8::from(denied)))
}

/// Drives a service as an order says and prints what was seen, for `faults`.
pub fn load(order: &str) -> Result<ExitCode> {
    let order = serde_json::from_str(order).context("cannot parse the order (JSON)")?;
    println!("{}", serde_json::to_string(&client::drive(&order))?);
    Ok(ExitCode::SUCCESS)
}

/// The command that repeats the run.
fn command_line(options: &Options, seed: u64) -> String {
    let mut command = "cargo xtask faults".to_owned();
    if let Some(count) = options.random {
        let _ = write!(command, " --random {count} --seed {seed}");
    }
    if let Some(count) = options.steps {
        let _ = write!(command, " --steps {count} --seed {seed}");
    }
    for id in &options.kind {
        let _ = write!(command, " --kind {id}");
    }
    if let Some(layer) = options.layer {
        let _ = write!(command, " --layer {}", layer.name());
    }
    if let Some(severity) = options.severity {
        let _ = write!(command, " --severity {severity}");
    }
    command
}

/// The newest `rungwise` of the target folder.
fn built(tree: &Tree) -> Option<PathBuf> {
    let changed = |path: &PathBuf| {
        std::fs::metadata(path)
            .and_then(|meta| meta.modified())
            .ok()
    };
    ["target/release/rungwise", "target/debug/rungwise"]
        .map(|path| tree.join(path))
        .into_iter()
        .filter(|path| path.is_file())
        .max_by_key(changed)
}

/// Rules that exist.
fn known_rules() -> BTreeSet<String> {
    rungwise_rules::RULES
        .iter()
        .map(|rule| rule.id.to_string())
        .collect()
}

/// What is missing for these trials, a line each.
fn missing(kinds: &Kinds, plans: &[Plan]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut programs = BTreeSet::new();
    for plan in plans {
        if let What::Host(plan) = &plan.what {
            if !packages::is_root() {
                lines.push("host faults are planted in network namespaces: run as root, or choose --layer jvm".to_owned());
                return lines;
            }
            programs.extend(["ip", "tc", "nft", "nsenter", "strace", "perl", "ss"]);
            let services = kinds
                .services
                .iter()
                .filter(|service| service.id == plan.service);
            programs
                .extend(services.flat_map(|service| service.programs.iter().map(String::as_str)));
        } else {
            programs.insert("javac");
        }
    }
    for program in programs {
        if packages::find(program).is_none() {
            let package = packages::PACKAGES
                .iter()
                .find(|package| package.program == program);
            let package = package.map_or_else(String::new, |package| {
                format!(": apt-get install {}", package.name)
            });
            lines.push(format!("needs {program}{package}"));
        }
    }
    lines
}
