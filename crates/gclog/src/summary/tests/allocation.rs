//! What was allocated between collections, and when most.

use super::*;

#[test]
fn allocation_is_what_came_between_two_collections() {
    let mut log = Log::of(Collector::G1);
    let mut first = log.draft("Pause Young", Kind::Young, 2000, 0, (100, 20));
    first.id = Some(0);
    log.tell(Event::Pause(&first));
    log.pause("Pause Young", Kind::Young, 6000, 0, (220, 30));
    let allocation = log.run().allocation.unwrap();
    // 100 MiB since the JVM began, 200 since the first collection.
    assert_eq!(allocation.bytes, 300 * MIB);
    near(allocation.known_s, 6.0);
    near(allocation.bytes_per_s, 50.0 * MIB as f64);
    assert_eq!(allocation.peak_bytes_per_s, None);
    log.pause("Pause Young", Kind::Young, 12_000, 0, (630, 30));
    let allocation = log.run().allocation.unwrap();
    // The last ten seconds: six of 100 MiB each, and four of 50.
    near(allocation.peak_bytes_per_s.unwrap(), 80.0 * MIB as f64);
}

/// Allocation of a log in which each collection comes so many seconds after the last one and finds so many MiB more.
pub(super) fn allocated(pieces: &[(u64, u64)]) -> gc::Rate {
    let mut log = Log::of(Collector::G1);
    let mut at_ms = 0;
    for (number, (seconds, mib)) in (0..).zip(pieces) {
        at_ms += seconds * 1000;
        let mut pause = log.draft("Pause Young", Kind::Young, at_ms, 0, (*mib, 0));
        pause.id = Some(number);
        log.tell(Event::Pause(&pause));
    }
    log.run().allocation.unwrap()
}

#[test]
fn a_peak_is_found_wherever_it_lies() {
    let idle = (100, 100);
    let dense = [(1, 300); 8];
    for pieces in [
        [&[idle], &dense[..]].concat(),
        [&dense[..], &[idle]].concat(),
        [&[idle], &dense[..], &[idle]].concat(),
    ] {
        let rate = allocated(&pieces);
        // Eight dense seconds, two idle ones.
        near(rate.peak_bytes_per_s.unwrap(), 240.2 * MIB as f64);
    }
    let long = allocated(&[&[idle], &[(1, 300); 30][..], &[idle]].concat());
    near(long.peak_bytes_per_s.unwrap(), 300.0 * MIB as f64);
}

#[test]
fn nothing_reported_of_less_than_ten_seconds() {
    assert_eq!(allocated(&[(1, 300); 9]).peak_bytes_per_s, None);
    let rate = allocated(&[(1, 300); 10]);
    near(rate.peak_bytes_per_s.unwrap(), rate.bytes_per_s);
}

#[test]
fn of_a_log_without_its_beginning_the_first_collection_tells_nothing() {
    let mut log = Log::of(Collector::G1);
    let mut first = log.draft("Pause Young", Kind::Young, 2000, 0, (100, 20));
    first.id = Some(57);
    log.tell(Event::Pause(&first));
    assert_eq!(log.run().allocation, None);
    log.pause("Pause Young", Kind::Young, 4000, 0, (60, 20));
    assert_eq!(log.run().allocation.unwrap().bytes, 40 * MIB);
}

#[test]
fn a_young_collection_that_failed_tells_nothing_of_the_end_of_the_full_one() {
    let mut log = Log::of(Collector::Cms);
    let mut young = log.draft("ParNew", Kind::Young, 1_000, 0, (100, 50));
    fill(&mut young, Area::Young, (80, 5));
    log.tell(Event::Pause(&young));
    // ParNew left 79 MiB where it was, then everything went into the old generation.
    let mut failed = log.draft("Full GC", Kind::Full, 2_000, 0, (140, 60));
    fill(&mut failed, Area::Young, (80, 79));
    fill(&mut failed, Area::Old, (61, 60));
    log.tell(Event::Pause(&failed));
    // Nothing is known of the young generation: 70 of 130 MiB are not in the old one.
    let mut full = log.draft("Full GC", Kind::Full, 3_000, 0, (130, 20));
    fill(&mut full, Area::Old, (60, 20));
    log.tell(Event::Pause(&full));
    assert_eq!(log.run().allocation.unwrap().bytes, (80 + 75 + 70) * MIB);
}

#[test]
fn a_full_collection_within_a_young_one_leaves_what_came_before_to_that_one() {
    let mut log = Log::of(Collector::Cms);
    let mut young = log.draft("Pause Young", Kind::Young, 1_000, 0, (100, 50));
    fill(&mut young, Area::Young, (80, 5));
    log.tell(Event::Pause(&young));
    // Printed first, and without a word of the young generation.
    let mut full = log.draft("Pause Full", Kind::Full, 2_100, 40, (128, 20));
    full.nested = true;
    log.tell(Event::Pause(&full));
    let mut failed = log.draft("Pause Young", Kind::Young, 2_000, 150, (125, 20));
    fill(&mut failed, Area::Young, (80, 0));
    log.tell(Event::Pause(&failed));
    assert_eq!(log.run().allocation.unwrap().bytes, (80 + 75) * MIB);
}

#[test]
fn with_cms_the_young_generation_is_watched_since_sweeping_frees_old_objects() {
    let mut log = Log::of(Collector::Cms);
    for (at, heap, young) in [
        (61_000, (500, 420), (80, 0)),
        (62_000, (400, 330), (80, 5)),
        (63_000, (420, 330), (85, 5)),
    ] {
        let mut pause = log.draft("ParNew", Kind::Young, at, 0, heap);
        fill(&mut pause, Area::Young, young);
        log.tell(Event::Pause(&pause));
        // A remark tells the heap alone, which must not be taken for the young generation.
        log.pause("GC remark", Kind::Remark, at + 100, 1, (600, 600));
    }
    let run = log.run();
    assert_eq!(run.allocation.unwrap().bytes, 160 * MIB);
    // (80 - 0) - (500 - 420) = 0, then 75 - 70 and 80 - 90: the last one cannot be.
    let promotion = run.promotion.unwrap();
    assert_eq!(
        (promotion.collections, promotion.largest_bytes),
        (2, 5 * MIB)
    );
}
