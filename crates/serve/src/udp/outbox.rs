//! The replies of one round. They are packed one behind the other into a single buffer, which keeps a round of
//! small replies within a few cache lines and lets replies of one size to one peer leave as one large
//! datagram (`UDP_SEGMENT`) without being copied again.
//!
//! When the kernel refuses a large datagram, its parts are sent one by one, and sizes that it refused are not
//! joined again: the limit is the path's MTU, which nobody tells us beforehand. Errors as in
//! quinn-rs/quinn `quinn-udp/src/linux.rs`.
#![expect(unsafe_code, reason = "sendmmsg takes structs of raw pointers")]

use std::io;
use std::os::fd::RawFd;

use super::MAX_REPLY;
use super::counters::Tally;
use super::message::{Control, Local};
use crate::name::Name;

/// Bytes of replies in one round; a round with more is sent in parts.
const ARENA: usize = 4 * 65_536;
/// Most datagrams that may leave as one (`UDP_MAX_SEGMENTS`, include/linux/udp.h; 128 since Linux 6.9).
const MOST_SEGMENTS: usize = 64;
/// Most bytes that may leave as one: an IPv4 packet less its headers.
const MOST_JOINED: usize = 65_507;

/// A message to send: one reply, or several of one size to one peer.
#[derive(Clone, Copy)]
struct Message {
    name: Name,
    local: Local,
    start: usize,
    length: usize,
    /// Bytes of each reply but the last.
    segment: usize,
    segments: usize,
    lost: usize,
    lost_bytes: usize,
    control: Control,
}

/// Replies that wait to be sent together.
pub(super) struct Outbox {
    arena: Box<[u8]>,
    used: usize,
    messages: Box<[Message]>,
    count: usize,
    iovecs: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    /// Largest reply that may be joined with others; 0 joins nothing.
    joinable: usize,
}

impl Outbox {
    /// Room for `messages` messages; `gso` joins replies.
    pub(super) fn new(messages: usize, gso: bool) -> Self {
        let empty = Message {
            name: Name::empty(),
            local: Local::Unknown,
            start: 0,
            length: 0,
            segment: 0,
            segments: 0,
            lost: 0,
            lost_bytes: 0,
            control: Control::empty(),
        };
        // SAFETY: all zeros is a valid iovec and a valid mmsghdr.
        let (iovec, header) = unsafe {
            (
                std::mem::zeroed::<libc::iovec>(),
                std::mem::zeroed::<libc::mmsghdr>(),
            )
        };
        Self {
            arena: vec![0; ARENA].into(),
            used: 0,
            messages: vec![empty; messages].into(),
            count: 0,
            iovecs: vec![iovec; messages].into(),
            headers: vec![header; messages].into(),
            joinable: if gso { MOST_JOINED / 2 } else { 0 },
        }
    }

    /// Where the next reply is to be written; nothing when the outbox must be emptied first.
    pub(super) fn room(&mut self) -> Option<&mut [u8]> {
        if self.count == self.messages.len() {
            return None;
        }
        self.arena.get_mut(self.used..self.used + MAX_REPLY)
    }

    /// Takes the reply of `length` bytes that was written to [`Self::room`].
    pub(super) fn push(&mut self, length: usize, name: &Name, local: Local) {
        let start = self.used;
        self.used += length;
        if self.joinable > 0 && self.join(length, name, local) {
            return;
        }
        let message = &mut self.messages[self.count];
        message.name = *name;
        message.local = local;
        message.start = start;
        message.length = length;
        message.segment = length;
        message.segments = 1;
        message.lost = 0;
        message.lost_bytes = 0;
        self.count += 1;
    }

    /// Whether the reply could be joined to the last message.
    fn join(&mut self, length: usize, name: &Name, local: Local) -> bool {
        let Some(last) = self.count.checked_sub(1).map(|at| &mut self.messages[at]) else {
            return false;
        };
        let complete = last.length == last.segment * last.segments;
        let fits = (1..=last.segment).contains(&length)
            && last.segment <= self.joinable
            && last.segments < MOST_SEGMENTS
            && last.length + length <= MOST_JOINED;
        if !(complete && fits && last.local == local && last.name == *name) {
            return false;
        }
        last.length += length;
        last.segments += 1;
        true
    }

    /// Sends everything, one system call per message, and counts it.
    pub(super) fn send_singly(&mut self, socket: RawFd, tally: &mut Tally) {
        for at in 0..self.count {
            let Message { start, length, .. } = self.messages[at];
            if let Err(error) = self.send(socket, at, start..start + length, true) {
                self.failed(socket, at, &error);
            }
        }
        self.settle(tally);
    }

    /// Sends everything, as many messages per system call as the kernel takes, and counts it.
    pub(super) fn send_together(&mut self, socket: RawFd, tally: &mut Tally) {
        let count = self.prepare();
        let mut done = 0;
        while done < count {
            // SAFETY: the headers from `done` on were prepared and point into this outbox.
            let sent = unsafe {
                let first = self.headers.as_mut_ptr().add(done);
                libc::sendmmsg(socket, first, (count - done) as libc::c_uint, 0)
            };
            if let Ok(sent) = usize::try_from(sent) {
                done += sent;
                continue;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                // The error is that of the first message; those behind it were not tried.
                self.failed(socket, done, &error);
                done += 1;
            }
        }
        self.settle(tally);
    }

    /// Points the headers at the messages; returns how many there are. The headers hold until the outbox
    /// changes.
    pub(super) fn prepare(&mut self) -> usize {
        let messages = self.messages[..self.count].iter_mut();
        for ((message, iovec), header) in messages.zip(&mut self.iovecs).zip(&mut self.headers) {
            let segment = if message.segments > 1 {
                message.segment as u16
            } else {
                0
            };
            let control = message.control.write(message.local, segment);
            iovec.iov_base = self.arena[message.start..].as_mut_ptr().cast();
            iovec.iov_len = message.length;
            let header = &mut header.msg_hdr;
            header.msg_name = message.name.as_mut_ptr().cast();
            header.msg_namelen = message.name.length;
            header.msg_iov = iovec;
            header.msg_iovlen = 1;
            header.msg_control = message.control.0.as_mut_ptr().cast();
            header.msg_controllen = control as _;
        }
        self.count
    }

    /// The prepared header of a message.
    pub(super) fn header(&self, at: usize) -> *const libc::msghdr {
        &raw const self.headers[at].msg_hdr
    }

    /// Sends message `at` as a whole by a call of its own, which waits for room in the send buffer.
    #[cold]
    pub(super) fn send_again(&mut self, socket: RawFd, at: usize) {
        if let Some(Message { start, length, .. }) = self.messages[..self.count].get(at).copied()
            && let Err(error) = self.send(socket, at, start..start + length, true)
        {
            self.failed(socket, at, &error);
        }
    }

    /// The kernel refused message `at`. Joined replies get a second chance one by one.
    #[cold]
    pub(super) fn failed(&mut self, socket: RawFd, at: usize, error: &io::Error) {
        let Some(message) = self.messages.get(at).copied().filter(|_| at < self.count) else {
            return;
        };
        if message.segments == 1 {
            self.lose(at, message.length);
            return;
        }
        self.joinable = match error.raw_os_error() {
            // The segment does not fit the path.
            Some(libc::EINVAL | libc::EMSGSIZE) => self.joinable.min(message.segment - 1),
            // No segmentation on this path, by hardware or otherwise.
            Some(libc::EIO | libc::EOPNOTSUPP) => 0,
            _ => self.joinable,
        };
        let end = message.start + message.length;
        for start in (message.start..end).step_by(message.segment) {
            let part = start..end.min(start + message.segment);
            let length = part.len();
            if self.send(socket, at, part, false).is_err() {
                self.lose(at, length);
            }
        }
    }

    /// Counts what was sent and empties the outbox.
    pub(super) fn settle(&mut self, tally: &mut Tally) {
        for message in &self.messages[..self.count] {
            tally.sent += (message.segments - message.lost) as u64;
            tally.sent_bytes += (message.length - message.lost_bytes) as u64;
            tally.send_errors += message.lost as u64;
        }
        self.count = 0;
        self.used = 0;
    }

    fn lose(&mut self, at: usize, bytes: usize) {
        self.messages[at].lost += 1;
        self.messages[at].lost_bytes += bytes;
    }

    /// Sends bytes of the arena to the peer of message `at`: by `sendto`, or `sendmsg` where the kernel must
    /// get more than the peer.
    fn send(
        &mut self,
        socket: RawFd,
        at: usize,
        bytes: std::ops::Range<usize>,
        joined: bool,
    ) -> io::Result<()> {
        let message = &mut self.messages[at];
        let segment = if joined && message.segments > 1 {
            message.segment as u16
        } else {
            0
        };
        let bytes = &mut self.arena[bytes];
        let control = message.control.write(message.local, segment);
        loop {
            let sent = if control == 0 {
                // SAFETY: bytes and name are valid for the lengths given.
                unsafe {
                    let name = message.name.as_ptr();
                    libc::sendto(
                        socket,
                        bytes.as_ptr().cast(),
                        bytes.len(),
                        0,
                        name,
                        message.name.length,
                    )
                }
            } else {
                let mut iovec = libc::iovec {
                    iov_base: bytes.as_mut_ptr().cast(),
                    iov_len: bytes.len(),
                };
                // SAFETY: all zeros is a valid msghdr.
                let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
                header.msg_name = message.name.as_mut_ptr().cast();
                header.msg_namelen = message.name.length;
                header.msg_iov = &raw mut iovec;
                header.msg_iovlen = 1;
                header.msg_control = message.control.0.as_mut_ptr().cast();
                header.msg_controllen = control as _;
                // SAFETY: everything the header points at outlives the call.
                unsafe { libc::sendmsg(socket, &raw const header, 0) }
            };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;

    fn peer(port: u16) -> Name {
        Name::of(([127, 0, 0, 1], port).into())
    }

    fn shape(outbox: &Outbox) -> Vec<(usize, usize)> {
        outbox.messages[..outbox.count]
            .iter()
            .map(|message| (message.segments, message.length))
            .collect()
    }

    #[test]
    fn replies_of_one_size_to_one_peer_are_joined_and_a_shorter_one_ends_it() {
        let mut outbox = Outbox::new(16, true);
        for (length, port) in [
            (100, 1),
            (100, 1),
            (60, 1),
            (60, 1),
            (60, 2),
            (0, 2),
            (10, 2),
        ] {
            assert!(outbox.room().is_some());
            outbox.push(length, &peer(port), Local::Unknown);
        }
        assert_eq!(
            shape(&outbox),
            [(3, 260), (1, 60), (1, 60), (1, 0), (1, 10)]
        );
    }

    #[test]
    fn without_gso_nothing_is_joined() {
        let mut outbox = Outbox::new(16, false);
        outbox.push(100, &peer(1), Local::Unknown);
        outbox.push(100, &peer(1), Local::Unknown);
        assert_eq!(shape(&outbox), [(1, 100), (1, 100)]);
    }

    #[test]
    fn a_joined_message_never_exceeds_the_kernels_limits() {
        let mut outbox = Outbox::new(16, true);
        for _ in 0..130 {
            outbox.push(10, &peer(1), Local::Unknown);
        }
        assert_eq!(shape(&outbox), [(64, 640), (64, 640), (2, 20)]);
        let mut outbox = Outbox::new(16, true);
        for _ in 0..3 {
            outbox.push(30_000, &peer(1), Local::Unknown);
        }
        assert_eq!(shape(&outbox), [(2, 60_000), (1, 30_000)]);
    }

    #[test]
    fn a_full_outbox_has_no_room() {
        let mut outbox = Outbox::new(100, false);
        let mut pushed = 0;
        while outbox.room().is_some() {
            outbox.push(MAX_REPLY, &peer(1), Local::Unknown);
            pushed += 1;
        }
        assert_eq!(pushed, ARENA / MAX_REPLY);
    }

    #[test]
    fn what_the_path_refuses_joined_arrives_one_by_one_and_is_not_joined_again() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = Name::of(receiver.local_addr().unwrap());
        let mut outbox = Outbox::new(4, true);
        outbox.room().unwrap().fill(b'a');
        outbox.push(3, &to, Local::Unknown);
        outbox.push(3, &to, Local::Unknown);
        outbox.push(2, &to, Local::Unknown);
        outbox.failed(
            sender.as_raw_fd(),
            0,
            &io::Error::from_raw_os_error(libc::EINVAL),
        );
        let mut tally = Tally::default();
        outbox.settle(&mut tally);
        assert_eq!((tally.sent, tally.sent_bytes, tally.send_errors), (3, 8, 0));
        assert_eq!(outbox.joinable, 2);
        let mut buffer = [0; 8];
        let lengths: Vec<_> = (0..3)
            .map(|_| receiver.recv(&mut buffer).unwrap())
            .collect();
        assert_eq!(lengths, [3, 3, 2]);
    }

    #[test]
    fn a_reply_that_cannot_be_sent_is_counted_and_the_others_leave() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = Name::of(receiver.local_addr().unwrap());
        for together in [false, true] {
            let mut outbox = Outbox::new(4, false);
            outbox.push(1, &to, Local::Unknown);
            outbox.push(MAX_REPLY, &to, Local::Unknown);
            outbox.push(1, &to, Local::Unknown);
            let mut tally = Tally::default();
            if together {
                outbox.send_together(sender.as_raw_fd(), &mut tally);
            } else {
                outbox.send_singly(sender.as_raw_fd(), &mut tally);
            }
            // 65 527 bytes do not fit an IPv4 packet.
            assert_eq!((tally.sent, tally.sent_bytes, tally.send_errors), (2, 2, 1));
        }
    }
}
