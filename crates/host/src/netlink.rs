//! Netlink as far as this crate needs it: build messages, send them, read all answers.
//!
//! Links, sockets, qdiscs, ethtool, audit and `nf_tables` need two dozen message shapes in all; one builder of forty
//! lines writes them, which is why no netlink protocol crate is used. The kernel handles a request inside `sendmsg` and
//! continues a dump inside `recvmsg`, so every answer is there when it is asked for and nothing here can wait for ever;
//! only audit answers from its own thread ([`Request::patient`]). Messages of a dump are handed on as they come: one of
//! 100,000 sockets is 60 MB. Source: linux/netlink.h, RFC 3549.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::Duration;

use netlink_sys::{Socket, SocketAddr};

use crate::wait;

pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const ACK: u16 = 0x4;
pub(crate) const DUMP: u16 = 0x300;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const CREATE: u16 = 0x400;

const HEADER: usize = 16;
const DUMP_INTERRUPTED: u16 = 0x10;
/// The original's payload is not repeated in an error (`NETLINK_CAP_ACK`).
const CAPPED: u16 = 0x100;
/// Attributes follow an error (`NETLINK_EXT_ACK`).
const EXPLAINED: u16 = 0x200;
const ERROR_TEXT: u16 = 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NESTED: u16 = 0x8000;
/// One of several, which [`DONE`] ends.
const MULTI: u16 = 0x2;
/// The kernel's answering thread has to be scheduled once; a hundred times what a loaded machine needed. No caller
/// waits in vain: one without the right to ask is refused at once. An undo that gave up too soon would leave its rule.
const WITHIN: Duration = Duration::from_secs(2);
/// The kernel never makes a dump message larger than this (`NLMSG_GOODSIZE` is at most 8 KiB, dumps 32 KiB).
const RECEIVE: usize = 64 * 1024;

/// Messages under construction; several make a batch.
#[derive(Default)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    message: usize,
    sequence: u32,
    acks: usize,
    words: bool,
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

    /// A refusal contains the kernel's message where there is one; its number is then in the text only.
    pub(crate) fn in_words(&mut self) -> &mut Self {
        self.words = true;
        self
    }

    /// Sends all messages in one datagram on a fresh socket of `protocol`. The first refusal is the error; a
    /// missing acknowledgement too.
    pub(crate) fn send(&self, protocol: isize) -> io::Result<()> {
        self.each(protocol, |_| {})
    }

    /// Sends as [`Request::send`] does and hands every answer but acknowledgements to `take`. A dump of what
    /// changed under the kernel's hands is `Interrupted`: ask again.
    pub(crate) fn each(&self, protocol: isize, take: impl FnMut(&Message<'_>)) -> io::Result<()> {
        self.exchange(protocol, false, take)
    }

    /// Waits for an answer that the kernel gives in its own time, one message or several.
    pub(crate) fn patient(
        &self,
        protocol: isize,
        take: impl FnMut(&Message<'_>),
    ) -> io::Result<()> {
        self.exchange(protocol, true, take)
    }

    fn exchange(
        &self,
        protocol: isize,
        patient: bool,
        mut take: impl FnMut(&Message<'_>),
    ) -> io::Result<()> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        if self.words {
            // Kernels before 4.12 do not know them; they give the number of an error and no message.
            let _ = socket.set_ext_ack(true);
            let _ = socket.set_cap_ack(true);
        }
        socket.send_to(&self.bytes, &SocketAddr::new(0, 0), 0)?;
        let mut acks = 0;
        let mut ended = !patient;
        let mut refusal = None;
        let mut buffer = Vec::with_capacity(RECEIVE);
        loop {
            buffer.clear();
            match socket.recv(&mut buffer, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if ended || refusal.is_some() {
                        break;
                    }
                    if !readable(&socket, WITHIN)? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            for message in messages(&buffer) {
                if message.flags & DUMP_INTERRUPTED != 0 {
                    refusal.get_or_insert(io::ErrorKind::Interrupted.into());
                }
                match message.kind {
                    ERROR => match message.refusal() {
                        None => acks += 1,
                        Some(error) => {
                            refusal.get_or_insert(error);
                        }
                    },
                    // A dump that failed says so at its end.
                    DONE => {
                        ended = true;
                        if let Some(error) = message.refusal() {
                            refusal.get_or_insert(error);
                        }
                    }
                    _ => {
                        ended |= message.flags & MULTI == 0;
                        take(&message);
                    }
                }
            }
        }
        match refusal {
            Some(error) => Err(error),
            None if acks < self.acks => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the kernel acknowledged {acks} of {} messages", self.acks),
            )),
            None => Ok(()),
        }
    }
}

#[expect(
    unsafe_code,
    reason = "netlink-sys offers the number of its descriptor only"
)]
fn readable(socket: &Socket, within: Duration) -> io::Result<bool> {
    // SAFETY: the descriptor is open for as long as the socket is borrowed, which outlives this call.
    let fd = unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) };
    wait::readable(fd, within)
}

/// One message of an answer.
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    flags: u16,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// First bytes of the fixed header; nothing where the message is shorter.
    pub(crate) fn fixed(&self, length: usize) -> &'a [u8] {
        self.body.get(..length).unwrap_or_default()
    }

    /// What follows a fixed header of `skip` bytes: the attributes.
    pub(crate) fn rest(&self, skip: usize) -> &'a [u8] {
        self.body.get(skip..).unwrap_or_default()
    }

    /// The error of an error message or of the end of a dump; `None` for an acknowledgement. With the kernel's message
    /// where there is one.
    fn refusal(&self) -> Option<io::Error> {
        let errno = int32(self.body, 0)?.saturating_neg();
        if errno == 0 {
            return None;
        }
        let error = io::Error::from_raw_os_error(errno);
        if self.kind != ERROR || self.flags & EXPLAINED == 0 {
            return Some(error);
        }
        // struct nlmsgerr: error, then the header of the request and, if not capped, the rest of it.
        let repeated = if self.flags & CAPPED == 0 {
            number32(self.body, 4)? as usize
        } else {
            HEADER
        };
        match find(self.rest(4 + repeated.next_multiple_of(4)), ERROR_TEXT) {
            Some(words) => Some(io::Error::new(
                error.kind(),
                format!("{error}: {}", text(words)),
            )),
            None => Some(error),
        }
    }
}

/// Splits a run of attributes, nested ones too; what does not fit its length ends the run.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1, ..] = *bytes else {
            return None;
        };
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]) & !0xc000, value))
    })
}

/// First attribute of a kind in a run.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
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

/// The number of 32 bits at an offset, in the machine's byte order; `None` beyond the end.
pub(crate) fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// The number of 64 bits at an offset, in the machine's byte order; `None` beyond the end.
pub(crate) fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

fn int32(bytes: &[u8], at: usize) -> Option<i32> {
    number32(bytes, at).map(u32::cast_signed)
}

/// Splits what was received; what does not fit its length ends the run.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = number32(bytes, 0)? as usize;
        let body = bytes.get(HEADER..length)?;
        let half = |at| bytes[at..at + 2].try_into().map_or(0, u16::from_ne_bytes);
        let (kind, flags) = (half(4), half(6));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, flags, body })
    })
}

#[cfg(test)]
pub(crate) mod testing {
    //! Answers as the kernel would give them, for the tests of those who read them.

    use super::{Message, Request, messages};

    /// Hands the messages of a request to `take`, as if they had been received.
    pub(crate) fn receive(request: &Request, take: impl FnMut(&Message<'_>)) {
        from_bytes(&request.bytes, take);
    }

    /// Hands whatever messages are in `bytes` to `take`.
    pub(crate) fn from_bytes(bytes: &[u8], mut take: impl FnMut(&Message<'_>)) {
        for message in messages(bytes) {
            take(&message);
        }
    }

    /// The bytes of a request.
    pub(crate) fn bytes(request: &Request) -> &[u8] {
        &request.bytes
    }

    /// A message of any kind around `body`.
    pub(crate) fn message(kind: u16, body: &[u8]) -> Message<'_> {
        Message {
            kind,
            flags: 0,
            body,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let found: Vec<Message<'_>> = messages(&request.bytes).collect();
        assert_eq!(found.iter().map(|m| m.kind).collect::<Vec<_>>(), [16, 17]);
        assert_eq!(find(found[0].rest(4), 1).map(text).as_deref(), Some("abc"));
        let inner: Vec<_> = attributes(find(found[0].rest(4), 2).unwrap()).collect();
        assert_eq!(inner[0], (3, &[1][..]));
        assert_eq!(big_endian(inner[1].1), 5);
    }

    #[test]
    fn a_refusal_has_the_words_of_the_kernel_where_it_has_some() {
        let mut request = Request::default();
        let mut body = (-libc::EINVAL).to_ne_bytes().to_vec();
        body.extend([0; HEADER]);
        request
            .message(ERROR, 0, &body)
            .text(ERROR_TEXT, "too many");
        let mut explained: Vec<Message<'_>> = messages(&request.bytes).collect();
        explained[0].flags = EXPLAINED | CAPPED;
        let error = explained[0].refusal().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().ends_with(": too many"), "{error}");
        explained[0].flags = 0;
        let error = explained[0].refusal().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn an_acknowledgement_and_a_good_end_refuse_nothing() {
        for (kind, body) in [(ERROR, vec![0; 20]), (DONE, vec![0; 4]), (DONE, vec![])] {
            let message = testing::message(kind, &body);
            assert!(message.refusal().is_none());
        }
    }

    proptest! {
        #[test]
        fn garbage_ends_the_run_without_a_panic(bytes: Vec<u8>, flags: u16, at: usize) {
            for message in messages(&bytes) {
                let message = Message { flags, ..message };
                let _ = message.refusal();
            }
            for (_, value) in attributes(&bytes) {
                text(value);
                attributes(value).count();
            }
            number32(&bytes, at);
            number64(&bytes, at);
        }
    }
}
