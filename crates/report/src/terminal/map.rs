//! Shares of many like things as a table with shaded cells. Of more rows than fit a screen, the ones with
//! the largest shares.

use super::text::{Paint, clean, pad, shorten, width_of};
use crate::block::{Map, MapGroup, MapRow, shade};
use crate::numbers;

/// Rows shown: with the findings above, about what a person scrolls through.
const MOST: usize = 24;
/// One character per shade.
const FILLS: [char; 6] = [' ', '·', '░', '▒', '▓', '█'];
/// `█ 100 %`
const CELL: usize = 7;

pub(super) fn draw(plot: &Map, width: usize, paint: Paint) -> Vec<String> {
    let all = || plot.groups.iter().flat_map(|group| &group.rows);
    let names = all()
        .map(|row| width_of(&row.name))
        .chain([width_of(plot.thing)])
        .max()
        .unwrap_or(0);
    let cells: Vec<usize> = plot
        .shares
        .iter()
        .map(|name| width_of(name).max(CELL))
        .collect();
    let used = names + cells.iter().map(|cell| cell + 2).sum::<usize>();
    let words = words_widths(plot, width.saturating_sub(used));
    let row_of = |name: &str, shares: Vec<String>, texts: Vec<String>| {
        let mut line = pad(name, names, true);
        for (share, cell) in shares.iter().zip(&cells) {
            line.extend(["  ", &pad(share, *cell, true)]);
        }
        for (text, room) in texts.iter().zip(&words) {
            line.extend(["  ", &pad(&shorten(&clean(text), *room), *room, false)]);
        }
        line.trim_end().to_owned()
    };
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let head = row_of(plot.thing, owned(&plot.shares), owned(&plot.words));
    let mut lines = vec![paint.bold(&head)];
    let least = least_shown(plot);
    let mut left = MOST;
    for MapGroup { title, rows } in &plot.groups {
        if !title.is_empty() {
            lines.push(paint.dim(&clean(title)));
        }
        for row in rows {
            if left == 0 || largest(row) < least {
                continue;
            }
            left -= 1;
            let shares = row.shares.iter().map(|share| cell(*share)).collect();
            lines.push(row_of(&row.name, shares, row.words.clone()));
        }
    }
    let hidden = all().count().saturating_sub(MOST - left);
    if hidden > 0 {
        let note = format!("{hidden} less busy rows are in the HTML report");
        lines.push(paint.dim(&note));
    }
    lines
}

fn cell(share: Option<f64>) -> String {
    share.map_or_else(
        || numbers::ABSENT.to_owned(),
        |share| format!("{} {:>3.0} %", FILLS[shade(share)], share * 100.0),
    )
}

fn largest(row: &MapRow) -> f64 {
    row.shares.iter().flatten().copied().fold(0.0, f64::max)
}

/// The share that the last shown row has.
fn least_shown(plot: &Map) -> f64 {
    let mut all: Vec<f64> = plot
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .map(largest)
        .collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.get(MOST - 1).copied().unwrap_or(0.0)
}

/// Room for each column of words; those that do not fit are left out.
fn words_widths(plot: &Map, mut room: usize) -> Vec<usize> {
    let rows = || plot.groups.iter().flat_map(|group| &group.rows);
    plot.words
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let widest = rows()
                .filter_map(|row| row.words.get(index))
                .map(|text| width_of(&clean(text)))
                .max()
                .unwrap_or(0);
            let wanted = if widest == 0 {
                0
            } else {
                widest.max(width_of(name))
            };
            let given = wanted.min(room.saturating_sub(2));
            // Less than this is no word any more.
            let given = if given < wanted && given < 8 {
                0
            } else {
                given
            };
            room -= if given == 0 { 0 } else { given + 2 };
            given
        })
        .collect()
}
