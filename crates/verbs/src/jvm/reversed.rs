//! Dumps whose lines stand in reverse order: exports of log systems list the newest line first.

use anyhow::Context as _;

use crate::input::Part;

/// Larger files are read as they are: turning one round takes it into memory.
const MOST: usize = 256 << 20;
/// What is kept of a line; the words that tell the order stand at its beginning.
const LONGEST_LINE: usize = 4096;
/// Lines behind the last title of a reversed file: the time of the first dump, and the process id that `jcmd` prints.
const MOST_BEHIND: usize = 2;

/// The text with its lines turned round, if they stand in reverse order; none of what cannot be read twice.
pub(super) fn turned(part: &Part) -> anyhow::Result<Option<Vec<u8>>> {
    let context = || format!("cannot read {}", part.name);
    if !part.rests() {
        return Ok(None);
    }
    let mut order = Order::default();
    // Why a packed file ends early is said when it is read.
    let _ = part
        .open()?
        .each(|piece| order.push(piece))
        .with_context(context)?;
    if !order.is_reversed() {
        return Ok(None);
    }
    let mut text = Vec::new();
    let _ = part
        .open()?
        .each(|piece| {
            text.extend_from_slice(piece);
            text.len() <= MOST
        })
        .with_context(context)?;
    if text.len() > MOST {
        return Ok(None);
    }
    let lines = text.strip_suffix(b"\n").unwrap_or(&text);
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').rev().collect();
    let mut turned = lines.join(&b'\n');
    turned.push(b'\n');
    Ok(Some(turned))
}

/// What the lines so far tell about their order.
#[derive(Debug, Default)]
struct Order {
    line: Vec<u8>,
    /// A thread stood before any title of a dump.
    began_with_thread: bool,
    /// A title stood behind threads.
    has_title: bool,
    /// Lines since the last title that are not empty.
    behind: usize,
}

impl Order {
    /// Reads a piece; false if the order is known.
    fn push(&mut self, piece: &[u8]) -> bool {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") && !self.end_of_line() {
                return false;
            }
        }
        true
    }

    fn end_of_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.contains("Full thread dump ") {
            self.has_title = self.began_with_thread;
            self.behind = 0;
            // A title before its threads is the usual order.
            return self.began_with_thread;
        }
        // A document is one value, whose lines have no order of their own.
        let is_document = !self.began_with_thread && line.starts_with('{');
        self.began_with_thread |= line.contains('"') && line.contains(" tid=0x");
        self.behind += usize::from(!line.is_empty());
        !is_document
    }

    fn is_reversed(&mut self) -> bool {
        // The last line may have no end.
        let known = !self.line.is_empty() && !self.end_of_line();
        !known && self.has_title && self.behind <= MOST_BEHIND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "2026-11-21 11:39:33\nFull thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode):\n\n\
                        \"a\" #1 prio=5 tid=0x1 nid=0x2 runnable\n   java.lang.Thread.State: RUNNABLE\n\tat A.b(A.java:1)\n\n";

    fn is_reversed(text: &str, piece: usize) -> bool {
        let mut order = Order::default();
        text.as_bytes().chunks(piece).all(|piece| order.push(piece)) && order.is_reversed()
    }

    fn turned(text: &str) -> String {
        let lines: Vec<&str> = text.lines().rev().collect();
        lines.join("\n")
    }

    #[test]
    fn the_order_is_known_by_where_the_title_stands() {
        let two = DUMP.repeat(2);
        let log = format!("INFO started\n{DUMP}");
        for text in [DUMP, &two, &log, "", "{\"threadDump\": {}}\n"] {
            for piece in [1, 7, 4096] {
                assert!(!is_reversed(text, piece), "{text}");
            }
        }
        for text in [turned(DUMP), turned(&two), turned(DUMP) + "\n4711:\n"] {
            for piece in [1, 7, 4096] {
                assert!(is_reversed(&text, piece), "{text}");
            }
        }
        // The end of a dump, and the next one whole.
        let cut = format!("{}{DUMP}", &DUMP[DUMP.find('"').unwrap()..]);
        assert!(!is_reversed(&cut, 4096), "{cut}");
        assert!(!is_reversed(&"\"".repeat(10_000), 64));
    }
}
