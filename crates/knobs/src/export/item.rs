//! A setting as the export tools see it: a sysctl, an attribute of a device, something for ethtool.

use rungwise_host::DeviceSetting;

use crate::by_hand::Way;
use crate::edit::Edit;
use crate::elevator;

/// A setting, and the wish that it comes from.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) knob: String,
    pub(super) wish: String,
    pub(super) item: Item,
}

/// What is set.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// Below `/proc/sys`; the path there, with slashes.
    Sysctl { path: String, value: String },
    /// An attribute of a network device; the path below its folder.
    Net {
        device: String,
        attribute: String,
        value: String,
    },
    /// An attribute of a block device.
    Block {
        disk: String,
        attribute: String,
        value: String,
    },
    /// Quota or CPUs of a control group.
    Group {
        path: String,
        group: String,
        file: String,
        value: String,
    },
    /// Any other file below `/sys`.
    Sys { path: String, value: String },
    /// Something that ethtool or tc sets when the device is there.
    Tool {
        device: String,
        order: u8,
        /// The program and its arguments; absent where it has no words for the value.
        command: Option<String>,
        what: String,
    },
    /// A parameter for the boot.
    Boot { text: String },
    /// A setting that no tool can keep, and why.
    Fleeting { what: String, why: String },
}

/// Order of the tools: queues first, because changing them resets everything else.
const QUEUES: u8 = 0;
const FEATURES: u8 = 5;

impl Item {
    pub(super) fn of(edit: &Edit) -> Self {
        // One line, whatever the spelling of the plan.
        let value = edit.value();
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        match edit {
            Edit::WriteFile { path, .. } | Edit::Keep { path, .. } => Self::of_file(path, value),
            Edit::Twin { files, .. } => match files.file(&value) {
                Some((path, number)) => Self::of_file(path, number.to_string()),
                None => fleeting(edit, "its value is not understood"),
            },
            Edit::Scheduler { elevator, .. } => match elevator::parse(&value) {
                Some((scheduler, _)) => Self::of_file(&elevator.file(), scheduler.to_owned()),
                None => fleeting(edit, "its value is not understood"),
            },
            Edit::Feature {
                device, feature, ..
            } => Self::Tool {
                device: device.clone(),
                order: FEATURES,
                command: Some(format!("/usr/sbin/ethtool -K {device} {feature} {value}")),
                what: format!("{} = {value}", edit.target()),
            },
            Edit::Setting {
                device, setting, ..
            } => Self::Tool {
                device: device.clone(),
                order: order(*setting),
                command: command(device, *setting, &value),
                what: format!("{} = {value}", edit.target()),
            },
            Edit::ByHand {
                way: Way::CommandLine,
                text,
            } => Self::Boot { text: text.clone() },
            Edit::ByHand { way, text } => Self::Fleeting {
                what: format!("{}: {text}", way.place()),
                why: "done by hand".to_owned(),
            },
            Edit::Affinity { .. } => fleeting(
                edit,
                "it applies to a running process; set the CPUs where the service is started (systemd: CPUAffinity=; a \
                 guest: `rungwise knob plan virt.vcpu_pin=keep:LIST`)",
            ),
            Edit::OpenFiles { .. } => fleeting(
                edit,
                "it applies to a running process; set the limit where the service is started (systemd: LimitNOFILE=)",
            ),
            Edit::Mount { mount, .. } => fleeting(
                edit,
                &format!(
                    "it lasts until the unmount; put {value} in the line of {} in /etc/fstab",
                    mount.point
                ),
            ),
            Edit::Throttle { .. } => fleeting(
                edit,
                "it lasts as long as the control group; set the limit where the group is made (systemd: IOReadBandwidthMax=, \
                 IOWriteIOPSMax= and the like)",
            ),
            Edit::Unit { unit, active } => {
                let verb = if *active { "enable" } else { "disable" };
                fleeting(
                    edit,
                    &format!("starting at boot is a separate setting: systemctl {verb} {unit}"),
                )
            }
            Edit::AuditNever { user } => fleeting(
                edit,
                &format!(
                    "it is lost when the rules are reloaded; add the line -A never,exit -F uid={user} to \
                     /etc/audit/rules.d/00-uid-{user}.rules"
                ),
            ),
            Edit::NftTable { .. } => fleeting(edit, "it exists only in a lab"),
            Edit::Service { .. } => fleeting(
                edit,
                "it is a switch of the service; set it where the service is started",
            ),
        }
    }

    fn of_file(path: &str, value: String) -> Self {
        let below = |dir: &str| path.strip_prefix(dir);
        if let Some(path) = below("/proc/sys/") {
            let path = path.to_owned();
            return Self::Sysctl { path, value };
        }
        if let Some((device, attribute)) = below("/sys/class/net/").and_then(split) {
            return Self::Net {
                device,
                attribute,
                value,
            };
        }
        if let Some((disk, attribute)) = below("/sys/block/").and_then(split) {
            return Self::Block {
                disk,
                attribute,
                value,
            };
        }
        if let Some((groups, file)) =
            below("/sys/fs/cgroup/").and_then(|rest| rest.rsplit_once('/'))
        {
            return Self::Group {
                path: path.to_owned(),
                group: groups.rsplit('/').next().unwrap_or_default().to_owned(),
                file: file.to_owned(),
                value,
            };
        }
        if path.starts_with("/proc/irq/") {
            return Self::Fleeting {
                what: format!("{path} = {value}"),
                why: "interrupts are renumbered at each boot; run `rungwise knob apply net.irq_affinity=...` once the \
                      device is up, and stop irqbalance (net.irqbalance_stop)"
                    .to_owned(),
            };
        }
        Self::Sys {
            path: path.to_owned(),
            value,
        }
    }

    /// What is set, whatever the value.
    pub(super) fn target(&self) -> String {
        match self {
            Self::Sysctl { path, .. } | Self::Group { path, .. } | Self::Sys { path, .. } => {
                path.clone()
            }
            Self::Net {
                device, attribute, ..
            } => format!("/sys/class/net/{device}/{attribute}"),
            Self::Block {
                disk, attribute, ..
            } => format!("/sys/block/{disk}/{attribute}"),
            Self::Tool { what, .. } => what.split(" = ").next().unwrap_or_default().to_owned(),
            Self::Boot { text } => text
                .split_whitespace()
                .filter_map(|word| word.split('=').next())
                .collect::<Vec<_>>()
                .join(" "),
            Self::Fleeting { what, .. } => what.clone(),
        }
    }

    /// The file that is written and its value, if it is one.
    pub(super) fn file(&self) -> Option<(String, &str)> {
        match self {
            Self::Sysctl { path, value } => Some((format!("/proc/sys/{path}"), value)),
            Self::Net { value, .. } | Self::Block { value, .. } | Self::Sys { value, .. } => {
                Some((self.target(), value))
            }
            _ => None,
        }
    }

    /// It changes the queues of this device, and so resets their settings.
    pub(super) fn changes_queues_of(&self, wanted: &str) -> bool {
        matches!(self, Self::Tool { device, order: QUEUES, .. } if device == wanted)
    }

    /// The network device that must exist first.
    pub(super) fn device(&self) -> Option<&str> {
        match self {
            Self::Net { device, .. } | Self::Tool { device, .. } => Some(device),
            _ => None,
        }
    }

    /// Settings that reset one another are made in this order: queues, the card, features, files.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Tool { order, .. } => *order,
            // A scheduler starts with a number of requests of its own.
            Self::Block { attribute, .. } if attribute == "queue/scheduler" => FEATURES,
            _ => FEATURES + 1,
        }
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { knob, item, .. } = self;
        match item {
            Item::Tool { what, .. } | Item::Fleeting { what, .. } => write!(f, "{knob}: {what}"),
            Item::Boot { text } => write!(f, "{knob}: {text}"),
            Item::Group { path, value, .. } => write!(f, "{knob}: {path} = {value}"),
            item => match item.file() {
                Some((path, value)) => write!(f, "{knob}: {path} = {value}"),
                None => f.write_str(knob),
            },
        }
    }
}

fn fleeting(edit: &Edit, why: &str) -> Item {
    Item::Fleeting {
        what: format!("{} = {}", edit.target(), edit.value()),
        why: why.to_owned(),
    }
}

fn split(rest: &str) -> Option<(String, String)> {
    let (name, attribute) = rest.split_once('/')?;
    Some((name.to_owned(), attribute.to_owned()))
}

fn order(setting: DeviceSetting) -> u8 {
    match setting {
        DeviceSetting::Channels => QUEUES,
        DeviceSetting::Ring => 1,
        DeviceSetting::Coalesce => 2,
        DeviceSetting::RssTable => 3,
        DeviceSetting::HashUdp4 | DeviceSetting::HashUdp6 => 4,
        DeviceSetting::RootQdisc => FEATURES + 2,
    }
}

/// The arguments of ethtool or tc; none where they cannot express the value.
fn command(device: &str, setting: DeviceSetting, value: &str) -> Option<String> {
    let parts = value.replace('=', " ");
    let ethtool =
        |option: &str, rest: &str| Some(format!("/usr/sbin/ethtool {option} {device} {rest}"));
    match setting {
        DeviceSetting::Channels => ethtool("-L", &parts),
        DeviceSetting::Ring => ethtool("-G", &parts),
        DeviceSetting::Coalesce => ethtool("-C", &parts),
        DeviceSetting::RssTable if value == "default" => ethtool("-X", "default"),
        DeviceSetting::RssTable => {
            let queues = crate::device::rss_table::equal(value)?;
            ethtool("-X", &format!("equal {queues}"))
        }
        DeviceSetting::HashUdp4 | DeviceSetting::HashUdp6 if value == "none" => None,
        DeviceSetting::HashUdp4 => ethtool("-N", &format!("rx-flow-hash udp4 {value}")),
        DeviceSetting::HashUdp6 => ethtool("-N", &format!("rx-flow-hash udp6 {value}")),
        DeviceSetting::RootQdisc if value == "default" => {
            Some(format!("/usr/sbin/tc qdisc del dev {device} root"))
        }
        DeviceSetting::RootQdisc => Some(format!(
            "/usr/sbin/tc qdisc replace dev {device} root {value}"
        )),
    }
}
