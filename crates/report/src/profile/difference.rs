//! The comparison of two profiles: one flame graph of both, coloured by how shares changed, and the frames whose shares differ.

use rungwise_model::compare::{CompareReport, Metric, Profiles, Verdict as What};
use rungwise_stacks::{Cut, Stacks, Thread};

use super::{PAGE, quantity};
use crate::block::{Block, Cell, Chart, Column, Flame, Mark, Plot, Table, Tile, Tone, Verdict};
use crate::flame;
use crate::numbers::{self, ABSENT};
use crate::tune::moment;

/// Rows of a table; the JSON has up to 100 of each.
const SHOWN: usize = 20;

/// The whole report.
pub fn blocks(report: &CompareReport) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(Verdict {
        mark: Mark {
            symbol: "•",
            word: "difference",
            tone: Tone::Plain,
        },
        sentence: report.sentence.clone(),
        context: vec![
            format!("before: {}", report.before),
            format!("after: {}", report.after),
            moment(&report.envelope.started),
        ],
        caveats: Vec::new(),
    })];
    if let Some(profiles) = &report.profiles {
        blocks.push(Block::Tiles(tiles(profiles)));
        blocks.extend(report.notes.iter().map(|note| Block::Prose(note.clone())));
        blocks.extend(graph(report, profiles));
    }
    for (group, id, title, caption) in [
        (
            "Self",
            "self",
            "Frames with another share of their own",
            "Share of stacks that end in the frame.",
        ),
        (
            "Total",
            "total",
            "Frames with another total share",
            "Share of stacks that contain the frame.",
        ),
    ] {
        let of_group: Vec<&Metric> = report
            .metrics
            .iter()
            .filter(|metric| metric.group == group)
            .collect();
        if of_group.is_empty() {
            continue;
        }
        blocks.push(Block::section(id, title));
        blocks.push(Block::Table(table(
            &of_group[..of_group.len().min(SHOWN)],
            caption,
        )));
    }
    blocks
}

fn tiles(profiles: &Profiles) -> Vec<Tile> {
    let what = quantity(profiles.event, profiles.unit);
    let sides = [&profiles.before, &profiles.after];
    let tile = |label: &str, [before, after]: [String; 2], detail: &str| Tile {
        label: label.to_owned(),
        value: after,
        before: Some(before),
        detail: detail.to_owned(),
        tone: Tone::Plain,
    };
    vec![
        tile(
            "Total",
            sides.map(|side| flame::weight(side.total, profiles.unit)),
            what,
        ),
        tile(
            "Distinct stacks",
            sides.map(|side| numbers::count(side.stacks.distinct)),
            "",
        ),
    ]
}

fn graph(report: &CompareReport, profiles: &Profiles) -> Vec<Block> {
    let mut both = Stacks::default();
    for (name, side) in [("before", &profiles.before), ("after", &profiles.after)] {
        let thread = Thread {
            name: name.to_owned(),
            id: 0,
        };
        both.add_all(&rungwise_stacks::read_folded(&side.stacks), &thread);
    }
    if both.total() == 0 {
        return Vec::new();
    }
    let tree = Cut::to_size(&both, PAGE).with_groups(&["before", "after"]);
    let what = quantity(profiles.event, profiles.unit);
    let mut note = format!(
        "A frame is as wide as its share of the {what} after, or before if you choose so: what is gone has no width after. Colour: how its \
         share of the whole changed."
    );
    if tree.left_out > 0 {
        note = format!(
            "{note} {} frames below {:.4} % of both together are drawn as [smaller frames] of their caller.",
            numbers::count(tree.left_out as u64),
            100.0 * tree.least as f64 / both.total().max(1) as f64
        );
    }
    let all: Vec<&Metric> = report.metrics.iter().collect();
    vec![
        Block::section("flame", "Difference flame graph"),
        Block::Chart(Box::new(Chart {
            id: "flame-graph",
            title: report.sentence.clone(),
            note,
            plot: Plot::Flame(Box::new(Flame {
                quantity: what.to_owned(),
                unit: profiles.unit,
                tree,
                is_difference: true,
            })),
            data: table(&all, "Frames whose share differs."),
        })),
    ]
}

fn table(metrics: &[&Metric], caption: &str) -> Table {
    let row = |metric: &&Metric| {
        let (old, new) = (
            metric.before_value.unwrap_or(0.0),
            metric.after_value.unwrap_or(0.0),
        );
        let points = Cell {
            raw: Some(new - old),
            ..Cell::text(format!(
                "{}{:.1}",
                if new < old { "−" } else { "+" },
                100.0 * (new - old).abs()
            ))
        };
        let note = match metric.verdict {
            What::OnlyBefore => "before only",
            What::OnlyAfter => "after only",
            What::Differs => "",
        };
        vec![
            Cell::number(metric.before_value, numbers::share),
            Cell::number(metric.after_value, numbers::share),
            points,
            Cell::text(&metric.name),
            Cell::text(if note.is_empty() { ABSENT } else { note }),
            Cell::text(metric.group.to_lowercase()),
        ]
    };
    Table {
        caption: caption.to_owned(),
        columns: vec![
            Column::number("Before", "before"),
            Column::number("After", "after"),
            Column::number("Points", "points"),
            Column::words("Frame", "frame").least(30),
            Column::words("Only", "only").rank(2),
            Column::words("Share of", "share_of").rank(3),
        ],
        rows: metrics.iter().map(row).collect(),
    }
}
