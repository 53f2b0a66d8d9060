//! Text in UTF-16, which PowerShell writes when output is redirected into a file: read as UTF-8.
//!
//! It is detected by its byte order mark (The Unicode Standard, 23.8). U+FFFD replaces an invalid unit.

use std::io::{self, BufRead, Read};

/// Which byte of a unit comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Low,
    High,
}

/// The order of a text that begins with these bytes, if it is in UTF-16.
pub(super) fn order(first: &[u8]) -> Option<Order> {
    match first {
        [0xff, 0xfe, ..] => Some(Order::Low),
        [0xfe, 0xff, ..] => Some(Order::High),
        _ => None,
    }
}

/// Gives UTF-8.
pub(super) struct Utf16 {
    reader: Box<dyn BufRead>,
    order: Order,
    /// Bytes that make no character yet.
    left: Vec<u8>,
    text: String,
    /// How much of the text was given.
    given: usize,
    begun: bool,
}

impl Utf16 {
    /// A text from its mark on.
    pub(super) fn new(reader: Box<dyn BufRead>, order: Order) -> Self {
        Self {
            reader,
            order,
            left: Vec::new(),
            text: String::new(),
            given: 0,
            begun: false,
        }
    }

    /// Reads on; the text is empty at the end.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.given = 0;
        let mut ended = false;
        while self.text.is_empty() && !ended {
            let bytes = self.reader.fill_buf()?;
            let count = bytes.len();
            ended = count == 0;
            self.left.extend_from_slice(bytes);
            self.reader.consume(count);
            let pairs = self.left.chunks_exact(2);
            let units = pairs.map(|pair| match self.order {
                Order::Low => u16::from_le_bytes([pair[0], pair[1]]),
                Order::High => u16::from_be_bytes([pair[0], pair[1]]),
            });
            let mut units: Vec<u16> = units.collect();
            // The first of two units waits for the other.
            if units
                .last()
                .is_some_and(|last| (0xd800..0xdc00).contains(last))
                && !ended
            {
                units.pop();
            }
            self.left.drain(..units.len() * 2);
            let skipped = usize::from(!self.begun && !units.is_empty());
            self.begun |= skipped > 0;
            let characters = char::decode_utf16(units.into_iter().skip(skipped));
            self.text.extend(
                characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)),
            );
            if ended && !self.left.is_empty() {
                self.left.clear();
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Ok(())
    }
}

impl Read for Utf16 {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() {
            self.fill()?;
        }
        let count = (&self.text.as_bytes()[self.given..]).read(room)?;
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: Vec<u8>, buffer: usize) -> String {
        let order = order(&bytes).unwrap();
        let reader = io::BufReader::with_capacity(buffer, io::Cursor::new(bytes));
        let mut text = String::new();
        let mut utf16 = Utf16::new(Box::new(reader), order);
        utf16.read_to_string(&mut text).unwrap();
        text
    }

    fn bytes(text: &str, of: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mark = std::iter::once(0xfeff);
        mark.chain(text.encode_utf16()).flat_map(of).collect()
    }

    #[test]
    fn both_orders_give_the_text_however_it_comes() {
        let text = "[0.5s][info][gc] GC(0) Ä 😀 24M->4M\r\n";
        for of in [u16::to_le_bytes as fn(u16) -> _, u16::to_be_bytes] {
            for buffer in [2, 3, 5, 4096] {
                assert_eq!(read(bytes(text, of), buffer), text, "{buffer}");
            }
        }
        assert_eq!(read(bytes("", u16::to_le_bytes), 4096), "");
    }

    #[test]
    fn what_is_cut_or_damaged_leaves_a_mark() {
        let mut cut = bytes("a😀", u16::to_le_bytes);
        cut.pop();
        assert_eq!(read(cut.clone(), 3), "a\u{fffd}\u{fffd}");
        cut.pop();
        assert_eq!(read(cut, 3), "a\u{fffd}");
        assert_eq!(order(b"[0.5s]"), None);
    }
}
