//! One connection: its socket, and what waits on it.
#![expect(unsafe_code, reason = "recv, send and sendmsg take raw pointers")]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use super::engine::Interest;
use super::handler::{Reply, Then};

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Bytes of the client.
    Reading,
    /// The time at which its replies leave.
    Delayed,
    /// Room for its replies.
    Sending,
    /// The end that the client sends; what comes before is discarded.
    Lingering,
}

/// A connection of a worker.
#[derive(Debug)]
pub(super) struct Connection<S> {
    pub(super) socket: OwnedFd,
    pub(super) session: S,
    pub(super) state: State,
    /// What it is watched for.
    pub(super) interest: Interest,
    /// The client has sent its end, and was not told that it is known.
    pub(super) ended: bool,
    /// Bytes of the client that the handler did not take.
    pub(super) kept: Vec<u8>,
    /// Replies that have not left. No more than those of one call of the handler.
    pub(super) unsent: Option<Box<Unsent>>,
    /// What is done when they have.
    pub(super) then: Then,
    /// When something is due.
    pub(super) due: Option<Instant>,
}

/// Replies, or the rest of them.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    pub(super) bytes: Vec<u8>,
    pub(super) tail: Option<Arc<[u8]>>,
    pub(super) sent: usize,
}

impl Unsent {
    /// Takes over `reply`, of which so many bytes have left.
    pub(super) fn fill(&mut self, reply: &Reply, sent: usize) {
        let copied = sent.min(reply.bytes.len());
        self.bytes.clear();
        self.bytes.extend_from_slice(&reply.bytes[copied..]);
        self.tail.clone_from(&reply.tail);
        self.sent = sent - copied;
    }

    /// Both pieces.
    pub(super) fn pieces(&self) -> (&[u8], &[u8]) {
        (&self.bytes, self.tail.as_deref().unwrap_or_default())
    }

    /// Bytes that have left or will.
    pub(super) fn length(&self) -> usize {
        let (first, second) = self.pieces();
        first.len() + second.len()
    }
}

impl<S: Default> Connection<S> {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            session: S::default(),
            state: State::Reading,
            interest: Interest::Nothing,
            ended: false,
            kept: Vec::new(),
            unsent: None,
            then: Then::Continue,
            due: None,
        }
    }
}

impl<S> Connection<S> {
    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Keeps `rest` for the next call of the handler. A connection that keeps nothing holds no memory for it.
    pub(super) fn keep(&mut self, rest: &[u8]) {
        self.kept.clear();
        if rest.is_empty() {
            self.kept = Vec::new();
        } else {
            self.kept.extend_from_slice(rest);
        }
    }

    /// Tells the client that nothing more comes.
    pub(super) fn shut_down(&self) {
        // SAFETY: takes numbers.
        unsafe { libc::shutdown(self.fd(), libc::SHUT_WR) };
    }
}

/// Receives into `room`; 0 at the end.
pub(super) fn receive(socket: RawFd, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `room` is valid for its length.
    let length = unsafe { libc::recv(socket, room.as_mut_ptr().cast(), room.len(), 0) };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Sends what follows the first `skipped` of the bytes of `first` and `second` together, in one call; how many bytes the
/// kernel took.
pub(super) fn send(
    socket: RawFd,
    first: &[u8],
    second: &[u8],
    skipped: usize,
) -> io::Result<usize> {
    let (first, second) = match first.get(skipped..) {
        Some(first) => (first, second),
        None => (&[][..], &second[skipped - first.len()..]),
    };
    let length = if second.is_empty() {
        // SAFETY: `first` is valid for its length.
        unsafe {
            let bytes = first.as_ptr().cast();
            libc::send(socket, bytes, first.len(), libc::MSG_NOSIGNAL)
        }
    } else {
        let mut parts = [first, second].map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        });
        // SAFETY: all zeros is a valid msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        // SAFETY: the message points at two parts that outlive the call, which only reads them.
        unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) }
    };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn any_part_of_two_pieces_is_sent() {
        let (first, second) = (b"abc", b"defg");
        for skipped in 0..=7 {
            let (here, mut there) = UnixStream::pair().unwrap();
            let sent = send(here.as_raw_fd(), first, second, skipped).unwrap();
            drop(here);
            let mut read = Vec::new();
            there.read_to_end(&mut read).unwrap();
            assert_eq!(
                (sent, read.as_slice()),
                (7 - skipped, &b"abcdefg"[skipped..])
            );
        }
    }
}
