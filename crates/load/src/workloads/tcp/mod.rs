//! Requests and replies of any protocol over TCP, as far as their frames are known: of a fixed length, with a length before them, or with
//! a delimiter after them.

pub mod frames;
mod parameters;
mod values;

use std::fmt;
use std::sync::Arc;

pub use parameters::Parameters;
pub(super) use values::unhex;
pub use values::{Content, Delimiter, Frames};

use frames::{Expected, Framing, Reader};

use crate::stream::texts::{Dealt, Needs, Texts, Voice};
use crate::stream::{self, Around, Conversation, Cut, Protocol, Reply, Verdict};
use crate::template::Template;

/// What `rungwise explain tcp` shows.
pub(super) const WORKLOAD: super::Workload = super::Workload {
    id: "tcp",
    by_hand: true,
    summary: "Requests over TCP, each with one reply, in frames of a fixed length, with a length before them or a delimiter after them.",
    doc: "\
- **who**: `connections` connections over all `threads` ask one server, by TCP, TLS (`tls`) or a Unix socket (`unix:PATH`). Each has up to `depth` requests under way, whose \
    replies come in their order.
- **messages**: `request` is a size, `text:TEXT` with placeholders, `hex:DIGITS` or `file:PATH`; `reply` the size or the very bytes that must come back. `frames` says where \
    one ends: after a `fixed` number of bytes (of `reply`, or those of the request), `length-prefixed` (`prefix_bytes`, `prefix_little_endian`, \
    `prefix_counts_itself`), or `delimited` (`delimiter`).
- **when**: closed, so that each connection always has `depth` requests under way, or open, at a constant or changing rate that does not wait for the server.
- **until**: a time or a count; then it waits for the last replies, for one `timeout` at most.
- **reported**: rate, latency from the intended and from the actual start, bytes, connections and reconnects, time to connect, CPU per request, and whether the generator \
    spoiled the numbers. A reply of another length or with other bytes than `reply` says is an error (`reply_length`, `reply_content`) and no answer.

In a scenario: `[workload]` with `kind = \"tcp\"`. By hand: `rungwise load tcp HOST:PORT`.",
    metrics: &["rate", "loss", "errors", "p50", "p99", "p99.9", "max"],
    changes: &["connections", "depth", "nagle", "reply", "request"],
    warmup: stream::WARMUP,
    measure: stream::MEASURE,
    quick: stream::QUICK,
};

/// Requests and replies in frames.
#[derive(Debug)]
pub(super) struct Framed {
    texts: Texts,
    shape: Arc<Shape>,
}

/// What all connections send and expect.
#[derive(Debug)]
pub(super) struct Shape {
    framing: Framing,
    request: Template,
    needs: Needs,
    expected: Expected,
    /// The request in words: `100-byte requests`.
    words: String,
}

/// The talk on one connection.
#[derive(Debug)]
pub(super) struct Talk {
    shape: Arc<Shape>,
    voice: Voice,
    reader: Reader,
}

impl fmt::Display for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.shape.words, self.shape.framing)
    }
}

impl Protocol for Framed {
    type Talk = Talk;
    type Dealt = Dealt;

    fn name(&self) -> String {
        format!("TCP, {}", self.shape.framing)
    }

    fn deal(&self) -> Dealt {
        self.texts.deal()
    }

    fn talk(&self, dealt: &Arc<Dealt>, seed: u64, number: usize) -> Talk {
        Talk {
            shape: self.shape.clone(),
            voice: self.texts.voice(dealt, seed, number),
            reader: Reader::default(),
        }
    }
}

impl Conversation for Talk {
    fn begin(&mut self, _: &mut Vec<u8>) -> usize {
        self.reader = Reader::default();
        0
    }

    #[inline]
    fn write(&mut self, _: u64, to: &mut Vec<u8>) -> usize {
        let Self { shape, voice, .. } = self;
        voice.begin(&shape.needs);
        shape
            .framing
            .write(to, |to| voice.render(&shape.request, to));
        0
    }

    #[inline]
    fn read(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<Cut, &'static str> {
        let Shape {
            framing, expected, ..
        } = &*self.shape;
        let (used, frame) = self.reader.read(framing, expected, bytes)?;
        let mut verdict = |frame: frames::Frame| match (expected.fits(frame.length), frame.differs)
        {
            (false, _) => {
                let class = around
                    .classes
                    .of(b"length", b"another length than --reply has");
                Verdict::Error(class)
            }
            (true, true) => {
                let class = around
                    .classes
                    .of(b"content", b"other bytes than --reply has");
                Verdict::Error(class)
            }
            (true, false) => Verdict::Answer(None),
        };
        Ok(Cut {
            used,
            reply: frame.map(|frame| Reply {
                of: None,
                verdict: verdict(frame),
            }),
        })
    }
}
