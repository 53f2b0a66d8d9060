//! The ethtool ioctl to one device: a command and its answer in one buffer of words.
//!
//! Some commands write as much as the driver has, whatever size the caller named. Their buffer therefore has headroom
//! beyond any driver's wish; it is made once, and untouched pages of it cost nothing.
#![expect(
    unsafe_code,
    reason = "the ethtool ioctl takes a pointer inside struct ifreq"
)]

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;
use std::sync::{Mutex, PoisonError};

use crate::netlink::text;

const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
/// `ETH_SS_STATS`.
pub(super) const STATISTICS: u32 = 1;
/// `ETH_SS_FEATURES`.
pub(super) const FEATURES: u32 = 4;
const STRING_LEN: usize = 32;
/// Words of headroom: 16,384 more names of statistics than the driver said a moment ago; 256 queues with
/// 32 counters each are half of that.
const HEADROOM: usize = 16_384 * STRING_LEN / 4;

/// An ioctl channel to one device.
pub(super) struct Ioctl {
    socket: UnixDatagram,
    request: libc::ifreq,
}

impl Ioctl {
    pub(super) fn open(device: &str) -> io::Result<Self> {
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
        })
    }

    /// Runs the command in `buffer`, which has room for the answer.
    pub(super) fn call(&self, buffer: &mut [u32]) -> io::Result<i32> {
        let mut request = self.request;
        request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
        // SAFETY: `request` names a device and points to `buffer`, which the callers size for the
        // command's answer: fixed structures in full, counted ones by the count in the command or, where
        // the kernel does not look at it, with headroom.
        let result =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(result)
    }

    /// A set of names of the device, such as [`FEATURES`].
    pub(super) fn strings(&self, set: u32) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: cmd, reserved, u64 mask, one count per bit of the mask.
        let mut info = [GSSET_INFO, 0, 0, 0, 0];
        let mask = (1_u64 << set).to_ne_bytes();
        info[2] = u32::from_ne_bytes([mask[0], mask[1], mask[2], mask[3]]);
        info[3] = u32::from_ne_bytes([mask[4], mask[5], mask[6], mask[7]]);
        self.call(&mut info)?;
        // The kernel clears the bit of a set that the device does not have.
        if info[2] == 0 && info[3] == 0 {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        // struct ethtool_gstrings: cmd, set, count, then names of 32 bytes.
        let expected = info[4] as usize;
        with_room(3 + expected * STRING_LEN / 4, |words| {
            words[..3].copy_from_slice(&[GSTRINGS, set, info[4]]);
            self.call(words)?;
            let count = words[2] as usize;
            let names = words
                .get(3..3 + count * STRING_LEN / 4)
                .ok_or(io::ErrorKind::Interrupted)?;
            Ok(bytes(names).chunks_exact(STRING_LEN).map(text).collect())
        })
    }
}

/// Lends a buffer of `words` zeroes, with the headroom behind them.
pub(super) fn with_room<R>(words: usize, work: impl FnOnce(&mut [u32]) -> R) -> R {
    static ROOM: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    // What a panic left in it is overwritten.
    let mut room = ROOM.lock().unwrap_or_else(PoisonError::into_inner);
    if room.len() < words + HEADROOM {
        // Not by growing, which would write to every page.
        *room = vec![0; words + HEADROOM];
    }
    room[..words].fill(0);
    work(&mut room)
}

/// The bytes of words.
pub(super) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
