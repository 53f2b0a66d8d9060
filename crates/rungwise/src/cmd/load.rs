//! `rungwise load`: the load with its run folder, which it keeps by default.

use rungwise_model::Exit;
use rungwise_verbs::Observer as _;
use rungwise_verbs::load;
use rungwise_verbs::runs::store;

use super::Global;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: load::Request,
    /// Do not keep a run folder; otherwise the document and the latencies go to --runs.
    #[arg(long, global = true, help_heading = "Measurement")]
    no_keep: bool,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let mut measured = load::run(&args.request, &global.invocation())?;
    let latency = [("latency.hdr", measured.latency)];
    let kept = (!args.no_keep).then(|| store::keep(&mut measured.report, &latency, &global.runs));
    let exit = global.draw(&measured.report)?;
    match kept {
        Some(Ok(path)) => global.say(&format!("kept: rungwise report {}", path.display())),
        // The measurement was made and printed; that it is not kept does not spoil it.
        Some(Err(error)) => global.say(&format!("rungwise: {error:#}")),
        None => {}
    }
    Ok(exit)
}
