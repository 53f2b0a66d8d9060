//! Logs of the corpus as containers, collectors of logs and syslog keep them say what they said before.

use proptest::prelude::*;
use rungwise_gclog::{Account, Event, Names, Parser, Summarizer};
use serde_json::json;

use crate::corpus;

/// Logs above this size say nothing more here, and take long.
const MOST_BYTES: usize = 200_000;

/// A line as it is kept.
type Wrap = fn(&str) -> String;

/// Who keeps lines, and how.
const WRAPPERS: [(&str, Wrap); 24] = [
    ("docker json-file", |line| docker(line, "\n")),
    ("docker json-file, with a terminal", |line| {
        docker(line, "\r\n")
    }),
    ("containerd", |line| {
        format!("2026-01-02T03:04:05.123456789Z stdout F {line}")
    }),
    ("CRI-O", |line| {
        format!("2026-01-02T03:04:05.123456789+01:00 stderr F {line}")
    }),
    ("kubectl logs --timestamps", |line| {
        format!("2026-01-02T03:04:05.12345678Z {line}")
    }),
    ("kubectl logs --prefix", |line| {
        format!("[pod/web-5d8f9c7b6-x2x9z/app] {line}")
    }),
    ("kubectl logs --prefix --timestamps", |line| {
        format!("[pod/web-0/app] 2026-01-02T03:04:05.123456789Z {line}")
    }),
    ("docker compose", |line| format!("web-1  | {line}")),
    ("docker compose logs --timestamps", |line| {
        format!("web-1       | 2026-01-02T03:04:05.123456789Z {line}")
    }),
    ("journald", |line| {
        format!("Nov 22 10:00:00 host java[4711]: {line}")
    }),
    ("rsyslog", |line| {
        format!("2026-11-22T10:00:00.123456+01:00 host java[4711]: {line}")
    }),
    ("rsyslog, of logger -t gc", |line| {
        format!("2026-11-22T10:00:00.123456+00:00 host gc: {line}")
    }),
    ("RFC 5424", |line| {
        format!(r#"<14>1 2026-11-22T10:00:00.123456Z host java 4711 - [a@32473 b="c\]"] {line}"#)
    }),
    ("fluent-bit", |line| {
        json!({"stream": "stdout", "logtag": "F", "log": line, "kubernetes": {"labels": {"app": "web"}}})
            .to_string()
    }),
    ("logstash", |line| {
        json!({"@timestamp": "2026-11-22T10:00:00.123Z", "@version": "1", "host": {"name": "h"}, "message": line})
            .to_string()
    }),
    ("filebeat with the line of containerd", |line| {
        json!({"log": {"offset": 4711}, "message": format!("2026-01-02T03:04:05.123Z stdout F {line}")})
            .to_string()
    }),
    ("journalctl -o json", |line| {
        json!({"_PID": "4711", "MESSAGE": line, "_COMM": "java"}).to_string()
    }),
    ("docker compose, in colours", |line| {
        format!("\x1b[36mweb-1  | \x1b[0m{line}")
    }),
    ("docker compose of 2019, in colours", |line| {
        format!("\x1b[36mweb_1  |\x1b[0m {line}")
    }),
    ("script", |line| format!("\x1b[?2004l\r{line}\x1b[0m\r\r")),
    ("containerd, of an application in colours", |line| {
        format!("2026-01-02T03:04:05.123456789Z stdout F \x1b[m{line}")
    }),
    ("docker json-file, of an application in colours", |line| {
        docker(&format!("\x1b(B\x1b[m{line}"), "\r\n")
    }),
    ("jq .log", |line| json!(format!("{line}\n")).to_string()),
    ("a table of one column", |line| {
        // Some logs of the corpus have been a string before, and kept `\"`.
        format!("\"{}\"", line.replace('\\', "").replace('"', "\"\""))
    }),
];

/// Of those the ones that do not name the writer.
const UNNAMED: [&str; 11] = [
    "docker json-file",
    "docker json-file, with a terminal",
    "containerd",
    "CRI-O",
    "kubectl logs --timestamps",
    "logstash",
    "script",
    "containerd, of an application in colours",
    "docker json-file, of an application in colours",
    "jq .log",
    "a table of one column",
];

fn wrapper(name: &str) -> Wrap {
    let found = WRAPPERS.iter().find(|(who, _)| *who == name);
    found.expect("a wrapper").1
}

/// As `jsonlogbytes.go` of moby writes it.
fn docker(line: &str, end: &str) -> String {
    use std::fmt::Write as _;

    let mut log = String::new();
    for character in line.chars().chain(end.chars()) {
        match character {
            '"' | '\\' => log.extend(['\\', character]),
            '\n' => log += r"\n",
            '\r' => log += r"\r",
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                let _ = write!(log, r"\u{:04x}", u32::from(character));
            }
            _ => log.push(character),
        }
    }
    format!(r#"{{"log":"{log}","stream":"stdout","time":"2026-01-02T03:04:05.123456789Z"}}"#)
}

/// Logs that are text, without the holes of `copytruncate`.
fn logs() -> Vec<(String, String)> {
    let text = |name: String| {
        let bytes = corpus::bytes(&name);
        let text = String::from_utf8(bytes).ok()?;
        (text.len() <= MOST_BYTES && !text.contains('\0')).then_some((name, text))
    };
    corpus::logs().into_iter().filter_map(text).collect()
}

/// Each line of a log, kept so.
fn wrapped(log: &str, mut wrap: impl FnMut(&str) -> String) -> String {
    log.lines().map(|line| wrap(line) + "\n").collect()
}

/// Events and statistics as text, and the account. Without `lines` the events have no numbers of lines, and there are no
/// statistics, which cite them.
fn event_text(pieces: &[&[u8]], lines: bool) -> (String, Account) {
    use std::fmt::Write as _;

    let mut text = String::new();
    let mut summarizer = Summarizer::new();
    let mut sink = |names: &Names, event: Event<'_>| {
        summarizer.event(names, event);
        let event = format!("{event:?}");
        let _ = match event.split_once(" line: ").filter(|_| !lines) {
            Some((before, after)) => {
                let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
                writeln!(text, "{before}{after}")
            }
            None => writeln!(text, "{event}"),
        };
    };
    let mut parser = Parser::new();
    for piece in pieces {
        parser.push(piece, &mut sink);
    }
    let account = parser.finish(&mut sink);
    if lines {
        let _ = writeln!(text, "{:?}", summarizer.summary());
    }
    (text, account)
}

/// The first line that is not the same.
fn differs<'a>(here: &'a str, there: &'a str) -> Option<(&'a str, &'a str)> {
    let mut pairs = here.lines().zip(there.lines());
    pairs.find(|(here, there)| here != there)
}

/// Lines understood, ignored and unknown.
fn lines(account: &Account) -> [u64; 3] {
    [account.understood, account.ignored, account.unknown].map(|share| share.lines)
}

#[test]
fn a_log_says_the_same_in_each_wrapper() {
    let logs = logs();
    for wanted in [
        "own_jdk8-cms-scavenge-before-remark.log",
        "own_jdk8-serial.log",
        "jifa_8G1GCParser.log",
        "jifa_8G1LogConcurrencyProblem.log",
        "own_jdk17-g1-tospace.log",
        "own_jdk17-g1-timeonly.log",
        "own_jdk21-genzgc.log",
        "own_jdk25-genshen.log",
    ] {
        assert!(logs.iter().any(|(name, _)| name == wanted), "{wanted}");
    }
    let mut wrong = Vec::new();
    for (name, log) in &logs {
        let (bare, bare_account) = event_text(&[log.as_bytes()], true);
        for (who, wrap) in WRAPPERS {
            let kept = wrapped(log, wrap);
            let (here, account) = event_text(&[kept.as_bytes()], true);
            assert_eq!(account.bytes(), kept.len() as u64, "{name}, {who}");
            if lines(&account) != lines(&bare_account) || here != bare {
                wrong.push(format!(
                    "{name}, {who}: {:?} for {:?}; {:?}",
                    lines(&account),
                    lines(&bare_account),
                    differs(&here, &bare)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_wrapper_of_a_cut_line_is_taken_off_as_well() {
    let line =
        "[0.512s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms";
    let kept = docker(line, "\n");
    let end = kept.find("stream").expect("it is there");
    let whole = event_text(&[line.as_bytes()], false).0;
    assert!(whole.contains("duration_ns: Some(3524000)"), "{whole}");
    for cut in [end, end - 3, end - 4] {
        let (text, account) = event_text(&[&kept.as_bytes()[..cut]], false);
        assert_eq!(text, whole, "{}", &kept[..cut]);
        assert!(account.cut);
    }
}

#[test]
fn a_string_may_hold_several_lines() {
    let log = String::from_utf8(corpus::bytes("jifa_8G1GCParser.log")).expect("text");
    let kept = json!({ "message": log }).to_string();
    let (here, account) = event_text(&[kept.as_bytes()], false);
    assert_eq!(here, event_text(&[log.as_bytes()], false).0);
    assert_eq!(lines(&account), [1, 0, 0]);
}

/// Each line in parts as CRI-O and containerd keep them, cut where `cuts` say; a line of the other stream comes before the last
/// part of some. And the bare lines in the order in which they end.
fn in_parts(log: &str, cuts: &[prop::sample::Index]) -> (String, String) {
    let (mut kept, mut bare) = (String::new(), String::new());
    let mut cuts = cuts.iter().cycle();
    for (number, line) in log.lines().enumerate() {
        let mut rest = line;
        while let Some(at) = cuts.next().map(|cut| cut.index(line.len() + 2)) {
            if at == 0 || at > rest.len() || !rest.is_char_boundary(at) {
                break;
            }
            let (part, behind) = rest.split_at(at);
            kept = kept + "2026-01-02T03:04:05.123456789Z stdout P " + part + "\n";
            rest = behind;
        }
        if number % 7 == 0 {
            kept += "2026-01-02T03:04:05.2Z stderr P of the \n";
            kept += "2026-01-02T03:04:05.2Z stderr F application\n";
            bare += "of the application\n";
        }
        kept = kept + "2026-01-02T03:04:05.123456789Z stdout F " + rest + "\n";
        bare = bare + line + "\n";
    }
    (kept, bare)
}

/// Small logs, one of each manner.
const SMALL: [&str; 6] = [
    "gcviewer_SampleSun1_8_0CMS_ScavengeBR_HeapAtGC_TenuringDist_PrintFLS.txt",
    "jifa_8G1GCParser.log",
    "jifa_11CMSScavengeBeforeRemark.log",
    "jifa_17G1Parser.log",
    "garbagecat_dataset271.txt",
    "own_jdk8-serial.log",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn lines_in_parts_are_joined(
        which in 0..SMALL.len(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let log = String::from_utf8(corpus::bytes(SMALL[which])).unwrap();
        let (kept, bare) = in_parts(&log, &cuts);
        let (here, account) = event_text(&[kept.as_bytes()], false);
        let there = event_text(&[bare.as_bytes()], false).0;
        prop_assert_eq!(differs(&here, &there), None);
        prop_assert_eq!(here.len(), there.len());
        prop_assert_eq!(account.bytes(), kept.len() as u64);
        prop_assert_eq!(account.lines(), kept.lines().count() as u64);
        // The last line is torn, and reported all the same.
        let end = kept.trim_end().rfind('\n').map_or(0, |at| at + 1);
        let torn = kept[..end].to_owned() + &kept[end..].replacen(" F ", " P ", 1);
        let (_, account) = event_text(&[torn.as_bytes()], false);
        prop_assert!(account.cut);
        prop_assert_eq!(account.bytes(), torn.len() as u64);
    }

    #[test]
    fn each_line_may_have_another_wrapper_or_none_and_come_in_pieces(
        which in 0..SMALL.len(),
        // One that may name a writer, of whom all lines are then.
        named in 0..WRAPPERS.len(),
        wrappers in prop::collection::vec(0..UNNAMED.len() + 2, 1..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..100),
    ) {
        let log = String::from_utf8(corpus::bytes(SMALL[which])).unwrap();
        let mut wrappers = wrappers.iter().cycle();
        let kept = wrapped(&log, |line| {
            let chosen = *wrappers.next().unwrap();
            match UNNAMED.get(chosen) {
                Some(unnamed) => wrapper(unnamed)(line),
                None if chosen == UNNAMED.len() => WRAPPERS[named].1(line),
                None => line.to_owned(),
            }
        });
        let whole = event_text(&[kept.as_bytes()], true);
        prop_assert_eq!(&whole.0, &event_text(&[log.as_bytes()], true).0);
        prop_assert_eq!(event_text(&crate::splits::pieces(kept.as_bytes(), &cuts), true), whole);
    }

    #[test]
    fn damage_to_a_wrapper_makes_nothing_panic(
        which in 0..WRAPPERS.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..40usize), 1..60),
    ) {
        let log = String::from_utf8(corpus::bytes(SMALL[which % SMALL.len()])).unwrap();
        let mut kept = wrapped(&log, WRAPPERS[which].1).into_bytes();
        for (place, byte, gone) in damage {
            let at = place.index(kept.len());
            kept[at] = byte;
            kept.drain(at..(at + gone).min(kept.len() - 1));
        }
        let (_, account) = event_text(&[&kept], true);
        prop_assert_eq!(account.bytes(), kept.len() as u64);
    }
}
