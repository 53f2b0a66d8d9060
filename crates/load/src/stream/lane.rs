//! One connection of a load with its requests: those that have not left yet, those under way, and how it begins.

use std::io::{self, ErrorKind};

use super::counts::Counts;
use super::link::{Established, Link};
use super::slots::Slots;
use super::{Around, Conversation, Verdict};

/// Bytes that have left are dropped from the front of a buffer when they are more.
const DRAIN: usize = 64 * 1024;

/// Bytes in reply to what a connection begins with, at the same time; those of redis are some hundreds.
const LONGEST_GREETING: usize = 1 << 20;

/// The server refused what a connection begins with, in these words; the source of an [`io::Error`].
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unwelcome(pub(super) String);

impl Unwelcome {
    /// The refusal that an error comes from.
    pub(super) fn behind(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

/// A connection with its requests.
#[derive(Debug)]
pub(super) struct Lane<T> {
    pub(super) link: Link,
    pub(super) talk: T,
    pub(super) slots: Slots,
    /// Requests that have not left yet, from `written` on.
    pub(super) out: Vec<u8>,
    pub(super) written: usize,
    /// What the connection begins with, and how much of it has left.
    hello: Vec<u8>,
    said: usize,
    /// Replies to it that are still to come.
    greetings: usize,
    /// The kernel and TLS have established it.
    established: Option<Established>,
    /// How often it was established.
    openings: u64,
    /// The beginning of a reply whose rest has not come.
    pub(super) kept: Vec<u8>,
    /// A reply has come since it was opened.
    pub(super) served: bool,
    /// When bytes last came, absolute ns.
    pub(super) heard: u64,
    /// It is among the idle ones, or among those with something to send.
    pub(super) is_idle: bool,
    pub(super) is_dirty: bool,
}

impl<T: Conversation> Lane<T> {
    pub(super) fn new(link: Link, talk: T, depth: usize) -> Self {
        Self {
            link,
            talk,
            slots: Slots::new(depth),
            out: Vec::new(),
            written: 0,
            hello: Vec::new(),
            said: 0,
            greetings: 0,
            established: None,
            openings: 0,
            // A small reply that comes in two pieces allocates nothing.
            kept: Vec::with_capacity(256),
            served: false,
            heard: 0,
            is_idle: false,
            is_dirty: false,
        }
    }

    /// Closes it, whatever was under way; the requests stay.
    pub(super) fn close(&mut self) {
        self.link.close();
        self.out.clear();
        self.hello.clear();
        self.kept.clear();
        (self.written, self.said, self.greetings) = (0, 0, 0);
        self.established = None;
    }

    /// Hands to the kernel what waits, as far as it takes it: requests wait for the replies to what the connection begins with.
    #[inline]
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.said < self.hello.len() || !self.link.is_ready() && !self.link.is_flushed() {
            self.said += self.link.write(&self.hello[self.said..])?;
        }
        if !self.link.is_ready() {
            return Ok(());
        }
        if self.written < self.out.len() || !self.link.is_flushed() {
            self.written += self.link.write(&self.out[self.written..])?;
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
            } else if self.written > DRAIN {
                self.out.drain(..self.written);
                self.written = 0;
            }
        }
        Ok(())
    }

    /// Goes on establishing it at `now`, with buffers for TLS and what comes; how that went, once it is established and what it begins with is
    /// answered. `counted`: it is the window.
    pub(super) fn establish(
        &mut self,
        now: u64,
        (wire, buffer): (&mut [u8], &mut [u8]),
        counts: &mut Counts,
        counted: bool,
    ) -> io::Result<Option<Established>> {
        if self.established.is_none() {
            self.established = self.link.establish(now, wire, buffer)?;
            if let Some(established) = &self.established {
                self.hello.clear();
                self.said = 0;
                self.greetings = self.talk.begin(&mut self.hello);
                self.kept.clear();
                self.kept.extend_from_slice(&buffer[..established.early]);
            }
        }
        let Some(established) = self.established else {
            return Ok(None);
        };
        self.flush()?;
        let mut came_now = 0;
        while self.greetings > 0 {
            let mut around = Around {
                oldest: None,
                classes: &mut counts.classes,
                events: &mut counts.events,
                out: &mut self.hello,
            };
            let cut = self.talk.read(&self.kept, &mut around);
            let cut = cut.map_err(|why| io::Error::other(Unwelcome(why.to_owned())))?;
            self.kept.drain(..cut.used);
            match cut.reply.map(|reply| reply.verdict) {
                Some(Verdict::Answer(_)) => self.greetings -= 1,
                Some(Verdict::Error(class)) => {
                    if counted {
                        counts.classes.count(class);
                    }
                    let text = counts.classes.text(class).to_owned();
                    return Err(io::Error::other(Unwelcome(text)));
                }
                None if cut.used > 0 => {}
                None => match self.link.read(wire, buffer) {
                    Ok(came) if came.length == 0 && came.ended => {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    Ok(_) if came_now > LONGEST_GREETING => {
                        let why = "a reply without an end".to_owned();
                        return Err(io::Error::other(Unwelcome(why)));
                    }
                    Ok(came) => {
                        came_now += came.length;
                        self.kept.extend_from_slice(&buffer[..came.length]);
                    }
                    // Edge-triggered: what is not read now may never be reported.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                },
            }
        }
        self.link.opening = None;
        counts.opened(&established, self.openings > 0);
        self.openings += 1;
        Ok(Some(established))
    }
}
