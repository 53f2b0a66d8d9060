//! The runs of a log: which of them are reported one by one, and how fully.
//!
//! A service that dies at once and is started again leaves thousands of runs in its log. The first ones tell why, the
//! longest one has most to say, the last one is how it is now: these are reported, the others are added up. The longest is the one
//! that is drawn and compared, so it alone keeps its courses whole; the others keep what evidence is made of.

use rungwise_model::gc::{self, RunSums};

use super::book::Book;
use super::run::Run;
use super::{breakdown, course};

/// Runs that are reported one by one from the beginning.
pub(super) const FIRST: usize = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// The first ones, and behind them the longest if it came later.
    reported: Vec<Reported>,
    /// Which of them is the longest.
    longest: usize,
    pub(super) left_out: u64,
    pub(super) sums: RunSums,
}

#[derive(Clone, Debug)]
struct Reported {
    run: gc::Run,
    sums: RunSums,
}

impl Runs {
    /// A run has ended.
    pub(super) fn ended(&mut self, run: &Run, book: &Book) {
        if !self.enter(run, book) {
            self.leave_out(&run.sums());
        }
    }

    /// Runs so far whose JVM is not named are of this one.
    pub(super) fn name(&mut self, source: &str) {
        for one in &mut self.reported {
            let known = &mut one.run.source;
            known.get_or_insert_with(|| source.to_owned());
        }
    }

    /// With one more behind them, the last; nothing may come after.
    pub(super) fn with_last(mut self, run: &Run, book: &Book) -> Self {
        if !self.enter(run, book) {
            self.push(run, book);
            self.coarsen(self.reported.len() - 1);
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reported.is_empty()
    }

    /// In the order of their beginnings.
    pub(super) fn report(self) -> Vec<gc::Run> {
        let mut runs: Vec<_> = self.reported.into_iter().map(|one| one.run).collect();
        runs.sort_by_key(|run| run.number);
        runs
    }

    /// False if it is neither one of the first nor the longest so far.
    fn enter(&mut self, run: &Run, book: &Book) -> bool {
        let longest = self.reported.get(self.longest).map(|one| one.sums.seconds);
        if longest.is_none_or(|seconds| run.seconds() > seconds) {
            if longest.is_some() {
                self.coarsen(self.longest);
            }
            if self.longest >= FIRST {
                let shorter = self.reported.remove(self.longest);
                self.leave_out(&shorter.sums);
            }
            self.longest = self.reported.len();
            self.push(run, book);
        } else if self.reported.len() < FIRST {
            self.push(run, book);
            self.coarsen(self.reported.len() - 1);
        } else {
            return false;
        }
        true
    }

    fn push(&mut self, run: &Run, book: &Book) {
        self.reported.push(Reported {
            run: run.report(book),
            sums: run.sums(),
        });
    }

    fn leave_out(&mut self, sums: &RunSums) {
        self.left_out += 1;
        self.sums.add(sums);
    }

    fn coarsen(&mut self, index: usize) {
        let run = &mut self.reported[index].run;
        run.coarse = true;
        for course in courses(run) {
            course::coarsen(course);
        }
        breakdown::coarsen(&mut run.pauses.made_of);
        breakdown::coarsen(&mut run.concurrent_course);
    }
}

/// Every course of a run.
fn courses(run: &mut gc::Run) -> impl Iterator<Item = &mut gc::Course> {
    let pauses = &mut run.pauses;
    let of_pauses = pauses
        .courses
        .values_mut()
        .chain([&mut pauses.young_course]);
    let parts = run.heap.parts.values_mut();
    let of_heap = parts.flat_map(|part| [&mut part.before, &mut part.after]);
    let promoted = run.promotion.as_mut().and_then(|of| of.rate.as_mut());
    let rates = run.allocation.iter_mut().chain(promoted);
    let of_safepoints = run.safepoints.iter_mut();
    let of_cpu = run.cpu.iter_mut();
    of_pauses
        .chain(of_heap)
        .chain(rates.map(|rate| &mut rate.course))
        .chain(run.live.iter_mut().map(|live| &mut live.course))
        .chain(of_safepoints.flat_map(|of| [&mut of.course, &mut of.reaching_course]))
        .chain(of_cpu.flat_map(|of| [&mut of.user_course, &mut of.sys_course, &mut of.real_course]))
        .chain(run.fragmentation.iter_mut().map(|of| &mut of.course))
}
