//! Replies of memcached's text protocol to `get` of one key and to `set`, as bytes come. No value is kept.
//!
//! Source: doc/protocol.txt of memcached 1.6.

/// Longest line: the first of a value has a key of 250 bytes and three numbers.
const LONGEST_LINE: usize = 2048;
/// Largest value, bytes: `-I` of memcached allows no larger one.
const LARGEST: u64 = 1 << 30;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A value.
    Get,
    /// To store one.
    Set,
}

/// What a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value.
    Hit,
    /// No value.
    Miss,
    /// It is stored.
    Stored,
    /// An error; so many bytes before the end of those that were used its line begins.
    Error {
        /// Bytes of the line with its end.
        line: usize,
    },
}

/// Reads replies one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    /// Bytes of a value that are still to come, and its line end.
    left: Option<u64>,
    /// A value has come.
    has_value: bool,
}

impl Reader {
    /// Reads on in `bytes`, the reply to what was `asked`: how many of them are done with, and the reply that ends with them.
    pub fn read(
        &mut self,
        asked: Option<Asked>,
        bytes: &[u8],
    ) -> Result<(usize, Option<Kind>), &'static str> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if let Some(left) = &mut self.left {
                let here = (*left).min(rest.len() as u64) as usize;
                *left -= here as u64;
                used += here;
                match rest.get(here..here + 2) {
                    Some(b"\r\n") if *left == 0 => {}
                    Some(_) if *left == 0 => {
                        return Err("a value that is longer than it should be");
                    }
                    _ => return Ok((used, None)),
                }
                used += 2;
                self.left = None;
                self.has_value = true;
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', rest) else {
                if rest.len() > LONGEST_LINE {
                    return Err("a line of more than 2 KiB");
                }
                return Ok((used, None));
            };
            let line = rest[..end].strip_suffix(b"\r");
            let line = line.ok_or("a line that is no reply of memcached")?;
            used += end + 1;
            let kind = match (asked, line) {
                (None, _) => return Err("bytes that were not asked for"),
                (Some(Asked::Get), b"END") if self.has_value => Kind::Hit,
                (Some(Asked::Get), b"END") => Kind::Miss,
                (Some(Asked::Set), b"STORED") => Kind::Stored,
                (_, line) if is_error(line) => Kind::Error { line: end + 1 },
                (Some(Asked::Get), line) if !self.has_value && line.starts_with(b"VALUE ") => {
                    self.left = Some(size(line)?);
                    continue;
                }
                (Some(Asked::Get), line) if line.starts_with(b"VALUE ") => {
                    return Err("more values than keys that were asked for");
                }
                _ => return Err("a line that is no reply of memcached to what was asked"),
            };
            self.has_value = false;
            return Ok((used, Some(kind)));
        }
    }
}

fn is_error(line: &[u8]) -> bool {
    let word = line.split(|byte| *byte == b' ').next();
    matches!(
        word,
        Some(b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" | b"NOT_STORED")
    )
}

/// The size of a value: `VALUE key flags bytes`, and a number of its own where it was asked for.
fn size(line: &[u8]) -> Result<u64, &'static str> {
    let wrong = "a value without its size";
    let mut words = line.split(|byte| *byte == b' ').skip(3);
    let size = words.next().and_then(|word| std::str::from_utf8(word).ok());
    let digits = size.filter(|size| size.bytes().all(|byte| byte.is_ascii_digit()));
    let size = digits.and_then(|size| size.parse().ok()).ok_or(wrong)?;
    if size > LARGEST || words.count() > 1 {
        return Err(wrong);
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = Result<(Vec<Kind>, usize), &'static str>;

    /// Reads pieces as the engine does: what was not used comes again before the next piece.
    fn read_in_pieces(asked: &[Asked], pieces: &[&[u8]]) -> Read {
        let (mut reader, mut replies, mut kept) = (Reader::default(), Vec::new(), Vec::new());
        for piece in pieces {
            kept.extend_from_slice(piece);
            while !kept.is_empty() {
                let next = asked.get(replies.len()).copied();
                let (used, reply) = reader.read(next, &kept)?;
                if let Some(Kind::Error { line }) = reply {
                    assert!(is_error(&kept[used - line..used - 2]));
                }
                kept.drain(..used);
                replies.extend(reply);
                if used == 0 && reply.is_none() {
                    break;
                }
            }
        }
        Ok((replies, kept.len()))
    }

    const STREAM: &[u8] =
        b"VALUE k 0 5\r\na\r\nEN\r\nEND\r\nEND\r\nSTORED\r\nVALUE k 0 0\r\n\r\nEND\r\n\
        SERVER_ERROR out of memory\r\nERROR\r\nVALUE key 7 3 99\r\nEND\r\nEND\r\n";
    const ASKED: [Asked; 7] = [
        Asked::Get,
        Asked::Get,
        Asked::Set,
        Asked::Get,
        Asked::Set,
        Asked::Get,
        Asked::Get,
    ];

    #[test]
    fn replies_are_the_same_wherever_their_bytes_are_split() {
        let expected = vec![
            Kind::Hit,
            Kind::Miss,
            Kind::Stored,
            Kind::Hit,
            Kind::Error { line: 28 },
            Kind::Error { line: 7 },
            Kind::Hit,
        ];
        for first in 0..=STREAM.len() {
            for second in first..=STREAM.len() {
                let pieces = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
                let read = read_in_pieces(&ASKED, &pieces);
                assert_eq!(read, Ok((expected.clone(), 0)), "{first} {second}");
            }
        }
        let single: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(read_in_pieces(&ASKED, &single), Ok((expected, 0)));
    }

    #[test]
    fn what_is_no_reply_to_the_request_is_refused() {
        for (asked, bad) in [
            (Asked::Get, &b"STORED\r\n"[..]),
            (Asked::Set, b"END\r\n"),
            (Asked::Set, b"VALUE k 0 1\r\na\r\nEND\r\n"),
            (Asked::Get, b"END\n"),
            (Asked::Get, b"VALUE k 0\r\n"),
            (Asked::Get, b"VALUE k 0 -1\r\n"),
            (Asked::Get, b"VALUE k 0 9999999999\r\n"),
            (Asked::Get, b"VALUE k 0 1 2 3\r\n"),
            (Asked::Get, b"VALUE k 0 1\r\nab\r\n"),
            (
                Asked::Get,
                b"VALUE k 0 1\r\na\r\nVALUE k 0 1\r\na\r\nEND\r\n",
            ),
            (Asked::Get, b"+OK\r\n"),
            (Asked::Get, b"ERRORS\r\n"),
        ] {
            let text = bad.escape_ascii();
            assert!(read_in_pieces(&[asked], &[bad]).is_err(), "{text}");
        }
        assert!(read_in_pieces(&[Asked::Get], &[&[b'a'; LONGEST_LINE + 1]]).is_err());
        assert!(read_in_pieces(&[], &[b"END\r\n"]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end_or_refused(
            spoiled in prop::option::of((0..STREAM.len(), any::<u8>())),
            size in 1..9_usize,
        ) {
            let mut bytes = STREAM.to_vec();
            if let Some((at, byte)) = spoiled {
                bytes[at] = byte;
            }
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            // A prefix of an error may be taken for a reply before the rest has come, never the other way.
            prop_assert_eq!(read_in_pieces(&ASKED, &[&bytes]), read_in_pieces(&ASKED, &chunks));
        }
    }
}
