//! Replies of redis, RESP2 and RESP3, as bytes come: where one ends, and whether it is a value, nil, an error, or a message that nobody asked
//! for. Nothing of a reply is kept but the text of an error.
//!
//! Source: the specification of RESP (redis.io/docs/latest/develop/reference/protocol-spec). Strings and aggregates that are streamed without
//! their length (`$?`, `*?`), which no redis sends, are refused.

/// Longest line: a number, a simple string or the text of an error.
const LONGEST_LINE: usize = 64 * 1024;
/// Longest string, and most elements of one aggregate; beyond what redis can have.
const LONGEST: i64 = 1 << 40;
/// Deepest nesting.
const DEEPEST: usize = 64;
/// Bytes of an error's text that are kept.
const LONGEST_TEXT: usize = 256;

/// What a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value, an empty one too.
    Value,
    /// No value.
    Nil,
    /// An error; its text is [`Reader::text`].
    Error,
    /// A message that is no reply (RESP3).
    Push,
}

/// An aggregate of which elements are still to come.
#[derive(Clone, Copy, Debug)]
struct Open {
    left: u64,
    /// It describes the value that follows, and is none itself.
    is_attribute: bool,
}

/// A string of which bytes are still to come, and its line end.
#[derive(Clone, Copy, Debug)]
struct Bulk {
    left: u64,
    /// The text of an error that is the whole reply.
    is_text: bool,
}

/// Reads replies one after the other.
#[derive(Debug)]
pub struct Reader {
    open: Vec<Open>,
    bulk: Option<Bulk>,
    /// What the reply is that has begun.
    kind: Kind,
    text: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            open: Vec::with_capacity(DEEPEST),
            bulk: None,
            kind: Kind::Value,
            text: Vec::with_capacity(LONGEST_TEXT),
        }
    }
}

impl Reader {
    /// For a new connection.
    pub fn reset(&mut self) {
        self.open.clear();
        self.bulk = None;
    }

    /// The text of the last error, without the mark before it; the beginning of a long one.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Reads on in `bytes`: how many of them are done with, and the reply that ends with them.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(usize, Option<Kind>), &'static str> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if let Some(bulk) = &mut self.bulk {
                let here = bulk.left.min(rest.len() as u64) as usize;
                bulk.left -= here as u64;
                if bulk.is_text {
                    keep(&mut self.text, &rest[..here]);
                }
                used += here;
                match rest.get(here..here + 2) {
                    Some(b"\r\n") if bulk.left == 0 => {}
                    Some(_) if bulk.left == 0 => {
                        return Err("a string that is longer than it should be");
                    }
                    _ => return Ok((used, None)),
                }
                used += 2;
                self.bulk = None;
                if self.is_whole() {
                    return Ok((used, Some(self.kind)));
                }
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', rest) else {
                if rest.len() > LONGEST_LINE {
                    return Err("a line of more than 64 KiB");
                }
                return Ok((used, None));
            };
            let Some((mark, line)) = rest[..end]
                .strip_suffix(b"\r")
                .and_then(<[u8]>::split_first)
            else {
                return Err("a line that is no reply of redis");
            };
            used += end + 1;
            if self.element(*mark, line)? && self.is_whole() {
                return Ok((used, Some(self.kind)));
            }
        }
    }

    /// Takes the line that begins an element; true if that is all of it.
    fn element(&mut self, mark: u8, line: &[u8]) -> Result<bool, &'static str> {
        let is_top = self.open.is_empty();
        let mut kind = Kind::Value;
        let is_all = match mark {
            b'-' => {
                kind = Kind::Error;
                if is_top {
                    self.text.clear();
                    keep(&mut self.text, line);
                }
                true
            }
            b':' => number(line).map(|_| true)?,
            b'(' | b',' if line.is_empty() => return Err("a number without digits"),
            b'+' | b'(' | b',' => true,
            b'#' if matches!(line, b"t" | b"f") => true,
            b'#' => return Err("a truth value that is neither t nor f"),
            b'_' if line.is_empty() => {
                kind = Kind::Nil;
                true
            }
            b'_' => return Err("a nil with something in it"),
            b'$' | b'=' | b'!' => match length(line)? {
                None if mark == b'$' => {
                    kind = Kind::Nil;
                    true
                }
                None => return Err("a length below 0"),
                Some(left) => {
                    let is_error = mark == b'!';
                    if is_error && is_top {
                        self.text.clear();
                    }
                    if is_error {
                        kind = Kind::Error;
                    }
                    let is_text = is_error && is_top;
                    self.bulk = Some(Bulk { left, is_text });
                    false
                }
            },
            b'*' | b'%' | b'~' | b'>' | b'|' => match length(line)? {
                None if mark == b'*' => {
                    kind = Kind::Nil;
                    true
                }
                None => return Err("a length below 0"),
                Some(count) => {
                    if mark == b'>' {
                        if !is_top {
                            return Err("a push message within a reply");
                        }
                        kind = Kind::Push;
                    }
                    let pairs = matches!(mark, b'%' | b'|');
                    let left = if pairs { 2 * count } else { count };
                    let is_attribute = mark == b'|';
                    if left > 0 {
                        if self.open.len() == DEEPEST {
                            return Err("a reply nested more than 64 deep");
                        }
                        self.open.push(Open { left, is_attribute });
                    }
                    // Nothing follows an empty one but the next element; an attribute is no element.
                    left == 0 && !is_attribute
                }
            },
            _ => return Err("a line that is no reply of redis"),
        };
        // What describes a reply does not say what it is.
        if is_top && mark != b'|' {
            self.kind = kind;
        }
        Ok(is_all)
    }

    /// An element has ended; true if the reply ends with it.
    fn is_whole(&mut self) -> bool {
        while let Some(open) = self.open.last_mut() {
            open.left -= 1;
            if open.left > 0 {
                return false;
            }
            if self.open.pop().is_some_and(|open| open.is_attribute) {
                return false;
            }
        }
        true
    }
}

/// Keeps the beginning of an error's text.
fn keep(text: &mut Vec<u8>, bytes: &[u8]) {
    let room = LONGEST_TEXT.saturating_sub(text.len());
    text.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// A whole number of 64 bits.
fn number(line: &[u8]) -> Result<i64, &'static str> {
    let text = std::str::from_utf8(line).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or("a number that is none")
}

/// A length; none where there is no value.
fn length(line: &[u8]) -> Result<Option<u64>, &'static str> {
    match number(line)? {
        -1 => Ok(None),
        length @ 0..=LONGEST => Ok(Some(length.cast_unsigned())),
        _ => Err("a length that no reply has"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Replies with the texts of errors, and how many bytes were left.
    type Read = Result<(Vec<(Kind, String)>, usize), &'static str>;

    /// Reads pieces as the engine does: what was not used comes again before the next piece.
    fn read_in_pieces(pieces: &[&[u8]]) -> Read {
        let (mut reader, mut replies, mut kept) = (Reader::default(), Vec::new(), Vec::new());
        for piece in pieces {
            kept.extend_from_slice(piece);
            while !kept.is_empty() {
                let (used, reply) = reader.read(&kept)?;
                kept.drain(..used);
                if let Some(kind) = reply {
                    let text = match kind {
                        Kind::Error => String::from_utf8_lossy(reader.text()).into_owned(),
                        _ => String::new(),
                    };
                    replies.push((kind, text));
                } else if used == 0 {
                    break;
                }
            }
        }
        Ok((replies, kept.len()))
    }

    const REPLIES: [(&str, Kind, &str); 26] = [
        ("+OK\r\n", Kind::Value, ""),
        ("+\r\n", Kind::Value, ""),
        (
            "-ERR unknown command\r\n",
            Kind::Error,
            "ERR unknown command",
        ),
        (
            "-MOVED 3999 127.0.0.1:6381\r\n",
            Kind::Error,
            "MOVED 3999 127.0.0.1:6381",
        ),
        (":-42\r\n", Kind::Value, ""),
        ("$-1\r\n", Kind::Nil, ""),
        ("*-1\r\n", Kind::Nil, ""),
        ("_\r\n", Kind::Nil, ""),
        ("$0\r\n\r\n", Kind::Value, ""),
        ("$5\r\na\r\nbc\r\n", Kind::Value, ""),
        ("*0\r\n", Kind::Value, ""),
        ("*2\r\n$3\r\nfoo\r\n$-1\r\n", Kind::Value, ""),
        (
            "*3\r\n*2\r\n:1\r\n*0\r\n+a\r\n*1\r\n*1\r\n:2\r\n",
            Kind::Value,
            "",
        ),
        ("*2\r\n-ERR within\r\n$1\r\na\r\n", Kind::Value, ""),
        (",3.14\r\n", Kind::Value, ""),
        (",inf\r\n", Kind::Value, ""),
        ("#t\r\n", Kind::Value, ""),
        (
            "(3492890328409238509324850943850943825024385\r\n",
            Kind::Value,
            "",
        ),
        (
            "!21\r\nSYNTAX invalid syntax\r\n",
            Kind::Error,
            "SYNTAX invalid syntax",
        ),
        ("=15\r\ntxt:Some string\r\n", Kind::Value, ""),
        ("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", Kind::Value, ""),
        ("%0\r\n", Kind::Value, ""),
        ("~3\r\n+a\r\n#f\r\n_\r\n", Kind::Value, ""),
        ("|1\r\n+ttl\r\n:3600\r\n$-1\r\n", Kind::Nil, ""),
        (
            "*2\r\n|1\r\n+x\r\n:1\r\n:1\r\n|0\r\n:2\r\n",
            Kind::Value,
            "",
        ),
        (">3\r\n+message\r\n+channel\r\n$2\r\nhi\r\n", Kind::Push, ""),
    ];

    #[test]
    fn each_kind_of_reply_is_the_same_wherever_its_bytes_are_split() {
        for (reply, kind, text) in REPLIES {
            // Another reply after it shows that it ends where it should.
            let stream = format!("{reply}:7\r\n");
            let expected = vec![(kind, text.to_owned()), (Kind::Value, String::new())];
            let bytes = stream.as_bytes();
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                    let read = read_in_pieces(&pieces);
                    assert_eq!(
                        read,
                        Ok((expected.clone(), 0)),
                        "{reply:?} {first} {second}"
                    );
                }
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read_in_pieces(&single), Ok((expected, 0)), "{reply:?}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bad in [
            "\r\n",
            "OK\r\n",
            "+OK\n",
            ":\r\n",
            ":1a\r\n",
            ":9223372036854775808\r\n",
            "$-2\r\n",
            "$a\r\n",
            "$2\r\nabc\r\n",
            "$?\r\n",
            "%-1\r\n",
            "!-1\r\n",
            "#x\r\n",
            "_x\r\n",
            ",\r\n",
            "*1\r\n>1\r\n+a\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
        ] {
            assert!(read_in_pieces(&[bad.as_bytes()]).is_err(), "{bad:?}");
        }
        assert!(read_in_pieces(&[&vec![b'+'; LONGEST_LINE + 2]]).is_err());
        assert!(read_in_pieces(&["*1\r\n".repeat(DEEPEST + 1).as_bytes()]).is_err());
    }

    #[test]
    fn of_a_long_error_the_beginning_is_kept() {
        let text = "E".repeat(1000);
        for reply in [format!("-{text}\r\n"), format!("!1000\r\n{text}\r\n")] {
            let (replies, _) = read_in_pieces(&[reply.as_bytes()]).unwrap();
            assert_eq!(replies, [(Kind::Error, text[..LONGEST_TEXT].to_owned())]);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end_or_refused(
            picks in prop::collection::vec((0..REPLIES.len(), 0..40_usize, any::<u8>()), 0..12),
            size in 1..9_usize,
        ) {
            let mut bytes = Vec::new();
            for (reply, at, byte) in picks {
                bytes.extend_from_slice(REPLIES[reply].0.as_bytes());
                // Some are spoiled.
                if at < 10 && let Some(place) = bytes.len().checked_sub(at + 1) {
                    bytes[place] = byte;
                }
            }
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(read_in_pieces(&[&bytes]), read_in_pieces(&chunks));
        }
    }
}
