//! Two GC logs side by side: what a change did, with its uncertainty, and reckoned for the same load.
//!
//! Medians have an interval where both logs hold enough pauses of a kind. It takes the pauses for independent, so pauses
//! that come in waves make it too narrow. Of the longest and of sums there is none. Allocation is the load that a JVM sees:
//! what is told per GiB allocated does not change with the rate of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rungwise_model::compare::{CompareReport, Metric, RatioInterval, Verdict as Became};
use rungwise_model::gc::{Remarks, Run};
use rungwise_stats::interval::{median, median_interval};

use super::{fine_share, millis, per_second, section, size};
use crate::block::{Block, Cell, Column, Mark, Table, Tone, Verdict};
use crate::numbers::{self, ABSENT};
use crate::tune::moment;

/// Each of two intervals misses with this probability, so that their ratio misses with 5 % at most.
const ALPHA: f64 = 0.025;
const GIB: f64 = (1_u64 << 30) as f64;

/// One of the two logs.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its name.
    pub name: &'a str,
    /// The run that the log covers the longest time of.
    pub run: &'a Run,
    /// Durations of pauses in milliseconds by kind, of all or of a fair draw of them.
    pub pauses: &'a BTreeMap<&'static str, Vec<f64>>,
}

impl Side<'_> {
    fn throughput(&self) -> Option<f64> {
        self.run.throughput.as_ref().map(|share| share.whole)
    }

    fn allocated(&self) -> Option<f64> {
        self.run.allocation.as_ref().map(|rate| rate.bytes_per_s)
    }

    fn promoted(&self) -> Option<f64> {
        let rate = self.run.promotion.as_ref()?.rate.as_ref()?;
        Some(rate.bytes_per_s)
    }

    /// For each GiB allocated, what comes so often or long in the run.
    fn per_gib(&self, of_run: f64) -> Option<f64> {
        let gib = self.allocated()? * self.run.seconds? / GIB;
        (gib > 0.0).then(|| of_run / gib)
    }

    fn per_minute(&self, count: u64) -> Option<f64> {
        let minutes = self.run.seconds.filter(|seconds| *seconds > 0.0)? / 60.0;
        Some(count as f64 / minutes)
    }

    fn sum_ms(&self, kind: &str) -> f64 {
        self.run
            .pauses
            .by_kind
            .get(kind)
            .map_or(0.0, |spread| spread.total_ms)
    }

    fn remark(&self, of: impl Fn(&Remarks) -> Option<f64>) -> Option<f64> {
        self.run.remark.as_ref().and_then(of)
    }
}

/// Everything that both or one of the logs tell and that differs.
pub fn metrics(before: &Side<'_>, after: &Side<'_>) -> Vec<Metric> {
    let mut all = Vec::new();
    let mut add =
        |name: &str, group: &str, values: [Option<f64>; 2], ratio, show: &dyn Fn(f64) -> String| {
            let shown = values.map(|value| value.filter(|value| value.is_finite()).map(show));
            let verdict = match &shown {
                [None, None] => return,
                [Some(_), None] => Became::OnlyBefore,
                [None, Some(_)] => Became::OnlyAfter,
                [Some(a), Some(b)] if a == b => return,
                [Some(_), Some(_)] => Became::Differs,
            };
            let [before, after] = shown;
            all.push(Metric {
                name: name.to_owned(),
                group: group.to_owned(),
                subjects: Vec::new(),
                before,
                after,
                ratio,
                verdict,
                rules: Vec::new(),
                knob: None,
            });
        };
    let both = |of: &dyn Fn(&Side<'_>) -> Option<f64>| [of(before), of(after)];
    for kind in kinds(before, after) {
        let medians = both(&|side| median(side.pauses.get(kind)?));
        let ratio = ratio(before, after, kind);
        add(
            &format!("{kind}: median"),
            "Pauses",
            medians,
            ratio,
            &millis,
        );
        let longest = both(&|side| Some(side.run.pauses.by_kind.get(kind)?.longest_ms));
        add(
            &format!("{kind}: longest"),
            "Pauses",
            longest,
            None,
            &millis,
        );
        let often = both(&|side| side.per_minute(side.run.pauses.by_kind.get(kind)?.count));
        add(
            &format!("{kind}: per minute"),
            "Pauses",
            often,
            None,
            &numbers::significant,
        );
    }
    let remark = |of: fn(&Remarks) -> Option<f64>| both(&|side| side.remark(of));
    add(
        "longest",
        "Remark",
        remark(|r| r.longest.duration_ms),
        None,
        &millis,
    );
    add(
        "longest, without a young collection in it",
        "Remark",
        remark(|r| Some(r.longest_own_ms)),
        None,
        &millis,
    );
    add(
        "rescan in the longest",
        "Remark",
        remark(rescan),
        None,
        &millis,
    );
    add(
        "young generation at the longest",
        "Remark",
        remark(|r| r.longest_young_bytes.map(|bytes| bytes as f64)),
        None,
        &size,
    );
    add(
        "time without pauses",
        "Whole",
        both(&|side| side.throughput()),
        None,
        &fine_share,
    );
    add(
        "pause time",
        "Per GiB allocated",
        both(&|s| s.per_gib(s.run.pauses.all.total_ms)),
        None,
        &millis,
    );
    add(
        "pauses",
        "Per GiB allocated",
        both(&|s| s.per_gib(s.run.pauses.all.count as f64)),
        None,
        &numbers::significant,
    );
    add(
        "promoted",
        "Per GiB allocated",
        both(&|s| Some(s.promoted()? / s.allocated()? * GIB)),
        None,
        &size,
    );
    add(
        "allocation",
        "Load",
        both(&|side| side.allocated()),
        None,
        &per_second,
    );
    all
}

fn rescan(remarks: &Remarks) -> Option<f64> {
    let mut parts = remarks.longest_phases.iter();
    parts
        .find(|part| part.name.starts_with("Rescan"))
        .map(|part| part.duration_ms)
}

fn kinds(before: &Side<'_>, after: &Side<'_>) -> BTreeSet<&'static str> {
    before
        .pauses
        .keys()
        .chain(after.pauses.keys())
        .copied()
        .collect()
}

/// After over before of the medians, where both logs hold enough of the kind.
fn ratio(before: &Side<'_>, after: &Side<'_>, kind: &str) -> Option<RatioInterval> {
    let interval = |side: &Side<'_>| {
        let logs: Vec<f64> = side.pauses.get(kind)?.iter().map(|ms| ms.ln()).collect();
        median_interval(&logs, ALPHA)
    };
    let (before, after) = (interval(before)?, interval(after)?);
    Some(RatioInterval {
        point: (after.point - before.point).exp(),
        low: (after.low - before.high).exp(),
        high: (after.high - before.low).exp(),
    })
}

/// What it comes to: the kind of pause whose share of the time changed most.
pub fn sentence(before: &Side<'_>, after: &Side<'_>) -> String {
    let changed = |kind: &str| {
        // Without a clock sums are all there is.
        let share = |side: &Side<'_>| {
            side.sum_ms(kind) / side.run.seconds.filter(|s| *s > 0.0).unwrap_or(1.0)
        };
        (share(after) - share(before)).abs()
    };
    let kinds = kinds(before, after);
    let Some(kind) = kinds
        .into_iter()
        .max_by(|a, b| changed(a).total_cmp(&changed(b)))
    else {
        return "neither log tells of a pause".to_owned();
    };
    let lasted = |side: &Side<'_>| median(side.pauses.get(kind)?);
    let what = match (lasted(before), lasted(after)) {
        (Some(a), Some(b)) if kind == "remark" => {
            remarks(before, after).unwrap_or_else(|| medians(kind, a, b))
        }
        (Some(a), Some(b)) => {
            let words = medians(kind, a, b);
            match ratio(before, after, kind) {
                None => format!("{words}, of too few pauses for an interval"),
                Some(r) if r.low <= 1.0 && r.high >= 1.0 => format!(
                    "{words}, which proves no difference (95 %: {} to {})",
                    numbers::factor(r.low),
                    numbers::factor(r.high)
                ),
                Some(r) => format!(
                    "{words} (95 %: {} to {})",
                    numbers::factor(r.low),
                    numbers::factor(r.high)
                ),
            }
        }
        (Some(a), None) => format!(
            "{kind} pauses, {} by the median before, are gone",
            millis(a)
        ),
        (None, Some(b)) => format!("{kind} pauses are new, {} by the median", millis(b)),
        (None, None) => format!("{kind} pauses differ"),
    };
    match (before.allocated(), after.allocated()) {
        (Some(a), Some(b)) if (b / a - 1.0).abs() > 0.2 => format!(
            "{what}; the load is not the same: allocation went from {} to {}",
            per_second(a),
            per_second(b)
        ),
        (Some(_), Some(_)) => what,
        _ => format!("{what}; whether the load is the same is not known"),
    }
}

fn medians(kind: &str, a: f64, b: f64) -> String {
    format!(
        "{kind} pauses went from {} to {} by the median, {}",
        millis(a),
        millis(b),
        times(a, b)
    )
}

/// `144 times shorter`.
fn times(a: f64, b: f64) -> String {
    if b < a {
        format!("{} times shorter", numbers::significant(a / b))
    } else {
        format!("{} times longer", numbers::significant(b / a))
    }
}

/// The longest remarks, with what lay in the young generation and why.
fn remarks(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    let (a, b) = (before.run.remark.as_ref()?, after.run.remark.as_ref()?);
    let (long, short) = (a.longest.duration_ms?, b.longest.duration_ms?);
    let mut sentence = format!(
        "the longest remark went from {} to {}, {}",
        millis(long),
        millis(short),
        times(long, short)
    );
    if let (Some(full), Some(empty)) = (a.longest_young_bytes, b.longest_young_bytes) {
        let _ = write!(
            sentence,
            ": it had to look through {} of the young generation before and {} after",
            numbers::bytes(full),
            numbers::bytes(empty)
        );
    }
    match (a.scavenged, b.scavenged) {
        (0, 1..) => sentence += ", since a young collection now comes first",
        (1.., 0) => sentence += ", since no young collection comes first any more",
        _ => {}
    }
    Some(sentence)
}

/// The whole report.
pub fn blocks(report: &CompareReport) -> Vec<Block> {
    let same = report.metrics.is_empty();
    let (symbol, word, tone) = if same {
        ("=", "same", Tone::Quiet)
    } else {
        ("≠", "differs", Tone::Doubt)
    };
    let mut blocks = vec![Block::Verdict(Verdict {
        mark: Mark { symbol, word, tone },
        sentence: report.sentence.clone(),
        context: vec![
            format!("before: {}", report.before),
            format!("after: {}", report.after),
            moment(&report.envelope.started),
        ],
        caveats: Vec::new(),
    })];
    if !same {
        blocks.push(section("metrics", "What differs"));
        blocks.push(Block::Table(table(&report.metrics)));
    }
    blocks
}

fn table(metrics: &[Metric]) -> Table {
    let side = |value: &Option<String>| Cell::text(value.as_deref().unwrap_or(ABSENT));
    let rows = metrics.iter().map(|metric| {
        let ratio = metric.ratio.map_or_else(String::new, |ratio| {
            format!(
                "{} ({} to {})",
                numbers::factor(ratio.point),
                numbers::factor(ratio.low),
                numbers::factor(ratio.high)
            )
        });
        vec![
            Cell::text(format!("{}: {}", metric.group, metric.name)),
            side(&metric.before),
            side(&metric.after),
            Cell::text(ratio),
        ]
    });
    Table {
        caption: "Ratios are after over before with a 95 % interval, which takes the pauses for independent of each other."
            .to_owned(),
        columns: vec![
            Column::words("Of", "name"),
            Column::words("Before", "before"),
            Column::words("After", "after"),
            Column::words("Ratio", "ratio"),
        ],
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::gc::Spread;

    use super::*;

    fn run(total_ms: f64) -> Run {
        let mut run = Run {
            seconds: Some(100.0),
            ..Run::default()
        };
        let spread = Spread {
            count: 50,
            total_ms,
            ..Spread::default()
        };
        run.pauses.by_kind.insert("young".to_owned(), spread);
        run
    }

    #[test]
    fn a_difference_within_the_noise_is_not_called_one() {
        let noisy = |factor: f64| -> Vec<f64> {
            (0..50)
                .map(|i| factor * (10.0 + f64::from(i * 7 % 50)))
                .collect()
        };
        let told = |factor: f64| {
            let (a, b) = (run(1000.0), run(1000.0 * factor));
            let pauses = [1.0, factor].map(|factor| BTreeMap::from([("young", noisy(factor))]));
            let side = |run, pauses| Side {
                name: "",
                run,
                pauses,
            };
            sentence(&side(&a, &pauses[0]), &side(&b, &pauses[1]))
        };
        assert!(
            told(1.01).contains("proves no difference"),
            "{}",
            told(1.01)
        );
        let longer = told(5.0);
        assert!(
            longer.contains("5.00 times longer") && !longer.contains("proves no"),
            "{longer}"
        );
    }
}
