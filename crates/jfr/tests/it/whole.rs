//! What is recorded is what is read.

use std::io::Cursor;

use rungwise_jfr::{Recording, Wanted, evidence};
use rungwise_model::evidence::{Kind, Subject};
use rungwise_model::keys;
use rungwise_testkit::InventedRecording;

use crate::{invented, summed};

#[test]
fn samples_become_methods_with_self_and_total() {
    let read = summed(&invented().bytes());
    assert_eq!((&*read.format, read.chunks), ("2.1", 1));
    assert_eq!(read.began, "2023-11-14T22:13:20.000Z");
    assert!((read.duration_s - 10.0).abs() < 1e-9);
    assert_eq!(read.damage, [""; 0]);
    assert_eq!(read.events["jdk.ExecutionSample"], 40);
    assert_eq!(read.events["jdk.Checkpoint"], 1);
    let methods: Vec<(&str, u64, u64)> = read
        .hot_methods
        .iter()
        .map(|hot| (&*hot.method, hot.own, hot.total))
        .collect();
    assert_eq!(
        methods,
        [
            ("shop.Cart.add", 36, 40),
            ("org.apache.log4j.Category.info", 4, 4),
            ("shop.Main.run", 0, 40),
        ]
    );
    assert_eq!(read.hot_methods[0].thread.as_deref(), Some("worker-*"));
    let [logging] = &read.code[..] else {
        panic!("{:?}", read.code);
    };
    assert_eq!((&*logging.kind, logging.samples), ("logging", 4));
    assert_eq!(logging.caller.as_deref(), Some("shop.Cart.add"));
    let [workers] = &read.threads[..] else {
        panic!("{:?}", read.threads);
    };
    assert_eq!((workers.threads, workers.samples), (3, 40));
}

#[test]
fn waits_become_a_lock_with_its_times_and_places() {
    let read = summed(&invented().bytes());
    let [lock] = &read.locks[..] else {
        panic!("{:?}", read.locks);
    };
    assert_eq!((&*lock.class, &*lock.kind), ("shop.Ledger", "monitor"));
    assert_eq!((lock.times.count, lock.threads, lock.objects), (6, 3, 1));
    assert!((lock.times.total_ms - 120.0).abs() < 1e-6);
    assert!((lock.times.longest_ms - 20.0).abs() < 1e-9);
    assert_eq!(lock.owner.as_deref(), Some("worker-3"));
    assert_eq!(
        lock.sites[0].frames,
        ["shop.Cart.add:41", "shop.Main.run:42"]
    );
    let evidence = evidence(&read);
    let waiters = evidence
        .quantity(
            &keys::RECORDING_LOCK_WAITERS,
            &Subject::new(Kind::Recording, 1),
        )
        .unwrap();
    assert!((waiters.value - 0.012).abs() < 1e-9);
}

#[test]
fn chunks_are_summed() {
    let one = summed(&invented().bytes());
    let three = InventedRecording {
        chunks: 3,
        ..invented()
    };
    let three = summed(&three.bytes());
    assert_eq!(three.chunks, 3);
    assert!((three.duration_s - 30.0).abs() < 1e-9);
    for (event, count) in &one.events {
        assert_eq!(three.events[event], 3 * count, "{event}");
    }
    assert_eq!(three.hot_methods[0].own, 3 * one.hot_methods[0].own);
    assert_eq!(three.locks[0].times.count, 3 * one.locks[0].times.count);
}

#[test]
fn only_the_wanted_fields_of_the_wanted_events_are_given() {
    let bytes = invented().bytes();
    let mut recording = Recording::open(Cursor::new(&bytes)).unwrap();
    let wanted = [Wanted {
        event: "com.oracle.jdk.JavaMonitorEnter",
        fields: &["address", "no such field", "duration", "startTime"],
    }];
    let mut chunk = recording.next_chunk(&wanted).unwrap().unwrap().unwrap();
    let mut seen = Vec::new();
    chunk
        .each(|event| {
            let fields: Vec<Option<i64>> = event.fields.iter().map(|field| field.int()).collect();
            seen.push(fields);
        })
        .unwrap();
    assert_eq!(seen.len(), 6);
    let started = 1_700_000_000_000_000_000;
    for (at, fields) in (2000..).zip(seen) {
        let at = started + at * 1000;
        assert_eq!(fields, [Some(4711), None, Some(20_000_000), Some(at)]);
    }
    assert!(recording.next_chunk(&wanted).unwrap().is_none());
}

#[test]
fn a_recording_larger_than_the_window_is_read_whole() {
    let large = InventedRecording {
        chunks: 2,
        samples: 300_000,
        waits: 10,
        is_finished: true,
    };
    let bytes = large.bytes();
    assert!(bytes.len() > 5 << 20, "{}", bytes.len());
    let read = summed(&bytes);
    assert_eq!(read.events["jdk.ExecutionSample"], 600_000);
    assert_eq!(read.samples.counted, 600_000);
    assert_eq!(read.hot_methods[1].own, 60_000);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "reads a file of the repository")]
fn the_seed_of_the_fuzz_target_is_of_this_version() {
    let seed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/seeds/recording/invented.jfr"
    );
    assert!(std::fs::read(seed).unwrap() == invented().bytes());
}
