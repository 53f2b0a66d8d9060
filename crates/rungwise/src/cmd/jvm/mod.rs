//! `rungwise jvm`: judges a JVM, one file per question.

pub(super) mod flags;
pub(super) mod gc;
mod input;
mod target;
pub(super) mod threads;
mod utf16;
mod zip;

use rungwise_model::Exit;

use super::Global;

/// Judge a JVM: its flags, its GC logs, its thread dumps.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, clap::Subcommand)]
enum Question {
    /// Judge the options of a JVM, or move them to another JDK.
    Flags(flags::Args),
    /// Analyse GC logs: findings, pauses, memory.
    Gc(gc::Args),
    /// Analyse thread dumps: deadlocks, contended locks and pools, hot threads.
    Threads(threads::Args),
}

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    match &args.question {
        Question::Flags(args) => flags::run(args, global),
        Question::Gc(args) => gc::run(args, global),
        Question::Threads(args) => threads::run(args, global),
    }
}
