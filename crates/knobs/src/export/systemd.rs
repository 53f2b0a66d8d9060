//! A unit that sets everything once at boot, and drop-ins for the units whose control groups are meant.
//!
//! No `.link` files: the first one that matches a device replaces the distribution's, the name of the device
//! included, and a machine that loses its device's name is off the network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::item::{Item, Setting};
use super::{Export, HEADER};

pub(super) const NAME: &str = "rungwise-knobs.service";

pub(super) fn write(settings: &[Setting], export: &mut Export) {
    let mut ordered: Vec<&Setting> = settings.iter().collect();
    ordered.sort_by_key(|setting| setting.item.rank());
    let mut steps = String::new();
    let mut devices = BTreeSet::new();
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for setting in ordered {
        let Setting { knob, wish, item } = setting;
        let command = match item {
            Item::Tool {
                command: Some(command),
                ..
            } => command.clone(),
            Item::Tool { command: None, .. } => {
                export.leave(setting, "ethtool has no words for this value");
                continue;
            }
            Item::Group { group, .. } => {
                match group_option(item) {
                    Some(option) => groups
                        .entry(group)
                        .or_default()
                        .push(format!("# {knob} = {wish}\n{option}")),
                    None => export.leave(
                        setting,
                        "it is no group of a systemd unit; set it where its container is started",
                    ),
                }
                continue;
            }
            Item::Boot { .. } => {
                export.leave(
                    setting,
                    "it is decided at boot; the form cmdline carries it",
                );
                continue;
            }
            Item::Fleeting { why, .. } => {
                export.leave(setting, why.clone());
                continue;
            }
            item => match item.file() {
                Some((path, value)) => format!("/bin/sh -c 'echo {value} > {path}'"),
                None => continue,
            },
        };
        devices.extend(item.device());
        let _ = write!(steps, "\n# {knob} = {wish}\nExecStart={command}\n");
    }
    if !steps.is_empty() {
        export.file(
            format!("/etc/systemd/system/{NAME}"),
            unit(&devices, &steps),
        );
    }
    for (group, options) in groups {
        export.file(
            format!("/etc/systemd/system/{group}.d/90-rungwise.conf"),
            format!("# {HEADER}\n[{}]\n{}\n", section(group), options.join("\n")),
        );
    }
}

fn unit(devices: &BTreeSet<&str>, steps: &str) -> String {
    let mut text = format!(
        "# {HEADER}\n[Unit]\nDescription=Settings kept by rungwise\nAfter=systemd-sysctl.service systemd-udevd.service\n"
    );
    for device in devices {
        let unit = format!("sys-subsystem-net-devices-{}.device", escaped(device));
        let _ = write!(text, "Wants={unit}\nAfter={unit}\n");
    }
    let _ = write!(
        text,
        "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n{steps}\n[Install]\nWantedBy=multi-user.target\n"
    );
    text
}

/// The unit's own option for a file of its control group.
fn group_option(item: &Item) -> Option<String> {
    let Item::Group {
        group, file, value, ..
    } = item
    else {
        return None;
    };
    if section(group).is_empty() {
        return None;
    }
    match file.as_str() {
        "cpu.max" => {
            let (quota, period) = value.split_once(' ')?;
            let (quota, period) = (quota.parse::<f64>(), period.parse::<f64>().ok()?);
            Some(match quota {
                Ok(quota) => format!("CPUQuota={:.0}%", quota / period * 100.0),
                Err(_) => "CPUQuota=".to_owned(),
            })
        }
        "cpuset.cpus" => Some(format!("AllowedCPUs={value}")),
        // Version 1 has the period in another file; systemd reckons with 100 ms.
        "cpu.cfs_quota_us" => Some(match value.parse::<f64>() {
            Ok(quota) if quota > 0.0 => format!("CPUQuota={:.0}%", quota / 1000.0),
            _ => "CPUQuota=".to_owned(),
        }),
        _ => None,
    }
}

/// Section of a unit's file that holds options of its group; empty if it is no unit.
fn section(group: &str) -> &'static str {
    match group.rsplit_once('.') {
        Some((_, "service")) => "Service",
        Some((_, "slice")) => "Slice",
        _ => "",
    }
}

/// A name within a unit's name (`systemd.unit(5)`, string escaping).
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for (index, byte) in name.bytes().enumerate() {
        let plain =
            byte.is_ascii_alphanumeric() || b":_".contains(&byte) || (byte == b'.' && index > 0);
        if plain {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}
