//! What the parts of the heap held: `gc+heap` and `gc+metaspace`.
//!
//! - generations: `ParNew: 65536K->8192K(73728K)`, from JDK 16 on `DefNew: 34944K(39296K)->4352K(39296K) Eden: ...`;
//! - G1: `Eden regions: 14->0(10)`, counts that the size of a region makes bytes of;
//! - ZGC: tables whose columns are moments of a cycle.

use memchr::memmem;

use super::Unified;
use super::open::{Draft, Regions};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Area, Areas, Change, Collector, Event, Fact};
use crate::number::{size, whole};

/// Reads a line of a part of the heap.
pub(super) fn line(unified: &mut Unified, context: &mut Context<'_>, id: u64, text: &[u8]) -> Read {
    let Some((name, rest)) = split(text) else {
        return Read::Unknown;
    };
    let area = match name {
        b"Eden regions" => return regions(unified, context, id, 0, rest),
        b"Survivor regions" => return regions(unified, context, id, 1, rest),
        b"Old regions" => return regions(unified, context, id, 2, rest),
        b"Humongous regions" => return regions(unified, context, id, 3, rest),
        b"ParNew" | b"DefNew" | b"PSYoungGen" => Area::Young,
        b"CMS" | b"Tenured" | b"ParOldGen" | b"PSOldGen" | b"Old" => Area::Old,
        b"Metaspace" => Area::Metaspace,
        b"Used" | b"Capacity" => return row(unified, context, id, name, rest),
        b"Live" => {
            // At the end of the mark, which is the first of its columns with a size.
            let draft = unified.open.draft(context, id);
            let of_old = draft.section == Some(Area::Old);
            draft.live[usize::from(of_old)] = last_sizes(rest, 1);
            return Read::Understood;
        }
        b"Promoted" => {
            unified.open.draft(context, id).promoted = last_sizes(rest, 2);
            return Read::Understood;
        }
        b"Reserve" => {
            unified.open.draft(context, id).counts_moved = true;
            return Read::Ignored;
        }
        b"Allocated" => {
            let draft = unified.open.draft(context, id);
            draft.allocated = last_sizes(rest, 3).filter(|_| !draft.counts_moved);
            return Read::Understood;
        }
        b"Archive regions" | b"Heap before GC invocations" | b"Heap after GC invocations" => {
            return Read::Ignored;
        }
        _ => return block(unified, context, text),
    };
    let Some((change, rest)) = change(rest) else {
        if area != Area::Metaspace {
            return Read::Unknown;
        }
        let Some(held) = held(rest) else {
            return Read::Ignored;
        };
        *unified.open.draft(context, id).table.at(area) = held;
        return Read::Understood;
    };
    if area == Area::Metaspace && unified.is_shenandoah() && unified.open.left(change) {
        return Read::Understood;
    }
    match name {
        b"ParNew" | b"CMS" => unified.found(context, Collector::Cms),
        b"PSYoungGen" | b"ParOldGen" => unified.found(context, Collector::Parallel),
        b"Tenured" => unified.found(context, Collector::Serial),
        b"Old" if unified.open.swept(id, change) => return Read::Understood,
        _ => {}
    }
    let areas = &mut unified.open.draft(context, id).pause.areas;
    *areas.at(area) = change;
    if area == Area::Young {
        for (label, part) in [(&b" Eden: "[..], Area::Eden), (b" From: ", Area::Survivor)] {
            if let Some(at) = memmem::find(rest, label)
                && let Some((change, _)) = self::change(&rest[at + label.len()..])
            {
                *areas.at(part) = change;
            }
        }
    }
    Read::Understood
}

/// `Name: ` or `Name=` of a row and what follows.
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let at = text
        .iter()
        .position(|byte| matches!(byte, b':' | b'=' | b'['))?;
    Some((&text[..at], text[at + 1..].trim_ascii_start()))
}

/// `65536K->8192K(73728K)` or `34944K(39296K)->4352K(39296K)`; the capacity is the one behind.
fn change(text: &[u8]) -> Option<(Change, &[u8])> {
    let (before, rest) = size(text)?;
    let (_, rest) = capacity(rest);
    let (after, rest) = size(rest.strip_prefix(b"->")?)?;
    let (capacity, rest) = capacity(rest);
    Some((
        Change {
            before: Some(before),
            after: Some(after),
            capacity,
        },
        rest,
    ))
}

fn capacity(text: &[u8]) -> (Option<u64>, &[u8]) {
    if let Some(inner) = text.strip_prefix(b"(")
        && let Some((value, rest)) = size(inner)
        && let Some(rest) = rest.strip_prefix(b")")
    {
        return (Some(value), rest);
    }
    (None, text)
}

/// ZGC: `5M used, 6M committed, 1088M reserved`, in JDK 11 with `5M capacity, ` between.
fn held(text: &[u8]) -> Option<Change> {
    let (used, rest) = size(text)?;
    let end = memmem::find(rest.strip_prefix(b" used, ")?, b" committed")? + " used, ".len();
    let start = memchr::memrchr(b' ', &rest[..end])? + 1;
    Some(Change {
        before: None,
        after: Some(used),
        capacity: size(&rest[start..end]).map(|(committed, _)| committed),
    })
}

/// Shenandoah prints metaspace when a cycle has ended, up to JDK 21 without its number.
pub(super) fn metaspace(unified: &mut Unified, text: &[u8]) -> Read {
    let sizes = text
        .strip_prefix(b"Metaspace: ")
        .filter(|_| unified.is_shenandoah());
    match sizes.and_then(change) {
        Some((change, _)) if unified.open.left(change) => Read::Understood,
        _ => Read::Unknown,
    }
}

/// `14->0(10)` of G1.
fn regions(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    sort: usize,
    text: &[u8],
) -> Read {
    let Some(counts) = counts(text) else {
        return Read::Unknown;
    };
    unified.found(context, Collector::G1);
    unified.open.draft(context, id).regions[sort] = Some(counts);
    Read::Understood
}

fn counts(text: &[u8]) -> Option<Regions> {
    let (before, rest) = whole(text)?;
    let (after, rest) = whole(rest.strip_prefix(b"->")?)?;
    let capacity = rest
        .strip_prefix(b"(")
        .and_then(|rest| whole(rest))
        .map(|(value, _)| value);
    Some(Regions {
        before,
        after,
        capacity,
    })
}

/// Makes bytes of the counts of regions, when the pause ends.
pub(super) fn settle(draft: &mut Draft, region_bytes: Option<u64>, heap: Option<Change>) {
    let regions = draft.regions;
    if regions.iter().all(Option::is_none) {
        return;
    }
    let Some(bytes) = region_bytes.or_else(|| inferred(&regions, heap?.before?)) else {
        return;
    };
    let areas = &mut draft.pause.areas;
    let sorts = [Area::Eden, Area::Survivor, Area::Old, Area::Humongous];
    for (area, counts) in sorts.into_iter().zip(regions) {
        if let Some(counts) = counts {
            *areas.at(area) = Change {
                before: counts.before.checked_mul(bytes),
                after: counts.after.checked_mul(bytes),
                capacity: counts.capacity.and_then(|count| count.checked_mul(bytes)),
            };
        }
    }
    if let [Some(eden), Some(survivor), ..] = regions {
        let sum = |one: u64, other: u64| one.checked_add(other)?.checked_mul(bytes);
        *areas.at(Area::Young) = Change {
            before: sum(eden.before, survivor.before),
            after: sum(eden.after, survivor.after),
            capacity: None,
        };
    }
}

/// The size of a region in a log whose header is gone. It is a power of two from 1 MiB to 512 MiB, and regions are
/// filled but for their ends: with enough of them only one power lies just above the mean.
fn inferred(regions: &[Option<Regions>; 4], used: u64) -> Option<u64> {
    /// Fewer say little about the mean.
    const ENOUGH: u64 = 8;
    let count = regions
        .iter()
        .flatten()
        .try_fold(0u64, |sum, counts| sum.checked_add(counts.before))?;
    if count < ENOUGH {
        return None;
    }
    let mean = used / count;
    let size = mean.checked_next_power_of_two()?.max(1 << 20);
    (size <= 512 << 20 && mean > size / 8 * 5).then_some(size)
}

/// Rows of `Heap before GC` blocks: only the size of a region is taken, `region size 1024K, 5 young (5120K), ...`.
pub(super) fn block(unified: &mut Unified, context: &mut Context<'_>, text: &[u8]) -> Read {
    let text = text.trim_ascii_start();
    if let Some(rest) = text.strip_prefix(b"region size ") {
        if let Some((bytes, _)) = size(rest) {
            return region(unified, context, bytes);
        }
        return Read::Unknown;
    }
    if super::noise::is_row(text) {
        return Read::Ignored;
    }
    Read::Unknown
}

/// The size of a region was printed.
pub(super) fn region(unified: &mut Unified, context: &mut Context<'_>, bytes: u64) -> Read {
    unified.fresh_region_bytes = Some(bytes);
    if unified.region_bytes != Some(bytes) {
        unified.region_bytes = Some(bytes);
        context.tell(Event::Fact(Fact::RegionSize(bytes)));
    }
    Read::Understood
}

/// Heads of the tables of generational ZGC; nothing else that begins like them.
pub(super) fn section(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    text: &[u8],
) -> Read {
    let area = if text.starts_with(b"Young Generation Statistics") {
        Area::Young
    } else if text.starts_with(b"Old Generation Statistics") {
        Area::Old
    } else {
        return Read::Unknown;
    };
    unified.open.draft(context, id).section = Some(area);
    Read::Understood
}

/// A row of ZGC: at mark start, mark end, relocate start, relocate end, then highest and lowest. The first table of a
/// generation is of the heap; only it has a row of capacities, which comes first.
fn row(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    name: &[u8],
    text: &[u8],
) -> Read {
    let mut columns = [None; 4];
    let mut rest = text;
    for column in &mut columns {
        let Some((value, after)) = size(rest.trim_ascii_start()) else {
            return Read::Ignored;
        };
        *column = Some(value);
        let Some(at) = memchr::memchr(b')', after) else {
            return Read::Ignored;
        };
        rest = &after[at + 1..];
    }
    let draft = unified.open.draft(context, id);
    if name == b"Capacity" {
        draft.section = None;
        // Metaspace has been printed before it.
        let metaspace = draft.table.get(Area::Metaspace);
        draft.table = Areas::default();
        *draft.table.at(Area::Metaspace) = metaspace;
        draft.table.at(Area::Heap).capacity = columns[3];
    } else {
        let change = draft.table.at(draft.section.unwrap_or(Area::Heap));
        change.before = columns[0];
        change.after = columns[3];
    }
    Read::Understood
}

/// `Pacer for Mark. Expected Live: 101010K, Free: 12800K, ...`: the mean of what Shenandoah's last marks found alive
/// (`shenandoahPacer.cpp`, `setup_for_mark`); before the first one a tenth of the heap, which says nothing.
pub(super) fn pacer(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    text: &[u8],
) -> Read {
    let Some(live) = text.strip_prefix(b"Pacer for Mark. Expected Live: ") else {
        return Read::Ignored;
    };
    // Of generations it is the young one alone.
    let whole = unified.collector != Some(Collector::GenerationalShenandoah);
    if id > 0 && whole {
        unified.open.draft(context, id).live[0] = size(live).map(|(bytes, _)| bytes);
    }
    Read::Understood
}

/// The last of so many columns with a size, `-   42M (22%)   74M (39%)   101M (53%)   -   -`: what had come together since
/// the mark start when relocation ended.
fn last_sizes(text: &[u8], columns: usize) -> Option<u64> {
    let mut rest = text;
    let mut last = None;
    for _ in 0..columns {
        let start = rest.iter().position(u8::is_ascii_digit)?;
        let (value, after) = size(&rest[start..])?;
        rest = &after[memchr::memchr(b')', after)? + 1..];
        last = Some(value);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parsed;
    use super::*;

    fn area(pause: &crate::event::Pause, area: Area) -> (Option<u64>, Option<u64>, Option<u64>) {
        let change = pause.areas.get(area);
        (change.before, change.after, change.capacity)
    }

    #[test]
    fn generations_of_both_forms_are_read_and_what_was_promoted_is_exact() {
        let parsed = parsed(
            "[1s][gc,heap] GC(0) ParNew: 65536K->8192K(73728K)\n\
             [1s][gc,heap] GC(0) CMS: 100K->15362K(122880K)\n\
             [1s][gc,metaspace] GC(0) Metaspace: 5081K->5080K(1056768K)\n\
             [1s][gc] GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n\
             [2s][gc,heap] GC(1) DefNew: 34944K(39296K)->4352K(39297K) Eden: 34944K(34945K)->0K(34946K) From: 1K(4352K)->4352K(4353K)\n\
             [2s][gc,heap] GC(1) Tenured: 0K(87424K)->12242K(87425K)\n\
             [2s][gc,metaspace] GC(1) Metaspace: 546K(704K)->547K(705K) NonClass: 498K(576K)->498K(576K) Class: 48K(128K)->48K(128K)\n\
             [2s][gc] GC(1) Pause Young (Allocation Failure) 34M->16M(123M) 26.529ms\n",
        );
        let [first, second] = &parsed.pauses[..] else {
            panic!("{:?}", parsed.titles());
        };
        let k = |count: u64| Some(count << 10);
        assert_eq!(area(first, Area::Young), (k(65536), k(8192), k(73728)));
        assert_eq!(area(first, Area::Old), (k(100), k(15362), k(122_880)));
        assert_eq!(
            area(first, Area::Metaspace),
            (k(5081), k(5080), k(1_056_768))
        );
        assert_eq!(first.promoted, k(15262));
        assert_eq!(area(second, Area::Young), (k(34944), k(4352), k(39297)));
        assert_eq!(area(second, Area::Eden), (k(34944), k(0), k(34946)));
        assert_eq!(area(second, Area::Survivor), (k(1), k(4352), k(4353)));
        assert_eq!(area(second, Area::Metaspace), (k(546), k(547), k(705)));
        assert_eq!(second.promoted, k(12242));
    }

    const REGIONS: &str = "[1s][gc,heap] GC(0) Eden regions: 14->0(10)\n\
                           [1s][gc,heap] GC(0) Survivor regions: 0->2(2)\n\
                           [1s][gc,heap] GC(0) Old regions: 2->7\n\
                           [1s][gc,heap] GC(0) Archive regions: 2->2\n\
                           [1s][gc,heap] GC(0) Humongous regions: 52->0\n";

    #[test]
    fn regions_are_bytes_where_the_header_tells_their_size() {
        let parsed = parsed(&format!(
            "[0.4s][gc,init] Heap Region Size: 4M\n{REGIONS}\
             [1s][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 267M->28M(1024M) 55.764ms\n"
        ));
        let m = |count: u64| Some(count << 20);
        let pause = &parsed.pauses[0];
        assert_eq!(area(pause, Area::Eden), (m(56), m(0), m(40)));
        assert_eq!(area(pause, Area::Young), (m(56), m(8), None));
        assert_eq!(area(pause, Area::Old), (m(8), m(28), None));
        assert_eq!(area(pause, Area::Humongous), (m(208), m(0), None));
        assert_eq!(pause.promoted, None);
        assert!(parsed.others.contains(&"RegionSize(4194304)".to_owned()));
    }

    #[test]
    fn without_a_header_the_size_of_a_region_follows_from_what_they_hold() {
        let before = |heap: &str| {
            let parsed = parsed(&format!(
                "{REGIONS}[1s][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) {heap}->28M(1024M) 55.764ms\n"
            ));
            parsed.pauses[0].areas.get(Area::Eden).before
        };
        // 68 regions.
        assert_eq!(before("260M"), Some(56 << 20));
        assert_eq!(before("130M"), Some(28 << 20));
        assert_eq!(before("60M"), Some(14 << 20));
        // Half empty: 1 or 2 MiB might both be.
        assert_eq!(before("80M"), None);
    }

    #[test]
    fn tables_of_zgc_give_the_heap_and_the_generation() {
        let parsed = parsed(
            "[1s][gc,heap] GC(0) Y: Heap Statistics:\n\
             [1s][gc,heap] GC(0) Y:                Mark Start          Mark End        Relocate Start      Relocate End           High               Low      \n\
             [1s][gc,heap] GC(0) Y:  Capacity:      300M (100%)        300M (100%)        300M (100%)        301M (100%)        300M (100%)        300M (100%)\n\
             [1s][gc,heap] GC(0) Y:      Used:       14M (5%)           16M (5%)           16M (5%)           12M (4%)           18M (6%)           12M (4%)  \n\
             [1s][gc,heap] GC(0) Y: Young Generation Statistics:\n\
             [1s][gc,heap] GC(0) Y:      Used:       13M (5%)           16M (5%)           16M (5%)            4M (1%)     \n\
             [1s][gc,heap] GC(0) Y:      Live:         -                 4M (1%)            4M (1%)            0M (0%)     \n\
             [1s][gc,heap] GC(0) Y: Allocated:         -                42M (22%)          74M (39%)         101M (53%)            -                  -          \n\
             [1s][gc,heap] GC(0) Y:  Promoted:         -                  -                 0M (0%)            8M (3%)     \n\
             [1s][gc,phases] GC(0) Y: Young Generation (Promote All) 14M(5%)->12M(4%) 0.072s\n",
        );
        let young = parsed.concurrent[0];
        assert_eq!(parsed.name(young.name), "Y: Young Generation (Promote All)");
        assert_eq!((young.cycle, young.duration_ns), (false, Some(72_000_000)));
        let (heap, part) = (young.areas.get(Area::Heap), young.areas.get(Area::Young));
        assert_eq!(
            (heap.before, heap.after, heap.capacity),
            (Some(14 << 20), Some(12 << 20), Some(301 << 20))
        );
        assert_eq!((part.before, part.after), (Some(13 << 20), Some(4 << 20)));
        assert_eq!(
            (young.promoted, young.allocated),
            (Some(8 << 20), Some(101 << 20))
        );
    }

    #[test]
    fn what_marks_found_alive_goes_to_their_cycles() {
        let live = |log: &str| -> Vec<Option<u64>> {
            let parsed = parsed(log);
            parsed.concurrent.iter().map(|cycle| cycle.live).collect()
        };
        let m = |count: u64| Some(count << 20);
        assert_eq!(
            live(
                "[1s][gc,heap] GC(0)  Capacity:      160M (100%)        160M (100%)        160M (100%)        160M (100%)\n\
                 [1s][gc,heap] GC(0)      Live:         -               101M (63%)         101M (63%)         101M (63%)            -                  -\n\
                 [1s][gc] GC(0) Garbage Collection (Allocation Stall) 160M(100%)->136M(85%)\n"
            ),
            [m(101)]
        );
        // Of generations both parts; a minor collection looks at the young one alone.
        assert_eq!(
            live(
                "[1s][gc,heap] GC(1) Y: Young Generation Statistics:\n\
                 [1s][gc,heap] GC(1) Y:      Live:         -                 4M (1%)            4M (1%)            4M (1%)\n\
                 [1s][gc,heap] GC(1) O: Old Generation Statistics:\n\
                 [1s][gc,heap] GC(1) O:      Live:         -                14M (5%)           14M (5%)           14M (5%)\n\
                 [1s][gc] GC(1) Major Collection (Proactive) 162M(54%)->62M(21%) 1.339s\n\
                 [2s][gc,heap] GC(2) y: Young Generation Statistics:\n\
                 [2s][gc,heap] GC(2) y:      Live:         -                 3M (1%)            3M (1%)            3M (1%)\n\
                 [2s][gc] GC(2) Minor Collection (Allocation Rate) 162M(54%)->62M(21%) 0.339s\n"
            ),
            [m(18), None]
        );
        // Shenandoah prints it when the next mark begins, and a tenth of the heap before the first one.
        let shenandoah = |mode: &str| {
            live(&format!(
                "[0s][gc,init] Using Shenandoah\n{mode}\
                 [1s][gc,ergo] GC(0) Pacer for Mark. Expected Live: 16384K, Free: 110M, Non-Taxable: 11264K, Alloc Tax Rate: 0.2x\n\
                 [1s][gc] GC(0) Concurrent cleanup 105M->105M(200M) 0.039ms\n\
                 [2s][gc,ergo] GC(1) Pacer for Mark. Expected Live: 40M, Free: 110M, Non-Taxable: 11264K, Alloc Tax Rate: 0.2x\n\
                 [2s][gc] GC(1) Concurrent cleanup 105M->105M(200M) 0.039ms\n\
                 [2s][gc] GC(1) Concurrent cleanup 105M->90M(200M) 0.039ms\n"
            ))
        };
        assert_eq!(shenandoah(""), [None, m(40), None]);
        assert_eq!(shenandoah("[0s][gc,init] Mode: Generational\n"), [None; 3]);
    }

    #[test]
    fn metaspace_of_zgc_and_shenandoah_goes_to_their_cycles() {
        let of = |change: Change| (change.before, change.after, change.capacity);
        let m = |count: u64| Some(count << 20);
        let zgc = parsed(
            "[1s][gc,metaspace] GC(0) Metaspace: 4M used, 5M capacity, 6M committed, 8M reserved\n\
             [1s][gc,heap] GC(0)  Capacity:      300M (100%)        300M (100%)        300M (100%)        300M (100%)\n\
             [1s][gc] GC(0) Garbage Collection (Warmup) 14M(5%)->12M(4%)\n\
             [2s][gc] GC(1) Garbage Collection (Proactive)\n\
             [2s][gc,metaspace] GC(1) Metaspace: 7M used, 9M committed, 1088M reserved\n\
             [2s][gc] GC(1) Garbage Collection (Proactive) 14M(5%)->12M(4%)\n",
        );
        let metaspace: Vec<_> = zgc
            .concurrent
            .iter()
            .map(|cycle| of(cycle.areas.get(Area::Metaspace)))
            .collect();
        assert_eq!(metaspace, [(None, m(4), m(6)), (None, m(7), m(9))]);
        let shenandoah = parsed(
            "[1s][gc] Using Shenandoah\n\
             [1s][gc] GC(0) Pause Final Update Refs 0.054ms\n\
             [1s][gc,metaspace] Metaspace: 1024K->2048K(4096K) NonClass: 490K(576K)->491K(576K)\n\
             [2s][gc] GC(1) Concurrent cleanup 105M->105M(200M) 0.039ms\n\
             [2s][gc,metaspace] GC(1) Metaspace: 2048K(4096K)->3072K(5120K) NonClass: 1K(2K)->1K(2K)\n",
        );
        let pause = of(shenandoah.pauses[0].areas.get(Area::Metaspace));
        let cycle = of(shenandoah.concurrent[0].areas.get(Area::Metaspace));
        assert_eq!(pause, (m(1), m(2), m(4)));
        assert_eq!(cycle, (m(2), m(3), m(5)));
    }
}
