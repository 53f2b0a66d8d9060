//! The decoder: pieces of any size give the same frames, and what is malformed is reported where it is.

use std::io::Read as _;

use proptest::prelude::*;
use rungwise_dubbo::{Decoder, Error, Header, heartbeat};

use crate::frames;

/// Headers and bodies of a stream that arrives in pieces of these sizes, in turn, and how it ended.
fn decoded(stream: &[u8], sizes: &[usize], limit: u32) -> (Vec<(Header, Vec<u8>)>, Option<Error>) {
    let mut decoder = Decoder::new(limit);
    let (mut found, mut rest) = (Vec::new(), stream);
    for size in sizes.iter().cycle() {
        let space = decoder.space();
        assert!(space.len() >= 4096, "{}", space.len());
        let count = rest.read(&mut space[..*size]).unwrap();
        decoder.filled(count);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => found.push((frame.header, frame.body.to_vec())),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_frame(), Err(error.clone()), "it is final");
                    return (found, Some(error));
                }
            }
        }
        if count == 0 {
            break;
        }
    }
    assert_eq!(decoder.passed() as usize + decoder.buffered(), stream.len());
    (found, None)
}

fn stream() -> Vec<u8> {
    frames().into_iter().flat_map(|(_, bytes)| bytes).collect()
}

#[test]
fn a_stream_of_all_captures_gives_them_in_order() {
    let expected: Vec<Vec<u8>> = frames().into_iter().map(|(_, bytes)| bytes).collect();
    for size in [1, 15, 16, 17, 1000, 4096] {
        let (found, error) = decoded(&stream(), &[size], 1 << 20);
        assert_eq!(error, None);
        let again: Vec<Vec<u8>> = found
            .iter()
            .map(|(header, body)| [&header.encode()[..], body].concat())
            .collect();
        assert!(again == expected, "pieces of {size}");
    }
}

#[test]
fn bad_magic_is_reported_at_its_byte_and_the_frames_before_are_given() {
    let mut bytes = heartbeat(1).to_vec();
    bytes.extend(b"HTTP/1.1 400 Bad Request\r\n");
    for size in [1, 5, 4096] {
        let (found, error) = decoded(&bytes, &[size], 100);
        assert_eq!(found.len(), 1);
        let Some(Error::Magic {
            at: 17,
            found,
            count,
        }) = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(found[..count], b"HT"[..count]);
    }
}

#[test]
fn a_body_above_the_limit_is_refused_before_it_arrives() {
    let mut header = heartbeat(77)[..16].to_vec();
    header[12..].copy_from_slice(&u32::MAX.to_be_bytes());
    let (_, error) = decoded(&header, &[16], 8 << 20);
    let expected = Error::TooLong {
        at: 0,
        id: 77,
        length: u32::MAX,
        limit: 8 << 20,
    };
    assert_eq!(error, Some(expected));
}

#[test]
fn a_claimed_length_allocates_nothing() {
    let mut decoder = Decoder::new(u32::MAX);
    let mut header = heartbeat(77)[..16].to_vec();
    header[12..].copy_from_slice(&(1_u32 << 31).to_be_bytes());
    decoder.read_from(&mut header.as_slice()).unwrap();
    assert_eq!(decoder.next_frame(), Ok(None));
    assert_eq!(decoder.missing(), Some(1 << 31));
    assert_eq!(decoder.buffered(), 16);
    assert!(decoder.space().len() < 1 << 17);
}

#[test]
fn what_a_cut_frame_lacks_is_known() {
    let bytes = heartbeat(1);
    let mut decoder = Decoder::new(100);
    for (piece, missing) in [(&bytes[..10], None), (&bytes[10..16], Some(1))] {
        let mut piece = piece;
        decoder.read_from(&mut piece).unwrap();
        assert_eq!(decoder.next_frame(), Ok(None));
        assert_eq!(decoder.missing(), missing);
    }
}

#[test]
fn the_buffer_stops_growing() {
    let bytes = stream();
    let mut decoder = Decoder::new(1 << 20);
    let mut most = 0;
    for _ in 0..20 {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            decoder.read_from(&mut rest).unwrap();
            while decoder.next_frame().unwrap().is_some() {}
            most = most.max(decoder.space().len());
        }
    }
    assert!(most <= 256 << 10, "{most}");
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same(sizes in proptest::collection::vec(1_usize..3000, 1..20), damage in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>()))) {
        let mut bytes = stream();
        if let Some((at, byte)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (whole, error) = decoded(&bytes, &[4096], 1 << 17);
        let (pieces, other) = decoded(&bytes, &sizes, 1 << 17);
        prop_assert_eq!(whole, pieces);
        // Of bad magic, one byte or both may have arrived.
        prop_assert_eq!(error.is_some(), other.is_some());
    }

    #[test]
    fn arbitrary_bytes_never_make_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        decoded(&bytes, &[7], 1 << 17);
    }
}
