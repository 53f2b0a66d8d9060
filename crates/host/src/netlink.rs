//! Netlink as far as this crate needs it: build messages, send them, read all answers.
//!
//! Links, addresses, neighbours and `nf_tables` need a dozen message shapes in all; one builder of
//! forty lines writes them, which is why no netlink protocol crate is used. The kernel handles a
//! request inside `sendmsg` and continues a dump inside `recvmsg`, so every answer is there when it
//! is asked for and nothing here can wait for ever. Source: linux/netlink.h, RFC 3549.

use std::io;

use netlink_sys::{Socket, SocketAddr};

pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const ACK: u16 = 0x4;
pub(crate) const DUMP: u16 = 0x300;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const CREATE: u16 = 0x400;

const HEADER: usize = 16;
const DUMP_INTERRUPTED: u16 = 0x10;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NESTED: u16 = 0x8000;
/// The kernel never makes a dump message larger than this (`NLMSG_GOODSIZE` is at most 8 KiB, dumps 32 KiB).
const RECEIVE: usize = 64 * 1024;

/// Messages under construction; several make a batch.
#[derive(Default)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    message: usize,
    sequence: u32,
    acks: usize,
}

impl Request {
    /// Begins a message: type, flags (`REQUEST` is added) and the family's fixed header.
    pub(crate) fn message(&mut self, kind: u16, flags: u16, fixed: &[u8]) -> &mut Self {
        self.message = self.bytes.len();
        self.sequence += 1;
        self.acks += usize::from(flags & ACK != 0);
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes
            .extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&self.sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.raw(fixed)
    }

    /// Appends an attribute.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.nest(kind, |inner| {
            inner.raw(value);
        })
    }

    /// Appends a text attribute, zero-terminated as the kernel wants it.
    pub(crate) fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Appends an attribute that holds others.
    pub(crate) fn nested(&mut self, kind: u16, inside: impl FnOnce(&mut Self)) -> &mut Self {
        self.nest(kind | NESTED, inside)
    }

    /// Appends bytes without a header: a fixed part inside an attribute.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self.finish()
    }

    fn nest(&mut self, kind: u16, inside: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        inside(self);
        let length = u16::try_from(self.bytes.len() - start).expect("attributes here are short");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        self.finish()
    }

    fn finish(&mut self) -> &mut Self {
        let length = (self.bytes.len() - self.message) as u32;
        self.bytes[self.message..self.message + 4].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Sends all messages in one datagram on a fresh socket of `protocol` and collects the answers
    /// other than acknowledgements. The first refusal is the error; a missing acknowledgement too. A
    /// dump of what changed under the kernel's hands is `Interrupted`: ask again.
    pub(crate) fn send(&self, protocol: isize) -> io::Result<Vec<Answer>> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.send_to(&self.bytes, &SocketAddr::new(0, 0), 0)?;
        let mut answers = Vec::new();
        let mut acks = 0;
        let mut refusal = None;
        let mut buffer = Vec::with_capacity(RECEIVE);
        loop {
            buffer.clear();
            match socket.recv(&mut buffer, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            for answer in split(&buffer) {
                if answer.flags & DUMP_INTERRUPTED != 0 {
                    refusal.get_or_insert(io::ErrorKind::Interrupted.into());
                }
                match answer.kind {
                    ERROR => match answer.errno() {
                        0 => acks += 1,
                        errno => {
                            refusal.get_or_insert(io::Error::from_raw_os_error(errno));
                        }
                    },
                    DONE => {}
                    _ => answers.push(answer),
                }
            }
        }
        match refusal {
            Some(error) => Err(error),
            None if acks < self.acks => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the kernel acknowledged {acks} of {} messages", self.acks),
            )),
            None => Ok(answers),
        }
    }
}

/// One message of an answer.
pub(crate) struct Answer {
    pub(crate) kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Answer {
    /// First bytes of the fixed header.
    pub(crate) fn fixed(&self, length: usize) -> &[u8] {
        self.body.get(..length).unwrap_or_default()
    }

    /// The attributes after a fixed header of `skip` bytes.
    pub(crate) fn attributes(&self, skip: usize) -> Vec<(u16, &[u8])> {
        attributes(self.body.get(skip..).unwrap_or_default())
    }

    fn errno(&self) -> i32 {
        let code = self.fixed(4).try_into().map_or(0, i32::from_ne_bytes);
        code.saturating_neg()
    }
}

/// Splits a run of attributes, nested ones too; what does not fit its length ends the run.
pub(crate) fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let [l0, l1, k0, k1, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let Some(value) = bytes.get(4..length) else {
            break;
        };
        found.push((u16::from_ne_bytes([k0, k1]) & !0xc000, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Text of an attribute up to its terminating zero.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// A number in network byte order, as `nf_tables` sends them.
pub(crate) fn big_endian(value: &[u8]) -> u32 {
    value.try_into().map_or(0, u32::from_be_bytes)
}

fn split(mut bytes: &[u8]) -> Vec<Answer> {
    let mut found = Vec::new();
    while let [l0, l1, l2, l3, k0, k1, f0, f1, ..] = *bytes {
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        let Some(body) = bytes.get(HEADER..length) else {
            break;
        };
        found.push(Answer {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: u16::from_ne_bytes([f0, f1]),
            body: body.to_vec(),
        });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_splits_into_the_same_parts() {
        let mut request = Request::default();
        request
            .message(16, ACK, &[7; 4])
            .text(1, "abc")
            .nested(2, |inner| {
                inner.attribute(3, &[1]).attribute(4, &5_u32.to_be_bytes());
            });
        request.message(17, 0, &[]);
        let messages = split(&request.bytes);
        assert_eq!(
            messages.iter().map(|m| m.kind).collect::<Vec<_>>(),
            [16, 17]
        );
        let outer = messages[0].attributes(4);
        assert_eq!(text(outer[0].1), "abc");
        let inner = attributes(outer[1].1);
        assert_eq!(inner[0], (3, &[1][..]));
        assert_eq!(big_endian(inner[1].1), 5);
    }

    #[test]
    fn garbage_ends_the_run_without_a_panic() {
        for length in 0..64_usize {
            for byte in [0, 1, 3, 4, 16, 17, 255] {
                let bytes = vec![byte; length];
                attributes(&bytes);
                split(&bytes);
            }
        }
    }
}
