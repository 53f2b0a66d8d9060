//! Where a worker turns what connections bring into replies.

use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use crate::guard::{Called, Guarded};

use super::connection::{Connection, State, receive, send};
use super::counters::Tally;
use super::epoll::{Epoll, Interest};
use super::handler::{Handler, MOST_KEPT, Reply, Then};
use super::slab::Key;
use super::timers::Timers;

/// Most bytes of one receive. A guess: the default receive buffer holds twice as many.
const RECEIVE: usize = 64 << 10;

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
pub(super) struct Desk<H> {
    handler: Guarded<H>,
    input: Box<[u8]>,
    reply: Reply,
    pub(super) tally: Tally,
    pub(super) epoll: Epoll,
    pub(super) timers: Timers<u64>,
}

impl<H: Handler> Desk<H> {
    pub(super) fn new(handler: Guarded<H>, epoll: Epoll) -> Self {
        Self {
            handler,
            input: vec![0; MOST_KEPT + RECEIVE].into(),
            reply: Reply::roomy(),
            tally: Tally::default(),
            epoll,
            timers: Timers::new(),
        }
    }

    /// The numbers since the last call.
    pub(super) fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Something is reported of a connection.
    pub(super) fn reported(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
        failed: bool,
    ) -> Fate {
        match connection.state {
            State::Reading => self.read(key, connection),
            State::Sending => self.flush(key, connection),
            State::Delayed if failed => {
                self.tally.resets += 1;
                Fate::Ends
            }
            State::Delayed => Fate::Stays,
            State::Lingering => match receive(connection.fd(), &mut self.input) {
                Ok(0) => Fate::Ends,
                Ok(_) => Fate::Stays,
                Err(error) if waits(&error) => Fate::Stays,
                Err(_) => Fate::Ends,
            },
        }
    }

    /// The time of a connection has come.
    pub(super) fn due(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        match connection.state {
            State::Delayed => self.flush(key, connection),
            State::Lingering => Fate::Ends,
            State::Reading | State::Sending => Fate::Stays,
        }
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

    /// Receives once, and has what is there handled.
    pub(super) fn read(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        let kept = connection.kept.len();
        match receive(connection.fd(), &mut self.input[kept..]) {
            Ok(0) => {
                if !self.at_rest(connection) {
                    self.tally.cut += 1;
                }
                Fate::Ends
            }
            Ok(length) => {
                self.tally.received_bytes += length as u64;
                self.input[..kept].copy_from_slice(&connection.kept);
                self.handle(key, connection, kept + length)
            }
            Err(error) if waits(&error) => Fate::Stays,
            Err(_) => {
                self.tally.resets += 1;
                Fate::Ends
            }
        }
    }

    /// Sends replies that wait, and goes on with what the client sent meanwhile.
    fn flush(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        if let Some(unsent) = &mut connection.unsent {
            let tail = unsent.tail.as_deref().unwrap_or_default();
            let length = unsent.bytes.len() + tail.len();
            let socket = connection.socket.as_raw_fd();
            match send(socket, &unsent.bytes, tail, unsent.sent) {
                Ok(sent) => {
                    self.tally.sent_bytes += sent as u64;
                    unsent.sent += sent;
                    if unsent.sent < length {
                        return self.wait_for_room(key, connection);
                    }
                }
                Err(error) if waits(&error) => return self.wait_for_room(key, connection),
                Err(_) => {
                    self.tally.resets += 1;
                    return Fate::Ends;
                }
            }
        }
        connection.unsent = None;
        if connection.then != Then::Continue {
            let all_taken = connection.kept.is_empty();
            return self.end(key, connection, all_taken);
        }
        let kept = connection.kept.len();
        if kept == 0 {
            return self.wait_for_input(key, connection);
        }
        self.input[..kept].copy_from_slice(&connection.kept);
        self.handle(key, connection, kept)
    }

    /// Has the first `length` bytes of the input handled, and sends the replies.
    fn handle(&mut self, key: Key, connection: &mut Connection<H::Session>, length: usize) -> Fate {
        let mut at = 0;
        loop {
            self.reply.clear();
            let (input, reply) = (&self.input[at..length], &mut self.reply);
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
            connection.then = step.then;
            if let Some(delay) = step.delay {
                connection.keep(&self.input[at..length]);
                connection.park(&self.reply, 0);
                connection.state = State::Delayed;
                self.timers.add(delay, key.number());
                return self.watch(key, connection, Interest::Nothing);
            }
            if self.reply.is_empty() {
                if step.then != Then::Continue {
                    return self.end(key, connection, at == length);
                }
                break;
            }
            let tail = self.reply.tail.as_deref().unwrap_or_default();
            let whole = self.reply.bytes.len() + tail.len();
            let sent = match send(connection.fd(), &self.reply.bytes, tail, 0) {
                Ok(sent) => sent,
                Err(error) if waits(&error) => 0,
                Err(_) => {
                    self.tally.resets += 1;
                    return Fate::Ends;
                }
            };
            self.tally.sent_bytes += sent as u64;
            if sent < whole {
                connection.keep(&self.input[at..length]);
                connection.park(&self.reply, sent);
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
        connection.keep(&self.input[at..length]);
        self.wait_for_input(key, connection)
    }

    /// Ends a connection whose last reply has left.
    fn end(&mut self, key: Key, connection: &mut Connection<H::Session>, all_taken: bool) -> Fate {
        if connection.then == Then::Close && all_taken {
            return Fate::Ends;
        }
        connection.keep(&[]);
        connection.shut_down();
        connection.state = State::Lingering;
        self.timers.add(LINGER, key.number());
        self.watch(key, connection, Interest::Read)
    }

    fn wait_for_room(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        connection.state = State::Sending;
        self.watch(key, connection, Interest::Write)
    }

    fn wait_for_input(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        connection.state = State::Reading;
        self.watch(key, connection, Interest::Read)
    }

    fn watch(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
        interest: Interest,
    ) -> Fate {
        if connection.interest != interest {
            let changed = self.epoll.change(connection.fd(), key.number(), interest);
            // Only a lack of memory refuses this; without it the connection would hang.
            if changed.is_err() {
                self.tally.resets += 1;
                return Fate::Ends;
            }
            connection.interest = interest;
        }
        Fate::Stays
    }
}

/// The call may be repeated later: nothing has failed.
fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
