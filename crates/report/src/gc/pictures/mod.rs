//! The pictures of a run: pauses and heap on one time axis, how long pauses are, what survives, what stops the threads.
//!
//! Each is made of what the document holds: courses of a fixed number of steps and tables. So a picture is as large for
//! a month as for a minute. A picture without anything to show is left out; why is said where it would stand.

mod heap;
mod pauses;
mod stops;

use rungwise_model::gc::{Course, Point, Run};

use super::{millis, section, size};
use crate::block::{self, Block, Cell, Series};
use crate::numbers;

/// Pictures in the order of the questions: when did it stop, for how long, what was in the heap, what survives, what else
/// stops the threads.
pub(super) fn blocks(run: &Run) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(time) = Time::of(run) {
        blocks.extend(pauses::over_time(run, time));
        blocks.extend(pauses::histogram(run));
        blocks.extend(heap::whole(run, time));
        blocks.extend(heap::generations(run, time));
    } else {
        let why = "The log has no clock: pauses and heap cannot be drawn over time.";
        blocks.push(Block::Prose(why.to_owned()));
        blocks.extend(pauses::histogram(run));
    }
    blocks.extend(heap::ages(run));
    blocks.extend(stops::operations(run));
    if blocks.iter().any(|block| matches!(block, Block::Chart(_))) {
        blocks.insert(0, section("pictures", "In pictures"));
    } else {
        blocks.clear();
    }
    blocks
}

/// The time axis that all pictures share, seconds on the clock of the run.
#[derive(Clone, Copy, Debug)]
struct Time {
    from_s: f64,
    until_s: f64,
}

impl Time {
    fn of(run: &Run) -> Option<Self> {
        let from_s = run.began_s.filter(|s| s.is_finite())?;
        let seconds = run.seconds.filter(|s| s.is_finite() && *s > 0.0)?;
        Some(Self {
            from_s,
            until_s: from_s + seconds,
        })
    }
}

/// Beneath a picture over time.
const CLOCK: &str =
    "Time is the JVM's uptime where the log prints it, else the time since its first stamp.";

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

fn how_many(count: u64) -> Cell {
    Cell::number(Some(count as f64), |_| numbers::count(count))
}

/// A moment of the run with a tenth of a second, as the log prints it.
fn moment(at_s: f64) -> Cell {
    Cell::number(Some(at_s), |s| format!("{s:.1}{}s", numbers::THIN))
}
