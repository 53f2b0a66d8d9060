//! `ThreadInfo` as JSON: the thread dump of Spring Boot Actuator (`/actuator/threaddump`; the list alone in version 1).
//!
//! The beans know the owner of every lock that a thread waits for. They have no CPU times and no virtual threads.

use std::sync::Arc;

use rungwise_model::threads::Form;
use serde_json::Value;

use crate::dump::{Dump, Hold, How, Lock, State, Thread, Wait};

/// The beginning of such a document.
pub(crate) fn looks_like(beginning: &[u8]) -> bool {
    let bare: Vec<u8> = beginning
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let list = bare.strip_prefix(b"{\"threads\":").unwrap_or(&bare);
    let names: [&[u8]; 2] = [b"\"threadName\"", b"\"threadId\""];
    list.starts_with(b"[{")
        && names
            .iter()
            .any(|name| list.windows(name.len()).any(|part| part == *name))
}

/// The dump, or nothing where it is another document.
pub(crate) fn dump(text: &[u8]) -> Option<Dump> {
    let document: Value = serde_json::from_slice(text).ok()?;
    let list = document.get("threads").unwrap_or(&document).as_array()?;
    let mut lines = lines(text);
    let threads: Vec<Thread> = list
        .iter()
        .filter(|one| one.get("threadName").is_some())
        .map(|one| thread(one, lines.next().unwrap_or(1)))
        .collect();
    (!threads.is_empty()).then(|| Dump {
        line: 1,
        form: Form::Beans,
        has_synchronizers: list
            .iter()
            .any(|one| one.get("lockedSynchronizers").is_some()),
        threads,
        ..Dump::default()
    })
}

/// Lines of the members `threadName`.
fn lines(text: &[u8]) -> impl Iterator<Item = u64> {
    const NAME: &[u8] = b"\"threadName\"";
    let mut line = 1;
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let is_name = text[at..].starts_with(NAME);
            line += u64::from(text[at] == b'\n');
            at += 1;
            if is_name {
                return Some(line);
            }
        }
        None
    })
}

fn thread(object: &Value, line: u64) -> Thread {
    let words = |name: &str| object.get(name).and_then(Value::as_str);
    let frames = object.get("stackTrace").and_then(Value::as_array);
    let frames: Vec<Arc<str>> = frames.into_iter().flatten().filter_map(frame).collect();
    let state = words("threadState").and_then(State::from_name);
    let held = |name: &str, is_synchronizer: bool| -> Vec<Hold> {
        let list = object.get(name).and_then(Value::as_array);
        let locks = list.into_iter().flatten().filter_map(lock);
        locks
            .map(|lock| Hold {
                text: format!("{name}: {}", lock.id),
                lock,
                is_synchronizer,
                line,
            })
            .collect()
    };
    let mut holds = held("lockedMonitors", false);
    holds.extend(held("lockedSynchronizers", true));
    let wanted = object.get("lockInfo").and_then(lock);
    let is_parked = frames
        .first()
        .is_some_and(|top| top.contains("Unsafe.park"));
    let how = match state {
        Some(State::Blocked) => How::Enter,
        _ if is_parked => How::Park,
        _ => How::Notify,
    };
    Thread {
        name: words("threadName").unwrap_or_default().into(),
        id: object.get("threadId").and_then(Value::as_u64),
        state,
        line,
        wait: wanted.map(|lock| Wait {
            how,
            text: format!("lockInfo: {}", lock.id),
            lock: Some(lock),
            owner: object
                .get("lockOwnerId")
                .and_then(Value::as_i64)
                .and_then(|id| u64::try_from(id).ok()),
            line,
        }),
        frames,
        holds,
        ..Thread::default()
    }
}

/// A `StackTraceElement` as it prints itself.
fn frame(object: &Value) -> Option<Arc<str>> {
    let words = |name: &str| object.get(name).and_then(Value::as_str);
    let (class, method) = (words("className")?, words("methodName")?);
    let line = object.get("lineNumber").and_then(Value::as_i64);
    let is_native =
        object.get("nativeMethod").and_then(Value::as_bool) == Some(true) || line == Some(-2);
    let place = match (words("fileName"), line) {
        _ if is_native => "Native Method".to_owned(),
        (Some(file), Some(line)) if line >= 0 => format!("{file}:{line}"),
        (Some(file), _) => file.to_owned(),
        (None, _) => "Unknown Source".to_owned(),
    };
    Some(format!("{class}.{method}({place})").into())
}

fn lock(object: &Value) -> Option<Lock> {
    let class = object.get("className")?.as_str()?;
    let hash = object.get("identityHashCode")?.as_i64()?;
    Some(Lock {
        id: format!("{class}@{hash:x}").into(),
        class: class.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"threads": [
        {"threadName": "a", "threadId": 12, "lockOwnerId": 13, "threadState": "BLOCKED",
         "lockInfo": {"className": "X", "identityHashCode": 255},
         "lockedMonitors": [{"className": "Y", "identityHashCode": 1, "lockedStackDepth": 0}], "lockedSynchronizers": [],
         "stackTrace": [{"className": "A", "methodName": "one", "fileName": "A.java", "lineNumber": 1, "nativeMethod": false}]},
        {"threadName": "b", "threadId": 13, "lockOwnerId": -1, "threadState": "WAITING", "lockInfo": null, "stackTrace": []}]}"#;

    #[test]
    fn what_actuator_writes_is_read() {
        assert!(looks_like(TEXT.as_bytes()));
        let dump = dump(TEXT.as_bytes()).unwrap();
        assert!(dump.has_synchronizers);
        let one = &dump.threads[0];
        assert_eq!(
            (&*one.name, one.line, &*one.frames[0]),
            ("a", 2, "A.one(A.java:1)")
        );
        let wait = one.wait.as_ref().unwrap();
        assert_eq!((wait.how, wait.owner), (How::Enter, Some(13)));
        assert_eq!(&*wait.lock.as_ref().unwrap().id, "X@ff");
        assert_eq!(one.holds[0].lock.class.as_ref(), "Y");
        let list = &TEXT[TEXT.find('[').unwrap()..TEXT.len() - 1];
        assert!(looks_like(list.as_bytes()));
        assert_eq!(super::dump(list.as_bytes()).unwrap().threads.len(), 2);
    }

    #[test]
    fn other_documents_are_not_of_threads() {
        for text in [
            "",
            "[",
            "{}",
            "[{\"name\": 1}]",
            "{\"threads\": 1}",
            "{\"threads\": [1]}",
        ] {
            assert_eq!(dump(text.as_bytes()), None, "{text}");
            assert!(!looks_like(text.as_bytes()));
        }
    }
}
