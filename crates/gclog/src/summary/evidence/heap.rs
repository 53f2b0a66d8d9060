//! Evidence of the heap: allocation, promotion, ages, live set, old collections, metaspace, fragmentation.

use rungwise_model::{gc, keys};

use super::super::course::{PARTS, parts};
use super::super::slope::over_time;
use super::why::Why;
use super::{From, Teller, counted};

/// Seconds in an hour.
const HOUR: f64 = 3600.0;

impl Teller<'_> {
    pub(super) fn heap(&mut self) {
        self.capacities();
        self.allocation();
        self.promotion();
        self.ages();
        self.live();
        self.old();
        self.metaspace();
        self.fragmentation();
    }

    fn capacities(&mut self) {
        let heap = &self.run.heap;
        for (key, part) in [
            (&keys::GC_HEAP_CAPACITY, "heap"),
            (&keys::GC_OLD_CAPACITY, "old"),
            (&keys::GC_YOUNG_CAPACITY, "young"),
        ] {
            let part = heap.parts.get(part);
            let capacity = part.and_then(|part| part.capacity_bytes);
            let from = From::maybe("the last record of it", part.map(|part| &part.last));
            let capacity = capacity.map(|bytes| bytes as f64);
            self.number(key, capacity, from, Why::Capacity);
        }
        let whole = heap.parts.get("heap");
        let from = match self.run.jvm.max_heap_bytes {
            Some(_) => From::words("from the log's JVM header"),
            None => From::maybe("the largest capacity seen", whole.map(|part| &part.last)),
        };
        let most = self.largest_heap().map(|bytes| bytes as f64);
        self.number(&keys::GC_HEAP_MAX, most, from, Why::Capacity);
        let young = heap.parts.get("young").map(|part| &part.last);
        let from = From::maybe("mean of the young collections; the last", young);
        let why = Why::YoungSizes;
        self.number(&keys::GC_EDEN_FREED, heap.eden_freed_bytes, from, why);
        self.number(&keys::GC_SURVIVORS, heap.survivors_bytes, from, why);
        let full = self.run.survivors_full;
        self.number(&keys::GC_SURVIVORS_FULL, full, from, Why::Survivors);
        let used = heap.parts.get("young").map(|part| &part.before);
        let course = used.map_or_else(Vec::new, |used| parts(used, PARTS));
        let mean = used.and_then(|used| parts(used, 1).first().copied());
        let lacks = match (used, self.run.seconds) {
            (Some(_), None) => Why::Clock,
            _ => why,
        };
        self.series(&keys::GC_YOUNG_USED, mean, course, from, lacks);
        let resizes = self.run.resizes.as_ref();
        let last = resizes.and_then(|resizes| resizes.last.as_ref());
        let words = resizes.map_or_else(String::new, |resizes| {
            format!(
                "{} in total, the last",
                counted(resizes.count, "change", "changes")
            )
        });
        let late = resizes.filter(|_| self.run.seconds.is_some());
        let lacks = match resizes {
            Some(_) => Why::Clock,
            None => Why::Resizes,
        };
        self.number(
            &keys::GC_HEAP_RESIZES,
            late.map(|resizes| resizes.late as f64),
            From::maybe(&words, last),
            lacks,
        );
        let from = From::maybe("the maximum", heap.humongous.as_ref());
        let share = heap.humongous_share;
        self.number(&keys::GC_HUMONGOUS_SHARE, share, from, Why::Humongous);
        let sizes = heap.humongous_sizes.as_ref();
        let words = sizes.map_or_else(String::new, |sizes| {
            format!("{}, the last", counted(sizes.count, "object", "objects"))
        });
        let from = From::maybe(&words, sizes.map(|sizes| &sizes.last));
        let size = sizes.map(|sizes| sizes.p90_bytes as f64);
        self.number(&keys::GC_HUMONGOUS_SIZE, size, from, Why::HumongousSizes);
    }

    fn allocation(&mut self) {
        let rate = self.run.allocation.as_ref();
        let words = rate.map_or_else(String::new, |rate| {
            format!("{} bytes in {:.3} s, the last", rate.bytes, rate.known_s)
        });
        let from = From::maybe(&words, rate.and_then(|rate| rate.ends.last()));
        let mean = rate.map(|rate| rate.bytes_per_s);
        self.number(&keys::GC_ALLOCATION_RATE, mean, from, Why::Sizes);
        let known = rate.zip(self.run.seconds.filter(|seconds| *seconds > 0.0));
        let known = known.map(|(rate, seconds)| (rate.known_s / seconds).min(1.0));
        self.number(&keys::GC_ALLOCATION_KNOWN, known, from, Why::Sizes);
        let from = From::maybe("the end of the span", rate.and_then(|r| r.peak.as_ref()));
        let peak = rate.and_then(|rate| rate.peak_bytes_per_s);
        let why = if rate.is_some() {
            Why::Span
        } else {
            Why::Sizes
        };
        self.number(&keys::GC_ALLOCATION_PEAK, peak, from, why);
    }

    fn largest_heap(&self) -> Option<u64> {
        let seen = self.run.heap.parts.get("heap");
        let seen = seen.and_then(|part| part.largest_capacity_bytes);
        self.run.jvm.max_heap_bytes.or(seen)
    }

    fn promotion(&mut self) {
        let promotion = self.run.promotion.as_ref();
        let words = promotion.map_or_else(String::new, |promotion| {
            let count = promotion.collections;
            format!(
                "{}, the largest",
                counted(count, "collection", "collections")
            )
        });
        let largest = promotion.map(|promotion| &promotion.largest);
        let from = From::maybe(&words, largest);
        let why = Why::Promotion;
        let mean = promotion.map(|promotion| promotion.mean_bytes);
        self.number(&keys::GC_PROMOTED, mean, from, why);
        let old = self.run.heap.parts.get("old");
        let old = old.and_then(|part| part.largest_capacity_bytes);
        let old = old.or_else(|| self.largest_heap());
        let most = promotion
            .zip(old.filter(|bytes| *bytes > 0))
            .map(|(promotion, old)| promotion.largest_bytes as f64 / old as f64);
        let why = if promotion.is_some() {
            Why::Capacity
        } else {
            why
        };
        self.number(&keys::GC_PROMOTED_LARGEST, most, from, why);
        let rate = promotion.and_then(|promotion| promotion.rate.as_ref());
        let from = From::maybe(&words, largest);
        let mean = rate.map(|rate| rate.bytes_per_s);
        self.number(&keys::GC_PROMOTION_RATE, mean, from, Why::Promotion);
        let from = From::maybe("the end of the span", rate.and_then(|r| r.peak.as_ref()));
        let peak = rate.and_then(|rate| rate.peak_bytes_per_s);
        let why = if rate.is_some() {
            Why::Span
        } else {
            Why::Promotion
        };
        self.number(&keys::GC_PROMOTION_PEAK, peak, from, why);
    }

    fn ages(&mut self) {
        let ages = self.run.ages.as_ref();
        let count = ages.map_or(0, |ages| ages.count);
        let words = format!("{}, the last", counted(count, "age table", "age tables"));
        let from = From::maybe(&words, ages.map(|ages| &ages.last));
        let why = Why::Ages;
        self.number(&keys::GC_AGE_TABLES, ages.map(|_| count as f64), from, why);
        let desired = ages.and_then(|ages| ages.desired_bytes);
        self.number(&keys::GC_AGE_DESIRED, desired, from, why);
        let settled = ages.and_then(|ages| settled(&ages.survival));
        self.number(&keys::GC_AGE_SETTLED, settled, from, why);
        let needed = ages.and_then(needed);
        self.number(&keys::GC_AGE_NEEDED, needed, from, why);
        let over = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let overflows = ages.and_then(|ages| over(ages.overflows, ages.with_desired));
        self.number(&keys::GC_AGE_OVERFLOWS, overflows, from, why);
        let threshold = ages.and_then(|ages| ages.threshold);
        self.number(&keys::GC_AGE_THRESHOLD, threshold, from, why);
        let lowered = ages.and_then(|ages| {
            let roof = ages.threshold_max.is_some();
            over(ages.lowered, ages.with_threshold).filter(|_| roof)
        });
        self.number(&keys::GC_AGE_THRESHOLD_LOWERED, lowered, from, why);
        let roof = ages.and_then(|ages| ages.threshold_max);
        let roof = roof.map(|roof| roof as f64);
        self.number(&keys::GC_AGE_THRESHOLD_MAX, roof, from, why);
    }

    fn live(&mut self) {
        let live = self.run.live.as_ref();
        let words = live.map_or_else(String::new, |live| {
            let count = counted(live.samples, "old collection", "old collections");
            format!("{count} ({}), the last", live.source.word())
        });
        let from = From::maybe(&words, live.map(|live| &live.last));
        let why = self.no_live();
        let course = live.map(|live| parts(&live.course, PARTS));
        let last = live.map(|live| live.last_bytes as f64);
        self.series(&keys::GC_LIVE, last, course.unwrap_or_default(), from, why);
        let samples = live.map(|live| live.samples as f64);
        self.number(&keys::GC_LIVE_SAMPLES, samples, from, why);
        let source = live.map(|live| live.source.word().to_owned());
        self.text(&keys::GC_LIVE_SOURCE, source, from, why);
        let share = live.and_then(|live| {
            let room = live.room_bytes.filter(|room| *room > 0)?;
            Some(live.last_bytes as f64 / room as f64)
        });
        let lacks = if live.is_some() { Why::Capacity } else { why };
        self.number(&keys::GC_LIVE_SHARE, share, from, lacks);
        let room = live.and_then(|live| live.room_bytes.filter(|room| *room > 0));
        let over_room = |bytes: u64| Some(bytes as f64 / room? as f64);
        let peak = live.and_then(|live| over_room(live.max_bytes));
        self.number(&keys::GC_LIVE_PEAK, peak, from, lacks);
        let falls = live.map(|live| falls(&live.course) as f64);
        self.number(&keys::GC_LIVE_FALLS, falls, from, why);
        let whole = self.run.heap.parts.get("heap").zip(self.run.seconds);
        let began = self.run.began_s.unwrap_or(0.0);
        // After the start, and long before the end.
        let least = |part: [f64; 2]| {
            let (heap, seconds) = whole?;
            least(&heap.after, part.map(|share| began + share * seconds))
        };
        let early = least([0.1, 0.4]);
        self.number(&keys::GC_LIVE_EARLY, early, from, why);
        let rise = early.filter(|early| *early > 0.0).zip(least([0.8, 1.0]));
        let rise = rise.map(|(early, late)| late / early);
        self.number(&keys::GC_LIVE_RISE, rise, from, why);
        let late = live.and_then(|live| late(&live.course));
        self.number(&keys::GC_LIVE_LATE, late, from, Why::LiveSlope);
        let slope = live.and_then(|live| live.bytes_per_hour);
        let lacks = match (live, self.run.seconds) {
            (Some(_), Some(_)) => Why::LiveSlope,
            (Some(_), None) => Why::Clock,
            (None, _) => why,
        };
        for (key, per_hour) in [
            (&keys::GC_LIVE_SLOPE, slope.map(|slope| slope.point)),
            (&keys::GC_LIVE_SLOPE_LOW, slope.map(|slope| slope.low)),
            (&keys::GC_LIVE_SLOPE_HIGH, slope.map(|slope| slope.high)),
        ] {
            self.number(key, per_hour.map(|bytes| bytes / HOUR), from, lacks);
        }
    }

    fn old(&mut self) {
        let old = &self.run.old;
        let words = counted(old.cycles, "concurrent cycle", "concurrent cycles");
        let from = From::words(&words);
        let cycles = Some(old.cycles as f64);
        self.number(&keys::GC_CYCLES, cycles, from, Why::Cycle);
        let length = old.cycle_length.map(|spread| spread.mean_ms / 1e3);
        self.number(&keys::GC_CYCLE_LENGTH, length, from, Why::Cycle);
        let from = From::maybe("mean of the starts; the last", old.occupancy_at.as_ref());
        let share = old.occupancy;
        self.number(&keys::GC_CYCLE_OCCUPANCY, share, from, Why::Cycle);
        let interval = old.interval.map(|spread| spread.mean_ms / 1e3);
        let words = old.interval.map_or(0, |spread| spread.count);
        let words = format!("mean of {}", counted(words, "interval", "intervals"));
        let from = From::words(&words);
        let no_sizes = if self.run.heap.parts.contains_key("old") {
            Why::OldYet
        } else if self.run.jvm.collector.as_deref() == Some("G1") && self.unified == Some(false) {
            Why::OldNotLogged
        } else {
            Why::OldSizes
        };
        let (intervals, sizes) = match (&self.run.live, self.run.seconds) {
            (Some(_), Some(_)) => (Why::OldIntervals, no_sizes),
            (Some(_), None) => (Why::Clock, no_sizes),
            (None, _) => (self.no_live(), self.no_live()),
        };
        self.number(&keys::GC_OLD_INTERVAL, interval, from, intervals);
        let last = old.reclaimed_at.as_ref();
        let from = From::maybe("mean of the old collections; the last", last);
        self.number(&keys::GC_OLD_RECLAIMED, old.reclaimed, from, sizes);
    }

    /// Why no live set is known. A log that tells the heap at collections tells it at old ones too, but for sweeps of CMS, which
    /// free beside the application.
    fn no_live(&self) -> Why {
        let part = if self.run.jvm.collector.as_deref() == Some("CMS") {
            "old"
        } else {
            "heap"
        };
        if self.run.troubles.evacuation_failed.count > 0 && self.run.old.cycles > 0 {
            Why::LiveFailed
        } else if self.run.heap.parts.contains_key(part) {
            Why::LiveYet
        } else {
            Why::Live
        }
    }

    fn metaspace(&mut self) {
        let part = self.run.heap.parts.get("metaspace");
        let from = From::maybe("the last record of it", part.map(|part| &part.last));
        let why = Why::Metaspace;
        let last = part.and_then(|part| part.last_bytes);
        let course = part.map(|part| parts(&part.after, PARTS));
        let last = last.map(|bytes| bytes as f64);
        self.series(
            &keys::GC_METASPACE,
            last,
            course.unwrap_or_default(),
            from,
            why,
        );
        let capacity = part.and_then(|part| part.capacity_bytes);
        let capacity = capacity.map(|bytes| bytes as f64);
        self.number(&keys::GC_METASPACE_CAPACITY, capacity, from, why);
        let slope = self.run.heap.metaspace_bytes_per_hour;
        let why = if part.is_some() {
            Why::MetaspaceSlope
        } else {
            why
        };
        let point = slope.map(|slope| slope.point / HOUR);
        self.number(&keys::GC_METASPACE_SLOPE, point, from, why);
        let low = slope.map(|slope| slope.low / HOUR);
        self.number(&keys::GC_METASPACE_SLOPE_LOW, low, from, why);
    }

    fn fragmentation(&mut self) {
        let lists = self.run.fragmentation.as_ref();
        let words = lists.map_or_else(String::new, |lists| {
            format!(
                "largest block {} of {} bytes free",
                lists.largest_bytes, lists.free_bytes
            )
        });
        let from = From::maybe(&words, lists.map(|lists| &lists.last));
        let course = lists.map(|lists| parts(&lists.course, PARTS));
        let share = lists.filter(|lists| lists.free_bytes > 0);
        let share = share.map(|lists| lists.largest_bytes as f64 / lists.free_bytes as f64);
        self.series(
            &keys::GC_FREE_LARGEST,
            share,
            course.unwrap_or_default(),
            from,
            Why::FreeLists,
        );
    }
}

/// What survivors would hold if nothing left them before the roof of the threshold. An age that no table shows, because
/// objects were promoted before, is taken to lose as large a share as the last one that is shown: those that have lived
/// longer die more slowly (the generational hypothesis), so it is a lower bound. Of a threshold that always was 1 only
/// age 1 is known.
fn needed(ages: &gc::AgeTable) -> Option<f64> {
    /// Four bits of age.
    const OLDEST: u64 = 15;
    let roof = ages
        .threshold_max
        .map_or(OLDEST, |roof| roof.clamp(1, OLDEST));
    let mut bytes = ages
        .mean_bytes
        .first()
        .copied()
        .filter(|first| *first > 0.0)?;
    let (mut sum, mut lives_on) = (bytes, None);
    for age in 1..roof {
        let shown = usize::try_from(age - 1)
            .ok()
            .and_then(|at| *ages.survival.get(at)?);
        lives_on = shown.or(lives_on);
        let Some(share) = lives_on else { break };
        bytes *= share;
        sum += bytes;
    }
    Some(sum)
}

/// The first age from which on nine tenths of the bytes of every age that is shown live on. Few ages show nothing for sure.
fn settled(survival: &[Option<f64>]) -> Option<f64> {
    const LIVES_ON: f64 = 0.9;
    const FEWEST: usize = 3;
    let known = survival.iter().rposition(Option::is_some)? + 1;
    let tail = survival[..known].iter().rev();
    let steps = tail
        .take_while(|share| share.is_some_and(|share| share >= LIVES_ON))
        .count();
    (steps >= FEWEST).then(|| (known - steps + 1) as f64)
}

/// What is left after a fall, as a share of the most before it. Own guess: live sets vary by less from one old collection to the next.
const FALLEN: f64 = 0.7;

/// How often a course falls, each time counted from the most since the last fall.
fn falls(course: &gc::Course) -> usize {
    let mut most = 0.0_f64;
    let mut falls = 0;
    for point in &course.points {
        if point.min < FALLEN * most {
            falls += 1;
            most = point.min;
        } else {
            most = most.max(point.max);
        }
    }
    falls
}

/// The least of a course between two times.
fn least(course: &gc::Course, [from, to]: [f64; 2]) -> Option<f64> {
    let within = course
        .points
        .iter()
        .filter(|point| (from..=to).contains(&point.at_s));
    within.map(|point| point.min).min_by(f64::total_cmp)
}

/// Growth per second over the second half of a course.
fn late(course: &gc::Course) -> Option<f64> {
    let (first, last) = (course.points.first()?.at_s, course.points.last()?.at_s);
    over_time(course, f64::midpoint(first, last)).map(|slope| slope.point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_settle_where_hardly_anything_dies_any_more() {
        let of = |shares: &[f64]| settled(&shares.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(of(&[0.2, 0.5, 0.95, 0.97, 0.99]), Some(3.0));
        assert_eq!(of(&[0.95, 0.95, 0.95]), Some(1.0));
        // Two steps may be chance, and a late fall shows that it is not over.
        assert_eq!(of(&[0.2, 0.95, 0.95]), None);
        assert_eq!(of(&[0.95, 0.95, 0.95, 0.5]), None);
        assert_eq!(settled(&[None, None]), None);
        assert_eq!(
            settled(&[Some(0.2), Some(0.9), Some(0.9), Some(0.9), None]),
            Some(2.0)
        );
    }

    #[test]
    fn survivors_need_room_for_every_age_up_to_the_roof() {
        let mut ages = gc::AgeTable {
            mean_bytes: vec![100.0, 0.0],
            survival: vec![],
            threshold_max: Some(4),
            ..gc::AgeTable::default()
        };
        // Cut at age 1: the first age is all that is known.
        assert_eq!(needed(&ages), Some(100.0));
        // Half of them live on; the third step is reckoned from the second.
        ages.survival = vec![Some(0.5), Some(0.8)];
        let sum = 100.0 + 50.0 + 40.0 + 32.0;
        assert!((needed(&ages).unwrap() - sum).abs() < 1e-9);
        ages.threshold_max = Some(1);
        assert_eq!(needed(&ages), Some(100.0));
        ages.mean_bytes.clear();
        assert_eq!(needed(&ages), None);
    }

    fn course(values: &[f64]) -> gc::Course {
        let point = |(at, value): (usize, &f64)| gc::Point {
            at_s: at as f64,
            min: *value,
            mean: *value,
            max: *value,
            count: 1,
        };
        gc::Course {
            step_s: 1.0,
            points: values.iter().enumerate().map(point).collect(),
        }
    }

    #[test]
    fn each_tooth_of_a_saw_is_one_fall() {
        assert_eq!(
            falls(&course(&[10.0, 50.0, 100.0, 45.0, 80.0, 100.0, 50.0, 40.0])),
            2
        );
        assert_eq!(falls(&course(&[100.0, 80.0, 100.0, 75.0, 90.0])), 0);
        assert_eq!(falls(&course(&[])), 0);
    }

    #[test]
    fn the_least_is_that_of_its_time_alone() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(least(&course(&rising), [2.0, 8.0]), Some(2.0));
        assert_eq!(least(&course(&rising[..2]), [2.0, 8.0]), None);
    }

    #[test]
    fn the_late_slope_is_that_of_the_second_half() {
        let rising: Vec<f64> = (0..20).map(|at| f64::from(at.min(10)) * 3.0).collect();
        assert_eq!(late(&course(&rising)), Some(0.0));
        let straight: Vec<f64> = (0..20).map(|at| f64::from(at) * 3.0).collect();
        assert_eq!(late(&course(&straight)), Some(3.0));
    }
}
