//! What the parts of the heap held: `gc+heap` and `gc+metaspace`.
//!
//! - generations: `ParNew: 65536K->8192K(73728K)`, from JDK 16 on `DefNew: 34944K(39296K)->4352K(39296K) Eden: ...`;
//! - G1: `Eden regions: 14->0(10)`, counts that the size of a region makes bytes of;
//! - ZGC: tables whose columns are moments of a cycle.

use memchr::memmem;

use super::Unified;
use super::open::{Draft, Regions};
use crate::account::Read;
use crate::event::{Area, Areas, Change, Collector, Event, Fact};
use crate::number::{size, whole};
use crate::parser::Context;

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
        b"Archive regions" | b"Heap before GC invocations" | b"Heap after GC invocations" => {
            return Read::Ignored;
        }
        _ => return block(unified, context, text),
    };
    let Some((change, rest)) = change(rest) else {
        return if area == Area::Metaspace {
            Read::Ignored
        } else {
            Read::Unknown
        };
    };
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
        draft.table = Areas::default();
        draft.table.at(Area::Heap).capacity = columns[3];
    } else {
        let change = draft.table.at(draft.section.unwrap_or(Area::Heap));
        change.before = columns[0];
        change.after = columns[3];
    }
    Read::Understood
}
