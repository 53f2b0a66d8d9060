//! Arithmetic of rates: sums of counters with one meaning, shares of one in another.

use rungwise_model::evidence::{Evidence, Key, Origin, Subject};

use crate::Rate;

/// A rate with the name that its counter has at the source.
pub(crate) struct Named<'n> {
    pub(crate) name: &'n str,
    pub(crate) rate: &'n Rate,
}

/// The sum of counters, to be cited with all their names.
pub(crate) struct Sum {
    pub(crate) rate: Rate,
    pub(crate) line: String,
}

impl Sum {
    /// The sum of these; `None` of none.
    pub(crate) fn of<'n>(parts: impl IntoIterator<Item = Named<'n>>) -> Option<Self> {
        parts
            .into_iter()
            .map(|Named { name, rate }| Self {
                line: format!("{name} {}", rate.line()),
                rate: rate.clone(),
            })
            .reduce(|sum, other| sum.plus(&other))
    }

    fn plus(mut self, other: &Self) -> Self {
        let (sum, added) = (&mut self.rate, &other.rate);
        sum.ends = (sum.ends.0 + added.ends.0, sum.ends.1 + added.ends.1);
        sum.delta += added.delta;
        sum.per_s += added.per_s;
        // Sources of one probe are read in the same samples, unless one could not be read at some of them.
        if sum.series.len() == added.series.len() {
            let pairs = sum.series.iter_mut().zip(&added.series);
            pairs.for_each(|(sum, added)| *sum += added);
        } else {
            sum.series.clear();
        }
        self.line = format!("{}; {}", self.line, other.line);
        self
    }

    /// Adds it to the evidence.
    pub(crate) fn add(
        self,
        evidence: &mut Evidence,
        key: &'static Key,
        subject: Subject,
        source: &str,
    ) {
        let origin = Origin::new(source, self.line);
        evidence.series(key, subject, self.rate.per_s, self.rate.series, origin);
    }
}

/// `part` in `whole`, at most 1 (the two are not read at the same instant), also for each part of the window; 0 if both
/// are zero. `None` if the part grew and the whole did not.
pub(crate) fn share(part: &Rate, whole: &Rate) -> Option<(f64, Vec<f64>)> {
    let of = |part: f64, whole: f64| {
        if whole > 0.0 {
            (part / whole).min(1.0)
        } else {
            0.0
        }
    };
    let series = if part.series.len() == whole.series.len() {
        let pairs = part.series.iter().zip(&whole.series);
        pairs.map(|(part, whole)| of(*part, *whole)).collect()
    } else {
        Vec::new()
    };
    (whole.delta > 0.0 || part.delta <= 0.0).then(|| (of(part.delta, whole.delta), series))
}

/// A counter's course, seconds and value, as a rate; `None` with fewer than two samples, or if it went backwards.
pub(crate) fn of_course(course: &[(f64, u64)]) -> Option<Rate> {
    let (&(began, begin), &(ended, end)) = (course.first()?, course.last()?);
    let series: Vec<f64> = course
        .windows(2)
        .map(|two| {
            let ((from, before), (to, after)) = (two[0], two[1]);
            let grown = after.checked_sub(before)?;
            (to > from).then(|| grown as f64 / (to - from))
        })
        .collect::<Option<_>>()?;
    let delta = end.checked_sub(begin)? as f64;
    (ended > began).then(|| Rate {
        ends: (begin as f64, end as f64),
        delta,
        unfinished: 0.0,
        per_s: delta / (ended - began),
        series,
    })
}

/// The course of a 32-bit counter, extended: where it went back, it wrapped around.
pub(crate) fn unwrapped(course: &[(f64, u32)]) -> Vec<(f64, u64)> {
    let mut last: Option<(u32, u64)> = None;
    course
        .iter()
        .map(|&(at, count)| {
            let whole = last.map_or(u64::from(count), |(before, whole)| {
                whole + u64::from(count.wrapping_sub(before))
            });
            last = Some((count, whole));
            (at, whole)
        })
        .collect()
}

/// The median; for an even number of values the mean of the middle two, 0 for none.
pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => 0.0,
        (half, 0) => f64::midpoint(sorted[half - 1], sorted[half]),
        (half, _) => sorted[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(course: &[(f64, u64)]) -> Rate {
        of_course(course).unwrap()
    }

    #[test]
    fn a_course_needs_two_samples_and_no_step_back() {
        assert_eq!(of_course(&[]), None);
        assert_eq!(of_course(&[(0.0, 1)]), None);
        assert_eq!(of_course(&[(0.0, 1), (0.0, 2)]), None);
        assert_eq!(of_course(&[(0.0, 1), (1.0, 9), (2.0, 8)]), None);
        let rate = rate(&[(0.0, 10), (2.0, 14), (4.0, 14)]);
        assert_eq!(rate.series, [2.0, 0.0]);
        assert_eq!((rate.delta, rate.per_s), (4.0, 1.0));
    }

    #[test]
    fn a_sum_names_all_its_parts() {
        let (four, six) = (rate(&[(0.0, 10), (2.0, 20)]), rate(&[(0.0, 1), (2.0, 5)]));
        let parts = [("Ip InReceives", &four), ("Ip6 InReceives", &six)];
        let sum = Sum::of(parts.map(|(name, rate)| Named { name, rate })).unwrap();
        assert_eq!((sum.rate.delta, sum.rate.per_s), (14.0, 7.0));
        assert_eq!(
            sum.line,
            "Ip InReceives begin 10, end 20; Ip6 InReceives begin 1, end 5"
        );
        assert!(Sum::of([]).is_none());
    }

    #[test]
    fn of_nothing_nothing_has_a_share() {
        let part = rate(&[(0.0, 0), (1.0, 5), (2.0, 5)]);
        let whole = rate(&[(0.0, 0), (1.0, 10), (2.0, 10)]);
        assert_eq!(share(&part, &whole), Some((0.5, vec![0.5, 0.0])));
        let idle = rate(&[(0.0, 3), (2.0, 3)]);
        assert_eq!(share(&part, &idle), None);
        assert_eq!(share(&idle, &idle), Some((0.0, vec![0.0])));
    }

    #[test]
    fn a_counter_of_32_bits_goes_round() {
        let course = [(0.0, u32::MAX - 1), (1.0, 3), (2.0, 4)];
        let rate = of_course(&unwrapped(&course)).unwrap();
        assert_eq!(rate.series, [5.0, 1.0]);
        assert!(unwrapped(&[]).is_empty());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(&[9.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).abs() < 1e-9);
    }
}
