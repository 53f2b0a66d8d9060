//! Sizes of G1's humongous objects: `gc+humongous=debug` lists those in the heap at each collection, and
//! `gc+ergo+ihop=debug` tells what was to be allocated when a cycle was asked for.

use memchr::memmem;

use super::{Message, Unified};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Event, humongous_request};
use crate::number::whole;

/// `Live humongous region 20 object size 1794400 start ...` of JDK 9 to 17, `Humongous region 20 (object size 1794400 @ ...`
/// of later ones, or a message that tells the size of an allocation.
pub(super) fn line(unified: &mut Unified, context: &mut Context<'_>, message: Message<'_>) -> Read {
    let text = message.text.trim_ascii_start();
    let (bytes, asked) = if is_object(text) {
        (object(text), false)
    } else {
        (humongous_request(text), true)
    };
    let Some(bytes) = bytes else {
        return Read::Unknown;
    };
    let at = unified.at(context, &message);
    context.tell(Event::Humongous {
        line: context.line,
        at,
        bytes,
        asked,
    });
    Read::Understood
}

/// The line of an object; `Humongous regions: 4->2` is of the heap.
pub(super) fn is_object(text: &[u8]) -> bool {
    [
        &b"Live humongous region "[..],
        b"Dead humongous region ",
        b"Humongous region ",
    ]
    .iter()
    .any(|start| text.starts_with(start))
}

fn object(text: &[u8]) -> Option<u64> {
    const SIZE: &[u8] = b"object size ";
    let at = memmem::find(text, SIZE)?;
    Some(whole(&text[at + SIZE.len()..])?.0)
}

#[cfg(test)]
mod tests {
    use super::super::parsed::read;

    #[test]
    fn sizes_are_reported_of_objects_and_of_allocations_under_any_decorations() {
        for (line, bytes, asked) in [
            (
                "GC(7) Live humongous region 20 object size 1794400 start 0x00000006c2800000  with remset 1 code roots 0 is marked 0 reclaim candidate 0 type array 1",
                1_794_400,
                false,
            ),
            (
                "GC(7) Dead humongous region 21 object size 1048592 start 0x00000006c2a00000 with remset 0 code roots 0 is marked 0 reclaim candidate 1 type array 1",
                1_048_592,
                false,
            ),
            (
                "GC(7) Humongous region 3 (object size 3145744 @ 0x00000000f0300000) remset 0 code roots 0 marked 0 pinned count 0 reclaim candidate 1 type array 1",
                3_145_744,
                false,
            ),
            (
                "Request concurrent cycle initiation (occupancy higher than threshold) occupancy: 120586240B allocation request: 3145744B threshold: 120795955B (45.00) source: concurrent humongous allocation",
                3_145_744,
                true,
            ),
            (
                "Attempt heap expansion (humongous allocation request failed). Allocation request: 3145744B",
                3_145_744,
                true,
            ),
        ] {
            let expected = format!("bytes: {bytes}, asked: {asked}");
            for decorations in [
                "",
                "[3.214s] ",
                "[3.214s][debug][gc,humongous] ",
                "[3.214s][debug][gc,ergo,ihop  ] ",
            ] {
                let (parsed, account) = read(&format!("[0.1s] Using G1\n{decorations}{line}\n"));
                assert_eq!(account.unknown.lines, 0, "{decorations}{line}");
                let found = parsed
                    .others
                    .iter()
                    .filter(|other| other.contains(&expected));
                assert_eq!(found.count(), 1, "{decorations}{line}: {:?}", parsed.others);
            }
        }
    }

    #[test]
    fn other_reasons_for_a_cycle_tell_no_size() {
        for line in [
            "[1.0s][debug][gc,ergo,ihop] Request concurrent cycle initiation (occupancy higher than threshold) occupancy: 9B allocation request: 0B threshold: 8B (45.00) source: end of GC",
            "[1.0s][debug][gc,humongous] GC(7) Humongous region 3 (object size",
            "[1.0s][info][gc,heap] GC(7) Humongous regions: 4->2",
        ] {
            let (parsed, account) = read(line);
            assert_eq!(account.unknown.lines, 0, "{line}");
            let found = parsed
                .others
                .iter()
                .any(|other| other.contains("Humongous"));
            assert!(!found, "{line}: {:?}", parsed.others);
        }
    }
}
