//! The stub of a knob: `crates/knobs/src/<scope>/<name>.rs`, its `mod` line and its place in `KNOBS`.
//!
//! `KNOBS` is sorted by id, and an id does not follow from its path (`net.gro` is `device::gro`), so
//! the ids of the entries are read from their files.

use anyhow::{Context as _, Result, bail};

use super::{Draft, Id, STUB, add_entry_by, add_mod};

/// How far a turn reaches; the folder of the knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// One network device.
    Device,
    /// The whole machine.
    Host,
    /// One network namespace.
    Netns,
    /// The service under test.
    Service,
}

impl Scope {
    fn folder(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Host => "host",
            Self::Netns => "netns",
            Self::Service => "service",
        }
    }

    fn variant(self) -> &'static str {
        match self {
            Self::Device => "Device",
            Self::Host => "Host",
            Self::Netns => "Netns",
            Self::Service => "Service",
        }
    }
}

const REGISTRY: &str = "crates/knobs/src/lib.rs";

const KNOB: &str = r#"//! `{ID}`: {STUB}, what this is, the idea, the kernel file and version.

use crate::error::Result;
use crate::knob::{Context, Current, Doc, Draft, Knob, Risk, Scope, Settable};

pub(crate) static KNOB: Knob = Knob {
    id: "{ID}",
    scope: Scope::{SCOPE},
    risk: Risk::Live,
    settable: Settable::No("{STUB}"),
    summary: "{STUB}",
    values: "{STUB}",
    doc: Doc {
        does: "{STUB}",
        helps: "{STUB}",
        costs: "{STUB}",
        undone: "{STUB}",
        sources: "{STUB}",
    },
    writes: &[],
    read,
    draft,
};

fn read(_context: &Context<'_>) -> Result<Current> {
    Ok(Current::unknown("{STUB}"))
}

fn draft(_context: &Context<'_>, wish: &str) -> Result<Draft> {
    Err(KNOB.bad_wish(wish, "{STUB}"))
}
"#;

pub(super) fn write(draft: &mut Draft<'_>, id: &str, scope: Scope) -> Result<()> {
    let module = Id::split(id, '.', "net.rps_cpus")?.module();
    let folder = scope.folder();
    let registry = draft
        .text(REGISTRY)
        .with_context(|| format!("cannot read {REGISTRY}"))?;
    let known: Vec<(String, String)> = registry
        .lines()
        .filter_map(|line| line.trim().strip_prefix('&')?.strip_suffix("::KNOB,"))
        .map(|path| Ok((format!("&{path}::KNOB"), id_of(draft, path)?)))
        .collect::<Result<_>>()?;
    if known.iter().any(|(_, other)| other == id) {
        bail!("cannot add the knob {id}: it exists");
    }
    let text = KNOB
        .replace("{STUB}", STUB)
        .replace("{ID}", id)
        .replace("{SCOPE}", scope.variant());
    draft.create(format!("crates/knobs/src/{folder}/{module}.rs"), text)?;
    draft.edit(&format!("crates/knobs/src/{folder}/mod.rs"), "", |text| {
        add_mod(text, &module)
    })?;
    let entry = format!("&{folder}::{module}::KNOB");
    draft.edit(REGISTRY, "", |text| {
        add_entry_by(text, "KNOBS: &[&Knob] = &[", &entry, |other| {
            let found = known.iter().find(|(entry, _)| entry == other);
            found.map_or_else(|| id.to_owned(), |(_, id)| id.clone())
        })
    })
}

/// The id of the knob at `path` (`device::gro`), from its file.
fn id_of(draft: &Draft<'_>, path: &str) -> Result<String> {
    let file = format!("crates/knobs/src/{}.rs", path.replace("::", "/"));
    draft
        .text(&file)
        .and_then(|text| {
            Some(
                text.split_once("    id: \"")?
                    .1
                    .split_once('"')?
                    .0
                    .to_owned(),
            )
        })
        .with_context(|| format!("cannot find the id of a knob in {file}"))
}
