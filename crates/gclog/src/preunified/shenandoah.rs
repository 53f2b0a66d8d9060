//! Shenandoah as backported to JDK 8: `[Pause Init Mark, start]` and `[Pause Init Mark, 3.341 ms]`.

use super::Preunified;
use super::before;
use super::cursor::Cursor;
use super::flow::Step;
use super::pauses::{Head, enter};
use crate::context::Context;
use crate::event::{Area, Areas, Collector, Concurrent, Kind, Stamp};

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
                ended: Stamp::default(),
                id: None,
                name: number,
                cycle: false,
                cause: None,
                duration_ns: Some(duration_ns),
                cpu_ns: None,
                aborted: false,
                areas,
                promoted: None,
                allocated: None,
                live: None,
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
        self.headers.has_events = true;
        let mut draft = self.draft();
        draft.begin(Head::Shenandoah, context.line, began);
        draft.pause.name = number;
        draft.pause.areas = areas;
        draft.pause.kind = kind(name);
        draft.close(context.names, Some(duration_ns), false);
        self.held = Some(draft);
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

#[cfg(test)]
mod tests {
    use super::super::event_lines::event_lines;

    #[test]
    fn pauses_and_phases_began_at_their_start_lines() {
        let log = "2.469: [Pause Init Mark (process weakrefs), start]\n    Using 2 of 2 workers for init marking\n\
            2.472: [Pause Init Mark (process weakrefs), 3.341 ms]\n2.472: [Concurrent marking, start]\n\
            3.338: [Concurrent marking, 866.393 ms]\n3.344: [Concurrent cleanup 1613M->1361M(1636M), 0.092 ms]\n\
            120839.710: [Pause Full 1589M->1002M(1690M), 4077.274 ms]\nPause Full GC (G)   4085272 us\n\
            , [Metaspace: 282195K->281648K(1314816K)]\n";
        assert_eq!(
            event_lines(log)[1..],
            [
                "Pause Init Mark (process weakrefs) Start at 2469 ms, 3341000 ns",
                "Concurrent marking at 2472 ms, Some(866393000) ns",
                "Concurrent cleanup at 3343 ms, Some(92000) ns",
                "Pause Full Full at 120835632 ms, 4077274000 ns, Heap 1627136->1026048K, Metaspace 282195->281648K",
            ]
        );
    }
}
