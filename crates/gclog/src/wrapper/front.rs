//! What is put in front of a line.
//!
//! | who | what |
//! |---|---|
//! | containerd, CRI-O, podman's `k8s-file` | `2026-01-02T03:04:05.123456789Z stdout F `, and `P` where a line goes on |
//! | `kubectl logs --timestamps`, `docker logs --timestamps` | `2026-01-02T03:04:05.123456789Z ` |
//! | `kubectl logs --prefix` | `[pod/NAME/CONTAINER] ` |
//! | `docker compose` | `NAME-1  \| ` |
//! | journald, rsyslog, RFC 3164 | `Nov 22 10:00:00 HOST java[123]: `, or with a date as in RFC 3339 |
//! | RFC 5424 | `<14>1 2026-01-02T03:04:05.123456Z HOST java 123 - - ` |
//!
//! JVMs before JDK 9 print dates too: `2026-11-22T17:09:58.133+0000: `, and other threads may print anything behind one. RFC 3339
//! has a colon within the zone, and journald, whose old dates have none either, prints no milliseconds.
//!
//! Sources: `kubernetes/cri-api` (`LogTag`), `conmon src/ctr_logging.c`, `docker/compose cmd/formatter/logs.go`,
//! `kubernetes/kubectl pkg/cmd/logs`, `systemd src/shared/logs-show.c`, RFC 3164 and 5424.

/// What a container's runtime says of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// 0 for `stdout`, 1 for `stderr`.
    pub(super) stream: usize,
    /// The line ends here.
    pub(super) whole: bool,
}

/// The text behind all that stands in front of it. What a runtime says of a line is the last: behind it may be a part. What
/// names the writer is added to `from`.
pub(super) fn taken_off<'a>(mut text: &'a [u8], from: &mut Vec<u8>) -> (&'a [u8], Option<Record>) {
    while let Some((rest, record)) = first_off(text, from) {
        text = rest;
        if record.is_some() {
            return (text, record);
        }
    }
    (text, None)
}

/// The text behind the first of them.
fn first_off<'a>(text: &'a [u8], from: &mut Vec<u8>) -> Option<(&'a [u8], Option<Record>)> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let rest = match text.first()? {
        b'[' => pod(text, from),
        b'<' => with_priority(text, from),
        b'0'..=b'9' => return dated(text, from),
        b'A'..=b'Z' => of_syslog(text, from),
        b'a'..=b'z' => of_compose(text, from),
        _ => text.strip_prefix(BYTE_ORDER_MARK),
    };
    Some((rest?, None))
}

/// Adds a name to those that tell whose a line is.
pub(super) fn add(name: &[u8], from: &mut Vec<u8>) {
    /// A pod and a container in a namespace have 63 to 253 characters each.
    const LONGEST: usize = 1024;
    if !from.is_empty() {
        from.push(b' ');
    }
    let room = LONGEST.saturating_sub(from.len());
    from.extend_from_slice(&name[..name.len().min(room)]);
}

/// `[pod/web-0/app] `.
fn pod<'a>(text: &'a [u8], from: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (name, rest) = until(text.strip_prefix(b"[pod/")?, b']')?;
    let rest = behind_blank(rest)?;
    add(name, from);
    Some(rest)
}

/// What begins with a date: the record of a runtime, the header of syslog, or nothing else.
fn dated<'a>(text: &'a [u8], from: &mut Vec<u8>) -> Option<(&'a [u8], Option<Record>)> {
    let date = Date::read(text)?;
    let rest = behind_blank(date.rest)?;
    if let Some(record) = record(rest) {
        return Some(record);
    }
    let header = header(rest).filter(|header| {
        // `CommandLine flags: ` is what a JVM prints, and looks like a host and a program. rsyslog's dates have microseconds
        // and an offset, journald's old ones no colon.
        header.has_pid || !date.has_colon || date.places == 6 && !date.is_utc
    });
    match header {
        Some(header) => {
            add(header.from, from);
            Some((header.rest, None))
        }
        None if date.has_colon => Some((rest, None)),
        None => None,
    }
}

/// `stdout F `; more tags may stand behind a colon.
fn record(text: &[u8]) -> Option<(&[u8], Option<Record>)> {
    let (stream, rest) = match (text.strip_prefix(b"stdout "), text.strip_prefix(b"stderr ")) {
        (Some(rest), _) => (0, rest),
        (_, Some(rest)) => (1, rest),
        _ => return None,
    };
    let whole = match rest.first()? {
        b'F' => true,
        b'P' => false,
        _ => return None,
    };
    let rest = match &rest[1..] {
        [b':', tags @ ..] => &tags[tags.iter().position(|byte| *byte == b' ')?..],
        rest => rest,
    };
    Some((behind_blank(rest)?, Some(Record { stream, whole })))
}

/// `Nov 22 10:00:00 HOST java[123]: `; a fraction of the second may be there.
fn of_syslog<'a>(text: &'a [u8], from: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (date, mut rest) = text.split_at_checked(15)?;
    if date[3] != b' ' || date[6] != b' ' || date[9] != b':' || date[12] != b':' {
        return None;
    }
    if let Some(places) = rest.strip_prefix(b".") {
        rest = behind_digits(places);
    }
    let header = header(behind_blank(rest)?)?;
    add(header.from, from);
    Some(header.rest)
}

/// `<14>1 2026-01-02T03:04:05.123456Z HOST java 123 - - `, or `<14>` before a header as in RFC 3164.
fn with_priority<'a>(text: &'a [u8], from: &mut Vec<u8>) -> Option<&'a [u8]> {
    let rest = behind_digits(&text[1..]).strip_prefix(b">")?;
    let Some(rest) = rest.strip_prefix(b"1 ") else {
        return of_syslog(rest, from);
    };
    let (_date, writer) = until(rest, b' ')?;
    let mut rest = writer;
    // Host, program, process.
    for _ in 0..3 {
        (_, rest) = until(rest, b' ')?;
    }
    let writer = &writer[..writer.len() - rest.len() - 1];
    let (_kind, mut rest) = until(rest, b' ')?;
    if let Some(behind) = rest.strip_prefix(b"-") {
        rest = behind;
    } else {
        while rest.first() == Some(&b'[') {
            rest = behind_element(rest)?;
        }
    }
    let rest = behind_blank(rest)?;
    add(writer, from);
    Some(rest)
}

/// Behind `[id name="value"]`, where a value may hold `\]` and `\"`.
fn behind_element(text: &[u8]) -> Option<&[u8]> {
    let mut bytes = text.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b']' => return Some(&text[at + 1..]),
            _ => {}
        }
    }
    None
}

/// `web-1  | `: the name is filled up with blanks, of which there is one at least. One that begins with a capital or a digit is
/// unknown: JVMs before JDK 9 begin half of their lines so.
fn of_compose<'a>(text: &'a [u8], from: &mut Vec<u8>) -> Option<&'a [u8]> {
    let name = text
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte));
    let (name, rest) = text.split_at(name.count());
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    if blanks == 0 {
        return None;
    }
    let rest = behind_blank(rest[blanks..].strip_prefix(b"|")?)?;
    add(name, from);
    Some(rest)
}

/// Host, program and process of syslog.
struct Header<'a> {
    /// `HOST java[123]`.
    from: &'a [u8],
    has_pid: bool,
    rest: &'a [u8],
}

/// `HOST java[123]: `.
fn header(text: &[u8]) -> Option<Header<'_>> {
    let (host, program) = until(text, b' ')?;
    if host.is_empty() {
        return None;
    }
    let end = program
        .iter()
        .position(|byte| matches!(byte, b' ' | b':' | b'['))
        .filter(|end| *end > 0)?;
    let mut rest = &program[end..];
    let has_pid = rest[0] == b'[';
    if has_pid {
        rest = behind_digits(&rest[1..]).strip_prefix(b"]")?;
    }
    let from = &text[..text.len() - rest.len()];
    let rest = rest.strip_prefix(b": ")?;
    Some(Header {
        from,
        has_pid,
        rest,
    })
}

/// A date and a time as in RFC 3339, or with a zone without a colon.
struct Date<'a> {
    /// Digits of the fraction.
    places: usize,
    /// The zone is `Z`.
    is_utc: bool,
    /// The zone is as RFC 3339 has it: `Z`, `+01:00`.
    has_colon: bool,
    rest: &'a [u8],
}

impl<'a> Date<'a> {
    fn read(text: &'a [u8]) -> Option<Self> {
        let (whole, mut rest) = text.split_at_checked(b"2026-01-02T03:04:05".len())?;
        let marks = [whole[4], whole[7], whole[10], whole[13], whole[16]];
        if marks != *b"--T::" {
            return None;
        }
        let mut places = 0;
        if let Some(fraction) = rest.strip_prefix(b".") {
            rest = behind_digits(fraction);
            places = fraction.len() - rest.len();
        }
        let is_utc = rest.first() == Some(&b'Z');
        let (has_colon, zone) = match rest {
            [b'Z', ..] => (true, 1),
            [b'+' | b'-', _, _, b':', _, _, ..] => (true, 6),
            [b'+' | b'-', _, _, _, _, ..] if places != 3 => (false, 5),
            _ => return None,
        };
        Some(Self {
            places,
            is_utc,
            has_colon,
            rest: &rest[zone..],
        })
    }
}

/// What stands before the next `end`, and what behind it.
fn until(text: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(end, text)?;
    Some((&text[..at], &text[at + 1..]))
}

fn behind_digits(text: &[u8]) -> &[u8] {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    &text[digits.count()..]
}

/// One blank belongs to the wrapper, more to the message; of an empty one it may be missing.
fn behind_blank(text: &[u8]) -> Option<&[u8]> {
    match text {
        [] => Some(text),
        [b' ', rest @ ..] => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(text: &str) -> &str {
        std::str::from_utf8(taken_off(text.as_bytes(), &mut Vec::new()).0).unwrap()
    }

    #[test]
    fn what_names_the_writer_is_reported() {
        for (text, expected) in [
            ("2026-01-02T03:04:05.123456789Z stdout F x", ""),
            ("[pod/web-0/app] 2026-01-02T03:04:05.1Z x", "web-0/app"),
            ("web-1   | x", "web-1"),
            ("Nov 22 10:00:00 h java[123]: x", "h java[123]"),
            ("<14>Nov 22 10:00:00 h java: web-1 | x", "h java web-1"),
            ("2026-11-22T10:00:00+0000 h java[123]: x", "h java[123]"),
            (
                r#"<14>1 2026-11-22T10:00:00Z h java 12 - [a b="c"] x"#,
                "h java 12",
            ),
        ] {
            let mut from = Vec::new();
            assert_eq!(taken_off(text.as_bytes(), &mut from).0, b"x", "{text}");
            assert_eq!(String::from_utf8_lossy(&from), expected, "{text}");
        }
    }

    #[test]
    fn what_stands_in_front_is_taken_off_and_nothing_of_the_message() {
        for front in [
            "2026-01-02T03:04:05.123456789Z stdout F ",
            "2026-01-02T03:04:05.12Z stderr F ",
            "2026-01-02T03:04:05.123456789+01:00 stdout F ",
            "2026-01-02T03:04:05.123456789Z stdout F:x:y ",
            "2026-01-02T03:04:05.123456789Z ",
            "2026-01-02T03:04:05Z ",
            "[pod/web-5d8f9c7b6-x2x9z/app] ",
            "[pod/web-0/app] 2026-01-02T03:04:05.123456789Z ",
            "web-1  | ",
            "gc_log.1       | ",
            "web-1  | 2026-01-02T03:04:05.123456789Z ",
            "Nov 22 10:00:00 host java[123]: ",
            "Nov  2 10:00:00.123456 host.example.org java[123]: ",
            "Nov 22 10:00:00 host java: ",
            "<14>Nov 22 10:00:00 host java[123]: ",
            "2026-11-22T10:00:00+0000 host java[123]: ",
            "2026-11-22T10:00:00+0000 host java: ",
            "2026-11-22T10:00:00.123456+0000 host java[123]: ",
            "2026-11-22T10:00:00+00:00 host java[123]: ",
            "2026-11-22T10:00:00.123456+00:00 host java[123]: ",
            "2026-11-22T10:00:00.123456+01:00 host java: ",
            "<14>1 2026-11-22T10:00:00.123456Z host java 123 - - ",
            r#"<14>1 2026-11-22T10:00:00.123456Z host java - ID4 [a@1 b="c\]\""][d] "#,
            "\u{feff}",
            "<14>1 - host java - - - \u{feff}",
        ] {
            for message in [
                "[0.512s][info][gc] GC(0) x",
                "2026-11-22T17:09:58.133+0000: 1.234: [GC x",
                "2026-11-22T17:09:58.133+00002026-11-22T17:09:58.134+0000: : x",
                "  eden space 26240K",
                "1.234: Application time: 0.1",
                "CommandLine flags: -XX:+UseG1GC",
                "Heap after GC invocations=3 (full 1):",
                "- age   1:",
                "",
            ] {
                assert_eq!(off(&format!("{front}{message}")), message, "{front}");
            }
        }
    }

    #[test]
    fn a_line_that_goes_on_says_so_and_of_which_stream() {
        for (text, stream, whole) in [
            ("2026-01-02T03:04:05.1Z stdout P x", 0, false),
            ("2026-01-02T03:04:05.1Z stderr P x", 1, false),
            ("2026-01-02T03:04:05.1Z stderr F x", 1, true),
            ("[pod/a/b] 2026-01-02T03:04:05.1Z stdout P x", 0, false),
        ] {
            let record = Record { stream, whole };
            let expected = (&b"x"[..], Some(record));
            assert_eq!(
                taken_off(text.as_bytes(), &mut Vec::new()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_jvm_or_an_application_prints_itself_stays() {
        for text in [
            "2026-11-22T17:09:58.133+0000: 1.234: [GC",
            "2026-11-22T17:09:58.133+0000 space 26240K",
            "2026-11-22T17:09:58.133+00002026-11-22T17:09:58.134+0000: : x",
            "2026-11-22T17:09:58.133+0000",
            "2026-11-22T17:09:58.133+0000  eden:  space 294912K, 100% used",
            "2026-11-22T17:09:58.133+0000 garbage-first heap:   total 262144K",
            "2026-11-22T17:09:58+0000  eden:  space 294912K, 100% used",
            "2026-11-22 17:09:58 x",
            "CommandLine flags: -Xmx1g",
            "Nov 22 10:00:00 no header",
            "[pods] x",
            "[pod/web",
            "[gc] web | x",
            "<clinit> x",
            "<1",
            "<14>1 a b",
            r"<14>1 - a b c d [e\",
            "web|x",
            "web  ||",
            "Web-1  | x",
            "a=b | c",
        ] {
            assert_eq!(off(text), text);
        }
    }
}
