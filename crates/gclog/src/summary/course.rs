//! How a quantity went over a run: least, mean and largest value of each of a fixed number of steps.
//!
//! The steps begin short. When time runs past the last one, neighbours merge in pairs and all become twice as long, so
//! memory is the same for a minute and for a month.

use rungwise_model::gc;

use super::clock::{SECOND, seconds};

/// Length of a step at the beginning: an eighth of a tenth of a second, so that steps become 0.1 s, 0.2 s and so on.
pub(super) const FIRST: i64 = SECOND / 80;

/// Parts of a run that a course is given in as evidence.
pub(super) const PARTS: usize = 8;

/// `STEPS` at most: as many as a chart has room for.
#[derive(Debug, Default)]
pub(super) struct Course<const STEPS: i64 = 512> {
    /// Time of the first value.
    origin: i64,
    /// Length of a step; 0 while there is no value.
    step: i64,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    count: u64,
    /// Sum of the times since the origin, seconds.
    times: f64,
    /// Sum of the weights.
    weight: f64,
    /// Sum of the values, each times its weight.
    sum: f64,
    min: f64,
    max: f64,
}

impl Step {
    fn add(&mut self, other: Self) {
        if self.count == 0 {
            *self = other;
        } else if other.count > 0 {
            self.count += other.count;
            self.times += other.times;
            self.weight += other.weight;
            self.sum += other.sum;
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
    }
}

impl<const STEPS: i64> Course<STEPS> {
    /// Enters a value, if it has a time. One from before the first counts as there.
    pub(super) fn add(&mut self, at: Option<i64>, value: f64) {
        self.add_weighted(at, value, 1.0);
    }

    /// Enters a value that counts so much in the mean.
    pub(super) fn add_weighted(&mut self, at: Option<i64>, value: f64, weight: f64) {
        let Some(at) = at else { return };
        if self.step == 0 {
            (self.origin, self.step) = (at, FIRST);
        }
        let since = at.saturating_sub(self.origin).max(0);
        while since >= self.step.saturating_mul(STEPS) {
            self.halve();
        }
        let index = (since / self.step) as usize;
        if self.steps.len() <= index {
            self.steps.resize(index + 1, Step::default());
        }
        self.steps[index].add(Step {
            count: 1,
            times: seconds(since),
            weight,
            sum: value * weight,
            min: value,
            max: value,
        });
    }

    pub(super) fn course(&self) -> gc::Course {
        let began = seconds(self.origin);
        let points = self.steps.iter().filter(|step| step.count > 0);
        gc::Course {
            step_s: seconds(self.step),
            points: points
                .map(|step| gc::Point {
                    at_s: began + step.times / step.count as f64,
                    min: step.min,
                    mean: step.sum / step.weight,
                    max: step.max,
                    count: step.count,
                })
                .collect(),
        }
    }

    fn halve(&mut self) {
        let half = self.steps.len().div_ceil(2);
        for index in 0..half {
            let mut merged = self.steps[2 * index];
            merged.add(self.steps.get(2 * index + 1).copied().unwrap_or_default());
            self.steps[index] = merged;
        }
        self.steps.truncate(half);
        self.step = self.step.saturating_mul(2);
    }
}

/// The means of a course in at most `parts` runs of neighbours, oldest first: the series of a reading.
pub(super) fn parts(course: &gc::Course, parts: usize) -> Vec<f64> {
    let chunks = course.points.chunks(together(course.points.len(), parts));
    chunks.map(|points| joined(points).mean).collect()
}

/// Joins neighbours until the course has no more than [`PARTS`] points: the same [`parts`] come of it as before.
pub(super) fn coarsen(course: &mut gc::Course) {
    let size = together(course.points.len(), PARTS);
    if size > 1 {
        course.points = course.points.chunks(size).map(joined).collect();
        course.step_s *= size as f64;
    }
}

/// How many neighbours become one, so that no more than `parts` are left.
pub(super) fn together(length: usize, parts: usize) -> usize {
    length.div_ceil(parts.max(1)).max(1)
}

fn joined(points: &[gc::Point]) -> gc::Point {
    let count: u64 = points.iter().map(|point| point.count).sum();
    let mean = |of: fn(&gc::Point) -> f64| {
        let sum: f64 = points.iter().map(|p| of(p) * p.count as f64).sum();
        sum / count as f64
    };
    let extreme = |of: fn(&gc::Point) -> f64, more: fn(f64, f64) -> f64| {
        points.iter().map(of).reduce(more).unwrap_or(f64::NAN)
    };
    gc::Point {
        at_s: mean(|p| p.at_s),
        min: extreme(|p| p.min, f64::min),
        mean: mean(|p| p.mean),
        max: extreme(|p| p.max, f64::max),
        count,
    }
}

#[cfg(test)]
#[expect(
    clippy::float_cmp,
    reason = "extremes are the values themselves, not near them"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_month_takes_no_more_steps_than_a_minute() {
        let mut course = <Course>::default();
        for minute in 0..43_200 {
            course.add(Some(minute * 60 * SECOND), minute as f64);
        }
        let reduced = course.course();
        assert!(reduced.points.len() <= 512 && reduced.points.len() > 128);
        assert_eq!(reduced.points[0].min, 0.0);
        assert_eq!(reduced.points.last().unwrap().max, 43_199.0);
        assert_eq!(reduced.points.iter().map(|p| p.count).sum::<u64>(), 43_200);
    }

    #[test]
    fn a_series_has_the_mean_of_each_part() {
        let mut course = <Course>::default();
        for second in 0..8 {
            course.add(Some(second * SECOND), second as f64);
        }
        assert_eq!(parts(&course.course(), 4), [0.5, 2.5, 4.5, 6.5]);
        assert!(parts(&gc::Course::default(), 4).is_empty());
    }

    proptest! {
        #[test]
        fn merging_loses_no_value_and_no_extreme(
            values in prop::collection::vec((0..i64::MAX / 2, -1e9..1e9f64), 1..100),
        ) {
            let mut course = <Course>::default();
            for (at, value) in &values {
                course.add(Some(*at), *value);
            }
            let points = course.course().points;
            let least = values.iter().map(|v| v.1).fold(f64::MAX, f64::min);
            let most = values.iter().map(|v| v.1).fold(f64::MIN, f64::max);
            prop_assert_eq!(points.iter().map(|p| p.min).fold(f64::MAX, f64::min), least);
            prop_assert_eq!(points.iter().map(|p| p.max).fold(f64::MIN, f64::max), most);
            prop_assert_eq!(points.iter().map(|p| p.count).sum::<u64>(), values.len() as u64);
        }
    }
}
