//! Blocks of `PrintHeapAtGC`: `{Heap before GC invocations=23680 (full 19):` and what follows, until `}`.
//!
//! They hold what the pause itself does not print: Eden and the survivors, the old generation, metaspace. Of Eden and
//! the survivors only the percentage is printed; what is used lies between the first two addresses.

use super::cursor::Cursor;
use super::flow::Step;
use super::{Listing, Preunified};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Area, Areas, Change, Collector, Event, Fact};

/// Which of the two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// `{Heap before GC`.
    Before,
    /// `Heap after GC`.
    After,
}

/// Rows with `total` and `used`, and the collector that alone has them.
const GENERATIONS: &[(&str, Area, Option<Collector>)] = &[
    ("par new generation", Area::Young, None),
    ("def new generation", Area::Young, None),
    ("adaptive-size par new generation", Area::Young, None),
    ("PSYoungGen", Area::Young, Some(Collector::Parallel)),
    (
        "concurrent mark-sweep generation",
        Area::Old,
        Some(Collector::Cms),
    ),
    (
        "concurrent-mark-sweep perm gen",
        Area::Metaspace,
        Some(Collector::Cms),
    ),
    ("tenured generation", Area::Old, Some(Collector::Serial)),
    ("compacting perm gen", Area::Metaspace, None),
    ("PSOldGen", Area::Old, Some(Collector::Parallel)),
    ("ParOldGen", Area::Old, Some(Collector::Parallel)),
    ("PSPermGen", Area::Metaspace, Some(Collector::Parallel)),
    ("garbage-first heap", Area::Heap, Some(Collector::G1)),
];

/// Rows that say nothing more.
const OTHERS: &[&str] = &[
    "to space",
    "data space",
    "object space",
    "the space",
    "ro space",
    "rw space",
    "space ",
    "No shared spaces configured.",
];

/// Names of the rows with `total` and `used`.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    GENERATIONS.iter().map(|(name, ..)| *name)
}

impl Preunified {
    /// `GC invocations=1 (full 0):` behind `{Heap before` or `Heap after`. JDK 6's G1 writes `gc`.
    pub(super) fn heap_block(
        &mut self,
        context: &mut Context<'_>,
        cursor: &mut Cursor<'_>,
        block: Block,
    ) -> Step {
        if !cursor.eat(b"GC invocations=") && !cursor.eat(b"gc invocations=") {
            return Step::Strange;
        }
        cursor.jump(usize::MAX);
        if block == Block::Before {
            self.tell_held(context);
            let mut next = self.next.take().unwrap_or_else(|| self.draft());
            next.heap_before = Areas::default();
            next.waits_for_heap = true;
            self.next = Some(next);
        }
        self.block = Some(block);
        Step::Gave
    }

    /// `}`.
    pub(super) fn heap_block_ends(&mut self) -> Step {
        if self.block.take() == Some(Block::After)
            && let Some(held) = &mut self.held
        {
            held.waits_for_heap = false;
        }
        Step::Passed
    }

    /// A row of a block, or of the heap that the JVM prints at its end. Nothing if it is none.
    pub(super) fn heap_row(&mut self, context: &mut Context<'_>, rest: &[u8]) -> Option<Read> {
        let mut cursor = Cursor::new(rest);
        if cursor.eat(b"eden space ") {
            let (used, capacity) = between(&mut cursor)?;
            return Some(self.enter_row(Area::Eden, used, Some(capacity)));
        }
        if cursor.eat(b"from space ") {
            let (used, capacity) = between(&mut cursor)?;
            return Some(self.enter_row(Area::Survivor, used, Some(capacity)));
        }
        if cursor.eat(b"Metaspace ") {
            return self.metaspace_row(&mut cursor);
        }
        if cursor.eat(b"to   space ") || cursor.eat(b"class space ") {
            return Some(Read::Ignored);
        }
        if let Some((name, area, collector)) = GENERATIONS
            .iter()
            .find(|(name, ..)| name.as_bytes()[0] == rest[0] && cursor.eat(name.as_bytes()))
        {
            cursor.skip_spaces();
            cursor.eat(b"total ").then_some(())?;
            let capacity = cursor.size()?;
            cursor.eat(b", used ").then_some(())?;
            let used = cursor.size()?;
            if cursor.eat(b" [") {
                self.word_of_heap(&mut cursor);
            }
            self.generation_of(context, name, *collector);
            return Some(self.enter_row(*area, used, Some(capacity)));
        }
        if cursor.eat(b"region size ") {
            let (region, young, survivor) = Self::young_regions(&mut cursor)?;
            self.region_size(context, region);
            for (area, change) in [(Area::Young, young), (Area::Survivor, survivor)] {
                if let Some(used) = change.before {
                    self.enter_row(area, used, None);
                }
            }
            return Some(Read::Understood);
        }
        if let Some(after) = rest.strip_prefix(b"Regions: ") {
            // `Regions: 3991 x 1024K` of Shenandoah.
            let mut cursor = Cursor::new(after);
            cursor.integer()?;
            cursor.eat(b" x ").then_some(())?;
            let region = cursor.size()?;
            self.region_size(context, region);
            self.collector(context, Collector::Shenandoah);
            return Some(Read::Understood);
        }
        if let Some(after) = rest.strip_prefix(b"GC threads: ") {
            return Self::workers(context, &mut Cursor::new(after));
        }
        if rest == b"Shenandoah Heap" || rest == b"GC STATISTICS:" {
            self.collector(context, Collector::Shenandoah);
            self.listing = Some(Listing::Shenandoah);
            return Some(Read::Ignored);
        }
        OTHERS
            .iter()
            .any(|other| rest.starts_with(other.as_bytes()))
            .then_some(Read::Ignored)
    }

    /// `used 44934K, capacity 46232K, committed 46652K, reserved 1091584K`; early builds of 8 print `total` first.
    fn metaspace_row(&mut self, cursor: &mut Cursor<'_>) -> Option<Read> {
        cursor.skip_spaces();
        if cursor.eat(b"total ") {
            cursor.size()?;
            cursor.eat(b", ").then_some(())?;
        }
        cursor.eat(b"used ").then_some(())?;
        let used = cursor.size()?;
        if cursor.eat(b", capacity ") {
            cursor.size()?;
        }
        let committed = cursor.eat(b", committed ").then(|| cursor.size()).flatten();
        Some(self.enter_row(Area::Metaspace, used, committed))
    }

    /// `2 parallel, 1 concurrent`, of Shenandoah.
    fn workers(context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Option<Read> {
        let parallel = cursor.integer()?;
        cursor.eat(b" parallel, ").then_some(())?;
        let concurrent = cursor.integer()?;
        context.tell(Event::Fact(Fact::ParallelWorkers(parallel)));
        context.tell(Event::Fact(Fact::ConcurrentWorkers(concurrent)));
        Some(Read::Understood)
    }

    fn enter_row(&mut self, area: Area, used: u64, capacity: Option<u64>) -> Read {
        match (self.block, &mut self.next, &mut self.held) {
            (Some(Block::Before), Some(next), _) => {
                *next.heap_before.at(area) = Change {
                    before: Some(used),
                    after: None,
                    capacity,
                };
                Read::Understood
            }
            (Some(Block::After), _, Some(held)) => {
                let change = held.pause.areas.at(area);
                change.after = change.after.or(Some(used));
                change.capacity = change.capacity.or(capacity);
                Read::Understood
            }
            _ => Read::Ignored,
        }
    }

    /// Addresses of 8 digits are those of a 32-bit JVM.
    fn word_of_heap(&mut self, cursor: &mut Cursor<'_>) {
        match cursor.address() {
            Some((_, 8)) => self.word = 4,
            Some((_, 16)) => self.word = 8,
            _ => {}
        }
    }
}

/// `1600000K, 100% used [0x00000003ef600000, 0x0000000451080000, ...`: bytes used, and the capacity.
fn between(cursor: &mut Cursor<'_>) -> Option<(u64, u64)> {
    let capacity = cursor.size()?;
    cursor.eat(b",").then_some(())?;
    cursor.skip_spaces();
    cursor.integer()?;
    cursor.eat(b"% used [").then_some(())?;
    let (bottom, _) = cursor.address()?;
    cursor.eat(b",").then_some(())?;
    cursor.skip_spaces();
    let (top, _) = cursor.address()?;
    Some((top.checked_sub(bottom)?, capacity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_eden_holds_lies_between_its_addresses() {
        let mut row = Cursor::new(
            b"1048576K,  76% used [0x0000000640000000, 0x000000067140a1f0, 0x0000000680000000)",
        );
        assert_eq!(between(&mut row), Some((0x3140_a1f0, 1 << 30)));
        let mut without_blanks = Cursor::new(b"58240K, 99% used [2d5a0000,30e7e030,30e80000)");
        assert_eq!(
            between(&mut without_blanks),
            Some((0x038d_e030, 58_240 << 10))
        );
    }
}
