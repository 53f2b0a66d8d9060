//! Old collections: what survives them, how often they come, how full the heap is when they begin, and remarks.
//!
//! A live set is only known after somebody looked at all of it, so each collector has its own moment for it; see
//! [`gc::LiveSource`]. The moments are not mixed: a mean over two of them would compare unlike things.

use rungwise_model::gc::{self, LiveSource};

use super::book::{Book, Mark};
use super::course::Course;
use super::heap::{Mean, Window, young_of};
use super::pauses::phases_of_one;
use super::slope::{FEWEST, Fit, over_time};
use super::spread::{Distribution, ms};
use crate::event::{Area, Areas, Collector, Concurrent, Kind, Pause, Phase};

/// Seconds in an hour.
const HOUR: f64 = 3600.0;

/// A growth per second as one per hour.
pub(super) fn per_hour(slope: gc::Slope) -> gc::Slope {
    gc::Slope {
        point: slope.point * HOUR,
        low: slope.low * HOUR,
        high: slope.high * HOUR,
    }
}

const SOURCES: [LiveSource; 6] = [
    LiveSource::Full,
    LiveSource::Mark,
    LiveSource::Cycle,
    LiveSource::Sweep,
    LiveSource::Mixed,
    LiveSource::Remark,
];

/// What the name of a concurrent phase says, over all collectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// Of generational collectors: a young cycle, or one of the two parts of a major one.
    part: bool,
    work: Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Sweep,
    Cleanup,
    Reset,
    Mark,
    Evacuation,
    Other,
}

impl Named {
    pub(super) fn classify(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let has = |word: &str| name.contains(word);
        let works = [
            ("sweep", Work::Sweep),
            ("cleanup", Work::Cleanup),
            ("reset", Work::Reset),
            ("mark", Work::Mark),
            ("evacuation", Work::Evacuation),
        ];
        let work = works.into_iter().find(|(word, _)| has(word));
        Self {
            part: has("minor") || has("young") || has("y:") || has("o:"),
            work: work.map_or(Work::Other, |(_, work)| work),
        }
    }

    /// It copies: what is more in the heap afterwards may be in it twice, until the old places are freed.
    pub(super) fn copies(self) -> bool {
        self.work == Work::Evacuation
    }

    /// It neither frees nor copies: what is more in the heap afterwards the application allocated.
    pub(super) fn reclaims_nothing(self) -> bool {
        matches!(self.work, Work::Mark | Work::Reset)
    }
}

#[derive(Debug, Default)]
pub(super) struct Old {
    sources: [Source; SOURCES.len()],
    /// The last mixed collection of a row that may go on.
    mixed: Option<(Mark, Window, Areas)>,
    /// CMS has swept; the next collection tells what is left.
    swept: bool,
    /// G1 has marked, and the heap held so much; the most there is where that is unknown. Eden is in it, and not in what the
    /// next young collection leaves, which has in it what was promoted since: the lesser of the two is nearer to what is alive.
    marked: Option<u64>,
    /// A full collection lay within the pause that comes next, which tells what the old generation held.
    held_full: bool,
    /// An evacuation of G1 failed since the last remark, and between the one before and that one.
    failed: (bool, bool),
    /// Most that the old generation held since the last old collection.
    peak: Option<u64>,
    reclaimed: Mean,
    reclaimed_at: Option<Mark>,
    cycles: Cycles,
}

#[derive(Debug, Default)]
struct Source {
    count: u64,
    min: u64,
    max: u64,
    last: u64,
    mark: Mark,
    course: Course,
}

#[derive(Debug, Default)]
struct Cycles {
    count: u64,
    length: Distribution,
    occupancy: Mean,
    occupancy_at: Option<Mark>,
    began: Option<i64>,
    /// When the last thing ended that shows that a cycle was brought to its end.
    closed: Option<i64>,
    /// The log tells whole cycles; then parts of them need not be put together.
    is_logged_whole: bool,
    interval: Distribution,
    last_start: Option<i64>,
}

impl Old {
    pub(super) fn pause(
        &mut self,
        pause: &Pause,
        mark: Mark,
        window: Window,
        collector: Option<Collector>,
    ) {
        if pause.nested {
            // Serial of JDK 9 to 11 prints a full collection within the young one that asked for it.
            if pause.kind == Kind::Full {
                let heap = pause.areas.get(Area::Heap).after;
                self.sample(LiveSource::Full, heap, None, mark, window.ended);
                self.cycles.start(mark);
                self.held_full = true;
            }
            return;
        }
        self.failed.0 |= pause.troubles.evacuation_failed;
        let areas = &pause.areas;
        let old = old_of(areas, collector);
        if std::mem::take(&mut self.held_full)
            && pause.kind == Kind::Young
            && let (Some(before @ 1..), Some(after)) = old
        {
            let kept = after.min(before) as f64 / before as f64;
            self.reclaimed.add(1.0 - kept);
            self.reclaimed_at = Some(mark);
            self.peak = Some(after);
        }
        if pause.kind != Kind::Mixed
            && let Some((mark, window, areas)) = self.mixed.take()
        {
            self.sample(
                LiveSource::Mixed,
                areas.get(Area::Heap).after,
                areas.get(Area::Old).after,
                mark,
                window.ended,
            );
        }
        if self.swept && pause.kind != Kind::Full && old.0.is_some() {
            self.swept = false;
            self.sample(LiveSource::Sweep, old.0, old.0, mark, window.began);
        }
        self.peak = self.peak.max(old.0);
        if let (Some(held), Kind::Young | Kind::Mixed, Some(left)) =
            (self.marked, pause.kind, areas.get(Area::Heap).after)
        {
            self.marked = None;
            let held = (!self.keeps_garbage()).then_some(left.min(held));
            self.sample(LiveSource::Remark, held, None, mark, window.ended);
        }
        match pause.kind {
            Kind::Full => {
                self.marked = None;
                self.failed = (false, false);
                let heap = areas.get(Area::Heap).after.or(old.1);
                self.sample(LiveSource::Full, heap, old.1, mark, window.ended);
                self.swept = false;
                self.cycles.began = None;
                self.cycles.start(mark);
            }
            // It ends the cycle that it begins or goes on with; of generations it may be the young one alone.
            Kind::Degenerated if collector == Some(Collector::Shenandoah) => {
                let heap = areas.get(Area::Heap).after;
                self.sample(LiveSource::Cycle, heap, None, mark, window.ended);
            }
            Kind::Mixed => self.mixed = (!self.keeps_garbage()).then_some((mark, window, *areas)),
            Kind::Remark if collector == Some(Collector::G1) => {
                self.marked = Some(areas.get(Area::Heap).after.unwrap_or(u64::MAX));
                self.failed = (false, self.failed.0);
            }
            _ => {}
        }
        self.peak = self.peak.max(old.1);
        // ZGC tells its cycles as one, and its mark starts are of young cycles as well.
        let z = moves_concurrently(collector) && !is_shenandoah(collector);
        if !z && (pause.starts_cycle || pause.kind == Kind::Start) {
            self.cycles.pause_starts(pause, mark, window, collector);
        }
        if pause.kind == Kind::Cleanup {
            self.cycles.closed = window.ended;
        }
    }

    pub(super) fn concurrent(
        &mut self,
        concurrent: &Concurrent,
        name: Named,
        mark: Mark,
        window: Window,
        collector: Option<Collector>,
        room: Option<u64>,
    ) {
        if concurrent.aborted {
            return;
        }
        if concurrent.live.is_some() {
            self.sample(LiveSource::Mark, concurrent.live, None, mark, window.ended);
        }
        let heap = concurrent.areas.get(Area::Heap);
        if concurrent.cycle && !name.part {
            if moves_concurrently(collector) {
                self.sample(LiveSource::Cycle, heap.after, None, mark, window.ended);
            }
            self.cycles.whole(concurrent, mark, room);
        } else if is_shenandoah(collector) && name.work == Work::Cleanup && !name.part {
            self.sample(LiveSource::Cycle, heap.after, None, mark, window.ended);
        }
        if name.work == Work::Sweep {
            self.swept = collector == Some(Collector::Cms);
        }
        // Shenandoah resets before a cycle begins, CMS after it.
        let ends = match name.work {
            Work::Sweep | Work::Cleanup => true,
            Work::Reset => collector == Some(Collector::Cms),
            Work::Mark | Work::Evacuation | Work::Other => false,
        };
        if ends {
            self.cycles.closed = window.ended;
        }
    }

    /// Where evacuation failed, whole regions stay with the garbage in them until they were marked and collected again.
    fn keeps_garbage(&self) -> bool {
        self.failed.0 || self.failed.1
    }

    fn sample(
        &mut self,
        of: LiveSource,
        bytes: Option<u64>,
        old: Option<u64>,
        mark: Mark,
        at: Option<i64>,
    ) {
        if let (Some(left), Some(peak @ 1..)) = (old, self.peak) {
            self.reclaimed
                .add(1.0 - left.min(peak) as f64 / peak as f64);
            self.reclaimed_at = Some(mark);
            self.peak = Some(left);
        }
        let Some(bytes) = bytes else { return };
        let source = &mut self.sources[of as usize];
        source.min = if source.count == 0 {
            bytes
        } else {
            source.min.min(bytes)
        };
        source.max = source.max.max(bytes);
        source.count += 1;
        source.last = bytes;
        source.mark = mark;
        source.course.add(at, bytes as f64);
    }

    /// The source with enough samples for a slope, the surest first; else the one with most.
    pub(super) fn live(&self, book: &Book, room: [Option<u64>; 2]) -> Option<gc::LiveSet> {
        let all = SOURCES.iter().zip(&self.sources);
        let enough = |source: &Source| source.count.min(FEWEST as u64);
        let (of, source) = all
            .filter(|(_, source)| source.count > 0)
            .max_by_key(|(of, source)| (enough(source), std::cmp::Reverse(**of)))?;
        let course = source.course.course();
        let [heap, old] = room;
        Some(gc::LiveSet {
            source: *of,
            samples: source.count,
            last_bytes: source.last,
            min_bytes: source.min,
            max_bytes: source.max,
            room_bytes: if *of == LiveSource::Sweep { old } else { heap },
            bytes_per_hour: over_time(&course, f64::MIN).map(per_hour),
            last: source.mark.moment(book),
            course,
        })
    }

    pub(super) fn report(&self, book: &Book) -> gc::OldCollections {
        let mut cycles = self.cycles.count;
        let mut length = self.cycles.length.some();
        // The last cycle has ended, and no other begun that would have said so.
        if let Some(last) = self.cycles.open_length() {
            cycles += 1;
            length = length.or_else(|| {
                let mut one = Distribution::default();
                one.add(last);
                one.some()
            });
        }
        gc::OldCollections {
            cycles,
            cycle_length: length,
            occupancy: self.cycles.occupancy.mean(),
            occupancy_at: self.cycles.occupancy_at.map(|mark| mark.moment(book)),
            interval: self.cycles.interval.some(),
            reclaimed: self.reclaimed.mean(),
            reclaimed_at: self.reclaimed_at.map(|mark| mark.moment(book)),
        }
    }
}

impl Cycles {
    /// An old collection begins.
    fn start(&mut self, mark: Mark) {
        if let (Some(last), Some(at)) = (self.last_start, mark.at)
            && last <= at
        {
            self.interval.add((at - last) as u64);
        }
        self.last_start = mark.at.or(self.last_start);
    }

    fn pause_starts(
        &mut self,
        pause: &Pause,
        mark: Mark,
        window: Window,
        collector: Option<Collector>,
    ) {
        if let Some(length) = self.open_length() {
            self.count += 1;
            self.length.add(length);
        }
        self.closed = None;
        self.began = window.began;
        self.start(mark);
        let area = if collector == Some(Collector::Cms) {
            Area::Old
        } else {
            Area::Heap
        };
        let change = pause.areas.get(area);
        // G1 begins with a young collection, and compares what it leaves with its threshold.
        let used = if collector == Some(Collector::G1) {
            change.after
        } else {
            change.before
        };
        self.occupied(used, change.capacity, mark);
    }

    /// A cycle that the log tells as one.
    fn whole(&mut self, concurrent: &Concurrent, mark: Mark, room: Option<u64>) {
        self.is_logged_whole = true;
        self.count += 1;
        if let Some(ns) = concurrent.duration_ns {
            self.length.add(ns);
        }
        let heap = concurrent.areas.get(Area::Heap);
        if heap.before.is_some() {
            if self.last_start < mark.at {
                self.start(mark);
            }
            self.occupied(heap.before, heap.capacity.or(room), mark);
        }
    }

    fn occupied(&mut self, used: Option<u64>, capacity: Option<u64>, mark: Mark) {
        if let (Some(used), Some(capacity @ 1..)) = (used, capacity) {
            self.occupancy.add(used as f64 / capacity as f64);
            self.occupancy_at = Some(mark);
        }
    }

    fn open_length(&self) -> Option<u64> {
        let length = self.closed?.checked_sub(self.began?)?;
        (!self.is_logged_whole && length > 0).then_some(length as u64)
    }
}

/// What the old generation held before and after: as printed, or the heap without the young generation where there is nothing
/// else in the heap.
pub(crate) fn old_of(areas: &Areas, collector: Option<Collector>) -> (Option<u64>, Option<u64>) {
    let old = areas.get(Area::Old);
    let two = is_of_two(collector);
    let (heap, young) = (areas.get(Area::Heap), areas.get(Area::Young));
    let rest = |heap: Option<u64>, young: Option<u64>| {
        if two { heap?.checked_sub(young?) } else { None }
    };
    (
        old.before.or_else(|| rest(heap.before, young.before)),
        old.after.or_else(|| rest(heap.after, young.after)),
    )
}

/// There is a young and an old generation in the heap, and nothing else.
pub(super) fn is_of_two(collector: Option<Collector>) -> bool {
    matches!(
        collector,
        Some(Collector::Serial | Collector::Parallel | Collector::Cms)
    )
}

fn is_shenandoah(collector: Option<Collector>) -> bool {
    matches!(
        collector,
        Some(Collector::Shenandoah | Collector::GenerationalShenandoah)
    )
}

fn moves_concurrently(collector: Option<Collector>) -> bool {
    is_shenandoah(collector) || matches!(collector, Some(Collector::Z | Collector::GenerationalZ))
}

/// Nested pauses: what lay in the young generation before the first and after the last, and their time.
#[derive(Clone, Copy, Debug, Default)]
struct Inner {
    ns: u64,
    before: Option<u64>,
    after: Option<u64>,
}

/// Remarks, without the young collection that may lie within them.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    time: Distribution,
    scavenged: u64,
    longest: Option<(u64, Mark)>,
    longest_phases: Vec<Phase>,
    longest_young: Option<(u64, u64)>,
    /// Of the longest with a nested pause: its length, and what is nested.
    longest_scavenged: Option<(u64, Inner)>,
    cost: Fit,
    /// The nested pauses since the last one that was not.
    inner: Option<Inner>,
}

impl Remarks {
    pub(super) fn pause(&mut self, pause: &Pause, mark: Mark, collector: Option<Collector>) {
        let young = young_of(&pause.areas);
        if pause.nested {
            let inner = self.inner.get_or_insert_default();
            inner.ns = inner.ns.saturating_add(pause.duration_ns.unwrap_or(0));
            inner.before = inner.before.or(young.before);
            inner.after = young.after;
            return;
        }
        let inner = self.inner.take();
        if pause.kind != Kind::Remark || moves_concurrently(collector) {
            return;
        }
        let Some(ns) = pause.duration_ns else { return };
        let own = ns.saturating_sub(inner.map_or(0, |inner| inner.ns));
        self.time.add(own);
        self.scavenged += u64::from(inner.is_some());
        if let Some(inner) = inner
            && self.longest_scavenged.is_none_or(|(most, _)| most < ns)
        {
            self.longest_scavenged = Some((ns, inner));
        }
        let occupancy = pause
            .young_occupancy
            .or_else(|| Some((young.after?, young.capacity?)));
        // The figure that the log prints is of before the young collection within.
        let left = match inner {
            Some(inner) => inner.after,
            None => occupancy.map(|(used, _)| used),
        };
        if let Some(used) = left {
            self.cost.add(used, own);
        }
        if self.longest.is_none_or(|(most, _)| most < own) {
            self.longest = Some((own, mark));
            self.longest_phases.clone_from(&pause.phases);
            self.longest_young = occupancy.map(|(used, capacity)| (left.unwrap_or(used), capacity));
        }
    }

    pub(super) fn report(&self, book: &Book) -> Option<gc::Remarks> {
        let (own, mark) = self.longest?;
        Some(gc::Remarks {
            time: self.time.spread(),
            scavenged: self.scavenged,
            longest: mark.moment(book),
            longest_own_ms: ms(own),
            longest_phases: phases_of_one(book, &self.longest_phases),
            longest_young_bytes: self.longest_young.map(|(used, _)| used),
            longest_young_capacity_bytes: self.longest_young.map(|(_, capacity)| capacity),
            scavenge: self.longest_scavenged.map(|(ns, inner)| gc::Scavenge {
                before_bytes: inner.before,
                after_bytes: inner.after,
                duration_ms: ms(inner.ns),
                remark_ms: ms(ns),
            }),
            young_cost: self.cost.cost(),
        })
    }
}
