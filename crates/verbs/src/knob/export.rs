//! Applied or requested settings, for tools that persist them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path};

use clap::ValueEnum;
use rungwise_host::live::Live;
use rungwise_host::{Host as _, files};
use rungwise_knobs::export::{Export, LeftOut};
use rungwise_knobs::{Plan, PlannedEdit, Result, Scope, recovery};

/// The tools, as the command line names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Sysctls (/proc/sys), at boot.
    #[value(name = "sysctl.d")]
    SysctlD,
    /// Settings of network devices and disks, when they appear.
    Udev,
    /// A profile of `TuneD`, for hardware devices.
    Tuned,
    /// A unit that sets everything at boot, and drop-ins for control groups.
    Systemd,
    /// The kernel command line, for GRUB of Debian and derivatives; the file names the tools of other distributions.
    Cmdline,
    /// A playbook of all of these for Debian, Red Hat and derivatives; needs only ansible-core.
    Ansible,
}

impl From<Form> for rungwise_knobs::export::Form {
    fn from(form: Form) -> Self {
        match form {
            Form::SysctlD => Self::SysctlD,
            Form::Udev => Self::Udev,
            Form::Tuned => Self::Tuned,
            Form::Systemd => Self::Systemd,
            Form::Cmdline => Self::Cmdline,
            Form::Ansible => Self::Ansible,
        }
    }
}

/// What open journals of this boot hold in force here, a plan per knob; of each target the last word. Beside it what they
/// hold in force in other network namespaces, where the same path is another setting.
pub(super) fn in_force(state: &Path) -> Result<(Vec<Plan>, Vec<LeftOut>)> {
    let boot_id = recovery::boot_id(&Live)?;
    let here = Live.netns().ok();
    let mut elsewhere = Vec::new();
    let mut open = recovery::open(state)?;
    // Newest first; what was set last is what holds.
    open.reverse();
    let mut edits: BTreeMap<(String, String), PlannedEdit> = BTreeMap::new();
    for open in open {
        let recovered = open.recovered;
        if recovered
            .header
            .is_none_or(|header| header.boot_id != boot_id)
        {
            continue;
        }
        for pending in recovered.pending {
            let intent = pending.intent;
            if here != Some(intent.netns) && !is_of_machine(&intent.knob) {
                elsewhere.push(LeftOut {
                    what: format!("{}: {}", intent.knob, intent.edit.target()),
                    why: format!(
                        "it was set in network namespace {}, which is not this one; export it there (nsenter)",
                        intent.netns
                    ),
                });
                continue;
            }
            edits.insert(
                (intent.knob, intent.edit.target()),
                PlannedEdit {
                    place: intent.place,
                    edit: intent.edit,
                    before: Some(intent.before),
                },
            );
        }
    }
    let mut plans: BTreeMap<String, Plan> = BTreeMap::new();
    for ((knob, _), edit) in edits {
        plans
            .entry(knob.clone())
            .or_insert_with(|| Plan {
                knob,
                wish: "in force".to_owned(),
                edits: Vec::new(),
                notes: Vec::new(),
            })
            .edits
            .push(edit);
    }
    elsewhere.dedup();
    Ok((plans.into_values().collect(), elsewhere))
}

/// The knob turns the same thing whatever the network namespace.
fn is_of_machine(knob: &str) -> bool {
    let scope = rungwise_knobs::find(knob).map(|knob| knob.scope);
    matches!(scope, Ok(Scope::Host | Scope::Disk | Scope::Cgroup))
}

/// Writes each file below `folder`.
pub(super) fn store(export: &Export, folder: &Path) -> anyhow::Result<()> {
    for file in &export.files {
        // Below the folder and nowhere else, whatever the path says.
        let inside = Path::new(&file.path)
            .components()
            .filter(|part| matches!(part, Component::Normal(_)));
        let path = inside.fold(folder.to_owned(), |path, part| path.join(part));
        let parent = path.parent().map_or(Ok(()), files::create_dir_all);
        let stored = parent.and_then(|()| files::replace(&path, file.text.as_bytes()));
        stored.map_err(|error| anyhow::anyhow!("{error}; name another folder with --below"))?;
    }
    Ok(())
}

/// The files with their paths, or where they were written.
pub(super) fn render(export: &Export, below: Option<&Path>) -> String {
    if export.files.is_empty() {
        // All forms begin a comment with this sign, so the text may go where the file belongs.
        return "# nothing that this format can express\n".to_owned();
    }
    let files = export.files.iter();
    match below {
        Some(folder) => {
            let mut text = String::new();
            for file in files {
                let path = folder.join(file.path.trim_start_matches('/'));
                let _ = writeln!(text, "wrote {}", path.display());
            }
            text
        }
        None => files
            .map(|file| format!("# {}\n{}\n", file.path, file.text.trim_end()))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}
