//! The stub of a probe: `crates/probes/src/<subject>/<id>.rs`, its line in the subject and its place in the
//! registry. A probe names its sources and makes evidence of their texts; it never reads a machine itself.

use anyhow::Result;

use super::{Draft, Id, STUB, add_mod, enter_by_id};

const REGISTRY: &str = "crates/probes/src/lib.rs";

const SUBJECT: &str = "//! {STUB}: what the probes of {SUBJECT} have in common.
";

const PROBE: &str = r#"//! `{ID}`: {STUB}, what it reads, the idea. Source: {STUB} (kernel file and version).

use rungwise_model::evidence::{Evidence, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window};

const FILE: &str = "/proc/{STUB}";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "{ID}",
    summary: "{STUB}",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::once(FILE)],
    yields: &[&keys::KERNEL_RELEASE],
    derive,
    doc: "{STUB}: what to know about the source, traps, kernel file and version",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    match window.text(FILE) {
        // A text of more than one word is parsed in rungwise-formats.
        Ok(text) => {
            let origin = Origin::new(FILE, text.trim());
            evidence.text(&keys::KERNEL_RELEASE, Subject::host(), text.trim(), origin);
        }
        Err(why) => evidence.absent(PROBE.yields, &why, FILE),
    }
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
    let home = "crates/probes/src";
    draft.create(format!("{home}/{subject}/{module}.rs"), fill(PROBE))?;
    let list = format!("{home}/{subject}/mod.rs");
    if draft.text(&list).is_none() {
        draft.edit(REGISTRY, "", |text| {
            // Its neighbours may be public; a subject is not.
            let line = format!("\nmod {subject};");
            Ok(add_mod(text, &subject)?.replace(&format!("\npub mod {subject};"), &line))
        })?;
    }
    draft.edit(&list, &fill(SUBJECT), |text| {
        let line = format!("\npub(crate) mod {module};");
        Ok(add_mod(text, &module)?.replace(&format!("\nmod {module};"), &line))
    })?;
    let entry = format!("&{subject}::{module}::PROBE");
    enter_by_id(draft, REGISTRY, "PROBES: &[&Probe] = &[", &entry, id.name)
}
