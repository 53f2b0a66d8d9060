//! Stages of a path, one below the other: packets arrive from above and losses leave at the side.

use maud::{Markup, html};

use crate::block::{Loss, NEARLY_FULL, PathStage, PathStages};
use crate::numbers;

pub(super) fn draw(plot: &PathStages, title: &str) -> Markup {
    let most = plot
        .steps
        .iter()
        .filter_map(|step| match step.loss {
            Loss::Some { per_s, .. } => Some(per_s),
            _ => None,
        })
        .fold(0.0, f64::max);
    html! {
        ol.steps aria-label=(title) {
            @for step in &plot.steps { (station(step, most)) }
        }
        p.quantity { (plot.quantity) }
    }
}

fn station(step: &PathStage, most: f64) -> Markup {
    let (class, symbol) = match step.loss {
        Loss::None => ("good", "✓"),
        Loss::Some { .. } => ("bad", "✗"),
        Loss::Filled(share) if share >= NEARLY_FULL => ("doubt", "!"),
        Loss::Filled(_) => ("quiet", "·"),
        Loss::Unknown(_) => ("doubt", "?"),
    };
    html! {
        li.(class) {
            span.symbol aria-hidden="true" { (symbol) }
            div.what { b { (step.title) } small { (step.counts) } }
            div.loss {
                @match &step.loss {
                    Loss::None => span { "none" },
                    Loss::Some { per_s, total } => {
                        span.bar style=(width(*per_s, most)) {}
                        span { b { (numbers::rate(*per_s)) } ", " (numbers::significant(*total)) " in all" }
                    }
                    Loss::Filled(share) => span { (numbers::share(*share)) " filled" },
                    Loss::Unknown(why) => span { "unknown: " (why) },
                }
                @if !step.note.is_empty() { small { (step.note) } }
            }
        }
    }
}

/// A bar is as long as its share of the largest loss; the least still shows.
fn width(per_s: f64, most: f64) -> String {
    let share = if most > 0.0 { per_s / most } else { 0.0 };
    format!("width:{:.0}%", (share * 100.0).clamp(1.0, 100.0))
}
