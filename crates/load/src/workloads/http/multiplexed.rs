//! The generator by HTTP/2: many requests at the same time on a connection, each on a stream of its own.
//!
//! A request whose connection has no free stream is parked there, and its wait is part of its latency. What a connection has to send is
//! collected and handed to the kernel once all that was read at a time has been looked at. When the server ends a connection (GOAWAY), the
//! streams that it serves come to their end, and then the connection is opened anew; requests that it has not looked at, as it says, are
//! sent again. A response that comes before its request has left completes it, and the rest of the request is given up.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use super::connection::NEVER_BEGAN;
use super::generator::{Failure, Generator, READS};
use super::http2::frames::Frame;
use super::http2::mux::{Mux, Then};
use super::http2::{Broken, code, code_name};
use crate::clock::now_ns;
use crate::engine::Interest;
use crate::stream::tls::Failed;

/// Counts one more under a name.
#[cold]
fn note(counts: &mut BTreeMap<&'static str, u64>, name: &'static str) {
    *counts.entry(name).or_default() += 1;
}

/// What became of a connection while its frames were read.
enum Read {
    /// It goes on.
    On,
    /// It is not the one any more that the frames came from.
    Gone,
}

impl Generator<'_> {
    /// Begins the request of a lane, or parks it until its connection has a stream for it.
    #[inline]
    pub(super) fn begin_stream(&mut self, at: usize, now: u64) {
        let lane = &mut self.lanes[at];
        let number = lane.connection;
        let connection = &mut self.connections[number];
        let is_open = connection.link.is_open();
        let is_ready = connection.link.is_ready();
        let Some(mux) = &mut connection.mux else {
            return;
        };
        if is_ready && mux.has_room() {
            let (head, body) = lane.user.parts(&self.workload.requests);
            lane.stream = mux.start(at, head, !body.is_empty());
            if !body.is_empty() {
                self.send_body(at);
            }
            self.note_waiting(number);
            return;
        }
        mux.parked.push_back(at);
        if !is_open && let Err(error) = self.open(number, now) {
            self.unopened(number, &error, now);
        }
    }

    /// Sends what is left of the body of a lane's request, as far as windows and kernel let it through.
    fn send_body(&mut self, at: usize) {
        let lane = &mut self.lanes[at];
        let (Some(mux), Some(request)) = (
            &mut self.connections[lane.connection].mux,
            &mut lane.request,
        ) else {
            return;
        };
        let (_, body) = lane.user.parts(&self.workload.requests);
        request.written += mux.send(&mut lane.stream, &body[request.written..]);
        if lane.stream.waits {
            mux.blocked.push_back(at);
        }
    }

    /// Notes that a connection has something to send.
    #[inline]
    fn note_waiting(&mut self, number: usize) {
        if let Some(mux) = &mut self.connections[number].mux
            && !mux.noted
        {
            mux.noted = true;
            self.waiting.push(number);
        }
    }

    /// Hands what connections have to send to the kernel.
    #[inline]
    pub(super) fn flush_all(&mut self) {
        while let Some(number) = self.waiting.pop() {
            let connection = &mut self.connections[number];
            if let Some(mux) = &mut connection.mux {
                mux.noted = false;
            }
            if !connection.link.is_ready() {
                continue;
            }
            if let Err(error) = connection.flush() {
                self.sever(number, self.failure_of(&error), now_ns());
                continue;
            }
            // The kernel may have taken all, and then reports nothing: bodies that waited for it go on, which notes more to send.
            let goes_on = connection
                .mux
                .as_ref()
                .is_some_and(|mux| !mux.blocked.is_empty() && mux.may_send());
            if goes_on {
                self.resume_streams(number);
            }
        }
    }

    /// Bodies and requests of a connection that wait go on, as far as they can.
    fn resume_streams(&mut self, number: usize) {
        let Some(mux) = &self.connections[number].mux else {
            return;
        };
        for _ in 0..mux.blocked.len() {
            let Some(at) = self.mux_of(number).and_then(|mux| mux.blocked.pop_front()) else {
                break;
            };
            self.send_body(at);
        }
        self.unpark(number);
        self.note_answers(number);
    }

    fn mux_of(&mut self, number: usize) -> Option<&mut Mux> {
        self.connections[number].mux.as_deref_mut()
    }

    /// Begins requests that are parked, as far as there are streams for them.
    #[inline]
    fn unpark(&mut self, number: usize) {
        loop {
            let connection = &mut self.connections[number];
            let is_ready = connection.link.is_ready();
            let Some(mux) = &mut connection.mux else {
                return;
            };
            if !is_ready || !mux.has_room() {
                return;
            }
            let Some(at) = mux.parked.pop_front() else {
                return;
            };
            self.begin_stream(at, 0);
        }
    }

    /// Serves a connection that is ready; `has_ended`: the other side sends nothing more.
    pub(super) fn serve_streams(&mut self, number: usize, has_ended: bool) {
        if self.connections[number].link.opening.is_some() {
            let now = now_ns();
            match self.established(number, now) {
                Ok(Some(established)) => {
                    if self.ledger.window.has(now) {
                        self.counts.time(&established);
                    }
                    self.unpark(number);
                }
                Ok(None) => return,
                Err(error) => return self.unopened(number, &error, now),
            }
        }
        // What the server said before it ended the connection can still be read.
        let is_broken = self.connections[number].flush().is_err();
        let is_blocked = self
            .mux_of(number)
            .is_some_and(|mux| !mux.blocked.is_empty());
        if is_blocked {
            self.resume_streams(number);
        }
        for _ in 0..READS {
            match self.connections[number].read(&mut self.wire, &mut self.buffer) {
                Ok(came) => {
                    let now = now_ns();
                    if came.length > 0
                        && let Read::Gone = self.read_frames(number, came.length, now)
                    {
                        return;
                    }
                    if came.ended {
                        return self.sever(number, Failure::Closed, now);
                    }
                    if !came.more && !has_ended && !is_broken {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && !is_broken => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.sever(number, Failure::Reset, now_ns());
                }
                Err(error) => return self.sever(number, self.failure_of(&error), now_ns()),
            }
        }
        if let Some(socket) = self.connections[number].link.socket() {
            let _ = self.epoll.rearm(socket, number, Interest::Stream);
        }
    }

    /// Takes the frames in so many bytes of the buffer.
    #[inline]
    fn read_frames(&mut self, number: usize, length: usize, now: u64) -> Read {
        if self.ledger.window.has(now) {
            self.counts.bytes += length as u64;
        }
        let Some(mut reader) = self.connections[number].reader.take() else {
            return Read::Gone;
        };
        let age = self.age(number, now);
        // Taken out, so that frames in it can be read while the load goes on.
        let buffer = std::mem::take(&mut self.buffer);
        let mut at = 0;
        let outcome = loop {
            match reader.next(&buffer[..length], &mut at) {
                Ok(None) => break Ok(Read::On),
                Ok(Some(frame)) => {
                    if let Err(broken) = self.take(number, frame, now) {
                        break Err(broken);
                    }
                }
                Err(broken) => break Err(broken),
            }
            if self.age(number, now) != age || !self.connections[number].link.is_ready() {
                break Ok(Read::Gone);
            }
        };
        self.buffer = buffer;
        self.connections[number].reader = Some(reader);
        match outcome {
            Ok(read) => {
                self.note_answers(number);
                read
            }
            Err(broken) => {
                if let Some(mux) = self.mux_of(number) {
                    mux.say_goodbye(broken.code);
                }
                let _ = self.connections[number].flush();
                note(&mut self.counts.broken, broken.why);
                self.sever(number, Failure::Malformed, now);
                Read::Gone
            }
        }
    }

    /// How often a connection was begun, from which something has come at `now`.
    #[inline]
    fn age(&mut self, number: usize, now: u64) -> u64 {
        self.mux_of(number).map_or(0, |mux| {
            mux.heard = now;
            mux.age
        })
    }

    /// What the frames have made to be sent is sent.
    #[inline]
    fn note_answers(&mut self, number: usize) {
        let has_some = self
            .mux_of(number)
            .is_some_and(|mux| !mux.waiting().is_empty());
        if has_some {
            self.note_waiting(number);
        }
    }

    /// Takes a frame.
    #[inline]
    fn take(&mut self, number: usize, frame: Frame<'_>, now: u64) -> Result<(), Broken> {
        match frame {
            Frame::Head {
                stream,
                block,
                ends,
            } => {
                let Some(at) = self.lane_of(number, stream)? else {
                    return Ok(());
                };
                let lane = &mut self.lanes[at];
                if let Some(request) = &mut lane.request
                    && request.first_byte == 0
                {
                    request.first_byte = now;
                }
                let to_head = lane.user.message(&self.workload.requests).to_head;
                let read = lane.stream.head(block, ends, to_head, &mut lane.response);
                self.progress(at, read.ok(), now);
            }
            Frame::Data {
                stream,
                bytes,
                flow,
                ends,
            } => {
                let lane = self.lane_of(number, stream)?;
                let Some(mux) = &mut self.connections[number].mux else {
                    return Ok(());
                };
                let Some(at) = lane else {
                    return mux.received(None, flow);
                };
                let lane = &mut self.lanes[at];
                mux.received(Some(&mut lane.stream).filter(|_| !ends), flow)?;
                let finders = &self.finders[lane.user.at()];
                for (search, finder) in lane.searches.iter_mut().zip(finders) {
                    search.take(finder, bytes);
                }
                let read = lane.stream.data(bytes.len(), ends);
                self.progress(at, read.ok(), now);
            }
            Frame::Reset { stream, code } => {
                if let Some(at) = self.lane_of(number, stream)? {
                    let request = self.lanes[at].request;
                    if request.is_some_and(|request| self.ledger.window.has(request.intended)) {
                        note(&mut self.counts.resets, code_name(code));
                    }
                    self.end_stream(at, None);
                    let served = self.take_served(number);
                    self.fail_lane(at, Failure::StreamReset, served, now);
                    self.after_stream(number, now);
                }
            }
            Frame::Window { stream, by } if stream != 0 => {
                if let Some(at) = self.lane_of(number, stream)? {
                    let lane = &mut self.lanes[at];
                    if let Some(mux) = &self.connections[number].mux {
                        mux.widened(&mut lane.stream, by)?;
                    }
                    if self.lanes[at].stream.waits {
                        self.resume_streams(number);
                    }
                }
            }
            frame => {
                let Some(mux) = self.mux_of(number) else {
                    return Ok(());
                };
                match mux.control(frame)? {
                    Then::Resume => self.resume_streams(number),
                    Then::GoAway { last, code } => self.goes_away(number, last, code, now),
                    Then::Nothing | Then::Stream => {}
                }
            }
        }
        Ok(())
    }

    /// The lane that has a stream; none where it has ended already.
    #[inline]
    fn lane_of(&mut self, number: usize, stream: u32) -> Result<Option<usize>, Broken> {
        let Some(mux) = &self.connections[number].mux else {
            return Ok(None);
        };
        let at = mux.lane(stream);
        if self
            .lanes
            .get(at)
            .is_some_and(|lane| lane.stream.id == stream && lane.connection == number)
        {
            return Ok(Some(at));
        }
        if !mux.knows(stream) {
            return Err(NEVER_BEGAN);
        }
        // Another stream has taken its place in the table, or it has ended.
        let first = number * self.streams;
        let lanes = self.lanes[first..first + self.streams].iter();
        let found = lanes.enumerate().find(|(_, lane)| lane.stream.id == stream);
        Ok(found.map(|(at, _)| first + at))
    }

    /// A response has come further: `None` if it is none, else whether it is complete.
    #[inline]
    fn progress(&mut self, at: usize, read: Option<bool>, now: u64) {
        let number = self.lanes[at].connection;
        match read {
            Some(false) => return,
            Some(true) => {
                let lane = &self.lanes[at];
                let (_, body) = lane.user.parts(&self.workload.requests);
                let written = lane.request.map_or(0, |request| request.written);
                // The server has answered, and does not want the rest.
                let rest = (written < body.len()).then_some(code::NO_ERROR);
                self.end_stream(at, rest);
                self.connections[number].served = true;
                self.finish(at, now);
                self.unpark(number);
                self.go_on(at, now);
            }
            None => {
                self.end_stream(at, Some(code::PROTOCOL_ERROR));
                let served = self.take_served(number);
                self.fail_lane(at, Failure::Malformed, served, now);
            }
        }
        self.after_stream(number, now);
    }

    /// The stream of a lane has ended; with an error code the server is told so.
    #[inline]
    fn end_stream(&mut self, at: usize, reset: Option<u32>) {
        let lane = &mut self.lanes[at];
        let Some(mux) = &mut self.connections[lane.connection].mux else {
            return;
        };
        if lane.stream.waits {
            mux.blocked.retain(|blocked| *blocked != at);
        }
        mux.end(&mut lane.stream, reset);
    }

    /// A stream has ended: another may begin, or its connection ends with it.
    #[inline]
    fn after_stream(&mut self, number: usize, now: u64) {
        let Some(mux) = &self.connections[number].mux else {
            return;
        };
        if mux.drains && mux.open == 0 {
            self.renew(number, now);
        } else if !mux.parked.is_empty() {
            self.unpark(number);
        }
    }

    /// The server serves no stream after `last`.
    #[cold]
    fn goes_away(&mut self, number: usize, last: u32, code: u32, now: u64) {
        if self.ledger.window.has(now) {
            note(&mut self.counts.goaways, code_name(code));
        }
        let mut unserved = std::mem::take(&mut self.severed);
        let first = number * self.streams;
        for at in first..first + self.streams {
            if self.lanes[at].stream.id > last {
                self.end_stream(at, None);
                unserved.push(at);
            }
        }
        let served = self.connections[number].served;
        for at in unserved.drain(..) {
            if !served {
                // A server that ends each connection at once would be asked without a pause.
                self.fail_lane(at, Failure::Closed, served, now);
                continue;
            }
            let lane = &mut self.lanes[at];
            lane.expect_response(&self.workload.requests);
            if let Some(request) = &mut lane.request {
                (request.written, request.first_byte) = (0, 0);
                self.counts.repeated += u64::from(self.ledger.window.has(request.intended));
                if let Some(mux) = &mut self.connections[number].mux {
                    mux.parked.push_back(at);
                }
            }
        }
        self.severed = unserved;
        self.after_stream(number, now);
    }

    /// A connection whose streams have all ended is closed, and opened anew where it is needed.
    #[cold]
    fn renew(&mut self, number: usize, now: u64) {
        self.connections[number].close();
        let is_needed = self
            .mux_of(number)
            .is_some_and(|mux| !mux.parked.is_empty());
        if is_needed {
            if let Err(error) = self.open(number, now) {
                self.unopened(number, &error, now);
            }
        } else if self.ledger.schedule.is_some() {
            self.reopen(number, now);
        }
    }

    /// A connection has ended, and with it what was under way on it.
    #[cold]
    pub(super) fn sever(&mut self, number: usize, failure: Failure, now: u64) {
        let connection = &mut self.connections[number];
        connection.close();
        let served = connection.served;
        let mut severed = std::mem::take(&mut self.severed);
        let first = number * self.streams;
        for at in first..first + self.streams {
            if self.lanes[at].stream.id != 0 {
                self.end_stream(at, None);
                severed.push(at);
            }
        }
        if !served && let Some(mux) = self.mux_of(number) {
            // They are not sent again and again to a server that answers none.
            severed.extend(mux.parked.drain(..));
        }
        if severed.is_empty() && served {
            self.renew(number, now);
        }
        for at in severed.drain(..) {
            self.fail_lane(at, failure, served, now);
        }
        self.severed = severed;
        let waits = self
            .mux_of(number)
            .is_some_and(|mux| !mux.parked.is_empty());
        if waits && !self.connections[number].link.is_open() {
            self.renew(number, now);
        }
    }

    /// A connection could not be established: nothing that waits for it is sent.
    #[cold]
    fn unopened(&mut self, number: usize, error: &io::Error, now: u64) {
        self.connections[number].close();
        let failure = match Failed::behind(error) {
            Some(_) => Failure::Tls,
            None => Failure::Connect,
        };
        let Some(mux) = self.mux_of(number) else {
            return;
        };
        let parked = mux.parked.len();
        for _ in 0..parked {
            let Some(at) = self.mux_of(number).and_then(|mux| mux.parked.pop_front()) else {
                break;
            };
            self.note_unsent(error, now);
            self.fail_lane(at, failure, false, now);
        }
    }

    /// A request was not answered in time.
    #[cold]
    pub(super) fn expire(&mut self, at: usize, now: u64) {
        let number = self.lanes[at].connection;
        let sent = self.lanes[at].request.map_or(now, |request| request.sent);
        if self.lanes[at].stream.id == 0 {
            if let Some(mux) = self.mux_of(number) {
                mux.parked.retain(|parked| *parked != at);
            }
            // A connection that is not established in all this time is tried anew.
            let connection = &mut self.connections[number];
            if connection.link.opening.is_some_and(|began| began <= sent) {
                connection.close();
            }
        } else {
            self.end_stream(at, Some(code::CANCEL));
            if let Some(mux) = self.mux_of(number) {
                // Nothing has come since: the connection may be dead, and carries nothing new.
                mux.drains |= mux.heard <= sent;
            }
            self.note_waiting(number);
        }
        let served = self.take_served(number);
        self.fail_lane(at, Failure::Timeout, served, now);
        if self.connections[number].link.is_ready() {
            self.after_stream(number, now);
        } else if !self.connections[number].link.is_open() {
            self.renew(number, now);
        }
    }

    /// A connection has served a response since the last failure on it.
    fn take_served(&mut self, number: usize) -> bool {
        std::mem::take(&mut self.connections[number].served)
    }

    /// The request of a lane has failed, and its stream has ended. In a closed loop the next follows at once where its connection has `served`
    /// another since the last failure, otherwise at the next tick.
    fn fail_lane(&mut self, at: usize, failure: Failure, served: bool, now: u64) {
        if self.lose(at, failure, now) && (self.ledger.schedule.is_some() || served) {
            self.go_on(at, now);
        }
    }
}
