//! A distribution of durations in bounded memory: log-linear counters as in an HDR histogram (Gil Tene, hdrhistogram.org).
//!
//! 128 steps per power of two, so that a quantile, given as the middle of its step, is within 1/256 of a value that was
//! there. Any u64 has its place: a pause can be longer than any bound. Count, sum, least and largest are kept exactly. Only
//! the powers of two that occur take memory, 512 bytes each.

use rungwise_model::gc::{Spread, Total};

const STEPS: usize = 128;
const STEP_BITS: u32 = 7;
const OCTAVES: usize = 58;

/// Durations, nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Distribution {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    octaves: Vec<Option<Box<[u32; STEPS]>>>,
}

impl Distribution {
    pub(crate) fn add(&mut self, ns: u64) {
        self.min = if self.count == 0 {
            ns
        } else {
            self.min.min(ns)
        };
        self.max = self.max.max(ns);
        self.count += 1;
        self.sum += u128::from(ns);
        let (octave, step) = place(ns);
        if self.octaves.len() <= octave {
            self.octaves.resize_with(octave + 1, || None);
        }
        let steps = self.octaves[octave].get_or_insert_with(|| Box::new([0; STEPS]));
        steps[step] = steps[step].saturating_add(1);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Exact.
    pub(crate) fn sum_ms(&self) -> f64 {
        ms_of(self.sum)
    }

    /// The value that a share `q` of all did not exceed.
    pub(crate) fn quantile(&self, q: f64) -> u64 {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        if rank == self.count {
            return self.max;
        }
        if rank == 1 {
            return self.min;
        }
        let mut seen = 0;
        for (value, count) in self.steps() {
            seen += count;
            if seen >= rank {
                return value.1.clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Every step that holds something: its ends (low, middle, high) and its count, ascending.
    fn steps(&self) -> impl Iterator<Item = ((u64, u64, u64), u64)> + '_ {
        let octaves = self.octaves.iter().enumerate();
        octaves
            .filter_map(|(octave, steps)| Some((octave, steps.as_ref()?)))
            .flat_map(|(octave, steps)| {
                let steps = steps.iter().enumerate();
                steps.map(move |(step, count)| (ends(octave, step), u64::from(*count)))
            })
            .filter(|(_, count)| *count > 0)
    }

    pub(crate) fn spread(&self) -> Spread {
        let at = |q: f64| ms(self.quantile(q));
        Spread {
            count: self.count,
            total_ms: self.sum_ms(),
            min_ms: ms(self.min),
            mean_ms: self.sum_ms() / self.count.max(1) as f64,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            longest_ms: ms(self.max),
        }
    }

    /// Nothing where nothing was added.
    pub(crate) fn some(&self) -> Option<Spread> {
        (self.count > 0).then(|| self.spread())
    }

    pub(crate) fn total(&self) -> Total {
        Total {
            count: self.count,
            total_ms: self.sum_ms(),
            longest_ms: ms(self.max),
        }
    }

    /// Counts by duration in four parts per power of two: upper end, milliseconds, and how many. Coarse enough to draw.
    pub(crate) fn histogram(&self) -> Vec<(f64, u64)> {
        const PART: usize = STEPS / 4;
        let mut parts = Vec::new();
        for (octave, steps) in self.octaves.iter().enumerate() {
            let Some(steps) = steps else { continue };
            for (part, steps) in steps.chunks(PART).enumerate() {
                let count: u64 = steps.iter().map(|count| u64::from(*count)).sum();
                let (_, _, high) = ends(octave, (part + 1) * PART - 1);
                if count > 0 {
                    parts.push((ms(high), count));
                }
            }
        }
        parts
    }
}

fn place(ns: u64) -> (usize, usize) {
    if ns < STEPS as u64 {
        return (0, ns as usize);
    }
    let shift = ns.ilog2() - STEP_BITS;
    let octave = shift as usize + 1;
    debug_assert!(octave < OCTAVES);
    (octave, (ns >> shift) as usize - STEPS)
}

fn ends(octave: usize, step: usize) -> (u64, u64, u64) {
    if octave == 0 {
        let value = step as u64;
        return (value, value, value);
    }
    let shift = octave - 1;
    let low = ((STEPS + step) as u64) << shift;
    let width = 1_u64 << shift;
    (low, low + width / 2, low + (width - 1))
}

/// Nanoseconds as milliseconds.
pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn ms_of(ns: u128) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these are exact by promise")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_number_has_its_place() {
        for ns in [0, 1, 127, 128, 129, 255, 256, u64::MAX / 2, u64::MAX] {
            let (octave, step) = place(ns);
            let (low, middle, high) = ends(octave, step);
            assert!(low <= ns && ns <= high, "{ns}");
            assert!(low <= middle && middle <= high);
        }
    }

    #[test]
    fn a_pause_of_ten_minutes_is_reported_as_such() {
        let mut pauses = Distribution::default();
        pauses.add(600_000_000_000);
        pauses.add(1_000_000);
        let spread = pauses.spread();
        assert_eq!(
            (spread.longest_ms, spread.min_ms, spread.total_ms),
            (600_000.0, 1.0, 600_001.0)
        );
        assert_eq!(spread.p50_ms, 1.0);
        assert_eq!(spread.p99_ms, 600_000.0);
    }

    proptest! {
        #[test]
        fn quantiles_are_near_and_sums_exact(mut values in prop::collection::vec(any::<u64>(), 1..300)) {
            let mut all = Distribution::default();
            for value in &values {
                all.add(*value);
            }
            values.sort_unstable();
            let sum: u128 = values.iter().map(|v| u128::from(*v)).sum();
            prop_assert_eq!(all.sum, sum);
            prop_assert_eq!(all.min, values[0]);
            for q in [0.0, 0.5, 0.9, 0.99, 1.0] {
                let rank = ((q * values.len() as f64).ceil() as usize).max(1);
                let exact = values[rank - 1] as f64;
                prop_assert!((all.quantile(q) as f64 - exact).abs() <= exact / 256.0 + 1.0);
            }
            let drawn: u64 = all.histogram().iter().map(|(_, count)| count).sum();
            prop_assert_eq!(drawn, all.count);
            prop_assert!(all.histogram().windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
