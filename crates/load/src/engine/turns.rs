//! Two loads that take turns: while requests of one leave, the other is silent.
//!
//! The speed of a machine drifts over tenths of a second, so two loads that run one after the other meet two machines. Loads
//! that change places every 20 ms meet the same one (duet benchmarking, Bulej et al., ICPE 2020). Each load has a service of
//! its own, so nothing has to be set up between two turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Window, spread};
use crate::clock::now_ns;

/// How long one load sends before the other does.
pub const TURN: Duration = Duration::from_millis(20);
/// What a turn begins with is not counted: the other service answers its last requests, caches and CPUs change hands.
pub const SETTLE: Duration = Duration::from_millis(4);
/// How often a load checks whether the other one has come.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// From the moment that both loads are ready to the first turn: long enough for their threads to wake up.
const LEAD: Duration = Duration::from_millis(2);

/// A meeting of two loads that take turns.
#[derive(Debug)]
pub struct Turns {
    seed: u64,
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Meeting {
    waiting: usize,
    /// When the first turn begins, absolute ns.
    start: Option<u64>,
    /// One of them has ended: the other must not wait for it.
    left: bool,
}

/// The place of one of two loads.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    turns: &'a Turns,
    second: bool,
}

impl Turns {
    /// The order of the turns follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            meeting: Mutex::new(Meeting::default()),
            changed: Condvar::new(),
        }
    }

    /// The places of the two loads.
    pub fn seats(&self) -> [Seat<'_>; 2] {
        [false, true].map(|second| Seat {
            turns: self,
            second,
        })
    }
}

impl Seat<'_> {
    /// Waits until the other load is ready too, and answers when the first turn begins; `None` if it ended, or `interrupted`.
    pub(super) fn meet(&self, interrupted: &AtomicBool) -> Option<u64> {
        let Turns {
            meeting, changed, ..
        } = self.turns;
        let mut state = meeting.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if state.waiting == 2 {
            state.start = Some(now_ns() + LEAD.as_nanos() as u64);
            changed.notify_all();
        }
        loop {
            if state.start.is_some() {
                return state.start;
            }
            if state.left || interrupted.load(Ordering::Relaxed) {
                return None;
            }
            let waited = changed.wait_timeout(state, POLL_INTERVAL);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The turns of this load from `start` on.
    pub(super) fn slices(&self, start: u64) -> Slices {
        Slices {
            start,
            length: TURN.as_nanos() as u64,
            settle: SETTLE.as_nanos() as u64,
            seed: self.turns.seed,
            second: self.second,
        }
    }
}

/// Frees the other load from waiting, when it is dropped at the end of this one.
pub(super) struct Leaves<'a>(pub(super) Seat<'a>);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let Turns {
            meeting, changed, ..
        } = self.0.turns;
        let mut meeting = meeting.lock().unwrap_or_else(PoisonError::into_inner);
        meeting.left = true;
        changed.notify_all();
    }
}

/// The turns of one of two loads, absolute ns. Of each two turns one is its own; which of them is drawn, so that nothing
/// periodic on the machine can meet one load alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    start: u64,
    length: u64,
    settle: u64,
    seed: u64,
    second: bool,
}

impl Slices {
    #[inline]
    fn index(&self, instant: u64) -> u64 {
        instant.saturating_sub(self.start) / self.length
    }

    /// Whether turn `index` is its own.
    #[inline]
    fn is_own(&self, index: u64) -> bool {
        let swapped = spread(self.seed ^ (index / 2)) & 1 == 1;
        ((index % 2 == 1) != swapped) == self.second
    }

    /// Whether the load sends at `instant`, and what it sends counts.
    #[inline]
    pub(crate) fn count(&self, instant: u64) -> bool {
        let index = self.index(instant);
        if !self.is_own(index) {
            return false;
        }
        let settled = instant.saturating_sub(self.start + index * self.length) >= self.settle;
        settled || index > 0 && self.is_own(index - 1)
    }

    /// Whether the load sends at `instant`, but has its turn only since a moment.
    #[inline]
    pub(crate) fn settle(&self, instant: u64) -> bool {
        self.is_own(self.index(instant)) && !self.count(instant)
    }

    /// When the load may send again; `None` where it may at `instant`.
    #[inline]
    pub(crate) fn rest(&self, instant: u64) -> Option<u64> {
        let index = self.index(instant);
        if self.is_own(index) {
            return None;
        }
        // Of each two turns one is its own, so no rest is longer than two.
        let next = if self.is_own(index + 1) { 1 } else { 2 };
        Some(self.start + (index + next) * self.length)
    }

    /// When the turn ends in which `instant` lies.
    #[inline]
    pub(crate) fn turn_ends(&self, instant: u64) -> u64 {
        self.start + (self.index(instant) + 1) * self.length
    }

    /// Nanoseconds of `window` in which the load may send, and those that count.
    pub(super) fn share_of(&self, window: Window) -> (u64, u64) {
        let (mut own, mut counted) = (0, 0);
        let mut from = window.begin;
        while from < window.end {
            let until = self.turn_ends(from).min(window.end);
            let index = self.index(from);
            if self.is_own(index) {
                own += until - from;
                let settled = if index > 0 && self.is_own(index - 1) {
                    from
                } else {
                    from.max(self.start + index * self.length + self.settle)
                };
                counted += until.saturating_sub(settled);
            }
            from = until;
        }
        (own, counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn both(seed: u64) -> [Slices; 2] {
        let turns = Turns::new(seed);
        turns.seats().map(|seat| seat.slices(1000))
    }

    #[test]
    fn of_each_two_turns_one_belongs_to_each_load() {
        for seed in 0..20 {
            let [a, b] = both(seed);
            let mut swapped = 0;
            for pair in 0..200 {
                let own = [2 * pair, 2 * pair + 1].map(|index| a.is_own(index));
                assert_ne!(own[0], own[1]);
                swapped += u32::from(own[1]);
                for index in [2 * pair, 2 * pair + 1] {
                    assert_ne!(a.is_own(index), b.is_own(index));
                }
            }
            assert!((60..140).contains(&swapped), "{swapped} of 200");
        }
    }

    #[test]
    fn one_load_sends_at_a_time_and_a_rest_ends_with_its_next_turn() {
        let [a, b] = both(7);
        for step in 0..4000 {
            let instant = 1000 + step * MS / 4;
            assert_ne!(a.rest(instant).is_some(), b.rest(instant).is_some());
            assert!(!(a.count(instant) && b.count(instant)));
            for load in [a, b] {
                if let Some(wake) = load.rest(instant) {
                    assert!(wake > instant && wake - instant <= 40 * MS);
                    assert_eq!(load.rest(wake), None);
                    assert_eq!(load.rest(wake - 1), Some(wake));
                    assert!(!load.count(wake), "a turn begins by settling");
                }
            }
        }
    }

    #[test]
    fn the_share_of_a_window_is_what_its_instants_say() {
        let [a, b] = both(3);
        let window = Window {
            begin: 1000 + 3 * MS,
            end: 1000 + 503 * MS,
            turns: None,
        };
        for load in [a, b] {
            let (own, counted) = load.share_of(window);
            let instants = || (0..500_000).map(|us| window.begin + us * 1000);
            let may = instants().filter(|at| load.rest(*at).is_none()).count();
            let counts = instants().filter(|at| load.count(*at)).count();
            assert_eq!(own, may as u64 * 1000);
            assert_eq!(counted, counts as u64 * 1000);
        }
        let whole = a.share_of(window).0 + b.share_of(window).0;
        assert_eq!(whole, window.end - window.begin);
    }

    #[test]
    fn a_load_does_not_wait_for_one_that_has_ended() {
        let turns = Turns::new(1);
        let [first, second] = turns.seats();
        drop(Leaves(second));
        assert_eq!(first.meet(&AtomicBool::new(false)), None);
    }

    #[test]
    fn both_loads_learn_the_same_start() {
        let turns = Turns::new(1);
        let [first, second] = turns.seats();
        let quiet = AtomicBool::new(false);
        let starts = std::thread::scope(|scope| {
            let other = scope.spawn(|| second.meet(&quiet));
            [first.meet(&quiet), other.join().unwrap()]
        });
        assert!(starts[0].is_some());
        assert_eq!(starts[0], starts[1]);
    }
}
