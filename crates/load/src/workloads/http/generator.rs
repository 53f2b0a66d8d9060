//! One generator thread: it sends requests, waits for all of its connections together, and reads responses. What is another matter by
//! HTTP/2 is in `multiplexed`.
//!
//! The clock is read once after each piece of a response and once before each request. Nothing here allocates per
//! request, unless a response's head comes in pieces.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;

use memchr::memmem::Finder;

use super::connection::{Connection, Request};
use super::http2;
use super::lane::Lane;
use super::requests::Dealt;
use super::response::Progress;
use super::user::{Stage, User};
use super::{Counts, Workload};
use crate::Error;
use crate::clock::{SECOND, now_ns};
use crate::engine::{Driver, Epoll, Interest, Ledger, Tally, Window};
use crate::stream::link::Established;
use crate::stream::tls::Failed;

/// Gaps shorter than this are polled through: a sleep and the wake-up from it cost about as much CPU.
const SPIN_NS: u64 = 10_000;
/// Bytes read at once.
const BUFFER: usize = 64 * 1024;
/// Bytes of TLS read at once: with an incomplete record of 16 KiB from before, they are no more than [`BUFFER`] when decrypted.
const WIRE: usize = 32 * 1024;
/// A connection is read at most this many times in a row, so a long body on one does not starve the others.
pub(super) const READS: usize = 16;
/// Connections that a thread opens at the same time before the load begins: fewer than any usual backlog.
const AT_ONCE: usize = 64;
/// How long such a connection may take at least: a lost SYN is repeated after one and three seconds.
const CONNECT_NS: u64 = 5 * SECOND;
/// How often the flag to stop is looked at meanwhile.
const LOOK_NS: u64 = 20_000_000;
/// How soon a Unix socket with a full queue is tried again.
const AGAIN_NS: u64 = 1_000_000;

/// What is counted beside sent, received and lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Failure {
    /// No complete response in time.
    Timeout,
    /// The connection could not be established.
    Connect,
    /// TLS failed, in the handshake or later, or a response that ends with the connection may have been cut.
    Tls,
    /// The other side closed it before the response was complete.
    Closed,
    /// It was reset.
    Reset,
    /// The other side gave up the stream of the request (HTTP/2).
    StreamReset,
    /// What came is no response, or more than one.
    Malformed,
    /// The status is none that was expected.
    Redirect,
    Client,
    Server,
    OtherStatus,
    /// The body does not contain what was expected.
    Body,
}

/// Names of [`Failure`] in reports, in their order.
pub(super) const ERRORS: [&str; 12] = [
    "timeout",
    "connect",
    "tls",
    "closed",
    "reset",
    "stream_reset",
    "malformed",
    "status_3xx",
    "status_4xx",
    "status_5xx",
    "status_other",
    "body",
];

pub(crate) struct Generator<'a> {
    pub(super) workload: &'a Workload,
    pub(super) ledger: Ledger<'a>,
    pub(super) connections: Vec<Connection>,
    /// Places for requests: those of a connection follow one another. By HTTP/1.1 each connection has one, of the same number.
    pub(super) lanes: Vec<Lane>,
    /// How many a connection has.
    pub(super) streams: usize,
    is_http2: bool,
    dealt: Arc<Dealt>,
    /// Room for a body.
    body: Vec<u8>,
    /// Lanes without a request, in an open loop.
    idle: VecDeque<usize>,
    /// When lanes that pause go on, and which.
    pauses: BinaryHeap<Reverse<(u64, usize, usize)>>,
    pub(super) epoll: Epoll,
    /// Users who have not ended.
    users_left: usize,
    /// Find the texts that matter in bodies, by the place of the request in the list.
    pub(super) finders: Vec<Vec<Finder<'a>>>,
    pub(super) buffer: Vec<u8>,
    /// What TLS brings before it is decrypted; empty without TLS.
    pub(super) wire: Vec<u8>,
    pub(super) counts: Counts,
    /// Connections with frames to be sent.
    pub(super) waiting: Vec<usize>,
    /// Room for lanes whose connection has ended.
    pub(super) severed: Vec<usize>,
    /// A due request found no free connection, and the backlog has not been worked off since.
    starved: bool,
}

impl<'a> Generator<'a> {
    /// Lays out all memory, and opens the connections unless each request opens its own.
    pub(super) fn new(
        workload: &'a Workload,
        ledger: Ledger<'a>,
        dealt: Arc<Dealt>,
    ) -> Result<Self, Error> {
        let thread = ledger.thread();
        let number = workload.share(thread);
        let messages = workload.requests.messages();
        let streams = workload.http2.unwrap_or(1);
        let lanes = number * streams;
        let lane = |at: usize| {
            let (connection, stream) = (at / streams, at % streams);
            // One after the other over all threads, so that each has its part of every group.
            let user = (thread + connection * workload.threads) * streams + stream;
            let user = User::new(&workload.requests, &dealt, workload.seed, user);
            Lane::new(connection, user, &workload.requests)
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
            connections: (0..number)
                .map(|_| Connection::new(workload.http2, workload.route.tls.as_ref()))
                .collect(),
            lanes: (0..lanes).map(lane).collect(),
            streams,
            is_http2: workload.http2.is_some(),
            dealt,
            body: Vec::new(),
            idle: VecDeque::with_capacity(lanes),
            pauses: BinaryHeap::with_capacity(lanes),
            epoll,
            users_left: lanes,
            finders: (messages.iter())
                .map(|message| (message.texts.iter().map(|(text, _)| Finder::new(text))).collect())
                .collect(),
            buffer: vec![0; BUFFER],
            wire: vec![
                0;
                if workload.route.tls.is_some() {
                    WIRE
                } else {
                    0
                }
            ],
            counts: Counts::new(workload.requests.names()),
            waiting: Vec::with_capacity(number),
            severed: Vec::with_capacity(streams),
            starved: false,
        };
        // Users of a plan connect when they begin.
        if workload.keepalive && !workload.is_plan {
            this.connect(number)?;
        } else if thread == 0 && workload.is_tried() {
            this.connect(1)?;
            this.connections[0].close();
        }
        Ok(this)
    }

    /// Establishes so many connections, some at a time.
    fn connect(&mut self, number: usize) -> Result<(), Error> {
        let workload = self.workload;
        let refuse = |error: io::Error| workload.unconnected(error);
        let patience = CONNECT_NS.max(self.ledger.timeout);
        let at_once = (AT_ONCE / self.workload.threads).max(1);
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
                    Ok(()) => {
                        (next, waiting, full) = (next + 1, waiting + 1, None);
                    }
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
                if let Some(established) = self.established(at, now_ns()).map_err(refuse)? {
                    self.has_streams(at).map_err(refuse)?;
                    self.counts.time(&established);
                    waiting -= 1;
                }
            }
            if more || ready > 0 {
                continue;
            }
            let opening = self
                .connections
                .iter()
                .filter(|one| one.link.opening.is_some());
            let oldest = opening.min_by_key(|one| one.link.opening);
            if let Some(oldest) = oldest
                && oldest
                    .link
                    .opening
                    .is_some_and(|began| now_ns() - began > patience)
            {
                return Err(refuse(oldest.overdue()));
            }
        }
        Ok(())
    }

    /// The server of a connection allows as many streams as are asked for.
    fn has_streams(&self, at: usize) -> io::Result<()> {
        match &self.connections[at].mux {
            Some(mux) if (mux.allowed as usize) < self.streams => {
                Err(http2::Failed::Streams(mux.allowed).into())
            }
            _ => Ok(()),
        }
    }

    /// Notes whether a connection that is being opened is established at `now`, and how that went.
    pub(super) fn established(&mut self, at: usize, now: u64) -> io::Result<Option<Established>> {
        let connection = &mut self.connections[at];
        let established = connection.establish(now, &mut self.wire, &mut self.buffer)?;
        if let Some(established) = &established {
            self.counts.opened(established);
        }
        Ok(established)
    }

    /// Begins to establish a connection.
    pub(super) fn open(&mut self, at: usize, now: u64) -> io::Result<()> {
        let connection = &mut self.connections[at];
        let socket = connection.open(&self.workload.route.address, now)?;
        let watched = self.epoll.watch(socket, at, Interest::Stream);
        if watched.is_err() {
            connection.close();
        }
        watched
    }

    fn drive(&mut self, start: u64, window: Window) {
        self.ledger.begin(start, window, 1);
        for at in 0..self.lanes.len() {
            let begins = self.lanes[at].user.begins(&self.workload.requests, start);
            self.pause(at, begins);
        }
        loop {
            let now = now_ns();
            let resumes = self.resume(now);
            if now >= self.ledger.next_tick() && self.tick(now) {
                break;
            }
            let mut progressed = false;
            if self.ledger.schedule.is_some() && self.ledger.sending {
                progressed = self.send_due(now);
            }
            self.flush_all();
            if !self.ledger.sending && self.ledger.open == 0 {
                break;
            }
            // While another load has its turn, responses still come; the tick at its end sends anew.
            let next = match (self.ledger.rest(now), self.ledger.due()) {
                (Some(wake), _) => wake,
                (None, Some((due, _))) if self.ledger.sending && !self.starved => due,
                _ => u64::MAX,
            };
            let next = next.min(resumes);
            let wait = next.min(self.ledger.next_tick()).saturating_sub(now);
            let wait = if wait < SPIN_NS { 0 } else { wait };
            let ready = self.serve(wait);
            if wait == 0 && !progressed && ready == 0 && self.ledger.window.has(now) {
                self.ledger.tally.spin_ns += now_ns() - now;
            }
        }
        self.ledger.finish(now_ns(), 0);
    }

    /// Waits at most `ns` for connections and serves those that are ready; how many.
    #[inline]
    fn serve(&mut self, ns: u64) -> usize {
        let ready = self.epoll.wait(ns);
        for n in 0..ready {
            let (at, has_ended) = (self.epoll.ready(n), self.epoll.has_ended(n));
            if self.is_http2 {
                self.serve_streams(at, has_ended);
                self.flush_all();
            } else {
                self.serve_one(at, has_ended);
            }
        }
        ready
    }

    /// What is not needed per request. True if the thread must leave.
    fn tick(&mut self, now: u64) -> bool {
        let due = self.ledger.tick(now);
        for at in 0..self.lanes.len() {
            let request = self.lanes[at].request;
            if request.is_none_or(|request| request.sent > due.sent_by) {
                continue;
            }
            if self.is_http2 {
                self.expire(at, now);
            } else {
                self.fail(at, Failure::Timeout, now);
            }
        }
        if !due.over && self.ledger.schedule.is_none() && self.ledger.sending {
            // Lanes that a failure has left without a request, or the turn of another load.
            for at in 0..self.lanes.len() {
                if self.lanes[at].request.is_none() {
                    self.go_on(at, now);
                }
            }
        }
        due.over
    }

    /// Sends the next request of a closed loop on a lane that was free from `now` on.
    #[inline]
    fn refill(&mut self, at: usize, now: u64) {
        if !self.ledger.sending || self.ledger.rest(now).is_some() {
            return;
        }
        if now >= self.ledger.window.end || self.ledger.claim(1, now) == 0 {
            self.ledger.end_sending(now);
            return;
        }
        self.prepare(at, now);
        self.send(at, now, now_ns());
    }

    /// Makes the next request of a lane.
    #[inline]
    fn prepare(&mut self, at: usize, now: u64) {
        let user = &mut self.lanes[at].user;
        user.make(&self.workload.requests, &self.dealt, &mut self.body, now);
    }

    /// Hands what is left of its request to the kernel.
    #[inline]
    fn write(&mut self, at: usize) -> io::Result<()> {
        let Lane { user, request, .. } = &mut self.lanes[at];
        match request {
            Some(request) => {
                let bytes = user.bytes(&self.workload.requests);
                self.connections[at].write(request, bytes)
            }
            None => Ok(()),
        }
    }

    /// Sends what the schedule says is due, as far as connections are free. Returns whether anything left.
    fn send_due(&mut self, start: u64) -> bool {
        let mut now = start;
        let mut progressed = false;
        // Each lane once: where no connection can be opened, timeouts and flags must still be looked at.
        for _ in 0..self.lanes.len() {
            let due = self.ledger.due();
            let Some((due, _)) = due.filter(|_| now < self.ledger.window.end) else {
                self.ledger.end_sending(now);
                return progressed;
            };
            if due > now {
                self.starved = false;
                return progressed;
            }
            let Some(at) = self.idle.pop_front() else {
                self.starved = true;
                return progressed;
            };
            self.prepare(at, now);
            now = now_ns();
            self.ledger.note_lateness(due, now, 1, self.starved);
            self.ledger.advance();
            self.send(at, due, now);
            progressed = true;
        }
        progressed
    }

    /// Begins a request on a lane without one.
    #[inline]
    fn send(&mut self, at: usize, intended: u64, sent: u64) {
        self.ledger.sent([intended].into_iter(), sent);
        let lane = &mut self.lanes[at];
        lane.request = Some(Request {
            intended,
            sent,
            first_byte: 0,
            written: 0,
        });
        lane.expect_response(&self.workload.requests);
        if self.is_http2 {
            return self.begin_stream(at, sent);
        }
        let connection = &self.connections[at];
        if connection.link.opening.is_some() {
            return;
        }
        if !connection.link.is_open() {
            if let Err(error) = self.open(at, sent) {
                self.not_connected(at, &error, sent);
            }
            return;
        }
        if let Err(error) = self.write(at) {
            self.broken(at, &error, sent);
        }
    }

    /// Serves a connection that is ready; `has_ended`: the other side sends nothing more.
    #[inline]
    fn serve_one(&mut self, at: usize, has_ended: bool) {
        if self.connections[at].link.opening.is_some() {
            let now = now_ns();
            match self.established(at, now) {
                Ok(Some(established)) if self.ledger.window.has(now) => {
                    self.counts.time(&established);
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => return self.not_connected(at, &error, now),
            }
        }
        // A server that refuses a long body answers before it ends the connection: that answer can still be read.
        let is_broken = self.write(at).is_err();
        for _ in 0..READS {
            match self.connections[at].read(&mut self.wire, &mut self.buffer) {
                Ok(came) if came.length == 0 && came.ended => return self.ended(at, now_ns()),
                Ok(came) => {
                    let has_ended = has_ended || came.ended;
                    // TLS has messages that bring nothing.
                    let served = came.length == 0 || self.absorb(at, came.length, has_ended);
                    if !served || !came.more && !has_ended && !is_broken {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && !is_broken => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) if self.lanes[at].request.is_none() => {
                    return self.lost_idle(at, now_ns());
                }
                Err(error) => return self.broken(at, &error, now_ns()),
            }
        }
        // Without it the rest would wait for the next arrival.
        if let Some(socket) = self.connections[at].link.socket() {
            let _ = self.epoll.rearm(socket, at, Interest::Stream);
        }
    }

    /// Takes bytes of a response from the buffer. False if the connection is no longer the one they came from.
    #[inline]
    fn absorb(&mut self, at: usize, length: usize, has_ended: bool) -> bool {
        let now = now_ns();
        let Self {
            lanes,
            buffer,
            finders,
            counts,
            ledger,
            ..
        } = self;
        let lane = &mut lanes[at];
        if ledger.window.has(now) {
            counts.bytes += length as u64;
        }
        let Some(request) = &mut lane.request else {
            // Data on an idle connection, such as a 408 before the server closes it.
            self.lost_idle(at, now);
            return false;
        };
        if request.first_byte == 0 {
            request.first_byte = now;
        }
        let searches = &mut lane.searches;
        let finders = &finders[lane.user.at()];
        let progress = lane.response.feed(&buffer[..length], &mut |piece| {
            for (search, finder) in searches.iter_mut().zip(finders) {
                search.take(finder, piece);
            }
        });
        match progress {
            Ok(Progress::More) => true,
            Ok(Progress::Done(used)) if used == length => self.complete(at, has_ended, now),
            // More than was asked for: what follows would be taken for the next response.
            Ok(Progress::Done(_)) | Err(_) => {
                self.fail(at, Failure::Malformed, now);
                false
            }
        }
    }

    /// The connection has ended.
    #[cold]
    fn ended(&mut self, at: usize, now: u64) {
        let lane = &mut self.lanes[at];
        if lane.request.is_some() && lane.response.ends() {
            self.complete(at, true, now);
        } else if lane.request.is_some() {
            self.fail(at, Failure::Closed, now);
        } else {
            self.lost_idle(at, now);
        }
    }

    /// A response is complete; `has_ended`: nothing more will come on its connection. False if that was closed.
    #[inline]
    fn complete(&mut self, at: usize, has_ended: bool, now: u64) -> bool {
        let lane = &self.lanes[at];
        let Some(request) = &lane.request else {
            return true;
        };
        let connection = &mut self.connections[at];
        connection.served = true;
        // What is left of a request would be taken for the next one.
        let length = lane.user.bytes(&self.workload.requests).len();
        let is_sent = connection.has_sent(request.written, length);
        let keeps = self.workload.keepalive
            && !lane.user.message(&self.workload.requests).closes
            && !has_ended
            && is_sent
            && lane.response.keeps_connection();
        self.finish(at, now);
        if !keeps {
            self.connections[at].close();
        }
        self.free(at, now);
        keeps
    }

    /// Counts the response of a lane, which is complete.
    #[inline]
    pub(super) fn finish(&mut self, at: usize, now: u64) {
        let lane = &mut self.lanes[at];
        let Some(request) = lane.request.take() else {
            return;
        };
        lane.user.keep(&self.workload.requests, &lane.response, now);
        let status = lane.response.status();
        let message = lane.user.message(&self.workload.requests);
        let (least, most) = message.status;
        let failure = if now - request.sent > self.ledger.timeout {
            Some(Failure::Timeout)
        } else if !(least..=most).contains(&status) {
            Some(match status {
                300..400 => Failure::Redirect,
                400..500 => Failure::Client,
                500..600 => Failure::Server,
                _ => Failure::OtherStatus,
            })
        } else {
            let mut searches = message.texts.iter().zip(&lane.searches);
            let differs = searches.any(|((_, is_wanted), search)| search.found != *is_wanted);
            differs.then_some(Failure::Body)
        };
        let ours = self.ledger.window.has(request.intended);
        if ours {
            self.counts.statuses[usize::from(status)] += 1;
            self.counts
                .first_byte
                .record(request.first_byte - request.sent);
            let took = now - request.intended.min(now);
            self.counts
                .note(message.name, failure.is_none().then_some(took));
        }
        match failure {
            None => {
                let mut round = self.ledger.round(now);
                self.ledger
                    .answered(&mut round, request.intended, request.sent);
                self.ledger.end_round(round);
            }
            Some(failure) => {
                self.ledger.count(failure as usize, u64::from(ours));
                self.ledger.rejected(request.intended, now);
            }
        }
    }

    /// A connection could not be established.
    #[cold]
    fn not_connected(&mut self, at: usize, error: &io::Error, now: u64) {
        if self.lanes[at].request.is_some() {
            self.note_unsent(error, now);
        }
        let failure = match Failed::behind(error) {
            Some(_) => Failure::Tls,
            None => Failure::Connect,
        };
        self.fail(at, failure, now);
    }

    /// Counts a request whose connection could not be established.
    pub(super) fn note_unsent(&mut self, error: &io::Error, now: u64) {
        match error.kind() {
            ErrorKind::ConnectionRefused => self.ledger.refused(1, now),
            // No port or no memory for it: the request never left.
            ErrorKind::AddrNotAvailable | ErrorKind::OutOfMemory => self.ledger.not_taken(1, now),
            _ => {}
        }
    }

    /// A connection broke while it carried a request.
    #[cold]
    fn broken(&mut self, at: usize, error: &io::Error, now: u64) {
        let failure = match error.kind() {
            // TLS did not say that it was the end: of a response that has no other, the rest may be missing.
            ErrorKind::UnexpectedEof if self.lanes[at].response.ends() => Failure::Tls,
            _ => self.failure_of(error),
        };
        self.fail(at, failure, now);
    }

    /// What it is for the requests of a connection that it broke in this way.
    pub(super) fn failure_of(&self, error: &io::Error) -> Failure {
        match (&self.workload.route.tls, Failed::behind(error)) {
            _ if error.kind() == ErrorKind::UnexpectedEof => Failure::Closed,
            (Some(tls), Some(failed)) => {
                tls.note(failed);
                Failure::Tls
            }
            _ => Failure::Reset,
        }
    }

    /// A connection has failed, and the request under way on it. In a closed loop, one that has served a response is replaced at once;
    /// otherwise the next tick sends anew, so that a server that refuses is not asked without a pause.
    #[cold]
    fn fail(&mut self, at: usize, failure: Failure, now: u64) {
        let connection = &mut self.connections[at];
        connection.close();
        let served = std::mem::take(&mut connection.served);
        // One without a request is known as idle: its next request opens it.
        if self.lose(at, failure, now) && (self.ledger.schedule.is_some() || served) {
            self.go_on(at, now);
        }
    }

    /// Counts the request of a lane as lost; false if it has none.
    pub(super) fn lose(&mut self, at: usize, failure: Failure, now: u64) -> bool {
        let Some(request) = self.lanes[at].request.take() else {
            return false;
        };
        let ours = self.ledger.window.has(request.intended);
        self.ledger.count(failure as usize, u64::from(ours));
        if ours {
            let message = self.lanes[at].user.message(&self.workload.requests);
            self.counts.note(message.name, None);
        }
        if request.first_byte == 0 {
            self.ledger.lost(request.intended, now);
        } else {
            self.ledger.rejected(request.intended, now);
        }
        true
    }

    /// A connection is free for the next request.
    #[inline]
    fn free(&mut self, at: usize, now: u64) {
        self.go_on(at, now);
        if self.ledger.schedule.is_some() {
            self.reopen(at, now);
        }
    }

    /// A user goes on: its next request follows, after its pause where there is one.
    #[inline]
    pub(super) fn go_on(&mut self, at: usize, now: u64) {
        let user = &mut self.lanes[at].user;
        if user.stage == Stage::Asks {
            match user.advance(&self.workload.requests, &self.dealt, now) {
                Some(due) if due > now => self.pause(at, due),
                Some(_) => {}
                None => return self.end(at, now),
            }
        }
        if self.lanes[at].user.stage != Stage::Ready {
            return;
        }
        if self.ledger.schedule.is_some() {
            self.idle.push_back(at);
        } else {
            self.refill(at, now);
        }
    }

    /// A user goes on at this time. Of those that go on at the same time each connection has one, before any has its second.
    fn pause(&mut self, at: usize, until: u64) {
        self.pauses.push(Reverse((until, at % self.streams, at)));
    }

    /// A user has come to the end of its plan, which HTTP/1.1 alone carries: its connection is its own.
    #[cold]
    fn end(&mut self, at: usize, now: u64) {
        self.connections[at].close();
        self.users_left -= 1;
        if self.users_left == 0 {
            self.ledger.end_sending(now);
        }
    }

    /// Lets users go on whose pauses are over at `now`, or who begin; when the next one does.
    #[inline]
    fn resume(&mut self, now: u64) -> u64 {
        while let Some(Reverse((until, _, at))) = self.pauses.peek().copied() {
            if !self.ledger.sending {
                break;
            }
            if until > now {
                return until;
            }
            self.pauses.pop();
            self.lanes[at].user.wake(&self.dealt);
            // It was to go on then: what it waits for this thread is part of its latency.
            self.go_on(at, until);
        }
        u64::MAX
    }

    /// The other side has closed a connection without a request. One that closes before it has served anything would close the
    /// next as soon, without a pause: that is opened when it is needed.
    #[cold]
    fn lost_idle(&mut self, at: usize, now: u64) {
        let served = self.connections[at].served;
        self.connections[at].close();
        if self.ledger.schedule.is_none() {
            self.go_on(at, now);
        } else if served {
            self.reopen(at, now);
        }
    }

    /// Opens an idle connection of an open loop before it is needed; if it cannot be, the next request says so.
    #[inline]
    pub(super) fn reopen(&mut self, at: usize, now: u64) {
        if self.workload.keepalive && self.ledger.sending && !self.connections[at].link.is_open() {
            let _ = self.open(at, now);
        }
    }
}

impl Driver for Generator<'_> {
    type Own = Counts;

    fn run(&mut self, start: u64, window: Window) {
        self.drive(start, window);
    }

    fn into_counts(self) -> (Tally, Counts) {
        (self.ledger.into_tally(), self.counts)
    }
}
