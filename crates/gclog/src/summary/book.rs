//! Names of the log, and tables by name: bounded, and readable after the parser is gone.

use std::collections::BTreeMap;

use rungwise_model::gc::Moment;

use super::clock::seconds;
use super::spread::ms;
use crate::event::{Area, Pause};
use crate::names::{Name, Names};

/// The names that stand in a table or a mark.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// By the number of the name.
    words: Vec<Option<Box<str>>>,
}

impl Book {
    pub(super) fn keep(&mut self, names: &Names, name: Name) {
        let number = name.number();
        if self.words.len() <= number {
            self.words.resize(number + 1, None);
        }
        self.words[number].get_or_insert_with(|| names.get(name).into());
    }

    pub(super) fn word(&self, name: Name) -> String {
        let word = self.words.get(name.number()).and_then(Option::as_deref);
        word.unwrap_or(OTHER).to_owned()
    }
}

/// Rows of a table at most, below 255. Real logs have fewer names of any sort; the rest shares the last row.
const ROWS: usize = 200;
/// The name of that row.
const OTHER: &str = "(other)";

/// Something for each name, in the order in which the names came.
///
/// Each phase of each pause is looked up in one, so a row is found by the number of its name, without a hash.
#[derive(Debug)]
pub(super) struct Table<T> {
    /// Row of each name by its number, from 1; 0 where it has none.
    index: Vec<u8>,
    rows: Vec<(Name, T)>,
    other: Option<Box<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            index: Vec::new(),
            rows: Vec::new(),
            other: None,
        }
    }
}

impl<T: Default> Table<T> {
    pub(super) fn at(&mut self, book: &mut Book, names: &Names, name: Name) -> &mut T {
        let number = name.number();
        let row = match self.index.get(number) {
            Some(row @ 1..) => usize::from(*row) - 1,
            _ if self.rows.len() < ROWS => {
                book.keep(names, name);
                self.rows.push((name, T::default()));
                if self.index.len() <= number {
                    self.index.resize(number + 1, 0);
                }
                self.index[number] = self.rows.len() as u8;
                self.rows.len() - 1
            }
            _ => return self.other.get_or_insert_default(),
        };
        &mut self.rows[row].1
    }
}

impl<T> Table<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Every row, to be changed.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let rows = self.rows.iter_mut().map(|(_, row)| row);
        rows.chain(self.other.as_deref_mut())
    }

    /// Every row with its name, in the order in which they came.
    pub(super) fn rows(&self, book: &Book) -> impl Iterator<Item = (String, &T)> {
        let rows = self.rows.iter().map(|(name, row)| (book.word(*name), row));
        let other = self.other.iter();
        rows.chain(other.map(|row| (OTHER.to_owned(), &**row)))
    }

    pub(super) fn map<U>(&self, book: &Book, of: impl Fn(&T) -> U) -> BTreeMap<String, U> {
        self.rows(book).map(|(name, row)| (name, of(row))).collect()
    }
}

/// A [`Moment`] before its names are looked up: cheap to copy, since each collection may be the one to remember.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) line: Option<u64>,
    pub(super) at: Option<i64>,
    pub(super) name: Option<Name>,
    pub(super) cause: Option<Name>,
    pub(super) duration: Option<u64>,
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
}

impl Mark {
    pub(super) fn of(pause: &Pause, at: Option<i64>) -> Self {
        let heap = pause.areas.get(Area::Heap);
        Self {
            line: Some(pause.line),
            at,
            name: Some(pause.name),
            cause: pause.cause,
            duration: pause.duration_ns,
            before: heap.before,
            after: heap.after,
        }
    }

    pub(super) fn moment(&self, book: &Book) -> Moment {
        Moment {
            line: self.line,
            at_s: self.at.map(seconds),
            name: self.name.map(|name| book.word(name)).unwrap_or_default(),
            cause: self.cause.map(|cause| book.word(cause)),
            duration_ms: self.duration.map(ms),
            heap_before_bytes: self.before,
            heap_after_bytes: self.after,
        }
    }
}

/// The mark with the longest duration that was shown to it.
#[derive(Debug, Default)]
pub(super) struct Longest(Option<Mark>);

impl Longest {
    /// True if it is the longest so far.
    pub(super) fn see(&mut self, mark: Mark) -> bool {
        let longer = self.0.is_none_or(|known| known.duration < mark.duration);
        if longer {
            self.0 = Some(mark);
        }
        longer
    }

    pub(super) fn moment(&self, book: &Book) -> Option<Moment> {
        self.0.map(|mark| mark.moment(book))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_last_row_share_one() {
        let mut names = Names::default();
        let mut book = Book::default();
        let mut table = Table::<u64>::default();
        for number in 0..3 * ROWS {
            let name = names.number(format!("name {number}").as_bytes());
            *table.at(&mut book, &names, name) += 1;
        }
        let rows = table.map(&book, |count| *count);
        assert_eq!(rows.len(), ROWS + 1);
        assert_eq!(rows[OTHER], 2 * ROWS as u64);
        assert_eq!(rows["name 7"], 1);
    }
}
