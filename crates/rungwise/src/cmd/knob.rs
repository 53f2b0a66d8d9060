//! `rungwise knob`: its answers are texts, and a plan may go to a file.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use rungwise_model::Exit;
use rungwise_verbs::Observer as _;
use rungwise_verbs::documents::Format;
use rungwise_verbs::knob;

use super::Global;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Folder of the journals and the instance lock; overrides `RUNGWISE_STATE` and the default.
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(flatten)]
    Asked(knob::Request),
    /// Watches over a journal; started by rungwise itself.
    #[command(hide = true)]
    Guard {
        journal: PathBuf,
        #[arg(long)]
        deadline_ms: Option<u64>,
        #[arg(long)]
        lab: Vec<PathBuf>,
    },
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let request = match &args.what {
        What::Asked(request) => request,
        What::Guard {
            journal,
            deadline_ms,
            lab,
        } => return knob::watch(journal, deadline_ms.map(Duration::from_millis), lab),
    };
    let printed = knob::run(request, args.state.as_deref(), &global.invocation())?;
    // A plan in a file is for `knob apply`, and the terminal is for who reads it first.
    let is_stored = global
        .output
        .as_ref()
        .is_some_and(|path| path.extension().is_some_and(|end| end == "json"));
    if printed.kind == "knob-plan" && is_stored && global.format != Some(Format::Json) {
        global.say(printed.text.trim_end());
        return global.write(&printed, &printed.json);
    }
    global.print(&printed)
}
