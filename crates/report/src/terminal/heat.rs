//! Changes at the cells of a grid as a table. Columns that do not fit go below each other.

use super::text::{Paint, clean, pad, shorten, width_of};
use crate::block::{Heat, HeatCell, Mark};

/// Labels of rows wider than this are shortened.
const WIDEST: usize = 24;

pub(super) fn draw(plot: &Heat, width: usize, paint: Paint) -> Vec<String> {
    let title = clean(&plot.rows.title);
    let labels: Vec<String> = plot.rows.labels.iter().map(|label| clean(label)).collect();
    let names = labels
        .iter()
        .chain([&title])
        .map(|label| width_of(label))
        .max()
        .unwrap_or(0)
        .min(WIDEST);
    // Of one axis there is room for all.
    let with_notes = plot.columns.labels.len() == 1;
    let text = |cell: &HeatCell| shown(cell, with_notes);
    let heads: Vec<String> = plot
        .columns
        .labels
        .iter()
        .map(|label| clean(label))
        .collect();
    let cells = plot
        .cells
        .iter()
        .flatten()
        .map(|cell| width_of(&text(cell)));
    let room = width.saturating_sub(names + 2);
    let widest = cells
        .chain(heads.iter().map(|head| width_of(head)))
        .max()
        .unwrap_or(0)
        .min(room);
    let columns: Vec<usize> = (0..heads.len()).collect();
    let mut lines = Vec::new();
    for group in columns.chunks((room / (widest + 2)).max(1)) {
        if !plot.columns.title.is_empty() {
            let title = clean(&plot.columns.title);
            let line = format!("{}  {title}", " ".repeat(names));
            lines.push(paint.dim(&shorten(&line, width)));
        }
        let mut head = pad(&shorten(&title, names), names, false);
        for column in group {
            let field = pad(&shorten(&heads[*column], widest), widest, true);
            head.extend(["  ", &field]);
        }
        lines.push(paint.bold(&head));
        for (label, row) in labels.iter().zip(&plot.cells) {
            let mut line = pad(&shorten(label, names), names, false);
            for cell in group.iter().filter_map(|column| row.get(*column)) {
                let field = pad(&shorten(&text(cell), widest), widest, true);
                line.extend(["  ", &paint.tone(&field, cell.tone)]);
            }
            lines.push(line);
        }
    }
    lines.extend(legend(plot, width, paint));
    lines
}

/// The change, and what is special about it: `−41 % ✓`.
fn shown(cell: &HeatCell, with_notes: bool) -> String {
    let symbol = cell.mark.map_or(" ", |mark| mark.symbol);
    let mut text = format!("{} {symbol}", clean(&cell.text));
    if with_notes {
        for note in &cell.notes {
            text.extend(["  ", &clean(note)]);
        }
    }
    text
}

/// What the symbols mean, those that are there.
fn legend(plot: &Heat, width: usize, paint: Paint) -> Option<String> {
    let mut marks: Vec<Mark> = Vec::new();
    for mark in plot.cells.iter().flatten().filter_map(|cell| cell.mark) {
        if !marks.contains(&mark) {
            marks.push(mark);
        }
    }
    let words: Vec<String> = marks
        .iter()
        .map(|mark| format!("{} {}", mark.symbol, mark.word))
        .collect();
    (!words.is_empty()).then(|| paint.dim(&shorten(&words.join("   "), width)))
}
