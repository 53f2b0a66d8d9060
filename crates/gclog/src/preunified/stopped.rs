//! `PrintGCApplicationStoppedTime` and `PrintGCApplicationConcurrentTime`: for every safepoint, not only for collections.

use super::cursor::Cursor;
use super::flow::Step;
use super::{Preunified, before};
use crate::event::{Event, Safepoint};
use crate::parser::Context;

impl Preunified {
    /// Behind `Total time for which application threads were stopped: `: `0.0520140 seconds`, from JDK 8 on with
    /// `, Stopping threads took: 0.0000243 seconds`. The stamp is of its end.
    pub(super) fn stopped(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let Some(total_ns) = cursor.seconds() else {
            return Step::Strange;
        };
        cursor.eat(b" seconds");
        let reaching_ns = if cursor.eat(b", Stopping threads took: ") {
            let reaching = cursor.seconds();
            cursor.eat(b" seconds");
            reaching
        } else {
            None
        };
        self.tell_held_before_others(context);
        let began = before(self.stamps.take(), total_ns);
        self.headers.has_told = true;
        context.tell(Event::Safepoint(&Safepoint {
            line: context.line,
            began,
            operation: None,
            reaching_ns,
            total_ns,
        }));
        Step::Gave
    }

    /// Behind `Application time: `: `5.9951640 seconds`.
    pub(super) fn ran(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let Some(duration_ns) = cursor.seconds() else {
            return Step::Strange;
        };
        cursor.eat(b" seconds");
        self.tell_held_before_others(context);
        let at = self.stamps.take();
        self.headers.has_told = true;
        context.tell(Event::Ran { at, duration_ns });
        Step::Gave
    }
}

#[cfg(test)]
mod tests {
    use super::super::told::told;

    #[test]
    fn a_stop_began_before_its_stamp() {
        assert_eq!(
            told(
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
    fn stamps_of_two_threads_in_a_row_belong_to_both() {
        let log = "132.743132.744: : Application time: 0.0033510 seconds\n[GC concurrent-root-region-scan-end, 0.0040000 secs]\n\
            652.538: 652.540Total time for which application threads were stopped: 0.0060000 seconds\n: [GC concurrent-mark-start]\n\
            653.540: [GC concurrent-mark-end, 1.0000000 secs]\n";
        assert_eq!(
            told(log),
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
            told(
                "  to Application time: 0.0006573 seconds\n space 57472K, 0% used [0x30e80000,0x30e80000,0x346a0000)\n"
            ),
            ["ran until ? ms, 657300 ns"]
        );
    }
}
