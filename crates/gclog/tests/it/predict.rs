//! Predictions against logs: each log of a pair predicts the other, and all predict themselves.
//!
//! What is measured in a log has to lie in the interval that the other log gives, whatever it is of. An interval must also be
//! worth something: the second number of each row is how many times its lower end the upper end may be. How often young
//! collections come is asked about for factors of two, so 1.25 is far finer than the question; where the ages in the log reach as
//! far as what is asked, a factor of two tells which of two sizes promotes less. Beyond that only one end is known, and the
//! rows say how far off it may be.

#![expect(clippy::disallowed_methods, reason = "tests read the logs")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use rungwise_gclog::predict::{Change, Error, Given, Prediction, Seen, Watch, predict};
use rungwise_gclog::{Event, Names, Parser, Summarizer, Summary};
use rungwise_model::capacity::{Figure, Quantity};

use Quantity::{
    OldIntervalS as OldInterval, PauseShare, PromotionBytesPerS as Promotion,
    SurvivorsBytes as Survivors, TenuringThreshold as Threshold, YoungIntervalS as YoungInterval,
    YoungPauseMs as YoungPause,
};

fn watched(log: &[u8]) -> Seen {
    let mut watch = Watch::new();
    let mut parser = Parser::new();
    parser.push(log, &mut |_, event| watch.event(&event));
    parser.finish(&mut |_, event| watch.event(&event));
    watch.seen()
}

fn seen(name: &str) -> Seen {
    watched(&bytes(name))
}

/// The folder of the logs.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pairs")
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = folder().join(format!("{name}.log.gz"));
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut log = Vec::new();
    GzDecoder::new(packed.as_slice())
        .read_to_end(&mut log)
        .expect("a whole log");
    log
}

fn summarized(name: &str) -> Summary {
    let mut summarizer = Summarizer::new();
    let mut parser = Parser::new();
    let mut sink = |names: &Names, event: Event<'_>| summarizer.event(names, event);
    parser.push(&bytes(name), &mut sink);
    parser.finish(&mut sink);
    summarizer.summary()
}

/// What Parallel does not print, as its options say it.
pub(crate) fn given(name: &str) -> Given {
    let tenuring = match name {
        "parallel-tenuring-6" => 6,
        "third-parallel-base" => 5,
        "third-parallel-tenuring-1" => 1,
        held if held.starts_with("held") => 4,
        second if second.starts_with("second") => 3,
        _ => 2,
    };
    Given {
        adaptive: Some(false),
        max_tenuring: name.contains("parallel").then_some(tenuring),
        survivor_ratio: name.starts_with("third-parallel").then_some(2.0),
        ..Given::default()
    }
}

pub(crate) fn predicted(name: &str, change: Option<&Change>) -> Prediction {
    predict(&seen(name), &given(name), None, change)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

const MIB: f64 = 1_048_576.0;

pub(crate) fn young(mib: f64) -> Change {
    Change {
        young: Some(mib * MIB),
        ..Change::default()
    }
}

pub(crate) fn heap(mib: f64) -> Change {
    Change {
        heap: Some(mib * MIB),
        ..Change::default()
    }
}

pub(crate) fn tenuring(age: u32) -> Change {
    Change {
        tenuring: Some(age),
        ..Change::default()
    }
}

pub(crate) fn ratio(ratio: f64) -> Change {
    Change {
        survivor_ratio: Some(ratio),
        ..Change::default()
    }
}

pub(crate) fn rate(rate: f64) -> Change {
    Change {
        rate,
        ..Change::default()
    }
}

/// Predicts one log from another. `useful` are the figures whose interval must not be wider than that factor.
#[track_caller]
fn check(from: &str, change: &Change, to: &str, useful: &[(Quantity, f64)]) {
    let figures = predicted(from, Some(change))
        .what_if
        .expect("it was asked for")
        .figures;
    let truth = predicted(to, None).now;
    let mut offenders = Vec::new();
    let mut compared = 0;
    for (figure, truth) in figures.iter().zip(&truth) {
        assert_eq!(figure.quantity, truth.quantity);
        let (Some(estimate), Some(measured)) = (figure.estimate, truth.measured) else {
            continue;
        };
        compared += 1;
        if !estimate.holds(measured) {
            offenders.push(format!(
                "{:?}: {measured} is not in {estimate:?}",
                figure.quantity
            ));
        }
    }
    for (quantity, most) in useful {
        let figure = of(&figures, *quantity);
        let estimate = figure.estimate.unwrap_or_else(|| panic!("{figure:?}"));
        if estimate.high > most * estimate.low {
            offenders.push(format!(
                "{quantity:?}: {estimate:?} is wider than a factor of {most}"
            ));
        }
    }
    assert!(offenders.is_empty(), "{from} -> {to}: {offenders:#?}");
    let generations = truth.iter().any(|figure| figure.quantity == YoungInterval);
    let least = if generations { 6 } else { 1 };
    assert!(compared >= least, "only {compared} figures compared");
}

#[track_caller]
fn of(figures: &[Figure], quantity: Quantity) -> &Figure {
    let mut all = figures.iter();
    all.find(|figure| figure.quantity == quantity)
        .expect("every figure is there")
}

/// The upper end is not further than this from what the other log measures; there is no lower one.
#[track_caller]
fn at_most(from: &str, change: &Change, to: &str, quantity: Quantity, factor: f64) {
    let figures = predicted(from, Some(change))
        .what_if
        .expect("it was asked for")
        .figures;
    let high = of(&figures, quantity).estimate.expect("a bound").high;
    let measured = of(&predicted(to, None).now, quantity)
        .measured
        .expect("a figure of the log");
    assert!(
        measured <= high && high <= factor * measured,
        "{measured} {high}"
    );
}

#[test]
fn twice_the_young_generation_under_serial() {
    let (small, large) = ("serial-base", "serial-young-96m");
    let beyond = [(YoungInterval, 1.25), (YoungPause, 5.0), (Threshold, 2.5)];
    check(small, &young(96.0), large, &beyond);
    // The larger one promotes a quarter; its objects are older than the ages in the log.
    at_most(small, &young(96.0), large, Promotion, 5.0);
    let known = [
        (YoungInterval, 1.25),
        (YoungPause, 3.0),
        (Survivors, 1.3),
        (Promotion, 2.0),
        (PauseShare, 3.0),
    ];
    check(large, &young(48.0), small, &known);
}

#[test]
fn half_the_load_under_serial() {
    let (full, half) = ("serial-base", "serial-rate-50");
    check(
        full,
        &rate(0.5),
        half,
        &[(YoungInterval, 1.25), (YoungPause, 5.0), (Survivors, 4.0)],
    );
    at_most(full, &rate(0.5), half, Promotion, 1.3);
    check(
        half,
        &rate(2.0),
        full,
        &[
            (YoungInterval, 1.25),
            (YoungPause, 2.0),
            (Survivors, 1.5),
            (Promotion, 3.0),
        ],
    );
}

#[test]
fn a_tenuring_threshold_of_two_and_of_fifteen_under_cms() {
    let (fifteen, two) = ("cms-base", "cms-tenuring-2");
    let known = [
        (YoungInterval, 1.25),
        (Promotion, 1.5),
        (OldInterval, 1.5),
        (Survivors, 2.0),
        (YoungPause, 3.0),
    ];
    check(fifteen, &tenuring(2), two, &known);
    // The ages in the log end at two.
    check(
        two,
        &tenuring(15),
        fifteen,
        &[(YoungInterval, 1.25), (Survivors, 3.5)],
    );
}

#[test]
fn smaller_and_larger_survivor_spaces_under_cms() {
    let (large, small) = ("cms-base", "cms-survivor-ratio-16");
    let known = [
        (YoungInterval, 1.25),
        (Survivors, 1.25),
        (Threshold, 1.0),
        (Promotion, 3.5),
        (OldInterval, 4.0),
    ];
    check(large, &ratio(16.0), small, &known);
    // Its survivor spaces overflow, so of the ages nothing is known but the first.
    check(small, &ratio(2.0), large, &[(YoungInterval, 1.25)]);
}

#[test]
fn smaller_and_larger_survivor_spaces_under_serial() {
    let (large, small) = ("serial-base", "serial-survivor-ratio-6");
    let known = [
        (YoungInterval, 1.25),
        (Survivors, 1.5),
        (Promotion, 1.5),
        (OldInterval, 1.5),
    ];
    check(large, &ratio(6.0), small, &known);
    // Its threshold is one, so the ages end there.
    check(
        small,
        &ratio(2.0),
        large,
        &[(YoungInterval, 1.25), (Survivors, 3.0)],
    );
}

#[test]
fn smaller_and_larger_survivor_spaces_under_parallel() {
    let (large, small) = ("parallel-base", "parallel-survivor-ratio-8");
    check(
        large,
        &ratio(8.0),
        small,
        &[(YoungInterval, 1.25), (Survivors, 1.5)],
    );
    at_most(large, &ratio(8.0), small, Promotion, 1.6);
    // Its survivor spaces overflow.
    check(
        small,
        &ratio(2.0),
        large,
        &[(YoungInterval, 1.3), (Survivors, 4.0)],
    );
}

#[test]
fn smaller_and_larger_survivor_spaces_under_g1() {
    let (small, large) = ("g1-base", "g1-survivor-ratio-2");
    // The threshold of the base is one; and what survives is taken from Eden.
    check(
        small,
        &ratio(2.0),
        large,
        &[(YoungInterval, 2.0), (Survivors, 4.0)],
    );
    let known = [(YoungInterval, 1.25), (Survivors, 1.5), (Promotion, 4.5)];
    check(large, &ratio(8.0), small, &known);
}

#[test]
fn another_old_generation_under_serial() {
    let (small, base, large) = ("serial-heap-96m", "serial-base", "serial-heap-192m");
    let known = [(YoungInterval, 1.25), (Promotion, 1.5), (OldInterval, 1.5)];
    check(small, &heap(192.0), large, &known);
    check(large, &heap(96.0), small, &known);
    check(small, &heap(144.0), base, &known);
    // It holds one full collection.
    check(base, &heap(96.0), small, &known);
    check(base, &heap(192.0), large, &known);
}

#[test]
fn another_old_generation_under_cms() {
    let (small, large) = ("cms-base", "cms-heap-176m");
    let known = [(YoungInterval, 1.25), (Promotion, 1.3), (OldInterval, 1.5)];
    check(small, &heap(176.0), large, &known);
    check(large, &heap(128.0), small, &known);
}

#[test]
fn another_heap_under_g1() {
    let (small, large) = ("g1-base", "g1-heap-288m");
    let known = [(YoungInterval, 1.25), (Promotion, 1.3), (OldInterval, 3.0)];
    check(small, &heap(288.0), large, &known);
    // In its middle G1 moves the place where a cycle begins.
    check(
        large,
        &heap(192.0),
        small,
        &[(YoungInterval, 1.25), (Promotion, 1.3)],
    );
}

#[test]
fn a_tenuring_threshold_of_two_and_of_fifteen_under_g1() {
    let (fifteen, two) = ("g1-survivor-ratio-2", "g1-survivor-ratio-2-tenuring-2");
    let known = [
        (YoungInterval, 1.25),
        (Survivors, 1.5),
        (Promotion, 1.5),
        (OldInterval, 1.6),
    ];
    check(fifteen, &tenuring(2), two, &known);
    // The ages in the log end at two.
    check(
        two,
        &tenuring(15),
        fifteen,
        &[(YoungInterval, 2.0), (Survivors, 3.5)],
    );
}

#[test]
fn a_tenuring_threshold_of_two_and_of_six_under_parallel() {
    let (two, six) = ("parallel-base", "parallel-tenuring-6");
    check(
        two,
        &tenuring(6),
        six,
        &[(YoungInterval, 1.25), (Survivors, 2.0), (YoungPause, 3.0)],
    );
    at_most(two, &tenuring(6), six, Promotion, 2.0);
    // Parallel prints no table, so all below the threshold is one step.
    check(
        six,
        &tenuring(2),
        two,
        &[(YoungInterval, 1.3), (Survivors, 3.0)],
    );
}

#[test]
fn twice_the_old_generation_under_parallel() {
    let (small, large) = ("parallel-base", "parallel-heap-192m");
    let known = [
        (YoungInterval, 1.25),
        (Promotion, 1.5),
        (OldInterval, 1.5),
        (Survivors, 1.25),
        (YoungPause, 1.6),
        (PauseShare, 2.5),
    ];
    check(small, &heap(192.0), large, &known);
    check(large, &heap(128.0), small, &known);
}

#[test]
fn twice_the_fixed_young_generation_under_g1() {
    let (small, large) = ("g1-base", "g1-young-64m");
    check(
        small,
        &young(64.0),
        large,
        &[(YoungInterval, 1.25), (Survivors, 1.6), (YoungPause, 3.5)],
    );
    at_most(small, &young(64.0), large, Promotion, 2.0);
    // At half the size the objects lie within the first step of the ages.
    let within = [(YoungInterval, 1.25), (Survivors, 2.5), (Promotion, 5.0)];
    check(large, &young(32.0), small, &within);
    // It holds two cycles.
    let figures = predicted(large, Some(&young(32.0)))
        .what_if
        .unwrap()
        .figures;
    assert_unknown(&figures, OldInterval, "at least 4.1 s, at most 44.3 s");
}

/// Planted services (`testkit/java/GcPlant.java`) of which one option differs.
#[test]
fn the_time_between_old_collections_is_reported_only_where_it_holds() {
    let base = "plant-serial-base";
    // A larger heap: the log shows all that it takes.
    let larger = "plant-serial-heap-543m";
    for (from, change, to) in [(base, heap(543.0), larger), (larger, heap(320.0), base)] {
        let figures = predicted(from, Some(&change)).what_if.unwrap().figures;
        let measured = of(&predicted(to, None).now, OldInterval).measured.unwrap();
        let estimate = of(&figures, OldInterval).estimate.unwrap();
        assert!(estimate.holds(measured), "{measured} in {estimate:?}");
        assert!(estimate.high < 2.5 * estimate.low, "{estimate:?}");
    }
    // Survivor spaces that hold what overflowed: its middle, 1.07 s, was 4.7 times off.
    let roomy = Change {
        survivor_ratio: Some(5.0),
        ..young(192.0)
    };
    let figures = predicted(base, Some(&roomy)).what_if.unwrap().figures;
    let measured = of(
        &predicted("plant-serial-young-192m-survivor-ratio-5", None).now,
        OldInterval,
    )
    .measured;
    assert!(measured.unwrap() > 4.0 * 1.07, "{measured:?}");
    assert_unknown(
        &figures,
        OldInterval,
        "at least 505 ms, without an upper bound",
    );
    // ZGC in a heap that leaves no room: it said that cycles follow each other in no time at all.
    let tight = predicted("plant-zgc-heap-316m", Some(&heap(160.0)));
    assert_unknown(
        &tight.what_if.unwrap().figures,
        OldInterval,
        "no room is left",
    );
}

#[track_caller]
fn assert_unknown(figures: &[Figure], quantity: Quantity, why: &str) {
    let figure = of(figures, quantity);
    assert_eq!(figure.estimate, None, "{figure:?}");
    assert!(
        figure
            .because
            .as_deref()
            .is_some_and(|because| because.contains(why)),
        "{figure:?}"
    );
}

#[test]
fn twice_the_heap_under_zgc() {
    let (small, large) = ("zgc-base", "zgc-heap-384m");
    check(small, &heap(384.0), large, &[(OldInterval, 1.5)]);
    check(large, &heap(192.0), small, &[]);
    let refused = predict(&seen(small), &Given::default(), None, Some(&young(64.0)));
    assert!(
        matches!(refused, Err(Error::Contradiction(why)) if why.contains("no young generation"))
    );
}

const GENERATIONS: [&str; 19] = [
    "serial-base",
    "serial-young-96m",
    "serial-rate-50",
    "serial-survivor-ratio-6",
    "serial-heap-96m",
    "serial-heap-192m",
    "cms-base",
    "cms-tenuring-2",
    "cms-survivor-ratio-16",
    "cms-heap-176m",
    "parallel-base",
    "parallel-tenuring-6",
    "parallel-survivor-ratio-8",
    "parallel-heap-192m",
    "g1-base",
    "g1-young-64m",
    "g1-survivor-ratio-2",
    "g1-survivor-ratio-2-tenuring-2",
    "g1-heap-288m",
];

#[test]
fn every_log_predicts_itself() {
    for name in GENERATIONS {
        let prediction = predicted(name, None);
        for figure in &prediction.now {
            if let (Some(estimate), Some(measured)) = (figure.estimate, figure.measured) {
                assert!(
                    estimate.holds(measured),
                    "{name}: {measured} is not in {figure:?}"
                );
            }
        }
        let off = |quantity| {
            let figure = of(&prediction.now, quantity);
            figure.estimate.expect("predicted").point / figure.measured.expect("measured") - 1.0
        };
        // Where survivor spaces overflow, how much is promoted is known between bounds only; and with it how many fills of Eden end
        // in a full collection.
        assert!(off(YoungInterval).abs() < 0.1, "{name}");
        if !["cms-survivor-ratio-16", "parallel-survivor-ratio-8"].contains(&name) {
            assert!(off(Survivors).abs() < 0.05, "{name}: {}", off(Survivors));
            assert!(off(Promotion).abs() < 0.25, "{name}: {}", off(Promotion));
        }
    }
}

/// What the page calls the log is what `jvm gc` says of it.
#[test]
fn the_figures_of_the_log_are_those_of_its_summary() {
    for name in GENERATIONS {
        let summary = summarized(name);
        let run = &summary.runs[0];
        let prediction = predicted(name, None);
        let same = |quantity, expected: f64| {
            let measured = of(&prediction.now, quantity).measured.expect("measured");
            assert!(
                (measured / expected - 1.0).abs() < 1e-3,
                "{name}: {quantity:?} {measured} {expected}"
            );
        };
        let spread = run.pauses.by_kind["young"];
        if !run.pauses.by_kind.contains_key("mixed") {
            same(YoungPause, spread.p50_ms);
        }
        same(
            YoungInterval,
            run.pauses.young_interval.unwrap().mean_ms / 1e3,
        );
        same(PauseShare, 1.0 - run.throughput.as_ref().unwrap().whole);
    }
}

fn corpus(name: &str) -> Seen {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.log"));
    watched(&std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
}

#[test]
fn sizes_that_what_is_in_use_does_not_fit_into_are_refused() {
    // 74 MiB are in use in the old generation, of 85, and no old collection shows that less would do.
    let seen = corpus("own_jdk17-serial");
    for change in [heap(45.0), heap(64.0), young(100.0)] {
        let prediction = predict(&seen, &Given::default(), None, Some(&change));
        assert!(
            matches!(&prediction, Err(Error::Contradiction(why)) if why.contains("in use")),
            "{prediction:?}"
        );
    }
    assert!(predict(&seen, &Given::default(), None, Some(&heap(256.0))).is_ok());
}

#[test]
fn a_young_collection_that_is_overdue_comes_at_any_moment() {
    let prediction = predict(&corpus("own_jdk17-parallel"), &Given::default(), None, None).unwrap();
    let young = &prediction.next[0];
    let in_s = young.in_s.expect("an estimate");
    assert!(in_s.low == 0.0 && in_s.high > 1.0, "{in_s:?}");
    assert!(young.because.contains("at any moment"), "{young:?}");
}

#[test]
fn what_is_not_reckoned_is_not_set_against_itself() {
    let prediction = predict(&corpus("own_jdk17-parallel"), &Given::default(), None, None).unwrap();
    for quantity in [YoungPause, Survivors, Promotion, OldInterval] {
        let figure = of(&prediction.now, quantity);
        assert!(
            figure.estimate.is_none() && figure.measured.is_some(),
            "{figure:?}"
        );
    }
}

#[test]
fn cycles_without_a_length_and_pauses_that_are_not_printed_predict_the_next_cycle() {
    let cycle = |number: u32| {
        format!(
            "[{}.000s][info][gc] GC({number}) Garbage Collection (Allocation Rate) 100M(50%)->20M(10%)\n",
            number * 5 + 5
        )
    };
    let log = "[0.010s][info][gc] Using The Z Garbage Collector\n".to_owned()
        + &(0..40).map(cycle).collect::<String>();
    let prediction = predict(&watched(log.as_bytes()), &Given::default(), None, None).unwrap();
    let interval = of(&prediction.now, OldInterval);
    assert_eq!(interval.measured, Some(5.0));
    assert_eq!(of(&prediction.now, PauseShare).measured, None);
}
