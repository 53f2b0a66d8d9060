//! Two GC logs side by side, or two groups of them: the effect of a change, with its uncertainty, normalized to the same load.
//!
//! For two logs, the interval of a ratio is from batches of each log, since pauses come in bursts and are not independent;
//! variation from run to run is not included. For two groups of four logs or more it is from one value per log, and includes
//! that variation. Where there is no interval, a reason is given: the maximum of one log does not predict the next. Allocation
//! is the load that a JVM sees: figures per GiB allocated do not change with the request rate.

mod page;
mod sentence;

pub use page::blocks;
pub use sentence::clauses;

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::compare::{Metric, RatioInterval, Verdict};
use rungwise_model::gc::{Jvm, Rate, Remarks, Run};
use rungwise_stats::batches::{self, BATCHES, ratio_of_means, ratio_of_quantiles, ratio_of_ratios};
use rungwise_stats::interval::{Interval, centre_interval, median};

use super::{fine_share, millis, per_second, size};
use crate::numbers;

/// An interval misses with this probability.
const ALPHA: f64 = 0.05;
const P99: f64 = 0.99;
/// Why the longest of one log has no interval.
const MAXIMUM: &str = "a maximum of a single log";
const GIB: f64 = (1_u64 << 30) as f64;
/// Of fewer pauses, one in a hundred is none.
const HUNDRED: usize = 100;
/// Pauses of a batch at least, where batches are of pauses and not of time.
const OF_A_BATCH: usize = 4;

/// One log.
#[derive(Clone, Debug)]
pub struct Log<'a> {
    /// Its name.
    pub name: String,
    /// The run with the longest logged time.
    pub run: &'a Run,
    /// Durations of pauses in milliseconds by kind in the order of the log, of all or of a fair draw of them.
    pub pauses: &'a BTreeMap<&'static str, Vec<f64>>,
}

/// One of the two sides: a log, or several of the same setting.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// At least one.
    pub logs: Vec<Log<'a>>,
}

/// An option that differs between the two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The flag: `CMSScavengeBeforeRemark`.
    pub name: String,
    /// Its value before; none where it is not set.
    pub before: Option<String>,
    /// Its value after.
    pub after: Option<String>,
}

/// The time that the log covers, where it has a clock.
fn seconds(run: &Run) -> Option<f64> {
    run.seconds.filter(|seconds| *seconds > 0.0)
}

impl Log<'_> {
    fn throughput(&self) -> Option<f64> {
        self.run.throughput.as_ref().map(|share| share.whole)
    }

    fn allocated(&self) -> Option<f64> {
        self.run.allocation.as_ref().map(|rate| rate.bytes_per_s)
    }

    fn promotion(&self) -> Option<&Rate> {
        self.run.promotion.as_ref()?.rate.as_ref()
    }

    fn promoted(&self) -> Option<f64> {
        self.promotion().map(|rate| rate.bytes_per_s)
    }

    fn seconds(&self) -> Option<f64> {
        seconds(self.run)
    }

    /// For each GiB allocated, what comes so often or long in the run.
    fn per_gib(&self, of_run: f64) -> Option<f64> {
        let gib = self.allocated()? * self.seconds()? / GIB;
        (gib > 0.0).then(|| of_run / gib)
    }

    /// Together, without nested ones where the log has a clock.
    fn sum_ms(&self, kind: &str) -> f64 {
        let pauses = &self.run.pauses;
        match pauses.courses.get(kind) {
            Some(course) => course.points.iter().map(|p| p.mean * p.count as f64).sum(),
            None if pauses.courses.is_empty() => {
                pauses.by_kind.get(kind).map_or(0.0, |kind| kind.total_ms)
            }
            None => 0.0,
        }
    }

    /// How many there are of a kind, without nested ones where the log has a clock; nothing where it has none of that kind.
    fn count(&self, kind: &str) -> Option<f64> {
        let pauses = &self.run.pauses;
        let all = pauses.by_kind.get(kind)?.count as f64;
        match pauses.courses.get(kind) {
            Some(course) => Some(course.points.iter().map(|point| point.count as f64).sum()),
            None if pauses.courses.is_empty() => Some(all),
            None => Some(0.0),
        }
    }

    /// How many of a kind lie within other pauses; nothing where there are none.
    fn nested(&self, kind: &str) -> Option<f64> {
        let all = self.run.pauses.by_kind.get(kind)?.count as f64;
        Some(all - self.count(kind)?).filter(|nested| *nested > 0.0)
    }

    /// The longest of a kind, of the same ones.
    fn longest_ms(&self, kind: &str) -> Option<f64> {
        let pauses = &self.run.pauses;
        let all = pauses.by_kind.get(kind)?.longest_ms;
        match pauses.courses.get(kind) {
            Some(course) => course
                .points
                .iter()
                .map(|point| point.max)
                .max_by(f64::total_cmp),
            None => Some(all).filter(|_| pauses.courses.is_empty()),
        }
    }

    fn remark(&self, of: impl Fn(&Remarks) -> Option<f64>) -> Option<f64> {
        self.run.remark.as_ref().and_then(of)
    }

    /// The same in each of some parts of the run of equal length; empty without a clock.
    fn parts(&self) -> Vec<Part> {
        let (Some(began), Some(seconds)) = (self.run.began_s, self.seconds()) else {
            return Vec::new();
        };
        let each = seconds / BATCHES as f64;
        let mut parts = vec![Part::default(); BATCHES];
        let place = |at_s: f64| ((at_s - began) / each).clamp(0.0, (BATCHES - 1) as f64) as usize;
        for (kind, course) in &self.run.pauses.courses {
            for point in &course.points {
                let part = &mut parts[place(point.at_s)];
                let (count, sum) = part.kinds.entry(kind.clone()).or_default();
                *count += point.count as f64;
                *sum += point.mean * point.count as f64;
            }
        }
        let rates = [self.run.allocation.as_ref(), self.promotion()];
        for (which, rate) in rates.into_iter().enumerate() {
            for point in rate.map_or(&[][..], |rate| &rate.course.points) {
                let (count, sum) = &mut parts[place(point.at_s)].rates[which];
                *count += point.count as f64;
                *sum += point.mean * point.count as f64;
            }
        }
        for part in &mut parts {
            part.seconds = each;
        }
        parts
    }
}

/// A part of a run.
#[derive(Clone, Debug, Default)]
struct Part {
    seconds: f64,
    /// How many pauses of each kind, and how long together.
    kinds: BTreeMap<String, (f64, f64)>,
    /// Of allocation and of promotion: how many values of the rate, and their sum.
    rates: [(f64, f64); 2],
}

impl Part {
    fn count(&self, kind: &str) -> f64 {
        self.kinds.get(kind).map_or(0.0, |(count, _)| *count)
    }

    fn sum_ms(&self) -> f64 {
        self.kinds.values().map(|(_, sum)| sum).sum()
    }

    fn allocated(&self) -> Option<f64> {
        mean(self.rates[0])
    }

    fn promoted(&self) -> Option<f64> {
        mean(self.rates[1])
    }

    /// With the GiB that were allocated meanwhile.
    fn per_gib(&self, of_part: f64) -> Option<(f64, f64)> {
        Some((of_part, self.allocated()? * self.seconds / GIB))
    }
}

/// Of a number of values and their sum.
fn mean((count, sum): (f64, f64)) -> Option<f64> {
    (count > 0.0).then(|| sum / count)
}

impl Side<'_> {
    /// The median of the logs that tell it.
    fn value(&self, of: &dyn Fn(&Log<'_>) -> Option<f64>) -> Option<f64> {
        median(&self.values(of))
    }

    fn values(&self, of: &dyn Fn(&Log<'_>) -> Option<f64>) -> Vec<f64> {
        let values = self.logs.iter().filter_map(of);
        values.filter(|value| value.is_finite()).collect()
    }

    fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.logs.iter().flat_map(|log| log.pauses.keys().copied())
    }
}

/// What the values of a statistic are in.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Millis,
    Count,
    PerMinute,
    Fraction,
    Bytes,
    BytesPerSecond,
}

impl Unit {
    /// As documents name it.
    fn word(self) -> &'static str {
        match self {
            Self::Millis => "ms",
            Self::Count => "count",
            Self::PerMinute => "per_min",
            Self::Fraction => "fraction",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_s",
        }
    }

    /// A value as people read it.
    fn show(self, value: f64) -> String {
        match self {
            Self::Millis => millis(value),
            Self::Count | Self::PerMinute => numbers::significant(value),
            Self::Fraction => fine_share(value),
            Self::Bytes => size(value),
            Self::BytesPerSecond => per_second(value),
        }
    }
}

type FromLog<'a, T> = Box<dyn Fn(&Log<'_>) -> T + 'a>;

/// Something that a log tells.
struct Statistic<'a> {
    group: &'static str,
    name: String,
    unit: Unit,
    of: FromLog<'a, Option<f64>>,
    sureness: Sureness<'a>,
}

/// How one log tells how sure it is.
enum Sureness<'a> {
    /// It does not: why.
    None(&'static str),
    /// It is the mean of values of batches, or near it.
    Mean(FromLog<'a, Vec<f64>>),
    /// It is the sum of the first over the sum of the second.
    Ratio(FromLog<'a, Vec<(f64, f64)>>),
    /// It is the p99 of these, which are in their order.
    P99(FromLog<'a, Vec<f64>>),
}

impl<'a> Statistic<'a> {
    fn new(
        group: &'static str,
        name: impl Into<String>,
        unit: Unit,
        of: impl Fn(&Log<'_>) -> Option<f64> + 'a,
    ) -> Self {
        Self {
            group,
            name: name.into(),
            unit,
            of: Box::new(of),
            sureness: Sureness::None("one value per log"),
        }
    }

    fn unsure(mut self, why: &'static str) -> Self {
        self.sureness = Sureness::None(why);
        self
    }

    /// With batches of parts of the run.
    fn by_part(self, of: impl Fn(&Part) -> Option<f64> + 'a) -> Self {
        self.by_batch(move |log| log.parts().iter().filter_map(&of).collect())
    }

    fn by_batch(mut self, batches: impl Fn(&Log<'_>) -> Vec<f64> + 'a) -> Self {
        self.sureness = Sureness::Mean(Box::new(batches));
        self
    }

    /// With the two sums of parts of the run.
    fn by_sums(mut self, of: impl Fn(&Part) -> Option<(f64, f64)> + 'a) -> Self {
        let parts = move |log: &Log<'_>| log.parts().iter().filter_map(&of).collect();
        self.sureness = Sureness::Ratio(Box::new(parts));
        self
    }

    /// After over before, where there is enough to say how sure it is.
    fn ratio(&self, before: &Side<'_>, after: &Side<'_>) -> Option<RatioInterval> {
        let point = after.value(&self.of)? / before.value(&self.of)?;
        let interval = self
            .by_log(before, after)
            .or_else(|| self.within(before, after))?;
        let ratio = RatioInterval {
            point,
            low: point * interval.low / interval.point,
            high: point * interval.high / interval.point,
        };
        let finite = [ratio.point, ratio.low, ratio.high];
        finite.iter().all(|x| x.is_finite()).then_some(ratio)
    }

    /// Of groups: each log is one value.
    fn by_log(&self, before: &Side<'_>, after: &Side<'_>) -> Option<Interval> {
        // Each of the two intervals misses half as often.
        let interval = |side: &Side<'_>| {
            let logs: Vec<f64> = side.values(&self.of).iter().map(|x| x.ln()).collect();
            centre_interval(&logs, ALPHA / 2.0)
        };
        let (a, b) = (interval(before)?, interval(after)?);
        Some(Interval {
            point: (b.point - a.point).exp(),
            low: (b.low - a.high).exp(),
            high: (b.high - a.low).exp(),
        })
    }

    /// Of two logs: by batches of each.
    fn within(&self, before: &Side<'_>, after: &Side<'_>) -> Option<Interval> {
        let ([before], [after]) = (&before.logs[..], &after.logs[..]) else {
            return None;
        };
        match &self.sureness {
            Sureness::None(_) => None,
            Sureness::Mean(of) => ratio_of_means(&of(before), &of(after), ALPHA),
            Sureness::Ratio(of) => ratio_of_ratios(&of(before), &of(after), ALPHA),
            Sureness::P99(of) => ratio_of_quantiles(&of(before), &of(after), P99, ALPHA),
        }
    }

    /// Why there is no interval.
    fn no_ratio(&self, before: &Side<'_>, after: &Side<'_>) -> &'static str {
        match &self.sureness {
            _ if before.logs.len().max(after.logs.len()) > 1 => "too few logs per side",
            Sureness::None(why) => why,
            Sureness::Mean(_) | Sureness::Ratio(_) => "too little data in a log",
            Sureness::P99(_) => "too few longer pauses in a log",
        }
    }
}

fn kinds(before: &Side<'_>, after: &Side<'_>) -> BTreeSet<&'static str> {
    before.kinds().chain(after.kinds()).collect()
}

/// The middle pause of a kind.
fn middle(kind: &'static str) -> Statistic<'static> {
    Statistic::new(
        "Pauses",
        format!("{kind}: median"),
        Unit::Millis,
        move |log| median(log.pauses.get(kind)?),
    )
    .by_batch(move |log| {
        let pauses = log.pauses.get(kind).map_or(&[][..], Vec::as_slice);
        let batches = BATCHES.min(pauses.len() / OF_A_BATCH).max(1);
        let each = pauses.len() / batches;
        let whole = pauses.chunks_exact(each.max(1)).take(batches);
        whole.filter_map(median).collect()
    })
}

/// How many pauses of a kind come in a minute.
fn rate(kind: &'static str) -> Statistic<'static> {
    Statistic::new(
        "Pauses",
        format!("{kind}: per minute"),
        Unit::PerMinute,
        move |log| Some(log.count(kind)? * 60.0 / log.seconds()?),
    )
    .by_part(move |part| Some(part.count(kind) * 60.0 / part.seconds))
}

/// One in a hundred is longer.
fn hundredth(pauses: &[f64]) -> Option<f64> {
    if pauses.len() < HUNDRED {
        return None;
    }
    let mut sorted = pauses.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    batches::quantile(&sorted, P99)
}

fn p99(kind: &'static str) -> Statistic<'static> {
    let pauses = move |log: &Log<'_>| log.pauses.get(kind).cloned().unwrap_or_default();
    Statistic {
        sureness: Sureness::P99(Box::new(pauses)),
        ..Statistic::new("Pauses", format!("{kind}: p99"), Unit::Millis, move |log| {
            hundredth(log.pauses.get(kind)?)
        })
    }
}

fn statistics(kinds: &BTreeSet<&'static str>) -> Vec<Statistic<'static>> {
    let mut all = Vec::new();
    for &kind in kinds {
        all.push(middle(kind));
        all.push(p99(kind));
        let longest = Statistic::new(
            "Pauses",
            format!("{kind}: longest"),
            Unit::Millis,
            move |log| log.longest_ms(kind),
        );
        all.push(longest.unsure(MAXIMUM));
        all.push(rate(kind));
        all.push(Statistic::new(
            "Pauses",
            format!("{kind}: nested, per minute"),
            Unit::PerMinute,
            move |log| Some(log.nested(kind)? * 60.0 / log.seconds()?),
        ));
    }
    all.extend(of_remarks());
    all.extend(of_all());
    all
}

/// The own time of a remark excludes the young collection that may precede it.
fn of_remarks() -> Vec<Statistic<'static>> {
    fn of(name: &str, unit: Unit, of: fn(&Remarks) -> Option<f64>) -> Statistic<'static> {
        Statistic::new("Remark", name, unit, move |log| log.remark(of))
    }
    vec![
        of("own time, median", Unit::Millis, |r| Some(r.time.p50_ms)),
        of("own time, longest", Unit::Millis, |r| {
            Some(r.longest_own_ms)
        }),
        of("rescan in the longest", Unit::Millis, rescan),
        of("young generation at the longest", Unit::Bytes, |r| {
            r.longest_young_bytes.map(|bytes| bytes as f64)
        }),
        of("preceding young collection", Unit::Millis, |r| {
            Some(r.scavenge?.duration_ms)
        }),
        of(
            "young generation before that collection",
            Unit::Bytes,
            |r| r.scavenge?.before_bytes.map(|bytes| bytes as f64),
        ),
        of("young generation after that collection", Unit::Bytes, |r| {
            r.scavenge?.after_bytes.map(|bytes| bytes as f64)
        }),
    ]
}

fn of_all() -> Vec<Statistic<'static>> {
    vec![
        Statistic::new("Overall", "throughput", Unit::Fraction, |log| {
            log.throughput()
        })
        .unsure("see the pause time"),
        Statistic::new("Overall", "pause time per minute", Unit::Millis, |log| {
            Some((1.0 - log.throughput()?) * 60e3)
        })
        .by_part(|part| Some(part.sum_ms() * 60.0 / part.seconds)),
        Statistic::new(
            "Overall",
            "allocation stalls per minute",
            Unit::Millis,
            waited,
        ),
        Statistic::new("Overall", "live set", Unit::Bytes, |log| {
            Some(log.run.live.as_ref()?.last_bytes as f64)
        }),
        Statistic::new("Per GiB allocated", "pause time", Unit::Millis, |log| {
            log.per_gib(log.run.pauses.all.total_ms)
        })
        .by_sums(|part| part.per_gib(part.sum_ms())),
        Statistic::new("Per GiB allocated", "pauses", Unit::Count, |log| {
            log.per_gib(log.run.pauses.all.count as f64)
        })
        .by_sums(|part| part.per_gib(part.kinds.values().map(|(count, _)| count).sum())),
        Statistic::new("Per GiB allocated", "promoted", Unit::Bytes, |log| {
            Some(log.promoted()? / log.allocated()? * GIB)
        })
        .by_sums(|part| part.per_gib(part.promoted()? * part.seconds)),
        Statistic::new("Load", "allocation", Unit::BytesPerSecond, load).by_part(Part::allocated),
    ]
}

/// Milliseconds of each minute that threads waited for memory, all of them together: with ZGC and Shenandoah that is what pauses
/// are with others.
fn waited(log: &Log<'_>) -> Option<f64> {
    let collector = log.run.jvm.collector.as_deref().unwrap_or_default();
    let waits = match &log.run.stalls {
        Some(stalls) => stalls.time.total_ms,
        None if collector.contains("ZGC") || collector.contains("Shenandoah") => 0.0,
        None => return None,
    };
    Some(waits * 60.0 / log.seconds()?)
}

fn load(log: &Log<'_>) -> Option<f64> {
    log.allocated()
}

fn rescan(remarks: &Remarks) -> Option<f64> {
    let mut parts = remarks.longest_phases.iter();
    parts
        .find(|part| part.name.starts_with("Rescan"))
        .map(|part| part.duration_ms)
}

/// Every metric of one or both sides that differs; `options` are those that differ.
pub fn metrics(before: &Side<'_>, after: &Side<'_>, options: &[Changed]) -> Vec<Metric> {
    let mut all: Vec<Metric> = options
        .iter()
        .filter_map(|option| {
            metric(
                "Options",
                &option.name,
                [option.before.clone(), option.after.clone()],
            )
        })
        .collect();
    all.extend(of_the_jvm(before, after));
    for statistic in statistics(&kinds(before, after)) {
        let shown = [before, after].map(|side| shown(&statistic, side));
        if let Some(mut metric) = metric(statistic.group, &statistic.name, shown) {
            metric.before_value = before.value(&statistic.of);
            metric.after_value = after.value(&statistic.of);
            metric.unit = Some(statistic.unit.word().to_owned());
            metric.ratio = statistic.ratio(before, after);
            let both = metric.before.is_some() && metric.after.is_some();
            if both && metric.ratio.is_none() {
                metric.no_ratio = Some(statistic.no_ratio(before, after).to_owned());
            }
            all.push(metric);
        }
    }
    all
}

/// A value, with its range over the logs where there are several.
fn shown(statistic: &Statistic<'_>, side: &Side<'_>) -> Option<String> {
    let values = side.values(&statistic.of);
    let value = median(&values)?;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let show = |value| statistic.unit.show(value);
    if values.len() > 1 && show(low) != show(high) {
        Some(format!("{} ({} to {})", show(value), show(low), show(high)))
    } else {
        Some(show(value))
    }
}

fn metric(group: &str, name: &str, [before, after]: [Option<String>; 2]) -> Option<Metric> {
    let verdict = match (&before, &after) {
        (Some(_), None) => Verdict::OnlyBefore,
        (None, Some(_)) => Verdict::OnlyAfter,
        (a, b) if a == b => return None,
        _ => Verdict::Differs,
    };
    Some(Metric {
        name: name.to_owned(),
        group: group.to_owned(),
        subjects: Vec::new(),
        before,
        after,
        before_value: None,
        after_value: None,
        unit: None,
        ratio: None,
        no_ratio: None,
        verdict,
        rules: Vec::new(),
        knob: None,
    })
}

/// What both sides tell of their JVMs and machines, where it is not the same. What one log does not show is no difference.
fn of_the_jvm(before: &Side<'_>, after: &Side<'_>) -> Vec<Metric> {
    type Fact = fn(&Jvm) -> Option<String>;
    let facts: [(&str, Fact); 6] = [
        ("version", |jvm| jvm.version.clone()),
        ("collector", |jvm| jvm.collector.clone()),
        ("CPUs", |jvm| jvm.cpus.map(numbers::count)),
        ("memory", |jvm| jvm.memory_bytes.map(numbers::bytes)),
        ("maximum heap", |jvm| jvm.max_heap_bytes.map(numbers::bytes)),
        ("region size", |jvm| jvm.region_bytes.map(numbers::bytes)),
    ];
    // Logs of a side may differ; all that they tell is named.
    let listed = |side: &Side<'_>, fact: Fact| {
        let mut values: Vec<String> = Vec::new();
        for value in side.logs.iter().filter_map(|log| fact(&log.run.jvm)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        (!values.is_empty()).then(|| values.join(" or "))
    };
    facts
        .into_iter()
        .filter_map(|(name, fact)| Some((name, listed(before, fact)?, listed(after, fact)?)))
        .filter_map(|(name, a, b)| metric("JVM", name, [Some(a), Some(b)]))
        .collect()
}

#[cfg(test)]
mod tests;
