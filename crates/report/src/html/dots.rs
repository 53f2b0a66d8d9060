//! Dots and lines over time. All dots of a kind are one path of zero-length strokes: the stroke does not
//! scale with the picture, so dots stay round at any width, and a dot costs ten bytes.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::parts::key;
use super::time::Time;
use crate::block::{Chart, Dots, Point, Series};
use crate::scale::{Axis, Unit};

/// Height of the plot in pixels; the width is the window's.
const HEIGHT: f64 = 210.0;
/// Inner units of the stretched picture.
const DOWN: f64 = 1_000.0;

pub(super) fn draw(plot: &Dots, chart: &Chart) -> Markup {
    let y = plot.axis();
    let time = Time::new(plot.from_s, plot.until_s, plot.along, &plot.spans);
    let (from, until) = time.ends();
    let drawn = html! {
        @for series in &plot.series {
            @let shape = if series.square { "a" } else { "b" };
            // A line through one point would not be seen.
            @let kind = if series.joined && series.points.len() > 1 { "l " } else { "p " };
            path d=(path(series, false, &time, &y)) class={ (kind) (shape) " h" (series.hue) } {}
            @let hollow = path(series, true, &time, &y);
            @if !hollow.is_empty() {
                path d=(hollow) class={ "p " (shape) " h" (series.hue) } {}
                path d=(hollow) class={ "p hole " (shape) } {}
            }
        }
    };
    html! {
        ul.legend {
            @for series in &plot.series { (key(&sample(series), &series.name)) }
            @if values_are_hollow(plot) {
                (key(&html! { circle cx="8" cy="6" r="3.2" class="hollow" {} }, "hollow: discarded"))
            }
        }
        p.quantity { (plot.quantity) @if y.is_log() { ", logarithmic" } }
        div.dots {
            svg class=[plot.zooms.then_some("time")] data-from=[plot.zooms.then_some(from)] data-until=[plot.zooms.then_some(until)] width="100%" height=(HEIGHT) role="img" aria-labelledby={ (chart.id) "-t " (chart.id) "-d" } {
                title id={ (chart.id) "-t" } { (chart.title) }
                desc id={ (chart.id) "-d" } { (plot.quantity) @if plot.along == Unit::Seconds { " over time" } ". " (chart.note) }
                (time.spans(HEIGHT))
                @for tick in y.ticks(0.09, 0.09) {
                    @let at = format!("{:.1}", (1.0 - tick.at) * HEIGHT);
                    line x1="0" x2="100%" y1=(at) y2=(at) class="grid" {}
                    text x="-8" y=(at) dy="0.32em" text-anchor="end" { (tick.label) }
                }
                @if plot.names.is_empty() { (time.ticks(HEIGHT)) } @else { (time.names(&plot.names, HEIGHT)) }
                (Time::inner(0.0, HEIGHT, DOWN, &drawn))
            }
        }
    }
}

fn values_are_hollow(plot: &Dots) -> bool {
    plot.series
        .iter()
        .any(|series| series.points.iter().any(|point| point.hollow))
}

fn sample(series: &Series) -> Markup {
    let shape = if series.square { "a" } else { "b" };
    html! {
        @if series.joined {
            path d="M0 6h16" class={ "l " (shape) " h" (series.hue) } {}
        } @else {
            path d="M8 6h.1" class={ "p " (shape) " h" (series.hue) } {}
        }
    }
}

fn path(series: &Series, hollow: bool, time: &Time<'_>, y: &Axis) -> String {
    let mut d = String::new();
    let drawn = |p: &&Point| p.hollow == hollow && p.value.is_finite() && p.at_s.is_finite();
    for point in series.points.iter().filter(drawn) {
        let across = time.across(point.at_s);
        let down = (1.0 - y.position(point.value)) * DOWN;
        let _ = if series.joined && !d.is_empty() {
            write!(d, "L{across:.0} {down:.0}")
        } else {
            write!(d, "M{across:.0} {down:.0}h.1")
        };
    }
    d
}
