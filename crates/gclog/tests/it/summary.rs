//! Statistics of the corpus against what the JVMs counted themselves, and the evidence that the seed's story needs.

use rungwise_gclog::{Parser, Summarizer, Summary, evidence};
use rungwise_model::evidence::Value::Absent;
use rungwise_model::evidence::{Key, Kind, Subject};
use rungwise_model::keys;
use serde_json::Value;

use crate::corpus;

fn summary(name: &str) -> Summary {
    summary_of(&corpus::log(name))
}

fn summary_of(log: &[u8]) -> Summary {
    let mut summarizer = Summarizer::new();
    let mut parser = Parser::new();
    parser.push(log, &mut |names, event| summarizer.event(names, event));
    parser.finish(&mut |names, event| summarizer.event(names, event));
    let mut summary = summarizer.summary();
    let cited = summary.cited();
    for (number, line) in (1..).zip(log.split(|byte| *byte == b'\n')) {
        if cited.contains(&number) {
            summary.quote(number, &String::from_utf8_lossy(line));
        }
    }
    summary
}

/// How far the estimate may be off. What is counted is room, so objects that waste some count for more; a collector that
/// frees while the application runs hides what is allocated meanwhile.
fn bounds(name: &str) -> Option<(f64, f64)> {
    let moves_concurrently = name.contains("zgc") || name.contains("shen");
    match name {
        // Its humongous objects take whole regions: half as much again.
        "own_jdk11-g1.log.gz" => Some((1.0, 1.5)),
        // A folder.
        "own_jdk25-g1/" => None,
        // Its last line is the sums of the collector, some time after the threads had ended.
        "own_jdk25-genshen.log" => Some((0.9, 1.3)),
        _ if moves_concurrently => Some((0.9, 1.25)),
        _ => Some((0.9, 1.05)),
    }
}

#[test]
fn allocation_is_near_what_the_threads_counted() {
    let mut compared = 0;
    for (name, file) in corpus::truth() {
        let beans = &file["truth"]["jvm_mxbeans"];
        let Some(allocated) = beans.get("worker_alloc_bytes").and_then(Value::as_f64) else {
            continue;
        };
        let Some((low, high)) = bounds(&name) else {
            continue;
        };
        let summary = summary(&name);
        let [run] = &summary.runs[..] else {
            panic!("{name}: {} runs", summary.runs.len())
        };
        let rate = run.allocation.as_ref().expect("collections with sizes");
        let ratio = rate.bytes_per_s * run.seconds.expect("a clock") / allocated;
        assert!(low <= ratio && ratio <= high, "{name}: {ratio:.3}");
        compared += 1;
    }
    assert!(compared >= 19, "{compared} logs");
}

fn number(summary: &Summary, key: &'static Key) -> f64 {
    let evidence = evidence(summary);
    let found = evidence.quantity(key, &Subject::new(Kind::Jvm, 1));
    found
        .unwrap_or_else(|missing| panic!("{}: {}", key.id, missing.why.reason))
        .value
}

fn near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{found} is not {expected}"
    );
}

#[test]
fn the_remark_of_the_seed_was_rescanning_of_a_full_young_generation() {
    let before = summary("seed-cms-remark-before.log");
    near(number(&before, &keys::GC_REMARK_LONGEST), 18.176_961);
    near(
        number(&before, &keys::GC_REMARK_RESCAN),
        18.162_148 / 18.176_961,
    );
    near(
        number(&before, &keys::GC_REMARK_YOUNG),
        4_756_927.0 * 1024.0,
    );
    near(
        number(&before, &keys::GC_CYCLE_OCCUPANCY),
        2_202_742.0 / 3_145_728.0,
    );
    let evidence = evidence(&before);
    let reading = evidence.reading(&keys::GC_REMARK_LONGEST, &Subject::new(Kind::Jvm, 1));
    let line = &reading.expect("it is known").origin.line;
    assert!(
        line.contains("line 13 of the log: 2016-08-27T17:26:24.334+0800")
            && line.contains("18.1769610 secs"),
        "{line}"
    );

    let after = summary("seed-cms-remark-after.log");
    near(number(&after, &keys::GC_PAUSE_LONGEST), 0.126_442);
    near(
        number(&after, &keys::GC_REMARK_LONGEST),
        0.126_442 - 0.066_961,
    );
    near(number(&after, &keys::GC_REMARK_SCAVENGED), 1.0);
    near(number(&after, &keys::GC_REMARK_YOUNG), 70_533.0 * 1024.0);
    near(number(&after, &keys::GC_PROMOTED), 2312.0 * 1024.0);
    near(number(&after, &keys::GC_CYCLES), 1.0);
}

#[test]
fn two_jvms_in_one_file_are_two_runs() {
    let summary = summary("damaged_two-jvms-one-file.log");
    let collectors: Vec<_> = summary
        .runs
        .iter()
        .map(|run| run.jvm.collector.as_deref())
        .collect();
    assert_eq!(collectors, [Some("Parallel"), Some("G1")]);
    assert_eq!(summary.pauses.count, 65);
    let seconds = |run: usize| summary.runs[run].seconds.expect("a clock");
    assert!(seconds(0) < 16.0 && seconds(1) < 22.0);
}

#[test]
fn a_log_without_collections_tells_no_zeros() {
    for name in ["damaged_empty.log", "damaged_not-a-gc-log.log"] {
        let summary = summary(name);
        assert_eq!(summary.runs.len(), 1);
        let evidence = evidence(&summary);
        let of_runs = evidence
            .readings()
            .filter(|reading| reading.key.of == Kind::Jvm);
        for reading in of_runs {
            assert!(
                matches!(&reading.value, Absent(why) if !why.reason.is_empty()),
                "{name}: {reading:?}"
            );
        }
    }
}

#[test]
fn what_pauses_are_made_of_adds_up_to_the_time_that_threads_stood_still() {
    let mut compared = 0;
    for (name, _) in corpus::truth() {
        if name.ends_with('/') || name.contains(".zip") {
            continue;
        }
        for run in summary(&name).runs {
            let pauses = &run.pauses;
            let parts = &pauses.made_of.parts;
            let courses = pauses.courses.values().flat_map(|course| &course.points);
            if run.seconds.is_none() || courses.clone().count() == 0 {
                assert!(parts.is_empty(), "{name}: time without a clock");
                continue;
            }
            let timed: u64 = courses.map(|point| point.count).sum();
            if timed < pauses.all.count {
                // Pauses without a stamp of their own have no place in the course.
                continue;
            }
            let sum: f64 = parts.iter().map(|part| part.total_ms).sum();
            assert!(
                (sum - pauses.all.total_ms).abs() < 1e-6 * pauses.all.total_ms.max(1.0),
                "{name}: {sum} is not {}",
                pauses.all.total_ms
            );
            for part in parts {
                let steps: f64 = part.steps_ms.iter().sum();
                assert!(
                    (steps - part.total_ms).abs() < 1e-6 * steps.max(1.0),
                    "{name}"
                );
            }
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn young_collections_take_no_more_of_a_run_than_all_pauses() {
    let mut compared = 0;
    for (name, _) in corpus::truth() {
        let evidence = evidence(&summary_of(&corpus::bytes(&name)));
        for reading in evidence
            .readings()
            .filter(|reading| reading.key == &keys::GC_YOUNG_SHARE)
        {
            let value = |key| {
                let number = evidence.quantity(key, &reading.subject);
                number.ok().map(|number| number.value)
            };
            let (young, kept) = (value(&keys::GC_YOUNG_SHARE), value(&keys::GC_THROUGHPUT));
            let Some((young, kept)) = young.zip(kept) else {
                continue;
            };
            assert!(young <= 1.0 - kept, "{name}: {young} of {}", 1.0 - kept);
            compared += 1;
        }
    }
    assert!(compared > 90, "{compared}");
}

/// Forty cycles of ZGC as `-Xlog:gc` prints them up to JDK 20, one every five seconds: its end alone.
fn cycles_alone() -> String {
    let begin = "[0.010s][info][gc] Using The Z Garbage Collector\n".to_owned();
    let cycle = |number: u32| {
        format!(
            "[{}.000s][info][gc] GC({number}) Garbage Collection (Allocation Rate) 100M(50%)->20M(10%)\n",
            number * 5 + 5
        )
    };
    begin + &(0..40).map(cycle).collect::<String>()
}

#[test]
fn pauses_that_a_log_does_not_print_are_not_none() {
    let newer = "[0.010s][info][gc] Using The Z Garbage Collector\n\
                 [90.000s][info][gc] GC(0) Minor Collection (Allocation Rate) 100M(50%)->20M(10%) 0.120s\n\
                 [95.000s][info][gc] GC(1) Major Collection (Proactive) 100M(50%)->20M(10%) 0.120s\n";
    for log in [&cycles_alone(), newer] {
        let summary = summary_of(log.as_bytes());
        assert!(!summary.tells_pauses());
        assert_eq!(summary.throughput(), None);
        let evidence = evidence(&summary);
        let jvm = Subject::new(Kind::Jvm, 1);
        for key in [
            &keys::GC_PAUSES,
            &keys::GC_THROUGHPUT,
            &keys::GC_THROUGHPUT_WORST,
            &keys::GC_PAUSE_P99,
            &keys::GC_YOUNGS,
        ] {
            let Some(Absent(why)) = evidence.reading(key, &jvm).map(|reading| &reading.value)
            else {
                panic!("{} is known of {log}", key.id);
            };
            assert!(
                why.remedy.contains("gc+phases"),
                "{}: {}",
                key.id,
                why.remedy
            );
        }
        // ZGC has no such collection, so that there is none is known; and its cycles tell why they came.
        for key in [&keys::GC_FULLS, &keys::GC_EXPLICIT, &keys::GC_METADATA] {
            assert!(number(&summary, key).abs() < f64::EPSILON, "{}", key.id);
        }
    }
}

#[test]
fn what_shenandoah_copies_is_not_taken_for_allocated() {
    // The threads' own counters over the JVM's uptime: `worker_alloc_bytes` and `uptime_ms` of `truth.json`.
    for (log, bytes, seconds) in [
        ("own_jdk11-shenandoah.log", 822_929_280.0, 20.534),
        ("own_jdk25-genshen.log", 945_820_248.0, 22.955),
    ] {
        let summary = summary_of(&corpus::bytes(log));
        let rate = number(&summary, &keys::GC_ALLOCATION_RATE);
        let ratio = rate / (bytes / seconds);
        assert!((0.97..1.03).contains(&ratio), "{log}: {ratio}");
    }
}

#[test]
fn what_lies_in_eden_at_a_remark_of_g1_is_not_alive() {
    let cycle = |at: u32| {
        format!(
            "[{at}.0s][info][gc] GC({at}) Pause Remark {}M->{}M(256M) 1.0ms\n\
             [{at}.5s][info][gc] GC({at}) Pause Young (Normal) (G1 Evacuation Pause) 200M->80M(256M) 2.0ms\n",
            150 + at,
            150 + at
        )
    };
    let log: String = (1..6).map(cycle).collect();
    let summary = summary_of(log.as_bytes());
    let live = summary.runs[0].live.as_ref().expect("a live set");
    assert_eq!(
        (live.samples, live.min_bytes, live.max_bytes),
        (5, 80 << 20, 80 << 20)
    );
    // What is promoted after the mark is garbage of the next one at the earliest.
    let log = log.replace("200M->80M", "200M->190M");
    let live = summary_of(log.as_bytes()).runs[0]
        .live
        .clone()
        .expect("a live set");
    assert_eq!(live.last_bytes, 155 << 20);
}

#[test]
fn what_a_log_has_already_is_not_asked_for() {
    let lacks = |log: &[u8], key| {
        let evidence = evidence(&summary_of(log));
        match evidence
            .reading(key, &Subject::new(Kind::Jvm, 1))
            .map(|r| &r.value)
        {
            Some(Absent(why)) => format!("{}; {}", why.reason, why.remedy),
            other => panic!("{}: {other:?}", key.id),
        }
    };
    // No old cycle has shown what it leaves yet, and no option makes Shenandoah print the CPU time of its pauses.
    let log = corpus::bytes("own_jdk25-genshen.log");
    let live = lacks(&log, &keys::GC_LIVE);
    assert!(
        live.ends_with("collection or cycle finishes; use a longer log"),
        "{live}"
    );
    let cpu = lacks(&log, &keys::GC_CPU_PAUSES);
    assert!(
        cpu.contains("log no CPU time") && !cpu.contains("gc+cpu"),
        "{cpu}"
    );
    // All but the times, which are what is asked for.
    let log = "[GC pause (G1 Evacuation Pause) (young), 0.0054755 secs]\n   \
        [Eden: 24576.0K(34816.0K)->0.0B(10240.0K) Survivors: 5120.0K->3072.0K Heap: 87335.1K(98304.0K)->74240.0K(98304.0K)]\n \
        [Times: user=0.00 sys=0.00, real=0.01 secs] \n"
        .repeat(5)
        + "[Full GC (Allocation Failure)  91M->29M(96M), 0.0065 secs]\n";
    for key in [
        &keys::GC_HEAP_RESIZES,
        &keys::GC_LIVE_SLOPE_LOW,
        &keys::GC_OLD_INTERVAL,
        &keys::GC_YOUNG_INTERVAL,
        &keys::GC_YOUNG_USED,
    ] {
        let why = lacks(log.as_bytes(), key);
        assert!(
            why.ends_with("add -XX:+PrintGCTimeStamps"),
            "{}: {why}",
            key.id
        );
    }
    let sizes = lacks(log.as_bytes(), &keys::GC_OLD_RECLAIMED);
    assert!(sizes.starts_with("G1 before JDK 9 does not log"), "{sizes}");
}

#[test]
fn what_a_full_collection_leaves_of_the_young_generation_is_not_that_of_the_one_before() {
    let log = "1.000: [GC (Allocation Failure) 1.000: [ParNew: 29440K->29440K(29440K), 0.01 secs] 90000K->90000K(94976K), 0.01 secs]\n\
        2.000: [Full GC (Allocation Failure) 2.000: [CMS: 65535K->315K(65536K), 0.005 secs] 94975K->315K(94976K), [Metaspace: 2870K->2870K(1056768K)], 0.005 secs]\n";
    let summary = summary_of(log.as_bytes());
    let young = &summary.runs[0].heap.parts["young"];
    assert_eq!(young.last_bytes, Some(0));
    assert_eq!(young.peak_bytes, 29440 << 10);
    // How full it was when full ones came is none of the sizes that young collections met.
    let later = |log: &str, more: u32| {
        log.replace("1.000:", &format!("{}.000:", 1 + more))
            .replace("2.000:", &format!("{}.000:", 2 + more))
    };
    let long: String = (0..20)
        .map(|at| later(log, 2 * at).replace("94975K->315K", "70000K->315K"))
        .collect();
    let met = number(&summary_of(long.as_bytes()), &keys::GC_YOUNG_USED);
    assert!((met - f64::from(29440 << 10)).abs() < 1.0, "{met}");
}

#[test]
fn a_cycle_without_a_length_is_counted_and_stretches_the_run() {
    let summary = summary_of(cycles_alone().as_bytes());
    let run = &summary.runs[0];
    near(run.seconds.unwrap(), 195.0);
    let phase = &run.concurrent["Garbage Collection (Allocation Rate)"];
    assert_eq!((phase.time.count, phase.unfinished), (0, 40));
    assert_eq!((run.old.cycles, run.old.cycle_length), (40, None));
    near(run.old.interval.unwrap().mean_ms, 5000.0);
    assert_eq!(run.live.as_ref().unwrap().samples, 40);
}

#[test]
fn no_peak_of_the_corpus_is_below_its_mean() {
    let mut compared = 0;
    for name in corpus::logs() {
        for run in &summary_of(&corpus::bytes(&name)).runs {
            let promoted = run.promotion.as_ref().and_then(|all| all.rate.as_ref());
            for rate in [run.allocation.as_ref(), promoted].into_iter().flatten() {
                if let Some(peak) = rate.peak_bytes_per_s {
                    assert!(peak >= rate.bytes_per_s, "{name}: {peak}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 50, "{compared} rates");
}

#[test]
fn a_full_collection_within_a_young_one_tells_the_live_set() {
    // Serial of JDK 11.
    let log = "[1.000s][info][gc,start] GC(6) Pause Young (Allocation Failure)\n\
        [1.000s][info][gc,start] GC(7) Pause Full (Allocation Failure)\n\
        [1.250s][info][gc      ] GC(7) Pause Full (Allocation Failure) 249M->89M(312M) 250.000ms\n\
        [1.250s][info][gc,heap ] GC(6) DefNew: 90112K->0K(90112K)\n\
        [1.250s][info][gc,heap ] GC(6) Tenured: 163840K->91136K(229376K)\n\
        [1.250s][info][gc      ] GC(6) Pause Young (Allocation Failure) 249M->89M(312M) 250.100ms\n";
    let summary = summary_of(log.as_bytes());
    let run = &summary.runs[0];
    let live = run.live.as_ref().expect("a live set");
    assert_eq!((live.samples, live.last_bytes), (1, 89 << 20));
    let freed = 1.0 - 91136.0 / 163_840.0;
    assert!((run.old.reclaimed.expect("sizes") - freed).abs() < 1e-9);
}
