//! One generator thread: it sends requests, waits for all of its connections together, and reads replies.
//!
//! Requests that are due at the same time on a connection leave by one system call, and so do those that take the place of replies that came
//! together. The clock is read once after each piece that came and once before each batch. Nothing here allocates per request.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::counts::Counts;
use super::lane::{Lane, Unwelcome};
use super::link::{Established, Link};
use super::slots::{Past, Pending};
use super::tls::Failed;
use super::{Around, Conversation, Cut, MOST_KEPT, Protocol, Reply, Verdict, Workload};
use crate::Error;
use crate::clock::{SECOND, now_ns};
use crate::engine::{Driver, Epoll, Interest, Ledger, Round, Tally, Window};

/// Gaps shorter than this are polled through: a sleep and the wake-up from it cost about as much CPU.
const SPIN_NS: u64 = 10_000;
/// Bytes read at once.
const BUFFER: usize = 64 * 1024;
/// Bytes of TLS read at once: with an incomplete record of 16 KiB from before, they are no more than [`BUFFER`] when decrypted.
const WIRE: usize = 32 * 1024;
/// A connection is read at most this many times in a row, so a long reply on one does not starve the others.
const READS: usize = 16;
/// Connections that a thread opens at the same time before the load begins: fewer than any usual backlog.
const AT_ONCE: usize = 64;
/// How long such a connection may take at least: a lost SYN is repeated after one and three seconds.
const CONNECT_NS: u64 = 5 * SECOND;
/// How often the flag to stop is looked at meanwhile.
const LOOK_NS: u64 = 20_000_000;
/// How soon a Unix socket with a full queue is tried again.
const AGAIN_NS: u64 = 1_000_000;
/// What a server does that sends more than it was asked for.
const SURPLUS: &str = "more bytes than the replies that were asked for";
/// What a server does that stops within a reply.
const HALF_SILENT: &str = "the beginning of a reply, and then nothing until the timeout";
const HALF_ENDED: &str = "the end of the connection within a reply";

/// What is counted beside sent, received and lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Failure {
    /// No complete reply in time.
    Timeout,
    /// The connection could not be established.
    Connect,
    /// TLS failed, in the handshake or later.
    Tls,
    /// The server refused what the connection begins with.
    Greeting,
    /// The other side closed it before the reply was complete.
    Closed,
    /// It was reset.
    Reset,
    /// What came is no reply.
    Malformed,
    /// Its connection was closed because of another request on it.
    Abandoned,
    /// A reply to a request that was given up before.
    Late,
    /// A second reply to a request.
    Duplicate,
    /// A reply to no request.
    Unexpected,
}

/// Names of [`Failure`] in reports, in their order.
pub(super) const ERRORS: [&str; 11] = [
    "timeout",
    "connect",
    "tls",
    "greeting",
    "closed",
    "reset",
    "malformed",
    "abandoned",
    "late",
    "duplicate",
    "unexpected",
];

/// One generator thread.
#[derive(Debug)]
pub(crate) struct Generator<'a, P: Protocol> {
    workload: &'a Workload<P>,
    ledger: Ledger<'a>,
    lanes: Vec<Lane<P::Talk>>,
    /// Lanes with room for a request, in an open loop.
    idle: VecDeque<usize>,
    /// Lanes that were given requests and not flushed.
    dirty: Vec<usize>,
    epoll: Epoll,
    buffer: Vec<u8>,
    /// What TLS brings before it is decrypted; empty without TLS.
    wire: Vec<u8>,
    counts: Counts,
    /// A due request found no room, and the backlog has not been worked off since.
    starved: bool,
}

impl<'a, P: Protocol> Generator<'a, P> {
    /// Lays out all memory, and opens the connections.
    pub(super) fn new(
        workload: &'a Workload<P>,
        ledger: Ledger<'a>,
        dealt: &Arc<P::Dealt>,
    ) -> Result<Self, Error> {
        let thread = ledger.thread();
        let number = workload.share(thread);
        let threads = workload.plan.threads;
        let protocol = &*workload.protocol;
        let tls = workload.route.tls.as_ref();
        let lane = |at: usize| {
            let link = Link::new(tls, workload.nagle);
            let talk = protocol.talk(dealt, workload.seed, thread + at * threads);
            Lane::new(link, talk, workload.depth)
        };
        let epoll = Epoll::new(number).map_err(|error| Error::Thread {
            thread,
            step: "watch the connections",
            error,
            remedy: "use fewer --threads, or raise the limit of open files (ulimit -n)",
        })?;
        let mut this = Self {
            workload,
            ledger,
            lanes: (0..number).map(lane).collect(),
            idle: VecDeque::with_capacity(number),
            dirty: Vec::with_capacity(number),
            epoll,
            buffer: vec![0; BUFFER],
            wire: vec![0; if tls.is_some() { WIRE } else { 0 }],
            counts: Counts::new(protocol),
            starved: false,
        };
        this.connect(number)?;
        Ok(this)
    }

    /// Establishes all connections, some at a time.
    fn connect(&mut self, number: usize) -> Result<(), Error> {
        let workload = self.workload;
        let refuse = |error: io::Error| workload.unconnected(error);
        let patience = CONNECT_NS.max(self.ledger.timeout);
        let at_once = (AT_ONCE / workload.plan.threads).max(1);
        let (mut next, mut waiting) = (0, 0);
        // Since when the queue of a Unix socket is full, which nothing reports.
        let mut full = None;
        while next < number || waiting > 0 {
            if self.ledger.stopped() {
                return Err(refuse(ErrorKind::Interrupted.into()));
            }
            // One at a time, so that the time to connect is not that of the others.
            let mut more = next < number && waiting < at_once;
            let mut wait = if more { 0 } else { LOOK_NS };
            if more {
                match self.open(next, now_ns()) {
                    Ok(()) => (next, waiting, full) = (next + 1, waiting + 1, None),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        let since = *full.get_or_insert(now_ns());
                        if now_ns() - since > patience {
                            return Err(refuse(error));
                        }
                        (more, wait) = (false, AGAIN_NS);
                    }
                    Err(error) => return Err(refuse(error)),
                }
            }
            let ready = self.epoll.wait(wait);
            for n in 0..ready {
                let at = self.epoll.ready(n);
                if self.lanes[at].link.opening.is_none() {
                    // It has ended before the load, which its first request will find.
                    continue;
                }
                if let Some(established) = self.establish(at, now_ns()).map_err(refuse)? {
                    self.counts.time(&established);
                    waiting -= 1;
                }
            }
            if more || ready > 0 {
                continue;
            }
            let opening = self.lanes.iter().map(|lane| &lane.link);
            let opening = opening.filter(|link| link.opening.is_some());
            if let Some(oldest) = opening.min_by_key(|link| link.opening)
                && oldest
                    .opening
                    .is_some_and(|began| now_ns() - began > patience)
            {
                return Err(refuse(oldest.overdue()));
            }
        }
        Ok(())
    }

    /// Begins to establish a connection.
    fn open(&mut self, at: usize, now: u64) -> io::Result<()> {
        let lane = &mut self.lanes[at];
        lane.served = false;
        let socket = lane.link.open(&self.workload.route.address, now)?;
        let watched = self.epoll.watch(socket, at, Interest::Stream);
        if watched.is_err() {
            lane.close();
        }
        watched
    }

    /// Goes on establishing a connection at `now`; how that went, once it is established and what it begins with is answered.
    fn establish(&mut self, at: usize, now: u64) -> io::Result<Option<Established>> {
        let Self {
            lanes,
            wire,
            buffer,
            counts,
            ledger,
            ..
        } = self;
        lanes[at].establish(now, (wire, buffer), counts, ledger.window.has(now))
    }

    fn drive(&mut self, start: u64, window: Window) {
        self.ledger.begin(start, window, 1);
        if self.ledger.schedule.is_some() {
            (0..self.lanes.len()).for_each(|at| self.rest(at));
        }
        loop {
            let now = now_ns();
            if now >= self.ledger.next_tick() && self.tick(now) {
                break;
            }
            let mut progressed = false;
            if self.ledger.schedule.is_some() && self.ledger.sending {
                progressed = self.send_due(now);
            }
            if !self.ledger.sending && self.ledger.open == 0 {
                break;
            }
            // While another load has its turn, replies still come; the tick at its end sends anew.
            let next = match (self.ledger.rest(now), self.ledger.due()) {
                (Some(wake), _) => wake,
                (None, Some((due, _))) if self.ledger.sending && !self.starved => due,
                _ => u64::MAX,
            };
            let wait = next.min(self.ledger.next_tick()).saturating_sub(now);
            let wait = if wait < SPIN_NS { 0 } else { wait };
            let ready = self.epoll.wait(wait);
            for n in 0..ready {
                let (at, has_ended) = (self.epoll.ready(n), self.epoll.has_ended(n));
                self.serve(at, has_ended);
            }
            if wait == 0 && !progressed && ready == 0 && self.ledger.window.has(now) {
                self.ledger.tally.spin_ns += now_ns() - now;
            }
        }
        self.ledger.finish(now_ns(), 0);
    }

    /// What is not needed per request. True if the thread must leave.
    fn tick(&mut self, now: u64) -> bool {
        let due = self.ledger.tick(now);
        for at in 0..self.lanes.len() {
            self.expire(at, due.sent_by, now);
        }
        if !due.over && self.ledger.schedule.is_none() && self.ledger.sending {
            // Room that a failure has left, or the turn of another load, or the very beginning.
            for at in 0..self.lanes.len() {
                self.refill(at, now);
            }
        }
        due.over
    }

    /// Gives up the requests of a lane that were sent at or before `sent_by`.
    fn expire(&mut self, at: usize, sent_by: u64, now: u64) {
        let is_numbered = self.workload.protocol.is_numbered();
        loop {
            let lane = &mut self.lanes[at];
            let oldest = lane.slots.oldest();
            let Some(Pending { sent, .. }) = oldest.copied().filter(|one| one.sent <= sent_by)
            else {
                return;
            };
            // What comes later would be taken for the reply to another request; and one on which nothing comes any more is of no use.
            if !is_numbered || lane.heard < sent {
                return self.fail(at, Failure::Timeout, sent_by, now);
            }
            if let Some(pending) = lane.slots.end_oldest() {
                self.lose(&pending, Failure::Timeout, false, now);
            }
            if self.ledger.schedule.is_some() {
                self.rest(at);
            }
        }
    }

    /// Counts a request that has no answer; `spoke`: some of its reply has come.
    #[cold]
    fn lose(&mut self, pending: &Pending, failure: Failure, spoke: bool, now: u64) {
        let ours = self.ledger.window.has(pending.intended);
        self.ledger.count(failure as usize, u64::from(ours));
        if ours {
            self.counts.note(pending.name, None);
        }
        if spoke {
            self.ledger.rejected(pending.intended, now);
        } else {
            self.ledger.lost(pending.intended, now);
        }
    }

    /// Notes that a lane has room for a request of an open loop.
    #[inline]
    fn rest(&mut self, at: usize) {
        let lane = &mut self.lanes[at];
        if !lane.is_idle && lane.slots.free() > 0 {
            lane.is_idle = true;
            self.idle.push_back(at);
        }
    }

    /// Sends the next requests of a closed loop on a lane, whose room was free from `now` on.
    #[inline]
    fn refill(&mut self, at: usize, now: u64) {
        let free = self.lanes[at].slots.free();
        if free == 0 || !self.ledger.sending || self.ledger.rest(now).is_some() {
            return;
        }
        if now >= self.ledger.window.end {
            return self.ledger.end_sending(now);
        }
        let allowed = self.ledger.claim(free, now);
        if allowed == 0 {
            return self.ledger.end_sending(now);
        }
        let sent = now_ns();
        for _ in 0..allowed {
            self.add(at, now, sent);
        }
        self.push(at, sent);
    }

    /// Sends what the schedule says is due, as far as there is room. Returns whether anything left.
    fn send_due(&mut self, start: u64) -> bool {
        let mut now = start;
        let mut progressed = false;
        // Each lane once: where no connection can be opened, timeouts and flags must still be looked at.
        for _ in 0..self.lanes.len() * self.workload.depth {
            let due = self.ledger.due();
            let Some((due, _)) = due.filter(|_| now < self.ledger.window.end) else {
                self.ledger.end_sending(now);
                break;
            };
            if due > now {
                self.starved = false;
                break;
            }
            let Some(at) = self.idle.pop_front() else {
                self.starved = true;
                break;
            };
            self.lanes[at].is_idle = false;
            now = now_ns();
            self.ledger.note_lateness(due, now, 1, self.starved);
            self.ledger.advance();
            self.add(at, due, now);
            self.rest(at);
            let lane = &mut self.lanes[at];
            if !lane.is_dirty {
                lane.is_dirty = true;
                self.dirty.push(at);
            }
            progressed = true;
        }
        while let Some(at) = self.dirty.pop() {
            self.lanes[at].is_dirty = false;
            self.push(at, now);
        }
        progressed
    }

    /// Begins a request on a lane with room.
    #[inline]
    fn add(&mut self, at: usize, intended: u64, sent: u64) {
        let lane = &mut self.lanes[at];
        let Some(ticket) = lane.slots.take() else {
            return;
        };
        let before = lane.out.len();
        let name = lane.talk.write(ticket, &mut lane.out);
        // Room for all that may wait at once, from the first request on, so that a load in steady state allocates nothing.
        let all = (lane.out.len() - before) * self.workload.depth;
        if lane.out.capacity() < all {
            lane.out.reserve(all.saturating_sub(lane.out.len()));
        }
        let pending = Pending {
            intended,
            sent,
            name,
        };
        lane.slots.put(ticket, pending);
        if self.ledger.window.has(sent) {
            self.counts.sent += (lane.out.len() - before) as u64;
        }
        self.ledger.sent([intended].into_iter(), sent);
    }

    /// Hands the requests of a lane to the kernel, or opens its connection.
    #[inline]
    fn push(&mut self, at: usize, now: u64) {
        let lane = &mut self.lanes[at];
        let pushed = if lane.link.is_open() {
            lane.flush()
        } else if lane.slots.under_way() > 0 {
            match self.open(at, now) {
                Err(error) => return self.not_connected(at, &error, now),
                opened => opened,
            }
        } else {
            Ok(())
        };
        if let Err(error) = pushed {
            self.broken(at, &error, now);
        }
    }

    /// Serves a connection that is ready; `has_ended`: the other side sends nothing more.
    #[inline]
    fn serve(&mut self, at: usize, has_ended: bool) {
        if self.lanes[at].link.opening.is_some() {
            let now = now_ns();
            match self.establish(at, now) {
                Ok(Some(established)) if self.ledger.window.has(now) => {
                    self.counts.time(&established);
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => return self.not_connected(at, &error, now),
            }
        }
        // What the server said before it ended the connection can still be read.
        let is_broken = self.lanes[at].flush().is_err();
        for _ in 0..READS {
            match self.lanes[at].link.read(&mut self.wire, &mut self.buffer) {
                Ok(came) if came.length == 0 && came.ended => return self.ended(at, now_ns()),
                Ok(came) => {
                    let has_ended = has_ended || came.ended;
                    // TLS has messages that bring nothing.
                    let is_same = came.length == 0 || self.absorb(at, came.length);
                    if !is_same || !came.more && !has_ended && !is_broken {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && !is_broken => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.broken(at, &error, now_ns()),
            }
        }
        // Without it the rest would wait for the next arrival.
        if let Some(socket) = self.lanes[at].link.socket() {
            let _ = self.epoll.rearm(socket, at, Interest::Stream);
        }
    }

    /// Takes replies from the buffer, and sends the requests that take their place. False if the connection is no longer the one they came
    /// from.
    #[inline]
    fn absorb(&mut self, at: usize, length: usize) -> bool {
        let now = now_ns();
        let mut round = self.ledger.round(now);
        let lane = &mut self.lanes[at];
        lane.heard = now;
        if self.ledger.window.has(now) {
            self.counts.received += length as u64;
        }
        let waiting = lane.out.len();
        // Put back below: nothing is copied where replies come whole.
        let mut kept = std::mem::take(&mut lane.kept);
        let read = if kept.is_empty() {
            let buffer = std::mem::take(&mut self.buffer);
            let read = self.read(at, &buffer[..length], &mut round);
            if let Ok(used) = read {
                kept.extend_from_slice(&buffer[used..length]);
            }
            self.buffer = buffer;
            read.map(|_| ())
        } else {
            kept.extend_from_slice(&self.buffer[..length]);
            self.read(at, &kept, &mut round).map(|used| {
                if used == kept.len() {
                    kept.clear();
                } else {
                    kept.drain(..used);
                }
            })
        };
        self.ledger.end_round(round);
        let lane = &mut self.lanes[at];
        let read = match read {
            Ok(()) if kept.len() > MOST_KEPT => Err("a reply of more than 64 MiB"),
            Ok(())
                if !kept.is_empty() && lane.slots.under_way() == 0 && !lane.talk.is_told_more() =>
            {
                Err(SURPLUS)
            }
            read => read,
        };
        lane.kept = kept;
        if let Err(why) = read {
            self.malformed(at, why, now);
            return false;
        }
        let answers_itself = self.lanes[at].out.len() > waiting;
        if self.ledger.schedule.is_some() {
            self.rest(at);
        } else {
            self.refill(at, now);
        }
        // An answer to a heartbeat does not wait for the next request.
        let lane = &self.lanes[at];
        if answers_itself && lane.link.is_open() && lane.written < lane.out.len() {
            self.push(at, now);
        }
        self.lanes[at].link.is_open()
    }

    /// Takes all replies that are whole; how many bytes they are.
    #[inline]
    fn read(&mut self, at: usize, bytes: &[u8], round: &mut Round) -> Result<usize, &'static str> {
        let mut used = 0;
        while used < bytes.len() {
            let lane = &mut self.lanes[at];
            let mut around = Around {
                oldest: lane.slots.oldest().map(|pending| pending.name),
                classes: &mut self.counts.classes,
                events: &mut self.counts.events,
                out: &mut lane.out,
            };
            let cut = lane.talk.read(&bytes[used..], &mut around)?;
            used += cut.used;
            match cut {
                Cut {
                    used: 0,
                    reply: None,
                } => break,
                Cut { reply: None, .. } => {}
                Cut {
                    reply: Some(reply), ..
                } => {
                    // The request was not asked twice: which of the bytes answer it nobody knows.
                    let is_last = lane.slots.under_way() == 1;
                    if is_last && used < bytes.len() && !lane.talk.is_told_more() {
                        return Err(SURPLUS);
                    }
                    self.judge(at, reply, round)?;
                }
            }
        }
        Ok(used)
    }

    /// Counts a reply.
    #[inline]
    fn judge(&mut self, at: usize, reply: Reply, round: &mut Round) -> Result<(), &'static str> {
        let lane = &mut self.lanes[at];
        lane.served = true;
        let ended = match reply.of {
            None => lane.slots.end_oldest(),
            Some(ticket) => lane.slots.answer(ticket),
        };
        let Some(pending) = ended else {
            let failure = match reply.of {
                None => return Err(SURPLUS),
                Some(ticket) => match lane.slots.past(ticket) {
                    Past::Answered => Failure::Duplicate,
                    Past::Ended => Failure::Late,
                    Past::Unknown => Failure::Unexpected,
                },
            };
            let ours = self.ledger.window.has(round.now);
            self.ledger.count(failure as usize, u64::from(ours));
            return Ok(());
        };
        let ours = self.ledger.window.has(pending.intended);
        let is_late = round.now - pending.sent > self.ledger.timeout;
        match reply.verdict {
            Verdict::Answer(kind) if !is_late => {
                self.ledger.answered(round, pending.intended, pending.sent);
                if ours {
                    if let Some(kind) = kind {
                        self.counts.answers[kind] += 1;
                    }
                    let took = round.now - pending.intended.min(round.now);
                    self.counts.note(pending.name, Some(took));
                }
                return Ok(());
            }
            Verdict::Error(class) if !is_late => {
                if ours {
                    self.counts.classes.count(class);
                }
            }
            _ => self
                .ledger
                .count(Failure::Timeout as usize, u64::from(ours)),
        }
        if ours {
            self.counts.note(pending.name, None);
        }
        self.ledger.rejected(pending.intended, round.now);
        Ok(())
    }

    /// The other side has ended the connection.
    #[cold]
    fn ended(&mut self, at: usize, now: u64) {
        self.fail(at, Failure::Closed, 0, now);
    }

    /// A connection could not be established.
    #[cold]
    fn not_connected(&mut self, at: usize, error: &io::Error, now: u64) {
        let requests = self.lanes[at].slots.under_way() as u64;
        match error.kind() {
            ErrorKind::ConnectionRefused => self.ledger.refused(requests, now),
            // No port or no memory for it: the requests never left.
            ErrorKind::AddrNotAvailable | ErrorKind::OutOfMemory => {
                self.ledger.not_taken(requests, now);
            }
            _ => {}
        }
        let failure = if Failed::behind(error).is_some() {
            Failure::Tls
        } else if Unwelcome::behind(error).is_some() {
            Failure::Greeting
        } else {
            Failure::Connect
        };
        self.fail(at, failure, 0, now);
    }

    /// A connection broke.
    #[cold]
    fn broken(&mut self, at: usize, error: &io::Error, now: u64) {
        let failure = match (&self.workload.route.tls, Failed::behind(error)) {
            _ if error.kind() == ErrorKind::UnexpectedEof => Failure::Closed,
            (Some(tls), Some(failed)) => {
                tls.note(failed);
                Failure::Tls
            }
            _ => Failure::Reset,
        };
        self.fail(at, failure, 0, now);
    }

    /// The server broke the protocol.
    #[cold]
    fn malformed(&mut self, at: usize, why: &'static str, now: u64) {
        if self.ledger.window.has(now) {
            *self.counts.broken.entry(why).or_default() += 1;
        }
        self.fail(at, Failure::Malformed, 0, now);
    }

    /// A connection has failed, and the requests under way on it: those that are to blame, and the others with them. In a closed loop, one
    /// that has served a reply is replaced at once; otherwise the next tick sends anew, so that a server that refuses is not asked without
    /// a pause.
    #[cold]
    fn fail(&mut self, at: usize, failure: Failure, sent_by: u64, now: u64) {
        let lane = &mut self.lanes[at];
        let has_begun = !lane.kept.is_empty();
        let spoke = has_begun || failure == Failure::Malformed;
        let half = match failure {
            _ if !has_begun => None,
            Failure::Timeout => Some(HALF_SILENT),
            Failure::Closed | Failure::Reset => Some(HALF_ENDED),
            _ => None,
        };
        if let Some(why) = half.filter(|_| self.ledger.window.has(now)) {
            *self.counts.broken.entry(why).or_default() += 1;
        }
        lane.close();
        let served = std::mem::take(&mut lane.served);
        let mut is_first = true;
        while let Some(pending) = self.lanes[at].slots.end_oldest() {
            let blamed = match failure {
                Failure::Timeout => pending.sent <= sent_by,
                Failure::Malformed => is_first,
                _ => true,
            };
            let failure = if blamed { failure } else { Failure::Abandoned };
            self.lose(&pending, failure, is_first && spoke, now);
            is_first = false;
        }
        if self.ledger.schedule.is_some() {
            self.rest(at);
            // Before it is needed; if it cannot be opened, the next request says so.
            if served && self.ledger.sending {
                let _ = self.open(at, now);
            }
        } else if served {
            self.refill(at, now);
        }
    }
}

impl<P: Protocol> Driver for Generator<'_, P> {
    type Own = Counts;

    fn run(&mut self, start: u64, window: Window) {
        self.drive(start, window);
    }

    fn into_counts(self) -> (Tally, Counts) {
        (self.ledger.into_tally(), self.counts)
    }
}
