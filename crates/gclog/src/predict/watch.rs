//! What a prediction is reckoned from: the young collections of a run in blocks, its age tables, its old collections.
//!
//! Young collections lie in at most [`MOST`] blocks of equal count; when there are more, neighbours merge. So memory is the same
//! for a minute and for a month, and the spread of the blocks' means tells how sure a mean is, also where collections that
//! follow each other resemble each other (method of batch means: Law, "Simulation Modeling and Analysis", 9.5.3).

use rungwise_model::capacity::Estimate;
use rungwise_stats::interval::student_t;

use crate::event::{Area, Collector, Concurrent, Event, Fact, Kind, Pause, Stamp};
use crate::summary::clock::{Clock, length, seconds};
use crate::summary::heap::{promoted, young_of};
use crate::summary::old::old_of;
use crate::summary::run::PARTIAL;
use crate::summary::slope::Fit;
use crate::summary::spread::Distribution;

/// Blocks at most.
const MOST: usize = 64;
/// Blocks below which no interval is stated.
pub(super) const FEWEST: usize = 5;
/// The first tenth of the blocks is warm-up: ages fill up, classes are loaded.
const WARM_UP: usize = 10;
/// Ages at most, as in the tables of the summary.
const AGES: usize = 32;
/// Young collections of a run whose pauses say nothing of later ones: they touch memory for the first time.
const FIRST: u64 = 5;

/// Takes the events of a log and keeps what predictions need, of the run that it covers the longest time of.
#[derive(Debug, Default)]
pub struct Watch {
    longest: Option<Seen>,
    run: Seen,
    /// Facts since the last event; a JVM prints them before its first stamp shows that it is another one.
    fresh: Facts,
}

/// What the log tells of its JVM.
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
    /// Start of one young collection to the start of the next, nanoseconds.
    pub(super) interval: Distribution,
    /// Start of the last one.
    pub(super) last_young: Option<i64>,
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

/// Sums over young collections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub(super) count: f64,
    pub(super) seconds: f64,
    pub(super) allocated: f64,
    pub(super) pause_s: f64,
    pub(super) survivors: f64,
    pub(super) promoted: f64,
}

impl Block {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.allocated += other.allocated;
        self.pause_s += other.pause_s;
        self.survivors += other.survivors;
        self.promoted += other.promoted;
    }
}

#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Collections of a block; 0 while there is none.
    size: f64,
    all: Vec<Block>,
}

impl Blocks {
    fn add(&mut self, one: Block) {
        self.size = self.size.max(1.0);
        match self.all.last_mut() {
            Some(last) if last.count < self.size => last.add(one),
            _ => self.all.push(one),
        }
        if self.all.len() > MOST {
            self.size *= 2.0;
            let pairs = self.all.chunks(2).map(|pair| {
                let mut sum = pair[0];
                pair.iter().skip(1).for_each(|other| sum.add(*other));
                sum
            });
            self.all = pairs.collect();
        }
    }

    /// Without the warm-up.
    pub(super) fn settled(&self) -> &[Block] {
        &self.all[self.all.len() / WARM_UP..]
    }

    pub(super) fn sum(&self) -> Block {
        let mut sum = Block::default();
        self.settled().iter().for_each(|block| sum.add(*block));
        sum
    }

    /// The ratio of two sums, with the interval in which it lies in another run under the same load: the 95 % interval of a
    /// difference of two such runs.
    pub(super) fn ratio(&self, of: fn(&Block) -> f64, per: fn(&Block) -> f64) -> Option<Estimate> {
        let sum = self.sum();
        let whole: Vec<&Block> = self.settled().iter().collect();
        let (of_all, per_all) = (of(&sum), per(&sum));
        if whole.len() < FEWEST || per_all <= 0.0 {
            return None;
        }
        let ratio = of_all / per_all;
        // Residuals of a ratio estimate (Cochran, "Sampling Techniques", 6.3).
        let n = whole.len() as f64;
        let rest: f64 = whole
            .iter()
            .map(|block| (of(block) - ratio * per(block)).powi(2))
            .sum();
        let error = (rest / (n - 1.0) / n).sqrt() / (per_all / n);
        let reach = student_t(0.975, whole.len() - 1) * error * std::f64::consts::SQRT_2;
        Some(Estimate {
            point: ratio,
            low: (ratio - reach).max(0.0),
            high: ratio + reach,
        })
    }
}

/// Mean and extremes of what was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range {
    pub(super) count: u64,
    pub(super) sum: f64,
    squares: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Range {
    fn add(&mut self, value: f64) {
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Standard deviation of one value.
    pub(super) fn deviation(&self) -> f64 {
        let n = self.count.max(1) as f64;
        let mean = self.sum / n;
        (self.squares / n - mean * mean).max(0.0).sqrt()
    }

    /// The mean with the interval of that of another run with as many values: two standard errors of the difference.
    pub(super) fn estimate(&self) -> Option<Estimate> {
        let point = self.mean()?;
        let reach = 2.0 * self.deviation() * (2.0 / self.count as f64).sqrt();
        Some(Estimate {
            point,
            low: (point - reach).max(0.0),
            high: point + reach,
        })
    }
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
    before: Vec<u64>,
    /// Age whose objects the next collection promotes, where all that it promotes is of that age.
    last_threshold: Option<usize>,
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
    fn pause(&mut self, pause: &Pause, promoted: Option<u64>) {
        if pause.kind == Kind::Full {
            self.before.clear();
            return;
        }
        let Some(ages) = &pause.ages else { return };
        let bytes = &ages.bytes[..ages.bytes.len().min(AGES)];
        let threshold = self.last_threshold.take();
        for (index, was) in self.before.iter().enumerate() {
            let left = if Some(index + 1) == threshold {
                promoted
            } else {
                // A table ends with the oldest there are.
                Some(bytes.get(index + 1).copied().unwrap_or(0))
            };
            if self.lived.len() <= index {
                self.lived.resize(index + 1, (0.0, 0.0));
            }
            // More than there was: what did not fit was promoted as well, or the last table was of other objects.
            if let Some(left) = left.filter(|left| left <= was) {
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
        self.before.clear();
        if let Some(threshold) = ages.threshold {
            self.threshold.add(u64::from(threshold));
            // Older ones are promoted next time together with those of the threshold's age, and are not to be told apart.
            let together = bytes.len() > threshold as usize;
            let known = threshold as usize - usize::from(together && threshold > 0);
            self.before
                .extend_from_slice(&bytes[..bytes.len().min(known)]);
            self.last_threshold = (!together).then_some(threshold as usize);
        }
    }
}

/// Old collections: how full the old generation is when one begins and when it is done. With collectors of one generation, the
/// heap.
#[derive(Debug, Default)]
pub(super) struct Old {
    /// Starts, nanoseconds apart.
    pub(super) interval: Distribution,
    pub(super) last_start: Option<i64>,
    /// In use when one began.
    pub(super) at_start: Range,
    /// Least in use between two.
    pub(super) left: Range,
    low: Option<f64>,
    high: Option<f64>,
    pub(super) now: Option<f64>,
    pub(super) full: u64,
    pub(super) full_interval: Distribution,
    last_full: Option<i64>,
}

impl Old {
    /// One begins, with so much in use; where that is not told, the most since the last one began stands for it.
    fn start(&mut self, used: Option<f64>, at: Option<i64>) {
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
        match event {
            Event::Fact(fact) => self.fresh.take(*fact),
            Event::Restart => {
                let run = std::mem::take(&mut self.run);
                self.keep(run);
            }
            Event::Pause(pause) => {
                self.settle();
                self.run.pause(pause);
            }
            Event::Concurrent(concurrent) => {
                self.settle();
                self.run.concurrent(concurrent);
            }
            Event::Safepoint(safepoint) => {
                self.settle();
                self.run.window(safepoint.began, Some(safepoint.total_ns));
            }
            Event::Ran { at, .. } => {
                self.settle();
                self.run.window(*at, None);
            }
            _ => self.settle(),
        }
    }

    /// The run that the log covers the longest time of; the first of equals.
    pub fn seen(mut self) -> Seen {
        self.settle();
        let run = std::mem::take(&mut self.run);
        self.keep(run);
        self.longest.unwrap_or_default()
    }

    fn keep(&mut self, run: Seen) {
        let longest = self.longest.as_ref();
        if longest.is_none_or(|longest| longest.seconds() < run.seconds()) {
            self.longest = Some(run);
        }
    }

    fn settle(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        let facts = &mut self.run.facts;
        facts.collector = fresh.collector.or(facts.collector);
        facts.version = fresh.version.or(facts.version.take());
        facts.flags = fresh.flags.or(facts.flags.take());
        facts.max_heap = fresh.max_heap.or(facts.max_heap);
    }
}

impl Facts {
    fn take(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::Collector(collector) => self.collector = Some(collector),
            Fact::Version(text) => self.version = Some(text.to_owned()),
            Fact::Flags(text) => self.flags = Some(text.to_owned()),
            Fact::MaxHeap(bytes) => self.max_heap = Some(bytes),
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
        let pause_s = pause.duration_ns.unwrap_or(0) as f64 / 1e9;
        if !pause.nested {
            self.pauses_s += pause_s;
        }
        let is_young = matches!(pause.kind, Kind::Young | Kind::Mixed) && self.stops_for_young();
        if is_young {
            self.young(pause, began, pause_s);
        } else {
            if !pause.nested {
                self.other.add(pause_s);
            }
            if let (Kind::Full, Some(before), Some(level)) = (pause.kind, young.before, self.level)
            {
                self.pending += before.saturating_sub(level) as f64;
            }
            if pause.kind == Kind::Full {
                self.level = young.after;
                self.ages.pause(pause, None);
            }
        }
        self.old_of(pause, began);
    }

    fn young(&mut self, pause: &Pause, began: Option<i64>, pause_s: f64) {
        let young = young_of(&pause.areas);
        let promoted = promoted(pause);
        self.ages.pause(pause, promoted);
        let since = self.last_young.zip(began).map(|(last, at)| at - last);
        if let Some(since) = since.filter(|since| *since >= 0) {
            self.interval.add(since as u64);
        }
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
        if pause.kind == Kind::Mixed {
            self.mixed.add(pause_s);
        }
        let (Some(before), Some(after), Some(promoted)) = (young.before, young.after, promoted)
        else {
            return;
        };
        if let Some(ages) = &pause.ages {
            self.ages.took.add(after as f64);
            self.ages
                .counted
                .add(ages.bytes.iter().map(|bytes| *bytes as f64).sum());
        }
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
                self.full(began);
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
            self.full(began);
        }
        if pause.kind == Kind::Full || pause.kind == Kind::Start || pause.starts_cycle {
            self.old.start(before, began);
        }
        self.old.see(after);
    }

    fn full(&mut self, began: Option<i64>) {
        self.old.full += 1;
        if let (Some(last), Some(at)) = (self.old.last_full, began)
            && last <= at
        {
            self.old.full_interval.add((at - last) as u64);
        }
        self.old.last_full = began.or(self.old.last_full);
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
            // Ends lie as far from each other as beginnings, where those are not told.
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

    fn collection(number: u32) -> Block {
        Block {
            count: 1.0,
            seconds: 0.5,
            allocated: f64::from(number % 3),
            ..Block::default()
        }
    }

    #[test]
    fn a_month_of_collections_takes_no_more_blocks_than_a_minute_and_loses_none() {
        let mut blocks = Blocks::default();
        (0..100_000).for_each(|number| blocks.add(collection(number)));
        assert!(blocks.all.len() <= MOST && blocks.all.len() > MOST / 2);
        let count: f64 = blocks.all.iter().map(|block| block.count).sum();
        assert!((count - 100_000.0).abs() < 0.5, "{count}");
    }

    #[test]
    fn a_mean_is_sure_where_blocks_agree_and_untold_where_there_are_few() {
        let ratio = |collections: u32| {
            let mut blocks = Blocks::default();
            (0..collections).for_each(|number| blocks.add(collection(number)));
            blocks.ratio(|block| block.allocated, |block| block.seconds)
        };
        assert_eq!(ratio(4), None);
        let (few, many) = (ratio(20).unwrap(), ratio(30_000).unwrap());
        assert!(few.holds(2.0) && many.holds(2.0), "{few:?} {many:?}");
        assert!(many.high - many.low < (few.high - few.low) / 4.0);
    }

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
        ages.pause(&pause(&[100, 40]), None);
        ages.pause(&pause(&[120, 50]), Some(30));
        assert_eq!(ages.lived, [(100.0, 50.0), (40.0, 30.0)]);
        // More than was of that age: survivors did not fit, and nothing is learned of age 2.
        ages.pause(&pause(&[120, 60]), Some(51));
        assert_eq!(ages.lived, [(220.0, 110.0), (40.0, 30.0)]);
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
