//! The verbs, one file each; their arguments live beside their code.

mod capacity;
mod capture;
mod check;
mod compare;
mod documents;
mod explain;
mod jvm;
mod knob;
mod load;
mod meta;
mod network;
mod output;
mod report;
mod runs;
mod serve;
mod tune;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rungwise_model::Exit;

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
    pub(crate) format: Option<Format>,
    /// Write the result to FILE instead of standard output.
    #[arg(short, long, value_name = "FILE", global = true)]
    pub(crate) output: Option<PathBuf>,
    /// When to use colour; `NO_COLOR` is obeyed.
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true)]
    pub(crate) color: Color,
    /// Print the result only, no progress.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Folder that holds the run folders.
    #[arg(long, value_name = "DIR", default_value = "runs", global = true)]
    pub(crate) runs: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Markdown,
    Html,
    // A doc comment here would turn every help text into its long form.
    Sarif,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Find the bottleneck: judge this host, a process on it, or a capture of another.
    Check(check::Args),
    /// Record what `check` reads, to judge it later, elsewhere, or as a bug report.
    Capture(capture::Args),
    /// Compare two hosts, two GC logs or two stored documents.
    Compare(compare::Args),
    /// Climb a ladder on a service: change one thing at a time, measure in pairs, keep what helps.
    Tune(tune::Args),
    /// Drive a service and measure it.
    Load(load::Args),
    /// Run a server to measure against.
    Serve(serve::Args),
    /// Show, plan, apply, verify and undo settings of this host.
    Knob(knob::Args),
    /// Model the GC frequency of a load.
    Capacity(capacity::Args),
    /// Judge a JVM: its flags, its GC logs, its thread dumps.
    Jvm(jvm::Args),
    /// Render a stored document or run again, in any format.
    Report(report::Args),
    /// List, show and verify kept runs, and remove old ones.
    Runs(runs::Args),
    /// Explain a rule, a knob or a probe.
    Explain(explain::Args),
    /// Print the completion script of a shell.
    Completions(meta::Completions),
    /// Print a manual page.
    Man(meta::Man),
    /// Print JSON schemas; for `cargo xtask docs`.
    #[command(hide = true)]
    Schemas,
}

impl Verb {
    pub(crate) fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        if global.format() == Format::Sarif && !matches!(self, Self::Check(_) | Self::Report(_)) {
            anyhow::bail!(
                "only the findings of `rungwise check` can be written as SARIF; use --format json"
            );
        }
        // Told before the work, which takes its time.
        global.check_output()?;
        match self {
            Self::Check(args) => check::run(args, global),
            Self::Capacity(args) => capacity::run(args, global),
            Self::Capture(args) => capture::run(args, global),
            Self::Compare(args) => compare::run(args, global),
            Self::Tune(args) => tune::run(args, global),
            Self::Load(args) => load::run(args, global),
            Self::Serve(args) => serve::run(args, global),
            Self::Knob(args) => knob::run(args, global),
            Self::Jvm(args) => jvm::run(args, global),
            Self::Report(args) => report::run(args, global),
            Self::Runs(args) => runs::run(args, global),
            Self::Explain(args) => explain::run(args, global),
            Self::Completions(args) => meta::completions(args, global),
            Self::Man(args) => meta::man(args, global),
            Self::Schemas => meta::schemas(global),
        }
    }
}
