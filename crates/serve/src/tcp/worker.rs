//! The life of a worker: accept, wait, answer; and at the stop, finish what has begun.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::socket;
use crate::stop::Stop;

use super::connection::Connection;
use super::counters::Published;
use super::desk::{Desk, Fate};
use super::engine::{Engine, LISTENER};
use super::handler::Handler;
use super::hub::{Hub, MOST_WAITING};
use super::listener::{self, accept};
use super::slab::{Key, Slab};

/// Connections accepted from a listener of the worker's own before others have their turn. A guess.
pub(super) const BURST: usize = 64;

/// How long a worker does not accept when no descriptor is left and none of its own connections ends. A guess: clients wait
/// in the backlog meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections accepted at the stop; bounds the time where clients go on connecting. A guess: sixteen times the usual backlog.
const MOST_QUEUED: usize = 1 << 16;

/// Connections that a message to all is sent to before others have their turn. A guess: half a millisecond.
const FAN: usize = 256;

/// How often a worker that stops looks at the clock.
const STOPPING: Duration = Duration::from_millis(50);

/// A worker and its connections.
pub(super) struct Worker<H: Handler, E> {
    pub(super) desk: Desk<H, E>,
    connections: Slab<Connection<H::Session>>,
    listener: Option<Arc<OwnedFd>>,
    /// Nothing is accepted, for want of descriptors.
    paused: bool,
    published: Arc<Published>,
    stop: Arc<Stop>,
    wake: Arc<OwnedFd>,
    stopping: bool,
    /// Where messages to every connection come from, and the worker's number there.
    hub: Option<(Arc<Hub>, usize)>,
    /// Those that are being sent, the oldest first, and the place that is next for it.
    fan: VecDeque<Arc<[u8]>>,
    next: usize,
    /// The listener is open in the tables of other workers too.
    own_tables: bool,
}

impl<H: Handler, E: Engine> Worker<H, E> {
    /// A worker whose engine attends to `listener` and `wake`.
    pub(super) fn new(
        desk: Desk<H, E>,
        listener: Arc<OwnedFd>,
        published: Arc<Published>,
        stop: Arc<Stop>,
        wake: Arc<OwnedFd>,
        hub: Option<(Arc<Hub>, usize)>,
        own_tables: bool,
    ) -> Self {
        Self {
            desk,
            connections: Slab::new(),
            listener: Some(listener),
            paused: false,
            published,
            stop,
            wake,
            stopping: false,
            hub,
            fan: VecDeque::new(),
            next: 0,
            own_tables,
        }
    }

    /// Serves until the stop.
    pub(super) fn run(&mut self) {
        while !self.stopping || !(self.connections.is_empty() || self.stop.expired()) {
            self.round();
        }
        for key in self.connections.keys() {
            self.close(key);
        }
        self.publish();
    }

    /// Waits until something happens, and does what follows.
    fn round(&mut self) {
        let mut limit = self.desk.timers.until_next();
        if self.stopping {
            limit = Some(limit.map_or(STOPPING, |limit| limit.min(STOPPING)));
        }
        if !self.fan.is_empty() {
            limit = Some(Duration::ZERO);
        }
        let stops = E::round(self, limit);
        self.fan_out();
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

    fn publish(&mut self) {
        let tally = self.desk.take_tally();
        self.published.add(&tally);
    }

    /// Takes messages to every connection from the hub, as many as there is room for; the rest no connection gets.
    pub(super) fn fetch(&mut self) {
        if let Some((hub, number)) = &self.hub {
            let mut mail = hub.take(*number);
            let room = MOST_WAITING.saturating_sub(self.fan.len());
            let beyond = mail.messages.len().saturating_sub(room);
            mail.messages.truncate(room);
            self.fan.append(&mut mail.messages);
            let left_out = mail.left_out + beyond as u64;
            if left_out > 0 {
                self.desk.tally.not_broadcast += left_out * self.connections.len() as u64;
            }
        }
    }

    /// Sends the oldest message to every connection to some more of them.
    fn fan_out(&mut self) {
        let Some(message) = self.fan.front().cloned() else {
            return;
        };
        for _ in 0..FAN {
            if self.next >= self.connections.places() {
                self.fan.pop_front();
                self.next = 0;
                return;
            }
            if let Some(key) = self.connections.key_at(self.next) {
                self.with(key, |desk, connection| desk.push(key, connection, &message));
            }
            self.next += 1;
        }
    }

    /// The connections.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.connections.keys()
    }

    /// Does something with a connection, if it is still there.
    pub(super) fn with(
        &mut self,
        key: Key,
        work: impl FnOnce(&mut Desk<H, E>, &mut Connection<H::Session>) -> Fate,
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
            self.desk.close(key, connection);
            // It left a descriptor.
            self.resume();
        }
    }

    /// Accepts what waits at the listener, at most so many.
    pub(super) fn accept(&mut self, most: usize) {
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
                    _ if self.not_accepted(&error) => {}
                    _ => return,
                },
            }
        }
    }

    /// Counts a connection that could not be accepted; whether another may be.
    pub(super) fn not_accepted(&mut self, error: &io::Error) -> bool {
        match error.raw_os_error() {
            // It ended while it waited: accept(2).
            Some(libc::ECONNABORTED) => {
                self.desk.tally.accept_errors += 1;
                return true;
            }
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                self.desk.tally.out_of_descriptors += 1;
            }
            _ => self.desk.tally.accept_errors += 1,
        }
        self.pause();
        false
    }

    /// A connection was accepted.
    pub(super) fn add(&mut self, socket: OwnedFd) {
        let connection = Connection::new(socket);
        self.desk.tally.accepted += 1;
        if let Some(cpu) = socket::incoming_cpu(&connection.socket) {
            self.published.incoming_cpus.add(cpu, 1);
        }
        let key = self.connections.insert(connection);
        let engine = &mut self.desk.engine;
        let begun = self
            .connections
            .get_mut(key)
            .map(|connection| engine.begin(key, connection));
        // Refused without memory, or beyond fs.epoll.max_user_watches.
        if !matches!(begun, Some(Ok(()))) {
            self.desk.tally.accept_errors += 1;
            self.close(key);
        }
    }

    /// Accepts nothing for a while. The listener would be reported all the time.
    fn pause(&mut self) {
        if let Some(listener) = &self.listener
            && !self.paused
        {
            let listener = listener.as_raw_fd();
            self.paused = self.desk.engine.listen(listener, false).is_ok();
            self.desk.timers.add(PAUSE, LISTENER);
        }
    }

    fn resume(&mut self) {
        if let (Some(listener), true) = (&self.listener, self.paused) {
            match self.desk.engine.listen(listener.as_raw_fd(), true) {
                Ok(()) => self.paused = false,
                Err(_) => _ = self.desk.timers.add(PAUSE, LISTENER),
            }
        }
    }

    /// The stop has come: takes what waits in the backlog, lets the listener go, answers what has arrived, and closes what is
    /// at rest.
    fn finish(&mut self) {
        self.desk.engine.heard(self.wake.as_raw_fd());
        if let Some(listener) = &self.listener
            && !self.paused
        {
            // Another descriptor of it may be open still, and would keep it watched.
            let _ = self.desk.engine.listen(listener.as_raw_fd(), false);
        }
        self.accept(MOST_QUEUED);
        if let Some(listener) = &self.listener
            && self.own_tables
        {
            listener::shut(listener.as_raw_fd());
        }
        self.listener = None;
        self.stopping = true;
        E::settle(self);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::super::epoll::Epoll;
    use super::super::handler::{Reply, Step, Then};
    use super::*;
    use crate::guard::Guarded;
    use crate::stop::eventfd;

    /// Answers `a` at once, and everything else in an hour.
    struct Late;

    impl Handler for Late {
        type Session = ();

        fn handle(&mut self, (): &mut (), input: &[u8], reply: &mut Reply) -> Step {
            reply.push(input);
            Step {
                taken: input.len(),
                delay: (input != b"a").then_some(Duration::from_hours(1)),
                then: Then::Continue,
            }
        }
    }

    #[test]
    fn a_delay_ends_with_its_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let target = listener.local_addr().unwrap();
        let (listener, wake) = (
            Arc::new(OwnedFd::from(listener)),
            Arc::new(eventfd().unwrap()),
        );
        let mut epoll = Epoll::new().unwrap();
        epoll.attend(&wake, &listener, false).unwrap();
        let desk = Desk::new(Guarded::new(Arc::new(|_| Late), 0), None, epoll);
        let published = Arc::new(Published::new(1));
        let stop = Arc::new(Stop::default());
        let mut worker = Worker::new(desk, listener, published, stop, wake, None, false);
        let mut client = TcpStream::connect(target).unwrap();
        client.write_all(b"a").unwrap();
        client.set_nonblocking(true).unwrap();
        while client.peek(&mut [0]).is_err() {
            worker.round();
        }
        client.write_all(b"b").unwrap();
        while worker.desk.timers.until_next().is_none() {
            worker.round();
        }
        // With a reply unread, closing resets the connection.
        drop(client);
        while !worker.connections.is_empty() {
            worker.round();
        }
        assert_eq!(worker.desk.timers.until_next(), None);
    }
}
