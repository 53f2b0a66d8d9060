//! The report of `profile`: the flame graph, hot frames, threads, kinds of code.

pub mod difference;

use rungwise_model::profile::{Event, FrameKind, HotFrame, Profile, ProfileReport, Unit};
use rungwise_stacks::Cut;

use crate::block::{Block, Cell, Chart, Column, Flame, Mark, Plot, Table, Tile, Tone, Verdict};
use crate::flame;
use crate::numbers::{self, ABSENT};
use crate::tune::moment;

/// Rows of a table; the JSON has up to 100.
const SHOWN: usize = 20;
/// Bytes of the stacks in a page: with names, its other parts and twice the estimate it stays below 3 MB.
pub(super) const PAGE: usize = 1_800_000;

/// The whole report.
pub fn blocks(report: &ProfileReport) -> Vec<Block> {
    let profile = &report.profile;
    let mut blocks = vec![
        Block::Verdict(verdict(report)),
        Block::Tiles(tiles(profile)),
    ];
    for note in &profile.notes {
        blocks.push(Block::Notice {
            tone: Tone::Doubt,
            text: note.clone(),
        });
    }
    if profile.stacks.left_out > 0 {
        blocks.push(Block::Notice {
            tone: Tone::Quiet,
            text: format!(
                "{} of {} stacks, the rarest, are in the document as [left out]: it would be larger than 64 MiB. rungwise profile --folded \
                 prints all",
                numbers::count(profile.stacks.left_out),
                numbers::count(profile.stacks.distinct)
            ),
        });
    }
    blocks.extend(graph(profile));
    blocks.extend(frames(profile));
    blocks.extend(threads(profile));
    blocks.extend(kinds(profile));
    blocks
}

/// What the weights are, in the plural.
pub fn quantity(event: Event, unit: Unit) -> &'static str {
    match (event, unit) {
        (Event::Cpu, Unit::Samples) => "CPU samples",
        (Event::Wall, Unit::Samples) => "wall-clock samples",
        (Event::Alloc, _) => "allocated bytes",
        (Event::Lock, _) => "lock wait time",
        (Event::OffCpu, _) => "off-CPU time",
        (_, Unit::Samples) => "samples",
        (_, Unit::Ns) => "time",
        (_, Unit::Bytes) => "bytes",
        (_, Unit::Count) => "counts",
    }
}

fn verdict(report: &ProfileReport) -> Verdict {
    let profile = &report.profile;
    let quantity = quantity(profile.event, profile.unit);
    let hottest = profile.hot.first().filter(|hot| hot.own > 0);
    let sentence = hottest.map_or_else(
        || "the profile has no frames".to_owned(),
        |hot| {
            // Of a class, the weight is of its objects.
            let itself = if hot.kind == FrameKind::Class {
                ""
            } else {
                " itself"
            };
            let share = numbers::share(hot.self_share);
            format!("{}{itself} has {share} of the {quantity}", hot.frame)
        },
    );
    let mut context = vec![report.target.clone()];
    context.extend(profile.source.clone());
    context.push(moment(&report.envelope.started));
    Verdict {
        mark: Mark {
            symbol: "•",
            word: "profile",
            tone: Tone::Plain,
        },
        sentence,
        context,
        caveats: Vec::new(),
    }
}

/// The name of the event, without how its stacks were followed.
fn event(profile: &Profile) -> String {
    let source = profile.source.as_deref().unwrap_or_default();
    source.split(';').next().unwrap_or_default().to_owned()
}

fn tiles(profile: &Profile) -> Vec<Tile> {
    let tile = |label: &str, value: String, detail: String| Tile {
        label: label.to_owned(),
        value,
        before: None,
        detail,
        tone: Tone::Plain,
    };
    let mut tiles = vec![tile(
        "Total",
        flame::weight(profile.total, profile.unit),
        quantity(profile.event, profile.unit).to_owned(),
    )];
    if let Some(samples) = profile.samples.filter(|_| profile.unit != Unit::Samples) {
        tiles.push(tile("Events", numbers::count(samples), event(profile)));
    }
    let threads: u64 = profile.threads.iter().map(|thread| thread.threads).sum();
    let stacks = numbers::count(profile.stacks.distinct);
    tiles.push(if threads > 0 {
        tile(
            "Distinct stacks",
            stacks,
            format!("of {} threads", numbers::count(threads)),
        )
    } else {
        tile("Distinct stacks", stacks, "threads unknown".to_owned())
    });
    if let Some(hot) = profile.hot.iter().max_by_key(|hot| hot.own) {
        tiles.push(tile(
            "Hottest frame",
            numbers::share(hot.self_share),
            hot.frame.clone(),
        ));
    }
    tiles
}

fn graph(profile: &Profile) -> Vec<Block> {
    let stacks = rungwise_stacks::read_folded(&profile.stacks);
    if stacks.total() == 0 {
        return Vec::new();
    }
    let tree = Cut::to_size(&stacks, PAGE);
    let quantity = quantity(profile.event, profile.unit);
    let mut note = format!(
        "A frame is as wide as its share of the {quantity} and lies on its caller. Order from left to right means nothing."
    );
    if tree.left_out > 0 {
        note = format!(
            "{note} {} frames below {:.4} % each are drawn as [smaller frames] of their caller.",
            numbers::count(tree.left_out as u64),
            100.0 * tree.least as f64 / stacks.total().max(1) as f64
        );
    }
    let title = busiest(profile).unwrap_or_else(|| format!("Where the {quantity} are"));
    vec![
        Block::section("flame", "Flame graph"),
        Block::Chart(Box::new(Chart {
            id: "flame-graph",
            title,
            note,
            plot: Plot::Flame(Box::new(Flame {
                quantity: quantity.to_owned(),
                unit: profile.unit,
                tree,
                is_difference: false,
            })),
            data: table(profile, usize::MAX),
        })),
    ]
}

/// The result in words: the two frames with most of their own.
fn busiest(profile: &Profile) -> Option<String> {
    let [first, second, ..] = &profile.hot[..] else {
        return None;
    };
    Some(format!(
        "{} and {} have {} of the {}",
        first.frame,
        second.frame,
        numbers::share(first.self_share + second.self_share),
        quantity(profile.event, profile.unit)
    ))
}

fn table(profile: &Profile, most: usize) -> Table {
    let row = |hot: &HotFrame| {
        let share = |fraction: f64| Cell::number(Some(fraction), numbers::share);
        let own = Cell {
            raw: Some(hot.own as f64),
            ..Cell::text(flame::weight(hot.own, profile.unit))
        };
        vec![
            share(hot.self_share),
            share(hot.total_share),
            own,
            Cell::text(&hot.frame),
            Cell::text(flame::kind(hot.kind)),
        ]
    };
    Table {
        caption: "Self: stacks that end in the frame. Total: stacks that contain it, once each."
            .to_owned(),
        columns: vec![
            Column::number("Self", "self_share"),
            Column::number("Total", "total_share"),
            Column::number("Weight", "self").rank(2),
            Column::words("Frame", "frame").least(30),
            Column::words("Kind", "kind").rank(3),
        ],
        rows: profile.hot.iter().take(most).map(row).collect(),
    }
}

fn frames(profile: &Profile) -> Vec<Block> {
    vec![
        Block::section("frames", "Hot frames"),
        Block::Table(table(profile, SHOWN)),
    ]
}

fn threads(profile: &Profile) -> Vec<Block> {
    if profile.threads.is_empty() {
        return Vec::new();
    }
    let rows = profile.threads.iter().take(SHOWN).map(|thread| {
        vec![
            Cell::number(Some(thread.share), numbers::share),
            Cell::count(thread.threads),
            Cell::text(&thread.name),
            Cell::text(thread.hottest.as_deref().unwrap_or(ABSENT)),
        ]
    });
    vec![
        Block::section("threads", "Threads"),
        Block::Table(Table {
            caption: "Threads whose names differ by numbers only are one row.".to_owned(),
            columns: vec![
                Column::number("Share", "share"),
                Column::number("Threads", "threads").rank(2),
                Column::words("Thread", "thread").least(20),
                Column::words("Hottest frame", "hottest").rank(1).least(20),
            ],
            rows: rows.collect(),
        }),
    ]
}

fn kinds(profile: &Profile) -> Vec<Block> {
    if profile.shares.len() < 2 {
        return Vec::new();
    }
    let rows = profile.shares.iter().map(|share| {
        let interval = match (share.low, share.high) {
            (Some(low), Some(high)) => {
                format!("{} to {}", numbers::share(low), numbers::share(high))
            }
            _ => ABSENT.to_owned(),
        };
        vec![
            Cell::number(Some(share.share), numbers::share),
            Cell::text(interval),
            Cell::text(flame::kind(share.name)),
        ]
    });
    vec![
        Block::section("kinds", "Kinds of code"),
        Block::Table(Table {
            caption: "By the innermost frame. The interval is that of sampling, 95 %.".to_owned(),
            columns: vec![
                Column::number("Share", "share"),
                Column::words("Interval", "interval"),
                Column::words("Kind", "kind"),
            ],
            rows: rows.collect(),
        }),
    ]
}
