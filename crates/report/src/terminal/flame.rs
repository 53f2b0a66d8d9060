//! A flame graph as a tree of its hottest paths. A frame that only passes on to one other is not worth a line: the line of the last of
//! such a chain names how many are above it.

use rungwise_stacks::CutNode;

use super::text::{Paint, clean, shorten, width_of};
use crate::block::Flame;
use crate::flame::{own, parents, totals};

/// Lines shown: about what a person scrolls through.
const MOST: usize = 40;
/// Shares from which on frames are shown; the first with which the lines suffice.
const LEAST: [f64; 7] = [0.01, 0.02, 0.03, 0.05, 0.10, 0.20, 0.40];
/// A caller with at most this share of its own is one that passes on; own guess.
const PASSES_ON: f64 = 0.005;
/// The columns of numbers: `100.0 %  100.0 %  `.
const NUMBERS: usize = 18;
/// Deeper lines are not indented further.
const DEEPEST: usize = 20;

/// A line of the tree.
struct Line {
    node: usize,
    indent: usize,
    /// Frames between this line and the one of its caller.
    skipped: usize,
}

pub(super) fn draw(plot: &Flame, width: usize, paint: Paint) -> Vec<String> {
    let tree = Tree::of(plot);
    if tree.all == 0 {
        return vec![paint.dim("no stacks")];
    }
    let mut lines = Vec::new();
    for least in LEAST {
        lines = tree.lines(least);
        if lines.len() <= MOST {
            break;
        }
    }
    let left_out = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    let mut text = vec![paint.bold(tree.heads())];
    for line in lines {
        let indent = "  ".repeat(line.indent.min(DEEPEST));
        let mut name = clean(&plot.tree.frames[plot.tree.nodes[line.node].frame as usize].name);
        let mut above = match line.skipped {
            0 => String::new(),
            1 => "  (below 1 more)".to_owned(),
            skipped => format!("  (below {skipped} more)"),
        };
        let room = width.saturating_sub(NUMBERS + indent.len()).max(12);
        if width_of(&name) + above.len() > room {
            above.clear();
        }
        name = shorten(&name, room);
        text.push(format!(
            "{}{indent}{name}{}",
            tree.numbers(line.node, paint),
            paint.dim(&above)
        ));
    }
    if left_out > 0 {
        text.push(paint.dim(&format!("{left_out} more lines are in the HTML report")));
    }
    text
}

struct Tree<'p> {
    plot: &'p Flame,
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    totals: Vec<u64>,
    all: u64,
    /// Of a difference, the first profile; then `totals` are those of the second.
    before: Option<(Vec<u64>, u64)>,
}

impl<'p> Tree<'p> {
    fn of(plot: &'p Flame) -> Self {
        let (totals, all, before) = if plot.is_difference {
            let (after, all) = totals(&plot.tree, Some(1));
            (after, all, Some(totals(&plot.tree, Some(0))))
        } else {
            let (totals, all) = totals(&plot.tree, None);
            (totals, all, None)
        };
        let mut children = vec![Vec::new(); totals.len()];
        let mut roots = Vec::new();
        for (at, parent) in parents(&plot.tree).into_iter().enumerate() {
            match parent {
                Some(parent) => children[parent].push(at),
                None => roots.push(at),
            }
        }
        Self {
            plot,
            children,
            roots,
            totals,
            all,
            before,
        }
    }

    /// Its share; of a difference the larger of both.
    fn share(&self, node: usize) -> f64 {
        let after = self.totals[node] as f64 / self.all.max(1) as f64;
        self.share_before(node)
            .map_or(after, |before| before.max(after))
    }

    fn share_before(&self, node: usize) -> Option<f64> {
        let (totals, all) = self.before.as_ref()?;
        Some(totals[node] as f64 / (*all).max(1) as f64)
    }

    fn own_share(&self, node: usize) -> f64 {
        let CutNode { own: weights, .. } = &self.plot.tree.nodes[node];
        let group = self.before.is_some().then_some(1);
        own(weights, group) as f64 / self.all.max(1) as f64
    }

    fn heads(&self) -> &'static str {
        if self.before.is_some() {
            " before    after"
        } else {
            "  total     self"
        }
    }

    fn numbers(&self, node: usize, paint: Paint) -> String {
        let share = |share: f64| format!("{:>5.1} %", 100.0 * share);
        let after = self.totals[node] as f64 / self.all.max(1) as f64;
        match self.share_before(node) {
            Some(before) => format!("{}  {}  ", share(before), paint.bold(&share(after))),
            None => format!(
                "{}  {}  ",
                paint.bold(&share(after)),
                share(self.own_share(node))
            ),
        }
    }

    /// Frames from this share on, each below its caller, the hottest first.
    fn lines(&self, least: f64) -> Vec<Line> {
        let shown = |nodes: &[usize]| -> Vec<usize> {
            let mut shown: Vec<usize> = nodes
                .iter()
                .copied()
                .filter(|node| self.share(*node) >= least)
                .collect();
            shown.sort_by(|a, b| self.share(*b).total_cmp(&self.share(*a)).then(a.cmp(b)));
            shown
        };
        let mut lines = Vec::new();
        let mut left: Vec<(usize, usize)> = shown(&self.roots)
            .into_iter()
            .rev()
            .map(|node| (node, 0))
            .collect();
        while let Some((mut node, indent)) = left.pop() {
            let mut skipped = 0;
            let mut below = shown(&self.children[node]);
            while let [only] = below[..] {
                if self.share(node) - self.share(only) > PASSES_ON
                    || self.own_share(node) > PASSES_ON
                {
                    break;
                }
                skipped += 1;
                node = only;
                below = shown(&self.children[node]);
            }
            lines.push(Line {
                node,
                indent,
                skipped,
            });
            left.extend(below.into_iter().rev().map(|child| (child, indent + 1)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::profile::Unit;
    use rungwise_stacks::{Cut, Reader, Stacks, Thread};

    use super::*;

    fn stacks(text: &str) -> Stacks {
        let mut reader = Reader::default();
        reader.push(text.as_bytes());
        reader.finish().unwrap().stacks
    }

    fn drawn(stacks: &Stacks, is_difference: bool) -> String {
        let flame = Flame {
            quantity: "samples".to_owned(),
            unit: Unit::Samples,
            tree: if is_difference {
                Cut::to_size(stacks, usize::MAX).with_groups(&["before", "after"])
            } else {
                Cut::to_size(stacks, usize::MAX)
            },
            is_difference,
        };
        draw(&flame, 60, Paint { color: false }).join("\n")
    }

    #[test]
    fn a_chain_is_one_line_and_small_frames_are_none() {
        let text = "main;run;loop;parse 60\nmain;run;loop;write;fsync 39\nmain;rare 1\nmain;run;loop;x 0\n";
        assert_eq!(
            drawn(&stacks(text), false),
            "  total     self\n\
             100.0 %    0.0 %  main\n \
             99.0 %    0.0 %    loop  (below 1 more)\n \
             60.0 %   60.0 %      parse\n \
             39.0 %   39.0 %      fsync  (below 1 more)\n  \
             1.0 %    1.0 %    rare"
        );
    }

    #[test]
    fn a_difference_has_both_shares() {
        let mut both = Stacks::default();
        for (name, text) in [
            ("before", "main;a 50\nmain;b 50\n"),
            ("after", "main;a 10\nmain;b 30\n"),
        ] {
            let thread = Thread {
                name: name.to_owned(),
                id: 0,
            };
            both.add_all(&stacks(text), &thread);
        }
        let mut flame = Cut::to_size(&both, usize::MAX);
        // The group of more weight is the first.
        assert_eq!(flame.groups, ["before", "after"]);
        flame.groups.truncate(2);
        assert!(
            drawn(&both, true).contains(" 50.0 %   75.0 %    b"),
            "{}",
            drawn(&both, true)
        );
    }

    #[test]
    fn more_lines_than_a_person_reads_are_counted() {
        let lines: Vec<String> = (0..60)
            .map(|at| format!("f{at};g{at} 1\nf{at};h{at} 1\n"))
            .collect();
        let text = lines.concat();
        let text = drawn(&stacks(&text), false);
        assert!(text.lines().count() <= MOST + 2, "{text}");
    }
}
