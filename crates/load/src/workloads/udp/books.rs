//! What a thread knows of its requests and their fates: a reply comes in, its request is found, both are counted.

use super::payload::{Form, Name, Reading};
use super::slots::{Fate, Slots};
use super::tally::{Kind, Part, Runs, Tally, Window};
use crate::dns;

/// The books of one thread.
#[derive(Debug)]
pub(super) struct Books<'a> {
    pub(super) form: Form<'a>,
    pub(super) window: Window,
    /// Of a request, ns.
    pub(super) timeout: u64,
    pub(super) tally: Tally,
    pub(super) part: Part,
    /// Outstanding requests of the window.
    pub(super) open: u64,
}

/// Replies that were read at one instant.
#[derive(Debug)]
pub(super) struct Round {
    now: u64,
    /// The window has begun.
    counted: bool,
    /// It is the window.
    arriving: bool,
    runs: Runs,
    good: u64,
}

impl Books<'_> {
    /// Opens a round of replies read at `now`.
    #[inline]
    pub(super) fn begin(&self, now: u64) -> Round {
        Round {
            now,
            counted: now >= self.window.begin,
            arriving: self.window.has(now),
            runs: Runs::default(),
            good: 0,
        }
    }

    /// Matches a reply with its request among the `slots` of the socket `id`.
    #[inline]
    pub(super) fn enter(&mut self, round: &mut Round, slots: &mut Slots, id: u64, datagram: &[u8]) {
        let Self {
            form,
            window,
            timeout,
            tally,
            part,
            open,
        } = self;
        let &mut Round {
            now,
            counted,
            arriving,
            ..
        } = round;
        let mut stray = |kind: Kind| tally.count(kind, u64::from(counted));
        let fate = match form.name(datagram, id) {
            Name::Ticket(ticket) => slots.fate(ticket),
            Name::Only => slots.only_fate(),
            Name::Short => return stray(Kind::Truncated),
            Name::Foreign => Fate::Unknown,
        };
        let at = match fate {
            Fate::Open(at) => at,
            Fate::Late => return stray(Kind::Late),
            Fate::Duplicate => return stray(Kind::Duplicate),
            Fate::Unknown => return stray(Kind::Unexpected),
        };
        let slot = *slots.slot(at);
        let wrong = match form.check(datagram, slot.tag) {
            Reading::Foreign => return stray(Kind::Unexpected),
            Reading::WrongLength => Some(Kind::Truncated),
            Reading::WrongBytes => Some(Kind::Corrupt),
            // Came before the next look at timeouts, but too late all the same.
            Reading::Good { .. } if now - slot.sent > *timeout => Some(Kind::Late),
            Reading::Good { rcode, cut } => {
                if counted && (rcode != 0 || cut) {
                    tally.rcode(rcode);
                    tally.wrong += u64::from(!dns::answers(rcode) && window.has(slot.intended));
                    tally.count(Kind::Cut, u64::from(cut));
                }
                None
            }
        };
        slots.close(at);
        let ours = window.has(slot.intended);
        *open -= u64::from(ours);
        if let Some(kind) = wrong {
            tally.count(kind, u64::from(counted));
            tally.lost += u64::from(ours);
            part.lost += u64::from(ours && arriving);
            return;
        }
        round.good += 1;
        let corrected = now - slot.intended.min(now);
        if ours {
            tally.received += 1;
            round.runs.push(corrected, now - slot.sent, tally);
        }
        if arriving {
            part.corrected.record(corrected);
        }
    }

    /// Closes a round.
    #[inline]
    pub(super) fn end(&mut self, mut round: Round) {
        let Self { tally, part, .. } = self;
        round.runs.flush(tally);
        tally.all_received += round.good;
        if round.arriving {
            tally.arrived += round.good;
            part.received += round.good;
        }
        if round.good > 0 {
            tally.last_reply = round.now;
        }
    }

    /// Counts what the kernel refused at `at`: within the window, and before as long as nobody has answered, for
    /// then it is the reason.
    #[inline]
    pub(super) fn trouble(&mut self, kind: Kind, times: u64, at: u64) {
        if at >= self.window.begin || self.tally.all_received == 0 {
            self.tally.count(kind, times);
        }
    }

    /// Gives up the requests of `slots` that were sent at or before `sent_by`.
    pub(super) fn give_up(&mut self, slots: &mut Slots, sent_by: u64, now: u64) {
        let Self {
            tally,
            part,
            open,
            window,
            ..
        } = self;
        slots.give_up(sent_by, |slot| {
            if window.has(slot.intended) {
                *open -= 1;
                tally.lost += 1;
                part.lost += u64::from(now < window.end);
            }
        });
    }
}
