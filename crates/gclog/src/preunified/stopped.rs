//! `PrintGCApplicationStoppedTime` and `PrintGCApplicationConcurrentTime`: for every safepoint, not only for collections.
//!
//! `PrintSafepointStatistics` prints rows of its own: `0.571: GenCollectForAllocation  [ 10 0 1 ]  [ 0 2 2 0 11 ]  0`, threads
//! in the first bracket, in the second the milliseconds of spinning, blocking, both, cleaning up and the operation
//! (`runtime/safepoint.cpp`). Where both are printed, the row comes before the other line and gives it the operation. Rows
//! may also come in hundreds, much later: then only those tell anything that have no other line.

use memchr::memchr;

use super::cursor::Cursor;
use super::flow::Step;
use super::{Preunified, before};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Event, Safepoint, Stamp};
use crate::number::{LONGEST_NS, SECONDS, decimal, whole};

/// What is known of safepoints.
#[derive(Debug, Default)]
pub(super) struct Safepoints {
    /// `Total time for which application threads were stopped` was printed.
    has_line: bool,
    /// A row whose other line may follow.
    row: Option<Safepoint>,
    /// Operations and their numbers follow, at the end of the JVM.
    counts: bool,
}

impl Safepoints {
    /// A line `G1CollectFull     1` of the numbers at the end; to be asked for all lines that nobody knows.
    pub(super) fn is_count(&mut self, text: &[u8]) -> bool {
        self.counts |= text.starts_with(b"Polling page always armed");
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let name = text.iter().take_while(|byte| is_name(byte)).count();
        let rest = &text[name..];
        self.counts
            && name > 0
            && rest.starts_with(b"  ")
            && matches!(whole(rest.trim_ascii_start()), Some((_, [])))
    }
}

/// The stamp of a row is in milliseconds, and two clock readings lie between it and the beginning of the other line.
const NEAR_NS: u64 = 20_000_000;
/// Longest name of an operation.
const LONGEST_OPERATION: usize = 48;

/// A row's uptime, operation, and milliseconds until all threads stood still and in all.
fn row(text: &[u8]) -> Option<(u64, &[u8], u64, u64)> {
    let (uptime_ns, rest) = decimal(text, SECONDS)?;
    let rest = rest.strip_prefix(b": ")?;
    if !rest.first()?.is_ascii_alphabetic() {
        return None;
    }
    let open = memchr(b'[', &rest[..rest.len().min(LONGEST_OPERATION)])?;
    let operation = rest[..open].strip_suffix(b"  ")?.trim_ascii_end();
    let close = open + memchr(b']', &rest[open..])?;
    let times = rest[close + 1..].trim_ascii_start().strip_prefix(b"[")?;
    let mut left = times;
    let mut milliseconds = [0_u64; 5];
    for place in &mut milliseconds {
        let (value, after) = whole(left.trim_ascii_start())?;
        (*place, left) = (value, after);
    }
    left.trim_ascii_start().starts_with(b"]").then_some(())?;
    let [_, _, reaching, cleanup, work] = milliseconds;
    let total = reaching.checked_add(cleanup)?.checked_add(work)?;
    Some((uptime_ns, operation, reaching, total))
}

/// `0.0520140 seconds`; nothing where something else stands there.
fn seconds(cursor: &mut Cursor<'_>) -> Option<u64> {
    let ns = cursor.seconds().filter(|ns| *ns <= LONGEST_NS)?;
    cursor.eat(b" seconds").then_some(ns)
}

impl Preunified {
    /// A row of `PrintSafepointStatistics`. Its stamp says nothing of a restart: it may be minutes old.
    pub(super) fn safepoint_row(&mut self, context: &mut Context<'_>, text: &[u8]) -> Option<Read> {
        let (uptime_ns, operation, reaching, total) = row(text)?;
        self.tell_row(context);
        self.safepoints.row = Some(Safepoint {
            line: context.line,
            began: Stamp {
                uptime_ns: Some(uptime_ns),
                wall_ns: None,
            },
            operation: Some(context.names.number(operation)),
            reaching_ns: reaching.checked_mul(1_000_000),
            total_ns: total.saturating_mul(1_000_000),
        });
        Some(Read::Understood)
    }

    /// Reports the row that waits, unless its safepoint was reported already.
    pub(super) fn tell_row(&mut self, context: &mut Context<'_>) {
        if let Some(row) = self
            .safepoints
            .row
            .take()
            .filter(|_| !self.safepoints.has_line)
        {
            self.tell_held_before_others(context);
            self.headers.has_events = true;
            context.tell(Event::Safepoint(&row));
        }
    }

    /// Behind `Total time for which application threads were stopped: `: `0.0520140 seconds`, from JDK 8 on with
    /// `, Stopping threads took: 0.0000243 seconds`. The stamp is of its end.
    pub(super) fn stopped(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let Some(total_ns) = seconds(cursor) else {
            return Step::Damaged;
        };
        let reaching_ns = if cursor.eat(b", Stopping threads took: ") {
            seconds(cursor)
        } else {
            None
        };
        self.tell_held_before_others(context);
        let began = before(self.stamps.take(), total_ns);
        let near = |row: &Safepoint| {
            let both = row.began.uptime_ns.zip(began.uptime_ns);
            both.is_some_and(|(row, line)| row.abs_diff(line) < NEAR_NS)
        };
        let row = self.safepoints.row.take().filter(near);
        self.safepoints.has_line = true;
        self.headers.has_events = true;
        context.tell(Event::Safepoint(&Safepoint {
            line: context.line,
            began,
            operation: row.and_then(|row| row.operation),
            reaching_ns: reaching_ns.or_else(|| row?.reaching_ns),
            total_ns,
        }));
        Step::Gave
    }

    /// Behind `Application time: `: `5.9951640 seconds`.
    pub(super) fn ran(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let Some(duration_ns) = seconds(cursor) else {
            return Step::Damaged;
        };
        self.tell_held_before_others(context);
        let at = self.stamps.take();
        self.headers.has_events = true;
        context.tell(Event::Ran { at, duration_ns });
        Step::Gave
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_lines::event_lines;

    #[test]
    fn a_stop_began_before_its_stamp() {
        assert_eq!(
            event_lines(
                "0.632: Total time for which application threads were stopped: 0.0520000 seconds, Stopping threads took: 0.0000243 seconds\n\
                  Application time: 5.9951640 seconds\n"
            ),
            [
                "stopped at 580 ms, 52000000 ns",
                "ran until ? ms, 5995164000 ns"
            ]
        );
    }

    #[test]
    fn a_time_that_cannot_be_read_is_no_time() {
        for log in [
            "0.632: Total time for which application threads were stopped: 0.05x seconds\n",
            "Application time: 5.x95 seconds\n",
            "Application time: 5.99",
        ] {
            assert_eq!(event_lines(log), [format!("? {}", log.trim_end())]);
        }
    }

    const ROW: &str = "0.571: no vm operation                  [      10          0              1    ]      [     0     2     2     0    11    ]  0   \n";

    #[test]
    fn a_row_of_the_statistics_gives_its_operation_to_the_line_behind_it() {
        let log = format!(
            "         vmop                    [threads: total initially_running wait_to_block]    [time: spin block sync cleanup vmop] page_trap_count\n\
             {ROW}0.585: Total time for which application threads were stopped: 0.0143422 seconds\n\
             Polling page always armed\nGenCollectFull                     1\n    0 VM operations coalesced during safepoint\n\
             Maximum sync time      9 ms\nMaximum vm operation time (except for Exit VM operation)     49 ms\n"
        );
        assert_eq!(
            event_lines(&log),
            ["stopped at 570 ms, 14342200 ns, no vm operation, reached 2000000 ns"]
        );
    }

    #[test]
    fn rows_that_come_late_are_reported_only_where_nothing_else_tells_of_them() {
        let pause = "9.000: [GC 2K->1K(9K), 0.1000000 secs]\n";
        let row = "stopped at 571 ms, 13000000 ns, no vm operation, reached 2000000 ns";
        let alone = event_lines(&format!("{pause}{ROW}{ROW}"));
        assert_eq!(alone[1..], [row, row]);
        let line =
            "8.000: Total time for which application threads were stopped: 0.0520000 seconds\n";
        assert_eq!(event_lines(&format!("{line}{pause}{ROW}{line}")).len(), 3);
    }

    #[test]
    fn stamps_of_two_threads_in_a_row_belong_to_both() {
        let log = "132.743132.744: : Application time: 0.0033510 seconds\n[GC concurrent-root-region-scan-end, 0.0040000 secs]\n\
            652.538: 652.540Total time for which application threads were stopped: 0.0060000 seconds\n: [GC concurrent-mark-start]\n\
            653.540: [GC concurrent-mark-end, 1.0000000 secs]\n";
        assert_eq!(
            event_lines(log),
            [
                "ran until 132743 ms, 3351000 ns",
                "Fact(Collector(G1))",
                "GC concurrent-root-region-scan at 132740 ms, Some(4000000) ns",
                "stopped at 652532 ms, 6000000 ns",
                "GC concurrent-mark at 652540 ms, Some(1000000000) ns",
            ]
        );
    }

    #[test]
    fn a_line_that_lies_within_another_is_found() {
        assert_eq!(
            event_lines(
                "  to Application time: 0.0006573 seconds\n space 57472K, 0% used [0x30e80000,0x30e80000,0x346a0000)\n"
            ),
            ["ran until ? ms, 657300 ns"]
        );
    }
}
