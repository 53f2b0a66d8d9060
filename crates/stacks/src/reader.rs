//! A profile from text that comes in pieces: which format it is, and the stacks of it.

use rungwise_model::profile::{Event, Unit};

use crate::folded;
use crate::perf_script::{self, Script};
use crate::stacks::Stacks;

/// The longest line; a stack of 2048 frames with long names is a tenth of it.
const LONGEST_LINE: usize = 1 << 20;
/// Lines of unknown format that are read before the file is taken for none.
const UNDECIDED: u64 = 1000;
/// Lines that are quoted as not understood.
const QUOTED: usize = 3;

/// A format of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `a;b;c 12`
    Folded,
    /// The output of `perf script`.
    PerfScript,
}

impl Format {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::PerfScript => "perf-script",
        }
    }
}

/// Why a text is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It has no bytes.
    #[error("it is empty; record a profile again")]
    Empty,
    /// It is of another format.
    #[error(
        "it is neither folded stacks (lines such as `main;parse;read 12`) nor the output of `perf script`; it begins with {0}"
    )]
    Unknown(String),
    /// It has samples, and no stack.
    #[error(
        "it has {0} samples and all of them are of idle CPUs; record while the service has load"
    )]
    Idle(u64),
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Text {
    /// The format.
    pub format: Format,
    /// What was measured.
    pub event: Event,
    /// The name of the event.
    pub source: Option<String>,
    /// Unit of the weights.
    pub unit: Unit,
    /// Samples, where the format has them one by one.
    pub samples: Option<u64>,
    /// The stacks.
    pub stacks: Stacks,
    /// What was left out or not understood.
    pub notes: Vec<String>,
}

/// Reads a text piece by piece.
#[derive(Debug, Default)]
pub struct Reader {
    rest: Vec<u8>,
    /// Within a line that is longer than is read.
    skips: bool,
    lines: u64,
    too_long: u64,
    first: Option<String>,
    format: Option<Format>,
    stacks: Stacks,
    script: Script,
    understood: u64,
    unknown: u64,
    quoted: Vec<String>,
}

impl Reader {
    /// Takes the next piece. `false` where it is no profile and the rest need not be read.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            self.part(&piece[begin..end], true);
            begin = end + 1;
        }
        self.part(&piece[begin..], false);
        self.format.is_some() || self.lines < UNDECIDED
    }

    fn part(&mut self, part: &[u8], ends: bool) {
        if !self.skips && self.rest.len() + part.len() > LONGEST_LINE {
            self.skips = true;
            self.too_long += 1;
            self.rest = Vec::new();
        }
        if !self.skips && ends && self.rest.is_empty() {
            self.line(part);
            return;
        }
        if !self.skips {
            self.rest.extend_from_slice(part);
        }
        if ends {
            if !self.skips {
                let line = std::mem::take(&mut self.rest);
                self.line(&line);
                self.rest = line;
            }
            self.rest.clear();
            self.skips = false;
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\r');
        let is_empty = line.trim().is_empty();
        if self.first.is_none() && !is_empty {
            self.first = Some(line.chars().take(80).collect());
        }
        let is_understood = match self.format {
            _ if is_empty && self.format != Some(Format::PerfScript) => return,
            Some(Format::Folded) => folded::add(line, &mut self.stacks) || line.starts_with('#'),
            Some(Format::PerfScript) => self.script.line(line),
            None if perf_script::is_head(line) => {
                self.format = Some(Format::PerfScript);
                self.script.line(line)
            }
            None if line.starts_with('#') => return,
            None => {
                let is_stack = folded::add(line, &mut self.stacks);
                if is_stack {
                    self.format = Some(Format::Folded);
                }
                is_stack
            }
        };
        if is_understood {
            self.understood += 1;
            return;
        }
        self.unknown += 1;
        if self.quoted.len() < QUOTED {
            let shown: String = line.chars().take(60).collect();
            self.quoted.push(format!("line {}: '{shown}'", self.lines));
        }
    }

    /// Whether what was read so far is a profile. A line that has not ended does not count.
    pub fn recognises(&self) -> bool {
        self.format.is_some() && self.understood >= self.unknown
    }

    /// The profile.
    pub fn finish(mut self) -> Result<Text, Error> {
        if !self.rest.is_empty() {
            let line = std::mem::take(&mut self.rest);
            self.line(&line);
        }
        let Some(first) = self.first.take() else {
            return Err(if self.too_long > 0 {
                Error::Unknown("a line of more than 1 MiB".to_owned())
            } else {
                Error::Empty
            });
        };
        let format = self.format.filter(|_| self.understood >= self.unknown);
        let format = format.ok_or_else(|| Error::Unknown(quoted(&first)))?;
        let mut notes = Vec::new();
        let text = match format {
            Format::Folded => Text {
                format,
                event: Event::Unknown,
                source: None,
                unit: Unit::Count,
                samples: None,
                stacks: self.stacks,
                notes: Vec::new(),
            },
            Format::PerfScript => {
                let chosen = self.script.uncounted;
                let Some((sampled, others)) = self.script.finish() else {
                    return Err(Error::Unknown(quoted(&first)));
                };
                if sampled.stacks.total() == 0 {
                    return Err(Error::Idle(sampled.samples));
                }
                if sampled.idle > 0 {
                    notes.push(format!(
                        "{} of {} samples are of idle CPUs and left out",
                        sampled.idle, sampled.samples
                    ));
                }
                let others: Vec<String> = others
                    .iter()
                    .map(|other| format!("{} ({} samples)", other.event, other.samples))
                    .collect();
                if !others.is_empty() {
                    notes.push(format!(
                        "the file has other events, which are left out: {}; select one with perf script -e",
                        others.join(", ")
                    ));
                }
                if chosen > 0 {
                    notes.push(format!("{chosen} samples of further events are left out"));
                }
                Text {
                    format,
                    event: perf_script::event(&sampled.event),
                    unit: Unit::Samples,
                    samples: Some(sampled.stacks.total()),
                    source: Some(sampled.event),
                    stacks: sampled.stacks,
                    notes: Vec::new(),
                }
            }
        };
        if self.unknown > 0 {
            notes.push(format!(
                "{} of {} lines are not understood: {}",
                self.unknown,
                self.lines,
                self.quoted.join(", ")
            ));
        }
        if self.too_long > 0 {
            notes.push(format!(
                "{} lines of more than 1 MiB are left out",
                self.too_long
            ));
        }
        Ok(Text { notes, ..text })
    }
}

/// A line as a message quotes it.
fn quoted(line: &str) -> String {
    let odd = |c: &char| *c == char::REPLACEMENT_CHARACTER || c.is_control() && *c != '\t';
    if line.chars().filter(odd).count() * 4 > line.chars().count() {
        return "binary data".to_owned();
    }
    format!("'{}'", line.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCRIPT: &str = "\
# header
app 7/8 1.5: 1 cycles:u:
\t55550000 work+0x1 (/bin/app)
\t55550010 main+0x1 (/bin/app)

app 7/8 1.6: 1 cycles:u:
\t55550010 main+0x1 (/bin/app)
";

    fn read(text: &[u8], piece: usize) -> Result<Text, Error> {
        let mut reader = Reader::default();
        for piece in text.chunks(piece) {
            reader.push(piece);
        }
        reader.finish()
    }

    #[test]
    fn the_format_is_seen_by_what_the_text_has() {
        let text = read(SCRIPT.as_bytes(), 7).unwrap();
        assert_eq!((text.format, text.event), (Format::PerfScript, Event::Cpu));
        assert_eq!(text.source.as_deref(), Some("cycles:u"));
        assert_eq!((text.samples, text.stacks.total()), (Some(2), 2));
        let text = read(b"\r\na;b 3\r\na;c 4", 3).unwrap();
        assert_eq!((text.format, text.stacks.total()), (Format::Folded, 7));
        assert!(text.notes.is_empty(), "{:?}", text.notes);
    }

    #[test]
    fn what_is_no_profile_is_refused_with_what_it_is() {
        assert_eq!(read(b"", 9).unwrap_err(), Error::Empty);
        assert_eq!(read(b"\n \n", 9).unwrap_err(), Error::Empty);
        let said = |text: &[u8]| read(text, 64).unwrap_err().to_string();
        assert!(said(b"Full thread dump\nmore\n").ends_with("'Full thread dump'"));
        assert!(said(&[0, 1, 2, 3, 250, 7]).ends_with("binary data"));
        assert!(said(b"x y\nz w\na;b 3\n").contains("neither folded"));
        let idle = b"swapper 0 1.0: cycles:\n\tffffffff81000010 do_idle+0x1 ([kernel.kallsyms])\n";
        assert_eq!(read(idle, 64).unwrap_err(), Error::Idle(1));
    }

    #[test]
    fn lines_that_are_not_understood_are_counted_and_quoted() {
        let text = read(b"a;b 3\nwarning: something\na;c 4\n", 5).unwrap();
        assert_eq!(
            text.notes,
            ["1 of 3 lines are not understood: line 2: 'warning: something'"]
        );
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut reader = Reader::default();
        reader.push(b"a;b 3\n");
        for _ in 0..40 {
            reader.push(&vec![b'x'; 100_000]);
            assert!(reader.rest.len() <= LONGEST_LINE);
        }
        reader.push(b" 7\na;c 4\n");
        assert!(reader.recognises());
        let text = reader.finish().unwrap();
        assert_eq!(text.stacks.total(), 7);
        assert_eq!(text.notes, ["1 lines of more than 1 MiB are left out"]);
    }

    #[test]
    fn a_large_text_of_another_kind_is_given_up_early() {
        let mut reader = Reader::default();
        let piece = "no profile at all\n".repeat(500);
        assert!(reader.push(piece.as_bytes()));
        assert!(!reader.push(piece.as_bytes()));
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_give_the_same(piece in 1_usize..40) {
            let whole = read(SCRIPT.as_bytes(), 4096).unwrap();
            let pieces = read(SCRIPT.as_bytes(), piece).unwrap();
            prop_assert_eq!(folded(&whole.stacks), folded(&pieces.stacks));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), piece in 1_usize..40) {
            let _ = read(&bytes, piece);
        }

        #[test]
        fn a_text_that_is_cut_or_changed_makes_no_panic(cut in 0_usize..200, at in 0_usize..200, byte: u8) {
            let mut text = SCRIPT.as_bytes().to_vec();
            text.truncate(cut);
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
            let _ = read(&text, 16);
        }
    }
}
