//! Age tables, tag `gc+age`: `Desired survivor size 2228224 bytes, new threshold 1 (max threshold 15)` and
//! `- age   1:    2089840 bytes,    2089840 total`. Source: `gc/shared/ageTable.cpp`. Generational Shenandoah prints
//! other lines under the same tag (`prev ... curr ... mortality`), which belong to no pause.

use super::Unified;
use crate::account::Read;
use crate::context::Context;
use crate::number::{size, whole};

/// Ages that are kept; HotSpot counts to 15 (`markWord::max_age`).
const MOST: usize = 64;

/// A line of a table begins like this.
pub(super) fn is_part(text: &[u8]) -> bool {
    text.starts_with(b"- age ")
        || text.starts_with(b"Desired survivor size ")
        || text.starts_with(b"Age table")
}

/// Reads a line of a table.
pub(super) fn line(unified: &mut Unified, context: &mut Context<'_>, id: u64, text: &[u8]) -> Read {
    if let Some(rest) = text.strip_prefix(b"- age ") {
        let Some((age, bytes)) = age(rest) else {
            return Read::Ignored;
        };
        let draft = unified.open.draft(context, id);
        let place = draft.ages.bytes.len() as u64 + 1;
        if age != place || draft.ages.bytes.len() >= MOST {
            // An age that is out of order comes from a damaged line.
            return Read::Ignored;
        }
        draft.ages.bytes.push(bytes);
        draft.has_ages = true;
        return Read::Understood;
    }
    if let Some(rest) = text.strip_prefix(b"Desired survivor size ") {
        let Some((desired, threshold, max)) = desired(rest) else {
            return Read::Unknown;
        };
        let draft = unified.open.draft(context, id);
        draft.ages.desired = Some(desired);
        draft.ages.threshold = u32::try_from(threshold).ok();
        draft.ages.max = Some(max);
        draft.has_ages = true;
    }
    Read::Understood
}

/// Generational ZGC: `Using tenuring threshold: 1 (Computed)`, `Age Table:`, then `Eden   4M (1%)   9M (3%)  ...` and `Survivor
/// 1  40M (2%) ...`: what lives and what does not of each age, before this collection. What lives of Eden has age 1 after it; what
/// has the threshold before it goes to the old generation, and so has the age above it in these terms. Nothing for other lines.
pub(super) fn beside(unified: &mut Unified, text: &[u8]) -> Option<Read> {
    let ages = &mut unified.ages;
    if let Some(rest) = text.strip_prefix(b"Using tenuring threshold: ") {
        let (threshold, _) = whole(rest)?;
        ages.bytes.clear();
        ages.threshold = u32::try_from(threshold + 1).ok();
        return Some(Read::Understood);
    }
    let (age, rest) = match text.strip_prefix(b"Survivor ") {
        Some(rest) => whole(rest)?,
        None => (0, text.strip_prefix(b"Eden ")?),
    };
    let (lives, _) = size(rest.trim_ascii_start())?;
    let place = usize::try_from(age).ok().filter(|age| *age < MOST)?;
    ages.bytes.resize(place, 0);
    ages.bytes.push(lives);
    Some(Read::Understood)
}

/// `  1:    2089840 bytes, ...`
fn age(text: &[u8]) -> Option<(u64, u64)> {
    let (age, rest) = whole(text.trim_ascii_start())?;
    let (bytes, rest) = whole(rest.strip_prefix(b":")?.trim_ascii_start())?;
    rest.starts_with(b" bytes").then_some((age, bytes))
}

/// `2228224 bytes, new threshold 1 (max threshold 15)`
fn desired(text: &[u8]) -> Option<(u64, u64, u64)> {
    let (desired, rest) = whole(text)?;
    let (threshold, rest) = whole(rest.strip_prefix(b" bytes, new threshold ")?)?;
    let (max, _) = whole(rest.strip_prefix(b" (max threshold ")?)?;
    Some((desired, threshold, max))
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parsed;
    use crate::event::Ages;

    #[test]
    fn a_table_belongs_to_the_pause_after_it() {
        let parsed = parsed(
            "[1s][gc,age] GC(0) Desired survivor size 4194304 bytes, new threshold 1 (max threshold 6)\n\
             [1s][gc,age] GC(0) Age table with threshold 1 (max threshold 6)\n\
             [1s][gc,age] GC(0) - age   1:    8135336 bytes,    8135336 total\n\
             [1s][gc,age] GC(0) - age   2:        100 bytes,    8135436 total\n\
             [1s][gc] GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n\
             [2s][gc] GC(1) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n\
             [3s][gc,age] GC(2) Age table:\n\
             [3s][gc,age] GC(2) - age   1:          7 bytes,          7 total\n\
             [3s][gc] GC(2) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n",
        );
        let ages: Vec<_> = parsed.pauses.into_iter().map(|pause| pause.ages).collect();
        let first = Ages {
            desired: Some(4_194_304),
            threshold: Some(1),
            max: Some(6),
            bytes: vec![8_135_336, 100],
        };
        let last = Ages {
            bytes: vec![7],
            ..Ages::default()
        };
        assert_eq!(ages, [Some(first), None, Some(last)]);
    }

    #[test]
    fn a_table_of_zgc_is_reported_when_its_young_collection_ends() {
        let parsed = parsed(
            "[1s][gc,reloc ] GC(0) Y: Using tenuring threshold: 2 (Computed)\n\
             [1s][gc,reloc ] GC(0) Y: Age Table:\n\
             [1s][gc,reloc ] GC(0) Y:                    Live             Garbage             Small\n\
             [1s][gc,reloc ] GC(0) Y: Eden               4M (1%)            9M (3%)           7 / 4\n\
             [1s][gc,reloc ] GC(0) Y: Survivor 1         2M (1%)            1M (0%)           1 / 1\n\
             [1s][gc,phases] GC(0) Y: Young Generation 14M(5%)->12M(4%) 0.072s\n\
             [1s][gc,phases] GC(0) O: Old Generation 14M(5%)->12M(4%) 0.072s\n",
        );
        let tables: Vec<_> = parsed
            .others
            .iter()
            .filter(|event| event.starts_with("Ages"))
            .collect();
        let [table] = &tables[..] else {
            panic!("{tables:?}");
        };
        assert!(table.contains("threshold: Some(3)"), "{table}");
        assert!(table.contains("bytes: [4194304, 2097152]"), "{table}");
    }
}
