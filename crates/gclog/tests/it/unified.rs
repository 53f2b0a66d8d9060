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
