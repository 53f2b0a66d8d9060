//! Numbers and texts of a recording: variable-length integers, big-endian floats, encoded strings.
//!
//! Source: `jdk.jfr.internal.consumer.RecordingInput` of OpenJDK 17. An integer has seven bits per byte, lowest first; the ninth
//! byte has all eight. Each reader gives `None` where the bytes end too early.

use std::borrow::Cow;

/// A position in some bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// What is between an earlier position and this one.
    pub(crate) fn since(&self, earlier: usize) -> &'a [u8] {
        &self.bytes[earlier..self.at]
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// A variable-length integer.
    #[inline]
    pub(crate) fn int(&mut self) -> Option<i64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(i64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value.cast_signed());
            }
        }
        let last = self.byte()?;
        Some((value | u64::from(last) << 56).cast_signed())
    }

    /// A variable-length integer that counts or measures something here: never negative.
    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.int()?).ok()
    }

    pub(crate) fn f32(&mut self) -> Option<f32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(f32::from_be_bytes(bytes))
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(f64::from_be_bytes(bytes))
    }

    pub(crate) fn text(&mut self) -> Option<Text<'a>> {
        Some(match self.byte()? {
            0 => Text::Null,
            1 => Text::Utf8(&[]),
            2 => Text::Constant(self.int()?),
            3 => {
                let length = self.count()?;
                Text::Utf8(self.take(length)?)
            }
            4 => {
                // Every character takes a byte or more.
                let count = self.count().filter(|count| *count <= self.left())?;
                let began = self.at;
                for _ in 0..count {
                    self.int()?;
                }
                Text::Chars(self.since(began))
            }
            5 => {
                let length = self.count()?;
                Text::Latin1(self.take(length)?)
            }
            _ => return None,
        })
    }
}

/// A text as a recording encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// The null reference.
    Null,
    /// UTF-8.
    Utf8(&'a [u8]),
    /// UTF-16 units, each a variable-length integer.
    Chars(&'a [u8]),
    /// ISO 8859-1.
    Latin1(&'a [u8]),
    /// A key in the constant pool of strings.
    Constant(i64),
}

impl<'a> Text<'a> {
    /// Its characters; damaged ones are replaced. `None` for null and for a key of the constant pool.
    pub fn decoded(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Null | Self::Constant(_) => None,
            Self::Utf8(bytes) => Some(String::from_utf8_lossy(bytes)),
            Self::Latin1(bytes) => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Self::Chars(bytes) => {
                let mut cursor = Cursor::new(bytes);
                let units: Vec<u16> = std::iter::from_fn(|| cursor.int())
                    .map(|unit| unit as u16)
                    .collect();
                Some(String::from_utf16_lossy(&units).into())
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An integer as the JVM writes it.
    pub(crate) fn int(value: i64) -> Vec<u8> {
        let mut left = value.cast_unsigned();
        let mut bytes = Vec::new();
        while left >= 0x80 && bytes.len() < 8 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        bytes
    }

    #[test]
    fn integers_of_every_length_are_read_back() {
        let mut values = vec![0, -1, i64::MIN, i64::MAX];
        values.extend((0..63).flat_map(|bit| [1_i64 << bit, (1_i64 << bit) - 1, -(1_i64 << bit)]));
        for value in values {
            let bytes = int(value);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.int(), Some(value), "{bytes:x?}");
            assert_eq!(cursor.left(), 0);
            let mut short = Cursor::new(&bytes[..bytes.len() - 1]);
            assert_eq!(short.int(), None, "{value}");
        }
    }

    #[test]
    fn texts_of_every_encoding_are_decoded() {
        let cases: [(&[u8], Option<&str>); 6] = [
            (&[0], None),
            (&[1], Some("")),
            (&[3, 3, b'a', 0xc3, 0xa4], Some("aä")),
            (&[4, 2, b'a', 0xe4, 0x01], Some("aä")),
            (&[5, 2, b'a', 0xe4], Some("aä")),
            (&[2, 7], None),
        ];
        for (bytes, wanted) in cases {
            let mut cursor = Cursor::new(bytes);
            let text = cursor.text().unwrap();
            assert_eq!(text.decoded().as_deref(), wanted, "{bytes:?}");
            assert_eq!(cursor.left(), 0);
        }
        for damaged in [&[3, 9, b'a'][..], &[4, 0xff, 0xff, 0x7f], &[6], &[]] {
            assert_eq!(Cursor::new(damaged).text(), None, "{damaged:?}");
        }
    }
}
