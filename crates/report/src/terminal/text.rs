//! Text in columns: widths as a terminal counts them, wrapping, padding, colour.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::block::Tone;
use crate::numbers::THIN;

/// Columns that a text takes.
pub(crate) fn width_of(text: &str) -> usize {
    text.width()
}

/// Without control characters, and with plain spaces: terminals disagree on thin ones.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            THIN | '\n' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Filled up with spaces to a width.
pub(crate) fn pad(text: &str, width: usize, right: bool) -> String {
    let fill = " ".repeat(width.saturating_sub(width_of(text)));
    if right {
        format!("{fill}{text}")
    } else {
        format!("{text}{fill}")
    }
}

/// Cut to a width, with an ellipsis where something was lost.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        short.push(c);
    }
    if width > 0 {
        short.push('…');
    }
    short
}

/// Cleaned and broken into lines between words; a word that is longer than a line stands alone. A
/// number stays with its unit.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    const GLUE: char = '\u{a0}';
    let glued = text.replace(THIN, "\u{a0}").replace(" %", "\u{a0}%");
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in clean(&glued).split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && width_of(&line) + 1 + width_of(word) > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().map(|c| if c == GLUE { ' ' } else { c }));
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Colour, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) color: bool,
}

impl Paint {
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrapped(text, "1")
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrapped(text, "2")
    }

    /// Blue and orange-like yellow and red can be distinguished by almost everyone; symbols do the rest.
    pub(crate) fn tone(self, text: &str, tone: Tone) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.wrapped(text, "1;34"),
            Tone::Bad => self.wrapped(text, "1;31"),
            Tone::Doubt => self.wrapped(text, "33"),
            Tone::Quiet => self.wrapped(text, "2"),
        }
    }

    fn wrapped(self, text: &str, code: &str) -> String {
        if self.color && !text.trim().is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(pad("調整", 6, false), "調整  ");
        assert_eq!(shorten("調整する", 5), "調整…");
        assert_eq!(width_of(&shorten("abcdef", 3)), 3);
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert!(!clean("a\x1b[31mb\u{7}").contains('\x1b'));
        assert!(!clean("a\u{9b}31m").contains('\u{9b}'));
    }

    #[test]
    fn lines_break_between_words_and_never_before_a_percent_sign() {
        assert_eq!(
            wrap("grew by 30 % in all", 10),
            ["grew by", "30 % in", "all"]
        );
        assert_eq!(wrap("", 10), Vec::<String>::new());
        assert_eq!(wrap("averyverylongword x", 5), ["averyverylongword", "x"]);
    }
}
