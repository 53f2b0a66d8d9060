//! Pieces of any length to lines; UTF-16, as the redirection of some shells writes it, to UTF-8.

/// Most bytes of a line that are kept. The longest of a dump are names of lambdas, some hundred bytes.
const LONGEST: usize = 16 * 1024;

/// What is left of the last piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    kept: Vec<u8>,
    /// Bytes of the line so far, kept or not.
    bytes: u64,
}

impl Lines {
    /// Gives every line that ends in this piece, without its end, and its length with it.
    pub(crate) fn push(&mut self, piece: &[u8], mut each: impl FnMut(&[u8], u64)) {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            self.bytes += part.len() as u64;
            let bare = part.strip_suffix(b"\n");
            let text = bare.unwrap_or(part);
            let room = LONGEST.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&text[..text.len().min(room)]);
            if bare.is_some() {
                self.give(&mut each);
            }
        }
    }

    /// Gives the last line where it has no end, and says whether there is one.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(&[u8], u64)) -> bool {
        let rest = self.bytes > 0;
        if rest {
            self.give(&mut each);
        }
        rest
    }

    fn give(&mut self, each: &mut impl FnMut(&[u8], u64)) {
        let line = self.kept.strip_suffix(b"\r").unwrap_or(&self.kept);
        each(line, self.bytes);
        self.kept.clear();
        self.bytes = 0;
    }
}

/// How the units of UTF-16 are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// UTF-16 in pieces to UTF-8; what is no text becomes the replacement character.
#[derive(Clone, Debug)]
pub(crate) struct Utf16 {
    order: Order,
    /// First byte of a unit whose second is in the next piece.
    half: Option<u8>,
    /// First unit of a pair.
    high: Option<u16>,
}

impl Utf16 {
    /// By the mark at the beginning of a text, whose length is given too; else by two letters of ASCII.
    pub(crate) fn detected(first: &[u8]) -> Option<(Self, usize)> {
        let (order, mark) = match first {
            [0xff, 0xfe, ..] => (Order::Little, 2),
            [0xfe, 0xff, ..] => (Order::Big, 2),
            [1..=127, 0, 1..=127, 0, ..] => (Order::Little, 0),
            [0, 1..=127, 0, 1..=127, ..] => (Order::Big, 0),
            _ => return None,
        };
        let decoder = Self {
            order,
            half: None,
            high: None,
        };
        Some((decoder, mark))
    }

    pub(crate) fn decoded(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut text = String::with_capacity(piece.len() / 2);
        for &byte in piece {
            let Some(first) = self.half.take() else {
                self.half = Some(byte);
                continue;
            };
            let unit = match self.order {
                Order::Little => u16::from_le_bytes([first, byte]),
                Order::Big => u16::from_be_bytes([first, byte]),
            };
            self.unit(unit, &mut text);
        }
        text.into_bytes()
    }

    fn unit(&mut self, unit: u16, text: &mut String) {
        let units = self.high.take().into_iter().chain([unit]);
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(letter) => text.push(letter),
                Err(error)
                    if error.unpaired_surrogate() == unit && (0xd800..0xdc00).contains(&unit) =>
                {
                    self.high = Some(unit);
                }
                Err(_) => text.push(char::REPLACEMENT_CHARACTER),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<(Vec<u8>, u64)> {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |line, bytes| seen.push((line.to_vec(), bytes)));
        }
        lines.finish(|line, bytes| seen.push((line.to_vec(), bytes)));
        seen
    }

    #[test]
    fn pieces_of_one_byte_give_the_same_lines() {
        let text = b"one\r\n\ntwo\nthree";
        let single: Vec<&[u8]> = text.chunks(1).collect();
        let expected = [("one", 5), ("", 1), ("two", 4), ("three", 5)];
        let expected = expected.map(|(line, bytes)| (line.as_bytes().to_vec(), bytes));
        assert_eq!(lines(&[text]), expected);
        assert_eq!(lines(&single), expected);
    }

    #[test]
    fn a_long_line_is_cut_and_its_bytes_are_counted() {
        let mut text = vec![b'x'; LONGEST + 10];
        text.push(b'\n');
        let seen = lines(&[&text]);
        assert_eq!((seen[0].0.len(), seen[0].1), (LONGEST, text.len() as u64));
    }

    #[test]
    fn utf16_is_decoded_whatever_the_order_and_the_pieces() {
        let text = "\"main\" #1 µ 🦀\n";
        for order in [Order::Little, Order::Big] {
            let bytes = |unit: u16| match order {
                Order::Little => unit.to_le_bytes(),
                Order::Big => unit.to_be_bytes(),
            };
            let stored: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
            let (mut decoder, mark) = Utf16::detected(&bytes(0xfeff)).unwrap();
            assert_eq!((mark, Utf16::detected(&stored).unwrap().1), (2, 0));
            let decoded: Vec<u8> = stored
                .chunks(1)
                .flat_map(|piece| decoder.decoded(piece))
                .collect();
            assert_eq!(decoded, text.as_bytes());
        }
    }
}
