//! Bytes to nothing: whether a body is well formed, and where its values end.

use super::Limits;
use super::scan::{Cursor, Length, Passed, Token};
use crate::error::{Error, Problem};

/// Memory for [`Skip`], to be used for one body after the other: nothing is allocated once it has seen the largest number of classes.
///
/// ```
/// use rungwise_dubbo::hessian::{Limits, Skipper};
///
/// let mut skipper = Skipper::new(Limits::default());
/// let mut skip = skipper.body(b"\x91\x05hello");
/// assert_eq!(skip.int("a flag")?, 1);
/// skip.skip_value()?;
/// skip.end()?;
/// # Ok::<(), rungwise_dubbo::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Skipper {
    limits: Limits,
    /// Number of fields of each class.
    classes: Vec<usize>,
}

impl Skipper {
    /// A skipper that accepts the same bodies as a [`super::Reader`] of these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: limits.clamped(),
            classes: Vec::new(),
        }
    }

    /// Begins a body.
    pub fn body<'a>(&mut self, body: &'a [u8]) -> Skip<'_, 'a> {
        self.classes.clear();
        Skip {
            cursor: Cursor::new(body),
            limits: self.limits,
            left: self.limits.values,
            classes: &mut self.classes,
            types: 0,
            begun: 0,
        }
    }
}

/// Passes over the values of one body.
#[derive(Debug)]
pub struct Skip<'s, 'a> {
    cursor: Cursor<'a>,
    limits: Limits,
    left: usize,
    classes: &'s mut Vec<usize>,
    types: usize,
    begun: usize,
}

impl Skip<'_, '_> {
    /// Bytes read.
    pub fn at(&self) -> usize {
        self.cursor.at()
    }

    /// An error unless all bytes are read.
    pub fn end(&self) -> Result<(), Error> {
        self.cursor.end()
    }

    /// The next value, which must be an `int`; `expected` names it in the error.
    pub fn int(&mut self, expected: &'static str) -> Result<i32, Error> {
        self.cursor.int(expected)
    }

    /// Passes the next value with all its parts, and checks what a [`super::Reader`] checks.
    pub fn skip_value(&mut self) -> Result<(), Error> {
        self.nested(0)
    }

    /// Passes the next value, which must be a map or null: attachments.
    pub(crate) fn skip_attachments(&mut self) -> Result<(), Error> {
        self.cursor.attachments_follow()?;
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> Result<(), Error> {
        loop {
            self.count()?;
            let began = self.cursor;
            match self.cursor.token()? {
                Token::Null
                | Token::Bool(_)
                | Token::Int(_)
                | Token::Long(_)
                | Token::Double(_)
                | Token::Date(_) => {}
                Token::Text(first) => self.cursor.text_from(first, &mut Passed)?,
                Token::Binary(first) => self.cursor.binary_from(first, |_| ())?,
                Token::List { is_typed, length } => {
                    self.begin(depth)?;
                    self.type_name(is_typed)?;
                    self.items(length, depth + 1)?;
                }
                Token::Map { is_typed } => {
                    self.begin(depth)?;
                    self.type_name(is_typed)?;
                    while !self.cursor.is_end()? {
                        self.nested(depth + 1)?;
                        self.nested(depth + 1)?;
                    }
                }
                Token::Class => {
                    self.class()?;
                    continue;
                }
                Token::Object(index) => {
                    self.begin(depth)?;
                    let fields = usize::try_from(index)
                        .ok()
                        .and_then(|index| self.classes.get(index).copied());
                    let Some(fields) = fields else {
                        let defined = self.classes.len();
                        return began.fail(Problem::Class { index, defined });
                    };
                    self.known(fields, depth + 1)?;
                }
                Token::Ref(index) => {
                    if usize::try_from(index).is_ok_and(|index| index < self.begun) {
                        return Ok(());
                    }
                    let begun = self.begun;
                    return began.fail(Problem::Reference { index, begun });
                }
            }
            return Ok(());
        }
    }

    #[inline]
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

    fn type_name(&mut self, is_typed: bool) -> Result<(), Error> {
        if !is_typed {
            return Ok(());
        }
        if self.cursor.is_text() {
            self.types += 1;
            return self.cursor.text("a type name", &mut Passed);
        }
        let began = self.cursor;
        let index = self.cursor.int("a type name or its index")?;
        if usize::try_from(index).is_ok_and(|index| index < self.types) {
            return Ok(());
        }
        let defined = self.types;
        began.fail(Problem::Type { index, defined })
    }

    fn items(&mut self, length: Length, depth: usize) -> Result<(), Error> {
        let known = match length {
            Length::Known(length) => length,
            Length::Follows => self.cursor.length()?,
            Length::UntilEnd => {
                while !self.cursor.is_end()? {
                    self.nested(depth)?;
                }
                return Ok(());
            }
        };
        self.known(known, depth)
    }

    fn known(&mut self, length: usize, depth: usize) -> Result<(), Error> {
        self.cursor.fits(length)?;
        for _ in 0..length {
            self.nested(depth)?;
        }
        Ok(())
    }

    fn class(&mut self) -> Result<(), Error> {
        self.cursor.text("the name of a class", &mut Passed)?;
        let length = self.cursor.length()?;
        for _ in 0..length {
            self.count()?;
            self.cursor.text("the name of a field", &mut Passed)?;
        }
        self.classes.push(length);
        Ok(())
    }
}
