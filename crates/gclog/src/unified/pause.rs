//! Lines of pauses, concurrent phases, cycles and stalls: title, sizes, duration.
//!
//! `Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms` is printed by `GCTraceTime` when the scope ends,
//! and without the figures when it begins. ZGC prints `14M(5%)->12M(4%) 0.072s` after a cycle.

use memchr::{memchr, memmem, memrchr};

use super::{Message, Unified};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Area, Areas, Change, Collector, Concurrent, Event, Fact, Kind, Stamp};
use crate::number::{LONGEST_NS, MILLISECONDS, SECONDS, change, decimal, size, whole};

/// A line cut into its parts.
struct Line<'a> {
    /// `Pause Young (Normal) (G1 Evacuation Pause)`.
    title: &'a [u8],
    heap: Option<Change>,
    duration_ns: Option<u64>,
}

impl<'a> Line<'a> {
    fn read(text: &'a [u8]) -> Self {
        let mut title = text.trim_ascii_end();
        let mut duration_ns = None;
        let number = match title {
            [number @ .., b'm', b's'] => Some((number, MILLISECONDS)),
            [number @ .., b's'] => Some((number, SECONDS)),
            _ => None,
        };
        if let Some((number, places)) = number {
            // Some print a space before the unit.
            let number = number.trim_ascii_end();
            let start = memrchr(b' ', number).map_or(0, |at| at + 1);
            if let Some((value, [])) = decimal(&number[start..], places)
                && value <= LONGEST_NS
            {
                duration_ns = Some(value);
                title = number[..start].trim_ascii_end();
            }
        }
        let mut heap = None;
        let start = memrchr(b' ', title).map_or(0, |at| at + 1);
        if let Some(sizes) = sizes(&title[start..]) {
            heap = Some(sizes);
            title = title[..start].trim_ascii_end();
        }
        Self {
            title,
            heap,
            duration_ns,
        }
    }

    /// Where a duration stands there is something that is none: `1.x5ms`, or a number that no clock shows. A title ends in
    /// a word or a bracket, and a line that tells sizes tells a duration.
    fn is_damaged(&self) -> bool {
        let start = memrchr(b' ', self.title).map_or(0, |at| at + 1);
        let last = self.title[start..].first();
        self.duration_ns.is_none()
            && last.is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b','))
    }
}

/// `24M->4M(256M)`, or of ZGC `14M(5%)->12M(4%)`, with nothing behind it.
fn sizes(text: &[u8]) -> Option<Change> {
    if let Some((before, after, capacity, [])) = change(text) {
        return Some(Change {
            before: Some(before),
            after: Some(after),
            capacity,
        });
    }
    let (before, rest) = size(text)?;
    let rest = percent(rest)?.strip_prefix(b"->")?;
    let (after, rest) = size(rest)?;
    percent(rest)?.is_empty().then_some(Change {
        before: Some(before),
        after: Some(after),
        capacity: None,
    })
}

/// What follows `(5%)`.
fn percent(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = whole(text.strip_prefix(b"(")?)?;
    rest.strip_prefix(b"%)")
}

/// `Pause ...`, also behind `Y: `.
pub(super) fn stopped(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    message: Message<'_>,
) -> Read {
    let mut line = Line::read(message.text);
    let damaged = line.is_damaged() || line.heap.is_some() && line.duration_ns.is_none();
    if damaged {
        line.title = without_figures(line.title);
    }
    let stamp = unified.at(context, &message);
    unified.has_begun = true;
    unified.fresh_region_bytes = None;
    let (kind, starts_cycle) = kind(line.title);
    if stamp.uptime_ns.is_none() && matches!(kind, Kind::Young | Kind::Mixed | Kind::Full) {
        // Without an uptime only the numbers tell of a new JVM; a collection within another is one ahead.
        const DISORDER: u64 = 8;
        if unified.last_id.is_some_and(|last| id + DISORDER < last) {
            unified.restart(context);
        }
        unified.last_id = Some(id);
    }
    if !matches!(unified.collector, Some(found) if found != Collector::Shenandoah)
        && let Some(collector) = collector(line.title)
    {
        unified.found(context, collector);
    }
    let name = context.names.number(line.title);
    let cause = cause(line.title).map(|cause| {
        (
            context.names.number(cause),
            cause == b"GCLocker Initiated GC",
        )
    });
    if line.duration_ns.is_none() && !damaged {
        let draft = unified.open.begin(context, id);
        let pause = &mut draft.pause;
        pause.line = context.line;
        pause.id = Some(id);
        pause.name = name;
        pause.kind = kind;
        pause.starts_cycle = starts_cycle;
        pause.began = stamp;
        pause.cause = cause.map(|cause| cause.0);
        return Read::Understood;
    }
    let region_bytes = unified.region_bytes;
    let (shenandoah, trigger) = (unified.is_shenandoah(), unified.trigger);
    let draft = unified.open.draft(context, id);
    // Shenandoah has said that it makes a full collection of it, and prints the name that it began with.
    let kind = match (kind, draft.pause.kind) {
        (Kind::Degenerated, Kind::Full) => Kind::Full,
        (kind, _) => kind,
    };
    super::areas::settle(draft, region_bytes, line.heap);
    let final_remark = line.title.ends_with(b"(CMS Final Remark)");
    let pause = unified.open.end(context, id, kind, final_remark);
    pause.line = context.line;
    pause.id = Some(id);
    pause.name = name;
    pause.starts_cycle = starts_cycle;
    pause.began = match line.duration_ns {
        Some(duration) => before(stamp, duration),
        // As its first line said, or not before its last one.
        None if pause.began == Stamp::default() => stamp,
        None => pause.began,
    };
    pause.duration_ns = line.duration_ns;
    if let Some((cause, locker)) = cause {
        pause.cause = Some(cause);
        pause.troubles.gc_locker = locker;
    }
    if shenandoah && matches!(kind, Kind::Start | Kind::Degenerated | Kind::Full) {
        pause.cause = pause.cause.or(trigger);
        unified.trigger = None;
    }
    pause.troubles.evacuation_failed |= evacuation_failed(line.title);
    if let Some(heap) = line.heap {
        *pause.areas.at(Area::Heap) = heap;
    }
    if damaged {
        Read::Damaged
    } else {
        Read::Understood
    }
}

/// A title without what cannot be read behind it: up to the first word outside of brackets that begins like a number.
fn without_figures(title: &[u8]) -> &[u8] {
    let mut depth = 0_i32;
    let mut last = b'P';
    let figure = title.iter().position(|byte| {
        depth += i32::from(*byte == b'(') - i32::from(*byte == b')');
        let begins = last == b' ' && (byte.is_ascii_digit() || b"-.,".contains(byte));
        last = *byte;
        begins && depth == 0
    });
    title[..figure.unwrap_or(title.len())].trim_ascii_end()
}

/// What a pause is for, and whether it starts a concurrent cycle.
fn kind(title: &[u8]) -> (Kind, bool) {
    let name = match title {
        [b'Y' | b'y' | b'O', b':', b' ', name @ ..] | name => name,
    };
    let name = name.strip_prefix(b"Pause ").unwrap_or(name);
    let starts = |start: &[u8]| name.starts_with(start);
    if starts(b"Young (Mixed)") || starts(b"Mixed") {
        (Kind::Mixed, false)
    } else if starts(b"Young") {
        (Kind::Young, starts(b"Young (Concurrent Start)"))
    } else if starts(b"Initial Mark (") {
        // G1 of JDK 9 and 10: a young collection.
        (Kind::Young, true)
    } else if starts(b"Full") {
        (Kind::Full, false)
    } else if starts(b"Degenerated") {
        (Kind::Degenerated, false)
    } else if starts(b"Initial Mark") || starts(b"Init Mark") || starts(b"Mark Start") {
        (Kind::Start, true)
    } else if starts(b"Remark") || starts(b"Final Mark") || starts(b"Mark End") {
        (Kind::Remark, false)
    } else if starts(b"Cleanup") {
        (Kind::Cleanup, false)
    } else {
        (Kind::Other, false)
    }
}

/// A collector that alone prints such a title.
fn collector(title: &[u8]) -> Option<Collector> {
    let starts = |start: &[u8]| title.starts_with(start);
    if memmem::find(title, b"(G1 ").is_some() || starts(b"Pause Cleanup") {
        Some(Collector::G1)
    } else if starts(b"Pause Mark Start")
        || starts(b"Pause Mark End")
        || starts(b"Pause Relocate Start")
    {
        Some(Collector::Z)
    } else if starts(b"Pause Init") && !starts(b"Pause Initial") {
        Some(if memmem::find(title, b"(Young)").is_some() {
            Collector::GenerationalShenandoah
        } else {
            Collector::Shenandoah
        })
    } else {
        None
    }
}

/// The cause in the last brackets of a title. Shenandoah and ZGC name parts of the heap and of the work there.
fn cause(title: &[u8]) -> Option<&[u8]> {
    let head = [
        &b"Pause Young ("[..],
        b"Pause Mixed (",
        b"Pause Initial Mark (",
        b"Pause Full (",
    ];
    if !head.iter().any(|head| title.starts_with(head)) {
        return None;
    }
    let (mut group, before) = last_group(title)?;
    if group.starts_with(b"Evacuation Failure") {
        group = last_group(before)?.0;
    }
    let sort: [&[u8]; 4] = [b"Normal", b"Mixed", b"Prepare Mixed", b"Concurrent Start"];
    (!sort.contains(&group)).then_some(group)
}

/// `(Evacuation Failure)` stands last from JDK 20 on, from 22 on with `: Allocation`, `: Pinned` or `: Allocation / Pinned`.
/// Regions that native code has pinned stay where they are by design; nothing failed.
fn evacuation_failed(title: &[u8]) -> bool {
    last_group(title)
        .and_then(|(group, _)| group.strip_prefix(b"Evacuation Failure"))
        .is_some_and(|why| why.is_empty() || memmem::find(why, b"Allocation").is_some())
}

/// What is in the last brackets, which may hold brackets, and what stands before them.
fn last_group(title: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = title.strip_suffix(b")")?;
    let mut depth = 1u32;
    for (at, byte) in inner.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[at + 1..], inner[..at].trim_ascii_end()));
        }
    }
    None
}

/// The stamp of the end, less the duration.
fn before(stamp: Stamp, duration_ns: u64) -> Stamp {
    Stamp {
        uptime_ns: stamp.uptime_ns.map(|end| end.saturating_sub(duration_ns)),
        wall_ns: stamp
            .wall_ns
            .map(|end| end.saturating_sub_unsigned(duration_ns)),
    }
}

/// `Concurrent ...`, also behind `Y: `; `Coalescing and filling`.
pub(super) fn beside(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    message: Message<'_>,
) -> Read {
    let z = matches!(
        unified.collector,
        Some(Collector::Z | Collector::GenerationalZ)
    );
    if z && (message.fine || memmem::find(message.text, b" (ZWorker").is_some()) {
        // What single workers did inside of a phase that is printed as a whole.
        return Read::Ignored;
    }
    let text = message.text.trim_ascii_end();
    if text == b"Concurrent Mark Abort" {
        unified.open.draft(context, id).aborted = true;
        return Read::Understood;
    }
    if text.starts_with(b"Concurrent mode failure")
        || text.starts_with(b"Concurrent mode interrupted")
    {
        return trouble(unified, text);
    }
    let line = Line::read(text);
    if line.is_damaged() {
        return Read::Damaged;
    }
    let stamp = unified.at(context, &message);
    let cycle = matches!(
        line.title,
        b"Concurrent Cycle" | b"Concurrent Mark Cycle" | b"Concurrent Undo Cycle"
    );
    let Some(duration) = line.duration_ns else {
        unified.open.tell(context);
        if cycle {
            unified.open.draft(context, id).cycle_began = Some(stamp);
        }
        return Read::Understood;
    };
    // `Concurrent Mark (7.245s, 7.312s) 66.512ms`: when it began and ended, by the uptime.
    let title = match last_group(line.title) {
        Some((group, before)) if group.first().is_some_and(u8::is_ascii_digit) => before,
        _ => line.title,
    };
    let aborted = unified.open.known(id).is_some_and(|draft| draft.aborted)
        && (cycle || title == b"Concurrent Mark");
    let mut areas = Areas::default();
    if let Some(heap) = line.heap {
        *areas.at(Area::Heap) = heap;
    }
    // ZGC's tables are of its cycles.
    let live = if unified.is_shenandoah() {
        let draft = unified.open.known(id);
        draft.and_then(|draft| draft.live(true, false))
    } else {
        None
    };
    let concurrent = Concurrent {
        line: context.line,
        began: before(stamp, duration),
        ended: Stamp::default(),
        id: Some(id),
        name: context.names.number(title),
        cycle,
        cause: None,
        duration_ns: Some(duration),
        cpu_ns: None,
        aborted,
        areas,
        promoted: None,
        allocated: None,
        live,
    };
    unified.open.concurrent(context, &concurrent);
    Read::Understood
}

/// Starts of the lines of whole cycles of ZGC.
const CYCLES: [&[u8]; 3] = [
    b"Garbage Collection (",
    b"Major Collection (",
    b"Minor Collection (",
];

/// A line of a whole cycle of ZGC.
pub(super) fn is_cycle(text: &[u8]) -> bool {
    CYCLES.iter().any(|start| text.starts_with(start))
}

/// `Major Collection (Proactive) 104M(10%)->36M(4%) 0.072s`; of a generation `Y: Young Generation ...`.
pub(super) fn cycle(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    message: Message<'_>,
) -> Read {
    let stamp = unified.at(context, &message);
    unified.has_begun = true;
    let whole = is_cycle(message.text);
    let generational = !message.text.starts_with(b"Garbage");
    unified.found(
        context,
        if generational {
            Collector::GenerationalZ
        } else {
            Collector::Z
        },
    );
    let text = message.text.trim_ascii_end();
    let (text, aborted) = match text.strip_suffix(b" Aborted") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let line = Line::read(text);
    if line.is_damaged() {
        return Read::Damaged;
    }
    unified.open.tell(context);
    let draft = unified.open.draft(context, id);
    if line.heap.is_none() && line.duration_ns.is_none() && !aborted {
        if whole {
            draft.cycle_began = Some(stamp);
        }
        draft.table = Areas::default();
        return Read::Understood;
    }
    let since = draft.cycle_began.filter(|_| whole);
    let mut areas = std::mem::take(&mut draft.table);
    let promoted = draft.promoted.take();
    // The old generation's own is what was promoted to it.
    let of_old = memmem::find(line.title, b"Old Generation").is_some();
    let allocated = draft.allocated.take().filter(|_| !of_old);
    let live = draft.live(whole, message.text.starts_with(b"Minor"));
    if let Some(heap) = line.heap {
        let heap_area = areas.at(Area::Heap);
        heap_area.before = heap.before;
        heap_area.after = heap.after;
    }
    // Up to JDK 20 the line has no duration; the stamps of its begin and end have.
    let between = since.and_then(|since| stamp.uptime_ns?.checked_sub(since.uptime_ns?));
    let duration_ns = line.duration_ns.or(between);
    let (began, ended) = match (since, duration_ns) {
        (Some(since), _) => (since, Stamp::default()),
        (None, Some(duration)) => (before(stamp, duration), Stamp::default()),
        (None, None) => (Stamp::default(), stamp),
    };
    let cause = last_group(line.title)
        .filter(|_| whole)
        .map(|(cause, _)| context.names.number(cause));
    let concurrent = Concurrent {
        line: context.line,
        began,
        ended,
        id: Some(id),
        name: context.names.number(line.title),
        cycle: whole,
        cause,
        duration_ns,
        cpu_ns: None,
        aborted,
        areas,
        promoted,
        allocated,
        live,
    };
    if !of_old && !unified.ages.bytes.is_empty() {
        context.tell(Event::Ages {
            line: context.line,
            at: stamp,
            ages: &unified.ages,
        });
        unified.ages.bytes.clear();
    }
    unified.open.concurrent(context, &concurrent);
    Read::Understood
}

/// Messages of the tag `gc` without a number: troubles, stalls, memory that is out.
pub(super) fn stall(
    unified: &mut Unified,
    context: &mut Context<'_>,
    message: Message<'_>,
) -> Read {
    let text = message.text.trim_ascii_end();
    if text.starts_with(b"Out Of Memory (") || text.starts_with(b"java.lang.OutOfMemoryError") {
        let at = unified.at(context, &message);
        let line = context.line;
        context.tell(Event::OutOfMemory { line, at });
        return Read::Understood;
    }
    if text.starts_with(b"Promotion failed") || text.starts_with(b"Concurrent mode ") {
        return trouble(unified, text);
    }
    if !text.starts_with(b"Allocation Stall (") {
        return Read::Unknown;
    }
    let line = Line::read(text);
    let Some(duration_ns) = line.duration_ns else {
        return if line.is_damaged() {
            Read::Damaged
        } else {
            Read::Ignored
        };
    };
    let at = unified.at(context, &message);
    let thread = last_group(line.title).map(|(thread, _)| context.names.number(thread));
    context.tell(Event::Stall {
        line: context.line,
        at,
        thread,
        duration_ns,
    });
    Read::Understood
}

/// A trouble of the pause that is under way.
fn trouble(unified: &mut Unified, text: &[u8]) -> Read {
    let Some(draft) = unified.open.stopped() else {
        return Read::Ignored;
    };
    let troubles = &mut draft.pause.troubles;
    if text.starts_with(b"Promotion failed") {
        troubles.promotion_failed = true;
    } else if text.starts_with(b"Concurrent mode failure") {
        troubles.concurrent_mode_failure = true;
    } else {
        troubles.concurrent_mode_interrupted = true;
    }
    Read::Understood
}

/// `Allocation pacing accrued:` of Shenandoah and its rows, `12 of  2248 ms (  0.5%): worker-3`, since the last
/// cycle. Sums and means of all threads are left out; other tables are not read.
pub(super) fn pacing(
    unified: &mut Unified,
    context: &mut Context<'_>,
    message: Message<'_>,
) -> Read {
    let text = message.text.trim_ascii();
    if text.starts_with(b"Allocation pacing accrued") {
        unified.pacing = true;
        return Read::Understood;
    }
    if !unified.pacing {
        return Read::Ignored;
    }
    let Some((value, thread)) = paced(text) else {
        unified.pacing = false;
        return Read::Ignored;
    };
    if thread.starts_with(b"<") || value == 0 {
        return Read::Ignored;
    }
    let at = unified.at(context, &message);
    let thread = Some(context.names.number(thread));
    context.tell(Event::Stall {
        line: context.line,
        at,
        thread,
        duration_ns: value,
    });
    Read::Understood
}

fn paced(text: &[u8]) -> Option<(u64, &[u8])> {
    let (value, rest) = decimal(text, MILLISECONDS)?;
    let rest = rest.strip_prefix(b" of ")?;
    let at = memchr(b':', rest)?;
    Some((value, rest[at + 1..].trim_ascii_start()))
}

/// Reports a fact.
pub(super) fn fact(context: &mut Context<'_>, fact: Fact<'_>) -> Read {
    context.tell(Event::Fact(fact));
    Read::Understood
}

#[cfg(test)]
mod tests {
    use super::super::parsed::{parsed, read};
    use super::*;

    #[test]
    fn titles_of_all_collectors_have_their_kind_and_cause() {
        for (title, expected, cause) in [
            (
                "Pause Young (Allocation Failure)",
                (Kind::Young, false),
                "Allocation Failure",
            ),
            (
                "Pause Young (Normal) (G1 Evacuation Pause)",
                (Kind::Young, false),
                "G1 Evacuation Pause",
            ),
            (
                "Pause Young (Concurrent Start) (G1 Humongous Allocation) (Evacuation Failure: Allocation)",
                (Kind::Young, true),
                "G1 Humongous Allocation",
            ),
            (
                "Pause Young (Prepare Mixed) (GCLocker Initiated GC)",
                (Kind::Young, false),
                "GCLocker Initiated GC",
            ),
            (
                "Pause Young (Mixed) (G1 Evacuation Pause)",
                (Kind::Mixed, false),
                "G1 Evacuation Pause",
            ),
            (
                "Pause Mixed (G1 Evacuation Pause)",
                (Kind::Mixed, false),
                "G1 Evacuation Pause",
            ),
            (
                "Pause Initial Mark (G1 Evacuation Pause)",
                (Kind::Young, true),
                "G1 Evacuation Pause",
            ),
            ("Pause Initial Mark", (Kind::Start, true), ""),
            (
                "Pause Full (System.gc())",
                (Kind::Full, false),
                "System.gc()",
            ),
            ("Pause Full", (Kind::Full, false), ""),
            (
                "Pause Degenerated GC (Outside of Cycle)",
                (Kind::Degenerated, false),
                "",
            ),
            ("Pause Init Mark (unload classes)", (Kind::Start, true), ""),
            ("Pause Final Mark (Young)", (Kind::Remark, false), ""),
            ("Pause Init Update Refs", (Kind::Other, false), ""),
            ("y: Pause Mark Start", (Kind::Start, true), ""),
            ("Y: Pause Mark Start (Major)", (Kind::Start, true), ""),
            ("O: Pause Mark End", (Kind::Remark, false), ""),
            ("Pause Relocate Start", (Kind::Other, false), ""),
            ("Pause Remark", (Kind::Remark, false), ""),
            ("Pause Cleanup", (Kind::Cleanup, false), ""),
        ] {
            assert_eq!(kind(title.as_bytes()), expected, "{title}");
            let found = super::cause(title.as_bytes()).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(found), cause, "{title}");
        }
    }

    #[test]
    fn a_degenerated_collection_that_becomes_a_full_one_is_a_full_one() {
        let parsed = parsed(
            "[1s][gc] Using Shenandoah\n\
             [1s][gc] Trigger: Handle Allocation Failure\n\
             [1s][gc,start] GC(1) Pause Degenerated GC (Evacuation)\n\
             [1s][gc] GC(1) Cannot finish degeneration, upgrading to Full GC\n\
             [1s][gc] GC(1) Pause Degenerated GC (Evacuation) 95M->29M(96M) 12.363ms\n\
             [2s][gc] GC(2) Pause Degenerated GC (Mark) 95M->29M(96M) 2.363ms\n\
             [3s][gc] GC(3) Degenerated GC upgrading to Full GC\n\
             [3s][gc] GC(3) Pause Degenerated GC (Mark) 95M->29M(96M) 9.363ms\n",
        );
        let kinds: Vec<_> = parsed.pauses.iter().map(|pause| pause.kind).collect();
        assert_eq!(kinds, [Kind::Full, Kind::Degenerated, Kind::Full]);
    }

    #[test]
    fn a_pause_began_its_duration_before_its_line() {
        let parsed = parsed(
            "[2026-11-21T11:37:58.674+0000][1.334s][gc] GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 65,253 ms\n",
        );
        let pause = &parsed.pauses[0];
        assert_eq!(pause.duration_ns, Some(65_253_000));
        assert_eq!(pause.began.uptime_ns, Some(1_268_747_000));
        assert_eq!(pause.began.wall_ns, Some(1_795_261_078_608_747_000));
        let heap = pause.areas.get(Area::Heap);
        assert_eq!(
            (heap.before, heap.after, heap.capacity),
            (Some(64 << 20), Some(23 << 20), Some(192 << 20))
        );
    }

    #[test]
    fn a_duration_that_is_none_makes_the_line_one_that_is_not_understood() {
        for duration in [
            "1.x5ms",
            "18446744073709551615.0ms",
            "9223372036854775.0ms",
            "-1.000ms",
            "1.5",
            "",
        ] {
            let log = format!(
                "[1s][gc] GC(0) Pause Young (Allocation Failure) 20M->1M(100M) {duration}\n\
                 [2s][gc] GC(1) Pause Young (Allocation Failure) 20M->1M(100M) 1.500ms\n"
            );
            let (parsed, account) = read(&log);
            let durations: Vec<_> = parsed.pauses.iter().map(|one| one.duration_ns).collect();
            assert_eq!(durations, [None, Some(1_500_000)], "{duration}");
            assert_eq!(parsed.titles()[0], parsed.titles()[1], "{duration}");
            assert_eq!(account.unknown.lines, 1, "{duration}");
            assert_eq!(account.samples[0].line, 1, "{duration}");
        }
        for line in [
            "Concurrent Mark 1.x5ms",
            "Garbage Collection (Warmup) 40M(10%)->20M(5%) 0.x7s",
            "Allocation Stall (main) 1.x5ms",
        ] {
            let log = format!("[1s][gc] GC(0) Pause Remark 1.000ms\n[2s][gc] GC(1) {line}\n");
            assert_eq!(read(&log).1.unknown.lines, 1, "{line}");
        }
    }

    #[test]
    fn troubles_are_those_of_the_pause_they_were_printed_in() {
        let parsed = parsed(
            "[1s][gc,start    ] GC(0) Pause Young (Allocation Failure)\n\
             [1s][gc,promotion] Promotion failed\n\
             [1s][gc          ] GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 1.000ms\n\
             [2s][gc          ] GC(1) To-space exhausted\n\
             [2s][gc          ] GC(1) Pause Young (Normal) (GCLocker Initiated GC) 64M->23M(192M) 1.000ms\n\
             [3s][gc          ] GC(2) Pause Young (Normal) (G1 Evacuation Pause) (Evacuation Failure: Allocation / Pinned) 6M->2M(9M) 1.000ms\n\
             [4s][gc          ] GC(3) Pause Young (Normal) (G1 Evacuation Pause) (Evacuation Failure: Pinned) 6M->2M(9M) 1.000ms\n\
             [5s][gc          ] GC(4) Pause Young (Normal) (G1 Evacuation Pause) (Evacuation Failure) 6M->2M(9M) 1.000ms\n",
        );
        let troubles: Vec<_> = parsed.pauses.iter().map(|pause| pause.troubles).collect();
        assert!(troubles[0].promotion_failed && !troubles[0].evacuation_failed);
        assert!(
            troubles[1].evacuation_failed && troubles[1].gc_locker && !troubles[1].promotion_failed
        );
        assert!(troubles[2].evacuation_failed && troubles[4].evacuation_failed);
        // Native code held an object in a region: it stays there, and nothing failed.
        assert_eq!(troubles[3], crate::event::Troubles::default());
        let cause = parsed.pauses[3].cause.map(|cause| parsed.name(cause));
        assert_eq!(cause, Some("G1 Evacuation Pause"));
    }

    #[test]
    fn a_cycle_that_was_given_up_says_so() {
        let parsed = parsed(
            "[1s][gc] GC(5) Concurrent Mark Cycle\n\
             [1s][gc,marking] GC(5) Concurrent Mark Abort\n\
             [1s][gc] GC(5) Concurrent Mark Cycle 27.000ms\n\
             [2s][gc] GC(6) Concurrent Mark (7.245s)\n\
             [2s][gc] GC(6) Concurrent Mark (7.245s, 7.312s) 66.512ms\n\
             [2s][gc] GC(6) Concurrent Mark Cycle 27.000ms\n",
        );
        let seen: Vec<_> = parsed
            .concurrent
            .iter()
            .map(|c| (parsed.name(c.name), c.cycle, c.aborted, c.duration_ns))
            .collect();
        assert_eq!(
            seen,
            [
                ("Concurrent Mark Cycle", true, true, Some(27_000_000)),
                ("Concurrent Mark", false, false, Some(66_512_000)),
                ("Concurrent Mark Cycle", true, false, Some(27_000_000)),
            ]
        );
    }

    #[test]
    fn a_cycle_without_a_duration_lasts_from_its_begin_to_its_end() {
        let parsed = parsed(
            "[1.930s][gc,start] GC(0) Garbage Collection (Warmup)\n\
             [1.947s][gc,phases] GC(0) Concurrent Mark 17.167ms\n\
             [1.977s][gc] GC(0) Garbage Collection (Warmup) 40M(10%)->20M(5%)\n",
        );
        let cycle = parsed.concurrent[1];
        assert_eq!(cycle.duration_ns, Some(47_000_000));
        assert_eq!(cycle.began.uptime_ns, Some(1_930_000_000));
        assert_eq!(cycle.cause.map(|cause| parsed.name(cause)), Some("Warmup"));
        assert_eq!(cycle.areas.get(Area::Heap).after, Some(20 << 20));
    }

    #[test]
    fn threads_that_waited_for_memory_are_named() {
        let parsed = parsed(
            "[7.7s][info][gc] Allocation Stall (Task Scheduler (1)-7) 12.345ms\n\
             [8.0s][info][gc,stats] Allocation pacing accrued:\n\
             [8.0s][info][gc,stats]      13 of  2248 ms (  0.5%): <total>\n\
             [8.0s][info][gc,stats]      13 of  2248 ms (  0.5%): worker-3\n\
             [8.0s][info][gc,stats]       0 of  2248 ms (  0.0%): worker-4\n",
        );
        assert_eq!(
            parsed.others,
            [
                "Some(\"Task Scheduler (1)-7\") 12345000",
                "Some(\"worker-3\") 13000000"
            ]
        );
    }

    #[test]
    fn memory_that_is_out_is_reported_once_per_thread_and_not_per_cause() {
        let (parsed, account) = read(
            "[9.1s] Out Of Memory (thread 8)\n\
             Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n\
             Caused by: java.lang.OutOfMemoryError: Java heap space\n",
        );
        assert_eq!(parsed.others.len(), 2, "{:?}", parsed.others);
        assert_eq!(account.unknown.lines, 1);
    }
}
