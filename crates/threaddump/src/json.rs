//! The JSON form of `Thread.dump_to_file`, JDK 21 and later (`jdk.internal.vm.ThreadDumper`).
//!
//! JDK 21 tells names and stacks. JDK 25 adds states and what is waited for and held, but the owner of a `ReentrantLock` only in
//! some builds. Numbers are written as strings or, since format version 2, as numbers.

use std::sync::Arc;

use rungwise_model::threads::Form;
use serde_json::Value;

use crate::activity;
use crate::dump::{Dump, Hold, How, Lock, State, Thread, Wait};
use crate::frame::method;

/// The beginning of such a document: the one member that it has.
pub(crate) fn looks_like(beginning: &[u8]) -> bool {
    let bare: Vec<u8> = beginning
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take(13)
        .collect();
    bare == b"{\"threadDump\""
}

/// The dump, or nothing where it is another document.
pub(crate) fn dump(text: &[u8]) -> Option<Dump> {
    let document: Value = serde_json::from_slice(text).ok()?;
    let root = document.get("threadDump")?;
    let containers = root.get("threadContainers")?.as_array()?;
    let mut lines = Places::of(text);
    let mut threads = Vec::new();
    for container in containers {
        let of_container = container.get("threads").and_then(Value::as_array);
        for thread in of_container.into_iter().flatten() {
            threads.push(self::thread(thread, lines.next().unwrap_or(1)));
        }
    }
    mark_virtual(&mut threads);
    let words = |name: &str| root.get(name)?.as_str().map(str::to_owned);
    Some(Dump {
        line: 1,
        form: Form::Json,
        pid: root.get("processId").and_then(number),
        taken: words("time"),
        version: words("runtimeVersion"),
        threads,
        ..Dump::default()
    })
}

/// JDK 21 does not say which threads are virtual; their stacks do. One that has not begun has no stack, as threads of the JVM.
fn mark_virtual(threads: &mut [Thread]) {
    let runs = |thread: &Thread| {
        let outermost = thread.frames.last().map(|frame| method(frame));
        outermost == Some("java.lang.VirtualThread.run")
    };
    let is_marked = threads.iter().any(|thread| thread.is_virtual);
    if is_marked || !threads.iter().any(runs) {
        return;
    }
    for thread in threads {
        thread.is_virtual =
            runs(thread) || thread.frames.is_empty() && !activity::is_of_jvm(thread);
    }
}

fn thread(object: &Value, line: u64) -> Thread {
    let words = |name: &str| object.get(name).and_then(Value::as_str);
    let frames = object.get("stack").and_then(Value::as_array);
    let owned = object.get("monitorsOwned").and_then(Value::as_array);
    let locks = owned
        .into_iter()
        .flatten()
        .filter_map(|frame| frame.get("locks")?.as_array())
        .flatten();
    let hold = |id: &Value| {
        Some(Hold {
            lock: lock(id.as_str()?)?,
            is_synchronizer: false,
            line,
            text: format!("monitorsOwned: {}", id.as_str()?),
        })
    };
    Thread {
        name: words("name").unwrap_or_default().into(),
        id: object.get("tid").and_then(number),
        is_virtual: object.get("virtual").and_then(Value::as_bool) == Some(true),
        state: words("state").and_then(State::from_name),
        line,
        frames: frames
            .into_iter()
            .flatten()
            .filter_map(|frame| Some(Arc::from(frame.as_str()?)))
            .collect(),
        wait: wait(object, line),
        // An object appears as null where it was locked and is gone.
        holds: locks.filter_map(hold).collect(),
        ..Thread::default()
    }
}

fn wait(object: &Value, line: u64) -> Option<Wait> {
    let of = |how, name: &str, id: &str, owner| {
        Some(Wait {
            how,
            lock: lock(id),
            owner,
            line,
            text: format!("{name}: {id}"),
        })
    };
    for (how, name) in [(How::Enter, "blockedOn"), (How::Notify, "waitingOn")] {
        if let Some(id) = object.get(name).and_then(Value::as_str) {
            return of(how, name, id, None);
        }
    }
    let blocker = object.get("parkBlocker")?;
    let owner = ["exclusiveOwnerThread", "exclusiveOwnerThreadId", "owner"]
        .iter()
        .find_map(|name| blocker.get(*name))
        .and_then(|owner| number(owner.get("tid").unwrap_or(owner)));
    of(
        How::Park,
        "parkBlocker",
        blocker.get("object")?.as_str()?,
        owner,
    )
}

/// `java.lang.Object@a061636`.
fn lock(id: &str) -> Option<Lock> {
    let (class, _) = id.split_once('@')?;
    Some(Lock {
        id: id.into(),
        class: class.into(),
    })
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Lines of the members `tid`, in order: those of the threads. Inside a text the quotation mark behind it would be escaped.
struct Places<'a> {
    rest: &'a [u8],
    line: u64,
}

impl<'a> Places<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            line: 1,
        }
    }
}

impl Iterator for Places<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        const NAME: &[u8] = b"\"tid\"";
        loop {
            let (first, rest) = self.rest.split_first()?;
            if self.rest.starts_with(NAME) {
                let behind = &self.rest[NAME.len()..];
                let next = behind.iter().find(|byte| !byte.is_ascii_whitespace());
                self.rest = behind;
                if next == Some(&b':') {
                    return Some(self.line);
                }
                continue;
            }
            self.line += u64::from(*first == b'\n');
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "threadDump": {"processId": 7, "time": "2026", "threadContainers": [{"threads": [
        {"tid": "1", "name": "tid", "stack": ["a/b.C.d(C.java:1)"], "monitorsOwned": [{"depth": 0, "locks": ["X@1", null]}]},
        {"tid": 2, "name": "b", "state": "WAITING", "virtual": true,
         "parkBlocker": {"object": "L@2", "exclusiveOwnerThread": {"tid": "1"}}}
    ]}]}}"#;

    #[test]
    fn what_it_tells_is_read() {
        assert!(looks_like(TEXT.as_bytes()));
        let dump = dump(TEXT.as_bytes()).unwrap();
        assert_eq!((dump.pid, dump.threads.len()), (Some(7), 2));
        let [one, other] = &dump.threads[..] else {
            panic!("two threads")
        };
        assert_eq!((one.line, one.holds.len()), (2, 1));
        assert_eq!((other.line, other.is_virtual), (3, true));
        assert_eq!(other.wait.as_ref().unwrap().owner, Some(1));
    }

    #[test]
    fn other_documents_are_not_of_threads() {
        for text in [
            "",
            "{",
            "{}",
            "{\"threadDump\": 1}",
            "{\"threadDump\": {\"threadContainers\": 1}}",
        ] {
            assert_eq!(dump(text.as_bytes()), None, "{text}");
        }
        assert!(!looks_like(b"{\"thread\": 1}"));
    }
}
