//! Several runs of a JVM: which one is shown, and sums over the runs that are not listed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GcReport, Run, Total};

impl GcReport {
    /// The run that is shown in full.
    pub fn longest_run(&self) -> Option<&Run> {
        longest(&self.runs)
    }
}

/// The run of which the log covers the longest time; the first of several equal ones, as in logs without a clock.
pub fn longest(runs: &[Run]) -> Option<&Run> {
    let seconds = |run: &Run| run.seconds.unwrap_or(0.0);
    // Of equals `max_by` gives the last.
    let runs = runs.iter().rev();
    runs.max_by(|a, b| seconds(a).total_cmp(&seconds(b)))
}

/// Sums over runs that are not listed. What a run does not record is in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSums {
    /// Time covered by the log, for runs with a clock.
    pub seconds: f64,
    /// Time without pauses.
    pub free_s: f64,
    /// The time for which that is known: of runs that record pauses.
    pub free_known_s: f64,
    /// Pauses with a duration that do not lie within another.
    pub pauses: Total,
    /// Full collections with a duration; `by_type` has all pauses by name.
    pub full: u64,
    /// Number of out-of-memory errors.
    pub out_of_memory: u64,
    /// Bytes that the application allocated.
    pub allocated_bytes: u64,
    /// Time for which that is known.
    pub allocation_known_s: f64,
    /// Bytes that were promoted.
    pub promoted_bytes: u64,
    /// Time for which that is known.
    pub promotion_known_s: f64,
}

impl RunSums {
    /// Adds the sums of other runs.
    pub fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.free_s += other.free_s;
        self.free_known_s += other.free_known_s;
        self.pauses.count += other.pauses.count;
        self.pauses.total_ms += other.pauses.total_ms;
        self.pauses.longest_ms = self.pauses.longest_ms.max(other.pauses.longest_ms);
        self.full += other.full;
        self.out_of_memory += other.out_of_memory;
        self.allocated_bytes = self.allocated_bytes.saturating_add(other.allocated_bytes);
        self.allocation_known_s += other.allocation_known_s;
        self.promoted_bytes = self.promoted_bytes.saturating_add(other.promoted_bytes);
        self.promotion_known_s += other.promotion_known_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equals_the_first_is_the_longest() {
        let run = |number, seconds| Run {
            number,
            seconds,
            ..Run::default()
        };
        let number = |runs: &[Run]| longest(runs).map(|run| run.number);
        assert_eq!(number(&[]), None);
        let runs = vec![run(1, None), run(2, None)];
        assert_eq!(number(&runs), Some(1));
        let runs = vec![run(1, None), run(2, Some(7.0)), run(3, Some(7.0))];
        assert_eq!(number(&runs), Some(2));
    }
}
