//! Confidence interval of a median of a few pairs.
//!
//! The base is the bias-corrected and accelerated bootstrap (BCa): Efron, "Better Bootstrap Confidence
//! Intervals", JASA 82 (1987); DiCiccio & Efron, "Bootstrap Confidence Intervals", Statistical Science 11
//! (1996). Two departures, each for a reason:
//!
//! - **No resampling.** The bootstrap law of a median is known in closed form (Maritz & Jarrett, JASA 73
//!   (1978) for the order statistics), so it is computed: what infinitely many resamples would give,
//!   the same on every machine, without a seed. A level of 1 % over 14 rungs and 3 looks asks for the 0.012 %
//!   quantile, which 10 000 resamples would put somewhere between their first and third value.
//! - **Widened to the t interval.** A resampled median is always a value of the sample or half-way between
//!   two, so no BCa interval of a median leaves the sample: eight gains in eight pairs would exclude zero at
//!   *any* level, although chance alone does that once in 2^7. The result is the hull of BCa and
//!   median ± t(1 - alpha/2, n - 1) · SE, SE being the bootstrap standard error. The t quantile is the
//!   correction for small samples of Hesterberg, "What Teachers Should Know About the Bootstrap", The
//!   American Statistician 69 (2015); it knows how little n values say about their own spread.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::beta::beta_reg;
use statrs::function::factorial::ln_binomial;

/// Values below which no interval is stated: the spread of three numbers is not an estimate.
pub const FEWEST: usize = 4;

/// A point with its confidence interval, in the unit of the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Median of the sample.
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

/// Interval of the median of `sample` that misses the truth with probability `alpha`, both sides together.
///
/// `None` for fewer than [`FEWEST`] values, for values that are not finite, and for an `alpha` outside (0, 1).
/// A sample of equal values shows no spread and gets an interval without width. The time grows with the
/// square of the sample.
pub fn median_interval(sample: &[f64], alpha: f64) -> Option<Interval> {
    let n = sample.len();
    let usable = n >= FEWEST && alpha > 0.0 && alpha < 1.0 && sample.iter().all(|x| x.is_finite());
    if !usable {
        return None;
    }
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);

    let point = median_of_sorted(&sorted);
    let law = MedianLaw::of_sorted(&sorted);
    let (bca_low, bca_high) = bca(&sorted, &law, point, alpha);
    let reach = student_t(1.0 - alpha / 2.0, n - 1) * law.standard_error();
    Some(Interval {
        point,
        low: bca_low.min(point - reach),
        high: bca_high.max(point + reach),
    })
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

/// Ends of the BCa interval.
fn bca(sorted: &[f64], law: &MedianLaw, point: f64, alpha: f64) -> (f64, f64) {
    let normal = Normal::standard();
    // Half of the mass that sits on the point counts as below it; the median of the sample always carries
    // mass in the law, so the argument is never 0 or 1.
    let bias = normal.inverse_cdf(law.mass_below(point) + law.mass_at(point) / 2.0);
    let acceleration = acceleration(sorted);
    let adjusted = |level: f64| {
        let z = bias + normal.inverse_cdf(level);
        let stretch = 1.0 - acceleration * z;
        // Past the pole the corrected level is at its extreme.
        if stretch <= 0.0 {
            level.round()
        } else {
            normal.cdf(bias + z / stretch)
        }
    };
    (
        law.lower_quantile(adjusted(alpha / 2.0)),
        law.upper_quantile(adjusted(1.0 - alpha / 2.0)),
    )
}

/// Acceleration from the jackknife (Efron 1987, eq. 6.6). With an even number of values every deletion moves
/// the median by the same amount and the skewness is zero; it is also taken as zero where no deletion moves it.
fn acceleration(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let without: Vec<f64> = (0..n)
        .map(|gone| {
            let at = |i: usize| sorted[if i < gone { i } else { i + 1 }];
            let left = n - 1;
            if left % 2 == 1 {
                at(left / 2)
            } else {
                f64::midpoint(at(left / 2 - 1), at(left / 2))
            }
        })
        .collect();
    let mean = without.iter().sum::<f64>() / n as f64;
    let (squares, cubes) = without.iter().fold((0.0, 0.0), |(squares, cubes), x| {
        let d = mean - x;
        (squares + d * d, cubes + d * d * d)
    });
    let a = cubes / (6.0 * squares.powf(1.5));
    if a.is_finite() { a } else { 0.0 }
}

/// The law of the median of n draws with replacement from n values, exactly.
struct MedianLaw {
    /// Value and probability, by ascending value.
    atoms: Vec<(f64, f64)>,
}

#[expect(clippy::float_cmp, reason = "tied values are equal, not near")]
impl MedianLaw {
    fn of_sorted(sorted: &[f64]) -> Self {
        let n = sorted.len();
        let mut atoms = if n % 2 == 1 {
            odd_atoms(sorted)
        } else {
            even_atoms(sorted)
        };
        atoms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // Ties would split the mass of one value over several atoms.
        atoms.dedup_by(|next, kept| {
            let tied = next.0 == kept.0;
            if tied {
                kept.1 += next.1;
            }
            tied
        });
        Self { atoms }
    }

    fn mass_below(&self, value: f64) -> f64 {
        self.atoms
            .iter()
            .take_while(|(x, _)| *x < value)
            .map(|(_, p)| p)
            .sum()
    }

    fn mass_at(&self, value: f64) -> f64 {
        self.atoms
            .iter()
            .filter(|(x, _)| *x == value)
            .map(|(_, p)| p)
            .sum()
    }

    fn standard_error(&self) -> f64 {
        let mean: f64 = self.atoms.iter().map(|(x, p)| x * p).sum();
        let variance: f64 = self
            .atoms
            .iter()
            .map(|(x, p)| p * (x - mean) * (x - mean))
            .sum();
        variance.sqrt()
    }

    /// The smallest value with at least `level` of the mass at or below it.
    fn lower_quantile(&self, level: f64) -> f64 {
        first_reaching(self.atoms.iter(), level)
    }

    /// The mirror image, so that a negated sample has the negated interval.
    fn upper_quantile(&self, level: f64) -> f64 {
        first_reaching(self.atoms.iter().rev(), 1.0 - level)
    }
}

fn first_reaching<'a>(atoms: impl Iterator<Item = &'a (f64, f64)>, level: f64) -> f64 {
    let mut mass = 0.0;
    let mut value = f64::NAN;
    for (x, p) in atoms {
        mass += p;
        value = *x;
        if mass >= level {
            break;
        }
    }
    value
}

/// P(at least `k` of `n` draws are among the lowest `i` of `n` values): the law of the k-th order statistic.
fn reaches(n: usize, k: usize, i: usize) -> f64 {
    beta_reg(k as f64, (n - k + 1) as f64, i as f64 / n as f64)
}

/// An odd number of values: the median of a resample is its middle order statistic.
fn odd_atoms(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len();
    let middle = n / 2 + 1;
    (1..=n)
        .map(|i| {
            (
                sorted[i - 1],
                reaches(n, middle, i) - reaches(n, middle, i - 1),
            )
        })
        .collect()
}

/// An even number: the mean of the two middle order statistics, whose joint law is
/// `P(k-th = x_i, next = x_j) = C(n, k) · [(i/n)^k - ((i-1)/n)^k] · [((n-j+1)/n)^k - ((n-j)/n)^k]` for `i < j`
/// and `k = n/2`, because exactly k draws lie at or below `x_i` and the other k at or above `x_j`.
fn even_atoms(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len();
    let k = n / 2;
    // ln[(i/n)^k - ((i-1)/n)^k]; in logarithms, since C(n, k) overflows where these vanish.
    let ln_step: Vec<f64> = (1..=n)
        .map(|i| {
            let (i, n, k) = (i as f64, n as f64, k as f64);
            k * (i / n).ln() + (-((i - 1.0) / i).powf(k)).ln_1p()
        })
        .collect();
    let ln_ways = ln_binomial(n as u64, k as u64);
    let mut atoms = Vec::with_capacity(n * (n + 1) / 2);
    for i in 1..=n {
        let mut both_here = reaches(n, k, i) - reaches(n, k, i - 1);
        for j in i + 1..=n {
            let p = (ln_ways + ln_step[i - 1] + ln_step[n - j]).exp();
            atoms.push((f64::midpoint(sorted[i - 1], sorted[j - 1]), p));
            both_here -= p;
        }
        // A difference of near equals: rounding may leave it a hair below zero.
        atoms.push((sorted[i - 1], both_here.max(0.0)));
    }
    atoms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    use super::*;

    const SAMPLE: [f64; 8] = [0.031, -0.012, 0.044, 0.027, 0.058, 0.019, 0.036, 0.023];

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn a_golden_sample_keeps_its_interval() {
        let interval = median_interval(&SAMPLE, 0.05).unwrap();
        close(interval.point, 0.029, 1e-15);
        // Computed apart from this code, by counting all 8^8 resamples in exact fractions.
        close(interval.low, 0.013_916_427_746_6, 1e-12);
        close(interval.high, 0.044_083_572_253_4, 1e-12);

        // The BCa part alone: bias and both ends from 400 000 resamples.
        let mut sorted = SAMPLE.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let law = MedianLaw::of_sorted(&sorted);
        let (low, high) = bca(&sorted, &law, interval.point, 0.05);
        close(low, 0.019, 1e-15);
        close(high, 0.044, 1e-15);
    }

    #[test]
    fn quantiles_match_the_printed_tables() {
        close(student_t(0.975, 7), 2.364_624, 1e-5);
        close(student_t(0.9995, 23), 3.767_627, 1e-5);
        close(Normal::standard().inverse_cdf(0.975), 1.959_964, 1e-5);
    }

    #[test]
    fn the_law_is_what_resampling_converges_to() {
        for sample in [&SAMPLE[..], &SAMPLE[..7]] {
            let mut sorted = sample.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            let law = MedianLaw::of_sorted(&sorted);
            let total: f64 = law.atoms.iter().map(|(_, p)| p).sum();
            close(total, 1.0, 1e-12);

            let mut rng = Pcg64Mcg::seed_from_u64(1);
            let resamples = 20_000;
            let mut below = [0_u32; 3];
            let marks = [0.021, 0.028, 0.0335];
            for _ in 0..resamples {
                let drawn: Vec<f64> = (0..sample.len())
                    .map(|_| sample[(rng.next_u64() % sample.len() as u64) as usize])
                    .collect();
                let m = median(&drawn).unwrap();
                for (count, mark) in below.iter_mut().zip(marks) {
                    *count += u32::from(m < mark);
                }
            }
            for (count, mark) in below.into_iter().zip(marks) {
                // Four standard errors of a share estimated from that many resamples.
                close(
                    f64::from(count) / f64::from(resamples),
                    law.mass_below(mark),
                    4.0 * 0.5 / 141.0,
                );
            }
        }
    }

    #[test]
    fn eight_gains_in_eight_pairs_are_no_certainty() {
        let gains = [0.02, 0.05, 0.01, 0.09, 0.03, 0.06, 0.12, 0.04];
        assert!(median_interval(&gains, 0.05).unwrap().is_above_zero());
        assert!(!median_interval(&gains, 1e-6).unwrap().is_above_zero());
    }

    #[test]
    fn equal_values_have_an_interval_without_width() {
        let equal = median_interval(&[0.25; 8], 0.01).unwrap();
        assert_eq!((equal.low, equal.point, equal.high), (0.25, 0.25, 0.25));
        let tied = median_interval(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], 0.05).unwrap();
        assert!(tied.point == 0.0 && tied.high > 0.0);
    }

    #[test]
    fn too_few_or_unusable_values_have_none() {
        assert_eq!(median_interval(&[1.0; 3], 0.05), None);
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, f64::NAN], 0.05), None);
        for alpha in [0.0, 1.0, f64::NAN] {
            assert_eq!(median_interval(&SAMPLE, alpha), None);
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_point_and_mirrors(
            sample in prop::collection::vec(-1.0..1.0f64, 4..40),
            alpha in 1e-6..0.5f64,
        ) {
            let interval = median_interval(&sample, alpha).unwrap();
            prop_assert!(interval.low <= interval.point && interval.point <= interval.high);
            let negated: Vec<f64> = sample.iter().map(|x| -x).collect();
            let mirror = median_interval(&negated, alpha).unwrap().mirrored();
            prop_assert!((interval.low - mirror.low).abs() < 1e-9);
            prop_assert!((interval.high - mirror.high).abs() < 1e-9);
        }

        #[test]
        fn a_smaller_alpha_never_narrows_it(
            sample in prop::collection::vec(-1.0..1.0f64, 4..25),
            alpha in 1e-5..0.25f64,
        ) {
            let wide = median_interval(&sample, alpha).unwrap();
            let narrow = median_interval(&sample, 2.0 * alpha).unwrap();
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }

        #[test]
        fn the_order_of_the_pairs_does_not_matter(
            mut sample in prop::collection::vec(-1.0..1.0f64, 4..25),
        ) {
            let before = median_interval(&sample, 0.05);
            sample.reverse();
            prop_assert_eq!(median_interval(&sample, 0.05), before);
        }

        #[test]
        fn large_and_odd_values_stay_numbers(sample in prop::collection::vec(-1e9..1e9f64, 4..200)) {
            let interval = median_interval(&sample, 1e-5).unwrap();
            prop_assert!(interval.low.is_finite() && interval.high.is_finite());
        }
    }
}
