//! `rungwise report`: a stored document of any verb, or a run, once more and in any format.

use std::path::{Path, PathBuf};

use rungwise_host::files;
use rungwise_model::Exit;

use super::Global;
use super::documents::Stored;
use super::runs::store::DOCUMENT;

/// Render a stored document or run again, in any format.
///
/// The page is the one that the verb gave, drawn from the document alone: from another machine, another day, without the logs,
/// captures and dumps that it is about.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A document (`rungwise VERB --format json -o FILE`, `-` for standard input), a run folder, or the id of a run in --runs.
    #[arg(value_name = "FILE|RUN")]
    of: PathBuf,
}

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    Stored::read(&document(&args.of, &global.runs)?)?.draw(global)?;
    Ok(Exit::Done)
}

/// The file of the document: of a run, the one in its folder.
pub(super) fn document(of: &Path, runs: &Path) -> anyhow::Result<PathBuf> {
    if of.to_str() == Some("-") {
        return Ok("/dev/stdin".into());
    }
    if let Ok(folder) = super::runs::resolve(of, runs) {
        let path = folder.join(DOCUMENT);
        anyhow::ensure!(
            files::exists(&path),
            "cannot draw {}: it has no measurements.json, so it is no folder of a finished run; name a run of `rungwise runs list`, \
             or go on with an interrupted one: rungwise tune --resume {}",
            folder.display(),
            folder.display()
        );
        return Ok(path);
    }
    if let Some(why) = files::why_missing(of) {
        anyhow::bail!(
            "cannot draw {}: {why}, and {} holds no run of that id; name a document, a run folder, or a run of `rungwise runs list`",
            of.display(),
            runs.display()
        );
    }
    Ok(of.to_owned())
}
