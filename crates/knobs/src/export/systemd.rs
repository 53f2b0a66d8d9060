//! A unit that sets everything once at boot, and drop-ins for the units whose control groups are changed.
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
                export.leave(setting, "ethtool cannot express this value");
                continue;
            }
            Item::Group { group, .. } => {
                match group_option(item) {
                    Some(option) => groups
                        .entry(group)
                        .or_default()
                        .push(format!("# {knob} = {wish}\n{option}")),
                    None => export.leave(setting, no_option(item)),
                }
                continue;
            }
            Item::Boot { .. } => {
                export.leave(setting, "it is set at boot; use --as cmdline");
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
        "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n# Exit status of older versions of ethtool where the device already has the value.\n\
         SuccessExitStatus=80\n{steps}\n[Install]\nWantedBy=multi-user.target\n"
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
    if section(group).is_empty() || is_of_user(item) {
        return None;
    }
    match file.as_str() {
        "cpu.max" => {
            let (quota, period) = value.split_once(' ')?;
            quota_option(quota.parse().ok(), period.parse().ok()?)
        }
        "cpu.weight" => Some(format!("CPUWeight={value}")),
        "memory.max" => Some(format!("MemoryMax={}", or_infinity(value))),
        // CPUShares= holds for version 1 until systemd 256, MemoryLimit= too.
        "cpu.shares" => Some(format!("CPUShares={value}")),
        "memory.limit_in_bytes" => Some(format!("MemoryLimit={value}")),
        "pids.max" => Some(format!("TasksMax={}", or_infinity(value))),
        "cpuset.cpus" => Some(format!("AllowedCPUs={value}")),
        // Version 1 has the period in another file, which the knob never changes.
        "cpu.cfs_quota_us" => {
            let quota = value.parse().ok().filter(|quota| *quota > 0.0);
            let option = quota_option(quota, PERIOD_US)?;
            Some(format!(
                "# for a period of 100 ms (cpu.cfs_period_us)\n{option}"
            ))
        }
        _ => None,
    }
}

/// systemd says `infinity` where the kernel says `max`.
fn or_infinity(value: &str) -> &str {
    match value {
        "max" => "infinity",
        number => number,
    }
}

/// The period that systemd sets by default (`CPUQuotaPeriodSec=`), microseconds.
const PERIOD_US: f64 = 100_000.0;

/// A quota of a period, both in microseconds. systemd takes hundredths of a percent.
fn quota_option(quota: Option<f64>, period: f64) -> Option<String> {
    let mut option = "CPUQuota=".to_owned();
    if let Some(quota) = quota {
        let percent = format!("{:.2}", quota / period * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        if percent == "0" {
            return None;
        }
        let _ = write!(option, "{percent}%");
        if period != PERIOD_US {
            let _ = write!(option, "\nCPUQuotaPeriodSec={period:.0}us");
        }
    }
    Some(option)
}

/// Why no unit option can express it.
fn no_option(item: &Item) -> &'static str {
    match item {
        Item::Group { group, .. } if section(group).is_empty() => {
            "it is not the group of a systemd unit; set it where its container is started"
        }
        item if is_of_user(item) => {
            "it is a unit of a user's own systemd; set it there with systemctl --user edit"
        }
        _ => "systemd cannot express this value",
    }
}

/// The group is one of the service manager of a user (`user@1000.service`), which reads other folders.
fn is_of_user(item: &Item) -> bool {
    let Item::Group { path, group, .. } = item else {
        return false;
    };
    let above = path.split('/').filter(|name| name != group);
    above.into_iter().any(|name| name.starts_with("user@"))
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
