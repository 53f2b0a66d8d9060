//! Heap: its parts before and after collections, what the application allocated, what was promoted.
//!
//! Allocation is what the heap held before a collection less what it held after the last one. With CMS, which frees old
//! objects at any time, the young generation is taken instead, so objects that are born old are not in it. A collector
//! that frees while the application allocates tells nothing of the time of its cycles: that time is left out of the mean.
//! What is counted is room: with G1 the unused end of a humongous object's last region is in it, with ZGC that of a page.
//! Promotion is what the log tells, or the growth of the old generation, or what left the young generation and not the heap.

use std::collections::VecDeque;

use rungwise_model::gc;

use super::book::{Book, Mark};
use super::clock::{SECOND, seconds};
use super::course::Course;
use super::old::{Named, is_of_two};
use super::spread::Distribution;
use crate::event::{AREAS, Area, Areas, Change, Collector, Concurrent, Kind, Pause};

/// A span over which a peak is taken. JMC's rules judge the same length.
const SPAN: i64 = 10 * SECOND;
/// Collections closer than this are taken together for it, so that a window is a dozen sums whatever their number.
const STEP: i64 = SECOND;
/// Stamps are rounded to a millisecond, and the start of a unified pause is its end less its length: two pauses that
/// follow each other may seem to overlap by this much.
const SLACK: i64 = SECOND / 500;

const WORDS: [(Area, &str); AREAS.len()] = [
    (Area::Heap, "heap"),
    (Area::Young, "young"),
    (Area::Eden, "eden"),
    (Area::Survivor, "survivor"),
    (Area::Old, "old"),
    (Area::Humongous, "humongous"),
    (Area::Metaspace, "metaspace"),
];

/// From when to when a collection lasted, on the clock of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) began: Option<i64>,
    pub(super) ended: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Heap {
    parts: [Part; AREAS.len()],
    eden_freed: Mean,
    survivors: Mean,
    humongous: Option<(f64, Mark)>,
    /// Sizes of humongous objects in the heap, and of those whose allocation asked for something.
    humongous_sizes: [Sizes; 2],
    allocation: Allocation,
    promotion: Promotion,
}

#[derive(Debug, Default)]
struct Part {
    before: Course,
    after: Course,
    peak: u64,
    last: Option<u64>,
    capacity: Option<u64>,
    largest: Option<u64>,
    mark: Option<Mark>,
}

#[derive(Debug, Default)]
struct Sizes {
    bytes: Distribution,
    last: Mark,
}

#[derive(Debug, Default)]
pub(super) struct Mean {
    count: u64,
    sum: f64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

impl Heap {
    /// `first` says that the run began with this pause at the latest, and the heap empty.
    pub(super) fn pause(
        &mut self,
        pause: &Pause,
        mark: Mark,
        window: Window,
        collector: Option<Collector>,
        whole: bool,
    ) {
        let mut areas = pause.areas;
        let young = young_of(&areas);
        if pause.kind == Kind::Full && young.after.is_none() && is_of_two(collector) {
            // Before JDK 9 Serial and CMS tell the heap and the old generation; what a young collection left before is past.
            // How full the young one was says nothing of young collections.
            let (heap, old) = (areas.get(Area::Heap).after, areas.get(Area::Old).after);
            areas.at(Area::Young).after =
                heap.zip(old).and_then(|(heap, old)| heap.checked_sub(old));
        }
        self.areas(&areas, mark, window);
        if let (Kind::Young | Kind::Mixed, Some(before), Some(after)) =
            (pause.kind, young.before, young.after)
        {
            self.eden_freed.add(before.saturating_sub(after) as f64);
            self.survivors.add(after as f64);
        }
        let heap = pause.areas.get(Area::Heap);
        let humongous = pause.areas.get(Area::Humongous).before;
        if let (Some(bytes), Some(capacity @ 1..)) = (humongous, heap.capacity.or(heap.before)) {
            let share = bytes as f64 / capacity as f64;
            if self.humongous.is_none_or(|(most, _)| most < share) {
                self.humongous = Some((share, mark));
            }
        }
        self.allocation.pause(pause, mark, window, collector, whole);
        self.promotion.pause(pause, mark, window, whole);
    }

    pub(super) fn humongous_object(&mut self, line: u64, bytes: u64, asked: bool) {
        let sizes = &mut self.humongous_sizes[usize::from(asked)];
        sizes.bytes.add(bytes);
        sizes.last = Mark {
            line: Some(line),
            ..Mark::default()
        };
    }

    /// Those that were asked for say what brings collections; of objects that stay each collection tells again.
    fn humongous_sizes(&self, book: &Book) -> Option<gc::Sizes> {
        let mut recorded = self.humongous_sizes.iter().rev();
        let sizes = recorded.find(|sizes| sizes.bytes.count() > 0)?;
        Some(gc::Sizes {
            count: sizes.bytes.count(),
            p50_bytes: sizes.bytes.quantile(0.5),
            p90_bytes: sizes.bytes.quantile(0.9),
            largest_bytes: sizes.bytes.quantile(1.0),
            last: sizes.last.moment(book),
        })
    }

    pub(super) fn concurrent(
        &mut self,
        concurrent: &Concurrent,
        name: Named,
        mark: Mark,
        window: Window,
        whole: bool,
    ) {
        self.areas(&concurrent.areas, mark, window);
        if let Some(bytes) = concurrent.promoted {
            self.promotion.concurrent(bytes, mark, window, whole);
        }
        let heap = concurrent.areas.get(Area::Heap);
        if heap.after.is_none() && name.copies() {
            // Shenandoah tells the heap next when it has freed what it copied.
            self.allocation.level = None;
        }
        // A whole cycle frees as well, and an evacuation copies.
        let only_grows = !concurrent.cycle && name.reclaims_nothing();
        let meanwhile = Meanwhile {
            only_grows,
            allocated: concurrent.allocated,
        };
        self.allocation
            .concurrent(heap, mark, window, meanwhile, whole);
    }

    fn areas(&mut self, areas: &Areas, mark: Mark, window: Window) {
        for (part, area) in self.parts.iter_mut().zip(AREAS) {
            let change = if area == Area::Young {
                young_of(areas)
            } else {
                areas.get(area)
            };
            part.see(change, mark, window);
        }
    }

    /// Largest capacity of an area that was seen.
    pub(super) fn largest(&self, area: Area) -> Option<u64> {
        self.parts[area as usize].largest
    }

    pub(super) fn allocation(&self, book: &Book) -> Option<gc::Rate> {
        self.allocation.rating.report(book)
    }

    pub(super) fn promotion(&self, book: &Book) -> Option<gc::Promotion> {
        self.promotion.report(book)
    }

    /// Bytes allocated and promoted, each with the seconds of which that is known.
    pub(super) fn sums(&self) -> [(u64, f64); 2] {
        [&self.allocation.rating, &self.promotion.rating].map(Rating::sum)
    }

    /// `began` and `ended` are those of the run, seconds.
    pub(super) fn report(&self, book: &Book, run: Option<(f64, f64)>) -> gc::Heap {
        let parts = WORDS.iter().zip(&self.parts);
        let metaspace = &self.parts[Area::Metaspace as usize].after;
        gc::Heap {
            parts: parts
                .filter_map(|((_, word), part)| Some(((*word).to_owned(), part.report(book)?)))
                .collect(),
            eden_freed_bytes: self.eden_freed.mean(),
            survivors_bytes: self.survivors.mean(),
            humongous_share: self.humongous.map(|(share, _)| share),
            humongous: self.humongous.map(|(_, mark)| mark.moment(book)),
            humongous_sizes: self.humongous_sizes(book),
            metaspace_bytes_per_hour: run.and_then(|(began, ended)| {
                super::slope::over_time(&metaspace.course(), f64::midpoint(began, ended))
                    .map(super::old::per_hour)
            }),
        }
    }
}

impl Part {
    fn see(&mut self, change: Change, mark: Mark, window: Window) {
        if let Some(before) = change.before {
            self.before.add(window.began, before as f64);
            self.peak = self.peak.max(before);
        }
        if let Some(after) = change.after {
            self.after.add(window.ended, after as f64);
            self.peak = self.peak.max(after);
            self.last = Some(after);
            self.mark = Some(mark);
        }
        self.capacity = change.capacity.or(self.capacity);
        self.largest = self.largest.max(change.capacity);
    }

    fn report(&self, book: &Book) -> Option<gc::Part> {
        let mark = self.mark?;
        Some(gc::Part {
            before: self.before.course(),
            after: self.after.course(),
            peak_bytes: self.peak,
            last_bytes: self.last,
            capacity_bytes: self.capacity,
            largest_capacity_bytes: self.largest,
            last: mark.moment(book),
        })
    }
}

/// Bytes over the time of which they are known.
#[derive(Debug, Default)]
struct Rating {
    bytes: u64,
    known: i64,
    peak: Peak,
    first: Option<Mark>,
    last: Option<Mark>,
    course: Course,
}

impl Rating {
    /// So many bytes in so many nanoseconds up to this collection.
    fn add(&mut self, bytes: u64, ns: i64, mark: Mark) {
        let ns = ns.max(0);
        self.bytes = self.bytes.saturating_add(bytes);
        self.known = self.known.saturating_add(ns);
        self.first = self.first.or(Some(mark));
        self.last = Some(mark);
        if ns > 0 {
            let lasted = seconds(ns);
            self.course
                .add_weighted(mark.at, bytes as f64 / lasted, lasted);
        }
        self.peak.add(bytes, ns, mark);
    }

    /// Nothing where no time is known.
    fn sum(&self) -> (u64, f64) {
        if self.known > 0 {
            (self.bytes, seconds(self.known))
        } else {
            (0, 0.0)
        }
    }

    fn report(&self, book: &Book) -> Option<gc::Rate> {
        let mut ends: Vec<_> = [self.first?, self.last?]
            .iter()
            .map(|mark| mark.moment(book))
            .collect();
        ends.dedup();
        if self.known <= 0 {
            return None;
        }
        let mean = self.bytes as f64 / seconds(self.known);
        // All of the known time is such a span too.
        let whole = self.last.filter(|_| self.known >= SPAN);
        let peak = match self.peak.most {
            Some((rate, mark)) if rate >= mean => Some((rate, mark)),
            _ => whole.map(|mark| (mean, mark)),
        };
        Some(gc::Rate {
            bytes: self.bytes,
            known_s: seconds(self.known),
            bytes_per_s: mean,
            peak_bytes_per_s: peak.map(|(rate, _)| rate),
            peak: peak.map(|(_, mark)| mark.moment(book)),
            ends,
            course: self.course.course(),
        })
    }
}

/// The highest mean over [`SPAN`] of known time; what lies between, of which nothing is known, is left out. A rate is the
/// same all the way from one collection to the next, so a window may end within.
#[derive(Debug, Default)]
struct Peak {
    /// The last known time that holds a window, in slots of at least [`STEP`].
    slots: VecDeque<Slot>,
    most: Option<(f64, Mark)>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    bytes: f64,
    ns: i64,
}

impl Peak {
    fn add(&mut self, bytes: u64, ns: i64, mark: Mark) {
        let bytes = bytes as f64;
        match self.slots.back_mut() {
            Some(last) if last.ns < STEP => {
                last.bytes += bytes;
                last.ns = last.ns.saturating_add(ns);
            }
            _ => self.slots.push_back(Slot { bytes, ns }),
        }
        let mut known = self
            .slots
            .iter()
            .fold(0_i64, |known, slot| known.saturating_add(slot.ns));
        if known < SPAN {
            return;
        }
        self.see(window(self.slots.iter().rev()), mark);
        self.see(window(self.slots.iter()), mark);
        while let Some(oldest) = self.slots.front()
            && known - oldest.ns >= SPAN
        {
            known -= oldest.ns;
            self.slots.pop_front();
            self.see(window(self.slots.iter()), mark);
        }
    }

    fn see(&mut self, rate: f64, mark: Mark) {
        if self.most.is_none_or(|(most, _)| most < rate) {
            self.most = Some((rate, mark));
        }
    }
}

/// Bytes per second over the first [`SPAN`] of these.
fn window<'a>(slots: impl Iterator<Item = &'a Slot>) -> f64 {
    let (mut bytes, mut left) = (0.0, SPAN);
    for slot in slots {
        let part = slot.ns.min(left);
        let share = if part < slot.ns {
            part as f64 / slot.ns as f64
        } else {
            1.0
        };
        bytes += slot.bytes * share;
        left -= part;
        if left == 0 {
            break;
        }
    }
    bytes / seconds(SPAN)
}

#[derive(Debug, Default)]
struct Allocation {
    level: Option<Level>,
    rating: Rating,
    /// A pause was seen: the heap is no longer as the JVM made it.
    begun: bool,
    /// So was a level.
    settled: bool,
}

/// What is known of a time in which the collector works beside the application.
#[derive(Clone, Copy, Debug)]
struct Meanwhile {
    /// Whatever is more afterwards the application allocated.
    only_grows: bool,
    /// So much it allocated, as the log itself says.
    allocated: Option<u64>,
}

/// What was in use when the last collection ended.
#[derive(Clone, Copy, Debug)]
struct Level {
    of: Area,
    bytes: u64,
    began: Option<i64>,
    at: Option<i64>,
}

impl Allocation {
    fn pause(
        &mut self,
        pause: &Pause,
        mark: Mark,
        window: Window,
        collector: Option<Collector>,
        whole: bool,
    ) {
        let first = !std::mem::replace(&mut self.begun, true);
        let Some((of, before, after)) = self.figure(pause, collector) else {
            if pause.kind == Kind::Full && !pause.nested {
                // It emptied what is being watched, and does not say how far. Of a nested one the outer collection says it.
                self.level = None;
            }
            return;
        };
        let overlaps = self.overlaps(window);
        let since = match self.level {
            Some(level) if level.of == of => Some((level.bytes, level.at)),
            // Uptime zero, and nothing in the heap yet.
            None if first && whole => Some((0, Some(0))),
            _ => None,
        };
        if !overlaps {
            self.count(since, before, window.ended, mark);
        }
        self.settle(of, after, window);
    }

    fn concurrent(
        &mut self,
        heap: Change,
        mark: Mark,
        window: Window,
        meanwhile: Meanwhile,
        whole: bool,
    ) {
        let (Some(before), Some(after)) = (heap.before, heap.after) else {
            return;
        };
        if self.level.is_some_and(|level| level.of != Area::Heap) {
            return;
        }
        if !self.overlaps(window) {
            let since = match self.level {
                Some(level) => Some((level.bytes, level.at)),
                None => (whole && !self.settled).then_some((0, Some(0))),
            };
            self.count(since, before, window.began, mark);
            let grown = after.checked_sub(before).filter(|_| meanwhile.only_grows);
            if let (Some(bytes), Some(began), Some(ended)) =
                (meanwhile.allocated.or(grown), window.began, window.ended)
            {
                self.rating.add(bytes, ended - began, mark);
            }
        }
        self.settle(Area::Heap, after, window);
    }

    /// Part that is watched, and what was in it before and after.
    fn figure(&self, pause: &Pause, collector: Option<Collector>) -> Option<(Area, u64, u64)> {
        let sizes = |area| {
            let change = pause.areas.get(area);
            Some((area, change.before?, change.after?))
        };
        if collector == Some(Collector::Cms) {
            let watched = self.level.is_some_and(|level| level.of == Area::Young);
            let young = young_of_cms(pause).map(|(before, after)| (Area::Young, before, after));
            young.or_else(|| sizes(Area::Heap).filter(|_| !watched))
        } else {
            sizes(Area::Heap)
        }
    }

    /// It began before the last one ended: it lies within that one, or that one within it; or the clock went back.
    fn overlaps(&self, window: Window) -> bool {
        let last = self.level.and_then(|level| level.at);
        matches!((last, window.began), (Some(last), Some(began)) if began + SLACK < last)
    }

    /// It ended before the last one began. One of the two stamps is wrong, and nobody knows which.
    fn went_back(&self, window: Window) -> bool {
        let last = self.level.and_then(|level| level.began);
        matches!((last, window.ended), (Some(last), Some(ended)) if ended + SLACK < last)
    }

    fn count(&mut self, since: Option<(u64, Option<i64>)>, now: u64, at: Option<i64>, mark: Mark) {
        let known = since.and_then(|(bytes, from)| Some((now.checked_sub(bytes)?, at? - from?)));
        // Nothing where there is less than before: somebody freed meanwhile.
        if let Some((bytes, ns)) = known {
            self.rating.add(bytes, ns, mark);
        }
    }

    fn settle(&mut self, of: Area, bytes: u64, window: Window) {
        let last = self.level.and_then(|level| level.at);
        let older = matches!((last, window.ended), (Some(last), Some(ended)) if ended < last);
        let went_back = self.went_back(window);
        if went_back || !older {
            self.settled = true;
            let Window { began, ended: at } = window;
            self.level = Some(Level {
                of,
                bytes,
                began,
                at,
            });
        }
    }
}

/// Bytes in the young generation of a CMS heap before and after. After a full collection it holds what the old generation does
/// not: a young collection that failed on the way tells what was left when it failed, not in the end.
fn young_of_cms(pause: &Pause) -> Option<(u64, u64)> {
    let [young, old, heap] = [Area::Young, Area::Old, Area::Heap].map(|area| pause.areas.get(area));
    if pause.kind != Kind::Full {
        return Some((young.before?, young.after?));
    }
    let rest = |heap: Option<u64>, old: Option<u64>| heap?.checked_sub(old?);
    let before = young.before.or_else(|| rest(heap.before, old.before))?;
    let after = [young.after, rest(heap.after, old.after)];
    Some((before, after.into_iter().flatten().min()?))
}

#[derive(Debug, Default)]
struct Promotion {
    rating: Rating,
    until: Option<i64>,
    begun: bool,
    each: Mean,
    largest: Option<(u64, Mark)>,
}

impl Promotion {
    fn pause(&mut self, pause: &Pause, mark: Mark, window: Window, whole: bool) {
        if !matches!(pause.kind, Kind::Young | Kind::Mixed | Kind::Full) {
            return;
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let since = self.until.or((first && whole).then_some(0));
        self.until = window.ended.or(self.until);
        if let Some(bytes) = promoted(pause) {
            self.add(bytes, since, mark, window);
        }
    }

    /// A young collection that ran beside the application.
    fn concurrent(&mut self, bytes: u64, mark: Mark, window: Window, whole: bool) {
        let first = !std::mem::replace(&mut self.begun, true);
        let since = self.until.or((first && whole).then_some(0));
        self.until = window.ended.or(self.until);
        self.add(bytes, since, mark, window);
    }

    fn add(&mut self, bytes: u64, since: Option<i64>, mark: Mark, window: Window) {
        self.each.add(bytes as f64);
        if self.largest.is_none_or(|(most, _)| most < bytes) {
            self.largest = Some((bytes, mark));
        }
        if let (Some(since), Some(ended)) = (since, window.ended) {
            self.rating.add(bytes, ended - since, mark);
        }
    }

    fn report(&self, book: &Book) -> Option<gc::Promotion> {
        let (largest_bytes, mark) = self.largest?;
        Some(gc::Promotion {
            rate: self.rating.report(book),
            collections: self.each.count,
            mean_bytes: self.each.mean()?,
            largest_bytes,
            largest: mark.moment(book),
        })
    }
}

/// Bytes that a young collection moved to the old generation. Of a collection that empties old regions as well, or failed
/// half-way, only what the log itself tells.
pub(crate) fn promoted(pause: &Pause) -> Option<u64> {
    let failed = pause.troubles.evacuation_failed || pause.troubles.promotion_failed;
    if pause.promoted.is_some() || pause.kind != Kind::Young || failed {
        return pause.promoted;
    }
    let less = |change: Change| change.before?.checked_sub(change.after?);
    let more = |change: Change| change.after?.checked_sub(change.before?);
    let heap = pause.areas.get(Area::Heap);
    more(pause.areas.get(Area::Old))
        .or_else(|| less(young_of(&pause.areas))?.checked_sub(less(heap)?))
}

/// The young generation: as printed, or Eden and survivors together.
pub(crate) fn young_of(areas: &Areas) -> Change {
    let young = areas.get(Area::Young);
    let (eden, survivor) = (areas.get(Area::Eden), areas.get(Area::Survivor));
    let both = |eden: Option<u64>, survivor: Option<u64>| eden?.checked_add(survivor?);
    Change {
        before: young.before.or_else(|| both(eden.before, survivor.before)),
        after: young.after.or_else(|| both(eden.after, survivor.after)),
        capacity: young
            .capacity
            .or_else(|| both(eden.capacity, survivor.capacity)),
    }
}
