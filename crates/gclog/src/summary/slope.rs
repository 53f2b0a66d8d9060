//! Growth with an honest interval: of a quantity over time, and of a pause over a size.
//!
//! Over time: the median of the slopes between all pairs of points (Theil 1950; Sen, "Estimates of the Regression
//! Coefficient Based on Kendall's Tau", JASA 63 (1968)), which a few odd collections do not move, with Sen's interval from
//! the variance of Kendall's tau. Live sets of neighbouring collections resemble each other, which makes that interval too
//! narrow; so the variance is multiplied by (1 + r) / (1 - r), r being the correlation of neighbouring residuals (Yue and
//! Wang, "The Mann-Kendall Test Modified by Effective Sample Size", Water Resources Management 18 (2004)).
//! Over a size: least squares with Student's interval.

use rungwise_model::gc;
use rungwise_stats::interval::student_t;

/// Points below which no slope is stated.
pub(crate) const FEWEST: usize = 5;
/// Stretches of time from which the slope is computed at most: 32, each of as many old collections as come.
const MOST: usize = 32;
/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;
/// Residuals so alike say that the line is bent, not that nothing is known.
const MOST_ALIKE: f64 = 0.9;
/// Bytes in a GiB.
const GIB: f64 = 1_073_741_824.0;

/// Growth per second of the means of a course, with its 95 % interval. Only the points from `since` on count.
///
/// Collections crowd where the heap is full, and nothing grows there any more; each stretch of time counts once, however many
/// of them lie in it.
pub(crate) fn over_time(course: &gc::Course, since: f64) -> Option<gc::Slope> {
    let points: Vec<_> = course.points.iter().filter(|p| p.at_s >= since).collect();
    let (first, last) = (points.first()?.at_s, points.last()?.at_s);
    let stretch = ((last - first) / MOST as f64).max(f64::MIN_POSITIVE);
    let place = |point: &gc::Point| ((point.at_s - first) / stretch) as usize;
    let mean = |chunk: &[&gc::Point], of: fn(&gc::Point) -> f64| {
        let count: u64 = chunk.iter().map(|p| p.count).sum();
        let sum: f64 = chunk.iter().map(|p| of(p) * p.count as f64).sum();
        sum / count as f64
    };
    let points: Vec<_> = points
        .chunk_by(|a, b| place(a) == place(b))
        .map(|chunk| (mean(chunk, |p| p.at_s), mean(chunk, |p| p.mean)))
        .collect();
    theil_sen(&points)
}

/// Median of the slopes between all pairs of points, which lie in order of time.
fn theil_sen(points: &[(f64, f64)]) -> Option<gc::Slope> {
    if points.len() < FEWEST {
        return None;
    }
    let pairs = points.iter().enumerate();
    let mut slopes: Vec<f64> = pairs
        .flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (a, b)))
        .filter(|(a, b)| b.0 > a.0)
        .map(|(a, b)| (b.1 - a.1) / (b.0 - a.0))
        .collect();
    slopes.sort_unstable_by(f64::total_cmp);
    let middle = slopes.len() / 2;
    let point = match slopes.len() {
        0 => return None,
        odd if odd % 2 == 1 => slopes[middle],
        _ => f64::midpoint(slopes[middle - 1], slopes[middle]),
    };
    let n = points.len() as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let reach = Z * (variance * inflation(points, point)).sqrt();
    // Ranks, from 1, of the slopes that are the ends; towards the outside where they fall between two.
    let count = slopes.len() as f64;
    let low = f64::midpoint(count, -reach).floor();
    let high = f64::midpoint(count, reach).ceil() + 1.0;
    (low >= 1.0 && high <= count).then(|| gc::Slope {
        point,
        low: slopes[low as usize - 1],
        high: slopes[high as usize - 1],
    })
}

/// How much wider neighbours that resemble each other make the interval; at least 1.
fn inflation(points: &[(f64, f64)], slope: f64) -> f64 {
    let rest: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
    let squares: f64 = rest.iter().map(|r| (r - mean) * (r - mean)).sum();
    let neighbours: f64 = rest
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    let alike = neighbours / squares;
    if alike > 0.0 {
        let alike = alike.min(MOST_ALIKE);
        (1.0 + alike) / (1.0 - alike)
    } else {
        // Also where the points lie on the line and there is no rest at all.
        1.0
    }
}

/// Running least squares of a pause, nanoseconds, over what lay in the young generation, bytes.
#[derive(Debug, Default)]
pub(crate) struct Fit {
    count: u64,
    /// Means of GiB and of seconds.
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Fit {
    pub(crate) fn add(&mut self, bytes: u64, ns: u64) {
        let (x, y) = (bytes as f64 / GIB, ns as f64 / 1e9);
        self.count += 1;
        let n = self.count as f64;
        let (dx, dy) = (x - self.x, y - self.y);
        self.x += dx / n;
        self.y += dy / n;
        self.xx += dx * (x - self.x);
        self.xy += dx * (y - self.y);
        self.yy += dy * (y - self.y);
    }

    /// Nothing below five pauses, or where the size never changed.
    pub(crate) fn cost(&self) -> Option<gc::Cost> {
        /// Sizes that differ by less than this share of their mean are taken as the same.
        const SAME: f64 = 0.01;
        let n = self.count as f64;
        let varies = (self.xx / n).sqrt() > SAME * self.x;
        if self.count < FEWEST as u64 || !varies {
            return None;
        }
        let slope = self.xy / self.xx;
        let rest = (self.yy - slope * self.xy).max(0.0);
        let freedom = self.count as usize - 2;
        let error = (rest / freedom as f64 / self.xx).sqrt();
        let reach = student_t(0.975, freedom) * error;
        Some(gc::Cost {
            count: self.count,
            s_per_gib: gc::Slope {
                point: slope,
                low: slope - reach,
                high: slope + reach,
            },
            base_s: self.y - slope * self.x,
            explained: if self.yy > 0.0 {
                1.0 - rest / self.yy
            } else {
                0.0
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(slope: f64, noise: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
        (0..50)
            .map(|i| (i as f64, 100.0 + slope * i as f64 + noise(i)))
            .collect()
    }

    /// Numbers between -1 and 1 without any order: the mixing steps of SplitMix64 (Steele, Lea, Flood 2014).
    fn noise(seed: u64) -> impl Fn(usize) -> f64 {
        move |i| {
            let mut z = (seed << 32 | i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        }
    }

    #[test]
    fn a_leak_is_found_and_its_slope_is_in_the_interval() {
        let slope = theil_sen(&line(0.5, noise(3))).unwrap();
        assert!(slope.low > 0.0 && slope.low <= 0.5 && slope.high >= 0.5);
        assert!((slope.point - 0.5).abs() < 0.05, "{slope:?}");
    }

    #[test]
    fn a_plateau_that_collections_crowd_on_counts_by_its_time() {
        // 400 MiB in 800 s, then a full heap that is collected twice a second for 200 s.
        let rise = (0..20).map(|i| (f64::from(i) * 40.0, f64::from(i) * 20.0));
        let full = (0..400).map(|i| (800.0 + f64::from(i) / 2.0, 400.0));
        let points = rise.chain(full).map(|(at_s, mean)| gc::Point {
            at_s,
            count: 1,
            mean,
            ..gc::Point::default()
        });
        let course = gc::Course {
            points: points.collect(),
            ..gc::Course::default()
        };
        let slope = over_time(&course, 0.0).unwrap();
        let overall = 400.0 / 1000.0;
        assert!(slope.low <= overall && overall <= slope.high, "{slope:?}");
        assert!((slope.point - 0.5).abs() < 0.1, "{slope:?}");
    }

    #[test]
    fn noise_alone_is_seldom_taken_for_growth() {
        let wrong = (0..200)
            .filter_map(|seed| theil_sen(&line(0.0, noise(seed))))
            .filter(|slope| slope.low > 0.0 || slope.high < 0.0)
            .count();
        // 5 % by chance, and three standard deviations more.
        assert!(wrong <= 20, "{wrong} of 200");
    }

    #[test]
    fn one_odd_collection_moves_nothing() {
        let odd = |i: usize| if i == 30 { 1e6 } else { 0.0 };
        let slope = theil_sen(&line(0.5, odd)).unwrap();
        assert!((slope.point - 0.5).abs() < 1e-9, "{slope:?}");
    }

    #[test]
    fn waves_widen_the_interval() {
        let wave = |i: usize| (i as f64 / 8.0).sin();
        let slow = theil_sen(&line(0.0, wave)).unwrap();
        let fast = theil_sen(&line(0.0, noise(1))).unwrap();
        assert!(slow.high - slow.low > fast.high - fast.low);
        assert!(slow.low < 0.0 && slow.high > 0.0, "{slow:?}");
    }

    #[test]
    fn few_points_say_nothing() {
        assert_eq!(theil_sen(&line(1.0, |_| 0.0)[..4]), None);
        assert_eq!(theil_sen(&[(1.0, 2.0); 9]), None);
        let mut fit = Fit::default();
        for _ in 0..9 {
            fit.add(1 << 30, 1_000_000_000);
        }
        assert_eq!(fit.cost(), None);
    }

    #[test]
    fn a_pause_that_grows_with_the_young_generation_has_its_price() {
        let mut fit = Fit::default();
        for quarters in 1..=8_u64 {
            let rest = (quarters % 2) * 1_000_000;
            fit.add(quarters << 28, 50_000_000 + quarters * 25_000_000 + rest);
        }
        let cost = fit.cost().unwrap();
        assert!((cost.s_per_gib.point - 0.1).abs() < 0.002, "{cost:?}");
        assert!(cost.s_per_gib.low > 0.09 && cost.explained > 0.99);
        assert!((cost.base_s - 0.05).abs() < 0.002);
    }

    proptest! {
        #[test]
        fn the_slope_lies_in_its_interval(values in prop::collection::vec(-1e12..1e12f64, 5..60)) {
            let points: Vec<_> = values.iter().enumerate().map(|(i, v)| (i as f64, *v)).collect();
            if let Some(slope) = theil_sen(&points) {
                prop_assert!(slope.low <= slope.point && slope.point <= slope.high);
            }
        }
    }
}
