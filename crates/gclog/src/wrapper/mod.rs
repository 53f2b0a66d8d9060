//! What others have put around the lines of a JVM, taken off once, before any grammar sees them.
//!
//! A container's runtime, a collector of logs or syslog puts a text in front of each line, or makes a string of JSON of it.
//! Each line is judged by itself, so that one file may hold wrapped lines, bare ones and those of other programs, and wrappers
//! may lie within each other. The only state are lines that a runtime has cut into parts, and where an unknown kind of JSON
//! has its messages. What names the writer, such as a container or a process, is passed on with the message. A bare line costs a look at its first bytes, and nothing is copied but what has escapes or parts.
//!
//! - `escape.rs`: colours and other commands of a terminal.
//! - `front.rs`: what stands in front of a line.
//! - `json.rs`: the string of a JSON line that holds the message.

mod escape;
mod front;
mod json;

use crate::account::Share;
use crate::lines::{LONGEST, Line};
use front::Record;

/// Lines in parts at most; of more each part counts as a line.
const MOST_PARTS: usize = 64;

/// Takes wrappers off line by line.
#[derive(Debug, Default)]
pub(crate) struct Wrapper {
    /// Lines whose ends have not come yet, one of each stream of a container, and room for more.
    parts: Vec<Joined>,
    /// What names the writer of the last line.
    from: Vec<u8>,
    /// A line as a terminal would show it.
    shown: Vec<u8>,
    /// A message without its escapes.
    unescaped: Vec<u8>,
    /// A message as a terminal would show it.
    shown_message: Vec<u8>,
    /// The key of messages where it is none of the usual ones.
    key: Vec<u8>,
}

/// A line without its wrapper.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unwrapped<'a> {
    /// It has none.
    Bare,
    /// What it holds: one line, or several that a collector has joined.
    Message(Message<'a>),
    /// It is a part of a line that goes on later.
    Part,
}

/// What was wrapped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// At most [`LONGEST`] bytes, without the end of its last line.
    pub(crate) text: &'a [u8],
    /// What names its writer; empty where nothing does.
    pub(crate) from: &'a [u8],
    /// Lines of the log that hold what comes before.
    pub(crate) earlier: Share,
    /// It was longer than [`LONGEST`].
    pub(crate) long: bool,
}

/// Parts of a line so far.
#[derive(Debug, Default)]
struct Joined {
    from: Vec<u8>,
    stream: usize,
    /// At most [`LONGEST`] bytes and one.
    text: Vec<u8>,
    share: Share,
}

impl Wrapper {
    /// Takes the wrappers off a line.
    pub(crate) fn take_off<'a>(&'a mut self, line: &Line<'a>) -> Unwrapped<'a> {
        let Self {
            parts,
            from,
            shown,
            unescaped,
            shown_message,
            key,
        } = self;
        from.clear();
        let shown = escape::without_commands(line.text, shown);
        let (mut text, record) = front::taken_off(shown, from);
        let is_bare = text.len() == line.text.len();
        let mut earlier = Share::default();
        let mut long = false;
        if let Some(Record { stream, whole }) = record {
            let is_open = |joined: &Joined| joined.share.lines > 0;
            let begun = parts.iter().position(|joined| {
                is_open(joined) && joined.stream == stream && joined.from == *from
            });
            if whole {
                if let Some(joined) = begun.map(|place| &mut parts[place]) {
                    joined.push(text, 0);
                    earlier = std::mem::take(&mut joined.share);
                    earlier.lines -= 1;
                    long = joined.text.len() > LONGEST;
                    text = &joined.text[..joined.text.len().min(LONGEST)];
                }
            } else {
                let free = || parts.iter().position(|joined| !is_open(joined));
                let mut place = begun.or_else(free);
                if place.is_none() && parts.len() < MOST_PARTS {
                    place = Some(parts.len());
                    parts.push(Joined::default());
                }
                if let Some(place) = place {
                    let joined = &mut parts[place];
                    joined.stream = stream;
                    joined.from.clone_from(from);
                    joined.push(text, line.bytes);
                    return Unwrapped::Part;
                }
            }
            (text, _) = front::taken_off(text, from);
        }
        if let Some(message) = json::message(text, key, from) {
            let message = json::without_escapes(message, unescaped);
            let message = escape::without_commands(without_end(message), shown_message);
            (text, _) = front::taken_off(message, from);
        } else if is_bare {
            return Unwrapped::Bare;
        }
        Unwrapped::Message(Message {
            text,
            from,
            earlier,
            long,
        })
    }

    /// Gives what there is of a line that has not ended, until there is none.
    pub(crate) fn left(&mut self) -> Option<Message<'_>> {
        let joined = self
            .parts
            .iter_mut()
            .find(|joined| joined.share.lines > 0)?;
        Some(Message {
            earlier: std::mem::take(&mut joined.share),
            long: joined.text.len() > LONGEST,
            text: &joined.text[..joined.text.len().min(LONGEST)],
            from: &joined.from,
        })
    }
}

/// What a line that begins with this byte would have to be, one bit each, to be wrapped.
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'0'..=b'9' => DATE,
            b'A'..=b'Z' => MONTH,
            b'{' => JSON,
            // A name, a priority, the mark of Unicode, a quotation mark, a command to a terminal, a return.
            b'a'..=b'z' | b'<' | 0xef | b'"' | 0x1b | b'\r' => ANY,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};
const DATE: u8 = 1;
const MONTH: u8 = 2;
const JSON: u8 = 4;
const ANY: u8 = 8;

/// What most lines of a JVM are not, by few bytes of each. Behind the two first bytes that are the most frequent no branch follows
/// the text, which before JDK 9 cannot be predicted.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "lazy operators are branches")]
pub(crate) fn may_be_wrapped(text: &[u8]) -> bool {
    match text {
        [b'[', second, ..] => return *second == b'p',
        [b' ', ..] | [] => return false,
        _ => {}
    }
    let [first, second, _, fourth, _, _, _, _, _, tenth, eleventh, ..] = *text else {
        // Too short for a date.
        return KINDS[usize::from(text[0])] & (JSON | ANY) != 0;
    };
    let date = u8::from(eleventh == b'T') * DATE;
    let month = u8::from((fourth == b' ') & (tenth == b':')) * MONTH;
    let json = u8::from((second == b'"') | (second == b' ')) * JSON;
    let is = date | month | json | ANY;
    let is = is & KINDS[usize::from(first)];
    // A JVM before JDK 9 has a colon behind its date.
    is != 0 && !(is == DATE && text.get(28..30) == Some(b": "))
}

impl Joined {
    fn push(&mut self, part: &[u8], bytes: u64) {
        if self.share.lines == 0 {
            self.text.clear();
        }
        let room = (LONGEST + 1).saturating_sub(self.text.len());
        self.text.extend_from_slice(&part[..part.len().min(room)]);
        self.share.lines += 1;
        self.share.bytes += bytes;
    }
}

/// A message as a collector keeps it may still have the end of its line.
fn without_end(text: &[u8]) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.strip_suffix(b"\r").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each line turns out to be: bare as `=`, a part as `+`, a message with the number of earlier lines.
    fn read(wrapper: &mut Wrapper, lines: &[&str]) -> Vec<String> {
        let describe = |line: &&str| {
            let line = Line {
                text: line.as_bytes(),
                bytes: line.len() as u64 + 1,
                nul_bytes: 0,
                long: false,
                ended: true,
            };
            match wrapper.take_off(&line) {
                Unwrapped::Bare => "=".to_owned(),
                Unwrapped::Part => "+".to_owned(),
                Unwrapped::Message(Message { text, earlier, .. }) => {
                    format!("{} {}", earlier.lines, String::from_utf8_lossy(text))
                }
            }
        };
        lines.iter().map(describe).collect()
    }

    #[test]
    fn a_line_in_parts_is_one_even_where_it_is_as_long_as_its_last_part_was() {
        let mut wrapper = Wrapper::default();
        let last = "2026-01-02T03:04:05Z stdout F 678901234567890";
        let lines = [
            "2026-01-02T03:04:05Z stdout P 123456789012345",
            "2026-01-02T03:04:05Z stderr P another",
            "2026-01-02T03:04:05Z stdout P 678901234567890",
            last,
            last,
        ];
        let joined = "2 123456789012345678901234567890678901234567890";
        assert_eq!(joined.len() - 2, last.len());
        assert_eq!(
            read(&mut wrapper, &lines),
            ["+", "+", "+", joined, "0 678901234567890"]
        );
        let left = wrapper.left().map(|message| message.text.to_vec());
        assert_eq!(left.as_deref(), Some(&b"another"[..]));
        assert_eq!(wrapper.left(), None);
    }

    #[test]
    fn parts_are_joined_to_those_of_the_same_writer() {
        let part = |pod: usize, kind: &str, text: &str| {
            format!("[pod/{pod}/app] 2026-01-02T03:04:05Z stdout {kind} {text}")
        };
        let mut lines = Vec::new();
        lines.extend((0..=MOST_PARTS).map(|pod| part(pod, "P", "a")));
        lines.extend((0..=MOST_PARTS).map(|pod| part(pod, "F", "b")));
        let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
        let mut expected = vec!["+"; MOST_PARTS];
        expected.push("0 a");
        expected.extend(vec!["1 ab"; MOST_PARTS]);
        expected.push("0 b");
        assert_eq!(read(&mut Wrapper::default(), &lines), expected);
    }

    #[test]
    fn wrappers_lie_within_each_other() {
        let lines = [
            r#"2026-01-02T03:04:05Z stdout F {"message":"web-1  | [0.5s] GC(0) x\n"}"#,
            r#"2026-01-02T03:04:05Z stdout P {"message":"in"#,
            r#"2026-01-02T03:04:05Z stdout F  parts\r\n"}"#,
            r#"{"level":"info"}"#,
            "{Heap before GC invocations=1 (full 0):",
            "[0.5s] GC(0) x",
            "  eden space",
            "",
        ];
        assert_eq!(
            read(&mut Wrapper::default(), &lines),
            [
                "0 [0.5s] GC(0) x",
                "+",
                "1 in parts",
                "=",
                "=",
                "=",
                "=",
                "="
            ]
        );
    }

    #[test]
    fn a_line_of_parts_without_end_takes_no_memory() {
        let mut wrapper = Wrapper::default();
        let part = format!("2026-01-02T03:04:05Z stdout P {}", "x".repeat(10_000));
        read(&mut wrapper, &vec![&*part; 100]);
        let left = wrapper.left().expect("a line without end");
        assert_eq!((left.text.len(), left.long), (LONGEST, true));
        assert_eq!(left.earlier.lines, 100);
    }
}
