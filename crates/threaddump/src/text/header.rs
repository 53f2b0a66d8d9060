//! The line that begins a thread.
//!
//! HotSpot prints the name, then words and pairs whose number grew with the releases (`JavaThread::print_on`, `Thread::print_on`
//! of thread.cpp), then what it does in words, then an address in brackets. A name may hold anything, quotation marks too.

use std::sync::Arc;

use crate::dump::{State, Thread};

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
            is_header |= matches!(key, "prio" | "os_prio" | "tid" | "nid");
            match key {
                "tid" => thread.address = Some(value.into()),
                "cpu" => thread.cpu_s = value.strip_suffix("ms").and_then(seconds(1e-3)),
                "elapsed" => thread.elapsed_s = value.strip_suffix('s').and_then(seconds(1.0)),
                _ => {}
            }
        } else if word == "virtual" {
            thread.is_virtual = true;
        } else if word != "daemon" && !word.starts_with('[') {
            words.push(word);
        }
    }
    is_header.then(|| (thread, state_of(&words.join(" "))))
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
        state: words.next().and_then(State::of),
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
        assert!((thread.cpu_s.unwrap() - 0.08139).abs() < 1e-9);
        assert_eq!(state, Some(State::Blocked));
        let old = r#""Timer-0" daemon prio=1 tid=0x0822 nid=0x2d53 in Object.wait() [0xa95fa000..0xa95fb0c0]"#;
        assert_eq!(printed(old).unwrap().1, Some(State::Waiting));
        assert_eq!(printed(r#""Minimal" #1 runnable"#).unwrap().0.id, Some(1));
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
