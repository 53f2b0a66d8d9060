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
