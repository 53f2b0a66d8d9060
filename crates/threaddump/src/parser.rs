//! Bytes of files to dumps, with an account of every line.
//!
//! The account counts bytes of text: of a file in UTF-16 as many as it has in UTF-8, without the mark at its beginning.

use std::sync::Arc;

use rungwise_model::gc::{Account, Sample};

use crate::dump::Dump;
use crate::lines::{Lines, Utf16};
use crate::{beans, json, text};

/// Bytes of a file that tell in which form it is.
const FIRST: usize = 256;
/// Lines kept as samples, and bytes of each; as many as for GC logs.
const SAMPLES: usize = 10;
const SAMPLE_CHARS: usize = 200;

/// What a line turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// It gave something.
    Understood,
    /// Known, and of no use.
    Ignored,
    /// Not known.
    Unknown,
}

/// Takes files one after the other, in pieces of any length.
#[derive(Debug, Default)]
pub struct Parser {
    file: Arc<str>,
    /// The beginning of the file, until its form is known.
    first: Vec<u8>,
    form: Option<Shape>,
    utf16: Option<Utf16>,
    lines: Lines,
    number: u64,
    reader: text::Reader,
    whole: Vec<u8>,
    account: Account,
    dumps: Vec<Dump>,
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Lines,
    /// A document, which is read at its end.
    Json,
}

impl Parser {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a file with this beginning is a document that contains a dump; other forms are recognised line by
    /// line.
    pub fn is_document(first: &[u8]) -> bool {
        is_document(&first[..first.len().min(FIRST)])
    }

    /// Another file begins.
    pub fn begin(&mut self, file: &str) {
        self.end();
        self.file = file.into();
    }

    /// The next bytes of the file.
    pub fn push(&mut self, piece: &[u8]) {
        if self.form.is_none() {
            self.first.extend_from_slice(piece);
            if self.first.len() >= FIRST {
                self.decide();
            }
            return;
        }
        self.take(piece);
    }

    /// The dumps, and the account of every line.
    pub fn finish(mut self) -> (Vec<Dump>, Account) {
        self.end();
        (self.dumps, self.account)
    }

    fn decide(&mut self) {
        let first = std::mem::take(&mut self.first);
        let (utf16, mark) = match Utf16::detected(&first) {
            Some((decoder, mark)) => (Some(decoder), mark),
            None if first.starts_with(b"\xef\xbb\xbf") => (None, 3),
            None => (None, 0),
        };
        self.utf16 = utf16;
        let rest = &first[mark..];
        // However long the first piece is, the same bytes decide.
        let deciding = &first[mark..first.len().min(FIRST)];
        let beginning = match &self.utf16 {
            Some(decoder) => decoder.clone().decoded(deciding),
            None => deciding.to_vec(),
        };
        self.form = Some(if is_document(&beginning) {
            Shape::Json
        } else {
            Shape::Lines
        });
        self.take(rest);
    }

    fn take(&mut self, piece: &[u8]) {
        let decoded = self.utf16.as_mut().map(|decoder| decoder.decoded(piece));
        let text = decoded.as_deref().unwrap_or(piece);
        self.account.bytes += text.len() as u64;
        match self.form {
            Some(Shape::Json) => self.whole.extend_from_slice(text),
            _ => self.take_lines(text),
        }
    }

    fn take_lines(&mut self, text: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(text, |line, bytes| self.line(line, bytes));
        self.lines = lines;
    }

    fn line(&mut self, line: &[u8], bytes: u64) {
        self.number += 1;
        let text = String::from_utf8_lossy(line);
        let read = self.reader.line(self.number, &text);
        self.enter(read, self.number, &text, bytes);
    }

    fn enter(&mut self, read: Read, number: u64, text: &str, bytes: u64) {
        let account = &mut self.account;
        let (lines, share) = match read {
            Read::Understood => (&mut account.understood_lines, &mut account.understood),
            Read::Ignored => (&mut account.ignored_lines, &mut account.ignored),
            Read::Unknown => {
                if account.samples.len() < SAMPLES {
                    account.samples.push(Sample {
                        line: number,
                        text: printable(text),
                    });
                }
                (&mut account.unknown_lines, &mut account.unknown)
            }
        };
        *lines += 1;
        *share += bytes;
        account.lines += 1;
    }

    /// The end of a file.
    fn end(&mut self) {
        if self.form.is_none() {
            self.decide();
        }
        if self.form == Some(Shape::Json) {
            self.end_of_document();
        }
        let mut lines = std::mem::take(&mut self.lines);
        self.account.cut = lines.finish(|line, bytes| self.line(line, bytes));
        let dumps = self.reader.finish();
        self.dumps.extend(dumps.into_iter().map(|dump| Dump {
            file: Arc::clone(&self.file),
            ..dump
        }));
        (self.form, self.utf16, self.number) = (None, None, 0);
    }

    fn end_of_document(&mut self) {
        let whole = std::mem::take(&mut self.whole);
        let Some(dump) = json::dump(&whole).or_else(|| beans::dump(&whole)) else {
            // It only begins like one.
            self.take_lines(&whole);
            return;
        };
        self.dumps.push(Dump {
            file: Arc::clone(&self.file),
            ..dump
        });
        let lines = whole.split_inclusive(|&byte| byte == b'\n').count() as u64;
        self.account.lines += lines;
        self.account.understood_lines += lines;
        self.account.understood += whole.len() as u64;
    }
}

/// A document that holds a dump, by its beginning.
fn is_document(beginning: &[u8]) -> bool {
    json::looks_like(beginning) || beans::looks_like(beginning)
}

/// The beginning of a line with its control characters replaced.
fn printable(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\t' => ' ',
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    text.chars().take(SAMPLE_CHARS).map(shown).collect()
}
