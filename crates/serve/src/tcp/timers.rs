//! What a worker has to do at a later time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Things to do, each at its time. The clock is read only while there are any.
#[derive(Debug)]
pub(super) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Instant, T)>>,
}

#[expect(clippy::disallowed_methods, reason = "serve owns its clock")]
fn now() -> Instant {
    Instant::now()
}

impl<T: Ord> Timers<T> {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
        }
    }

    /// `what` is due after `delay`.
    pub(super) fn add(&mut self, delay: Duration, what: T) {
        // A delay beyond the end of the clock is never over.
        if let Some(at) = now().checked_add(delay) {
            self.heap.push(Reverse((at, what)));
        }
    }

    /// The time until something is due; absent where nothing is to come.
    pub(super) fn until_next(&self) -> Option<Duration> {
        let Reverse((at, _)) = self.heap.peek()?;
        Some(at.saturating_duration_since(now()))
    }

    /// Something that is due.
    pub(super) fn next_due(&mut self) -> Option<T> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now() {
            return None;
        }
        self.heap.pop().map(|Reverse((_, what))| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_due_in_the_order_of_their_times() {
        let mut timers = Timers::new();
        assert_eq!(timers.until_next(), None);
        timers.add(Duration::from_hours(1), 'c');
        timers.add(Duration::ZERO, 'a');
        timers.add(Duration::from_nanos(1), 'b');
        timers.add(Duration::MAX, 'd');
        assert_eq!(timers.until_next(), Some(Duration::ZERO));
        let mut due = Vec::new();
        while due.len() < 2 {
            due.extend(timers.next_due());
        }
        assert_eq!((due, timers.next_due()), (vec!['a', 'b'], None));
        assert!(timers.until_next().unwrap() > Duration::from_mins(59));
    }
}
