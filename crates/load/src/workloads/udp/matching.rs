//! Which reply belongs to which request, and what is wrong with those that belong to none.

use super::payload::{Form, Name, Reading};
use super::slots::{Fate, Slots};
use crate::dns::{self, RCODES};
use crate::engine::{Ledger, Round};

/// What is counted of datagrams beside sent, received and lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Error {
    Late,
    Duplicate,
    Unexpected,
    Truncated,
    Corrupt,
    Cut,
}

/// Names of [`Error`] in reports, in their order; then the codes of DNS. An answer without error is none.
pub(super) const ERRORS: [&str; OWN.len() + RCODES.len()] = {
    let mut names = [""; OWN.len() + RCODES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = if at < OWN.len() {
            OWN[at]
        } else {
            RCODES[at - OWN.len()]
        };
        at += 1;
    }
    names
};
const OWN: [&str; 6] = [
    "late",
    "duplicate",
    "unexpected",
    "truncated",
    "corrupt",
    "dns_truncated",
];

/// Matches a reply with its request among the `slots` of the socket `id`.
#[inline]
pub(super) fn enter(
    form: &Form<'_>,
    ledger: &mut Ledger<'_>,
    round: &mut Round,
    slots: &mut Slots,
    id: u64,
    datagram: &[u8],
) {
    let counted = round.counted;
    let mut stray = |error: Error| ledger.count(error as usize, u64::from(counted));
    let fate = match form.name(datagram, id) {
        Name::Ticket(ticket) => slots.fate(ticket),
        Name::Only => slots.only_fate(),
        Name::Short => return stray(Error::Truncated),
        Name::Foreign => Fate::Unknown,
    };
    let at = match fate {
        Fate::Open(at) => at,
        Fate::Late => return stray(Error::Late),
        Fate::Duplicate => return stray(Error::Duplicate),
        Fate::Unknown => return stray(Error::Unexpected),
    };
    let slot = *slots.slot(at);
    let wrong = match form.check(datagram, slot.tag) {
        Reading::Foreign => return stray(Error::Unexpected),
        Reading::WrongLength => Some(Error::Truncated),
        Reading::WrongBytes => Some(Error::Corrupt),
        // Came before the next check of timeouts, but too late all the same.
        Reading::Good { .. } if round.now - slot.sent > ledger.timeout => Some(Error::Late),
        Reading::Good { rcode, cut } => {
            if counted && (rcode != 0 || cut) {
                if rcode != 0 {
                    ledger.count(OWN.len() + usize::from(rcode & 0x0f), 1);
                }
                let ours = ledger.window.has(slot.intended);
                ledger.tally.wrong += u64::from(!dns::answers(rcode) && ours);
                ledger.count(Error::Cut as usize, u64::from(cut));
            }
            None
        }
    };
    slots.close(at);
    if let Some(error) = wrong {
        ledger.count(error as usize, u64::from(counted));
        ledger.lost(slot.intended, round.now);
    } else {
        ledger.answered(round, slot.intended, slot.sent);
    }
}
