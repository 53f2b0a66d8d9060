//! Shares of the time of each step: stacked layers in one plot, or a lane for each.
//!
//! A layer is one path along the steps, down to the bottom; the highest is drawn first and lower ones over it. Neighbours
//! alike are one stroke, so that a quiet hour costs nothing.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::parts::key;
use super::time::Time;
use crate::block::{Chart, Layer, Layers};
use crate::scale::{Axis, Unit};

/// Height of the stack in pixels; the width is the window's.
const HEIGHT: f64 = 210.0;
/// Height of a lane, of the words above it, and of the space to the next.
const LANE: f64 = 16.0;
const WORDS: f64 = 17.0;
const SPACE: f64 = 9.0;
/// Inner units of the stretched picture.
const DOWN: f64 = 1_000.0;

pub(super) fn draw(plot: &Layers, chart: &Chart) -> Markup {
    let time = Time::new(plot.from_s, plot.until_s, Unit::Seconds, &plot.spans);
    let (from, until) = time.ends();
    let lanes = plot.layers.len() as f64 * (WORDS + LANE + SPACE);
    let height = if plot.stacked { HEIGHT } else { lanes };
    html! {
        @if plot.stacked {
            ul.legend {
                @for layer in &plot.layers {
                    (key(&html! { rect width="16" height="12" rx="2" class={ "f" (layer.hue) } {} }, &named(layer)))
                }
            }
            p.quantity { (plot.quantity) }
        }
        div.dots {
            svg class="time" data-from=(from) data-until=(until) width="100%" height=(height) role="img" aria-labelledby={ (chart.id) "-t " (chart.id) "-d" } {
                title id={ (chart.id) "-t" } { (chart.title) }
                desc id={ (chart.id) "-d" } { (plot.quantity) " over time. " (chart.note) }
                (time.spans(height))
                @if plot.stacked { (stack(plot, &time)) } @else { (side_by_side(plot, &time)) }
                (time.ticks(height))
            }
        }
        @if !plot.stacked { p.quantity { (plot.quantity) } }
    }
}

fn named(layer: &Layer) -> String {
    format!("{}: {}", layer.name, layer.total)
}

fn stack(plot: &Layers, time: &Time<'_>) -> Markup {
    let steps = plot
        .layers
        .iter()
        .map(|l| l.shares.len())
        .max()
        .unwrap_or(0);
    let mut upto = vec![0.0; steps];
    let tops: Vec<Vec<f64>> = plot
        .layers
        .iter()
        .map(|layer| {
            for (sum, share) in upto.iter_mut().zip(&layer.shares) {
                *sum += share.max(0.0);
            }
            upto.clone()
        })
        .collect();
    // Of a second of the run: shares of less than a thousandth are common and have no words of their own.
    let micros = |share: &f64| share * 1e6;
    let y = Axis::from_zero(upto.iter().map(micros), Unit::Micros);
    let layers = html! {
        @for (layer, top) in plot.layers.iter().zip(&tops).rev() {
            path d=(outline(plot, top, time, 1.0 / HEIGHT, |share| y.position(micros(&share)))) class={ "f" (layer.hue) } {
                title { (named(layer)) }
            }
        }
    };
    html! {
        @for tick in y.ticks(0.09, 0.09) {
            @let at = format!("{:.1}", (1.0 - tick.at) * HEIGHT);
            line x1="0" x2="100%" y1=(at) y2=(at) class="grid" {}
            text x="-8" y=(at) dy="0.32em" text-anchor="end" { (tick.label) }
        }
        (Time::inner(0.0, HEIGHT, DOWN, &layers))
        line x1="0" x2="100%" y1=(HEIGHT) y2=(HEIGHT) class="zero" {}
    }
}

fn side_by_side(plot: &Layers, time: &Time<'_>) -> Markup {
    html! {
        @for (index, layer) in plot.layers.iter().enumerate() {
            @let top = index as f64 * (WORDS + LANE + SPACE);
            @let base = top + WORDS + LANE;
            text x="0" y=(top + WORDS - 5.0) class="lane" { (layer.name) tspan dx="8" class="much" { (layer.total) } }
            line x1="0" x2="100%" y1=(base) y2=(base) class="grid" {}
            @let path = html! {
                path d=(outline(plot, &layer.shares, time, 3.0 / LANE, |share| share.min(1.0))) class={ "f" (layer.hue) } {
                    title { (named(layer)) }
                }
            };
            (Time::inner(top + WORDS, LANE, DOWN, &path))
        }
    }
}

/// From the bottom up to each step's height, along them, and down again. What is there at all has a height of `least`.
fn outline(
    plot: &Layers,
    shares: &[f64],
    time: &Time<'_>,
    least: f64,
    position: impl Fn(f64) -> f64,
) -> String {
    let mut d = String::new();
    let mut level = DOWN;
    let edge = |step: usize| time.across(plot.first_s + step as f64 * plot.step_s);
    for (step, share) in shares.iter().enumerate() {
        let share = if share.is_finite() { *share } else { 0.0 };
        let mut down = ((1.0 - position(share)) * DOWN).round();
        if share > 0.0 {
            down = down.min((DOWN - least * DOWN).round());
        }
        if (down - level).abs() < 0.5 {
            continue;
        }
        let _ = if d.is_empty() {
            write!(d, "M{:.0} {DOWN}V{down}", edge(step))
        } else {
            write!(d, "H{:.0}V{down}", edge(step))
        };
        level = down;
    }
    if !d.is_empty() {
        let _ = write!(d, "H{:.0}V{DOWN}z", edge(shares.len()));
    }
    d
}
