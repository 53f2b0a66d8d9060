//! When the next event of a kind comes, estimated from the times of those before it.
//!
//! Intervals drift: sizes are moved, load changes over the day. So each is held against the mean of those just before it, and
//! what is kept is by how much it was longer or shorter. Of `n` such values that come in any order the next one exceeds the
//! largest with a probability of 1/(n + 1), so ranks give the ends of an interval that holds it nine times in ten, whatever
//! their distribution (conformal prediction: Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2.2). Of too few
//! for that it is Student's interval of their logarithms, with two values more that are supposed: how much they may differ.

use std::collections::VecDeque;

use rungwise_model::capacity::Estimate;
use rungwise_stats::interval::student_t;

use crate::summary::clock::seconds;

/// Intervals that say how far events are apart just now. Of 4, 8 and 16 the one with which most intervals of the corpus lay
/// where they were predicted.
const LATELY: usize = 4;
/// Newest intervals that are held against those before them.
const KEPT: usize = 200;
/// With so many the twentieth part of them is one, so that ranks give both ends.
const ENOUGH: usize = 19;
/// Fewer that were longer than the time that has passed do not tell how long it will be.
const LONGER: usize = 5;
/// Stamps may be no finer, seconds.
const FINEST: f64 = 1e-3;
/// Values that are supposed beside those of few intervals.
const SUPPOSED: usize = 2;
/// Logarithms beyond this are as good as no bound.
const BOUND: f64 = 300.0;

/// Times of events.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    last: Option<i64>,
    /// Logarithms of the newest intervals, seconds.
    logs: VecDeque<f64>,
}

impl Rhythm {
    /// One comes, at so many nanoseconds.
    pub(super) fn see(&mut self, at: Option<i64>) {
        let since = self.last.zip(at).map(|(last, at)| at - last);
        if let Some(since) = since.filter(|since| *since >= 0) {
            self.logs.push_back(seconds(since).max(FINEST).ln());
            if self.logs.len() > LATELY + KEPT {
                self.logs.pop_front();
            }
        }
        self.last = at.or(self.last);
    }

    /// Seconds from `now` until the next one, nine times in ten; without an upper end where it is overdue. `supposed` is the
    /// standard deviation of logarithms that few intervals are taken to have beside their own. `slack` is a share of the length
    /// that does not matter. Null where none has ended.
    pub(super) fn next(&self, now: i64, supposed: f64, slack: f64) -> Option<Estimate> {
        let passed = seconds(now - self.last?).max(0.0);
        let logs: Vec<f64> = self.logs.iter().copied().collect();
        let lengths = match logs.len() {
            0 => return None,
            n if n < LATELY + ENOUGH => Some(by_student(&logs, supposed)),
            _ => by_rank(&logs, passed),
        };
        let left = |length: f64| (length - passed).max(0.0);
        let due = Estimate {
            high: f64::INFINITY,
            ..Estimate::default()
        };
        let lengths = lengths.map(|lengths| lengths.widened(slack));
        let ahead = lengths.filter(|lengths| lengths.high > passed);
        Some(ahead.map_or(due, |lengths| Estimate {
            point: left(lengths.point),
            low: left(lengths.low),
            high: left(lengths.high),
        }))
    }

    /// Seconds since the last one, at `now`.
    pub(super) fn passed(&self, now: i64) -> f64 {
        self.last.map_or(0.0, |last| seconds(now - last).max(0.0))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Length of an interval that is longer than `passed`; null where hardly one was.
fn by_rank(logs: &[f64], passed: f64) -> Option<Estimate> {
    let now = mean(&logs[logs.len() - LATELY..]);
    let mut lengths: Vec<f64> = logs
        .windows(LATELY + 1)
        .map(|window| (now + window[LATELY] - mean(&window[..LATELY])).exp())
        .filter(|length| *length > passed)
        .collect();
    lengths.sort_unstable_by(f64::total_cmp);
    let n = lengths.len();
    let rank = |share: f64| share * (n + 1) as f64;
    (n >= LONGER).then(|| Estimate {
        point: lengths[n / 2],
        low: match rank(0.05) as usize {
            0 => passed,
            rank => lengths[rank - 1],
        },
        high: lengths[(rank(0.95).ceil() as usize).min(n) - 1],
    })
}

fn by_student(logs: &[f64], supposed: f64) -> Estimate {
    let n = logs.len();
    let mean = mean(logs);
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let freedom = n - 1 + SUPPOSED;
    let variance = (squares + SUPPOSED as f64 * supposed * supposed) / freedom as f64;
    let one = (variance * (1.0 + 1.0 / n as f64)).sqrt();
    let reach = student_t(0.95, freedom) * one;
    Estimate {
        point: mean.exp(),
        low: (mean - reach).exp(),
        high: (mean + reach).min(BOUND).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::clock::SECOND;

    /// Every `step` seconds, and how much later each comes.
    fn rhythm(count: i64, late: impl Fn(i64) -> i64) -> (Rhythm, i64) {
        let mut rhythm = Rhythm::default();
        let at = |number: i64| number * 100 * SECOND + late(number);
        (0..count).for_each(|number| rhythm.see(Some(at(number))));
        (rhythm, at(count - 1))
    }

    #[test]
    fn what_comes_regularly_comes_again_and_the_time_passed_is_taken_off() {
        let (rhythm, last) = rhythm(50, |_| 0);
        let next = rhythm.next(last + 30 * SECOND, 1.0, 0.0).unwrap();
        assert!(
            (next.point - 70.0).abs() < 1e-6 && next.high - next.low < 1e-6,
            "{next:?}"
        );
        let overdue = rhythm.next(last + 130 * SECOND, 1.0, 0.0).unwrap();
        assert!(
            overdue.low <= 0.0 && overdue.high.is_infinite(),
            "{overdue:?}"
        );
    }

    #[test]
    fn intervals_that_become_longer_are_followed() {
        let mut rhythm = Rhythm::default();
        let mut at = 0.0;
        for number in 0..60 {
            rhythm.see(Some((at * 1e9) as i64));
            at += 1.05_f64.powi(number);
        }
        let next = rhythm.next(rhythm.last.unwrap(), 1.0, 0.0).unwrap();
        let truth = 1.05_f64.powi(59);
        assert!((next.point / truth - 1.0).abs() < 0.01, "{next:?} {truth}");
    }

    #[test]
    fn few_intervals_tell_less_than_many_and_none_nothing() {
        let width = |count| {
            let (rhythm, last) = rhythm(count, |number| number * number % 7 * SECOND);
            let next = rhythm.next(last, 0.2, 0.0)?;
            Some(next.high / next.low)
        };
        assert_eq!(width(1), None);
        let (two, six, many) = (width(2).unwrap(), width(6).unwrap(), width(80).unwrap());
        assert!(two > six && six > many, "{two} {six} {many}");
    }
}
