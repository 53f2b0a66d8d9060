//! Small pieces that the charts share: percentages, legends, the logo.

use maud::{Markup, html};

/// A position between 0 and 1 as an SVG percentage, a hundredth of a percent exact.
pub(super) fn percent(at: f64) -> String {
    let text = format!("{:.2}", at * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Keeps a label at the right edge of a chart inside it; on the left there is room.
pub(super) fn anchor(at: f64) -> &'static str {
    if at > 0.97 { "end" } else { "middle" }
}

/// A legend entry: a sample and its name.
pub(super) fn key(sample: &Markup, name: &str) -> Markup {
    html! {
        li { svg width="16" height="12" aria-hidden="true" { (sample) } (name) }
    }
}

/// Three rungs, each further than the one below.
pub(super) fn logo() -> Markup {
    html! {
        svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" {
            path d="M2 15h5M2 9h9M2 3h14" class="logo" {}
        }
    }
}
