//! What was in the heap and its generations before and after collections, and how long objects live.

use std::fmt::Write as _;

use rungwise_model::gc::{AgeTable, Course, LiveSource, Part, Run};

use super::{Time, how_many, line, moment, size, step};
use crate::block::{self, Bar, BarGroup, Bars, Block, Cell, Chart, Column, Plot, Series, Table};
use crate::gc::per_second;
use crate::numbers;
use crate::scale::Unit;

pub(super) fn whole(run: &Run, time: Time) -> Option<Block> {
    let heap = run.heap.parts.get("heap")?;
    let mut series: Vec<Series> = Vec::new();
    series.extend(line("highest before", (false, 0), &heap.before, |p| p.max));
    series.extend(line("lowest after", (false, 1), &heap.after, |p| p.min));
    if series.is_empty() {
        return None;
    }
    let mut courses = vec![("heap before", &heap.before), ("heap after", &heap.after)];
    if let Some(live) = run.live.as_ref().filter(|l| !l.course.points.is_empty()) {
        series.push(Series {
            name: after_what(live.source).to_owned(),
            square: true,
            joined: false,
            hue: 2,
            points: live
                .course
                .points
                .iter()
                .map(|point| block::Point {
                    at_s: point.at_s,
                    value: point.mean,
                    hollow: false,
                })
                .collect(),
        });
        courses.push((after_what(live.source), &live.course));
    }
    let room = match heap.largest_capacity_bytes {
        Some(capacity) if capacity > 0 => format!(
            " of {} ({})",
            numbers::bytes(capacity),
            numbers::share(heap.peak_bytes as f64 / capacity as f64)
        ),
        _ => String::new(),
    };
    let after = match extremes(&heap.after) {
        Some((low, high)) => format!(
            "; between {} and {} after collections",
            size(low),
            size(high)
        ),
        None => String::new(),
    };
    let title = format!(
        "Peak heap use {}{room}{after}",
        numbers::bytes(heap.peak_bytes)
    );
    Some(chart(
        "gc-heap-over-time",
        title,
        &heap.after,
        time,
        series,
        &courses,
    ))
}

/// The source of the live set, as in the legend.
fn after_what(source: LiveSource) -> &'static str {
    match source {
        LiveSource::Full => "after full collections",
        LiveSource::Mark => "found by marking",
        LiveSource::Cycle => "after concurrent cycles",
        LiveSource::Sweep => "old after sweeps",
        LiveSource::Mixed => "after mixed collections",
        LiveSource::Remark => "after marking",
    }
}

/// A line of the picture: part, before or after, name, dashed and hue.
type Wanted = (&'static str, bool, &'static str, (bool, usize));

const GENERATIONS: [Wanted; 4] = [
    ("young", true, "young, highest before", (false, 0)),
    ("young", false, "young, lowest after", (false, 1)),
    ("old", false, "old, lowest after", (false, 2)),
    ("humongous", false, "humongous, lowest after", (true, 3)),
];

pub(super) fn generations(run: &Run, time: Time) -> Option<Block> {
    let parts = &run.heap.parts;
    let mut series: Vec<Series> = Vec::new();
    let mut courses = Vec::new();
    for (name, before, words, style) in GENERATIONS {
        let Some(part) = parts.get(name) else {
            continue;
        };
        let drawn = if before {
            line(words, style, &part.before, |p| p.max)
        } else {
            line(words, style, &part.after, |p| p.min)
        };
        // A part that never held anything is a line at zero.
        let holds = |series: &Series| series.points.iter().any(|point| point.value > 0.0);
        if let Some(drawn) = drawn.filter(|series| name != "humongous" || holds(series)) {
            let course = if before { &part.before } else { &part.after };
            courses.push((words, course));
            series.push(drawn);
        }
    }
    let (_, longest) = courses.first()?;
    let title = generations_title(parts.get("young"), parts.get("old"));
    Some(chart(
        "gc-generations-over-time",
        title,
        longest,
        time,
        series,
        &courses,
    ))
}

fn generations_title(young: Option<&Part>, old: Option<&Part>) -> String {
    let story = |part: &Part| {
        let (first, last) = (part.after.points.first()?, part.after.points.last()?);
        Some((first.min, last.min))
    };
    let mut said = Vec::new();
    if let Some((first, last)) = old.and_then(story) {
        said.push(format!(
            "the old generation held {} at the start and {} at the end",
            size(first),
            size(last)
        ));
    }
    if let Some(young) = young.filter(|young| young.peak_bytes > 0) {
        said.push(format!(
            "the young generation at most {}",
            numbers::bytes(young.peak_bytes)
        ));
    }
    let mut title = said.join(", ");
    if title.is_empty() {
        "Generations before and after collections".clone_into(&mut title);
    } else {
        title.replace_range(..1, "T");
    }
    title
}

fn extremes(course: &Course) -> Option<(f64, f64)> {
    let points = || course.points.iter();
    let low = points().map(|p| p.min).reduce(f64::min)?;
    let high = points().map(|p| p.max).reduce(f64::max)?;
    Some((low, high))
}

fn chart(
    id: &'static str,
    title: String,
    stepped: &Course,
    time: Time,
    series: Vec<Series>,
    courses: &[(&str, &Course)],
) -> Block {
    let mut rows = Vec::new();
    for (name, course) in courses {
        for point in &course.points {
            rows.push(vec![
                moment(point.at_s),
                Cell::text(*name),
                Cell::number(Some(point.min), size),
                Cell::number(Some(point.mean), size),
                Cell::number(Some(point.max), size),
                how_many(point.count),
            ]);
        }
    }
    let step = step(stepped.step_s);
    Block::Chart(Box::new(Chart {
        id,
        note: format!("In use before and after collections, in steps of {step}."),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("At", "at_s"),
                Column::words("What", "what"),
                Column::number("Minimum", "min_bytes"),
                Column::number("Mean", "mean_bytes"),
                Column::number("Maximum", "max_bytes"),
                Column::number("Collections", "collections"),
            ],
            rows,
        },
        title,
        plot: time.dots("bytes in use", Unit::Bytes, series),
    }))
}

/// What was allocated and promoted, bytes per second.
pub(super) fn allocation(run: &Run, time: Time) -> Option<Block> {
    let allocated = run.allocation.as_ref()?;
    let promoted = run.promotion.as_ref().and_then(|p| p.rate.as_ref());
    let mut courses = vec![("allocated", &allocated.course)];
    courses.extend(promoted.map(|rate| ("promoted", &rate.course)));
    let hues = [1, 2];
    let lines = courses.iter().zip(hues);
    let series: Vec<Series> = lines
        .filter_map(|((name, course), hue)| line(name, (false, hue), course, |p| p.mean))
        .collect();
    if series.is_empty() {
        return None;
    }
    let rows = courses.iter().flat_map(|(name, course)| {
        course.points.iter().map(|point| {
            vec![
                moment(point.at_s),
                Cell::text(*name),
                Cell::number(Some(point.mean), per_second),
                Cell::number(Some(point.max), per_second),
            ]
        })
    });
    let mut title = format!(
        "The application allocated {} on average",
        per_second(allocated.bytes_per_s)
    );
    if let Some(peak) = allocated.peak_bytes_per_s {
        let _ = write!(title, ", at most {} over ten seconds", per_second(peak));
    }
    if let Some(rate) = promoted {
        let _ = write!(title, "; {} was promoted", per_second(rate.bytes_per_s));
    }
    let step = step(allocated.course.step_s);
    Some(Block::Chart(Box::new(Chart {
        id: "gc-allocation-over-time",
        note: format!("Between collections, mean of each {step}."),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("At", "at_s"),
                Column::words("What", "what"),
                Column::number("Mean", "mean_bytes_per_s"),
                Column::number("Maximum", "max_bytes_per_s"),
            ],
            rows: rows.collect(),
        },
        title,
        plot: time.dots("bytes per second", Unit::Bytes, series),
    })))
}

pub(super) fn metaspace(run: &Run, time: Time) -> Option<Block> {
    let part = run.heap.parts.get("metaspace")?;
    let lines = [
        line("before", (false, 0), &part.before, |p| p.max),
        line("after", (false, 1), &part.after, |p| p.min),
    ];
    let series: Vec<Series> = lines.into_iter().flatten().collect();
    if series.is_empty() {
        return None;
    }
    let last = part.last_bytes.unwrap_or(part.peak_bytes);
    let title = format!(
        "Metaspace held {} at the end, at most {}",
        numbers::bytes(last),
        numbers::bytes(part.peak_bytes)
    );
    Some(chart(
        "gc-metaspace-over-time",
        title,
        &part.after,
        time,
        series,
        &[("before", &part.before), ("after", &part.after)],
    ))
}

const AGED: [block::Part; 1] = [block::Part {
    name: "mean of the age tables",
    hue: 1,
    fill: '█',
}];

/// Bytes by age in the survivor spaces, and what of them lives on.
pub(super) fn ages(run: &Run) -> Option<Block> {
    let ages = run.ages.as_ref()?;
    if ages.mean_bytes.iter().all(|bytes| *bytes <= 0.0) {
        return None;
    }
    let survival = |index: usize| ages.survival.get(index).copied().flatten();
    let group = |(index, bytes): (usize, &f64)| {
        let lives_on = survival(index).map_or_else(String::new, |share| {
            format!(", {} survive", numbers::share(share))
        });
        BarGroup {
            title: format!("age {}{lives_on}", index + 1),
            bars: vec![Bar {
                label: String::new(),
                values: vec![*bytes],
                total: size(*bytes),
            }],
        }
    };
    let rows = ages
        .mean_bytes
        .iter()
        .enumerate()
        .map(|(index, bytes)| {
            vec![
                how_many(index as u64 + 1),
                Cell::number(Some(*bytes), size),
                Cell::number(survival(index), numbers::share),
            ]
        })
        .collect();
    let title = ages_title(ages);
    Some(Block::Chart(Box::new(Chart {
        id: "gc-ages",
        note: ages_note(ages),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("Age", "age"),
                Column::number("Bytes, mean", "mean_bytes"),
                Column::number("Survival to next age", "survival"),
            ],
            rows,
        },
        title,
        plot: Plot::Bars(Bars {
            quantity: "bytes that survive a young collection".to_owned(),
            unit: Unit::Bytes,
            whole: false,
            parts: AGED.to_vec(),
            groups: ages.mean_bytes.iter().enumerate().map(group).collect(),
        }),
    })))
}

fn ages_title(ages: &AgeTable) -> String {
    let all: f64 = ages.mean_bytes.iter().sum();
    match ages.survival.first().copied().flatten() {
        Some(share) => format!(
            "{} survive a young collection; of age 1, {} reach age 2",
            size(all),
            numbers::share(share)
        ),
        None => format!("{} survive a young collection", size(all)),
    }
}

fn ages_note(ages: &AgeTable) -> String {
    let mut said = vec![format!(
        "Means of {} age tables.",
        numbers::count(ages.count)
    )];
    if let Some(desired) = ages.desired_bytes {
        said.push(format!(
            "The desired survivor size is at most {}; {} of {} tables exceed it.",
            size(desired),
            numbers::count(ages.overflows),
            numbers::count(ages.with_desired)
        ));
    }
    if let Some(threshold) = ages.threshold {
        let roof = ages
            .threshold_max
            .map_or_else(String::new, |roof| format!(" of {roof}"));
        said.push(format!(
            "Objects move to the old generation at age {}{roof} on average.",
            numbers::significant(threshold)
        ));
    }
    said.join(" ")
}
