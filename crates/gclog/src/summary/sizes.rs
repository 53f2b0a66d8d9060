//! Sizes that the JVM changes as it runs: the heap's capacity, and survivor spaces that are full.

use rungwise_model::gc;

use super::book::{Book, Mark};
use super::clock::SECOND;
use crate::event::{Area, Change, Collector, Kind, Pause};

/// Less is no change of the heap: the young generation of Parallel is printed without one of its survivor spaces, whose size
/// moves with each collection.
const STEP: f64 = 0.05;
/// A survivor space with less room than this takes no other object of any size.
const FULL: f64 = 0.97;
/// Fewer young collections tell of no habit.
const FEW: u64 = 3;
/// What comes later is not the start of a service any more: it has loaded its classes by then. A guess; in the reference
/// logs the collections for metaspace that a start brings end within two minutes.
pub(super) const STARTED: i64 = 300 * SECOND;

#[derive(Debug, Default)]
pub(super) struct Sizes {
    capacity: Option<u64>,
    count: u64,
    late: u64,
    last: Option<Mark>,
    full: u64,
    measured: u64,
}

impl Sizes {
    /// `since` is how long the run has lasted.
    pub(super) fn pause(
        &mut self,
        pause: &Pause,
        mark: Mark,
        since: Option<i64>,
        collector: Option<Collector>,
    ) {
        let capacity = pause.areas.get(watched(collector)).capacity;
        if let Some(capacity) = capacity.filter(|bytes| *bytes > 0) {
            self.capacity(capacity, mark, since);
        }
        // G1 draws the size of its survivors anew for each collection, and fills it by intent.
        if collector == Some(Collector::G1) {
            return;
        }
        let survivor = pause.areas.get(Area::Survivor);
        if let (
            Kind::Young,
            Change {
                after: Some(after),
                capacity: Some(room @ 1..),
                ..
            },
        ) = (pause.kind, survivor)
        {
            self.measured += 1;
            self.full += u64::from(after as f64 >= FULL * room as f64);
        }
    }

    fn capacity(&mut self, capacity: u64, mark: Mark, since: Option<i64>) {
        let Some(was) = self.capacity else {
            self.capacity = Some(capacity);
            return;
        };
        if (capacity as f64 / was as f64 - 1.0).abs() < STEP {
            return;
        }
        self.capacity = Some(capacity);
        self.count += 1;
        self.late += u64::from(since.is_some_and(|since| since > STARTED));
        self.last = Some(mark);
    }

    pub(super) fn resizes(&self, book: &Book) -> Option<gc::Resizes> {
        self.capacity.map(|_| gc::Resizes {
            count: self.count,
            late: self.late,
            last: self.last.map(|mark| mark.moment(book)),
        })
    }

    pub(super) fn survivors_full(&self) -> Option<f64> {
        (self.measured >= FEW).then(|| self.full as f64 / self.measured as f64)
    }
}

/// Parallel moves the sizes within its young generation all the time; its old one tells of the heap.
fn watched(collector: Option<Collector>) -> Area {
    match collector {
        Some(Collector::Parallel) => Area::Old,
        _ => Area::Heap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(capacities: &[u64]) -> gc::Resizes {
        let mut sizes = Sizes::default();
        for (minute, capacity) in (1..).zip(capacities) {
            sizes.capacity(*capacity, Mark::default(), Some(minute * STARTED / 5));
        }
        sizes.resizes(&Book::default()).unwrap()
    }

    #[test]
    fn small_changes_are_none_and_late_ones_are_distinguished() {
        let resizes = seen(&[100, 104, 120, 120, 120, 120, 60, 61]);
        assert_eq!((resizes.count, resizes.late), (2, 1));
        assert!(resizes.last.is_some());
        assert_eq!(seen(&[100, 101, 102, 103, 104]), gc::Resizes::default());
        assert_eq!(Sizes::default().resizes(&Book::default()), None);
    }

    #[test]
    fn the_young_generation_of_parallel_is_no_measure_of_its_heap() {
        assert_eq!(watched(Some(Collector::Parallel)), Area::Old);
        assert_eq!(watched(Some(Collector::G1)), Area::Heap);
        assert_eq!(watched(None), Area::Heap);
    }
}
