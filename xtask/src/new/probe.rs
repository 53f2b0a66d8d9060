//! The stub of a probe: `crates/probes/src/<subject>/<id>.rs` and its two registry lines.
//!
//! The first probe brings the crate along; a probe reads through `Host` and never changes a machine.

use anyhow::Result;

use super::{Draft, Id, STUB, enter};

const MANIFEST: &str = r#"[package]
name = "rungwise-probes"
description = "Host to Evidence: one probe, one file"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish.workspace = true

[lints]
workspace = true

[dependencies]
rungwise-host.workspace = true
rungwise-model.workspace = true
"#;

const CRATE: &str = r"//! Host to Evidence: one file per probe, folders by subject.
//!
//! A probe never changes the machine and never panics on odd text; what is absent is a reading with
//! a reason, not an error.

use rungwise_host::Host;

/// Each subject's probes.
const SUBJECTS: &[&[&Probe]] = &[];

/// Every probe, by subject.
pub fn all() -> impl Iterator<Item = &'static Probe> {
    SUBJECTS.iter().copied().flatten().copied()
}

/// Reads one source of a machine.
#[derive(Debug)]
pub struct Probe {
    /// Names the source.
    pub id: &'static str,
    /// Keys of the readings it yields.
    pub yields: &'static [&'static str],
    /// Markdown: what it reads, what it costs, what it needs.
    pub doc: &'static str,
    /// Reads the machine.
    pub collect: fn(&dyn Host) -> Vec<Reading>,
}

/// One value, or why there is none. {STUB}: unit, subject and window, as plain data in `rungwise-model`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What was read.
    pub key: &'static str,
    /// The value, or the reason for its absence; never zero instead.
    pub value: Result<f64, String>,
    /// The file and the raw line.
    pub source: String,
}
";

const SUBJECT: &str = "//! Probes that read {SUBJECT}, sorted by id.

use crate::Probe;

pub(crate) const PROBES: &[&Probe] = &[];
";

const PROBE: &str = r#"//! `{ID}`: {STUB}, what this reads, the idea, the kernel file and version.

use rungwise_host::Host;

use crate::{Probe, Reading};

pub(crate) const PROBE: Probe = Probe {
    id: "{ID}",
    yields: &[],
    doc: "{STUB}: what it reads, what it costs, what it needs",
    collect,
};

fn collect(_host: &dyn Host) -> Vec<Reading> {
    Vec::new()
}
"#;

pub(super) fn write(draft: &mut Draft<'_>, id: &str) -> Result<()> {
    let id = Id::split(id, '/', "net/proc-net-snmp")?;
    let (subject, module) = (super::module(id.folder), id.module());
    let fill = |text: &str| {
        text.replace("{STUB}", STUB)
            .replace("{ID}", id.name)
            .replace("{SUBJECT}", id.folder)
    };
    let home = "crates/probes";
    if draft.text(&format!("{home}/Cargo.toml")).is_none() {
        draft.create(format!("{home}/Cargo.toml"), MANIFEST)?;
        draft.create(format!("{home}/src/lib.rs"), fill(CRATE))?;
    }
    draft.create(format!("{home}/src/{subject}/{module}.rs"), fill(PROBE))?;
    let list = format!("{home}/src/{subject}/mod.rs");
    if draft.text(&list).is_none() {
        draft.edit(&format!("{home}/src/lib.rs"), CRATE, |text| {
            enter(
                text,
                &subject,
                "SUBJECTS: &[&[&Probe]] = &[",
                &format!("{subject}::PROBES"),
            )
        })?;
    }
    draft.edit(&list, &fill(SUBJECT), |text| {
        enter(
            text,
            &module,
            "PROBES: &[&Probe] = &[",
            &format!("&{module}::PROBE"),
        )
    })
}
