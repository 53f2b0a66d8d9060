//! `rungwise report`: renders a stored document of any verb, or a run, in any format.

use std::path::{Path, PathBuf};

use rungwise_host::files;
use rungwise_model::Exit;

use super::Global;
use super::documents::Stored;
use super::runs::store::DOCUMENT;

/// Render a stored document or run again, in any format.
///
/// The page is the one that the verb printed, rendered from the document alone: on another machine, on another day, without
/// the original logs, captures and dumps.
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
            "cannot render {}: it has no measurements.json, so it is not the folder of a finished run; name a run from `rungwise runs \
             list`, or continue an interrupted one: rungwise tune --resume {}",
            folder.display(),
            folder.display()
        );
        return Ok(path);
    }
    if let Some(why) = files::why_missing(of) {
        anyhow::bail!(
            "cannot render {}: {why}, and {} contains no run with that id; name a document, a run folder, or a run from `rungwise runs list`",
            of.display(),
            runs.display()
        );
    }
    Ok(of.to_owned())
}
