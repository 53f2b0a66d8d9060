//! `rungwise tune`: the ladder as it is climbed, and its report.

mod live;

use rungwise_model::Exit;
use rungwise_verbs::Observer as _;
use rungwise_verbs::tune::{self, Climb};

use super::Global;

// Without a doc comment: the help text is that of the request.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: tune::Request,
    /// Print what would be done and change nothing.
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let invocation = global.invocation();
    if args.dry_run {
        global.emit(&tune::plan(&args.request, &invocation)?)?;
        return Ok(Exit::Done);
    }
    let Climb {
        report,
        folder,
        exit,
        failure,
    } = tune::run(&args.request, &mut live::Live::new(global), &invocation)?;
    let printed = report.and_then(|report| {
        global.draw(&report)?;
        global.say(&format!("report: {}", folder.join("report.html").display()));
        Ok(())
    });
    match (printed, failure) {
        (printed, None) => printed.map(|()| exit),
        (printed, Some(failure)) => {
            if let Err(error) = printed {
                global.say(&format!("rungwise: {error:#}"));
            }
            Err(failure)
        }
    }
}
