//! The requests under way on one connection, and which of them a reply belongs to: the oldest, or the one with its ticket.
//!
//! A ticket is `use << 16 | place`: a place is used again under another ticket, so that a reply that comes too late finds nothing.

use std::collections::VecDeque;

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// When it was due, absolute ns.
    pub(super) intended: u64,
    /// When it was begun.
    pub(super) sent: u64,
    /// Which of the protocol's requests it is.
    pub(super) name: usize,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// It was answered, and no later one of its place was.
    Answered,
    /// It was given up, or answered before others of its place.
    Ended,
    /// There was none.
    Unknown,
}

#[derive(Debug)]
struct Place {
    uses: u64,
    /// The last use to which a reply came.
    answered: u64,
    pending: Option<Pending>,
}

/// As many places as a connection may have requests.
#[derive(Debug)]
pub(super) struct Slots {
    places: Vec<Place>,
    free: Vec<u32>,
    /// Places of requests in the order of their sends. Those that were answered by ticket stay until they are the oldest, or used again.
    order: VecDeque<u64>,
}

impl Slots {
    pub(super) fn new(depth: usize) -> Self {
        let place = |_| Place {
            uses: 0,
            answered: 0,
            pending: None,
        };
        Self {
            places: (0..depth).map(place).collect(),
            free: (0..depth as u32).rev().collect(),
            order: VecDeque::with_capacity(2 * depth),
        }
    }

    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    #[inline]
    pub(super) fn under_way(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes a place and returns its ticket; the request is put there by [`Slots::put`].
    #[inline]
    pub(super) fn take(&mut self) -> Option<u64> {
        let at = self.free.pop()?;
        let place = &mut self.places[at as usize];
        place.uses += 1;
        let ticket = place.uses << 16 | u64::from(at);
        if self.order.len() == self.order.capacity() {
            self.forget_answered();
        }
        self.order.push_back(ticket);
        Some(ticket)
    }

    /// Those that are still under way are no more than places, so half of the room is free again.
    #[cold]
    fn forget_answered(&mut self) {
        let places = &self.places;
        self.order.retain(|ticket| is_open(places, *ticket));
    }

    #[inline]
    pub(super) fn put(&mut self, ticket: u64, pending: Pending) {
        self.places[place_of(ticket)].pending = Some(pending);
    }

    /// The request that waits longest.
    #[inline]
    pub(super) fn oldest(&mut self) -> Option<&Pending> {
        let ticket = self.oldest_ticket()?;
        self.places[place_of(ticket)].pending.as_ref()
    }

    #[inline]
    fn oldest_ticket(&mut self) -> Option<u64> {
        loop {
            let ticket = *self.order.front()?;
            if is_open(&self.places, ticket) {
                return Some(ticket);
            }
            self.order.pop_front();
        }
    }

    /// Ends the request that waits longest.
    #[inline]
    pub(super) fn end_oldest(&mut self) -> Option<Pending> {
        let ticket = self.oldest_ticket()?;
        self.order.pop_front();
        self.end(ticket)
    }

    /// Ends the request of this ticket; none where it has ended, or never was.
    #[inline]
    pub(super) fn end(&mut self, ticket: u64) -> Option<Pending> {
        let at = place_of(ticket);
        let place = self.places.get_mut(at)?;
        if place.uses != ticket >> 16 {
            return None;
        }
        let pending = place.pending.take()?;
        self.free.push(at as u32);
        Some(pending)
    }

    /// Ends the request of this ticket, to which a reply came.
    #[inline]
    pub(super) fn answer(&mut self, ticket: u64) -> Option<Pending> {
        let pending = self.end(ticket)?;
        self.places[place_of(ticket)].answered = ticket >> 16;
        Some(pending)
    }

    /// What became of the request of this ticket, which is not under way.
    pub(super) fn past(&self, ticket: u64) -> Past {
        let uses = ticket >> 16;
        match self.places.get(place_of(ticket)) {
            Some(place) if uses > 0 && place.answered == uses => Past::Answered,
            Some(place) if (1..=place.uses).contains(&uses) => Past::Ended,
            _ => Past::Unknown,
        }
    }
}

#[inline]
fn place_of(ticket: u64) -> usize {
    (ticket & 0xffff) as usize
}

#[inline]
fn is_open(places: &[Place], ticket: u64) -> bool {
    let place = &places[place_of(ticket)];
    place.uses == ticket >> 16 && place.pending.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(name: usize) -> Pending {
        Pending {
            intended: 0,
            sent: 0,
            name,
        }
    }

    fn ask(slots: &mut Slots, name: usize) -> u64 {
        let ticket = slots.take().unwrap();
        slots.put(ticket, pending(name));
        ticket
    }

    #[test]
    fn replies_belong_to_the_oldest_or_to_their_ticket() {
        let mut slots = Slots::new(3);
        let tickets: Vec<u64> = (0..3).map(|name| ask(&mut slots, name)).collect();
        assert_eq!(
            (slots.take(), slots.free(), slots.under_way()),
            (None, 0, 3)
        );
        assert_eq!(slots.answer(tickets[1]), Some(pending(1)));
        assert_eq!(slots.answer(tickets[1]), None, "answered before");
        for (ticket, past) in [
            (tickets[1], Past::Answered),
            (99 << 16, Past::Unknown),
            (7, Past::Unknown),
            (1 << 16 | 0x63, Past::Unknown),
        ] {
            assert_eq!(slots.past(ticket), past, "{ticket:x}");
        }
        assert_eq!(slots.oldest(), Some(&pending(0)));
        assert_eq!(slots.end_oldest(), Some(pending(0)));
        assert_eq!(
            slots.end_oldest(),
            Some(pending(2)),
            "past the one that is answered"
        );
        assert_eq!(slots.end_oldest(), None);
        assert_eq!(slots.past(tickets[0]), Past::Ended, "given up");
        assert_eq!(slots.free(), 3);
    }

    #[test]
    fn one_request_that_waits_lets_any_number_pass() {
        let mut slots = Slots::new(2);
        let first = ask(&mut slots, 7);
        let room = slots.order.capacity();
        for name in 0..10_000 {
            let ticket = ask(&mut slots, name);
            assert_eq!(slots.end(ticket), Some(pending(name)));
        }
        assert_eq!(slots.order.capacity(), room);
        assert_eq!(slots.oldest(), Some(&pending(7)));
        assert_eq!(slots.end(first), Some(pending(7)));
    }
}
