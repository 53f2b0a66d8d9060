//! The line that begins a thread.
//!
//! HotSpot prints the name, then words and pairs whose number grew with the releases (`JavaThread::print_on`, `Thread::print_on`
//! of thread.cpp), then what it does in words, then an address in brackets. A name may hold anything, quotation marks too.

use std::sync::Arc;

use super::locks::bare_object;
use crate::dump::{How, State, Thread, Wait};

/// `ThreadInfo.toString()`: `"a" daemon prio=5 Id=13 BLOCKED on java.lang.Object@1b2c owned by "b" Id=12`. JMX clients write so, and tools
/// that add words of their own behind the number.
pub(super) fn info(text: &str, line: u64) -> Option<Thread> {
    let at = text.find(" Id=")?;
    let end = text[..at].rfind('"').filter(|end| *end > 0)?;
    let is_known = |word: &str| word == "daemon" || word.starts_with("prio=");
    if !text[end + 1..at].split_whitespace().all(is_known) {
        return None;
    }
    let mut words = text[at + 4..].split_whitespace();
    let id = words.next()?.parse().ok()?;
    let mut thread = Thread {
        name: text[1..end].into(),
        id: Some(id),
        line,
        ..Thread::default()
    };
    thread.state = Some(words.by_ref().find_map(State::from_name)?);
    if words.next() == Some("on") {
        thread.wait = Some(Wait {
            how: if thread.state == Some(State::Blocked) {
                How::Enter
            } else {
                // What is on top of the stack says how.
                How::Notify
            },
            lock: words.next().and_then(bare_object),
            owner: text
                .rsplit_once(" Id=")
                .filter(|(before, _)| before.contains(" owned by "))
                .and_then(|(_, id)| id.split_whitespace().next()?.parse().ok()),
            line,
            text: text.to_owned(),
        });
    }
    Some(thread)
}

/// What HotSpot prints, and the state that the words for it mean.
pub(super) fn printed(text: &str) -> Option<(Thread, Option<State>)> {
    let end = text.rfind('"').filter(|end| *end > 0)?;
    let (name, rest) = (&text[1..end], &text[end + 1..]);
    let mut thread = Thread {
        name: name.into(),
        ..Thread::default()
    };
    let mut is_header = false;
    let mut words = Vec::new();
    for word in rest.split_whitespace() {
        if let Some(number) = word.strip_prefix('#') {
            thread.id = number.parse().ok();
            is_header |= thread.id.is_some();
        } else if let Some((key, value)) = word.split_once('=') {
            is_header |= matches!(key, "prio" | "os_prio" | "tid" | "nid" | "id");
            match key {
                "id" => thread.id = number(value),
                "tid" => thread.address = Some(value.into()),
                "nid" => thread.native = number(value),
                "cpu" => thread.cpu_s = value.strip_suffix("ms").and_then(seconds(1e-3)),
                "elapsed" => thread.elapsed_s = value.strip_suffix('s').and_then(seconds(1.0)),
                _ => {}
            }
        } else if let Some(id) = word.strip_prefix("t@").and_then(|id| id.parse().ok()) {
            // VisualVM, Spring Boot Actuator: `"main" - Thread t@1`.
            thread.id = Some(id);
            is_header = true;
        } else if word == "virtual" {
            thread.is_virtual = true;
        } else if word != "daemon" && !word.starts_with('[') {
            words.push(word);
        }
    }
    is_header.then(|| (thread, state_of(&words.join(" "))))
}

/// A number, or one in the hexadecimal form of addresses.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn seconds(unit: f64) -> impl Fn(&str) -> Option<f64> {
    move |text| {
        let number: f64 = text.parse().ok()?;
        number.is_finite().then_some(number * unit)
    }
}

/// JDK 5 has no line for the state.
fn state_of(words: &str) -> Option<State> {
    Some(match words {
        "runnable" => State::Runnable,
        "waiting for monitor entry" => State::Blocked,
        "in Object.wait()" | "waiting on condition" => State::Waiting,
        "sleeping" => State::TimedWaiting,
        _ => return None,
    })
}

/// What `Thread.dump_to_file` writes: `#12 "name" virtual WAITING 2026-11-21T11:50:07.1Z`; before JDK 25 without state and time.
pub(super) fn filed(text: &str) -> Option<Thread> {
    let (id, rest) = text.strip_prefix('#')?.split_once(' ')?;
    let end = rest.rfind('"').filter(|end| *end > 0)?;
    let name: Arc<str> = rest.strip_prefix('"')?.get(..end - 1)?.into();
    let mut words = rest[end + 1..].split_whitespace().peekable();
    let is_virtual = words.next_if_eq(&"virtual").is_some();
    Some(Thread {
        name,
        id: Some(id.parse().ok()?),
        is_virtual,
        state: words.next().and_then(State::from_name),
        ..Thread::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_many_releases_are_read() {
        let (thread, state) = printed(
            r#""http "x" 1" #73 [12] daemon prio=5 os_prio=0 cpu=81.39ms elapsed=5.09s allocated=895K tid=0x00007f nid=0x44 waiting for monitor entry  [0x00007f6c]"#,
        )
        .unwrap();
        assert_eq!((&*thread.name, thread.id), ("http \"x\" 1", Some(73)));
        assert_eq!(thread.native, Some(0x44));
        assert!((thread.cpu_s.unwrap() - 0.08139).abs() < 1e-9);
        assert_eq!(state, Some(State::Blocked));
        let old = r#""Timer-0" daemon prio=1 tid=0x0822 nid=0x2d53 in Object.wait() [0xa95fa000..0xa95fb0c0]"#;
        assert_eq!(printed(old).unwrap().1, Some(State::Waiting));
        assert_eq!(printed(r#""Minimal" #1 runnable"#).unwrap().0.id, Some(1));
    }

    #[test]
    fn headers_of_other_tools_are_read() {
        let bean = info(
            r#""a "x"" daemon prio=5 Id=13 BLOCKED on java.lang.Object@1b2c owned by "b" Id=12"#,
            7,
        )
        .unwrap();
        assert_eq!((&*bean.name, bean.id), ("a \"x\"", Some(13)));
        let wait = bean.wait.unwrap();
        assert_eq!((wait.how, wait.owner, wait.line), (How::Enter, Some(12), 7));
        assert_eq!(wait.lock.unwrap().class.as_ref(), "java.lang.Object");
        let tool = info(r#""main" Id=1 cpuUsage=0.0% RUNNABLE (in native)"#, 1).unwrap();
        assert_eq!((tool.state, tool.wait), (Some(State::Runnable), None));
        let visual = printed(r#""http-1" - Thread t@64"#).unwrap().0;
        assert_eq!((&*visual.name, visual.id), ("http-1", Some(64)));
        let other = printed(r#""main" id=0x1f prio=5 RUNNABLE"#).unwrap().0;
        assert_eq!(other.id, Some(31));
        assert_eq!(info(r#""key": "value" Id=1"#, 1), None);
    }

    #[test]
    fn other_quoted_lines_are_no_headers() {
        for text in [
            "\"dl-A\":",
            "\"",
            "\"\"",
            "\"key\": \"value\", a=b",
            "\" #x",
        ] {
            assert!(printed(text).is_none(), "{text}");
        }
    }

    #[test]
    fn headers_of_files_are_read() {
        let thread = filed(r#"#25 "vt "0"" virtual BLOCKED 2026-11-21T11:50:07.1Z"#).unwrap();
        assert_eq!((&*thread.name, thread.id), ("vt \"0\"", Some(25)));
        assert!(thread.is_virtual);
        assert_eq!(thread.state, Some(State::Blocked));
        assert_eq!(filed("#1 \"main\"").unwrap().state, None);
        for text in ["#1", "#1 x", "#1 \"", "#x \"main\"", "# \""] {
            assert!(filed(text).is_none(), "{text}");
        }
    }
}
