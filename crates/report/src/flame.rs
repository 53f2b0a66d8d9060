//! What every drawing of a flame graph needs: weights of frames in a tree, and weights as words.

use rungwise_model::profile::{FrameKind, Unit};
use rungwise_stacks::Cut;

use crate::numbers;

/// The weight of each node with all that it calls, of one group or of all; and the sum of all roots.
pub(crate) fn totals(tree: &Cut, group: Option<u32>) -> (Vec<u64>, u64) {
    let mut totals: Vec<u64> = tree
        .nodes
        .iter()
        .map(|node| own(&node.own, group))
        .collect();
    let parents = parents(tree);
    let mut all = 0_u64;
    for at in (0..totals.len()).rev() {
        let weight = totals[at];
        let into = match parents[at] {
            Some(parent) => &mut totals[parent],
            None => &mut all,
        };
        *into = into.saturating_add(weight);
    }
    (totals, all)
}

/// The weight of stacks that end in a node.
pub(crate) fn own(weights: &[(u32, u64)], group: Option<u32>) -> u64 {
    let of = weights
        .iter()
        .filter(|(of, _)| group.is_none_or(|group| group == *of));
    of.fold(0, |sum, (_, weight)| sum.saturating_add(*weight))
}

/// The caller of each node.
pub(crate) fn parents(tree: &Cut) -> Vec<Option<usize>> {
    let mut path: Vec<usize> = Vec::new();
    let mut parents = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        path.truncate(node.depth);
        parents.push(path.last().copied());
        path.push(at);
    }
    parents
}

/// A weight for people.
pub(crate) fn weight(weight: u64, unit: Unit) -> String {
    match unit {
        Unit::Samples | Unit::Count => numbers::count(weight),
        Unit::Ns => numbers::micros(weight as f64 / 1e3),
        Unit::Bytes => numbers::bytes(weight),
    }
}

/// A kind of code in words.
pub(crate) fn kind(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Native => "native or unknown",
        FrameKind::Java => "Java",
        FrameKind::Inlined => "inlined",
        FrameKind::Kernel => "kernel",
        FrameKind::Class => "class",
    }
}
