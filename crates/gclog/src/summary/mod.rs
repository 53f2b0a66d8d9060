//! Events to statistics, in one pass and in memory that does not grow with the log.
//!
//! ```
//! use rungwise_gclog::{Parser, Summarizer};
//!
//! let log = b"[0.512s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms\n";
//! let mut summarizer = Summarizer::new();
//! let mut parser = Parser::new();
//! parser.push(log, &mut |names, event| summarizer.event(names, event));
//! parser.finish(&mut |names, event| summarizer.event(names, event));
//! let summary = summarizer.summary();
//! assert_eq!(summary.pauses.total_ms, 3.524);
//! ```
//!
//! Each run of a JVM is computed separately, since time does not continue from one to the next. Durations are kept in
//! sketches with exact count, sum and extremes; time series are kept in steps that merge as time goes on. Missing values
//! are left out, never taken as zero.

mod ages;
mod book;
mod breakdown;
pub(crate) mod clock;
mod course;
mod evidence;
pub(crate) mod heap;
pub(crate) mod old;
mod pauses;
pub(crate) mod run;
mod runs;
mod sizes;
pub(crate) mod slope;
pub(crate) mod spread;
mod stops;
mod troubles;
mod worst;

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::gc::{self, RunSums};

use crate::event::{Collector, Event, Fact};
use crate::jvms::Turns;
use crate::names::Names;
use book::{Book, Table};
use run::Run;
use runs::Runs;
use spread::ms;

pub use evidence::evidence;

/// Takes the events of one log, or of one rotated set, in their order.
#[derive(Debug, Default)]
pub struct Summarizer {
    book: Book,
    done: Runs,
    /// Runs that have begun.
    begun: u64,
    jvms: Turns<Jvm>,
    totals: Table<Exact>,
    all: Exact,
}

/// Of one JVM.
#[derive(Debug, Default)]
struct Jvm {
    run: Run,
    /// Facts since the last event: a JVM prints them before its first stamp shows that it is another one.
    facts: gc::Jvm,
    /// There are such facts.
    fresh: bool,
    collector: Option<Collector>,
    serial_old: bool,
}

/// Of all runs together.
#[derive(Debug, Default)]
struct Exact {
    count: u64,
    sum: u128,
    longest: u64,
}

impl Exact {
    fn total(&self) -> gc::Total {
        gc::Total {
            count: self.count,
            total_ms: self.sum as f64 / 1e6,
            longest_ms: ms(self.longest),
        }
    }

    fn add(&mut self, ns: u64, nested: bool) {
        self.count += 1;
        self.longest = self.longest.max(ns);
        if !nested {
            self.sum += u128::from(ns);
        }
    }
}

impl Summarizer {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event, with the names of the parser that tells it: one parser for all events.
    pub fn event(&mut self, names: &Names, event: Event<'_>) {
        match event {
            Event::Restart => self.restart(),
            Event::Turn { jvm, from } => {
                self.jvms.turn(jvm);
                let source = &mut self.jvms.run.source;
                if source.as_deref() != Some(from) {
                    *source = Some(from.to_owned());
                    // Up to the first turn all was of the first one.
                    if jvm == 0 {
                        self.done.name(from);
                    }
                }
            }
            Event::Fact(fact) => self.jvms.fact(fact),
            event => {
                let jvm = &mut *self.jvms;
                jvm.settle();
                if !jvm.run.has_begun() {
                    self.begun += 1;
                    jvm.run.number = self.begun;
                }
                if let Event::Pause(pause) = event
                    && let Some(ns) = pause.duration_ns
                {
                    self.all.add(ns, pause.nested);
                    let total = self.totals.at(&mut self.book, names, pause.name);
                    total.add(ns, false);
                }
                jvm.run.event(&mut self.book, names, event);
            }
        }
    }

    /// What was seen so far; more may follow.
    pub fn summary(&self) -> Summary {
        let mut done = self.done.clone();
        let all = self.jvms.all().iter();
        let mut open: Vec<&Jvm> = all.filter(|jvm| jvm.run.has_begun()).collect();
        if open.is_empty() && done.is_empty() {
            open.push(&self.jvms);
        }
        open.sort_by_key(|jvm| jvm.run.number);
        if let Some((last, others)) = open.split_last() {
            for jvm in others {
                done.ended(&jvm.run, &self.book);
            }
            done = done.with_last(&last.run, &self.book);
        }
        let (runs_left_out, left_out) = (done.left_out, done.sums);
        let mut runs = done.report();
        for jvm in open {
            let number = jvm.run.number.max(1);
            if let Some(run) = runs.iter_mut().find(|run| run.number == number) {
                overlay(&mut run.jvm, &jvm.facts);
            }
        }
        let all = self.all.total();
        Summary {
            runs,
            runs_left_out,
            left_out,
            pauses: gc::AllPauses {
                count: all.count,
                longest_ms: all.longest_ms,
                total_ms: all.total_ms,
                by_type: self.totals.map(&self.book, Exact::total),
            },
            quotes: BTreeMap::new(),
        }
    }

    fn restart(&mut self) {
        let jvm = &mut *self.jvms;
        let run = std::mem::take(&mut jvm.run);
        jvm.run.source.clone_from(&run.source);
        if run.has_begun() {
            self.done.ended(&run, &self.book);
        } else {
            // Nothing but facts so far: they are of the JVM that begins.
            let mut facts = run.facts;
            overlay(&mut facts, &jvm.facts);
            jvm.facts = facts;
            jvm.fresh = true;
            jvm.collector = jvm.collector.or(run.collector);
        }
        jvm.settle();
    }
}

impl Jvm {
    fn fact(&mut self, fact: Fact<'_>) {
        self.fresh = true;
        let facts = &mut self.facts;
        match fact {
            Fact::Version(text) => facts.version = Some(text.to_owned()),
            Fact::Flags(text) => facts.flags = Some(text.to_owned()),
            Fact::Collector(collector) => {
                facts.collector = Some(collector_word(collector).to_owned());
                self.collector = Some(collector);
            }
            Fact::SerialOld => self.serial_old = true,
            Fact::Cpus(count) => facts.cpus = Some(count),
            Fact::Memory(bytes) => facts.memory_bytes = Some(bytes),
            Fact::Swap(bytes) => facts.swap_bytes = Some(bytes),
            Fact::RegionSize(bytes) => facts.region_bytes = Some(bytes),
            Fact::MaxHeap(bytes) => facts.max_heap_bytes = Some(bytes),
            Fact::ParallelWorkers(count) => facts.parallel_workers = Some(count),
            Fact::ConcurrentWorkers(count) => facts.concurrent_workers = Some(count),
        }
    }

    /// Another event of the same JVM: the facts are its own.
    fn settle(&mut self) {
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        overlay(&mut self.run.facts, &std::mem::take(&mut self.facts));
        self.run.collector = self.collector.take().or(self.run.collector);
        self.run.serial_old |= std::mem::take(&mut self.serial_old);
    }
}

/// Enters what `newer` tells.
fn overlay(facts: &mut gc::Jvm, newer: &gc::Jvm) {
    fn newest<T: Clone>(known: &mut Option<T>, newer: Option<&T>) {
        if let Some(newer) = newer {
            *known = Some(newer.clone());
        }
    }
    newest(&mut facts.version, newer.version.as_ref());
    newest(&mut facts.collector, newer.collector.as_ref());
    newest(&mut facts.flags, newer.flags.as_ref());
    newest(&mut facts.cpus, newer.cpus.as_ref());
    newest(&mut facts.memory_bytes, newer.memory_bytes.as_ref());
    newest(&mut facts.swap_bytes, newer.swap_bytes.as_ref());
    newest(&mut facts.region_bytes, newer.region_bytes.as_ref());
    newest(&mut facts.max_heap_bytes, newer.max_heap_bytes.as_ref());
    newest(&mut facts.parallel_workers, newer.parallel_workers.as_ref());
    newest(
        &mut facts.concurrent_workers,
        newer.concurrent_workers.as_ref(),
    );
}

pub(crate) fn collector_word(collector: Collector) -> &'static str {
    match collector {
        Collector::Serial => "Serial",
        Collector::Parallel => "Parallel",
        Collector::Cms => "CMS",
        Collector::G1 => "G1",
        Collector::Z => "ZGC",
        Collector::GenerationalZ => "generational ZGC",
        Collector::Shenandoah => "Shenandoah",
        Collector::GenerationalShenandoah => "generational Shenandoah",
        Collector::Epsilon => "Epsilon",
    }
}

/// Statistics of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Each run of a JVM, in the order in which they begin; of very many the first 32, the longest and the last. At least one,
    /// which may be empty.
    pub runs: Vec<gc::Run>,
    /// Runs that are not listed because there are too many.
    pub runs_left_out: u64,
    /// Sums over those.
    pub left_out: RunSums,
    /// Pauses of all runs.
    pub pauses: gc::AllPauses,
    quotes: BTreeMap<u64, String>,
}

impl Summary {
    /// The run that the log covers the longest time of.
    pub fn longest_run(&self) -> Option<&gc::Run> {
        gc::longest(&self.runs)
    }

    /// Each listed run tells of its pauses, so that one which is not there did not happen.
    pub fn tells_pauses(&self) -> bool {
        self.pauses.count > 0 && !self.runs.iter().any(evidence::hides_pauses)
    }

    /// Share of the time of all runs that tell of their pauses without those.
    pub fn throughput(&self) -> Option<f64> {
        let known = |run: &gc::Run| Some((run.throughput.as_ref()?.whole, run.seconds?));
        let (mut free, mut all) = (self.left_out.free_s, self.left_out.free_known_s);
        for (share, seconds) in self.runs.iter().filter_map(known) {
            free += share * seconds;
            all += seconds;
        }
        (all > 0.0).then(|| free / all)
    }

    /// Bytes allocated per second, over the time of all runs of which it is known.
    pub fn allocation_bytes_per_s(&self) -> Option<f64> {
        let rates = self.runs.iter().filter_map(|run| run.allocation.as_ref());
        let others = &self.left_out;
        mean_rate(others.allocated_bytes, others.allocation_known_s, rates)
    }

    /// Bytes promoted per second, likewise.
    pub fn promotion_bytes_per_s(&self) -> Option<f64> {
        let promotions = self.runs.iter().filter_map(|run| run.promotion.as_ref());
        let rates = promotions.filter_map(|promotion| promotion.rate.as_ref());
        let others = &self.left_out;
        mean_rate(others.promoted_bytes, others.promotion_known_s, rates)
    }

    /// Numbers of the lines that [`evidence`] will cite. Who has the log at hand reads them again and gives their text to
    /// [`Summary::quote`]; without it a citation tells what the line said in the words of the event.
    pub fn cited(&self) -> BTreeSet<u64> {
        evidence::with_lines(self).1
    }

    /// The text of a line that is cited.
    pub fn quote(&mut self, line: u64, text: &str) {
        self.quotes.insert(line, text.trim().to_owned());
    }
}

fn mean_rate<'a>(
    bytes: u64,
    known_s: f64,
    rates: impl Iterator<Item = &'a gc::Rate>,
) -> Option<f64> {
    let (bytes, seconds) = rates.fold((bytes as f64, known_s), |(bytes, seconds), rate| {
        (bytes + rate.bytes as f64, seconds + rate.known_s)
    });
    (seconds > 0.0).then(|| bytes / seconds)
}

#[cfg(test)]
mod tests;
