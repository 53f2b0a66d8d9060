//! The ladder as a picture: a table whose middle column is a plot around zero.
//!
//! Titles are HTML and wrap; the plot of each row fills its cell, so the grid lines of
//! neighbouring rows meet whatever the height of the rows.

use maud::{Markup, html};

use super::parts::{key, percent};
use super::{class, mark};
use crate::block::{IntervalRow, Intervals, Tone};
use crate::numbers;
use crate::scale::{ChangeScale, Tick};

/// Distance of tick labels as a share of the plot: about 500 px wide in a wide window, 300 px in a narrow one.
const WIDE: f64 = 0.085;
const NARROW: f64 = 0.13;

pub(super) fn draw(plot: &Intervals, title: &str) -> Markup {
    let changes = plot.rows.iter().filter_map(|row| row.change);
    // An interval end may lie beyond the axis, a point should not: points decide, ends get half as much again.
    let points = changes.clone().map(|(point, _, _)| point);
    let ends = changes.flat_map(|(_, low, high)| [low, high]);
    let band = plot.band.into_iter().flat_map(|b| [b * 1.5, -b * 1.5]);
    let scale = ChangeScale::holding(points.chain(ends).chain(band));
    let ticks = scale.ticks(WIDE, NARROW);
    html! {
        ul.legend {
            (key(&html! { line x1="1" x2="15" y1="6" y2="6" class="good whisker" {} circle cx="8" cy="6" r="3.5" class="good dot" {} }, "kept"))
            (key(&html! { line x1="1" x2="15" y1="6" y2="6" class="bad whisker" {} circle cx="8" cy="6" r="3.5" class="bad dot" {} }, "reverted"))
            (key(&html! { line x1="1" x2="15" y1="6" y2="6" class="plain whisker" {} circle cx="8" cy="6" r="3.5" class="plain dot" {} }, "neither"))
            @if plot.band.is_some() {
                (key(&html! { rect width="16" height="12" class="band" {} }, "too small to detect reliably"))
            }
            @if let Some(name) = &plot.reference {
                (key(&html! { path d="M8 1.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z" class="reference" {} }, &format!("{name}, another machine")))
            }
        }
        table.ladder role="table" aria-label=(title) {
            thead role="rowgroup" {
                tr role="row" {
                    th.number scope="col" role="columnheader" { "#" }
                    th.title scope="col" role="columnheader" { "Rung" }
                    th.rate.n scope="col" role="columnheader" { "Rate" }
                    th.plot scope="col" role="columnheader" { span.sr { (plot.quantity) } (axis(&ticks, plot)) }
                    th.change.n scope="col" role="columnheader" { "Change" }
                    th.outcome scope="col" role="columnheader" { "Outcome" }
                    @if let Some(name) = &plot.reference {
                        th.theirs.n scope="col" role="columnheader" { (name) }
                    }
                }
            }
            tbody role="rowgroup" {
                @for entry in &plot.rows { (row(entry, plot, &scale, &ticks)) }
            }
        }
        p.axisnote {
            "Axis: " (plot.quantity) ", "
            @if scale.is_bent() { "%; linear near zero, logarithmic further out. " } @else { "%. " }
            "A triangle at the edge marks a value beyond the axis."
        }
    }
}

fn axis(ticks: &[Tick], plot: &Intervals) -> Markup {
    html! {
        svg.axis width="100%" height="38" aria-hidden="true" {
            title { (plot.quantity) }
            text x="49%" y="13" text-anchor="end" class="side" { "← " (plot.sides.0) }
            text x="51%" y="13" text-anchor="start" class="side" { (plot.sides.1) " →" }
            @for tick in ticks {
                text x=(percent(tick.at)) y="32" text-anchor="middle" class=[(!tick.always).then_some("w")] { (tick.label) }
            }
        }
    }
}

fn row(entry: &IntervalRow, plot: &Intervals, scale: &ChangeScale, ticks: &[Tick]) -> Markup {
    let tone = match entry.mark.tone {
        tone @ (Tone::Good | Tone::Bad) => tone,
        _ => Tone::Plain,
    };
    html! {
        tr role="row" {
            td.number role="cell" { (entry.number) }
            th.title scope="row" role="rowheader" {
                (entry.title)
                @for tag in &entry.tags { " " span.tag { (tag) } }
            }
            td.rate.n.(class_of_absent(entry.value == numbers::ABSENT)) role="cell" { (entry.value) }
            td.plot role="cell" {
                svg width="100%" height="100%" role="img" {
                    title { (sentence(entry)) }
                    desc { (plot.quantity) }
                    @if let Some(band) = plot.band { (shaded(band, scale)) }
                    @for tick in ticks {
                        @let at = percent(tick.at);
                        line x1=(at) x2=(at) y1="0" y2="100%" class=(if (tick.at - 0.5).abs() < 1e-9 { "zero" } else { "grid" }) {}
                    }
                    @if let Some(factor) = entry.reference.as_ref().and_then(|r| r.factor) {
                        (reference(factor, scale))
                    }
                    @if let Some(change) = entry.change { (interval(change, class(tone), scale)) }
                }
                @if entry.change.is_none() && !entry.instead.is_empty() {
                    span.instead title=(entry.instead) { (entry.instead) }
                }
            }
            td.change.n.(class_of_absent(entry.change.is_none())) role="cell" {
                @if let Some((point, low, high)) = entry.change {
                    b { (numbers::change(point)) } small { (numbers::interval(low, high)) }
                } @else {
                    (numbers::ABSENT)
                }
            }
            td.outcome role="cell" { (mark(entry.mark)) }
            @if plot.reference.is_some() {
                td.theirs.n.(class_of_absent(entry.reference.is_none())) role="cell" {
                    @if let Some(theirs) = &entry.reference {
                        (theirs.value)
                        @if let Some(factor) = theirs.factor { small { (numbers::factor(factor)) } }
                        @if theirs.sign_differs { small.differs { "≠ sign differs" } }
                    } @else {
                        (numbers::ABSENT)
                    }
                }
            }
        }
    }
}

/// A narrow window has no columns to keep straight, so an absent value needs no place there.
fn class_of_absent(absent: bool) -> &'static str {
    if absent { "none" } else { "some" }
}

fn sentence(entry: &IntervalRow) -> String {
    match entry.change {
        Some((point, low, high)) => format!(
            "{}: {} {}, {}",
            entry.title,
            numbers::change(point),
            numbers::interval(low, high),
            entry.mark.word
        ),
        None => format!("{}: {}, no change to show", entry.title, entry.mark.word),
    }
}

fn shaded(band: f64, scale: &ChangeScale) -> Markup {
    let (low, _) = scale.position(-band);
    let (high, _) = scale.position(band);
    html! { rect.band x=(percent(low)) width=(percent(high - low)) y="0" height="100%" {} }
}

fn interval((point, low, high): (f64, f64, f64), tone: &str, scale: &ChangeScale) -> Markup {
    let (at, beyond) = scale.position(point);
    let (from, low_beyond) = scale.position(low);
    let (to, high_beyond) = scale.position(high);
    html! {
        svg y="50%" overflow="visible" {
            line x1=(percent(from)) x2=(percent(to)) y1="0" y2="0" class={ (tone) " whisker" } {}
            @for (end, is_beyond) in [(from, low_beyond), (to, high_beyond)] {
                @if is_beyond { (triangle(end, tone)) } @else {
                    line x1=(percent(end)) x2=(percent(end)) y1="-4" y2="4" class={ (tone) " whisker" } {}
                }
            }
            @if !beyond { circle cx=(percent(at)) cy="0" r="5" class={ (tone) " dot" } {} }
        }
    }
}

fn reference(factor: f64, scale: &ChangeScale) -> Markup {
    let (at, beyond) = scale.position(factor - 1.0);
    html! {
        svg x=(percent(at)) y="50%" overflow="visible" {
            @if beyond {
                path d=(if at > 0.5 { "M-7 -5l6 5l-6 5z" } else { "M7 -5l-6 5l6 5z" }) class="reference" {}
            } @else {
                path d="M0 -5l5 5l-5 5l-5 -5z" class="reference" {}
            }
        }
    }
}

fn triangle(at: f64, tone: &str) -> Markup {
    html! {
        svg x=(percent(at)) overflow="visible" {
            path d=(if at > 0.5 { "M-9 -5l9 5l-9 5z" } else { "M9 -5l-9 5l9 5z" }) class={ (tone) " dot" } {}
        }
    }
}
