//! Where a response of HTTP/1.1 begins and ends, read piece by piece as the pieces arrive.
//!
//! Heads are read by `httparse`; framing follows RFC 9112, section 6.3: no body for HEAD, 204 and 304, else chunks, a length, or
//! all until the connection ends. Interim responses (1xx) are passed over. Nothing allocates while a head arrives in one piece. What a
//! server may send is bounded, and a body is counted and not kept.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Status};

/// Longest head, and longest trailer section, bytes: what browsers and proxies accept is 8 to 256 KiB.
const LONGEST_HEAD: usize = 64 * 1024;
/// Most header lines; nginx and Apache send about ten.
const MOST_HEADERS: usize = 128;
/// Longest line that gives the size of a chunk, extensions included.
const LONGEST_CHUNK_LINE: usize = 4096;
/// Hexadecimal digits of a chunk's size: more do not fit 64 bits.
const CHUNK_DIGITS: usize = 16;

/// Why bytes are no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken, and more belong to it.
    More,
    /// It is complete after this many of the bytes.
    Done(usize),
}

/// Where its body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the head.
    Head,
    /// This many bytes of the body are to come.
    Length(u64),
    /// In the body, which ends with the connection.
    UntilEnd,
    /// In the line that gives the size of a chunk.
    ChunkSize {
        size: u64,
        digits: usize,
        line: usize,
        extension: bool,
    },
    /// This many bytes of a chunk are to come.
    Chunk(u64),
    /// After a chunk's data, before its line ends.
    ChunkEnd,
    /// In the lines after the last chunk; how long they are together, and the line at hand.
    Trailers { all: usize, line: usize },
    /// Complete.
    Done,
}

/// A response that is being read.
#[derive(Debug)]
pub struct Response {
    state: State,
    /// The request was HEAD.
    to_head: bool,
    status: u16,
    keeps: bool,
    /// The beginning of a head that arrived in pieces.
    partial: Vec<u8>,
    /// Values of `Set-Cookie`, each followed by a line feed; absent unless cookies are kept.
    cookies: Option<Vec<u8>>,
    /// The value of `Date`, where cookies are kept.
    date: Vec<u8>,
}

impl Response {
    /// The next response of a connection; `to_head`: the request's method is HEAD.
    pub fn new(to_head: bool) -> Self {
        Self {
            state: State::Head,
            to_head,
            status: 0,
            keeps: false,
            partial: Vec::new(),
            cookies: None,
            date: Vec::new(),
        }
    }

    /// Keeps what [`Response::cookies`] returns.
    pub fn keep_cookies(&mut self) {
        self.cookies = Some(Vec::new());
    }

    /// Begins the next one; `to_head` as for [`Response::new`].
    #[inline]
    pub fn reset(&mut self, to_head: bool) {
        self.to_head = to_head;
        self.state = State::Head;
        self.partial.clear();
        if let Some(cookies) = &mut self.cookies {
            cookies.clear();
            self.date.clear();
        }
    }

    /// The value of its `Date`; empty where it has none, or where cookies are not kept.
    pub fn date(&self) -> &[u8] {
        &self.date
    }

    /// The values of its `Set-Cookie` headers; none unless they were to be kept.
    pub fn cookies(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.cookies.as_deref().unwrap_or_default();
        let lines = lines.split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty())
    }

    /// Takes the status of a head that was read elsewhere.
    #[inline]
    pub(super) fn put_status(&mut self, status: u16) {
        self.status = status;
    }

    /// Room for the value of a `Set-Cookie`, a line feed after it, or else for that of `Date`; none unless cookies are kept.
    pub(super) fn room_for(&mut self, is_cookie: bool) -> Option<&mut Vec<u8>> {
        let cookies = self.cookies.as_mut()?;
        if is_cookie {
            return Some(cookies);
        }
        self.date.clear();
        Some(&mut self.date)
    }

    /// Its status, once its head is read.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The connection may be used for another request.
    pub fn keeps_connection(&self) -> bool {
        self.keeps
    }

    /// Takes bytes as they came; those of the body go to `body` in pieces.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<Progress, Malformed> {
        let mut at = 0;
        while self.state != State::Done {
            if at == bytes.len() {
                return Ok(Progress::More);
            }
            at += match self.state {
                State::Head => self.head(&bytes[at..])?,
                _ => self.body(&bytes[at..], body)?,
            };
        }
        Ok(Progress::Done(at))
    }

    /// The connection has ended; true if that completes the response.
    pub fn ends(&mut self) -> bool {
        let complete = self.state == State::UntilEnd;
        if complete {
            self.state = State::Done;
        }
        complete
    }

    /// Reads the head at the beginning of `bytes`; how many of them belong to it.
    #[inline]
    fn head(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        if self.partial.is_empty() {
            if let Some(length) = self.whole_head(bytes)? {
                return Ok(length);
            }
            if bytes.len() > LONGEST_HEAD {
                return Err(Malformed);
            }
            self.partial.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        // Only so much as a head may have is ever kept.
        let before = self.partial.len();
        let taken = bytes.len().min(LONGEST_HEAD + 1 - before);
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(&bytes[..taken]);
        let found = self.whole_head(&partial)?;
        let too_long = partial.len() > LONGEST_HEAD;
        self.partial = partial;
        match found {
            Some(length) => {
                self.partial.clear();
                // The head ends in what is new: without it, it was not whole.
                Ok(length.saturating_sub(before))
            }
            None if too_long => Err(Malformed),
            None => Ok(taken),
        }
    }

    /// Length of the head at the beginning of `bytes`, where it is whole; the state is then that of its body.
    #[inline]
    fn whole_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            bytes,
            &mut headers,
        );
        let length = match parsed {
            Ok(Status::Complete(length)) if length <= LONGEST_HEAD => length,
            Ok(Status::Partial) => return Ok(None),
            Ok(Status::Complete(_)) | Err(_) => return Err(Malformed),
        };
        let (Some(status), Some(version)) = (response.code, response.version) else {
            return Err(Malformed);
        };
        // After an upgrade (101) comes another protocol; other interim responses precede the final one.
        if status == 101 || status < 100 {
            return Err(Malformed);
        }
        if status < 200 {
            return Ok(Some(length));
        }
        self.status = status;
        self.frame(version, response.headers)?;
        Ok(Some(length))
    }

    /// Finds out how the body is delimited.
    #[inline]
    fn frame(&mut self, version: u8, headers: &[Header<'_>]) -> Result<(), Malformed> {
        let mut length: Option<u64> = None;
        let mut transfer = None;
        let (mut closes, mut stays) = (false, false);
        for Header { name, value } in headers {
            // By length first: most names are none of these.
            match name.len() {
                14 if name.eq_ignore_ascii_case("content-length") => {
                    for part in value.split(|byte| *byte == b',') {
                        let number = number(part.trim_ascii()).ok_or(Malformed)?;
                        if length.is_some_and(|length| length != number) {
                            return Err(Malformed);
                        }
                        length = Some(number);
                    }
                }
                17 if name.eq_ignore_ascii_case("transfer-encoding") => transfer = Some(*value),
                10 if name.eq_ignore_ascii_case("connection") => {
                    for word in value.split(|byte| *byte == b',') {
                        closes |= word.trim_ascii().eq_ignore_ascii_case(b"close");
                        stays |= word.trim_ascii().eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                4 if self.cookies.is_some() && name.eq_ignore_ascii_case("date") => {
                    self.date.clear();
                    self.date.extend_from_slice(value);
                }
                10 if name.eq_ignore_ascii_case("set-cookie") => {
                    if let Some(cookies) = &mut self.cookies {
                        cookies.extend_from_slice(value);
                        cookies.push(b'\n');
                    }
                }
                _ => {}
            }
        }
        // Chunks are no part of HTTP/1.0: what comes after them cannot be trusted (RFC 9112, section 6.1).
        self.keeps = !closes && (version >= 1 || stays && transfer.is_none());
        self.state = if self.to_head || matches!(self.status, 204 | 304) {
            State::Done
        } else if let Some(transfer) = transfer {
            let last = transfer.rsplit(|byte| *byte == b',').next();
            if last.is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked")) {
                CHUNK_LINE
            } else {
                State::UntilEnd
            }
        } else {
            match length {
                Some(0) => State::Done,
                Some(length) => State::Length(length),
                None => State::UntilEnd,
            }
        };
        if self.state == State::UntilEnd {
            self.keeps = false;
        }
        Ok(())
    }

    /// Takes some of `bytes`, one at least; how many.
    fn body(&mut self, bytes: &[u8], body: &mut impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let left = bytes.len() as u64;
        let first = bytes[0];
        match self.state {
            State::Length(length) => {
                let taken = length.min(left);
                body(&bytes[..taken as usize]);
                self.state = match length - taken {
                    0 => State::Done,
                    more => State::Length(more),
                };
                return Ok(taken as usize);
            }
            State::Chunk(length) => {
                let taken = length.min(left);
                body(&bytes[..taken as usize]);
                self.state = match length - taken {
                    0 => State::ChunkEnd,
                    more => State::Chunk(more),
                };
                return Ok(taken as usize);
            }
            State::UntilEnd => {
                body(bytes);
                return Ok(bytes.len());
            }
            State::ChunkSize { .. } => self.state = self.chunk_size(first)?,
            // A bare line feed is accepted, as by most clients.
            State::ChunkEnd => match first {
                b'\r' => {}
                b'\n' => self.state = CHUNK_LINE,
                _ => return Err(Malformed),
            },
            State::Trailers { all, .. } if all >= LONGEST_HEAD => return Err(Malformed),
            State::Trailers { all, line } => {
                self.state = match first {
                    b'\n' if line == 0 => State::Done,
                    b'\n' => State::Trailers {
                        all: all + 1,
                        line: 0,
                    },
                    b'\r' => State::Trailers { all: all + 1, line },
                    _ => State::Trailers {
                        all: all + 1,
                        line: line + 1,
                    },
                };
            }
            State::Head | State::Done => {}
        }
        Ok(1)
    }

    /// The state after another byte of a chunk's first line.
    fn chunk_size(&self, byte: u8) -> Result<State, Malformed> {
        let State::ChunkSize {
            size,
            digits,
            line,
            extension,
        } = self.state
        else {
            return Err(Malformed);
        };
        if line >= LONGEST_CHUNK_LINE {
            return Err(Malformed);
        }
        let line = line + 1;
        match byte {
            b'\n' if digits == 0 => Err(Malformed),
            b'\n' if size == 0 => Ok(State::Trailers { all: 0, line: 0 }),
            b'\n' => Ok(State::Chunk(size)),
            b'\r' => Ok(State::ChunkSize {
                size,
                digits,
                line,
                extension: true,
            }),
            _ if extension => Ok(State::ChunkSize {
                size,
                digits,
                line,
                extension,
            }),
            b';' | b' ' | b'\t' if digits > 0 => Ok(State::ChunkSize {
                size,
                digits,
                line,
                extension: true,
            }),
            _ => {
                let digit = (byte as char).to_digit(16).ok_or(Malformed)?;
                if digits == CHUNK_DIGITS {
                    return Err(Malformed);
                }
                let size = (size << 4) | u64::from(digit);
                Ok(State::ChunkSize {
                    size,
                    digits: digits + 1,
                    line,
                    extension,
                })
            }
        }
    }
}

/// At the beginning of a chunk.
const CHUNK_LINE: State = State::ChunkSize {
    size: 0,
    digits: 0,
    line: 0,
    extension: false,
};

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

    #[test]
    fn cookies_are_kept_where_they_are_wanted() {
        let bytes = b"HTTP/1.1 200 OK\r\nset-cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n";
        for (wanted, expected) in [(true, &[&b"a=1; Path=/"[..], b"b=2"][..]), (false, &[])] {
            let mut response = Response::new(false);
            if wanted {
                response.keep_cookies();
            }
            for size in 1..bytes.len() {
                response.reset(false);
                for piece in bytes.chunks(size) {
                    response.feed(piece, &mut |_| {}).unwrap();
                }
                assert!(response.cookies().eq(expected.iter().copied()), "{size}");
            }
        }
    }

    /// What is read of `bytes` fed in pieces of `size`: status, body, keeps the connection, and bytes that do not belong to it.
    fn read(
        bytes: &[u8],
        size: usize,
        to_head: bool,
    ) -> Result<(u16, Vec<u8>, bool, usize), Malformed> {
        let mut response = Response::new(to_head);
        let mut body = Vec::new();
        let mut taken = 0;
        for piece in bytes.chunks(size.max(1)) {
            match response.feed(piece, &mut |bytes| body.extend_from_slice(bytes))? {
                Progress::More => taken += piece.len(),
                Progress::Done(used) => {
                    let rest = bytes.len() - taken - used;
                    return Ok((response.status(), body, response.keeps_connection(), rest));
                }
            }
        }
        if response.ends() {
            return Ok((response.status(), body, response.keeps_connection(), 0));
        }
        Err(Malformed)
    }

    /// The same in any pieces.
    fn whole(bytes: &[u8]) -> Result<(u16, Vec<u8>, bool, usize), Malformed> {
        let at_once = read(bytes, bytes.len(), false);
        for size in [1, 2, 3, 7, 50] {
            assert_eq!(read(bytes, size, false), at_once, "pieces of {size}");
        }
        at_once
    }

    fn good(bytes: &str) -> (u16, String, bool, usize) {
        let (status, body, keeps, rest) = whole(bytes.as_bytes()).unwrap();
        (status, String::from_utf8(body).unwrap(), keeps, rest)
    }

    #[test]
    fn a_length_delimits_the_body() {
        let (status, body, keeps, rest) =
            good("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1");
        assert_eq!(
            (status, body.as_str(), keeps, rest),
            (200, "hello", true, 8)
        );
        assert_eq!(good("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").0, 404);
        assert_eq!(
            good("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab").1,
            "ab"
        );
    }

    #[test]
    fn chunks_delimit_the_body_with_extensions_and_trailers() {
        let (_, body, keeps, rest) = good(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n\
             4;name=\"v\"\r\nWiki\r\n5\r\npedia\r\n0\r\nTrailer: x\r\n\r\n+",
        );
        assert_eq!((body.as_str(), keeps, rest), ("Wikipedia", true, 1));
        assert_eq!(
            good("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").1,
            ""
        );
    }

    #[test]
    fn the_end_of_the_connection_delimits_what_nothing_else_does() {
        let (_, body, keeps, _) = good("HTTP/1.0 200 OK\r\n\r\nall of it");
        assert_eq!((body.as_str(), keeps), ("all of it", false));
        assert!(!good("HTTP/1.1 200 OK\r\n\r\nx").2);
        assert!(whole(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell").is_err());
        assert!(whole(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel").is_err());
        assert!(whole(b"").is_err());
    }

    #[test]
    fn some_responses_have_no_body_whatever_their_headers() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
        assert_eq!(read(head, 64, true), Ok((200, Vec::new(), true, 0)));
        for status in ["204 No Content", "304 Not Modified"] {
            let (_, body, keeps, rest) =
                good(&format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\n"));
            assert_eq!((body.as_str(), keeps, rest), ("", true, 0));
        }
    }

    #[test]
    fn interim_responses_are_passed_over() {
        let (status, body, _, rest) = good(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\n!",
        );
        assert_eq!((status, body.as_str(), rest), (201, "!", 0));
        assert!(whole(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").is_err());
    }

    #[test]
    fn the_connection_is_kept_as_version_and_header_say() {
        let kept = |head: &str| good(&format!("{head}content-length: 0\r\n\r\n")).2;
        assert!(kept("HTTP/1.1 200 OK\r\n"));
        assert!(!kept("HTTP/1.1 200 OK\r\nConnection: Close\r\n"));
        assert!(!kept("HTTP/1.0 200 OK\r\n"));
        assert!(kept("HTTP/1.0 200 OK\r\nconnection: keep-alive, x\r\n"));
    }

    #[test]
    fn what_is_no_response_is_refused_and_nothing_grows_without_bound() {
        for bad in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11111111111111111\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        ] {
            assert!(whole(bad.as_bytes()).is_err(), "{bad}");
        }
        let long = "x".repeat(1 << 20);
        for head in [
            format!("HTTP/1.1 200 OK\r\nx: {long}"),
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;{long}"),
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{long}"),
        ] {
            for size in [1 << 10, 1 << 16] {
                let mut response = Response::new(false);
                let refused = head
                    .as_bytes()
                    .chunks(size)
                    .any(|piece| response.feed(piece, &mut |_| {}).is_err());
                assert!(refused, "{}", &head[..40]);
                assert!(response.partial.len() <= LONGEST_HEAD + 1);
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_never_matter(
            status in 200_u16..600,
            body in prop::collection::vec(any::<u8>(), 0..300),
            chunked in any::<bool>(),
            sizes in prop::collection::vec(1_usize..60, 1..20),
        ) {
            let mut bytes = format!("HTTP/1.1 {status} x\r\nServer: nginx\r\n").into_bytes();
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
                bytes.extend(&body);
            }
            let at_once = read(&bytes, bytes.len(), false);
            for size in sizes {
                prop_assert_eq!(&read(&bytes, size, false), &at_once);
            }
            let (read_status, read_body, keeps, _) = at_once.unwrap();
            prop_assert_eq!(read_status, status);
            prop_assert!(keeps);
            if status != 204 && status != 304 {
                prop_assert_eq!(read_body, body);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            head in any::<bool>(),
            size in 1_usize..50,
        ) {
            let mut all = if head { b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec() } else { Vec::new() };
            all.extend(bytes);
            let _ = read(&all, size, false);
        }
    }
}
