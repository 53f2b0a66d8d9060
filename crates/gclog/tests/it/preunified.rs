//! Logs of JDK 5 to 8 against what is known of them.
//!
//! `truth.json` counts by regular expressions over the text. Where an expression sees less than there is, the test says so
//! beside the file's name; figures that print in steps (`real=0.12`) are held to the step.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rungwise_gclog::{
    Account, Area, Change, Concurrent, Event, Fact, Kind, Names, Parser, Pause, Safepoint,
};
use serde_json::Value;

use crate::corpus;

/// All events of a log, names as text.
#[derive(Default)]
struct Events {
    pauses: Vec<(String, Pause)>,
    concurrent: Vec<(String, Concurrent)>,
    safepoints: Vec<Safepoint>,
    /// Names of all phases of all pauses, with their durations.
    phases: Vec<(String, u64)>,
    ran: u64,
    free_lists: Vec<(u64, u64)>,
    facts: Vec<String>,
    restarts: u64,
    statistics: u64,
    account: Account,
}

fn read(bytes: &[u8]) -> Events {
    let mut events = Events::default();
    let mut parser = Parser::new();
    let mut sink = |names: &Names, event: Event<'_>| match event {
        Event::Pause(pause) => {
            events
                .pauses
                .push((names.get(pause.name).to_owned(), pause.clone()));
            let phases = pause.phases.iter();
            events
                .phases
                .extend(phases.map(|phase| (names.get(phase.name).to_owned(), phase.duration_ns)));
        }
        Event::Concurrent(phase) => events
            .concurrent
            .push((names.get(phase.name).to_owned(), *phase)),
        Event::Safepoint(safepoint) => events.safepoints.push(*safepoint),
        Event::Ran { .. } => events.ran += 1,
        Event::FreeLists { free, largest, .. } => events.free_lists.push((free, largest)),
        Event::Fact(fact) => events.facts.push(format!("{fact:?}")),
        Event::Restart => events.restarts += 1,
        // The script that counted took tables of ZGC and Shenandoah for logs of this age.
        Event::Statistic(_) => events.statistics += 1,
        other => panic!("no log of JDK 8 tells {other:?}"),
    };
    parser.push(bytes, &mut sink);
    events.account = parser.finish(&mut sink);
    events
}

fn of(name: &str) -> Events {
    read(&corpus::log(name))
}

impl Events {
    fn named(&self, names: &[&str]) -> u64 {
        let pauses = self.pauses.iter();
        pauses
            .filter(|(name, _)| names.contains(&name.as_str()))
            .count() as u64
    }

    fn with_phase(&self, name: &str) -> u64 {
        self.phases
            .iter()
            .filter(|(other, _)| other == name)
            .count() as u64
    }

    fn pauses_that(&self, claim: impl Fn(&Pause) -> bool) -> u64 {
        self.pauses.iter().filter(|(_, pause)| claim(pause)).count() as u64
    }

    fn ended(&self, name: &str) -> u64 {
        self.concurrent
            .iter()
            .filter(|(other, _)| other == name)
            .count() as u64
    }

    fn pause(&self, name: &str) -> &Pause {
        let mut pauses = self.pauses.iter().filter(|(other, _)| other == name);
        let (_, pause) = pauses.next().expect("there is such a pause");
        pause
    }

    fn phase(&self, name: &str) -> u64 {
        let mut phases = self.phases.iter().filter(|(other, _)| other == name);
        phases.next().expect("there is such a phase").1
    }
}

/// What this crate makes of a count of `truth.json`; nothing for counts that no event stands for.
fn counted(events: &Events, key: &str) -> Option<u64> {
    // Only a block tells of the young generation and of its spaces.
    let block = |pause: &Pause| {
        let has_before = |area: Area| pause.areas.get(area).before.is_some();
        has_before(Area::Young) && (has_before(Area::Eden) || has_before(Area::Survivor))
    };
    Some(match key {
        "parnew" => events.with_phase("ParNew"),
        "defnew" => events.with_phase("DefNew"),
        "cms_old_stw" => events.with_phase("CMS"),
        "tenured_stw" => events.with_phase("Tenured"),
        "psyoung_minor" => events.named(&["PSYoungGen"]),
        "full_gc_marker" => events.named(&["Full GC"]),
        "ps_old_stw" => events.pauses_that(|pause| {
            pause.kind == Kind::Full && pause.areas.get(Area::Old).after.is_some()
        }),
        "cms_initial_mark" => events.named(&["CMS-initial-mark"]),
        "cms_remark" => events.named(&["CMS-remark"]),
        "cms_sweep_done" => events.ended("CMS-concurrent-sweep"),
        "concurrent_mode_failure" => {
            events.pauses_that(|pause| pause.troubles.concurrent_mode_failure)
        }
        "promotion_failed" => events.pauses_that(|pause| pause.troubles.promotion_failed),
        "g1_young" => events.named(&["GC pause (young)", "GC pause (young) (initial-mark)"]),
        "g1_mixed" => events.named(&["GC pause (mixed)"]),
        "g1_remark" => events.named(&["GC remark"]),
        "g1_cleanup" => events.named(&["GC cleanup"]),
        "to_space" => events.pauses_that(|pause| pause.troubles.evacuation_failed),
        "app_stopped_lines" => events.safepoints.len() as u64,
        "app_time_lines" => events.ran,
        "heap_before_gc" => events.pauses_that(block),
        "tenuring_blocks" => events.pauses_that(|pause| pause.ages.is_some()),
        // CPU times stand behind pauses and behind concurrent phases of CMS, from JDK 6 on with all of them.
        "times_blocks" => {
            let concurrent = events.concurrent.iter();
            events.pauses_that(|pause| pause.cpu.is_some())
                + concurrent
                    .filter(|(_, phase)| phase.cpu_ns.is_some())
                    .count() as u64
        }
        _ => return None,
    })
}

/// Counts where the regular expressions of `truth.json` see less, or other things, than the text holds.
const SEEN_OTHERWISE: &[(&str, &str, u64, &str)] = &[
    (
        "gctoolkit_preunified_g1gc_corrupted_no_young_intro.log",
        "times_blocks",
        0,
        "the pause's beginning is cut off, so that its CPU times belong to nothing",
    ),
    (
        "jifa_8CMSParser.log",
        "parnew",
        7,
        "`[ParNew7.236: [SoftReference` is one as well",
    ),
    (
        "jifa_8CMSParser.log",
        "cms_old_stw",
        2,
        "`[CMS[YG occupancy` is one as well",
    ),
    (
        "gctoolkit_preunified_cms_parnew_details_tenuring_par.cms.wd.wt.nopp.log.gz",
        "parnew",
        1333,
        "the last one is cut off",
    ),
];

#[test]
fn every_count_of_the_truth_is_met() {
    let mut checked = BTreeMap::<String, u64>::new();
    let mut offenders = Vec::new();
    for (name, truth) in corpus::counted("preunified") {
        let events = of(&name);
        for (key, expected) in truth.as_object().unwrap() {
            let Some(found) = counted(&events, key) else {
                continue;
            };
            let otherwise = SEEN_OTHERWISE
                .iter()
                .find(|(file, count, ..)| *file == name && count == key);
            let expected = otherwise.map_or_else(|| expected.as_u64().unwrap(), |row| row.2);
            if found != expected {
                offenders.push(format!("{name}: {key} is {expected}, found {found}"));
            }
            *checked.entry(key.clone()).or_default() += 1;
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
    assert_eq!(checked.len(), 22, "kinds of counts: {checked:?}");
}

#[test]
fn the_longest_pause_of_the_truth_is_met_to_the_nanosecond() {
    let mut files = 0;
    for (name, truth) in corpus::counted("preunified") {
        let events = of(&name);
        let longest = events
            .pauses
            .iter()
            .filter_map(|(_, pause)| pause.duration_ns)
            .max();
        if let Some(seconds) = truth.get("max_stw_pause_s").and_then(Value::as_f64) {
            // The text has seven or eight places, which a double keeps.
            let expected = (seconds * 1e9).round() as u64;
            assert_eq!(longest, Some(expected), "{name}");
            files += 1;
        }
        let real = events
            .pauses
            .iter()
            .filter_map(|(_, pause)| pause.cpu.map(|cpu| cpu.real_ns))
            .max();
        if let Some(seconds) = truth.get("max_real_s").and_then(Value::as_f64) {
            let expected = (seconds * 1e9).round() as u64;
            assert_eq!(real, Some(expected), "{name}");
            files += 1;
        }
    }
    assert_eq!(files, 67, "files with a longest pause");
}

#[test]
fn the_jvms_own_counters_are_met() {
    // Collections as its MXBeans counted them: young ones and, of CMS, cycles and stopped collections of the old.
    for (name, young, old) in [
        ("own_jdk8-serial.log", "DefNew", "Tenured"),
        ("own_jdk8-cms-cmf.log", "ParNew", "CMS"),
        ("own_jdk8-cms-seedflags.log", "ParNew", "CMS"),
        ("own_jdk8-cms-scavenge-before-remark.log", "ParNew", "CMS"),
    ] {
        let events = of(name);
        let (_, truth) = corpus::truth()
            .into_iter()
            .find(|(file, _)| file == name)
            .unwrap();
        let beans = truth["truth"]["jvm_mxbeans"]["gc"].as_object().unwrap();
        let count = |bean: &str| beans[bean]["count"].as_u64().unwrap();
        if old == "Tenured" {
            assert_eq!(events.with_phase(young), count("Copy"), "{name}");
            assert_eq!(events.with_phase(old), count("MarkSweepCompact"), "{name}");
        } else {
            assert_eq!(events.with_phase(young), count("ParNew"), "{name}");
            let cycles = events.ended("CMS-concurrent-sweep");
            assert_eq!(
                events.with_phase(old) + cycles,
                count("ConcurrentMarkSweep"),
                "{name}"
            );
        }
    }
    let events = of("own_jdk8-parallel-adaptive.log");
    assert_eq!(
        (events.named(&["PSYoungGen"]), events.named(&["Full GC"])),
        (38, 10)
    );
}

const KIB: u64 = 1024;

/// A remark of 18 seconds, because the young generation was full.
#[test]
fn the_long_remark_of_the_published_case_is_read_off_exactly() {
    let events = of("seed-cms-remark-before.log");
    let remark = events.pause("CMS-remark");
    assert_eq!(remark.duration_ns, Some(18_176_961_000));
    assert_eq!(remark.kind, Kind::Remark);
    assert_eq!(
        remark.young_occupancy,
        Some((4_756_927 * KIB, 6_606_080 * KIB))
    );
    assert_eq!(remark.began.uptime_ns, Some(261_986_516_000_000));
    assert_eq!(remark.began.wall_ns, Some(1_472_289_966_161_000_000));
    let used = |area: Area| remark.areas.get(area).before;
    assert_eq!(used(Area::Old), Some(2_202_742 * KIB));
    assert_eq!(used(Area::Heap), Some(6_959_670 * KIB));
    assert_eq!(remark.cpu.map(|cpu| cpu.user_ns), Some(71_370_000_000));
    let phases: Vec<(&str, u64)> = events
        .phases
        .iter()
        .map(|(name, duration)| (name.as_str(), *duration))
        .collect();
    assert_eq!(
        phases,
        [
            ("Rescan (parallel)", 18_162_148_000),
            ("weak refs processing", 75_000),
            ("class unloading", 6_976_000),
            ("scrub symbol table", 4_002_000),
            ("scrub string table", 924_000),
        ]
    );
    // `CMS: abort preclean due to time` stands before its stamp.
    let (_, preclean) = &events.concurrent[2];
    assert!(preclean.aborted);
    assert_eq!(preclean.duration_ns, Some(5_210_000_000));
    assert_eq!(preclean.began.uptime_ns, Some(261_981_304_000_000));
    // The line with two dates in a row holds one, the start of the sweep stands on the next.
    assert_eq!(events.ran, 4);
    assert_eq!(events.pauses.len(), 2);
    assert!(
        events.account.samples.is_empty(),
        "{:?}",
        events.account.samples
    );
}

/// The same service with a young collection before the remark.
#[test]
fn the_short_remark_of_the_published_case_holds_a_young_collection() {
    let events = of("seed-cms-remark-after.log");
    let remark = events.pause("CMS-remark");
    assert_eq!(remark.duration_ns, Some(126_442_000));
    assert_eq!(
        remark.young_occupancy,
        Some((5_803_756 * KIB, 11_953_792 * KIB))
    );
    assert!(!remark.nested);
    let young = events.pause("ParNew");
    assert!(young.nested);
    assert_eq!(young.duration_ns, Some(66_961_000));
    assert_eq!(
        young.areas.get(Area::Young),
        Change {
            before: Some(5_803_756 * KIB),
            after: Some(70_533 * KIB),
            capacity: Some(11_953_792 * KIB),
        }
    );
    assert_eq!(young.promoted, Some(2312 * KIB));
    assert_eq!(events.phase("Rescan (parallel)"), 39_269_000);
    // The author's own lines are nobody's.
    let unknown: Vec<u64> = events
        .account
        .samples
        .iter()
        .map(|sample| sample.line)
        .collect();
    assert_eq!(unknown, [10, 11, 14, 15]);
}

#[test]
fn a_pause_within_a_pause_is_not_added_twice() {
    let events = of("own_jdk8-cms-scavenge-before-remark.log");
    let total = |nested: bool| -> u64 {
        events
            .pauses
            .iter()
            .filter(|(_, pause)| pause.nested == nested)
            .filter_map(|(_, pause)| pause.duration_ns)
            .sum()
    };
    assert_eq!(events.pauses_that(|pause| pause.nested), 7);
    let remarks: u64 = events
        .pauses
        .iter()
        .filter(|(name, _)| name == "CMS-remark")
        .filter_map(|(_, pause)| pause.duration_ns)
        .sum();
    // Every one of them lies within a remark, which is longer.
    assert!(total(true) < remarks && remarks < total(false));
    for (name, pause) in &events.pauses {
        assert!(!pause.nested || name == "ParNew", "{name}");
    }
}

#[test]
fn what_was_promoted_by_the_sizes_is_what_the_jvm_counted() {
    let events = of("own_jdk8-parallel-adaptive.log");
    let mut pauses = 0;
    for (_, pause) in events
        .pauses
        .iter()
        .filter(|(name, _)| name == "PSYoungGen")
    {
        // `AdaptiveSizePolicy::update_averages: ... promoted: 4767744`, in bytes.
        let counted = pause.promoted.expect("the policy prints it");
        let freed = |area: Area| {
            let change = pause.areas.get(area);
            change.before.zip(change.after).map(|(b, a)| b.abs_diff(a))
        };
        let (young, heap) = (freed(Area::Young).unwrap(), freed(Area::Heap).unwrap());
        assert!((young - heap).abs_diff(counted) <= 2 * KIB);
        pauses += 1;
    }
    assert_eq!(pauses, 38);
}

#[test]
fn blocks_of_the_heap_give_what_the_pause_does_not_print() {
    let events = of("own_jdk8-cms-scavenge-before-remark.log");
    let young = events.pause("ParNew");
    let old = young.areas.get(Area::Old);
    let eden = young.areas.get(Area::Eden);
    assert!(old.before.is_some() && old.after.is_some());
    // What ParNew says of the young generation is Eden and the survivor space of the block.
    let survivor = young.areas.get(Area::Survivor);
    let sum = eden.before.unwrap() + survivor.before.unwrap();
    let printed = young.areas.get(Area::Young).before.unwrap();
    assert!(sum.abs_diff(printed) < KIB, "{sum} and {printed}");
    assert_eq!(eden.after, Some(0));
}

#[test]
fn two_jvms_in_one_file_are_distinguished() {
    let mut both = corpus::log("own_jdk8-cms-seedflags.log");
    both.extend(corpus::log("own_jdk8-serial.log"));
    let events = read(&both);
    assert_eq!(events.restarts, 1);
    let alone = [of("own_jdk8-cms-seedflags.log"), of("own_jdk8-serial.log")];
    let pauses: usize = alone.iter().map(|log| log.pauses.len()).sum();
    assert_eq!(events.pauses.len(), pauses);
    let facts: Vec<&String> = alone.iter().flat_map(|log| &log.facts).collect();
    assert_eq!(events.facts.iter().collect::<Vec<_>>(), facts);
}

#[test]
fn files_of_a_rotated_set_are_one_jvm() {
    // JDK 8 prints its header into every file.
    let log = corpus::log("own_jdk8-cms-cmf.log");
    let header: Vec<u8> = log
        .split_inclusive(|byte| *byte == b'\n')
        .take(3)
        .flatten()
        .copied()
        .collect();
    let half = log[..log.len() / 2]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let mut set = log[..half].to_vec();
    set.extend(b"2026-11-21 11:37:30 GC log file created gc.log.1\n");
    set.extend(header);
    set.extend(&log[half..]);
    let (whole, set) = (read(&log), read(&set));
    assert_eq!(set.restarts, 0);
    assert_eq!(set.safepoints.len(), whole.safepoints.len());
    assert_eq!(set.pauses.len(), whole.pauses.len());
}

#[test]
fn a_log_that_is_cut_at_any_line_gives_what_is_there() {
    let log = corpus::log("jifa_8CMSParser.log");
    let whole = read(&log);
    let ends: Vec<usize> = (0..log.len()).filter(|at| log[*at] == b'\n').collect();
    for end in &ends {
        let head = read(&log[..*end]);
        let tail = read(&log[*end + 1..]);
        // Of a pause that is cut in two, both halves may be reported, or none that has its name and its figure.
        let pauses = head.pauses.len() + tail.pauses.len();
        assert!(pauses.abs_diff(whole.pauses.len()) <= 1, "cut at {end}");
    }
    assert!(ends.len() > 30);
}

#[test]
fn holes_and_lines_of_the_application_change_no_event() {
    let log = corpus::log("own_jdk8-cms-seedflags.log");
    let clean = read(&log);
    let mut mixed = vec![0; 4096];
    for (number, line) in log.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if number % 3 == 0 {
            mixed.extend(
                b"12:00:01.234 INFO [main] o.s.Boot - [worker-1] took 17.123: ok, 0.5 done\n",
            );
        }
        mixed.extend(line);
    }
    let mixed = read(&mixed);
    let pauses_of = |events: &Events| -> Vec<(String, Option<u64>, Option<u64>)> {
        events
            .pauses
            .iter()
            .map(|(name, pause)| (name.clone(), pause.duration_ns, pause.began.uptime_ns))
            .collect()
    };
    assert_eq!(pauses_of(&mixed), pauses_of(&clean));
    assert_eq!(mixed.ran, clean.ran);
    assert_eq!(mixed.restarts, 0);
    assert_eq!(mixed.account.nul_bytes, 4096);
    let added = 1 + log.split(|byte| *byte == b'\n').count() as u64 / 3;
    assert!(mixed.account.unknown.lines.abs_diff(added) <= 1);
}

/// Each flag and manner that changes the form of lines, in a log of the corpus that has it.
#[test]
fn every_flag_and_manner_is_read_where_the_corpus_has_it() {
    // Decimal commas with PrintTenuringDistribution, PrintAdaptiveSizePolicy and PrintGCApplicationStoppedTime.
    let comma = of("gcviewer_SampleSun1_7_0G1_AppStopped_TenuringDist_Ergonomics_comma.txt");
    let first = &comma.pauses[0].1;
    assert_eq!(first.duration_ns, Some(28_220_000));
    assert!(first.ages.is_some() && !comma.safepoints.is_empty());
    // PrintGCID.
    let numbered = of("gcviewer_SampleSun1_8_0G1PrintGCID.txt");
    let ids: Vec<_> = numbered
        .pauses
        .iter()
        .filter_map(|(_, pause)| pause.id)
        .collect();
    assert_eq!(ids.len(), numbered.pauses.len());
    // A young collection that turned into a full one, and the remark of a cycle under way, print late what came early.
    assert_eq!(ids, [0, 1, 2, 3, 5, 4, 4]);
    // Incremental CMS prints its duty cycle behind each pause.
    let incremental = of("gcviewer_SampleSun1_5_0CMS_IncrementalPacing.txt");
    assert!(incremental.ended("CMS-concurrent-sweep") > 0);
    assert_eq!(incremental.account.unknown.lines, 0);
    // PrintReferenceGC.
    let references =
        of("gctoolkit_preunified_g1gc_details_reference_post17040_gc_with_overflow.log.gz");
    let kinds = references
        .pauses
        .iter()
        .map(|(_, pause)| pause.references.len());
    assert!(kinds.max() >= Some(5));
    // A log that begins within a pause.
    let beheaded = of("gctoolkit_preunified_g1gc_corrupted_no_young_intro.log");
    let end = beheaded.account.begins_within.expect("it says so");
    assert_eq!((end.line, &*end.text), (15, ", 0,0854230 secs]"));
    // Two dates in front of one line, and a preclean that ended by its time, are in the published case.
    let published = String::from_utf8(corpus::log("seed-cms-remark-before.log")).unwrap();
    assert!(published.contains("CMS: abort preclean due to time 2016-08-27T"));
    assert_eq!(of("seed-cms-remark-after.log").account.begins_within, None);
}

#[test]
fn sums_of_zgc_and_shenandoah_are_read_where_nothing_else_is_left() {
    for (name, rows) in [
        ("garbagecat_dataset258.txt", 24),
        ("garbagecat_dataset273.txt", 56),
        ("garbagecat_dataset274.txt", 54),
    ] {
        let events = of(name);
        assert_eq!(
            (events.statistics, events.account.unknown.lines),
            (rows, 0),
            "{name}"
        );
        assert!(events.pauses.is_empty());
    }
}

#[test]
fn nothing_that_hotspot_prints_is_unknown() {
    // Files whose unknown lines are damage or somebody else's: their number.
    let others = [
        ("damaged_not-a-gc-log.log", 100),
        ("gctoolkit_preunified_g1gc_corrupted_no_young_intro.log", 1),
        ("gctoolkit_preunified_g1gc_corrupted_rollsbackclock.log", 1),
    ];
    for (name, _) in corpus::counted("preunified") {
        let events = of(&name);
        let expected = others
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(0, |(_, lines)| *lines);
        assert_eq!(
            events.account.unknown.lines, expected,
            "{name}: {:?}",
            events.account.samples
        );
    }
}

#[test]
fn free_lists_of_the_old_generation_are_reported_in_bytes() {
    let events = of("own_jdk8-cms-cmf.log");
    // 12 582 912 words of 8 bytes: the whole old generation of 96 MiB, in one block.
    assert_eq!(events.free_lists[0], (96 << 20, 96 << 20));
    // `Before GC:` and `After GC:` of each of the 48 collections.
    assert_eq!(events.free_lists.len(), 96);
    // With `PrintFLSStatistics=2` the small blocks count as well, the permanent generation does not.
    let both = of("gcviewer_SampleSun1_7_0CmsPrintFlsStats2.txt");
    assert_eq!(both.free_lists.len(), 6);
    assert_eq!(both.free_lists[2], ((21_654 + 28_611) * 8, 21_654 * 8));
}

#[test]
fn a_header_tells_the_jvm_its_flags_and_its_machine() {
    let events = of("own_jdk8-cms-cmf.log");
    for fact in [
        r#"Version("1.8.0_504-8u504-ga-1-b01")"#,
        "Memory(25276510208)",
        "Swap(0)",
        "MaxHeap(134217728)",
        "ParallelWorkers(2)",
        "Collector(Cms)",
    ] {
        assert!(events.facts.iter().any(|other| other == fact), "{fact}");
    }
    let fact = format!("{:?}", Fact::Swap(0));
    assert_eq!(
        events.facts.iter().filter(|other| **other == fact).count(),
        1
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damage_anywhere_loses_no_byte_and_stops_nothing(
        file in prop::sample::select(vec![
            "own_jdk8-cms-cmf.log",
            "jifa_8CMSParser.log",
            "jifa_8G1LogConcurrencyProblem.log",
            "gcviewer_SampleSun1_6_0G1_PrintHeapAtGC.txt",
            "gcviewer_SampleOpenJdk1_8_0-332.txt",
        ]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, "[\\[\\](){}:,.0-9KMsec \\n\\x00-\\x1f-]{0,12}"), 1..30),
    ) {
        let mut log = corpus::log(file);
        for (at, removed, added) in edits {
            let at = at.index(log.len());
            let end = (at + removed).min(log.len() - 1).max(at);
            log.splice(at..end, added.into_bytes());
        }
        let account = read(&log).account;
        prop_assert_eq!(account.bytes(), log.len() as u64);
    }
}
