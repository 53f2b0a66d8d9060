//! Logs of JDK 5 to 8, from before unified logging.
//!
//! These logs have no lines in the strict sense. Each collector prints fragments as it goes, of one thing on one line
//! or on thirty, and other threads print theirs in between. So a line is read as a row of fragments: stamps, brackets
//! that open and close, sizes, durations. What each of them means depends on what is open. The source of the forms is
//! HotSpot's own code (`gc_implementation/`, `memory/`, `runtime/` of JDK 6 to 8u) and the logs of the corpus.
//!
//! - `flow.rs`: the row of fragments.
//! - `pauses.rs`: pauses from the first bracket to the last word about them.
//! - `cms.rs`, `g1.rs`, `shenandoah.rs`: what only one collector prints.
//! - `heap.rs`, `ages.rs`, `fls.rs`, `stopped.rs`, `header.rs`: blocks and lines that stand for themselves.
//! - `torn.rs`: lines that two threads have printed into each other.
//! - `noise.rs`: lines that are known and say nothing asked for.

mod ages;
mod cms;
mod cursor;
#[cfg(test)]
mod event_lines;
mod flow;
mod fls;
mod g1;
mod header;
mod heap;
mod noise;
mod pauses;
mod shenandoah;
mod stamps;
mod stopped;
mod torn;

use memchr::memmem;

use crate::account::Read;
use crate::context::Context;
use crate::event::{Collector, Concurrent, Event, Fact, Stamp};
use crate::names::Name;
use header::Headers;
use pauses::{Draft, Head, Mark};
use stamps::Stamps;

/// Reads lines of JDK 5 to 8. Its memory does not grow with the log.
#[derive(Debug)]
#[expect(
    clippy::vec_box,
    reason = "drafts go from one place to the next, and are large"
)]
pub(crate) struct Preunified {
    stamps: Stamps,
    /// `#12: `, waiting for its bracket.
    id: Option<u64>,
    /// Pauses under way, the outermost first.
    open: Vec<Box<Draft>>,
    /// The pause that was closed last, and may still get something.
    held: Option<Box<Draft>>,
    /// The pause to come, of which `{Heap before GC` printed something.
    next: Option<Box<Draft>>,
    spare: Vec<Box<Draft>>,
    /// Concurrent phases under way.
    under_way: Vec<(Name, Stamp)>,
    /// `CMS: abort preclean due to time` was printed, the phase is not closed yet.
    abort_due_to_time: bool,
    /// Without `PrintGCDetails` CMS's two pauses look alike and take turns: the initial mark was the last.
    marked: bool,
    /// The block of `PrintHeapAtGC` that is being printed.
    block: Option<heap::Block>,
    fls: fls::Statistics,
    /// A table of JDK 6's G1, whose mean stands on the next line.
    mean_of: Option<g1::Detail>,
    listing: Option<Listing>,
    safepoints: stopped::Safepoints,
    beginning: Beginning,
    headers: Headers,
    /// Bytes of a word of the heap.
    word: u64,
    collector: Option<Collector>,
    serial_old: bool,
    region_size: Option<u64>,
    /// A line with plain blanks.
    plain: Vec<u8>,
    /// The beginning of a line that a record of a concurrent thread has torn: its rest comes behind the record.
    torn: Vec<u8>,
}

/// How the log begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Beginning {
    /// No pause has begun or ended yet.
    #[default]
    Open,
    /// A pause has ended that never began.
    Within,
    /// A pause has begun.
    Seen,
}

impl Beginning {
    /// A pause begins.
    fn seen(&mut self) {
        if *self == Self::Open {
            *self = Self::Seen;
        }
    }
}

/// Indented lines that give nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    /// Of `G1SummarizeRSetStats`, in the midst of a pause.
    RememberedSets,
    /// What Shenandoah did, at the end of its JVM.
    Shenandoah,
}

/// A blank that does not break, in UTF-8.
const NO_BREAK: &[u8] = "\u{a0}".as_bytes();
/// Pauses, parts and phases whose lists wait to be used again.
const MOST_SPARE: usize = 4;
/// Concurrent phases under way; G1 has five at most.
const MOST_UNDER_WAY: usize = 16;

impl Default for Preunified {
    fn default() -> Self {
        Self {
            stamps: Stamps::default(),
            id: None,
            open: Vec::new(),
            held: None,
            next: None,
            spare: Vec::new(),
            under_way: Vec::new(),
            abort_due_to_time: false,
            marked: false,
            block: None,
            fls: fls::Statistics::default(),
            mean_of: None,
            listing: None,
            safepoints: stopped::Safepoints::default(),
            beginning: Beginning::default(),
            headers: Headers::default(),
            word: 8,
            collector: None,
            serial_old: false,
            region_size: None,
            plain: Vec::new(),
            torn: Vec::new(),
        }
    }
}

impl Preunified {
    /// Reads a line without its end.
    pub(crate) fn line(&mut self, context: &mut Context<'_>, text: &[u8]) -> Read {
        match self.untangle(context, text) {
            Some(read) => read,
            None => self.whole(context, text),
        }
    }

    /// Reads a line that is whole.
    fn whole(&mut self, context: &mut Context<'_>, text: &[u8]) -> Read {
        let indent = text
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        let mut read = self.dispatch(context, text, indent);
        if read == Read::Unknown && memmem::find(text, NO_BREAK).is_some() {
            read = self.without_no_break(context, text);
        }
        if self.held.as_ref().is_some_and(|held| held.is_complete()) {
            self.tell_held(context);
        }
        self.stamps.line_ends();
        self.id = None;
        if read != Read::Unknown {
            return read;
        }
        if self.safepoints.is_count(text) {
            return Read::Ignored;
        }
        let shenandoah = self.collector == Some(Collector::Shenandoah);
        if noise::is_known(&text[indent..], shenandoah) {
            return Read::Ignored;
        }
        self.listing = None;
        Read::Unknown
    }

    /// What has ended and was not reported yet.
    pub(crate) fn waiting(&self) -> Option<Event<'_>> {
        self.held.as_deref().map(|held| Event::Pause(&held.pause))
    }

    /// Tells what is still open: the log ends here.
    pub(crate) fn finish(&mut self, context: &mut Context<'_>) {
        self.tell_torn(context);
        self.tell_row(context);
        self.tell_statistics(context);
        self.tell_kept(context);
        self.tell_cut(context);
    }

    /// A log that was copied out of a page of the web, where blanks in a row became blanks that do not break.
    fn without_no_break(&mut self, context: &mut Context<'_>, text: &[u8]) -> Read {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let mut from = 0;
        for at in memmem::find_iter(text, NO_BREAK) {
            plain.extend_from_slice(&text[from..at]);
            plain.push(b' ');
            from = at + NO_BREAK.len();
        }
        plain.extend_from_slice(&text[from..]);
        let indent = plain.iter().take_while(|byte| **byte == b' ').count();
        let read = self.dispatch(context, &plain, indent);
        self.plain = plain;
        read
    }

    /// Lines that are recognised by their first bytes go where they belong, all others are fragments.
    fn dispatch(&mut self, context: &mut Context<'_>, text: &[u8], indent: usize) -> Read {
        let rest = &text[indent..];
        let Some(first) = rest.first() else {
            return Read::Ignored;
        };
        if indent > 0 && self.listing.is_some() {
            return Read::Ignored;
        }
        if self.listing == Some(Listing::RememberedSets) {
            self.listing = None;
        }
        if self.fls.is_open() && !fls::is_row(rest) {
            self.tell_statistics(context);
        }
        let special = match first {
            b'[' if self.open.is_empty() => self.detail(context, rest, indent),
            b'-' => self.age(rest),
            b'D' => self.desired(rest),
            b'A' | b'S' | b'T' | b'M' | b'N' | b'f' => self
                .statistics_row(context.line, rest)
                .or_else(|| self.mean(rest))
                .or_else(|| self.header(context, rest))
                .or_else(|| self.heap_row(context, rest)),
            b'J' | b'O' | b'C' => self.header(context, rest),
            b'0'..=b'9' => self
                .safepoint_row(context, rest)
                .or_else(|| self.header(context, rest)),
            b'a'..=b'z' | b'G' | b'P' | b'R' => self.heap_row(context, rest),
            _ => None,
        };
        special.unwrap_or_else(|| self.flow(context, text))
    }

    /// Takes note of an uptime, which may show that another JVM writes.
    fn uptime(&mut self, context: &mut Context<'_>, uptime_ns: u64) {
        if context.clock.restarted(uptime_ns) {
            self.restart(context);
        }
        self.tell_kept(context);
        self.stamps.uptime(uptime_ns);
    }

    /// Another JVM writes: whatever is open stays so for ever.
    fn restart(&mut self, context: &mut Context<'_>) {
        self.tell_row(context);
        self.tell_cut(context);
        self.forget();
        context.tell(Event::Restart);
    }

    /// Forgets what belongs to one JVM. Nothing may be open.
    pub(crate) fn forget(&mut self) {
        self.under_way.clear();
        self.abort_due_to_time = false;
        self.marked = false;
        self.block = None;
        self.next = None;
        self.collector = None;
        self.serial_old = false;
        self.region_size = None;
        self.headers.has_events = false;
        self.safepoints = stopped::Safepoints::default();
    }

    /// A pause has ended that never began: the log lacks its beginning.
    pub(crate) fn lacks_beginning(&self) -> bool {
        self.beginning == Beginning::Within
    }

    /// Tells a collector once.
    fn collector(&mut self, context: &mut Context<'_>, collector: Collector) {
        if self.collector.is_none() {
            self.collector = Some(collector);
            context.tell(Event::Fact(Fact::Collector(collector)));
        }
    }

    /// A generation was named: tells which collector alone has it, and that one thread collects it.
    fn generation_of(
        &mut self,
        context: &mut Context<'_>,
        name: &str,
        collector: Option<Collector>,
    ) {
        if let Some(collector) = collector {
            self.collector(context, collector);
        }
        if name == "PSOldGen" && !std::mem::replace(&mut self.serial_old, true) {
            context.tell(Event::Fact(Fact::SerialOld));
        }
    }

    /// Tells a region size when it is another one.
    fn region_size(&mut self, context: &mut Context<'_>, bytes: u64) {
        if self.region_size != Some(bytes) {
            self.region_size = Some(bytes);
            context.tell(Event::Fact(Fact::RegionSize(bytes)));
        }
    }

    /// A pause begins. Unless it may lie within the open one, that one has lost its end.
    fn begin(&mut self, context: &mut Context<'_>, head: Head) {
        let began = self.stamps.take();
        self.beginning.seen();
        match self.open.last_mut() {
            Some(open) if head == Head::Gc && open.may_hold(began) => {
                open.held_one = true;
                self.tell_held(context);
            }
            _ => self.tell_cut(context),
        }
        self.tell_kept(context);
        self.headers.has_events = true;
        self.block = None;
        self.fls.begin();
        let mut draft = self.next.take().unwrap_or_else(|| self.draft());
        draft.begin(head, context.line, began);
        draft.pause.id = self.id.take();
        self.open.push(draft);
    }

    /// A pause to be put together.
    fn draft(&mut self) -> Box<Draft> {
        self.spare.pop().unwrap_or_default()
    }

    /// The innermost pause is over.
    fn end(&mut self, context: &mut Context<'_>, duration_ns: Option<u64>) {
        self.tell_held(context);
        let Some(mut open) = self.open.pop() else {
            return;
        };
        open.pause.line = context.line;
        self.guess_mark(context, &mut open);
        let nested = !self.open.is_empty();
        open.close(context.names, duration_ns, nested);
        self.held = Some(open);
    }

    /// Says which pause of CMS it is that printed one figure and no details: by its cause, or in turns. A collection
    /// of the old generation ends the concurrent cycle, so that an initial mark is next.
    fn guess_mark(&mut self, context: &Context<'_>, open: &mut Draft) {
        if open.head == Head::Gc && open.single && open.mark.is_none() {
            let cause = open.pause.cause.map(|cause| context.names.get(cause));
            open.mark = Some(match cause {
                Some("CMS Initial Mark") => Mark::Initial,
                Some("CMS Final Remark") => Mark::Final,
                _ if self.marked => Mark::Final,
                _ => Mark::Initial,
            });
        }
        match open.mark {
            Some(mark) => self.marked = mark == Mark::Initial,
            None if open.head == Head::Full => self.marked = false,
            None => {}
        }
    }

    /// Tells the pause that was closed last.
    fn tell_held(&mut self, context: &mut Context<'_>) {
        if let Some(mut held) = self.held.take() {
            context.tell(Event::Pause(&held.pause));
            if self.spare.len() < MOST_SPARE {
                held.clear();
                self.spare.push(held);
            }
        }
    }

    /// Tells the closed pause and, without a duration, those that have lost their end.
    fn tell_cut(&mut self, context: &mut Context<'_>) {
        self.tell_held(context);
        while let Some(mut open) = self.open.pop() {
            let nested = !self.open.is_empty();
            open.close(context.names, None, nested);
            self.held = Some(open);
            self.tell_held(context);
        }
    }

    /// A safepoint or the like is reported: the pause before it comes first, unless more of it is just being printed.
    fn tell_held_before_others(&mut self, context: &mut Context<'_>) {
        if self.block != Some(heap::Block::After) {
            self.tell_held(context);
        }
    }

    /// A concurrent phase begins.
    fn phase_begins(&mut self, name: Name, began: Stamp) {
        self.under_way.retain(|(other, _)| *other != name);
        if self.under_way.len() == MOST_UNDER_WAY {
            self.under_way.remove(0);
        }
        self.under_way.push((name, began));
    }

    /// A concurrent phase ends. It began when it said so; else its duration before now.
    fn phase_ends(&mut self, context: &mut Context<'_>, now: Stamp, phase: &mut Concurrent) {
        let at = self
            .under_way
            .iter()
            .position(|(name, _)| *name == phase.name);
        phase.began = match at {
            Some(at) => self.under_way.remove(at).1,
            None => before(now, phase.duration_ns.unwrap_or(0)),
        };
        self.headers.has_events = true;
        context.tell(Event::Concurrent(phase));
    }
}

/// A stamp, `duration_ns` earlier.
fn before(stamp: Stamp, duration_ns: u64) -> Stamp {
    Stamp {
        uptime_ns: stamp
            .uptime_ns
            .map(|uptime| uptime.saturating_sub(duration_ns)),
        wall_ns: stamp
            .wall_ns
            .map(|wall| wall.saturating_sub_unsigned(duration_ns)),
    }
}
