//! What the three ways of I/O share: a desk where requests become replies.

use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;

use super::counters::{Published, Tally};
use super::handler::{self, Handler, Outcome};
use super::message::Arrival;
use super::outbox::Outbox;
use crate::affinity;
use crate::guard::Guarded;
use crate::name::Name;

/// Largest datagram a socket delivers, joined ones included.
pub(super) const MAX_REQUEST: usize = 65_535;

/// Distance between receive buffers. Not a multiple of 4096, or the first bytes of all of them would compete
/// for the same few sets of the first-level cache.
pub(super) const STRIDE: usize = 65_536 + 192;

/// Where a worker turns requests into replies.
pub(super) struct Desk<H> {
    handler: Guarded<H>,
    pub(super) outbox: Outbox,
    pub(super) tally: Tally,
    published: Arc<Published>,
    socket: Arc<OwnedFd>,
    /// Replies leave one per system call.
    singly: bool,
}

impl<H: Handler> Desk<H> {
    /// A desk that answers on `socket`, with room for `messages` replies per round.
    pub(super) fn new(
        handler: Guarded<H>,
        published: Arc<Published>,
        socket: Arc<OwnedFd>,
        messages: usize,
        gso: bool,
        singly: bool,
    ) -> Self {
        Self {
            handler,
            outbox: Outbox::new(messages, gso),
            tally: Tally::default(),
            published,
            socket,
            singly,
        }
    }

    pub(super) fn socket(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Answers what one receive brought: a request, or several of one peer that arrived as one.
    pub(super) fn take(&mut self, payload: &[u8], name: &Name, arrival: &Arrival) {
        // No name: not a datagram but the end of a socket that was shut down.
        let Some(peer) = name.address() else {
            return;
        };
        if arrival.segment == 0 || payload.len() <= arrival.segment {
            self.answer(payload, peer, name, arrival);
        } else {
            for request in payload.chunks(arrival.segment) {
                self.answer(request, peer, name, arrival);
            }
        }
    }

    fn answer(
        &mut self,
        request: &[u8],
        peer: std::net::SocketAddr,
        name: &Name,
        arrival: &Arrival,
    ) {
        if let Some(length) = self.reply(request, peer) {
            self.outbox.push(length, name, arrival.local);
        }
    }

    /// Counts a request and has its reply written to the outbox's room, where it can be pushed or taken from.
    pub(super) fn reply(&mut self, request: &[u8], peer: std::net::SocketAddr) -> Option<usize> {
        if self.outbox.room().is_none() {
            self.send();
        }
        let room = self
            .outbox
            .room()
            .expect("an outbox that was just emptied has room");
        self.tally.received += 1;
        self.tally.received_bytes += request.len() as u64;
        match handler::answer(&mut self.handler, request, peer, room) {
            Outcome::Reply(length) => return Some(length),
            Outcome::Refused => self.tally.refused += 1,
            Outcome::TooLong => self.tally.send_errors += 1,
            Outcome::Panicked => self.tally.panics += 1,
        }
        None
    }

    /// Sends the replies that wait.
    pub(super) fn send(&mut self) {
        if self.singly {
            self.outbox
                .send_singly(self.socket.as_raw_fd(), &mut self.tally);
        } else {
            self.outbox
                .send_together(self.socket.as_raw_fd(), &mut self.tally);
        }
    }

    /// Publishes the round and begins the next.
    pub(super) fn publish(&mut self) {
        self.tally.publish(&self.published, affinity::current());
        self.tally = Tally::default();
    }
}
