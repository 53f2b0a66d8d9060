//! The interval of a share that was counted in samples.
//!
//! Wilson's score interval: it holds its level for small shares, where the normal approximation reaches below zero.
//! Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

/// Normal quantile of 97.5 %.
const Z: f64 = 1.959_963_984_540_054;

/// Low and high end of the 95 % interval of `part` samples out of `whole`; `None` without samples.
pub fn share_interval(part: u64, whole: u64) -> Option<(f64, f64)> {
    if whole == 0 {
        return None;
    }
    let n = whole as f64;
    let share = (part as f64 / n).min(1.0);
    let square = Z * Z / n;
    let centre = (share + square / 2.0) / (1.0 + square);
    let half = Z * (share * (1.0 - share) / n + square / (4.0 * n)).sqrt() / (1.0 + square);
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_wilson() {
        // The formula in another program: 0.25528852 to 0.36620958.
        let (low, high) = share_interval(81, 263).unwrap();
        assert!((low - 0.255_288_52).abs() < 1e-7, "{low}");
        assert!((high - 0.366_209_58).abs() < 1e-7, "{high}");
    }

    #[test]
    fn it_stays_between_nothing_and_all() {
        assert_eq!(share_interval(0, 0), None);
        let (low, high) = share_interval(0, 10).unwrap();
        assert!(low == 0.0 && high > 0.2 && high < 0.35, "{low} {high}");
        let (low, high) = share_interval(10, 10).unwrap();
        assert!(low > 0.65 && (high - 1.0).abs() < 1e-12, "{low} {high}");
    }
}
