//! A profile of `TuneD`: `tuned-adm profile rungwise`.
//!
//! Its plugins sysctl, sysfs, net and bootloader take the settings that they have options for. Features and rings are
//! named as `ethtool -k` and the like print them: the plugin drops any other name with a line in its log
//! (`plugin_net.py`, `_check_device_support`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::item::{Item, Setting};
use super::sysctl_d::key;
use super::{Export, HEADER};

/// The folder of Fedora, Red Hat 10 and later, and Ubuntu 25.04 and later.
const PATH: &str = "/etc/tuned/profiles/rungwise/tuned.conf";

pub(super) fn write(settings: &[Setting], export: &mut Export) {
    let mut ordered: Vec<&Setting> = settings.iter().collect();
    ordered.sort_by_key(|setting| setting.item.rank());
    let (mut sysctl, mut sysfs, mut boot) = (String::new(), String::new(), Vec::new());
    let mut net: BTreeMap<&str, Network<'_>> = BTreeMap::new();
    for setting in ordered {
        let wished = format!("# {} = {}\n", setting.knob, setting.wish);
        let why = match &setting.item {
            Item::Sysctl { path, value } => {
                let _ = writeln!(sysctl, "{wished}{} = {value}", key(path));
                continue;
            }
            Item::Net {
                device, attribute, ..
            } if attribute.starts_with("queues/")
                && settings
                    .iter()
                    .any(|other| other.item.changes_queues_of(device)) =>
            {
                "TuneD changes the queues after it has written files, which resets their masks; use --as udev or \
                 systemd"
            }
            Item::Net { value, .. } | Item::Block { value, .. } | Item::Sys { value, .. } => {
                let _ = writeln!(sysfs, "{wished}{} = {value}", setting.item.target());
                continue;
            }
            Item::Tool {
                command: Some(command),
                ..
            } if command.contains(TCP_ALONE) => {
                "TuneD sets it only together with the other segmentation of TCP (tso); use --as udev or systemd"
            }
            Item::Tool {
                device,
                command: Some(command),
                ..
            } if option(command).is_some() => {
                if let Some((option, words)) = option(command) {
                    let network = net.entry(device).or_default();
                    network.wished.push_str(&wished);
                    network.options.entry(option).or_default().push(words);
                }
                continue;
            }
            Item::Boot { text } => {
                boot.push((wished, text.as_str()));
                continue;
            }
            Item::Tool { .. } => "the net plugin has no option for it; use --as udev or systemd",
            Item::Group { .. } => "it is a setting of a control group; use --as systemd",
            Item::Fleeting { why, .. } => why,
        };
        export.leave(setting, why);
    }
    let mut text = format!(
        "# {HEADER}\n# Debian up to 12, Ubuntu up to 24.10 and Red Hat up to 9 read /etc/tuned/rungwise/tuned.conf.\n\
         # To add it to the active profile (tuned-adm active): tuned-adm profile ACTIVE rungwise\n\n\
         [main]\nsummary = Settings kept by rungwise\n"
    );
    for (name, body) in [("sysctl", &sysctl), ("sysfs", &sysfs)] {
        if !body.is_empty() {
            let _ = write!(text, "\n[{name}]\n{body}");
        }
    }
    for (device, Network { wished, options }) in &net {
        let _ = write!(
            text,
            "\n# TuneD skips virtual devices.\n[net_{device}]\ntype = net\ndevices = {device}\n{wished}"
        );
        for (option, words) in options {
            let _ = writeln!(text, "{option} = {}", words.join(" "));
        }
    }
    if !boot.is_empty() {
        let (wished, words): (String, Vec<&str>) =
            boot.iter().map(|(w, t)| (w.as_str(), *t)).unzip();
        let _ = write!(
            text,
            "\n[bootloader]\n{wished}cmdline_rungwise = {}\n",
            words.join(" ")
        );
    }
    if !(sysctl.is_empty() && sysfs.is_empty() && net.is_empty() && boot.is_empty()) {
        export.file(PATH, text);
    }
}

/// Options of one device.
#[derive(Default)]
struct Network<'a> {
    /// Comments: the wishes.
    wished: String,
    options: BTreeMap<&'static str, Vec<Cow<'a, str>>>,
}

/// A feature that ethtool prints below another one, where the plugin does not find it.
const TCP_ALONE: &str = " tx-tcp-segmentation ";

/// Features that ethtool prints under older names than the kernel's, as the plugin shortens these.
const OLDER: [(&str, &str); 2] = [("rx-gro ", "gro "), ("tx-generic-segmentation ", "gso ")];

/// The net plugin's option for a command of ethtool, and its words.
fn option(command: &str) -> Option<(&'static str, Cow<'_, str>)> {
    let rest = command.strip_prefix("/usr/sbin/ethtool ")?;
    let (switch, rest) = rest.split_once(' ')?;
    let (_, words) = rest.split_once(' ')?;
    let mut words = Cow::from(words);
    let option = match switch {
        "-K" => {
            let renamed = OLDER
                .iter()
                .find_map(|(name, older)| Some(format!("{older}{}", words.strip_prefix(name)?)));
            words = renamed.map_or(words, Cow::from);
            "features"
        }
        "-C" => "coalesce",
        "-G" => "ring",
        "-L" => "channels",
        _ => return None,
    };
    Some((option, words))
}
