//! A profile of a stranger: folded stacks, the output of `perf script`, or what calls itself so.

use rungwise_stacks::{Cut, Reader, Text, folded, hot, kept, read_folded, threads};

/// Whatever it holds: pieces of any length give the same, no weight is lost by a cut or in a document, and what is written reads back.
pub fn profile(bytes: &[u8]) {
    let whole = read(bytes, usize::MAX);
    let pieces = read(bytes, 7);
    let (Some(whole), Some(pieces)) = (&whole, &pieces) else {
        assert!(
            whole.is_none() && pieces.is_none(),
            "the format depends on the pieces"
        );
        return;
    };
    let stacks = &whole.stacks;
    let lines = folded(stacks);
    assert_eq!(lines, folded(&pieces.stacks));
    for most in [0, 100, usize::MAX] {
        let cut = Cut::to_size(stacks, most);
        let own = cut.nodes.iter().flat_map(|node| &node.own);
        let sum = own.fold(0_u64, |sum, (_, weight)| sum.saturating_add(*weight));
        assert_eq!(sum, stacks.total(), "a cut loses weight");
        assert_eq!(
            read_folded(&kept(stacks, most)).total(),
            stacks.total(),
            "a document loses weight"
        );
    }
    for frame in hot(stacks) {
        assert!(
            frame.own <= frame.total && frame.total <= stacks.total(),
            "more in a frame than below it"
        );
    }
    let of_threads = threads(stacks)
        .iter()
        .fold(0_u64, |sum, row| sum.saturating_add(row.weight));
    assert!(of_threads <= stacks.total(), "more in threads than in all");
}

fn read(bytes: &[u8], piece: usize) -> Option<Text> {
    let mut reader = Reader::default();
    for piece in bytes.chunks(piece) {
        reader.push(piece);
    }
    reader.finish().ok()
}
