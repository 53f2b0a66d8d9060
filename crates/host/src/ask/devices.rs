//! Network devices: rtnetlink lists them, ethtool describes each.
//!
//! A part that a driver does not have or does not report is absent, with the kernel's error next to it. The groups of
//! numbers take one dump each for all devices, the rest a few ioctls per device.

use std::collections::BTreeMap;
use std::io;

use rungwise_model::kernel::{Channels, Coalesce, NetDevice, Ring, Rss};

use crate::ethtool::groups::{AllParts, Door, Group, Parts};
use crate::ethtool::{self, rss};
use crate::link::{self, Link};

/// All devices of the namespace of the calling thread, in the order of their index.
pub(super) fn devices() -> io::Result<Vec<NetDevice>> {
    let links = link::list()?;
    let names: Vec<(u32, String)> = links
        .iter()
        .map(|link| (link.index, link.name.clone()))
        .collect();
    let door = Door::open()?;
    let mut channels = door.read_all(Group::Channels, &names);
    let mut rings = door.read_all(Group::Ring, &names);
    let mut coalesce = door.read_all(Group::Coalesce, &names);
    Ok(links
        .into_iter()
        .map(|link| {
            let mut refused = BTreeMap::new();
            let mut keep = Keep(&mut refused);
            let numbers = Numbers {
                channels: keep.of("channels", taken(&mut channels, link.index)),
                ring: keep.of("ring", taken(&mut rings, link.index)),
                coalesce: keep.of("coalesce", taken(&mut coalesce, link.index)),
            };
            let device = device(link, &numbers, &mut keep);
            NetDevice { refused, ..device }
        })
        .collect())
}

struct Numbers {
    channels: Option<Parts>,
    ring: Option<Parts>,
    coalesce: Option<Parts>,
}

/// Keeps the values read, and the errors of those that could not be read.
struct Keep<'r>(&'r mut BTreeMap<String, String>);

impl Keep<'_> {
    fn of<T>(&mut self, part: &str, read: io::Result<T>) -> Option<T> {
        read.map_err(|error| self.0.insert(part.to_owned(), errno(&error)))
            .ok()
    }
}

fn taken(all: &mut AllParts, index: u32) -> io::Result<Parts> {
    all.remove(&index)
        .unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::ENODEV)))
}

fn device(link: Link, numbers: &Numbers, keep: &mut Keep<'_>) -> NetDevice {
    let name = &link.name;
    let table = keep.of("rss", rss::table(name));
    let features = keep.of("features", ethtool::features(name));
    NetDevice {
        driver: keep.of("driver", ethtool::driver(name)),
        channels: numbers.channels.as_ref().map(channels),
        ring: numbers.ring.as_ref().map(ring),
        coalesce: numbers.coalesce.as_ref().map(coalesce),
        rss: table.map(|table| Rss {
            table,
            udp4: keep.of("hash fields", rss::hash(name, rss::UDP4)),
        }),
        features: features
            .unwrap_or_default()
            .into_iter()
            .map(|(feature, state)| (feature, (state.on, state.fixed)))
            .collect(),
        statistics: keep
            .of("statistics", ethtool::statistics(name))
            .unwrap_or_default(),
        index: link.index,
        kind: link.kind,
        up: link.up,
        num_rx_queues: link.rx_queues,
        num_tx_queues: link.tx_queues,
        name: link.name,
        refused: BTreeMap::new(),
    }
}

/// A kind of channels that a driver does not have counts as 0 of at most 0.
fn channels(parts: &Parts) -> Channels {
    let part = |name| parts.get(name).copied().unwrap_or_default();
    Channels {
        rx: part("rx"),
        tx: part("tx"),
        combined: part("combined"),
        max_rx: part("max-rx"),
        max_tx: part("max-tx"),
        max_combined: part("max-combined"),
    }
}

/// A ring that a driver does not have counts as 0 entries of at most 0.
fn ring(parts: &Parts) -> Ring {
    let part = |name| parts.get(name).copied().unwrap_or_default();
    Ring {
        rx: part("rx"),
        tx: part("tx"),
        max_rx: part("max-rx"),
        max_tx: part("max-tx"),
    }
}

fn coalesce(parts: &Parts) -> Coalesce {
    let part = |name| parts.get(name).copied();
    let switch = |name| part(name).map(|value| value != 0);
    Coalesce {
        rx_usecs: part("rx-usecs"),
        rx_frames: part("rx-frames"),
        tx_usecs: part("tx-usecs"),
        tx_frames: part("tx-frames"),
        adaptive_rx: switch("adaptive-rx"),
        adaptive_tx: switch("adaptive-tx"),
    }
}

/// The kernel's name of an error where it is one that a driver gives; else its text.
fn errno(error: &io::Error) -> String {
    let name = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "EOPNOTSUPP",
        Some(libc::EPERM) => "EPERM",
        Some(libc::EINVAL) => "EINVAL",
        Some(libc::ENODEV) => "ENODEV",
        Some(libc::EIO) => "EIO",
        Some(libc::EBUSY) => "EBUSY",
        _ => return error.to_string(),
    };
    name.to_owned()
}
