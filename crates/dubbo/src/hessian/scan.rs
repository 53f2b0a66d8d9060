//! Bytes to tokens: what both readers share, so that they agree on every body.

use crate::error::{Error, Problem};

/// Ends a list of unknown length and a map.
pub(crate) const END: u8 = b'Z';

/// A value without parts, or the head of one with parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Date(i64),
    Text(Chunk),
    Binary(Chunk),
    List { is_typed: bool, length: Length },
    Map { is_typed: bool },
    Class,
    Object(i32),
    Ref(i32),
}

/// A piece of a string (length in UTF-16 units) or of a binary (in bytes), which begins here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chunk {
    pub(super) length: usize,
    pub(super) is_last: bool,
}

/// How a list says its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    Known(usize),
    /// An int, behind the type if there is one.
    Follows,
    /// Elements up to [`END`].
    UntilEnd,
}

/// Takes the content of strings.
pub(super) trait Units {
    fn ascii(&mut self, bytes: &[u8]);
    fn unit(&mut self, unit: u16);
}

/// Takes nothing.
pub(super) struct Passed;

impl Units for Passed {
    fn ascii(&mut self, _: &[u8]) {}
    fn unit(&mut self, _: u16) {}
}

/// Joins surrogates, also across chunks.
#[derive(Default)]
pub(super) struct Text {
    text: String,
    high: Option<u16>,
}

impl Text {
    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.text
    }

    fn flush(&mut self) {
        if self.high.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

impl Units for Text {
    fn ascii(&mut self, bytes: &[u8]) {
        self.flush();
        self.text
            .push_str(std::str::from_utf8(bytes).unwrap_or_default());
    }

    fn unit(&mut self, unit: u16) {
        match (self.high, unit) {
            (Some(high), 0xdc00..=0xdfff) => {
                self.high = None;
                let units = [high, unit];
                self.text
                    .extend(char::decode_utf16(units).map(Result::unwrap_or_default));
            }
            (_, 0xd800..=0xdbff) => {
                self.flush();
                self.high = Some(unit);
            }
            _ => {
                self.flush();
                let c = char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER);
                self.text.push(c);
            }
        }
    }
}

/// A position in a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn fail<T>(&self, problem: Problem) -> Result<T, Error> {
        Err(Error::Body {
            at: self.at,
            problem,
        })
    }

    /// Nothing follows.
    pub(super) fn end(&self) -> Result<(), Error> {
        match self.left() {
            0 => Ok(()),
            left => self.fail(Problem::Trailing(left)),
        }
    }

    /// Whether the next byte is [`END`], which it then passes.
    #[inline]
    pub(super) fn is_end(&mut self) -> Result<bool, Error> {
        match self.peek() {
            None => self.fail(Problem::Truncated),
            Some(END) => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Error> {
        let Some(byte) = self.peek() else {
            return self.fail(Problem::Truncated);
        };
        self.at += 1;
        Ok(byte)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some(taken) = self.bytes[self.at..].first_chunk::<N>() else {
            return self.fail(Problem::Truncated);
        };
        self.at += N;
        Ok(*taken)
    }

    pub(super) fn slice(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..length) else {
            return self.fail(Problem::Truncated);
        };
        self.at += length;
        Ok(taken)
    }

    /// The next value or its head. A failure is reported at the first byte of the value, except truncation.
    #[inline]
    pub(super) fn token(&mut self) -> Result<Token, Error> {
        let tag = self.byte()?;
        let known = i64::from(tag);
        let chunk = |length, is_last| Chunk { length, is_last };
        Ok(match tag {
            b'N' => Token::Null,
            b'T' => Token::Bool(true),
            b'F' => Token::Bool(false),
            0x80..=0xbf => Token::Int(i32::from(tag) - 0x90),
            0xc0..=0xcf => Token::Int(self.compact::<1>(i32::from(tag) - 0xc8)?),
            0xd0..=0xd7 => Token::Int(self.compact::<2>(i32::from(tag) - 0xd4)?),
            b'I' => Token::Int(i32::from_be_bytes(self.take()?)),
            0xd8..=0xef => Token::Long(known - 0xe0),
            0xf0..=0xff => Token::Long(self.compact::<1>(i32::from(tag) - 0xf8)?.into()),
            0x38..=0x3f => Token::Long(self.compact::<2>(i32::from(tag) - 0x3c)?.into()),
            b'Y' => Token::Long(i32::from_be_bytes(self.take()?).into()),
            b'L' => Token::Long(i64::from_be_bytes(self.take()?)),
            0x5b => Token::Double(0.0),
            0x5c => Token::Double(1.0),
            0x5d => Token::Double(i8::from_be_bytes(self.take()?).into()),
            0x5e => Token::Double(i16::from_be_bytes(self.take()?).into()),
            0x5f => Token::Double(0.001 * f64::from(i32::from_be_bytes(self.take()?))),
            b'D' => Token::Double(f64::from_be_bytes(self.take()?)),
            0x4a => Token::Date(i64::from_be_bytes(self.take()?)),
            0x4b => Token::Date(i64::from(i32::from_be_bytes(self.take()?)) * 60_000),
            0x00..=0x1f => Token::Text(chunk(tag.into(), true)),
            0x30..=0x33 => Token::Text(chunk(self.long_chunk(tag - 0x30)?, true)),
            b'S' => Token::Text(chunk(u16::from_be_bytes(self.take()?).into(), true)),
            b'R' => Token::Text(chunk(u16::from_be_bytes(self.take()?).into(), false)),
            0x20..=0x2f => Token::Binary(chunk((tag - 0x20).into(), true)),
            0x34..=0x37 => Token::Binary(chunk(self.long_chunk(tag - 0x34)?, true)),
            b'B' => Token::Binary(chunk(u16::from_be_bytes(self.take()?).into(), true)),
            b'A' => Token::Binary(chunk(u16::from_be_bytes(self.take()?).into(), false)),
            0x55 => list(true, Length::UntilEnd),
            0x56 => list(true, Length::Follows),
            0x57 => list(false, Length::UntilEnd),
            0x58 => list(false, Length::Follows),
            0x70..=0x77 => list(true, Length::Known((tag - 0x70).into())),
            0x78..=0x7f => list(false, Length::Known((tag - 0x78).into())),
            b'M' => Token::Map { is_typed: true },
            b'H' => Token::Map { is_typed: false },
            b'C' => Token::Class,
            0x60..=0x6f => Token::Object(i32::from(tag) - 0x60),
            b'O' => Token::Object(self.int("the index of a class")?),
            0x51 => Token::Ref(self.int("the index of a reference")?),
            0x40 | 0x45 | 0x47 | 0x50 | END => {
                self.at -= 1;
                return self.fail(Problem::Tag(tag));
            }
        })
    }

    /// A number whose tag gives the highest bits.
    fn compact<const N: usize>(&mut self, high: i32) -> Result<i32, Error> {
        let bytes = self.take::<N>()?;
        Ok(bytes
            .iter()
            .fold(high, |value, byte| value << 8 | i32::from(*byte)))
    }

    fn long_chunk(&mut self, high: u8) -> Result<usize, Error> {
        Ok(usize::from(high) << 8 | usize::from(self.byte()?))
    }

    /// An int where the format needs one.
    pub(super) fn int(&mut self, expected: &'static str) -> Result<i32, Error> {
        let found = match self.peek() {
            // Ints do not nest: no other tag leads back here.
            Some(found @ (0x80..=0xd7 | b'I')) => found,
            Some(found) => return self.fail(Problem::Expected { expected, found }),
            None => return self.fail(Problem::Truncated),
        };
        match self.token()? {
            Token::Int(int) => Ok(int),
            _ => self.fail(Problem::Expected { expected, found }),
        }
    }

    /// A length where the format needs one: every element takes a byte or more, so a longer one is truncated.
    pub(super) fn length(&mut self) -> Result<usize, Error> {
        let began = *self;
        let length = self.int("a length")?;
        let Ok(length) = usize::try_from(length) else {
            return began.fail(Problem::Length(length));
        };
        self.fits(length)?;
        Ok(length)
    }

    /// At least this many bytes follow.
    pub(super) fn fits(&self, length: usize) -> Result<(), Error> {
        if length > self.left() {
            return self.fail(Problem::Truncated);
        }
        Ok(())
    }

    /// Whether a string follows.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.peek(), Some(0x00..=0x1f | 0x30..=0x33 | b'S' | b'R'))
    }

    /// An error unless a map or null follows.
    pub(super) fn attachments_follow(&self) -> Result<(), Error> {
        match self.peek() {
            Some(b'H' | b'M' | b'N') => Ok(()),
            None => self.fail(Problem::Truncated),
            Some(found) => self.fail(Problem::Expected {
                expected: "attachments",
                found,
            }),
        }
    }

    /// A string where the format needs one, null not included.
    pub(super) fn text(
        &mut self,
        expected: &'static str,
        sink: &mut impl Units,
    ) -> Result<(), Error> {
        let began = *self;
        match self.token()? {
            Token::Text(first) => self.text_from(first, sink),
            _ => began.fail(Problem::Expected {
                expected,
                found: began.peek().unwrap_or_default(),
            }),
        }
    }

    /// A string from the head of its first chunk on.
    #[inline]
    pub(super) fn text_from(
        &mut self,
        mut chunk: Chunk,
        sink: &mut impl Units,
    ) -> Result<(), Error> {
        loop {
            self.units(chunk.length, sink)?;
            if chunk.is_last {
                return Ok(());
            }
            let began = *self;
            match self.token()? {
                Token::Text(next) => chunk = next,
                _ => {
                    return began.fail(Problem::Expected {
                        expected: "another chunk of a string",
                        found: began.peek().unwrap_or_default(),
                    });
                }
            }
        }
    }

    /// A binary from the head of its first chunk on.
    pub(super) fn binary_from(
        &mut self,
        mut chunk: Chunk,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        loop {
            sink(self.slice(chunk.length)?);
            if chunk.is_last {
                return Ok(());
            }
            let began = *self;
            match self.token()? {
                Token::Binary(next) => chunk = next,
                _ => {
                    return began.fail(Problem::Expected {
                        expected: "another chunk of a binary",
                        found: began.peek().unwrap_or_default(),
                    });
                }
            }
        }
    }

    /// So many UTF-16 units.
    fn units(&mut self, mut left: usize, sink: &mut impl Units) -> Result<(), Error> {
        self.fits(left)?;
        while left > 0 {
            let rest = &self.bytes[self.at..];
            let run = ascii_run(&rest[..left.min(rest.len())]);
            if run > 0 {
                sink.ascii(&rest[..run]);
                self.at += run;
                left -= run;
            }
            while left > 0 && self.peek().is_none_or(|byte| byte >= 0x80) {
                sink.unit(self.unit()?);
                left -= 1;
            }
        }
        Ok(())
    }

    fn unit(&mut self) -> Result<u16, Error> {
        let first = self.byte()?;
        let mut unit = match first {
            0xc0..=0xdf => u16::from(first & 0x1f),
            0xe0..=0xef => u16::from(first & 0x0f) << 6 | self.continuation()?,
            _ => {
                self.at -= 1;
                return self.fail(Problem::Text(first));
            }
        };
        unit = unit << 6 | self.continuation()?;
        Ok(unit)
    }

    fn continuation(&mut self) -> Result<u16, Error> {
        let byte = self.byte()?;
        if byte & 0xc0 != 0x80 {
            self.at -= 1;
            return self.fail(Problem::Text(byte));
        }
        Ok(u16::from(byte & 0x3f))
    }
}

fn list(is_typed: bool, length: Length) -> Token {
    Token::List { is_typed, length }
}

/// Bytes of ASCII at the start: in steps that grow, since most strings are all ASCII and some have other characters everywhere.
fn ascii_run(bytes: &[u8]) -> usize {
    let (mut at, mut step) = (0, 8);
    while let Some(block) = bytes.get(at..at + step)
        && block.is_ascii()
    {
        at += step;
        step = (step * 2).min(1024);
    }
    while let Some(block) = bytes.get(at..at + 8)
        && block.is_ascii()
    {
        at += 8;
    }
    at + bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii())
        .count()
}
