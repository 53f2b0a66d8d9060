//! Hand-made events in, statistics and evidence out.

mod allocation;
mod cycles;

use proptest::prelude::*;
use rungwise_model::evidence::{Evidence, Kind as Of, Subject, Value};
use rungwise_model::gc::LiveSource;
use rungwise_model::keys;

use super::runs::FIRST;
use super::*;
use crate::event::{
    Ages, Area, Concurrent, Cpu, Fact, Kind, Pause, Phase, References, Safepoint, Stamp,
};
use crate::names::Name;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A log that is made event by event.
#[derive(Default)]
struct Log {
    names: Names,
    summarizer: Summarizer,
    line: u64,
}

impl Log {
    fn of(collector: Collector) -> Self {
        let mut log = Self::default();
        log.tell(Event::Fact(Fact::Collector(collector)));
        log
    }

    fn tell(&mut self, event: Event<'_>) {
        self.summarizer.event(&self.names, event);
    }

    fn name(&mut self, text: &str) -> Name {
        self.names.number(text.as_bytes())
    }

    /// A pause that began at that uptime, milliseconds, and what it held of the heap, MiB.
    fn draft(&mut self, name: &str, kind: Kind, at_ms: u64, ms: u64, heap: (u64, u64)) -> Pause {
        self.line += 1;
        let mut pause = Pause {
            line: self.line,
            began: up(at_ms),
            id: None,
            name: self.name(name),
            kind,
            cause: None,
            starts_cycle: false,
            duration_ns: Some(ms * MS),
            nested: false,
            areas: Areas::default(),
            promoted: None,
            young_occupancy: None,
            cpu: None,
            phases: Vec::new(),
            ages: None,
            references: Vec::new(),
            troubles: crate::event::Troubles::default(),
        };
        fill(&mut pause, Area::Heap, heap);
        pause.areas.at(Area::Heap).capacity = Some(GIB);
        pause
    }

    fn pause(&mut self, name: &str, kind: Kind, at_ms: u64, ms: u64, heap: (u64, u64)) {
        let pause = self.draft(name, kind, at_ms, ms, heap);
        self.tell(Event::Pause(&pause));
    }

    fn cycle(&mut self, name: &str, at_ms: u64, ms: u64, heap: (u64, u64)) {
        self.line += 1;
        let mut areas = Areas::default();
        areas.at(Area::Heap).before = Some(heap.0 * MIB);
        areas.at(Area::Heap).after = Some(heap.1 * MIB);
        let concurrent = Concurrent {
            line: self.line,
            began: up(at_ms),
            ended: Stamp::default(),
            id: None,
            name: self.name(name),
            cycle: true,
            cause: None,
            duration_ns: Some(ms * MS),
            cpu_ns: None,
            aborted: false,
            areas,
            promoted: None,
            allocated: None,
            live: None,
        };
        self.tell(Event::Concurrent(&concurrent));
    }

    fn run(&self) -> gc::Run {
        self.summarizer.summary().runs[0].clone()
    }
}

use crate::event::Areas;

fn up(ms: u64) -> Stamp {
    Stamp {
        uptime_ns: Some(ms * MS),
        wall_ns: None,
    }
}

fn fill(pause: &mut Pause, area: Area, (before, after): (u64, u64)) {
    pause.areas.at(area).before = Some(before * MIB);
    pause.areas.at(area).after = Some(after * MIB);
}

fn jvm(evidence: &Evidence, key: &'static rungwise_model::evidence::Key) -> f64 {
    evidence
        .quantity(key, &Subject::new(Of::Jvm, 1))
        .unwrap_or_else(|missing| panic!("{} {:?}", key.id, missing.why))
        .value
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn sums_are_exact_and_a_nested_pause_is_not_added_twice() {
    let mut log = Log::of(Collector::Cms);
    log.pause("ParNew", Kind::Young, 1000, 20, (100, 50));
    let mut young = log.draft("ParNew", Kind::Young, 5000, 67, (100, 60));
    young.nested = true;
    fill(&mut young, Area::Young, (80, 2));
    log.tell(Event::Pause(&young));
    let mut remark = log.draft("GC remark", Kind::Remark, 5000, 126, (60, 60));
    remark.duration_ns = Some(126_442_000);
    remark.young_occupancy = Some((80 * MIB, 100 * MIB));
    log.tell(Event::Pause(&remark));

    let summary = log.summarizer.summary();
    assert_eq!(summary.pauses.count, 3);
    near(summary.pauses.total_ms, 146.442);
    near(summary.pauses.by_type["ParNew"].total_ms, 87.0);
    let run = &summary.runs[0];
    assert_eq!((run.pauses.all.count, run.pauses.nested.count), (2, 1));
    let remark = run.remark.as_ref().unwrap();
    near(remark.longest_own_ms, 59.442);
    assert_eq!(remark.scavenged, 1);
    assert_eq!(remark.longest_young_bytes, Some(2 * MIB));
}

#[test]
fn each_run_has_its_own_clock_and_its_own_facts() {
    let mut log = Log::of(Collector::Parallel);
    log.pause("PSYoungGen", Kind::Young, 100_000, 10, (100, 50));
    log.pause("PSYoungGen", Kind::Young, 200_000, 10, (150, 50));
    // The header of the next JVM comes before the stamp that shows it.
    log.tell(Event::Fact(Fact::Version("25")));
    log.tell(Event::Fact(Fact::Collector(Collector::G1)));
    log.tell(Event::Restart);
    log.pause("Pause Young", Kind::Young, 1000, 10, (40, 10));
    log.pause("Pause Young", Kind::Young, 3000, 30, (50, 10));

    let summary = log.summarizer.summary();
    let [one, two] = &summary.runs[..] else {
        panic!("{} runs", summary.runs.len())
    };
    assert_eq!(one.jvm.collector.as_deref(), Some("Parallel"));
    assert_eq!(one.jvm.version, None);
    assert_eq!(two.jvm.collector.as_deref(), Some("G1"));
    assert_eq!(two.jvm.version.as_deref(), Some("25"));
    near(one.seconds.unwrap(), 100.01);
    // The second log begins with its JVM, so it lasts from uptime zero.
    assert!(two.whole && !one.whole);
    near(two.seconds.unwrap(), 3.03);
    assert_eq!(summary.pauses.count, 4);
    let stopped = 0.02 + 0.04;
    near(summary.throughput().unwrap(), 1.0 - stopped / 103.04);
}

#[test]
fn facts_of_a_rotated_file_stay_with_the_run() {
    let mut log = Log::of(Collector::G1);
    log.pause("Pause Young", Kind::Young, 1000, 10, (40, 10));
    log.tell(Event::Fact(Fact::Version("17")));
    log.pause("Pause Young", Kind::Young, 2000, 10, (40, 10));
    let summary = log.summarizer.summary();
    assert_eq!(summary.runs.len(), 1);
    assert_eq!(summary.runs[0].jvm.version.as_deref(), Some("17"));
}

#[test]
fn of_very_many_runs_the_first_the_longest_and_the_last_are_reported_and_the_others_added_up() {
    let mut log = Log::default();
    let count = FIRST as u64 + 10;
    // The runs are a second long, but one that takes a minute.
    let long = FIRST as u64 + 5;
    for run in 1..=count {
        log.pause("Full GC", Kind::Full, 0, 5, (9, 1));
        let last = if run == long { 60_000 } else { 1000 };
        log.pause("Full GC", Kind::Full, last - run, run, (11, 1));
        if run < count {
            log.tell(Event::Restart);
        }
    }
    let summary = log.summarizer.summary();
    let numbers: Vec<u64> = summary.runs.iter().map(|run| run.number).collect();
    let mut expected: Vec<u64> = (1..=FIRST as u64).collect();
    expected.extend([long, count]);
    assert_eq!(numbers, expected);
    let fine = summary.runs.iter().filter(|run| !run.coarse);
    assert_eq!(fine.map(|run| run.number).collect::<Vec<_>>(), [long]);
    assert_eq!(summary.longest_run().map(|run| run.number), Some(long));

    let others: Vec<u64> = (1..=count).filter(|run| !numbers.contains(run)).collect();
    let sums = summary.left_out;
    assert_eq!(summary.runs_left_out, others.len() as u64);
    assert_eq!(sums.pauses.count, 2 * others.len() as u64);
    assert_eq!(sums.full, sums.pauses.count);
    near(sums.pauses.longest_ms, *others.last().unwrap() as f64);
    let listed = summary.runs.iter().map(|run| run.pauses.all.total_ms);
    near(
        listed.sum::<f64>() + sums.pauses.total_ms,
        summary.pauses.total_ms,
    );
    assert_eq!(summary.pauses.count, 2 * count);
    near(sums.seconds, others.len() as f64);
    near(sums.free_s, sums.seconds - sums.pauses.total_ms / 1e3);
    // 9 MiB up to the first collection of a run, 10 up to the second.
    assert_eq!(sums.allocated_bytes, 19 * MIB * others.len() as u64);
}

#[test]
fn evidence_of_a_run_is_the_same_with_coarse_courses() {
    let tell = |log: &mut Log, from: u64, count: u64| {
        for number in 0..count {
            let (at, ms) = (from + number * 731, 1 + number % 17);
            let mut pause = log.draft("Pause Young", Kind::Young, at, ms, (100 + number % 7, 50));
            fill(&mut pause, Area::Young, (60 + number % 11, 1 + number % 3));
            log.tell(Event::Pause(&pause));
        }
    };
    let mut alone = Log::of(Collector::G1);
    tell(&mut alone, 0, 1000);
    let mut beside = Log::of(Collector::G1);
    tell(&mut beside, 0, 1000);
    beside.tell(Event::Restart);
    tell(&mut beside, 0, 2000);
    let (alone, beside) = (alone.summarizer.summary(), beside.summarizer.summary());
    assert!(beside.runs[0].coarse && !alone.runs[0].coarse);
    let kept = |summary: &Summary| summary.runs[0].pauses.young_course.points.len();
    assert!(kept(&beside) <= 8 && kept(&alone) > 200);
    let parts = |summary: &Summary| summary.runs[0].pauses.made_of.parts.clone();
    for (coarse, fine) in parts(&beside).iter().zip(&parts(&alone)) {
        near(coarse.steps_ms.iter().sum(), fine.total_ms);
        assert!(coarse.steps_ms.len() <= 8);
    }

    let (alone, beside) = (evidence(&alone), evidence(&beside));
    let jvm = Subject::new(Of::Jvm, 1);
    let mut compared = 0;
    for reading in alone.readings().filter(|reading| reading.subject == jvm) {
        let other = beside.reading(reading.key, &jvm).unwrap();
        match (&reading.value, &other.value) {
            (Value::Number(a), Value::Number(b)) => near(*a, *b),
            (a, b) => assert_eq!(a, b),
        }
        assert_eq!(reading.series.len(), other.series.len());
        for (a, b) in reading.series.iter().zip(&other.series) {
            near(*a, *b);
            compared += 1;
        }
    }
    assert!(compared >= 16, "{compared}");
}

#[test]
fn a_pause_longer_than_a_minute_is_reported_as_it_is() {
    let mut log = Log::default();
    log.pause("Full GC", Kind::Full, 1000, 83_000, (9, 1));
    let evidence = evidence(&log.summarizer.summary());
    near(jvm(&evidence, &keys::GC_PAUSE_LONGEST), 83.0);
    near(jvm(&evidence, &keys::GC_FULL_TIME), 83.0);
}

#[test]
fn the_time_of_a_cycle_that_frees_meanwhile_is_left_out() {
    let mut log = Log::of(Collector::Z);
    log.cycle("Garbage Collection (Warmup)", 1000, 1000, (30, 20));
    log.cycle("Garbage Collection (Warmup)", 4000, 1000, (60, 25));
    log.cycle("Garbage Collection (Warmup)", 6000, 1000, (45, 25));
    let run = log.run();
    let allocation = run.allocation.unwrap();
    assert_eq!(allocation.bytes, (40 + 20) * MIB);
    near(allocation.known_s, 3.0);
    assert_eq!(run.old.cycles, 3);
    let live = run.live.unwrap();
    assert_eq!((live.source, live.samples), (LiveSource::Cycle, 3));
}

#[test]
fn a_young_cycle_within_a_major_one_is_counted_once() {
    let mut log = Log::of(Collector::GenerationalZ);
    log.cycle("Y: Young Generation", 1000, 100, (30, 20));
    log.cycle("O: Old Generation", 1100, 100, (20, 24));
    log.cycle("Major Collection (Warmup)", 1000, 210, (30, 24));
    log.cycle("Minor Collection (Allocation Rate)", 3210, 100, (64, 20));
    let run = log.run();
    assert_eq!(run.old.cycles, 1);
    assert_eq!(run.live.unwrap().samples, 1);
    // From the end of the major one to the next; what came meanwhile is unknown.
    assert_eq!(run.allocation.unwrap().bytes, 40 * MIB);
}

#[test]
fn ages_tell_what_survives_and_whether_it_fits() {
    let mut log = Log::of(Collector::Cms);
    for (at, threshold, bytes) in [
        (1, 6, vec![100, 50, 40]),
        (2, 2, vec![120, 60, 45]),
        (3, 6, vec![110, 30, 50]),
    ] {
        let mut pause = log.draft("ParNew", Kind::Young, at * 1000, 1, (9, 1));
        pause.ages = Some(Ages {
            desired: Some(200),
            threshold: Some(threshold),
            max: Some(6),
            bytes,
        });
        log.tell(Event::Pause(&pause));
    }
    let ages = log.run().ages.unwrap();
    assert_eq!((ages.count, ages.overflows, ages.lowered), (3, 1, 1));
    near(ages.mean_bytes[0], 110.0);
    // 60 of 100 and 30 of 120 came to age 2; at age 2 the threshold of 2 promoted once, so only 45 of 50 count.
    near(ages.survival[0].unwrap(), 90.0 / 220.0);
    near(ages.survival[1].unwrap(), 45.0 / 50.0);
}

#[test]
fn a_leak_has_a_slope_above_zero_and_steady_heaps_do_not() {
    let evidence_with_leak = |leak: u64| {
        let mut log = Log::of(Collector::Parallel);
        log.tell(Event::Fact(Fact::MaxHeap(2 * GIB)));
        for number in 0..40_u64 {
            let live = 300 + leak * number + number * 7919 % 13;
            let at = number * 60_000;
            log.pause("Full GC", Kind::Full, at, 100, (900, live));
        }
        evidence(&log.summarizer.summary())
    };
    let leak = evidence_with_leak(5);
    let slope = 5.0 * MIB as f64 / 60.0;
    assert!(jvm(&leak, &keys::GC_LIVE_SLOPE_LOW) > 0.0);
    assert!((jvm(&leak, &keys::GC_LIVE_SLOPE) / slope - 1.0).abs() < 0.05);
    assert!(jvm(&leak, &keys::GC_LIVE_SHARE) > 0.2);
    let steady = evidence_with_leak(0);
    assert!(jvm(&steady, &keys::GC_LIVE_SLOPE_LOW) < 0.0);
    assert!(jvm(&steady, &keys::GC_LIVE_SLOPE_HIGH) > 0.0);
}

#[test]
fn what_a_sweep_leaves_is_reported_by_the_next_collection() {
    let mut log = Log::of(Collector::Cms);
    let mut start = log.draft("GC initial-mark", Kind::Start, 1000, 5, (800, 800));
    *start.areas.at(Area::Old) = crate::event::Change {
        before: Some(700 * MIB),
        after: Some(700 * MIB),
        capacity: Some(GIB),
    };
    log.tell(Event::Pause(&start));
    log.line += 1;
    let sweep = Concurrent {
        line: log.line,
        began: up(3000),
        ended: Stamp::default(),
        id: None,
        name: log.names.number(b"CMS-concurrent-sweep"),
        cycle: false,
        cause: None,
        duration_ns: Some(500 * MS),
        cpu_ns: Some(400 * MS),
        aborted: false,
        areas: Areas::default(),
        promoted: None,
        allocated: None,
        live: None,
    };
    log.tell(Event::Concurrent(&sweep));
    let mut young = log.draft("ParNew", Kind::Young, 4000, 5, (300, 220));
    fill(&mut young, Area::Young, (160, 10));
    log.tell(Event::Pause(&young));
    let run = log.run();
    let live = run.live.unwrap();
    assert_eq!(
        (live.source, live.last_bytes),
        (LiveSource::Sweep, 140 * MIB)
    );
    assert_eq!(live.room_bytes, Some(GIB));
    near(run.old.reclaimed.unwrap(), 0.8);
    assert_eq!(run.old.cycles, 1);
    near(run.old.cycle_length.unwrap().total_ms, 2500.0);
    near(run.old.occupancy.unwrap(), 700.0 / 1024.0);
}

#[test]
fn g1_begins_a_cycle_at_what_its_young_collection_leaves() {
    let mut log = Log::of(Collector::G1);
    let name = "Pause Young (Concurrent Start) (G1 Evacuation Pause)";
    let mut start = log.draft(name, Kind::Young, 1000, 5, (900, 512));
    start.starts_cycle = true;
    log.tell(Event::Pause(&start));
    near(log.run().old.occupancy.unwrap(), 0.5);
}

#[test]
fn only_long_pauses_tell_of_starved_threads() {
    let mut log = Log::default();
    for (ms, user, sys) in [(10, 0, 0), (200, 100, 20), (200, 30, 40), (200, 190, 5)] {
        let mut pause = log.draft("ParNew", Kind::Young, 1000, ms, (9, 1));
        pause.cpu = Some(Cpu {
            user_ns: user * MS,
            sys_ns: sys * MS,
            real_ns: ms * MS,
        });
        log.tell(Event::Pause(&pause));
    }
    let cpu = log.run().cpu.unwrap();
    assert_eq!((cpu.pauses, cpu.judged), (4, 3));
    assert_eq!((cpu.inverted, cpu.sys_heavy), (2, 1));
    near(cpu.sys_longest.unwrap().duration_ms.unwrap(), 200.0);
}

#[test]
fn a_collection_of_one_thread_gets_no_more_cpu_time_than_it_lasts() {
    let inverted = |collector, name: &str, serial_old: bool, busy: u64| {
        let mut log = Log::of(collector);
        if serial_old {
            log.tell(Event::Fact(Fact::SerialOld));
        }
        let mut pause = log.draft(name, Kind::Full, 1000, 400, (9, 1));
        pause.cpu = Some(Cpu {
            user_ns: busy * MS,
            sys_ns: 0,
            real_ns: 400 * MS,
        });
        log.tell(Event::Pause(&pause));
        log.run().cpu.unwrap().inverted
    };
    assert_eq!(inverted(Collector::Parallel, "Full GC", true, 370), 0);
    assert_eq!(inverted(Collector::Cms, "Full GC", false, 370), 0);
    assert_eq!(inverted(Collector::G1, "Full GC", false, 370), 0);
    // Threads of many, and one that did wait.
    assert_eq!(inverted(Collector::Parallel, "Full GC", false, 370), 1);
    assert_eq!(inverted(Collector::G1, "Pause Full", false, 370), 1);
    assert_eq!(inverted(Collector::Parallel, "Full GC", true, 300), 1);
}

#[test]
fn stopped_time_outside_collections_is_reported_with_its_operations() {
    let mut log = Log::of(Collector::G1);
    log.pause("Pause Young", Kind::Young, 1000, 80, (9, 1));
    for (operation, total, reaching) in [
        ("G1CollectForAllocation", 90, 5),
        ("RevokeBias", 30, 25),
        ("Cleanup", 1, 0),
    ] {
        let operation = log.name(operation);
        let safepoint = Safepoint {
            line: 7,
            began: up(1000),
            operation: Some(operation),
            reaching_ns: Some(reaching * MS),
            total_ns: total * MS,
        };
        log.tell(Event::Safepoint(&safepoint));
    }
    let evidence = evidence(&log.summarizer.summary());
    near(jvm(&evidence, &keys::GC_SAFEPOINT_OUTSIDE), 41.0 / 121.0);
    near(jvm(&evidence, &keys::GC_SAFEPOINT_LONGEST), 0.030);
    near(jvm(&evidence, &keys::GC_SAFEPOINT_REACHING), 30.0 / 121.0);
    let words = evidence
        .words(&keys::GC_SAFEPOINT_OPERATIONS, &Subject::new(Of::Jvm, 1))
        .unwrap();
    assert_eq!(words.value, "RevokeBias 30.0 ms in 1, Cleanup 1.0 ms in 1");
}

#[test]
fn the_remark_of_a_full_eden_names_the_rescan() {
    let mut log = Log::of(Collector::Cms);
    let mut remark = log.draft("GC remark", Kind::Remark, 1000, 0, (6796, 6796));
    remark.duration_ns = Some(18_176_961_000);
    remark.young_occupancy = Some((4_756_927 << 10, 6_606_080 << 10));
    for (name, ns) in [
        ("Rescan (parallel)", 18_162_148_000),
        ("weak refs processing", 75_000),
        ("class unloading", 6_976_000),
        ("scrub symbol table", 4_002_000),
        ("scrub string table", 924_000),
    ] {
        remark.phases.push(Phase {
            name: log.name(name),
            depth: 0,
            duration_ns: ns,
        });
    }
    log.tell(Event::Pause(&remark));
    let evidence = evidence(&log.summarizer.summary());
    near(jvm(&evidence, &keys::GC_REMARK_LONGEST), 18.176_961);
    near(
        jvm(&evidence, &keys::GC_REMARK_RESCAN),
        18_162.148 / 18_176.961,
    );
    near(jvm(&evidence, &keys::GC_REMARK_TABLES), 4.926 / 18_176.961);
    near(
        jvm(&evidence, &keys::GC_REMARK_YOUNG_SHARE),
        4_756_927.0 / 6_606_080.0,
    );
    let words = |key| {
        let words = evidence.words(key, &Subject::new(Of::Jvm, 1));
        words.unwrap().value.to_owned()
    };
    assert_eq!(words(&keys::GC_PAUSE_LONGEST_PHASE), "Rescan (parallel)");
}

#[test]
fn causes_are_counted_and_late_ones_apart() {
    let mut log = Log::of(Collector::G1);
    for (at, cause, kind) in [
        (1, "G1 Evacuation Pause", Kind::Young),
        (2, "Metadata GC Threshold", Kind::Young),
        (400, "Metadata GC Threshold", Kind::Full),
        (500, "System.gc()", Kind::Full),
        (600, "Heap Dump Initiated GC", Kind::Full),
        (700, "G1 Compaction Pause", Kind::Full),
        (800, "GCLocker Initiated GC", Kind::Young),
        (900, "GCLocker Initiated GC", Kind::Young),
    ] {
        let mut pause = log.draft("Pause", kind, at * 1000, 10, (9, 1));
        pause.cause = Some(log.name(cause));
        pause.troubles.gc_locker = cause == "GCLocker Initiated GC";
        log.tell(Event::Pause(&pause));
    }
    let evidence = evidence(&log.summarizer.summary());
    for (key, count) in [
        (&keys::GC_ALLOCATION_FAILURES, 1.0),
        (&keys::GC_METADATA, 2.0),
        (&keys::GC_METADATA_LATE, 1.0),
        (&keys::GC_EXPLICIT, 1.0),
        (&keys::GC_FULLS, 4.0),
        (&keys::GC_FULLS_EXPLICIT, 1.0),
        (&keys::GC_FULLS_METADATA, 1.0),
        (&keys::GC_FULLS_INSPECTION, 1.0),
        (&keys::GC_FULLS_ERGONOMICS, 0.0),
        (&keys::GC_FULLS_ALLOCATION, 1.0),
        (&keys::GC_LOCKER, 2.0),
        (&keys::GC_LOCKER_TIME, 0.02),
    ] {
        near(jvm(&evidence, key), count);
    }
}

#[test]
fn pauses_that_only_begin_are_no_zeros() {
    let mut log = Log::of(Collector::Serial);
    for at in 1..4 {
        let mut pause = log.draft("Pause Young", Kind::Young, at * 1000, 0, (9, 1));
        pause.duration_ns = None;
        log.tell(Event::Pause(&pause));
    }
    let evidence = evidence(&log.summarizer.summary());
    for key in [
        &keys::GC_PAUSES,
        &keys::GC_FULLS,
        &keys::GC_YOUNGS,
        &keys::GC_EXPLICIT,
        &keys::GC_PROMOTION_FAILURES,
        &keys::GC_REMARKS,
    ] {
        let missing = evidence.quantity(key, &Subject::new(Of::Jvm, 1));
        let why = missing.unwrap_err().why;
        assert!(why.reason.contains("starts of pauses"), "{why:?}");
    }
}

#[test]
fn every_key_is_reported_of_every_run_or_says_why_not() {
    let mut log = Log::default();
    log.pause("Full GC", Kind::Full, 1000, 5, (9, 1));
    log.tell(Event::Restart);
    log.pause("Full GC", Kind::Full, 500, 5, (9, 1));
    let summary = log.summarizer.summary();
    let evidence = evidence(&summary);
    for key in keys::all().filter(|key| key.id.starts_with("gc.")) {
        if key == &keys::GC_RUNS {
            near(evidence.host(key).unwrap().value, 2.0);
            continue;
        }
        for run in 1..=2 {
            let subject = Subject::new(Of::Jvm, run);
            let reading = evidence.reading(key, &subject);
            let reading = reading.unwrap_or_else(|| panic!("{} of {subject}", key.id));
            match &reading.value {
                Value::Absent(why) => assert!(!why.reason.is_empty(), "{}", key.id),
                _ => assert!(!reading.origin.line.is_empty(), "{}", key.id),
            }
        }
    }
}

#[test]
fn a_number_cites_its_line_in_the_log() {
    let mut log = Log::default();
    log.pause("Full GC", Kind::Full, 1000, 5, (9, 1));
    log.pause("Full GC", Kind::Full, 2000, 7, (9, 1));
    let mut summary = log.summarizer.summary();
    let cited = |summary: &Summary| {
        let evidence = evidence(summary);
        let reading = evidence.reading(&keys::GC_PAUSE_LONGEST, &Subject::new(Of::Jvm, 1));
        reading.unwrap().origin.line.clone()
    };
    assert_eq!(
        cited(&summary),
        "2 pauses, the longest: line 2 of the log: Full GC 9216K->1024K 7 ms at 2.000 s"
    );
    assert!(summary.cited().contains(&2));
    summary.quote(
        2,
        "2.000: [Full GC 9216K->1024K(1048576K), 0.0070000 secs]\n",
    );
    assert!(
        cited(&summary).ends_with(
            "line 2 of the log: 2.000: [Full GC 9216K->1024K(1048576K), 0.0070000 secs]"
        )
    );
}

#[test]
fn a_log_without_a_clock_has_sums_and_no_rates() {
    let mut log = Log::default();
    for _ in 0..3 {
        let mut pause = log.draft("GC", Kind::Young, 0, 4, (9, 1));
        pause.began = Stamp::default();
        log.tell(Event::Pause(&pause));
    }
    let run = log.run();
    near(run.pauses.all.total_ms, 12.0);
    assert_eq!(
        (run.seconds, run.throughput, run.allocation),
        (None, None, None)
    );
    let evidence = evidence(&log.summarizer.summary());
    let missing = evidence
        .quantity(&keys::GC_THROUGHPUT, &Subject::new(Of::Jvm, 1))
        .unwrap_err();
    // In the words of the JVMs that write so.
    assert!(
        missing.why.remedy.contains("PrintGCTimeStamps"),
        "{missing:?}"
    );
}

#[test]
fn one_damaged_stamp_costs_no_more_than_its_own_collection() {
    let mut log = Log::of(Collector::G1);
    for (at, before) in [(61, 50), (62, 60), (9062, 60), (64, 60), (65, 70), (66, 60)] {
        log.pause("Pause Young", Kind::Young, at * 1000, 100, (before, 10));
    }
    let run = log.run();
    near(run.seconds.unwrap(), 5.1);
    // 50 from 61 to 62, 60 and 50 after the damage; and 50 in the 9000 s up to it, which nobody can tell from idling.
    assert_eq!(run.allocation.unwrap().bytes, (50 + 50 + 60 + 50) * MIB);
    assert_eq!(run.pauses.all.count, 6);
}

#[test]
fn references_stalls_and_free_lists_are_added_up() {
    let mut log = Log::of(Collector::Cms);
    let mut pause = log.draft("ParNew", Kind::Young, 1000, 4, (9, 1));
    pause.references.push(References {
        kind: log.name("SoftReference"),
        count: Some(12),
        duration_ns: Some(MS),
    });
    log.tell(Event::Pause(&pause));
    log.tell(Event::Pause(&pause));
    let thread = log.name("main");
    log.tell(Event::Stall {
        line: 7,
        at: up(1500),
        thread: Some(thread),
        duration_ns: 12 * MS,
    });
    log.tell(Event::FreeLists {
        line: 8,
        at: up(2000),
        free: 1000,
        largest: 250,
    });
    log.tell(Event::OutOfMemory {
        line: 9,
        at: up(3000),
    });
    let run = log.run();
    let soft = &run.references["SoftReference"];
    assert_eq!((soft.count, soft.most), (24, 12));
    assert_eq!(run.stalls.unwrap().threads["main"].count, 1);
    assert_eq!(run.troubles.out_of_memory.count, 1);
    let evidence = evidence(&log.summarizer.summary());
    near(jvm(&evidence, &keys::GC_FREE_LARGEST), 0.25);
    near(jvm(&evidence, &keys::GC_STALL_RATE), 1.0 / 3.0);
}

/// Any stamps and sizes, as a damaged log may hold them.
fn odd_pause() -> impl Strategy<Value = (u8, Option<u64>, Option<i64>, Option<u64>, [u64; 4])> {
    (
        0..8_u8,
        prop::option::of(prop_oneof![0..100 * S, any::<u64>()]),
        prop::option::of(any::<i64>()),
        prop::option::of(prop_oneof![0..10 * S, any::<u64>()]),
        any::<[u64; 4]>(),
    )
}

proptest! {
    #[test]
    fn a_peak_is_never_below_the_mean(pieces in prop::collection::vec((0..30_u64, 0..900_u64), 1..60)) {
        let known: u64 = pieces.iter().map(|(seconds, _)| seconds).sum();
        prop_assume!(known >= 10);
        let rate = allocation::allocated(&pieces);
        prop_assert!(rate.peak_bytes_per_s.unwrap() >= rate.bytes_per_s);
    }

    #[test]
    fn no_events_make_it_panic(odd in prop::collection::vec(odd_pause(), 0..40), collector in 0..3_u8) {
        const KINDS: [Kind; 8] = [
            Kind::Young, Kind::Mixed, Kind::Full, Kind::Degenerated, Kind::Start, Kind::Remark, Kind::Cleanup,
            Kind::Other,
        ];
        let collectors = [Collector::Cms, Collector::G1, Collector::Z];
        let mut log = Log::of(collectors[usize::from(collector)]);
        for (kind, uptime_ns, wall_ns, duration_ns, sizes) in odd {
            let mut pause = log.draft("Pause", KINDS[usize::from(kind)], 0, 0, (0, 0));
            pause.began = Stamp { uptime_ns, wall_ns };
            pause.duration_ns = duration_ns;
            pause.nested = sizes[0] % 5 == 0;
            for (number, area) in [Area::Heap, Area::Young, Area::Old].into_iter().enumerate() {
                let change = pause.areas.at(area);
                change.before = Some(sizes[number]);
                change.after = Some(sizes[(number + 1) % 4]);
                change.capacity = Some(sizes[3]);
            }
            pause.promoted = Some(sizes[2]);
            pause.ages = Some(Ages { desired: Some(sizes[1]), threshold: Some(kind.into()), max: Some(15), bytes: sizes.to_vec() });
            log.tell(Event::Pause(&pause));
            if sizes[1] % 7 == 0 {
                log.tell(Event::Restart);
            }
            log.cycle("CMS-concurrent-sweep", 1, 2, (3, 4));
        }
        let summary = log.summarizer.summary();
        for reading in evidence(&summary).readings() {
            if let Value::Number(number) = reading.value {
                prop_assert!(number.is_finite(), "{}", reading.key.id);
            }
        }
    }
}
