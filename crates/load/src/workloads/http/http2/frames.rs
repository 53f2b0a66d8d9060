//! The frames of HTTP/2 that a server sends (RFC 9113, section 4 and 6), read piece by piece as the pieces arrive.
//!
//! Data are handed on as they come; any other frame is whole, and is copied only where it arrives in pieces. A head that CONTINUATION
//! frames go on with is one block. At most one frame of 16 KiB and one head of 64 KiB are kept.

use super::{Broken, code};

/// Longest payload: the least that a server may take for granted, and we allow no more.
pub(super) const LONGEST: usize = 16 * 1024;
/// Longest head, bytes as they are sent; as for HTTP/1.1.
pub(super) const LONGEST_HEAD: usize = 64 * 1024;
/// Bytes before a payload.
const HEADER: usize = 9;

pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

pub(super) mod flag {
    pub(in super::super) const END_STREAM: u8 = 1;
    pub(in super::super) const ACK: u8 = 1;
    pub(in super::super) const END_HEADERS: u8 = 4;
    pub(in super::super) const PADDED: u8 = 8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A piece of a body.
    Data {
        /// Its stream.
        stream: u32,
        /// May be empty.
        bytes: &'a [u8],
        /// What it takes of the windows, padding included.
        flow: u32,
        /// The stream has ended.
        ends: bool,
    },
    /// A head, an interim one, or trailers.
    Head {
        /// Its stream.
        stream: u32,
        /// As HPACK encodes it.
        block: &'a [u8],
        /// The stream has ended.
        ends: bool,
    },
    /// The server gives a stream up.
    Reset {
        /// Its stream.
        stream: u32,
        /// Why.
        code: u32,
    },
    /// Settings, six bytes each.
    Settings(&'a [u8]),
    /// Ours are known.
    Acknowledged,
    /// To be sent back.
    Ping([u8; 8]),
    /// The server ends the connection.
    GoAway {
        /// The last stream that it serves.
        last: u32,
        /// Why.
        code: u32,
    },
    /// It takes more.
    Window {
        /// Of this stream, or with 0 of the connection.
        stream: u32,
        /// So many bytes, one at least.
        by: u32,
    },
}

/// Where the bytes of a frame are.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// In what was read last.
    Input,
    /// In [`Reader::kept`].
    Kept,
    /// In [`Reader::block`].
    Block,
}

/// Bytes of a source, from and to.
type Span = (Source, usize, usize);

#[derive(Clone, Copy, Debug)]
enum Event {
    Data {
        stream: u32,
        span: Span,
        flow: u32,
        ends: bool,
    },
    Head {
        stream: u32,
        span: Span,
        ends: bool,
    },
    Settings(Span),
    Other(Frame<'static>),
}

/// The first bytes of a frame.
#[derive(Clone, Copy, Debug)]
struct Header {
    kind: u8,
    flags: u8,
    stream: u32,
    length: usize,
}

impl Header {
    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Before or in the first bytes of a frame.
    Header,
    /// In a DATA frame before the length of its padding.
    Padding(Header),
    /// In a body.
    Data {
        header: Header,
        left: usize,
        padding: usize,
    },
    /// In another frame.
    Payload(Header),
}

/// A connection as it is being read.
#[derive(Debug)]
pub struct Reader {
    state: State,
    /// Bytes of a header that came in pieces.
    header: [u8; HEADER],
    held: usize,
    /// A payload that came in pieces.
    kept: Vec<u8>,
    /// A head of several frames.
    block: Vec<u8>,
    /// The stream of that head, and whether it ends with it.
    continues: Option<(u32, bool)>,
    /// The server's settings have come, which must be first.
    begun: bool,
    /// What is kept was handed on.
    spent: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            state: State::Header,
            header: [0; HEADER],
            held: 0,
            kept: Vec::new(),
            block: Vec::new(),
            continues: None,
            begun: false,
            spent: false,
        }
    }
}

impl Reader {
    /// With room for a small frame that comes in two pieces, so that a load in steady state allocates nothing.
    pub(in super::super) fn new() -> Self {
        Self {
            kept: Vec::with_capacity(256),
            ..Self::default()
        }
    }

    /// Begins a new connection.
    pub(in super::super) fn reset(&mut self) {
        self.kept.clear();
        self.block.clear();
        *self = Self {
            kept: std::mem::take(&mut self.kept),
            block: std::mem::take(&mut self.block),
            ..Self::default()
        };
    }

    /// The server has begun with something else than HTTP/2.
    pub(in super::super) fn is_foreign(&self) -> bool {
        !self.begun
    }

    /// The next frame of `bytes` from `at` on; `None` once all are taken.
    #[inline]
    pub fn next<'b>(
        &'b mut self,
        bytes: &'b [u8],
        at: &mut usize,
    ) -> Result<Option<Frame<'b>>, Broken> {
        if self.spent {
            self.kept.clear();
            self.block.clear();
            self.spent = false;
        }
        let mut found = None;
        let mut from = *at;
        while found.is_none() && *at < bytes.len() {
            from = *at;
            let (used, event) = self.step(&bytes[from..])?;
            *at += used;
            found = event;
        }
        let Some(event) = found else {
            return Ok(None);
        };
        let this = &*self;
        let of = |(source, first, last): Span| match source {
            Source::Input => &bytes[from + first..from + last],
            Source::Kept => &this.kept[first..last],
            Source::Block => &this.block[first..last],
        };
        Ok(Some(match event {
            Event::Data {
                stream,
                span,
                flow,
                ends,
            } => Frame::Data {
                stream,
                bytes: of(span),
                flow,
                ends,
            },
            Event::Head { stream, span, ends } => Frame::Head {
                stream,
                block: of(span),
                ends,
            },
            Event::Settings(span) => Frame::Settings(of(span)),
            Event::Other(frame) => frame,
        }))
    }

    /// Takes some of `bytes`, one at least; how many, and what they say.
    #[inline]
    fn step(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), Broken> {
        match self.state {
            State::Header => {
                let used = match bytes.first_chunk::<HEADER>() {
                    Some(whole) if self.held == 0 => {
                        self.header = *whole;
                        HEADER
                    }
                    _ => {
                        let taken = bytes.len().min(HEADER - self.held);
                        self.header[self.held..self.held + taken].copy_from_slice(&bytes[..taken]);
                        self.held += taken;
                        if self.held < HEADER {
                            return Ok((taken, None));
                        }
                        taken
                    }
                };
                self.held = 0;
                Ok((used, self.begin()?))
            }
            State::Padding(header) => {
                let padding = usize::from(bytes[0]);
                let left = header.length - 1;
                if padding > left {
                    return Err(PADDING);
                }
                self.state = State::Data {
                    header,
                    left: left - padding,
                    padding,
                };
                // Its own byte counts as well.
                Ok((1, Some(self.piece(header, (0, 0), 1, left == 0))))
            }
            State::Data {
                header,
                left,
                padding,
            } => {
                let data = left.min(bytes.len());
                let pad = padding.min(bytes.len() - data);
                let (left, padding) = (left - data, padding - pad);
                self.state = State::Data {
                    header,
                    left,
                    padding,
                };
                let is_last = left + padding == 0;
                let piece = self.piece(header, (0, data), data + pad, is_last);
                Ok((data + pad, Some(piece)))
            }
            State::Payload(header) => {
                let missing = header.length - self.kept.len();
                if self.kept.is_empty() && bytes.len() >= missing {
                    self.state = State::Header;
                    let event = self.payload(header, &bytes[..missing], Source::Input)?;
                    return Ok((missing, event));
                }
                let taken = missing.min(bytes.len());
                self.kept.extend_from_slice(&bytes[..taken]);
                if taken < missing {
                    return Ok((taken, None));
                }
                self.state = State::Header;
                let kept = std::mem::take(&mut self.kept);
                let event = self.payload(header, &kept, Source::Kept);
                self.kept = kept;
                let event = event?;
                match event {
                    Some(_) => self.spent = true,
                    None => self.kept.clear(),
                }
                Ok((taken, event))
            }
        }
    }

    /// A piece of a body, after which the frame may be over.
    #[inline]
    fn piece(
        &mut self,
        header: Header,
        (from, to): (usize, usize),
        flow: usize,
        is_last: bool,
    ) -> Event {
        if is_last {
            self.state = State::Header;
        }
        Event::Data {
            stream: header.stream,
            span: (Source::Input, from, to),
            flow: flow as u32,
            ends: is_last && header.has(flag::END_STREAM),
        }
    }

    /// The first bytes of a frame are there.
    #[inline]
    fn begin(&mut self) -> Result<Option<Event>, Broken> {
        let [a, b, c, kind, flags, stream @ ..] = self.header;
        let header = Header {
            kind,
            flags,
            // The first bit means nothing.
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
            length: u32::from_be_bytes([0, a, b, c]) as usize,
        };
        if !self.begun {
            if kind != kind::SETTINGS
                || header.has(flag::ACK)
                || header.stream != 0
                || !header.length.is_multiple_of(6)
            {
                return Err(Broken::new(
                    code::PROTOCOL_ERROR,
                    "the server does not begin with SETTINGS",
                ));
            }
            self.begun = true;
        }
        if header.length > LONGEST {
            return Err(Broken::new(
                code::FRAME_SIZE_ERROR,
                "a frame is longer than 16 KiB, which the client allows",
            ));
        }
        let goes_on = kind == kind::CONTINUATION;
        if self.continues.map(|(stream, _)| stream) != goes_on.then_some(header.stream) {
            return Err(Broken::new(
                code::PROTOCOL_ERROR,
                "a head is interrupted by another frame, or goes on that never began",
            ));
        }
        let of_stream = matches!(
            kind,
            kind::DATA | kind::HEADERS | kind::PRIORITY | kind::RST_STREAM | kind::CONTINUATION
        );
        let of_connection = matches!(kind, kind::SETTINGS | kind::PING | kind::GOAWAY);
        if of_stream && header.stream == 0 || of_connection && header.stream != 0 {
            return Err(Broken::new(
                code::PROTOCOL_ERROR,
                "a frame belongs to a stream that it cannot belong to",
            ));
        }
        let length = header.length;
        let fits = match kind {
            kind::PRIORITY => length == 5,
            kind::RST_STREAM | kind::WINDOW_UPDATE => length == 4,
            kind::SETTINGS => length.is_multiple_of(6) && (!header.has(flag::ACK) || length == 0),
            kind::PING => length == 8,
            kind::GOAWAY => length >= 8,
            _ => true,
        };
        if !fits {
            return Err(Broken::new(
                code::FRAME_SIZE_ERROR,
                "a frame has a length that its kind cannot have",
            ));
        }
        if kind == kind::DATA {
            if header.has(flag::PADDED) {
                if length == 0 {
                    return Err(PADDING);
                }
                self.state = State::Padding(header);
                return Ok(None);
            }
            self.state = State::Data {
                header,
                left: length,
                padding: 0,
            };
            return Ok((length == 0).then(|| self.piece(header, (0, 0), 0, true)));
        }
        if length == 0 {
            return self.payload(header, &[], Source::Input);
        }
        self.state = State::Payload(header);
        Ok(None)
    }

    /// A whole frame that is not DATA.
    #[inline]
    fn payload(
        &mut self,
        header: Header,
        bytes: &[u8],
        source: Source,
    ) -> Result<Option<Event>, Broken> {
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let stream = header.stream;
        let frame = match header.kind {
            kind::HEADERS => {
                let (mut from, mut to) = (0, bytes.len());
                if header.has(flag::PADDED) {
                    from = 1;
                    to = to
                        .checked_sub(usize::from(*bytes.first().ok_or(PADDING)?))
                        .ok_or(PADDING)?;
                }
                if header.has(flag::PRIORITY) {
                    from += 5;
                }
                if from > to {
                    return Err(PADDING);
                }
                let ends = header.has(flag::END_STREAM);
                if header.has(flag::END_HEADERS) {
                    return Ok(Some(Event::Head {
                        stream,
                        span: (source, from, to),
                        ends,
                    }));
                }
                self.continues = Some((stream, ends));
                self.block.clear();
                self.block.extend_from_slice(&bytes[from..to]);
                return Ok(None);
            }
            kind::CONTINUATION => {
                self.block.extend_from_slice(bytes);
                if self.block.len() > LONGEST_HEAD {
                    return Err(Broken::new(
                        code::ENHANCE_YOUR_CALM,
                        "a head is longer than 64 KiB",
                    ));
                }
                if bytes.is_empty() && !header.has(flag::END_HEADERS) {
                    return Err(Broken::new(
                        code::ENHANCE_YOUR_CALM,
                        "a head goes on with nothing",
                    ));
                }
                if !header.has(flag::END_HEADERS) {
                    return Ok(None);
                }
                let Some((stream, ends)) = self.continues.take() else {
                    return Ok(None);
                };
                self.spent = true;
                return Ok(Some(Event::Head {
                    stream,
                    span: (Source::Block, 0, self.block.len()),
                    ends,
                }));
            }
            kind::RST_STREAM => Frame::Reset {
                stream,
                code: word(0),
            },
            kind::SETTINGS if header.has(flag::ACK) => Frame::Acknowledged,
            kind::SETTINGS => return Ok(Some(Event::Settings((source, 0, bytes.len())))),
            kind::PUSH_PROMISE => {
                return Err(Broken::new(
                    code::PROTOCOL_ERROR,
                    "the server pushes, which the client has forbidden",
                ));
            }
            kind::PING if header.has(flag::ACK) => return Ok(None),
            kind::PING => {
                let mut data = [0; 8];
                data.copy_from_slice(bytes);
                Frame::Ping(data)
            }
            kind::GOAWAY => Frame::GoAway {
                last: word(0) & 0x7fff_ffff,
                code: word(4),
            },
            kind::WINDOW_UPDATE => match word(0) & 0x7fff_ffff {
                0 => {
                    return Err(Broken::new(
                        code::PROTOCOL_ERROR,
                        "a window grows by nothing",
                    ));
                }
                by => Frame::Window { stream, by },
            },
            // Frames of other kinds are ignored (section 5.5), and so is PRIORITY.
            _ => return Ok(None),
        };
        Ok(Some(Event::Other(frame)))
    }
}

const PADDING: Broken = Broken {
    code: code::PROTOCOL_ERROR,
    why: "a frame has more padding than bytes",
};

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn settings() -> Vec<u8> {
        frame(kind::SETTINGS, 0, 0, &[])
    }

    /// What `bytes` say in pieces of this size: bodies joined, everything else as it is written by Debug.
    fn read(bytes: &[u8], size: usize) -> Result<Vec<String>, Broken> {
        let mut reader = Reader::default();
        let mut all: Vec<String> = Vec::new();
        let mut body = (0, Vec::new(), 0);
        for piece in bytes.chunks(size) {
            let mut at = 0;
            while let Some(frame) = reader.next(piece, &mut at)? {
                if let Frame::Data {
                    stream,
                    bytes,
                    flow,
                    ends,
                } = frame
                {
                    body.0 = stream;
                    body.1.extend_from_slice(bytes);
                    body.2 += flow;
                    if ends {
                        all.push(format!("{body:?}"));
                        body = (0, Vec::new(), 0);
                    }
                } else {
                    all.push(format!("{frame:?}"));
                }
            }
        }
        Ok(all)
    }

    #[test]
    fn frames_read_the_same_in_any_pieces() {
        let parts = [
            settings(),
            frame(kind::SETTINGS, flag::ACK, 0, &[]),
            frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]),
            frame(kind::PING, 0, 0, b"12345678"),
            frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x88]),
            frame(kind::DATA, 0, 1, b"hello "),
            frame(kind::DATA, flag::PADDED, 1, b"\x03yes\0\0\0"),
            frame(kind::DATA, 0, 1, b""),
            frame(kind::DATA, flag::END_STREAM, 1, b"!"),
            frame(
                kind::HEADERS,
                flag::PADDED | flag::PRIORITY | flag::END_STREAM,
                3,
                b"\x02\0\0\0\0\x10\x8d\0\0",
            ),
            frame(kind::CONTINUATION, 0, 3, b"\x00\x01a"),
            frame(kind::CONTINUATION, flag::END_HEADERS, 3, b"\x01b"),
            frame(200, 0xff, 7, b"of another kind"),
            frame(kind::PRIORITY, 0, 9, &[0; 5]),
            frame(kind::RST_STREAM, 0, 5, &[0, 0, 0, 7]),
            frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 1, 0]),
            frame(kind::GOAWAY, 0, 0, b"\0\0\0\x05\0\0\0\x0bcalm"),
        ];
        let all = parts.concat();
        let expected = [
            "Settings([])",
            "Acknowledged",
            "Settings([0, 3, 0, 0, 0, 100])",
            "Ping([49, 50, 51, 52, 53, 54, 55, 56])",
            "Head { stream: 1, block: [136], ends: false }",
            "(1, [104, 101, 108, 108, 111, 32, 121, 101, 115, 33], 14)",
            "Head { stream: 3, block: [141, 0, 1, 97, 1, 98], ends: true }",
            "Reset { stream: 5, code: 7 }",
            "Window { stream: 0, by: 256 }",
            "GoAway { last: 5, code: 11 }",
        ];
        for size in 1..=all.len() {
            assert_eq!(read(&all, size).unwrap(), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_server_that_breaks_the_rules_is_refused_with_the_code() {
        let long = frame(kind::CONTINUATION, 0, 1, &[0; LONGEST]);
        for (bytes, code) in [
            (
                b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
                code::PROTOCOL_ERROR,
            ),
            (
                frame(kind::SETTINGS, flag::ACK, 0, &[]),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), vec![1, 0, 0, 0, 0, 0, 0, 0, 0]].concat(),
                code::FRAME_SIZE_ERROR,
            ),
            (
                [settings(), frame(kind::SETTINGS, 0, 0, &[0; 5])].concat(),
                code::FRAME_SIZE_ERROR,
            ),
            (
                [settings(), frame(kind::SETTINGS, 0, 1, &[])].concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), frame(kind::DATA, 0, 0, b"x")].concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), frame(kind::DATA, flag::PADDED, 1, b"\x05xxxx")].concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), frame(kind::DATA, flag::PADDED, 1, b"")].concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [
                    settings(),
                    frame(kind::HEADERS, 4 | flag::PADDED, 1, b"\x05xxxx"),
                ]
                .concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [
                    settings(),
                    frame(kind::HEADERS, 4 | flag::PRIORITY, 1, b"xxxx"),
                ]
                .concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), frame(kind::CONTINUATION, 4, 1, b"\x88")].concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [
                    settings(),
                    frame(kind::HEADERS, 0, 1, b"\x88"),
                    frame(kind::PING, 0, 0, &[0; 8]),
                ]
                .concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [
                    settings(),
                    frame(kind::HEADERS, 0, 1, b"\x88"),
                    frame(kind::CONTINUATION, 4, 3, b""),
                ]
                .concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), frame(kind::PUSH_PROMISE, 4, 1, &[0; 8])].concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4])].concat(),
                code::PROTOCOL_ERROR,
            ),
            (
                [settings(), frame(kind::PING, 0, 0, &[0; 7])].concat(),
                code::FRAME_SIZE_ERROR,
            ),
            (
                [settings(), frame(kind::GOAWAY, 0, 0, &[0; 7])].concat(),
                code::FRAME_SIZE_ERROR,
            ),
            (
                [settings(), frame(kind::RST_STREAM, 0, 1, &[0; 5])].concat(),
                code::FRAME_SIZE_ERROR,
            ),
            (
                [settings(), frame(kind::HEADERS, 0, 1, b""), long.repeat(5)].concat(),
                code::ENHANCE_YOUR_CALM,
            ),
            (
                [
                    settings(),
                    frame(kind::HEADERS, 0, 1, b""),
                    frame(kind::CONTINUATION, 0, 1, b""),
                ]
                .concat(),
                code::ENHANCE_YOUR_CALM,
            ),
        ] {
            for size in [1, 7, bytes.len()] {
                let broken = read(&bytes, size).unwrap_err();
                assert_eq!(broken.code, code, "{bytes:?}: {}", broken.why);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, size in 1_usize..40) {
            let all = [settings(), bytes].concat();
            proptest::prop_assert_eq!(read(&all, size), read(&all, all.len()));
        }
    }
}
