//! Values to bytes, in the forms of `Hessian2Output`.

use std::collections::HashMap;
use std::sync::Arc;

use super::scan::END;
use super::value::{Class, Value};

/// UTF-16 units in a chunk of a string: the most that `Hessian2Output` writes.
const TEXT_CHUNK: usize = 0x8000;
/// The least byte that begins a character of four bytes in UTF-8, which has two units in UTF-16.
const FOUR_BYTES: u8 = 0xf0;
/// Bytes in a chunk of a binary: the most that two bytes of length can say.
const BINARY_CHUNK: usize = 0xffff;

/// Writes the values of one body, one after the other, each in its shortest form.
///
/// ```
/// use rungwise_dubbo::hessian::Writer;
///
/// let mut writer = Writer::default();
/// writer.string("hello").long(7).int(-17);
/// assert_eq!(writer.into_bytes(), b"\x05hello\xe7\xc7\xef");
/// ```
///
/// Lists, maps and objects may be written from a [`Value`] or by their parts. Classes and type names are written once and referred to
/// by index after that. References are written as given.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    classes: HashMap<Arc<Class>, usize>,
    types: HashMap<Arc<str>, usize>,
}

impl Writer {
    /// What is written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// The body.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Null.
    pub fn null(&mut self) -> &mut Self {
        self.put(b"N")
    }

    /// A boolean.
    pub fn bool(&mut self, is: bool) -> &mut Self {
        self.put(if is { b"T" } else { b"F" })
    }

    /// An `int`: 1, 2, 3 or 5 bytes.
    pub fn int(&mut self, value: i32) -> &mut Self {
        let [b3, b2, b1, b0] = value.to_be_bytes();
        match value {
            -16..=47 => self.put(&[b0.wrapping_add(0x90)]),
            -2048..=2047 => self.put(&[b1.wrapping_add(0xc8), b0]),
            -0x40000..=0x3_ffff => self.put(&[b2.wrapping_add(0xd4), b1, b0]),
            _ => self.put(&[b'I', b3, b2, b1, b0]),
        }
    }

    /// A `long`: 1, 2, 3, 5 or 9 bytes.
    pub fn long(&mut self, value: i64) -> &mut Self {
        let bytes = value.to_be_bytes();
        let [.., b3, b2, b1, b0] = bytes;
        match value {
            -8..=15 => self.put(&[b0.wrapping_add(0xe0)]),
            -2048..=2047 => self.put(&[b1.wrapping_add(0xf8), b0]),
            -0x40000..=0x3_ffff => self.put(&[b2.wrapping_add(0x3c), b1, b0]),
            -0x8000_0000..=0x7fff_ffff => self.put(&[b'Y', b3, b2, b1, b0]),
            _ => self.put(b"L").put(&bytes),
        }
    }

    /// A `double`: 1, 2, 3, 5 or 9 bytes, and exact. Unlike in Java, -0.0 keeps its sign.
    #[expect(
        clippy::float_cmp,
        reason = "a short form is for values that it holds exactly"
    )]
    pub fn double(&mut self, value: f64) -> &mut Self {
        let whole = value as i32;
        if f64::from(whole) == value && (whole != 0 || value.is_sign_positive()) {
            match whole {
                0 => return self.put(&[0x5b]),
                1 => return self.put(&[0x5c]),
                _ => {}
            }
            if let Ok(byte) = i8::try_from(whole) {
                return self.put(&[0x5d]).put(&byte.to_be_bytes());
            }
            if let Ok(short) = i16::try_from(whole) {
                return self.put(&[0x5e]).put(&short.to_be_bytes());
            }
        }
        let thousandths = (value * 1000.0) as i32;
        if thousandths != 0 && 0.001 * f64::from(thousandths) == value {
            return self.put(&[0x5f]).put(&thousandths.to_be_bytes());
        }
        self.put(b"D").put(&value.to_be_bytes())
    }

    /// A `java.util.Date` in milliseconds since 1970: 5 bytes for whole minutes, or 9.
    pub fn date(&mut self, millis: i64) -> &mut Self {
        match i32::try_from(millis / 60_000) {
            Ok(minutes) if millis % 60_000 == 0 => self.put(&[0x4b]).put(&minutes.to_be_bytes()),
            _ => self.put(&[0x4a]).put(&millis.to_be_bytes()),
        }
    }

    /// A string, in chunks of at most 32768 UTF-16 units; no chunk ends between two surrogates.
    pub fn string(&mut self, text: &str) -> &mut Self {
        let mut rest = text;
        let mut units = units(rest);
        while units > TEXT_CHUNK {
            let (bytes, length) = chunk(rest);
            self.put(&[b'R', (length >> 8) as u8, length as u8]);
            self.characters(&rest[..bytes]);
            rest = &rest[bytes..];
            units -= length;
        }
        let (high, low) = ((units >> 8) as u8, units as u8);
        match units {
            0..=31 => self.put(&[low]),
            32..=1023 => self.put(&[0x30 + high, low]),
            _ => self.put(&[b'S', high, low]),
        };
        self.characters(rest);
        self
    }

    /// A `byte[]`, in chunks of at most 65535 bytes.
    pub fn binary(&mut self, bytes: &[u8]) -> &mut Self {
        let mut rest = bytes;
        while rest.len() > BINARY_CHUNK {
            let (piece, after) = rest.split_at(BINARY_CHUNK);
            self.put(&[b'A', 0xff, 0xff]).put(piece);
            rest = after;
        }
        let (high, low) = ((rest.len() >> 8) as u8, rest.len() as u8);
        match rest.len() {
            0..=15 => self.put(&[0x20 + low]),
            16..=1023 => self.put(&[0x34 + high, low]),
            _ => self.put(&[b'B', high, low]),
        };
        self.put(rest)
    }

    /// The head of a list; write `length` values after it. A list has at most 2147483647.
    pub fn list(&mut self, type_name: Option<&str>, length: usize) -> &mut Self {
        let short = u8::try_from(length).ok().filter(|length| *length <= 7);
        match (type_name, short) {
            (Some(name), Some(short)) => self.put(&[0x70 + short]).type_name(name),
            (None, Some(short)) => self.put(&[0x78 + short]),
            (Some(name), None) => self.put(&[0x56]).type_name(name).count(length),
            (None, None) => self.put(&[0x58]).count(length),
        }
    }

    /// The head of a map; write keys and values after it, and [`Self::map_end`].
    pub fn map(&mut self, type_name: Option<&str>) -> &mut Self {
        match type_name {
            Some(name) => self.put(b"M").type_name(name),
            None => self.put(b"H"),
        }
    }

    /// The end of a map.
    pub fn map_end(&mut self) -> &mut Self {
        self.put(&[END])
    }

    /// The head of an object, before the first one of a class also the class; write the values of its fields after it.
    pub fn object(&mut self, class: &Arc<Class>) -> &mut Self {
        let index = if let Some(known) = self.classes.get(class) {
            *known
        } else {
            let index = self.classes.len();
            self.classes.insert(Arc::clone(class), index);
            self.put(b"C").string(&class.name);
            self.count(class.fields.len());
            for field in &class.fields {
                self.string(field);
            }
            index
        };
        match u8::try_from(index) {
            Ok(short @ 0..=15) => self.put(&[0x60 + short]),
            _ => self.put(b"O").count(index),
        }
    }

    /// A reference to a list, map or object before it: see [`Value::Ref`].
    pub fn reference(&mut self, index: u32) -> &mut Self {
        self.put(&[0x51]).count(index as usize)
    }

    /// A value with all its parts. An object whose values are fewer than its class has fields gets nulls for the rest.
    pub fn value(&mut self, value: &Value) -> &mut Self {
        match value {
            Value::Null => self.null(),
            Value::Bool(is) => self.bool(*is),
            Value::Int(int) => self.int(*int),
            Value::Long(long) => self.long(*long),
            Value::Double(double) => self.double(*double),
            Value::Date(millis) => self.date(*millis),
            Value::String(text) => self.string(text),
            Value::Binary(bytes) => self.binary(bytes),
            Value::List(list) => {
                self.list(list.type_name.as_deref(), list.items.len());
                for item in &list.items {
                    self.value(item);
                }
                self
            }
            Value::Map(map) => {
                self.map(map.type_name.as_deref());
                for (key, value) in &map.entries {
                    self.value(key).value(value);
                }
                self.map_end()
            }
            Value::Object(object) => {
                self.object(&object.class);
                for at in 0..object.class.fields.len() {
                    match object.fields.get(at) {
                        Some(field) => self.value(field),
                        None => self.null(),
                    };
                }
                self
            }
            Value::Ref(index) => self.reference(*index),
        }
    }

    fn type_name(&mut self, name: &str) -> &mut Self {
        if let Some(index) = self.types.get(name) {
            return self.count(*index);
        }
        self.types.insert(name.into(), self.types.len());
        self.string(name)
    }

    /// Characters as UTF-16 units of one to three bytes: UTF-8 as it is, but for characters of two units.
    fn characters(&mut self, text: &str) {
        let mut from = 0;
        if text.is_ascii() || text.bytes().all(|byte| byte < FOUR_BYTES) {
            self.out.extend_from_slice(text.as_bytes());
            return;
        }
        for (at, c) in text.char_indices().filter(|(_, c)| *c > '\u{ffff}') {
            self.out.extend_from_slice(&text.as_bytes()[from..at]);
            from = at + c.len_utf8();
            for unit in c.encode_utf16(&mut [0; 2]) {
                let [high, low] = unit.to_be_bytes();
                self.out.extend_from_slice(&[
                    0xe0 | high >> 4,
                    0x80 | (high << 2 & 0x3f) | low >> 6,
                    0x80 | low & 0x3f,
                ]);
            }
        }
        self.out.extend_from_slice(&text.as_bytes()[from..]);
    }

    /// A length or an index, as an int of Java.
    fn count(&mut self, count: usize) -> &mut Self {
        self.int(i32::try_from(count).unwrap_or(i32::MAX))
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }
}

/// UTF-16 units of a text, by bytes: one for each that begins a character, another for each that begins one of four bytes.
fn units(text: &str) -> usize {
    let begins = text.bytes().filter(|byte| byte & 0xc0 != 0x80).count();
    begins + text.bytes().filter(|byte| *byte >= FOUR_BYTES).count()
}

/// Bytes and UTF-16 units of the first full chunk.
fn chunk(text: &str) -> (usize, usize) {
    if text.as_bytes()[..TEXT_CHUNK].is_ascii() {
        return (TEXT_CHUNK, TEXT_CHUNK);
    }
    let mut units = 0;
    for (at, c) in text.char_indices() {
        if units + c.len_utf16() > TEXT_CHUNK {
            return (at, units);
        }
        units += c.len_utf16();
    }
    (text.len(), units)
}
