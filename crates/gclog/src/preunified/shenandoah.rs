//! Shenandoah as backported to JDK 8: `[Pause Init Mark, start]` and `[Pause Init Mark, 3.341 ms]`.

use super::Preunified;
use super::before;
use super::cursor::Cursor;
use super::flow::Step;
use super::pauses::{Head, Open, enter};
use crate::event::{Area, Areas, Collector, Concurrent, Kind, Stamp};
use crate::parser::Context;

impl Preunified {
    /// Behind `[Pause ` or `[Concurrent `: a name, perhaps sizes, and `start` or a duration.
    pub(super) fn shenandoah(
        &mut self,
        context: &mut Context<'_>,
        cursor: &mut Cursor<'_>,
        pause: bool,
    ) -> Step {
        let word = if pause { "Pause " } else { "Concurrent " };
        let from = cursor.at() - word.len();
        if cursor.until(b']').is_none() {
            return Step::Strange;
        }
        let body = &cursor.text()[from..cursor.at() - 1];
        let Some(comma) = memchr::memrchr(b',', body) else {
            return Step::Strange;
        };
        let (head, tail) = (&body[..comma], body[comma + 1..].trim_ascii());
        let (name, figures) = match memchr::memrchr(b' ', head) {
            Some(space) => match Cursor::new(&head[space + 1..]).figures() {
                Some(figures) => (&head[..space], Some(figures)),
                None => (head, None),
            },
            None => (head, None),
        };
        let number = context.names.number(name);
        if tail == b"start" {
            let began = self.stamps.take();
            self.collector(context, Collector::Shenandoah);
            self.phase_begins(number, began);
            return Step::Gave;
        }
        let mut end = Cursor::new(tail);
        let (Some(duration_ns), true) = (end.millis(), end.eat(b" ms")) else {
            return Step::Strange;
        };
        self.collector(context, Collector::Shenandoah);
        self.tell_held(context);
        let now = self.stamps.take();
        let mut areas = Areas::default();
        if let Some(figures) = figures {
            enter(areas.at(Area::Heap), figures);
        }
        if !pause {
            let mut phase = Concurrent {
                line: context.line,
                began: Stamp::default(),
                id: None,
                name: number,
                cycle: false,
                cause: None,
                duration_ns: Some(duration_ns),
                cpu_ns: None,
                aborted: false,
                areas,
            };
            self.phase_ends(context, now, &mut phase);
            return Step::Gave;
        }
        let at = self
            .under_way
            .iter()
            .position(|(other, _)| *other == number);
        let began = match at {
            Some(at) => self.under_way.remove(at).1,
            None => before(now, duration_ns),
        };
        self.tell_cut(context);
        self.tell_kept(context);
        let spare = self.spare.pop().unwrap_or_default();
        let mut open = Open::new(spare, Head::Shenandoah, context.line, began, number);
        open.pause.areas = areas;
        open.pause.kind = kind(name);
        self.held = Some(open.close(context.names, Some(duration_ns), false));
        Step::Gave
    }
}

fn kind(name: &[u8]) -> Kind {
    let kinds: [(&[u8], Kind); 4] = [
        (b"Pause Init Mark", Kind::Start),
        (b"Pause Final Mark", Kind::Remark),
        (b"Pause Full", Kind::Full),
        (b"Pause Degenerated GC", Kind::Degenerated),
    ];
    kinds
        .iter()
        .find(|(start, _)| name.starts_with(start))
        .map_or(Kind::Other, |(_, kind)| *kind)
}
