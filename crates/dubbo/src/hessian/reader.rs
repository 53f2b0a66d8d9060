//! Bytes to values.

use std::sync::Arc;

use super::scan::{Cursor, Length, Text, Token};
use super::value::{Class, List, Map, Object, Value};
use crate::error::{Error, Problem};

/// See [`Limits::depth`].
const DEEPEST: usize = 128;

/// What a reader accepts. The length of the body bounds the rest: every value, field name and character takes a byte or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lists, maps and objects within one another. 128 at most, whatever is set: readers recurse, and 128 take below 1 MiB of stack
    /// without optimization.
    pub depth: usize,
    /// Values and field names in the body. A value takes 48 bytes and its content.
    pub values: usize,
}

impl Default for Limits {
    /// 64 within one another, a million values.
    fn default() -> Self {
        Self {
            depth: 64,
            values: 1_000_000,
        }
    }
}

impl Limits {
    pub(super) fn clamped(self) -> Self {
        Self {
            depth: self.depth.min(DEEPEST),
            ..self
        }
    }
}

/// Reads the values of one body, one after the other.
///
/// ```
/// use rungwise_dubbo::hessian::{Limits, Reader, Value};
///
/// let mut reader = Reader::new(b"\x05hello\xe7", Limits::default());
/// assert_eq!(reader.value()?, Value::string("hello"));
/// assert_eq!(reader.value()?, Value::Long(7));
/// assert!(reader.is_end());
/// # Ok::<(), rungwise_dubbo::Error>(())
/// ```
///
/// Definitions of classes, type names and references hold for the whole body. Time and memory are linear in its length. After an error,
/// what further calls return is unspecified.
#[derive(Debug)]
pub struct Reader<'a> {
    cursor: Cursor<'a>,
    limits: Limits,
    /// Values that may still come.
    left: usize,
    classes: Vec<Arc<Class>>,
    types: Vec<Arc<str>>,
    /// Lists, maps and objects begun.
    begun: usize,
}

impl<'a> Reader<'a> {
    /// A reader of a body.
    pub fn new(body: &'a [u8], limits: Limits) -> Self {
        let limits = limits.clamped();
        Self {
            cursor: Cursor::new(body),
            limits,
            left: limits.values,
            classes: Vec::new(),
            types: Vec::new(),
            begun: 0,
        }
    }

    /// Bytes read.
    pub fn at(&self) -> usize {
        self.cursor.at()
    }

    /// Whether all bytes are read.
    pub fn is_end(&self) -> bool {
        self.cursor.left() == 0
    }

    /// An error unless all bytes are read.
    pub fn end(&self) -> Result<(), Error> {
        self.cursor.end()
    }

    /// The next value.
    pub fn value(&mut self) -> Result<Value, Error> {
        self.nested(0)
    }

    /// The next value, which must be an `int`; `expected` names it in the error.
    pub fn int(&mut self, expected: &'static str) -> Result<i32, Error> {
        self.cursor.int(expected)
    }

    /// The next value, which must be a string; `expected` names it in the error.
    pub fn string(&mut self, expected: &'static str) -> Result<String, Error> {
        let mut text = Text::default();
        self.cursor.text(expected, &mut text)?;
        Ok(text.finish())
    }

    /// The entries of the next value, which must be a map or null: attachments.
    pub(crate) fn attachments(&mut self) -> Result<Vec<(Value, Value)>, Error> {
        self.cursor.attachments_follow()?;
        Ok(match self.value()? {
            Value::Map(map) => map.entries,
            _ => Vec::new(),
        })
    }

    fn nested(&mut self, depth: usize) -> Result<Value, Error> {
        loop {
            self.count()?;
            let began = self.cursor;
            let value = match self.cursor.token()? {
                Token::Null => Value::Null,
                Token::Bool(is) => Value::Bool(is),
                Token::Int(int) => Value::Int(int),
                Token::Long(long) => Value::Long(long),
                Token::Double(double) => Value::Double(double),
                Token::Date(date) => Value::Date(date),
                Token::Text(first) => {
                    let mut text = Text::default();
                    self.cursor.text_from(first, &mut text)?;
                    Value::String(text.finish())
                }
                Token::Binary(first) => {
                    let mut bytes = Vec::new();
                    self.cursor
                        .binary_from(first, |piece| bytes.extend_from_slice(piece))?;
                    Value::Binary(bytes)
                }
                Token::List { is_typed, length } => {
                    self.begin(depth)?;
                    let type_name = self.type_name(is_typed)?;
                    let items = self.items(length, depth + 1)?;
                    Value::List(List { type_name, items })
                }
                Token::Map { is_typed } => {
                    self.begin(depth)?;
                    let type_name = self.type_name(is_typed)?;
                    let mut entries = Vec::new();
                    while !self.cursor.is_end()? {
                        let key = self.nested(depth + 1)?;
                        entries.push((key, self.nested(depth + 1)?));
                    }
                    Value::Map(Map { type_name, entries })
                }
                Token::Class => {
                    self.class()?;
                    continue;
                }
                Token::Object(index) => {
                    self.begin(depth)?;
                    let class = usize::try_from(index)
                        .ok()
                        .and_then(|index| self.classes.get(index).cloned());
                    let Some(class) = class else {
                        let defined = self.classes.len();
                        return began.fail(Problem::Class { index, defined });
                    };
                    let fields = self.known(class.fields.len(), depth + 1)?;
                    Value::Object(Object { class, fields })
                }
                Token::Ref(index) => match u32::try_from(index) {
                    Ok(known) if (known as usize) < self.begun => Value::Ref(known),
                    _ => {
                        let begun = self.begun;
                        return began.fail(Problem::Reference { index, begun });
                    }
                },
            };
            return Ok(value);
        }
    }

    fn count(&mut self) -> Result<(), Error> {
        let Some(left) = self.left.checked_sub(1) else {
            return self.cursor.fail(Problem::Count(self.limits.values));
        };
        self.left = left;
        Ok(())
    }

    fn begin(&mut self, depth: usize) -> Result<(), Error> {
        if depth >= self.limits.depth {
            return self.cursor.fail(Problem::Depth(self.limits.depth));
        }
        self.begun += 1;
        Ok(())
    }

    fn type_name(&mut self, is_typed: bool) -> Result<Option<Arc<str>>, Error> {
        if !is_typed {
            return Ok(None);
        }
        if self.cursor.is_text() {
            let name: Arc<str> = self.string("a type name")?.into();
            self.types.push(Arc::clone(&name));
            return Ok(Some(name));
        }
        let began = self.cursor;
        let index = self.cursor.int("a type name or its index")?;
        let known = usize::try_from(index)
            .ok()
            .and_then(|index| self.types.get(index).cloned());
        let Some(name) = known else {
            let defined = self.types.len();
            return began.fail(Problem::Type { index, defined });
        };
        Ok(Some(name))
    }

    fn items(&mut self, length: Length, depth: usize) -> Result<Vec<Value>, Error> {
        let known = match length {
            Length::Known(length) => length,
            Length::Follows => self.cursor.length()?,
            Length::UntilEnd => {
                let mut items = Vec::new();
                while !self.cursor.is_end()? {
                    items.push(self.nested(depth)?);
                }
                return Ok(items);
            }
        };
        self.known(known, depth)
    }

    fn known(&mut self, length: usize, depth: usize) -> Result<Vec<Value>, Error> {
        self.cursor.fits(length)?;
        // What is claimed may not follow: lists within lists would claim the rest of the body at every depth.
        let mut items = Vec::with_capacity(length.min(64));
        for _ in 0..length {
            items.push(self.nested(depth)?);
        }
        Ok(items)
    }

    fn class(&mut self) -> Result<(), Error> {
        let name = self.string("the name of a class")?;
        let length = self.cursor.length()?;
        let mut fields = Vec::with_capacity(length.min(64));
        for _ in 0..length {
            self.count()?;
            fields.push(self.string("the name of a field")?);
        }
        self.classes.push(Arc::new(Class { name, fields }));
        Ok(())
    }
}
