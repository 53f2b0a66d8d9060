//! Dots and lines over time. All dots of a kind are one path of zero-length strokes: the stroke does not
//! scale with the picture, so dots stay round at any width, and a dot costs ten bytes.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::parts::{anchor, key, percent};
use crate::block::{Chart, Dots, Point, Series};
use crate::scale::{Axis, Tick, Unit, thin_out};

/// Height of the plot in pixels; the width is the window's.
const HEIGHT: f64 = 210.0;
/// Inner units of the stretched picture.
const ACROSS: f64 = 10_000.0;
const DOWN: f64 = 1_000.0;

pub(super) fn draw(plot: &Dots, chart: &Chart) -> Markup {
    let values = || {
        plot.series
            .iter()
            .flat_map(|series| series.points.iter().map(|p| p.value))
    };
    let y = if plot.from_zero {
        Axis::from_zero(values(), plot.unit)
    } else {
        Axis::fitting(values(), plot.unit)
    };
    let x = Axis::between(plot.from_s, plot.until_s, Unit::Seconds);
    let spans: Vec<Tick> = plot
        .spans
        .iter()
        .map(|span| Tick {
            at: f64::midpoint(x.position(span.from_s), x.position(span.to_s)),
            label: span.label.clone(),
            always: false,
        })
        .collect();
    html! {
        ul.legend {
            @for series in &plot.series { (key(&sample(series), &series.name)) }
            @if values_are_hollow(plot) {
                (key(&html! { circle cx="8" cy="6" r="3.2" class="hollow" {} }, "hollow: discarded"))
            }
        }
        p.quantity { (plot.quantity) @if y.is_log() { ", logarithmic" } }
        div.dots {
            svg width="100%" height=(HEIGHT) role="img" aria-labelledby={ (chart.id) "-t " (chart.id) "-d" } {
                title id={ (chart.id) "-t" } { (chart.title) }
                desc id={ (chart.id) "-d" } { (plot.quantity) " over time. " (chart.note) }
                @for (index, span) in plot.spans.iter().enumerate() {
                    @let from = x.position(span.from_s);
                    rect x=(percent(from)) width=(percent(x.position(span.to_s) - from)) y="0" height=(HEIGHT) class=(if index % 2 == 0 { "span" } else { "span odd" }) {
                        title { (span.title) }
                    }
                }
                @for tick in thin_out(spans, 0.018, 0.07) {
                    text x=(percent(tick.at)) y="-6" text-anchor="middle" class=[(!tick.always).then_some("w")] { (tick.label) }
                }
                @for tick in y.ticks(0.09, 0.09) {
                    @let at = format!("{:.1}", (1.0 - tick.at) * HEIGHT);
                    line x1="0" x2="100%" y1=(at) y2=(at) class="grid" {}
                    text x="-8" y=(at) dy="0.32em" text-anchor="end" { (tick.label) }
                }
                @for tick in x.ticks(0.08, 0.22) {
                    @let at = percent(tick.at);
                    line x1=(at) x2=(at) y1=(HEIGHT) y2=(HEIGHT + 4.0) class="tick" {}
                    text x=(at) y=(HEIGHT + 18.0) text-anchor=(anchor(tick.at)) class=[(!tick.always).then_some("w")] { (tick.label) }
                }
                svg width="100%" height=(HEIGHT) viewBox={ "0 0 " (ACROSS) " " (DOWN) } preserveAspectRatio="none" overflow="visible" {
                    @for series in &plot.series {
                        @let shape = if series.square { "a" } else { "b" };
                        @let kind = if series.joined { "l " } else { "p " };
                        path d=(path(series, false, &x, &y)) class={ (kind) (shape) " h" (series.hue) } {}
                        @let hollow = path(series, true, &x, &y);
                        @if !hollow.is_empty() {
                            path d=(hollow) class={ "p " (shape) " h" (series.hue) } {}
                            path d=(hollow) class={ "p hole " (shape) } {}
                        }
                    }
                }
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

fn path(series: &Series, hollow: bool, x: &Axis, y: &Axis) -> String {
    let mut d = String::new();
    let drawn = |p: &&Point| p.hollow == hollow && p.value.is_finite() && p.at_s.is_finite();
    for point in series.points.iter().filter(drawn) {
        let across = x.position(point.at_s) * ACROSS;
        let down = (1.0 - y.position(point.value)) * DOWN;
        let _ = if series.joined && !d.is_empty() {
            write!(d, "L{across:.0} {down:.0}")
        } else {
            write!(d, "M{across:.0} {down:.0}h.1")
        };
    }
    d
}
