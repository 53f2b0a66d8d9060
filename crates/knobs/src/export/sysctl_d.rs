//! sysctl.d(5): read at boot by systemd-sysctl, and again for a device's sysctls when it appears.

use std::fmt::Write as _;

use super::item::{Item, Setting};
use super::{Export, HEADER};

pub(super) const PATH: &str = "/etc/sysctl.d/90-rungwise.conf";

pub(super) fn write(settings: &[Setting], export: &mut Export) {
    let mut text = format!("# {HEADER}\n");
    for setting in settings {
        match &setting.item {
            Item::Sysctl { path, value } => {
                let Setting { knob, wish, .. } = setting;
                let _ = write!(text, "\n# {knob} = {wish}\n{} = {value}\n", key(path));
            }
            Item::Fleeting { why, .. } => export.leave(setting, why.clone()),
            Item::Boot { .. } => export.leave(setting, "it is set at boot; use --as cmdline"),
            Item::Group { .. } => {
                export.leave(setting, "it is not a sysctl; use --as systemd");
            }
            Item::Block { .. } => {
                export.leave(
                    setting,
                    "it is not a sysctl; use --as udev, tuned or systemd",
                );
            }
            Item::Net { .. } | Item::Tool { .. } => {
                export.leave(
                    setting,
                    "it is a device setting; use --as udev, tuned or systemd",
                );
            }
            Item::Sys { .. } => {
                export.leave(setting, "it is below /sys; use --as tuned or systemd");
            }
        }
    }
    if settings
        .iter()
        .any(|setting| matches!(setting.item, Item::Sysctl { .. }))
    {
        export.file(PATH, text);
    }
}

/// The key as sysctl(8), sysctl.d(5) and `TuneD` spell it: dots for slashes, and a slash for the dot of a name (`eth0.5`).
pub(super) fn key(path: &str) -> String {
    path.chars()
        .map(|c| match c {
            '/' => '.',
            '.' => '/',
            c => c,
        })
        .collect()
}
