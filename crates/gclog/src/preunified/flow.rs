//! A line as a row of fragments.
//!
//! From left to right: stamps are kept for the next bracket, brackets open and close, figures and durations go to
//! whatever is open. Nothing is expected at any place, so that fragments of other threads in between do no harm. Where
//! a fragment is unknown, reading goes on at the next thing that cannot be anything else.

use std::cell::OnceCell;

use super::cursor::{Cursor, cpu};
use super::heap::Block;
use super::pauses::{Head, Mark};
use super::{Beginning, Listing, Preunified};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Area, Collector, References};
use crate::number::LONGEST_NS;

/// What a fragment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It gave something.
    Gave,
    /// It belongs to something, and gives nothing by itself.
    Passed,
    /// The rest of the line is known, and of no use.
    Rest,
    /// A duration stands here that cannot be read.
    Damaged,
    /// It is unknown.
    Strange,
}

/// Generations as brackets name them: the area, and the collector that alone has them.
const GENERATIONS: &[(&str, Area, Option<Collector>)] = &[
    ("ParNew", Area::Young, None),
    ("PSYoungGen", Area::Young, Some(Collector::Parallel)),
    ("DefNew", Area::Young, None),
    ("CMS Perm", Area::Metaspace, Some(Collector::Cms)),
    ("CMS", Area::Old, Some(Collector::Cms)),
    ("Metaspace", Area::Metaspace, None),
    ("ParOldGen", Area::Old, Some(Collector::Parallel)),
    ("PSOldGen", Area::Old, Some(Collector::Parallel)),
    ("PSPermGen", Area::Metaspace, Some(Collector::Parallel)),
    ("Tenured", Area::Old, Some(Collector::Serial)),
    ("Perm", Area::Metaspace, None),
    ("ASParNew", Area::Young, None),
    ("ASCMS", Area::Old, Some(Collector::Cms)),
];

/// Parts of pauses as brackets name them; the name goes on to the comma, stamp or bracket behind it.
const PARTS: &[&str] = &[
    "Rescan",
    "weak refs processing",
    "class unloading",
    "scrub symbol",
    "scrub string",
    "grey object rescan",
    "root rescan",
    "visit unhandled CLDs",
    "dirty klass scan",
    "GC ref-proc",
    "Finalize Marking",
    "Unloading",
    "System Dictionary Unloading",
    "Parallel Unloading",
    "Deallocate Metadata",
    // PrintParallelOldGCPhaseTimes
    "pre compact",
    "marking phase",
    "par mark",
    "reference processing",
    "summary phase",
    "adjust roots",
    "compaction phase",
    "drain task setup",
    "dense prefix task setup",
    "steal task setup",
    "par compact",
    "deferred updates",
    "post compact",
];

/// Bytes before a bracket that are searched for its stamps: two dates and two uptimes.
const STAMPS_BEFORE: usize = 96;

impl Preunified {
    /// Reads a line as fragments.
    pub(super) fn flow(&mut self, context: &mut Context<'_>, text: &[u8]) -> Read {
        let mut cursor = Cursor::new(text);
        let search = OnceCell::new();
        let (mut gave, mut strange, mut damaged) = (false, false, false);
        loop {
            cursor.skip_spaces();
            let Some(first) = cursor.peek() else {
                break;
            };
            let start = cursor.at();
            let step = match first {
                b'[' => self.bracket(context, &mut cursor),
                b']' => self.end_of_bracket(&mut cursor),
                b',' => self.comma(context, &mut cursor),
                b'0'..=b'9' => self.digit(context, &mut cursor),
                b'(' => self.parenthesis(context, &mut cursor),
                b':' => {
                    cursor.skip(1);
                    Step::Passed
                }
                _ => self.word(context, &mut cursor),
            };
            match step {
                Step::Gave => gave = true,
                Step::Passed => {}
                Step::Rest => break,
                Step::Damaged => damaged = true,
                Step::Strange => {
                    strange = true;
                    self.stamps.clear();
                    self.resume(context, &mut cursor, start + 1, &search);
                }
            }
        }
        match (gave, strange) {
            _ if damaged => Read::Damaged,
            (true, _) => Read::Understood,
            (false, true) => Read::Unknown,
            (false, false) => Read::Ignored,
        }
    }

    /// Goes to the next thing from `from` on that cannot be anything else, and finds its stamps.
    fn resume(
        &mut self,
        context: &mut Context<'_>,
        cursor: &mut Cursor<'_>,
        from: usize,
        search: &OnceCell<Option<usize>>,
    ) {
        let text = cursor.text();
        // Once per line, or a line of brackets would be searched over and over.
        let time_line = search.get_or_init(|| {
            let find = |what: &[u8]| memchr::memmem::find(&text[from..], what);
            find(b"Total time for which application")
                .into_iter()
                .chain(find(b"Application time: "))
                .min()
                .map(|at| from + at)
        });
        let time_line = time_line.filter(|at| *at >= from);
        let in_pause = !self.open.is_empty();
        let bracket = memchr::memchr_iter(b'[', &text[from..])
            .map(|at| from + at)
            .find(|at| is_certain(&text[*at..], in_pause));
        let Some(next) = time_line.into_iter().chain(bracket).min() else {
            cursor.jump(text.len());
            return;
        };
        self.stamps_before(
            context,
            text,
            from.max(next.saturating_sub(STAMPS_BEFORE)),
            next,
        );
        cursor.jump(next);
    }

    /// Reads the stamps that end right at `end`, if there are some.
    fn stamps_before(&mut self, context: &mut Context<'_>, text: &[u8], from: usize, end: usize) {
        let starts = (from..end).filter(|at| {
            text[*at].is_ascii_digit() && (*at == 0 || !text[*at - 1].is_ascii_alphanumeric())
        });
        for start in starts {
            let mut cursor = Cursor::new(&text[start..end]);
            let mut uptimes = [None; 2];
            let mut next = uptimes.iter_mut();
            loop {
                while matches!(cursor.peek(), Some(b' ' | b':')) {
                    cursor.skip(1);
                }
                if self.stamps.date(&mut cursor) {
                    continue;
                }
                match (cursor.uptime(), next.next()) {
                    (Some(uptime), Some(place)) => *place = Some(uptime),
                    _ => break,
                }
            }
            if cursor.peek().is_none() {
                for uptime in uptimes.into_iter().flatten() {
                    self.uptime(context, uptime);
                }
                return;
            }
            self.stamps.clear();
        }
    }

    fn bracket(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let start = cursor.at();
        cursor.skip(1);
        let step = match cursor.peek() {
            Some(b'G') => self.bracket_of_gc(context, cursor),
            Some(b'F') if cursor.eat(b"Full GC") => {
                self.begin(context, Head::Full);
                Step::Gave
            }
            Some(b'T') if cursor.eat(b"Times: ") => self.times(cursor),
            Some(b'C') if cursor.eat(b"CMS-concurrent-") => self.cms_phase(context, cursor),
            Some(b'C') if cursor.eat(b"Concurrent ") => self.shenandoah(context, cursor, false),
            Some(b'P') if cursor.eat(b"Pause ") => self.shenandoah(context, cursor, true),
            // `[Preclean SoftReferences, 0.0000113 secs]`, what CMS does beside its own phase of that name.
            Some(b'P') if cursor.rest().starts_with(b"Preclean ") => {
                self.stamps.take();
                cursor.until(b']');
                Step::Passed
            }
            Some(b'E') if cursor.eat(b"Eden: ") => self.eden(cursor),
            Some(b'Y') if cursor.eat(b"YG occupancy: ") => self.young_occupancy(cursor),
            Some(b'1') if cursor.eat(b"1 CMS-") => self.cms_mark(context, cursor),
            Some(b'U') if cursor.eat(b"Unloading class ") => Step::Rest,
            Some(b'L') if cursor.eat(b"Loaded ") => Step::Rest,
            Some(b' ' | b'0'..=b'9') => self.heap_of_g1(cursor),
            _ => self
                .generation(context, cursor)
                .or_else(|| self.reference(context, cursor))
                .or_else(|| self.part(context, cursor))
                .unwrap_or(Step::Strange),
        };
        if step == Step::Strange {
            cursor.jump(start);
        }
        step
    }

    fn bracket_of_gc(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let head = if cursor.eat(b"GC pause") {
            Head::G1
        } else if cursor.eat(b"GC concurrent-") {
            return self.g1_phase(context, cursor);
        } else if cursor.eat(b"GC remark") {
            Head::Remark
        } else if cursor.eat(b"GC cleanup") {
            Head::Cleanup
        } else if cursor.eat(b"G1Ergonomics ") {
            return self.ergonomics(context, cursor);
        } else if cursor.rest().starts_with(b"GC ref-proc") {
            return self.part(context, cursor).unwrap_or(Step::Strange);
        } else if cursor.eat(b"GC locker: ") {
            return Step::Rest;
        } else if cursor.eat(b"GC") {
            match cursor.peek() {
                // `[GCBefore GC:` comes of `PrintFLSStatistics`; `[GC2016-...` of JDK 7.
                None | Some(b' ' | b'(' | b'[' | b'-' | b'0'..=b'9' | b'B' | b':' | b']') => {
                    Head::Gc
                }
                _ => return Step::Strange,
            }
        } else {
            return Step::Strange;
        };
        self.begin(context, head);
        if matches!(head, Head::G1 | Head::Remark | Head::Cleanup) {
            self.collector(context, Collector::G1);
        }
        Step::Gave
    }

    /// `[ParNew`, `[PSYoungGen: 16384K->2528K(18944K)]`, `[CMS Perm : 2472K->2471K(21248K)]`.
    fn generation(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Option<Step> {
        let first = cursor.peek();
        let (name, area, collector) = GENERATIONS.iter().find(|(name, ..)| {
            name.as_bytes().first() == first.as_ref() && cursor.eat(name.as_bytes())
        })?;
        if self.open.is_empty() {
            return Some(self.metaspace_behind(*area, cursor));
        }
        self.tell_held(context);
        self.stamps.take();
        self.generation_of(context, name, *collector);
        let number = context.names.number(name.as_bytes());
        let open = self.open.last_mut()?;
        open.open_part(number, Some(*area));
        open.collects(*area, name);
        // The figures mostly stand right here. What is in brackets behind those of metaspace is what was reserved.
        let behind_name = cursor.at();
        cursor.skip_spaces();
        if cursor.eat(b":") {
            cursor.skip_spaces();
            if let Some(mut figures) = cursor.figures() {
                if *name == "Metaspace" {
                    figures.capacity = None;
                }
                open.figures(figures);
            }
        } else {
            cursor.jump(behind_name);
        }
        Some(Step::Gave)
    }

    /// `, [Metaspace: 2977K->2977K(1056768K)]` behind a pause that is closed: full collections of G1 and Shenandoah.
    fn metaspace_behind(&mut self, area: Area, cursor: &mut Cursor<'_>) -> Step {
        if area != Area::Metaspace {
            return Step::Strange;
        }
        cursor.skip_spaces();
        cursor.eat(b":");
        cursor.skip_spaces();
        let Some(figures) = cursor.figures() else {
            return Step::Strange;
        };
        cursor.eat(b"]");
        match &mut self.held {
            Some(held) => {
                let metaspace = held.pause.areas.at(area);
                metaspace.before = Some(figures.before);
                metaspace.after = figures.after;
                Step::Gave
            }
            None => Step::Passed,
        }
    }

    /// `[SoftReference, 0 refs, 0.0000230 secs]`; of phantom references JDK 8 prints two counts, the second of cleaners.
    fn reference(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Option<Step> {
        let (start, rest) = (cursor.at(), cursor.rest());
        let length = memchr::memchr(b',', &rest[..rest.len().min(64)])?;
        let name = &rest[..length];
        if !name.ends_with(b"Reference") {
            return None;
        }
        cursor.skip(length);
        let mut count = None;
        while cursor.eat(b", ") {
            let from = cursor.at();
            if let Some(more) = cursor.integer()
                && cursor.eat(b" refs")
            {
                count = Some(count.unwrap_or(0_u64).saturating_add(more));
                continue;
            }
            cursor.jump(from);
            let Some(duration_ns) = cursor.seconds() else {
                break;
            };
            cursor.eat(b" secs");
            cursor.eat(b"]");
            self.stamps.take();
            let kind = context.names.number(name);
            let Some(open) = self.open.last_mut() else {
                return Some(Step::Passed);
            };
            open.references(References {
                kind,
                count,
                duration_ns: Some(duration_ns),
            });
            return Some(Step::Gave);
        }
        cursor.jump(start);
        None
    }

    /// `[Rescan (parallel) , 18.1621480 secs]`, `[weak refs processing`.
    fn part(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Option<Step> {
        let rest = cursor.rest();
        if self.open.is_empty() || !PARTS.iter().any(|part| rest.starts_with(part.as_bytes())) {
            return None;
        }
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b',' | b'[' | b']' | b'0'..=b'9'))
            .unwrap_or(rest.len());
        cursor.skip(length);
        self.tell_held(context);
        self.stamps.take();
        let name = context.names.number(rest[..length].trim_ascii_end());
        self.open.last_mut()?.open_part(name, None);
        Some(Step::Gave)
    }

    fn end_of_bracket(&mut self, cursor: &mut Cursor<'_>) -> Step {
        cursor.skip(1);
        match self.open.last_mut() {
            Some(open) if open.has_parts() => {
                open.close_part();
                Step::Passed
            }
            Some(_) => Step::Passed,
            None if self.held.is_some() => Step::Passed,
            None => Step::Strange,
        }
    }

    /// `, 0.0669610 secs]` closes; before a bracket a comma is only that.
    fn comma(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        cursor.skip(1);
        cursor.skip_spaces();
        let start = cursor.at();
        let duration_ns = cursor.seconds().filter(|ns| *ns <= LONGEST_NS);
        cursor.skip_spaces();
        if duration_ns.is_none() || !cursor.eat(b"secs") && !cursor.eat(b"sec") {
            cursor.jump(start);
            return self.damaged_duration(context, cursor);
        }
        cursor.eat(b"]");
        let Some(open) = self.open.last_mut() else {
            if self.beginning != Beginning::Open {
                return Step::Strange;
            }
            self.beginning = Beginning::Within;
            return Step::Passed;
        };
        if !duration_ns.is_some_and(|ns| open.close_part_after(ns)) {
            self.end(context, duration_ns);
        }
        Step::Gave
    }

    /// `0.0x669 secs]` where a duration closes a part or a pause: it closes, and nobody knows after how long.
    fn damaged_duration(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        /// Twice what the longest has.
        const NEAR: usize = 32;
        let rest = cursor.rest();
        let word = memchr::memmem::find(&rest[..rest.len().min(NEAR)], b" secs")
            .map(|length| &rest[..length])
            .filter(|word| !word.is_empty() && !word.iter().any(|byte| b" ,=:[]()".contains(byte)));
        let (Some(word), Some(open)) = (word, self.open.last_mut()) else {
            return Step::Passed;
        };
        cursor.skip(word.len() + b" secs".len());
        cursor.eat(b"]");
        if !open.close_part() {
            self.end(context, None);
        }
        Step::Damaged
    }

    /// Stamps, or sizes of what is open.
    fn digit(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        if self.stamps.date(cursor) {
            return Step::Passed;
        }
        if let Some(uptime) = cursor.uptime() {
            self.uptime(context, uptime);
            return Step::Passed;
        }
        match (self.open.last_mut(), cursor.figures()) {
            (Some(open), Some(figures)) => {
                open.figures(figures);
                Step::Gave
            }
            _ => Step::Strange,
        }
    }

    /// A cause, a kind of pause, or a trouble.
    fn parenthesis(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        // Of PrintCMSStatistics, in the midst of anything.
        let counts = cursor.rest().starts_with(b"(cardTable: ");
        let Some(open) = self.open.last_mut().filter(|_| !counts) else {
            return if counts { Step::Rest } else { Step::Strange };
        };
        let start = cursor.at();
        cursor.skip(1);
        let Some(text) = cursor.bracket() else {
            cursor.jump(start);
            return Step::Strange;
        };
        let has_parts = open.has_parts();
        let troubles = &mut open.pause.troubles;
        match text {
            b"young" => {}
            b"mixed" => open.mixed = Some("GC pause (mixed)"),
            b"partial" => open.mixed = Some("GC pause (partial)"),
            b"initial-mark" => open.pause.starts_cycle = true,
            b"to-space exhausted" | b"to-space overflow" | b"evacuation failed" => {
                troubles.evacuation_failed = true;
            }
            b"promotion failed" => troubles.promotion_failed = true,
            b"concurrent mode failure" => troubles.concurrent_mode_failure = true,
            b"concurrent mode interrupted" => troubles.concurrent_mode_interrupted = true,
            _ if has_parts => {}
            _ if open.pause.cause.is_none() => {
                troubles.gc_locker = text == b"GCLocker Initiated GC";
                open.pause.cause = Some(context.names.number(text));
            }
            _ => {}
        }
        Step::Gave
    }

    /// `user=0.25 sys=0.01, real=0.07 secs]`.
    fn times(&mut self, cursor: &mut Cursor<'_>) -> Step {
        let Some(cpu) = cpu(cursor) else {
            return Step::Strange;
        };
        match &mut self.held {
            Some(held) if held.pause.cpu.is_none() => {
                held.pause.cpu = Some(cpu);
                Step::Gave
            }
            _ => Step::Passed,
        }
    }

    /// `YG occupancy: 4756927 K (6606080 K)]`.
    fn young_occupancy(&mut self, cursor: &mut Cursor<'_>) -> Step {
        match (self.open.last_mut(), cursor.figures()) {
            (Some(open), Some(figures)) => {
                cursor.eat(b"]");
                open.pause.young_occupancy =
                    figures.capacity.map(|capacity| (figures.before, capacity));
                Step::Gave
            }
            _ => Step::Strange,
        }
    }

    /// `initial-mark: 2202742K(3145728K)]`, `remark: ...`.
    fn cms_mark(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let mark = if cursor.eat(b"initial-mark: ") {
            Mark::Initial
        } else if cursor.eat(b"remark: ") {
            Mark::Final
        } else {
            return Step::Strange;
        };
        if self.open.is_empty() {
            return Step::Strange;
        }
        self.tell_held(context);
        self.collector(context, Collector::Cms);
        let Some(open) = self.open.last_mut() else {
            return Step::Strange;
        };
        open.mark = Some(mark);
        if let Some(figures) = cursor.figures() {
            super::pauses::enter(open.pause.areas.at(Area::Old), figures);
        }
        cursor.eat(b"]");
        Step::Gave
    }

    fn word(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let rest = cursor.rest();
        match rest[0] {
            b'A' if cursor.eat(b"Application time: ") => self.ran(context, cursor),
            b'T' if cursor.eat(b"Total time for which application threads were stopped: ") => {
                self.stopped(context, cursor)
            }
            b'A' if cursor.eat(b"AdaptiveSizePolicy::update_averages:") => self.averages(cursor),
            b'A' | b'B'
                if cursor.eat(b"After GC RS summary") || cursor.eat(b"Before GC RS summary") =>
            {
                self.listing = Some(Listing::RememberedSets);
                Step::Rest
            }
            b'A' if cursor.eat(b"After GC:") => self.statistics_begin(context, true),
            b'B' if cursor.eat(b"Before GC:") => self.statistics_begin(context, false),
            b'C' if cursor.eat(b"CMS: abort preclean due to time") => {
                self.abort_due_to_time = true;
                Step::Gave
            }
            b'C' if rest.starts_with(b"CMS: Large ") => Step::Rest,
            b'{' if cursor.eat(b"{Heap before ") => self.heap_block(context, cursor, Block::Before),
            b'H' if cursor.eat(b"Heap after ") => self.heap_block(context, cursor, Block::After),
            b'}' => {
                cursor.skip(1);
                self.heap_block_ends()
            }
            b'i' if cursor.eat(b"icms_dc=") => {
                cursor.integer();
                Step::Passed
            }
            b'-' if cursor.eat(b"--") => self.dashes(),
            b'#' => self.gc_id(cursor),
            b'A' | b'P' | b's' | b'd' if is_of_a_policy(rest) => Step::Rest,
            _ => Step::Strange,
        }
    }

    /// `#12: [GC`, of `PrintGCID`.
    fn gc_id(&mut self, cursor: &mut Cursor<'_>) -> Step {
        cursor.skip(1);
        match cursor.integer() {
            Some(id) if cursor.eat(b":") => {
                self.id = Some(id);
                Step::Passed
            }
            _ => Step::Strange,
        }
    }

    /// `[GC--[PSYoungGen`, `[GC pause (young)-- 161M->161M`: there was no room for what survived.
    fn dashes(&mut self) -> Step {
        let Some(open) = self.open.last_mut() else {
            return Step::Strange;
        };
        match open.head {
            Head::G1 => open.pause.troubles.evacuation_failed = true,
            _ => open.pause.troubles.promotion_failed = true,
        }
        Step::Gave
    }

    /// `  survived: 2588704  promoted: 4767744  overflow: true`: what the parallel collector counted itself.
    fn averages(&mut self, cursor: &mut Cursor<'_>) -> Step {
        let promoted = memchr::memmem::find(cursor.rest(), b"promoted: ").and_then(|at| {
            cursor.skip(at + b"promoted: ".len());
            cursor.integer()
        });
        match (self.open.last_mut(), promoted) {
            (Some(open), Some(promoted)) => {
                open.pause.promoted = Some(promoted);
                cursor.jump(usize::MAX);
                Step::Gave
            }
            _ => Step::Rest,
        }
    }
}

/// A bracket that no application prints; while a pause is open, its parts as well.
fn is_certain(text: &[u8], in_pause: bool) -> bool {
    let Some(text) = text.strip_prefix(b"[") else {
        return false;
    };
    let starts = |what: &[u8]| text.starts_with(what);
    starts(b"Full GC")
        || starts(b"CMS-concurrent-")
        || starts(b"Times: user=")
        || text
            .strip_prefix(b"GC")
            .is_some_and(|rest| matches!(rest, [b' ' | b'(' | b'[' | b'-' | b'0'..=b'9', ..]))
        || in_pause
            && (starts(b"1 CMS-")
                || GENERATIONS.iter().any(|(name, ..)| starts(name.as_bytes()))
                || PARTS.iter().any(|part| starts(part.as_bytes())))
}

/// Lines of `PrintAdaptiveSizePolicy` and of CMS's free list census.
fn is_of_a_policy(text: &[u8]) -> bool {
    [
        &b"AdaptiveSize"[..],
        b"PSAdaptiveSizePolicy",
        b"size[",
        b"demand: ",
    ]
    .iter()
    .any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::super::event_lines::{event_lines, pause};

    #[test]
    fn a_young_collection_is_one_line() {
        assert_eq!(
            event_lines(
                "1.402: [GC 1.402: [ParNew: 29504K->3264K(29504K), 0.0488156 secs] 62016K->52969K(127808K), 0.0489000 secs] [Times: user=0.02 sys=0.00, real=0.05 secs]\n"
            ),
            [
                "ParNew Young at 1402 ms, 48900000 ns, Heap 62016->52969K, Young 29504->3264K, ParNew 48815600"
            ]
        );
    }

    #[test]
    fn without_details_and_stamps_a_collection_is_a_collection() {
        assert_eq!(
            event_lines(
                "[GC 325407K->83000K(776768K), 0.2300771 secs]\n[Full GC 267628K->83769K(776768K), 1.8479984 secs]\n"
            ),
            [
                "GC Young at ? ms, 230077100 ns, Heap 325407->83000K",
                "Full GC Full at ? ms, 1847998400 ns, Heap 267628->83769K",
            ]
        );
    }

    #[test]
    fn a_failed_promotion_and_what_follows_are_one_full_collection() {
        let log = "2.0: x\n\
            3.471: [GC (Allocation Failure) 3.471: [ParNew (0: promotion failure size = 34)  (promotion failed): 29502K->29502K(29504K), 0.0282188 secs]3.500: [CMSCMS: Large block 0x00000000fce6cd18\n\
            : 96131K->48565K(98304K), 0.0623217 secs] 108343K->48565K(127808K), [Metaspace: 2978K->2978K(1056768K)], 0.0906253 secs]\n";
        let pause = pause(log);
        assert!(pause.troubles.promotion_failed && !pause.troubles.concurrent_mode_failure);
        assert_eq!(pause.promoted, None);
        // What JDK 8 prints in brackets behind metaspace is what was reserved.
        assert_eq!(pause.areas.get(crate::Area::Metaspace).capacity, None);
        assert_eq!(
            event_lines(log)[1],
            "ParNew+CMS Full at 3471 ms, 90625300 ns, Allocation Failure, Heap 108343->48565K, Young 29502->29502K, \
             Old 96131->48565K, Metaspace 2978->2978K, ParNew 28218800, CMS 62321700"
        );
    }

    #[test]
    fn a_parallel_collection_may_run_out_of_room() {
        let pause = pause(
            "98.780: [GC-- [PSYoungGen: 98816K->98816K(114688K)] 99327K->99327K(115200K), 0.0277870 secs]\n",
        );
        assert!(pause.troubles.promotion_failed);
    }

    #[test]
    fn references_are_counted_with_cleaners_among_the_phantoms() {
        let pause = pause(
            "0.844: [GC (System.gc()) 0.855: [SoftReference, 0 refs, 0.0000230 secs]0.855: [PhantomReference, 1 refs, 2 refs, 0.0000030 secs]0.855: [JNI Weak Reference, 0.0000090 secs][PSYoungGen: 98816K->98K(114688K)] 99327K->993K(115200K), 0.0277870 secs]\n",
        );
        let counts: Vec<Option<u64>> = pause.references.iter().map(|kind| kind.count).collect();
        assert_eq!(counts, [Some(0), Some(3), None]);
        assert_eq!(pause.references[2].duration_ns, Some(9000));
    }

    #[test]
    fn a_collection_that_loses_its_end_has_no_duration() {
        assert_eq!(
            event_lines(
                "1.000: [GC 1.000: [ParNew: 29504K->3264K(29504K), 0.0488156 secs]\n2.000: [GC 12K->3K(40K), 0.1000000 secs]\n"
            ),
            [
                "ParNew Young at 1000 ms, cut, Young 29504->3264K, ParNew 48815600",
                "GC Young at 2000 ms, 100000000 ns, Heap 12->3K",
            ]
        );
    }

    #[test]
    fn a_duration_that_is_none_closes_and_makes_the_line_one_that_is_not_understood() {
        for duration in ["0.0x00", "x", "99999999999.0", "-0.1", "0.1.2"] {
            let line = format!(
                "1.000: [GC 1.000: [ParNew: 3K->1K(9K), 0.1 secs] 12K->3K(40K), {duration} secs]"
            );
            let log = format!(
                "{line} [Times: user=0.02 sys=0.00, real=0.05 secs]\n2.000: [GC 12K->3K(40K), 0.1 secs]\n"
            );
            let expected = [
                "ParNew Young at 1000 ms, cut, Heap 12->3K, Young 3->1K, ParNew 100000000",
                "GC Young at 2000 ms, 100000000 ns, Heap 12->3K",
                &format!("? {line} [Times: user=0.02 sys=0.00, real=0.05 secs]"),
            ];
            assert_eq!(event_lines(&log), expected, "{duration}");
        }
        let part =
            "1.000: [GC 1.000: [ParNew: 3K->1K(9K), 0.x secs] 12K->3K(40K), 0.2000000 secs]\n";
        assert_eq!(
            event_lines(part)[0],
            "ParNew Young at 1000 ms, 200000000 ns, Heap 12->3K, Young 3->1K"
        );
        assert_eq!(event_lines(part).len(), 2);
    }

    #[test]
    fn the_ids_of_print_gc_id_belong_to_their_pauses() {
        let log = "1.000: #7: [GC pause (G1 Evacuation Pause) (young), 0.0087570 secs]\n";
        assert_eq!(pause(log).id, Some(7));
    }

    #[test]
    fn what_an_application_prints_in_front_is_stepped_over() {
        assert_eq!(
            event_lines("INFO stdout 12.345: [GC 325407K->83000K(776768K), 0.2300771 secs]\n"),
            ["GC Young at 12345 ms, 230077100 ns, Heap 325407->83000K"]
        );
        assert_eq!(
            event_lines("INFO took 12.345: done [main] [GC]\n"),
            ["? INFO took 12.345: done [main] [GC]"]
        );
    }

    #[test]
    fn a_line_of_nothing_but_openings_takes_no_time_and_no_memory() {
        for open in [
            "(",
            "[",
            "[GC",
            "[Pause ",
            "[GC concurrent-",
            "[GC (",
            "1.000",
            "[GC x 1.000: ",
        ] {
            let log = open.repeat(60_000 / open.len()) + "\n";
            let events = event_lines(&log);
            assert!(events.len() < 30_000, "{open}");
        }
    }
}
