//! What a worker has to do at a later time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Things to do, each at its time. The clock is read only while there are any.
#[derive(Debug)]
pub(super) struct Timers<T> {
    times: BTreeSet<(Instant, T)>,
}

#[expect(clippy::disallowed_methods, reason = "serve owns its clock")]
fn now() -> Instant {
    Instant::now()
}

impl<T: Ord + Copy> Timers<T> {
    pub(super) fn new() -> Self {
        Self {
            times: BTreeSet::new(),
        }
    }

    /// `what` is due after `delay`; the time of that, by which it can be taken back.
    pub(super) fn add(&mut self, delay: Duration, what: T) -> Option<Instant> {
        // A delay beyond the end of the clock is never over.
        let at = now().checked_add(delay)?;
        self.times.insert((at, what));
        Some(at)
    }

    /// Takes back what was to be due then.
    pub(super) fn remove(&mut self, at: Instant, what: T) {
        self.times.remove(&(at, what));
    }

    /// The time until something is due; absent where nothing is to come.
    pub(super) fn until_next(&self) -> Option<Duration> {
        let (at, _) = self.times.first()?;
        Some(at.saturating_duration_since(now()))
    }

    /// Something that is due.
    pub(super) fn next_due(&mut self) -> Option<T> {
        let (at, _) = self.times.first()?;
        if *at > now() {
            return None;
        }
        self.times.pop_first().map(|(_, what)| what)
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
        assert_eq!(timers.times.len(), 1);
    }

    #[test]
    fn what_was_taken_back_is_never_due() {
        let mut timers = Timers::new();
        let first = timers.add(Duration::ZERO, 'a').unwrap();
        timers.add(Duration::ZERO, 'b');
        timers.remove(first, 'a');
        timers.remove(first, 'c');
        assert_eq!((timers.next_due(), timers.next_due()), (Some('b'), None));
    }
}
