//! The primitive edits: a small closed set, each able to tell, write and compare its value.
//!
//! Whatever can be expressed here can be undone, because every edit's value is one line of text that
//! can be captured before and written back after. What two spellings of a value mean is the
//! business of the target's [`Form`].

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rungwise_host::Host;
use serde::{Deserialize, Serialize};

use crate::target::{self, Form};

/// Prefix of every `nf_tables` table that is ours. No other table is ever touched.
pub const OUR_TABLES: &str = "rungwise_";

/// Where the settings of a device live, in a folder of its name.
const DEVICE_DIRS: [&str; 3] = [
    "/sys/class/net/",
    "/proc/sys/net/ipv4/conf/",
    "/proc/sys/net/ipv6/conf/",
];

/// One primitive change: what is to hold afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// A file of the kernel holds `value`.
    WriteFile {
        /// Absolute path.
        path: String,
        /// One line.
        value: String,
    },
    /// A device feature is on or off.
    Feature {
        /// Device name.
        device: String,
        /// The feature's kernel name: `rx-gro`.
        feature: String,
        /// The state.
        on: bool,
    },
    /// Our own table of obstacle chains is there or not; never one that was found on the host.
    NftTable {
        /// Name, starting with [`OUR_TABLES`].
        name: String,
        /// The state.
        present: bool,
    },
    /// A switch of the service under test. Whoever runs the service realises it by a restart; the
    /// engine neither writes nor journals it.
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
            Self::WriteFile { path, .. } => path.clone(),
            Self::Feature {
                device, feature, ..
            } => format!("feature {feature} of {device}"),
            Self::NftTable { name, .. } => format!("table inet {name}"),
            Self::Service { switch, .. } => format!("switch {switch} of the service"),
        }
    }

    /// The value that is to hold, as text.
    pub fn value(&self) -> Cow<'_, str> {
        match self {
            Self::WriteFile { value, .. } | Self::Service { value, .. } => value.into(),
            Self::Feature { on, .. } => on_off(*on).into(),
            Self::NftTable { present, .. } => present_absent(*present).into(),
        }
    }

    /// The device this edit is about, if it is about one.
    pub fn device(&self) -> Option<&str> {
        match self {
            Self::WriteFile { path, .. } => {
                let device = DEVICE_DIRS
                    .iter()
                    .find_map(|dir| path.strip_prefix(dir))?
                    .split('/')
                    .next()?;
                // Not devices: the settings of all, and those that new ones start with.
                (!["all", "default"].contains(&device)).then_some(device)
            }
            Self::Feature { device, .. } => Some(device),
            _ => None,
        }
    }

    /// The value that holds now.
    pub fn current(&self, host: &dyn Host) -> io::Result<String> {
        match self {
            Self::WriteFile { path, .. } => host.text(Path::new(path)),
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
            Self::Service { .. } => Err(not_a_service()),
        }
    }

    /// Makes `value` hold; the value need not be the edit's own, undo writes the old one.
    pub(crate) fn write(&self, host: &dyn Host, value: &str) -> io::Result<()> {
        match self {
            Self::WriteFile { path, .. } => host.write(Path::new(path), value.as_bytes()),
            Self::Feature {
                device, feature, ..
            } => host.set_feature(device, feature, value == on_off(true)),
            Self::NftTable { name, .. } if value == present_absent(true) => host.plant_chains(name),
            Self::NftTable { name, .. } => host.remove_table(name),
            Self::Service { .. } => Err(not_a_service()),
        }
    }

    /// Two spellings of one value of this target.
    pub fn same(&self, one: &str, other: &str) -> bool {
        match self {
            Self::WriteFile { path, .. } => target::form_of(path).map_or_else(
                || Form::Words.same(one, other),
                |form| form.same(one, other),
            ),
            _ => one == other,
        }
    }

    /// `value` is one that this target can hold at all.
    pub(crate) fn can_hold(&self, value: &str) -> bool {
        match self {
            Self::WriteFile { path, .. } => {
                target::form_of(path).is_some_and(|form| form.holds(value))
            }
            Self::Feature { .. } => [on_off(true), on_off(false)].contains(&value),
            Self::NftTable { .. } => [present_absent(true), present_absent(false)].contains(&value),
            Self::Service { .. } => true,
        }
    }
}

/// Where an edit is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The network namespace in which the tool was started.
    Host,
    /// A namespace of a lab. It lives only as long as the tool, and its settings with it.
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

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn present_absent(present: bool) -> &'static str {
    if present { "present" } else { "absent" }
}

fn not_a_service() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "a switch of the service is set by whoever starts the service",
    )
}
