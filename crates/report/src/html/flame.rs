//! A flame graph: the frames that are wide enough as plain boxes, for paper and for a page without scripts; and all frames as data, of
//! which `flame.js` draws what is in sight.
//!
//! The data is JSON in a script element that is never run. Names are foreign text: `<` is escaped in it, so that none ends the element.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};
use rungwise_model::profile::{FrameKind, Unit};

use crate::block::Flame;
use crate::flame::{kind, parents, totals, weight};
use crate::numbers;

/// Narrower boxes are left out of the plain picture: 6 px of 1200.
const NARROWEST: f64 = 0.005;
/// A share that grew or shrank by this factor has another colour in the plain picture; own guess.
const CHANGED: f64 = 1.1;
/// Rows of the plain picture.
const ROWS: usize = 70;
/// Height of a row in pixels; `flame.js` has the same.
const ROW: usize = 18;

const KINDS: [FrameKind; 5] = [
    FrameKind::Native,
    FrameKind::Java,
    FrameKind::Inlined,
    FrameKind::Kernel,
    FrameKind::Class,
];

pub(super) fn draw(plot: &Flame, title: &str) -> Markup {
    let group = plot.is_difference.then_some(1);
    let (totals, all) = totals(&plot.tree, group);
    let boxes = boxes(plot, &totals, all);
    let rows = boxes.iter().map(|(depth, ..)| depth + 1).max().unwrap_or(0);
    let before = plot
        .is_difference
        .then(|| crate::flame::totals(&plot.tree, Some(0)));
    let class = |node: usize| {
        let kind = plot.tree.frames[plot.tree.nodes[node].frame as usize].kind;
        let Some((weights, whole)) = &before else {
            return format!("k{}", kind as usize);
        };
        let share = |weight: u64, whole: u64| weight as f64 / whole.max(1) as f64;
        let grown = share(totals[node], all) / share(weights[node], *whole).max(1e-12);
        let class = if grown > CHANGED {
            "up"
        } else if grown < 1.0 / CHANGED {
            "down"
        } else {
            "even"
        };
        class.to_owned()
    };
    let present = |kind: &&FrameKind| plot.tree.frames.iter().any(|frame| frame.kind == **kind);
    html! {
        div.flame data-quantity=(plot.quantity) {
            @if plot.is_difference {
                ul.legend {
                    li { span.swatch.up {} "larger share after" }
                    li { span.swatch.even {} "same share" }
                    li { span.swatch.down {} "smaller share after" }
                }
            } @else {
                ul.legend { @for of in KINDS.iter().filter(present) { li { span.swatch.{ "k" (*of as usize) } {} (kind(*of)) } } }
            }
            div.boxes role="img" aria-label=(title) style={ "height:" (rows * ROW) "px" } {
                @for (depth, left, share, node) in &boxes {
                    @let frame = &plot.tree.frames[plot.tree.nodes[*node].frame as usize];
                    @let title = format!("{}: {}, {}", frame.name, numbers::share(*share), weight(totals[*node], plot.unit));
                    div.(class(*node)) title=(title)
                        style={ "left:" (format!("{:.3}", left * 100.0)) "%;width:" (format!("{:.3}", share * 100.0)) "%;bottom:" (depth * ROW) "px" } { (frame.name) }
                }
            }
            script type="application/json" { (PreEscaped(data(plot))) }
        }
    }
}

/// Depth, left edge and width as shares, and the node of each box that is wide enough.
fn boxes(plot: &Flame, totals: &[u64], all: u64) -> Vec<(usize, f64, f64, usize)> {
    let share = |weight: u64| weight as f64 / all.max(1) as f64;
    let parents = parents(&plot.tree);
    // Where the next callee of each node begins; that of the roots last.
    let mut next = vec![0.0; totals.len() + 1];
    let mut boxes = Vec::new();
    for (at, node) in plot.tree.nodes.iter().enumerate() {
        let place = parents[at].unwrap_or(totals.len());
        let left = next[place];
        let width = share(totals[at]);
        next[place] += width;
        next[at] = left;
        if width >= NARROWEST && node.depth < ROWS {
            boxes.push((node.depth, left, width, at));
        }
    }
    boxes
}

/// What the script draws: names, and the nodes as numbers: depth, frame, number of weights, then group and weight of each.
fn data(plot: &Flame) -> String {
    let tree = &plot.tree;
    let mut nodes = String::new();
    for node in &tree.nodes {
        // Writing to a string never fails.
        let _ = write!(
            nodes,
            "{}{},{},{}",
            if nodes.is_empty() { "" } else { "," },
            node.depth,
            node.frame,
            node.own.len()
        );
        for (group, weight) in &node.own {
            let _ = write!(nodes, ",{group},{weight}");
        }
    }
    let names: Vec<&str> = tree
        .frames
        .iter()
        .map(|frame| frame.name.as_str())
        .collect();
    let kinds: String = tree
        .frames
        .iter()
        .map(|frame| char::from(b'0' + frame.kind as u8))
        .collect();
    let unit = match plot.unit {
        Unit::Samples => "samples",
        Unit::Ns => "ns",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    };
    // Plain strings: they cannot fail.
    let text = |value: &dyn Fn() -> serde_json::Result<String>| {
        value().unwrap_or_default().replace('<', "\\u003c")
    };
    format!(
        r#"{{"unit":"{unit}","difference":{},"kinds":"{kinds}","groups":{},"frames":{},"nodes":[{nodes}]}}"#,
        plot.is_difference,
        text(&|| serde_json::to_string(&tree.groups)),
        text(&|| serde_json::to_string(&names)),
    )
}

#[cfg(test)]
mod tests {
    use rungwise_stacks::{Cut, Reader};

    use super::*;

    #[test]
    fn a_malicious_name_stays_text() {
        let mut reader = Reader::default();
        reader.push(b"a;</script><script>alert(1)</script>;<!--;\"onload=x;& 5\n");
        let plot = Flame {
            quantity: "samples".to_owned(),
            unit: Unit::Samples,
            tree: Cut::to_size(&reader.finish().unwrap().stacks, usize::MAX),
            is_difference: false,
        };
        let drawn = draw(&plot, "title").into_string();
        assert_eq!(drawn.matches("</script>").count(), 1, "{drawn}");
        assert!(
            !drawn.contains("<!--") && !drawn.contains("<script>"),
            "{drawn}"
        );
        let (_, json) = drawn.split_once("application/json\">").unwrap();
        let (json, _) = json.split_once("</script>").unwrap();
        let read: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(read["frames"][1], "</script><script>alert(1)</script>");
        assert_eq!(
            read["nodes"],
            serde_json::json!([0, 0, 0, 1, 1, 0, 2, 2, 0, 3, 3, 0, 4, 4, 1, 0, 5])
        );
    }
}
