//! The stub of a knob: `crates/knobs/src/<scope>/<name>.rs`, its `mod` line and its place in `KNOBS`.
//!
//! `KNOBS` is sorted by id, and an id does not follow from its path (`net.gro` is `device::gro`), so
//! the ids of the entries are read from their files.

use anyhow::Result;

use super::{Draft, Id, STUB, add_mod, enter_by_id};

/// Scope of the knob; the folder of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// One control group.
    Cgroup,
    /// One network device.
    Device,
    /// One block device.
    Disk,
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
            Self::Cgroup => "cgroup",
            Self::Device => "device",
            Self::Disk => "disk",
            Self::Host => "host",
            Self::Netns => "netns",
            Self::Service => "service",
        }
    }

    fn variant(self) -> &'static str {
        match self {
            Self::Cgroup => "Cgroup",
            Self::Device => "Device",
            Self::Disk => "Disk",
            Self::Host => "Host",
            Self::Netns => "Netns",
            Self::Service => "Service",
        }
    }
}

const REGISTRY: &str = "crates/knobs/src/lib.rs";

const KNOB: &str = r#"//! `{ID}`: {STUB}, what this is, the idea, the kernel file and version.

use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Scope};
use crate::target::{Form, Target};

/// `{ID}`
pub(crate) static KNOB: Knob = Knob {
    id: "{ID}",
    scope: Scope::{SCOPE},
    summary: "{STUB}",
    values: "{STUB}",
    doc: Doc {
        does: "{STUB}",
        helps: "{STUB}",
        costs: "{STUB}",
        undone: PUT_BACK,
        sources: "{STUB}",
    },
    writes: &[Target::File("/proc/sys/{STUB}", Form::Switch)],
    ..COMMON
};
"#;

pub(super) fn write(draft: &mut Draft<'_>, id: &str, scope: Scope) -> Result<()> {
    let module = Id::split(id, '.', "net.rps_cpus")?.module();
    let folder = scope.folder();
    let text = KNOB
        .replace("{STUB}", STUB)
        .replace("{ID}", id)
        .replace("{SCOPE}", scope.variant());
    draft.create(format!("crates/knobs/src/{folder}/{module}.rs"), text)?;
    draft.edit(&format!("crates/knobs/src/{folder}/mod.rs"), "", |text| {
        add_mod(text, &module)
    })?;
    let entry = format!("&{folder}::{module}::KNOB");
    enter_by_id(draft, REGISTRY, "KNOBS: &[&Knob] = &[", &entry, id)
}
