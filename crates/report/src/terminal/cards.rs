//! Findings in a terminal: a sentence, and below it what a person does next. The raw lines beyond the
//! first, and what would prove it wrong, are in the other formats and in `rungwise explain`.

use super::text::{Paint, clean, shorten, width_of, wrap};
use crate::block::{Card, Tone};
use crate::numbers;

/// Subjects named when a rule says the same of many.
const NAMED: usize = 6;

pub(super) fn write(cards: &[Card], width: usize, paint: Paint, lines: &mut Vec<String>) {
    for (index, card) in cards.iter().enumerate() {
        if index > 0 && !card.short {
            lines.push(String::new());
        }
        sentence(card, width, paint, lines);
        if !card.short {
            below(card, width, paint, lines);
        }
        also(card, width, paint, lines);
    }
}

fn sentence(card: &Card, width: usize, paint: Paint, lines: &mut Vec<String>) {
    let words = if card.short {
        format!("{} [{}]", card.sentence, card.rule)
    } else {
        card.sentence.clone()
    };
    for (index, line) in wrap(&words, width - 2).into_iter().enumerate() {
        let lead = if index == 0 {
            paint.tone(card.mark.symbol, card.mark.tone)
        } else {
            " ".to_owned()
        };
        let line = if card.short { line } else { paint.bold(&line) };
        lines.push(format!("{lead} {line}"));
    }
}

fn below(card: &Card, width: usize, paint: Paint, lines: &mut Vec<String>) {
    let tags = format!("{} · {}", card.rule, card.tags.join(" · "));
    lines.extend(hanging("  ", &tags, width, |text| paint.dim(text)));
    if let Some(first) = card.evidence.first() {
        let more = match card.evidence.len() {
            1 => String::new(),
            n => format!(" (and {})", numbers::plural(n - 1, "more line")),
        };
        let room = (width - 2).saturating_sub(more.len());
        let line = format!("{}{more}", shorten(&clean(first), room));
        lines.push(format!("  {}", paint.dim(&line)));
    }
    let (open, wished): (Vec<_>, Vec<_>) =
        card.turns.iter().partition(|turn| turn.command.is_empty());
    // A command is pasted and never cut.
    for turn in wished {
        let command = clean(&turn.command);
        let room = width.saturating_sub(width_of(&command) + 7);
        // Less than this says nothing.
        let from = if room < 10 {
            String::new()
        } else {
            format!("   {}", paint.dim(&shorten(&clean(&turn.from), room)))
        };
        lines.push(format!("  → {}{from}", paint.tone(&command, Tone::Good)));
    }
    if !open.is_empty() {
        let knobs: Vec<&str> = open.iter().map(|turn| turn.knob.as_str()).collect();
        let words = format!("for you to choose: {}", knobs.join(", "));
        lines.extend(hanging("  → ", &words, width, str::to_owned));
    }
    for text in std::iter::once(&card.estimate).chain(&card.notes) {
        if !text.is_empty() {
            lines.extend(hanging("  ≈ ", text, width, |text| paint.dim(text)));
        }
    }
}

fn also(card: &Card, width: usize, paint: Paint, lines: &mut Vec<String>) {
    if card.also.is_empty() {
        return;
    }
    let subjects: Vec<&str> = card
        .also
        .iter()
        .filter_map(|other| other.tags.first().map(String::as_str))
        .take(NAMED)
        .collect();
    let rest = match card.also.len() - subjects.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let words = format!("the same of {}{rest}", subjects.join(", "));
    lines.extend(hanging("  ", &words, width, |text| paint.dim(text)));
}

/// Lines under a lead that only the first of them has.
fn hanging(lead: &str, text: &str, width: usize, paint: impl Fn(&str) -> String) -> Vec<String> {
    let indent = lead.chars().count();
    wrap(text, width.saturating_sub(indent))
        .into_iter()
        .enumerate()
        .map(|(index, line)| {
            let blank = " ".repeat(indent);
            format!("{}{}", if index == 0 { lead } else { &blank }, paint(&line))
        })
        .collect()
}
