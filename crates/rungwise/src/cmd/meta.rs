//! Completions, manual pages and schemas, generated from the command line's and the documents' own definitions.

use std::collections::BTreeMap;

use clap::CommandFactory as _;
use clap_complete::Shell;
use rungwise_model::Exit;
use rungwise_verbs::documents;

use super::{Cli, Global};

/// Print the completion script of a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    shell: Shell,
}

/// Print a manual page (troff).
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The verb and its subverbs; without them, the program itself.
    verb: Vec<String>,
}

pub(crate) fn completions(args: &Completions, global: &Global) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "rungwise", &mut script);
    global.emit(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

pub(crate) fn man(args: &Man, global: &Global) -> anyhow::Result<Exit> {
    let mut command = Cli::command();
    command.build();
    for verb in &args.verb {
        command = command
            .find_subcommand(verb)
            .ok_or_else(|| anyhow::anyhow!("rungwise has no verb '{verb}'; see rungwise --help"))?
            .clone();
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    global.emit(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Done)
}

/// The schemas of the documents that belong to verbs alone, as one object; `cargo xtask docs` writes them to files.
pub(crate) fn schemas(global: &Global) -> anyhow::Result<Exit> {
    let all: BTreeMap<_, _> = documents::schemas().into_iter().collect();
    global.emit(&rungwise_report::json(&all)?)?;
    Ok(Exit::Done)
}
