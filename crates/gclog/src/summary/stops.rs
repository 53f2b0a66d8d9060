//! Safepoints of all kinds, and threads that waited for memory.

use rungwise_model::gc;

use super::book::{Book, Longest, Mark, Table};
use super::course::Course;
use super::spread::{Distribution, ms};
use crate::event::Safepoint;
use crate::names::Names;

#[derive(Debug, Default)]
pub(super) struct Safepoints {
    stopped: Distribution,
    reaching: Distribution,
    reaching_longest: Longest,
    longest: Longest,
    ran: Option<u64>,
    operations: Table<Operation>,
    course: Course,
    reaching_course: Course,
}

#[derive(Debug, Default)]
struct Operation {
    collection: bool,
    stopped: Distribution,
    reaching: Distribution,
}

impl Safepoints {
    pub(super) fn safepoint(
        &mut self,
        book: &mut Book,
        names: &Names,
        safepoint: &Safepoint,
        at: Option<i64>,
    ) {
        let mark = Mark {
            line: Some(safepoint.line),
            at,
            name: safepoint.operation,
            duration: Some(safepoint.total_ns),
            ..Mark::default()
        };
        self.stopped.add(safepoint.total_ns);
        self.course.add(at, ms(safepoint.total_ns));
        let mut collection = false;
        if let Some(name) = safepoint.operation {
            let row = self.operations.at(book, names, name);
            if row.stopped.count() == 0 {
                row.collection = is_collection(names.get(name));
            }
            collection = row.collection;
            row.stopped.add(safepoint.total_ns);
            if let Some(ns) = safepoint.reaching_ns {
                row.reaching.add(ns);
            }
        }
        if !collection {
            self.longest.see(mark);
        }
        if let Some(ns) = safepoint.reaching_ns {
            self.reaching.add(ns);
            self.reaching_course.add(at, ms(ns));
            self.reaching_longest.see(Mark {
                duration: Some(ns),
                ..mark
            });
        }
    }

    pub(super) fn ran(&mut self, ns: u64) {
        self.ran = Some(self.ran.unwrap_or(0).saturating_add(ns));
    }

    /// `pauses_ms` is the time in collection pauses, `seconds` the length of the run.
    pub(super) fn report(
        &self,
        book: &Book,
        pauses_ms: f64,
        seconds: Option<f64>,
    ) -> Option<gc::Safepoints> {
        let stopped_ms = self.stopped.sum_ms();
        (self.stopped.count() > 0).then(|| gc::Safepoints {
            stopped: self.stopped.spread(),
            reaching: self.reaching.some(),
            reaching_longest: self.reaching_longest.moment(book),
            longest: self.longest.moment(book),
            outside_ms: (stopped_ms - pauses_ms).max(0.0),
            share: seconds
                .filter(|s| *s > 0.0)
                .map(|s| (stopped_ms / 1e3 / s).min(1.0)),
            ran_ms: self.ran.map(ms),
            operations: self.operations.map(book, |operation| gc::Operation {
                collection: operation.collection,
                stopped: operation.stopped.spread(),
                reaching: operation.reaching.some(),
            }),
            course: self.course.course(),
            reaching_course: self.reaching_course.course(),
        })
    }
}

/// An operation whose stopped time is that of a collection pause. The names are those of `vmOperation.hpp`, JDK 8 to 25.
fn is_collection(operation: &str) -> bool {
    const STARTS: [&str; 10] = [
        "G1",
        "GenCollect",
        "ParallelGC",
        "ParallelCollect",
        "SerialGC",
        "SerialCollect",
        "CMS_",
        "CGC_",
        "Shenandoah",
        "GC_",
    ];
    // ZMarkStart, ZMarkEndYoung, ZRelocateStart, XMarkStart; ZVerify and the like stop threads without a pause line.
    const PHASES: [&str; 3] = ["MarkStart", "MarkEnd", "RelocateStart"];
    STARTS.iter().any(|start| operation.starts_with(start))
        || operation.starts_with("CollectFor")
        || operation.starts_with(['Z', 'X']) && PHASES.iter().any(|phase| operation.contains(phase))
}

#[derive(Debug, Default)]
pub(super) struct Stalls {
    time: Distribution,
    threads: Table<Distribution>,
    longest: Longest,
}

impl Stalls {
    pub(super) fn stall(&mut self, book: &mut Book, names: &Names, mark: Mark, ns: u64) {
        self.time.add(ns);
        if let Some(thread) = mark.name {
            self.threads.at(book, names, thread).add(ns);
        }
        self.longest.see(mark);
    }

    pub(super) fn report(&self, book: &Book) -> Option<gc::Stalls> {
        Some(gc::Stalls {
            time: self.time.some()?,
            threads: self.threads.map(book, Distribution::total),
            longest: self.longest.moment(book)?,
        })
    }
}
