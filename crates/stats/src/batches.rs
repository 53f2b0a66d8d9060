//! Intervals of the ratio of two means, of two ratios or of two quantiles, of correlated values.
//!
//! Pauses of one run are not independent: they come in waves of load. Means of long batches of neighbours nearly are, so the spread of the
//! batch means gives the error of the mean (Schmeiser, "Batch Size Effects in the Analysis of Simulation
//! Output", Operations Research 30 (1982): ten to thirty batches are enough, and more make each too short). The ratio's
//! interval is by the delta method on its logarithm, with the t quantile of the side with fewer batches.
//!
//! - A ratio within a side, such as pause time per byte allocated, is that of the sums: the mean of the ratios of the batches
//!   would give a batch with little in it as much weight as one with much. Its error is by the jackknife over batches
//!   (Quenouille 1956; Efron & Stein, Annals of Statistics 9 (1981)).
//! - A quantile has the interval of Woodruff (JASA 47 (1952)): the share of values beyond it is a mean, whose error comes
//!   from batches; the ends of that share's interval give the ends of the quantile's. The share is small, so that its interval
//!   is on the logarithm. Two of these make that of the ratio by the method of variance
//!   estimates recovery (Zou & Donner, Statistics in Medicine 27 (2008)).

use crate::interval::{Interval, student_t};

/// Batches that a run is cut into.
pub const BATCHES: usize = 20;
/// Batches below which no interval is stated; those of zero do not count, since the frequency of a few events is unknown.
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

/// After over before of what each side is the ratio of: sums of the first over sums of the second of its batches. The interval
/// misses the truth with probability `alpha`.
///
/// `None` for fewer than [`FEWEST`] batches with both above zero on a side, and for values that are below zero or not finite.
pub fn ratio_of_ratios(
    before: &[(f64, f64)],
    after: &[(f64, f64)],
    alpha: f64,
) -> Option<Interval> {
    let (a, b) = (log_ratio(before)?, log_ratio(after)?);
    let freedom = before.len().min(after.len()) - 1;
    let reach = student_t(1.0 - alpha / 2.0, freedom) * a.1.hypot(b.1);
    let log = b.0 - a.0;
    Some(Interval {
        point: log.exp(),
        low: (log - reach).exp(),
        high: (log + reach).exp(),
    })
}

/// Logarithm of the ratio of the sums, and its standard error.
fn log_ratio(batches: &[(f64, f64)]) -> Option<(f64, f64)> {
    let some = batches.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).count();
    let usable = |value: f64| value.is_finite() && value >= 0.0;
    if some < FEWEST || !batches.iter().all(|(a, b)| usable(*a) && usable(*b)) {
        return None;
    }
    let sums = batches
        .iter()
        .fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let without = |(x, y): &(f64, f64)| ((sums.0 - x) / (sums.1 - y)).ln();
    let logs: Vec<f64> = batches.iter().map(without).collect();
    let count = batches.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let error = (squares * (count - 1.0) / count).sqrt();
    Some(((sums.0 / sums.1).ln(), error))
}

/// After over before of the value that a share `p` does not exceed, of values in the order in which they came. The interval
/// misses the truth with probability `alpha`.
///
/// `None` where values beyond it lie in fewer than [`FEWEST`] of [`BATCHES`] batches of neighbours on a side, so that their frequency is
/// unknown, and for values that are not above zero or not finite.
pub fn ratio_of_quantiles(before: &[f64], after: &[f64], p: f64, alpha: f64) -> Option<Interval> {
    let (a, b) = (
        log_quantile(before, p, alpha)?,
        log_quantile(after, p, alpha)?,
    );
    let log = b.point - a.point;
    Some(Interval {
        point: log.exp(),
        low: (log - (b.point - b.low).hypot(a.high - a.point)).exp(),
        high: (log + (b.high - b.point).hypot(a.point - a.low)).exp(),
    })
}

/// The value at share `p` of sorted ones; `None` where there is none beyond it.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    // A share of a whole number of values may lie a rounding below it.
    sorted
        .get((sorted.len() as f64 * p + 1e-9) as usize)
        .copied()
}

/// Logarithm of a quantile with its interval.
fn log_quantile(values: &[f64], p: f64, alpha: f64) -> Option<Interval> {
    if values
        .iter()
        .any(|value| !value.is_finite() || *value <= 0.0)
    {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let point = quantile(&sorted, p)?;
    let beyond = |values: &[f64]| values.iter().filter(|value| **value > point).count() as f64;
    let each = values.len() / BATCHES;
    let batches = values.chunks_exact(each.max(1)).take(BATCHES);
    let shares: Vec<f64> = batches
        .map(|batch| beyond(batch) / batch.len() as f64)
        .collect();
    let (count, share) = (values.len() as f64, beyond(values) / values.len() as f64);
    // Of values that do not hang together the batches may tell too little by chance.
    let least = ((1.0 - share) / (share * count)).sqrt();
    let error = Mean::of(&shares)?.relative_error.max(least);
    let reach = (student_t(1.0 - alpha / 2.0, BATCHES - 1) * error).exp();
    let with_beyond = |number: f64| sorted.get((count - 1.0 - number).max(0.0) as usize);
    // With none beyond it the upper end is unknown.
    let few = (share * count / reach).floor();
    let high = with_beyond(few).filter(|_| few >= 1.0)?;
    let low = with_beyond((share * count * reach).ceil())?;
    Some(Interval {
        point: point.ln(),
        low: low.ln(),
        high: high.ln(),
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

    /// How many of so many intervals of two sides without any difference hold 1, and how many there are.
    fn covered(pairs: usize, mut interval: impl FnMut() -> Option<Interval>) -> (usize, usize) {
        let all: Vec<Interval> = (0..pairs).filter_map(|_| interval()).collect();
        let holds = all.iter().filter(|one| one.low <= 1.0 && one.high >= 1.0);
        (holds.count(), all.len())
    }

    #[test]
    fn a_ratio_of_sums_is_covered_whatever_the_load() {
        let mut seed = 11;
        // A load that comes in waves and is nearly nothing at times, and a cost of three for each of it that does so too.
        let mut side = || -> Vec<(f64, f64)> {
            let load = means(&waves(&mut seed, 2000), BATCHES);
            let cost = means(&waves(&mut seed, 2000), BATCHES);
            let pairs = load.iter().zip(&cost);
            pairs
                .map(|(load, cost)| ((load - 9.0).max(0.01), cost))
                .map(|(load, cost)| (load * cost * 0.3, load))
                .collect()
        };
        let (held, all) = covered(400, || ratio_of_ratios(&side(), &side(), 0.05));
        // 95 % are 380; four standard errors of a count of that are 17.
        assert!(all == 400 && held >= 363, "{held} of {all}");
        let batches = [(1.0, 1.0), (10.0, 100.0)].repeat(10);
        let ratio = ratio_of_ratios(&batches, &[(11.0, 101.0); 20], 0.05).unwrap();
        assert!((ratio.point - 1.0).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn a_quantile_of_values_in_waves_is_covered_and_of_too_few_there_is_none() {
        let mut seed = 13;
        let mut of = |count: usize, pairs: usize| {
            covered(pairs, || {
                let (a, b) = (waves(&mut seed, count), waves(&mut seed, count));
                ratio_of_quantiles(&a, &b, 0.99, 0.05)
            })
        };
        let (held, all) = of(5000, 200);
        // 95 % of 190 are 180; four standard errors are 12.
        assert!(all >= 180 && held * 100 >= all * 89, "{held} of {all}");
        // Fifty values, in a few waves.
        let (_, all) = of(1000, 50);
        assert!(all <= 5, "{all}");
        let mut alone = || {
            let mut values = waves(&mut seed, 20 * 2000);
            // Every twentieth: they hardly hang together.
            let mut index = 0;
            values.retain(|_| {
                index += 1;
                index % 20 == 0
            });
            values
        };
        let (held, all) = covered(200, || ratio_of_quantiles(&alone(), &alone(), 0.99, 0.05));
        assert!(all >= 195 && held * 100 >= all * 92, "{held} of {all}");
    }

    #[test]
    fn a_quantile_lies_within_its_interval_and_needs_values_beyond_it() {
        let before: Vec<f64> = (0..3000).map(|i| f64::from(i * 7919 % 3000 + 1)).collect();
        let after: Vec<f64> = before.iter().map(|value| value * 2.0).collect();
        let ratio = ratio_of_quantiles(&before, &after, 0.99, 0.05).unwrap();
        assert!((ratio.point - 2.0).abs() < 1e-9);
        assert!(
            ratio.low < 2.0 && ratio.low > 1.97 && ratio.high > 2.0 && ratio.high < 2.03,
            "{ratio:?}"
        );
        assert_eq!(
            ratio_of_quantiles(&before, &vec![5.0; 3000], 0.99, 0.05),
            None
        );
        assert_eq!(ratio_of_quantiles(&before, &after[..100], 0.99, 0.05), None);
        assert_eq!(ratio_of_quantiles(&before, &[], 0.99, 0.05), None);
        assert_eq!(
            ratio_of_quantiles(&before, &vec![0.0; 3000], 0.99, 0.05),
            None
        );
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
        let (both, nothing) = ([(1.0, 1.0); 20], [(1.0, 0.0); 20]);
        assert_eq!(ratio_of_ratios(&both[..7], &both, 0.05), None);
        assert_eq!(ratio_of_ratios(&both, &nothing, 0.05), None);
        assert_eq!(ratio_of_ratios(&both, &[(-1.0, 1.0); 20], 0.05), None);
        let same = ratio_of_means(&some, &some, 0.05).unwrap();
        assert!((same.low, same.high) == (1.0, 1.0));
    }
}
