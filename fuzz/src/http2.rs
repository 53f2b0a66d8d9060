//! What a server of HTTP/2 may send.

use std::collections::BTreeMap;

use rungwise_load::http::http2::frames::{Frame, Reader};
use rungwise_load::http::http2::stream::Stream;
use rungwise_load::http::response::Response;

/// What is read of a connection.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reading {
    /// All frames but those of bodies.
    frames: Vec<String>,
    /// Bytes of the bodies, and what they take of the windows.
    bodies: (usize, u64),
    /// Status and completeness of each response; none where it is malformed.
    responses: BTreeMap<u32, Option<(u16, bool)>>,
    /// Why the connection is given up.
    broken: Option<&'static str>,
}

/// The frames of a server, in two pieces and in small ones: both ways must read the same. First byte where the first of two pieces ends, in
/// 256ths; second byte the size of the others.
pub fn http2(bytes: &[u8]) {
    let [cut, size, rest @ ..] = bytes else {
        return;
    };
    let (first, second) = rest.split_at((usize::from(*cut) * rest.len()) >> 8);
    let two = reading([first, second].into_iter());
    let small = reading(rest.chunks(usize::from(*size).max(1)));
    assert_eq!(two, small, "pieces change what is read");
}

fn reading<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Reading {
    let mut reader = Reader::default();
    let mut reading = Reading::default();
    let mut streams = BTreeMap::<u32, (Stream, Response)>::new();
    for piece in pieces {
        let mut at = 0;
        loop {
            let frame = match reader.next(piece, &mut at) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(broken) => {
                    reading.broken = Some(broken.why);
                    return reading;
                }
            };
            assert!(at <= piece.len(), "more taken than there is");
            let mut on_stream =
                |stream: u32, take: &dyn Fn(&mut Stream, &mut Response) -> Option<bool>| {
                    let is_known = reading.responses.contains_key(&stream);
                    let (state, response) = streams
                        .entry(stream)
                        .or_insert_with(|| (Stream::new(stream), Response::new(false)));
                    // What comes after the end, or after a fault, is not read.
                    if is_known && !matches!(reading.responses[&stream], Some((_, false))) {
                        return;
                    }
                    let read = take(state, response).map(|done| (response.status(), done));
                    reading.responses.insert(stream, read);
                };
            match frame {
                Frame::Data {
                    stream,
                    bytes,
                    flow,
                    ends,
                } => {
                    on_stream(stream, &|state, _| state.data(bytes.len(), ends).ok());
                    reading.bodies.0 += bytes.len();
                    reading.bodies.1 += u64::from(flow);
                }
                Frame::Head {
                    stream,
                    block,
                    ends,
                } => {
                    on_stream(stream, &|state, response| {
                        state.head(block, ends, false, response).ok()
                    });
                    reading.frames.push(format!("{frame:?}"));
                }
                other => reading.frames.push(format!("{other:?}")),
            }
        }
        assert_eq!(at, piece.len(), "bytes are left");
    }
    reading
}
