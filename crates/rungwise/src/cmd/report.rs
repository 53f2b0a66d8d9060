//! `rungwise report`: a finished run once more, in any format.

use std::path::PathBuf;

use anyhow::Context as _;
use rungwise_host::files;
use rungwise_model::Exit;
use rungwise_model::tune::TuneReport;

use super::{Global, output};

/// Show the report of a run again, in any format.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the run.
    run: PathBuf,
}

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let path = args.run.join("measurements.json");
    let bytes = files::read(&path)
        .with_context(|| format!("{} is no folder of a finished run", args.run.display()))?;
    let report: TuneReport = serde_json::from_slice(&bytes)
        .with_context(|| format!("cannot read {} as the result of a run", path.display()))?;
    output::tune(&report, global)?;
    Ok(Exit::Done)
}
