//! The stub of a workload: `crates/load/src/workloads/<id>.rs`, its `mod` line and its registry entry.
//!
//! The first one brings the registry along.

use anyhow::{Context as _, Result};

use super::{Draft, STUB, add_mod, enter, module, word};

const CRATE: &str = "crates/load/src/lib.rs";
const LIST: &str = "crates/load/src/workloads/mod.rs";

const WORKLOADS: &str = "//! The workloads, one file each, sorted by id.

use std::net::SocketAddr;
use std::time::Duration;

use rungwise_model::load::Measurement;

/// Traffic of one shape and what it measures.
#[derive(Debug)]
pub struct Workload {
    /// Names the shape.
    pub id: &'static str,
    /// Markdown: who talks to whom, message shapes, arrival schedule, stop rule.
    pub doc: &'static str,
    /// Drives the target for the given time; the error says what was tried and what to do.
    pub run: fn(SocketAddr, Duration) -> Result<Measurement, String>,
}

/// Every workload of this registry.
pub const WORKLOADS: &[&Workload] = &[];
";

const WORKLOAD: &str = r#"//! `{ID}`: {STUB}, what this is, the idea, the source.

use std::net::SocketAddr;
use std::time::Duration;

use rungwise_model::load::Measurement;

use super::Workload;

pub(crate) const WORKLOAD: Workload = Workload {
    id: "{ID}",
    doc: "{STUB}: who talks to whom, message shapes, connections, arrival schedule, stop rule",
    run,
};

fn run(_target: SocketAddr, _window: Duration) -> Result<Measurement, String> {
    Err("{STUB}".to_owned())
}
"#;

pub(super) fn write(draft: &mut Draft<'_>, id: &str) -> Result<()> {
    word(id, "rpc-echo")?;
    let module = module(id);
    let fill = |text: &str| text.replace("{STUB}", STUB).replace("{ID}", id);
    draft.create(
        format!("crates/load/src/workloads/{module}.rs"),
        fill(WORKLOAD),
    )?;
    if draft.text(LIST).is_none() {
        let lib = draft
            .text(CRATE)
            .with_context(|| format!("cannot read {CRATE}"))?;
        let lib = add_mod(&lib, "workloads")?.replace("\nmod workloads;", "\npub mod workloads;");
        draft.edit(CRATE, "", |_| Ok(lib))?;
    }
    draft.edit(LIST, WORKLOADS, |text| {
        enter(
            text,
            &module,
            "WORKLOADS: &[&Workload] = &[",
            &format!("&{module}::WORKLOAD"),
        )
    })
}
