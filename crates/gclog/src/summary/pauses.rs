//! Pauses: by name, by what they are for, by cause, by part; the longest ones; CPU time.

use rungwise_model::gc;

use super::book::{Book, Longest, Mark, Table};
use super::breakdown::Breakdown;
use super::course::Course;
use super::heap::{Window, young_of};
use super::sizes::STARTED;
use super::slope::Fit;
use super::spread::{Distribution, ms};
use crate::event::{Cpu, Kind, Pause, Phase};
use crate::names::Names;

/// Pauses that are reported one by one.
const LONGEST: usize = 50;
/// Steps of a course of pauses: a mark on every pixel of a wide screen, and more for who looks closer.
const MARKS: i64 = 2048;
/// Cause of a collection for metaspace.
const METADATA: &str = "Metadata GC Threshold";

const KINDS: [(Kind, &str); 8] = [
    (Kind::Young, "young"),
    (Kind::Mixed, "mixed"),
    (Kind::Full, "full"),
    (Kind::Degenerated, "degenerated"),
    (Kind::Start, "start"),
    (Kind::Remark, "remark"),
    (Kind::Cleanup, "cleanup"),
    (Kind::Other, "other"),
];

#[derive(Debug, Default)]
pub(super) struct Pauses {
    pub(super) all: Distribution,
    nested: Distribution,
    unfinished: u64,
    by_type: Table<Distribution>,
    by_kind: [Distribution; KINDS.len()],
    by_cause: Table<Distribution>,
    phases: Table<Table<PhaseTime>>,
    /// Longest first.
    longest: Vec<Mark>,
    longest_phases: Vec<Phase>,
    courses: [Course<MARKS>; KINDS.len()],
    made_of: Breakdown,
    young_began: Option<i64>,
    young_interval: Distribution,
    young_course: Course,
    young_cost: Fit,
    metadata_late: u64,
    full_causes: Table<Distribution>,
}

#[derive(Debug, Default)]
struct PhaseTime {
    depth: u8,
    time: Distribution,
}

impl Pauses {
    /// `since` is how long the run has lasted.
    pub(super) fn pause(
        &mut self,
        book: &mut Book,
        names: &Names,
        pause: &Pause,
        mark: Mark,
        window: Window,
        since: Option<i64>,
    ) {
        let young = matches!(pause.kind, Kind::Young | Kind::Mixed);
        if young && !pause.nested {
            if let (Some(last), Some(at)) = (self.young_began, mark.at)
                && last <= at
            {
                self.young_interval.add((at - last) as u64);
            }
            self.young_began = mark.at.or(self.young_began);
        }
        if let Some(cause) = pause.cause {
            self.for_metaspace(names.get(cause), since);
        }
        let phases = self.phases.at(book, names, pause.name);
        for phase in &pause.phases {
            let row = phases.at(book, names, phase.name);
            row.depth = phase.depth;
            row.time.add(phase.duration_ns);
        }
        let Some(ns) = pause.duration_ns else {
            self.unfinished += 1;
            return;
        };
        self.by_type.at(book, names, pause.name).add(ns);
        self.by_kind[pause.kind as usize].add(ns);
        if let Some(cause) = pause.cause {
            self.by_cause.at(book, names, cause).add(ns);
        }
        if pause.kind == Kind::Full {
            let cause = pause.cause.unwrap_or(pause.name);
            self.full_causes.at(book, names, cause).add(ns);
        }
        if young {
            self.young_course.add(mark.at, ms(ns));
            if let Some(before) = young_of(&pause.areas).before {
                self.young_cost.add(before, ns);
            }
        }
        if pause.nested {
            self.nested.add(ns);
            return;
        }
        self.all.add(ns);
        self.courses[pause.kind as usize].add(mark.at, ms(ns));
        self.make(book, names, pause, window, ns);
        self.rank(mark, &pause.phases);
    }

    /// A collection or cycle has this cause; `since` is how long the run has lasted.
    pub(super) fn for_metaspace(&mut self, cause: &str, since: Option<i64>) {
        let late = since.is_some_and(|since| since > STARTED);
        self.metadata_late += u64::from(late && cause == METADATA);
    }

    /// Outermost phases, and what is in none of them. Where phases together are longer than the pause, they ran side by side:
    /// each gets its share.
    fn make(&mut self, book: &mut Book, names: &Names, pause: &Pause, window: Window, ns: u64) {
        let (Some(began), Some(ended)) = (window.began, window.ended) else {
            return;
        };
        let outermost = || pause.phases.iter().filter(|phase| phase.depth == 0);
        let sum = outermost().fold(0_u64, |sum, phase| sum.saturating_add(phase.duration_ns));
        let span = self.made_of.span(began, ended);
        for phase in outermost() {
            let part = self.made_of.part(book, names, phase.name);
            let time = phase.duration_ns;
            let time = if sum > ns {
                (u128::from(time) * u128::from(ns) / u128::from(sum)) as u64
            } else {
                time
            };
            part.add(span, time);
        }
        let rest = self.made_of.part(book, names, pause.name);
        rest.add(span, ns.saturating_sub(sum));
    }

    fn rank(&mut self, mark: Mark, phases: &[Phase]) {
        let place = self
            .longest
            .partition_point(|known| known.duration >= mark.duration);
        if place == 0 {
            self.longest_phases.clear();
            self.longest_phases.extend_from_slice(phases);
        }
        if place < LONGEST {
            self.longest.truncate(LONGEST - 1);
            self.longest.insert(place, mark);
        }
    }

    /// Full collections with a duration.
    pub(super) fn full(&self) -> u64 {
        self.by_kind[Kind::Full as usize].count()
    }

    pub(super) fn report(&self, book: &Book) -> gc::Pauses {
        let by_kind = KINDS.iter().zip(&self.by_kind);
        let phases = self.phases.rows(book);
        gc::Pauses {
            all: self.all.spread(),
            nested: self.nested.total(),
            unfinished: self.unfinished,
            by_type: self.by_type.map(book, Distribution::spread),
            by_kind: by_kind
                .filter_map(|((_, word), pauses)| Some(((*word).to_owned(), pauses.some()?)))
                .collect(),
            by_cause: self.by_cause.map(book, Distribution::spread),
            phases: phases
                .filter(|(_, phases)| !phases.is_empty())
                .map(|(name, phases)| (name, report_phases(book, phases)))
                .collect(),
            longest: self.longest.iter().map(|mark| mark.moment(book)).collect(),
            longest_phases: phases_of_one(book, &self.longest_phases),
            courses: KINDS
                .iter()
                .zip(&self.courses)
                .map(|((_, word), course)| ((*word).to_owned(), course.course()))
                .filter(|(_, course)| !course.points.is_empty())
                .collect(),
            made_of: self.made_of.report(book),
            histogram: self.all.histogram(),
            young_interval: self.young_interval.some(),
            young_course: self.young_course.course(),
            young_cost: self.young_cost.cost(),
            metadata_late: self.metadata_late,
            full_causes: self.full_causes.map(book, Distribution::total),
        }
    }
}

fn report_phases(book: &Book, phases: &Table<PhaseTime>) -> Vec<gc::Phase> {
    phases
        .rows(book)
        .map(|(name, phase)| gc::Phase {
            name,
            depth: phase.depth,
            time: phase.time.spread(),
        })
        .collect()
}

/// The phases of one pause, whose names are in the book since they are in the table of all.
pub(super) fn phases_of_one(book: &Book, phases: &[Phase]) -> Vec<gc::PhaseOfOne> {
    phases
        .iter()
        .map(|phase| gc::PhaseOfOne {
            name: book.word(phase.name),
            depth: phase.depth,
            duration_ms: ms(phase.duration_ns),
        })
        .collect()
}

/// Shorter pauses say nothing: user, sys and real each come in steps of 10 ms.
const JUDGED: u64 = 50_000_000;
/// A tenth of its time a single thread may lack before it waited: it never gets more CPU time than the pause lasts. A guess.
const SINGLE: u64 = 10;
/// Three figures, each rounded by 5 ms at most, and 5 ms more.
const ROUNDING: u64 = 20_000_000;

#[derive(Debug, Default)]
pub(super) struct CpuUse {
    all: Sums,
    judged: Sums,
    inverted: u64,
    sys_heavy: u64,
    longest: Longest,
    inverted_longest: Longest,
    sys_longest: Longest,
    user_course: Course,
    sys_course: Course,
    real_course: Course,
}

#[derive(Debug, Default)]
struct Sums {
    count: u64,
    user: u64,
    sys: u64,
    real: u64,
}

impl Sums {
    fn add(&mut self, cpu: Cpu) {
        self.count += 1;
        self.user = self.user.saturating_add(cpu.user_ns);
        self.sys = self.sys.saturating_add(cpu.sys_ns);
        self.real = self.real.saturating_add(cpu.real_ns);
    }
}

impl CpuUse {
    /// `single`: one thread made it, so that its CPU time can only come near its length.
    pub(super) fn pause(&mut self, cpu: Cpu, mark: Mark, single: bool) {
        self.all.add(cpu);
        self.user_course.add(mark.at, ms(cpu.user_ns));
        self.sys_course.add(mark.at, ms(cpu.sys_ns));
        self.real_course.add(mark.at, ms(cpu.real_ns));
        if cpu.real_ns < JUDGED {
            return;
        }
        self.judged.add(cpu);
        self.longest.see(mark);
        let busy = cpu.user_ns.saturating_add(cpu.sys_ns);
        let own = if single { cpu.real_ns / SINGLE } else { 0 };
        if busy.saturating_add(ROUNDING).saturating_add(own) < cpu.real_ns {
            self.inverted += 1;
            self.inverted_longest.see(mark);
        }
        if cpu.sys_ns > cpu.user_ns {
            self.sys_heavy += 1;
            self.sys_longest.see(mark);
        }
    }

    pub(super) fn report(&self, book: &Book) -> Option<gc::CpuUse> {
        (self.all.count > 0).then(|| gc::CpuUse {
            pauses: self.all.count,
            user_ms: ms(self.all.user),
            sys_ms: ms(self.all.sys),
            real_ms: ms(self.all.real),
            judged: self.judged.count,
            judged_user_ms: ms(self.judged.user),
            judged_sys_ms: ms(self.judged.sys),
            judged_real_ms: ms(self.judged.real),
            inverted: self.inverted,
            sys_heavy: self.sys_heavy,
            judged_longest: self.longest.moment(book),
            inverted_longest: self.inverted_longest.moment(book),
            sys_longest: self.sys_longest.moment(book),
            user_course: self.user_course.course(),
            sys_course: self.sys_course.course(),
            real_course: self.real_course.course(),
        })
    }
}
