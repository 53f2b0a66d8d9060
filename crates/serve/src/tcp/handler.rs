//! The service itself: bytes of a connection in, bytes of replies out.

use std::sync::Arc;
use std::time::Duration;

/// Most bytes of an incomplete request that a worker keeps for a handler.
pub const MOST_KEPT: usize = 64 << 10;

/// Replies of this many bytes leave before further requests are taken.
const ROOM: usize = 64 << 10;

/// Shared bytes up to this are copied, so that the replies of one round leave as one piece. A guess: copying them costs less
/// than a second piece does.
const COPIED: usize = 4 << 10;

/// What a service does with the bytes of its connections. Each worker has its own, so state needs no lock.
///
/// A handler that panics is dropped and made anew by the factory given to [`Server::start`]; the connection is closed, and
/// [`WorkerCounters::panics`] grows. (With `panic = "abort"` the process ends, as always.) If the factory panics too, the worker
/// continues without a handler and closes every connection that sends something.
///
/// [`Server::start`]: super::Server::start
/// [`WorkerCounters::panics`]: super::WorkerCounters::panics
pub trait Handler: Send {
    /// What is kept for each connection from one call to the next.
    type Session: Default + Send;

    /// Takes bytes from the beginning of `input` and writes replies, as long as [`Reply::has_room`]. Bytes that are not taken are
    /// given again: when the replies are sent, or, where there are none, with the bytes that follow. Those may be [`MOST_KEPT`]; a
    /// handler that waits with more loses its connection. So does one that replies or delays without taking anything, and would go
    /// on: it would do the same for ever ([`WorkerCounters::panics`] counts it).
    ///
    /// [`WorkerCounters::panics`]: super::WorkerCounters::panics
    fn handle(&mut self, session: &mut Self::Session, input: &[u8], reply: &mut Reply) -> Step;

    /// No request of `session` is half read, given that every byte was taken.
    fn at_rest(&self, session: &Self::Session) -> bool {
        let _ = session;
        true
    }
}

/// What became of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes that were taken.
    pub taken: usize,
    /// The replies leave after this time, and nothing is taken before.
    pub delay: Option<Duration>,
    /// What is done when the replies have left.
    pub then: Then,
}

/// What is done with a connection when replies have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It goes on.
    Continue,
    /// It is closed: nothing more is expected.
    Close,
    /// It is closed, but the client may be sending still. What it sends is discarded for up to a second, since closing at once
    /// would reset the connection, and the client might lose the reply (RFC 9112, section 9.6).
    Refuse,
}

/// Replies that are being written, to leave together and in order.
#[derive(Debug, Default)]
pub struct Reply {
    pub(super) bytes: Vec<u8>,
    /// Shared bytes that follow.
    pub(super) tail: Option<Arc<[u8]>>,
    /// Requests answered since it was last read.
    pub(super) answered: u64,
    /// Requests refused since it was last read.
    pub(super) refused: u64,
    /// Messages to every connection since it was last read.
    pub(super) all: Vec<Box<[u8]>>,
}

impl Reply {
    /// With room for all that one round may bring, so that nothing grows while serving.
    pub(super) fn roomy() -> Self {
        Self {
            bytes: Vec::with_capacity(ROOM + 2 * COPIED),
            ..Self::default()
        }
    }

    /// Another reply may be written.
    pub fn has_room(&self) -> bool {
        self.tail.is_none() && self.bytes.len() < ROOM
    }

    /// Appends a copy of `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Some(tail) = self.tail.take() {
            self.bytes.extend_from_slice(&tail);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends `bytes`; more than some kilobytes are not copied, and are the last before the replies leave.
    pub fn push_shared(&mut self, bytes: &Arc<[u8]>) {
        if bytes.len() <= COPIED || self.tail.is_some() {
            self.push(bytes);
        } else {
            self.tail = Some(Arc::clone(bytes));
        }
    }

    /// Sends a copy of `message` to every connection of the server, this one too, if [`Config::broadcast`] is on. A connection whose client has not read what was
    /// sent before is left out and counted ([`WorkerCounters::not_broadcast`]).
    ///
    /// [`Config::broadcast`]: super::Config::broadcast
    /// [`WorkerCounters::not_broadcast`]: super::WorkerCounters::not_broadcast
    pub fn broadcast(&mut self, message: &[u8]) {
        self.all.push(message.into());
    }

    /// Counts a request that is answered.
    pub fn answered(&mut self) {
        self.answered += 1;
    }

    /// Counts a request that is refused.
    pub fn refused(&mut self) {
        self.refused += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.tail.is_none()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.tail = None;
    }
}

/// The smallest service: every byte goes back. What one receive brought counts as a request.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl Handler for Echo {
    type Session = ();

    fn handle(&mut self, (): &mut (), input: &[u8], reply: &mut Reply) -> Step {
        reply.push(input);
        reply.answered();
        Step {
            taken: input.len(),
            delay: None,
            then: Then::Continue,
        }
    }
}

/// Takes every byte and answers none.
#[derive(Clone, Copy, Debug)]
pub struct Discard;

impl Handler for Discard {
    type Session = ();

    fn handle(&mut self, (): &mut (), input: &[u8], reply: &mut Reply) -> Step {
        reply.answered();
        Step {
            taken: input.len(),
            delay: None,
            then: Then::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_leave_in_the_order_in_which_they_were_pushed() {
        let large: Arc<[u8]> = vec![b'x'; COPIED + 1].into();
        let small: Arc<[u8]> = b"small".as_slice().into();
        let mut reply = Reply::default();
        reply.push(b"a");
        reply.push_shared(&small);
        assert!(reply.has_room());
        reply.push_shared(&large);
        assert!(!reply.has_room());
        assert_eq!(reply.bytes, b"asmall");
        // Nothing stops a handler from going on.
        reply.push_shared(&large);
        reply.push(b"b");
        assert_eq!(reply.bytes.len(), 6 + 2 * large.len() + 1);
        assert_eq!(reply.bytes.last(), Some(&b'b'));
    }
}
