//! Commands as users write them, `SET key:${random:1..100} 'a b'`, and as they are sent: arrays of strings.

use std::io::Write as _;

use crate::stream::texts::{Needs, Texts, Voice};
use crate::template::Template;
use crate::workloads::tcp::unhex;

/// Commands with another number of replies than one, or that would change what the connection speaks.
const REFUSED: [&str; 12] = [
    "HELLO",
    "MONITOR",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "QUIT",
    "RESET",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
];

/// A command, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pieces: Vec<Piece>,
    pub(super) needs: Needs,
}

#[derive(Clone, Debug)]
enum Piece {
    /// These bytes of the array.
    Fixed(Vec<u8>),
    /// A string that differs from time to time.
    Word(Template),
}

impl Command {
    /// Reads a command.
    pub(super) fn parse(text: &str, texts: &Texts) -> Result<Self, String> {
        let words =
            words(text).map_err(|why| format!("cannot read the command '{text}': {why}"))?;
        let Some(first) = words.first() else {
            return Err("a command is empty; write one as in GET key:${random:1..100}".to_owned());
        };
        let name = first.to_ascii_uppercase();
        let turns_off = name == "CLIENT"
            && words
                .get(1)
                .is_some_and(|word| word.eq_ignore_ascii_case("reply"));
        if REFUSED.contains(&&*name) || turns_off {
            return Err(format!(
                "'{text}' has no single reply of its own, which a request here must have; use another command"
            ));
        }
        let parsed = words.iter().map(|word| texts.parse(word));
        let parsed: Vec<Template> = parsed.collect::<Result<_, _>>()?;
        let mut pieces = vec![Piece::Fixed(format!("*{}\r\n", parsed.len()).into_bytes())];
        let needs = Needs::of(&parsed);
        for word in parsed {
            match (word.constant(), pieces.last_mut()) {
                (Some(bytes), Some(Piece::Fixed(before))) => string(bytes, before),
                (Some(bytes), _) => {
                    let mut fixed = Vec::new();
                    string(bytes, &mut fixed);
                    pieces.push(Piece::Fixed(fixed));
                }
                (None, _) => pieces.push(Piece::Word(word)),
            }
        }
        Ok(Self { pieces, needs })
    }

    /// Appends it to `to`, with `room` for a word.
    #[inline]
    pub(super) fn write(&self, voice: &mut Voice, room: &mut Vec<u8>, to: &mut Vec<u8>) {
        voice.begin(&self.needs);
        for piece in &self.pieces {
            match piece {
                Piece::Fixed(bytes) => to.extend_from_slice(bytes),
                Piece::Word(word) => {
                    room.clear();
                    voice.render(word, room);
                    string(room, to);
                }
            }
        }
    }
}

/// Appends a string.
#[inline]
pub(super) fn string(bytes: &[u8], to: &mut Vec<u8>) {
    // A vector takes everything.
    let _ = write!(to, "${}\r\n", bytes.len());
    to.extend_from_slice(bytes);
    to.extend_from_slice(b"\r\n");
}

/// Appends an array of strings.
pub(super) fn array(words: &[&str], to: &mut Vec<u8>) {
    let _ = write!(to, "*{}\r\n", words.len());
    for word in words {
        string(word.as_bytes(), to);
    }
}

/// The words of a command: separated by spaces, unless these are within quotes or a placeholder.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        while let Some(c) = rest.chars().next().filter(|c| !c.is_ascii_whitespace()) {
            match c {
                '"' | '\'' => rest = quoted(&rest[1..], c, &mut word)?,
                '$' if rest.starts_with("${") => {
                    let end = rest.find('}').map_or(rest.len(), |end| end + 1);
                    word.push_str(&rest[..end]);
                    rest = &rest[end..];
                }
                c => {
                    word.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        words.push(word);
        rest = rest.trim_start();
    }
    Ok(words)
}

/// Takes a text up to its closing `quote`; what follows that.
fn quoted<'t>(text: &'t str, quote: char, word: &mut String) -> Result<&'t str, String> {
    let mut rest = text;
    loop {
        let c = rest
            .chars()
            .next()
            .ok_or_else(|| format!("it has no closing {quote}"))?;
        rest = &rest[c.len_utf8()..];
        match c {
            c if c == quote => return Ok(rest),
            '\\' => {
                let escape = rest.chars().next().unwrap_or('\\');
                rest = rest.get(escape.len_utf8()..).unwrap_or_default();
                let c = match (escape, quote) {
                    ('n', '"') => '\n',
                    ('r', '"') => '\r',
                    ('t', '"') => '\t',
                    ('x', '"') => {
                        let byte = rest.get(..2).and_then(unhex);
                        let byte = byte.map(|bytes| bytes[0]).filter(u8::is_ascii);
                        let byte = byte.ok_or("write \\x with two digits, up to \\x7f")?;
                        rest = &rest[2..];
                        char::from(byte)
                    }
                    ('\\' | '"' | '\'', _) => escape,
                    (other, _) => {
                        word.push('\\');
                        other
                    }
                };
                word.push(c);
            }
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn words_are_separated_by_spaces_quotes_and_placeholders_aside() {
        for (text, expected) in [
            ("PING", &["PING"][..]),
            ("  SET  a\tb ", &["SET", "a", "b"]),
            ("SET a 'b c'", &["SET", "a", "b c"]),
            (
                "SET \"a\\n\\x00\\\"\" 'it\\'s'",
                &["SET", "a\n\0\"", "it's"],
            ),
            (
                "SET k:${choice:a b|c}x ''",
                &["SET", "k:${choice:a b|c}x", ""],
            ),
            ("ECHO a\"b c\"d", &["ECHO", "ab cd"]),
            ("ECHO $5", &["ECHO", "$5"]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
        for bad in ["SET 'a", "SET \"a", "SET \"\\xff\"", "SET \"\\x1"] {
            assert!(words(bad).is_err(), "{bad}");
        }
    }

    fn written(text: &str) -> Result<String, String> {
        let texts = Texts::default();
        let command = Command::parse(text, &texts)?;
        let mut voice = texts.voice(&Arc::new(texts.deal()), 1, 0);
        let (mut room, mut to) = (Vec::new(), Vec::new());
        command.write(&mut voice, &mut room, &mut to);
        Ok(String::from_utf8(to).unwrap())
    }

    #[test]
    fn a_command_is_an_array_of_strings_each_with_its_length() {
        assert_eq!(written("PING").unwrap(), "*1\r\n$4\r\nPING\r\n");
        assert_eq!(
            written("SET k:${counter:99} 'a b'").unwrap(),
            "*3\r\n$3\r\nSET\r\n$4\r\nk:99\r\n$3\r\na b\r\n"
        );
        assert_eq!(
            written("SET k ${bytes:12B}").unwrap(),
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nabcdefghijkl\r\n"
        );
        for (bad, word) in [
            ("", "empty"),
            ("subscribe a", "single reply"),
            ("CLIENT REPLY OFF", "single reply"),
            ("GET ${conter}", "did you mean"),
            ("GET 'a", "closing"),
        ] {
            let why = written(bad).unwrap_err();
            assert!(why.contains(word), "{bad}: {why}");
        }
    }
}
