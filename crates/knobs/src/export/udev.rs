//! udev rules: attributes are written when the device appears.
//!
//! Within one event udev writes attributes first and runs programs after. Where a device also needs ethtool, its
//! attributes are written by programs too, in order: a change of the queues would reset the masks.

use std::fmt::Write as _;

use super::item::{Item, Setting};
use super::{Export, HEADER};

pub(super) const PATH: &str = "/etc/udev/rules.d/90-rungwise.rules";

pub(super) fn write(settings: &[Setting], export: &mut Export) {
    let mut ordered: Vec<&Setting> = settings.iter().collect();
    ordered.sort_by_key(|setting| setting.item.rank());
    let mut text = format!("# {HEADER}\n");
    let mut any = false;
    for setting in ordered {
        let Some(rule) = rule(setting, settings, export) else {
            continue;
        };
        any = true;
        let Setting { knob, wish, .. } = setting;
        let _ = write!(text, "\n# {knob} = {wish}\n{rule}\n");
    }
    if any {
        export.file(PATH, text);
    }
}

fn rule(setting: &Setting, settings: &[Setting], export: &mut Export) -> Option<String> {
    let net =
        |device: &str| format!("ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{device}\"");
    let why = match &setting.item {
        Item::Net {
            device,
            attribute,
            value,
        } => {
            let has_tool = settings
                .iter()
                .any(|other| matches!(&other.item, Item::Tool { device: of, .. } if of == device));
            return Some(if has_tool {
                let path = setting.item.target();
                format!(
                    "{}, RUN+=\"/bin/sh -c 'echo {value} > {path}'\"",
                    net(device)
                )
            } else {
                format!("{}, ATTR{{{attribute}}}=\"{value}\"", net(device))
            });
        }
        Item::Block {
            disk,
            attribute,
            value,
        } => {
            return Some(format!(
                "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\", ATTR{{{attribute}}}=\"{value}\""
            ));
        }
        Item::Tool {
            device,
            command: Some(command),
            ..
        } => return Some(format!("{}, RUN+=\"{command}\"", net(device))),
        Item::Tool { command: None, .. } => "ethtool cannot express this value",
        Item::Fleeting { why, .. } => why,
        Item::Boot { .. } => "it is set at boot; use --as cmdline",
        Item::Sysctl { .. } => "it is a sysctl; use --as sysctl.d",
        Item::Group { .. } => "it is a setting of a control group; use --as systemd",
        Item::Sys { .. } => "it is not an attribute of a device; use --as tuned or systemd",
    };
    export.leave(setting, why);
    None
}
