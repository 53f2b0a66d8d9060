//! When pauses occurred, their kinds, and their durations.
//!
//! The document contains the longest pause of each kind in each step of time, and the longest of the run by name.

use rungwise_model::gc::{Pauses, Run, Spread};

use super::{CLOCK, Time, how_many, millis, moment, step};
use crate::block::{
    self, Bin, Block, Cell, Chart, Column, Columns, Dots, Plot, Series, SizeMark, Table,
};
use crate::numbers;
use crate::scale::Unit;

/// What a pause is for, as far as a reader has to tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Young,
    Mixed,
    Start,
    Cycle,
    Remark,
    Whole,
}

const SORTS: [Sort; 6] = [
    Sort::Young,
    Sort::Mixed,
    Sort::Start,
    Sort::Cycle,
    Sort::Remark,
    Sort::Whole,
];

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Self::Young => "young",
            Self::Mixed => "mixed",
            Self::Start => "start of a concurrent cycle",
            Self::Cycle => "other pause of a cycle",
            Self::Remark => "remark",
            Self::Whole => "full or degenerated",
        }
    }

    /// Square, and index into the palette.
    fn style(self) -> (bool, usize) {
        match self {
            Self::Young => (false, 1),
            Self::Mixed => (false, 3),
            Self::Start => (false, 0),
            Self::Cycle => (true, 0),
            Self::Remark => (true, 3),
            Self::Whole => (true, 2),
        }
    }

    /// Of a key of `courses`.
    fn of_kind(kind: &str) -> Self {
        match kind {
            "young" => Self::Young,
            "mixed" => Self::Mixed,
            "start" => Self::Start,
            "remark" => Self::Remark,
            "full" | "degenerated" => Self::Whole,
            _ => Self::Cycle,
        }
    }
}

/// The mark of one pause, or of the longest of some of one kind.
#[derive(Clone, Debug)]
struct Shown {
    at_s: f64,
    ms: f64,
    sort: Sort,
    kind: String,
    /// Pauses that it stands for.
    of: u64,
    /// Name, where it is one of the longest.
    name: Option<String>,
}

/// Rows of the table; the picture has all marks.
const ROWS: usize = 500;

pub(super) fn over_time(run: &Run, time: Time) -> Option<Block> {
    let pauses = &run.pauses;
    let shown = shown(pauses);
    if shown.is_empty() {
        return None;
    }
    let title = over_time_title(pauses);
    let steps = pauses.courses.values().map(|course| course.step_s);
    let step = step(steps.fold(0.0, f64::max));
    let note = if shown.iter().all(|mark| mark.of == 1) {
        format!("One mark for each pause. {CLOCK}")
    } else {
        format!("One mark for the longest pause of each kind in each {step}. {CLOCK}")
    };
    Some(Block::Chart(Box::new(Chart {
        id: "gc-pauses-over-time",
        note,
        data: table(&shown, &title),
        title,
        plot: Plot::Dots(Dots {
            along: Unit::Seconds,
            names: Vec::new(),
            quantity: "pause".to_owned(),
            unit: Unit::Micros,
            from_zero: false,
            also: Vec::new(),
            from_s: time.from_s,
            until_s: time.until_s,
            zooms: true,
            series: series(&shown),
            spans: time.worst(run),
        }),
    })))
}

/// The pauses of a run as dots and as a table, in seconds since the beginning of the run.
pub(in crate::gc) fn since_began(run: &Run, title: &str) -> (Vec<Series>, Table) {
    let mut shown = shown(&run.pauses);
    let began = run.began_s.unwrap_or(0.0);
    for pause in &mut shown {
        pause.at_s -= began;
    }
    (series(&shown), table(&shown, title))
}

fn series(shown: &[Shown]) -> Vec<Series> {
    let of = |sort: Sort| -> Vec<block::Point> {
        let marks = shown.iter().filter(|pause| pause.sort == sort);
        marks
            .map(|pause| block::Point {
                at_s: pause.at_s,
                value: pause.ms * 1e3,
                hollow: false,
            })
            .collect()
    };
    let series = SORTS.into_iter().map(|sort| {
        let (square, hue) = sort.style();
        Series {
            name: sort.name().to_owned(),
            square,
            joined: false,
            hue,
            points: of(sort),
        }
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

fn table(shown: &[Shown], title: &str) -> Table {
    let mut least = 0.0;
    let mut caption = title.to_owned();
    if shown.len() > ROWS {
        let mut all: Vec<f64> = shown.iter().map(|pause| pause.ms).collect();
        all.sort_unstable_by(|a, b| b.total_cmp(a));
        least = all[ROWS - 1];
        caption = format!("{title}. The {ROWS} longest of {} marks.", shown.len());
    }
    let rows = shown.iter().filter(|pause| pause.ms >= least).take(ROWS);
    Table {
        caption,
        columns: vec![
            Column::number("At", "at_s"),
            Column::number("Pause", "pause_ms"),
            Column::words("Kind", "kind"),
            Column::number("Pauses", "pauses"),
        ],
        rows: rows
            .map(|pause| {
                vec![
                    moment(pause.at_s),
                    Cell::number(Some(pause.ms), millis),
                    Cell::text(pause.name.as_ref().unwrap_or(&pause.kind)),
                    how_many(pause.of),
                ]
            })
            .collect(),
    }
}

fn over_time_title(pauses: &Pauses) -> String {
    let Some(longest) = pauses.longest.first() else {
        return format!("Longest pause: {}", millis(pauses.all.longest_ms));
    };
    let at = longest
        .at_s
        .map_or_else(String::new, |at| format!(" at {at:.1}{}s", numbers::THIN));
    let took = millis(longest.duration_ms.unwrap_or(pauses.all.longest_ms));
    let rest = match pauses.longest.get(1).and_then(|next| next.duration_ms) {
        Some(next) => format!("; next longest {}", millis(next)),
        None => String::new(),
    };
    format!("Longest pause: {}, {took}{at}{rest}", longest.name)
}

/// The longest pause of each kind and step in the order of time. One that is among the longest of the run has its name and
/// its own time: a step knows the mean time of its pauses only.
fn shown(pauses: &Pauses) -> Vec<Shown> {
    let mut shown = Vec::new();
    for (kind, course) in &pauses.courses {
        for point in &course.points {
            let longest = pauses.longest.iter().find_map(|longest| {
                let near = (longest.at_s? - point.at_s).abs() <= course.step_s;
                let same = longest.duration_ms?.to_bits() == point.max.to_bits();
                (near && same).then_some((longest.at_s?, &longest.name))
            });
            shown.push(Shown {
                at_s: longest.map_or(point.at_s, |(at_s, _)| at_s),
                ms: point.max,
                sort: Sort::of_kind(kind),
                kind: kind.clone(),
                of: point.count,
                name: longest.map(|(_, name)| name.clone()),
            });
        }
    }
    shown.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    shown
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
        note: "Nested pauses are left out.".to_owned(),
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
            quantity: "pause duration".to_owned(),
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
        format!(" p99 {},", millis(all.p99_ms))
    } else {
        String::new()
    };
    let count = numbers::count(all.count);
    format!("Median of {count} pauses {half},{hundredth} longest {longest}")
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
    use rungwise_model::gc::{Course, Moment, Point};

    use super::*;

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
                    count: 2,
                })
                .collect(),
        }
    }

    #[test]
    fn each_mark_has_its_kind_and_one_of_the_longest_its_name_and_time() {
        let mut pauses = Pauses {
            longest: vec![Moment {
                at_s: Some(2.25),
                name: "Pause Full (System.gc())".to_owned(),
                duration_ms: Some(400.0),
                ..Moment::default()
            }],
            ..Pauses::default()
        };
        for (kind, of) in [
            ("young", &[(0.5, 10.0), (3.5, 12.0)][..]),
            ("remark", &[(1.5, 30.0)]),
            ("full", &[(2.5, 400.0)]),
        ] {
            pauses.courses.insert(kind.to_owned(), course(of));
        }
        let shown = shown(&pauses);
        let sorts: Vec<Sort> = shown.iter().map(|mark| mark.sort).collect();
        assert_eq!(sorts, [Sort::Young, Sort::Remark, Sort::Whole, Sort::Young]);
        assert_eq!(shown[2].name.as_deref(), Some("Pause Full (System.gc())"));
        assert!((shown[2].at_s - 2.25).abs() < 1e-9);
    }

    #[test]
    fn the_table_of_many_marks_has_the_longest_in_the_order_of_time() {
        let many: Vec<_> = (0..2000)
            .map(|i| (f64::from(i), f64::from(i % 7)))
            .collect();
        let mut pauses = Pauses::default();
        pauses.courses.insert("young".to_owned(), course(&many));
        let table = table(&shown(&pauses), "title");
        assert_eq!(table.rows.len(), ROWS);
        let raw = |row: &[Cell], column: usize| row[column].raw.unwrap();
        assert!(table.rows.iter().all(|row| raw(row, 1) >= 5.0));
        assert!(table.rows.is_sorted_by_key(|row| raw(row, 0)));
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
