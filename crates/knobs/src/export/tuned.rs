//! A profile of `TuneD`: `tuned-adm profile rungwise`.
//!
//! Its plugins sysctl, sysfs, net and bootloader carry what they have options for. Features and rings are
//! named as ethtool names them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::item::{Item, Setting};
use super::sysctl_d::key;
use super::{Export, HEADER};

/// Older versions look in `/etc/tuned/rungwise` instead.
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
                "the profile changes the queues after it has written files, and their masks go with them; udev and \
                 systemd keep the order"
            }
            Item::Net { value, .. } | Item::Block { value, .. } | Item::Sys { value, .. } => {
                let _ = writeln!(sysfs, "{wished}{} = {value}", setting.item.target());
                continue;
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
            Item::Tool { .. } => "the net plugin has no option for it; udev and systemd carry it",
            Item::Group { .. } => "it is a control group's; the form systemd carries it",
            Item::Fleeting { why, .. } => why,
        };
        export.leave(setting, why);
    }
    let mut text = format!("# {HEADER}\n\n[main]\nsummary = Settings kept by rungwise\n");
    for (name, body) in [("sysctl", &sysctl), ("sysfs", &sysfs)] {
        if !body.is_empty() {
            let _ = write!(text, "\n[{name}]\n{body}");
        }
    }
    for (device, Network { wished, options }) in &net {
        let _ = write!(
            text,
            "\n[net_{device}]\ntype = net\ndevices = {device}\n{wished}"
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
    /// Comments: what was wished for.
    wished: String,
    options: BTreeMap<&'static str, Vec<&'a str>>,
}

/// The net plugin's option for a command of ethtool, and its words.
fn option(command: &str) -> Option<(&'static str, &str)> {
    let rest = command.strip_prefix("/usr/sbin/ethtool ")?;
    let (switch, rest) = rest.split_once(' ')?;
    let (_, words) = rest.split_once(' ')?;
    let option = match switch {
        "-K" => "features",
        "-C" => "coalesce",
        "-G" => "ring",
        "-L" => "channels",
        _ => return None,
    };
    Some((option, words))
}
