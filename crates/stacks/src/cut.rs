//! The part of a tree that a page can hold: all frames from some share of the whole on.
//!
//! A frame has at least the weight of what it calls, so that what is kept is a tree again. What is cut below a frame is one frame more, of
//! their weight: sums stay exact.

use std::collections::BTreeMap;

use crate::frame::Frame;
use crate::stacks::{NO_THREAD, ROOT, Stacks};
use crate::sums::group_names;

/// Bytes of a node in a page, and of a weight: numbers of a few digits and their commas.
const NODE: usize = 8;
const WEIGHT: usize = 8;

/// The name of the frame that stands for what was cut.
pub const LEFT_OUT: &str = "[smaller frames]";

/// A tree that was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Frames of the nodes.
    pub frames: Vec<Frame>,
    /// Groups of threads, most weight first; of a file without threads one without a name.
    pub groups: Vec<String>,
    /// The nodes, each before what it calls.
    pub nodes: Vec<CutNode>,
    /// Weight of the lightest frame that is kept.
    pub least: u64,
    /// Frames that were cut.
    pub left_out: usize,
}

/// A node of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutNode {
    /// How many callers it has.
    pub depth: usize,
    /// Its frame.
    pub frame: u32,
    /// Weight of stacks that end here, by group.
    pub own: Vec<(u32, u64)>,
}

impl Cut {
    /// The same with these groups, in this order; others have none of the weight.
    #[must_use]
    pub fn with_groups(mut self, names: &[&str]) -> Self {
        let place = |group: &String| names.iter().position(|name| name == group);
        let places: Vec<Option<usize>> = self.groups.iter().map(place).collect();
        for node in &mut self.nodes {
            node.own = node
                .own
                .iter()
                .filter_map(|(group, weight)| Some((places[*group as usize]? as u32, *weight)))
                .collect();
            node.own.sort_unstable();
        }
        self.groups = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Cuts stacks so that a page has about so many bytes of them.
    pub fn to_size(stacks: &Stacks, most_bytes: usize) -> Self {
        let names = group_names(stacks);
        let (groups, group_of) = groups(stacks, &names);
        let (_, total) = stacks.weights();
        let nodes = stacks.nodes();
        let mut own: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); nodes.len()];
        for (node, thread, weight) in stacks.ends() {
            let group = if thread == NO_THREAD {
                groups.len() as u32 - 1
            } else {
                group_of[thread as usize]
            };
            let sum = own[node as usize].entry(group).or_default();
            *sum = sum.saturating_add(weight);
        }
        let least = least(stacks, &total, &own, most_bytes);
        // From the leaves up: what is cut is handed to the first that is kept.
        let mut cut: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); nodes.len()];
        let mut left_out = 0;
        for node in (1..nodes.len()).rev() {
            if total[node] >= least {
                continue;
            }
            left_out += 1;
            let below = std::mem::take(&mut cut[node]);
            let into = &mut cut[nodes[node].parent as usize];
            for (group, weight) in own[node].iter().chain(&below) {
                let sum = into.entry(*group).or_default();
                *sum = sum.saturating_add(*weight);
            }
        }
        let mut made = Made::default();
        let rest =
            |cut: &mut Vec<BTreeMap<u32, u64>>, node: u32| std::mem::take(&mut cut[node as usize]);
        let mut waiting: Vec<(usize, BTreeMap<u32, u64>)> = Vec::new();
        let of_root = rest(&mut cut, ROOT);
        stacks.walk(|node, depth| {
            if total[node as usize] < least {
                return false;
            }
            while let Some((at, weights)) = waiting.pop_if(|(at, _)| *at > depth) {
                made.left_out(at, &weights);
            }
            made.node(depth, stacks.frame_of(node), &own[node as usize]);
            let below = rest(&mut cut, node);
            if !below.is_empty() {
                waiting.push((depth + 1, below));
            }
            true
        });
        while let Some((at, weights)) = waiting.pop() {
            made.left_out(at, &weights);
        }
        // Stacks without frames have their weight there, too.
        for weights in [&of_root, &own[ROOT as usize]] {
            if !weights.is_empty() {
                made.left_out(0, weights);
            }
        }
        Self {
            frames: made.frames,
            groups,
            nodes: made.nodes,
            least,
            left_out,
        }
    }
}

/// Names of groups by weight, and the group of each thread. Stacks without a thread are in a last group without a name.
fn groups(stacks: &Stacks, names: &[String]) -> (Vec<String>, Vec<u32>) {
    let mut weights: BTreeMap<&str, u64> = names.iter().map(|name| (name.as_str(), 0)).collect();
    let mut has_others = names.is_empty();
    for (_, thread, weight) in stacks.ends() {
        match names.get(thread as usize) {
            Some(name) => {
                let sum = weights.entry(name).or_default();
                *sum = sum.saturating_add(weight);
            }
            None => has_others = true,
        }
    }
    let mut sorted: Vec<(&str, u64)> = weights.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let numbers: BTreeMap<&str, u32> = sorted
        .iter()
        .zip(0..)
        .map(|((name, _), number)| (*name, number))
        .collect();
    let of = names.iter().map(|name| numbers[name.as_str()]).collect();
    let mut groups: Vec<String> = sorted.iter().map(|(name, _)| (*name).to_owned()).collect();
    if has_others {
        groups.push(String::new());
    }
    (groups, of)
}

/// The smallest weight with which frames fit.
fn least(stacks: &Stacks, total: &[u64], own: &[BTreeMap<u32, u64>], most_bytes: usize) -> u64 {
    let nodes = stacks.nodes();
    let mut order: Vec<u32> = (1..nodes.len() as u32).collect();
    order.sort_unstable_by_key(|node| std::cmp::Reverse(total[*node as usize]));
    let mut named = vec![false; stacks.frames().len()];
    let mut room = most_bytes;
    for node in order {
        let frame = nodes[node as usize].frame as usize;
        let name = if named[frame] {
            0
        } else {
            stacks.frames()[frame].name.len() + 4
        };
        // With what it may stand beside: the rest that is cut below it.
        let cost = 2 * NODE + name + WEIGHT * (own[node as usize].len() + 1);
        let Some(left) = room.checked_sub(cost) else {
            return total[node as usize].saturating_add(1);
        };
        room = left;
        named[frame] = true;
    }
    0
}

/// The tree as it is written.
#[derive(Default)]
struct Made {
    frames: Vec<Frame>,
    numbers: BTreeMap<Frame, u32>,
    nodes: Vec<CutNode>,
}

impl Made {
    fn node(&mut self, depth: usize, frame: &Frame, own: &BTreeMap<u32, u64>) {
        let number = if let Some(number) = self.numbers.get(frame) {
            *number
        } else {
            let number = self.frames.len() as u32;
            self.frames.push(frame.clone());
            self.numbers.insert(frame.clone(), number);
            number
        };
        self.nodes.push(CutNode {
            depth,
            frame: number,
            own: own
                .iter()
                .map(|(group, weight)| (*group, *weight))
                .collect(),
        });
    }

    fn left_out(&mut self, depth: usize, weights: &BTreeMap<u32, u64>) {
        let frame = Frame {
            name: LEFT_OUT.to_owned(),
            kind: rungwise_model::profile::FrameKind::Native,
        };
        self.node(depth, &frame, weights);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::folded::add;

    fn sum(cut: &Cut) -> u64 {
        let own = cut.nodes.iter().flat_map(|node| &node.own);
        own.map(|(_, weight)| weight).sum()
    }

    fn lines(cut: &Cut) -> Vec<String> {
        let line = |node: &CutNode| {
            let own: Vec<String> = node
                .own
                .iter()
                .map(|(group, weight)| format!("{group}:{weight}"))
                .collect();
            format!(
                "{}{} {}",
                "  ".repeat(node.depth),
                cut.frames[node.frame as usize].name,
                own.join(" ")
            )
        };
        cut.nodes.iter().map(line).collect()
    }

    fn of(lines: &[&str]) -> Stacks {
        let mut stacks = Stacks::default();
        for line in lines {
            assert!(add(line, &mut stacks), "{line}");
        }
        stacks
    }

    #[test]
    fn what_is_cut_stands_below_its_caller_with_its_weight() {
        let stacks = of(&[
            "a;b;c 1",
            "a;b;d 2",
            "a;b 50",
            "a;e 40",
            "f 3",
            "[t tid=1];a;e 4",
        ]);
        let whole = Cut::to_size(&stacks, usize::MAX);
        assert_eq!((whole.left_out, whole.nodes.len()), (0, 6));
        assert_eq!(whole.groups, ["t", ""]);
        let cut = Cut::to_size(&stacks, 130);
        assert_eq!(
            lines(&cut),
            [
                "a ",
                "  b 1:50",
                "    [smaller frames] 1:3",
                "  e 0:4 1:40",
                "[smaller frames] 1:3"
            ]
        );
        assert_eq!((cut.left_out, sum(&cut)), (3, stacks.total()));
    }

    #[test]
    fn groups_keep_the_order_that_is_asked_for() {
        let stacks = of(&["[after tid=0];a 9", "[before tid=0];a;b 4"]);
        let cut = Cut::to_size(&stacks, usize::MAX);
        assert_eq!(cut.groups, ["after", "before"]);
        let cut = cut.with_groups(&["before", "after"]);
        assert_eq!(lines(&cut), ["a 1:9", "  b 0:4"]);
    }

    proptest! {
        #[test]
        fn no_weight_is_lost_and_the_size_is_kept(
            stacks in proptest::collection::vec((proptest::collection::vec(0_u8..6, 0..7), 0_u8..3, 1_u64..100), 1..60),
            most in 0_usize..3000
        ) {
            let mut tree = Stacks::default();
            for (frames, thread, weight) in &stacks {
                let names: Vec<String> = frames.iter().map(|frame| format!("f{frame}")).collect();
                let line = format!("[t{thread} tid=1];{} {weight}", names.join(";"));
                prop_assert!(add(&line, &mut tree));
            }
            let cut = Cut::to_size(&tree, most);
            prop_assert_eq!(sum(&cut), tree.total());
            let kept = tree.nodes().len() - 1 - cut.left_out;
            prop_assert!(kept * 2 * NODE <= most);
            let mut before = None;
            for node in &cut.nodes {
                prop_assert!(node.depth <= before.map_or(0, |depth| depth + 1));
                before = Some(node.depth);
            }
        }
    }
}
