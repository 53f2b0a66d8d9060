//! `io_uring`: each connection has one multishot receive, which takes what comes into buffers of the worker for as long as it lasts; replies of
//! a round are submitted together. One system call sends a round and waits for the next.
//!
//! A reply is with the kernel until its send has completed, so it lives on a connection, or after its end among the orphans. A receive that is
//! under way keeps a socket open after its descriptor is closed; so such a socket is shut down first.
//! Sources: `io_uring_prep_recv_multishot(3)`, `io_uring_prep_accept(3)`, `io_uring/net.c` of Linux 6.18.
#![expect(
    unsafe_code,
    reason = "entries point at memory, and the kernel makes descriptors"
)]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use io_uring::{cqueue, opcode, types};

use super::connection::{Connection, State, Unsent};
use super::desk::{Desk, Fate};
use super::engine::{Engine, Interest, LISTENER, STOP};
use super::handler::{Handler, MOST_KEPT};
use super::slab::Key;
use super::worker::Worker;
use crate::error::Error;
use crate::uring::{GROUP, Ring};

/// Bytes of a buffer. A guess: requests are smaller, and a large body takes few.
const BUFFER: usize = 16 << 10;
/// Marks a send in the number of its connection, whose lower half is below 2^30: see [`Key`].
const SEND: u64 = 1 << 31;
/// The number of what is only to be submitted.
const IGNORED: u64 = u64::MAX - 2;

/// A ring with its buffers. Built by the worker's own thread, which alone may submit to it.
pub(super) struct Uring {
    ring: Ring,
    completions: Vec<cqueue::Entry>,
    /// Other workers accept from the same listener.
    shared: bool,
    /// The listener, if it is to be accepted from.
    listener: Option<RawFd>,
    /// An accept is under way.
    accepting: bool,
    /// Replies of closed connections that the kernel still reads.
    orphans: Vec<(u64, Box<Unsent>)>,
}

impl Uring {
    /// Sets the ring up; it accepts from `listener`, and `wake` is an eventfd that is reported.
    pub(super) fn new(wake: &OwnedFd, listener: RawFd, shared: bool) -> Result<Self, Error> {
        let mut this = Self {
            ring: Ring::new(BUFFER)?,
            completions: Ring::room(),
            shared,
            listener: Some(listener),
            accepting: false,
            orphans: Vec::new(),
        };
        let wake = opcode::PollAdd::new(types::Fd(wake.as_raw_fd()), libc::POLLIN as u32);
        this.submit(&wake.build().user_data(STOP));
        this.accept();
        Ok(this)
    }

    /// What the kernel agreed to.
    pub(super) fn describe(&self) -> String {
        self.ring.describe()
    }

    fn submit(&mut self, entry: &io_uring::squeue::Entry) {
        // SAFETY: entries point at replies alone, which live on their connection or among the orphans until they are sent.
        unsafe { self.ring.submit(entry) };
    }

    /// Accepts, if it is to and does not yet: from a listener that others share one connection at a time, so that they get theirs.
    fn accept(&mut self) {
        let Some(listener) = self.listener.filter(|_| !self.accepting) else {
            return;
        };
        let (listener, flags) = (
            types::Fd(listener),
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        );
        let entry = if self.shared {
            let (nowhere, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
            let accept = opcode::Accept::new(listener, nowhere, no_length);
            accept.flags(flags).build()
        } else {
            opcode::AcceptMulti::new(listener).flags(flags).build()
        };
        self.submit(&entry.user_data(LISTENER));
        self.accepting = true;
    }

    /// Takes back what is under way with this number.
    fn cancel(&mut self, number: u64) {
        let entry = opcode::AsyncCancel::new(number).build();
        self.submit(&entry.user_data(IGNORED));
    }

    /// Has everything handled that was completed; whether the stop has come.
    fn work_off<H: Handler>(worker: &mut Worker<H, Self>) -> bool {
        let engine = &mut worker.desk.engine;
        let mut completions = std::mem::take(&mut engine.completions);
        engine.ring.completions(&mut completions);
        let mut buffers = engine.ring.take_buffers();
        let mut stops = false;
        for completion in completions.drain(..) {
            let (result, flags) = (completion.result(), completion.flags());
            let more = cqueue::more(flags);
            match completion.user_data() {
                IGNORED => {}
                STOP => stops = true,
                LISTENER => {
                    worker.desk.engine.accepting &= more;
                    if result >= 0 {
                        // SAFETY: a new descriptor without another owner.
                        worker.add(unsafe { OwnedFd::from_raw_fd(result) });
                    } else if result != -libc::ECANCELED {
                        worker.not_accepted(&io::Error::from_raw_os_error(-result));
                    }
                }
                number if number & SEND != 0 => {
                    let key = Key::from_number(number & !SEND);
                    worker.desk.engine.orphans.retain(|one| one.0 != number);
                    worker.with(key, |desk, connection| desk.sent(key, connection, result));
                }
                number => {
                    let key = Key::from_number(number);
                    let id = cqueue::buffer_select(flags);
                    let length = usize::try_from(result).unwrap_or(0);
                    let data = id.map_or(&[][..], |id| buffers.get(id, length));
                    worker.with(key, |desk, connection| {
                        if !more {
                            connection.interest = Interest::Nothing;
                        }
                        match result {
                            1.. => desk.received(key, connection, data),
                            0 => desk.ended(connection),
                            _ => desk.not_received(key, connection, -result),
                        }
                    });
                    if let Some(id) = id {
                        buffers.recycle(id);
                    }
                }
            }
        }
        let engine = &mut worker.desk.engine;
        engine.ring.put_back(buffers);
        engine.completions = completions;
        engine.accept();
        stops
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if !self.ring.cancel_all() {
            // The kernel may read them still.
            std::mem::forget(std::mem::take(&mut self.orphans));
        }
    }
}

impl Engine for Uring {
    fn listen(&mut self, listener: RawFd, on: bool) -> io::Result<()> {
        self.listener = on.then_some(listener);
        if on {
            self.accept();
        } else if self.accepting {
            self.cancel(LISTENER);
        }
        Ok(())
    }

    fn heard(&mut self, _wake: RawFd) {
        // It is reported once.
    }

    fn begin<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()> {
        self.expect_input(key, connection)
    }

    fn expect_input<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()> {
        if connection.interest == Interest::Nothing {
            let receive = opcode::RecvMulti::new(types::Fd(connection.fd()), GROUP);
            self.submit(&receive.build().user_data(key.number()));
            connection.interest = Interest::Read;
        }
        Ok(())
    }

    fn expect_nothing<S>(&mut self, _key: Key, _connection: &mut Connection<S>) -> io::Result<()> {
        // What comes meanwhile is kept, up to a limit: see `received`.
        Ok(())
    }

    fn send(&mut self, _: RawFd, _: &[u8], _: &[u8], _: usize) -> io::Result<usize> {
        // All of it waits for the end of the round.
        Ok(0)
    }

    fn send_later<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()> {
        let socket = types::Fd(connection.fd());
        let Some(unsent) = &connection.unsent else {
            return Ok(());
        };
        let (first, second) = unsent.pieces();
        let mut flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let piece = match first.get(unsent.sent..) {
            Some(first) if !first.is_empty() => {
                if !second.is_empty() {
                    flags |= libc::MSG_MORE;
                }
                first
            }
            _ => &second[unsent.sent - first.len()..],
        };
        let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        let send = opcode::Send::new(socket, piece.as_ptr(), length).flags(flags);
        self.submit(&send.build().user_data(key.number() | SEND));
        Ok(())
    }

    fn forget<S>(&mut self, key: Key, connection: &mut Connection<S>) {
        let is_sent = connection.state == State::Sending;
        if is_sent && let Some(unsent) = connection.unsent.take() {
            self.orphans.push((key.number() | SEND, unsent));
        }
        if is_sent || connection.interest != Interest::Nothing {
            // SAFETY: takes numbers.
            unsafe { libc::shutdown(connection.fd(), libc::SHUT_RDWR) };
        }
    }

    fn round<H: Handler>(worker: &mut Worker<H, Self>, limit: Option<Duration>) -> bool {
        // A failure leaves what was queued queued.
        let _ = worker.desk.engine.ring.wait(limit);
        Self::work_off(worker)
    }

    fn settle<H: Handler>(worker: &mut Worker<H, Self>) {
        // The second time for what the first has begun: receives of connections that were accepted last, and replies.
        for _ in 0..2 {
            let engine = &mut worker.desk.engine;
            engine.submit(&opcode::Nop::new().build().user_data(IGNORED));
            let _ = engine.ring.wait(None);
            Self::work_off(worker);
        }
        for key in worker.keys() {
            worker.with(key, |_, _| Fate::Stays);
        }
    }
}

impl<H: Handler> Desk<H, Uring> {
    /// A connection has brought `data`.
    fn received(&mut self, key: Key, connection: &mut Connection<H::Session>, data: &[u8]) -> Fate {
        self.tally.received_bytes += data.len() as u64;
        match connection.state {
            State::Reading if connection.kept.is_empty() => self.handle(key, connection, data),
            State::Reading => {
                let mut all = std::mem::take(&mut connection.kept);
                all.extend_from_slice(data);
                self.handle(key, connection, &all)
            }
            State::Delayed | State::Sending => {
                connection.kept.extend_from_slice(data);
                // The client waits until its replies have left.
                if connection.kept.len() >= MOST_KEPT && connection.interest == Interest::Read {
                    self.engine.cancel(key.number());
                }
                Fate::Stays
            }
            State::Lingering => self.goes_on(key, connection),
        }
    }

    /// The client has sent its end; what it asked before is answered.
    fn ended(&mut self, connection: &mut Connection<H::Session>) -> Fate {
        connection.ended = true;
        match connection.state {
            State::Reading => self.left(connection),
            State::Delayed | State::Sending => Fate::Stays,
            State::Lingering => Fate::Ends,
        }
    }

    /// A receive has ended with this error.
    fn not_received(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
        error: i32,
    ) -> Fate {
        match (error, connection.state) {
            // No buffer was free, or we took it back.
            (libc::ENOBUFS | libc::ECANCELED, _) => self.goes_on(key, connection),
            (_, State::Lingering) => Fate::Ends,
            _ => self.lost(),
        }
    }

    /// Receives again, where a connection waits for its client and the receive has ended.
    fn goes_on(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        match connection.state {
            State::Reading => self.wait_for_input(key, connection),
            State::Lingering => match self.engine.expect_input(key, connection) {
                Ok(()) => Fate::Stays,
                Err(_) => self.lost(),
            },
            State::Delayed | State::Sending => Fate::Stays,
        }
    }

    /// A send has completed.
    fn sent(&mut self, key: Key, connection: &mut Connection<H::Session>, result: i32) -> Fate {
        let Some(unsent) = &mut connection.unsent else {
            return Fate::Stays;
        };
        let Ok(sent) = usize::try_from(result) else {
            return match -result {
                libc::EINTR | libc::EAGAIN => self.wait_for_room(key, connection),
                _ => {
                    // The kernel is done with them.
                    connection.state = State::Reading;
                    self.lost()
                }
            };
        };
        self.tally.sent_bytes += sent as u64;
        unsent.sent += sent;
        if unsent.sent < unsent.length() {
            return self.wait_for_room(key, connection);
        }
        self.go_on(key, connection)
    }
}
