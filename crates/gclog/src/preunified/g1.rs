//! G1: details below a pause, sizes of its spaces, work beside the application.
//!
//! Details are indented by three blanks per level: `[Parallel Time: 12.3 ms, GC Workers: 8]`, and within it
//! `[Object Copy (ms): Min: 13.6, Avg: 14.9, Max: 16.2, Diff: 2.5, Sum: 193.1]`, of which the mean counts. JDK 6 prints
//! a figure per worker and the mean on a line of its own.

use super::Preunified;
use super::cursor::{Cursor, Figures};
use super::flow::Step;
use super::pauses::enter;
use crate::account::Read;
use crate::context::Context;
use crate::event::{
    Area, Areas, Change, Collector, Concurrent, Event, Phase, Stamp, humongous_request,
};
use crate::names::Name;
use crate::number::LONGEST_NS;

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
    /// `[G1Ergonomics (Concurrent Cycles) request concurrent cycle initiation, ...]` of `PrintAdaptiveSizePolicy`: what G1
    /// decides, of which the size of a humongous allocation is taken.
    pub(super) fn ergonomics(
        &mut self,
        context: &mut Context<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Step {
        let at = self.stamps.take();
        self.collector(context, Collector::G1);
        let Some(bytes) = humongous_request(cursor.rest()) else {
            return Step::Rest;
        };
        context.tell(Event::Humongous {
            line: context.line,
            at,
            bytes,
            asked: true,
        });
        cursor.jump(usize::MAX);
        Step::Gave
    }

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
            if cursor.peek() == Some(b'M') {
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
        let Some(held) = self.held.as_mut().filter(|held| held.is_of_g1()) else {
            return Step::Passed;
        };
        enter(held.pause.areas.at(Area::Heap), figures);
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
        let figure = memchr::memmem::rfind(body, b", ").map(|comma| {
            let mut figure = Cursor::new(&body[comma + 2..]);
            let duration_ns = figure.seconds().filter(|ns| *ns <= LONGEST_NS);
            let ends = matches!(figure.rest(), b"" | b" secs" | b" sec");
            duration_ns.filter(|_| ends)
        });
        let duration_ns = figure.flatten();
        let mut phase = Concurrent {
            line: context.line,
            began: Stamp::default(),
            ended: Stamp::default(),
            id: self.id.take(),
            name: context.names.number(name),
            cycle: false,
            cause: None,
            duration_ns,
            cpu_ns: None,
            aborted,
            areas: Areas::default(),
            promoted: None,
            allocated: None,
            live: None,
        };
        self.phase_ends(context, now, &mut phase);
        if figure.is_some() && duration_ns.is_none() {
            return Step::Damaged;
        }
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

/// The mean of `Min: 13.6, Avg: 14.9, ...`, `Sum: 9, Avg: 2, ...` or `Avg:   0.2, ...`.
fn mean(cursor: &mut Cursor<'_>) -> Option<u64> {
    if cursor.eat(b"Min: ") || cursor.eat(b"Sum: ") {
        cursor.millis()?;
        cursor.eat(b", ").then_some(())?;
    }
    cursor.eat(b"Avg:").then_some(())?;
    cursor.skip_spaces();
    cursor.millis()
}

/// Three blanks stand before the outermost details.
fn depth(indent: usize) -> u8 {
    u8::try_from((indent / 3).saturating_sub(1)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::event_lines::{event_lines, pause};
    use super::*;

    #[test]
    fn details_are_phases_with_the_mean_of_the_workers() {
        let log = "3.793: [GC pause (G1 Evacuation Pause) (young), 0.0266615 secs]\n   \
            [Parallel Time: 18.9 ms, GC Workers: 4]\n      \
            [GC Worker Start (ms): Min: 3793.7, Avg: 3793.8, Max: 3793.9, Diff: 0.2]\n      \
            [Object Copy (ms): Min: 15,6, Avg: 16,0, Max: 17,1, Diff: 1,5, Sum: 64,0]\n         \
            [Processed Buffers: Min: 0, Avg: 0.2, Max: 1, Diff: 1, Sum: 2]\n   \
            [Other: 7.7 ms]\n   \
            [Eden: 102.0M(102.0M)->0.0B(89.0M) Survivors: 0.0B->13.0M Heap: 102.0M(2048.0M)->14.5M(2048.0M)]\n \
            [Times: user=0.01 sys=0.01, real=0.03 secs] \n";
        assert_eq!(
            event_lines(log)[1],
            "GC pause (young) Young at 3793 ms, 26661500 ns, G1 Evacuation Pause, Heap 104448->14848K, Eden 104448->0K, \
             Survivor 0->13312K, Parallel Time 18900000, >Object Copy 16000000, Other 7700000"
        );
    }

    #[test]
    fn jdk_6_prints_the_mean_on_a_line_of_its_own() {
        let log = "0.169: [GC pause (young), 0.00582962 secs]\n   [Parallel Time:   5.7 ms]\n      \
            [Update RS (ms):  0.0  0.0  0.4\n       Avg:   0.2, Min:   0.0, Max:   0.4]\n         \
            [Processed Buffers : 0 9 0 0\n          Sum: 9, Avg: 2, Min: 0, Max: 9]\n   \
            [ 8192K->8096K(64M)]\n";
        assert_eq!(
            event_lines(log)[1..],
            [
                "GC pause (young) Young at 169 ms, 5829620 ns, Heap 8192->8096K, Parallel Time 5700000, >Update RS 200000"
            ]
        );
    }

    #[test]
    fn a_cycle_that_begins_in_the_midst_of_its_pause_does_no_harm() {
        let log = "0.388: [GC pause (young) (initial-mark) 10080K->10080K(16M)0.390: [GC concurrent-mark-start]\n\
            , 0.0013065 secs]\n4.853: [GC pause (young)4.853: [GC concurrent-mark-end, 0.0064246 sec]\n \
            150M->150M(256M), 0.0136035 secs]\n";
        assert_eq!(
            event_lines(log)[1..],
            [
                "GC concurrent-mark at 390 ms, Some(6424600) ns",
                "GC pause (young) (initial-mark) Young at 388 ms, 1306500 ns, Heap 10080->10080K",
                "GC pause (young) Young at 4853 ms, 13603500 ns, Heap 153600->153600K",
            ]
        );
    }

    #[test]
    fn a_table_of_ages_stands_in_the_midst_of_a_pause() {
        let pause = pause(
            "6.395: [GC pause (young)\nDesired survivor size 6815744 bytes, new threshold 1 (max 15)\n\
             - age   1:    7343368 bytes,    7343368 total\n- age   3:        100 bytes,    7343468 total\n\
             - age 900:        100 bytes,    7343468 total\n (to-space exhausted), 0.0417761 secs]\n",
        );
        let ages = pause.ages.unwrap();
        assert_eq!(
            (ages.desired, ages.threshold, ages.max),
            (Some(6_815_744), Some(1), Some(15))
        );
        assert_eq!(ages.bytes, [7_343_368, 0, 100]);
        assert_eq!(pause.duration_ns, Some(41_776_100));
        assert!(pause.troubles.evacuation_failed);
    }

    #[test]
    fn a_cycle_that_is_given_up_has_no_duration() {
        assert_eq!(
            event_lines("1.000: [GC concurrent-mark-start]\n2.000: [GC concurrent-mark-abort]\n")
                [1],
            "GC concurrent-mark at 1000 ms, None ns, aborted"
        );
    }

    #[test]
    fn details_without_their_pause_give_nothing() {
        assert_eq!(
            event_lines(
                "   [Other: 7.7 ms]\n   [Eden: 1.0M(1.0M)->0.0B(1.0M) Survivors: 0.0B->1.0M]\n"
            ),
            [""; 0]
        );
        assert_eq!(depth(0), 0);
    }

    #[test]
    fn a_humongous_allocation_that_asks_for_a_cycle_tells_its_size() {
        let log = "1.500: [G1Ergonomics (Concurrent Cycles) request concurrent cycle initiation, reason: occupancy higher than threshold, \
            occupancy: 120586240 bytes, allocation request: 3145744 bytes, threshold: 120795955 bytes (45.00 %), source: concurrent humongous allocation]\n\
            1.600: [G1Ergonomics (Concurrent Cycles) request concurrent cycle initiation, reason: occupancy higher than threshold, \
            occupancy: 9 bytes, allocation request: 0 bytes, threshold: 8 bytes (45.00 %), source: end of GC]\n";
        let events = event_lines(log);
        let sizes: Vec<_> = events
            .iter()
            .filter(|line| line.contains("bytes: 3145744, asked: true"))
            .collect();
        assert_eq!((sizes.len(), events.len()), (1, 2), "{events:?}");
    }
}
