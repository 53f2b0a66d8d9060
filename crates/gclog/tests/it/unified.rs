//! Logs of JDK 9 to 25: every pause line, its name and its duration against what was counted in the text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rungwise_gclog::{Account, Event, Kind, Names, Parser};
use serde_json::Value;

use crate::corpus;

/// Number, sum and longest, nanoseconds.
type Sums = (u64, u64, u64);

/// What a log said.
#[derive(Debug, Default)]
struct Seen {
    /// By name.
    pauses: BTreeMap<String, Sums>,
    /// Those with a duration, by what they were for.
    kinds: BTreeMap<Kind, u64>,
    /// Those within others.
    nested: u64,
    safepoints: u64,
    restarts: u64,
    stalls: u64,
    /// Whole cycles of ZGC, by the word in front, with those that were given up.
    cycles: BTreeMap<String, u64>,
}

fn read(log: &[u8]) -> (Seen, Account) {
    let mut seen = Seen::default();
    let mut sink = |names: &Names, event: Event<'_>| match event {
        Event::Pause(pause) => {
            if let Some(duration) = pause.duration_ns {
                let sums = seen
                    .pauses
                    .entry(names.get(pause.name).to_owned())
                    .or_default();
                *sums = (sums.0 + 1, sums.1 + duration, sums.2.max(duration));
                seen.nested += u64::from(pause.nested);
                *seen.kinds.entry(pause.kind).or_default() += 1;
            }
        }
        Event::Safepoint(_) => seen.safepoints += 1,
        Event::Restart => seen.restarts += 1,
        Event::Stall { .. } => seen.stalls += 1,
        Event::Concurrent(concurrent) if concurrent.cycle && concurrent.cause.is_some() => {
            let word = names.get(concurrent.name).split(' ').next();
            *seen
                .cycles
                .entry(word.unwrap_or_default().to_owned())
                .or_default() += u64::from(!concurrent.aborted);
        }
        _ => {}
    };
    let mut parser = Parser::new();
    parser.push(log, &mut sink);
    let account = parser.finish(&mut sink);
    (seen, account)
}

/// Milliseconds with three places, as nanoseconds.
fn ns(milliseconds: &Value) -> u64 {
    (milliseconds.as_f64().expect("a number") * 1000.0).round() as u64 * 1000
}

fn number(count: &Value, key: &str) -> u64 {
    count.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// What the truth of a file says of its pauses.
fn expected(count: &Value) -> BTreeMap<String, Sums> {
    let Some(Value::Object(by)) = count.get("by") else {
        return BTreeMap::new();
    };
    by.iter()
        .map(|(name, sums)| {
            (
                name.clone(),
                (number(sums, "n"), ns(&sums["sum_ms"]), ns(&sums["max_ms"])),
            )
        })
        .collect()
}

#[test]
fn every_pause_of_every_log_is_counted_and_added_up_exactly() {
    let files = corpus::counted("unified");
    assert!(files.len() > 50, "{} files", files.len());
    let mut wrong = String::new();
    for (name, count) in files {
        let log = corpus::bytes(&name);
        let (seen, account) = read(&log);
        let mut expected = expected(&count);
        let mut safepoints = number(&count, "safepoint_lines");
        match name.as_str() {
            // It prints `6.363 ms` with a space, which the count overlooked.
            "ks_g1gc-time-separated-by-space.log" => {
                let pause = "Pause Young (Concurrent Start) (G1 Humongous Allocation)";
                expected.insert(pause.to_owned(), (1, 6_363_000, 6_363_000));
            }
            // One safepoint's word `Total` is overwritten with garbage.
            "damaged_garbage-bytes.log" => safepoints -= 1,
            _ => {}
        }
        let mut compare = |what: &str, ours: &dyn std::fmt::Debug, truth: &dyn std::fmt::Debug| {
            let (ours, truth) = (format!("{ours:?}"), format!("{truth:?}"));
            if ours != truth {
                let _ = writeln!(wrong, "{name}: {what} {ours}, truth {truth}");
            }
        };
        compare("pauses", &seen.pauses, &expected);
        compare("safepoints", &seen.safepoints, &safepoints);
        compare("bytes", &account.bytes(), &(log.len() as u64));
        for word in ["Garbage", "Major", "Minor"] {
            let truth = number(&count, &format!("cycles_{word}_Collection"));
            compare(word, &seen.cycles.get(word).copied().unwrap_or(0), &truth);
        }
        let restarts = u64::from(name == "damaged_two-jvms-one-file.log");
        compare("restarts", &seen.restarts, &restarts);
        if count.get("alloc_stalls").is_some() {
            compare("stalls", &seen.stalls, &number(&count, "alloc_stalls"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn lines_of_whole_logs_are_all_known() {
    // Cut in the middle of lines, overwritten, or mixed with stack traces of `-Xlog:exceptions`.
    let spoilt = [
        "damaged_garbage-bytes.log",
        "gcviewer_ujl_SampleShenandoahPassiveHeuristics.txt.gz",
        "gcviewer_ujl_SampleShenandoahSeveralSystemGC.txt.gz",
    ];
    let mut unknown = String::new();
    for (name, _) in corpus::counted("unified") {
        if spoilt.contains(&name.as_str()) {
            continue;
        }
        let (_, account) = read(&corpus::bytes(&name));
        if account.unknown.lines > 0 {
            let _ = writeln!(
                unknown,
                "{name}: {} {:?}",
                account.unknown.lines, account.samples
            );
        }
    }
    assert!(unknown.is_empty(), "{unknown}");
}

#[test]
fn collections_within_others_are_nested_and_no_others() {
    for (name, nested) in [
        ("jifa_11CMSScavengeBeforeRemark.log", 1),
        ("jifa_11GenerationalGCInterleave.log", 1),
        ("jifa_11CMSPrintGC.log", 1),
        ("lab_cms-jdk11-remark-eden-full.log.gz", 0),
        ("own_jdk11-g1.log.gz", 0),
        ("own_jdk11-serial.log", 0),
        ("own_jdk17-parallel.log", 0),
    ] {
        assert_eq!(read(&corpus::log(name)).0.nested, nested, "{name}");
    }
    let (seen, _) = read(&corpus::log("lab_cms-jdk11-scavenge-before-remark.log.gz"));
    let inner = seen.pauses["Pause Young (CMS Final Remark)"].0;
    assert_eq!((seen.nested, inner), (inner, seen.pauses["Pause Remark"].0));
}

#[test]
fn the_jvms_own_counters_are_met() {
    let mut checked = 0;
    for (name, file) in corpus::truth() {
        let Some(Value::Object(beans)) = file["truth"]["jvm_mxbeans"].get("gc") else {
            continue;
        };
        if file["truth"]["count"]["style"] != "unified" {
            continue;
        }
        let seen = read(&corpus::bytes(&name)).0;
        let of = |kinds: &[Kind]| -> u64 {
            kinds
                .iter()
                .map(|kind| seen.kinds.get(kind).copied().unwrap_or(0))
                .sum()
        };
        let all: u64 = seen.kinds.values().sum();
        let (mut pauses, mut counts_pauses) = (0, false);
        for (bean, figures) in beans {
            let count = number(figures, "count");
            let ours = match bean.as_str() {
                "Copy" | "ParNew" | "PS Scavenge" | "G1 Young Generation" => {
                    of(&[Kind::Young, Kind::Mixed])
                }
                "MarkSweepCompact" | "PS MarkSweep" | "G1 Old Generation" => of(&[Kind::Full]),
                "G1 Concurrent GC" => of(&[Kind::Remark, Kind::Cleanup]),
                // Of ZGC of JDK 11 the bean of that name counts cycles.
                "ConcurrentMarkSweep" | "ZGC" | "ZGC Cycles" => of(&[Kind::Start]),
                bean if bean.ends_with(" Pauses") => {
                    counts_pauses = true;
                    pauses += count;
                    continue;
                }
                // A cycle may end without all of its pauses.
                bean if bean.ends_with(" Cycles") => continue,
                bean => panic!("{name}: {bean}"),
            };
            assert_eq!(ours, count, "{name}: {bean}");
            checked += 1;
        }
        if counts_pauses {
            // The pause of a collection that the end of the JVM cut short is in the log and not in its counters.
            pauses += u64::from(name == "own_jdk21-genzgc.log");
            assert_eq!(all, pauses, "{name}");
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} counters");
}

/// Seconds, level and tags of a message, and the message: G1 of JDK 11 and 17, safepoints as both print them.
const MESSAGES: &[(f64, &str, &str, &str)] = &[
    (0.012, "info", "gc,heap", "Heap region size: 1M"),
    (0.031, "info", "gc", "Using G1"),
    (
        0.032,
        "info",
        "gc,init",
        "Version: 17.0.15+6-Debian-1deb12u1 (release)",
    ),
    (0.033, "info", "gc,init", "CPUs: 2 total, 2 available"),
    (
        0.600,
        "info",
        "gc,start",
        "GC(0) Pause Young (Concurrent Start) (G1 Evacuation Pause)",
    ),
    (
        0.601,
        "debug",
        "gc,age",
        "GC(0) Desired survivor size 1048576 bytes, new threshold 15 (max threshold 15)",
    ),
    (
        0.602,
        "trace",
        "gc,age",
        "GC(0) - age   1:    1048576 bytes,    1048576 total",
    ),
    (
        0.603,
        "info",
        "gc,phases",
        "GC(0)   Evacuate Collection Set: 2.5ms",
    ),
    (0.604, "info", "gc,heap", "GC(0) Eden regions: 24->0(20)"),
    (
        0.605,
        "info",
        "gc",
        "GC(0) Pause Young (Concurrent Start) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms",
    ),
    (
        0.605,
        "info",
        "gc,cpu",
        "GC(0) User=0.01s Sys=0.00s Real=0.00s",
    ),
    (
        0.606,
        "info",
        "safepoint",
        "Total time for which application threads were stopped: 0.0040000 seconds, Stopping threads took: 0.0001000 seconds",
    ),
    (0.607, "info", "gc", "GC(1) Concurrent Mark Cycle"),
    (
        0.657,
        "info",
        "gc",
        "GC(1) Pause Remark 30M->30M(256M) 2.000ms",
    ),
    (
        0.657,
        "info",
        "safepoint",
        "Safepoint \"G1Concurrent\", Time since last: 50000000 ns, Reaching safepoint: 100000 ns, At safepoint: 2100000 ns, Total: 2200000 ns",
    ),
    (0.700, "info", "gc", "GC(1) Concurrent Mark Cycle 93.000ms"),
    (
        1.000,
        "info",
        "gc",
        "GC(2) Pause Full (System.gc()) 30M->9M(256M) 20.000ms",
    ),
];

/// What `HotSpot` prints in the brackets of its twelve decorations, in its order.
fn decorations(seconds: f64, level: &str, tags: &str) -> [String; 12] {
    let ns = (seconds * 1e9).round() as u64;
    let (ms, thread) = (ns / 1_000_000, 4712 + ns % 3);
    let of_second = ms % 1000;
    let second = ms / 1000;
    [
        format!("2026-11-21T12:38:{second:02}.{of_second:03}+0100"),
        format!("2026-11-21T11:38:{second:02}.{of_second:03}+0000"),
        format!("{seconds:.3}s"),
        format!("{}ms", 1_795_261_080_000 + ms),
        format!("{ms}ms"),
        format!("{}ns", 9_000_000_000_000 + ns),
        format!("{ns}ns"),
        "vm".to_owned(),
        "4711".to_owned(),
        thread.to_string(),
        format!("{level:<5}"),
        format!("{tags:<11}"),
    ]
}

/// The messages with those decorations whose bits are set.
fn decorated(wanted: u32) -> String {
    let mut log = String::new();
    for (seconds, level, tags, message) in MESSAGES {
        let all = decorations(*seconds, level, tags);
        let shown = all.iter().enumerate();
        for (_, text) in shown.filter(|(bit, _)| wanted & (1 << bit) != 0) {
            let _ = write!(log, "[{text}]");
        }
        let space = if wanted == 0 { "" } else { " " };
        let _ = writeln!(log, "{space}{message}");
    }
    log
}

#[test]
fn whatever_stands_before_messages_they_are_the_same() {
    let (all, account) = read(decorated(0xfff).as_bytes());
    assert_eq!((all.pauses.len(), all.safepoints), (3, 2));
    for wanted in 0..0xfff {
        let log = decorated(wanted);
        let (seen, found) = read(log.as_bytes());
        assert_eq!(
            (&seen.pauses, &seen.kinds, seen.safepoints, seen.restarts),
            (&all.pauses, &all.kinds, all.safepoints, 0),
            "{log}"
        );
        assert_eq!(
            (found.understood.lines, found.ignored.lines),
            (account.understood.lines, account.ignored.lines),
            "{log}"
        );
    }
}
