//! The life of a worker: accept, wait, answer; and at the stop, finish what has begun.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::socket;
use crate::stop::Stop;

use super::connection::Connection;
use super::counters::Published;
use super::desk::{Desk, Fate};
use super::epoll::{Epoll, Interest};
use super::handler::Handler;
use super::listener::accept;
use super::slab::{Key, Slab};

/// The number of the listener among the watched descriptors; no key of a connection is as high.
const LISTENER: u64 = u64::MAX;
/// The number of what wakes the worker for the stop.
const STOP: u64 = u64::MAX - 1;

/// Connections accepted from a listener of the worker's own before others have their turn. A guess.
const BURST: usize = 64;

/// How long a worker does not accept when no descriptor is left and none of its own connections ends. A guess: clients wait
/// in the backlog meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections accepted at the stop; bounds the time where clients go on connecting. A guess: sixteen times the usual backlog.
const MOST_QUEUED: usize = 1 << 16;

/// How often a worker that stops looks at the clock.
const STOPPING: Duration = Duration::from_millis(50);

/// A worker and its connections.
pub(super) struct Worker<H: Handler> {
    desk: Desk<H>,
    connections: Slab<Connection<H::Session>>,
    listener: Option<Arc<OwnedFd>>,
    /// How the listener is watched.
    listening: Interest,
    /// The listener is not watched, for want of descriptors.
    paused: bool,
    published: Arc<Published>,
    stop: Arc<Stop>,
    wake: Arc<OwnedFd>,
    stopping: bool,
}

/// Watches what wakes a worker, and its listener: exclusively, where others wait for it too and the kernel can.
pub(super) fn watch(
    epoll: &Epoll,
    wake: &OwnedFd,
    listener: &OwnedFd,
    shared: bool,
) -> io::Result<Interest> {
    epoll.add(wake.as_raw_fd(), STOP, Interest::Read)?;
    let listener = listener.as_raw_fd();
    if shared {
        let exclusively = Interest::ReadExclusively;
        match epoll.add(listener, LISTENER, exclusively) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            done => return done.map(|()| exclusively),
        }
    }
    epoll.add(listener, LISTENER, Interest::Read)?;
    Ok(Interest::Read)
}

impl<H: Handler> Worker<H> {
    /// A worker whose listener is [`watch`]ed.
    pub(super) fn new(
        desk: Desk<H>,
        listener: Arc<OwnedFd>,
        listening: Interest,
        published: Arc<Published>,
        stop: Arc<Stop>,
        wake: Arc<OwnedFd>,
    ) -> Self {
        Self {
            desk,
            connections: Slab::new(),
            listener: Some(listener),
            listening,
            paused: false,
            published,
            stop,
            wake,
            stopping: false,
        }
    }

    /// Serves until the stop.
    pub(super) fn run(&mut self) {
        while !self.stopping || !(self.connections.is_empty() || self.stop.expired()) {
            let mut limit = self.desk.timers.until_next();
            if self.stopping {
                limit = Some(limit.map_or(STOPPING, |limit| limit.min(STOPPING)));
            }
            let ready = self.desk.epoll.wait(limit);
            let mut stops = false;
            for n in 0..ready {
                let event = self.desk.epoll.event(n);
                match event.number {
                    LISTENER => self.accept(self.burst()),
                    STOP => stops = true,
                    number => {
                        let key = Key::from_number(number);
                        self.with(key, |desk, connection| {
                            desk.reported(key, connection, event.failed)
                        });
                    }
                }
            }
            while let Some(number) = self.desk.timers.next_due() {
                if number == LISTENER {
                    self.resume();
                } else {
                    let key = Key::from_number(number);
                    self.with(key, |desk, connection| desk.due(key, connection));
                }
            }
            if stops && !self.stopping {
                self.finish();
            }
            self.publish();
        }
        for key in self.connections.keys() {
            self.close(key);
        }
        self.publish();
    }

    fn publish(&mut self) {
        let tally = self.desk.take_tally();
        self.published.add(&tally);
    }

    /// Does something with a connection, if it is still there.
    fn with(
        &mut self,
        key: Key,
        work: impl FnOnce(&mut Desk<H>, &mut Connection<H::Session>) -> Fate,
    ) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let mut fate = work(&mut self.desk, connection);
        if self.stopping && self.desk.at_rest(connection) {
            fate = Fate::Ends;
        }
        if fate == Fate::Ends {
            self.close(key);
        }
    }

    fn close(&mut self, key: Key) {
        if let Some(connection) = self.connections.remove(key) {
            drop(connection);
            self.desk.tally.closed += 1;
            // It left a descriptor.
            self.resume();
        }
    }

    /// One connection at a time from a shared listener, so that the other workers get theirs.
    fn burst(&self) -> usize {
        match self.listening {
            Interest::ReadExclusively => 1,
            _ => BURST,
        }
    }

    fn accept(&mut self, most: usize) {
        let Some(listener) = &self.listener else {
            return;
        };
        let listener = listener.as_raw_fd();
        for _ in 0..most {
            match accept(listener) {
                Ok(socket) => self.add(socket),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    Some(libc::EINTR) => {}
                    // It ended while it waited: accept(2).
                    Some(libc::ECONNABORTED) => self.desk.tally.accept_errors += 1,
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        self.desk.tally.out_of_descriptors += 1;
                        return self.pause();
                    }
                    _ => {
                        self.desk.tally.accept_errors += 1;
                        return self.pause();
                    }
                },
            }
        }
    }

    fn add(&mut self, socket: OwnedFd) {
        let connection = Connection::new(socket);
        self.desk.tally.accepted += 1;
        if let Some(cpu) = socket::incoming_cpu(&connection.socket) {
            self.published.incoming_cpus.add(cpu, 1);
        }
        let fd = connection.fd();
        let key = self.connections.insert(connection);
        // Refused without memory, or beyond fs.epoll.max_user_watches.
        if self
            .desk
            .epoll
            .add(fd, key.number(), Interest::Read)
            .is_err()
        {
            self.desk.tally.accept_errors += 1;
            self.close(key);
        }
    }

    /// Accepts nothing for a while. The listener would be reported all the time.
    fn pause(&mut self) {
        if let Some(listener) = &self.listener
            && !self.paused
        {
            self.paused = self.desk.epoll.remove(listener.as_raw_fd()).is_ok();
            self.desk.timers.add(PAUSE, LISTENER);
        }
    }

    fn resume(&mut self) {
        if let (Some(listener), true) = (&self.listener, self.paused) {
            let fd = listener.as_raw_fd();
            match self.desk.epoll.add(fd, LISTENER, self.listening) {
                Ok(()) => self.paused = false,
                Err(_) => self.desk.timers.add(PAUSE, LISTENER),
            }
        }
    }

    /// The stop has come: takes what waits in the backlog, lets the listener go, answers what has arrived, and closes what is
    /// at rest.
    fn finish(&mut self) {
        // It stays readable, and would be reported all the time.
        let _ = self.desk.epoll.remove(self.wake.as_raw_fd());
        self.accept(MOST_QUEUED);
        if let Some(listener) = self.listener.take()
            && !self.paused
        {
            // Another descriptor of it may be open still, and would keep it watched.
            let _ = self.desk.epoll.remove(listener.as_raw_fd());
        }
        self.stopping = true;
        for key in self.connections.keys() {
            self.with(key, |desk, connection| {
                desk.reported(key, connection, false)
            });
        }
    }
}
