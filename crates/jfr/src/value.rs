//! Values of fields, decoded one by one where someone asks for them.

use crate::bytes::{Cursor, Text};
use crate::header::Header;
use crate::metadata::{Step, Unit, What};

/// The value of a field.
#[derive(Clone, Copy, Debug, Default)]
pub enum Value<'a> {
    /// The event has no such field in this recording.
    #[default]
    Absent,
    /// A number or a truth value. Times are in nanoseconds since 1970, durations in nanoseconds.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(Text<'a>),
    /// What the constant pool of a class has under a key; 0 is null.
    Constant(Constant),
    /// Several values.
    Array(Array<'a>),
}

/// A place in a constant pool. Holds within its chunk only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Constant {
    pub(crate) class: usize,
    pub(crate) key: i64,
}

/// Several values of one layout.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) count: usize,
    pub(crate) bytes: &'a [u8],
}

impl Value<'_> {
    /// The number, if it is one.
    #[inline]
    pub fn int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The number, also if it has no fraction.
    pub fn float(self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Where its constant is.
    #[inline]
    pub fn constant(self) -> Option<Constant> {
        match self {
            Self::Constant(constant) if constant.key != 0 => Some(constant),
            _ => None,
        }
    }
}

impl Step {
    /// Gets over the field.
    #[inline]
    pub(crate) fn skip(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        match &self.what {
            What::Byte => cursor.byte().map(drop),
            What::Int(_) | What::Constant(_) => cursor.int().map(drop),
            What::F32 => cursor.take(4).map(drop),
            What::F64 => cursor.take(8).map(drop),
            What::Text => cursor.text().map(drop),
            What::Array(steps) => elements(steps, cursor).map(drop),
        }
    }

    /// Reads the field.
    #[inline]
    pub(crate) fn value<'a>(
        &'a self,
        cursor: &mut Cursor<'a>,
        header: &Header,
    ) -> Option<Value<'a>> {
        Some(match &self.what {
            What::Byte => Value::Int(i64::from(cursor.byte()?.cast_signed())),
            What::Int(bits) => {
                let unused = 64 - *bits;
                // The JVM writes negative numbers in the bits of their type.
                let number = cursor.int()? << unused >> unused;
                Value::Int(match self.unit {
                    Unit::Plain => number,
                    Unit::TimeTicks => header.time_ns(number),
                    Unit::TimeMillis => number.saturating_mul(1_000_000),
                    Unit::SpanTicks => header.span_ns(number),
                    Unit::Span(ns) => number.saturating_mul(ns),
                })
            }
            What::F32 => Value::Float(f64::from(cursor.f32()?)),
            What::F64 => Value::Float(cursor.f64()?),
            What::Text => Value::Text(cursor.text()?),
            What::Constant(class) => Value::Constant(Constant {
                class: *class,
                key: cursor.int()?,
            }),
            What::Array(steps) => Value::Array(array(steps, cursor)?),
        })
    }
}

fn array<'a>(steps: &'a [Step], cursor: &mut Cursor<'a>) -> Option<Array<'a>> {
    let mut first = *cursor;
    let count = elements(steps, cursor)?;
    first.int()?;
    let bytes = cursor.since(first.at());
    Some(Array {
        steps,
        count,
        bytes,
    })
}

/// Gets over an array. Gives its number of elements.
fn elements(steps: &[Step], cursor: &mut Cursor<'_>) -> Option<usize> {
    let count = cursor.count()?;
    // Elements without a byte are elements of nothing; the JVM writes none.
    let count = count.min(if steps.is_empty() { 0 } else { cursor.left() });
    for _ in 0..count {
        walk(steps, cursor)?;
    }
    Some(count)
}

/// Gets over all fields.
pub(crate) fn walk(steps: &[Step], cursor: &mut Cursor<'_>) -> Option<()> {
    for step in steps {
        step.skip(cursor)?;
    }
    Some(())
}
