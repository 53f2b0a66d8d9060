//! Age tables: how much survives how many collections, and whether it fits into the survivor space.

use rungwise_model::gc;

use super::book::{Book, Mark};
use super::heap::Mean;
use crate::event::{Ages, Kind, Pause};

/// Ages at most: HotSpot has four bits for them; JDK 5 and 6 had five.
const AGES: usize = 32;

#[derive(Debug, Default)]
pub(super) struct AgeTables {
    count: u64,
    last: Mark,
    sums: Vec<f64>,
    /// By age: bytes of a table, and what the next one had of them at the next age.
    lived: Vec<(f64, f64)>,
    /// The last table, unless a full collection came since, which moves the ages' bytes elsewhere.
    before: Vec<u64>,
    desired: Mean,
    threshold: Mean,
    max: Option<u64>,
    lowered: u64,
    overflows: u64,
    with_desired: u64,
    with_threshold: u64,
}

impl AgeTables {
    pub(super) fn pause(&mut self, pause: &Pause, mark: Mark) {
        if pause.kind == Kind::Full {
            self.before.clear();
        }
        if let Some(ages) = &pause.ages {
            self.table(ages, mark);
        }
    }

    pub(super) fn table(&mut self, ages: &Ages, mark: Mark) {
        self.count += 1;
        self.last = mark;
        let bytes = &ages.bytes[..ages.bytes.len().min(AGES)];
        if self.sums.len() < bytes.len() {
            self.sums.resize(bytes.len(), 0.0);
        }
        for (sum, bytes) in self.sums.iter_mut().zip(bytes) {
            *sum += *bytes as f64;
        }
        // What is not promoted at its age: objects of the threshold's age leave the table, and did not die.
        let stays = ages.threshold.map_or(AGES, |threshold| threshold as usize);
        for (age, was) in self.before.iter().enumerate() {
            let Some(is) = bytes.get(age + 1) else { break };
            if self.lived.len() <= age {
                self.lived.resize(age + 1, (0.0, 0.0));
            }
            // More than there was: the last table was of other objects.
            if is <= was {
                self.lived[age].0 += *was as f64;
                self.lived[age].1 += *is as f64;
            }
        }
        self.before.clear();
        self.before
            .extend_from_slice(&bytes[..bytes.len().min(stays.saturating_sub(1))]);
        if let Some(desired) = ages.desired {
            let sum: u64 = ages.bytes.iter().fold(0, |sum, b| sum.saturating_add(*b));
            self.desired.add(desired as f64);
            self.with_desired += 1;
            self.overflows += u64::from(sum > desired);
        }
        if let Some(threshold) = ages.threshold {
            self.threshold.add(f64::from(threshold));
            self.with_threshold += 1;
            self.lowered += u64::from(ages.max.is_some_and(|max| u64::from(threshold) < max));
        }
        self.max = ages.max.or(self.max);
    }

    pub(super) fn report(&self, book: &Book) -> Option<gc::AgeTable> {
        let count = self.count as f64;
        let share = |(was, is): &(f64, f64)| (*was > 0.0).then(|| is / was);
        (self.count > 0).then(|| gc::AgeTable {
            count: self.count,
            last: self.last.moment(book),
            mean_bytes: self.sums.iter().map(|sum| sum / count).collect(),
            survival: self.lived.iter().map(share).collect(),
            desired_bytes: self.desired.mean(),
            threshold: self.threshold.mean(),
            threshold_max: self.max,
            lowered: self.lowered,
            overflows: self.overflows,
            with_desired: self.with_desired,
            with_threshold: self.with_threshold,
        })
    }
}
