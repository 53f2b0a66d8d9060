//! Tables of `PrintTenuringDistribution`, in the midst of a pause.

use super::Preunified;
use super::cursor::Cursor;
use crate::account::Read;

impl Preunified {
    /// `Desired survivor size 1671168 bytes, new threshold 1 (max 6)`.
    pub(super) fn desired(&mut self, rest: &[u8]) -> Option<Read> {
        let mut cursor = Cursor::new(rest);
        cursor.eat(b"Desired survivor size ").then_some(())?;
        let desired = cursor.integer()?;
        cursor.eat(b" bytes, new threshold ").then_some(())?;
        let threshold = cursor.integer()?;
        let max = cursor.eat(b" (max ").then(|| cursor.integer()).flatten();
        let Some(open) = self.open.last_mut() else {
            return Some(Read::Ignored);
        };
        open.begin_ages(Some(desired), u32::try_from(threshold).ok(), max);
        Some(Read::Understood)
    }

    /// `- age   1:    3269544 bytes,    3269544 total`. Nothing if it is none.
    pub(super) fn age(&mut self, rest: &[u8]) -> Option<Read> {
        let mut cursor = Cursor::new(rest);
        if !cursor.eat(b"- age ") {
            return rest
                .iter()
                .all(|byte| *byte == b'-')
                .then_some(Read::Ignored);
        }
        cursor.skip_spaces();
        let age = cursor.integer()?;
        cursor.eat(b":").then_some(())?;
        cursor.skip_spaces();
        let bytes = cursor.integer()?;
        cursor.eat(b" bytes,").then_some(())?;
        let is_stored = self
            .open
            .last_mut()
            .is_some_and(|open| open.age(age, bytes));
        Some(if is_stored {
            Read::Understood
        } else {
            Read::Ignored
        })
    }
}
