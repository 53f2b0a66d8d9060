//! Blocks as one HTML file that needs nothing else: no network, no font, and no script but two of its own, on pages that have
//! such pictures: one zooms pictures over time, one draws flame graphs. Without them both are shown whole.
//!
//! Every chart is SVG without a view box: positions across are percentages of the width that the
//! window gives, text and strokes keep their size. So one picture fits 360 px, 1600 px and paper.

mod bars;
mod cards;
mod columns;
mod dots;
mod flame;
mod heat;
mod intervals;
mod layers;
mod map;
mod parts;
mod steps;
mod time;

use std::borrow::Cow;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::parts::words;
use crate::block::{Block, Cell, Chart, Column, Mark, Plot, Table, Tile, Tone, Verdict};
use crate::csv;

const STYLE: &str = include_str!("style.css");
const ZOOM: &str = include_str!("zoom.js");
const FLAME: &str = include_str!("flame.js");
const FLAME_STYLE: &str = include_str!("flame.css");

/// The whole page.
pub fn page(title: &str, blocks: &[Block]) -> String {
    let sections = sections(blocks);
    let has_flame = blocks.iter().any(has_flame);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="rungwise";
                title { (title) }
                style { (PreEscaped(STYLE)) }
                @if has_flame { style { (PreEscaped(FLAME_STYLE)) } }
            }
            body {
                a.skip href="#main" { "Skip to the result" }
                header.top {
                    span.brand { (parts::logo()) "rungwise" }
                    @if sections.len() > 1 {
                        nav aria-label="Sections" {
                            @for (id, title) in &sections { a href={ "#" (id) } { (title) } }
                        }
                    }
                }
                main id="main" {
                    h1 { (title) }
                    @for block in blocks { (render(&below(title, block))) }
                }
                @if blocks.iter().any(zooms) { script { (PreEscaped(ZOOM)) } }
                @if has_flame { script { (PreEscaped(FLAME)) } }
            }
        }
    }
    .into_string()
    // A page may be looked at in a terminal, too, and HTML has no use for them.
    .replace(
        |c: char| c.is_control() && !matches!(c, '\n' | '\t'),
        "\u{fffd}",
    )
}

/// The block as it stands below the heading `title`: a verdict does not say it once more.
fn below<'b>(title: &str, block: &'b Block) -> Cow<'b, Block> {
    let Block::Verdict(verdict) = block else {
        return Cow::Borrowed(block);
    };
    let mut verdict = verdict.clone();
    verdict.context.retain(|piece| piece != title);
    Cow::Owned(Block::Verdict(verdict))
}

/// Anchors and headings of what is open.
fn sections(blocks: &[Block]) -> Vec<(&str, &str)> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            Block::Section { id, title } => all.push((*id, title.as_str())),
            Block::Long {
                summary, blocks, ..
            } if summary.is_empty() => all.extend(sections(blocks)),
            _ => {}
        }
    }
    all
}

/// It holds a picture that a script may show more of.
fn zooms(block: &Block) -> bool {
    match block {
        Block::Chart(chart) => match &chart.plot {
            Plot::Dots(dots) => dots.zooms,
            Plot::Layers(_) => true,
            _ => false,
        },
        Block::Fold { blocks, .. } | Block::Long { blocks, .. } => blocks.iter().any(zooms),
        _ => false,
    }
}

/// It holds a flame graph.
fn has_flame(block: &Block) -> bool {
    match block {
        Block::Chart(chart) => matches!(chart.plot, Plot::Flame(_)),
        Block::Fold { blocks, .. } | Block::Long { blocks, .. } => blocks.iter().any(has_flame),
        _ => false,
    }
}

fn render(block: &Block) -> Markup {
    match block {
        Block::Section { id, title } => html! { h2 id=(id) { (title) } },
        Block::Prose(text) => html! { p { (words(text)) } },
        Block::Notice { tone, text } => html! { p.notice.(class(*tone)) { (words(text)) } },
        Block::Verdict(verdict) => render_verdict(verdict),
        Block::Tiles(tiles) => html! { dl.tiles { @for tile in tiles { (render_tile(tile)) } } },
        Block::List(items) => html! { ul { @for item in items { li { (words(item)) } } } },
        Block::Facts(facts) => html! {
            dl.facts { @for (name, value) in facts { div { dt { (words(name)) } dd { (words(value)) } } } }
        },
        Block::Code(lines) => html! {
            pre tabindex="0" { code { @for line in lines { (line) "\n" } } }
        },
        Block::Table(table) => html! {
            @for about in table.columns.iter().filter_map(|column| column.about.as_ref()) {
                p.notice.(class(Tone::Quiet)) { (words(about)) }
            }
            @if !table.caption.is_empty() { p.caption { (words(&table.caption)) } }
            (scrolling(table))
            (csv_link(table, "table"))
        },
        Block::Chart(chart) => render_chart(chart),
        Block::Fold { summary, blocks } => html! {
            details.keep {
                summary { (summary) }
                @for block in blocks { (render(block)) }
            }
        },
        Block::Cards(cards) => cards::draw(cards),
        Block::Long {
            summary, blocks, ..
        } => html! {
            @if summary.is_empty() {
                @for block in blocks { (render(block)) }
            } @else {
                details.keep {
                    summary { (summary) }
                    @for block in blocks { (render(block)) }
                }
            }
        },
    }
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Doubt => "doubt",
        Tone::Quiet => "quiet",
    }
}

fn mark(mark: Mark) -> Markup {
    html! {
        span.mark.(class(mark.tone)) { span.symbol aria-hidden="true" { (mark.symbol) } " " (mark.word) }
    }
}

fn render_verdict(verdict: &Verdict) -> Markup {
    html! {
        section.verdict aria-label="Verdict" {
            p.sentence { (mark(verdict.mark)) " " (words(&verdict.sentence)) }
            ul.context { @for piece in &verdict.context { li { (words(piece)) } } }
            @if !verdict.caveats.is_empty() {
                p.caveats {
                    @for (index, (text, target)) in verdict.caveats.iter().enumerate() {
                        @if index > 0 { " · " }
                        a href={ "#" (target) } { (text) }
                    }
                }
            }
        }
    }
}

fn render_tile(tile: &Tile) -> Markup {
    html! {
        div.tile.(class(tile.tone)) {
            dt { (tile.label) }
            dd.value {
                @if let Some(before) = &tile.before {
                    span.before { (before) } span.arrow { " → " }
                }
                strong { (tile.value) }
            }
            dd.detail { (words(&tile.detail)) }
        }
    }
}

fn render_chart(chart: &Chart) -> Markup {
    html! {
        figure id=(chart.id) {
            figcaption {
                h3 { (words(&chart.title)) }
                @if !chart.note.is_empty() { p { (words(&chart.note)) } }
            }
            @match &chart.plot {
                Plot::Intervals(plot) => (intervals::draw(plot, &chart.title)),
                Plot::Dots(plot) => (dots::draw(plot, chart)),
                Plot::Bars(plot) => (bars::draw(plot, &chart.title)),
                Plot::Map(plot) => (map::draw(plot, &chart.title)),
                Plot::Heat(plot) => (heat::draw(plot, &chart.title)),
                Plot::PathStages(plot) => (steps::draw(plot, &chart.title)),
                Plot::Columns(plot) => (columns::draw(plot, chart)),
                Plot::Layers(plot) => (layers::draw(plot, chart)),
                Plot::Flame(plot) => (flame::draw(plot, &chart.title)),
            }
            div.behind {
                details {
                    summary { "Data table" }
                    (scrolling(&chart.data))
                }
                (csv_link(&chart.data, chart.id))
            }
        }
    }
}

/// A wide table scrolls inside its own box; the box can be reached with the keyboard.
fn scrolling(table: &Table) -> Markup {
    html! {
        div.scroll role="region" aria-label=(table.caption) tabindex="0" { (grid(table)) }
    }
}

fn grid(table: &Table) -> Markup {
    let heading = |index: usize| {
        table
            .columns
            .get(index)
            .is_some_and(|c| c.key == "title" || c.key == "at_s")
    };
    html! {
        table {
            thead {
                tr { @for column in &table.columns { th scope="col" class=[column.numeric.then_some("n")] { (column.name) } } }
            }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (index, cell) in row.iter().enumerate() {
                            @let class = table.columns.get(index).and_then(column_class);
                            @if heading(index) {
                                th scope="row" class=[class] { (field(cell)) }
                            } @else {
                                td class=[class] { (field(cell)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn column_class(column: &Column) -> Option<&'static str> {
    match (column.numeric, column.key) {
        (true, _) => Some("n"),
        (false, "reason") => Some("reason"),
        _ => None,
    }
}

fn field(cell: &Cell) -> Markup {
    html! {
        @if cell.tone == Tone::Plain { (words(&cell.text)) } @else { span.(class(cell.tone)) { (words(&cell.text)) } }
        @if let Some(note) = &cell.note { small { (words(note)) } }
    }
}

fn csv_link(table: &Table, name: &str) -> Markup {
    let file = format!("{name}.csv");
    html! {
        a.csv download=(file) href={ "data:text/csv;charset=utf-8," (csv::percent_encoded(table)) } { "CSV" }
    }
}
