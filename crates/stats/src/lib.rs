//! Intervals, decisions, schedules and histograms: the arithmetic of a verdict.
//!
//! Pure functions: no I/O, no clock, no threads; whatever is random takes its seed as an argument.
//! The chain reads from the bottom up: a pair of runs gives a log [`ratio`], pairs give an [`interval`] of
//! their centre, an interval gives a call in [`decide`]; [`schedule`] says in which order the halves of a
//! pair run, [`noise`] what a number of pairs can show at all, and [`budget`] at which level a comparison is judged. For single
//! runs, [`batches`] gives the error of a mean. How well it keeps its promises is measured in `tests/it` and quoted in
//! `docs/statistics.md`.

pub mod batches;
pub mod budget;
pub mod decide;
pub mod histogram;
pub mod interval;
pub mod noise;
pub mod proportion;
pub mod ratio;
pub mod schedule;

/// What can go wrong in this crate: only reading back what was written elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Bytes that are not a histogram of this crate.
    #[error(
        "cannot read {bytes} bytes as a latency histogram: {why}; measure again or restore the file"
    )]
    Histogram {
        /// Length of what was given.
        bytes: usize,
        /// What is wrong with it.
        why: String,
    },
}
