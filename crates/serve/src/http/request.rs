//! Where a request of HTTP/1.1 begins and ends, read piece by piece as the pieces arrive.
//!
//! Heads are read by `httparse`; framing follows RFC 9112, section 6.3: chunks, a length, or no body. What two servers might
//! delimit differently is refused: a length beside chunks, lengths that differ, chunks in HTTP/1.0, line feeds without carriage
//! returns between chunks. A body is read and forgotten.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Status};

/// Longest head, and longest trailer section, bytes: what servers accept is 8 to 64 KiB.
pub const LONGEST_HEAD: usize = 64 << 10;
/// Most header lines; browsers send about twenty.
const MOST_HEADERS: usize = 128;
/// Longest line that gives the size of a chunk, extensions included.
const LONGEST_CHUNK_LINE: usize = 4096;
/// Hexadecimal digits of a chunk's size: more do not fit 64 bits.
const CHUNK_DIGITS: usize = 16;

/// Why bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad(pub &'static str);

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing that is complete.
    Partial,
    /// A head whose client waits for `100 Continue` before it sends the body.
    Expectation,
    /// The last byte of a request.
    Complete(Facts),
}

/// What a reply depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The method is HEAD: the reply has no body.
    pub to_head: bool,
    /// What becomes of the connection.
    pub persistence: Persistence,
}

/// What becomes of a connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It is kept, as ever in HTTP/1.1.
    Kept,
    /// It is kept as asked, which HTTP/1.0 must be told.
    KeptAsAsked,
    /// It is closed.
    Closed,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// In the head.
    #[default]
    Head,
    /// This many bytes of the body are to come.
    Length(u64),
    /// In the line that gives the size of a chunk.
    ChunkSize {
        size: u64,
        digits: usize,
        line: usize,
        part: Part,
    },
    /// This many bytes of a chunk are to come.
    Chunk(u64),
    /// After a chunk's data, before its carriage return.
    ChunkReturn,
    /// After that, before its line feed.
    ChunkFeed,
    /// In the lines after the last chunk: how long they are together, and the line at hand.
    Trailers {
        all: usize,
        line: usize,
        returned: bool,
    },
}

/// A part of the line that gives the size of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Digits,
    Extension,
    Feed,
}

/// At the beginning of a chunk.
const CHUNK_LINE: State = State::ChunkSize {
    size: 0,
    digits: 0,
    line: 0,
    part: Part::Digits,
};

/// The requests of a connection, one after the other.
#[derive(Debug, Default)]
pub struct Request {
    state: State,
    facts: Option<Facts>,
    /// Bytes of an incomplete head that were looked at.
    seen: usize,
}

impl Request {
    /// Reads the beginning of `input`, up to the next event; how many bytes were taken. Bytes of a head that is not complete are
    /// not taken: they come again, with more.
    pub fn read(&mut self, input: &[u8]) -> Result<(usize, Event), Bad> {
        let mut at = 0;
        if self.state == State::Head {
            let Some((length, expects)) = self.head(input)? else {
                return Ok((0, Event::Partial));
            };
            at = length;
            if self.state == State::Head {
                return Ok((at, self.complete()));
            }
            // Who has sent the beginning of the body does not wait.
            if expects && at == input.len() {
                return Ok((at, Event::Expectation));
            }
        }
        while at < input.len() {
            let (taken, complete) = self.body(&input[at..])?;
            at += taken;
            if complete {
                self.state = State::Head;
                return Ok((at, self.complete()));
            }
        }
        Ok((at, Event::Partial))
    }

    /// No request has begun, as far as bytes were taken.
    pub fn is_between(&self) -> bool {
        self.state == State::Head
    }

    fn complete(&mut self) -> Event {
        self.facts.take().map_or(Event::Partial, Event::Complete)
    }

    /// Reads the head at the beginning of `input`, where it is whole: its length, and whether the client waits for
    /// `100 Continue`. The state is then that of its body.
    fn head(&mut self, input: &[u8]) -> Result<Option<(usize, bool)>, Bad> {
        const TOO_LONG: Bad = Bad("the head is longer than 64 KiB");
        // A head is read again only when another of its lines is whole, so that single bytes cost little.
        let new = &input[self.seen.min(input.len())..];
        let worth = self.seen == 0 || new.contains(&b'\n') || input.len() > LONGEST_HEAD;
        if new.is_empty() || !worth {
            self.seen = input.len();
            return Ok(None);
        }
        let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut []);
        let parsed = ParserConfig::default().parse_request_with_uninit_headers(
            &mut request,
            input,
            &mut headers,
        );
        match parsed {
            Ok(Status::Complete(length)) if length <= LONGEST_HEAD => {
                self.seen = 0;
                let expects = self.frame(&request)?;
                Ok(Some((length, expects)))
            }
            Ok(Status::Complete(_)) => Err(TOO_LONG),
            Ok(Status::Partial) if input.len() > LONGEST_HEAD => Err(TOO_LONG),
            Ok(Status::Partial) => {
                self.seen = input.len();
                Ok(None)
            }
            Err(httparse::Error::TooManyHeaders) => {
                Err(Bad("the head has more than 128 header lines"))
            }
            Err(httparse::Error::Version) => Err(Bad("the version is not HTTP/1.0 or HTTP/1.1")),
            Err(_) => Err(Bad("the head is not that of an HTTP request")),
        }
    }

    /// Reads how the body is delimited; whether the client waits for `100 Continue`.
    fn frame(&mut self, request: &httparse::Request<'_, '_>) -> Result<bool, Bad> {
        let (method, new) = (
            request.method.unwrap_or_default(),
            request.version == Some(1),
        );
        if method == "CONNECT" {
            return Err(Bad("CONNECT is not served"));
        }
        let mut length: Option<u64> = None;
        let mut chunked = None;
        let (mut closes, mut stays, mut expects) = (false, false, false);
        let mut hosts = 0;
        for Header { name, value } in &*request.headers {
            // By length first: most names are none of these.
            match name.len() {
                4 if name.eq_ignore_ascii_case("host") => hosts += 1,
                6 if name.eq_ignore_ascii_case("expect") => {
                    expects |= new && value.eq_ignore_ascii_case(b"100-continue");
                }
                10 if name.eq_ignore_ascii_case("connection") => {
                    for word in words(value) {
                        closes |= word.eq_ignore_ascii_case(b"close");
                        stays |= word.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                14 if name.eq_ignore_ascii_case("content-length") => {
                    for word in words(value) {
                        let number =
                            number(word).ok_or(Bad("Content-Length is not a number of bytes"))?;
                        if length.is_some_and(|length| length != number) {
                            return Err(Bad("Content-Length has two values"));
                        }
                        length = Some(number);
                    }
                }
                17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                    for word in words(value) {
                        if chunked == Some(true) {
                            return Err(Bad("chunked is not the last transfer coding"));
                        }
                        chunked = Some(word.eq_ignore_ascii_case(b"chunked"));
                    }
                }
                _ => {}
            }
        }
        if hosts > 1 || new && hosts == 0 {
            return Err(Bad("a request of HTTP/1.1 has one Host"));
        }
        self.state = match (chunked, length) {
            (Some(_), _) if !new => return Err(Bad("HTTP/1.0 has no transfer codings")),
            (Some(_), Some(_)) => return Err(Bad("Content-Length beside Transfer-Encoding")),
            (Some(false), None) => return Err(Bad("chunked is not the last transfer coding")),
            (Some(true), None) => CHUNK_LINE,
            (None, Some(0) | None) => State::Head,
            (None, Some(length)) => State::Length(length),
        };
        self.facts = Some(Facts {
            to_head: method == "HEAD",
            persistence: match (closes, new, stays) {
                (true, _, _) | (false, false, false) => Persistence::Closed,
                (false, true, _) => Persistence::Kept,
                (false, false, true) => Persistence::KeptAsAsked,
            },
        });
        Ok(expects && self.state != State::Head)
    }

    /// Takes some bytes of a body, one at least; how many, and whether it is complete.
    fn body(&mut self, input: &[u8]) -> Result<(usize, bool), Bad> {
        const NO_LINE: Bad = Bad("a line of a chunked body does not end with CR LF");
        let first = input[0];
        self.state = match self.state {
            State::Length(left) => {
                let taken = left.min(input.len() as u64);
                self.state = State::Length(left - taken);
                return Ok((taken as usize, left == taken));
            }
            State::Chunk(left) => {
                let taken = left.min(input.len() as u64);
                self.state = match left - taken {
                    0 => State::ChunkReturn,
                    left => State::Chunk(left),
                };
                return Ok((taken as usize, false));
            }
            State::ChunkReturn if first == b'\r' => State::ChunkFeed,
            State::ChunkFeed if first == b'\n' => CHUNK_LINE,
            State::ChunkReturn | State::ChunkFeed => {
                return Err(Bad("a chunk is longer than its size"));
            }
            State::ChunkSize { .. } => self.chunk_size(first)?,
            State::Trailers { all, .. } if all == LONGEST_HEAD => {
                return Err(Bad("the trailers are longer than 64 KiB"));
            }
            State::Trailers {
                all,
                line,
                returned,
            } => match (first, returned) {
                (b'\n', true) if line == 0 => return Ok((1, true)),
                (b'\n', true) => State::Trailers {
                    all: all + 1,
                    line: 0,
                    returned: false,
                },
                (b'\r', false) => State::Trailers {
                    all: all + 1,
                    line,
                    returned: true,
                },
                (b'\n', false) | (_, true) => return Err(NO_LINE),
                _ => State::Trailers {
                    all: all + 1,
                    line: line + 1,
                    returned,
                },
            },
            State::Head => return Ok((0, true)),
        };
        Ok((1, false))
    }

    /// The state after another byte of a chunk's first line.
    fn chunk_size(&self, byte: u8) -> Result<State, Bad> {
        const BAD: Bad = Bad("the size of a chunk is not a hexadecimal number");
        let State::ChunkSize {
            size,
            digits,
            line,
            part,
        } = self.state
        else {
            return Err(BAD);
        };
        if line == LONGEST_CHUNK_LINE {
            return Err(Bad("the extensions of a chunk are longer than 4 KiB"));
        }
        let next = |size, digits, part| {
            Ok(State::ChunkSize {
                size,
                digits,
                line: line + 1,
                part,
            })
        };
        match (part, byte) {
            (Part::Feed, b'\n') if size == 0 => Ok(State::Trailers {
                all: 0,
                line: 0,
                returned: false,
            }),
            (Part::Feed, b'\n') => Ok(State::Chunk(size)),
            (Part::Feed, _) | (_, b'\n') => {
                Err(Bad("a line of a chunked body does not end with CR LF"))
            }
            (_, b'\r') if digits > 0 => next(size, digits, Part::Feed),
            (Part::Extension, _) => next(size, digits, part),
            (Part::Digits, b';' | b' ' | b'\t') if digits > 0 => {
                next(size, digits, Part::Extension)
            }
            (Part::Digits, _) => {
                let digit = (byte as char).to_digit(16).ok_or(BAD)?;
                if digits == CHUNK_DIGITS {
                    return Err(BAD);
                }
                let size = size << 4 | u64::from(digit);
                next(size, digits + 1, part)
            }
        }
    }
}

/// The parts of a header's list.
fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// A decimal number; absent where there is another character, or where it does not fit.
fn number(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| plain)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The requests in `bytes` that arrive in pieces of `size`, and what is left of them or why it was refused.
    fn read(bytes: &[u8], size: usize) -> (Vec<Facts>, Result<usize, Bad>) {
        let (mut request, mut found) = (Request::default(), Vec::new());
        let (mut at, mut end) = (0, 0);
        while end < bytes.len() {
            end = bytes.len().min(end + size);
            loop {
                match request.read(&bytes[at..end]) {
                    Err(bad) => return (found, Err(bad)),
                    Ok((taken, event)) => {
                        at += taken;
                        match event {
                            Event::Partial => break,
                            Event::Expectation => {}
                            Event::Complete(facts) => found.push(facts),
                        }
                    }
                }
            }
        }
        let unread = if request.is_between() {
            bytes.len() - at
        } else {
            1
        };
        (found, Ok(unread))
    }

    /// The same in any pieces.
    fn whole(text: &str) -> (Vec<Facts>, Result<usize, Bad>) {
        let bytes = text.as_bytes();
        let at_once = read(bytes, bytes.len().max(1));
        for size in [1, 2, 3, 7, 50] {
            assert_eq!(read(bytes, size), at_once, "pieces of {size}: {text}");
        }
        at_once
    }

    #[track_caller]
    fn good(text: &str) -> Vec<Facts> {
        let (found, left) = whole(text);
        assert_eq!(left, Ok(0), "{text}");
        found
    }

    #[test]
    fn requests_end_by_their_head_a_length_or_chunks() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(good(get).len(), 1);
        assert_eq!(good(&get.repeat(5)).len(), 5);
        let post = "POST / HTTP/1.1\r\nhost: a\r\nContent-Length: 5, 5\r\n\r\nhello";
        let chunks = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n\
                      4;name=\"v\"\r\nWiki\r\n0A \r\npedia in\r\n\r\n0\r\nTrailer: x\r\nB: y\r\n\r\n";
        assert_eq!(good(&[post, chunks, get].concat()).len(), 3);
        assert_eq!(good("\r\nGET / HTTP/1.1\nHost: a\n\n").len(), 1);
        assert_eq!(
            whole("POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\n\r\nhell").1,
            Ok(1)
        );
        assert_eq!(whole("GET / HTTP/1.1\r\nHost"), (Vec::new(), Ok(20)));
        assert_eq!(whole(""), (Vec::new(), Ok(0)));
    }

    #[test]
    fn the_reply_depends_on_method_version_and_connection() {
        let one = |text: &str| good(text)[0];
        let persistence = |text: &str| one(&format!("GET / {text}\r\n\r\n")).persistence;
        assert!(one("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").to_head);
        assert_eq!(persistence("HTTP/1.1\r\nHost: a"), Persistence::Kept);
        let close = "HTTP/1.1\r\nHost: a\r\nConnection: x, Close";
        assert_eq!(persistence(close), Persistence::Closed);
        assert_eq!(persistence("HTTP/1.0"), Persistence::Closed);
        let ab = "HTTP/1.0\r\nConnection: Keep-Alive";
        assert_eq!(persistence(ab), Persistence::KeptAsAsked);
    }

    #[test]
    fn a_client_that_waits_with_its_body_gets_100_continue() {
        let head =
            b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        let mut request = Request::default();
        assert_eq!(request.read(head), Ok((head.len(), Event::Expectation)));
        assert!(!request.is_between());
        let (taken, event) = request.read(b"abc").unwrap();
        assert!(matches!((taken, event), (2, Event::Complete(_))));
        let sent = [&head[..], b"a"].concat();
        let mut request = Request::default();
        assert_eq!(request.read(&sent), Ok((sent.len(), Event::Partial)));
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let body = |text: &str| format!("{chunked}{text}");
        let header = |text: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{text}\r\n\r\n");
        for (text, why) in [
            ("\x16\x03\x01\x02".to_owned(), "not that of an HTTP request"),
            (
                "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
                "not that of an HTTP request",
            ),
            ("GET / HTTP/2.0\r\n\r\n".to_owned(), "version"),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), "one Host"),
            (
                "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
                "CONNECT",
            ),
            (header("Host: b"), "one Host"),
            (header("Content-Length: -5"), "not a number"),
            (
                header("Content-Length: 99999999999999999999"),
                "not a number",
            ),
            (
                header("Content-Length: 5\r\nContent-Length: 6"),
                "two values",
            ),
            (
                header("Content-Length: 5\r\nTransfer-Encoding: chunked"),
                "beside",
            ),
            (header("Transfer-Encoding: chunked, gzip"), "not the last"),
            (header("Transfer-Encoding: gzip"), "not the last"),
            (
                "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
                "HTTP/1.0",
            ),
            (header(&"a: b\r\n".repeat(200)), "128 header lines"),
            (body("xyz\r\n"), "hexadecimal"),
            (body("\r\n"), "hexadecimal"),
            (body("11111111111111111\r\n"), "hexadecimal"),
            (body("3\nabc"), "CR LF"),
            (body("3\r\nabcd"), "longer than its size"),
            (body("0\r\na: b\n"), "CR LF"),
            (body("0\r\na\rb"), "CR LF"),
        ] {
            let (_, refused) = whole(&text);
            let Err(Bad(reason)) = refused else {
                panic!("{text} was read");
            };
            assert!(reason.contains(why), "{text}: {reason}");
        }
    }

    #[test]
    fn nothing_grows_without_bound() {
        let long = "x".repeat(1 << 20);
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (text, why) in [
            (
                format!("GET / HTTP/1.1\r\nHost: a\r\nx: {long}\r\n\r\n"),
                "longer than 64 KiB",
            ),
            (
                format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
                "longer than 64 KiB",
            ),
            (format!("{chunked}1;{long}"), "longer than 4 KiB"),
            (format!("{chunked}0\r\n{long}"), "longer than 64 KiB"),
        ] {
            for size in [1 << 10, 1 << 16, 2 << 20] {
                let (_, refused) = read(text.as_bytes(), size);
                let Err(Bad(reason)) = refused else {
                    panic!("{} was read", &text[..40]);
                };
                assert!(reason.contains(why), "{reason}");
            }
        }
        // The longest that is accepted.
        let head = "GET / HTTP/1.1\r\nHost: a\r\nx: ";
        let rest = LONGEST_HEAD - head.len() - 4;
        assert_eq!(good(&format!("{head}{}\r\n\r\n", &long[..rest])).len(), 1);
    }

    proptest! {
        #[test]
        fn pieces_never_matter(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..5),
            chunked in any::<bool>(),
            sizes in prop::collection::vec(1_usize..60, 1..20),
        ) {
            let mut bytes = Vec::new();
            for body in &bodies {
                bytes.extend(b"POST /a HTTP/1.1\r\nHost: a\r\n");
                if chunked {
                    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                    for chunk in body.chunks(sizes[0]) {
                        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                        bytes.extend(chunk);
                        bytes.extend(b"\r\n");
                    }
                    bytes.extend(b"0\r\n\r\n");
                } else {
                    bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
                    bytes.extend(body);
                }
            }
            let at_once = read(&bytes, bytes.len());
            prop_assert_eq!(at_once.0.len(), bodies.len());
            prop_assert_eq!(at_once.1, Ok(0));
            for size in sizes {
                prop_assert_eq!(&read(&bytes, size), &at_once);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            head in any::<bool>(),
            size in 1_usize..50,
        ) {
            let mut all = Vec::new();
            if head {
                all.extend(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
            }
            all.extend(bytes);
            // A line that is not whole is looked at once, and again when it is.
            all.push(b'\n');
            prop_assert_eq!(read(&all, size), read(&all, all.len()));
        }
    }
}
