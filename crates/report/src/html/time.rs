//! What the pictures over time share: ticks and named parts of the axis, and how a script finds both.
//!
//! What is drawn lies in inner pictures of class `zoom`, whose view box is the time axis: the script zooms by narrowing
//! it. The outer picture holds text, which is never stretched. Without the script nothing moves.

use maud::{Markup, html};

use super::parts::{anchor, percent};
use crate::block::{Span, Tone};
use crate::scale::{Axis, Tick, Unit, thin_out};

/// Inner units of the stretched picture: a tenth of a pixel still where one hundredth of the axis fills a window.
pub(super) const ACROSS: f64 = 100_000.0;

/// The axis of a picture over time.
pub(super) struct Time<'a> {
    from_s: f64,
    until_s: f64,
    x: Axis,
    spans: &'a [Span],
}

impl<'a> Time<'a> {
    pub(super) fn new(from_s: f64, until_s: f64, along: Unit, spans: &'a [Span]) -> Self {
        Self {
            from_s,
            until_s,
            x: Axis::between(from_s, until_s, along),
            spans,
        }
    }

    /// Where a moment lies, in inner units.
    pub(super) fn across(&self, at_s: f64) -> f64 {
        self.x.position(at_s) * ACROSS
    }

    /// For the script: what the axis holds, as attributes of the outer picture.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.from_s, self.until_s)
    }

    /// An inner picture, as high as `height` pixels and `down` of its own units, that begins `top` pixels below.
    pub(super) fn inner(top: f64, height: f64, down: f64, content: &Markup) -> Markup {
        html! {
            svg class="zoom" y=[(top > 0.0).then_some(top)] width="100%" height=(height) viewBox={ "0 0 " (ACROSS) " " (down) } preserveAspectRatio="none" overflow="visible" {
                (content)
            }
        }
    }

    /// Named parts of the axis, behind everything else.
    pub(super) fn spans(&self, height: f64) -> Markup {
        if self.spans.is_empty() {
            return html! {};
        }
        let labels = self.spans.iter().map(|span| Tick {
            at: f64::midpoint(self.x.position(span.from_s), self.x.position(span.to_s)),
            label: span.label.clone(),
            always: false,
        });
        let shades = html! {
            @for (index, span) in self.spans.iter().enumerate() {
                @let from = self.across(span.from_s);
                @let width = format!("{:.0}", (self.across(span.to_s) - from).max(ACROSS / 1000.0));
                rect x=(format!("{from:.0}")) width=(width) y="0" height="1" class=(shade(span, index)) {
                    title { (span.title) }
                }
            }
        };
        html! {
            (Self::inner(0.0, height, 1.0, &shades))
            @for tick in thin_out(labels.collect(), 0.018, 0.07) {
                @let at_s = self.from_s + tick.at * (self.until_s - self.from_s);
                text x=(percent(tick.at)) y="-6" text-anchor=(inside(tick.at)) data-at=(at_s) class=[(!tick.always).then_some("w")] { (tick.label) }
            }
        }
    }

    /// Ticks and their labels, below the picture.
    pub(super) fn ticks(&self, height: f64) -> Markup {
        Self::labelled(self.x.ticks(0.08, 0.22), height)
    }

    /// The same where places have names.
    pub(super) fn names(&self, names: &[String], height: f64) -> Markup {
        let ticks = names.iter().enumerate().map(|(place, name)| Tick {
            at: self.x.position(place as f64),
            label: name.clone(),
            always: false,
        });
        Self::labelled(thin_out(ticks.collect(), 0.08, 0.22), height)
    }

    fn labelled(ticks: Vec<Tick>, height: f64) -> Markup {
        html! {
            g.ticks {
                @for tick in ticks {
                    @let at = percent(tick.at);
                    line x1=(at) x2=(at) y1=(height) y2=(height + 4.0) class="tick" {}
                    text x=(at) y=(height + 18.0) text-anchor=(anchor(tick.at)) class=[(!tick.always).then_some("w")] { (tick.label) }
                }
            }
        }
    }
}

fn shade(span: &Span, index: usize) -> &'static str {
    match (span.tone, index % 2) {
        (Tone::Bad, _) => "span bad",
        (_, 0) => "span",
        _ => "span odd",
    }
}

/// Keeps a label inside at either end; nothing else stands there.
fn inside(at: f64) -> &'static str {
    if at < 0.05 { "start" } else { anchor(at) }
}
