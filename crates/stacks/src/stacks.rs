//! A tree of stacks: each node is a frame below its caller, each stack is the node where it ends.
//!
//! Stacks share the nodes of their common callers, so memory grows with distinct stacks and not with samples.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rungwise_model::profile::FrameKind;

use crate::frame::{Frame, Thread, clean};

/// Nodes of a tree, about 24 bytes each; a Spring service under load has some 100,000.
const MOST_NODES: usize = 1 << 21;
/// Bytes of all names of frames and threads.
const MOST_NAMES: usize = 64 << 20;
/// Frames of one stack; async-profiler keeps 2048.
const DEEPEST: usize = 4096;
/// Stands for frames whose name found no place.
const UNNAMED: &str = "[too many names]";

pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// The root of the tree; it is no frame.
pub(crate) const ROOT: u32 = 0;

/// Stacks with their weights.
#[derive(Clone, Debug)]
pub struct Stacks {
    frames: Vec<Frame>,
    numbers: [Map<Box<str>, u32>; NAMESPACES],
    threads: Vec<Thread>,
    thread_numbers: Map<Thread, u32>,
    name_bytes: usize,
    nodes: Vec<Node>,
    children: Map<(u32, u32), u32>,
    own: Map<(u32, u32), u64>,
    total: u64,
    shortened: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) parent: u32,
    pub(crate) frame: u32,
}

/// Names of the kernel, of classes, and of all else. A method that is inlined at one place and not at another is one frame.
const NAMESPACES: usize = 3;

fn namespace(kind: FrameKind) -> usize {
    match kind {
        FrameKind::Native | FrameKind::Java | FrameKind::Inlined => 0,
        FrameKind::Kernel => 1,
        FrameKind::Class => 2,
    }
}

/// The thread of a file that names none.
pub(crate) const NO_THREAD: u32 = u32::MAX;

impl Default for Stacks {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            numbers: Default::default(),
            threads: Vec::new(),
            thread_numbers: Map::default(),
            name_bytes: 0,
            nodes: vec![Node {
                parent: ROOT,
                frame: 0,
            }],
            children: Map::default(),
            own: Map::default(),
            total: 0,
            shortened: 0,
        }
    }
}

impl Stacks {
    /// Adds a stack, root first.
    pub fn add<'f>(
        &mut self,
        thread: Option<&Thread>,
        frames: impl IntoIterator<Item = (&'f str, FrameKind)>,
        weight: u64,
    ) {
        let thread = thread.map_or(NO_THREAD, |thread| self.thread(thread));
        let mut node = ROOT;
        let mut is_whole = true;
        for (depth, (name, kind)) in frames.into_iter().enumerate() {
            if depth >= DEEPEST {
                is_whole = false;
                break;
            }
            let frame = self.frame(name, kind);
            let Some(child) = self.child(node, frame) else {
                is_whole = false;
                break;
            };
            node = child;
        }
        self.put(node, thread, weight);
        if !is_whole {
            self.shortened = self.shortened.saturating_add(weight);
        }
    }

    /// Adds all stacks of another tree as those of one thread.
    pub fn add_all(&mut self, other: &Self, thread: &Thread) {
        let thread = self.thread(thread);
        let mut mine = vec![ROOT];
        for node in &other.nodes[1..] {
            let frame = &other.frames[node.frame as usize];
            let frame = self.frame(&frame.name, frame.kind);
            let parent = mine[node.parent as usize];
            // Where there is no room, the caller has the weight.
            mine.push(self.child(parent, frame).unwrap_or(parent));
        }
        for (node, _, weight) in other.ends() {
            self.put(mine[node as usize], thread, weight);
        }
        self.shortened = self.shortened.saturating_add(other.shortened);
    }

    fn put(&mut self, node: u32, thread: u32, weight: u64) {
        let own = self.own.entry((node, thread)).or_default();
        *own = own.saturating_add(weight);
        self.total = self.total.saturating_add(weight);
    }

    fn child(&mut self, parent: u32, frame: u32) -> Option<u32> {
        if let Some(child) = self.children.get(&(parent, frame)) {
            return Some(*child);
        }
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        let child = self.nodes.len() as u32;
        self.nodes.push(Node { parent, frame });
        self.children.insert((parent, frame), child);
        Some(child)
    }

    fn frame(&mut self, name: &str, kind: FrameKind) -> u32 {
        let name = clean(name);
        let name: &str = &name;
        if let Some(number) = self.numbers[namespace(kind)].get(name) {
            let known = &mut self.frames[*number as usize].kind;
            if *known == FrameKind::Inlined {
                *known = kind;
            }
            return *number;
        }
        let is_full = self.name_bytes + name.len() > MOST_NAMES;
        if is_full && name != UNNAMED {
            return self.frame(UNNAMED, kind);
        }
        let number = self.frames.len() as u32;
        self.name_bytes += name.len();
        self.frames.push(Frame {
            name: name.to_owned(),
            kind,
        });
        self.numbers[namespace(kind)].insert(name.into(), number);
        number
    }

    fn thread(&mut self, thread: &Thread) -> u32 {
        if let Some(number) = self.thread_numbers.get(thread) {
            return *number;
        }
        let mut thread = Thread {
            name: clean(&thread.name).into_owned(),
            id: thread.id,
        };
        if self.name_bytes + thread.name.len() > MOST_NAMES {
            thread = Thread {
                name: UNNAMED.to_owned(),
                id: 0,
            };
        }
        if let Some(number) = self.thread_numbers.get(&thread) {
            return *number;
        }
        // The number itself takes room, too.
        self.name_bytes += thread.name.len() + size_of::<Thread>();
        let number = self.threads.len() as u32;
        self.threads.push(thread.clone());
        self.thread_numbers.insert(thread, number);
        number
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The weight of stacks that lost their innermost frames, because they were deeper or more than fit in memory.
    pub fn shortened(&self) -> u64 {
        self.shortened
    }

    /// Distinct stacks, of each thread.
    pub fn distinct(&self) -> usize {
        self.own.len()
    }

    /// Whether threads are known.
    pub fn names_threads(&self) -> bool {
        !self.threads.is_empty()
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(crate) fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Callers come before their callees; the first is the root.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn frame_of(&self, node: u32) -> &Frame {
        &self.frames[self.nodes[node as usize].frame as usize]
    }

    /// Where stacks end: node, thread, weight; in the order of the nodes.
    pub(crate) fn ends(&self) -> Vec<(u32, u32, u64)> {
        let ends = self.own.iter();
        let mut ends: Vec<_> = ends
            .map(|((node, thread), weight)| (*node, *thread, *weight))
            .collect();
        ends.sort_unstable();
        ends
    }

    /// Of each node: the weight of stacks that end in it, and of those that contain it.
    pub(crate) fn weights(&self) -> (Vec<u64>, Vec<u64>) {
        let mut own = vec![0_u64; self.nodes.len()];
        for (node, _, weight) in self.ends() {
            own[node as usize] = own[node as usize].saturating_add(weight);
        }
        let mut total = own.clone();
        for node in (1..self.nodes.len()).rev() {
            let parent = self.nodes[node].parent as usize;
            total[parent] = total[parent].saturating_add(total[node]);
        }
        (own, total)
    }

    /// Nodes with their depth, each before what it calls, siblings by name. `into` says whether to go on below a node.
    pub(crate) fn walk(&self, mut into: impl FnMut(u32, usize) -> bool) {
        let order = self.by_parent();
        let mut left: Vec<(u32, usize)> = Vec::new();
        let push = |left: &mut Vec<(u32, usize)>, parent: u32, depth: usize| {
            let begin = order.partition_point(|child| self.nodes[*child as usize].parent < parent);
            let end = order.partition_point(|child| self.nodes[*child as usize].parent <= parent);
            left.extend(order[begin..end].iter().rev().map(|child| (*child, depth)));
        };
        push(&mut left, ROOT, 0);
        while let Some((node, depth)) = left.pop() {
            if into(node, depth) {
                push(&mut left, node, depth + 1);
            }
        }
    }

    /// All nodes but the root, by their parent and then by name.
    fn by_parent(&self) -> Vec<u32> {
        let mut places: Vec<u32> = (0..self.frames.len() as u32).collect();
        places.sort_unstable_by(|a, b| self.frames[*a as usize].cmp(&self.frames[*b as usize]));
        let mut ranks = vec![0_u32; places.len()];
        for (rank, frame) in places.into_iter().enumerate() {
            ranks[frame as usize] = rank as u32;
        }
        let mut order: Vec<u32> = (1..self.nodes.len() as u32).collect();
        order.sort_unstable_by_key(|child| {
            let node = self.nodes[*child as usize];
            (node.parent, ranks[node.frame as usize])
        });
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_callers_and_weights_add_up() {
        let mut stacks = Stacks::default();
        let native = |name| (name, FrameKind::Native);
        stacks.add(None, ["a", "b"].map(native), 2);
        stacks.add(None, ["a", "c"].map(native), 3);
        stacks.add(None, ["a", "b"].map(native), 5);
        stacks.add(None, [], 1);
        assert_eq!((stacks.total(), stacks.distinct()), (11, 3));
        let mut seen = Vec::new();
        let (own, total) = stacks.weights();
        stacks.walk(|node, depth| {
            let at = node as usize;
            seen.push((
                stacks.frame_of(node).name.clone(),
                depth,
                own[at],
                total[at],
            ));
            true
        });
        let row = |name: &str, depth, own, total| (name.to_owned(), depth, own, total);
        assert_eq!(
            seen,
            [row("a", 0, 0, 10), row("b", 1, 7, 7), row("c", 1, 3, 3)]
        );
    }

    #[test]
    fn a_method_that_is_inlined_at_some_places_is_one_frame() {
        let mut stacks = Stacks::default();
        for kind in [
            FrameKind::Inlined,
            FrameKind::Java,
            FrameKind::Inlined,
            FrameKind::Kernel,
        ] {
            stacks.add(None, [("f", kind)], 1);
        }
        let kinds: Vec<FrameKind> = stacks.frames().iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [FrameKind::Java, FrameKind::Kernel]);
        assert_eq!(stacks.distinct(), 2);
    }

    #[test]
    fn a_stack_without_end_keeps_its_outer_frames_and_its_weight() {
        let mut stacks = Stacks::default();
        let endless = std::iter::repeat_n(("r", FrameKind::Native), 10 * DEEPEST);
        stacks.add(None, endless, 4);
        assert_eq!(stacks.nodes().len(), DEEPEST + 1);
        assert_eq!((stacks.total(), stacks.shortened()), (4, 4));
    }

    #[test]
    fn names_without_end_take_bounded_memory() {
        let mut stacks = Stacks::default();
        let long = "x".repeat(399);
        for number in 0..180_000_u32 {
            let name = format!("{number}{long}");
            stacks.add(None, [(name.as_str(), FrameKind::Native)], 1);
        }
        assert!(stacks.frames().len() * 400 <= MOST_NAMES + 400);
        assert_eq!(stacks.total(), 180_000);
        assert!(stacks.numbers[0].contains_key(UNNAMED));
    }

    #[test]
    fn weights_that_overflow_stay_at_the_largest_number() {
        let mut stacks = Stacks::default();
        stacks.add(None, [("a", FrameKind::Native)], u64::MAX);
        stacks.add(None, [("b", FrameKind::Native)], u64::MAX);
        assert_eq!(stacks.total(), u64::MAX);
        let (_, total) = stacks.weights();
        assert_eq!(total[0], u64::MAX);
    }
}
