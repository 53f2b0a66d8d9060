//! Device features (GRO, GSO, checksums) by the ethtool ioctl, under the kernel's own names.
//!
//! The kernel answers a change that it could not make with *success* and a flag: a bit it does not
//! know (`UNSUPPORTED`) or a wish that it noted but could not fulfil (`WISH`). Both are errors here,
//! and a noted wish is taken back, for else it would come true later when a dependency changes.
//! Source: linux/ethtool.h (`ETHTOOL_GFEATURES`), net/ethtool/ioctl.c of Linux 6.18.
#![expect(
    unsafe_code,
    reason = "the ethtool ioctl takes a pointer inside struct ifreq"
)]

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;

use crate::Feature;

const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const SS_FEATURES: u32 = 4;
const STRING_LEN: usize = 32;
const F_UNSUPPORTED: i32 = 1;
const F_WISH: i32 = 2;

/// State of one feature, `fixed` as `ethtool -k` prints it.
pub(crate) fn feature(device: &str, feature: &str) -> io::Result<Feature> {
    let ethtool = Ethtool::open(device)?;
    let (bit, count) = ethtool.find(feature)?;
    Ok(ethtool.blocks(count)?.of(bit).feature)
}

/// Switches one feature.
pub(crate) fn set_feature(device: &str, feature: &str, on: bool) -> io::Result<()> {
    let ethtool = Ethtool::open(device)?;
    let (bit, count) = ethtool.find(feature)?;
    let before = ethtool.blocks(count)?.of(bit);
    let flags = ethtool.request(bit, count, on)?;
    if flags & F_UNSUPPORTED != 0 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the driver of {device} does not let {feature} be changed"),
        ));
    }
    let reached = ethtool.blocks(count)?.of(bit).feature.on == on;
    if flags & F_WISH != 0 || !reached {
        ethtool.request(bit, count, before.requested)?;
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "{device} keeps {feature} {}: another feature or the driver forbids the change",
                if on { "off" } else { "on" }
            ),
        ));
    }
    Ok(())
}

/// An ioctl channel to one device.
struct Ethtool {
    socket: UnixDatagram,
    request: libc::ifreq,
    device: String,
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

impl Ethtool {
    fn open(device: &str) -> io::Result<Self> {
        // SAFETY: ifreq is plain data; all zeroes is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if device.len() >= request.ifr_name.len() || device.bytes().any(|byte| byte == 0) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from.cast_signed();
        }
        Ok(Self {
            // Any socket carries device ioctls; this one needs neither address nor port.
            socket: UnixDatagram::unbound()?,
            request,
            device: device.to_owned(),
        })
    }

    /// Runs the command in `buffer`, which has room for the answer.
    fn call(&self, buffer: &mut [u32]) -> io::Result<i32> {
        let mut request = self.request;
        request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
        // SAFETY: `request` names a device and points to `buffer`, which the callers size for the
        // command's answer; the kernel writes no more than the counts in the command allow.
        let result =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(result)
    }

    /// Bit of a feature and the number of features.
    fn find(&self, feature: &str) -> io::Result<(usize, usize)> {
        // struct ethtool_sset_info: cmd, reserved, u64 mask, one count per bit of the mask.
        let mut info = [GSSET_INFO, 0, 0, 0, 0];
        let mask = (1_u64 << SS_FEATURES).to_ne_bytes();
        info[2] = u32::from_ne_bytes([mask[0], mask[1], mask[2], mask[3]]);
        info[3] = u32::from_ne_bytes([mask[4], mask[5], mask[6], mask[7]]);
        self.call(&mut info)?;
        let count = info[4] as usize;
        // struct ethtool_gstrings: cmd, set, count, then names of 32 bytes. The kernel copies as
        // many names as it has, which is the count it gave a moment ago.
        let mut names = vec![0; 3 + count * STRING_LEN / 4];
        names[..3].copy_from_slice(&[GSTRINGS, SS_FEATURES, info[4]]);
        self.call(&mut names)?;
        let bytes: Vec<u8> = names[3..]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let bit = bytes
            .chunks_exact(STRING_LEN)
            .position(|name| name.split(|byte| *byte == 0).next() == Some(feature.as_bytes()));
        bit.map(|bit| (bit, count)).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("this kernel knows no feature {feature} of {}", self.device),
            )
        })
    }

    fn blocks(&self, count: usize) -> io::Result<Blocks> {
        let blocks = count.div_ceil(32);
        let mut answer = vec![0; 2 + blocks * 4];
        answer[..2].copy_from_slice(&[GFEATURES, blocks as u32]);
        self.call(&mut answer)?;
        Ok(Blocks(answer))
    }

    /// SFEATURES for one bit: command, count, then (valid, requested) per 32 features.
    fn request(&self, bit: usize, count: usize, on: bool) -> io::Result<i32> {
        let blocks = count.div_ceil(32);
        let mut words = vec![0; 2 + blocks * 2];
        words[..2].copy_from_slice(&[SFEATURES, blocks as u32]);
        words[2 + bit / 32 * 2] = 1 << (bit % 32);
        words[3 + bit / 32 * 2] = u32::from(on) << (bit % 32);
        self.call(&mut words)
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
