//! A mount, and the option of it that is changed.
//!
//! A path leads to the last mount there, and another mount namespace has other mounts: so a mount is identified by its
//! path, its number and its namespace. A number is reused once the mount is gone; then only the path or the option's
//! value distinguishes the two.

use std::io;
use std::path::Path;

use rungwise_host::{Host, MountOption, Mounted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mount of an [`Edit::Mount`](crate::Edit::Mount).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Where it is mounted.
    pub point: String,
    /// Its number.
    pub id: u32,
    /// Its mount namespace.
    pub namespace: u64,
}

impl Mount {
    /// What is mounted at `point`, with the options it has; `None` if nothing is.
    pub(crate) fn find(host: &dyn Host, point: &str) -> io::Result<Option<(Self, Mounted)>> {
        let namespace = host.mount_namespace()?;
        let mounts = host.mounts()?;
        // The last one covers those before it.
        let found = mounts.into_iter().rfind(|mount| mount.point == point);
        Ok(found.map(|found| {
            let mount = Self {
                point: point.to_owned(),
                id: found.id,
                namespace,
            };
            (mount, found)
        }))
    }

    /// The current value of the option.
    pub(crate) fn option(&self, host: &dyn Host, option: MountOption) -> io::Result<String> {
        if host.mount_namespace()? != self.namespace {
            return Err(io::Error::other(format!(
                "it belongs to mount namespace {}, which is not this one",
                self.namespace
            )));
        }
        let mounts = host.mounts()?;
        match mounts.iter().rfind(|mount| mount.point == self.point) {
            Some(top) if top.id == self.id => Ok(top.option(option).to_owned()),
            _ if mounts.iter().any(|mount| mount.id == self.id) => Err(io::Error::other(
                "it was moved, or something else is mounted over it",
            )),
            _ => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it is no longer mounted",
            )),
        }
    }

    /// Sets the option.
    pub(crate) fn set(&self, host: &dyn Host, option: MountOption, value: &str) -> io::Result<()> {
        self.option(host, option)?;
        host.remount(Path::new(&self.point), option, value)
    }
}
