//! Folded text: `root;callee;leaf 42`, one stack a line, as most profilers can write it.
//!
//! Source: Brendan Gregg's `stackcollapse-*.pl`; thread frames as async-profiler writes them with `-t`.

use rungwise_model::profile::Stacks as Written;

use crate::frame::{mark, marked, thread_frame, thread_of};
use crate::stacks::{NO_THREAD, ROOT, Stacks};

/// Stands for stacks that found no room in a document.
pub(crate) const LEFT_OUT: &str = "[left out]";

/// Adds a line. `false` where it is none.
pub(crate) fn add(line: &str, to: &mut Stacks) -> bool {
    // Names have spaces, so the number is what follows the last one.
    let Some((stack, weight)) = line.trim_end().rsplit_once([' ', '\t']) else {
        return false;
    };
    let Ok(weight) = weight.parse::<u64>() else {
        return false;
    };
    let stack = stack.trim();
    if stack.is_empty() {
        return false;
    }
    let first = stack.split(';').next().unwrap_or_default();
    let thread = thread_of(first);
    let frames = match stack.split_once(';') {
        Some((_, rest)) if thread.is_some() => rest,
        None if thread.is_some() => "",
        _ => stack,
    };
    let frames = frames.split(';').filter(|frame| !frame.is_empty());
    to.add(thread.as_ref(), frames.map(marked), weight);
    true
}

/// Reads the stacks of a document.
pub fn read(written: &Written) -> Stacks {
    let mut stacks = Stacks::default();
    for line in &written.folded {
        add(line, &mut stacks);
    }
    stacks
}

/// Every stack as a line, sorted.
pub fn folded(stacks: &Stacks) -> Vec<String> {
    kept(stacks, usize::MAX).folded
}

/// The heaviest stacks, of at most so many bytes; the others as one line of each thread.
pub fn kept(stacks: &Stacks, most_bytes: usize) -> Written {
    let frames = stacks.frames();
    let names: Vec<String> = frames
        .iter()
        .map(|frame| format!("{}{}", frame.name, mark(frame)))
        .collect();
    let threads: Vec<String> = stacks.threads().iter().map(thread_frame).collect();
    let nodes = stacks.nodes();
    let mut lengths = vec![0_usize; nodes.len()];
    for (at, node) in nodes.iter().enumerate().skip(1) {
        lengths[at] = lengths[node.parent as usize] + names[node.frame as usize].len() + 1;
    }
    let mut ends = stacks.ends();
    let distinct = ends.len() as u64;
    ends.sort_by(|a, b| b.2.cmp(&a.2).then(a.cmp(b)));
    let mut room = most_bytes;
    let place = ends.iter().position(|(node, thread, _)| {
        let thread = threads.get(*thread as usize).map_or(0, String::len);
        // The number and the end of the line.
        match room.checked_sub(lengths[*node as usize] + thread + 24) {
            Some(left) => {
                room = left;
                false
            }
            None => true,
        }
    });
    let place = place.unwrap_or(ends.len());
    let mut lines: Vec<String> = ends[..place]
        .iter()
        .map(|(node, thread, weight)| {
            let mut path = Vec::new();
            let mut at = *node;
            while at != ROOT {
                path.push(names[nodes[at as usize].frame as usize].as_str());
                at = nodes[at as usize].parent;
            }
            path.extend(threads.get(*thread as usize).map(String::as_str));
            if path.is_empty() {
                path.push("[unknown]");
            }
            path.reverse();
            format!("{} {weight}", path.join(";"))
        })
        .collect();
    let mut rest: Vec<(u32, u64)> = ends[place..]
        .iter()
        .map(|(_, thread, weight)| (*thread, *weight))
        .collect();
    rest.sort_unstable();
    for of_thread in rest.chunk_by(|a, b| a.0 == b.0) {
        let weight = of_thread
            .iter()
            .fold(0_u64, |sum, (_, weight)| sum.saturating_add(*weight));
        let thread = of_thread[0].0;
        lines.push(if thread == NO_THREAD {
            format!("{LEFT_OUT} {weight}")
        } else {
            format!("{};{LEFT_OUT} {weight}", threads[thread as usize])
        });
    }
    lines.sort_unstable();
    Written {
        distinct,
        left_out: distinct - place as u64,
        folded: lines,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(lines: &[&str]) -> (Stacks, usize) {
        let mut stacks = Stacks::default();
        let unknown = lines.iter().filter(|line| !add(line, &mut stacks)).count();
        (stacks, unknown)
    }

    #[test]
    fn text_reads_back_as_written_with_threads_and_kinds() {
        let lines = [
            "[http-1 tid=12];java.lang.Thread.run;shop.Cart.add_[i];tcp_sendmsg_[k] 4",
            "[http-2 tid=13];java.lang.Thread.run;byte[]_[c] 2",
            "my program;operator new(unsigned long) 7",
        ];
        let (stacks, unknown) = of(&lines);
        assert_eq!(unknown, 0);
        assert_eq!(folded(&stacks), lines);
    }

    #[test]
    fn what_is_no_stack_is_said_to_be_none() {
        let (stacks, unknown) = of(&["a;b", "a;b 1.5", "", " 7", "12", "a -3", "a;;b 3"]);
        assert_eq!((stacks.total(), unknown), (3, 6));
    }

    #[test]
    fn what_has_no_room_keeps_its_thread_and_weight() {
        let (stacks, _) = of(&[
            "[a tid=1];x 9",
            "[a tid=1];y 2",
            "[b tid=2];x 1",
            "[b tid=2];z 1",
        ]);
        let written = kept(&stacks, 40);
        assert_eq!((written.distinct, written.left_out), (4, 3));
        assert_eq!(
            written.folded,
            [
                "[a tid=1];[left out] 2",
                "[a tid=1];x 9",
                "[b tid=2];[left out] 2"
            ]
        );
        assert_eq!(read(&written).total(), stacks.total());
    }

    proptest! {
        #[test]
        fn any_stack_reads_back(frames in proptest::collection::vec("\\PC{1,12}", 1..6), weight: u64) {
            let mut stacks = Stacks::default();
            let frames = frames.iter().map(|frame| (frame.as_str(), rungwise_model::profile::FrameKind::Inlined));
            stacks.add(None, frames, weight);
            let lines = folded(&stacks);
            prop_assert_eq!(lines.len(), 1);
            let (again, unknown) = of(&[&lines[0]]);
            prop_assert_eq!(unknown, 0);
            prop_assert_eq!(folded(&again), lines);
        }

        #[test]
        fn no_text_makes_it_panic(lines in proptest::collection::vec("[ -~é;\\[\\]0-9]{0,60}", 0..20), most in 0_usize..400) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let (stacks, _) = of(&lines);
            let written = kept(&stacks, most);
            prop_assert_eq!(read(&written).total(), stacks.total());
        }
    }
}
