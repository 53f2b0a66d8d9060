//! Ratios on a log scale.
//!
//! The unit of evidence is one pair, and its statistic is ln(b / a): doubling and halving lie equally far
//! from zero, drift that scales both halves cancels, and medians and intervals may be taken before going
//! back to a relative change for people.

/// ln(b / a), the log ratio of a pair. `None` unless both values are positive and finite.
pub fn log_ratio(a: f64, b: f64) -> Option<f64> {
    let usable = |x: f64| x.is_finite() && x > 0.0;
    // Difference of logarithms: the quotient of two finite numbers may overflow, their logarithms cannot.
    (usable(a) && usable(b)).then(|| b.ln() - a.ln())
}

/// The relative change of a log ratio: ln 1.05 is 0.05.
pub fn to_change(log_ratio: f64) -> f64 {
    log_ratio.exp_m1()
}

/// The log ratio of a relative change: 0.05 is ln 1.05. Not a number below -1, where nothing is left to lose.
pub fn from_change(change: f64) -> f64 {
    change.ln_1p()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ratio_needs_two_positive_numbers() {
        for (a, b) in [
            (0.0, 1.0),
            (1.0, 0.0),
            (-1.0, 1.0),
            (f64::NAN, 1.0),
            (1.0, f64::INFINITY),
        ] {
            assert_eq!(log_ratio(a, b), None, "{a} {b}");
        }
        assert_eq!(log_ratio(2.0, 2.0), Some(0.0));
        assert!(log_ratio(f64::MIN_POSITIVE, f64::MAX).is_some_and(f64::is_finite));
    }

    proptest! {
        #[test]
        fn a_change_survives_the_way_to_logs_and_back(change in -0.99..100.0f64) {
            let back = to_change(from_change(change));
            prop_assert!((back - change).abs() <= 1e-12 * (1.0 + change.abs()));
        }

        #[test]
        fn swapping_a_pair_flips_the_sign(a in 1e-9..1e9f64, b in 1e-9..1e9f64) {
            prop_assert_eq!(log_ratio(a, b), log_ratio(b, a).map(|x| -x));
        }
    }
}
