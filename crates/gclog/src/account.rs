//! How every line was classified.

/// How many lines and bytes of a log were understood. Every byte is in exactly one of the three groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Lines that gave an event, or a part of one.
    pub understood: Share,
    /// Lines of a known form without relevant data: `gc+heap` details, banners, empty lines.
    pub ignored: Share,
    /// Lines not understood: output of the application, damage, an unknown format. A pause whose duration cannot be
    /// read is emitted without one, and its line counts here.
    pub unknown: Share,
    /// The first few lines not understood.
    pub samples: Vec<Sample>,
    /// Bytes of zero at the start of lines, left by `copytruncate`; in `ignored`.
    pub nul_bytes: u64,
    /// Lines longer than 64 KiB, of which only the start was read.
    pub long_lines: u64,
    /// The last line has no end: the log is cut, or still being written.
    pub cut: bool,
    /// Messages that the JVM says it dropped, because the buffer of its asynchronous log (`-Xlog:async`, JDK 17) was full:
    /// collections may be among them, and all counts are then too low.
    pub dropped_messages: u64,
    /// The log of JDK 5 to 8 begins in the midst of a pause, as the next file of a rotated set does: the line that ends the
    /// pause, with its duration. It is not an event, since the kind of pause is unknown.
    pub begins_within: Option<Sample>,
    /// Line that proves that two JVMs interleave in this log without identifying their lines, so the figures of the runs mix
    /// both.
    pub by_turns: Option<u64>,
    /// Lines that are skipped because more JVMs interleave than can be separated (16); in `ignored`.
    pub left_out: Share,
}

/// Lines and their bytes with the line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Lines.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A line as it is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// From 1.
    pub line: u64,
    /// Its first 200 bytes, control characters replaced.
    pub text: String,
}

/// What a line turned out to be. Of several that stand in one the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Read {
    /// Of a JVM that is not read.
    LeftOut,
    /// Known, and of no use.
    Ignored,
    /// Not known.
    Unknown,
    /// It gave something.
    Understood,
    /// The duration that it is there for cannot be read. What else it reported stands.
    Damaged,
}

impl Read {
    /// What is unknown here is of no use: the tags say that nothing else is asked for under them.
    pub(crate) fn or_ignored(self) -> Self {
        if self == Self::Unknown {
            Self::Ignored
        } else {
            self
        }
    }
}

/// Lines kept as samples.
const SAMPLES: usize = 10;
/// Bytes kept of each.
const SAMPLE_BYTES: usize = 200;

impl Account {
    /// Enters a line, or several that hold one. The bytes of `added` count their ends as well.
    pub(crate) fn enter(&mut self, read: Read, line: u64, text: &[u8], added: Share) {
        let share = match read {
            Read::Understood => &mut self.understood,
            Read::Ignored => &mut self.ignored,
            Read::LeftOut => {
                self.left_out.lines += added.lines;
                self.left_out.bytes += added.bytes;
                &mut self.ignored
            }
            Read::Unknown | Read::Damaged => {
                self.sample(line, text);
                &mut self.unknown
            }
        };
        share.lines += added.lines;
        share.bytes += added.bytes;
    }

    #[cold]
    fn sample(&mut self, line: u64, text: &[u8]) {
        if self.samples.len() < SAMPLES {
            self.samples.push(Sample::of(line, text));
        }
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.understood.bytes + self.ignored.bytes + self.unknown.bytes
    }

    /// All lines.
    pub fn lines(&self) -> u64 {
        self.understood.lines + self.ignored.lines + self.unknown.lines
    }
}

impl Sample {
    /// The beginning of a line.
    pub(crate) fn of(line: u64, text: &[u8]) -> Self {
        let printable = |c: char| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        };
        let text = String::from_utf8_lossy(&text[..text.len().min(SAMPLE_BYTES)]);
        Self {
            line,
            text: text.chars().map(printable).collect(),
        }
    }
}
