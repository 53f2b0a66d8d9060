//! Two JVMs that write into one log by turns give what each gives alone, wherever lines tell whose they are.

use std::sync::LazyLock;

use proptest::prelude::*;
use rungwise_gclog::{Account, Parser, Summarizer, Summary};
use rungwise_model::gc::Run;
use serde_json::{Value, json};

use crate::corpus;

/// Logs above this size say nothing more here, and take long.
const MOST_BYTES: usize = 100_000;

/// A line as it stands in the log of several, of the first writer or the second.
type Marked = fn(&str, usize) -> String;

/// How lines tell whose they are, whatever log they are of.
const AROUND: [(&str, Marked); 7] = [
    ("docker compose", |line, who| {
        format!("{}| {line}", ["web-1    ", "worker-1 "][who])
    }),
    ("kubectl logs --prefix", |line, who| {
        format!("[pod/web-{who}/app] {line}")
    }),
    ("kubectl logs --prefix --timestamps", |line, who| {
        format!("[pod/web-{who}/app] 2026-01-02T03:04:05.123456789Z {line}")
    }),
    ("journald", |line, who| {
        format!("Nov 22 10:00:00 host java[471{who}]: {line}")
    }),
    ("RFC 5424", |line, who| {
        format!("<14>1 2026-11-22T10:00:00.123456Z host-{who} java 1 - - {line}")
    }),
    ("fluent-bit", |line, who| {
        let pod = json!({"pod_name": format!("web-{who}"), "labels": {"app": "web"}});
        json!({"stream": "stdout", "log": line, "kubernetes": pod}).to_string()
    }),
    ("journalctl -o json", |line, who| {
        json!({"_PID": (4711 + who).to_string(), "MESSAGE": line}).to_string()
    }),
];

/// The same by decorations of unified logging.
const DECORATED: [(&str, Marked); 4] = [
    ("pid", |line, who| {
        decorated(line, ["[4711]", "[4811]"][who])
    }),
    ("pid of two lengths, and tid", |line, who| {
        let thread = line.len() % 3;
        decorated(line, &format!("[{}][{thread}]", [1, 4811][who]))
    }),
    ("host", |line, who| {
        decorated(line, ["[web-0]", "[web-1]"][who])
    }),
    ("host, pid and tid", |line, who| {
        decorated(line, ["[web-0][1][14]", "[web-1][1][15]"][who])
    }),
];

/// With more decorations behind the times, where a JVM prints them.
fn decorated(line: &str, more: &str) -> String {
    let mut at = 0;
    while line[at..].starts_with('[') && line[at + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        at += line[at..].find(']').expect("its end") + 1;
    }
    format!("{}{more}{}", &line[..at], &line[at..])
}

/// Each line of the log has times, and the first is the first of a JVM.
fn is_decorated(log: &str) -> bool {
    let first = log.lines().next().unwrap_or_default();
    let begins = [
        " Using ",
        " Heap region size",
        " CardTable entry",
        " Initializing The Z",
        " Version: ",
    ];
    let begins = begins.iter().any(|text| first.contains(text));
    let has_time = |line: &str| {
        let inner = line.strip_prefix('[').unwrap_or_default();
        inner.starts_with(|c: char| c.is_ascii_digit()) && line.contains("][")
    };
    begins && log.lines().all(has_time)
}

/// Name and text.
type Logs = Vec<(String, String)>;

/// Logs that are text, without the holes of `copytruncate`.
static LOGS: LazyLock<Logs> = LazyLock::new(|| {
    let text = |name: String| {
        let text = String::from_utf8(corpus::bytes(&name)).ok()?;
        let fits = text.len() <= MOST_BYTES && !text.contains('\0') && !text.is_empty();
        fits.then_some((name, text))
    };
    corpus::logs().into_iter().filter_map(text).collect()
});

fn read(pieces: &[&[u8]]) -> (Summary, Account) {
    let mut summarizer = Summarizer::new();
    let mut parser = Parser::new();
    for piece in pieces {
        parser.push(piece, &mut |names, event| summarizer.event(names, event));
    }
    let account = parser.finish(&mut |names, event| summarizer.event(names, event));
    (summarizer.summary(), account)
}

/// Lines of two logs in one, and for each log the numbers that its lines have there.
fn together(logs: [&str; 2], marked: Marked, turns: &[bool]) -> (String, [Vec<u64>; 2]) {
    let mut lines = logs.map(|log| log.lines().peekable());
    let (mut text, mut numbers) = (String::new(), [vec![0], vec![0]]);
    let mut turns = turns.iter().cycle();
    for number in 1.. {
        let mut who = usize::from(*turns.next().expect("some"));
        if lines[who].peek().is_none() {
            who = 1 - who;
        }
        let Some(line) = lines[who].next() else { break };
        text = text + &marked(line, who) + "\n";
        numbers[who].push(number);
    }
    (text, numbers)
}

/// A run as JSON: without its number and writer, each line by its number in the log that is given; without courses if they may
/// be coarse.
fn comparable(run: &Run, numbers: Option<&[u64]>, coarse: bool) -> Value {
    fn walk(value: &mut Value, numbers: Option<&[u64]>, coarse: bool) {
        match value {
            Value::Object(fields) => {
                if coarse {
                    fields.retain(|name, _| {
                        !["points", "step_s", "made_of", "concurrent_course"].contains(&&**name)
                    });
                }
                for (name, value) in fields {
                    if let ("line", Some(line), Some(numbers)) = (&**name, value.as_u64(), numbers)
                    {
                        *value = numbers[usize::try_from(line).expect("a line")].into();
                    }
                    walk(value, numbers, coarse);
                }
            }
            Value::Array(values) => values
                .iter_mut()
                .for_each(|value| walk(value, numbers, coarse)),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(run).expect("plain data");
    for field in ["number", "source", "coarse"] {
        value.as_object_mut().expect("fields").remove(field);
    }
    walk(&mut value, numbers, coarse);
    value
}

/// What is not the same in the log of both as in each alone.
fn differs(logs: [&str; 2], marked: Marked, turns: &[bool]) -> Option<String> {
    let (text, numbers) = together(logs, marked, turns);
    let (both, account) = read(&[text.as_bytes()]);
    let alone = logs.map(|log| read(&[log.as_bytes()]));
    let counts = |account: &Account| {
        [account.understood, account.ignored, account.unknown].map(|share| share.lines)
    };
    let [a, b] = [&alone[0].1, &alone[1].1].map(counts);
    let sums = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
    if counts(&account) != sums || account.by_turns.is_some() {
        return Some(format!("{account:?} for {sums:?}"));
    }
    let several = alone.iter().all(|(summary, _)| summary.pauses.count > 0);
    let mut runs: Vec<&Run> = both.runs.iter().collect();
    for (summary, numbers) in alone.iter().map(|(summary, _)| summary).zip(&numbers) {
        for expected in &summary.runs {
            let place = runs.iter().position(|run| {
                let coarse = run.coarse || expected.coarse;
                comparable(run, None, coarse) == comparable(expected, Some(numbers), coarse)
            });
            if let Some(place) = place {
                let run = runs.remove(place);
                if several && run.source.is_none() {
                    return Some("nobody is named".to_owned());
                }
            } else if summary.pauses.count > 0 {
                // A run of nothing but a header is reported only where there is no other.
                let shown = |run: &Run, numbers| comparable(run, numbers, run.coarse).to_string();
                let found: Vec<_> = runs.iter().map(|run| shown(run, None)).collect();
                let expected = shown(expected, Some(numbers.as_slice()));
                return Some(format!("expected {expected}\nfound {}", found.join("\n")));
            }
        }
    }
    None
}

/// Those that begin with a JVM, as unified logging prints it.
static DECORATED_LOGS: LazyLock<Logs> = LazyLock::new(|| {
    let logs = LOGS.iter().filter(|(_, log)| is_decorated(log));
    logs.cloned().collect()
});

const TURNS: [bool; 7] = [false, true, true, false, true, false, false];

#[test]
fn two_logs_by_turns_say_what_each_says_alone() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    let mut try_all = |logs: &[(String, String)], marks: &[(&str, Marked)]| {
        for (index, (name, log)) in logs.iter().enumerate() {
            let (other_name, other) = &logs[(index * 7 + 13) % logs.len()];
            for (how, marked) in marks {
                tried += 1;
                if let Some(what) = differs([log, other], *marked, &TURNS) {
                    let what: String = what.chars().take(4000).collect();
                    wrong.push(format!("{name} and {other_name}, {how}: {what}"));
                }
            }
        }
    };
    try_all(&LOGS, &AROUND);
    try_all(&DECORATED_LOGS, &DECORATED);
    assert!(
        wrong.is_empty(),
        "{} of {tried}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A part of a log, torn at both ends.
fn torn<'a>(log: &'a str, ends: [&prop::sample::Index; 2]) -> &'a str {
    let mut ends = ends.map(|end| end.index(log.len() + 1));
    ends.sort_unstable();
    let [from, to] = ends.map(|end| (end..=log.len()).find(|at| log.is_char_boundary(*at)));
    &log[from.unwrap_or(0)..to.unwrap_or(log.len())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn in_any_turns_torn_or_in_pieces(
        which in any::<[prop::sample::Index; 2]>(),
        how in any::<prop::sample::Index>(),
        turns in prop::collection::vec(any::<bool>(), 1..50),
        ends in any::<[prop::sample::Index; 4]>(),
        is_torn in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
    ) {
        let (how, marked) = AROUND[how.index(AROUND.len())];
        let [a, b] = which.map(|which| &*LOGS[which.index(LOGS.len())].1);
        let (a, b) = if is_torn {
            (torn(a, [&ends[0], &ends[1]]), torn(b, [&ends[2], &ends[3]]))
        } else {
            (a, b)
        };
        prop_assert_eq!(differs([a, b], marked, &turns), None, "{}", how);
        let (text, _) = together([a, b], marked, &turns);
        let whole = read(&[text.as_bytes()]);
        prop_assert_eq!(read(&crate::splits::pieces(text.as_bytes(), &cuts)), whole);
    }

    #[test]
    fn in_any_turns_by_decorations(
        which in any::<[prop::sample::Index; 2]>(),
        how in any::<prop::sample::Index>(),
        turns in prop::collection::vec(any::<bool>(), 1..50),
    ) {
        let (how, marked) = DECORATED[how.index(DECORATED.len())];
        let [a, b] = which.map(|which| &*DECORATED_LOGS[which.index(DECORATED_LOGS.len())].1);
        prop_assert_eq!(differs([a, b], marked, &turns), None, "{}", how);
    }
}

#[test]
fn threads_are_no_processes() {
    let lines = |thread: &str, rows: &[&str]| -> String {
        rows.iter()
            .map(|row| decorated(&format!("{row}\n"), thread))
            .collect()
    };
    let mut log = lines(
        "[7]",
        &[
            "[0.01s][info][gc] Using G1",
            "[0.01s][info][gc,init] Version: 17",
        ],
    );
    log += &lines(
        "[8]",
        &["[0.02s][debug][gc,free] Using new region (5) for TLAB (0x00007f9f7cdc8120)."],
    );
    for id in 0..50 {
        let at = 1 + id;
        log += &lines(
            "[9]",
            &[&format!(
                "[{at}.1s][info][gc] GC({id}) Pause Young (Normal) (G1 Evacuation Pause) 4M->1M(9M) 1.000ms"
            )],
        );
        log += &lines(
            "[8]",
            &[&format!(
                "[{at}.2s][info][gc] GC({id}) Concurrent Mark Cycle 1.000ms"
            )],
        );
    }
    let (summary, account) = read(&[log.as_bytes()]);
    assert_eq!((summary.runs.len(), account.unknown.lines), (1, 0));
    let run = &summary.runs[0];
    assert_eq!((run.source.as_deref(), run.pauses.all.count), (None, 50));
    assert_eq!(run.jvm.version.as_deref(), Some("17"));
}

#[test]
fn who_wrote_before_the_last_line_named_another_is_named() {
    let pause = "GC pause (young) (initial-mark) 4M->1M(9M), 0.1 secs]";
    let log = format!("web-1 | 1.0: [{pause}\nweb-2 | 900.0: [{pause}\n");
    let (summary, _) = read(&[log.as_bytes()]);
    let sources: Vec<_> = summary
        .runs
        .iter()
        .map(|run| run.source.as_deref())
        .collect();
    assert_eq!(sources, [Some("web-1"), Some("web-2")]);
}
