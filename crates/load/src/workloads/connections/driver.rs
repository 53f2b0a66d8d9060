//! One thread and its connections: when each is due follows from its place in the order, so that nothing is kept for a connection but its socket and
//! what it waits for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use rungwise_serve::tcp::{BROADCAST, MESSAGE};
use socket2::{SockAddr, Socket};

use super::counts::{Counts, Kind, Shared};
use super::run::Note;
use super::{Plan, socket};
use crate::clock::{SECOND, now_ns};
use crate::engine::{Epoll, Interest, Part};

/// The first byte of a ping.
const PING: u8 = b'p';
/// A ping that leaves later than this after it was due is late, ns.
const LATE_NS: u64 = 1_000_000;
/// Connects, or pings, before others have their turn. A guess.
const BURST: usize = 64;
/// How often flags are looked at, ns.
const LOOK_NS: u64 = 20_000_000;
/// Bytes of one receive.
const RECEIVE: usize = 64 << 10;

/// The life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not tried yet, or not any more.
    Idle,
    Connecting,
    Open,
    /// Ended by a storm, to be opened again.
    Dropped,
    Ended,
}

/// A connection.
#[derive(Debug)]
struct Connection {
    socket: Option<Socket>,
    state: State,
    /// How long after it was due the ping under way left, ns.
    late: u32,
    /// Its number.
    ping: u32,
    /// When the connect or the ping under way was due; 0 without a ping.
    due: u64,
}

/// A thread of the load.
pub(super) struct Driver<'a> {
    plan: &'a Plan,
    shared: &'a Shared,
    thread: u64,
    notes: Sender<Note>,
    target: SockAddr,
    epoll: Epoll,
    connections: Vec<Connection>,
    /// The connection that is opened next.
    next: usize,
    /// The number of the next ping, and whether those that are due before the window are behind it.
    ping: u64,
    in_step: bool,
    /// The number of the next message to every connection.
    message: u64,
    /// Connects under way, with the time at which they are given up; some are established meanwhile.
    connects: VecDeque<(u32, u64)>,
    /// Pings under way, with their numbers; likewise.
    pings: VecDeque<(u32, u32, u64)>,
    /// Beginnings of messages, by connection.
    begun: BTreeMap<u32, Vec<u8>>,
    open: u64,
    readers: u64,
    resolved: u64,
    /// Some connections have vanished, and a storm has begun.
    vanished: bool,
    stormed: bool,
    begin: u64,
    end: u64,
    counts: Counts,
    second: Part,
    room: Box<[u8]>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        shared: &'a Shared,
        thread: usize,
        notes: Sender<Note>,
    ) -> io::Result<Self> {
        let (thread, threads) = (thread as u64, plan.threads as u64);
        let own = (plan.count / threads + u64::from(thread < plan.count % threads)) as usize;
        let connection = || Connection {
            socket: None,
            state: State::Idle,
            late: 0,
            ping: 0,
            due: 0,
        };
        Ok(Self {
            plan,
            shared,
            thread,
            notes,
            target: plan.target.into(),
            epoll: Epoll::new(own)?,
            connections: (0..own).map(|_| connection()).collect(),
            next: 0,
            ping: 0,
            in_step: false,
            message: 0,
            connects: VecDeque::new(),
            pings: VecDeque::new(),
            begun: BTreeMap::new(),
            open: 0,
            readers: 0,
            resolved: 0,
            vanished: false,
            stormed: false,
            begin: u64::MAX,
            end: u64::MAX,
            counts: Counts::default(),
            second: Part::new(0),
            room: vec![0; RECEIVE].into(),
        })
    }

    /// Opens, pings and reads until the stop.
    pub(super) fn run(mut self) -> Counts {
        let start = self.shared.start.load(Ordering::Acquire);
        while !self.shared.stop.load(Ordering::Acquire) {
            // The end is set before the beginning, and may be moved forward later.
            self.begin = self.shared.begin.load(Ordering::Acquire);
            self.end = self.shared.end.load(Ordering::Acquire);
            let now = now_ns();
            self.tick(now);
            if now >= self.begin && !self.vanished {
                self.vanish();
            }
            if now >= self.shared.storm.load(Ordering::Acquire) && !self.stormed {
                self.drop_all();
            }
            let next = [
                now + LOOK_NS,
                self.connect(start, now),
                self.send_pings(start, now),
                self.ask(now),
                self.give_up(now),
            ];
            self.publish();
            let next = next.into_iter().min().unwrap_or(now);
            let ready = self.epoll.wait(next.saturating_sub(now_ns()));
            for n in 0..ready {
                let (at, input, ended) = (
                    self.epoll.ready(n),
                    self.epoll.has_input(n),
                    self.epoll.has_ended(n),
                );
                self.reported(at, input, ended);
            }
        }
        // Replies to these would come too late to be read: they are neither answered nor lost.
        while let Some((at, number, _)) = self.pings.pop_front() {
            if self.is_pinged(at, number) {
                self.forget(at as usize);
            }
        }
        self.counts
    }

    /// The place of a connection in the whole load.
    fn place(&self, at: usize) -> u64 {
        at as u64 * self.plan.threads as u64 + self.thread
    }

    /// The connection reads nothing: the last ones of the load.
    fn is_slow(&self, at: usize) -> bool {
        self.place(at) >= self.plan.count - self.plan.slow_readers
    }

    /// The connection vanishes: those before the slow ones.
    fn vanishes(&self, at: usize) -> bool {
        !self.is_slow(at)
            && self.place(at) >= self.plan.count - self.plan.slow_readers - self.plan.half_open
    }

    fn in_window(&self, instant: u64) -> bool {
        self.begin <= instant && instant < self.end
    }

    /// Reports the seconds of the window that are over.
    fn tick(&mut self, now: u64) {
        while now.min(self.end) >= self.begin.saturating_add((self.second.index + 1) * SECOND) {
            let next = Part::new(self.second.index + 1);
            let over = std::mem::replace(&mut self.second, next);
            let _ = self.notes.send(Note::Second(Box::new(over)));
        }
    }

    fn publish(&self) {
        let progress = &self.shared.progress[self.thread as usize];
        let left = if self.stormed {
            self.connections.len() - self.next
        } else {
            0
        };
        let pending = self.pings.len() + self.connects.len() + left;
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        set(&progress.opened, self.counts.opened);
        set(&progress.refused, self.counts.of(Kind::ConnectRefused));
        set(&progress.open, self.open);
        set(&progress.readers, self.readers);
        set(&progress.pending, pending as u64);
        set(&progress.expected, self.counts.expected);
        set(&progress.arrived, self.counts.messages_received);
        progress.resolved.store(self.resolved, Ordering::Release);
        progress.rounds.fetch_add(1, Ordering::Release);
    }

    /// Opens what is due; when the next one is.
    fn connect(&mut self, start: u64, now: u64) -> u64 {
        for _ in 0..BURST {
            let at = self.next;
            let Some(connection) = self.connections.get(at) else {
                return u64::MAX;
            };
            let due = if self.stormed {
                if connection.state != State::Dropped {
                    self.next += 1;
                    continue;
                }
                self.shared.storm.load(Ordering::Relaxed)
            } else {
                start + (self.place(at) as f64 * SECOND as f64 / self.plan.rate_per_s) as u64
            };
            if due > now {
                return due;
            }
            self.next += 1;
            self.open(at, due);
        }
        now
    }

    fn open(&mut self, at: usize, due: u64) {
        let sources = &self.plan.sources;
        let turn = self.place(at) as usize % sources.len().max(1);
        let source = sources.get(turn).copied();
        let opened = socket::open(&self.target, source, self.is_slow(at)).and_then(|socket| {
            let watched = self.epoll.watch(socket.as_raw_fd(), at, Interest::Stream);
            watched.map(|()| socket)
        });
        self.counts.tried += u64::from(!self.stormed);
        match opened {
            Ok(socket) => {
                let connection = &mut self.connections[at];
                connection.socket = Some(socket);
                connection.state = State::Connecting;
                connection.due = due;
                let limit = now_ns() + self.plan.timeout.as_nanos() as u64;
                self.connects.push_back((at as u32, limit));
            }
            Err(error) => {
                let kind = Kind::of_connect(&error);
                self.not_opened(at, kind);
                if kind.is_limit() && !self.stormed {
                    self.resolved += (self.connections.len() - self.next) as u64;
                    self.next = self.connections.len();
                }
            }
        }
    }

    fn not_opened(&mut self, at: usize, kind: Kind) {
        self.counts.errors[kind as usize] += 1;
        let connection = &mut self.connections[at];
        connection.socket = None;
        connection.state = State::Ended;
        connection.due = 0;
        self.resolved += u64::from(!self.stormed);
    }

    fn established(&mut self, at: usize, now: u64) {
        let connection = &mut self.connections[at];
        connection.state = State::Open;
        let after = now.saturating_sub(std::mem::take(&mut connection.due));
        self.open += 1;
        self.readers += u64::from(!self.is_slow(at));
        if self.stormed {
            self.counts.back += 1;
            self.counts.back_after.record(after);
        } else {
            self.counts.opened += 1;
            self.counts.opened_readers += u64::from(!self.is_slow(at));
            self.counts.last_opened = now;
            self.counts.connect.record(after);
            self.resolved += 1;
        }
    }

    /// Something is reported of a connection.
    fn reported(&mut self, at: usize, input: bool, ended: bool) {
        let connection = &self.connections[at];
        let Some(socket) = &connection.socket else {
            return;
        };
        match connection.state {
            State::Connecting => {
                if ended && let Ok(Some(error)) = socket.take_error() {
                    self.not_opened(at, Kind::of_connect(&error));
                    return;
                }
                self.established(at, now_ns());
            }
            State::Open => {}
            State::Idle | State::Dropped | State::Ended => return,
        }
        if self.is_slow(at) {
            if ended {
                self.ended(at, Kind::Closed);
            }
        } else if input || ended {
            self.read(at, ended);
        }
    }

    fn read(&mut self, at: usize, to_the_end: bool) {
        let mut room = std::mem::take(&mut self.room);
        while let Some(mut socket) = self.connections[at].socket.as_ref() {
            match socket.read(&mut room) {
                Ok(0) => {
                    self.ended(at, Kind::Closed);
                    break;
                }
                Ok(length) => {
                    self.take(at, &room[..length], now_ns());
                    if length < room.len() && !to_the_end {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended(at, Kind::of_end(&error));
                    break;
                }
            }
        }
        self.room = room;
    }

    /// Takes what a connection has brought.
    fn take(&mut self, at: usize, bytes: &[u8], now: u64) {
        let begun = self.begun.remove(&(at as u32));
        let joined = begun.map(|mut begun| {
            begun.extend_from_slice(bytes);
            begun
        });
        let bytes = joined.as_deref().unwrap_or(bytes);
        let (messages, rest) = bytes.as_chunks::<MESSAGE>();
        for message in messages {
            self.message(at, message, now);
        }
        if !rest.is_empty() {
            self.begun.insert(at as u32, rest.to_vec());
        }
    }

    fn message(&mut self, at: usize, message: &[u8; MESSAGE], now: u64) {
        let (head, number) = message.split_at(MESSAGE / 2);
        let number = u64::from_le_bytes(number.try_into().expect("half of a message"));
        if head[0] == BROADCAST {
            let Some(due) = self.due_of_message(number).filter(|due| *due <= now) else {
                self.counts.errors[Kind::Malformed as usize] += 1;
                return;
            };
            self.counts.messages_received += 1;
            self.counts.fan_out.record(now - due);
            return;
        }
        if head[0] != PING {
            self.counts.errors[Kind::Malformed as usize] += 1;
            return;
        }
        let connection = &mut self.connections[at];
        if connection.due == 0 || connection.ping != number as u32 {
            self.counts.errors[Kind::Late as usize] += 1;
            return;
        }
        let due = std::mem::take(&mut connection.due);
        let late = u64::from(connection.late);
        if self.in_window(now) {
            self.counts.arrived += 1;
        }
        if self.in_window(due) {
            let corrected = now.saturating_sub(due);
            self.counts.received += 1;
            self.counts.corrected.record(corrected);
            let uncorrected = corrected.saturating_sub(late);
            self.counts.uncorrected.record(uncorrected);
            self.second.received += 1;
            self.second.corrected.record(corrected);
        }
    }

    /// An established connection has ended.
    fn ended(&mut self, at: usize, kind: Kind) {
        self.counts.errors[kind as usize] += 1;
        let due = self.connections[at].due;
        if due > 0 && self.in_window(due) {
            self.counts.lost += 1;
            self.second.lost += 1;
        }
        self.let_go(at, State::Ended);
    }

    /// Lets the socket of an open connection go.
    fn let_go(&mut self, at: usize, state: State) -> Option<Socket> {
        self.open -= 1;
        self.readers -= u64::from(!self.is_slow(at));
        if !self.begun.is_empty() {
            self.begun.remove(&(at as u32));
        }
        let connection = &mut self.connections[at];
        connection.state = state;
        connection.due = 0;
        connection.socket.take()
    }

    /// A ping under way counts no more.
    fn forget(&mut self, at: usize) {
        let due = std::mem::take(&mut self.connections[at].due);
        if due > 0 && self.in_window(due) {
            self.counts.sent -= 1;
            self.second.sent = self.second.sent.saturating_sub(1);
        }
    }

    /// A ping under way is not waited for any longer.
    fn lose(&mut self, at: usize) {
        self.counts.errors[Kind::Timeout as usize] += 1;
        let due = std::mem::take(&mut self.connections[at].due);
        if self.in_window(due) {
            self.counts.lost += 1;
            self.second.lost += 1;
        }
    }

    fn is_pinged(&self, at: u32, number: u32) -> bool {
        let connection = &self.connections[at as usize];
        connection.state == State::Open && connection.due > 0 && connection.ping == number
    }

    /// Sends the pings that are due; when the next one is.
    fn send_pings(&mut self, start: u64, now: u64) -> u64 {
        let Some(every) = self.plan.ping else {
            return u64::MAX;
        };
        if !self.in_step && now >= self.begin {
            // Where opening took all CPUs, pings of that time wait still. They would delay those of the window, and do not count.
            self.in_step = true;
            self.ping = self
                .ping
                .max(self.turns().before(self.begin.saturating_sub(start), every));
        }
        for _ in 0..BURST {
            if self.connections.is_empty() {
                return u64::MAX;
            }
            let (at, after) = self.turns().of(self.ping, every);
            let due = start + after;
            if due >= self.end {
                return u64::MAX;
            }
            if due > now {
                return due;
            }
            if self.connections[at].state == State::Open {
                self.send_ping(at, due);
            }
            self.ping += 1;
        }
        now
    }

    fn turns(&self) -> Turns {
        Turns {
            own: self.connections.len() as u64,
            thread: self.thread,
            threads: self.plan.threads as u64,
            count: self.plan.count,
        }
    }

    fn send_ping(&mut self, at: usize, due: u64) {
        let (is_slow, counts) = (self.is_slow(at), self.in_window(due));
        // The one before left late, and its time is not over yet.
        if self.connections[at].due > 0 {
            self.lose(at);
        }
        let number = self.ping;
        let message = written(PING, number);
        let connection = &mut self.connections[at];
        let Some(socket) = &connection.socket else {
            return;
        };
        let sent = socket.send_with_flags(&message, libc::MSG_NOSIGNAL);
        let now = now_ns();
        match sent {
            // It would never read the reply.
            Ok(MESSAGE) if is_slow => {}
            Err(error) if is_slow && error.kind() == ErrorKind::WouldBlock => {}
            Ok(MESSAGE) => {
                let late = now.saturating_sub(due);
                connection.late = u32::try_from(late).unwrap_or(u32::MAX);
                connection.ping = number as u32;
                connection.due = due;
                let limit = now + self.plan.timeout.as_nanos() as u64;
                self.pings.push_back((at as u32, number as u32, limit));
                if counts {
                    self.counts.sent += 1;
                    self.second.sent += 1;
                    self.counts.late_sends += u64::from(late > LATE_NS);
                }
            }
            // The server has not read for so long that nothing fits any more, or a part of it.
            Ok(_) => self.ended(at, Kind::Send),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.counts.errors[Kind::Send as usize] += 1;
                if counts {
                    self.counts.sent += 1;
                    self.counts.lost += 1;
                    self.second.sent += 1;
                    self.second.lost += 1;
                }
            }
            Err(error) => self.ended(at, Kind::of_end(&error)),
        }
    }

    /// When the server was to be asked for the message of this number.
    fn due_of_message(&self, number: u64) -> Option<u64> {
        let every = self.plan.broadcast?.as_nanos() as u64;
        let after = every.checked_mul(number.checked_add(1)?)?;
        let due = self.begin.checked_add(after)?;
        (due < self.end).then_some(due)
    }

    /// Asks for a message to every connection where one is due; when the next one is.
    fn ask(&mut self, now: u64) -> u64 {
        if self.thread > 0 {
            return u64::MAX;
        }
        let Some(due) = self.due_of_message(self.message) else {
            return u64::MAX;
        };
        if due > now {
            return due;
        }
        let number = self.message;
        self.message += 1;
        let mut all = 0..self.connections.len();
        let asks = all.find(|at| self.connections[*at].state == State::Open && !self.is_slow(*at));
        if let Some(at) = asks
            && let Some(socket) = &self.connections[at].socket
        {
            let message = written(BROADCAST, number);
            match socket.send_with_flags(&message, libc::MSG_NOSIGNAL) {
                Ok(MESSAGE) => {
                    self.counts.messages += 1;
                    self.counts.expected += self.shared.sum(|progress| &progress.readers);
                }
                Err(error) if error.kind() != ErrorKind::WouldBlock => {
                    self.ended(at, Kind::of_end(&error));
                }
                _ => self.counts.errors[Kind::Send as usize] += 1,
            }
        }
        now
    }

    /// Gives up what has waited for too long; when the next one has.
    fn give_up(&mut self, now: u64) -> u64 {
        let mut next = u64::MAX;
        while let Some((at, limit)) = self.connects.front().copied() {
            if self.connections[at as usize].state == State::Connecting {
                if limit > now {
                    next = limit;
                    break;
                }
                self.not_opened(at as usize, Kind::ConnectTimeout);
            }
            self.connects.pop_front();
        }
        while let Some((at, number, limit)) = self.pings.front().copied() {
            if self.is_pinged(at, number) {
                if limit > now {
                    return next.min(limit);
                }
                self.lose(at as usize);
            }
            self.pings.pop_front();
        }
        next
    }

    /// Lets connections vanish.
    fn vanish(&mut self) {
        self.vanished = true;
        if self.plan.half_open == 0 {
            return;
        }
        for at in 0..self.connections.len() {
            if self.vanishes(at) && self.connections[at].state == State::Open {
                self.forget(at);
                if let Some(socket) = self.let_go(at, State::Ended)
                    && socket::vanish(socket).is_ok()
                {
                    self.counts.half_open += 1;
                }
            }
        }
    }

    /// Ends all connections that read.
    fn drop_all(&mut self) {
        self.stormed = true;
        self.next = 0;
        let connections = &self.connections;
        let is_under_way = |at: u32| connections[at as usize].state == State::Connecting;
        self.connects.retain(|(at, _)| is_under_way(*at));
        for at in 0..self.connections.len() {
            if self.connections[at].state == State::Open && !self.is_slow(at) {
                self.forget(at);
                self.counts.dropped += 1;
                if let Some(socket) = self.let_go(at, State::Dropped) {
                    socket::reset(socket);
                }
            }
        }
    }
}

/// A message with this first byte and number.
fn written(first: u8, number: u64) -> [u8; MESSAGE] {
    let mut message = [0; MESSAGE];
    message[0] = first;
    message[MESSAGE / 2..].copy_from_slice(&number.to_le_bytes());
    message
}

/// The order of pings: all connections of the load in turn, evenly over the time between two pings of one.
#[derive(Clone, Copy, Debug)]
struct Turns {
    /// Connections of this thread; every `threads`th of all.
    own: u64,
    thread: u64,
    threads: u64,
    /// Connections of all threads.
    count: u64,
}

impl Turns {
    /// The connection of the thread's ping of this number, and when it is due, ns after the start. There is a connection.
    fn of(self, ping: u64, every: Duration) -> (usize, u64) {
        let (cycle, at) = (ping / self.own, ping % self.own);
        let place = u128::from(at * self.threads + self.thread + 1);
        let every = every.as_nanos();
        let after = u128::from(cycle) * every + place * every / u128::from(self.count);
        (at as usize, after as u64)
    }

    /// How many pings of the thread are due in so many ns, one more or less.
    fn before(self, ns: u64, every: Duration) -> u64 {
        let (ns, every) = (u128::from(ns), every.as_nanos());
        let of_all = ns % every * u128::from(self.count) / every;
        let of_own = (of_all as u64 / self.threads).min(self.own);
        (ns / every) as u64 * self.own + of_own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_small() {
        assert_eq!(size_of::<Connection>(), 24);
    }

    #[test]
    fn each_connection_is_pinged_once_in_the_time_between_two_pings() {
        let every = Duration::from_nanos(600);
        // Three connections of two threads: the first thread has two of them.
        let mut due = Vec::new();
        for (thread, own) in [(0, 2), (1, 1)] {
            let turns = Turns {
                own,
                thread,
                threads: 2,
                count: 3,
            };
            for ping in 0..2 * own {
                let (at, after) = turns.of(ping, every);
                due.push((after, thread, at));
            }
            assert_eq!(turns.before(0, every), 0);
            assert_eq!(turns.before(1_200, every), 2 * own);
        }
        due.sort_unstable();
        let expected = [
            (200, 0, 0),
            (400, 1, 0),
            (600, 0, 1),
            (800, 0, 0),
            (1_000, 1, 0),
            (1_200, 0, 1),
        ];
        assert_eq!(due, expected);
    }

    #[test]
    fn a_message_has_its_number_behind_its_first_byte() {
        assert_eq!(
            written(PING, 0x0102),
            *b"p\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0"
        );
    }
}
