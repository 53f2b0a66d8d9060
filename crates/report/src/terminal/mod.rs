//! Blocks as text for a terminal of a given width, with or without colour.
//!
//! Symbols and words carry the meaning, colour repeats it. Control characters in what was
//! measured or configured never reach the terminal.

mod cards;
mod columns;
mod flame;
mod heat;
mod layers;
mod live;
mod map;
pub(crate) mod plot;
mod steps;
pub(crate) mod text;

pub use live::{Live, Progress};

use crate::block::{Block, Cell, Column, Table, Tile, Tone, Verdict};
use text::{Paint, clean, pad, shorten, width_of, wrap};

/// Narrower terminals get lines of this width.
const NARROWEST: usize = 40;
/// Text wider than this is not read well.
const PROSE: usize = 100;
/// Rows of a folded table shown before the rest is only counted.
const FOLDED_ROWS: usize = 12;

/// The whole report.
pub fn render(blocks: &[Block], width: usize, color: bool) -> String {
    let page = Page {
        width: width.max(NARROWEST),
        paint: Paint { color },
    };
    let mut lines = Vec::new();
    for block in blocks {
        let from = lines.len();
        page.block(block, &mut lines);
        if from > 0 && lines.len() > from {
            lines.insert(from, String::new());
        }
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

struct Page {
    width: usize,
    paint: Paint,
}

impl Page {
    fn prose(&self) -> usize {
        self.width.min(PROSE)
    }

    fn block(&self, block: &Block, lines: &mut Vec<String>) {
        match block {
            Block::Section { title, .. } => {
                let title = clean(title);
                let rule = "─".repeat(self.prose().saturating_sub(width_of(&title) + 1));
                lines.push(format!(
                    "{} {}",
                    self.paint.bold(&title),
                    self.paint.dim(&rule)
                ));
            }
            Block::Prose(text) => lines.extend(wrap(text, self.prose())),
            Block::Notice { tone, text } => self.notice(*tone, text, lines),
            Block::Verdict(verdict) => self.verdict(verdict, lines),
            Block::Tiles(tiles) => self.tiles(tiles, lines),
            Block::List(items) => {
                for item in items {
                    self.item("• ", item, lines);
                }
            }
            Block::Facts(facts) => {
                let widest = facts
                    .iter()
                    .map(|(name, _)| width_of(name))
                    .max()
                    .unwrap_or(0);
                for (name, value) in facts {
                    let lead = format!("{}  ", pad(&clean(name), widest, false));
                    self.item(&lead, value, lines);
                }
            }
            Block::Code(code) => {
                lines.extend(code.iter().map(|line| format!("    {}", clean(line))));
            }
            Block::Table(table) => self.table(table, usize::MAX, lines),
            Block::Chart(chart) => {
                lines.extend(
                    wrap(&chart.title, self.prose())
                        .into_iter()
                        .map(|line| self.paint.bold(&line)),
                );
                lines.extend(
                    wrap(&chart.note, self.prose())
                        .into_iter()
                        .map(|line| self.paint.dim(&line)),
                );
                lines.extend(plot::draw(&chart.plot, self.width, self.paint));
            }
            Block::Fold { summary, blocks } => {
                lines.extend(wrap(summary, self.prose()));
                for block in blocks {
                    match block {
                        Block::Table(table) => self.table(table, FOLDED_ROWS, lines),
                        other => self.block(other, lines),
                    }
                }
            }
            Block::Cards(all) => cards::write(all, self.prose(), self.paint, lines),
            Block::Long { brief, .. } => {
                lines.extend(wrap(brief, self.prose()));
            }
        }
    }

    fn notice(&self, tone: Tone, text: &str, lines: &mut Vec<String>) {
        let bar = self.paint.tone("▌", tone);
        let wrapped = wrap(text, self.prose() - 2);
        lines.extend(wrapped.into_iter().map(|line| format!("{bar} {line}")));
    }

    /// A hanging paragraph.
    fn item(&self, lead: &str, text: &str, lines: &mut Vec<String>) {
        let indent = width_of(lead);
        let body = wrap(text, self.prose().saturating_sub(indent).max(20));
        for (index, line) in body.into_iter().enumerate() {
            let lead = if index == 0 {
                self.paint.dim(lead)
            } else {
                " ".repeat(indent)
            };
            lines.push(format!("{lead}{line}"));
        }
    }

    fn verdict(&self, verdict: &Verdict, lines: &mut Vec<String>) {
        let mark = format!("{} {}", verdict.mark.symbol, verdict.mark.word);
        let body = wrap(&format!("{mark}: {}", verdict.sentence), self.prose());
        for (index, line) in body.into_iter().enumerate() {
            match line.strip_prefix(&mark).filter(|_| index == 0) {
                Some(rest) => {
                    let mark = self.paint.tone(&mark, verdict.mark.tone);
                    lines.push(format!("{mark}{}", self.paint.bold(rest)));
                }
                None => lines.push(self.paint.bold(&line)),
            }
        }
        let context = verdict.context.join(" · ");
        lines.extend(
            wrap(&context, self.prose())
                .into_iter()
                .map(|line| self.paint.dim(&line)),
        );
        for (text, _) in &verdict.caveats {
            lines.push(self.paint.tone(&format!("! {}", clean(text)), Tone::Doubt));
        }
    }

    fn tiles(&self, tiles: &[Tile], lines: &mut Vec<String>) {
        let value = |tile: &Tile| match &tile.before {
            Some(before) => clean(&format!("{before} → {}", tile.value)),
            None => clean(&tile.value),
        };
        let labels = tiles
            .iter()
            .map(|tile| width_of(&tile.label))
            .max()
            .unwrap_or(0);
        let values = tiles
            .iter()
            .map(|tile| width_of(&value(tile)))
            .max()
            .unwrap_or(0);
        for tile in tiles {
            let label = self.paint.dim(&pad(&clean(&tile.label), labels, false));
            let shown = self.paint.bold(&pad(&value(tile), values, false));
            let used = labels + values + 6;
            let detail = clean(&tile.detail);
            if used + width_of(&detail) <= self.width {
                lines.push(format!("  {label}  {shown}  {}", self.paint.dim(&detail)));
            } else {
                lines.push(format!("  {label}  {shown}"));
                let room = self.width.saturating_sub(labels + 4).max(16);
                for line in wrap(&tile.detail, room) {
                    lines.push(format!(
                        "{}{}",
                        " ".repeat(labels + 4),
                        self.paint.dim(&line)
                    ));
                }
            }
        }
    }

    /// Words that may be shortened are; then columns give way by their rank until the rest fits. What was left out is
    /// named.
    fn table(&self, table: &Table, most: usize, lines: &mut Vec<String>) {
        let Fitted {
            shown,
            widths,
            mut left_out,
        } = fit(table, self.width);
        for about in shown
            .iter()
            .filter_map(|i| table.columns[*i].about.as_ref())
        {
            self.notice(Tone::Quiet, about, lines);
            lines.push(String::new());
        }
        lines.extend(
            wrap(&table.caption, self.prose())
                .into_iter()
                .map(|line| self.paint.dim(&line)),
        );
        let head: Vec<String> = shown
            .iter()
            .map(|i| {
                pad(
                    &clean(&table.columns[*i].name),
                    widths[*i],
                    table.columns[*i].numeric,
                )
            })
            .collect();
        lines.push(self.paint.bold(&head.join("  ")));
        for row in table.rows.iter().take(most) {
            let fields: Vec<String> = shown
                .iter()
                .filter_map(|i| row.get(*i).map(|cell| (*i, cell)))
                .map(|(i, cell)| {
                    let column = &table.columns[i];
                    let words = shown_of(cell, column);
                    self.paint.tone(
                        &pad(&shorten(&words, widths[i]), widths[i], column.numeric),
                        cell.tone,
                    )
                })
                .collect();
            lines.push(fields.join("  "));
        }
        if table.rows.len() > most {
            let more = format!(
                "… and {} more in the HTML and JSON reports",
                table.rows.len() - most
            );
            lines.push(self.paint.dim(&more));
        }
        if !left_out.is_empty() {
            left_out.reverse();
            let note = format!("not shown at this width: {}", left_out.join(", "));
            lines.extend(
                wrap(&note, self.prose())
                    .into_iter()
                    .map(|line| self.paint.dim(&line)),
            );
        }
    }
}

/// What of a table a terminal shows.
struct Fitted {
    /// Columns by their place in the table.
    shown: Vec<usize>,
    /// Widths of all columns, also by their place.
    widths: Vec<usize>,
    /// Names of the columns that are not shown, the first to go first.
    left_out: Vec<String>,
}

fn fit(table: &Table, width: usize) -> Fitted {
    // The last column has no gap behind it.
    let room = width + 2;
    let mut widths: Vec<usize> = (0..table.columns.len())
        .map(|index| natural(table, index))
        .collect();
    let floors: Vec<usize> = widths
        .iter()
        .zip(&table.columns)
        .map(|(width, column)| column.least.map_or(*width, |least| least.min(*width)))
        .collect();
    let mut shown: Vec<usize> = (0..table.columns.len()).collect();
    let mut left_out = Vec::new();
    while total_of(&floors, &shown) > room {
        let Some(place) = (0..shown.len())
            .filter(|place| table.columns[shown[*place]].rank > 0)
            .max_by_key(|place| table.columns[shown[*place]].rank)
        else {
            break;
        };
        left_out.push(clean(&table.columns[shown.remove(place)].name));
    }
    while total_of(&widths, &shown) > room {
        let spare = shown.iter().copied().filter(|i| widths[*i] > floors[*i]);
        let Some(widest) = spare.max_by_key(|i| widths[*i]) else {
            break;
        };
        widths[widest] -= 1;
    }
    // What still does not fit comes off the widest column of words.
    while total_of(&widths, &shown) > room {
        let words = shown.iter().copied().filter(|i| !table.columns[*i].numeric);
        let Some(widest) = words.max_by_key(|i| widths[*i]).filter(|i| widths[*i] > 8) else {
            break;
        };
        widths[widest] -= 1;
    }
    Fitted {
        shown,
        widths,
        left_out,
    }
}

/// Width of a column that shows everything.
fn natural(table: &Table, index: usize) -> usize {
    let column = &table.columns[index];
    let cells = table.rows.iter().filter_map(|row| row.get(index));
    cells
        .map(|cell| width_of(&shown_of(cell, column)))
        .chain([width_of(&clean(&column.name))])
        .max()
        .unwrap_or(0)
}

/// A second line would double the row: an interval follows its number where the column always stays, all else of that
/// kind is in the other formats.
fn shown_of(cell: &Cell, column: &Column) -> String {
    match &cell.note {
        Some(note) if column.numeric && column.rank == 0 => clean(&format!("{} {note}", cell.text)),
        _ => clean(&cell.text),
    }
}

fn total_of(widths: &[usize], shown: &[usize]) -> usize {
    shown.iter().map(|i| widths[*i] + 2).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_shortened_before_a_number_gives_way() {
        let columns = vec![
            Column::words("Rung", "title").least(8),
            Column::number("Rate", "rate"),
            Column::number("Cost", "cost").rank(1),
            Column::number("Theirs", "theirs").rank(2),
        ];
        let row = ["a title of some length", "100 k/s", "12 µs", "270 k/s"];
        let table = Table {
            columns,
            rows: vec![row.map(Cell::text).to_vec()],
            ..Table::default()
        };
        let shown = |width| {
            let fitted = fit(&table, width);
            (fitted.shown.len(), fitted.widths[0])
        };
        assert_eq!(shown(80), (4, 22));
        assert_eq!(shown(40), (4, 15));
        assert_eq!(shown(33), (4, 8));
        // The highest rank goes first, and the title takes the room.
        assert_eq!(shown(32), (3, 16));
        assert_eq!(fit(&table, 32).left_out, ["Theirs"]);
    }
}
