//! How often each size came: columns on a logarithmic axis. The heights are logarithmic, too: one long pause among a
//! million short ones is what the reader looks for. They begin below one, so that a single one still has a height.

use maud::{Markup, html};

use super::parts::{anchor, percent};
use crate::block::{Chart, Columns};
use crate::scale::{Axis, Tick, Unit};

/// Height of the plot in pixels; the width is the window's.
const HEIGHT: f64 = 190.0;
/// Where a height of zero lies on the logarithmic axis of counts.
const FLOOR: f64 = 0.6;

pub(super) fn draw(plot: &Columns, chart: &Chart) -> Markup {
    let low = plot.bins.first().map_or(1.0, |bin| bin.low);
    let high = plot.bins.last().map_or(1.0, |bin| bin.high);
    let x = Axis::powers(low, high, plot.unit);
    let most = plot.bins.iter().map(|bin| bin.count).max().unwrap_or(1);
    let y = Axis::powers(FLOOR, most as f64 * 1.15, Unit::Count);
    html! {
        p.quantity { (plot.counted) ", logarithmic" }
        div.dots.columns {
            svg width="100%" height=(HEIGHT) role="img" aria-labelledby={ (chart.id) "-t " (chart.id) "-d" } {
                title id={ (chart.id) "-t" } { (chart.title) }
                desc id={ (chart.id) "-d" } { "How many " (plot.counted) " by " (plot.quantity) ". " (chart.note) }
                @for tick in y.ticks(0.09, 0.09) {
                    @let at = format!("{:.1}", (1.0 - tick.at) * HEIGHT);
                    line x1="0" x2="100%" y1=(at) y2=(at) class="grid" {}
                    text x="-8" y=(at) dy="0.32em" text-anchor="end" { (tick.label) }
                }
                @for bin in &plot.bins {
                    @let from = x.position(bin.low);
                    @let top = (1.0 - y.position(bin.count as f64)) * HEIGHT;
                    rect x=(percent(from)) width=(percent(x.position(bin.high) - from)) y=(format!("{top:.1}")) height=(format!("{:.1}", HEIGHT - top)) {
                        title { (plot.unit.show(bin.low)) " to " (plot.unit.show(bin.high)) ": " (Unit::Count.show(bin.count as f64)) }
                    }
                }
                line x1="0" x2="100%" y1=(HEIGHT) y2=(HEIGHT) class="zero" {}
                @for tick in x.ticks(0.06, 0.2) {
                    @let at = percent(tick.at);
                    line x1=(at) x2=(at) y1=(HEIGHT) y2=(HEIGHT + 4.0) class="tick" {}
                    text x=(at) y=(HEIGHT + 18.0) text-anchor=(anchor(tick.at)) class=[(!tick.always).then_some("w")] { (tick.label) }
                }
                @for mark in marks(plot, &x) {
                    @let at = percent(mark.at);
                    line x1=(at) x2=(at) y1="-4" y2=(HEIGHT) class="mark-line" {}
                    text x=(at) y="-8" text-anchor=(anchor(mark.at)) class=(if mark.always { "named" } else { "named w" }) { (mark.label) }
                }
            }
        }
        p.quantity { (plot.quantity) ", logarithmic" }
    }
}

/// Names that would stand on each other give way to the largest.
fn marks(plot: &Columns, x: &Axis) -> Vec<Tick> {
    let mut kept: Vec<Tick> = Vec::new();
    let mut last_always = f64::INFINITY;
    for mark in plot.marks.iter().rev() {
        let at = x.position(mark.at);
        if kept.last().is_some_and(|right| right.at - at < 0.17) {
            continue;
        }
        let always = last_always - at >= 0.4;
        if always {
            last_always = at;
        }
        kept.push(Tick {
            at,
            label: format!("{} {}", mark.name, plot.unit.show(mark.at)),
            always,
        });
    }
    kept
}
