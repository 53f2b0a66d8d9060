//! Shares of many like things: a table whose cells have the same shade for the same share. The number is
//! in the cell, so that the shade is never needed.

use maud::{Markup, html};

use crate::block::{Map, SHADES, shade};
use crate::numbers;

pub(super) fn draw(plot: &Map, title: &str) -> Markup {
    let columns = 1 + plot.shares.len() + plot.words.len();
    html! {
        ul.legend {
            @for (index, least) in SHADES.iter().enumerate() {
                li { span.swatch.{ "s" (index + 1) } {} "from " (numbers::share(*least)) }
            }
        }
        div.scroll role="region" aria-label=(title) tabindex="0" {
            table.map {
                thead {
                    tr {
                        th scope="col" { (plot.thing) }
                        @for name in &plot.shares { th.n scope="col" { (name) } }
                        @for name in &plot.words { th scope="col" { (name) } }
                    }
                }
                @for group in &plot.groups {
                    tbody {
                        @if !group.title.is_empty() {
                            tr { th.of scope="rowgroup" colspan=(columns) { (group.title) } }
                        }
                        @for row in &group.rows {
                            tr {
                                th scope="row" { (row.name) }
                                @for share in &row.shares {
                                    @match share {
                                        Some(share) => td.n.{ "s" (shade(*share)) } { (numbers::share(*share)) },
                                        None => td.n { (numbers::ABSENT) },
                                    }
                                }
                                @for words in &row.words { td.words { (words) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
