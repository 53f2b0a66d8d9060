//! `rungwise capacity`: predictions, one file per question.

mod asked;
mod gc;

use rungwise_model::Exit;

use super::Global;

/// Predict the effects of a load.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, clap::Subcommand)]
enum Question {
    /// Model the GC frequency from a load or a GC log, also with other heap sizes.
    Gc(gc::Args),
}

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    match &args.question {
        Question::Gc(args) => gc::run(args, global),
    }
}
