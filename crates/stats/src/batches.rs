//! Interval of the ratio of two means of values that hang together.
//!
//! Pauses of one run are not independent: they come in waves of load. Means of long batches of neighbours nearly are, so the
//! spread of the batch means tells the error of the mean (Schmeiser, "Batch Size Effects in the Analysis of Simulation
//! Output", Operations Research 30 (1982): ten to thirty batches are enough, and more make each too short). The ratio's
//! interval is by the delta method on its logarithm, with the t quantile of the side with fewer batches.

use crate::interval::{Interval, student_t};

/// Batches that a run is cut into.
pub const BATCHES: usize = 20;
/// Batches below which no interval is stated; those of zero do not count, since of a few events nobody knows how often they come.
pub const FEWEST: usize = 8;

/// After over before, with an interval that misses the truth with probability `alpha`. The point is the ratio of the means.
///
/// `None` for fewer than [`FEWEST`] batches above zero on a side, a mean that is not above zero, values that are not finite.
pub fn ratio_of_means(before: &[f64], after: &[f64], alpha: f64) -> Option<Interval> {
    let (a, b) = (Mean::of(before)?, Mean::of(after)?);
    let freedom = before.len().min(after.len()) - 1;
    let reach = student_t(1.0 - alpha / 2.0, freedom) * a.relative_error.hypot(b.relative_error);
    let log = (b.mean / a.mean).ln();
    Some(Interval {
        point: log.exp(),
        low: (log - reach).exp(),
        high: (log + reach).exp(),
    })
}

struct Mean {
    mean: f64,
    /// Standard error over the mean.
    relative_error: f64,
}

impl Mean {
    fn of(batches: &[f64]) -> Option<Self> {
        let count = batches.len();
        let some = batches.iter().filter(|value| **value > 0.0).count();
        if some < FEWEST || batches.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = batches.iter().sum::<f64>() / count as f64;
        let squares: f64 = batches.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        (mean > 0.0).then(|| Self {
            mean,
            relative_error: error / mean,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around ten of which each hangs on the last, as pauses in waves of load do: AR(1) with uniform noise.
    fn waves(seed: &mut u64, count: usize) -> Vec<f64> {
        let mut level = 0.0;
        let mut next = || {
            *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            level =
                0.9 * level + ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            10.0 + level
        };
        (0..count).map(|_| next()).collect()
    }

    fn means(values: &[f64], batches: usize) -> Vec<f64> {
        let each = values.len() / batches;
        values
            .chunks(each)
            .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
            .collect()
    }

    #[test]
    fn of_values_in_waves_batches_cover_the_truth_and_single_values_do_not() {
        let mut seed = 7;
        let (mut batches, mut singles) = (0, 0);
        for _ in 0..400 {
            let (a, b) = (waves(&mut seed, 2000), waves(&mut seed, 2000));
            let covers = |a: &[f64], b: &[f64]| {
                let interval = ratio_of_means(a, b, 0.05).unwrap();
                usize::from(interval.low <= 1.0 && interval.high >= 1.0)
            };
            batches += covers(&means(&a, BATCHES), &means(&b, BATCHES));
            singles += covers(&a, &b);
        }
        // 95 % are 380; four standard errors of a count of that are 17.
        assert!(batches >= 363, "{batches} of 400");
        assert!(singles < 300, "{singles} of 400");
    }

    #[test]
    fn a_ratio_has_its_point_and_its_order() {
        let before: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i % 3)).collect();
        let after: Vec<f64> = before.iter().map(|value| value * 3.0).collect();
        let interval = ratio_of_means(&before, &after, 0.05).unwrap();
        assert!((interval.point - 3.0).abs() < 1e-9);
        assert!(interval.low < 3.0 && interval.high > 3.0 && interval.low > 2.0);
    }

    #[test]
    fn of_few_of_nothing_and_of_no_numbers_there_is_none() {
        let (some, few) = ([1.0; 20], [1.0; 7]);
        assert_eq!(ratio_of_means(&few, &some, 0.05), None);
        assert_eq!(ratio_of_means(&[0.0; 20], &some, 0.05), None);
        let seldom: Vec<f64> = (0..20).map(|batch| f64::from(batch % 3 / 2)).collect();
        assert_eq!(ratio_of_means(&seldom, &some, 0.05), None);
        assert_eq!(ratio_of_means(&some, &[f64::NAN; 20], 0.05), None);
        let same = ratio_of_means(&some, &some, 0.05).unwrap();
        assert!((same.low, same.high) == (1.0, 1.0));
    }
}
