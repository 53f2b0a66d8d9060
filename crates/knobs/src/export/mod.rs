//! Exports plans in the formats of tools that keep settings across reboots.
//!
//! A plan is split into settings, and each form takes those that it can express. The others are listed with the reason,
//! so that no setting is dropped silently. Nothing is written here; the caller shows or stores the files.

mod ansible;
mod cmdline;
mod item;
mod sysctl_d;
mod systemd;
mod tuned;
mod udev;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use crate::edit::{Edit, Place};
use crate::plan::Plan;

use item::{Item, Setting};

/// First line of every file, after its comment sign.
const HEADER: &str = "Written by rungwise knob export; the same plans always give the same file.";

/// Format of a tool that keeps settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `sysctl.d(5)`: everything below `/proc/sys`.
    SysctlD,
    /// udev rules: attributes of network and block devices, and ethtool when a device appears.
    Udev,
    /// A profile of `TuneD`.
    Tuned,
    /// A unit that sets everything at boot, and drop-ins for control groups.
    Systemd,
    /// Parameters of the kernel command line.
    Cmdline,
    /// A playbook.
    Ansible,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::SysctlD,
        Self::Udev,
        Self::Tuned,
        Self::Systemd,
        Self::Cmdline,
        Self::Ansible,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::SysctlD => "sysctl.d",
            Self::Udev => "udev",
            Self::Tuned => "tuned",
            Self::Systemd => "systemd",
            Self::Cmdline => "cmdline",
            Self::Ansible => "ansible",
        }
    }
}

/// Files for a machine, and the settings that they lack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Export {
    /// Files, in order of their paths.
    pub files: Vec<File>,
    /// Settings that this form cannot express.
    pub left_out: Vec<LeftOut>,
}

/// A file of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct File {
    /// Where it goes; relative for a file that is run, not installed.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A setting that an export lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Knob and setting.
    pub what: String,
    /// Why, and which form has it instead.
    pub why: String,
}

impl Export {
    fn file(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.push(File {
            path: path.into(),
            text: text.into(),
        });
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
    }

    fn leave(&mut self, setting: &Setting, why: impl Into<String>) {
        self.left_out.push(LeftOut {
            what: setting.to_string(),
            why: why.into(),
        });
    }
}

/// Exports the plans in one form. Plans are checked first: they may come from someone else's file.
pub fn export(form: Form, plans: &[Plan]) -> Result<Export> {
    for plan in plans {
        plan.check()?;
    }
    let mut export = Export::default();
    let settings = settings(plans, &mut export);
    match form {
        Form::SysctlD => sysctl_d::write(&settings, &mut export),
        Form::Udev => udev::write(&settings, &mut export),
        Form::Tuned => tuned::write(&settings, &mut export),
        Form::Systemd => systemd::write(&settings, &mut export),
        Form::Cmdline => cmdline::write(&settings, &mut export),
        Form::Ansible => ansible::write(&settings, &mut export),
    }
    Ok(export)
}

/// Every setting of the plans, each target once: the last plan wins, as it does when they are applied.
fn settings(plans: &[Plan], export: &mut Export) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for plan in plans {
        for planned in &plan.edits {
            // It is already set and was not wished for; it is there for the undo.
            if matches!(planned.edit, Edit::Keep { .. }) {
                continue;
            }
            let setting = Setting {
                knob: plan.knob.clone(),
                wish: in_a_comment(&plan.wish),
                item: Item::of(&planned.edit),
            };
            if planned.place != Place::Host {
                export.leave(&setting, "it belongs to a lab, which ends with its run");
                continue;
            }
            let target = setting.item.target();
            settings.retain(|known| known.item.target() != target);
            settings.push(setting);
        }
    }
    settings
}

/// A wish as it may appear in a comment: a plan may come from someone else's file, and a line break would turn the rest
/// into a setting.
fn in_a_comment(wish: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " =,.:;%/+-_".contains(c);
    wish.chars()
        .take(120)
        .map(|c| if plain(c) { c } else { '?' })
        .collect()
}
