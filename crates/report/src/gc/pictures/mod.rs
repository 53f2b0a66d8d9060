//! The pictures of a run: on one time axis pauses and their phases, heap, allocation, concurrent work, stops and CPU time;
//! then the durations and causes of pauses, what survives, what stops the threads, and the statistics of the collector.
//!
//! Each is made of what the document contains: courses of a fixed number of steps and tables. So a picture is as large for
//! a month as for a minute. A picture without data is left out, with the reason in its place. A terminal shows those that
//! answer most questions.

mod beside;
mod heap;
mod made;
mod pauses;
mod stops;
mod sums;

use rungwise_model::gc::{Course, Point, Run};

use super::{millis, size};
use crate::block::{self, Block, Cell, Dots, Plot, Series, Span, Tone};
use crate::numbers;
use crate::scale::Unit;

pub(super) use pauses::since_began;

/// Pictures in the order of the questions: when did it stop and what for, what was in the heap, what ran beside; then for
/// how long, why, what survives, what else stops the threads.
pub(super) fn blocks(run: &Run) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(time) = Time::of(run) {
        blocks.extend(pauses::over_time(run, time));
        blocks.extend(not_on_a_terminal(made::over_time(run, time)));
        blocks.extend(heap::whole(run, time));
        blocks.extend(heap::generations(run, time));
        blocks.extend(not_on_a_terminal(heap::allocation(run, time)));
        blocks.extend(not_on_a_terminal(beside::concurrent(run, time)));
        blocks.extend(not_on_a_terminal(stops::over_time(run, time)));
        blocks.extend(not_on_a_terminal(made::cpu(run, time)));
        blocks.extend(not_on_a_terminal(heap::metaspace(run, time)));
    } else {
        let why = "The log has no clock: pauses and heap cannot be drawn over time.";
        blocks.push(Block::Prose(why.to_owned()));
    }
    blocks.extend(pauses::histogram(run));
    blocks.extend(not_on_a_terminal(made::causes(run)));
    blocks.extend(heap::ages(run));
    blocks.extend(stops::operations(run));
    let own = sums::own(run);
    blocks.extend(if run.pauses.all.count == 0 {
        own
    } else {
        not_on_a_terminal(own)
    });
    if blocks.iter().any(|block| matches!(block, Block::Chart(_))) {
        blocks.insert(0, Block::section("pictures", "Charts"));
    } else {
        blocks.clear();
    }
    blocks
}

fn not_on_a_terminal(picture: Option<Block>) -> Option<Block> {
    Some(Block::Long {
        brief: String::new(),
        summary: String::new(),
        blocks: vec![picture?],
    })
}

/// The time axis that all pictures share, seconds on the clock of the run.
#[derive(Clone, Copy, Debug)]
struct Time {
    from_s: f64,
    until_s: f64,
}

impl Time {
    /// Dots over it; lengths of time reach over magnitudes, bytes are seen from zero.
    fn dots(self, quantity: &str, unit: Unit, series: Vec<Series>) -> Plot {
        Plot::Dots(Dots {
            along: Unit::Seconds,
            names: Vec::new(),
            quantity: quantity.to_owned(),
            unit,
            from_zero: unit == Unit::Bytes,
            also: Vec::new(),
            from_s: self.from_s,
            until_s: self.until_s,
            zooms: true,
            series,
            spans: Vec::new(),
        })
    }

    fn of(run: &Run) -> Option<Self> {
        let from_s = run.began_s.filter(|s| s.is_finite())?;
        let seconds = run.seconds.filter(|s| s.is_finite() && *s > 0.0)?;
        Some(Self {
            from_s,
            until_s: from_s + seconds,
        })
    }

    /// The worst window.
    fn worst(self, run: &Run) -> Vec<Span> {
        let Some(share) = &run.throughput else {
            return Vec::new();
        };
        let length = share.worst_window_s;
        // Of a run that is not much longer it would shade nearly all.
        if 2.0 * length >= self.until_s - self.from_s || share.worst >= share.whole {
            return Vec::new();
        }
        vec![Span {
            from_s: share.worst_until_s - length,
            to_s: share.worst_until_s,
            label: format!("worst {}", numbers::span(length)),
            title: format!(
                "the worst {}: threads were stopped for {} of it",
                numbers::span(length),
                numbers::share(1.0 - share.worst)
            ),
            tone: Tone::Bad,
        }]
    }
}

/// Beneath a picture over time.
const CLOCK: &str =
    "Time is the JVM's uptime where the log prints it, else the time since its first timestamp.";

/// One value of each step of a course, joined by a line.
fn line(
    name: &str,
    (dashed, hue): (bool, usize),
    course: &Course,
    value: fn(&Point) -> f64,
) -> Option<Series> {
    (!course.points.is_empty()).then(|| Series {
        name: name.to_owned(),
        square: dashed,
        joined: true,
        hue,
        points: course
            .points
            .iter()
            .map(|point| block::Point {
                at_s: point.at_s,
                value: value(point),
                hollow: false,
            })
            .collect(),
    })
}

/// The length of a step: `12.5 ms`, `27 min 18 s`.
fn step(seconds: f64) -> String {
    if seconds < 60.0 {
        numbers::micros(seconds * 1e6)
    } else {
        numbers::span(seconds)
    }
}

fn how_many(count: u64) -> Cell {
    Cell::number(Some(count as f64), |_| numbers::count(count))
}

/// A moment of the run with a tenth of a second, as the log prints it.
fn moment(at_s: f64) -> Cell {
    Cell::number(Some(at_s), |s| format!("{s:.1}{}s", numbers::THIN))
}
