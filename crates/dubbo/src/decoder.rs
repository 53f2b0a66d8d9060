//! The bytes of a connection to frames, in pieces of any size, without a copy or an allocation per frame.

use std::io;

use crate::{Error, Frame, HEADER_LEN};

/// The buffer to begin with.
const FIRST: usize = 64 << 10;
/// Room that a read has at least: below it, reads of small pieces would cost more calls than bytes.
const LEAST_ROOM: usize = 4 << 10;

/// Receives the bytes of one connection and yields its frames.
///
/// ```
/// use rungwise_dubbo::{Decoder, heartbeat};
///
/// let mut decoder = Decoder::new(8 << 20);
/// let bytes = heartbeat(7);
/// for piece in bytes.chunks(3) {
///     // A socket would read into decoder.space().
///     decoder.space()[..piece.len()].copy_from_slice(piece);
///     decoder.filled(piece.len());
///     while let Some(frame) = decoder.next_frame()? {
///         assert!(frame.header.is_event && frame.header.id == 7);
///     }
/// }
/// # Ok::<(), rungwise_dubbo::Error>(())
/// ```
///
/// Memory grows by doubling as bytes arrive, up to one frame of the limit; a claimed length allocates nothing. A frame that is
/// received in pieces is moved at most once.
#[derive(Debug)]
pub struct Decoder {
    /// All of it is initialised; `start..end` is received and not yet yielded.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    passed: u64,
    limit: u32,
    failed: Option<Error>,
}

impl Decoder {
    /// A decoder of frames whose body has at most `limit` bytes ([`crate::DEFAULT_BODY_LIMIT`] is Dubbo's).
    pub fn new(limit: u32) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            passed: 0,
            limit,
            failed: None,
        }
    }

    /// Where to receive the next bytes: never empty, 4 KiB or more. Call [`Self::next_frame`] until it gives `None` first.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        // After a move `start` is 0 until the frame at it is whole, so that no frame is moved twice.
        let is_tight = self.buffer.len() - self.end < LEAST_ROOM;
        if self.start > 0 && (is_tight || self.start > self.buffer.len() / 2) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < LEAST_ROOM {
            let len = (self.buffer.len() * 2).max(FIRST);
            self.buffer.resize(len, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// States that the first `count` bytes of [`Self::space`] were received; more than its length counts as all of it.
    pub fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.buffer.len());
    }

    /// Reads once from `source`; the number of bytes, 0 at its end.
    pub fn read_from(&mut self, source: &mut impl io::Read) -> io::Result<usize> {
        let count = source.read(self.space())?;
        self.filled(count);
        Ok(count)
    }

    /// The next frame that is whole, or `None` until more bytes arrive. An error is final: it is returned again.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let bytes = &self.buffer[self.start..self.end];
        match Frame::parse(bytes, self.limit, self.passed) {
            Ok(None) => Ok(None),
            Ok(Some(frame)) => {
                self.start += frame.wire_len();
                self.passed += frame.wire_len() as u64;
                Ok(Some(frame))
            }
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Bytes that are received and belong to no frame yet. Not 0 at the end of a stream: the last frame is cut.
    pub fn buffered(&self) -> usize {
        self.end - self.start
    }

    /// Bytes that the frame under way still lacks, or `None` between frames and before its header is complete.
    pub fn missing(&self) -> Option<usize> {
        let bytes = &self.buffer[self.start..self.end];
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let header = crate::Header::decode(head, self.passed).ok()?;
        (header.body_len as usize).checked_sub(rest.len())
    }

    /// Bytes of the stream in the frames that were yielded.
    pub fn passed(&self) -> u64 {
        self.passed
    }
}
