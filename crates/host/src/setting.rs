//! Device settings that have no file: channels, rings, coalescing, RSS, the root qdisc.
//!
//! Each is read and written as one line of text, so that an edit can journal it like any other value: what
//! [`crate::Host::device_setting`] gives, [`crate::Host::set_device`] takes back. Parts that a driver does not have are
//! not printed, and parts that a new value does not name are unchanged.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One group of settings that the kernel takes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSetting {
    /// Queues in use (`ethtool -L`): `combined=4`, `rx=2 tx=2`. A change resets the RSS table and the
    /// masks of RPS and XPS, and loses packets for a moment.
    Channels,
    /// Ring sizes (`ethtool -G`), entries: `rx=4096 tx=4096`. A change resets the link on some drivers.
    Ring,
    /// Interrupt moderation (`ethtool -C`): `adaptive-rx=off rx-usecs=3 rx-frames=0`.
    Coalesce,
    /// RSS indirection table (`ethtool -X`): the queue of each entry, `0,1,2,3`, repeated until the table is
    /// full. The table that a driver starts with (0, 1, up to the last queue, and again) is set by a reset,
    /// so that the driver goes on adapting it to its queues.
    RssTable,
    /// Fields hashed for UDP over IPv4 (`ethtool -N DEV rx-flow-hash udp4`), its letters: `sd`, `sdfn`;
    /// `none` where nothing is hashed.
    HashUdp4,
    /// The same for IPv6.
    HashUdp6,
    /// Queueing discipline at the root, with its defaults: `fq`; or `default`, the one the kernel chose by itself. One
    /// that someone else configured reads as `KIND HANDLE` and is never replaced.
    RootQdisc,
}

impl DeviceSetting {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Channels,
        Self::Ring,
        Self::Coalesce,
        Self::RssTable,
        Self::HashUdp4,
        Self::HashUdp6,
        Self::RootQdisc,
    ];

    /// The one spelling of a value: parts in order, single spaces; `None` if it is no value of this setting.
    pub fn normal(self, value: &str) -> Option<String> {
        match self {
            Self::Channels | Self::Ring | Self::Coalesce => Some(spell(self, &self.parts(value)?)),
            Self::RssTable => Some(spell_table(&table(value)?)),
            Self::HashUdp4 | Self::HashUdp6 => Some(hash_letters(hash_bits(value.trim())?)),
            Self::RootQdisc => {
                let words: Vec<&str> = value.split_whitespace().collect();
                let plain = |word: &str| {
                    word.len() < 16
                        && word
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte))
                };
                (matches!(words.len(), 1 | 2) && words.iter().all(|word| plain(word)))
                    .then(|| words.join(" "))
            }
        }
    }

    /// `current` after `change` was made to it, spelled as [`DeviceSetting::normal`]; `None` if either is no
    /// value of this setting, or the change names a part that `current` does not have.
    pub fn with(self, current: &str, change: &str) -> Option<String> {
        match self {
            Self::Channels | Self::Ring | Self::Coalesce => {
                let mut parts = self.parts(current)?;
                for (part, value) in self.parts(change)? {
                    *parts.get_mut(part)? = value;
                }
                Some(spell(self, &parts))
            }
            Self::RssTable => {
                let (old, new) = (table(current)?, table(change)?);
                // The table has the size it has.
                (new.len() <= old.len()).then(|| spell_table(&fill(&new, old.len())))
            }
            _ => self.normal(current).and(self.normal(change)),
        }
    }

    /// Named parts of a value, as numbers; a switch is 0 or 1.
    pub(crate) fn parts(self, value: &str) -> Option<BTreeMap<&'static str, u32>> {
        let mut parts = BTreeMap::new();
        for word in value.split_whitespace() {
            let (name, value) = word.split_once('=')?;
            let name = *self.names().iter().find(|known| **known == name)?;
            let value = match (is_switch(name), value) {
                (true, "on") => 1,
                (true, "off") => 0,
                (true, _) => return None,
                (false, number) => number.parse().ok()?,
            };
            if parts.insert(name, value).is_some() {
                return None;
            }
        }
        (!parts.is_empty()).then_some(parts)
    }

    /// Names of the parts in the order they are spelled; empty where a value has none.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Channels => &["rx", "tx", "combined"],
            Self::Ring => &["rx", "tx"],
            Self::Coalesce => &[
                "adaptive-rx",
                "adaptive-tx",
                "rx-usecs",
                "rx-frames",
                "tx-usecs",
                "tx-frames",
            ],
            _ => &[],
        }
    }
}

impl fmt::Display for DeviceSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Channels => "channels",
            Self::Ring => "rings",
            Self::Coalesce => "coalescing",
            Self::RssTable => "RSS table",
            Self::HashUdp4 => "hash fields of udp4",
            Self::HashUdp6 => "hash fields of udp6",
            Self::RootQdisc => "root qdisc",
        })
    }
}

/// The kernel's own choice of a root qdisc.
pub(crate) const DEFAULT: &str = "default";

/// No field is hashed.
const NOTHING: &str = "none";

/// Letters of `ethtool -N` with their bits (`RXH_*` in linux/ethtool.h): m destination MAC, v VLAN,
/// t layer 3 protocol, s source and d destination address, f and n the first and second two bytes of
/// the transport header (the ports), r discard.
const HASH_LETTERS: [(u64, char); 8] = [
    (1 << 1, 'm'),
    (1 << 2, 'v'),
    (1 << 3, 't'),
    (1 << 4, 's'),
    (1 << 5, 'd'),
    (1 << 6, 'f'),
    (1 << 7, 'n'),
    (1 << 31, 'r'),
];

/// Letters for the bits, `none` where no bit has one.
pub(crate) fn hash_letters(bits: u64) -> String {
    let letters: String = HASH_LETTERS
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, letter)| *letter)
        .collect();
    if letters.is_empty() {
        NOTHING.to_owned()
    } else {
        letters
    }
}

/// Bits for the letters; each letter at most once.
pub(crate) fn hash_bits(letters: &str) -> Option<u64> {
    if letters.is_empty() {
        return None;
    }
    if letters == NOTHING {
        return Some(0);
    }
    letters.chars().try_fold(0, |bits, letter| {
        let (bit, _) = HASH_LETTERS.iter().find(|(_, known)| *known == letter)?;
        (bits & bit == 0).then_some(bits | bit)
    })
}

/// Queues of an indirection table; never empty.
pub(crate) fn table(value: &str) -> Option<Vec<u32>> {
    value
        .split(',')
        .map(|queue| queue.trim().parse().ok())
        .collect()
}

/// The list repeated until it fills a table of `size` entries.
pub(crate) fn fill(list: &[u32], size: usize) -> Vec<u32> {
    list.iter().copied().cycle().take(size).collect()
}

pub(crate) fn spell_table(table: &[u32]) -> String {
    let queues: Vec<String> = table.iter().map(u32::to_string).collect();
    queues.join(",")
}

/// Parts in their order: `rx=2 tx=2`.
pub(crate) fn spell(setting: DeviceSetting, parts: &BTreeMap<&'static str, u32>) -> String {
    let words: Vec<String> = setting
        .names()
        .iter()
        .filter_map(|name| {
            let value = parts.get(name)?;
            Some(match (is_switch(name), value) {
                (true, 0) => format!("{name}=off"),
                (true, _) => format!("{name}=on"),
                (false, number) => format!("{name}={number}"),
            })
        })
        .collect();
    words.join(" ")
}

fn is_switch(part: &str) -> bool {
    part.starts_with("adaptive-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_has_one_spelling() {
        let normal = |setting: DeviceSetting, value| setting.normal(value);
        assert_eq!(
            normal(DeviceSetting::Ring, " tx=512  rx=4096").as_deref(),
            Some("rx=4096 tx=512")
        );
        assert_eq!(
            normal(DeviceSetting::Coalesce, "rx-usecs=3 adaptive-rx=off").as_deref(),
            Some("adaptive-rx=off rx-usecs=3")
        );
        assert_eq!(
            normal(DeviceSetting::HashUdp4, "nfds").as_deref(),
            Some("sdfn")
        );
        assert_eq!(
            normal(DeviceSetting::RssTable, "0, 1,2").as_deref(),
            Some("0,1,2")
        );
        assert_eq!(
            normal(DeviceSetting::RootQdisc, "fq").as_deref(),
            Some("fq")
        );
    }

    #[test]
    fn what_is_no_value_has_none() {
        for (setting, value) in [
            (DeviceSetting::Ring, ""),
            (DeviceSetting::Ring, "combined=4"),
            (DeviceSetting::Ring, "rx=1 rx=2"),
            (DeviceSetting::Ring, "rx=-1"),
            (DeviceSetting::Coalesce, "adaptive-rx=1"),
            (DeviceSetting::RssTable, ""),
            (DeviceSetting::RssTable, "0,,1"),
            (DeviceSetting::RssTable, "default"),
            (DeviceSetting::HashUdp4, "sdx"),
            (DeviceSetting::HashUdp4, "ss"),
            (DeviceSetting::HashUdp4, ""),
            (DeviceSetting::RootQdisc, "fq limit 10"),
            (DeviceSetting::RootQdisc, "../fq"),
        ] {
            assert_eq!(setting.normal(value), None, "{setting}: '{value}'");
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let with = |setting: DeviceSetting, current, change| setting.with(current, change);
        assert_eq!(
            with(DeviceSetting::Ring, "rx=256 tx=512", "rx=4096").as_deref(),
            Some("rx=4096 tx=512")
        );
        assert_eq!(
            with(DeviceSetting::Channels, "combined=4", "rx=2"),
            None,
            "a part that the driver does not have"
        );
        assert_eq!(
            with(DeviceSetting::RssTable, "0,0,0,0,0", "0,1").as_deref(),
            Some("0,1,0,1,0")
        );
        assert_eq!(
            with(DeviceSetting::RssTable, "0,0", "0,1,2"),
            None,
            "more entries than the table has"
        );
    }

    proptest! {
        #[test]
        fn the_one_spelling_of_a_spelling_is_itself(value in "[a-z0-9=, :-]{0,24}|\\PC*") {
            for setting in DeviceSetting::ALL {
                if let Some(normal) = setting.normal(&value) {
                    prop_assert_eq!(setting.normal(&normal), Some(normal.clone()));
                    prop_assert_eq!(setting.with(&normal, &normal), Some(normal));
                }
            }
        }
    }
}
