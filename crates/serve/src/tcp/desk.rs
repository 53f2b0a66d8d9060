//! Where a worker turns what connections bring into replies.

use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use crate::guard::{Called, Guarded};

use super::connection::{Connection, State, Unsent};
use super::counters::Tally;
use super::engine::Engine;
use super::handler::{Handler, MOST_KEPT, Reply, Then};
use super::hub::Hub;
use super::slab::Key;
use super::timers::Timers;

/// Most bytes of one receive. A guess: the default receive buffer holds twice as many.
pub(super) const RECEIVE: usize = 64 << 10;

/// Memory of replies that is kept for other connections. Both are guesses: the connections that are answered in one round, and what
/// is copied of a reply.
const MOST_SPARES: usize = 256;
const LARGEST_SPARE: usize = 8 << 10;

/// How long a client that is refused may go on sending. nginx waits up to 5 s for each piece (`lingering_timeout`); all of
/// it is for the one reply that says why.
const LINGER: Duration = Duration::from_secs(1);

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    Ends,
}

/// A handler and the room that all connections of a worker use in turn.
pub(super) struct Desk<H, E> {
    handler: Guarded<H>,
    reply: Reply,
    /// Memory of replies that have left.
    #[expect(clippy::vec_box, reason = "connections take them as they are")]
    spares: Vec<Box<Unsent>>,
    /// Where messages to every connection go.
    hub: Option<Arc<Hub>>,
    pub(super) tally: Tally,
    pub(super) engine: E,
    pub(super) timers: Timers<u64>,
}

impl<H: Handler, E: Engine> Desk<H, E> {
    pub(super) fn new(handler: Guarded<H>, hub: Option<Arc<Hub>>, engine: E) -> Self {
        Self {
            handler,
            reply: Reply::roomy(),
            spares: Vec::with_capacity(MOST_SPARES),
            hub,
            tally: Tally::default(),
            engine,
            timers: Timers::new(),
        }
    }

    /// The numbers since the last call.
    pub(super) fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// The time of a connection has come.
    pub(super) fn due(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        connection.due = None;
        match connection.state {
            State::Delayed => self.flush(key, connection),
            State::Lingering => Fate::Ends,
            State::Reading | State::Sending => Fate::Stays,
        }
    }

    /// A connection is closed: what was to be due is not.
    pub(super) fn close(&mut self, key: Key, mut connection: Connection<H::Session>) {
        if let Some(at) = connection.due {
            self.timers.remove(at, key.number());
        }
        self.engine.forget(key, &mut connection);
        if let Some(unsent) = connection.unsent.take() {
            self.spare(unsent);
        }
        self.tally.closed += 1;
    }

    /// Nothing of a connection is left to do: no reply, no part of a request.
    pub(super) fn at_rest(&mut self, connection: &Connection<H::Session>) -> bool {
        connection.state == State::Reading
            && connection.kept.is_empty()
            && match self
                .handler
                .call(|handler| handler.at_rest(&connection.session))
            {
                Called::Returned(at_rest) => at_rest,
                Called::Panicked | Called::Absent => true,
            }
    }

    /// The client has ended a connection.
    pub(super) fn left(&mut self, connection: &Connection<H::Session>) -> Fate {
        if !self.at_rest(connection) {
            self.tally.cut += 1;
        }
        Fate::Ends
    }

    /// A connection has failed.
    pub(super) fn lost(&mut self) -> Fate {
        self.tally.resets += 1;
        Fate::Ends
    }

    /// Sends replies that wait, and goes on with what the client sent meanwhile.
    pub(super) fn flush(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        if let Some(unsent) = &mut connection.unsent {
            let (first, second) = unsent.pieces();
            let socket = connection.socket.as_raw_fd();
            match self.engine.send(socket, first, second, unsent.sent) {
                Ok(sent) => {
                    self.tally.sent_bytes += sent as u64;
                    unsent.sent += sent;
                    if unsent.sent < unsent.length() {
                        return self.wait_for_room(key, connection);
                    }
                }
                Err(error) if waits(&error) => return self.wait_for_room(key, connection),
                Err(_) => return self.lost(),
            }
        }
        self.go_on(key, connection)
    }

    /// Replies have left.
    pub(super) fn go_on(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        if let Some(unsent) = connection.unsent.take() {
            self.spare(unsent);
        }
        let kept = std::mem::take(&mut connection.kept);
        if connection.then != Then::Continue {
            return self.end(key, connection, kept.is_empty());
        }
        if kept.is_empty() {
            return self.wait_for_input(key, connection);
        }
        self.handle(key, connection, &kept)
    }

    /// Has all that a connection has brought handled, and sends the replies.
    pub(super) fn handle(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
        all: &[u8],
    ) -> Fate {
        let length = all.len();
        let mut at = 0;
        loop {
            self.reply.clear();
            let (input, reply) = (&all[at..], &mut self.reply);
            let session = &mut connection.session;
            let called = self
                .handler
                .call(|handler| handler.handle(session, input, reply));
            let step = match called {
                Called::Returned(step) => step,
                Called::Panicked => {
                    self.tally.panics += 1;
                    return Fate::Ends;
                }
                Called::Absent => return Fate::Ends,
            };
            at = length.min(at + step.taken);
            self.tally.requests += std::mem::take(&mut self.reply.answered);
            self.tally.refused += std::mem::take(&mut self.reply.refused);
            for message in self.reply.all.drain(..) {
                if let Some(hub) = &self.hub {
                    hub.post(&message);
                }
            }
            connection.then = step.then;
            let acts = step.delay.is_some() || !self.reply.is_empty();
            if step.taken == 0 && step.then == Then::Continue && acts {
                // Given the same bytes again, it would do the same for ever.
                self.tally.panics += 1;
                return Fate::Ends;
            }
            if let Some(delay) = step.delay {
                connection.keep(&all[at..]);
                self.park(connection, 0);
                connection.state = State::Delayed;
                connection.due = self.timers.add(delay, key.number());
                let done = self.engine.expect_nothing(key, connection);
                return self.stays(&done);
            }
            if self.reply.is_empty() {
                if step.then != Then::Continue {
                    return self.end(key, connection, at == length);
                }
                break;
            }
            let tail = self.reply.tail.as_deref().unwrap_or_default();
            let whole = self.reply.bytes.len() + tail.len();
            let bytes = &self.reply.bytes;
            let sent = match self.engine.send(connection.fd(), bytes, tail, 0) {
                Ok(sent) => sent,
                Err(error) if waits(&error) => 0,
                Err(_) => return self.lost(),
            };
            self.tally.sent_bytes += sent as u64;
            if sent < whole {
                connection.keep(&all[at..]);
                self.park(connection, sent);
                return self.wait_for_room(key, connection);
            }
            if step.then != Then::Continue {
                return self.end(key, connection, at == length);
            }
            if at == length {
                break;
            }
        }
        if length - at > MOST_KEPT {
            self.tally.cut += 1;
            return Fate::Ends;
        }
        connection.keep(&all[at..]);
        self.wait_for_input(key, connection)
    }

    /// Sends a message that no request asked for. A connection on which something waits already does not get it: what it holds stays bounded.
    pub(super) fn push(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
        message: &[u8],
    ) -> Fate {
        if connection.state != State::Reading {
            self.tally.not_broadcast += 1;
            return Fate::Stays;
        }
        match self.engine.send(connection.fd(), message, &[], 0) {
            Ok(sent) => {
                self.tally.broadcast += 1;
                self.tally.sent_bytes += sent as u64;
                if sent == message.len() {
                    return Fate::Stays;
                }
                self.reply.clear();
                self.reply.push(message);
                self.park(connection, sent);
                connection.then = Then::Continue;
                self.wait_for_room(key, connection)
            }
            Err(error) if waits(&error) => {
                self.tally.not_broadcast += 1;
                Fate::Stays
            }
            Err(_) => self.lost(),
        }
    }

    /// Ends a connection whose last reply has left.
    fn end(&mut self, key: Key, connection: &mut Connection<H::Session>, all_taken: bool) -> Fate {
        if connection.then == Then::Close && all_taken {
            return Fate::Ends;
        }
        connection.keep(&[]);
        connection.shut_down();
        connection.state = State::Lingering;
        connection.due = self.timers.add(LINGER, key.number());
        if connection.ended {
            return Fate::Ends;
        }
        let done = self.engine.expect_input(key, connection);
        self.stays(&done)
    }

    /// Keeps what is written of replies, of which so many bytes have left.
    fn park(&mut self, connection: &mut Connection<H::Session>, sent: usize) {
        let mut unsent = self.spares.pop().unwrap_or_default();
        unsent.fill(&self.reply, sent);
        connection.unsent = Some(unsent);
    }

    /// Keeps the memory of replies that have left for others.
    pub(super) fn spare(&mut self, mut unsent: Box<Unsent>) {
        if self.spares.len() < MOST_SPARES && unsent.bytes.capacity() <= LARGEST_SPARE {
            unsent.tail = None;
            self.spares.push(unsent);
        }
    }

    pub(super) fn wait_for_room(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
    ) -> Fate {
        connection.state = State::Sending;
        let done = self.engine.send_later(key, connection);
        self.stays(&done)
    }

    pub(super) fn wait_for_input(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
    ) -> Fate {
        connection.state = State::Reading;
        if connection.ended {
            return self.left(connection);
        }
        let done = self.engine.expect_input(key, connection);
        self.stays(&done)
    }

    /// A connection stays if it could be watched. Only a lack of memory refuses that; without it the connection would hang.
    fn stays(&mut self, watched: &io::Result<()>) -> Fate {
        match watched {
            Ok(()) => Fate::Stays,
            Err(_) => self.lost(),
        }
    }
}

/// The call may be repeated later: nothing has failed.
pub(super) fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
