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
            Item::Boot { .. } => export.leave(
                setting,
                "it is decided at boot; the form cmdline carries it",
            ),
            Item::Group { .. } => {
                export.leave(setting, "it is no sysctl; the form systemd carries it");
            }
            Item::Block { .. } => {
                export.leave(setting, "it is no sysctl; udev, tuned and systemd carry it");
            }
            Item::Net { .. } | Item::Tool { .. } => {
                export.leave(
                    setting,
                    "it is a device's own setting; udev, tuned and systemd carry it",
                );
            }
            Item::Sys { .. } => {
                export.leave(setting, "it lies below /sys; tuned and systemd carry it");
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
