//! Causes of cycles, free lists before a failure, and the share without pauses of very short logs.

use super::*;

#[test]
fn causes_of_cycles_are_causes_of_collections() {
    let mut log = Log::of(Collector::GenerationalZ);
    log.pause("Y: Pause Mark Start", Kind::Start, 1000, 0, (10, 10));
    for (at_ms, cause) in [
        (1000, "System.gc()"),
        (2000, "System.gc()"),
        (400_000, "Metadata GC Threshold"),
    ] {
        let name = log.name(&format!("Major Collection ({cause})"));
        let cause = log.name(cause);
        let cycle = Concurrent {
            line: 1,
            began: up(at_ms),
            ended: Stamp::default(),
            id: None,
            name,
            cycle: true,
            cause: Some(cause),
            duration_ns: Some(MS),
            cpu_ns: None,
            aborted: false,
            areas: Areas::default(),
            promoted: None,
            allocated: None,
            live: None,
        };
        log.tell(Event::Concurrent(&cycle));
    }
    assert_eq!(log.run().cycle_causes["System.gc()"], 2);
    let evidence = evidence(&log.summarizer.summary());
    for (key, expected) in [
        (&keys::GC_EXPLICIT, 2.0),
        (&keys::GC_METADATA, 1.0),
        (&keys::GC_METADATA_LATE, 1.0),
        (&keys::GC_ALLOCATION_FAILURES, 0.0),
    ] {
        near(jvm(&evidence, key), expected);
    }
}

#[test]
fn free_lists_are_reported_as_they_were_before_a_promotion_failed() {
    let mut log = Log::of(Collector::Cms);
    let lists = |log: &mut Log, line: u64, largest: u64| {
        log.tell(Event::FreeLists {
            line,
            at: up(line * 1000),
            free: 1000,
            largest,
        });
    };
    lists(&mut log, 1, 10);
    lists(&mut log, 2, 10);
    log.pause("ParNew", Kind::Young, 2000, 10, (500, 400));
    lists(&mut log, 3, 20);
    // The full collection leaves one piece.
    lists(&mut log, 4, 1000);
    let mut failed = log.draft("ParNew+CMS", Kind::Full, 3000, 900, (600, 100));
    failed.troubles.promotion_failed = true;
    fill(&mut failed, Area::Old, (300, 90));
    failed.areas.at(Area::Old).capacity = Some(400 * MIB);
    log.tell(Event::Pause(&failed));
    lists(&mut log, 5, 900);
    near(log.run().troubles.promotion_failed_at.unwrap(), 0.75);
    let evidence = evidence(&log.summarizer.summary());
    near(jvm(&evidence, &keys::GC_PROMOTION_FAILED_AT), 0.75);
    let lists = log.run().fragmentation.unwrap();
    assert_eq!(
        (
            lists.largest_bytes,
            lists.last.line,
            lists.course.points.len()
        ),
        (20, Some(3), 5)
    );
}

#[test]
fn a_log_that_is_one_pause_does_not_tell_the_share_without_pauses() {
    let mut log = Log::of(Collector::G1);
    log.pause("Pause Young", Kind::Young, 500_000, 300, (100, 20));
    assert_eq!(log.run().throughput, None);
    // Another one a second later tells it.
    log.pause("Pause Young", Kind::Young, 501_000, 0, (100, 20));
    near(log.run().throughput.unwrap().whole, 0.7);
}

#[test]
fn the_worst_minute_is_no_better_than_the_whole_run() {
    let mut log = Log::of(Collector::G1);
    for minute in 0..5 {
        log.pause(
            "Pause Young",
            Kind::Young,
            120_000 + minute * 60_000,
            300,
            (100, 20),
        );
    }
    let throughput = log.run().throughput.unwrap();
    assert!(throughput.worst <= throughput.whole, "{throughput:?}");
}

#[test]
fn after_a_failed_evacuation_what_is_left_does_not_show_what_is_alive() {
    let mut log = Log::of(Collector::G1);
    for number in 0..20_u64 {
        let at = number * 10_000;
        let mut young = log.draft("Pause Young (Normal)", Kind::Young, at, 5, (100, 70));
        young.troubles.evacuation_failed = number == 4;
        log.tell(Event::Pause(&young));
        log.pause("Pause Remark", Kind::Remark, at + 1_000, 5, (90, 80));
        log.pause(
            "Pause Young (Prepare Mixed)",
            Kind::Young,
            at + 2_000,
            5,
            (100, 60),
        );
        let left = if number == 4 { 99 } else { 55 };
        log.pause(
            "Pause Young (Mixed)",
            Kind::Mixed,
            at + 3_000,
            5,
            (100, left),
        );
    }
    log.pause("Pause Young (Normal)", Kind::Young, 300_000, 5, (100, 70));
    let live = log.run().live.unwrap();
    assert_eq!((live.source, live.samples), (LiveSource::Mixed, 19));
    assert_eq!((live.min_bytes, live.max_bytes), (55 * MIB, 55 * MIB));
}
