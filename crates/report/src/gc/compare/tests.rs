//! Invented runs in, sentences and statistics out.

use rungwise_model::gc::{Course, Moment, Point, Promotion, Rate, Scavenge, Spread, Stalls};

use super::*;

/// Pauses of one kind in 100 seconds, one every half second, each of its length.
fn run(kind: &'static str, lengths: &[f64]) -> (Run, BTreeMap<&'static str, Vec<f64>>) {
    let mut run = Run {
        began_s: Some(0.0),
        seconds: Some(100.0),
        ..Run::default()
    };
    let points = lengths.iter().enumerate().map(|(index, ms)| Point {
        at_s: index as f64 * 100.0 / lengths.len() as f64,
        min: *ms,
        mean: *ms,
        max: *ms,
        count: 1,
    });
    let course = Course {
        step_s: 0.5,
        points: points.collect(),
    };
    let spread = Spread {
        count: lengths.len() as u64,
        total_ms: lengths.iter().sum(),
        mean_ms: lengths.iter().sum::<f64>() / lengths.len() as f64,
        longest_ms: lengths.iter().copied().fold(0.0, f64::max),
        ..Spread::default()
    };
    run.pauses.all = spread;
    run.pauses.by_kind.insert(kind.to_owned(), spread);
    run.pauses.courses.insert(kind.to_owned(), course);
    (run, BTreeMap::from([(kind, lengths.to_vec())]))
}

/// Lengths around ten that go up and down, so many times as long.
fn noisy(count: u64, factor: f64) -> Vec<f64> {
    let noise = |index: u64| (index * 7919 % 101) as f64 / 10.0;
    (0..count)
        .map(|index| factor * (10.0 + noise(index)))
        .collect()
}

type Made = (Run, BTreeMap<&'static str, Vec<f64>>);

fn side(made: &[Made]) -> Side<'_> {
    let logs = made.iter().map(|(run, pauses)| Log {
        name: "gc.log".to_owned(),
        run,
        pauses,
    });
    Side {
        logs: logs.collect(),
    }
}

fn sentence(before: &Side<'_>, after: &Side<'_>, options: &[Changed]) -> String {
    clauses(before, after, options).join("; ")
}

fn find<'a>(metrics: &'a [Metric], name: &str) -> &'a Metric {
    let found = metrics.iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in {metrics:#?}"))
}

#[test]
fn a_difference_within_the_noise_is_not_called_one() {
    let before = [run("young", &noisy(200, 1.0))];
    let compared = |factor| {
        let after = [run("young", &noisy(200, factor))];
        sentence(&side(&before), &side(&after), &[])
    };
    let same = compared(1.01);
    assert!(same.contains("no significant difference"), "{same}");
    let longer = compared(5.0);
    assert!(
        longer.contains("5.00 times longer") && !longer.contains("no significant"),
        "{longer}"
    );
}

#[test]
fn of_a_handful_of_pauses_there_is_no_interval() {
    let (before, after) = ([run("full", &[10.0, 12.0])], [run("full", &[30.0, 36.0])]);
    let text = sentence(&side(&before), &side(&after), &[]);
    assert!(text.contains("too few for an interval"), "{text}");
    let all = metrics(&side(&before), &side(&after), &[]);
    assert_eq!(find(&all, "full: median").ratio, None);
}

#[test]
fn groups_of_logs_have_an_interval_of_what_one_log_has_none() {
    let group = |factor: f64| -> Vec<Made> {
        (0..5)
            .map(|index| run("young", &noisy(60, factor + f64::from(index) / 50.0)))
            .collect()
    };
    let (before, after) = (group(1.0), group(2.0));
    let all = metrics(&side(&before), &side(&after), &[]);
    let longest = find(&all, "young: longest");
    let ratio = longest.ratio.expect("five logs of each side");
    assert!(
        ratio.low > 1.5 && ratio.low < ratio.point && ratio.high < 2.5,
        "{ratio:?}"
    );
    assert!(
        longest.before.as_ref().unwrap().contains(" to "),
        "{longest:?}"
    );
    let alone = metrics(&side(&before[..1]), &side(&after[..1]), &[]);
    assert_eq!(find(&alone, "young: longest").ratio, None);
    assert!(find(&alone, "young: median").ratio.is_some());
}

#[test]
fn one_in_a_hundred_has_an_interval_of_many_pauses_and_the_longest_says_why_it_has_none() {
    let lengths = |count: u64, factor: f64| -> Vec<f64> {
        let noise = |index: u64| (index * 7919 % count) as f64 / count as f64;
        (0..count)
            .map(|index| factor * (1.0 + noise(index)))
            .collect()
    };
    let metrics_of = |count| {
        let before = [run("young", &lengths(count, 1.0))];
        let after = [run("young", &lengths(count, 3.0))];
        metrics(&side(&before), &side(&after), &[])
    };
    let many = metrics_of(3000);
    let ratio = find(&many, "young: p99").ratio.expect("thirty are longer");
    assert!(
        ratio.low < 3.0 && ratio.low > 2.9 && ratio.high < 3.1,
        "{ratio:?}"
    );
    let why = |all: &[Metric], name: &str| find(all, name).no_ratio.clone().unwrap_or_default();
    assert_eq!(
        why(&metrics_of(300), "young: p99"),
        "too few longer pauses in a log"
    );
    assert!(why(&many, "young: longest").starts_with("a maximum"));
    assert_eq!(find(&many, "young: p99").no_ratio, None);
}

#[test]
fn more_pauses_of_the_same_length_are_reported_with_how_sure_that_is() {
    let (before, after) = (
        [run("young", &noisy(200, 1.0))],
        [run("young", &noisy(400, 1.0))],
    );
    let all = metrics(&side(&before), &side(&after), &[]);
    let ratio = find(&all, "young: per minute").ratio.unwrap();
    assert!(ratio.low > 1.9 && ratio.high < 2.1, "{ratio:?}");
}

#[test]
fn pauses_of_equal_length_that_come_less_often_are_a_difference() {
    let (before, after) = (
        [run("young", &noisy(800, 1.0))],
        [run("young", &noisy(100, 1.0))],
    );
    let sentence = sentence(&side(&before), &side(&after), &[]);
    assert!(
        sentence.contains("60.0 times per minute instead of 480, 8.00 times less often (95 %"),
        "{sentence}"
    );
    // How long each lasts stands behind, and is no verdict on the whole.
    let (rate, _) = sentence.split_once(", and their median").unwrap();
    assert!(!rate.contains("no significant difference"), "{sentence}");
}

#[test]
fn eleven_hundred_pauses_a_minute_against_131_are_no_proof_of_no_difference() {
    let (before, after) = (
        [run("young", &noisy(1833, 1.0))],
        [run("young", &noisy(218, 1.05))],
    );
    let sentence = sentence(&side(&before), &side(&after), &[]);
    assert!(
        sentence.contains("131 times per minute instead of")
            && sentence.contains("8.41 times less often"),
        "{sentence}"
    );
    let (rate, _) = sentence.split_once(", and their median").unwrap();
    assert!(!rate.contains("no significant difference"), "{sentence}");
    assert!(!sentence.contains("prove"), "{sentence}");
}

/// A remark with a young collection within it, or without.
fn remarked(longest_ms: f64, proper_ms: f64, young: u64, scavenged: u64) -> [Made; 1] {
    let mut made = run("remark", &[longest_ms]);
    made.0.remark = Some(Remarks {
        time: Spread {
            p50_ms: proper_ms,
            ..Spread::default()
        },
        longest_young_bytes: Some(young << 10),
        scavenged,
        scavenge: (scavenged > 0).then_some(Scavenge {
            before_bytes: Some(5_803_756 << 10),
            after_bytes: Some(70_533 << 10),
            duration_ms: longest_ms - proper_ms,
            remark_ms: longest_ms,
        }),
        ..Remarks::default()
    });
    [made]
}

#[test]
fn one_changed_option_is_named_and_whether_it_did_what_it_is_for() {
    let option = Changed {
        name: "CMSScavengeBeforeRemark".to_owned(),
        before: None,
        after: Some("on".to_owned()),
    };
    let compared = |after_ms, options: &[Changed]| {
        let before = remarked(18_180.0, 18_180.0, 4_756_927, 0);
        let after = remarked(after_ms, 59.5, 70_533, 1);
        sentence(&side(&before), &side(&after), options).replace(numbers::THIN, " ")
    };
    let did = compared(126.0, std::slice::from_ref(&option));
    for words in [
        "with CMSScavengeBeforeRemark on: the longest remark",
        "18.2 s to 126 ms, 144 times shorter",
        "scan 4.54 GiB of the young generation before and 68.9 MiB after",
        "shrinks the young generation from 5 803 756 K to 70 533 K",
        "that collection costs 66.5 ms of the 126 ms",
        "the remark itself went from 18.2 s to 59.5 ms",
        "CMSScavengeBeforeRemark is meant for shorter remarks, and achieved that here",
    ] {
        assert!(did.contains(words), "{words} is not in {did}");
    }
    let not = compared(20_000.0, &[option]);
    assert!(
        not.contains("and did not achieve that here") && not.contains("although a young"),
        "{not}"
    );
    // The logs show it where their headers do not tell the options.
    assert!(compared(126.0, &[]).contains("CMSScavengeBeforeRemark is meant for"));
}

#[test]
fn what_got_worse_is_named_as_the_cost() {
    let both = |young: f64, full: f64| -> [Made; 1] {
        let (mut made, other) = (run("young", &[young; 100]), run("full", &[full; 10]));
        made.0.pauses.by_kind.extend(other.0.pauses.by_kind);
        made.0.pauses.courses.extend(other.0.pauses.courses);
        made.1.extend(other.1);
        [made]
    };
    let compared = |after: [Made; 1]| sentence(&side(&both(10.0, 900.0)), &side(&after), &[]);
    let dearer = compared(both(30.0, 100.0));
    assert!(
        dearer.starts_with("median of full pauses went from"),
        "{dearer}"
    );
    assert!(dearer.contains("cost: young pauses take"), "{dearer}");
    let free = compared(both(10.0, 100.0));
    let none = "no other kind of pause takes 60.0 ms more per minute";
    assert!(free.replace(numbers::THIN, " ").contains(none), "{free}");
    let (before, after) = (both(100.0, 900.0), both(105.0, 100.0));
    let little = sentence(&side(&before), &side(&after), &[]).replace(numbers::THIN, " ");
    assert!(
        little.contains(
            "young pauses take 6.30 s per minute instead of 6.00 s, less than a tenth more"
        ),
        "{little}"
    );
}

#[test]
fn a_cost_is_named_however_long_the_pause_was_that_it_was_paid_for() {
    let both = |remark: f64, start: f64| -> [Made; 1] {
        let (mut made, other) = (run("remark", &[remark; 4]), run("start", &[start; 4]));
        made.0.pauses.by_kind.extend(other.0.pauses.by_kind);
        made.0.pauses.courses.extend(other.0.pauses.courses);
        made.1.extend(other.1);
        [made]
    };
    let (before, after) = (both(18_180.0, 56.1), both(126.0, 147.0));
    let text = sentence(&side(&before), &side(&after), &[]).replace(numbers::THIN, " ");
    assert!(
        text.contains(
            "cost: start pauses take 353 ms per minute instead of 135 ms (4 before and 4 after: may be chance)"
        ),
        "{text}"
    );
}

#[test]
fn equal_pauses_are_not_longer() {
    let made = [run("young", &noisy(200, 1.0))];
    let text = sentence(&side(&made), &side(&made), &[]);
    assert!(
        text.contains("on both sides") && !text.contains("longer"),
        "{text}"
    );
}

#[test]
fn a_row_is_of_the_same_pauses_as_its_interval_and_nested_ones_have_their_own() {
    let with = |nested: u64| -> [Made; 1] {
        let mut made = run("young", &noisy(100, 1.0));
        let all = made.0.pauses.by_kind.get_mut("young").unwrap();
        all.count += nested;
        all.longest_ms = 1e3;
        [made]
    };
    let (before, after) = (with(10), with(60));
    let all = metrics(&side(&before), &side(&after), &[]);
    assert!(
        all.iter()
            .all(|metric| metric.name == "young: nested, per minute"),
        "{all:#?}"
    );
    let nested = &all[0];
    assert_eq!(
        (nested.before_value, nested.after_value),
        (Some(6.0), Some(36.0))
    );
    assert_eq!(nested.unit.as_deref(), Some("per_min"));
}

#[test]
fn numbers_stand_beside_their_texts() {
    let (before, after) = (
        [run("young", &noisy(200, 1.0))],
        [run("young", &noisy(200, 2.0))],
    );
    let all = metrics(&side(&before), &side(&after), &[]);
    let longest = find(&all, "young: longest");
    assert_eq!(
        (longest.before_value, longest.after_value),
        (Some(20.0), Some(40.0))
    );
    assert_eq!(longest.unit.as_deref(), Some("ms"));
    assert_eq!(longest.before.as_deref(), Some("20.0\u{202f}ms"));
}

/// The same run with so much allocated and promoted, and so many old cycles.
fn loaded(lengths: &[f64], allocated: f64, promoted: f64, cycles: u64) -> [Made; 1] {
    // Twice a second, up and down by a third.
    let rate = |bytes_per_s: f64| {
        let points = (0..200).map(|index| {
            let mean = bytes_per_s * (1.0 + f64::from(index % 3 - 1) / 3.0);
            Point {
                at_s: f64::from(index) / 2.0,
                min: mean,
                mean,
                max: mean,
                count: 1,
            }
        });
        Rate {
            bytes_per_s,
            course: Course {
                step_s: 0.5,
                points: points.collect(),
            },
            ..Rate::default()
        }
    };
    let mut made = run("young", lengths);
    made.0.allocation = Some(rate(allocated));
    made.0.promotion = Some(Promotion {
        rate: Some(rate(promoted)),
        collections: 100,
        mean_bytes: promoted,
        largest_bytes: promoted as u64,
        largest: Moment::default(),
    });
    made.0.old.cycles = cycles;
    [made]
}

#[test]
fn what_is_reported_per_gib_has_an_interval() {
    let before = loaded(&noisy(200, 1.0), GIB, 1e6, 10);
    let after = loaded(&noisy(200, 2.0), GIB / 2.0, 1e6, 10);
    let all = metrics(&side(&before), &side(&after), &[]);
    // Twice as long for half of the load; as many; as much promoted.
    for (name, expected) in [("pause time", 4.0), ("pauses", 2.0), ("promoted", 2.0)] {
        let ratio = find(&all, name).ratio.unwrap_or_else(|| panic!("{name}"));
        assert!(
            (ratio.point / expected - 1.0).abs() < 0.01,
            "{name} {ratio:?}"
        );
        assert!(
            ratio.low < expected && ratio.low > 0.8 * expected,
            "{name} {ratio:?}"
        );
        assert!(
            ratio.high > expected && ratio.high < 1.2 * expected,
            "{name} {ratio:?}"
        );
    }
}

#[test]
fn under_another_load_pauses_are_compared_by_what_was_allocated() {
    // Half the load: half the collections, each a little longer.
    let before = loaded(&[10.0; 100], GIB, 1e6, 10);
    let after = loaded(&[11.3; 50], GIB / 2.0, 5e5, 5);
    let text = sentence(&side(&before), &side(&after), &[]);
    assert!(
        text.starts_with("young pauses take 11.3")
            && text.contains("1.13 times more")
            && text.contains("the load differs"),
        "{text}"
    );
    assert!(!text.contains("longer"), "{text}");
}

#[test]
fn more_promotion_and_more_old_cycles_are_a_cost() {
    let before = loaded(&[10.0; 100], GIB, 1e6, 10);
    let after = loaded(&[5.0; 100], GIB, 1.58e6, 23);
    let text = sentence(&side(&before), &side(&after), &[]);
    assert!(
        text.contains("cost: ×1.58 the promotion per GiB allocated, ×2.30 the old cycles"),
        "{text}"
    );
}

#[test]
fn flags_that_one_option_sets_are_one_change() {
    let changed = |name: &str, before: &str, after: &str| Changed {
        name: name.to_owned(),
        before: Some(before.to_owned()),
        after: Some(after.to_owned()),
    };
    let (before, after) = (
        [run("young", &noisy(200, 1.0))],
        [run("young", &noisy(200, 5.0))],
    );
    let compared = |options: &[Changed]| sentence(&side(&before), &side(&after), options);
    let young = [
        changed("MaxNewSize", "48m", "96m"),
        changed("NewSize", "48m", "96m"),
    ];
    assert!(
        compared(&young).starts_with("with -Xmn 96m instead of 48m: "),
        "{}",
        compared(&young)
    );
    let tenuring = [
        changed("InitialTenuringThreshold", "7", "2"),
        changed("MaxTenuringThreshold", "15", "2"),
    ];
    let words = "with MaxTenuringThreshold 2 instead of 15: ";
    assert!(
        compared(&tenuring).starts_with(words),
        "{}",
        compared(&tenuring)
    );
    let heap = [
        changed("InitialHeapSize", "1g", "2g"),
        changed("MaxHeapSize", "1g", "2g"),
        changed("MinHeapSize", "1g", "2g"),
    ];
    assert!(
        compared(&heap).starts_with("with -Xms and -Xmx 2g instead of 1g: "),
        "{}",
        compared(&heap)
    );
    let (before, after) = (
        loaded(&noisy(200, 5.0), 1e8, 1e6, 9),
        loaded(&noisy(200, 1.0), 1e8, 1e6, 3),
    );
    let judged = sentence(&side(&before), &side(&after), &heap);
    let words = "-Xms and -Xmx are meant for less pause time, and achieved that here";
    assert!(judged.contains(words), "{judged}");
    let apart = [
        changed("InitialHeapSize", "1g", "2g"),
        changed("MaxHeapSize", "2g", "4g"),
    ];
    assert!(
        compared(&apart).starts_with("with -Xms 2g instead of 1g and another"),
        "{}",
        compared(&apart)
    );
}

#[test]
fn threads_that_wait_for_memory_are_reported_where_pauses_are_short() {
    let of = |waits_ms: f64| -> [Made; 1] {
        let mut made = run("start", &[0.01; 40]);
        made.0.jvm.collector = Some("generational ZGC".to_owned());
        made.0.stalls = (waits_ms > 0.0).then(|| Stalls {
            time: Spread {
                count: 4,
                total_ms: waits_ms,
                ..Spread::default()
            },
            ..Stalls::default()
        });
        [made]
    };
    let (before, after) = (of(500.0), of(0.0));
    let text = sentence(&side(&before), &side(&after), &[]).replace(numbers::THIN, " ");
    let words = "threads stalled on allocation for 0 µs per minute in total instead of 300 ms";
    assert!(text.contains(words), "{text}");
    let rows = metrics(&side(&before), &side(&after), &[]);
    assert!(
        rows.iter()
            .any(|row| row.name.contains("allocation stalls")),
        "{rows:?}"
    );
    let same = sentence(&side(&before), &side(&before), &[]);
    assert!(!same.contains("stalled"), "{same}");
}
