//! Stacks of waits that were unwound, and how much of the blocked time each of them has.
//!
//! The kernel sums all blocked time exactly, by the stack that frame pointers give. Of waits, all or so many as are affordable, it also copies the stack. When such
//! a wait has ended, its unwound stack gets its time; in the end the sums are divided in these proportions.

use std::collections::{BTreeMap, HashMap};

use super::unwind::End;

/// Stacks of waits that have not ended: as many as threads that can be blocked.
const MOST_OPEN: usize = 1 << 16;
/// Distinct stacks.
const MOST_STACKS: usize = 1 << 16;

/// Process, thread, and the numbers of its kernel and user stack.
pub(super) type Key = [u64; 4];
/// Addresses, and how they end.
type Unwound = (Box<[u64]>, End);

/// Stacks of waits.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Of waits that have not ended, by thread and time.
    open: HashMap<u64, BTreeMap<u64, Unwound>>,
    opened: usize,
    ended: HashMap<Key, BTreeMap<Unwound, u128>>,
    stacks: usize,
}

impl Waits {
    /// A thread left the CPU to wait at a time, with this stack.
    pub(super) fn began(&mut self, thread: u64, time: u64, chain: Vec<u64>, end: End) {
        if self.opened >= MOST_OPEN {
            self.open.clear();
            self.opened = 0;
        }
        let waits = self.open.entry(thread).or_default();
        self.opened += usize::from(waits.insert(time, (chain.into(), end)).is_none());
    }

    /// A wait of a thread that began at a time took so many ns; `weight` is how many waits it stands for.
    pub(super) fn ended(&mut self, key: Key, began: u64, ns: u64, weight: f64) {
        let Some(waits) = self.open.get_mut(&key[1]) else {
            return;
        };
        let Some(at) = waits
            .range(began..=began.saturating_add(ns))
            .next()
            .map(|(at, _)| *at)
        else {
            return;
        };
        // A thread waits once at a time: what is before has ended too.
        let mut later = waits.split_off(&at);
        let Some((_, stack)) = later.pop_first() else {
            return;
        };
        self.opened = self.opened.saturating_sub(waits.len() + 1);
        if later.is_empty() {
            self.open.remove(&key[1]);
        } else {
            *waits = later;
        }
        let ns = (ns as f64 * weight) as u128;
        let stacks = self.ended.entry(key).or_default();
        if let Some(sum) = stacks.get_mut(&stack) {
            *sum += ns;
        } else if self.stacks < MOST_STACKS {
            self.stacks += 1;
            stacks.insert(stack, ns);
        }
    }

    /// Divides a sum among its stacks; nothing if none of its waits has one.
    pub(super) fn divide(&self, key: &Key, ns: u64) -> Vec<(&[u64], End, u64)> {
        let Some(stacks) = self.ended.get(key) else {
            return Vec::new();
        };
        let all: u128 = stacks.values().sum();
        let mut parts = Vec::new();
        // Of what is left, so that the parts are the sum to the nanosecond.
        let (mut left, mut left_of_all) = (ns, all);
        for ((chain, end), part) in stacks {
            let share = (u128::from(left) * part)
                .checked_div(left_of_all)
                .unwrap_or(0) as u64;
            parts.push((&**chain, *end, share));
            left -= share;
            left_of_all -= part;
        }
        if let Some((_, _, last)) = parts.last_mut() {
            *last += left;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [7, 8, 1, 2];

    #[test]
    fn a_sum_is_divided_by_the_time_of_its_stacks() {
        let mut waits = Waits::default();
        for (began, ns, address) in [(100, 30, 1), (200, 10, 2), (300, 20, 1)] {
            waits.began(8, began + 5, vec![address], End::Whole);
            waits.ended(KEY, began, ns, 1.0);
        }
        let parts = waits.divide(&KEY, 601);
        assert_eq!(
            parts,
            [(&[1][..], End::Whole, 500), (&[2][..], End::Whole, 101)]
        );
        assert_eq!(waits.divide(&[7, 8, 1, 3], 5), []);
        assert_eq!((waits.opened, waits.open.len()), (0, 0));
    }

    #[test]
    fn a_wait_without_a_stack_takes_that_of_no_other() {
        let mut waits = Waits::default();
        waits.began(8, 100, vec![1], End::Whole);
        waits.began(8, 300, vec![2], End::Lost);
        waits.ended(KEY, 150, 50, 1.0);
        waits.ended([7, 9, 1, 2], 290, 50, 1.0);
        assert_eq!(waits.divide(&KEY, 5), []);
        waits.ended(KEY, 290, 50, 2.0);
        assert_eq!(waits.divide(&KEY, 5), [(&[2][..], End::Lost, 5)]);
        assert_eq!((waits.opened, waits.open.len()), (0, 0));
    }

    #[test]
    fn stacks_whose_waits_never_end_are_bounded() {
        let mut waits = Waits::default();
        for time in 0..MOST_OPEN as u64 + 5 {
            waits.began(8, time, vec![1], End::Whole);
        }
        assert_eq!(waits.opened, 5);
    }
}
