//! placeholder
use rungwise_model::Exit;
use super::Global;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, _global: &Global) -> anyhow::Result<Exit> {
    anyhow::bail!("not here yet")
}
