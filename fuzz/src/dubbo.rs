//! The bytes of a Dubbo connection, and hessian2 values, of a stranger.

use rungwise_dubbo::hessian::{Limits, Reader, Skipper, Value, Writer};
use rungwise_dubbo::{Call, Decoder, Error, Frame, Header, Reply, event, exception_text, judge};

const LIMITS: Limits = Limits {
    depth: 64,
    values: 100_000,
};

/// Frames, in two pieces and in small ones given by the first two bytes: both ways give the same frames. Whatever they hold, skipping
/// agrees with reading, and what is read is written and read back.
pub fn dubbo(bytes: &[u8]) {
    let [cut, size, rest @ ..] = bytes else {
        return;
    };
    let (first, second) = rest.split_at((usize::from(*cut) * rest.len()) >> 8);
    let (frames, failed) = frames([first, second].into_iter());
    let small = self::frames(rest.chunks(usize::from(*size).max(1)));
    assert_eq!(frames, small.0, "pieces change the frames");
    assert_eq!(failed.is_some(), small.1.is_some(), "pieces change the end");
    let mut skipper = Skipper::new(LIMITS);
    for (header, body) in &frames {
        let encoded = Header::decode(&header.encode(), 0);
        assert_eq!(
            encoded.as_ref(),
            Ok(header),
            "a header is written otherwise"
        );
        let frame = Frame {
            header: *header,
            body,
        };
        let _ = event(&frame);
        let _ = Call::decode(body, LIMITS).map(|call| call.encode());
        let read = Reply::decode(&frame, LIMITS);
        assert_eq!(
            judge(&frame, &mut skipper).err(),
            read.as_ref().err().cloned(),
            "judged otherwise than read"
        );
        values(body, &mut skipper);
    }
    values(rest, &mut skipper);
}

fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<(Header, Vec<u8>)>, Option<Error>) {
    let mut decoder = Decoder::new(1 << 20);
    let mut found = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            decoder
                .read_from(&mut piece)
                .expect("memory is always read");
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => found.push((frame.header, frame.body.to_vec())),
                    Ok(None) => break,
                    Err(error) => return (found, Some(error)),
                }
            }
        }
    }
    (found, None)
}

/// Values one after the other, read and skipped; then written and read back.
fn values(body: &[u8], skipper: &mut Skipper) {
    let mut reader = Reader::new(body, LIMITS);
    let mut skip = skipper.body(body);
    let mut read = Vec::new();
    while !reader.is_end() {
        let value = reader.value();
        assert_eq!(
            value.as_ref().err(),
            skip.skip_value().as_ref().err(),
            "skipped otherwise than read"
        );
        let Ok(value) = value else { break };
        assert_eq!(reader.at(), skip.at(), "skipped further than read");
        let _ = exception_text(&value);
        read.push(value);
    }
    let containers = Value::containers(&read).len();
    assert!(
        containers <= body.len(),
        "more lists, maps and objects than bytes"
    );
    let mut writer = Writer::default();
    for value in &read {
        writer.value(value);
    }
    let written = writer.into_bytes();
    let mut reader = Reader::new(&written, LIMITS);
    let mut again = Writer::default();
    for _ in &read {
        again.value(&reader.value().expect("what is written is read"));
    }
    // By bytes, since one NaN is unequal to another.
    assert_eq!(again.into_bytes(), written, "written otherwise than read");
}
