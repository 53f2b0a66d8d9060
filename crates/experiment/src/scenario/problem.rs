//! What is wrong with a scenario file, and where: every problem, not just the first.

use std::fmt;
use std::ops::Range;

/// One thing that is wrong, at its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key it is about, as a path: `rungs[2].set`. Empty for the file as a whole.
    pub key: String,
    /// What is wrong and what would be right; lower case, no full stop.
    pub message: String,
}

/// Everything that is wrong with one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// Name of the file, as given.
    pub file: String,
    /// The problems, by their place in the file; never empty.
    pub list: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let Problem {
                line,
                column,
                key,
                message,
            } = problem;
            write!(f, "{}:{line}:{column}: ", self.file)?;
            if key.is_empty() {
                f.write_str(message)?;
            } else {
                write!(f, "{key}: {message}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Collects problems while a file is read.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    text: &'a str,
    list: Vec<Problem>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            list: Vec::new(),
        }
    }

    /// Notes a problem at a range of bytes.
    pub(super) fn add(
        &mut self,
        span: Range<usize>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) {
        let (line, column) = self.place(span.start);
        self.list.push(Problem {
            line,
            column,
            key: key.into(),
            message: message.into(),
        });
    }

    /// Notes a problem whose place is known.
    pub(super) fn put(&mut self, problem: Problem) {
        self.list.push(problem);
    }

    /// The byte of the occurrence of `text` that so many come before, in a range of bytes; the range's first where there is none.
    pub(super) fn find(&self, span: Range<usize>, text: &str, before: usize) -> usize {
        let within = self.text.get(span.clone()).unwrap_or_default();
        let mut found = within.match_indices(text);
        span.start + found.nth(before).map_or(0, |(at, _)| at)
    }

    /// A problem with this key, or with one below it, was noted.
    pub(super) fn mentions(&self, key: &str) -> bool {
        self.list.iter().any(|problem| problem.key.starts_with(key))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Line and column of a byte, both from 1; of the end for a byte beyond it.
    pub(super) fn place(&self, byte: usize) -> (usize, usize) {
        let mut end = byte.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }

    /// All of them in the order of the file; `None` when there are none.
    pub(super) fn into_problems(self, file: &str) -> Option<Problems> {
        in_order(file, self.list)
    }
}

/// Sorts problems by place; `None` when there are none.
pub(super) fn in_order(file: &str, mut list: Vec<Problem>) -> Option<Problems> {
    list.sort();
    list.dedup();
    (!list.is_empty()).then(|| Problems {
        file: file.to_owned(),
        list,
    })
}

/// `; did you mean 'x'?` for the candidate nearest to `word`, empty when none is near.
pub(super) fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> String {
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::normalized_damerau_levenshtein(word, candidate),
                candidate,
            )
        })
        // A guess: two slips in five letters are still a slip, three are another word.
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(_, near)| {
            format!("; did you mean '{near}'?")
        })
}

/// `a, b or c`.
pub(super) fn any_of<'c>(words: impl IntoIterator<Item = &'c str>) -> String {
    let words: Vec<_> = words.into_iter().collect();
    match words.as_slice() {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_ends_are_safe() {
        let collector = Collector::new("a = 1\nä = é x");
        assert_eq!(collector.place(0), (1, 1));
        assert_eq!(collector.place(6), (2, 1));
        assert_eq!(collector.place(14), (2, 7));
        assert_eq!(collector.place(7), (2, 1));
        assert_eq!(collector.place(9999), (2, 8));
    }

    #[test]
    fn the_nearest_word_is_named_and_a_far_one_is_not() {
        assert_eq!(
            did_you_mean("warmpu", ["warmup", "measure"]),
            "; did you mean 'warmup'?"
        );
        assert_eq!(did_you_mean("zzz", ["warmup"]), "");
        assert_eq!(any_of(["a", "b", "c"]), "a, b or c");
    }
}
