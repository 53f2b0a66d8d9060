//! When pauses came, of what kind they were, and how long they are.
//!
//! The document holds the longest pause of each step of time, the longest young one of each step of its own, and the
//! longest of the run by name. Together they tell the kind of nearly every mark; where they do not, the mark says so
//! instead of guessing.

use rungwise_model::gc::{Pauses, Point, Run, Spread};

use super::{CLOCK, Time, how_many, millis, moment};
use crate::block::{
    self, Bin, Block, Cell, Chart, Column, Columns, Dots, Plot, Series, SizeMark, Table,
};
use crate::numbers;
use crate::scale::Unit;

/// What a pause is for, as far as a reader has to tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Young,
    Whole,
    Cycle,
    Untold,
}

const SORTS: [Sort; 4] = [Sort::Young, Sort::Cycle, Sort::Whole, Sort::Untold];

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Self::Young => "young or mixed",
            Self::Whole => "full or degenerated",
            Self::Cycle => "of a concurrent cycle",
            Self::Untold => "kind not told",
        }
    }

    /// Square, and index into the palette.
    fn look(self) -> (bool, usize) {
        match self {
            Self::Young => (false, 1),
            Self::Whole => (true, 2),
            Self::Cycle => (true, 0),
            Self::Untold => (false, 3),
        }
    }

    /// Of a key of `by_kind`.
    fn of_kind(kind: &str) -> Self {
        match kind {
            "young" | "mixed" => Self::Young,
            "full" | "degenerated" => Self::Whole,
            _ => Self::Cycle,
        }
    }
}

/// The mark of one pause.
struct Shown {
    at_s: f64,
    ms: f64,
    sort: Sort,
    /// Pauses of the step that it stands for; nothing where it is one of the longest besides.
    of: Option<u64>,
    /// Name, where it is one of the longest.
    name: Option<String>,
}

pub(super) fn over_time(run: &Run, time: Time) -> Option<Block> {
    let pauses = &run.pauses;
    let shown = shown(pauses);
    if shown.is_empty() {
        return None;
    }
    let series = SORTS.into_iter().filter_map(|sort| {
        let points: Vec<block::Point> = shown
            .iter()
            .filter(|pause| pause.sort == sort)
            .map(|pause| block::Point {
                at_s: pause.at_s,
                value: pause.ms * 1e3,
                hollow: false,
            })
            .collect();
        let (square, hue) = sort.look();
        (!points.is_empty()).then(|| Series {
            name: sort.name().to_owned(),
            square,
            joined: false,
            hue,
            points,
        })
    });
    let title = over_time_title(pauses);
    let rows = shown
        .iter()
        .map(|pause| {
            vec![
                moment(pause.at_s),
                Cell::number(Some(pause.ms), millis),
                Cell::text(pause.name.as_deref().unwrap_or(pause.sort.name())),
                pause
                    .of
                    .map_or_else(|| Cell::text(numbers::ABSENT), how_many),
            ]
        })
        .collect();
    let step = numbers::micros(pauses.course.step_s * 1e6);
    Some(Block::Chart(Box::new(Chart {
        id: "gc-pauses-over-time",
        note: format!(
            "One mark for the longest pause of each {step}, and one for each of the longest of the run. {CLOCK}"
        ),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("At", "at_s"),
                Column::number("Pause", "pause_ms"),
                Column::words("Kind", "kind"),
                Column::number("Pauses in this step", "pauses"),
            ],
            rows,
        },
        title,
        plot: Plot::Dots(Dots {
            quantity: "pause".to_owned(),
            unit: Unit::Micros,
            from_zero: false,
            from_s: time.from_s,
            until_s: time.until_s,
            series: series.collect(),
            spans: Vec::new(),
        }),
    })))
}

fn over_time_title(pauses: &Pauses) -> String {
    let Some(longest) = pauses.longest.first() else {
        return format!("The longest pause took {}", millis(pauses.all.longest_ms));
    };
    let at = longest
        .at_s
        .map_or_else(String::new, |at| format!(" at {at:.1}{}s", numbers::THIN));
    let took = millis(longest.duration_ms.unwrap_or(pauses.all.longest_ms));
    let rest = match pauses.longest.get(1).and_then(|next| next.duration_ms) {
        Some(next) => format!("; the next took {}", millis(next)),
        None => String::new(),
    };
    format!("The longest pause, {}, took {took}{at}{rest}", longest.name)
}

/// The longest pause of each step, then the longest of the run that are not among them, in the order of time.
fn shown(pauses: &Pauses) -> Vec<Shown> {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
    let mut shown: Vec<Shown> = pauses
        .course
        .points
        .iter()
        .map(|point| Shown {
            at_s: point.at_s,
            ms: point.max,
            sort: sort(pauses, point),
            of: Some(point.count),
            name: None,
        })
        .collect();
    for longest in &pauses.longest {
        let (Some(at_s), Some(ms)) = (longest.at_s, longest.duration_ms) else {
            continue;
        };
        let near = |mark: &&mut Shown| {
            same(mark.ms, ms)
                && mark.of.is_some()
                && mark.name.is_none()
                && (mark.at_s - at_s).abs() <= pauses.course.step_s
        };
        match shown.iter_mut().find(near) {
            Some(mark) => {
                // The step knows the mean time of its pauses, the pause its own.
                mark.at_s = at_s;
                mark.name = Some(longest.name.clone());
            }
            None => shown.push(Shown {
                at_s,
                ms,
                sort: sort(
                    pauses,
                    &Point {
                        at_s,
                        max: ms,
                        ..Point::default()
                    },
                ),
                of: None,
                name: Some(longest.name.clone()),
            }),
        }
    }
    shown.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    shown
}

/// The kind of the longest pause of a step.
fn sort(pauses: &Pauses, point: &Point) -> Sort {
    let ms = point.max;
    // Kinds whose pauses were all shorter or all longer are not it.
    let mut open: Vec<Sort> = Vec::new();
    for (kind, spread) in &pauses.by_kind {
        let sort = Sort::of_kind(kind);
        if spread.min_ms <= ms && ms <= spread.longest_ms && !open.contains(&sort) {
            open.push(sort);
        }
    }
    if let [only] = open[..] {
        return only;
    }
    let same = |other: f64| other.to_bits() == ms.to_bits();
    let named = pauses.longest.iter().find(|longest| {
        let near = longest
            .at_s
            .is_some_and(|at| (at - point.at_s).abs() <= pauses.course.step_s);
        near && longest.duration_ms.is_some_and(same)
    });
    if let Some(named) = named {
        if is_whole(&named.name) {
            return Sort::Whole;
        }
        open.retain(|sort| *sort != Sort::Whole);
    } else if whole_are_all_named(pauses) {
        open.retain(|sort| *sort != Sort::Whole);
    }
    // The young pauses of all steps that may hold this moment: a step is told at the mean time of what is in it.
    let reach = pauses.course.step_s + pauses.young_course.step_s;
    let near = |young: &&Point| (young.at_s - point.at_s).abs() <= reach;
    let young: Vec<f64> = pauses
        .young_course
        .points
        .iter()
        .filter(near)
        .map(|p| p.max)
        .collect();
    if open.contains(&Sort::Young) && young.iter().any(|ms| same(*ms)) {
        return Sort::Young;
    }
    if young.iter().all(|young| *young < ms) {
        open.retain(|sort| *sort != Sort::Young);
    }
    match open[..] {
        [only] => only,
        _ => Sort::Untold,
    }
}

/// What the JVM calls a collection of the whole heap with threads stopped, in any release.
fn is_whole(name: &str) -> bool {
    ["Full", "Degenerated", "concurrent mode"]
        .iter()
        .any(|word| name.contains(word))
}

/// Every full collection is among the longest pauses, so that none of the others is one.
fn whole_are_all_named(pauses: &Pauses) -> bool {
    let all: u64 = pauses
        .by_kind
        .iter()
        .filter(|(kind, _)| Sort::of_kind(kind) == Sort::Whole)
        .map(|(_, spread)| spread.count)
        .sum();
    let named = pauses.longest.iter().filter(|p| is_whole(&p.name)).count();
    named as u64 == all
}

/// Shorter pauses are drawn as one: some logs print no digits for them.
const SHORTEST_US: f64 = 1.0;

pub(super) fn histogram(run: &Run) -> Option<Block> {
    let pauses = &run.pauses;
    let bins = bins(&pauses.histogram);
    if bins.is_empty() {
        return None;
    }
    let all = &pauses.all;
    let title = histogram_title(all);
    let rows = bins
        .iter()
        .map(|bin| {
            vec![
                Cell::number(Some(bin.low / 1e3), millis),
                Cell::number(Some(bin.high / 1e3), millis),
                how_many(bin.count),
            ]
        })
        .collect();
    let mut marks = vec![("p50", all.p50_ms)];
    if all.count >= HUNDRED {
        marks.push(("p99", all.p99_ms));
    }
    marks.push(("longest", all.longest_ms));
    Some(Block::Chart(Box::new(Chart {
        id: "gc-pause-histogram",
        note: "Pauses within other pauses are left out.".to_owned(),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("From", "from_ms"),
                Column::number("To", "to_ms"),
                Column::number("Pauses", "pauses"),
            ],
            rows,
        },
        title,
        plot: Plot::Columns(Columns {
            quantity: "length of the pause".to_owned(),
            unit: Unit::Micros,
            counted: "pauses",
            bins,
            marks: marks
                .into_iter()
                .map(|(name, ms)| SizeMark { at: ms * 1e3, name })
                .collect(),
        }),
    })))
}

/// Of fewer pauses, one in a hundred is none.
const HUNDRED: u64 = 100;

fn histogram_title(all: &Spread) -> String {
    let (half, longest) = (millis(all.p50_ms), millis(all.longest_ms));
    if all.count == 1 {
        return format!("The only pause took {longest}");
    }
    let hundredth = if all.count >= HUNDRED {
        format!(" one in a hundred more than {},", millis(all.p99_ms))
    } else {
        String::new()
    };
    let count = numbers::count(all.count);
    format!("Half of the {count} pauses took at most {half},{hundredth} the longest {longest}")
}

/// Upper ends in milliseconds to columns in microseconds. The document's steps are quarters of a power of two of
/// nanoseconds, and each end is the last nanosecond within.
fn bins(histogram: &[(f64, u64)]) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    for (ms, count) in histogram {
        let ns = (ms * 1e6).round() + 1.0;
        if !ns.is_finite() || *count == 0 {
            continue;
        }
        let power = (ns.log2().ceil() - 1.0).exp2();
        let bin = Bin {
            low: ((ns - power / 4.0) / 1e3).max(SHORTEST_US / 2.0),
            high: (ns / 1e3).max(SHORTEST_US),
            count: *count,
        };
        match bins.last_mut() {
            Some(last) if bin.high <= last.high => last.count += count,
            _ => bins.push(bin),
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use rungwise_model::gc::{Course, Moment};

    use super::*;

    fn spread(count: u64, min_ms: f64, longest_ms: f64) -> Spread {
        Spread {
            count,
            min_ms,
            longest_ms,
            ..Spread::default()
        }
    }

    fn course(points: &[(f64, f64)]) -> Course {
        Course {
            step_s: 1.0,
            points: points
                .iter()
                .map(|(at_s, max)| Point {
                    at_s: *at_s,
                    min: *max,
                    mean: *max,
                    max: *max,
                    count: 1,
                })
                .collect(),
        }
    }

    fn pauses() -> Pauses {
        let mut pauses = Pauses {
            course: course(&[(0.5, 10.0), (1.5, 30.0), (2.5, 400.0), (3.5, 12.0)]),
            young_course: course(&[(0.5, 10.0), (1.5, 20.0), (3.5, 12.0)]),
            longest: vec![Moment {
                at_s: Some(2.5),
                name: "Pause Full (System.gc())".to_owned(),
                duration_ms: Some(400.0),
                ..Moment::default()
            }],
            ..Pauses::default()
        };
        for (kind, of) in [
            ("young", spread(3, 10.0, 20.0)),
            ("remark", spread(2, 5.0, 30.0)),
            ("full", spread(1, 400.0, 400.0)),
        ] {
            pauses.by_kind.insert(kind.to_owned(), of);
        }
        pauses
    }

    #[test]
    fn each_mark_has_the_kind_that_the_document_tells() {
        let sorts: Vec<Sort> = shown(&pauses()).iter().map(|mark| mark.sort).collect();
        assert_eq!(sorts, [Sort::Young, Sort::Cycle, Sort::Whole, Sort::Young]);
    }

    #[test]
    fn a_mark_that_may_be_two_kinds_says_so() {
        let mut pauses = pauses();
        // A longer young pause in the same step: the young course hides the one of 12 ms.
        pauses.young_course = course(&[(0.5, 10.0), (1.5, 20.0), (3.2, 15.0)]);
        let last = shown(&pauses).pop().unwrap();
        assert_eq!(last.sort, Sort::Untold);
    }

    #[test]
    fn one_of_the_longest_is_one_mark_with_its_name() {
        let shown = shown(&pauses());
        assert_eq!(shown.len(), 4);
        assert_eq!(shown[2].name.as_deref(), Some("Pause Full (System.gc())"));
    }

    #[test]
    fn columns_touch_where_the_document_has_neighbours() {
        // 1024 to 1279 ns, 1280 to 1535 ns, and pauses printed as zero.
        let bins = bins(&[(31e-6, 3), (1279e-6, 2), (1535e-6, 1)]);
        assert_eq!(bins.len(), 3);
        assert_eq!((bins[0].high, bins[0].count), (1.0, 3));
        assert!((bins[1].low - 1.024).abs() < 1e-9 && (bins[1].high - 1.28).abs() < 1e-9);
        assert!((bins[2].low - bins[1].high).abs() < 1e-9);
    }
}
