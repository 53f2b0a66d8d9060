//! One question to the kernel's routing and its one answer, by netlink.
//!
//! Two questions are all that is asked, so a message is written by hand. The kernel answers within the call that
//! asks. Sources: RFC 3549, `linux/netlink.h`, `linux/rtnetlink.h`.
#![expect(unsafe_code, reason = "std has no sockets of this family")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
const ERROR: u16 = 2;
/// Room for an answer; a route or a neighbour takes less than 200 bytes.
const ROOM: usize = 4096;

/// A socket that asks.
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    /// For the namespace of the calling thread.
    pub(super) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes numbers.
        let raw = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// What the kernel answers to a message with this fixed part and these attributes, without the header; nothing
    /// where it says only that all is well.
    pub(super) fn ask(
        &self,
        kind: u16,
        flags: i32,
        fixed: &[u8],
        attributes: &[(u16, &[u8])],
    ) -> io::Result<Vec<u8>> {
        let message = message(kind, flags | libc::NLM_F_REQUEST, fixed, attributes);
        let fd = self.0.as_raw_fd();
        // SAFETY: `message` is valid for its length.
        if unsafe { libc::send(fd, message.as_ptr().cast(), message.len(), 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = vec![0_u8; ROOM];
        // SAFETY: `answer` has room for as many bytes as are said.
        let got = unsafe { libc::recv(fd, answer.as_mut_ptr().cast(), ROOM, 0) };
        answer.truncate(usize::try_from(got).map_err(|_| io::Error::last_os_error())?);
        let strange = || io::Error::from(io::ErrorKind::InvalidData);
        let length = word(&answer, 0).ok_or_else(strange)? as usize;
        let body = answer.get(HEADER..length).ok_or_else(strange)?;
        if half(&answer, 4) != Some(ERROR) {
            return Ok(body.to_vec());
        }
        match word(body, 0).ok_or_else(strange)?.cast_signed() {
            0 => Ok(Vec::new()),
            number => Err(io::Error::from_raw_os_error(number.wrapping_neg())),
        }
    }
}

fn message(kind: u16, flags: i32, fixed: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags as u16).to_ne_bytes());
    // Sequence number and sender, which a socket with one question at a time does not need.
    bytes.extend([0; 8]);
    bytes.extend(fixed);
    for (kind, value) in attributes {
        bytes.extend(((value.len() + 4) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(*value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let length = (bytes.len() as u32).to_ne_bytes();
    bytes[..4].copy_from_slice(&length);
    bytes
}

/// The value of the attribute `wanted` behind `fixed` bytes of an answer.
pub(super) fn attribute(answer: &[u8], fixed: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = answer.get(fixed..)?;
    loop {
        let length = usize::from(half(rest, 0)?);
        let value = rest.get(4..length)?;
        if half(rest, 2)? == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// Two bytes of a message.
pub(super) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes([bytes[0], bytes[1]]))
}

/// Four bytes of a message.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_attribute_is_found_behind_padded_ones() {
        let message = message(26, 1, &[9; 12], &[(7, b"abc"), (4, b"wxyz"), (5, b"")]);
        assert_eq!(word(&message, 0), Some(message.len() as u32), "{message:?}");
        let body = &message[HEADER..];
        assert_eq!(attribute(body, 12, 7), Some(&b"abc"[..]));
        assert_eq!(attribute(body, 12, 4), Some(&b"wxyz"[..]));
        assert_eq!(attribute(body, 12, 5), Some(&b""[..]));
        assert_eq!(attribute(body, 12, 6), None);
    }

    proptest! {
        #[test]
        fn no_answer_panics(answer in proptest::collection::vec(any::<u8>(), 0..64), wanted in 0_u16..4) {
            attribute(&answer, 12, wanted);
        }
    }
}
