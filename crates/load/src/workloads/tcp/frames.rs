//! Where a message on a stream ends: after a fixed number of bytes, after as many as its prefix says, or at a delimiter.
//!
//! The reader passes bytes on as they come and keeps none of them, however long a frame is; what it cannot decide yet it leaves.

use std::fmt;

use memchr::memmem;

/// Longest frame: a longer one is more likely a prefix that is none.
pub const LONGEST: u64 = 1 << 30;

/// How messages are delimited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By their length, in bytes; that of a reply.
    Fixed(u64),
    /// By a number before them.
    Prefixed(Prefix),
    /// By these bytes after them, one at least.
    Delimited(Vec<u8>),
}

/// The number before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// 1, 2, 4 or 8.
    pub bytes: usize,
    /// The least significant byte comes first.
    pub is_little_endian: bool,
    /// The number is that of all bytes, its own too.
    pub counts_itself: bool,
}

/// What a reply must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Anything.
    #[default]
    Any,
    /// So many bytes.
    Length(u64),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// A message that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its bytes, without prefix and delimiter.
    pub length: u64,
    /// They are others than those that were expected.
    pub differs: bool,
}

/// Reads messages one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    /// Bytes of the message that are still to come; known once it has begun, unless a delimiter ends it.
    left: Option<u64>,
    /// Bytes of it that have come.
    came: u64,
    differs: bool,
}

impl Prefix {
    /// The greatest number that it can be.
    pub fn most(self) -> u64 {
        match self.bytes {
            8.. => u64::MAX,
            bytes => (1 << (8 * bytes)) - 1,
        }
    }

    fn own(self) -> u64 {
        if self.counts_itself {
            self.bytes as u64
        } else {
            0
        }
    }

    fn read(self, bytes: &[u8]) -> Result<u64, &'static str> {
        let mut number = [0; 8];
        let value = if self.is_little_endian {
            number[..self.bytes].copy_from_slice(&bytes[..self.bytes]);
            u64::from_le_bytes(number)
        } else {
            number[8 - self.bytes..].copy_from_slice(&bytes[..self.bytes]);
            u64::from_be_bytes(number)
        };
        match value.checked_sub(self.own()) {
            None => Err("a length prefix below its own size, which it should count"),
            Some(length) if length > LONGEST => Err("a length prefix above 1 GiB"),
            Some(length) => Ok(length),
        }
    }

    /// Writes it before the message that `to` contains from `at` on, with as much room for it before that.
    fn write(self, to: &mut [u8], at: usize) {
        let value = (to.len() - at) as u64 + self.own();
        let place = &mut to[at - self.bytes..at];
        if self.is_little_endian {
            place.copy_from_slice(&value.to_le_bytes()[..self.bytes]);
        } else {
            place.copy_from_slice(&value.to_be_bytes()[8 - self.bytes..]);
        }
    }
}

impl Framing {
    /// Appends a message, which `write` appends, with what delimits it.
    #[inline]
    pub fn write(&self, to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Self::Fixed(_) => write(to),
            Self::Prefixed(prefix) => {
                to.extend_from_slice(&[0; 8][..prefix.bytes]);
                let at = to.len();
                write(to);
                prefix.write(to, at);
            }
            Self::Delimited(delimiter) => {
                write(to);
                to.extend_from_slice(delimiter);
            }
        }
    }

    /// Why a message cannot be sent so.
    pub fn misfit(&self, message: &[u8]) -> Option<String> {
        let length = message.len() as u64;
        match self {
            Self::Fixed(_) => None,
            Self::Prefixed(prefix) => {
                let most = prefix.most().saturating_sub(prefix.own());
                (length > most).then(|| {
                    format!(
                        "a request of {length} bytes has no length in {} bytes, which count up to {most}; use a longer prefix",
                        prefix.bytes
                    )
                })
            }
            Self::Delimited(delimiter) => memmem::find(message, delimiter).map(|at| {
                format!(
                    "the request contains the delimiter '{}' (at byte {at}), which would end it; use another delimiter, or another request",
                    delimiter.escape_ascii()
                )
            }),
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(length) => write!(f, "with replies of {length} bytes"),
            Self::Prefixed(prefix) => {
                let order = match prefix {
                    Prefix { bytes: 1, .. } => "",
                    Prefix {
                        is_little_endian: true,
                        ..
                    } => ", little-endian",
                    _ => ", big-endian",
                };
                let itself = if prefix.counts_itself {
                    ", which it counts"
                } else {
                    ""
                };
                write!(
                    f,
                    "with a length prefix of {} bytes{order}{itself}",
                    prefix.bytes
                )
            }
            Self::Delimited(delimiter) => write!(f, "ended by '{}'", delimiter.escape_ascii()),
        }
    }
}

impl Expected {
    /// It may have this length.
    #[inline]
    pub fn fits(&self, length: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Length(expected) => *expected == length,
            Self::Bytes(bytes) => bytes.len() as u64 == length,
        }
    }
}

impl Reader {
    /// Reads on in `bytes`: how many of them are done with, and the message that ends with them.
    #[inline]
    pub fn read(
        &mut self,
        framing: &Framing,
        expected: &Expected,
        bytes: &[u8],
    ) -> Result<(usize, Option<Frame>), &'static str> {
        if let Framing::Delimited(delimiter) = framing {
            return self.read_delimited(delimiter, expected, bytes);
        }
        let mut used = 0;
        let left = match (self.left, framing) {
            (Some(left), _) => left,
            (None, Framing::Prefixed(prefix)) => {
                if bytes.len() < prefix.bytes {
                    return Ok((0, None));
                }
                used = prefix.bytes;
                prefix.read(bytes)?
            }
            (None, Framing::Fixed(length)) => *length,
            (None, Framing::Delimited(_)) => 0,
        };
        let here = left.min((bytes.len() - used) as u64);
        self.take(expected, &bytes[used..used + here as usize]);
        self.left = Some(left - here);
        let is_whole = left == here;
        Ok((used + here as usize, is_whole.then(|| self.end())))
    }

    fn read_delimited(
        &mut self,
        delimiter: &[u8],
        expected: &Expected,
        bytes: &[u8],
    ) -> Result<(usize, Option<Frame>), &'static str> {
        let found = match delimiter {
            [byte] => memchr::memchr(*byte, bytes),
            _ => memmem::find(bytes, delimiter),
        };
        if let Some(at) = found {
            self.take(expected, &bytes[..at]);
            return Ok((at + delimiter.len(), Some(self.end())));
        }
        // The delimiter may begin in the last bytes.
        let sure = bytes.len().saturating_sub(delimiter.len() - 1);
        self.take(expected, &bytes[..sure]);
        if self.came > LONGEST {
            return Err("no delimiter in 1 GiB");
        }
        Ok((sure, None))
    }

    /// Takes the next bytes of a message.
    #[inline]
    fn take(&mut self, expected: &Expected, bytes: &[u8]) {
        if let Expected::Bytes(expected) = expected {
            let at = self.came.min(expected.len() as u64) as usize;
            let there = expected[at..].get(..bytes.len());
            self.differs |= there != Some(bytes);
        }
        self.came += bytes.len() as u64;
    }

    #[inline]
    fn end(&mut self) -> Frame {
        let Self { came, differs, .. } = std::mem::take(self);
        Frame {
            length: came,
            differs,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefixed(bytes: usize, is_little_endian: bool, counts_itself: bool) -> Framing {
        Framing::Prefixed(Prefix {
            bytes,
            is_little_endian,
            counts_itself,
        })
    }

    fn all(length: u64) -> Vec<Framing> {
        let mut all = vec![
            Framing::Fixed(length),
            Framing::Delimited(b"\n".to_vec()),
            Framing::Delimited(b"\r\n".to_vec()),
            Framing::Delimited(b"--end--".to_vec()),
        ];
        for bytes in [1, 2, 4, 8] {
            for (little, itself) in [(false, false), (true, false), (false, true), (true, true)] {
                all.push(prefixed(bytes, little, itself));
            }
        }
        all
    }

    /// Reads pieces as the engine does: what was not used comes again before the next piece.
    fn read_in_pieces(
        framing: &Framing,
        expected: &Expected,
        pieces: &[&[u8]],
    ) -> Result<(Vec<Frame>, Vec<u8>), &'static str> {
        let (mut reader, mut frames, mut kept) = (Reader::default(), Vec::new(), Vec::new());
        for piece in pieces {
            kept.extend_from_slice(piece);
            while !kept.is_empty() {
                let (used, frame) = reader.read(framing, expected, &kept)?;
                kept.drain(..used);
                frames.extend(frame);
                if used == 0 && frame.is_none() {
                    break;
                }
            }
        }
        Ok((frames, kept))
    }

    #[test]
    fn a_frame_is_the_same_wherever_its_bytes_are_split() {
        let message = b"ab-\rcd--en";
        for framing in all(message.len() as u64) {
            let mut stream = Vec::new();
            for _ in 0..3 {
                framing.write(&mut stream, |to| to.extend_from_slice(message));
            }
            let expected = Expected::Bytes(message.to_vec());
            let frame = Frame {
                length: message.len() as u64,
                differs: false,
            };
            for first in 0..=stream.len() {
                for second in first..=stream.len() {
                    let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
                    let (frames, kept) = read_in_pieces(&framing, &expected, &pieces).unwrap();
                    assert_eq!(
                        (frames, kept.len()),
                        (vec![frame; 3], 0),
                        "{framing} {first} {second}"
                    );
                }
            }
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            let (frames, _) = read_in_pieces(&framing, &expected, &bytes).unwrap();
            assert_eq!(frames, [frame; 3], "{framing}");
        }
    }

    #[test]
    fn a_prefix_is_written_and_read_in_its_order_with_or_without_itself() {
        for (framing, bytes) in [
            (prefixed(1, false, false), &b"\x02ab"[..]),
            (prefixed(2, false, false), b"\0\x02ab"),
            (prefixed(2, true, true), b"\x04\0ab"),
            (prefixed(4, false, true), b"\0\0\0\x06ab"),
            (prefixed(8, true, false), b"\x02\0\0\0\0\0\0\0ab"),
        ] {
            let mut written = Vec::new();
            framing.write(&mut written, |to| to.extend_from_slice(b"ab"));
            assert_eq!(written, bytes, "{framing}");
        }
        let read = |framing: Framing, bytes: &[u8]| {
            read_in_pieces(&framing, &Expected::Any, &[bytes]).map(|(frames, _)| frames.len())
        };
        assert!(read(prefixed(4, false, true), b"\0\0\0\x03").is_err());
        assert!(read(prefixed(4, false, false), b"HTTP/1.1").is_err());
        assert_eq!(
            read(prefixed(4, false, false), b"\0\0\0\0\0\0\0\0"),
            Ok(2),
            "empty ones"
        );
        assert_eq!(read(Framing::Delimited(b"\n".to_vec()), b"\n\na"), Ok(2));
    }

    #[test]
    fn another_length_or_other_bytes_are_noticed() {
        let frame = |expected: &Expected, bytes: &[u8]| {
            let framing = Framing::Delimited(b"\n".to_vec());
            let chunks: Vec<&[u8]> = bytes.chunks(2).collect();
            let (frames, _) = read_in_pieces(&framing, expected, &chunks).unwrap();
            (expected.fits(frames[0].length), frames[0].differs)
        };
        let expected = Expected::Bytes(b"pong".to_vec());
        assert_eq!(frame(&expected, b"pong\n"), (true, false));
        assert_eq!(frame(&expected, b"pang\n"), (true, true));
        assert!(!frame(&expected, b"pon\n").0);
        assert!(!frame(&expected, b"pongs\n").0);
        assert_eq!(frame(&Expected::Length(3), b"abc\n"), (true, false));
        assert!(!frame(&Expected::Length(3), b"abcd\n").0);
        assert_eq!(frame(&Expected::Any, b"\n"), (true, false));
    }

    #[test]
    fn what_a_frame_cannot_hold_is_refused() {
        let misfit = |framing: Framing, message: &[u8]| framing.misfit(message).is_some();
        assert!(misfit(prefixed(1, false, false), &[0; 256]));
        assert!(!misfit(prefixed(1, false, false), &[0; 255]));
        assert!(misfit(prefixed(1, false, true), &[0; 255]));
        assert!(misfit(Framing::Delimited(b"\n".to_vec()), b"a\nb"));
        assert!(!misfit(Framing::Fixed(1), b"a\nb"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            size in 1..20_usize,
        ) {
            for framing in all(7) {
                let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
                let whole = read_in_pieces(&framing, &Expected::Length(7), &[&bytes]);
                let pieces = read_in_pieces(&framing, &Expected::Length(7), &chunks);
                prop_assert_eq!(whole.map(|(frames, _)| frames), pieces.map(|(frames, _)| frames));
            }
        }
    }
}
