//! `PrintFLSStatistics`: how CMS's old generation is cut up.
//!
//! Before and after each collection the JVM prints the tree of large blocks, with a value above 1 also the lists of small
//! ones, in words of the heap; to JDK 7 the permanent generation follows with the same lines, which are not reported.
//! Source: `binaryTreeDictionary.cpp` and `freeList*.cpp` of JDK 6 to 8.

use super::Preunified;
use super::cursor::Cursor;
use super::flow::Step;
use crate::account::Read;
use crate::context::Context;
use crate::event::{Event, Stamp};

/// What is being printed.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// Rows belong to the old generation.
    open: bool,
    /// Line of the last row that was taken.
    line: u64,
    /// Words.
    free: Option<u64>,
    largest: Option<u64>,
    /// Times that `Before GC:` and `After GC:` were printed in this pause.
    printed: [bool; 2],
    /// The generation that comes is the permanent one.
    permanent: bool,
}

impl Statistics {
    /// A pause begins.
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

/// Lines that belong to these statistics.
pub(super) fn is_row(rest: &[u8]) -> bool {
    match rest.first() {
        Some(b'T') => {
            rest.starts_with(b"Total Free Space: ") || rest.starts_with(b"Tree      Height: ")
        }
        Some(b'M') => rest.starts_with(b"Max   Chunk Size: "),
        Some(b'N') => rest.starts_with(b"Number of Blocks: "),
        Some(b'A') => rest.starts_with(b"Av.  Block  Size: "),
        Some(b'S') => rest.starts_with(b"Statistics for IndexedFreeLists:"),
        Some(b'-') => rest.starts_with(b"----------------"),
        Some(b'f') => rest.starts_with(b"free="),
        _ => false,
    }
}

impl Preunified {
    /// `Before GC:` or `After GC:`.
    pub(super) fn statistics_begin(&mut self, context: &mut Context<'_>, after: bool) -> Step {
        self.tell_statistics(context);
        let printed = &mut self.fls.printed[usize::from(after)];
        self.fls.permanent = *printed;
        *printed = true;
        Step::Gave
    }

    /// A row. Nothing if it is none.
    pub(super) fn statistics_row(&mut self, line: u64, rest: &[u8]) -> Option<Read> {
        if rest.starts_with(b"Statistics for BinaryTreeDictionary:") {
            let permanent = self.fls.permanent;
            self.fls.open = !permanent;
            self.fls.free = None;
            self.fls.largest = None;
            return Some(if permanent {
                Read::Ignored
            } else {
                Read::Understood
            });
        }
        if !is_row(rest) {
            return None;
        }
        if !self.fls.open {
            return Some(Read::Ignored);
        }
        let mut cursor = Cursor::new(rest);
        self.fls.line = line;
        if cursor.eat(b"Total Free Space: ") {
            let more = cursor.integer()?;
            self.fls.free = Some(self.fls.free.unwrap_or(0).saturating_add(more));
        } else if cursor.eat(b"Max   Chunk Size: ") {
            let chunk = cursor.integer()?;
            self.fls.largest = self.fls.largest.max(Some(chunk));
        } else {
            return Some(Read::Ignored);
        }
        Some(Read::Understood)
    }

    /// Tells the statistics, if they were printed.
    pub(super) fn tell_statistics(&mut self, context: &mut Context<'_>) {
        self.fls.open = false;
        if let (Some(free), Some(largest)) = (self.fls.free.take(), self.fls.largest.take()) {
            let at = self
                .open
                .last()
                .map_or_else(Stamp::default, |open| open.pause.began);
            context.tell(Event::FreeLists {
                line: self.fls.line,
                at,
                free: free.saturating_mul(self.word),
                largest: largest.saturating_mul(self.word),
            });
        }
    }
}
