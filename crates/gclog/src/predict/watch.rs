//! What a prediction is reckoned from: the young collections of a run in blocks, its age tables, its old collections.

use super::blocks::{Block, Blocks, FEWEST, Range};
use super::rhythm::Rhythm;
use crate::event::{Area, Collector, Concurrent, Event, Fact, Kind, Pause, Stamp};
use crate::jvms::Turns;
use crate::summary::clock::{Clock, length, seconds};
use crate::summary::heap::{promoted, young_of};
use crate::summary::old::old_of;
use crate::summary::run::PARTIAL;
use crate::summary::slope::Fit;
use crate::summary::spread::Distribution;

/// Old collections come this many times as far apart as promotion differs between tenths of a log; at least and at most so, and
/// so where it is unknown. From the corpus.
const UNSTEADY: f64 = 1.5;
const STEADIEST: f64 = 0.2;
const UNKNOWN: f64 = 1.0;
/// Ages at most, as in the tables of the summary.
const AGES: usize = 32;
/// Young collections of a run whose pauses say nothing of later ones: they touch memory for the first time.
const FIRST: u64 = 5;

/// Takes the events of a log and keeps the values for predictions, from the longest run in the log.
#[derive(Debug, Default)]
pub struct Watch {
    longest: Option<Seen>,
    jvms: Turns<Jvm>,
}

/// What was seen of one JVM.
#[derive(Debug, Default)]
struct Jvm {
    run: Seen,
    /// Facts since the last event; a JVM prints them before its first stamp shows that it is another one.
    fresh: Facts,
}

/// What the log shows about its JVM.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Which collector.
    pub collector: Option<Collector>,
    /// As printed: `17.0.15+6-Debian-1deb12u1`.
    pub version: Option<String>,
    /// Command line or flags, as printed.
    pub flags: Option<String>,
    /// Largest heap, bytes.
    pub max_heap: Option<u64>,
    /// G1's region, bytes.
    pub region: Option<u64>,
}

/// What was seen of one run.
#[derive(Debug, Default)]
pub struct Seen {
    /// What the log tells of the JVM.
    pub facts: Facts,
    clock: Clock,
    /// A pause has been seen; by the first one, whether the log begins with its JVM, as the summary tells it.
    paused: bool,
    whole: bool,
    first: Option<i64>,
    pub(super) last: Option<i64>,
    /// Young collections.
    pub(super) blocks: Blocks,
    /// Those of which the log tells the heap and not its generations.
    pub(super) by_heap: Blocks,
    /// Left in the heap by the last pause that tells it, and allocated since the last young collection.
    heap_level: Option<u64>,
    heap_pending: f64,
    /// Starts of young collections.
    pub(super) rhythm: Rhythm,
    last_young: Option<i64>,
    /// Left in the young generation by the last collection.
    level: Option<u64>,
    /// Allocated since, up to a full collection that came between.
    pending: f64,
    /// The same without those within another pause, as the summary counts them.
    pub(super) spacing: Distribution,
    last_alone: Option<i64>,
    /// All young pauses, nanoseconds; and seconds.
    pub(super) every: Distribution,
    every_s: Range,
    /// Those behind the first ones, nanoseconds; and seconds.
    pauses: Distribution,
    pub(super) pause: Range,
    /// Young pause by bytes copied.
    pub(super) cost: Fit,
    pub(super) copied: Range,
    pub(super) ages: Ages,
    pub(super) young: Capacity,
    pub(super) eden: Capacity,
    pub(super) survivor: Capacity,
    pub(super) old_capacity: Capacity,
    pub(super) heap: Capacity,
    /// In use in the young generation after young collections, bytes.
    pub(super) young_after: Distribution,
    /// In use in the young generation before young collections: with G1 its size.
    pub(super) young_before: Range,
    pub(super) old: Old,
    /// Pauses for something else than the young generation, nested ones left out, seconds.
    pub(super) other: Range,
    /// Of G1's mixed collections, which are young ones as well.
    pub(super) mixed: Range,
    /// Pauses of all sorts, nested ones left out.
    pub(super) pauses_s: f64,
}

/// Capacity of a part of the heap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Capacity {
    pub(super) last: Option<f64>,
    pub(super) range: Range,
}

impl Capacity {
    fn see(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
            self.last = Some(bytes as f64);
            self.range.add(bytes as f64);
        }
    }

    /// It moved by more than rounding does.
    pub(super) fn varies(&self) -> bool {
        self.range.max > 1.05 * self.range.min
    }
}

/// Age tables, and what became of the oldest objects in them.
#[derive(Debug, Default)]
pub(super) struct Ages {
    /// Bytes of age 1.
    pub(super) first: Range,
    /// By age: bytes of a table, and what was left of them a collection later: in the next table or promoted.
    pub(super) lived: Vec<(f64, f64)>,
    /// The last table, and the threshold printed with it.
    before: Vec<u64>,
    last_threshold: Option<u32>,
    pub(super) threshold: Distribution,
    pub(super) max: Option<u64>,
    pub(super) desired: Range,
    /// Tables with bytes in them.
    pub(super) tables: u64,
    /// Bytes in the tables, and what was in use then.
    pub(super) counted: Range,
    pub(super) took: Range,
}

impl Ages {
    /// With G1, whose `region` has so many bytes, the threshold printed is that of this collection, from the last table
    /// (`g1Policy.cpp`, `update_survivors_policy`); with others that of the next one.
    fn pause(&mut self, pause: &Pause, promoted: Option<u64>, region: Option<u64>) {
        if pause.kind == Kind::Full {
            self.before.clear();
            return;
        }
        let Some(ages) = &pause.ages else { return };
        let bytes = &ages.bytes[..ages.bytes.len().min(AGES)];
        let before = std::mem::replace(&mut self.before, bytes.to_vec());
        let last = std::mem::replace(&mut self.last_threshold, ages.threshold);
        let threshold = if region.is_some() {
            ages.threshold
        } else {
            last
        };
        // Older ones are promoted together with those of the threshold's age, and cannot be distinguished.
        let oldest = threshold.map_or(0, |threshold| threshold as usize);
        let together = before.len() > oldest;
        let known = oldest - usize::from(together && oldest > 0);
        for (index, was) in before.iter().take(known).enumerate() {
            let leaves = index + 1 == oldest;
            let left = if leaves {
                promoted
            } else {
                // A table ends with the oldest there are.
                Some(bytes.get(index + 1).copied().unwrap_or(0))
            };
            if self.lived.len() <= index {
                self.lived.resize(index + 1, (0.0, 0.0));
            }
            // More than there was: what did not fit was promoted as well, or the last table was of other objects. Regions are
            // filled one after the other: now none begins and now one, which holds more than there was.
            let most = was + region.filter(|_| leaves).unwrap_or(0);
            if let Some(left) = left.filter(|left| *left <= most) {
                self.lived[index].0 += *was as f64;
                self.lived[index].1 += left as f64;
            }
        }
        if let Some(first) = bytes.first() {
            self.tables += 1;
            if self.tables > FIRST {
                self.first.add(*first as f64);
            }
        }
        if let Some(desired) = ages.desired {
            self.desired.add(desired as f64);
        }
        self.max = ages.max.or(self.max);
        if let Some(threshold) = ages.threshold {
            self.threshold.add(u64::from(threshold));
        }
    }
}

/// Old collections: how full the old generation is when one begins and when it is done. With collectors of one generation, the
/// heap.
#[derive(Debug, Default)]
pub(super) struct Old {
    /// Starts, nanoseconds apart.
    pub(super) interval: Distribution,
    pub(super) rhythm: Rhythm,
    last_start: Option<i64>,
    /// In use when one began.
    pub(super) at_start: Range,
    /// Least in use between two.
    pub(super) left: Range,
    low: Option<f64>,
    high: Option<f64>,
    pub(super) now: Option<f64>,
    /// In the young generation after full collections.
    pub(super) young_left: Range,
    /// Allocated in Eden before full collections: one that comes in the place of a young collection finds it full.
    pub(super) in_place: Range,
    /// Starts of full collections.
    pub(super) full: Rhythm,
}

impl Old {
    /// One begins, with so much in use; where that is unknown, the most since the last one began stands for it.
    fn start(&mut self, used: Option<f64>, at: Option<i64>) {
        self.rhythm.see(at);
        if let (Some(last), Some(at)) = (self.last_start, at)
            && last <= at
        {
            self.interval.add((at - last) as u64);
        }
        if let Some(low) = self.low.take().filter(|_| self.last_start.is_some()) {
            self.left.add(low);
        }
        let high = self.high.take().filter(|_| self.last_start.is_some());
        self.last_start = at.or(self.last_start);
        if let Some(used) = used.or(high) {
            self.at_start.add(used);
        }
    }

    fn see(&mut self, used: Option<f64>) {
        if let Some(used) = used {
            self.low = Some(self.low.map_or(used, |low| low.min(used)));
            self.high = Some(self.high.map_or(used, |high| high.max(used)));
            self.now = Some(used);
        }
    }

    /// In use when one is done; also after the last one, whose successor is still to come.
    pub(super) fn left(&self) -> Option<Range> {
        let mut left = self.left;
        if let Some(low) = self.low.filter(|_| self.last_start.is_some()) {
            left.add(low);
        }
        (left.count > 0).then_some(left)
    }
}

impl Watch {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        let jvm = &mut *self.jvms;
        match event {
            Event::Fact(fact) => return jvm.fresh.take(*fact),
            Event::Turn { jvm, .. } => return self.jvms.turn(*jvm),
            Event::Restart => {
                let run = std::mem::take(&mut jvm.run);
                return self.keep(run);
            }
            _ => jvm.settle(),
        }
        let run = &mut jvm.run;
        match event {
            Event::Pause(pause) => run.pause(pause),
            Event::Concurrent(concurrent) => run.concurrent(concurrent),
            Event::Safepoint(safepoint) => {
                run.window(safepoint.began, Some(safepoint.total_ns));
            }
            Event::Ran { at, .. } => {
                run.window(*at, None);
            }
            _ => {}
        }
    }

    /// The longest run in the log; the first of equals.
    pub fn seen(mut self) -> Seen {
        for mut jvm in std::mem::take(&mut self.jvms).into_all() {
            jvm.settle();
            self.keep(jvm.run);
        }
        self.longest.unwrap_or_default()
    }

    fn keep(&mut self, run: Seen) {
        let longest = self.longest.as_ref();
        if longest.is_none_or(|longest| longest.seconds() < run.seconds()) {
            self.longest = Some(run);
        }
    }
}

impl Jvm {
    fn settle(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        let facts = &mut self.run.facts;
        facts.collector = fresh.collector.or(facts.collector);
        facts.version = fresh.version.or(facts.version.take());
        facts.flags = fresh.flags.or(facts.flags.take());
        facts.max_heap = fresh.max_heap.or(facts.max_heap);
        facts.region = fresh.region.or(facts.region);
    }
}

impl Facts {
    fn take(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::Collector(collector) => self.collector = Some(collector),
            Fact::Version(text) => self.version = Some(text.to_owned()),
            Fact::Flags(text) => self.flags = Some(text.to_owned()),
            Fact::MaxHeap(bytes) => self.max_heap = Some(bytes),
            Fact::RegionSize(bytes) => self.region = Some(bytes),
            _ => {}
        }
    }
}

impl Seen {
    /// Seconds that the log covers.
    pub fn seconds(&self) -> f64 {
        match (self.first, self.last) {
            (Some(_), Some(last)) if self.whole => seconds(last),
            (Some(first), Some(last)) => seconds(last.saturating_sub(first)),
            _ => 0.0,
        }
    }

    /// How much the lengths of intervals between old collections may differ, as a standard deviation of their logarithms.
    pub(super) fn unsteady(&self) -> f64 {
        let unsteady = self.blocks.unsteady().map(|unsteady| UNSTEADY * unsteady);
        unsteady.map_or(UNKNOWN, |unsteady| unsteady.clamp(STEADIEST, UNKNOWN))
    }

    /// Mean seconds from one old collection to the next; where that is unknown, of the log for each of them.
    pub(super) fn old_seconds(&self) -> Option<f64> {
        let (intervals, starts) = (&self.old.interval, self.old.at_start.count);
        match (intervals.count(), starts) {
            (0, 0) => None,
            (0, starts) => Some(self.seconds() / starts as f64),
            (count, _) => Some(intervals.sum_ms() / 1e3 / count as f64),
        }
    }

    /// Mean time from one young collection to the next, seconds, as the summary counts it.
    pub(super) fn mean_spacing_s(&self) -> Option<f64> {
        let count = self.spacing.count();
        (count > 0).then(|| self.spacing.sum_ms() / 1e3 / count as f64)
    }

    /// The log contains the heap but not its generations.
    pub(super) fn tells_heap_alone(&self) -> bool {
        let tells = |blocks: &Blocks| blocks.ratio(|b| b.allocated, |b| b.seconds).is_some();
        !tells(&self.blocks) && tells(&self.by_heap)
    }

    /// The collector keeps young and old objects apart and stops the threads for the young ones.
    pub(super) fn stops_for_young(&self) -> bool {
        matches!(
            self.facts.collector,
            Some(Collector::Serial | Collector::Parallel | Collector::Cms | Collector::G1)
        )
    }

    /// Young pauses that later ones resemble, and their deviation in seconds: without the first, where enough are left.
    pub(super) fn usual_pauses(&self) -> (&Distribution, f64) {
        if self.pauses.count() >= FEWEST as u64 {
            (&self.pauses, self.pause.deviation())
        } else {
            (&self.every, self.every_s.deviation())
        }
    }

    fn window(&mut self, began: Stamp, duration: Option<u64>) -> (Option<i64>, Option<i64>) {
        let began = self.clock.at(began);
        let ended = began.map(|began| began + duration.map_or(0, length));
        if let Some(began) = began {
            self.first = Some(self.first.map_or(began, |first| first.min(began)));
        }
        self.last = self.last.max(ended);
        (began, ended)
    }

    fn pause(&mut self, pause: &Pause) {
        let (began, _) = self.window(pause.began, pause.duration_ns);
        if !std::mem::replace(&mut self.paused, true) {
            let early = self.first.is_some_and(|first| first < PARTIAL);
            self.whole = self.clock.is_uptime() && pause.id.map_or(early, |id| id == 0);
        }
        let young = young_of(&pause.areas);
        self.capacities(pause);
        let heap = pause.areas.get(Area::Heap);
        if let (Some(before), Some(after)) = (heap.before, heap.after)
            && let Some(level) = self.heap_level.replace(after)
        {
            self.heap_pending += before.saturating_sub(level) as f64;
        }
        let pause_s = pause.duration_ns.unwrap_or(0) as f64 / 1e9;
        if !pause.nested {
            self.pauses_s += pause_s;
        }
        // JDK 8 without details names no collector.
        let may_stop = self.stops_for_young() || self.facts.collector.is_none();
        let is_young = matches!(pause.kind, Kind::Young | Kind::Mixed) && may_stop;
        if is_young {
            self.young(pause, began, pause_s);
        } else {
            if !pause.nested {
                self.other.add(pause_s);
            }
            if let (Kind::Full, Some(before), Some(level)) = (pause.kind, young.before, self.level)
            {
                let allocated = before.saturating_sub(level) as f64;
                self.pending += allocated;
                self.old.in_place.add(allocated);
            }
            if pause.kind == Kind::Full {
                self.level = young.after;
                self.ages.pause(pause, None, None);
                if let Some(after) = young.after {
                    self.old.young_left.add(after as f64);
                }
            }
        }
        self.old_of(pause, began);
    }

    fn young(&mut self, pause: &Pause, began: Option<i64>, pause_s: f64) {
        let young = young_of(&pause.areas);
        let promoted = promoted(pause);
        let g1 = self.facts.collector == Some(Collector::G1);
        let region = self.facts.region.or(Some(0)).filter(|_| g1);
        self.ages.pause(pause, promoted, region);
        let since = self.last_young.zip(began).map(|(last, at)| at - last);
        self.rhythm.see(began);
        self.last_young = began.or(self.last_young);
        if let Some(ns) = pause.duration_ns {
            self.every.add(ns);
            self.every_s.add(pause_s);
        }
        if !pause.nested {
            let since = self.last_alone.zip(began).map(|(last, at)| at - last);
            if let Some(since) = since.filter(|since| *since >= 0) {
                self.spacing.add(since as u64);
            }
            self.last_alone = began.or(self.last_alone);
        }
        if let Some(before) = young.before {
            self.young_before.add(before as f64);
        }
        let level = std::mem::replace(&mut self.level, young.after);
        let pending = std::mem::take(&mut self.pending);
        let by_heap = std::mem::take(&mut self.heap_pending);
        if pause.kind == Kind::Mixed {
            self.mixed.add(pause_s);
        }
        let (Some(before), Some(after), Some(promoted)) = (young.before, young.after, promoted)
        else {
            let tells = pause.areas.get(Area::Heap).after.is_some();
            if let Some(since) = since.filter(|since| *since >= 0 && tells) {
                self.by_heap.add(Block {
                    count: 1.0,
                    seconds: seconds(since),
                    allocated: by_heap,
                    pause_s,
                    ..Block::default()
                });
            }
            return;
        };
        if let Some(ages) = &pause.ages {
            self.ages.took.add(after as f64);
            self.ages
                .counted
                .add(ages.bytes.iter().map(|bytes| *bytes as f64).sum());
        }
        self.young_after.add(after);
        let copied = after.saturating_add(promoted);
        if self.young_before.count > FIRST {
            self.copied.add(copied as f64);
            if let Some(ns) = pause.duration_ns {
                self.cost.add(copied, ns);
                self.pauses.add(ns);
                self.pause.add(pause_s);
            }
        }
        if let (Some(level), Some(since)) = (level, since.filter(|since| *since >= 0)) {
            self.blocks.add(Block {
                count: 1.0,
                seconds: seconds(since),
                allocated: before.saturating_sub(level) as f64 + pending,
                pause_s,
                survivors: after as f64,
                promoted: promoted as f64,
            });
        }
    }

    fn old_of(&mut self, pause: &Pause, began: Option<i64>) {
        if pause.nested || !self.stops_for_young() {
            if pause.kind == Kind::Start && self.is_shenandoah() {
                self.old.start(None, began);
            }
            if pause.kind == Kind::Full {
                self.old.full.see(began);
            }
            return;
        }
        let (mut before, mut after) = old_of(&pause.areas, self.facts.collector);
        if self.facts.collector == Some(Collector::G1) {
            // A cycle begins by both together.
            let humongous = pause.areas.get(Area::Humongous);
            before = before.map(|bytes| bytes + humongous.before.unwrap_or(0));
            after = after.map(|bytes| bytes + humongous.after.unwrap_or(0));
        }
        let (before, after) = (before.map(|b| b as f64), after.map(|b| b as f64));
        self.old.see(before);
        if pause.kind == Kind::Full {
            self.old.full.see(began);
        }
        if pause.kind == Kind::Full || pause.kind == Kind::Start || pause.starts_cycle {
            self.old.start(before, began);
        }
        self.old.see(after);
    }

    fn is_shenandoah(&self) -> bool {
        self.facts.collector == Some(Collector::Shenandoah)
    }

    fn concurrent(&mut self, concurrent: &Concurrent) {
        let (at, _) = self.window(concurrent.at(), concurrent.duration_ns);
        if self.stops_for_young() {
            return;
        }
        let heap = concurrent.areas.get(Area::Heap);
        self.heap.see(heap.capacity);
        let (before, after) = (heap.before.map(|b| b as f64), heap.after.map(|b| b as f64));
        self.old.see(before);
        if concurrent.cycle && self.facts.collector == Some(Collector::Z) {
            // Ends lie as far from each other as beginnings, where those are unknown.
            self.old.start(before, at);
        }
        self.old.see(after);
    }

    fn capacities(&mut self, pause: &Pause) {
        let capacity = |area| pause.areas.get(area).capacity;
        self.young.see(young_of(&pause.areas).capacity);
        self.eden.see(capacity(Area::Eden));
        self.survivor.see(capacity(Area::Survivor));
        self.old_capacity.see(capacity(Area::Old));
        self.heap.see(capacity(Area::Heap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of a threshold of two: what leaves at age 2 is what the next collection promotes.
    #[test]
    fn promoted_objects_are_not_dead() {
        let mut ages = Ages::default();
        let pause = |bytes: &[u64]| Pause {
            ages: Some(crate::event::Ages {
                threshold: Some(2),
                bytes: bytes.to_vec(),
                ..Default::default()
            }),
            ..young_pause()
        };
        ages.pause(&pause(&[100, 40]), None, None);
        ages.pause(&pause(&[120, 50]), Some(30), None);
        assert_eq!(ages.lived, [(100.0, 50.0), (40.0, 30.0)]);
        // More than was of that age: survivors did not fit, and nothing is learned of age 2.
        ages.pause(&pause(&[120, 60]), Some(51), None);
        assert_eq!(ages.lived, [(220.0, 110.0), (40.0, 30.0)]);
    }

    /// What G1 promotes follows from the threshold that it tells with the same collection.
    #[test]
    fn a_threshold_that_g1_lowers_promotes_at_once() {
        let mut ages = Ages::default();
        let mut pause = |threshold: u32, bytes: &[u64], promoted: u64| {
            let pause = Pause {
                ages: Some(crate::event::Ages {
                    threshold: Some(threshold),
                    bytes: bytes.to_vec(),
                    ..Default::default()
                }),
                ..young_pause()
            };
            ages.pause(&pause, Some(promoted), Some(32));
            ages.lived.clone()
        };
        pause(15, &[100], 0);
        assert_eq!(pause(1, &[100], 64), [(100.0, 64.0)]);
        assert_eq!(pause(15, &[100, 60], 0), [(200.0, 124.0)]);
        // Both ages leave together, and nothing is learned.
        assert_eq!(pause(1, &[100], 96), [(200.0, 124.0)]);
    }

    fn young_pause() -> Pause {
        let log = b"[1.0s][info][gc] GC(0) Pause Young (Allocation Failure) 24M->4M(256M) 3.5ms\n";
        let mut parser = crate::Parser::new();
        let mut pauses = Vec::new();
        let mut sink = |_: &_, event: Event<'_>| {
            if let Event::Pause(pause) = event {
                pauses.push(pause.clone());
            }
        };
        parser.push(log, &mut sink);
        parser.finish(&mut sink);
        pauses.remove(0)
    }
}
