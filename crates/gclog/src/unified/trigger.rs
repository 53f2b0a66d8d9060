//! Why Shenandoah begins a cycle, which it says in a line of its own before it.
//! Source: `gc/shenandoah/heuristics/` and `gc/shenandoah/shenandoahController.cpp`.

use memchr::memmem;

use super::{Message, Unified};
use crate::account::Read;
use crate::context::Context;

const REQUEST: &[u8] = b" request (";

/// `Trigger: Free (45M) is below minimum threshold (60M)` of Shenandoah, or `Trigger (Young): ...`: why a cycle begins, to which
/// it gives no number.
pub(super) fn line(unified: &mut Unified, context: &mut Context<'_>, message: Message<'_>) -> Read {
    let text = message.text.trim_ascii();
    let words = text.strip_prefix(b"Trigger").and_then(|rest| {
        let at = memmem::find(rest, b": ")?;
        (at == 0 || rest.starts_with(b" (")).then_some(&rest[at + 2..])
    });
    // An application may print such a line too.
    let Some(words) = words.filter(|_| unified.is_shenandoah()) else {
        return Read::Unknown;
    };
    let cause = if let Some(at) = memmem::find(words, REQUEST) {
        // `Explicit GC request (System.gc())`, `GC request (...)`: as every collector names it.
        let inner = &words[at + REQUEST.len()..];
        inner.strip_suffix(b")").unwrap_or(inner)
    } else {
        // `Learning 2 of 5. Free (209M) is ...`: figures say nothing of the kind.
        let ends = |byte: &u8| matches!(byte, b'(' | b',' | b':') || byte.is_ascii_digit();
        let end = words.iter().position(ends).unwrap_or(words.len());
        match words[..end].trim_ascii_end() {
            b"Free" => b"Free below threshold",
            cause => cause,
        }
    };
    if !cause.is_empty() {
        unified.trigger = Some(context.names.number(cause));
    }
    Read::Understood
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parsed;

    #[test]
    fn a_trigger_of_shenandoah_is_the_cause_of_the_pause_that_begins_its_cycle() {
        let parsed = parsed(
            "[1s][gc] Using Shenandoah\n\
             [1s][gc] Trigger: Learning 1 of 5. Free (139M) is below initial threshold (140M)\n\
             [1s][gc] GC(0) Pause Init Mark (unload classes) 0.076ms\n\
             [1s][gc] GC(0) Pause Final Mark (unload classes) 0.147ms\n\
             [2s][gc] Trigger: Handle Allocation Failure\n\
             [2s][gc] GC(1) Pause Degenerated GC (Mark) 5.000ms\n\
             [3s][gc] Trigger (Global): GC request (System.gc())\n\
             [3s][gc] GC(2) Pause Init Mark 0.076ms\n\
             [4s][gc] GC(3) Pause Init Mark 0.076ms\n\
             [5s][gc] Trigger: Free (45M) is below minimum threshold (60M)\n\
             [5s][gc] GC(4) Pause Init Mark 0.076ms\n",
        );
        let causes: Vec<_> = parsed
            .pauses
            .iter()
            .map(|pause| pause.cause.map(|cause| parsed.name(cause)))
            .collect();
        assert_eq!(
            causes,
            [
                Some("Learning"),
                None,
                Some("Handle Allocation Failure"),
                Some("System.gc()"),
                None,
                Some("Free below threshold")
            ]
        );
    }
}
