//! The outstanding requests of one socket: which reply belongs to which request, and which to none.
//!
//! A request occupies a slot; its ticket is `generation * slots + slot`, with the slot count rounded up to
//! a power of two, so a reply finds its slot without a search. The generation grows with each use of the
//! slot. Each slot remembers of its last 64 generations which were given up, so a reply after its timeout is distinguished from a
//! duplicate. DNS leaves 16 bits for a ticket; there generations wrap.

/// The state of a reply's ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The request waits for it.
    Open(usize),
    /// The request was given up before.
    Late,
    /// The request was answered before.
    Duplicate,
    /// No request had this ticket.
    Unknown,
}

/// One request's place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// When it was due, ns.
    pub(super) intended: u64,
    /// When it was handed to the kernel, ns.
    pub(super) sent: u64,
    /// How often this place was used.
    generation: u64,
    /// Bit `n`: the use `n` generations ago was given up, without a reply since.
    given_up: u64,
    /// What was asked: index of the DNS query.
    pub(super) tag: u32,
    open: bool,
}

/// The slots of a socket.
#[derive(Debug)]
pub(super) struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
    slot_bits: u32,
    ticket_mask: u64,
}

impl Slots {
    /// `depth` slots whose tickets have `ticket_bits` bits. At least 4 of them must be left for generations.
    pub(super) fn new(depth: usize, ticket_bits: u32) -> Self {
        let slot_bits = depth.next_power_of_two().trailing_zeros();
        debug_assert!(slot_bits + 4 <= ticket_bits);
        Self {
            all: vec![Slot::default(); depth],
            free: (0..depth as u32).rev().collect(),
            slot_bits,
            ticket_mask: u64::MAX >> (64 - ticket_bits),
        }
    }

    /// Places without a request.
    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Whether no request is under way.
    #[inline]
    pub(super) fn all_free(&self) -> bool {
        self.free.len() == self.all.len()
    }

    /// Takes a free place for a request and returns its ticket.
    #[inline]
    pub(super) fn take(&mut self, intended: u64, sent: u64, tag: u32) -> Option<u64> {
        let at = self.free.pop()?;
        let slot = &mut self.all[at as usize];
        slot.intended = intended;
        slot.sent = sent;
        slot.tag = tag;
        slot.generation += 1;
        slot.given_up <<= 1;
        slot.open = true;
        Some(((slot.generation << self.slot_bits) | u64::from(at)) & self.ticket_mask)
    }

    /// Whose reply carries `ticket`. A late reply is reported once; after that its ticket is a duplicate.
    #[inline]
    pub(super) fn fate(&mut self, ticket: u64) -> Fate {
        let at = (ticket & !(u64::MAX << self.slot_bits)) as usize;
        let Some(slot) = self.all.get_mut(at) else {
            return Fate::Unknown;
        };
        let generations = self.ticket_mask >> self.slot_bits;
        let age = slot.generation.wrapping_sub(ticket >> self.slot_bits) & generations;
        if age == 0 && slot.open {
            return Fate::Open(at);
        }
        if age >= slot.generation {
            return Fate::Unknown;
        }
        if age >= 64 {
            return Fate::Late;
        }
        let bit = 1 << age;
        if slot.given_up & bit == 0 {
            return Fate::Duplicate;
        }
        slot.given_up &= !bit;
        Fate::Late
    }

    /// The latest state of slot 0, for payloads that carry no ticket and have one slot.
    pub(super) fn only_fate(&mut self) -> Fate {
        let ticket = (self.all[0].generation << self.slot_bits) & self.ticket_mask;
        self.fate(ticket)
    }

    #[inline]
    pub(super) fn slot(&self, at: usize) -> &Slot {
        &self.all[at]
    }

    /// Ends the request in `at`: it was answered, or its failure is known.
    #[inline]
    pub(super) fn close(&mut self, at: usize) {
        self.all[at].open = false;
        self.free.push(at as u32);
    }

    /// Takes back a request that never left.
    pub(super) fn untake(&mut self, ticket: u64) {
        let at = (ticket & !(u64::MAX << self.slot_bits)) as usize;
        if self.all.get(at).is_some_and(|slot| slot.open) {
            self.close(at);
        }
    }

    /// Gives up every request sent at or before `sent_by`, and reports each.
    pub(super) fn give_up(&mut self, sent_by: u64, mut each: impl FnMut(&Slot)) {
        for (at, slot) in self.all.iter_mut().enumerate() {
            if slot.open && slot.sent <= sent_by {
                slot.open = false;
                slot.given_up |= 1;
                self.free.push(at as u32);
                each(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_second_reply_is_a_duplicate_even_after_the_slot_was_used_again() {
        let mut slots = Slots::new(1, 64);
        let first = slots.take(0, 0, 0).unwrap();
        assert_eq!(slots.fate(first), Fate::Open(0));
        slots.close(0);
        assert_eq!(slots.fate(first), Fate::Duplicate);
        let second = slots.take(0, 0, 0).unwrap();
        assert_eq!(slots.fate(first), Fate::Duplicate);
        assert_eq!(slots.fate(second), Fate::Open(0));
    }

    #[test]
    fn a_reply_after_the_timeout_is_late_once_and_then_a_duplicate() {
        let mut slots = Slots::new(3, 64);
        let ticket = slots.take(5, 5, 0).unwrap();
        let mut lost = 0;
        slots.give_up(4, |_| lost += 1);
        assert_eq!(lost, 0);
        slots.give_up(5, |_| lost += 1);
        assert_eq!((lost, slots.free()), (1, 3));
        slots.take(6, 6, 0).unwrap();
        assert_eq!(slots.fate(ticket), Fate::Late);
        assert_eq!(slots.fate(ticket), Fate::Duplicate);
    }

    #[test]
    fn tickets_that_were_never_given_are_unknown() {
        let mut slots = Slots::new(3, 64);
        let ticket = slots.take(0, 0, 0).unwrap();
        assert_eq!(slots.fate(ticket + 4), Fate::Unknown, "next generation");
        assert_eq!(slots.fate(ticket | 3), Fate::Unknown, "no such slot");
        assert_eq!(slots.fate(0), Fate::Unknown, "generation 0");
        let mut narrow = Slots::new(16, 16);
        narrow.take(0, 0, 0).unwrap();
        assert_eq!(narrow.fate(0xffff), Fate::Unknown);
    }

    proptest! {
        #[test]
        fn tickets_in_flight_differ_and_find_their_own_slot(depth in 1_usize..300, turns in 1_usize..400, bits in prop::sample::select(vec![16_u32, 64])) {
            let mut slots = Slots::new(depth, bits);
            for turn in 0..turns {
                let mut tickets = Vec::new();
                while let Some(ticket) = slots.take(turn as u64, turn as u64, 0) {
                    tickets.push(ticket);
                }
                let mut seen = std::collections::BTreeSet::new();
                for ticket in tickets {
                    let Fate::Open(at) = slots.fate(ticket) else { panic!("{ticket} is not open") };
                    prop_assert!(seen.insert(at));
                    slots.close(at);
                }
                prop_assert_eq!(slots.free(), depth);
                if depth > 100 { break; }
            }
        }

        #[test]
        fn no_ticket_panics(depth in 1_usize..5000, ticket: u64, bits in prop::sample::select(vec![18_u32, 64])) {
            let mut slots = Slots::new(depth, bits);
            slots.take(0, 0, 0);
            slots.fate(ticket);
            slots.untake(ticket);
            slots.fate(ticket);
        }
    }
}
