//! What went wrong, and what the log shows of CMS's free lists.

use rungwise_model::gc;

use super::book::{Book, Longest, Mark};
use super::course::Course;
use super::spread::ms;
use crate::event::{Area, Pause};

#[derive(Debug, Default)]
pub(super) struct Troubles {
    evacuation_failed: Trouble,
    promotion_failed: Trouble,
    promotion_failed_at: Option<f64>,
    concurrent_mode_failure: Trouble,
    concurrent_mode_interrupted: Trouble,
    gc_locker: Trouble,
    out_of_memory: Trouble,
}

#[derive(Debug, Default)]
struct Trouble {
    count: u64,
    total: u64,
    first: Option<Mark>,
    longest: Longest,
}

impl Trouble {
    fn add(&mut self, mark: Mark) {
        self.count += 1;
        self.total = self.total.saturating_add(mark.duration.unwrap_or(0));
        self.first = self.first.or(Some(mark));
        self.longest.see(mark);
    }

    fn report(&self, book: &Book) -> gc::Trouble {
        gc::Trouble {
            count: self.count,
            total_ms: ms(self.total),
            first: self.first.map(|mark| mark.moment(book)),
            longest: self.longest.moment(book),
        }
    }
}

impl Troubles {
    pub(super) fn pause(&mut self, pause: &Pause, mark: Mark) {
        let seen = &pause.troubles;
        let old = pause.areas.get(Area::Old);
        if let (true, Some(used), Some(capacity @ 1..)) =
            (seen.promotion_failed, old.before, old.capacity)
        {
            let share = used as f64 / capacity as f64;
            let least = self.promotion_failed_at.map_or(share, |at| at.min(share));
            self.promotion_failed_at = Some(least);
        }
        for (seen, trouble) in [
            (seen.evacuation_failed, &mut self.evacuation_failed),
            (seen.promotion_failed, &mut self.promotion_failed),
            (
                seen.concurrent_mode_failure,
                &mut self.concurrent_mode_failure,
            ),
            (
                seen.concurrent_mode_interrupted,
                &mut self.concurrent_mode_interrupted,
            ),
            (seen.gc_locker, &mut self.gc_locker),
        ] {
            if seen {
                trouble.add(mark);
            }
        }
    }

    pub(super) fn out_of_memory(&mut self, mark: Mark) {
        self.out_of_memory.add(mark);
    }

    pub(super) fn out_of_memories(&self) -> u64 {
        self.out_of_memory.count
    }

    pub(super) fn report(&self, book: &Book) -> gc::Troubles {
        gc::Troubles {
            evacuation_failed: self.evacuation_failed.report(book),
            promotion_failed: self.promotion_failed.report(book),
            promotion_failed_at: self.promotion_failed_at,
            concurrent_mode_failure: self.concurrent_mode_failure.report(book),
            concurrent_mode_interrupted: self.concurrent_mode_interrupted.report(book),
            gc_locker: self.gc_locker.report(book),
            out_of_memory: self.out_of_memory.report(book),
        }
    }
}

/// Fragmentation of CMS's old generation.
#[derive(Debug, Default)]
pub(super) struct FreeLists {
    last: Option<Free>,
    /// The most fragmented since the last pause.
    since: Option<Free>,
    /// The same of the pauses in which room was wanting. The full collection that they end in leaves one piece.
    failed: Option<Free>,
    course: Course,
}

#[derive(Clone, Copy, Debug)]
struct Free {
    bytes: u64,
    largest: u64,
    mark: Mark,
}

impl Free {
    /// A full generation is not a fragmented one.
    fn share(self) -> Option<f64> {
        (self.bytes > 0).then(|| self.largest as f64 / self.bytes as f64)
    }

    fn in_more_pieces(self, other: Option<Self>) -> Self {
        let share = |free: Self| free.share().unwrap_or(1.0);
        other
            .filter(|other| share(*other) < share(self))
            .unwrap_or(self)
    }
}

impl FreeLists {
    pub(super) fn see(&mut self, mark: Mark, bytes: u64, largest: u64) {
        let free = Free {
            bytes,
            largest,
            mark,
        };
        self.last = Some(free);
        self.since = Some(free.in_more_pieces(self.since));
        if let Some(share) = free.share() {
            self.course.add(mark.at, share);
        }
    }

    pub(super) fn pause(&mut self, pause: &Pause) {
        let since = self.since.take();
        let troubles = &pause.troubles;
        if troubles.promotion_failed || troubles.concurrent_mode_failure {
            self.failed = since
                .map(|since| since.in_more_pieces(self.failed))
                .or(self.failed);
        }
    }

    pub(super) fn report(&self, book: &Book) -> Option<gc::Fragmentation> {
        let free = self.failed.or(self.last)?;
        Some(gc::Fragmentation {
            free_bytes: free.bytes,
            largest_bytes: free.largest,
            course: self.course.course(),
            last: free.mark.moment(book),
        })
    }
}
