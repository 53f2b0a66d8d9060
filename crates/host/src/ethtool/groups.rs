//! Channels, rings and coalescing: groups of numbers that ethtool reads and writes together.
//!
//! By netlink where the kernel has the ethtool family (5.6): what a driver lacks is not in the answer, and
//! a change names only what it changes. By ioctl elsewhere: a structure of words that is read, altered and
//! written as a whole. One table says where each part is in either.

use std::collections::BTreeMap;
use std::io;

use crate::ethtool::ioctl::Ioctl;
use crate::netlink::{ACK, DUMP, Message, Request, find, number32};
use crate::setting::{self, DeviceSetting};

const GENERIC: isize = libc::NETLINK_GENERIC as isize;
/// `GENL_ID_CTRL`, and its command that turns the name of a family into its number.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// struct genlmsghdr: command, version, reserved.
const FIXED: usize = 4;
/// Every ethtool message has its header in its first attribute.
const HEADER: u16 = 1;
const HEADER_INDEX: u16 = 1;
const HEADER_NAME: u16 = 2;

/// Which numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Channels,
    Ring,
    Coalesce,
}

/// Parts by name. A limit is named as its part with `max-` before it.
pub(crate) type Parts = BTreeMap<&'static str, u32>;

/// How one group travels.
struct Layout {
    setting: DeviceSetting,
    /// `ETHTOOL_MSG_*_GET` and `_SET`.
    messages: [u8; 2],
    /// `ETHTOOL_G*` and `ETHTOOL_S*`.
    commands: [u32; 2],
    /// Words of the ioctl's structure.
    words: usize,
    parts: &'static [Part],
}

struct Part {
    name: &'static str,
    attribute: u16,
    /// Index of its word in the ioctl's structure.
    word: usize,
    /// Bytes of the attribute.
    bytes: usize,
}

const fn part(name: &'static str, attribute: u16, word: usize) -> Part {
    Part {
        name,
        attribute,
        word,
        bytes: 4,
    }
}

const fn switch(name: &'static str, attribute: u16, word: usize) -> Part {
    Part {
        name,
        attribute,
        word,
        bytes: 1,
    }
}

const CHANNELS: Layout = Layout {
    setting: DeviceSetting::Channels,
    messages: [17, 18],
    commands: [0x3c, 0x3d],
    words: 9,
    parts: &[
        part("max-rx", 2, 1),
        part("max-tx", 3, 2),
        part("max-combined", 5, 4),
        part("rx", 6, 5),
        part("tx", 7, 6),
        part("combined", 9, 8),
    ],
};

const RING: Layout = Layout {
    setting: DeviceSetting::Ring,
    messages: [15, 16],
    commands: [0x10, 0x11],
    words: 9,
    parts: &[
        part("max-rx", 2, 1),
        part("max-tx", 5, 4),
        part("rx", 6, 5),
        part("tx", 9, 8),
    ],
};

const COALESCE: Layout = Layout {
    setting: DeviceSetting::Coalesce,
    messages: [19, 20],
    commands: [0xe, 0xf],
    words: 23,
    parts: &[
        part("rx-usecs", 2, 1),
        part("rx-frames", 3, 2),
        part("tx-usecs", 6, 5),
        part("tx-frames", 7, 6),
        switch("adaptive-rx", 11, 10),
        switch("adaptive-tx", 12, 11),
    ],
};

impl Group {
    fn layout(self) -> &'static Layout {
        match self {
            Self::Channels => &CHANNELS,
            Self::Ring => &RING,
            Self::Coalesce => &COALESCE,
        }
    }
}

/// Access to groups: the number of ethtool's netlink family, or `None` where only the ioctl is there.
#[derive(Clone, Copy)]
pub(crate) struct Door(Option<u16>);

impl Door {
    /// Detects which.
    pub(crate) fn open() -> io::Result<Self> {
        let mut request = Request::default();
        request
            .message(CONTROL, 0, &[GET_FAMILY, 1, 0, 0])
            .text(FAMILY_NAME, "ethtool");
        let mut id = None;
        let asked = request.each(GENERIC, |message| {
            id = find(message.rest(FIXED), FAMILY_ID)
                .and_then(|value| value.try_into().ok())
                .map(u16::from_ne_bytes);
        });
        match asked {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(Self(id)),
        }
    }

    /// A group of every device that has it, by index.
    pub(crate) fn read_all(self, group: Group, names: &[(u32, String)]) -> AllParts {
        let layout = group.layout();
        let Some(family) = self.0 else {
            let read = |name: &str| read_by_ioctl(name, layout);
            return names
                .iter()
                .map(|(index, name)| (*index, read(name)))
                .collect();
        };
        let mut request = Request::default();
        request
            .message(family, DUMP, &[layout.messages[0], 1, 0, 0])
            .nested(HEADER, |_| {});
        let mut found = BTreeMap::new();
        let dumped = request.each(GENERIC, |message| found.extend(parts_in(message, layout)));
        names
            .iter()
            .map(|(index, _)| {
                let parts = match (found.remove(index), &dumped) {
                    (Some(parts), _) => Ok(parts),
                    (None, Err(error)) => Err(again(error)),
                    // A dump leaves out the devices that do not have the group.
                    (None, Ok(())) => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
                };
                (*index, parts)
            })
            .collect()
    }

    fn read(self, device: &str, layout: &Layout) -> io::Result<Parts> {
        let Some(family) = self.0 else {
            return read_by_ioctl(device, layout);
        };
        let mut request = Request::default();
        request
            .message(family, 0, &[layout.messages[0], 1, 0, 0])
            .nested(HEADER, |header| {
                header.text(HEADER_NAME, device);
            });
        let mut found = None;
        request.each(GENERIC, |message| found = parts_in(message, layout))?;
        found
            .map(|(_, parts)| parts)
            .filter(|parts| !parts.is_empty())
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }

    fn write(self, device: &str, layout: &Layout, parts: &Parts) -> io::Result<()> {
        let Some(family) = self.0 else {
            return write_by_ioctl(device, layout, parts);
        };
        let mut request = Request::default();
        request
            .message(family, ACK, &[layout.messages[1], 1, 0, 0])
            .nested(HEADER, |header| {
                header.text(HEADER_NAME, device);
            });
        for part in layout.parts {
            if let Some(value) = parts.get(part.name) {
                match part.bytes {
                    1 => request.attribute(part.attribute, &[u8::from(*value != 0)]),
                    _ => request.attribute(part.attribute, &value.to_ne_bytes()),
                };
            }
        }
        request.in_words().send(GENERIC)
    }
}

/// A group by the index of the device, or why it is not there.
pub(crate) type AllParts = BTreeMap<u32, io::Result<Parts>>;

/// The group of one device in its one spelling.
pub(super) fn text(device: &str, group: Group) -> io::Result<String> {
    let layout = group.layout();
    let parts = settable(Door::open()?.read(device, layout)?);
    Ok(setting::spell(layout.setting, &parts))
}

/// Sets the parts that `value` names.
pub(super) fn set(device: &str, group: Group, value: &str) -> io::Result<()> {
    let layout = group.layout();
    let wanted = layout
        .setting
        .parts(value)
        .ok_or(io::ErrorKind::InvalidInput)?;
    let door = Door::open()?;
    let current = settable(door.read(device, layout)?);
    let lacking = wanted.keys().find(|name| !current.contains_key(*name));
    if let Some(name) = lacking {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{device} has no {name} among its {}", layout.setting),
        ));
    }
    // What holds already is not asked for again: some drivers reset the link for it.
    let changed: Parts = wanted
        .into_iter()
        .filter(|(name, value)| current.get(name) != Some(value))
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    door.write(device, layout, &changed)
}

/// Without limits, and without the parts that the limits say are not there.
fn settable(parts: Parts) -> Parts {
    let limits: Parts = parts
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("max-")?, *value)))
        .collect();
    parts
        .into_iter()
        .filter(|(name, _)| !name.starts_with("max-") && limits.get(name) != Some(&0))
        .collect()
}

/// Index of the device and the parts in an answer.
fn parts_in(message: &Message<'_>, layout: &Layout) -> Option<(u32, Parts)> {
    let attributes = message.rest(FIXED);
    let index = find(find(attributes, HEADER)?, HEADER_INDEX)?;
    let mut parts = Parts::new();
    for part in layout.parts {
        let Some(value) = find(attributes, part.attribute) else {
            continue;
        };
        let value = match part.bytes {
            1 => value.first().map(|byte| u32::from(*byte)),
            _ => number32(value, 0),
        };
        parts.extend(value.map(|value| (part.name, value)));
    }
    Some((number32(index, 0)?, parts))
}

fn read_by_ioctl(device: &str, layout: &Layout) -> io::Result<Parts> {
    let words = words(&Ioctl::open(device)?, layout)?;
    let part = |part: &Part| (part.name, words[part.word]);
    Ok(layout.parts.iter().map(part).collect())
}

fn write_by_ioctl(device: &str, layout: &Layout, parts: &Parts) -> io::Result<()> {
    let ioctl = Ioctl::open(device)?;
    let mut words = words(&ioctl, layout)?;
    words[0] = layout.commands[1];
    for part in layout.parts {
        if let Some(value) = parts.get(part.name) {
            words[part.word] = *value;
        }
    }
    ioctl.call(&mut words).map(drop)
}

fn words(ioctl: &Ioctl, layout: &Layout) -> io::Result<Vec<u32>> {
    let mut words = vec![0; layout.words];
    words[0] = layout.commands[0];
    ioctl.call(&mut words)?;
    Ok(words)
}

/// An error once more, for another device.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use proptest::prelude::*;

    use super::*;
    use crate::link;
    use crate::namespace::Namespace;
    use crate::netlink::testing;
    use crate::privilege::{self, Privilege};

    const GROUPS: [Group; 3] = [Group::Channels, Group::Ring, Group::Coalesce];

    #[test]
    fn both_doors_tell_the_same_of_every_device_here() {
        let names: Vec<(u32, String)> = link::list()
            .unwrap()
            .into_iter()
            .map(|link| (link.index, link.name))
            .collect();
        for group in GROUPS {
            let by_netlink = Door::open().unwrap().read_all(group, &names);
            let by_ioctl = Door(None).read_all(group, &names);
            for (index, name) in &names {
                match (&by_netlink[index], &by_ioctl[index]) {
                    // The ioctl tells zero where the driver has nothing; netlink tells nothing.
                    (Ok(some), Ok(all)) => {
                        let in_ioctl = |(part, _): &(&&str, &u32)| some.contains_key(**part);
                        let (same, rest): (Vec<_>, Vec<_>) = all.iter().partition(in_ioctl);
                        assert!(same.into_iter().eq(some), "{group:?} of {name}");
                        assert!(rest.iter().all(|(_, value)| **value == 0), "{rest:?}");
                    }
                    (Err(one), Err(other)) => {
                        assert_eq!(one.raw_os_error(), other.raw_os_error(), "{name}");
                    }
                    (one, other) => panic!("{group:?} of {name}: {one:?}, {other:?}"),
                }
            }
        }
    }

    #[test]
    fn what_is_written_by_ioctl_is_read_by_netlink() {
        if privilege::detect() != Privilege::Root {
            // Past the harness, which keeps what tests that pass print.
            let _ = writeln!(
                io::stderr(),
                "SKIPPED what_is_written_by_ioctl_is_read_by_netlink: needs root"
            );
            return;
        }
        let lab = Namespace::create("ioctl").unwrap();
        lab.run(|| {
            let own = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
            link::create_veth("one0", "two0", 2, own.as_fd()).unwrap();
            let read = || Door::open().unwrap().read("one0", &CHANNELS).unwrap();
            let before = read();
            assert_eq!(before["rx"], 2);
            let change = Parts::from([("rx", 1)]);
            Door(None).write("one0", &CHANNELS, &change).unwrap();
            let mut expected = before;
            expected.extend(change);
            assert_eq!(read(), expected);
        });
    }

    #[test]
    fn a_part_without_room_is_not_there() {
        let parts = [
            ("rx", 0),
            ("max-rx", 0),
            ("combined", 2),
            ("max-combined", 4),
        ];
        assert_eq!(settable(parts.into()), [("combined", 2)].into());
    }

    #[test]
    fn numbers_and_switches_are_read_in_their_width() {
        let mut request = Request::default();
        request
            .message(30, 0, &[0; FIXED])
            .nested(HEADER, |header| {
                header.attribute(HEADER_INDEX, &7_u32.to_ne_bytes());
            })
            .attribute(2, &50_u32.to_ne_bytes())
            .attribute(11, &[1]);
        let mut found = Vec::new();
        testing::receive(&request, |message| {
            found.extend(parts_in(message, &COALESCE));
        });
        let parts = [("rx-usecs", 50), ("adaptive-rx", 1)].into();
        assert_eq!(found, [(7, parts)]);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body: Vec<u8>) {
            for group in GROUPS {
                let _ = parts_in(&testing::message(30, &body), group.layout());
            }
        }
    }
}
