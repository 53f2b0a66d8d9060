//! Findings as cards: the finding and its knobs stay open, the raw lines open on a click.

use maud::{Markup, html};

use super::mark;
use super::parts::words;
use crate::block::Card;
use crate::numbers;

pub(super) fn draw(cards: &[Card]) -> Markup {
    html! { div.cards { @for one in cards { (card(one)) } } }
}

fn card(card: &Card) -> Markup {
    html! {
        article.card {
            p.found { (mark(card.mark)) " " (words(&card.sentence)) }
            ul.context {
                li { code { (words(&card.rule)) } }
                @for tag in &card.tags { li { (words(tag)) } }
            }
            @if !card.turns.is_empty() {
                dl.turns {
                    @for turn in &card.turns {
                        dt { (words(&turn.knob)) }
                        dd {
                            span.before { (words(&turn.from)) } span.arrow { " → " } strong { (words(&turn.to)) }
                            @if !turn.command.is_empty() { code.command { (words(&turn.command)) } }
                        }
                    }
                }
            }
            @if !card.estimate.is_empty() { p.estimate { (words(&card.estimate)) } }
            @for note in &card.notes { p.estimate { (words(note)) } }
            details.keep {
                summary { (opens(card)) }
                @if !card.evidence.is_empty() {
                    pre tabindex="0" { code { @for line in &card.evidence { (line) "\n" } } }
                }
                @if !card.refuted_by.is_empty() { p { b { "Wrong if: " } (words(&card.refuted_by)) } }
                p { "More: " code { (words(&card.explain)) } }
            }
            @if !card.also.is_empty() {
                details.keep {
                    summary { "Same for " (numbers::plural(card.also.len(), "other subject")) }
                    (draw(&card.also))
                }
            }
        }
    }
}

fn opens(card: &Card) -> String {
    match (card.evidence.len(), card.refuted_by.is_empty()) {
        (0, _) => "More".to_owned(),
        (lines, true) => numbers::plural(lines, "raw line"),
        (lines, false) => format!(
            "{}, and how to refute it",
            numbers::plural(lines, "raw line")
        ),
    }
}
