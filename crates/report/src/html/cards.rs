//! Findings as cards: what was found and what may be turned stay open, the raw lines open on a click.

use maud::{Markup, html};

use super::mark;
use crate::block::Card;
use crate::numbers;

pub(super) fn draw(cards: &[Card]) -> Markup {
    html! { div.cards { @for one in cards { (card(one)) } } }
}

fn card(card: &Card) -> Markup {
    html! {
        article.card {
            p.found { (mark(card.mark)) " " (card.sentence) }
            ul.context {
                li { code { (card.rule) } }
                @for tag in &card.tags { li { (tag) } }
            }
            @if !card.turns.is_empty() {
                dl.turns {
                    @for turn in &card.turns {
                        dt { (turn.knob) }
                        dd {
                            span.before { (turn.from) } span.arrow { " → " } strong { (turn.to) }
                            @if !turn.command.is_empty() { code.command { (turn.command) } }
                        }
                    }
                }
            }
            @if !card.estimate.is_empty() { p.estimate { (card.estimate) } }
            @for note in &card.notes { p.estimate { (note) } }
            details.keep {
                summary { (opens(card)) }
                @if !card.evidence.is_empty() {
                    pre tabindex="0" { code { @for line in &card.evidence { (line) "\n" } } }
                }
                @if !card.refuted_by.is_empty() { p { b { "Wrong if: " } (card.refuted_by) } }
                p { "More: " code { (card.explain) } }
            }
            @if !card.also.is_empty() {
                details.keep {
                    summary { "The same of " (numbers::plural(card.also.len(), "other subject")) }
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
            "{}, and what would prove it wrong",
            numbers::plural(lines, "raw line")
        ),
    }
}
