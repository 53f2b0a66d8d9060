//! Changes at the cells of a grid: a table with one colour for better and one for worse, darker for more. The number and the marks are
//! in the cells, so that no colour is needed.

use maud::{Markup, html};

use super::{class, mark};
use crate::block::{HEAT, Heat, HeatCell, Tone};
use crate::numbers;

pub(super) fn draw(plot: &Heat, title: &str) -> Markup {
    html! {
        ul.legend {
            @for (word, hue) in [("better", "s"), ("worse", "w")] {
                @for (index, least) in HEAT.iter().enumerate() {
                    li {
                        span.swatch.{ (hue) (index + 2) } {}
                        @if index == 0 { (word) " " } "from " (numbers::share(*least))
                    }
                }
            }
        }
        div.scroll role="region" aria-label=(title) tabindex="0" {
            table.map.heat {
                thead {
                    @if !plot.columns.title.is_empty() {
                        tr {
                            td {}
                            th.of scope="colgroup" colspan=(plot.columns.labels.len()) { (plot.columns.title) }
                        }
                    }
                    tr {
                        th scope="col" { (plot.rows.title) }
                        @for label in &plot.columns.labels { th.n scope="col" { (label) } }
                    }
                }
                tbody {
                    @for (label, cells) in plot.rows.labels.iter().zip(&plot.cells) {
                        tr {
                            th scope="row" { (label) }
                            @for cell in cells { (field(cell)) }
                        }
                    }
                }
            }
        }
    }
}

fn field(cell: &HeatCell) -> Markup {
    let shade = match (cell.tone, cell.level) {
        (Tone::Good, level @ 1..) => format!("s{}", level + 1),
        (Tone::Bad, level @ 1..) => format!("w{}", level + 1),
        _ => class(cell.tone).to_owned(),
    };
    let is_best = cell.mark.is_some_and(|mark| mark.tone == Tone::Good);
    html! {
        td.n.(shade).best[is_best] {
            (cell.text)
            @for note in &cell.notes { small { (note) } }
            @if let Some(special) = cell.mark { (mark(special)) }
        }
    }
}
