//! A place in a line, and the small things that lines of JDK 5 to 8 are made of.
//!
//! What cannot be read leaves the place as it was.

use crate::event::Cpu;
use crate::number;

/// Bytes in which a bracket must end. Without a limit a line of brackets that never end would be read again and again.
const NEAR: usize = 512;

/// A place in a line.
pub(super) struct Cursor<'t> {
    text: &'t [u8],
    at: usize,
}

/// Sizes as printed: `5803756K->70533K(11953792K)`, `2202742K(3145728K)`, `24.0M(24.0M)->0.0B(13.0M)`. Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    /// The first.
    pub(super) before: u64,
    /// Behind the arrow.
    pub(super) after: Option<u64>,
    /// The last one in brackets.
    pub(super) capacity: Option<u64>,
}

impl<'t> Cursor<'t> {
    #[inline]
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn text(&self) -> &'t [u8] {
        self.text
    }

    #[inline]
    pub(super) fn rest(&self) -> &'t [u8] {
        &self.text[self.at..]
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Goes to a place of the whole text.
    #[inline]
    pub(super) fn jump(&mut self, at: usize) {
        self.at = at.min(self.text.len());
    }

    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        self.jump(self.at + bytes);
    }

    #[inline]
    pub(super) fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Steps over `expected` if it stands here.
    #[inline]
    pub(super) fn eat(&mut self, expected: &[u8]) -> bool {
        let there = self.rest().starts_with(expected);
        if there {
            self.at += expected.len();
        }
        there
    }

    /// What stands before the next `end`, which is near, and steps over both.
    pub(super) fn until(&mut self, end: u8) -> Option<&'t [u8]> {
        let rest = self.rest();
        let length = memchr::memchr(end, &rest[..rest.len().min(NEAR)])?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// What stands within a bracket whose opening was just stepped over, brackets within it included.
    pub(super) fn bracket(&mut self) -> Option<&'t [u8]> {
        let rest = self.rest();
        let mut depth = 1_u32;
        for (length, byte) in rest.iter().take(NEAR).enumerate() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += length + 1;
                return Some(&rest[..length]);
            }
        }
        None
    }

    /// A whole number.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<u64> {
        self.take(number::whole(self.rest()))
    }

    /// Seconds such as `0.1193963`, in nanoseconds.
    #[inline]
    pub(super) fn seconds(&mut self) -> Option<u64> {
        self.take(number::decimal(self.rest(), number::SECONDS))
    }

    /// Milliseconds such as `24.5`, in nanoseconds.
    #[inline]
    pub(super) fn millis(&mut self) -> Option<u64> {
        self.take(number::decimal(self.rest(), number::MILLISECONDS))
    }

    #[inline]
    fn take(&mut self, read: Option<(u64, &'t [u8])>) -> Option<u64> {
        let (value, rest) = read?;
        self.at = self.text.len() - rest.len();
        Some(value)
    }

    /// `261980.463` in nanoseconds: a stamp has three places, neither more nor less, and something stands behind it.
    pub(super) fn uptime(&mut self) -> Option<u64> {
        let (uptime, rest) = thousandths(self.rest())?;
        let ends = match rest {
            [b':', ..] => true,
            // `132.743132.743: : Application`: two threads printed their stamps into each other.
            [b'0'..=b'9', ..] => thousandths(rest).is_some(),
            _ => rest.starts_with(b"Total time") || rest.starts_with(b"Application time"),
        };
        ends.then_some(())?;
        self.take(Some((uptime, rest)))
    }

    /// `5803756K`, `4756927 K`, `24.0M`, `0.0B` in bytes.
    #[inline]
    pub(super) fn size(&mut self) -> Option<u64> {
        let (whole, rest) = number::whole(self.rest())?;
        // Nearly all sizes are whole KiB.
        if let [b'K', next @ ..] = rest
            && !next.first().is_some_and(u8::is_ascii_alphanumeric)
        {
            return self.take(Some((whole.checked_mul(1024)?, next)));
        }
        self.take(number::size(self.rest()))
    }

    /// Sizes with what belongs to them.
    #[inline]
    pub(super) fn figures(&mut self) -> Option<Figures> {
        let before = self.size()?;
        let mut figures = Figures {
            before,
            after: None,
            capacity: self.size_in_bracket(),
        };
        let behind = self.at;
        if self.eat(b"->") {
            figures.after = self.size();
            match figures.after {
                Some(_) => figures.capacity = self.size_in_bracket().or(figures.capacity),
                None => self.at = behind,
            }
        }
        Some(figures)
    }

    fn size_in_bracket(&mut self) -> Option<u64> {
        let start = self.at;
        self.skip_spaces();
        if self.eat(b"(")
            && let Some(size) = self.size()
            && self.eat(b")")
        {
            return Some(size);
        }
        self.at = start;
        None
    }

    /// An address, with or without `0x`, and how many digits it has.
    pub(super) fn address(&mut self) -> Option<(u64, usize)> {
        let start = self.at;
        self.eat(b"0x");
        let from = self.at;
        let mut value = 0_u64;
        let mut digits = 0;
        for byte in self.rest() {
            let digit = HEX[usize::from(*byte)];
            if digit == NO_DIGIT {
                break;
            }
            value = value << 4 | u64::from(digit);
            digits += 1;
        }
        self.at = from + digits;
        if !(1..=16).contains(&digits) {
            self.at = start;
            return None;
        }
        Some((value, digits))
    }
}

/// None of a hexadecimal digit.
const NO_DIGIT: u8 = u8::MAX;
/// Hexadecimal digits by their bytes: three addresses stand in each row of a heap.
const HEX: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digits[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

/// `user=0.25 sys=0.01, real=0.07 secs]`; the locale may print `user=0,25 sys=0,01, real=0,07 secs`.
pub(super) fn cpu(cursor: &mut Cursor<'_>) -> Option<Cpu> {
    cursor.eat(b"user=").then_some(())?;
    let user_ns = cursor.seconds()?;
    cursor.eat(b" sys=").then_some(())?;
    let sys_ns = cursor.seconds()?;
    cursor.eat(b", real=").then_some(())?;
    let real_ns = cursor.seconds()?;
    cursor.eat(b" secs");
    cursor.eat(b"]");
    Some(Cpu {
        user_ns,
        sys_ns,
        real_ns,
    })
}

/// Seconds with three places, in nanoseconds; what follows may be more digits.
pub(super) fn thousandths(text: &[u8]) -> Option<(u64, &[u8])> {
    let (seconds, rest) = number::whole(text)?;
    let (places, rest) = match rest {
        [b'.' | b',', places @ ..] => places.split_at_checked(3)?,
        _ => return None,
    };
    let (millis, []) = number::whole(places)? else {
        return None;
    };
    let uptime = seconds.checked_mul(1000)?.checked_add(millis)?;
    Some((uptime.checked_mul(1_000_000)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Cursor<'_> {
        Cursor::new(text.as_bytes())
    }

    #[test]
    fn a_number_is_stepped_over_and_nothing_else() {
        let mut times = at("0,85, real");
        assert_eq!(times.seconds(), Some(850_000_000));
        assert_eq!(times.rest(), b", real");
        let mut count = at("15, Avg: 73,2");
        assert_eq!(count.millis(), Some(15_000_000));
        assert_eq!(count.rest(), b", Avg: 73,2");
        let mut size = at("4756927 K (6606080 K)");
        assert_eq!(size.size(), Some(4_756_927 << 10));
        assert_eq!(size.rest(), b" (6606080 K)");
    }

    #[test]
    fn figures_come_in_three_forms() {
        let young = Figures {
            before: 5_803_756 << 10,
            after: Some(70_533 << 10),
            capacity: Some(11_953_792 << 10),
        };
        assert_eq!(at("5803756K->70533K(11953792K)").figures(), Some(young));
        assert_eq!(at("5803756K->70533K (11953792K),").figures(), Some(young));
        let mark = Figures {
            before: 2_202_742 << 10,
            after: None,
            capacity: Some(3_145_728 << 10),
        };
        assert_eq!(at("2202742K(3145728K)]").figures(), Some(mark));
        let eden = Figures {
            before: 24 << 20,
            after: Some(0),
            capacity: Some(13 << 20),
        };
        assert_eq!(at("24.0M(24.0M)->0.0B(13.0M) S").figures(), Some(eden));
    }

    #[test]
    fn a_stamp_has_three_places() {
        assert_eq!(at("0.388: [GC").uptime(), Some(388_000_000));
        assert_eq!(at("21306,443: [GC").uptime(), Some(21_306_443_000_000));
        assert_eq!(at("0.0285670 secs").uptime(), None);
        assert_eq!(at("25.112-b15").uptime(), None);
    }

    #[test]
    fn two_stamps_printed_into_each_other_are_two() {
        let mut twice = at("132.743132.744: : Application time");
        assert_eq!(twice.uptime(), Some(132_743_000_000));
        assert_eq!(twice.uptime(), Some(132_744_000_000));
        let mut glued = at("652.538Total time for");
        assert_eq!(glued.uptime(), Some(652_538_000_000));
    }

    #[test]
    fn a_bracket_may_hold_brackets() {
        let mut cause = at("System.gc()) 24M");
        assert_eq!(cause.bracket(), Some(&b"System.gc()"[..]));
        assert_eq!(cause.rest(), b" 24M");
        assert_eq!(at("no end (").bracket(), None);
    }

    #[test]
    fn what_cannot_be_read_moves_nothing() {
        for text in ["", "K", "-", "12.3.4", "99999999999999999999999"] {
            let mut cursor = at(text);
            assert_eq!(cursor.size(), None, "{text}");
            assert_eq!(cursor.at(), 0, "{text}");
            assert_eq!(cursor.uptime(), None, "{text}");
            assert_eq!(cursor.at(), 0, "{text}");
        }
    }
}
