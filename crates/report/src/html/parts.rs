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

/// Text in which no option is parted at a hyphen: `-XX:+UseNUMA`, `--pid`.
///
/// In boxes, and not with other hyphens: what is copied stays as it is, and a box that is wider than the page is still
/// parted.
pub(super) fn words(text: &str) -> Markup {
    let is_option = |word: &str| {
        let bare = word.trim_start_matches(['(', '`', '\'', '"']);
        bare.len() > 1 && bare.starts_with('-')
    };
    html! {
        @for (index, word) in text.split(' ').enumerate() {
            @if index > 0 { " " }
            @if is_option(word) { span.option { (word) } } @else { (word) }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_one_box_and_the_text_stays() {
        let drawn = words("try -XX:+UseNUMA, a - b of nf-rules &c").into_string();
        assert_eq!(
            drawn,
            "try <span class=\"option\">-XX:+UseNUMA,</span> a - b of nf-rules &amp;c"
        );
    }
}
