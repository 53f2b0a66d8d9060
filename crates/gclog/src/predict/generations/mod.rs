//! Collectors that stop the threads for the young generation: Serial, Parallel, ParNew with CMS, G1.

mod sizes;
mod told;

use rungwise_model::capacity::{Estimate, WhatIf};
use rungwise_model::gc::LiveSet;

use super::survival::Survival;
use super::watch::{Block, FEWEST, Seen};
use super::{Change, Error, Given, MODEL, Prediction, size};
use crate::event::Collector;
use sizes::{Sizes, sizes};

/// `TargetSurvivorRatio`.
const TARGET: f64 = 0.5;
/// Fuller than this, a survivor space overflows: what did not fit was promoted.
const OVERFLOWS: f64 = 0.95;
/// A relation that explains less of the pauses than this share predicts none. A guess.
const EXPLAINED: f64 = 0.3;
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
    /// Parallel moves sizes and threshold; null where it is not known.
    adaptive: Option<bool>,
    /// Share of a survivor space that the collector wants to use.
    target: f64,
    allocation: Estimate,
    /// Bytes allocated from one young collection to the next.
    step: f64,
    /// The same as a share of Eden.
    fill: f64,
    curve: Result<Survival, String>,
    sum: Block,
}

/// How it is or would be; where a figure cannot be told, why.
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
                "the log tells of {blocks} young collections in a row with a time and the sizes of both generations; a prediction \
                 takes {FEWEST}, and -Xlog:gc*,gc+age=trace (JDK 8: -XX:+PrintGCDetails -XX:+PrintTenuringDistribution)"
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
        let step = sum.allocated / sum.count;
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
        if self.collector != Collector::G1 && left > OVERFLOWS * self.sizes.survivor {
            // All of Eden's survivors passed through, and with them those of the last survivor space that still lived.
            let (low, high) = (promoted.max(left), promoted + left);
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
                alive *= left / was;
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

    /// The threshold of a collector that does not move it.
    fn constant_threshold(&self) -> Option<u64> {
        let told = &self.seen.ages.threshold;
        if told.count() > 0 {
            let (least, most) = (told.quantile(0.0), told.quantile(1.0));
            return (least == most).then_some(least);
        }
        let keeps = self.collector == Collector::Parallel && self.adaptive == Some(false);
        keeps.then_some(u64::from(self.sizes.max_tenuring))
    }

    /// Why it is not known how long objects live, and what would tell it.
    fn no_ages(&self) -> String {
        if self.collector == Collector::Parallel {
            return "cannot be told: Parallel prints no age tables, and with adaptive sizing it moves the threshold; how long \
                    objects live is told by a log with -XX:-UseAdaptiveSizePolicy whose header names its options \
                    (-Xlog:arguments), or of another collector"
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
        format!(
            "cannot be told: the log has no age tables, which say how long objects live; add {flag}"
        )
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
        let told = self.curve.as_ref().map_err(Clone::clone).map(|curve| {
            let by_bytes = self.collection(curve, sizes, fill);
            if (rate - 1.0).abs() < 1e-9 {
                return by_bytes;
            }
            // Objects may live as many bytes, or as many seconds.
            by_bytes.or(self.collection(&curve.at_rate(rate), sizes, fill))
        });
        let step = match &told {
            Ok(collection) => collection.step,
            Err(_) if self.collector == Collector::G1 => {
                Estimate::exact(sizes.young - self.sum.survivors / self.sum.count)
            }
            Err(_) => Estimate::exact(fill * sizes.eden),
        };
        let mut interval = step.over(allocation).unwrap_or_default();
        // What does not change needs no model; but then the log's own figures are not to be checked by it.
        let kept = self.keeps(sizes, rate);
        let or_kept =
            |told: Result<Estimate, String>, measured: Option<Estimate>| match (told, measured) {
                (Err(_), Some(measured)) if kept => Ok(measured),
                (Ok(_), Some(measured)) if kept && !plain => Ok(measured),
                (told, _) => told,
            };
        let promotion = told
            .clone()
            .map(|c| c.promoted.over(interval).unwrap_or_default());
        let promotion = or_kept(promotion, self.promotion());
        let slower = told
            .clone()
            .map(|c| self.slower(c.survivors.plus(c.promoted)));
        let slower = or_kept(slower, Some(Estimate::exact(1.0)));
        let old_interval = self.old_interval(sizes, &promotion);
        let share = self.share(interval, &slower, &old_interval);
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
                told.clone().map(|c| c.survivors.widened(MODEL)),
                self.survivors(),
            ),
            wanted: told.clone().map(|c| c.wanted),
            threshold: told.map(|c| c.threshold),
            promotion: promotion.map(|promotion| promotion.widened(MODEL)),
            pause: slower.and_then(|slower| {
                let median = self.median_pause();
                let median =
                    median.ok_or("cannot be told: the log has fewer than five young pauses")?;
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
        Some(mean.widened(MODEL))
    }

    /// By the ranks of the order statistics that hold it, further apart as pauses that come in waves make blocks differ more.
    fn median_pause(&self) -> Option<Estimate> {
        let (pauses, deviation) = self.seen.usual_pauses();
        let mean = self.seen.blocks.ratio(|b| b.pause_s, |b| b.count)?;
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
        (pauses.count() >= FEWEST as u64).then(|| median.widened(MODEL))
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

    /// Where the next old collection begins with these sizes, bytes in use in the old generation.
    fn trigger(&self, sizes: &Sizes) -> Option<Estimate> {
        let at = self.seen.old.at_start.estimate()?;
        let (old, own) = (sizes.old()?, self.sizes.old()?);
        Some(match self.collector {
            Collector::Cms => at.scaled(old / own),
            Collector::G1 => at.scaled(sizes.heap? / self.sizes.heap?),
            _ => {
                let moved = |at: f64| (at + old - own).max(0.0);
                Estimate {
                    point: moved(at.point),
                    low: moved(at.low),
                    high: moved(at.high),
                }
            }
        })
    }

    fn old_interval(
        &self,
        sizes: &Sizes,
        promotion: &Result<Estimate, String>,
    ) -> Result<Estimate, String> {
        let (Some(trigger), Some(left)) = (
            self.trigger(sizes),
            self.seen.old.left().and_then(|left| left.estimate()),
        ) else {
            return Err(
                "cannot be told: the log shows no old collection, so it is not known what one leaves; a longer log tells"
                    .to_owned(),
            );
        };
        if trigger.point <= left.point {
            return Err(format!(
                "old collections would follow each other without end: {} stay in use, and one begins at {}",
                size(left.point),
                size(trigger.point)
            ));
        }
        let promotion = promotion.clone()?;
        let growth = promotion.scaled(self.growth(left.point));
        let interval = trigger.less(left).over(growth);
        let interval = interval.ok_or("cannot be told: nothing is promoted, so none comes")?;
        Ok(interval.widened(MODEL))
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
        interval: Estimate,
        slower: &Result<Estimate, String>,
        old_interval: &Result<Estimate, String>,
    ) -> Result<Estimate, String> {
        let mean = self
            .mean_pause()
            .ok_or("cannot be told: the log has no pauses with sizes")?;
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
                2.0 * spread * (2.0 / starts).sqrt() / each
            } else {
                1.0
            };
            let each = Estimate::exact(each).widened(noise);
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
