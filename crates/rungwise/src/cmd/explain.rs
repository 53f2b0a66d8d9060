//! `rungwise explain`: what a knob does, when it helps, what it costs, how it is undone, where that is from.

use rungwise_model::Exit;

use super::{Format, Global};
use crate::problem::Problem;

/// Explain a knob by its id.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of a knob, such as `net.rps_cpus`; `rungwise knob list` shows all.
    id: String,
}

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let knob =
        rungwise_knobs::find(&args.id).map_err(|error| Problem::with(error.exit(), error))?;
    let page = knob.page();
    if global.format == Format::Json {
        let document = serde_json::json!({ "id": knob.id, "page": page });
        global.emit(&format!("{document:#}\n"))?;
    } else {
        global.emit(&page)?;
    }
    Ok(Exit::Done)
}
