//! Receive side scaling by ioctl: the indirection table and the fields that are hashed.
//!
//! A table that equals the kernel's own choice (queue of entry i is i modulo the queues) is set by a reset: only then
//! does the driver adapt it when queues are added later, as it did by default. Source: `ethtool_set_rxfh_indir` in
//! net/ethtool/ioctl.c of Linux 6.18.

use std::io;

use crate::ethtool::ioctl::{self, Ioctl};
use crate::netlink::{number32, number64};
use crate::setting;

const GRXFH: u32 = 0x29;
const SRXFH: u32 = 0x2a;
const GRXRINGS: u32 = 0x2d;
const GRXFHINDIR: u32 = 0x38;
const SRXFHINDIR: u32 = 0x39;
/// `UDP_V4_FLOW`.
pub(crate) const UDP4: u32 = 2;
/// `UDP_V6_FLOW`.
pub(crate) const UDP6: u32 = 6;
/// struct `ethtool_rxnfc`: 192 bytes, which `GRXRINGS` reads and writes in full.
const FLOW_WORDS: usize = 48;

/// Queue of each entry.
pub(crate) fn table(device: &str) -> io::Result<Vec<u32>> {
    let ioctl = Ioctl::open(device)?;
    let size = table_size(&ioctl)?;
    // struct ethtool_rxfh_indir: command, size, entries. A table that grew meanwhile is EINVAL.
    let mut words = vec![0; 2 + size];
    words[..2].copy_from_slice(&[GRXFHINDIR, size as u32]);
    ioctl.call(&mut words)?;
    Ok(words.split_off(2))
}

/// The table as text.
pub(super) fn text(device: &str) -> io::Result<String> {
    Ok(setting::spell_table(&table(device)?))
}

/// Sets the table; a shorter list goes round.
pub(super) fn set(device: &str, value: &str) -> io::Result<()> {
    let ioctl = Ioctl::open(device)?;
    let size = table_size(&ioctl)?;
    let list = setting::table(value).ok_or(io::ErrorKind::InvalidInput)?;
    if list.len() > size {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "{} entries do not fit the RSS table of {device}, which has {size}",
                list.len()
            ),
        ));
    }
    let mut wanted = setting::fill(&list, size);
    let mut rings = [0; FLOW_WORDS];
    rings[0] = GRXRINGS;
    // A driver that does not report its rings gets the table unchanged.
    let rings = ioctl.call(&mut rings).map_or(0, |_| rings[2]);
    if is_default(&wanted, rings) {
        // A table of size 0 stands for a reset.
        wanted.clear();
    }
    let mut words = vec![SRXFHINDIR, wanted.len() as u32];
    words.extend(wanted);
    ioctl.call(&mut words).map(drop)
}

/// Letters of the fields that are hashed for a flow.
pub(crate) fn hash(device: &str, flow: u32) -> io::Result<String> {
    // struct ethtool_rxnfc: command, flow type, 64 bits of fields.
    let mut words = [0; FLOW_WORDS];
    words[..2].copy_from_slice(&[GRXFH, flow]);
    Ioctl::open(device)?.call(&mut words)?;
    Ok(setting::hash_letters(join([words[2], words[3]])))
}

/// Sets the fields.
pub(super) fn set_hash(device: &str, flow: u32, letters: &str) -> io::Result<()> {
    let bits = setting::hash_bits(letters).ok_or(io::ErrorKind::InvalidInput)?;
    let [low, high] = split(bits);
    let mut words = [0; FLOW_WORDS];
    words[..4].copy_from_slice(&[SRXFH, flow, low, high]);
    Ioctl::open(device)?.call(&mut words).map(drop)
}

fn table_size(ioctl: &Ioctl) -> io::Result<usize> {
    let mut words = [GRXFHINDIR, 0];
    ioctl.call(&mut words)?;
    Ok(words[1] as usize)
}

/// `ethtool_rxfh_indir_default`.
fn is_default(table: &[u32], rings: u32) -> bool {
    rings > 0
        && table
            .iter()
            .zip(0_u32..)
            .all(|(queue, entry)| *queue == entry % rings)
}

/// 64 bits out of two words in the order of memory.
fn join(words: [u32; 2]) -> u64 {
    number64(&ioctl::bytes(&words), 0).unwrap_or_default()
}

fn split(bits: u64) -> [u32; 2] {
    [0, 4].map(|at| number32(&bits.to_ne_bytes(), at).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_choice_is_known() {
        assert!(is_default(&setting::fill(&[0, 1, 2, 3], 128), 4));
        assert!(!is_default(&setting::fill(&[0, 1], 128), 4));
        assert!(!is_default(&[0, 1], 0), "rings are unknown");
    }

    #[test]
    fn bits_survive_their_two_words() {
        for bits in [0, 1, 1 << 31, 1 << 32, u64::MAX - 5] {
            assert_eq!(join(split(bits)), bits);
        }
    }
}
