//! How much two identical variants differ: the A/A check.
//!
//! The A/A check runs the same variant as both halves and measures the spread of the log ratio. From it
//! follows the smallest effect that a number of pairs can show; a request for less is refused before an hour is spent. The robust spread
//! is reported beside the plain one: where they differ, single
//! pairs were hit by something else.

use std::f64::consts::FRAC_PI_3;

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::{FEWEST, median, student_t};
use crate::ratio;

/// Median absolute deviation to standard deviation for normal data: 1 / Φ⁻¹(3/4), Rousseeuw & Croux,
/// "Alternatives to the Median Absolute Deviation", JASA 88 (1993).
const MAD_TO_SD: f64 = 1.482_602_218_505_602;

/// What the standard error of a centre exceeds its limit for many values by, times n, and its relative scatter, times
/// sqrt(n). Measured here with 4000 samples each of 8 to 40 normal values: 0.6 to 1.0, and 0.81 to 0.82.
const ERROR_EXCESS: f64 = 0.8;
const ERROR_SCATTER: f64 = 0.815;

/// Spread of log ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Log ratios that entered.
    pub pairs: usize,
    /// Their median: a bias between two identical variants, were it far from zero.
    pub median: f64,
    /// Standard deviation.
    pub sd: f64,
    /// The same from the median absolute deviation; one wild pair does not move it.
    pub robust_sd: f64,
}

impl Noise {
    /// Spread of `log_ratios`; `None` for fewer than two, or where one is not finite.
    pub fn of(log_ratios: &[f64]) -> Option<Self> {
        let pairs = log_ratios.len();
        if pairs < 2 || !log_ratios.iter().all(|x| x.is_finite()) {
            return None;
        }
        let median_of = |values: &[f64]| median(values).expect("two values or more");
        let centre = median_of(log_ratios);
        let mean = log_ratios.iter().sum::<f64>() / pairs as f64;
        let squares: f64 = log_ratios.iter().map(|x| (x - mean) * (x - mean)).sum();
        let distances: Vec<f64> = log_ratios.iter().map(|x| (x - centre).abs()).collect();
        Some(Self {
            pairs,
            median: centre,
            sd: (squares / (pairs - 1) as f64).sqrt(),
            robust_sd: MAD_TO_SD * median_of(&distances),
        })
    }

    /// The larger of the two spreads: with few pairs either may be lucky.
    pub fn cautious_sd(&self) -> f64 {
        self.sd.max(self.robust_sd)
    }
}

/// Smallest relative gain that `pairs` pairs show with probability `power`, judged at `alpha` (both sides).
///
/// The standard error of the centre of many normal values is SE = sqrt(pi / 3n) · sd, and of few a little more. A gain is shown when the centre
/// exceeds t(1 - alpha/2) times the *estimated* SE, so both the centre and its estimated error move the
/// outcome: gain = SE · (t + z(power) · sqrt(1 + (t · v)²)), v being the relative scatter of the
/// estimate. A fraction; infinite where `pairs` is below [`FEWEST`] or an argument makes no sense.
pub fn smallest_effect(sd_of_log_ratio: f64, pairs: u32, alpha: f64, power: f64) -> f64 {
    let inside = |p: f64| p > 0.0 && p < 1.0;
    let sensible = sd_of_log_ratio.is_finite()
        && sd_of_log_ratio >= 0.0
        && pairs as usize >= FEWEST
        && inside(alpha)
        && inside(power);
    if !sensible {
        return f64::INFINITY;
    }
    let n = f64::from(pairs);
    let standard_error = (FRAC_PI_3 / n).sqrt() * (1.0 + ERROR_EXCESS / n) * sd_of_log_ratio;
    let t = student_t(1.0 - alpha / 2.0, pairs as usize - 1);
    let z = Normal::standard().inverse_cdf(power);
    let scatter = ERROR_SCATTER / n.sqrt();
    ratio::to_change(standard_error * (t + z * (1.0 + (t * scatter).powi(2)).sqrt()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_wild_pair_moves_the_plain_spread_only() {
        let calm = [0.01, -0.01, 0.02, -0.02, 0.0, 0.015, -0.015, 0.005];
        let mut hit = calm;
        hit[3] = 2.0;
        let (before, after) = (Noise::of(&calm).unwrap(), Noise::of(&hit).unwrap());
        assert!(after.sd > 20.0 * before.sd);
        assert!(after.robust_sd < 2.0 * before.robust_sd);
        assert!((after.cautious_sd() - after.sd).abs() < 1e-15);
    }

    #[test]
    fn noise_needs_two_finite_pairs() {
        assert_eq!(Noise::of(&[0.1]), None);
        assert_eq!(Noise::of(&[0.1, f64::NAN]), None);
    }

    #[test]
    fn arguments_without_sense_can_show_nothing() {
        assert!(smallest_effect(0.02, 3, 0.05, 0.8).is_infinite());
        assert!(smallest_effect(f64::NAN, 12, 0.05, 0.8).is_infinite());
        assert!(smallest_effect(0.02, 12, 0.0, 0.8).is_infinite());
        assert!(smallest_effect(0.02, 12, 0.05, 1.0).is_infinite());
    }

    #[test]
    fn three_percent_noise_and_24_pairs_at_five_percent_show_two_percent() {
        // By the mean instead of the centre: 0.6124 % · (2.069 + 0.842) = 1.8 %.
        let effect = smallest_effect(0.03, 24, 0.05, 0.8);
        assert!((0.018..0.022).contains(&effect), "{effect}");
    }

    proptest! {
        #[test]
        fn more_pairs_less_noise_and_a_laxer_level_show_more(
            sd in 0.001..0.2f64, pairs in 4..60_u32, alpha in 1e-4..0.2f64,
        ) {
            let effect = smallest_effect(sd, pairs, alpha, 0.8);
            prop_assert!(effect > 0.0);
            prop_assert!(smallest_effect(sd, pairs + 1, alpha, 0.8) < effect);
            prop_assert!(smallest_effect(sd * 1.1, pairs, alpha, 0.8) > effect);
            prop_assert!(smallest_effect(sd, pairs, alpha * 1.1, 0.8) < effect);
        }
    }
}
