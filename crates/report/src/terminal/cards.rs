//! Findings in a terminal: a sentence, and below it the next step. The raw lines beyond the first, and the
//! check that would refute it, are in the other formats and in `rungwise explain`.

use super::text::{Paint, clean, shorten, width_of, wrap};
use crate::block::{Card, Tone};
use crate::numbers;

/// Subjects named when a rule reports the same for many.
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
    turns(card, "  → ", width, paint, lines);
    for text in std::iter::once(&card.estimate).chain(&card.notes) {
        if !text.is_empty() {
            lines.extend(hanging("  ≈ ", text, width, |text| paint.dim(text)));
        }
    }
}

/// What may be turned, each behind this arrow.
fn turns(card: &Card, arrow: &str, width: usize, paint: Paint, lines: &mut Vec<String>) {
    let (open, wished): (Vec<_>, Vec<_>) =
        card.turns.iter().partition(|turn| turn.command.is_empty());
    // A command is pasted and never cut.
    for turn in wished {
        let command = clean(&turn.command);
        let room = width.saturating_sub(width_of(&command) + width_of(arrow) + 3);
        // Less than this says nothing.
        let from = if room < 10 {
            String::new()
        } else {
            format!("   {}", paint.dim(&shorten(&clean(&turn.from), room)))
        };
        lines.push(format!("{arrow}{}{from}", paint.tone(&command, Tone::Good)));
    }
    if !open.is_empty() {
        let knobs: Vec<&str> = open.iter().map(|turn| turn.knob.as_str()).collect();
        let words = format!("for you to choose: {}", knobs.join(", "));
        lines.extend(hanging(arrow, &words, width, str::to_owned));
    }
}

/// Other subjects of the rule: by name alone where it says the very same of them, else with what it says.
fn also(card: &Card, width: usize, paint: Paint, lines: &mut Vec<String>) {
    let own = said(card);
    let (same, others): (Vec<&Card>, Vec<&Card>) =
        card.also.iter().partition(|other| said(other) == own);
    if !same.is_empty() {
        let subjects: Vec<&str> = same
            .iter()
            .map(|other| subject(other))
            .take(NAMED)
            .collect();
        let rest = match same.len() - subjects.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let words = format!("same for {}{rest}", subjects.join(", "));
        lines.extend(hanging("  ", &words, width, |text| paint.dim(text)));
    }
    for other in others.iter().take(NAMED) {
        let words = format!("{}: {}", subject(other), other.sentence);
        lines.extend(hanging("  • ", &words, width, str::to_owned));
        if !card.short {
            turns(other, "    → ", width, paint, lines);
        }
    }
    if let Some(rest @ 1..) = others.len().checked_sub(NAMED) {
        let words = format!("and {rest} more; the other formats show all");
        lines.extend(hanging("  ", &words, width, |text| paint.dim(text)));
    }
}

fn subject(card: &Card) -> &str {
    card.tags.first().map_or("", String::as_str)
}

/// What a card says and asks for, without the name of its subject.
fn said(card: &Card) -> (String, Vec<[String; 2]>) {
    let without = |text: &str| nameless(text, subject(card));
    let turns = card.turns.iter();
    let turns = turns.map(|turn| [without(&turn.knob), without(&turn.to)]);
    (without(&card.sentence), turns.collect())
}

/// The text without `device/eth0` or `eth0`. A number names nothing without its kind: `cpu/3`, `cpu3` and `CPU 3` go, 3 stays.
fn nameless(text: &str, subject: &str) -> String {
    let Some((kind, name)) = subject.split_once('/') else {
        return text.to_owned();
    };
    let numbered = name.bytes().all(|byte| byte.is_ascii_digit());
    let plain = (!numbered).then(|| name.to_owned());
    let names = [
        Some(subject.to_owned()),
        Some(format!("{kind}{name}")),
        Some(format!("{kind} {name}")),
        Some(format!("{} {name}", kind.to_uppercase())),
        plain,
    ];
    let names = names.into_iter().flatten().filter(|name| !name.is_empty());
    names.fold(text.to_owned(), |text, name| blotted(&text, &name))
}

/// The text with a stop in the place of a word, where it stands as a whole.
fn blotted(text: &str, word: &str) -> String {
    let joins = |c: char| c.is_alphanumeric();
    let mut kept = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        if text[..at].ends_with(joins) || text[end..].starts_with(joins) {
            continue;
        }
        kept.push_str(&text[done..at]);
        kept.push('·');
        done = end;
    }
    kept + &text[done..]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Mark, Turning};

    fn card(subject: &str, sentence: &str, to: &str) -> Card {
        Card {
            mark: Mark {
                symbol: "✗",
                word: "high",
                tone: Tone::Bad,
            },
            sentence: sentence.to_owned(),
            rule: "some-rule".to_owned(),
            tags: vec![subject.to_owned(), "high severity".to_owned()],
            estimate: String::new(),
            notes: Vec::new(),
            turns: vec![Turning {
                knob: "some.knob".to_owned(),
                from: "now 1".to_owned(),
                to: to.to_owned(),
                command: format!("rungwise knob plan some.knob={to}"),
            }],
            evidence: Vec::new(),
            refuted_by: String::new(),
            explain: String::new(),
            also: Vec::new(),
            short: false,
        }
    }

    fn rendered(also: Card) -> String {
        let mut first = card("device/eth0", "eth0 drops what it gets", "8");
        first.also.push(also);
        let mut lines = Vec::new();
        write(&[first], 100, Paint { color: false }, &mut lines);
        lines.join("\n")
    }

    #[test]
    fn only_what_is_the_same_but_for_its_subject_is_called_the_same() {
        let same = rendered(card("device/eth1", "eth1 drops what it gets", "8"));
        assert!(same.contains("same for device/eth1"), "{same}");
        for other in [
            card("device/eth1", "eth1 drops half of what it gets", "8"),
            card("device/eth1", "eth1 drops what it gets", "16"),
        ] {
            let sentence = format!("• device/eth1: {}", other.sentence);
            let arrow = format!("→ rungwise knob plan some.knob={}", other.turns[0].to);
            let text = rendered(other);
            assert!(!text.contains("same for"), "{text}");
            assert!(text.contains(&sentence) && text.contains(&arrow), "{text}");
        }
    }

    #[test]
    fn a_number_is_a_name_beside_its_kind_alone() {
        let of = |text: &str| nameless(text, "cpu/3");
        assert_eq!(of("cpu/3 and CPU 3 run 3 of 33 s"), "· and · run 3 of 33 s");
        assert_eq!(
            nameless("eth10 is not eth1", "device/eth1"),
            "eth10 is not ·"
        );
        assert_eq!(nameless("the host", "host"), "the host");
    }
}
