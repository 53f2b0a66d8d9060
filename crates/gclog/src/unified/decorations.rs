//! What stands in brackets before a message of unified logging (JEP 158): `[2025-11-22T02:55:40.123+0000][0.512s]
//! [info ][gc,start    ] `, any of twelve decorations, each padded with spaces.
//!
//! HotSpot prints them in one order (`logging/logDecorators.hpp`), but each group is judged by its form alone: dates,
//! numbers with a unit, levels and tags cannot be mistaken for each other. A name of a host and numbers of process
//! and thread say nothing here.

use memchr::memchr;

use crate::date;
use crate::event::Stamp;
use crate::number::{MILLISECONDS, SECONDS, decimal};

/// A group is not longer than this: the longest are five tags, or a host.
const LONGEST_GROUP: usize = 256;
/// Milliseconds above this (the year 2001) are those of a date, not of an uptime.
const FIRST_DATE_MS: u64 = 1_000_000_000_000;

/// What was printed before a message, as text: most messages never need to know their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decorations<'a> {
    date: Option<&'a [u8]>,
    /// Number and the power of ten of its unit.
    uptime: Option<(&'a [u8], u32)>,
    wall_ms: Option<&'a [u8]>,
    /// Without padding: `gc,start`.
    pub(crate) tags: &'a [u8],
    /// The level is debug or trace.
    pub(crate) fine: bool,
}

impl<'a> Decorations<'a> {
    /// The decorations at the start of a line, and the message behind them. Nothing if there are none, or if none
    /// of them can only be a decoration.
    pub(crate) fn read(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut decorations = Self::default();
        let mut sure = false;
        let mut rest = text;
        while let Some(inner) = rest.strip_prefix(b"[") {
            let end = memchr(b']', &inner[..inner.len().min(LONGEST_GROUP)])?;
            sure |= decorations.group(&inner[..end])?;
            rest = &inner[end + 1..];
        }
        sure.then(|| (decorations, rest.strip_prefix(b" ").unwrap_or(rest)))
    }

    /// Takes in one group. True if it can only be a decoration; nothing if it cannot be one.
    fn group(&mut self, group: &'a [u8]) -> Option<bool> {
        let group = group.trim_ascii_end();
        let (first, last) = (*group.first()?, *group.last()?);
        if first.is_ascii_digit() {
            if group.len() > 18 && group[10] == b'T' && group[4] == b'-' {
                self.date = Some(group);
                return Some(true);
            }
            if last == b's' {
                let number = &group[..group.len() - 1];
                let (number, places) = match number {
                    [number @ .., b'm'] => (number, MILLISECONDS),
                    [number @ .., b'n'] => (number, 0),
                    number => (number, SECONDS),
                };
                if number
                    .iter()
                    .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
                {
                    // Both kinds of milliseconds look alike. Nanoseconds are taken as uptime.
                    if places == MILLISECONDS
                        && decimal(number, 0).is_some_and(|(value, _)| value > FIRST_DATE_MS)
                    {
                        self.wall_ms = Some(number);
                    } else {
                        self.uptime = Some((number, places));
                    }
                    return Some(true);
                }
            }
        }
        match group {
            [b'g', b'c'] | [b'g', b'c', b',', ..] => {
                self.tags = group;
                Some(true)
            }
            b"info" | b"warning" | b"error" => Some(true),
            b"debug" | b"trace" => {
                self.fine = true;
                Some(true)
            }
            _ if group
                .iter()
                .any(|byte| !(byte.is_ascii_alphanumeric() || b",._-:+".contains(byte))) =>
            {
                None
            }
            _ if first.is_ascii_alphabetic() => {
                self.tags = group;
                Some(group.starts_with(b"safepoint"))
            }
            _ => Some(false),
        }
    }

    /// When the line was printed.
    pub(crate) fn stamp(&self) -> Stamp {
        let wall_ns = match (self.date, self.wall_ms) {
            (Some(date), _) => date::wall(date).map(|(value, _)| value),
            (None, Some(number)) => decimal(number, MILLISECONDS)
                .and_then(|(value, _)| i64::try_from(value).ok()),
            (None, None) => None,
        };
        Stamp {
            uptime_ns: self
                .uptime
                .and_then(|(number, places)| decimal(number, places))
                .map(|(value, _)| value),
            wall_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Stamp, String, String)> {
        let (decorations, message) = Decorations::read(text.as_bytes())?;
        Some((
            decorations.stamp(),
            String::from_utf8_lossy(decorations.tags).into_owned(),
            String::from_utf8_lossy(message).into_owned(),
        ))
    }

    #[test]
    fn each_is_known_by_its_form_wherever_it_stands() {
        let uptime = Stamp {
            uptime_ns: Some(512_000_000),
            wall_ns: None,
        };
        for line in [
            "[0.512s][info][gc] GC(0) x",
            "[0,512s][info ][gc     ] GC(0) x",
            "[512ms][4711][4712][debug][gc] GC(0) x",
            "[512000000ns][gc] GC(0) x",
            "[gc][info][0.512s] GC(0) x",
            "[host-7.example.org][0.512s][gc] GC(0) x",
        ] {
            let (stamp, tags, message) = read(line).unwrap();
            assert_eq!((stamp, message.as_str()), (uptime, "GC(0) x"), "{line}");
            assert_eq!(tags, "gc", "{line}");
        }
    }

    #[test]
    fn a_date_goes_with_an_uptime() {
        let (stamp, tags, message) =
            read("[2026-11-21T11:37:57.369+0000][1763725077369ms][0.029s][info][gc,start ]   x").unwrap();
        assert_eq!(stamp.uptime_ns, Some(29_000_000));
        assert_eq!(stamp.wall_ns, Some(1_795_261_077_369_000_000));
        assert_eq!((tags.as_str(), message.as_str()), ("gc,start", "  x"));
    }

    #[test]
    fn milliseconds_of_a_date_are_no_uptime() {
        let (stamp, ..) = read("[1522825800586ms][gc] x").unwrap();
        assert_eq!(stamp.uptime_ns, None);
        assert_eq!(stamp.wall_ns, Some(1_522_825_800_586_000_000));
    }

    #[test]
    fn brackets_of_old_logs_are_no_decorations() {
        for line in [
            "[GC 325407K->83000K(776768K), 0.2300771 secs]",
            "[Full GC (System.gc()) 1K->1K(9K), 0.1 secs]",
            "[CMS-concurrent-mark-start]",
            "[Times: user=0.02 sys=0.02, real=0.12 secs]",
            "[0.0012 secs]",
            "[main] INFO  org.example.Service - started",
            "[",
            "[]",
            "[gc",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
