//! Lines that two threads have printed into each other.
//!
//! Before JDK 9 nothing orders what threads print (`utilities/ostream.cpp`): a line is several writes, and so is what the
//! concurrent thread of CMS or G1 tells of its phases. Such a *record* is a date, `: `, an uptime, `: `, a bracket with the
//! end of the line; behind a phase that is over, CPU times with the end of the line. Two things are untangled here:
//!
//! - A whole record within a line, at any byte of it: `  eden spa12.345: [CMS-concurrent-mark-start]` and on the next
//!   line `ce 26240K, ...`. The record is read, and what stands before it waits for its rest.
//! - Pieces of records within a row of `PrintHeapAtGC`: `  eden2026-11-22T17:09:58.133+0000 space 26240K, ...`. A row has
//!   no date, no uptime and no `: `, so that all of them are pieces. Stamps wait for their bracket in `stamps.rs`.
//!
//! Where digits of the line touch an uptime, `space 2612.345: [`, the clock says where it begins: the nearest time that is not
//! before the last one. Other lines in pieces are read as they are, fragment by fragment.

use memchr::memmem;
use memchr::memrchr;

use super::cursor::{Cursor, thousandths};
use super::{Preunified, heap};
use crate::account::Read;
use crate::clock::Clock;
use crate::context::Context;
use crate::date;
use crate::event::Collector;

/// What all records hold.
const CONCURRENT: &[u8] = b"concurrent-";
/// Brackets of records.
const BRACKETS: [&[u8]; 2] = [b"[CMS-concurrent-", b"[GC concurrent-"];
/// Printed in front of the stamps of a phase that was given up.
const ABORT: &[u8] = b" CMS: abort preclean due to time ";
/// Behind the bracket of a phase that is over; a blank follows the last bracket.
const TIMES: &[u8] = b" [Times: user=";
/// The same of `PrintCMSStatistics`, which puts the CPU times on a line of their own.
const YIELDED: &[u8] = b" (CMS-concurrent-";
/// Bytes of a date: `2026-11-22T17:09:58.133+0000`.
const DATE: usize = 28;
/// Digits of an uptime before its mark: thirty years.
const MOST_DIGITS: usize = 9;
/// Bytes in which a record's bracket ends; the longest has some seventy.
const NEAR: usize = 256;
/// Bytes of a line that wait; the longest lines of HotSpot that a record may tear have some hundred.
const MOST_WAITING: usize = 4096;

/// Starts of rows, of which a record may leave the first bytes.
const ROWS: &[&str] = &[
    "eden space ",
    "from space ",
    "to   space ",
    "class space ",
    "Metaspace ",
    "region size ",
    "Heap after ",
    "Desired survivor size ",
    "Total time for which application threads were stopped: ",
    "Application time: ",
    "After GC:",
    "Before GC:",
    "Statistics for ",
    "Total Free Space: ",
    "Max   Chunk Size: ",
    "Number of Blocks: ",
    "Av.  Block  Size: ",
    "Tree      Height: ",
];

/// What the pieces have in which a row of `PrintHeapAtGC` is written.
const OF_ROWS: &[&[u8]] = &[
    b"[0x",
    b" space",
    b" total ",
    b" generation",
    b" perm gen",
    b" garbage-first heap",
    b"  eden",
    b"  from",
    b"  to  ",
];

/// A record of a concurrent thread within a line, as a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    from: usize,
    to: usize,
}

impl Record {
    /// The first one in the text. `last_ns` is the last uptime that was read.
    fn find(text: &[u8], last_ns: u64) -> Option<Self> {
        let mut names = memmem::find_iter(text, CONCURRENT);
        let (open, to) = names.find_map(|at| bracket_around(text, at))?;
        let from = Self::begins(text, open, last_ns);
        Some(Self { from, to })
    }

    /// Where it begins whose bracket opens there.
    fn begins(text: &[u8], open: usize, last_ns: u64) -> usize {
        let last_ns = last_uptime(&text[..open]).unwrap_or(last_ns);
        let stamps = stamps_before(text, open, last_ns);
        match text[..stamps].strip_suffix(ABORT) {
            Some(before) => before.len(),
            None => stamps,
        }
    }
}

/// The bracket whose name has `concurrent-` at that place, and where its record ends.
fn bracket_around(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let open = BRACKETS.iter().find_map(|name| {
        let open = (at + CONCURRENT.len()).checked_sub(name.len())?;
        text[open..].starts_with(name).then_some(open)
    })?;
    Some((open, open + bracket(&text[open..])?))
}

/// Length of a record's bracket, with the CPU times or the count behind it; or of these.
fn bracket(text: &[u8]) -> Option<usize> {
    let end = |text: &[u8], last| {
        let near = &text[..text.len().min(NEAR)];
        memchr::memchr(last, near).map(|at| at + 1)
    };
    let times = |text: &[u8]| {
        let length = end(text.strip_prefix(TIMES)?, b']')? + TIMES.len();
        Some(length + usize::from(text.get(length) == Some(&b' ')))
    };
    if text.starts_with(YIELDED) {
        return end(text, b')');
    }
    if let Some(length) = times(text) {
        return Some(length);
    }
    let close = end(text, b']')?;
    let behind = &text[close..];
    let more = if text[..close].ends_with(b"-start]") {
        None
    } else if behind.starts_with(YIELDED) {
        end(behind, b')')
    } else {
        times(behind)
    };
    Some(close + more.unwrap_or(0))
}

/// Where the stamps of a bracket begin: a date, an uptime and `#12`, each of them there or not.
fn stamps_before(text: &[u8], open: usize, last_ns: u64) -> usize {
    let back = |from: usize, ending: &dyn Fn(&[u8]) -> Option<usize>| {
        let before = text[..from].strip_suffix(b": ");
        before.and_then(ending).unwrap_or(from)
    };
    let id = back(open, &id_ending);
    let uptime = back(id, &|before| uptime_ending(before, last_ns));
    back(uptime, &date_ending)
}

/// Where the `#12` of `PrintGCID` begins that ends with the text.
fn id_ending(text: &[u8]) -> Option<usize> {
    let digits = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let hash = text.len().checked_sub(digits + 1)?;
    (digits > 0 && text[hash] == b'#').then_some(hash)
}

/// Where the date begins that ends with the text.
fn date_ending(text: &[u8]) -> Option<usize> {
    let start = text.len().checked_sub(DATE)?;
    matches!(date::wall(&text[start..]), Some((_, []))).then_some(start)
}

/// Where the uptime begins that ends with the text.
fn uptime_ending(text: &[u8], last_ns: u64) -> Option<usize> {
    let mark = text.len().checked_sub(b".682".len())?;
    let whole = text[..mark]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit());
    let run = mark - whole.count();
    let (start, end) = uptime_in(&text[run..], last_ns)?;
    let dated = text[..run]
        .strip_suffix(b": ")
        .and_then(date_ending)
        .is_some();
    (run + end == text.len()).then_some(if dated { run } else { run + start })
}

/// Start and end of the uptime in a text that begins with digits, the first of which may be of something else.
fn uptime_in(text: &[u8], last_ns: u64) -> Option<(usize, usize)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let distance = |start: usize| {
        let (uptime_ns, rest) = thousandths(&text[start..])?;
        // `0x00000000f9000000,2026-`: the comma is none of a number.
        if matches!(rest.first(), Some(b'0'..=b'9' | b'.' | b',')) {
            return None;
        }
        let late = last_ns.saturating_sub(uptime_ns) > Clock::DISORDER_NS;
        Some((
            late,
            uptime_ns.abs_diff(last_ns),
            start,
            text.len() - rest.len(),
        ))
    };
    let (.., start, end) = (digits.saturating_sub(MOST_DIGITS)..digits)
        // HotSpot prints no zeros in front.
        .filter(|start| text[*start] != b'0' || start + 1 == digits)
        .filter_map(distance)
        .min()?;
    Some((start, end))
}

/// The uptime of the last bracket in a text.
fn last_uptime(text: &[u8]) -> Option<u64> {
    let end = text[..memrchr(b'[', text)?].strip_suffix(b": ")?.len();
    // All digits are its own.
    let start = uptime_ending(&text[..end], u64::MAX)?;
    Some(thousandths(&text[start..])?.0)
}

/// A line begins here, whatever waits.
fn begins(text: &[u8], waiting: &[u8]) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip_spaces();
    let torn_number = waiting.last().is_some_and(u8::is_ascii_digit);
    while cursor.at() > 0 || !torn_number {
        if let Some((_, rest)) = date::wall(cursor.rest()) {
            cursor.jump(text.len() - rest.len());
        } else if cursor.uptime().is_none() {
            break;
        }
        cursor.eat(b": ");
    }
    let starts = |start: &[u8]| cursor.rest().starts_with(start);
    let within: [&[u8]; 3] = [b"[GC Worker", b"[GC ref-proc", b"[GC concurrent-"];
    starts(b"[Full GC")
        || starts(b"[GC") && !within.into_iter().any(starts)
        || starts(b"{Heap before ")
        || starts(b"Heap after ")
        || starts(b"Desired survivor size ")
        || starts(b"- age ")
        || starts(b"Total time for which ")
        || starts(b"Application time: ")
}

/// The last thing in a line is a record, as in all lines that a record has torn: its end is that of the line. This is asked
/// of every line, and looks at its end alone. Where its bracket opens.
fn record_at_end(text: &[u8]) -> Option<usize> {
    let text = match text {
        [.., b')' | b']' | b' '] => text.trim_ascii_end(),
        _ => return None,
    };
    let open = |text: &[u8]| memrchr(b'[', text);
    let last = match text.last() {
        Some(b']') => match open(text) {
            Some(at) if text[at..].starts_with(TIMES.trim_ascii_start()) => open(&text[..at]),
            at => at,
        },
        Some(b')') if text.ends_with(b" times)") => open(text),
        _ => None,
    };
    // Pauses end like this too; few of their brackets begin with the first letter of a record's.
    last.filter(|at| matches!(text[at + 1..].first(), Some(b'C' | b'G')))
        .filter(|at| BRACKETS.iter().any(|name| text[*at..].starts_with(name)))
}

/// One date and no more than an uptime behind it: what most records begin with, and nothing that was torn does, since a log
/// whose lines have dates has them in records too.
fn is_dated(stamps: &[u8]) -> bool {
    let date = stamps.get(b"2026-11-22".len()) == Some(&b'T');
    let behind = stamps.get(DATE..).unwrap_or_default();
    date && behind.starts_with(b": ") && memchr::memchr(b'T', behind).is_none()
}

/// A row of `PrintHeapAtGC`, or a part of one.
fn is_of_a_row(text: &[u8]) -> bool {
    // Not the line of the pause, nor that of a block: they are what comes here most.
    let pause = |at: usize| {
        let bracket = &text[at..];
        bracket.starts_with(b"[GC") && !bracket.starts_with(BRACKETS[1])
    };
    let has = |what: &&[u8]| memmem::find(text, what).is_some();
    matches!(text.first(), Some(b' ' | b'[' | b':' | b'0'..=b'9'))
        && !memchr::memchr_iter(b'[', text).any(pause)
        && !has(&&b"[Full GC"[..])
        && OF_ROWS.iter().any(has)
}

/// HotSpot may have begun a line so.
fn is_of_a_jvm(before: &[u8]) -> bool {
    let start = before.trim_ascii_start();
    let begun = |row: &str| start.starts_with(row.as_bytes()) || row.as_bytes().starts_with(start);
    match start.first() {
        // What is left of stamps, and `PrintCMSStatistics` of the concurrent thread itself.
        Some(b':') if start.iter().all(|byte| b": ".contains(byte)) => false,
        Some(b'[' | b'(') if start.ends_with(b" cards)] ") => false,
        None | Some(b'[' | b']' | b',' | b'(' | b':' | b'{' | b'-' | b'#' | b'0'..=b'9') => true,
        Some(_) => ROWS.iter().copied().chain(heap::names()).any(begun),
    }
}

/// A line taken apart.
#[derive(Default)]
struct Parts {
    /// The line without records.
    line: Vec<u8>,
    /// Records or pieces of them, in their order.
    records: Vec<u8>,
    /// The end of the line is a record's: the rest of the torn one comes later.
    waits: bool,
}

impl Parts {
    /// Takes whole records out.
    fn take_records(&mut self, mut text: &[u8], last_ns: u64) {
        while let Some(record) = Record::find(text, last_ns) {
            self.line.extend(&text[..record.from]);
            self.records.extend(&text[record.from..record.to]);
            text = &text[record.to..];
            self.waits = true;
        }
        self.keep(text);
    }

    /// Takes out whatever can be of a record: the line is a row of `PrintHeapAtGC`.
    fn take_pieces(&mut self, text: &[u8], last_ns: u64) {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            at += match rest[0] {
                b':' if rest.starts_with(b": ") => 2,
                b'0'..=b'9' => self.take_stamp(rest, last_ns),
                b'[' | b' ' => self.take_bracket(rest),
                _ => self.keep(&rest[..1]),
            };
        }
    }

    /// Takes a date or an uptime, or keeps the digits. Gives the number of bytes.
    fn take_stamp(&mut self, rest: &[u8], last_ns: u64) -> usize {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (start, end) = match date::wall(rest) {
            Some((_, behind)) => (0, rest.len() - behind.len()),
            None => match uptime_in(rest, last_ns) {
                Some(uptime) => uptime,
                // A date may begin within.
                None => return self.keep(&rest[..digits.saturating_sub(4).max(1)]),
            },
        };
        self.keep(&rest[..start]);
        self.records.extend(&rest[start..end]);
        self.records.extend(b": ");
        end
    }

    /// Takes what stands in brackets or in front of them, or keeps a byte. Gives the number of bytes.
    fn take_bracket(&mut self, rest: &[u8]) -> usize {
        if rest.starts_with(ABORT) {
            self.records.extend(ABORT);
            return ABORT.len();
        }
        let known = BRACKETS.iter().chain(&[TIMES, YIELDED]);
        let is_known = known.copied().any(|start| rest.starts_with(start));
        let Some(length) = bracket(rest).filter(|_| is_known) else {
            return self.keep(&rest[..1]);
        };
        if !rest.starts_with(YIELDED) {
            self.records.extend(&rest[..length]);
        }
        self.waits = true;
        length
    }

    /// Keeps a part of the line, and gives its length.
    fn keep(&mut self, text: &[u8]) -> usize {
        self.waits &= text.trim_ascii().is_empty();
        self.line.extend(text);
        text.len()
    }
}

impl Preunified {
    /// The beginning of a line waits for its rest.
    pub(crate) fn is_torn(&self) -> bool {
        !self.torn.is_empty()
    }

    /// What waits lies within the collection of CMS's old generation.
    pub(super) fn is_torn_in_old(&self) -> bool {
        memrchr(b'[', &self.torn).is_some_and(|at| {
            self.torn[at..].starts_with(b"[CMS") && !self.torn[at..].contains(&b']')
        })
    }

    /// Reads what waits as it stands: its rest does not come.
    pub(super) fn tell_torn(&mut self, context: &mut Context<'_>) {
        if self.is_torn() {
            let start = std::mem::take(&mut self.torn);
            self.whole(context, &start);
        }
    }

    /// Reads a line that was torn, or that holds a record. Nothing if it is neither.
    pub(super) fn untangle(&mut self, context: &mut Context<'_>, text: &[u8]) -> Option<Read> {
        if matches!(
            self.collector,
            Some(Collector::Serial | Collector::Parallel | Collector::Shenandoah)
        ) {
            return None;
        }
        if self.is_torn() && begins(text, &self.torn) || self.torn.len() > MOST_WAITING {
            self.tell_torn(context);
        }
        // What comes behind a record's bracket; CPU times may also be what is next in the torn line.
        if let [b' ', b'[' | b'(', ..] = text {
            let times = self.is_torn() && !self.torn.ends_with(b" secs]");
            if times && text.starts_with(TIMES) || text.starts_with(YIELDED) {
                return Some(Read::Ignored);
            }
        }
        let at_end = record_at_end(text);
        let in_row = self.block.is_some()
            && (at_end.is_some() || memchr::memchr2(b':', b'.', text).is_some())
            && (is_of_a_row(text) || is_of_a_row(&self.torn));
        let last_ns = context.clock.last_ns();
        if !self.is_torn() && !in_row {
            let open = at_end?;
            if is_dated(&text[..open]) {
                return None;
            }
            let before = &text[..Record::begins(text, open, last_ns)];
            if before.is_empty() || !is_of_a_jvm(before) {
                return None;
            }
        }
        let mut parts = Parts {
            line: std::mem::take(&mut self.torn),
            ..Parts::default()
        };
        if in_row {
            parts.take_pieces(text, last_ns);
        } else {
            parts.take_records(text, last_ns);
        }
        if parts.waits {
            self.torn = parts.line;
            self.whole(context, &parts.records);
            return Some(Read::Understood);
        }
        if !parts.records.is_empty() {
            self.flow(context, &parts.records);
        }
        Some(self.whole(context, &parts.line))
    }
}
