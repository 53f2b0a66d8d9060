//! The stub of a workload: `crates/load/src/workloads/<id>.rs`, its `mod` line and its registry entry.

use anyhow::Result;

use super::{Draft, STUB, enter, module, word};

const LIST: &str = "crates/load/src/workloads/mod.rs";

const WORKLOAD: &str = r#"//! `{ID}`: {STUB}, what this is, the idea, the source.

use super::Workload;

pub(super) const WORKLOAD: Workload = Workload {
    id: "{ID}",
    summary: "{STUB}: what travels",
    by_hand: false,
    doc: "{STUB}: who talks to whom, message shapes, connections, arrival schedule, stop rule",
};
"#;

pub(super) fn write(draft: &mut Draft<'_>, id: &str) -> Result<()> {
    word(id, "rpc-echo")?;
    let module = module(id);
    let text = WORKLOAD.replace("{STUB}", STUB).replace("{ID}", id);
    draft.create(format!("crates/load/src/workloads/{module}.rs"), text)?;
    draft.edit(LIST, "", |text| {
        enter(
            text,
            &module,
            "WORKLOADS: &[&Workload] = &[",
            &format!("&{module}::WORKLOAD"),
        )
    })
}
