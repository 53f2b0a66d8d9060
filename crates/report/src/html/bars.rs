//! Stacked bars, one group per rung: a strip per CPU, or the cost of both sides.

use maud::{Markup, html};

use super::parts::{anchor, key, percent};
use crate::block::{Bar, Bars};
use crate::scale::{Axis, Unit};

/// A part is labelled inside from this share on: about 45 px in a narrow window. One that is the whole bar has its number
/// at the end.
const LABEL_FROM: f64 = 0.17;

pub(super) fn draw(plot: &Bars, title: &str) -> Markup {
    let sum = |bar: &Bar| bar.values.iter().sum::<f64>();
    let axis = if plot.whole {
        Axis::exact(1.0, plot.unit)
    } else {
        Axis::from_zero(
            plot.groups
                .iter()
                .flat_map(|group| group.bars.iter().map(sum)),
            plot.unit,
        )
    };
    let ticks = axis.ticks(0.1, 0.3);
    html! {
        ul.legend {
            @for part in &plot.parts {
                (key(&html! { rect width="16" height="12" rx="2" class={ "f" (part.hue) } {} }, part.name))
            }
        }
        div.bars role="group" aria-label=(title) {
            @for group in &plot.groups {
                div.group {
                    div.name title=(group.title) { (group.title) }
                    div.lines {
                        @for bar in &group.bars {
                            div.line {
                                @if !bar.label.is_empty() { span.label { (bar.label) } }
                                (strip(plot, bar, &axis, &group.title))
                                span.total { (bar.total) }
                            }
                        }
                    }
                }
            }
            div.group.foot aria-hidden="true" {
                div.name {}
                div.lines {
                    div.line {
                        @if plot.groups.iter().any(|g| g.bars.iter().any(|b| !b.label.is_empty())) { span.label {} }
                        svg width="100%" height="34" {
                            @for tick in &ticks {
                                @let at = percent(tick.at);
                                line x1=(at) x2=(at) y1="0" y2="4" class="tick" {}
                                text x=(at) y="15" text-anchor=(anchor(tick.at)) class=[(!tick.always).then_some("w")] { (tick.label) }
                            }
                            text x="0" y="31" class="quantity" { (plot.quantity) }
                        }
                        span.total {}
                    }
                }
            }
        }
    }
}

fn strip(plot: &Bars, bar: &Bar, axis: &Axis, group: &str) -> Markup {
    let mut from = 0.0;
    let mut pieces = Vec::new();
    for (part, value) in plot.parts.iter().zip(&bar.values) {
        let value = if value.is_finite() {
            value.max(0.0)
        } else {
            0.0
        };
        let (start, end) = (axis.position(from), axis.position(from + value));
        from += value;
        if end - start > 0.0005 {
            pieces.push((part, value, start, end - start));
        }
    }
    let words: Vec<String> = plot
        .parts
        .iter()
        .zip(&bar.values)
        .map(|(part, value)| format!("{} {}", part.name, plot.unit.show(*value)))
        .collect();
    html! {
        svg.strip width="100%" height="16" role="img" {
            title { (group) @if !bar.label.is_empty() { ", " (bar.label) } ": " (words.join(", ")) }
            @for (part, value, start, width) in pieces {
                rect x=(percent(start)) width=(percent(width)) height="16" class={ "f" (part.hue) } {}
                @if width >= LABEL_FROM && plot.parts.len() > 1 {
                    text x=(percent(start + width / 2.0)) y="12" text-anchor="middle" class={ "in t" (part.hue) } {
                        (label(plot.unit, value))
                    }
                }
            }
        }
    }
}

/// Inside a bar there is room for the number alone.
fn label(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{:.0}", value * 100.0),
        Unit::Bytes | Unit::Micros => unit.show(value),
        _ => crate::numbers::significant(value),
    }
}
