//! Recordings that are cut, unfinished, damaged or made to hurt: what there is is read, and what is missing is said.

use std::io::Cursor;

use proptest::prelude::*;
use rungwise_jfr::{Error, summary};
use rungwise_testkit::InventedRecording;

use crate::{invented, summed};

#[test]
fn an_unfinished_recording_gives_the_same_events_and_says_so() {
    let finished = summed(&invented().bytes());
    let unfinished = InventedRecording {
        is_finished: false,
        ..invented()
    };
    let read = summed(&unfinished.bytes());
    assert_eq!(read.events, finished.events);
    assert_eq!(read.hot_methods, finished.hot_methods);
    assert_eq!(read.locks, finished.locks);
    assert!(read.damage[0].contains("not finished"), "{:?}", read.damage);
}

#[test]
fn unfinished_chunks_behind_one_another_are_all_read() {
    let several = InventedRecording {
        chunks: 3,
        is_finished: false,
        ..invented()
    };
    let read = summed(&several.bytes());
    assert_eq!(read.chunks, 3);
    assert_eq!(read.events["jdk.ExecutionSample"], 120);
}

#[test]
fn a_recording_cut_at_any_byte_gives_what_is_before() {
    let bytes = invented().bytes();
    let whole = summed(&bytes);
    let mut least = 0;
    for length in 0..bytes.len() {
        match summary(Cursor::new(&bytes[..length])) {
            Err(Error::Empty) => assert_eq!(length, 0),
            Err(Error::NotJfr { .. }) => assert!(length < 4, "{length}"),
            Err(Error::Short(_)) => assert!(length < 68, "{length}"),
            Err(error) => panic!("{length}: {error}"),
            Ok(read) => {
                assert!(!read.damage.is_empty(), "{length}: no word of the cut");
                let samples = read.events.get("jdk.ExecutionSample").copied();
                let samples = samples.unwrap_or(0);
                assert!(samples >= least, "{length}: fewer than from less");
                assert!(samples <= whole.events["jdk.ExecutionSample"]);
                least = samples;
            }
        }
    }
    assert_eq!(least, 40, "the samples are before the constants");
}

#[test]
fn a_recording_that_claims_a_billion_constants_is_read_without_them() {
    let bytes = invented().bytes();
    // Pool, number of constants, key of the first: the pool of three threads.
    let pool = [8, 3, 1, 3, 4, b'o', b's'];
    let at = bytes
        .windows(pool.len())
        .position(|window| window == pool)
        .expect("the pool of threads");
    let mut claims = bytes.clone();
    // Five bytes more: 2^34 constants. The event is as long as before, so its end is cut.
    claims.splice(at + 1..at + 2, [0x80, 0x80, 0x80, 0x80, 0x40]);
    let read = summed(&claims);
    assert_eq!(read.events["jdk.ExecutionSample"], 40);
    assert!(
        read.damage.iter().any(|damage| damage.contains("names")),
        "{:?}",
        read.damage
    );
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    for (bytes, why) in [
        (&b""[..], "empty"),
        (b"PK\x03\x04 an archive", "50 4b 03 04"),
        (b"FLR\0\0\0\0\x09 and so on", "0.9"),
        (b"FLR\0\0\x07\0\0 and so on", "7.0"),
        (b"FLR\0\0\x02\0\x01", "cut within its header"),
    ] {
        let error = summary(Cursor::new(bytes)).expect_err("it is none");
        assert!(error.to_string().contains(why), "{error}");
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
        let _ = summary(Cursor::new(bytes));
    }
}
