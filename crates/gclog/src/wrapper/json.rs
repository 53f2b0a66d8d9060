//! The string of a JSON line that holds the message, or that is the line, and its escapes.
//!
//! Docker's `json-file` (`{"log":"...\n","stream":"stdout","time":"..."}`) escapes `<`, `>` and `&` as `\u003c` and so on
//! (`moby daemon/logger/jsonfilelog/jsonlog/jsonlogbytes.go`); fluent-bit, logstash, journald and others have the same
//! string under another key. `jq .log` leaves the string alone, and a table of one column has it with `""` for each mark
//! (RFC 4180). A JSON line is not checked: what is cut gives what there is.

use memchr::{memchr, memchr2, memmem};

use super::front::add;

/// Keys of messages: of docker and fluent-bit, logstash and ECS, applications, journald, CloudWatch, Google, Loki,
/// OpenTelemetry, Splunk, GELF.
const KEYS: [&[u8]; 10] = [
    b"log",
    b"message",
    b"msg",
    b"MESSAGE",
    b"@message",
    b"textPayload",
    b"line",
    b"body",
    b"_raw",
    b"short_message",
];

/// What shows a message of a collection under a key that is none of these.
const SIGNS: [&[u8]; 5] = [b"[gc", b"GC(", b"[GC", b"[Full GC", b"[CMS-"];

/// Keys of what names the writer: of Kubernetes and docker as fluent-bit, Loki and others have them, of journald, GELF, CloudWatch.
const WRITERS: [&[u8]; 17] = [
    b"pod",
    b"pod_name",
    b"podName",
    b"namespace",
    b"namespace_name",
    b"container",
    b"container_name",
    b"containerName",
    b"container_id",
    b"CONTAINER_NAME",
    b"CONTAINER_ID",
    b"host",
    b"hostname",
    b"_HOSTNAME",
    b"_PID",
    b"logStream",
    b"log_stream",
];

/// Longest key that is kept.
const LONGEST_KEY: usize = 64;

/// The string that holds the message, escapes and all; nothing where the text is no object of JSON or holds none. `learned`
/// keeps a key under which a message of a collection was found, and what names the writer is added to `from`.
pub(super) fn message<'a>(
    text: &'a [u8],
    learned: &mut Vec<u8>,
    from: &mut Vec<u8>,
) -> Option<&'a [u8]> {
    if let Some(inner) = text.strip_prefix(b"\"") {
        return alone(inner);
    }
    let inner = text.strip_prefix(b"{")?.trim_ascii_start();
    if inner.first() != Some(&b'"') {
        return None;
    }
    let known = |key: &[u8]| KEYS.contains(&key) || !key.is_empty() && key == *learned;
    let mut message = None;
    for (key, string) in Strings::of(inner) {
        if message.is_none() && known(key) {
            message = Some(string);
        } else if WRITERS.contains(&key) {
            add(string, from);
        }
    }
    if message.is_some() {
        return message;
    }
    let shows = |message: &[u8]| {
        SIGNS
            .iter()
            .any(|sign| memmem::find(message, sign).is_some())
    };
    let (key, message) = Strings::of(inner).find(|(_, message)| shows(message))?;
    learned.clear();
    learned.extend_from_slice(&key[..key.len().min(LONGEST_KEY)]);
    Some(message)
}

/// The string that is all of the line, whose opening was read. What begins with a name in quotes, such as a thread of a dump,
/// is none.
fn alone(inner: &[u8]) -> Option<&[u8]> {
    let inner = inner.strip_suffix(b",").unwrap_or(inner);
    let string = inner.strip_suffix(b"\"")?;
    let mut rest = string;
    loop {
        rest = &rest[end(rest)..];
        match rest {
            [] => return Some(string),
            [b'"', b'"', behind @ ..] => rest = behind,
            _ => return None,
        }
    }
}

/// The strings that are values, each with the last key before it. How deep they lie is not looked at.
struct Strings<'a> {
    rest: &'a [u8],
    key: &'a [u8],
}

impl<'a> Strings<'a> {
    fn of(rest: &'a [u8]) -> Self {
        Self { rest, key: b"" }
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = memchr(b'"', self.rest)? + 1;
            let inner = &self.rest[start..];
            let end = end(inner);
            let string = &inner[..end];
            self.rest = inner.get(end + 1..).unwrap_or_default();
            if self.rest.trim_ascii_start().first() == Some(&b':') {
                self.key = string;
            } else {
                return Some((self.key, string));
            }
        }
    }
}

/// How long a string is whose opening was read; one that is cut goes on to the end.
fn end(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at = (at + 2).min(text.len());
    }
    text.len()
}

/// The string without its escapes, in `room` if it has some.
pub(super) fn without_escapes<'a>(string: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(mut next) = memchr2(b'\\', b'"', string) else {
        return string;
    };
    room.clear();
    let mut rest = string;
    loop {
        room.extend_from_slice(&rest[..next]);
        // Of two marks the second is meant, as what stands behind a backslash.
        let (kind, behind) = (rest[next], &rest[next + 1..]);
        rest = if kind == b'\\' {
            escape(behind, room)
        } else {
            room.push(kind);
            behind.strip_prefix(b"\"").unwrap_or(behind)
        };
        match memchr2(b'\\', b'"', rest) {
            Some(at) => next = at,
            None => break,
        }
    }
    room.extend_from_slice(rest);
    room
}

/// Reads what stands behind a backslash, and gives what follows. One that is cut gives nothing.
fn escape<'a>(text: &'a [u8], room: &mut Vec<u8>) -> &'a [u8] {
    let Some((kind, rest)) = text.split_first() else {
        return text;
    };
    let byte = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'u' => {
            let (character, rest) = character(rest);
            let mut bytes = [0; 4];
            room.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
            return rest;
        }
        other => *other,
    };
    room.push(byte);
    rest
}

/// The character of the four digits behind `\u`, or of eight with another `\u` between them, and what follows.
fn character(text: &[u8]) -> (char, &[u8]) {
    let unit = |text: &[u8]| {
        let digits = std::str::from_utf8(text.get(..4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(text) else {
        // Cut, or damaged.
        return (
            char::REPLACEMENT_CHARACTER,
            text.get(4..).unwrap_or_default(),
        );
    };
    let rest = &text[4..];
    if let Some(character) = char::from_u32(first) {
        return (character, rest);
    }
    let second = rest.strip_prefix(br"\u").and_then(unit);
    if let (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) = (first, second) {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        return (character, &rest[6..]);
    }
    (char::REPLACEMENT_CHARACTER, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, learned: &mut Vec<u8>) -> Option<String> {
        let mut room = Vec::new();
        let message = message(text.as_bytes(), learned, &mut Vec::new())?;
        let message = without_escapes(message, &mut room);
        Some(String::from_utf8_lossy(message).into_owned())
    }

    #[test]
    fn the_message_is_found_under_its_key_and_its_escapes_are_undone() {
        for (text, expected) in [
            (
                r#"{"log":"24M-\u003e4M(256M) 3.524ms\n","stream":"stdout","time":"2026-01-02T03:04:05.123456789Z"}"#,
                "24M->4M(256M) 3.524ms\n",
            ),
            (
                r#"{"stream":"stdout","log":"Safepoint \"G1Collect\"","x":"y"}"#,
                "Safepoint \"G1Collect\"",
            ),
            (
                r#"{ "@timestamp" : "t", "log": {"offset": 3, "file": {"path": "/var/log"}}, "tags": ["a", "b"], "message" : "m" }"#,
                "m",
            ),
            (
                r#"{"msg":"a\\\/\b\f\t\r\u00e9\ud83d\ude00\ud83dx"}"#,
                "a\\/\u{8}\u{c}\t\ré😀\u{fffd}x",
            ),
            (r#"{"message":"cut in the mid"#, "cut in the mid"),
            (r#"{"message":"cut in an escape\"#, "cut in an escape"),
            (r#"{"message":"damaged \uz"#, "damaged \u{fffd}"),
            (r#"{"message":""}"#, ""),
        ] {
            assert_eq!(
                read(text, &mut Vec::new()).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn another_key_is_learned_by_what_a_collection_says() {
        let learned = &mut Vec::new();
        let line = |text: &str| format!(r#"{{"app":"gc [x]","out":"{text}","n":1}}"#);
        assert_eq!(read(&line("Using G1"), learned), None);
        let pause = "[0.5s][info][gc] GC(0) Pause Remark 1.5ms";
        assert_eq!(read(&line(pause), learned).as_deref(), Some(pause));
        let begun = read(&line("  eden space"), learned);
        assert_eq!(begun.as_deref(), Some("  eden space"));
    }

    #[test]
    fn a_string_alone_is_the_message_and_a_name_in_front_is_none() {
        for (text, expected) in [
            (r#""[0.5s] x""#, Some("[0.5s] x")),
            (r#""[0.5s] \"a\" x\n""#, Some("[0.5s] \"a\" x\n")),
            (r#""[0.5s] ""a"" x","#, Some("[0.5s] \"a\" x")),
            (r#""""#, Some("")),
            (r#"""""#, None),
            (r#""main" #1 prio=5 "x""#, None),
            (r#""main" #1 prio=5"#, None),
            (r#""a","b""#, None),
            ("\"", None),
        ] {
            let read = read(text, &mut Vec::new());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_of_json_holds_nothing() {
        for text in [
            "",
            "{",
            "{Heap before GC",
            "{}",
            "[\"log\"]",
            "{ x \"log\":\"y\"}",
            "{\"log\":1}",
        ] {
            assert_eq!(read(text, &mut Vec::new()), None, "{text}");
        }
    }

    #[test]
    fn what_names_the_writer_is_reported_wherever_it_stands() {
        let text = br#"{"_PID":"12","log":"x","stream":"stdout","kubernetes":{"pod_name":"web-0","labels":{"app":"web"}}}"#;
        let mut from = Vec::new();
        assert_eq!(message(text, &mut Vec::new(), &mut from), Some(&b"x"[..]));
        assert_eq!(from, b"12 web-0");
    }
}
