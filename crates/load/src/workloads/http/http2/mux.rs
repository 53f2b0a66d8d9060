//! The client's side of one connection: which streams it has, what waits to be written, and the windows of both sides.

use std::collections::VecDeque;

use super::frames::{Frame, flag, kind};
use super::stream::Stream;
use super::{Broken, code};

/// What a client says first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What the server may send without being asked for more, per stream and per connection, as h2load has it by default: bodies are counted and
/// not kept, so that nothing is gained by a small window.
const WINDOW: u32 = 1 << 30;
/// What both sides begin with (section 6.9.2).
const FIRST_WINDOW: u32 = 65_535;
/// The greatest window (section 6.9.1), and the greatest number of a stream.
const MOST: u32 = 0x7fff_ffff;
/// Bytes of bodies that wait for the kernel, of all streams together: no more are framed ahead.
const AHEAD: usize = 256 * 1024;
/// Bytes that may wait in all: a server that asks and does not read gets no further answer.
const MOST_WAITING: usize = 4 * 1024 * 1024;
/// Longest frame that is sent, though the server may allow more: streams take turns.
const LONGEST: usize = 64 * 1024;

mod setting {
    pub(super) const HEADER_TABLE_SIZE: u16 = 1;
    pub(super) const ENABLE_PUSH: u16 = 2;
    pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(super) const MAX_FRAME_SIZE: u16 = 5;
    pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// What a frame of the connection asks of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Then {
    /// Nothing more.
    Nothing,
    /// Bodies or requests that wait may go on.
    Resume,
    /// The server serves no stream after this one, and ends the connection.
    GoAway { last: u32, code: u32 },
    /// The frame is one of a stream.
    Stream,
}

/// A connection with many streams. The numbers of lanes are the caller's.
#[derive(Debug)]
pub(in super::super) struct Mux {
    /// Frames to be sent, and how many of their bytes are.
    out: Vec<u8>,
    written: usize,
    /// The number of the next stream.
    next: u32,
    /// Streams that are open.
    pub(in super::super) open: usize,
    /// How many may be.
    pub(in super::super) allowed: u32,
    /// What the server takes in all, and of a new stream.
    window: i64,
    first_window: i64,
    /// Longest payload that it takes.
    longest: usize,
    /// Bytes received since its window was last widened.
    unacknowledged: u32,
    /// The settings of the server have come.
    pub(in super::super) is_ready: bool,
    /// No more streams begin, and the connection ends with the last of them.
    pub(in super::super) drains: bool,
    /// It is noted that something waits to be written.
    pub(in super::super) noted: bool,
    /// When something last came.
    pub(in super::super) heard: u64,
    /// How often it was begun.
    pub(in super::super) age: u64,
    /// The lane of a stream, by the last bits of its number; a lane that has none of that number is not the one.
    lanes: Vec<usize>,
    /// Lanes whose requests wait for a stream, and whose bodies for a window.
    pub(in super::super) parked: VecDeque<usize>,
    pub(in super::super) blocked: VecDeque<usize>,
}

impl Mux {
    /// For so many lanes.
    pub(in super::super) fn new(lanes: usize) -> Self {
        Self {
            // Room for a burst on all streams, so that a load in steady state allocates nothing.
            out: Vec::with_capacity(lanes.min(64) * 128),
            written: 0,
            next: 1,
            open: 0,
            allowed: MOST,
            window: 0,
            first_window: 0,
            longest: 0,
            unacknowledged: 0,
            is_ready: false,
            drains: false,
            noted: false,
            heard: 0,
            age: 0,
            // Where they come and go in order, none takes the place of another that is still open.
            lanes: vec![usize::MAX; (4 * lanes).next_power_of_two()],
            parked: VecDeque::with_capacity(lanes),
            blocked: VecDeque::with_capacity(lanes),
        }
    }

    /// Begins a connection: what is sent before the server has said anything.
    pub(in super::super) fn begin(&mut self) {
        self.out.clear();
        (self.written, self.next, self.open) = (0, 1, 0);
        // Until the server says otherwise (section 6.5.2).
        self.allowed = MOST;
        (self.window, self.first_window) = (i64::from(FIRST_WINDOW), i64::from(FIRST_WINDOW));
        self.longest = super::frames::LONGEST;
        self.unacknowledged = 0;
        (self.is_ready, self.drains) = (false, false);
        self.age += 1;
        self.blocked.clear();
        self.out.extend_from_slice(PREFACE);
        let settings = [
            // No table: each head of a response stands by itself.
            (setting::HEADER_TABLE_SIZE, 0),
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, WINDOW),
            (
                setting::MAX_HEADER_LIST_SIZE,
                super::frames::LONGEST_HEAD as u32,
            ),
        ];
        self.header(kind::SETTINGS, 0, 0, 6 * settings.len());
        for (id, value) in settings {
            self.out.extend_from_slice(&id.to_be_bytes());
            self.out.extend_from_slice(&value.to_be_bytes());
        }
        self.widen(0, WINDOW - FIRST_WINDOW);
    }

    /// Appends the first bytes of a frame.
    #[inline]
    fn header(&mut self, kind: u8, flags: u8, stream: u32, length: usize) {
        let [_, length @ ..] = (length as u32).to_be_bytes();
        self.out.extend_from_slice(&length);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
    }

    fn widen(&mut self, stream: u32, by: u32) {
        self.header(kind::WINDOW_UPDATE, 0, stream, 4);
        self.out.extend_from_slice(&by.to_be_bytes());
    }

    /// What waits to be written.
    #[inline]
    pub(in super::super) fn waiting(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many bytes of it are.
    #[inline]
    pub(in super::super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        } else if self.written > AHEAD {
            self.out.drain(..self.written);
            self.written = 0;
        }
    }

    /// A stream may begin.
    #[inline]
    pub(in super::super) fn has_room(&self) -> bool {
        self.is_ready && !self.drains && self.open < self.allowed as usize
    }

    /// Begins a stream for a lane with a request whose head is this block.
    #[inline]
    pub(in super::super) fn start(&mut self, lane: usize, block: &[u8], has_body: bool) -> Stream {
        let id = self.next;
        self.next += 2;
        self.open += 1;
        // There are no more numbers after that (section 5.1.1).
        self.drains |= self.next > MOST;
        let place = self.place(id);
        self.lanes[place] = lane;
        let ends = if has_body { 0 } else { flag::END_STREAM };
        let (first, mut rest) = block.split_at(block.len().min(self.longest));
        let is_whole = |rest: &[u8]| {
            if rest.is_empty() {
                flag::END_HEADERS
            } else {
                0
            }
        };
        self.header(kind::HEADERS, ends | is_whole(rest), id, first.len());
        self.out.extend_from_slice(first);
        while !rest.is_empty() {
            let (next, after) = rest.split_at(rest.len().min(self.longest));
            self.header(kind::CONTINUATION, is_whole(after), id, next.len());
            self.out.extend_from_slice(next);
            rest = after;
        }
        Stream::new(id)
    }

    /// Sends as much of what is left of a body as the windows and the kernel let through; how much.
    #[inline]
    pub(in super::super) fn send(&mut self, stream: &mut Stream, left: &[u8]) -> usize {
        let mut sent = 0;
        stream.waits = false;
        while sent < left.len() {
            let window = self.window.min(self.first_window + stream.credit);
            let room = usize::try_from(window).unwrap_or(0);
            if room == 0 || self.waiting().len() > AHEAD {
                stream.waits = true;
                break;
            }
            let length = room.min(left.len() - sent).min(self.longest);
            let is_last = sent + length == left.len();
            self.header(
                kind::DATA,
                if is_last { flag::END_STREAM } else { 0 },
                stream.id,
                length,
            );
            self.out.extend_from_slice(&left[sent..sent + length]);
            let taken = i64::try_from(length).unwrap_or(i64::MAX);
            self.window -= taken;
            stream.credit -= taken;
            sent += length;
        }
        sent
    }

    /// All that was framed is written, and the connection has a window: a body that waits for neither its stream's nor that may go on.
    pub(in super::super) fn may_send(&self) -> bool {
        self.waiting().is_empty() && self.window > 0
    }

    #[inline]
    fn place(&self, stream: u32) -> usize {
        (stream >> 1) as usize & (self.lanes.len() - 1)
    }

    /// The lane that may have a stream; it has, if that is the number of its stream.
    #[inline]
    pub(in super::super) fn lane(&self, stream: u32) -> usize {
        self.lanes[self.place(stream)]
    }

    /// The client has begun that stream, whether it is still open or not.
    #[inline]
    pub(in super::super) fn knows(&self, stream: u32) -> bool {
        stream % 2 == 1 && stream < self.next
    }

    /// A stream has ended; `reset`: not by itself, and the server gets the error code.
    #[inline]
    pub(in super::super) fn end(&mut self, stream: &mut Stream, reset: Option<u32>) {
        if let Some(code) = reset {
            self.header(kind::RST_STREAM, 0, stream.id, 4);
            self.out.extend_from_slice(&code.to_be_bytes());
        }
        self.open -= 1;
        *stream = Stream::default();
    }

    /// Counts what came of a body against the windows.
    #[inline]
    pub(in super::super) fn received(
        &mut self,
        stream: Option<&mut Stream>,
        bytes: u32,
    ) -> Result<(), Broken> {
        self.unacknowledged = self.unacknowledged.saturating_add(bytes);
        let mut most = self.unacknowledged;
        if let Some(stream) = stream {
            stream.unacknowledged = stream.unacknowledged.saturating_add(bytes);
            most = most.max(stream.unacknowledged);
            if stream.unacknowledged > WINDOW / 2 {
                self.widen(stream.id, std::mem::take(&mut stream.unacknowledged));
            }
        }
        if most > WINDOW {
            return Err(Broken::new(
                code::FLOW_CONTROL_ERROR,
                "the server sends more than the window allows",
            ));
        }
        if self.unacknowledged > WINDOW / 2 {
            let by = std::mem::take(&mut self.unacknowledged);
            self.widen(0, by);
        }
        Ok(())
    }

    /// The server takes more of a stream.
    pub(in super::super) fn widened(&self, stream: &mut Stream, by: u32) -> Result<(), Broken> {
        stream.credit += i64::from(by);
        if self.first_window + stream.credit > i64::from(MOST) {
            return Err(TOO_WIDE);
        }
        Ok(())
    }

    /// Takes a frame of the connection.
    #[inline]
    pub(in super::super) fn control(&mut self, frame: Frame<'_>) -> Result<Then, Broken> {
        let then = match frame {
            Frame::Settings(bytes) => {
                self.settle(bytes)?;
                self.header(kind::SETTINGS, flag::ACK, 0, 0);
                Then::Resume
            }
            Frame::Acknowledged => Then::Nothing,
            Frame::Ping(data) => {
                self.header(kind::PING, flag::ACK, 0, data.len());
                self.out.extend_from_slice(&data);
                Then::Nothing
            }
            Frame::Window { stream: 0, by } => {
                self.window += i64::from(by);
                if self.window > i64::from(MOST) {
                    return Err(TOO_WIDE);
                }
                Then::Resume
            }
            Frame::GoAway { last, code } => {
                self.drains = true;
                Then::GoAway { last, code }
            }
            _ => Then::Stream,
        };
        if self.waiting().len() > MOST_WAITING {
            return Err(Broken::new(
                code::ENHANCE_YOUR_CALM,
                "the server asks and does not read the answers",
            ));
        }
        Ok(then)
    }

    /// Takes the settings of the server.
    fn settle(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (settings, _) = bytes.as_chunks::<6>();
        for [a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                setting::ENABLE_PUSH if value != 0 => {
                    return Err(Broken::new(
                        code::PROTOCOL_ERROR,
                        "the server wants to be pushed to",
                    ));
                }
                setting::MAX_CONCURRENT_STREAMS => self.allowed = value,
                setting::INITIAL_WINDOW_SIZE if value > MOST => return Err(TOO_WIDE),
                // What is left of the windows of open streams changes with it (section 6.9.2).
                setting::INITIAL_WINDOW_SIZE => self.first_window = i64::from(value),
                setting::MAX_FRAME_SIZE => {
                    if !(16_384..=16_777_215).contains(&value) {
                        return Err(Broken::new(
                            code::PROTOCOL_ERROR,
                            "the server allows frames of a length that no server may allow",
                        ));
                    }
                    self.longest = (value as usize).min(LONGEST);
                }
                // The table for requests is never used, and no request is nearly too long a list.
                _ => {}
            }
        }
        self.is_ready = true;
        Ok(())
    }

    /// Tells the server why the connection ends.
    pub(in super::super) fn say_goodbye(&mut self, code: u32) {
        self.header(kind::GOAWAY, 0, 0, 8);
        self.out.extend_from_slice(&0_u32.to_be_bytes());
        self.out.extend_from_slice(&code.to_be_bytes());
    }
}

const TOO_WIDE: Broken = Broken {
    code: code::FLOW_CONTROL_ERROR,
    why: "a window grows beyond 2 GiB",
};

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(settings: &[(u16, u32)]) -> Mux {
        let mut mux = Mux::new(4);
        mux.begin();
        settle(&mut mux, settings).unwrap();
        mux.wrote(mux.waiting().len());
        mux
    }

    fn settle(mux: &mut Mux, settings: &[(u16, u32)]) -> Result<Then, Broken> {
        let bytes: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        mux.control(Frame::Settings(&bytes))
    }

    #[test]
    fn a_connection_begins_with_the_preface_and_settings() {
        let mut mux = Mux::new(1);
        mux.begin();
        let text = [
            PREFACE,
            b"\0\0\x18\x04\0\0\0\0\0",
            b"\0\x01\0\0\0\0\0\x02\0\0\0\0\0\x04\x40\0\0\0\0\x06\0\x01\0\0",
            b"\0\0\x04\x08\0\0\0\0\0\x3f\xff\0\x01",
        ]
        .concat();
        assert_eq!(mux.waiting(), text);
        assert!(!mux.has_room());
    }

    #[test]
    fn streams_begin_as_far_as_the_server_allows() {
        let mut mux = ready(&[(setting::MAX_CONCURRENT_STREAMS, 2)]);
        let mut first = mux.start(7, b"\x82", false);
        assert_eq!(mux.waiting(), b"\0\0\x01\x01\x05\0\0\0\x01\x82");
        let second = mux.start(8, b"\x82", false);
        assert_eq!((first.id, second.id), (1, 3));
        assert_eq!((mux.lane(1), mux.lane(3)), (7, 8));
        assert!(!mux.has_room() && mux.knows(3) && !mux.knows(5) && !mux.knows(2));
        mux.end(&mut first, Some(code::CANCEL));
        assert!(mux.has_room());
        assert!(
            mux.waiting()
                .ends_with(b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08")
        );
        assert_eq!(
            mux.control(Frame::GoAway { last: 3, code: 0 }),
            Ok(Then::GoAway { last: 3, code: 0 })
        );
        assert!(!mux.has_room());
    }

    #[test]
    fn a_long_head_goes_on_in_frames_of_its_own() {
        let mut mux = ready(&[]);
        mux.start(0, &vec![b'x'; 40_000], false);
        let mut heads = Vec::new();
        let mut rest = mux.waiting();
        while !rest.is_empty() {
            let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
            heads.push((length, rest[3], rest[4]));
            rest = &rest[9 + length..];
        }
        assert_eq!(heads, [(16_384, 1, 1), (16_384, 9, 0), (7_232, 9, 4)]);
    }

    #[test]
    fn a_body_waits_for_both_windows() {
        let mut mux = ready(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
        let body = vec![b'b'; 70_000];
        let mut stream = mux.start(0, b"", true);
        assert_eq!((mux.send(&mut stream, &body), stream.waits), (10, true));
        assert_eq!(mux.send(&mut stream, &body[10..]), 0);
        // Less than was sent already, then more: what is left may be below zero (section 6.9.2).
        settle(&mut mux, &[(setting::INITIAL_WINDOW_SIZE, 5)]).unwrap();
        mux.widened(&mut stream, 7).unwrap();
        assert_eq!(mux.send(&mut stream, &body[10..]), 2);
        settle(&mut mux, &[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]).unwrap();
        assert_eq!(mux.send(&mut stream, &body[12..]), 65_535 - 12);
        assert!(stream.waits);
        mux.control(Frame::Window {
            stream: 0,
            by: 1 << 20,
        })
        .unwrap();
        assert_eq!(mux.send(&mut stream, &body[65_535..]), 70_000 - 65_535);
        assert!(!stream.waits);
        assert!(mux.widened(&mut stream, MOST).is_err());
        assert!(
            mux.control(Frame::Window {
                stream: 0,
                by: MOST
            })
            .is_err()
        );
    }

    #[test]
    fn a_body_is_not_framed_far_ahead_of_the_kernel() {
        let mut mux = ready(&[(setting::INITIAL_WINDOW_SIZE, MOST)]);
        mux.control(Frame::Window {
            stream: 0,
            by: 1 << 30,
        })
        .unwrap();
        let body = vec![0; 2 * AHEAD];
        let mut stream = mux.start(0, b"", true);
        let sent = mux.send(&mut stream, &body);
        assert!(
            stream.waits && (AHEAD - LONGEST..AHEAD + LONGEST).contains(&sent),
            "{sent}"
        );
        mux.wrote(mux.waiting().len());
        let more = mux.send(&mut stream, &body[sent..]);
        assert!(more >= AHEAD - LONGEST);
    }

    #[test]
    fn the_windows_of_the_server_are_widened_before_they_are_used_up() {
        let mut mux = ready(&[]);
        let mut stream = mux.start(0, b"", false);
        mux.wrote(mux.waiting().len());
        mux.received(Some(&mut stream), WINDOW / 2).unwrap();
        assert!(mux.waiting().is_empty());
        mux.received(Some(&mut stream), 1).unwrap();
        let by = (WINDOW / 2 + 1).to_be_bytes();
        let updates = [
            &b"\0\0\x04\x08\0\0\0\0\x01"[..],
            &by,
            b"\0\0\x04\x08\0\0\0\0\0",
            &by,
        ]
        .concat();
        assert_eq!(mux.waiting(), updates);
        assert!(mux.received(Some(&mut stream), WINDOW + 1).is_err());
    }

    #[test]
    fn questions_are_answered_and_settings_that_no_server_may_have_are_refused() {
        let mut mux = ready(&[]);
        assert_eq!(mux.control(Frame::Ping(*b"12345678")), Ok(Then::Nothing));
        assert_eq!(mux.waiting(), b"\0\0\x08\x06\x01\0\0\0\x0012345678");
        for (id, value) in [
            (setting::ENABLE_PUSH, 1),
            (setting::INITIAL_WINDOW_SIZE, 1 << 31),
            (setting::MAX_FRAME_SIZE, 16_383),
            (setting::MAX_FRAME_SIZE, 1 << 24),
        ] {
            assert!(
                settle(&mut ready(&[]), &[(id, value)]).is_err(),
                "{id} {value}"
            );
        }
        assert!(settle(&mut mux, &[(setting::ENABLE_PUSH, 0), (99, 5)]).is_ok());
        let flood = (0..MOST_WAITING).map(|_| mux.control(Frame::Ping([0; 8])));
        assert!(flood.into_iter().any(|answer| answer.is_err()));
    }
}
