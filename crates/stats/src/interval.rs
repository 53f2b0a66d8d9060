//! Centre of a few pairs, with its confidence interval.
//!
//! The centre is the estimator of Hodges and Lehmann (Annals of Mathematical Statistics 34 (1963)): the median of all means of two values
//! (Walsh averages). One wild pair hardly moves it, and of normal values it needs 1.05 times as many as the mean for
//! the same precision, where the median needs 1.57 times as many. The difference of two runs that differ by nothing but a
//! factor is symmetric about the logarithm of that factor, which is all that the interval asks for.
//!
//! The interval is the hull of two:
//!
//! - **The exact one** of Wilcoxon's signed-rank test (Hollander, Wolfe & Chicken, "Nonparametric Statistical Methods", 3rd ed. (2014),
//!   ch. 3.3). Its ends are Walsh averages, so it never leaves the sample: eight gains in eight pairs would
//!   exclude zero at *any* level, although chance alone does that once in 2^7.
//! - **Centre ± t(1 - alpha/2, n - 1) · SE.** The standard error follows from the width of the exact interval at a moderate level, divided by
//!   that of a standard normal (Lehmann, Annals of Mathematical Statistics 34 (1963)); the t quantile knows how
//!   little n values say about their own spread. It can leave the sample.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Values below which no interval is stated: the spread of three numbers is not an estimate.
pub const FEWEST: usize = 4;

/// A point with its confidence interval, in the unit of the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Centre of the sample.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Every value of the interval is positive.
    pub fn is_above_zero(&self) -> bool {
        self.low > 0.0
    }

    /// Every value of the interval is negative.
    pub fn is_below_zero(&self) -> bool {
        self.high < 0.0
    }

    /// The interval lies strictly between `-margin` and `margin`.
    pub fn is_inside(&self, margin: f64) -> bool {
        self.low > -margin && self.high < margin
    }

    /// The interval of the negated sample.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        Self {
            point: -self.point,
            low: -self.high,
            high: -self.low,
        }
    }
}

/// Interval of the centre of `sample` that misses the truth with probability `alpha`, both sides together.
///
/// `None` for fewer than [`FEWEST`] values, for values that are not finite, and for an `alpha` outside (0, 1).
/// A sample of equal values shows no spread and gets an interval without width. Time and memory grow with the
/// square of the sample.
pub fn centre_interval(sample: &[f64], alpha: f64) -> Option<Interval> {
    let n = sample.len();
    let usable = n >= FEWEST && alpha > 0.0 && alpha < 1.0 && sample.iter().all(|x| x.is_finite());
    if !usable {
        return None;
    }
    let averages = walsh_averages(sample);
    let point = median_of_sorted(&averages);
    let ranks = SignedRank::of(n);
    let (exact_low, exact_high) = ends(&averages, ranks.cut(alpha / 2.0));
    let reach = student_t(1.0 - alpha / 2.0, n - 1) * standard_error(&averages, &ranks);
    Some(Interval {
        point,
        low: exact_low.min(point - reach),
        high: exact_high.max(point + reach),
    })
}

/// What the interval of a sample may still become once it holds `all` values, in the unit of the sample.
///
/// `None` where [`centre_interval`] has none, and where there are no values to come.
pub fn outlook(sample: &[f64], alpha: f64, all: usize) -> Option<Outlook> {
    let n = sample.len();
    centre_interval(sample, alpha)?;
    if all <= n {
        return None;
    }
    let error = standard_error(&walsh_averages(sample), &SignedRank::of(n));
    let seen = n as f64 / all as f64;
    Some(Outlook {
        reach: LUCKY * student_t(1.0 - alpha / 2.0, all - 1) * error * seen.sqrt(),
        drift: Normal::standard().inverse_cdf(0.95) * error * (1.0 - seen).sqrt(),
    })
}

/// A few values may overstate their spread: eight normal ones by a factor of more than 1 / 0.7 in one case of twenty (chi-squared).
const LUCKY: f64 = 0.7;

/// What the interval of a sample may still become, unless the values so far are unusual: an outlook, and no bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Smallest distance of the ends from the centre.
    pub reach: f64,
    /// Largest move of the centre, either way.
    pub drift: f64,
}

/// Median of values in any order; the mean of the middle two where their number is even. `None` when empty.
pub fn median(sample: &[f64]) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median_of_sorted(&sorted))
}

/// Quantile `p` of Student's t with `freedom` degrees of freedom.
pub fn student_t(p: f64, freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64)
        .expect("one degree of freedom or more")
        .inverse_cdf(p)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n % 2 == 1 {
        sorted[n / 2]
    } else {
        f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])
    }
}

/// The means of all pairs of values, each value with itself included, ascending.
fn walsh_averages(sample: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = (0..sample.len())
        .flat_map(|i| {
            sample[i..]
                .iter()
                .map(move |other| f64::midpoint(sample[i], *other))
        })
        .collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// The averages that are `cut` places from either end.
fn ends(averages: &[f64], cut: usize) -> (f64, f64) {
    (averages[cut], averages[averages.len() - 1 - cut])
}

/// Chance, on one side, of the moderate interval whose width gives the standard error.
const MODERATE: f64 = 0.05;

/// Standard error of the centre.
fn standard_error(averages: &[f64], ranks: &SignedRank) -> f64 {
    let cut = ranks.cut(MODERATE);
    let (low, high) = ends(averages, cut);
    let reach = Normal::standard().inverse_cdf(1.0 - ranks.at_most(cut));
    (high - low) / (2.0 * reach)
}

/// Law of Wilcoxon's signed-rank statistic where the centre is zero: the sum of those ranks 1 to n whose values are positive.
struct SignedRank {
    /// Chance of each sum up to half of the largest; the rest is symmetric.
    at_most: Vec<f64>,
}

impl SignedRank {
    fn of(n: usize) -> Self {
        let half = n * (n + 1) / 4;
        let mut chance = vec![0.0; half + 1];
        chance[0] = 1.0;
        for rank in 1..=n {
            // Each rank counts in half of the cases; downwards, so that it counts once.
            for sum in (0..=half).rev() {
                let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
                chance[sum] = f64::midpoint(chance[sum], with);
            }
        }
        let mut total = 0.0;
        for sum in &mut chance {
            total += *sum;
            *sum = total;
        }
        Self { at_most: chance }
    }

    /// Chance that the statistic is at most `sum`.
    fn at_most(&self, sum: usize) -> f64 {
        self.at_most[sum]
    }

    /// The largest sum that is reached or undercut with chance `level` at most; 0 where none is so rare.
    fn cut(&self, level: f64) -> usize {
        self.at_most
            .partition_point(|chance| *chance <= level)
            .saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: [f64; 8] = [0.031, -0.012, 0.044, 0.027, 0.058, 0.019, 0.036, 0.023];

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn a_sample_has_the_exact_interval_of_the_tables() {
        // Hollander, Wolfe & Chicken, table A.4: P(W <= 3) = 5/256 and P(W <= 4) = 7/256 for n = 8.
        let ranks = SignedRank::of(8);
        close(ranks.at_most(3), 5.0 / 256.0, 1e-15);
        close(ranks.at_most(4), 7.0 / 256.0, 1e-15);
        assert_eq!(ranks.cut(0.025), 3);
        // For n = 24 the two-sided test at 0.05 rejects up to 81.
        assert_eq!(SignedRank::of(24).cut(0.025), 81);
        assert_eq!(ranks.cut(1e-9), 0);
    }

    #[test]
    fn the_law_of_ranks_is_that_of_all_signs() {
        let n = 9;
        let ranks = SignedRank::of(n);
        let sums: Vec<usize> = (0..1_u32 << n)
            .map(|signs| (1..=n).filter(|rank| signs >> (rank - 1) & 1 == 1).sum())
            .collect();
        for (sum, chance) in ranks.at_most.iter().enumerate() {
            let counted = sums.iter().filter(|s| **s <= sum).count();
            close(*chance, counted as f64 / sums.len() as f64, 1e-15);
        }
    }

    #[test]
    fn a_golden_sample_keeps_its_interval() {
        let interval = centre_interval(&SAMPLE, 0.05).unwrap();
        let averages = walsh_averages(&SAMPLE);
        assert_eq!(averages.len(), 36);
        close(
            interval.point,
            f64::midpoint(averages[17], averages[18]),
            1e-15,
        );
        let (low, high) = ends(&averages, 3);
        assert!(interval.low <= low && interval.high >= high);
        // 10/256 of all signs reach 5 at most: SE = (0.036 - 0.012) / (2 · 1.762); the t interval leaves the sample's upward.
        close(interval.point, 0.029_25, 1e-12);
        close(interval.low, 0.007_5, 1e-12);
        close(interval.high, 0.049_72, 1e-5);
    }

    #[test]
    fn one_wild_value_hardly_moves_it() {
        let calm: Vec<f64> = (0..24).map(|i| 0.002 * f64::from(i) - 0.023).collect();
        let mut hit = calm.clone();
        hit[20] = 3.0;
        let (calm, hit) = (
            centre_interval(&calm, 0.001).unwrap(),
            centre_interval(&hit, 0.001).unwrap(),
        );
        assert!(
            hit.high - hit.low < 1.3 * (calm.high - calm.low),
            "{calm:?} {hit:?}"
        );
    }

    #[test]
    fn quantiles_match_the_printed_tables() {
        close(student_t(0.975, 7), 2.364_624, 1e-5);
        close(student_t(0.9995, 23), 3.767_627, 1e-5);
        close(Normal::standard().inverse_cdf(0.975), 1.959_964, 1e-5);
    }

    #[test]
    fn eight_gains_in_eight_pairs_are_no_certainty() {
        let gains = [0.02, 0.05, 0.01, 0.09, 0.03, 0.06, 0.12, 0.04];
        assert!(centre_interval(&gains, 0.05).unwrap().is_above_zero());
        assert!(!centre_interval(&gains, 1e-6).unwrap().is_above_zero());
    }

    #[test]
    fn equal_values_have_an_interval_without_width() {
        let equal = centre_interval(&[0.25; 8], 0.01).unwrap();
        assert_eq!((equal.low, equal.point, equal.high), (0.25, 0.25, 0.25));
        let tied = centre_interval(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], 0.05).unwrap();
        assert!(tied.point == 0.0 && tied.high > 0.0);
    }

    #[test]
    fn too_few_or_unusable_values_have_none() {
        assert_eq!(centre_interval(&[1.0; 3], 0.05), None);
        assert_eq!(centre_interval(&[1.0, 2.0, 3.0, f64::NAN], 0.05), None);
        for alpha in [0.0, 1.0, f64::NAN] {
            assert_eq!(centre_interval(&SAMPLE, alpha), None);
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_point_and_mirrors(
            sample in prop::collection::vec(-1.0..1.0f64, 4..40),
            alpha in 1e-6..0.5f64,
        ) {
            let interval = centre_interval(&sample, alpha).unwrap();
            prop_assert!(interval.low <= interval.point && interval.point <= interval.high);
            let negated: Vec<f64> = sample.iter().map(|x| -x).collect();
            let mirror = centre_interval(&negated, alpha).unwrap().mirrored();
            prop_assert!((interval.low - mirror.low).abs() < 1e-9);
            prop_assert!((interval.high - mirror.high).abs() < 1e-9);
        }

        #[test]
        fn a_smaller_alpha_never_narrows_it(
            sample in prop::collection::vec(-1.0..1.0f64, 4..25),
            alpha in 1e-5..0.25f64,
        ) {
            let wide = centre_interval(&sample, alpha).unwrap();
            let narrow = centre_interval(&sample, 2.0 * alpha).unwrap();
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }

        #[test]
        fn the_order_of_the_pairs_does_not_matter(
            mut sample in prop::collection::vec(-1.0..1.0f64, 4..25),
        ) {
            let before = centre_interval(&sample, 0.05);
            sample.reverse();
            prop_assert_eq!(centre_interval(&sample, 0.05), before);
        }

        #[test]
        fn large_and_odd_values_stay_numbers(sample in prop::collection::vec(-1e9..1e9f64, 4..120)) {
            let interval = centre_interval(&sample, 1e-5).unwrap();
            prop_assert!(interval.low.is_finite() && interval.high.is_finite());
        }
    }
}
