//! References that a concurrent collector found: tag `gc+ref`.
//!
//! ZGC to JDK 20: `Soft: 91 encountered, 0 discovered, 0 enqueued`; with generations a table, whose rows are `O: Soft
//! References:  3240  0  0`; Shenandoah: `Discovered  references: Soft: 0, Weak: 90, Final: 0, Phantom: 14`. Discovered
//! are those that the collector has to decide on, which is what the other collectors count.

use memchr::{memchr, memmem};

use crate::account::Read;
use crate::context::Context;
use crate::event::{Event, References};
use crate::number::whole;

/// Words of these lines, and the names of the kinds as the other collectors print them.
const KINDS: [(&[u8], &[u8]); 4] = [
    (b"Soft", b"SoftReference"),
    (b"Weak", b"WeakReference"),
    (b"Final", b"FinalReference"),
    (b"Phantom", b"PhantomReference"),
];
const DISCOVERED: &[u8] = b"Discovered ";

/// It may be such a line.
pub(super) fn is_part(text: &[u8]) -> bool {
    text.starts_with(DISCOVERED)
        || kind(text).is_some_and(|(_, rest)| {
            rest.starts_with(b": ") && rest.ends_with(b" enqueued")
                || rest.starts_with(b" References:")
        })
}

/// The kind with whose word the text begins, and what follows.
fn kind(text: &[u8]) -> Option<(&'static [u8], &[u8])> {
    KINDS
        .iter()
        .find_map(|(word, name)| Some((*name, text.strip_prefix(*word)?)))
}

/// Reads such a line.
pub(super) fn line(context: &mut Context<'_>, text: &[u8]) -> Read {
    let text = text.trim_ascii_end();
    if text.starts_with(DISCOVERED) {
        let Some(at) = memchr(b':', text) else {
            return Read::Unknown;
        };
        for part in text[at + 1..].split(|byte| *byte == b',') {
            let Some((name, rest)) = kind(part.trim_ascii_start()) else {
                return Read::Unknown;
            };
            let Some((count, [])) = rest.strip_prefix(b": ").and_then(whole) else {
                return Read::Unknown;
            };
            tell(context, name, count);
        }
        return Read::Understood;
    }
    let Some((name, rest)) = kind(text) else {
        return Read::Unknown;
    };
    let count = match rest.strip_prefix(b" References:") {
        // Encountered, discovered, enqueued.
        Some(columns) => {
            whole(columns.trim_ascii_start()).and_then(|(_, rest)| whole(rest.trim_ascii_start()))
        }
        None => memmem::find(rest, b", ").and_then(|at| whole(&rest[at + 2..])),
    };
    let Some((count, _)) = count else {
        return Read::Unknown;
    };
    tell(context, name, count);
    Read::Understood
}

fn tell(context: &mut Context<'_>, kind: &[u8], count: u64) {
    let references = References {
        kind: context.names.number(kind),
        count: Some(count),
        duration_ns: None,
    };
    context.tell(Event::References(references));
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parsed;

    #[test]
    fn all_three_forms_tell_those_that_were_discovered() {
        let parsed = parsed(
            "[1.976s][info][gc,ref      ] GC(0) Weak: 124 encountered, 106 discovered, 21 enqueued\n\
             [0.228s][info][gc,ref      ] GC(2) O:                       Encountered   Discovered     Enqueued \n\
             [0.228s][info][gc,ref      ] GC(2) O: Final References:              291            7            3 \n\
             [2.376s][info][gc,ref      ] GC(3) Encountered references: Soft: 36, Weak: 103, Final: 0, Phantom: 14\n\
             [2.376s][info][gc,ref      ] GC(3) Discovered  references: Soft: 1, Weak: 90, Final: 0, Phantom: 14\n\
             [2.376s][info][gc,ref      ] GC(3) Enqueued    references: Soft: 0, Weak: 19, Final: 0, Phantom: 13\n",
        );
        assert_eq!(
            parsed.others,
            [
                "WeakReference 106",
                "FinalReference 7",
                "SoftReference 1",
                "WeakReference 90",
                "FinalReference 0",
                "PhantomReference 14",
            ]
        );
    }
}
