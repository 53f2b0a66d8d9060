//! What stacks add up to: by frame, by thread, by kind of code.

use std::collections::BTreeMap;

use rungwise_model::profile::FrameKind;

use crate::frame::pattern;
use crate::stacks::{NO_THREAD, ROOT, Stacks};

/// A frame by its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Its name.
    pub frame: String,
    /// Its kind.
    pub kind: FrameKind,
    /// Weight of stacks that end in it.
    pub own: u64,
    /// Weight of stacks that contain it, once each.
    pub total: u64,
}

/// Threads whose names differ by numbers only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Their name, with `*` for numbers that differ.
    pub name: String,
    /// How many.
    pub threads: u64,
    /// Their weight.
    pub weight: u64,
    /// The frame with most weight of its own.
    pub hottest: Option<String>,
}

/// Every frame, by its own weight and then by its total, most first.
pub fn hot(stacks: &Stacks) -> Vec<Hot> {
    let (own, total) = stacks.weights();
    let frames = stacks.frames();
    let mut sums = vec![(0_u64, 0_u64); frames.len()];
    // How often each frame is on the path to the node: recursion counts once.
    let mut on_path = vec![0_u32; frames.len()];
    let mut path: Vec<u32> = Vec::new();
    stacks.walk(|node, depth| {
        for frame in path.drain(depth..) {
            on_path[frame as usize] -= 1;
        }
        let frame = stacks.nodes()[node as usize].frame;
        let sum = &mut sums[frame as usize];
        sum.0 = sum.0.saturating_add(own[node as usize]);
        if on_path[frame as usize] == 0 {
            sum.1 = sum.1.saturating_add(total[node as usize]);
        }
        on_path[frame as usize] += 1;
        path.push(frame);
        true
    });
    let mut hot: Vec<Hot> = frames
        .iter()
        .zip(sums)
        .map(|(frame, (own, total))| Hot {
            frame: frame.name.clone(),
            kind: frame.kind,
            own,
            total,
        })
        .collect();
    hot.sort_unstable_by(|a, b| {
        (b.own, b.total)
            .cmp(&(a.own, a.total))
            .then_with(|| a.frame.cmp(&b.frame))
    });
    hot
}

/// The weight of stacks by the kind of their innermost frame, most first. A class stands for the code that allocates or waits for it.
pub fn by_kind(stacks: &Stacks) -> Vec<(FrameKind, u64)> {
    let mut kinds: BTreeMap<FrameKind, u64> = BTreeMap::new();
    for (mut node, _, weight) in stacks.ends() {
        while node != ROOT && stacks.frame_of(node).kind == FrameKind::Class {
            node = stacks.nodes()[node as usize].parent;
        }
        if node != ROOT {
            let sum = kinds.entry(stacks.frame_of(node).kind).or_default();
            *sum = sum.saturating_add(weight);
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    kinds
}

/// The name of each thread's group: its own where it is alone.
pub(crate) fn group_names(stacks: &Stacks) -> Vec<String> {
    let threads = stacks.threads();
    let patterns: Vec<String> = threads.iter().map(|thread| pattern(&thread.name)).collect();
    let mut firsts: BTreeMap<&str, (&str, bool)> = BTreeMap::new();
    for (thread, pattern) in threads.iter().zip(&patterns) {
        let (first, differ) = firsts.entry(pattern).or_insert((&thread.name, false));
        *differ |= *first != thread.name;
    }
    let name = |pattern: &String| match firsts[pattern.as_str()] {
        (_, true) => pattern.clone(),
        (only, false) => only.to_owned(),
    };
    patterns.iter().map(name).collect()
}

/// Threads by their weight, most first.
pub fn threads(stacks: &Stacks) -> Vec<Threads> {
    let names = group_names(stacks);
    let mut groups: BTreeMap<&str, (Threads, BTreeMap<u32, u64>)> = BTreeMap::new();
    for name in &names {
        groups.entry(name).or_default().0.threads += 1;
    }
    for (node, thread, weight) in stacks.ends() {
        if thread == NO_THREAD {
            continue;
        }
        let Some((group, frames)) = groups.get_mut(names[thread as usize].as_str()) else {
            continue;
        };
        group.weight = group.weight.saturating_add(weight);
        if node != ROOT {
            let own = frames
                .entry(stacks.nodes()[node as usize].frame)
                .or_default();
            *own = own.saturating_add(weight);
        }
    }
    let mut threads: Vec<Threads> = groups
        .into_iter()
        .map(|(name, (group, frames))| {
            let hottest = frames
                .iter()
                .max_by_key(|(frame, own)| (**own, std::cmp::Reverse(**frame)));
            Threads {
                name: name.to_owned(),
                hottest: hottest.map(|(frame, _)| stacks.frames()[*frame as usize].name.clone()),
                ..group
            }
        })
        .collect();
    threads.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folded::add;

    fn of(lines: &[&str]) -> Stacks {
        let mut stacks = Stacks::default();
        for line in lines {
            assert!(add(line, &mut stacks), "{line}");
        }
        stacks
    }

    #[test]
    fn recursion_counts_once_in_a_total() {
        let hot = hot(&of(&["a;b;a;c 5", "a;d 3", "b;c 2"]));
        let row = |frame: &str| {
            let hot = hot.iter().find(|hot| hot.frame == frame).unwrap();
            (hot.own, hot.total)
        };
        assert_eq!(row("a"), (0, 8));
        assert_eq!(row("b"), (0, 7));
        assert_eq!(row("c"), (7, 7));
        assert_eq!(hot[0].frame, "c");
    }

    #[test]
    fn threads_whose_names_differ_by_numbers_are_one_row() {
        let stacks = of(&[
            "[w-1 tid=1];a 5",
            "[w-2 tid=2];b 3",
            "[main tid=3];a 9",
            "[solo-7 tid=4];a 1",
        ]);
        let rows: Vec<_> = threads(&stacks)
            .into_iter()
            .map(|row| (row.name, row.threads, row.weight, row.hottest.unwrap()))
            .collect();
        let row = |name: &str, threads, weight, hottest: &str| {
            (name.to_owned(), threads, weight, hottest.to_owned())
        };
        assert_eq!(
            rows,
            [
                row("main", 1, 9, "a"),
                row("w-*", 2, 8, "a"),
                row("solo-7", 1, 1, "a")
            ]
        );
    }

    #[test]
    fn a_class_counts_for_the_code_above_it() {
        let kinds = by_kind(&of(&["shop.Cart.add_[j];byte[]_[c] 5", "write_[k] 3"]));
        assert_eq!(kinds, [(FrameKind::Java, 5), (FrameKind::Kernel, 3)]);
    }
}
