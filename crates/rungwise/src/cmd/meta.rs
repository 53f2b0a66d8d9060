//! Completions and manual pages, generated from the command line's own definition.

use clap::CommandFactory as _;
use clap_complete::Shell;
use rungwise_model::Exit;

use super::{Cli, Global};

/// Print the completion script of a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    shell: Shell,
}

/// Print a manual page (troff).
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The verb and its subverbs; the program itself without.
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
