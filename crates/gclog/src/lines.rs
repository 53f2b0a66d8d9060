//! Pieces of any length -> lines, without a copy where a line lies whole in its piece.
//!
//! A line ends with LF or CR LF, or CR CR LF. Zeros at the start of a line are what `copytruncate` leaves: the JVM keeps its
//! offset, so the emptied file begins with a hole, which may be gigabytes; they are counted and never stored.

use memchr::memchr;

/// Most bytes of a line that are kept. No line of a GC log comes near; command lines in headers reach some KiB.
pub(crate) const LONGEST: usize = 64 * 1024;

/// A line as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Without its end and the zeros before it, and at most [`LONGEST`] bytes of it.
    pub(crate) text: &'a [u8],
    /// Its bytes, with its end, without the zeros before it.
    pub(crate) bytes: u64,
    /// Zeros before it.
    pub(crate) nul_bytes: u64,
    /// It was longer than [`LONGEST`].
    pub(crate) long: bool,
    /// It has an end. Only the last line may have none.
    pub(crate) ended: bool,
}

/// What is left of the last piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// Start of a line whose end has not come yet; at most [`LONGEST`] bytes and one.
    kept: Vec<u8>,
    /// Bytes of that line so far, kept or not.
    bytes: u64,
    /// Zeros before it.
    nul_bytes: u64,
}

impl Lines {
    /// Gives every line that ends in this piece.
    pub(crate) fn push(&mut self, mut piece: &[u8], mut each: impl FnMut(Line<'_>)) {
        loop {
            if self.bytes == 0 {
                let zeros = piece.iter().take_while(|&&byte| byte == 0).count();
                self.nul_bytes += zeros as u64;
                piece = &piece[zeros..];
            }
            let Some(end) = memchr(b'\n', piece) else {
                self.keep(piece);
                return;
            };
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            if self.bytes == 0 {
                each(cut(line, line.len() as u64 + 1, self.nul_bytes, true));
            } else {
                self.keep(line);
                each(cut(&self.kept, self.bytes + 1, self.nul_bytes, true));
                self.kept.clear();
                self.bytes = 0;
            }
            self.nul_bytes = 0;
            piece = rest;
        }
    }

    /// Gives the last line when it has no end.
    pub(crate) fn finish(self, each: impl FnOnce(Line<'_>)) {
        if self.bytes > 0 || self.nul_bytes > 0 {
            each(cut(&self.kept, self.bytes, self.nul_bytes, false));
        }
    }

    fn keep(&mut self, part: &[u8]) {
        // One byte more than is given out, so that a CR just behind the limit is still seen as part of the end.
        let room = (LONGEST + 1).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        self.bytes += part.len() as u64;
    }
}

/// `bytes` says how long the line really is; `line` may be its start only.
fn cut(line: &[u8], bytes: u64, nul_bytes: u64, ended: bool) -> Line<'_> {
    let whole = line.len() as u64 + u64::from(ended) == bytes;
    let text = match line {
        // Two of them, where a terminal or a text file of Windows has made CR LF of each end once more.
        [text @ .., b'\r', b'\r'] | [text @ .., b'\r'] if whole => text,
        _ => line,
    };
    Line {
        text: &text[..text.len().min(LONGEST)],
        bytes,
        nul_bytes,
        long: text.len() > LONGEST,
        ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text, bytes, zeros, long, ended.
    type Seen = (Vec<u8>, u64, u64, bool, bool);

    fn read(pieces: &[&[u8]]) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut lines = Lines::default();
        let mut each = |line: Line<'_>| {
            seen.push((
                line.text.to_vec(),
                line.bytes,
                line.nul_bytes,
                line.long,
                line.ended,
            ));
        };
        for piece in pieces {
            lines.push(piece, &mut each);
        }
        lines.finish(&mut each);
        seen
    }

    #[test]
    fn ends_of_both_kinds_are_taken_off_and_counted() {
        assert_eq!(
            read(&[b"one\r\ntwo\n\nlast"]),
            [
                (b"one".to_vec(), 5, 0, false, true),
                (b"two".to_vec(), 4, 0, false, true),
                (b"".to_vec(), 1, 0, false, true),
                (b"last".to_vec(), 4, 0, false, false),
            ]
        );
    }

    #[test]
    fn pieces_of_one_byte_give_the_same_lines() {
        let text = b"\0\0one\r\n\0\ntwo\n\0three\0\r";
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&single), read(&[text]));
    }

    #[test]
    fn zeros_before_a_line_are_counted_and_not_kept() {
        assert_eq!(
            read(&[b"\0\0\0", b"\0one\n"]),
            [(b"one".to_vec(), 4, 4, false, true)]
        );
        assert_eq!(read(&[b"\0\0"]), [(b"".to_vec(), 0, 2, false, false)]);
    }

    #[test]
    fn a_long_line_is_cut_however_it_comes() {
        for extra in [0, 1, 2, 1000] {
            let mut text = vec![b'x'; LONGEST + extra];
            text.extend(b"\r\nnext\n");
            let expected = (
                vec![b'x'; LONGEST],
                (LONGEST + extra + 2) as u64,
                0,
                extra > 0,
                true,
            );
            for size in [text.len(), 1000, LONGEST, LONGEST + 1] {
                let pieces: Vec<&[u8]> = text.chunks(size).collect();
                let seen = read(&pieces);
                assert_eq!(seen.len(), 2, "{extra} bytes more, pieces of {size}");
                assert!(seen[0] == expected, "{extra} bytes more, pieces of {size}");
            }
        }
    }
}
