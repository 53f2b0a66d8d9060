//! Primitive edits: a small closed set; each can read, write and compare its value.
//!
//! Every edit can be undone, because its value is one line of text that is captured before and written back after. The
//! target's [`Form`] decides whether two spellings mean the same value.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rungwise_host::{AuditRule, DeviceSetting, Host, MountOption};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::by_hand::{self, Way};
use crate::elevator;
use crate::mask;
use crate::open_files::OpenFiles;
use crate::target::{self, Form};

pub use crate::elevator::Elevator;
pub use crate::mounted::Mount;
pub use crate::thread::Thread;
pub use crate::throttled::Row;
pub use crate::twins::Twins;

/// Prefix of every `nf_tables` table that is ours. No other table is ever touched.
pub const OUR_TABLES: &str = "rungwise_";

/// Where the settings of a device live, in a folder of its name.
const DEVICE_DIRS: [&str; 3] = [
    "/sys/class/net/",
    "/proc/sys/net/ipv4/conf/",
    "/proc/sys/net/ipv6/conf/",
];

/// One primitive change: a target and its new value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "edit", rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// Sets a file of the kernel to `value`.
    WriteFile {
        /// Absolute path.
        path: String,
        /// One line.
        value: String,
    },
    /// Preserves a file that another edit of the same plan resets: its intent goes before that edit, for the undo, and
    /// again after it, to rewrite the value.
    Keep {
        /// Absolute path.
        path: String,
        /// Its present value.
        value: String,
    },
    /// Switches a device feature on or off.
    Feature {
        /// Device name.
        device: String,
        /// The feature's kernel name: `rx-gro`.
        feature: String,
        /// The state.
        on: bool,
    },
    /// Adds or removes our own table of obstacle chains; never one that was found on the host.
    NftTable {
        /// Name, starting with [`OUR_TABLES`].
        name: String,
        /// The state.
        present: bool,
    },
    /// Changes a device setting that has no file.
    Setting {
        /// Device name.
        device: String,
        /// Which.
        #[schemars(with = "String")]
        setting: DeviceSetting,
        /// The complete value, in the spelling of [`DeviceSetting::normal`].
        value: String,
    },
    /// Twin files of one quantity, of which one is in force: setting `dirty_bytes` makes `dirty_ratio` read 0, and
    /// neither file accepts 0.
    Twin {
        /// Both.
        files: Twins,
        /// `bytes=NUMBER` or `percent=NUMBER`: the one in force.
        value: String,
    },
    /// The scheduler of a disk; choosing one resets the length of the queue.
    Scheduler {
        /// The disk.
        elevator: Elevator,
        /// `bfq`, or as found with its queue length: `bfq nr_requests=256`.
        value: String,
    },
    /// Sets the CPUs that a thread may run on.
    Affinity {
        /// The thread.
        thread: Thread,
        /// A CPU list.
        value: String,
    },
    /// Sets how many files a process may have open.
    OpenFiles {
        /// Its first thread.
        process: Thread,
        /// `SOFT:HARD`, two numbers.
        value: String,
    },
    /// An option of a mounted file system.
    Mount {
        /// The mount.
        mount: Mount,
        /// Which.
        #[schemars(with = "String")]
        option: MountOption,
        /// One of [`MountOption::values`].
        value: String,
    },
    /// Limits of a control group on one disk.
    Throttle {
        /// Which group and disk.
        row: Row,
        /// The limits as the kernel writes them: `rbps=max wbps=max riops=max wiops=60`, with version 1 one number or 0.
        value: String,
    },
    /// Starts or stops a unit of the service manager.
    Unit {
        /// Its name: `irqbalance.service`.
        unit: String,
        /// The state.
        active: bool,
    },
    /// Adds or removes the audit rule that exempts a user's system calls.
    AuditNever {
        /// The real user id.
        user: u32,
    },
    /// A manual change. It is planned, shown and exported; the engine never applies it.
    ByHand {
        /// Where the text goes.
        way: Way,
        /// What to put there.
        text: String,
    },
    /// A switch of the service under test. It takes effect when the service is restarted with it; the engine neither
    /// writes nor journals it.
    Service {
        /// Name of the switch: `reuseport`.
        switch: String,
        /// Its value.
        value: String,
    },
}

impl Edit {
    /// What is edited, for messages: a path, `rx-gro of eth0`.
    pub fn target(&self) -> String {
        match self {
            Self::WriteFile { path, .. } | Self::Keep { path, .. } => path.clone(),
            Self::Feature {
                device, feature, ..
            } => format!("feature {feature} of {device}"),
            Self::NftTable { name, .. } => format!("table inet {name}"),
            Self::Setting {
                device, setting, ..
            } => format!("{setting} of {device}"),
            Self::Twin { files, .. } => format!("{} or {}", files.bytes, files.percent),
            Self::Scheduler { elevator, .. } => elevator.file(),
            Self::Affinity { thread, .. } => thread.to_string(),
            Self::OpenFiles { process, .. } => format!("open files of process {}", process.pid),
            Self::Mount { mount, option, .. } => match option {
                MountOption::Atime => format!("access times of {}", mount.point),
                MountOption::Discard => format!("discard of {}", mount.point),
            },
            Self::Throttle { row, .. } => format!("limits of disk {} in {}", row.disk, row.file),
            Self::Unit { unit, .. } => unit.clone(),
            Self::AuditNever { user } => format!("audit rule never,exit uid={user}"),
            Self::ByHand { way, .. } => way.place().to_owned(),
            Self::Service { switch, .. } => format!("switch {switch} of the service"),
        }
    }

    /// The new value, as text.
    pub fn value(&self) -> Cow<'_, str> {
        match self {
            Self::WriteFile { value, .. }
            | Self::Keep { value, .. }
            | Self::Setting { value, .. }
            | Self::Twin { value, .. }
            | Self::Scheduler { value, .. }
            | Self::Affinity { value, .. }
            | Self::OpenFiles { value, .. }
            | Self::Mount { value, .. }
            | Self::Throttle { value, .. }
            | Self::Service { value, .. } => value.into(),
            Self::ByHand { text, .. } => text.into(),
            Self::Feature { on, .. } => on_off(*on).into(),
            Self::NftTable { present, .. } => present_absent(*present).into(),
            Self::Unit { active, .. } => active_inactive(*active).into(),
            Self::AuditNever { .. } => present_absent(true).into(),
        }
    }

    /// The device that this edit changes, if it changes one.
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::WriteFile { path, .. } | Self::Keep { path, .. } => {
                let device = DEVICE_DIRS
                    .iter()
                    .find_map(|dir| path.strip_prefix(dir))?
                    .split('/')
                    .next()?;
                // Not devices: the settings of all, and those that new ones start with.
                (!["all", "default"].contains(&device)).then_some(device)
            }
            Self::Feature { device, .. } | Self::Setting { device, .. } => Some(device),
            _ => None,
        }
    }

    /// The current value.
    pub fn current(&self, host: &dyn Host) -> io::Result<String> {
        match self {
            Self::WriteFile { path, .. } => read(host, path),
            // Gone with its queue: there is nothing left to keep.
            Self::Keep { path, value } => match read(host, path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(value.clone()),
                found => found,
            },
            Self::Feature {
                device, feature, ..
            } => Ok(on_off(host.feature(device, feature)?.on).to_owned()),
            Self::NftTable { name, .. } => {
                let present = host
                    .base_chains()?
                    .iter()
                    .any(|chain| chain.family == "inet" && chain.table == *name);
                Ok(present_absent(present).to_owned())
            }
            Self::Setting {
                device, setting, ..
            } => host.device_setting(device, *setting),
            Self::Twin { files, .. } => files.current(host),
            Self::Scheduler { elevator, .. } => elevator.current(host),
            Self::Affinity { thread, .. } => thread.cpus(host),
            Self::OpenFiles { process, .. } => Ok(OpenFiles::read(host, process)?.to_string()),
            Self::Mount { mount, option, .. } => mount.option(host, *option),
            Self::Throttle { row, .. } => row.current(host),
            Self::Unit { unit, .. } => Ok(active_inactive(host.unit_active(unit)?).to_owned()),
            Self::AuditNever { user } => {
                let rules = host.audit_rules()?;
                let ours = |rule: &&AuditRule| **rule == AuditRule::LeavesOut(*user);
                Ok(match rules.iter().filter(ours).count() {
                    // One of them may be someone else's; they cannot be distinguished.
                    several @ 2.. => format!("present {several} times"),
                    one => present_absent(one == 1).to_owned(),
                })
            }
            Self::ByHand {
                way: Way::CommandLine,
                text,
            } => by_hand::booted_with(host, text),
            Self::ByHand { .. } => Err(by_a_person()),
            Self::Service { .. } => Err(not_a_service()),
        }
    }

    /// Sets the target to `value`, which need not be the edit's own: undo writes the old one.
    pub(crate) fn write(&self, host: &dyn Host, value: &str) -> io::Result<()> {
        match self {
            // An empty write(2) never reaches the kernel's handler: an empty list is a bare line end.
            Self::WriteFile { path, .. } if value.is_empty() => host.write(Path::new(path), b"\n"),
            Self::WriteFile { path, .. } | Self::Keep { path, .. } => {
                host.write(Path::new(path), value.as_bytes())
            }
            Self::Feature {
                device, feature, ..
            } => host.set_feature(device, feature, value == on_off(true)),
            Self::NftTable { name, .. } if value == present_absent(true) => host.plant_chains(name),
            Self::NftTable { name, .. } => host.remove_table(name),
            Self::Setting {
                device, setting, ..
            } => host.set_device(device, *setting, value),
            Self::Twin { files, .. } => files.write(host, value),
            Self::Scheduler { elevator, .. } => elevator.write(host, value),
            Self::Affinity { thread, .. } => thread.pin(host, value),
            Self::OpenFiles { process, .. } => OpenFiles::write(host, process, value),
            Self::Mount { mount, option, .. } => mount.set(host, *option, value),
            Self::Throttle { row, .. } => row.write(host, value),
            Self::Unit { unit, .. } => host.set_unit(unit, value == active_inactive(true)),
            Self::AuditNever { user } => host.set_left_out(*user, value == present_absent(true)),
            Self::ByHand { .. } => Err(by_a_person()),
            Self::Service { .. } => Err(not_a_service()),
        }
    }

    /// Whether both are spellings of one value of this target.
    pub fn same(&self, one: &str, other: &str) -> bool {
        match self {
            Self::WriteFile { path, .. } | Self::Keep { path, .. } => target::form_of(path)
                .map_or_else(
                    || Form::Words.same(one, other),
                    |form| form.same(one, other),
                ),
            Self::Scheduler { .. } => elevator::same(one, other),
            Self::Affinity { .. } => Form::CpuList.same(one, other),
            Self::Throttle { row, .. } => match (row.normal(one), row.normal(other)) {
                (Some(one), Some(other)) => one == other,
                _ => one == other,
            },
            Self::Setting { setting, .. } => match (setting.normal(one), setting.normal(other)) {
                (Some(one), Some(other)) => one == other,
                _ => one == other,
            },
            _ => one == other,
        }
    }

    /// Whether `value` is valid for this target.
    pub(crate) fn can_hold(&self, value: &str) -> bool {
        match self {
            Self::WriteFile { path, .. } | Self::Keep { path, .. } => {
                target::form_of(path).is_some_and(|form| form.holds(value))
            }
            Self::Feature { .. } => [on_off(true), on_off(false)].contains(&value),
            Self::NftTable { .. } | Self::AuditNever { .. } => {
                [present_absent(true), present_absent(false)].contains(&value)
            }
            // A root qdisc that an administrator configured reads with its handle; it could not be recreated.
            Self::Setting {
                setting: setting @ DeviceSetting::RootQdisc,
                ..
            } => setting
                .normal(value)
                .is_some_and(|value| !value.contains(' ')),
            Self::Setting { setting, .. } => setting.normal(value).is_some(),
            // The kernel accepts no 0.
            Self::Twin { .. } => Twins::parse(value).is_some_and(|(_, number)| number > 0),
            Self::Scheduler { .. } => elevator::parse(value).is_some(),
            Self::Affinity { .. } => mask::parse_list(value).is_ok(),
            Self::OpenFiles { .. } => OpenFiles::parse(value).is_some(),
            Self::Mount { option, .. } => option.values().contains(&value),
            Self::Throttle { row, .. } => row.normal(value).is_some(),
            Self::Unit { .. } => [active_inactive(true), active_inactive(false)].contains(&value),
            Self::ByHand { .. } | Self::Service { .. } => true,
        }
    }

    /// Whether `found` is what the kernel leaves where a [`Edit::Keep`] was reset: an empty mask, an empty table.
    pub(crate) fn was_reset(&self, found: &str) -> bool {
        matches!(self, Self::Keep { .. })
            && (mask::parse(found).is_some_and(|cpus| cpus.is_empty()) || found.trim() == "0")
    }

    /// Whether `found` is our own intermediate value, neither the new one nor `before`: an undo that writes twice was
    /// killed in between.
    pub(crate) fn is_half_back(&self, host: &dyn Host, found: &str, before: &str) -> bool {
        matches!(self, Self::Scheduler { elevator, .. } if elevator.is_half_back(host, found, before))
    }

    /// Whether the kernel shows this target's value. It does not show a switch of the service, nor most manual changes.
    pub fn readable(&self) -> bool {
        match self {
            Self::Service { .. } => false,
            Self::ByHand { way, .. } => *way == Way::CommandLine,
            _ => true,
        }
    }
}

/// Where an edit is made.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The network namespace in which the tool was started.
    Host,
    /// A lab namespace. It and its settings end with the tool.
    Namespace(String),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.write_str("this host"),
            Self::Namespace(label) => write!(f, "namespace {label}"),
        }
    }
}

/// The open places of a run.
#[derive(Clone, Default)]
pub struct Places {
    open: Vec<(Place, Arc<dyn Host>)>,
}

impl Places {
    /// Only the machine itself.
    pub fn host(host: Arc<dyn Host>) -> Self {
        Self::default().with(Place::Host, host)
    }

    /// Adds a place.
    #[must_use]
    pub fn with(mut self, place: Place, host: Arc<dyn Host>) -> Self {
        self.open.push((place, host));
        self
    }

    /// The machine or namespace behind a place, if it is open.
    pub fn at(&self, place: &Place) -> Option<&dyn Host> {
        self.open
            .iter()
            .find(|(known, _)| known == place)
            .map(|(_, host)| &**host)
    }
}

/// A file's value in its form.
fn read(host: &dyn Host, path: &str) -> io::Result<String> {
    let text = host.text(Path::new(path))?;
    Ok(target::form_of(path)
        .map(|form| form.stored(&text).into_owned())
        .unwrap_or(text))
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn present_absent(present: bool) -> &'static str {
    if present { "present" } else { "absent" }
}

fn active_inactive(active: bool) -> &'static str {
    if active { "active" } else { "inactive" }
}

fn by_a_person() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "it must be done by hand")
}

fn not_a_service() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "a switch of the service is set when the service is started",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_qdisc_that_somebody_configured_is_nothing_that_could_be_put_back() {
        let root = Edit::Setting {
            device: "eth0".to_owned(),
            setting: DeviceSetting::RootQdisc,
            value: "fq".to_owned(),
        };
        assert!(root.can_hold("fq") && root.can_hold("default"));
        assert!(!root.can_hold("htb 1:"));
    }

    #[test]
    fn a_limit_of_zero_is_nothing_that_could_be_put_back() {
        let twin = Edit::Twin {
            files: Twins {
                bytes: "/proc/sys/vm/dirty_bytes".to_owned(),
                percent: "/proc/sys/vm/dirty_ratio".to_owned(),
            },
            value: "bytes=8192".to_owned(),
        };
        assert!(twin.can_hold("percent=20") && twin.can_hold("bytes=8192"));
        for value in ["percent=0", "bytes=0", "20", "bytes=|/tmp/x", ""] {
            assert!(!twin.can_hold(value), "{value}");
        }
    }
}
