//! One run of a JVM: takes its events and hands each to those whom it concerns.

use rungwise_model::gc::{self, RunSums};

use super::ages::AgeTables;
use super::book::{Book, Mark, Table};
use super::breakdown::Breakdown;
use super::clock::{Clock, SECOND, length, seconds};
use super::heap::{Heap, Window};
use super::old::{Named, Old, Remarks};
use super::pauses::{CpuUse, Pauses};
use super::sizes::Sizes;
use super::spread::{Distribution, ms};
use super::stops::{Safepoints, Stalls};
use super::troubles::{FreeLists, Troubles};
use super::worst::{WINDOW, Worst};
use crate::event::{Area, Collector, Concurrent, Event, Kind, Pause, References, Stamp, Statistic};
use crate::names::Names;

/// A log whose first stamp is later than this lacks its beginning, where collections have no numbers that would tell;
/// garbagecat draws the same line.
pub(crate) const PARTIAL: i64 = 60 * SECOND;

/// A stamp so far behind the last one may be damaged; if the next one is earlier again, the run did not last until there.
const DOUBTFUL: i64 = 60 * SECOND;

#[derive(Debug, Default)]
pub(super) struct Run {
    /// By its beginning, from 1; 0 before it.
    pub(super) number: u64,
    /// Who writes, where several do by turns.
    pub(super) source: Option<String>,
    pub(super) facts: gc::Jvm,
    pub(super) collector: Option<Collector>,
    /// One thread collects the old generation of Parallel.
    pub(super) serial_old: bool,
    clock: Clock,
    first: Option<i64>,
    last: Option<i64>,
    /// The last stamp that stretched the run by more than [`DOUBTFUL`], and the end of the run before it.
    doubt: Option<(i64, Option<i64>)>,
    whole: bool,
    paused: bool,
    pauses: Pauses,
    cpu: CpuUse,
    heap: Heap,
    sizes: Sizes,
    old: Old,
    remarks: Remarks,
    ages: AgeTables,
    worst: Worst,
    concurrent: Table<Phase>,
    cycle_causes: Table<u64>,
    concurrent_course: Breakdown,
    safepoints: Safepoints,
    references: Table<Reference>,
    stalls: Stalls,
    free_lists: FreeLists,
    troubles: Troubles,
    statistics: Table<Option<gc::Statistic>>,
}

#[derive(Debug, Default)]
struct Phase {
    time: Distribution,
    cpu: Option<u64>,
    aborted: u64,
    cycle: bool,
    unfinished: u64,
    last_aborted: Option<Mark>,
    named: Option<Named>,
}

#[derive(Debug, Default)]
struct Reference {
    count: u64,
    most: u64,
    time: Distribution,
}

impl Run {
    /// There was an event other than a fact.
    pub(super) fn has_begun(&self) -> bool {
        self.number > 0
    }

    /// Anything but a fact, a turn and a restart.
    pub(super) fn event(&mut self, book: &mut Book, names: &Names, event: Event<'_>) {
        match event {
            Event::Restart | Event::Turn { .. } | Event::Fact(_) => {}
            Event::Pause(pause) => self.pause(book, names, pause),
            Event::Concurrent(concurrent) => self.concurrent(book, names, concurrent),
            Event::Safepoint(safepoint) => {
                let window = self.window(safepoint.began, Some(safepoint.total_ns));
                self.safepoints
                    .safepoint(book, names, safepoint, window.began);
            }
            Event::References(references) => self.references(book, names, &references),
            Event::Statistic(statistic) => self.statistic(book, names, statistic),
            Event::Stall {
                line,
                at,
                thread,
                duration_ns,
            } => {
                let mark = Mark {
                    line: Some(line),
                    at: self.window(at, None).began,
                    name: thread,
                    duration: Some(duration_ns),
                    ..Mark::default()
                };
                self.stalls.stall(book, names, mark, duration_ns);
            }
            Event::Ages { line, at, ages } => {
                let mark = self.mark(line, at);
                self.ages.table(ages, mark);
            }
            Event::Ran { at, duration_ns } => {
                self.window(at, None);
                self.safepoints.ran(duration_ns);
            }
            Event::OutOfMemory { line, at } => {
                let mark = self.mark(line, at);
                self.troubles.out_of_memory(mark);
            }
            Event::Humongous {
                line, bytes, asked, ..
            } => self.heap.humongous_object(line, bytes, asked),
            Event::FreeLists {
                line,
                at,
                free,
                largest,
            } => {
                let mark = self.mark(line, at);
                self.free_lists.see(mark, free, largest);
            }
        }
    }

    fn pause(&mut self, book: &mut Book, names: &Names, pause: &Pause) {
        let window = self.window(pause.began, pause.duration_ns);
        let mark = Mark::of(pause, window.began);
        book.keep(names, pause.name);
        if let Some(cause) = pause.cause {
            book.keep(names, cause);
        }
        if !std::mem::replace(&mut self.paused, true) {
            let early = self.first.is_some_and(|first| first < PARTIAL);
            let beginning = pause.id.map_or(early, |id| id == 0);
            self.whole = self.clock.is_uptime() && beginning;
        }
        let since = self.lasted(window.began);
        self.pauses.pause(book, names, pause, mark, window, since);
        if let (false, Some(began), Some(ended)) = (pause.nested, window.began, window.ended) {
            self.worst.stopped(began, ended);
        }
        if let (false, Some(cpu)) = (pause.nested, pause.cpu) {
            self.cpu.pause(cpu, mark, self.is_single(names, pause));
        }
        let collector = self.collector;
        self.heap.pause(pause, mark, window, collector, self.whole);
        self.sizes.pause(pause, mark, since, collector);
        self.old.pause(pause, mark, window, collector);
        self.remarks.pause(pause, mark, collector);
        self.ages.pause(pause, mark);
        self.troubles.pause(pause, mark);
        self.free_lists.pause(pause);
        for references in &pause.references {
            self.references(book, names, references);
        }
    }

    fn concurrent(&mut self, book: &mut Book, names: &Names, concurrent: &Concurrent) {
        let window = if concurrent.began == Stamp::default() {
            let ended = self.window(concurrent.ended, None).ended;
            Window { began: None, ended }
        } else {
            self.window(concurrent.began, concurrent.duration_ns)
        };
        let heap = concurrent.areas.get(Area::Heap);
        let mark = Mark {
            line: Some(concurrent.line),
            at: window.began.or(window.ended),
            name: Some(concurrent.name),
            cause: concurrent.cause,
            duration: concurrent.duration_ns,
            before: heap.before,
            after: heap.after,
        };
        if let Some(cause) = concurrent.cause {
            *self.cycle_causes.at(book, names, cause) += 1;
            let since = self.lasted(mark.at);
            self.pauses.for_metaspace(names.get(cause), since);
        }
        if let (Some(began), Some(ended), Some(ns)) =
            (window.began, window.ended, concurrent.duration_ns)
        {
            let span = self.concurrent_course.span(began, ended);
            self.concurrent_course
                .part(book, names, concurrent.name)
                .add(span, ns);
        }
        let row = self.concurrent.at(book, names, concurrent.name);
        row.cycle |= concurrent.cycle;
        match concurrent.duration_ns {
            Some(ns) => row.time.add(ns),
            None => row.unfinished += 1,
        }
        if let Some(ns) = concurrent.cpu_ns {
            row.cpu = Some(row.cpu.unwrap_or(0).saturating_add(ns));
        }
        if concurrent.aborted {
            row.aborted += 1;
            row.last_aborted = Some(mark);
        }
        let name = *row
            .named
            .get_or_insert_with(|| Named::classify(names.get(concurrent.name)));
        self.heap
            .concurrent(concurrent, name, mark, window, self.whole);
        let (room, _) = self.room();
        self.old
            .concurrent(concurrent, name, mark, window, self.collector, room);
    }

    fn references(&mut self, book: &mut Book, names: &Names, references: &References) {
        let row = self.references.at(book, names, references.kind);
        let count = references.count.unwrap_or(0);
        row.count = row.count.saturating_add(count);
        row.most = row.most.max(count);
        if let Some(ns) = references.duration_ns {
            row.time.add(ns);
        }
    }

    fn statistic(&mut self, book: &mut Book, names: &Names, statistic: &Statistic) {
        // The table is printed when the run has lasted so long, whatever it is about.
        self.window(statistic.at, None);
        let row = self.statistics.at(book, names, statistic.name);
        let newest = gc::Statistic {
            line: statistic.line,
            count: statistic.count,
            mean_ms: ms(statistic.mean_ns),
            longest_ms: ms(statistic.longest_ns),
        };
        // Shenandoah prints one table, in which two phases may share a name. ZGC prints the same table again and again.
        *row = Some(match (*row, newest.count) {
            (Some(known), Some(count)) => both(known, newest, count),
            _ => newest,
        });
    }

    /// Something without a name and a duration.
    fn mark(&mut self, line: u64, at: Stamp) -> Mark {
        Mark {
            line: Some(line),
            at: self.window(at, None).began,
            ..Mark::default()
        }
    }

    /// Where something lies on the clock of the run, which is stretched to hold it.
    fn window(&mut self, began: Stamp, duration: Option<u64>) -> Window {
        let began = self.clock.at(began);
        let ended = began.map(|began| began + duration.map_or(0, length));
        if let (Some(began), Some(ended)) = (began, ended) {
            self.first = Some(self.first.map_or(began, |first| first.min(began)));
            if let Some((doubtful, before)) = self.doubt.take()
                && began + SECOND < doubtful
            {
                self.last = before;
            }
            if self.last.is_some_and(|last| last + DOUBTFUL < began) {
                self.doubt = Some((began, self.last));
            }
            self.last = self.last.max(Some(ended));
        }
        Window { began, ended }
    }

    /// One thread makes this pause by design: full collections of CMS, of G1 before JDK 10 (JEP 307), and of Parallel with a
    /// serial old generation. With the Serial collector all are, and whoever judges knows.
    fn is_single(&self, names: &Names, pause: &Pause) -> bool {
        let old_g1 = || {
            let version = self.facts.version.as_deref().unwrap_or_default();
            !names.get(pause.name).starts_with("Pause ") || version.starts_with('9')
        };
        pause.kind == Kind::Full
            && match self.collector {
                Some(Collector::Cms) => true,
                Some(Collector::G1) => old_g1(),
                Some(Collector::Parallel) => self.serial_old,
                _ => false,
            }
    }

    /// How long the run had lasted then.
    fn lasted(&self, at: Option<i64>) -> Option<i64> {
        Some(at?.saturating_sub(self.began()?))
    }

    fn began(&self) -> Option<i64> {
        self.first.map(|first| if self.whole { 0 } else { first })
    }

    /// The most that the heap and the old generation may hold, as far as it is known.
    fn room(&self) -> (Option<u64>, Option<u64>) {
        let heap = self.facts.max_heap_bytes;
        (
            heap.or_else(|| self.heap.largest(Area::Heap)),
            self.heap.largest(Area::Old),
        )
    }

    fn span(&self) -> Option<(i64, i64)> {
        self.began().zip(self.last)
    }

    /// How long it lasted; zero where there is no clock.
    pub(super) fn seconds(&self) -> f64 {
        self.span().map_or(0.0, length_of)
    }

    /// What is left of it where it is unknown.
    pub(super) fn sums(&self) -> RunSums {
        let pauses = self.pauses.all.total();
        let span = self.span();
        let known =
            span.and_then(|span| Some((self.free(pauses.total_ms, span)?, length_of(span))));
        let (free, free_known_s) = known.unwrap_or_default();
        let [allocated, promoted] = self.heap.sums();
        RunSums {
            seconds: span.map_or(0.0, length_of),
            free_s: free * free_known_s,
            free_known_s,
            pauses,
            full: self.pauses.full(),
            out_of_memory: self.troubles.out_of_memories(),
            allocated_bytes: allocated.0,
            allocation_known_s: allocated.1,
            promoted_bytes: promoted.0,
            promotion_known_s: promoted.1,
        }
    }

    pub(super) fn report(&self, book: &Book) -> gc::Run {
        let began = self.began();
        let span = self.span();
        let lasted = span.map(length_of);
        let (heap_room, old_room) = self.room();
        let pauses_ms = self.pauses.all.sum_ms();
        let run = span.map(|(began, last)| (seconds(began), seconds(last)));
        gc::Run {
            number: self.number.max(1),
            source: self.source.clone(),
            coarse: false,
            jvm: self.facts.clone(),
            whole: self.whole,
            began_s: began.map(seconds),
            began_unix_ms: self.clock.first_wall().map(|ns| ns.div_euclid(1_000_000)),
            seconds: lasted,
            pauses: self.pauses.report(book),
            throughput: span.and_then(|span| self.throughput(pauses_ms, span)),
            allocation: self.heap.allocation(book),
            promotion: self.heap.promotion(book),
            ages: self.ages.report(book),
            live: self.old.live(book, [heap_room, old_room]),
            heap: self.heap.report(book, run),
            resizes: self.sizes.resizes(book),
            survivors_full: self.sizes.survivors_full(),
            old: self.old.report(book),
            cycle_causes: self.cycle_causes.map(book, |count| *count),
            remark: self.remarks.report(book),
            concurrent: self.concurrent.map(book, |phase| report_phase(book, phase)),
            concurrent_course: self.concurrent_course.report(book),
            safepoints: self.safepoints.report(book, pauses_ms, lasted),
            cpu: self.cpu.report(book),
            references: self.references.map(book, |row| gc::References {
                count: row.count,
                most: row.most,
                time: row.time.some(),
            }),
            stalls: self.stalls.report(book),
            fragmentation: self.free_lists.report(book),
            troubles: self.troubles.report(book),
            statistics: self
                .statistics
                .rows(book)
                .filter_map(|(name, row)| Some((name, (*row)?)))
                .collect(),
        }
    }

    /// Share of the run without pauses; nothing of one that has no length. Nor of one without pauses: every collector
    /// stops threads, so such a log does not print when. Nor of one that is a single pause from its first stamp to its last.
    fn free(&self, pauses_ms: f64, span: (i64, i64)) -> Option<f64> {
        /// Sums of milliseconds are as exact as this.
        const EXACT: f64 = 1e-9;
        let lasted = length_of(span);
        let free = 1.0 - pauses_ms / 1e3 / lasted;
        let known = match self.pauses.all.count() {
            0 => false,
            1 => free > EXACT,
            _ => true,
        };
        (known && lasted > 0.0).then(|| free.max(0.0))
    }

    fn throughput(&self, pauses_ms: f64, span: (i64, i64)) -> Option<gc::Throughput> {
        let whole = self.free(pauses_ms, span)?;
        let (_, last) = span;
        let worst_window = self.worst.worst(last);
        Some(worst_window.map_or(
            gc::Throughput {
                whole,
                worst: whole,
                worst_window_s: length_of(span),
                worst_until_s: seconds(last),
            },
            |(stopped, until)| gc::Throughput {
                whole,
                // The run may begin and end with a pause, and no window.
                worst: (1.0 - stopped as f64 / WINDOW as f64).clamp(0.0, whole),
                worst_window_s: seconds(WINDOW),
                worst_until_s: seconds(until),
            },
        ))
    }
}

/// Seconds from the beginning of a run to its end.
fn length_of((began, last): (i64, i64)) -> f64 {
    seconds(last.saturating_sub(began))
}

/// Two rows of one table under one name; `count` is that of the second.
fn both(one: gc::Statistic, other: gc::Statistic, count: u64) -> gc::Statistic {
    let (known, count) = (one.count.unwrap_or(0), count);
    let all = known + count;
    let sum = one.mean_ms * known as f64 + other.mean_ms * count as f64;
    gc::Statistic {
        line: other.line,
        count: Some(all),
        mean_ms: if all > 0 { sum / all as f64 } else { 0.0 },
        longest_ms: one.longest_ms.max(other.longest_ms),
    }
}

fn report_phase(book: &Book, phase: &Phase) -> gc::Concurrent {
    gc::Concurrent {
        time: phase.time.spread(),
        cpu_ms: phase.cpu.map(ms),
        aborted: phase.aborted,
        cycle: phase.cycle,
        unfinished: phase.unfinished,
        last_aborted: phase.last_aborted.map(|mark| mark.moment(book)),
    }
}
