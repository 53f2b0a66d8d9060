//! A user: its place in the script, and what it keeps between its requests.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cookies::Jar;
use super::http2::hpack;
use super::requests::{Bytes, Dealt, Message, Requests};
use super::response::Response;
use super::script::{Dealing, Pace, Pause, Row, Step};
use crate::template::{Random, Values};

/// What a user does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not begun, or it pauses.
    Waits,
    /// Its next request is known and can be sent.
    Ready,
    /// A request was sent; what follows is found once that has its response, or failed.
    Asks,
    /// It sends no more.
    Ended,
}

/// What differs from lane to lane: each has a user of its own.
#[derive(Debug)]
pub(super) struct User {
    pub(super) stage: Stage,
    /// The place of its request in the list.
    at: usize,
    group: usize,
    /// Its number within the group, from 0.
    number: usize,
    has_begun: bool,
    /// When it sends no more, absolute ns.
    ends: u64,
    /// Its next step.
    step: usize,
    /// How often each of its loops has passed.
    passes: Vec<u64>,
    /// When each of its paced pauses has ended, absolute ns.
    paced: Vec<u64>,
    /// Rows to be taken with its next request, so that one that is never sent takes none.
    pending: Vec<Row>,
    /// Rows taken from tables of its own.
    taken: Vec<u64>,
    /// Numbers given out by its own counters.
    counted: Vec<u64>,
    /// The bytes of its request, where they are rendered, and how many of them are its head.
    rendered: Vec<u8>,
    head: usize,
    http2: bool,
    /// Room for its cookies.
    cookies: Vec<u8>,
    /// Its row of each table.
    rows: Vec<usize>,
    random: Random,
    jar: Option<Jar>,
}

impl User {
    /// The user of a lane, numbered over all threads.
    pub(super) fn new(requests: &Requests, dealt: &Dealt, seed: u64, lane: usize) -> Self {
        let (group, number) = requests.place_of(lane);
        let (loops, paces, tables) = requests.groups()[group].room();
        Self {
            stage: Stage::Waits,
            at: 0,
            group,
            number,
            has_begun: false,
            ends: u64::MAX,
            step: 0,
            passes: vec![0; loops],
            paced: vec![0; paces],
            pending: Vec::with_capacity(requests.tables().number()),
            taken: vec![0; tables],
            counted: vec![0; requests.counters()],
            rendered: Vec::new(),
            head: 0,
            http2: requests.is_http2(),
            cookies: Vec::new(),
            rows: vec![0; requests.tables().number()],
            random: Random::new(seed, lane as u64),
            jar: dealt.cookies.clone().map(Jar::new),
        }
    }

    /// When it begins, in a load that begins at `start`.
    pub(super) fn begins(&mut self, requests: &Requests, start: u64) -> u64 {
        let group = &requests.groups()[self.group];
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let ends = group.length.map(|length| {
            let all = ns(group.delay).saturating_add(ns(length));
            start.saturating_add(all)
        });
        self.ends = ends.unwrap_or(u64::MAX);
        start.saturating_add(ns(group.begins(self.number)))
    }

    /// Its pause is over, or it begins.
    pub(super) fn wake(&mut self, dealt: &Dealt) {
        self.stage = if self.has_begun {
            Stage::Ready
        } else {
            self.has_begun = true;
            dealt.active[self.group].fetch_add(1, Ordering::Relaxed);
            Stage::Asks
        };
    }

    /// Finds its next request at `now`, and when that is to be sent; absent where it ends instead.
    #[inline]
    pub(super) fn advance(&mut self, requests: &Requests, dealt: &Dealt, now: u64) -> Option<u64> {
        let due = self.walk(requests, dealt, now);
        let due = due.filter(|due| *due < self.ends);
        self.stage = match due {
            Some(due) if due > now => Stage::Waits,
            Some(_) => Stage::Ready,
            None => {
                dealt.active[self.group].fetch_sub(1, Ordering::Relaxed);
                Stage::Ended
            }
        };
        due
    }

    fn walk(&mut self, requests: &Requests, dealt: &Dealt, now: u64) -> Option<u64> {
        let steps = &requests.groups()[self.group].steps;
        let mut due = now;
        loop {
            let step = steps.get(self.step)?;
            self.step += 1;
            match step {
                Step::Send(message) => {
                    self.at = *message;
                    return Some(due);
                }
                Step::Wait(pauses) => {
                    let from = due;
                    for pause in pauses {
                        due = due.saturating_add(self.pause(*pause, dealt, from));
                    }
                }
                Step::Row(row) if row.ends => {
                    if !self.take(*row, requests, dealt) {
                        return None;
                    }
                }
                Step::Row(row) => self.pending.push(*row),
                Step::Forget => {
                    if let Some(jar) = &mut self.jar {
                        jar.forget();
                    }
                }
                Step::Again { to, times, number } => {
                    let passed = &mut self.passes[*number];
                    *passed += 1;
                    if times.is_none_or(|times| *passed < times) {
                        self.step = *to;
                    } else {
                        *passed = 0;
                    }
                }
                Step::Once { to, number } => {
                    if self.passes[*number] > 0 {
                        self.step = *to;
                    }
                }
            }
        }
    }

    /// How long it pauses at `now`, ns.
    fn pause(&mut self, pause: Pause, dealt: &Dealt, now: u64) -> u64 {
        let Pause::Paced { every, by, number } = pause else {
            return pause.drawn(&mut self.random);
        };
        let active = |group: &AtomicU64| group.load(Ordering::Relaxed) as f64;
        let times = match by {
            Pace::User => 1.0,
            Pace::AllUsers => dealt.active.iter().map(active).sum(),
            Pace::Group => active(&dealt.active[self.group]),
            Pace::Shared => return shared(&dealt.paced[0], every, now),
            Pace::SharedGroup => return shared(&dealt.paced[self.group + 1], every, now),
        };
        let before = &mut self.paced[number];
        // Who is late does not catch up.
        let until = match *before {
            0 => now,
            before => before.saturating_add((every * times) as u64).max(now),
        };
        *before = until;
        until - now
    }

    /// Takes its next row of a table; false where there is none left.
    fn take(&mut self, row: Row, requests: &Requests, dealt: &Dealt) -> bool {
        let next = match row.dealt {
            Dealing::Shared(counter) => dealt.rows[counter].fetch_add(1, Ordering::Relaxed),
            Dealing::Own(counter) => {
                let taken = &mut self.taken[counter];
                *taken += 1;
                *taken - 1
            }
        };
        let rows = requests.tables().rows(row.table) as u64;
        self.rows[row.table] = (next % rows) as usize;
        !row.ends || next < rows
    }

    /// Makes its request at `now`; `body` is room for one.
    #[inline]
    pub(super) fn make(
        &mut self,
        requests: &Requests,
        dealt: &Dealt,
        body: &mut Vec<u8>,
        now: u64,
    ) {
        self.stage = Stage::Asks;
        for at in 0..self.pending.len() {
            self.take(self.pending[at], requests, dealt);
        }
        self.pending.clear();
        let message = &requests.messages()[self.at];
        let Bytes::Rendered {
            head,
            body: content,
            counts,
        } = &message.bytes
        else {
            return;
        };
        let before = if *counts {
            dealt.requests.fetch_add(1, Ordering::Relaxed)
        } else {
            0
        };
        let mut values = Values {
            before,
            user: self.number as u64 + 1,
            counters: &dealt.counters,
            own: &mut self.counted,
            rows: &self.rows,
            tables: requests.tables(),
            random: &mut self.random,
            length: 0,
        };
        body.clear();
        content.render(&mut values, body);
        values.length = body.len();
        self.rendered.clear();
        head.render(&mut values, &mut self.rendered);
        if let Some(jar) = self.jar.as_ref().filter(|_| message.cookies) {
            let target = target_of(&self.rendered, self.http2);
            self.cookies.clear();
            jar.render(target, now, &mut self.cookies);
            if !self.cookies.is_empty() {
                let before: &[u8] = if self.http2 { COOKIE } else { b"Cookie: " };
                self.rendered.extend_from_slice(before);
                let begins = self.rendered.len();
                self.rendered.extend_from_slice(&self.cookies);
                if self.http2 {
                    hpack::close_string(&mut self.rendered, begins);
                } else {
                    self.rendered.extend_from_slice(b"\r\n");
                }
            }
        }
        if !self.http2 {
            self.rendered.extend_from_slice(b"\r\n");
        }
        self.head = self.rendered.len();
        self.rendered.extend_from_slice(body);
    }

    /// Keeps the cookies of a response to its request.
    #[inline]
    pub(super) fn keep(&mut self, requests: &Requests, response: &Response, now: u64) {
        if !requests.messages()[self.at].cookies {
            return;
        }
        if let Some(jar) = &mut self.jar {
            let target = target_of(&self.rendered, self.http2);
            for cookie in response.cookies() {
                jar.take(cookie, target, response.date(), now);
            }
        }
    }

    /// Its request.
    #[inline]
    pub(super) fn message<'a>(&self, requests: &'a Requests) -> &'a Message {
        &requests.messages()[self.at]
    }

    /// The place of its request in the list.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The bytes of its request.
    #[inline]
    pub(super) fn bytes<'a>(&'a self, requests: &'a Requests) -> &'a [u8] {
        match &requests.messages()[self.at].bytes {
            Bytes::Fixed(bytes, _) => bytes,
            Bytes::Rendered { .. } => &self.rendered,
        }
    }

    /// Head and body of its request.
    #[inline]
    pub(super) fn parts<'a>(&'a self, requests: &'a Requests) -> (&'a [u8], &'a [u8]) {
        match &requests.messages()[self.at].bytes {
            Bytes::Fixed(bytes, head) => bytes.split_at(*head),
            Bytes::Rendered { .. } => self.rendered.split_at(self.head),
        }
    }
}

/// How long to wait from `now` on for a turn that comes every so often to one of all users.
fn shared(last: &AtomicU64, every: f64, now: u64) -> u64 {
    let after = |last: u64| last.saturating_add(every as u64).max(now);
    let order = Ordering::Relaxed;
    let before = last.fetch_update(order, order, |last| Some(after(last)));
    after(before.unwrap_or_else(|last| last)) - now
}

/// The name of the field `cookie`, before its value: see [`hpack::put_name`].
const COOKIE: &[u8] = b"\x0f\x11";

/// Path and query of a request, from its head.
fn target_of(request: &[u8], http2: bool) -> &[u8] {
    if http2 {
        return hpack::first_value(request);
    }
    let mut words = request.split(|byte| *byte == b' ');
    words.nth(1).unwrap_or_default()
}
