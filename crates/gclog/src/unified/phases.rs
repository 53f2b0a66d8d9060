//! Phases of a pause, tag `gc+phases`, and references, tag `gc+phases+ref`.
//!
//! Four forms: G1's `  Evacuate Collection Set: 51.60ms`, of its workers `    Object Copy (ms):  Min:  1.9, Avg:  2.8,
//! ...`, of all others `Phase 1: Mark live objects 2.902ms`, and counts, which are no phases. G1 shows by spaces
//! what lies in what, others by the lines with which phases begin.

use memchr::{memchr, memmem, memrchr};

use super::decorations::Subject;
use super::{Message, Unified};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Phase, References};
use crate::number::{MILLISECONDS, decimal, whole};

/// Phases of a pause that are kept; G1 with all details prints some eighty.
const MOST: usize = 256;
/// Kinds of references.
const MOST_KINDS: usize = 8;

/// A phase begins.
pub(super) fn start(unified: &mut Unified, id: u64) -> Read {
    if let Some(draft) = unified.open.known(id) {
        draft.phases_open = draft.phases_open.saturating_add(1);
    }
    Read::Understood
}

/// A phase has ended.
pub(super) fn line(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    message: Message<'_>,
) -> Read {
    let text = message.text.trim_ascii_start();
    let spaces = message.text.len() - text.len();
    let Some((name, duration_ns)) = phase(text) else {
        return if message.subject == Subject::Phases || spaces > 1 {
            Read::Ignored
        } else {
            Read::Unknown
        };
    };
    let name = context.names.number(name);
    let draft = unified.open.draft(context, id);
    draft.phases_open = draft.phases_open.saturating_sub(1);
    if draft.pause.phases.len() < MOST {
        // G1's outermost are indented by two.
        let printed = (spaces / 2).saturating_sub(1).min(255) as u8;
        draft.pause.phases.push(Phase {
            name,
            depth: printed.max(draft.phases_open),
            duration_ns,
        });
    }
    Read::Understood
}

/// Name and duration; nothing for counts, times of day and what was skipped.
fn phase(text: &[u8]) -> Option<(&[u8], u64)> {
    if let Some(number) = text.strip_suffix(b"ms") {
        let number = number.trim_ascii_end();
        let start = memrchr(b' ', number)? + 1;
        let (value, rest) = decimal(&number[start..], MILLISECONDS)?;
        let name = number[..start].trim_ascii_end();
        let name = name.strip_suffix(b":").unwrap_or(name);
        return (rest.is_empty() && !name.is_empty()).then_some((name, value));
    }
    let colon = memchr(b':', text)?;
    let name = text[..colon].strip_suffix(b" (ms)")?;
    if name == b"GC Worker Start" || name == b"GC Worker End" {
        // Milliseconds since the JVM started.
        return None;
    }
    let rest = &text[colon + 1..];
    let mean = memmem::find(rest, b"Avg:")?;
    let (value, _) = decimal(rest[mean + 4..].trim_ascii_start(), MILLISECONDS)?;
    Some((name, value))
}

/// `SoftReference:`, then `Discovered: 7` and `Cleared: 0`.
pub(super) fn reference(
    unified: &mut Unified,
    context: &mut Context<'_>,
    id: u64,
    text: &[u8],
) -> Read {
    let text = text.trim_ascii();
    if let Some(kind) = text.strip_suffix(b":")
        && kind.ends_with(b"Reference")
    {
        let kind = context.names.number(kind);
        unified.open.draft(context, id).reference = Some(kind);
        return Read::Understood;
    }
    let Some((count, _)) = text.strip_prefix(b"Discovered: ").and_then(whole) else {
        return Read::Ignored;
    };
    let draft = unified.open.draft(context, id);
    let Some(kind) = draft.reference.take() else {
        return Read::Ignored;
    };
    let references = &mut draft.pause.references;
    if let Some(other) = references.iter_mut().find(|other| other.kind == kind) {
        other.count = other.count.and_then(|sum| sum.checked_add(count));
    } else if references.len() < MOST_KINDS {
        references.push(References {
            kind,
            count: Some(count),
            duration_ns: None,
        });
    }
    Read::Understood
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_all_forms_have_a_name_and_a_duration() {
        for (text, name, ns) in [
            (
                "Evacuate Collection Set: 51.60ms",
                "Evacuate Collection Set",
                51_600_000,
            ),
            (
                "Evacuate Collection Set: 2.3 ms",
                "Evacuate Collection Set",
                2_300_000,
            ),
            (
                "Phase 1: Mark live objects 2,902ms",
                "Phase 1: Mark live objects",
                2_902_000,
            ),
            (
                "Object Copy (ms):         Min:  1.9, Avg:  2.8, Max:  3.5, Diff:  1.6, Sum: 22.7, Workers: 8",
                "Object Copy",
                2_800_000,
            ),
        ] {
            assert_eq!(phase(text.as_bytes()), Some((name.as_bytes(), ns)));
        }
    }

    #[test]
    fn counts_are_no_phases() {
        for text in [
            "Scanned Cards:            Min: 0, Avg:  0.0, Max: 0, Diff: 0, Sum: 0, Workers: 8",
            "AOT Root Scanning (ms):   skipped",
            "GC Worker Start (ms):     Min: 10.1, Avg: 10.1, Max: 10.1, Diff:  0.0, Workers: 8",
            "Humongous Total: 88",
            "ms",
            "",
        ] {
            assert_eq!(phase(text.as_bytes()), None, "{text}");
        }
    }
}
