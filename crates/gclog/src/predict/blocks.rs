//! The young collections of a run in blocks.
//!
//! They lie in at most [`MOST`] blocks of equal count; when there are more, neighbours merge. So memory is the same for a minute
//! and for a month, and the spread of the blocks' means tells how sure a mean is, also where collections that follow each other
//! resemble each other (method of batch means: Law, "Simulation Modeling and Analysis", 9.5.3).

use rungwise_model::capacity::Estimate;
use rungwise_stats::interval::student_t;

/// Blocks at most.
const MOST: usize = 64;
/// Blocks below which no interval is stated.
pub(super) const FEWEST: usize = 5;
/// The first tenth of the blocks is warm-up: ages fill up, classes are loaded.
const WARM_UP: usize = 10;
/// Parts of a log that are held against each other.
const TENTHS: usize = 10;
/// Sums over young collections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub(super) count: f64,
    pub(super) seconds: f64,
    pub(super) allocated: f64,
    pub(super) pause_s: f64,
    pub(super) survivors: f64,
    pub(super) promoted: f64,
}

impl Block {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.allocated += other.allocated;
        self.pause_s += other.pause_s;
        self.survivors += other.survivors;
        self.promoted += other.promoted;
    }
}

#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Collections of a block; 0 while there is none.
    size: f64,
    all: Vec<Block>,
}

impl Blocks {
    pub(super) fn add(&mut self, one: Block) {
        self.size = self.size.max(1.0);
        match self.all.last_mut() {
            Some(last) if last.count < self.size => last.add(one),
            _ => self.all.push(one),
        }
        if self.all.len() > MOST {
            self.size *= 2.0;
            let pairs = self.all.chunks(2).map(|pair| {
                let mut sum = pair[0];
                pair.iter().skip(1).for_each(|other| sum.add(*other));
                sum
            });
            self.all = pairs.collect();
        }
    }

    /// Without the warm-up.
    pub(super) fn settled(&self) -> &[Block] {
        &self.all[self.all.len() / WARM_UP..]
    }

    pub(super) fn sum(&self) -> Block {
        let mut sum = Block::default();
        self.settled().iter().for_each(|block| sum.add(*block));
        sum
    }

    /// How far the promotion of tenths of the log is from their mean, as a share.
    pub(super) fn unsteady(&self) -> Option<f64> {
        let settled = self.settled();
        let parts = settled.chunks(settled.len().div_ceil(TENTHS).max(1));
        let mut rates = Range::default();
        for part in parts {
            let sum = |of: fn(&Block) -> f64| part.iter().map(of).sum::<f64>();
            rates.add(sum(|b| b.promoted) / sum(|b| b.seconds).max(f64::MIN_POSITIVE));
        }
        let mean = rates.mean().filter(|mean| *mean > 0.0)?;
        (settled.len() >= TENTHS).then(|| rates.deviation() / mean)
    }

    /// The ratio of two sums, with the interval in which it lies in another run under the same load: the 95 % interval of a
    /// difference of two such runs.
    pub(super) fn ratio(&self, of: fn(&Block) -> f64, per: fn(&Block) -> f64) -> Option<Estimate> {
        let sum = self.sum();
        let whole: Vec<&Block> = self.settled().iter().collect();
        let (of_all, per_all) = (of(&sum), per(&sum));
        if whole.len() < FEWEST || per_all <= 0.0 {
            return None;
        }
        let ratio = of_all / per_all;
        // Residuals of a ratio estimate (Cochran, "Sampling Techniques", 6.3).
        let n = whole.len() as f64;
        let rest: f64 = whole
            .iter()
            .map(|block| (of(block) - ratio * per(block)).powi(2))
            .sum();
        let error = (rest / (n - 1.0) / n).sqrt() / (per_all / n);
        let reach = student_t(0.975, whole.len() - 1) * error * std::f64::consts::SQRT_2;
        Some(Estimate {
            point: ratio,
            low: (ratio - reach).max(0.0),
            high: ratio + reach,
        })
    }
}

/// Mean and extremes of what was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range {
    pub(super) count: u64,
    pub(super) sum: f64,
    squares: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Range {
    pub(super) fn add(&mut self, value: f64) {
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Standard deviation of one value.
    pub(super) fn deviation(&self) -> f64 {
        let n = self.count.max(1) as f64;
        let mean = self.sum / n;
        (self.squares / n - mean * mean).max(0.0).sqrt()
    }

    /// The mean with the interval of that of another run with as many values: 95 % of the difference of two such means, and
    /// no less than `least` on either side.
    pub(super) fn estimate(&self, least: f64) -> Option<Estimate> {
        let point = self.mean()?;
        let n = self.count as f64;
        let reach = match self.count {
            0 | 1 => 0.0,
            count => {
                let deviation = self.deviation() * (n / (n - 1.0)).sqrt();
                student_t(0.975, count as usize - 1) * deviation * (2.0 / n).sqrt()
            }
        };
        let reach = reach.max(least);
        Some(Estimate {
            point,
            low: (point - reach).max(0.0),
            high: point + reach,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(number: u32) -> Block {
        Block {
            count: 1.0,
            seconds: 0.5,
            allocated: f64::from(number % 3),
            ..Block::default()
        }
    }

    #[test]
    fn a_month_of_collections_takes_no_more_blocks_than_a_minute_and_loses_none() {
        let mut blocks = Blocks::default();
        (0..100_000).for_each(|number| blocks.add(collection(number)));
        assert!(blocks.all.len() <= MOST && blocks.all.len() > MOST / 2);
        let count: f64 = blocks.all.iter().map(|block| block.count).sum();
        assert!((count - 100_000.0).abs() < 0.5, "{count}");
    }

    #[test]
    fn a_mean_is_sure_where_blocks_agree_and_unknown_where_there_are_few() {
        let ratio = |collections: u32| {
            let mut blocks = Blocks::default();
            (0..collections).for_each(|number| blocks.add(collection(number)));
            blocks.ratio(|block| block.allocated, |block| block.seconds)
        };
        assert_eq!(ratio(4), None);
        let (few, many) = (ratio(20).unwrap(), ratio(30_000).unwrap());
        assert!(few.holds(2.0) && many.holds(2.0), "{few:?} {many:?}");
        assert!(many.high - many.low < (few.high - few.low) / 4.0);
    }
}
