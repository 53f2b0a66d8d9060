//! Collectors that stop the threads for the young generation: Serial, Parallel, ParNew with CMS, G1.

mod figures;
mod sizes;

use rungwise_model::capacity::{Estimate, WhatIf};
use rungwise_model::gc::LiveSet;
use rungwise_stats::interval::student_t;

use super::blocks::{Block, Blocks, FEWEST};
use super::survival::Survival;
use super::watch::Seen;
use super::{Change, Error, Given, MODEL, Prediction, size};
use crate::event::Collector;
use sizes::{Sizes, sizes};

/// `TargetSurvivorRatio`.
const TARGET: f64 = 0.5;
/// Fuller than this, a survivor space overflows: what did not fit was promoted.
const OVERFLOWS: f64 = 0.95;
/// Two runs with the same options, of the same program on the same machine, differ in their median pause by up to this share
/// (`pairs`, at real-time priority).
const RUNS: f64 = 0.15;
/// Share of the collections that may overflow and still be taken for none.
const AT_TIMES: f64 = 0.95;
/// A relation that explains less of the pauses than this share predicts none. A guess.
const EXPLAINED: f64 = 0.3;
/// No more than every other fill of Eden ends in a full collection. A guess that keeps quotients finite.
const HALF: f64 = 0.5;
/// Of the time between two full collections at least this share has promotion. A guess that keeps quotients finite.
const LEAST_PROMOTING: f64 = 0.1;
/// Share of the heap that G1 leaves room for marking in: without `G1ReservePercent` and `G1HeapWastePercent`
/// (`g1IHOPControl.cpp`, `actual_target_threshold`).
const USABLE: f64 = 0.85;
/// `G1HeapWastePercent`: garbage that mixed collections leave.
const WASTE: f64 = 0.05;
/// Cycles after which G1 moves the place where one begins (`G1AdaptiveIHOPNumInitialSamples`).
const ADAPTS: u64 = 3;
/// Bytes in a GiB.
const GIB: f64 = 1_073_741_824.0;

pub(super) fn predict(
    seen: &Seen,
    given: &Given,
    live: Option<&LiveSet>,
    change: Option<&Change>,
) -> Result<Prediction, Error> {
    let model = Model::new(seen, given)?;
    let own = model.state(&model.sizes, 1.0, true);
    let what_if = change
        .map(|change| model.what_if(given, change))
        .transpose()?;
    Ok(Prediction {
        layout: model.layout(&model.sizes),
        allocation: model.allocation,
        now: model.figures(&own, Some(&model.measured())),
        next: model.next(given, live),
        what_if,
        notes: model.notes(),
    })
}

struct Model<'a> {
    seen: &'a Seen,
    collector: Collector,
    sizes: Sizes,
    /// A survivor space had to be supposed.
    supposed: bool,
    /// Parallel moves sizes and threshold; null where it is unknown.
    adaptive: Option<bool>,
    /// Share of a survivor space that the collector wants to use.
    target: f64,
    allocation: Estimate,
    /// Bytes allocated from one collection that empties Eden to the next.
    step: f64,
    /// The same as a share of Eden.
    fill: f64,
    /// Share of Eden that full collections find allocated: one where they come in the place of young ones.
    in_place: f64,
    curve: Result<Survival, String>,
    sum: Block,
}

/// How it is or would be; where a figure is unknown, why.
struct State {
    interval: Estimate,
    survivors: Result<Estimate, String>,
    wanted: Result<Estimate, String>,
    threshold: Result<Estimate, String>,
    promotion: Result<Estimate, String>,
    pause: Result<Estimate, String>,
    old_interval: Result<Estimate, String>,
    share: Result<Estimate, String>,
}

/// What one young collection does.
#[derive(Clone, Copy)]
struct Collection {
    step: Estimate,
    threshold: Estimate,
    survivors: Estimate,
    wanted: Estimate,
    promoted: Estimate,
}

impl Collection {
    fn or(self, other: Self) -> Self {
        Self {
            step: self.step.or(other.step),
            threshold: self.threshold.or(other.threshold),
            survivors: self.survivors.or(other.survivors),
            wanted: self.wanted.or(other.wanted),
            promoted: self.promoted.or(other.promoted),
        }
    }
}

impl<'a> Model<'a> {
    fn new(seen: &'a Seen, given: &Given) -> Result<Self, Error> {
        let collector = seen.facts.collector.unwrap_or(Collector::Serial);
        let (Some(allocation), sum) = (
            seen.blocks.ratio(|b| b.allocated, |b| b.seconds),
            seen.blocks.sum(),
        ) else {
            let blocks = seen.blocks.settled().len();
            return Err(Error::TooLittle(format!(
                "the log contains {blocks} consecutive young collections with a time and the sizes of both generations; a \
                 prediction needs {FEWEST}, and -Xlog:gc*,gc+age=trace (JDK 8: -XX:+PrintGCDetails -XX:+PrintTenuringDistribution)"
            )));
        };
        if allocation.point <= 0.0 {
            return Err(Error::TooLittle("the log shows no allocation".to_owned()));
        }
        let target = match collector {
            // Its `Desired survivor size` is the size.
            Collector::Parallel => 1.0,
            _ => given.target_survivor.unwrap_or(TARGET),
        };
        let mut step = sum.allocated / sum.count;
        // Full collections that empty Eden themselves lie between young ones that are further apart than it takes to fill it.
        let in_place = seen.old.in_place.mean().filter(|_| stops(collector));
        let in_place = in_place.map_or(0.0, |bytes| (bytes / step).min(1.0));
        if let Some(old) = seen.old_seconds() {
            step /= 1.0 + in_place * sum.seconds / sum.count / old;
        }
        let (sizes, supposed) = sizes(seen, given, collector, target, step)?;
        let mut model = Self {
            seen,
            collector,
            sizes,
            supposed,
            adaptive: given.adaptive,
            target,
            allocation: allocation.widened(MODEL),
            step,
            fill: if collector == Collector::G1 {
                1.0
            } else {
                step / sizes.eden
            },
            in_place,
            curve: Err(String::new()),
            sum,
        };
        model.curve = model.curve();
        Ok(model)
    }

    /// Noise of what survives, as a share.
    fn noise(&self) -> f64 {
        let copied = |block: &Block| block.survivors + block.promoted;
        let ratio = self.seen.blocks.ratio(copied, |block| block.allocated);
        ratio
            .filter(|ratio| ratio.point > 0.0)
            .map_or(0.0, |ratio| (ratio.high - ratio.point) / ratio.point)
    }

    fn curve(&self) -> Result<Survival, String> {
        let ages = &self.seen.ages;
        let noise = self.noise();
        let (left, promoted) = (
            self.sum.survivors / self.sum.count,
            self.sum.promoted / self.sum.count,
        );
        let mut curve = Survival::default();
        if self.overflows(left) {
            // What was promoted had not all grown old, and what is left may be of several ages. So it is known only what survives
            // the first collection: no less than goes on to the old generation, no more than passes through all together.
            let ages = self.own_threshold().point.max(1.0);
            let (low, high) = (promoted.max(left / ages), promoted + left);
            let alive = Estimate {
                point: f64::midpoint(low, high),
                low,
                high,
            };
            curve.push(self.step, alive.widened(noise));
            return Ok(curve);
        }
        if let Some(mut alive) = ages.first.mean() {
            curve.push(self.step, Estimate::exact(alive).widened(noise));
            for (was, left) in &ages.lived {
                if *was <= 0.0 {
                    break;
                }
                alive *= (left / was).min(1.0);
                curve.push(self.step, Estimate::exact(alive).widened(noise));
            }
            return Ok(curve);
        }
        if let Some(threshold) = self.constant_threshold().filter(|threshold| *threshold > 0) {
            let survived = Estimate::exact(left).widened(noise);
            curve.push(self.step * threshold as f64, survived);
            curve.push(self.step, Estimate::exact(promoted).widened(noise));
            return Ok(curve);
        }
        Err(self.no_ages())
    }

    /// The survivor spaces do; where no table tells of what age objects are promoted, now and then is enough to mislead.
    fn overflows(&self, left: f64) -> bool {
        let full = OVERFLOWS * self.sizes.survivor;
        if self.collector == Collector::G1 {
            // Regions count as used whatever is in them.
            return self
                .seen
                .ages
                .counted
                .mean()
                .is_some_and(|counted| counted > full);
        }
        let at_times = self.seen.young_after.quantile(AT_TIMES) as f64 > full;
        let by_age = self.seen.ages.tables > 0 || self.constant_threshold().is_none();
        left > full || at_times && !by_age
    }

    /// The threshold of a collector that does not move it.
    fn constant_threshold(&self) -> Option<u64> {
        let thresholds = &self.seen.ages.threshold;
        if thresholds.count() > 0 {
            let (least, most) = (thresholds.quantile(0.0), thresholds.quantile(1.0));
            return (least == most).then_some(least);
        }
        let keeps = self.collector == Collector::Parallel && self.adaptive == Some(false);
        keeps.then_some(u64::from(self.sizes.max_tenuring))
    }

    /// Why it is unknown how long objects live, and what would tell it.
    fn no_ages(&self) -> String {
        if self.collector == Collector::Parallel {
            return "unknown: Parallel logs no age tables, and adaptive sizing moves the threshold; object lifetimes need a log \
                    with -XX:-UseAdaptiveSizePolicy and the options in its header (-Xlog:arguments), or a log of another collector"
                .to_owned();
        }
        let version = self.seen.facts.version.as_deref().unwrap_or("");
        let old =
            version.starts_with("1.") || self.collector == Collector::Cms && version.is_empty();
        let flag = if old {
            "-XX:+PrintTenuringDistribution"
        } else {
            "-Xlog:gc+age=trace"
        };
        format!("unknown: the log lacks age tables, which show object lifetimes; add {flag}")
    }

    /// How far one age table is from their mean, as a share.
    fn swing(&self) -> f64 {
        let first = &self.seen.ages.first;
        first
            .mean()
            .filter(|mean| *mean > 0.0)
            .map_or(0.0, |mean| (first.deviation() / mean).min(0.5))
    }

    /// What survivors take more than the tables count, in bytes: ends of the threads' buffers, and of regions.
    fn waste(&self) -> f64 {
        let ages = &self.seen.ages;
        match (ages.took.mean(), ages.counted.mean()) {
            (Some(took), Some(counted @ 1.0..)) => (took - counted).max(0.0),
            _ => 0.0,
        }
    }

    /// It lowers the threshold so that survivors fit.
    fn adapts(&self) -> bool {
        self.collector != Collector::Parallel
    }

    /// What a collection does with these sizes; G1's Eden is what its survivors leave of the young generation.
    fn collection(&self, curve: &Survival, sizes: &Sizes, fill: f64) -> Collection {
        let mut step = Estimate::exact(fill * sizes.eden);
        if self.collector != Collector::G1 {
            return self.collection_of(curve, sizes, step);
        }
        let mut collection = self.collection_of(curve, sizes, step);
        // The survivors are a fraction of the young generation, so a few rounds settle to less than a region.
        for _ in 0..8 {
            step = Estimate::exact(sizes.young).less(collection.survivors);
            collection = self.collection_of(curve, sizes, Estimate::exact(step.point));
        }
        collection.step = step;
        collection
    }

    fn collection_of(&self, curve: &Survival, sizes: &Sizes, step: Estimate) -> Collection {
        let one = step.point;
        let up_to = |age: u32| curve.up_to(f64::from(age) * one);
        let desired = self.target * sizes.survivor;
        let lowered = |bytes: &dyn Fn(&Estimate) -> f64| {
            let fits = |age: &u32| bytes(&up_to(*age)) <= desired;
            let adapts = self.adapts() && sizes.max_tenuring > 0;
            if adapts {
                let first = (1..sizes.max_tenuring).find(|age| !fits(age));
                first.unwrap_or(sizes.max_tenuring)
            } else {
                sizes.max_tenuring
            }
        };
        // A single table is above or below the mean, and where it is near the line that decides.
        let swing = self.swing();
        let least = lowered(&|c: &Estimate| c.high * (1.0 + swing));
        let threshold = lowered(&|c: &Estimate| c.point);
        let most = lowered(&|c: &Estimate| c.low * (1.0 - swing));
        let mut left = Estimate {
            point: up_to(threshold).point,
            low: up_to(least).low,
            high: up_to(most).high,
        };
        let leaving = |age: u32| curve.between(f64::from(age) * one, f64::from(age + 1) * one);
        let mut promoted = leaving(threshold);
        for age in least..=most {
            promoted = promoted.or(leaving(age));
        }
        // What does not fit is promoted: at most all that survives Eden, at least what is more of it than there is room.
        let room = sizes.survivor;
        let born = up_to(1);
        // As much as in the log, or more and less with what survives; none where the ends happen to be full.
        let waste = self.waste();
        let share = waste / self.seen.ages.counted.mean().unwrap_or(1.0).max(1.0);
        left.point += f64::midpoint(waste, left.point * share);
        left.high += waste.max(left.high * share);
        if left.high > room {
            promoted.high = promoted.high.max(born.high);
        }
        if left.low > room {
            promoted.low = promoted.low.max(born.low - room);
        }
        if left.point > room {
            let least = promoted.point.max(born.point - room);
            promoted.point = f64::midpoint(least, born.point.max(least));
        }
        promoted.high = promoted.high.max(promoted.point);
        Collection {
            step,
            threshold: Estimate {
                point: f64::from(threshold),
                low: f64::from(least),
                high: f64::from(most),
            },
            survivors: Estimate {
                point: left.point.min(room),
                low: left.low.min(room),
                high: left.high.min(room),
            },
            wanted: up_to(sizes.max_tenuring).scaled(1.0 / self.target),
            promoted,
        }
    }

    /// `plain` takes Eden as it should be, else as full as this log's collections found it.
    fn state(&self, sizes: &Sizes, rate: f64, plain: bool) -> State {
        let fill = if plain { 1.0 } else { self.fill };
        let allocation = self.allocation.scaled(rate);
        let collected = self.curve.as_ref().map_err(Clone::clone).map(|curve| {
            let by_bytes = self.collection(curve, sizes, fill);
            if (rate - 1.0).abs() < 1e-9 {
                return by_bytes;
            }
            // Objects may live as many bytes, or as many seconds.
            by_bytes.or(self.collection(&curve.at_rate(rate), sizes, fill))
        });
        let step = match &collected {
            Ok(collection) => collection.step,
            Err(_) if self.collector == Collector::G1 => {
                Estimate::exact(sizes.young - self.sum.survivors / self.sum.count)
            }
            Err(_) => Estimate::exact(fill * sizes.eden),
        };
        let mut interval = step.over(allocation).unwrap_or_default();
        // What does not change needs no model; but then the log's own figures are not to be checked by it.
        let kept = self.keeps(sizes, rate);
        let or_kept = |modelled: Result<Estimate, String>, measured: Option<Estimate>| match (
            modelled, measured,
        ) {
            (Err(_), Some(measured)) if kept => Ok(measured),
            (Ok(_), Some(measured)) if kept && !plain => Ok(measured),
            (modelled, _) => modelled,
        };
        let promotion = collected
            .clone()
            .map(|c| c.promoted.over(interval).unwrap_or_default());
        let promotion = or_kept(promotion, self.steady_promotion());
        let slower = collected
            .clone()
            .map(|c| self.slower(c.survivors.plus(c.promoted)));
        let slower = or_kept(slower, Some(Estimate::exact(1.0)));
        let threshold = match &collected {
            Ok(collection) => collection.threshold,
            Err(_) => self.own_threshold(),
        };
        let without = self.without_promotion(threshold, interval.point);
        let old_interval = self.old_interval(sizes, &promotion, without);
        let promotion = promotion.map(|promotion| match &old_interval {
            Ok(old) if without.high > 0.0 => {
                let share = |without: f64, old: f64| (1.0 - without / old).max(LEAST_PROMOTING);
                Estimate {
                    point: promotion.point * share(without.point, old.point),
                    low: promotion.low * share(without.high, old.low),
                    high: promotion.high * share(without.low, old.high),
                }
            }
            _ => promotion,
        });
        if let Ok(old) = &old_interval {
            interval = self.between_young(interval, *old);
        }
        let share = self.share(sizes, interval, &slower, &old_interval);
        if let Ok(share) = share {
            // A closed loop allocates only while it runs.
            let before = 1.0 - self.measured_share();
            let after = (1.0 - share.point).max(0.01);
            let closed = interval.scaled(before / after);
            interval = interval.or(closed);
        }
        State {
            interval,
            survivors: or_kept(
                collected.clone().map(|c| c.survivors.widened(MODEL)),
                self.survivors(),
            ),
            wanted: collected.clone().map(|c| c.wanted),
            threshold: collected.map(|c| c.threshold),
            promotion: promotion.map(|promotion| promotion.widened(MODEL)),
            pause: slower.and_then(|slower| {
                let median = median_pause(self.seen, &self.seen.blocks);
                let median = median.ok_or("unknown: the log has fewer than five young pauses")?;
                Ok(median.times(slower))
            }),
            old_interval,
            share,
        }
    }

    /// Young collections go on as they do.
    fn keeps(&self, sizes: &Sizes, rate: f64) -> bool {
        let same = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        same(sizes.eden, self.sizes.eden)
            && same(sizes.survivor, self.sizes.survivor)
            && sizes.max_tenuring == self.sizes.max_tenuring
            && same(rate, 1.0)
    }

    fn survivors(&self) -> Option<Estimate> {
        let survivors = self.seen.blocks.ratio(|b| b.survivors, |b| b.count)?;
        Some(survivors.widened(MODEL))
    }

    fn promotion(&self) -> Option<Estimate> {
        self.seen.blocks.ratio(|b| b.promoted, |b| b.seconds)
    }

    fn mean_pause(&self) -> Option<Estimate> {
        let mean = self.seen.blocks.ratio(|b| b.pause_s, |b| b.count)?;
        Some(mean.widened(RUNS))
    }

    /// How many times as long pauses are where so much is copied. A pause has a part that follows what is copied and one that
    /// does not, so it lies between the log's own and that in proportion; a relation in the log says where.
    fn slower(&self, copied: Estimate) -> Estimate {
        let own = Estimate::exact(1.0);
        let (Some(mean), Some(usual @ 1.0..)) = (self.seen.pause.mean(), self.seen.copied.mean())
        else {
            return own;
        };
        let in_proportion = copied.scaled(1.0 / usual);
        let mut slower = own.or(in_proportion);
        slower.point = f64::midpoint(1.0, in_proportion.point);
        let cost = self.seen.cost.cost();
        if let Some(cost) =
            cost.filter(|cost| cost.s_per_gib.low > 0.0 && cost.explained >= EXPLAINED)
        {
            let more = (copied.point - usual) / GIB * cost.s_per_gib.point;
            let ends = (in_proportion.point.min(1.0), in_proportion.point.max(1.0));
            slower.point = (1.0 + more / mean).clamp(ends.0, ends.1);
        }
        slower
    }

    /// From one young collection to the next, where Eden fills every `fills` seconds and some of the fills end in full ones.
    fn between_young(&self, fills: Estimate, old: Estimate) -> Estimate {
        let longer = |fills: f64, old: f64| fills / (1.0 - self.in_place * fills / old).max(HALF);
        if self.in_place <= 0.0 {
            return fills;
        }
        Estimate {
            point: longer(fills.point, old.point),
            low: longer(fills.low, old.high),
            high: longer(fills.high, old.low),
        }
    }

    /// What one young collection promotes: an old collection comes when that no longer fits, so it cannot be predicted finer.
    fn grain(&self) -> f64 {
        self.sum.promoted / self.sum.count
    }

    /// Where the next old collection begins with these sizes, bytes in use in the old generation.
    fn trigger(&self, sizes: &Sizes) -> Option<Estimate> {
        let starts = &self.seen.old.at_start;
        let at = starts.estimate(self.grain())?;
        let (old, own) = (sizes.old()?, self.sizes.old()?);
        let moved = |by: f64| Estimate {
            point: (at.point + by).max(0.0),
            low: (at.low + by).max(0.0),
            high: (at.high + by).max(0.0),
        };
        Some(match self.collector {
            Collector::Cms => at.scaled(old / own),
            Collector::G1 => {
                let (heap, own_heap) = (sizes.heap?, self.sizes.heap?);
                let more = USABLE * (heap - own_heap) - (sizes.young - self.sizes.young);
                if more.abs() < 1.0 {
                    return Some(at);
                }
                // A share of the heap at first; later as far from its end as the young generation and a cycle take.
                let (by_share, by_distance) = (at.scaled(heap / own_heap), moved(more));
                if starts.count > ADAPTS {
                    by_distance.or(by_share)
                } else {
                    let adapted = Estimate::exact((USABLE * heap - sizes.young).max(0.0));
                    by_share.or(by_distance).or(adapted)
                }
            }
            _ => moved(old - own),
        })
    }

    /// In use when an old collection is done; G1 leaves more in a larger heap, since it takes a share of it for not worth the work.
    fn left(&self, sizes: &Sizes) -> Option<Estimate> {
        let mut left = self.seen.old.left()?.estimate(self.grain())?;
        if let (Collector::G1, Some(heap), Some(own)) =
            (self.collector, sizes.heap, self.sizes.heap)
        {
            let more = WASTE * (heap - own);
            left.low = (left.low + more.min(0.0)).max(0.0);
            left.high += more.max(0.0);
        }
        Some(left)
    }

    /// That of the log where young collections promote.
    fn steady_promotion(&self) -> Option<Estimate> {
        let interval = self.step / self.allocation.point;
        let without = self.without_promotion(self.own_threshold(), interval);
        let share = self
            .seen
            .old_seconds()
            .map_or(0.0, |old| without.point / old);
        let promoting = (1.0 - share).max(LEAST_PROMOTING);
        Some(self.promotion()?.scaled(1.0 / promoting))
    }

    /// Median of the log, or what it is set to.
    fn own_threshold(&self) -> Estimate {
        let thresholds = &self.seen.ages.threshold;
        let median = (thresholds.count() > 0).then(|| thresholds.quantile(0.5) as f64);
        let constant = self.constant_threshold().map(|threshold| threshold as f64);
        Estimate::exact(median.or(constant).unwrap_or(0.0))
    }

    /// Seconds behind a full collection in which young ones promote nothing: it takes all that lives to the old generation, and
    /// what is born then has to grow old first.
    fn without_promotion(&self, threshold: Estimate, interval: f64) -> Estimate {
        let survivors = self.sum.survivors / self.sum.count;
        let left = self.seen.old.young_left.mean();
        match (self.collector, left) {
            (collector, Some(left)) if stops(collector) && survivors > 0.0 => {
                let emptied = 1.0 - (left / survivors).min(1.0);
                threshold.scaled(emptied * interval)
            }
            _ => Estimate::default(),
        }
    }

    fn old_interval(
        &self,
        sizes: &Sizes,
        promotion: &Result<Estimate, String>,
        without: Estimate,
    ) -> Result<Estimate, String> {
        let (Some(trigger), Some(left)) = (self.trigger(sizes), self.left(sizes)) else {
            return Err(
                "unknown: the log contains no old collection, so the old generation after one is unknown; use a longer log"
                    .to_owned(),
            );
        };
        if trigger.point <= left.point {
            return Err(format!(
                "old collections would run back to back: {} stay in use, and one starts at {}",
                size(left.point),
                size(trigger.point)
            ));
        }
        let promotion = promotion.clone()?;
        let growth = promotion.scaled(self.growth(left.point));
        let interval = trigger.less(left).over(growth);
        let interval =
            interval.ok_or("unknown: nothing is promoted, so no old collection is due")?;
        Ok(interval.plus(without).widened(MODEL))
    }

    /// How fast the old generation grows by what is promoted: more where objects are born in it.
    fn growth(&self, left: f64) -> f64 {
        let old = &self.seen.old;
        let promoted = self.sum.promoted / self.sum.seconds;
        let grown = old.at_start.mean().map(|at| at - left);
        match (grown, old.interval.count()) {
            (Some(grown), 1..) if promoted > 0.0 && grown > 0.0 => {
                let mean = old.interval.sum_ms() / 1e3 / old.interval.count() as f64;
                grown / mean / promoted
            }
            _ => 1.0,
        }
    }

    fn share(
        &self,
        sizes: &Sizes,
        interval: Estimate,
        slower: &Result<Estimate, String>,
        old_interval: &Result<Estimate, String>,
    ) -> Result<Estimate, String> {
        let mean = self
            .mean_pause()
            .ok_or("unknown: the log has no pauses with sizes")?;
        let young = mean
            .times(slower.clone()?)
            .over(interval)
            .unwrap_or_default();
        let starts = self.seen.old.at_start.count as f64;
        let other = self.other_pauses();
        let old = if starts > 0.0 {
            // One old collection may take twice as long as another, and of one alone nobody knows.
            let each = other / starts;
            let spread =
                self.seen.other.deviation() * (starts / self.seen.other.count as f64).sqrt();
            let noise = if starts > 1.0 {
                let reach = student_t(0.975, starts as usize - 1) * (2.0 / (starts - 1.0)).sqrt();
                reach * spread / each
            } else {
                1.0
            };
            let mut each = Estimate::exact(each).widened(noise);
            // A full collection has a part that follows what lives and one that follows all that is in use.
            let fuller = self.trigger(sizes).zip(self.trigger(&self.sizes));
            let fuller = fuller.filter(|(_, own)| stops(self.collector) && own.point > 0.0);
            if let Some((then, own)) = fuller {
                let in_proportion = each.scaled(then.point / own.point);
                each = each.or(in_proportion);
                each.point = f64::midpoint(each.point, in_proportion.point);
            }
            each.over(old_interval.clone()?).unwrap_or_default()
        } else {
            Estimate::exact(other / self.seen.seconds())
        };
        let share = young.plus(old);
        Ok(Estimate {
            point: share.point.min(1.0),
            low: share.low.min(1.0),
            high: share.high.min(1.0),
        })
    }

    /// Seconds in pauses of old collections; of G1's mixed collections what they take longer than young ones.
    fn other_pauses(&self) -> f64 {
        let mixed = self.seen.mixed;
        let longer = mixed.sum - mixed.count as f64 * self.sum.pause_s / self.sum.count;
        self.seen.other.sum + longer.max(0.0)
    }

    /// Start-up is left out, as of what the model reckons with.
    fn measured_share(&self) -> f64 {
        self.sum.pause_s / self.sum.seconds + self.other_pauses() / self.seen.seconds()
    }

    fn what_if(&self, given: &Given, change: &Change) -> Result<WhatIf, Error> {
        let (sizes, notes) = self.changed(given, change)?;
        let state = self.state(&sizes, change.rate, false);
        Ok(WhatIf {
            asked: change.asked.clone(),
            layout: self.layout(&sizes),
            allocation_bytes_per_s: Some(self.allocation.scaled(change.rate)),
            figures: self.figures(&state, None),
            notes,
        })
    }
}

/// Its old collections are full ones.
fn stops(collector: Collector) -> bool {
    matches!(collector, Collector::Serial | Collector::Parallel)
}

/// Median young pause in seconds, by the ranks of the order statistics that hold it, further apart as pauses that come in waves
/// make blocks differ more.
pub(super) fn median_pause(seen: &Seen, blocks: &Blocks) -> Option<Estimate> {
    let (pauses, deviation) = seen.usual_pauses();
    let mean = blocks.ratio(|b| b.pause_s, |b| b.count)?;
    let n = pauses.count() as f64;
    let alone = 2.0 * deviation * (2.0 / n).sqrt();
    let waves = ((mean.high - mean.point) / alone).max(1.0);
    let reach = (2.0_f64 / n).sqrt() * waves;
    let at = |share: f64| pauses.quantile(share.clamp(0.0, 1.0)) as f64 / 1e9;
    let median = Estimate {
        point: at(0.5),
        low: at(0.5 - reach),
        high: at(0.5 + reach),
    };
    (pauses.count() >= FEWEST as u64).then(|| median.widened(RUNS))
}
