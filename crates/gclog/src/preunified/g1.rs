//! G1: details below a pause, sizes of its spaces, work beside the application.
//!
//! Details are indented by three blanks per level: `[Parallel Time: 12.3 ms, GC Workers: 8]`, and within it
//! `[Object Copy (ms): Min: 13.6, Avg: 14.9, Max: 16.2, Diff: 2.5, Sum: 193.1]`, of which the mean counts. JDK 6 prints
//! a figure per worker and the mean on a line of its own.

use super::Preunified;
use super::cursor::{Cursor, Figures};
use super::flow::Step;
use super::pauses::{Held, enter};
use crate::account::Read;
use crate::event::{Area, Areas, Change, Collector, Concurrent, Phase, Stamp};
use crate::names::Name;
use crate::parser::Context;

/// A detail whose mean is not printed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    name: Name,
    depth: u8,
}

/// Details that are points in time or counts.
const NO_DURATIONS: &[&[u8]] = &[
    b"GC Worker Start",
    b"GC Worker End",
    b"Processed Buffers",
    b"Termination Attempts",
    b"GC Worker Times",
];

/// Phases of one pause.
const MOST_PHASES: usize = 128;

impl Preunified {
    /// A line of details. Nothing if it is none.
    pub(super) fn detail(
        &mut self,
        context: &mut Context<'_>,
        rest: &[u8],
        indent: usize,
    ) -> Option<Read> {
        let colon = memchr::memchr(b':', &rest[..rest.len().min(64)])?;
        let label = rest[1..colon].trim_ascii_end();
        let name = label.strip_suffix(b" (ms)");
        let in_ms = name.is_some();
        let name = name.unwrap_or(label);
        if !name.first()?.is_ascii_uppercase() {
            return None;
        }
        let mut cursor = Cursor::new(&rest[colon + 1..]);
        cursor.skip_spaces();
        if NO_DURATIONS.iter().any(|start| name.starts_with(start)) {
            return Some(Read::Ignored);
        }
        let duration_ns = if in_ms {
            if cursor.eat(b"Min: ") {
                mean(&mut cursor)?
            } else {
                let only = cursor.millis()?;
                if !cursor.eat(b"]") {
                    self.mean_of = Some(Detail {
                        name: context.names.number(name),
                        depth: depth(indent),
                    });
                    return Some(Read::Ignored);
                }
                only
            }
        } else {
            let duration_ns = cursor.millis()?;
            cursor.eat(b" ms").then_some(duration_ns)?
        };
        let detail = Detail {
            name: context.names.number(name),
            depth: depth(indent),
        };
        Some(self.enter_detail(detail, duration_ns))
    }

    /// ` Avg:   0.2, Min:   0.0, Max:   0.4]` below a table of JDK 6.
    pub(super) fn mean(&mut self, rest: &[u8]) -> Option<Read> {
        let table = rest.starts_with(b"Avg:") || rest.starts_with(b"Sum:");
        table.then_some(())?;
        // Below counts, which are not kept, it gives nothing.
        let Some(detail) = self.mean_of.take() else {
            return Some(Read::Ignored);
        };
        let duration_ns = mean(&mut Cursor::new(rest))?;
        Some(self.enter_detail(detail, duration_ns))
    }

    fn enter_detail(&mut self, detail: Detail, duration_ns: u64) -> Read {
        match &mut self.held {
            Some(held) if held.is_of_g1() => {
                if held.pause.phases.len() < MOST_PHASES {
                    held.pause.phases.push(Phase {
                        name: detail.name,
                        depth: detail.depth,
                        duration_ns,
                    });
                }
                Read::Understood
            }
            // Its pause was cut off the log.
            _ => Read::Ignored,
        }
    }

    /// Behind `[Eden: `: `24.0M(24.0M)->0.0B(13.0M) Survivors: 0.0B->3072.0K Heap: 24.0M(256.0M)->21.9M(256.0M)]`. More
    /// exact than the heap of the line above, which is in whole MiB.
    pub(super) fn eden(&mut self, cursor: &mut Cursor<'_>) -> Step {
        let Some(eden) = cursor.figures() else {
            return Step::Strange;
        };
        let survivors = cursor
            .eat(b" Survivors: ")
            .then(|| cursor.figures())
            .flatten();
        let heap = cursor.eat(b" Heap: ").then(|| cursor.figures()).flatten();
        cursor.eat(b"]");
        let Some(held) = self.held.as_mut().filter(|held| held.is_of_g1()) else {
            return Step::Passed;
        };
        let spaces = [
            (Area::Eden, Some(eden)),
            (Area::Survivor, survivors),
            (Area::Heap, heap),
        ];
        for (area, figures) in spaces {
            if let Some(figures) = figures {
                enter(held.pause.areas.at(area), figures);
            }
        }
        Step::Gave
    }

    /// `[ 8192K->8096K(64M)]` below a pause of JDK 6.
    pub(super) fn heap_of_g1(&mut self, cursor: &mut Cursor<'_>) -> Step {
        cursor.skip_spaces();
        let Some(figures @ Figures { after: Some(_), .. }) = cursor.figures() else {
            return Step::Strange;
        };
        if !cursor.eat(b"]") {
            return Step::Strange;
        }
        let heap = |held: &mut Held| enter(held.pause.areas.at(Area::Heap), figures);
        match self.held.as_mut().filter(|held| held.is_of_g1()) {
            Some(held) => heap(held),
            None => return Step::Passed,
        }
        Step::Gave
    }

    /// Behind `[GC concurrent-`: `mark-start]`, `mark-end, 0.0034 secs]`, `mark-abort]`, `cleanup-end, 0.0002]`.
    pub(super) fn g1_phase(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let from = cursor.at() - b"GC concurrent-".len();
        if cursor.until(b']').is_none() {
            return Step::Strange;
        }
        let body = &cursor.text()[from..cursor.at() - 1];
        self.collector(context, Collector::G1);
        let now = self.stamps.take();
        let label = memchr::memchr(b',', body).map_or(body, |comma| &body[..comma]);
        if let Some(name) = label.strip_suffix(b"-start") {
            let name = context.names.number(name);
            self.phase_begins(name, now);
            return Step::Gave;
        }
        let aborted = label.ends_with(b"-abort");
        let name = label
            .strip_suffix(b"-end")
            .or_else(|| label.strip_suffix(b"-abort"))
            .unwrap_or(label);
        let duration_ns = memchr::memmem::rfind(body, b", ")
            .and_then(|comma| Cursor::new(&body[comma + 2..]).seconds());
        let mut phase = Concurrent {
            line: context.line,
            began: Stamp::default(),
            id: self.id.take(),
            name: context.names.number(name),
            cycle: false,
            cause: None,
            duration_ns,
            cpu_ns: None,
            aborted,
            areas: Areas::default(),
        };
        self.phase_ends(context, now, &mut phase);
        Step::Gave
    }

    /// `region size 1024K, 24 young (24576K), 3 survivors (3072K)` in a heap block.
    pub(super) fn young_regions(cursor: &mut Cursor<'_>) -> Option<(u64, Change, Change)> {
        let region = cursor.size()?;
        cursor.eat(b", ").then_some(())?;
        cursor.integer()?;
        cursor.eat(b" young (").then_some(())?;
        let young = cursor.size()?;
        cursor.eat(b"), ").then_some(())?;
        cursor.integer()?;
        cursor.eat(b" survivors (").then_some(())?;
        let survivor = cursor.size()?;
        let used = |bytes| Change {
            before: Some(bytes),
            after: None,
            capacity: None,
        };
        Some((region, used(young), used(survivor)))
    }
}

/// The figure behind the next `Avg:`.
fn mean(cursor: &mut Cursor<'_>) -> Option<u64> {
    let at = memchr::memmem::find(cursor.rest(), b"Avg:")?;
    cursor.skip(at + b"Avg:".len());
    cursor.skip_spaces();
    cursor.millis()
}

/// Three blanks stand before the outermost details.
fn depth(indent: usize) -> u8 {
    u8::try_from((indent / 3).saturating_sub(1)).unwrap_or(u8::MAX)
}
