//! The stacks of a recording with their weights: they add up to what the summary says.

use std::collections::BTreeMap;
use std::io::Cursor;

use proptest::prelude::*;
use rungwise_jfr::{Source, stacks};
use rungwise_testkit::InventedRecording;

use crate::{invented, summed};

const SOURCES: [Source; 8] = [
    Source::Execution,
    Source::CpuTime,
    Source::WallRunning,
    Source::Wall,
    Source::WallExecution,
    Source::Tlab,
    Source::AllocationSample,
    Source::Lock,
];

/// Stacks as text, innermost first, with their events and weight.
fn weighed(bytes: &[u8], source: Source) -> BTreeMap<String, (u64, u64)> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    stacks(Cursor::new(bytes), source, |stack| {
        let frames: Vec<&str> = stack.frames.iter().map(|(name, _)| *name).collect();
        let counted = all.entry(frames.join(" < ")).or_default();
        counted.0 += stack.events;
        counted.1 += stack.weight;
    })
    .expect("it is a recording");
    all
}

#[test]
fn samples_and_waits_add_up_to_those_of_the_summary() {
    let bytes = invented().bytes();
    let summary = summed(&bytes);
    let running = weighed(&bytes, Source::Execution);
    let logging = "org.apache.log4j.Category.info < shop.Cart.add < shop.Main.run";
    assert_eq!(
        running,
        [
            (logging.to_owned(), (4, 4)),
            ("shop.Cart.add < shop.Main.run".to_owned(), (36, 36))
        ]
        .into()
    );
    assert_eq!(summary.samples.counted, 40);
    let waits = weighed(&bytes, Source::Lock);
    let wait = "shop.Ledger < shop.Cart.add < shop.Main.run".to_owned();
    assert_eq!(waits, [(wait, (6, 120_000_000))].into());
    let no_sleepers = weighed(&bytes, Source::WallExecution);
    assert!(no_sleepers.is_empty(), "{no_sleepers:?}");
}

#[test]
fn threads_have_their_names_and_numbers() {
    let bytes = invented().bytes();
    let mut threads = BTreeMap::new();
    let passed = stacks(Cursor::new(&bytes), Source::Execution, |stack| {
        let thread = stack.thread.expect("the recording describes its threads");
        *threads
            .entry((thread.name.clone(), thread.os_id))
            .or_insert(0) += stack.events;
    });
    assert_eq!(passed.unwrap().chunks, 1);
    let of = |name: &str, id: i64, events: u64| ((name.to_owned(), id), events);
    let all = [
        of("worker-1", 101, 14),
        of("worker-2", 102, 13),
        of("worker-3", 103, 13),
    ];
    assert_eq!(threads, all.into());
}

#[test]
fn a_recording_cut_at_any_byte_gives_no_more_than_the_whole() {
    let bytes = invented().bytes();
    for length in 0..bytes.len() {
        let mut events = 0;
        let read = stacks(Cursor::new(&bytes[..length]), Source::Execution, |stack| {
            events += stack.events;
        });
        assert!(events <= 40, "{length}");
        if let Ok(passed) = read {
            assert!(!passed.damage.is_empty(), "{length}: no word of the cut");
        }
    }
}

proptest! {
    #[test]
    fn changed_bytes_never_make_a_panic(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = InventedRecording { samples: 3, waits: 2, ..invented() }.bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for source in SOURCES {
            let _ = stacks(Cursor::new(&bytes), source, |_| {});
        }
    }
}
