//! The command line: its verbs and options. What they do is in `rungwise-verbs`; verbs with output or options of their own have a file here.

mod jvm;
mod knob;
mod load;
mod meta;
mod output;
mod serve;
mod tune;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rungwise_model::Exit;
use rungwise_verbs::Observer as _;
use rungwise_verbs::documents::{self, Format, Stored};
use rungwise_verbs::{capacity, capture, check, compare, explain, profile, runs};

/// Find the bottleneck of a network service, change one thing, keep only what measurably helps.
#[derive(Debug, Parser)]
#[command(name = "rungwise", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options that every verb takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Output format; by default text, or inferred from the extension of -o. `sarif` (code-scanning pages) contains findings only.
    #[arg(long, value_enum, global = true)]
    format: Option<Format>,
    /// Write the result to FILE instead of standard output.
    #[arg(short, long, value_name = "FILE", global = true)]
    output: Option<PathBuf>,
    /// When to use colour; `NO_COLOR` is obeyed.
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true)]
    color: Color,
    /// Print the result only, no progress.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Folder that holds the run folders.
    #[arg(long, value_name = "DIR", default_value = "runs", global = true)]
    runs: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

// Without a doc comment: the help text is that of the request.
#[derive(Debug, Args)]
pub(crate) struct Kept<T: Args> {
    #[command(flatten)]
    request: T,
    /// Keep the document, its page and checksums in a run folder below --runs.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Find the bottleneck: judge this host, a process on it, or a capture of another.
    Check(Kept<check::Request>),
    /// Record what `check` reads, to judge it later, elsewhere, or as a bug report.
    Capture(capture::Request),
    /// Compare two hosts, two GC logs, two profiles or two stored documents.
    Compare(Kept<compare::Request>),
    /// Climb a ladder on a service: change one thing at a time, measure in pairs, keep what helps.
    Tune(tune::Args),
    /// Drive a service and measure it.
    Load(Box<load::Args>),
    /// Run a server to measure against.
    #[command(subcommand)]
    Serve(serve::What),
    /// Show, plan, apply, verify and undo settings of this host.
    Knob(knob::Args),
    /// Model the GC frequency of a load, or what a rate of remote calls needs.
    #[command(subcommand)]
    Capacity(Capacity),
    /// Judge a JVM: its flags, its GC logs, its thread dumps.
    #[command(subcommand)]
    Jvm(jvm::Question),
    /// Profile a running process, or show a recorded profile: hot frames, hottest paths, threads, flame graph.
    Profile(Kept<profile::Request>),
    /// Render a stored document or run again, in any format.
    Report {
        /// A document (`rungwise VERB --format json -o FILE`, `-` for standard input), a run folder, or the id of a run in --runs.
        #[arg(value_name = "FILE|RUN")]
        of: PathBuf,
    },
    /// List, show and verify kept runs, and remove old ones.
    #[command(subcommand)]
    Runs(runs::Request),
    /// Explain a rule, a knob or a probe.
    Explain(explain::Request),
    /// Print the completion script of a shell.
    Completions(meta::Completions),
    /// Print a manual page.
    Man(meta::Man),
    /// Print JSON schemas; for `cargo xtask docs`.
    #[command(hide = true)]
    Schemas,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Capacity {
    /// Model the GC frequency from a load or a GC log, also with other heap sizes.
    Gc(Kept<capacity::gc::Request>),
    /// Calculate the connections, threads and link that a rate of remote calls needs.
    Rpc(Kept<capacity::rpc::Request>),
}

impl Verb {
    pub(crate) fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        if global.format() == Format::Sarif && !matches!(self, Self::Check(_) | Self::Report { .. })
        {
            anyhow::bail!(
                "only the findings of `rungwise check` can be written as SARIF; use --format json"
            );
        }
        // Reported before the work, which takes its time.
        global.check_output()?;
        let invocation = &global.invocation();
        match self {
            Self::Check(Kept { request, keep }) => match check::run(request, invocation)? {
                check::Checked::Host(mut report) => global.finish(&mut *report, *keep),
                check::Checked::GcLog(mut report) => global.finish(&mut *report, *keep),
                check::Checked::Recording(mut report) => global.finish(&mut *report, *keep),
                check::Checked::Dumps(mut report) => global.finish(&mut *report, *keep),
            },
            Self::Capture(request) => record(request, global),
            Self::Compare(Kept { request, keep }) => {
                global.finish(&mut compare::run(request, invocation)?, *keep)
            }
            Self::Capacity(Capacity::Gc(Kept { request, keep })) => {
                global.finish(&mut capacity::gc::run(request, invocation)?, *keep)
            }
            Self::Capacity(Capacity::Rpc(Kept { request, keep })) => {
                global.finish(&mut capacity::rpc::run(request, invocation)?, *keep)
            }
            Self::Tune(args) => tune::run(args, global),
            Self::Load(args) => load::run(args, global),
            Self::Serve(what) => serve::run(what, global),
            Self::Knob(args) => knob::run(args, global),
            Self::Jvm(question) => jvm::run(question, global),
            Self::Profile(Kept { request, keep }) => match profile::run(request, invocation)? {
                profile::Answer::Report(mut report) => global.finish(&mut *report, *keep),
                profile::Answer::Export(text, exit) => {
                    global.emit(&text)?;
                    Ok(exit)
                }
            },
            Self::Report { of } => {
                let stored = Stored::read(&documents::locate(of, &global.runs)?)?;
                global.emit(&stored.render(global.form(), global)?)?;
                Ok(Exit::Done)
            }
            Self::Runs(request) => match runs::run(request, invocation)? {
                runs::Answer::List(mut report) => global.finish(&mut report, false),
                runs::Answer::Prune(mut report) => global.finish(&mut report, false),
            },
            Self::Explain(request) => global.print(&explain::run(request, invocation)?),
            Self::Completions(args) => meta::completions(args, global),
            Self::Man(args) => meta::man(args, global),
            Self::Schemas => meta::schemas(global),
        }
    }
}

/// `rungwise capture`: a capture is a file, and nothing else.
fn record(request: &capture::Request, global: &Global) -> anyhow::Result<Exit> {
    let Some(path) = &global.output else {
        anyhow::bail!("name the file to write: rungwise capture -o host.rungwise");
    };
    let captured = capture::run(request, &global.invocation())?;
    output::keep(path, &captured.packed)?;
    global.say(&format!(
        "{}: {} bytes, {} samples, {} files; judge it with: rungwise check {}",
        path.display(),
        captured.packed.len(),
        captured.samples,
        captured.files,
        path.display()
    ));
    Ok(captured.exit)
}
