//! Bodies that are malformed or made to hurt: each problem is named where it is, and both readers agree.

use proptest::prelude::*;
use rungwise_dubbo::hessian::{Limits, Reader, Skipper, Value};
use rungwise_dubbo::{Call, Error, Frame, Header, Message, Problem, Reply, Status, judge};

use crate::{problem, whole, written};

/// The first value, read and skipped.
fn both(bytes: &[u8], limits: Limits) -> Result<Value, Error> {
    let mut reader = Reader::new(bytes, limits);
    let mut skipper = Skipper::new(limits);
    let mut skip = skipper.body(bytes);
    let read = reader.value();
    let skipped = skip.skip_value();
    assert_eq!(read.as_ref().err(), skipped.as_ref().err());
    if read.is_ok() {
        assert_eq!(reader.at(), skip.at());
    }
    read
}

fn named(bytes: &[u8]) -> (usize, Problem) {
    match both(bytes, Limits::default()) {
        Err(Error::Body { at, problem }) => (at, problem),
        other => panic!("{bytes:x?}: {other:?}"),
    }
}

#[test]
fn every_problem_is_named_at_its_byte() {
    let expected = |expected, found| Problem::Expected { expected, found };
    for (bytes, at, problem) in [
        (&b""[..], 0, Problem::Truncated),
        (b"Z", 0, Problem::Tag(b'Z')),
        (b"\x79\x40", 1, Problem::Tag(0x40)),
        (b"\x05ab", 1, Problem::Truncated),
        (b"\x05ab\x80cd", 3, Problem::Text(0x80)),
        (b"\x02\xe4\xb8c", 3, Problem::Text(b'c')),
        (b"\x01\xf0\x9f\x98\x80", 1, Problem::Text(0xf0)),
        (b"R\0\x01aN", 4, expected("another chunk of a string", b'N')),
        (
            b"A\0\x01a\x01b",
            4,
            expected("another chunk of a binary", 1),
        ),
        (b"X\x01a", 1, expected("a length", 1)),
        (b"X\x8f", 1, Problem::Length(-1)),
        (b"XI\x7f\xff\xff\xff", 6, Problem::Truncated),
        (
            b"V\x91\x91\x91",
            1,
            Problem::Type {
                index: 1,
                defined: 0,
            },
        ),
        (b"MN", 1, expected("a type name or its index", b'N')),
        (b"H\x91Z", 2, Problem::Tag(b'Z')),
        (b"H\x91", 2, Problem::Truncated),
        (
            b"\x60",
            0,
            Problem::Class {
                index: 0,
                defined: 0,
            },
        ),
        (
            b"C\x01A\x90O\x91",
            4,
            Problem::Class {
                index: 1,
                defined: 1,
            },
        ),
        (
            b"O\x8f",
            0,
            Problem::Class {
                index: -1,
                defined: 0,
            },
        ),
        (b"CN", 1, expected("the name of a class", b'N')),
        (b"C\x01A\x91N", 4, expected("the name of a field", b'N')),
        (b"C\x01A\x8f", 3, Problem::Length(-1)),
        (b"C\x01A\x90", 4, Problem::Truncated),
        (b"\x51\x90", 0, Problem::Reference { index: 0, begun: 0 }),
        (
            b"\x79\x51\x91",
            1,
            Problem::Reference { index: 1, begun: 1 },
        ),
        (
            b"\x79\x51\x8f",
            1,
            Problem::Reference {
                index: -1,
                begun: 1,
            },
        ),
    ] {
        assert_eq!(named(bytes), (at, problem), "{bytes:x?}");
    }
}

#[test]
fn depth_and_number_of_values_are_bounded() {
    let deep = |depth: usize| [vec![0x79; depth], vec![b'N']].concat();
    both(&deep(64), Limits::default()).unwrap();
    assert_eq!(
        problem(both(&deep(65), Limits::default())),
        Problem::Depth(64)
    );
    let any = Limits {
        depth: usize::MAX,
        values: usize::MAX,
    };
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let deepest = small.spawn(move || {
        both(&deep(128), any).unwrap();
        both(&deep(1_000_000), any)
    });
    let deepest = deepest.unwrap().join().unwrap();
    assert_eq!(problem(deepest), Problem::Depth(128));
    for head in [&b"W"[..], b"H", b"C\x01A\x91\x01a\x60"] {
        let bytes = head.repeat(1000);
        assert_eq!(problem(both(&bytes, Limits::default())), Problem::Depth(64));
    }
    // Definitions nest in nothing.
    let classes = b"C\x01A\x90".repeat(100_000);
    assert_eq!(
        problem(both(&classes, Limits::default())),
        Problem::Truncated
    );

    let few = Limits {
        values: 3,
        ..Limits::default()
    };
    both(b"\x7aNN", few).unwrap();
    assert_eq!(problem(both(b"\x7bNNN", few)), Problem::Count(3));
    assert_eq!(
        problem(both(b"C\x01A\x94\0\0\0\0\x60", few)),
        Problem::Count(3)
    );
}

#[test]
fn type_names_and_classes_are_shared_however_often_they_are_used() {
    // A name of 100 kB, used a hundred thousand times: copies would take 10 GB.
    let long = "x".repeat(30_000);
    let mut bytes = b"W".to_vec();
    bytes.extend([b"p".as_slice(), b"S\x75\x30", long.as_bytes()].concat());
    bytes.extend(b"p\x90".repeat(100_000));
    bytes.extend([b"C".as_slice(), b"S\x75\x30", long.as_bytes(), b"\x90"].concat());
    bytes.extend(b"\x60".repeat(100_000));
    bytes.push(b'Z');
    let Ok(Value::List(list)) = both(&bytes, Limits::default()) else {
        panic!("it is well formed");
    };
    assert_eq!(list.items.len(), 200_001);
}

fn reply(status: Status, serialization: u8, body: &[u8]) -> Vec<u8> {
    let header = Header {
        message: Message::Reply { status },
        is_event: false,
        serialization,
        id: 1,
        body_len: body.len() as u32,
    };
    [&header.encode()[..], body].concat()
}

/// The error of both ways to read a reply.
fn refused(bytes: &[u8]) -> Error {
    let frame = whole(bytes);
    let mut skipper = Skipper::new(Limits::default());
    let judged = judge(&frame, &mut skipper).expect_err("malformed");
    let read = Reply::decode(&frame, Limits::default()).expect_err("malformed");
    assert_eq!(judged, read);
    read
}

#[test]
fn malformed_replies_are_refused_with_the_reason() {
    for (body, expected) in [
        (&b""[..], "ends within"),
        (b"\x96", "flag of the reply is 6"),
        (b"\x8f", "flag of the reply is -1"),
        (b"N", "expected the flag of a reply"),
        (b"\x91", "ends within"),
        (b"\x91NN", "1 bytes follow"),
        (b"\x92N", "1 bytes follow"),
        (b"\x94N", "ends within"),
        (b"\x94N\x91", "expected attachments"),
        (b"\x95H", "ends within"),
    ] {
        let error = refused(&reply(Status::OK, 2, body)).to_string();
        assert!(error.contains(expected), "{body:x?}: {error}");
    }
    let other = refused(&reply(Status::OK, 8, b"\x91N"));
    assert_eq!(other, Error::Serialization(8));
    let request = rungwise_dubbo::Template::of_body(b"N", true)
        .unwrap()
        .with_id(1)
        .to_vec();
    assert!(refused(&request).to_string().contains("not a request"));
    let event = rungwise_dubbo::heartbeat_reply(&whole(&request).header);
    assert!(refused(&event).to_string().contains("not to an event"));

    // The text of an error may be anything; the status counts.
    let failed = reply(Status::SERVER_ERROR, 8, b"\xff\xff");
    let read = Reply::decode(&whole(&failed), Limits::default()).unwrap();
    assert_eq!(read.encode(), (Status::SERVER_ERROR, vec![0]));
}

#[test]
fn malformed_requests_are_refused_with_the_reason() {
    let head = b"\x01v\x01p\x01s\x01m";
    for (rest, expected) in [
        (&b"\x01Q"[..], "the parameter descriptor is malformed"),
        (b"\x01I", "ends within"),
        (b"\x01I\x91", "ends within"),
        (b"\x00\x91", "expected attachments"),
        (b"\x00HZN", "1 bytes follow"),
        (b"N", "expected the parameter types"),
    ] {
        let body = [&head[..], rest].concat();
        let error = Call::decode(&body, Limits::default()).expect_err("malformed");
        assert!(error.to_string().contains(expected), "{rest:x?}: {error}");
    }
    let body = [&head[..], b"\x00N"].concat();
    let call = Call::decode(&body, Limits::default()).unwrap();
    assert_eq!((call.method.as_str(), call.attachments.len()), ("m", 0));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_and_skipped_alike(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = both(&bytes, Limits::default());
    }

    /// Bytes that mostly begin lists, maps and objects of few parts.
    #[test]
    fn nested_bytes_are_read_and_skipped_alike(bytes in proptest::collection::vec(proptest::sample::select(b"\x79\x7a\x71\x01a\x90\x91CHMUVWXZ\x60\x61OQNR\0".to_vec()), 0..100)) {
        let _ = both(&bytes, Limits { depth: 20, values: 50 });
    }

    #[test]
    fn values_of_java_with_changed_bytes_are_read_and_skipped_alike(which in any::<proptest::sample::Index>(), changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4)) {
        let vectors = written();
        let mut bytes = vectors[which.index(vectors.len())].bytes.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = both(&bytes, Limits::default());
        let header = Header { message: Message::Reply { status: Status::OK }, is_event: false, serialization: 2, id: 0, body_len: 0 };
        let frame = Frame { header, body: &bytes };
        let judged = judge(&frame, &mut Skipper::new(Limits::default()));
        let read = Reply::decode(&frame, Limits::default());
        prop_assert_eq!(judged.err(), read.err());
    }
}
