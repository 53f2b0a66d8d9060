//! What a terminal takes as a command and shows nothing of: colours, cursor, title.
//!
//! `docker compose` colours the name in front of each line, `script` keeps whatever went to the screen, and a runtime with a
//! terminal (`docker run -t`) hands on both. Sources: ECMA-48, 5.3 to 5.6; `docker/compose cmd/formatter/colors.go`;
//! `xterm ctlseqs` (OSC).

use memchr::memchr;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 7;

/// The text without commands and without the returns to the start of the line, in `room` if it has some.
pub(super) fn without_commands<'a>(text: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    let text = behind_returns(text);
    let Some(mut next) = memchr(ESCAPE, text) else {
        return text;
    };
    room.clear();
    let mut rest = text;
    loop {
        room.extend_from_slice(&rest[..next]);
        rest = behind_command(&rest[next + 1..]);
        match memchr(ESCAPE, rest) {
            Some(at) => next = at,
            None => break,
        }
    }
    room.extend_from_slice(rest);
    behind_returns(room)
}

fn behind_returns(text: &[u8]) -> &[u8] {
    let returns = text.iter().take_while(|byte| **byte == b'\r');
    &text[returns.count()..]
}

/// What follows a command whose first byte was read. One that is cut goes on to the end.
fn behind_command(text: &[u8]) -> &[u8] {
    let Some((kind, mut rest)) = text.split_first() else {
        return text;
    };
    match kind {
        b'[' => behind_final(rest, 0x40),
        // A title ends with BEL, or with ESC and a backslash.
        b']' => loop {
            match rest {
                [] => return rest,
                [BELL, rest @ ..] | [ESCAPE, b'\\', rest @ ..] => return rest,
                [_, behind @ ..] => rest = behind,
            }
        },
        // `ESC ( B`, of `tput sgr0`.
        _ => behind_final(text, 0x30),
    }
}

/// Behind the first byte that ends a command; what cannot be in one ends it too, and stays.
fn behind_final(text: &[u8], first: u8) -> &[u8] {
    let inner = text.iter().take_while(|byte| (0x20..first).contains(*byte));
    let rest = &text[inner.count()..];
    match rest {
        [end, rest @ ..] if (first..0x7f).contains(end) => rest,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_does_not_show_is_taken_out() {
        for (text, expected) in [
            ("\x1b[36mweb-1  | \x1b[0m[0.5s] x", "web-1  | [0.5s] x"),
            ("\x1b[38;5;200;1m[0.5s]\x1b[0m x\x1b[m", "[0.5s] x"),
            ("\x1b(B\x1b[m[0.5s] x", "[0.5s] x"),
            ("\x1b]0;title\x07\x1b[?2004l\r[0.5s] x", "[0.5s] x"),
            ("\x1b]0;title\x1b\\[0.5s] x", "[0.5s] x"),
            ("\r\r[0.5s] x", "[0.5s] x"),
            ("[0.5s] x", "[0.5s] x"),
            // Cut, or damaged.
            ("x\x1b", "x"),
            ("x\x1b[36", "x"),
            ("x\x1b]0;title", "x"),
            ("\x1b[3\u{e9}x", "\u{e9}x"),
            ("", ""),
        ] {
            let mut room = Vec::new();
            let shown = without_commands(text.as_bytes(), &mut room);
            assert_eq!(String::from_utf8_lossy(shown), expected, "{text:?}");
        }
    }
}
