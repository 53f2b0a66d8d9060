//! Device features (GRO, GSO, checksums) by the ethtool ioctl, under the kernel's own names.
//!
//! The kernel answers a change that it could not make with *success* and a flag: a bit it does not know (`UNSUPPORTED`)
//! or a wish that it noted but could not fulfil (`WISH`). Both are errors here, and a noted wish is withdrawn, or it
//! would take effect later when a dependency changes. Source: linux/ethtool.h (`ETHTOOL_GFEATURES`),
//! net/ethtool/ioctl.c of Linux 6.18.

use std::collections::BTreeMap;
use std::io;

use crate::Feature;
use crate::ethtool::ioctl::{FEATURES, Ioctl};

const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const F_UNSUPPORTED: i32 = 1;
const F_WISH: i32 = 2;

/// State of one feature, `fixed` as `ethtool -k` prints it.
pub(crate) fn feature(device: &str, feature: &str) -> io::Result<Feature> {
    let ethtool = Device::open(device)?;
    let (bit, count) = ethtool.find(feature)?;
    Ok(ethtool.blocks(count)?.of(bit).feature)
}

/// All features by name.
pub(crate) fn all(device: &str) -> io::Result<BTreeMap<String, Feature>> {
    let ethtool = Device::open(device)?;
    let names = ethtool.ioctl.strings(FEATURES)?;
    let blocks = ethtool.blocks(names.len())?;
    Ok(names
        .into_iter()
        .enumerate()
        // Bits without a name are for others to use.
        .filter(|(_, name)| !name.is_empty())
        .map(|(bit, name)| (name, blocks.of(bit).feature))
        .collect())
}

/// Switches one feature.
pub(crate) fn set_feature(device: &str, feature: &str, on: bool) -> io::Result<()> {
    let ethtool = Device::open(device)?;
    let (bit, count) = ethtool.find(feature)?;
    let before = ethtool.blocks(count)?.of(bit);
    let flags = ethtool.request(bit, count, on)?;
    if flags & F_UNSUPPORTED != 0 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the driver of {device} does not allow {feature} to be changed"),
        ));
    }
    let reached = ethtool.blocks(count)?.of(bit).feature.on == on;
    if flags & F_WISH != 0 || !reached {
        ethtool.request(bit, count, before.requested)?;
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "{device} keeps {feature} {}: another feature or the driver prevents the change",
                if on { "off" } else { "on" }
            ),
        ));
    }
    Ok(())
}

/// A device under its name.
struct Device {
    ioctl: Ioctl,
    name: String,
}

/// One feature's bits out of the answer.
struct State {
    feature: Feature,
    /// Wished for, fulfilled or not.
    requested: bool,
}

/// The answer to GFEATURES: command, count, then (available, requested, active, never changed) per 32 features.
struct Blocks(Vec<u32>);

impl Blocks {
    fn of(&self, bit: usize) -> State {
        let word = |field: usize| {
            let index = 2 + bit / 32 * 4 + field;
            self.0
                .get(index)
                .is_some_and(|word| word >> (bit % 32) & 1 == 1)
        };
        State {
            feature: Feature {
                on: word(2),
                fixed: !word(0) || word(3),
            },
            requested: word(1),
        }
    }
}

impl Device {
    fn open(name: &str) -> io::Result<Self> {
        Ok(Self {
            ioctl: Ioctl::open(name)?,
            name: name.to_owned(),
        })
    }

    /// Bit of a feature and the number of features.
    fn find(&self, feature: &str) -> io::Result<(usize, usize)> {
        let names = self.ioctl.strings(FEATURES)?;
        let bit = names.iter().position(|name| name == feature);
        bit.map(|bit| (bit, names.len())).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("this kernel has no feature {feature} for {}", self.name),
            )
        })
    }

    fn blocks(&self, count: usize) -> io::Result<Blocks> {
        let blocks = count.div_ceil(32);
        let mut answer = vec![0; 2 + blocks * 4];
        answer[..2].copy_from_slice(&[GFEATURES, blocks as u32]);
        self.ioctl.call(&mut answer)?;
        Ok(Blocks(answer))
    }

    /// SFEATURES for one bit: command, count, then (valid, requested) per 32 features.
    fn request(&self, bit: usize, count: usize, on: bool) -> io::Result<i32> {
        let blocks = count.div_ceil(32);
        let mut words = vec![0; 2 + blocks * 2];
        words[..2].copy_from_slice(&[SFEATURES, blocks as u32]);
        words[2 + bit / 32 * 2] = 1 << (bit % 32);
        words[3 + bit / 32 * 2] = u32::from(on) << (bit % 32);
        self.ioctl.call(&mut words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_read_by_its_kernel_name() {
        assert!(feature("lo", "rx-gro").is_ok());
        let error = feature("lo", "gro").unwrap_err();
        assert!(error.to_string().contains("no feature gro"), "{error}");
    }

    #[test]
    fn a_device_that_does_not_exist_is_an_error() {
        for device in ["nosuchdev0", "a-name-longer-than-a-device-may-have", "lo\0"] {
            let error = feature(device, "rx-gro").unwrap_err();
            assert_eq!(
                error.raw_os_error(),
                Some(libc::ENODEV),
                "{device:?}: {error}"
            );
        }
    }

    #[test]
    fn the_words_of_a_short_answer_read_as_off() {
        let state = Blocks(vec![GFEATURES, 1, 1, 0, 1, 0]).of(0);
        assert!(state.feature.on && !state.feature.fixed && !state.requested);
        let beyond = Blocks(vec![]).of(70);
        assert!(!beyond.feature.on && beyond.feature.fixed);
    }
}
