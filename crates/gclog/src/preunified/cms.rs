//! CMS beside the application: `[CMS-concurrent-mark: 0.753/0.754 secs] [Times: ...]`.

use super::Preunified;
use super::cursor::Cursor;
use super::flow::{Step, cpu};
use crate::event::{Areas, Collector, Concurrent, Stamp};
use crate::parser::Context;

impl Preunified {
    /// Behind `[CMS-concurrent-`: `mark-start]`, or the phase with its CPU time of one thread and its time on the wall.
    pub(super) fn cms_phase(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let from = cursor.at() - b"CMS-concurrent-".len();
        let text = cursor.text();
        let length = cursor
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase() || **byte == b'-')
            .count();
        let name = &text[from..cursor.at() + length];
        cursor.skip(length);
        if let Some(name) = name.strip_suffix(b"-start") {
            cursor.eat(b"]");
            self.collector(context, Collector::Cms);
            let began = self.stamps.take();
            let name = context.names.number(name);
            self.phase_begins(name, began);
            return Step::Gave;
        }
        if !cursor.eat(b": ") {
            return Step::Strange;
        }
        let Some(cpu_ns) = cursor.seconds() else {
            return Step::Strange;
        };
        let Some(duration_ns) = cursor.eat(b"/").then(|| cursor.seconds()).flatten() else {
            return Step::Strange;
        };
        cursor.eat(b" secs");
        cursor.eat(b"]");
        // The CPU times of the whole process during the phase: not the collector's alone.
        if cursor.eat(b" [Times: ") {
            cpu(cursor);
        }
        self.collector(context, Collector::Cms);
        // Full details of the pause before it may still come when this is printed in the midst of them.
        let interrupted = self.open.last().is_some_and(super::pauses::Open::is_in_old);
        let aborted = interrupted || std::mem::take(&mut self.abort_due_to_time);
        let now = self.stamps.take();
        let mut phase = Concurrent {
            line: context.line,
            began: Stamp::default(),
            id: None,
            name: context.names.number(name),
            cycle: false,
            cause: None,
            duration_ns: Some(duration_ns),
            cpu_ns: Some(cpu_ns),
            aborted,
            areas: Areas::default(),
        };
        self.phase_ends(context, now, &mut phase);
        Step::Gave
    }
}
