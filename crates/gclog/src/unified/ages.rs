//! Age tables, tag `gc+age`: `Desired survivor size 2228224 bytes, new threshold 1 (max threshold 15)` and
//! `- age   1:    2089840 bytes,    2089840 total`. Source: `gc/shared/ageTable.cpp`. Generational Shenandoah prints
//! other lines under the same tag (`prev ... curr ... mortality`), which belong to no pause.

use super::Unified;
use crate::account::Read;
use crate::number::whole;
use crate::parser::Context;

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
    use super::super::told::told;
    use crate::event::Ages;

    #[test]
    fn a_table_belongs_to_the_pause_after_it() {
        let told = told(
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
        let ages: Vec<_> = told.pauses.into_iter().map(|pause| pause.ages).collect();
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
}
